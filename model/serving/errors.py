"""What goes wrong, in the words of the wire.

Responsible for the error envelope and for which status and code belong to which fault. Knows nothing of routes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


class ServiceError(Exception):
    """An answer other than 200. `param` names the field that is wrong."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param
        self.headers = dict(headers or {})

    def response(self) -> Response:
        kind = TYPES.get(self.status, "server_error")
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return Json({"error": error}, status_code=self.status, headers=self.headers)


class Json(JSONResponse):
    """JSON in ASCII: a text may hold lone surrogates, which have no UTF-8."""

    def render(self, content: Any) -> bytes:
        return dumps(content).encode("ascii")


def dumps(content: Any) -> str:
    return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def unsupported(param: str, why: str) -> ServiceError:
    """A feature of the wire that this service refuses rather than pretends to have."""
    return ServiceError(400, f"`{param}` is not supported: {why}", "unsupported_parameter", param)
