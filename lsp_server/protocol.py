"""The JSON-RPC layer, adapted where pygls leaves a client waiting or keeps what we do not need.

Responsible for: parameters of our own methods as plain dictionaries; an answer to every request,
malformed ones, early ones and late ones included; no second copy of each document inside pygls.
Knows nothing of what the methods do.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import cattrs
from lsprotocol import types as lsp
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)

logger = logging.getLogger(__name__)

UNTYPED = frozenset({lsp.TEXT_DOCUMENT_INLINE_COMPLETION})
"""Standard methods whose parameters are read as dictionaries, because clients add to them."""


def make_converter() -> cattrs.Converter:
    """Like pygls' own, but parameters and results of unknown methods stay dictionaries."""
    converter = default_converter()

    def untouched(cls: type, *names: str) -> None:
        converter.register_structure_hook(
            cls, lambda data, _: cls(**{name: data.get(name) for name in names})
        )

    untouched(JsonRPCRequestMessage, "id", "method", "jsonrpc", "params")
    untouched(JsonRPCNotification, "method", "jsonrpc", "params")
    untouched(JsonRPCResponseMessage, "id", "jsonrpc", "result")
    return converter


def _malformed(data: dict[str, Any]) -> str | None:
    """What is wrong with a message's envelope."""
    if "method" in data:
        return None if isinstance(data["method"], str) else "`method` must be a string"
    return None if "result" in data or "error" in data else "`method` is missing"


class RedraftProtocol(LanguageServerProtocol):
    """pygls' protocol without its document store and with an answer to every request."""

    # pygls keeps its own copy of every document and splits lines as Python does. With these
    # built-in handlers gone the notifications go straight to ours.
    lsp_text_document__did_open = None  # type: ignore[assignment]
    lsp_text_document__did_change = None  # type: ignore[assignment]
    lsp_text_document__did_close = None  # type: ignore[assignment]
    lsp_notebook_document__did_open = None  # type: ignore[assignment]
    lsp_notebook_document__did_change = None  # type: ignore[assignment]
    lsp_notebook_document__did_close = None  # type: ignore[assignment]

    def get_message_type(  # type: ignore[override]
        self, method: str
    ) -> type[Any] | None:
        return None if method in UNTYPED else super().get_message_type(method)

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" in data and (fault := _malformed(data)):
            self._refuse(data.get("id"), JsonRpcInvalidRequest(fault))
            raise JsonRpcInvalidRequest(fault)
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and "id" in data:
                self._refuse(data["id"], error)
            raise

    def unreadable(self) -> None:
        """Answer what was not JSON at all."""
        self._refuse(None, JsonRpcParseError("not JSON"))

    def _refuse(self, msg_id: Any, why: JsonRpcException) -> None:
        """An error response. The id is there even when it is null, which pygls' own would leave out."""
        error = {"code": why.code, "message": why.message}
        self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "error": error})

    def handle_message(self, message: Any) -> None:
        if not hasattr(message, "jsonrpc"):
            msg_id = message.get("id") if isinstance(message, dict) else None
            self._refuse(msg_id, JsonRpcInvalidRequest("not a JSON-RPC 2.0 message"))
            return
        refusal = self._refusal(message)
        if refusal is None:
            super().handle_message(message)
        elif (msg_id := getattr(message, "id", None)) is not None:
            self._refuse(msg_id, refusal)

    def _refusal(self, message: Any) -> JsonRpcException | None:
        method = getattr(message, "method", None)
        if method is None or method == lsp.EXIT:
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest("the server is shutting down")
        if self._workspace is None and method != lsp.INITIALIZE:
            return JsonRpcServerNotInitialized("`initialize` has not been received")
        if self._workspace is not None and method == lsp.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None

    @lsp_method(lsp.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        """Leave the message loop; 1 when there was no `shutdown` before."""
        self._server.leave(0 if self._shutdown else 1)  # type: ignore[attr-defined]

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        """As pygls', without a warning when the answer was quicker than the cancellation."""
        if msg_id in self._request_futures:
            super()._handle_cancel_notification(msg_id)

    def requests_in_flight(self) -> list[asyncio.Future[Any]]:
        """The futures of requests that are being worked on."""
        futures: list[Any] = list(self._request_futures.values())
        return [future for future in futures if isinstance(future, asyncio.Future)]
