"""`redraft serve`: the model as an HTTP service.

Responsible for the command's arguments, for what it refuses to start with, and for the process. The service itself is
`model.serving`; its libraries are an optional extra.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import socket
import sys
from pathlib import Path

from lsp_server import engine
from model import bounds
from model.feedback import FILE, data_folder
from model.library import EMBEDDED

TOKEN_VARIABLE = "REDRAFT_TOKEN"
PORT = 7012
MISSING = (
    "redraft serve needs libraries that are not installed ({name} is missing): "
    "pip install 'redraft[serve]', in a checkout pip install -e '.[serve]'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=bounds.port, default=PORT, help="port to listen on; 0 picks one"
    )
    parser.add_argument("--model", default=EMBEDDED, help="`embedded`, or a model folder")
    parser.add_argument("--device", default="auto", help="`auto`, `cpu`, `cuda`, `cuda:1` ...")
    parser.add_argument(
        "--threads", type=bounds.threads, default=0, help="CPU threads; 0 leaves it to Redraft"
    )
    parser.add_argument(
        "--context-tokens",
        type=bounds.whole(0, 32_768),
        default=0,
        help="largest prompt; 0 leaves it to Redraft",
    )
    parser.add_argument(
        "--gate",
        choices=("eager", "balanced", "quiet"),
        default="balanced",
        help="what `shown` in an answer means; every answer is sent",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file with the API key that clients must send (or set {TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name of this machine"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN", help="a web page's origin"
    )
    parser.add_argument(
        "--queue", type=bounds.count, default=16, help="most requests that wait or run"
    )
    parser.add_argument(
        "--timeout", type=bounds.real(0.001, 3600), default=30.0, help="seconds for an answer"
    )
    parser.add_argument("--max-body", type=bounds.count, default=16, help="largest request, in MiB")
    parser.add_argument(
        "--strict", action="store_true", help="refuse edit requests with more than one message"
    )
    parser.add_argument(
        "--no-edit",
        choices=("auto", "none", "unchanged"),
        default="auto",
        help="how `no edit` is said: the word None, the region as it is, or what the client knows",
    )
    parser.add_argument("--no-feedback", action="store_true", help="keep nothing of /feedback")


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted; 1 when it cannot start."""
    try:
        token = _token(options.token_file)
        loopback = _is_loopback(options.host)
        if not loopback and token is None:
            raise ValueError(
                f"{options.host} can be reached from other machines, so a token is needed: "
                f"--token-file FILE or {TOKEN_VARIABLE}"
            )
        return _serve(options, token, loopback=loopback)
    except ModuleNotFoundError as error:
        print(MISSING.format(name=error.name), file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"redraft serve: {error}", file=sys.stderr)
    return 1


def _serve(options: argparse.Namespace, token: str | None, *, loopback: bool) -> int:
    from model.config import ModelError
    from model.scripted import ScriptError
    from model.serving.app import create_app
    from model.serving.security import Guard
    from model.serving.server import server_of
    from model.serving.service import Options, Service

    guard = Guard(
        loopback=loopback,
        token=token,
        hosts=frozenset(name.lower() for name in options.allow_host),
        origins=frozenset(options.allow_origin),
        max_body=options.max_body * 2**20,
    )
    feedback = None if options.no_feedback else data_folder() / FILE
    listening = socket.create_server(
        (options.host, options.port),
        family=socket.AF_INET6 if ":" in options.host else socket.AF_INET,
    )
    choice = engine.ModelChoice(
        options.model, options.device, options.threads, options.context_tokens
    )
    try:
        predictor = engine.load_predictor(choice)
    except (ModelError, ScriptError) as error:
        listening.close()
        raise ValueError(str(error)) from error
    service = Service(
        predictor,
        Options(
            guard,
            waiting=options.queue,
            timeout=options.timeout,
            strict=options.strict,
            no_edit=options.no_edit,
            feedback=feedback,
        ),
        lambda mode: engine.threshold(predictor, mode, options.gate, invoked=False),
    )
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"Redraft serves {predictor.name} at http://{shown}:{port}", flush=True)
    asyncio.run(server_of(create_app(service)).serve(sockets=[listening]))
    return 0


def _token(path: Path | None) -> str | None:
    """The API key. ValueError when it is too short to be one; OSError when the file can't be read."""
    from model.serving.security import LEAST_TOKEN

    given = path.read_text(encoding="utf-8") if path else os.environ.get(TOKEN_VARIABLE)
    if given is None:
        return None
    token = given.strip()
    if len(token) < LEAST_TOKEN or not token.isascii():
        raise ValueError(f"the token must have at least {LEAST_TOKEN} ASCII characters")
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
