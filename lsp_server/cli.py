"""The command line: `redraft COMMAND`.

Responsible for arguments, for the table of commands and for the exit code. Each command's code is
imported when it runs, so that the server starts without torch.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from lsp_server import __version__
from model import bounds
from model.allocator import give_back_what_is_freed

Parser = argparse.ArgumentParser

EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "accelerate",
            "gguf",
            "matplotlib",
            "transformers",
            "tree_sitter",
            "tree_sitter_javascript",
            "tree_sitter_python",
            "tree_sitter_typescript",
        ),
        "training",
    ),
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "prometheus_client", "pydantic"), "serve"),
    "httpx2": "remote",
    "llama_cpp": "llama",
    "ray": "cluster",
}
"""Libraries that not everybody needs, and the extra that brings them."""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its line in the help, its arguments, and what runs it."""

    help: str
    arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]


def main() -> None:
    """Entry point of `redraft`. Exits with the command's code."""
    give_back_what_is_freed()
    sys.exit(run())


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    try:
        parser = _parser(chosen)
        options = parser.parse_args(arguments)
        if options.command is None:
            parser.print_help(sys.stderr)
            return 2
        return COMMANDS[options.command].run(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `redraft settings | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        return _refuse(chosen, missing(module))
    except UnicodeDecodeError as error:
        return _refuse(chosen, f"a file that should hold text does not: {error}")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _refuse(chosen, f"{where}{error.strerror or error}")


def _refuse(command: str | None, reason: str) -> int:
    print(f"redraft {command}: {reason}", file=sys.stderr)
    return 2


def missing(module: str) -> str:
    """What to do about a library that is not installed."""
    extra = EXTRAS[module]
    return (
        f"a library is not installed ({module}): pip install 'redraft[{extra}]', "
        f"in a checkout of Redraft: pip install -e '.[{extra}]'"
    )


def _parser(chosen: str | None) -> Parser:
    """The parser; arguments of commands other than `chosen` are left out, with their imports."""
    parser = Parser(prog="redraft", description="Predicts your next edit, on your own machine.")
    parser.add_argument("--version", action="version", version=f"redraft {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help)
        if name == chosen:
            command.arguments(sub)
    return parser


def _lsp_arguments(parser: Parser) -> None:
    parser.add_argument("--stdio", action="store_true", help="talk over stdin and stdout (default)")
    parser.add_argument("--tcp", action="store_true", help="wait for one client on a TCP port")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=bounds.port, default=7011, help="port to listen on; 0 picks one"
    )
    parser.add_argument("--name", default="redraft", help="name that the server gives itself")
    parser.add_argument("--log-file", metavar="FILE", help="write the log there, not to stderr")


def _lsp(options: argparse.Namespace) -> int:
    set_up_logging(options.log_file)
    gc.disable()  # the protocol's types are many thousand objects, and none of them is garbage
    from lsp_server.server import create_server
    from lsp_server.transport import serve_stdio, serve_tcp

    gc.freeze()
    gc.enable()
    server = create_server(options.name)
    if options.tcp:
        leave(serve_tcp(server, options.host, options.port))
    leave(serve_stdio(server))


def leave(code: int) -> NoReturn:
    """Exit at once. A thread inside native code, a model for example, is not waited for."""
    logging.shutdown()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def brief(record: logging.LogRecord) -> bool:
    """One line for what a client got wrong, unless the level is `debug`: pygls adds tracebacks that quote values."""
    if not logging.getLogger("lsp_server").isEnabledFor(logging.DEBUG):
        line = record.getMessage().partition("\n")[0]
        kind = record.exc_info[0] if record.exc_info else None
        record.msg, record.args = f"{line} ({kind.__name__})" if kind else line, None
        record.exc_info = record.exc_text = None
    return True


def set_up_logging(path: str | None) -> None:
    """Warnings and worse to stderr or a file. pygls logs whole messages at INFO: never that."""
    handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler()
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.addFilter(brief)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format=form)
    logging.getLogger("pygls").setLevel(logging.WARNING)


def _of_module(name: str, help: str) -> Command:
    """A command whose module has `add_arguments(parser)` and `run(options)`."""
    return Command(
        help,
        lambda parser: import_module(name).add_arguments(parser),
        lambda options: import_module(name).run(options),
    )


def _of_group(group: str, name: str, help: str) -> Command:
    """A command of a module that has several, told apart by name."""
    return Command(
        help,
        lambda parser: import_module(group).add_arguments(name, parser),
        lambda options: import_module(group).run(name, options),
    )


def _of_evaluation(name: str, help: str) -> Command:
    return _of_group("model.evaluation.cli", name, help)


def _of_training(name: str, help: str) -> Command:
    return _of_group("model.training.cli", name, help)


def _doctor_arguments(parser: Parser) -> None:
    parser.add_argument("--no-load", action="store_true", help="do not load the model to try it")


def _doctor(options: argparse.Namespace) -> int:
    from lsp_server import doctor

    return doctor.run(options)


def _serve_arguments(parser: Parser) -> None:
    from lsp_server import serve_command

    serve_command.add_arguments(parser)


def _serve(options: argparse.Namespace) -> int:
    from lsp_server import serve_command

    set_up_logging(None)
    code = serve_command.run(options)
    sys.stdout.flush()
    leave(code)


def _settings(options: argparse.Namespace) -> int:
    from lsp_server.settings import settings_markdown

    print(settings_markdown(), end="")
    return 0


def _no_arguments(parser: Parser) -> None:
    pass


COMMANDS = {
    "lsp": Command("run the language server", _lsp_arguments, _lsp),
    "serve": Command("serve the model over http", _serve_arguments, _serve),
    "predict": _of_evaluation("predict", "answer a file of cases"),
    "eval": _of_evaluation("eval", "answer a file of cases and score the answers"),
    "bench": _of_module("lsp_server.bench_command", "measure speed"),
    "simulate": _of_module(
        "model.evaluation.simulate_command",
        "let a simulated user judge suggestions, with one gate or several",
    ),
    "data": _of_training("data", "build training data from package releases"),
    "pack": _of_training("pack", "write training data as shards for one model"),
    "train": _of_training("train", "train what a recipe names, or go on with it"),
    "export": _of_training("export", "write what was trained as a checkpoint folder"),
    "tune": _of_training("tune", "let the gate learn from what you accepted and rejected"),
    "feedback": _of_module(
        "lsp_server.feedback_command", "show, export or delete what became of suggestions"
    ),
    "models": _of_module("lsp_server.models_command", "list, describe, choose and download models"),
    "remote": _of_module(
        "lsp_server.remote_command",
        "allow services for the remote backend, list, forget or try them",
    ),
    "demo": _of_module("lsp_server.demo", "see it work on a real source file"),
    "doctor": Command("tell what is installed and what is wrong", _doctor_arguments, _doctor),
    "settings": Command("print the settings table", _no_arguments, _settings),
}
