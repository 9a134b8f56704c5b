"""`redraft remote allow | list | forget | try`: which services text may be sent to.

Responsible for the command's arguments and for what it prints. Keys are never printed. Knows nothing of a running
server, which learns of a change when it starts again.
"""

from __future__ import annotations

import argparse
import getpass
import logging
import os
import re
import sys

from lsp_server.remote import load_remote
from lsp_server.settings import REMOTE_PROTOCOLS, RemoteChoice, Settings
from model.config import ModelError
from model.protocol import Request, Stop, Unavailable
from model.remote.consent import (
    INCEPTION,
    INCEPTION_KEY,
    ConsentError,
    Consents,
    Service,
    ServiceAddress,
)
from model.remote.link import MissingPackageError

TRIED = 'def greet(name):\n    return "hello " + '
REST = '\n\n\ngreet("you")\n'
TRY_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser("allow", help="let text be sent to a service")
    key = adding.add_mutually_exclusive_group()
    key.add_argument(
        "--key-env",
        type=_variable,
        metavar="NAME",
        help="environment variable that holds the key",
    )
    key.add_argument("--ask-key", action="store_true", help="ask for the key and keep it")
    adding.add_argument(
        "--plain-http", action="store_true", help="allow http:// to another machine, unencrypted"
    )
    actions.add_parser("list", help="show the services that are allowed")
    forgetting = actions.add_parser("forget", help="send nothing to a service any more")
    trying = actions.add_parser("try", help="ask a service for one completion")
    trying.add_argument("--model", default=Settings().remote_model)
    trying.add_argument("--protocol", choices=REMOTE_PROTOCOLS, default="inception")
    trying.add_argument("--fim-template", default="")
    for one in (adding, forgetting, trying):
        one.add_argument("url", metavar="URL", help="address of the service, like https://host")


def _variable(name: str) -> str:
    """The name of an environment variable."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise argparse.ArgumentTypeError(
            f"{name!r} is not the name of an environment variable: letters, digits and `_`"
        )
    return name


def run(options: argparse.Namespace) -> int:
    """Carry the action out; 1 when it cannot be, and why."""
    try:
        return {"allow": allow, "list": show, "forget": forget, "try": attempt}[options.action](
            options
        )
    except (ConsentError, MissingPackageError, ModelError, Unavailable, OSError) as error:
        print(f"redraft remote: {error}", file=sys.stderr)
        return 1


def allow(options: argparse.Namespace) -> int:
    """Remember a service, and where its key is."""
    address = ServiceAddress.of(options.url)
    if not address.private and not options.plain_http:
        raise ConsentError(
            f"{address.origin} is not encrypted: your text and the key could be read on the way. "
            "Use https, a tunnel to 127.0.0.1, or --plain-http where the network is yours"
        )
    variable = options.key_env or (INCEPTION_KEY if address.origin == INCEPTION else "")
    key = getpass.getpass(f"key for {address.origin}: ").strip() if options.ask_key else ""
    service = Consents().allow(address, "" if key else variable, key)
    print(f"allowed      {address.origin} ({_where_the_key_is(service)})")
    print(f'settings     "backend": "remote", "remote.url": "{address.base}"')
    return 0


def show(_: argparse.Namespace) -> int:
    consents = Consents()
    for service in consents:
        print(f"{service.origin}  ({_where_the_key_is(service)})")
    print(f"kept in {consents.path}" if list(consents) else "no service is allowed")
    return 0


def forget(options: argparse.Namespace) -> int:
    address = ServiceAddress.of(options.url)
    known = Consents().forget(address)
    print(f"{address.origin} is {'no longer' if known else 'not'} allowed", end="")
    print("; servers that run go on until they are restarted" if known else "")
    return 0


def attempt(options: argparse.Namespace) -> int:
    """Ask for one completion of a text that is made up, and print what came."""
    choice = RemoteChoice(options.url, options.model, options.protocol, options.fim_template)
    logging.getLogger("model.remote").addHandler(logging.NullHandler())  # it is printed, below
    predictor = load_remote(choice, 0)
    made = predictor.predict(Request("fim", "greet.py", TRIED + REST, len(TRIED)), Stop(TRY_S))
    if made.suppressed:
        raise ConsentError(predictor.breaker.problem or made.suppressed)
    text = made.edits[0].new_text if made.edits else ""
    print(f"answer       {text!r}\nmodel        {made.model}\nmilliseconds {made.latency_ms:.0f}")
    return 0


def _where_the_key_is(service: Service) -> str:
    if service.key_variable:
        there = bool(os.environ.get(service.key_variable))
        return f"key in ${service.key_variable}, which is {'set' if there else 'not set'}"
    return "key kept" if service.stored_key else "no key"
