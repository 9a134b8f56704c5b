"""The service as an application for Ray: `serve run lsp_server.cluster:app replicas=4 threads=8`.

Responsible for reading the options of `redraft serve` as Ray's arguments. The application is `model.serving.cluster`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import NoReturn

from ray import serve

from lsp_server import serve_command
from model.serving import cluster


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def app(arguments: Mapping[str, str]) -> serve.Application:
    """The application with the options of `redraft serve`, dashes as underscores, switches as `true`. Address and
    port are Ray's; `host` must still be what clients can reach. Raises ValueError for what is wrong with them."""
    parser = _Parser(prog="redraft serve", add_help=False)
    serve_command.add_arguments(parser)
    parser.add_argument("--doors", type=int, default=1, help="processes that hand requests out")
    given = [_as_option(name, str(value)) for name, value in arguments.items()]
    options = parser.parse_args(given)
    guard = serve_command.guard_of(options)
    load = partial(serve_command.load_service, options, guard)
    return cluster.application(load, serve_command.scale_of(options), guard, options.doors)


def _as_option(name: str, value: str) -> str:
    option = "--" + name.replace("_", "-")
    return option if value.lower() == "true" else f"{option}={value}"
