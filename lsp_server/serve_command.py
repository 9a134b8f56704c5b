"""`redraft serve`: the model as an HTTP service.

Responsible for the command's arguments, for what it refuses to start with, and for the process. The service itself is
`model.serving`; its libraries are an optional extra.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server import engine
from model import bounds
from model.feedback import FILE, data_folder
from model.library import EMBEDDED
from model.protocol import Mode, Predictor

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from model.serving.cluster import Scale
    from model.serving.security import Guard
    from model.serving.service import Service

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
        "--parallel",
        type=bounds.count,
        default=4,
        help="requests that are worked on side by side, in common passes of the model",
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
    parser.add_argument(
        "--replicas", type=bounds.count, default=1, help="more than 1: as many, with Ray Serve"
    )
    parser.add_argument(
        "--max-replicas",
        type=bounds.count,
        default=0,
        help="replicas that there may be under load; 0 is as many as --replicas",
    )
    parser.add_argument(
        "--no-affinity",
        action="store_true",
        help="spread requests, instead of giving those of one session to one replica",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted; 1 when it cannot start."""
    try:
        return _serve(options)
    except ModuleNotFoundError as error:
        print(MISSING.format(name=error.name), file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"redraft serve: {error}", file=sys.stderr)
    return 1


def _serve(options: argparse.Namespace) -> int:
    from model.serving.server import server_of

    guard = guard_of(options)
    listening = socket.create_server(
        (options.host, options.port),
        family=socket.AF_INET6 if ":" in options.host else socket.AF_INET,
    )
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    try:
        with _application(options, guard) as (name, app, renew):
            print(f"Redraft serves {name} at http://{shown}:{port}", flush=True)
            with _interrupts_ignored():
                asyncio.run(_until_interrupted(server_of(app), listening, renew))
    finally:
        listening.close()
    return 0


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """The server has its own handlers while it runs; it raises what it got again at its end, where to stop is all that
    was wanted."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


async def _until_interrupted(
    server: uvicorn.Server, listening: socket.socket, renew: Callable[[], object] | None
) -> None:
    """Serve; `renew` is called, off the event loop, when SIGHUP comes."""
    if renew is not None and hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, loop.run_in_executor, None, renew)
    await server.serve(sockets=[listening])


@contextmanager
def _application(
    options: argparse.Namespace, guard: Guard
) -> Iterator[tuple[str, ASGIApp, Callable[[], object] | None]]:
    """What is served: its name, its application, and what loads the model anew. It is one service in this process, or
    a door to several."""
    load = partial(load_service, options, guard)
    if max(options.replicas, options.max_replicas) == 1:
        from model.serving.app import create_app

        service = load()
        yield service.name, create_app(service), None
        return
    from model.serving import cluster

    scale = scale_of(options)
    try:
        handle = cluster.start(load, scale)
        door = cluster.front(handle, guard, options.timeout)
        count = f"{scale.least} to {scale.most}" if scale.most > scale.least else f"{scale.least}"
        yield f"{count} replicas", door, partial(cluster.start, load, scale)
    finally:
        cluster.stop()


def guard_of(options: argparse.Namespace) -> Guard:
    """Who may ask. ValueError when everybody could, OSError when the token can't be read."""
    from model.serving.security import Guard

    token = _token(options.token_file)
    loopback = _is_loopback(options.host)
    if not loopback and token is None:
        raise ValueError(
            f"{options.host} can be reached from other machines, so a token is needed: "
            f"--token-file FILE or {TOKEN_VARIABLE}"
        )
    return Guard(
        loopback=loopback,
        token=token,
        hosts=frozenset(name.lower() for name in options.allow_host),
        origins=frozenset(options.allow_origin),
        max_body=options.max_body * 2**20,
    )


def scale_of(options: argparse.Namespace) -> Scale:
    """How many replicas there are, and what each takes."""
    from model.serving.cluster import Scale

    return Scale(
        least=options.replicas,
        most=max(options.replicas, options.max_replicas),
        queue=options.queue,
        timeout=options.timeout,
        parallel=options.parallel,
        cpus=options.threads or 1,
        gpus=1 if options.device.startswith("cuda") else 0,
        affinity=not options.no_affinity,
    )


def load_service(options: argparse.Namespace, guard: Guard) -> Service:
    """A service with its model loaded. ValueError when the model can't be."""
    from model.config import ModelError
    from model.scripted import ScriptError
    from model.serving.service import Options, Service

    choice = engine.ModelChoice(
        options.model, options.device, options.threads, options.context_tokens
    )
    try:
        predictor = engine.load_predictor(choice)
    except (ModelError, ScriptError) as error:
        raise ValueError(str(error)) from error
    return Service(
        predictor,
        Options(
            guard,
            waiting=options.queue,
            timeout=options.timeout,
            strict=options.strict,
            no_edit=options.no_edit,
            parallel=options.parallel,
            feedback=None if options.no_feedback else data_folder() / FILE,
        ),
        partial(_threshold, predictor, options.gate),
    )


def _threshold(predictor: Predictor, gate: str, mode: Mode) -> float:
    return engine.threshold(predictor, mode, gate, invoked=False)


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
