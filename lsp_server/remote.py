"""The remote backend as the settings choose it.

Responsible for turning settings and the user's consent into a predictor, and for what the user is told when text
begins to leave the machine. Knows nothing of LSP or of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from lsp_server import __version__
from lsp_server.settings import RemoteChoice
from model.feedback import data_folder
from model.protocol import Predictor
from model.remote.consent import ConsentError, Consents, ServiceAddress
from model.remote.link import Link
from model.remote.predictor import RemotePredictor, gate_for
from model.remote.wire import Protocol, Wire

CONTEXT_TOKENS = 8192


def load_remote(choice: RemoteChoice, context_tokens: int) -> RemotePredictor:
    """The predictor, without a connection yet. Raises `ConsentError`, `MissingPackageError`, `ModelError`."""
    if not choice.url:
        raise ConsentError("the remote backend needs the setting `remote.url`")
    if choice.fim_template and not _is_template(choice.fim_template):
        raise ConsentError("`remote.fimTemplate` must hold {prefix} and, after it, {suffix}")
    address = ServiceAddress.of(choice.url)
    key = Consents().service(address).key()
    wire = Wire(
        cast(Protocol, choice.protocol),
        choice.model,
        context_tokens or CONTEXT_TOKENS,
        choice.fim_template,
    )
    link = Link(address.base, key, f"redraft/{__version__}")
    return RemotePredictor(link, wire, gate_for(choice.model, data_folder()))


def _is_template(text: str) -> bool:
    return 0 <= text.find("{prefix}") < text.find("{suffix}")


def notice(predictor: Predictor, folders: Sequence[Path]) -> str | None:
    """What to tell the user before the first request of a remote backend in these folders; None where he knows."""
    if not isinstance(predictor, RemotePredictor):
        return None
    origin = ServiceAddress.of(predictor.link.url).origin
    try:
        if not Consents().first_time(origin, folders):
            return None
    except (ConsentError, KeyError, OSError):
        pass  # what cannot be remembered is told again
    return (
        f"Redraft: the remote backend is on. Text around your cursor, recent edits and excerpts of related files "
        f"of this folder go to {origin}; files that are excluded do not."
    )
