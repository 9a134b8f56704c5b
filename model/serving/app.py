"""The HTTP application: routes, and what they have in common.

Responsible for which path does what, for the description of it all (`/openapi.json`), and for errors that no route
knows of. Knows nothing of how answers are made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.serving import routes, routes_text
from model.serving.errors import Json, ServiceError
from model.serving.metrics import Metrics
from model.serving.security import guarded
from model.serving.service import Service
from model.serving.streams import ClientGone
from model.serving.wrong_body import wrong_body

logger = logging.getLogger(__name__)

CLIENT_GONE = 499


def create_app(service: Service) -> ASGIApp:
    """The application that serves; close the service when it is done."""
    app = FastAPI(
        title="Redraft",
        description="A diffusion language model for code, on Inception's and OpenAI's wire.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service),
        redirect_slashes=False,
    )
    app.state.service = service
    app.include_router(routes.router)
    app.include_router(routes_text.router)
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientGone, _client_gone)
    app.add_exception_handler(Exception, _unforeseen)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    counted = Counted(app, service.metrics, frozenset(app.openapi()["paths"]))
    return guarded(counted, service.options.guard)


def _lifespan(service: Service) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    return lifespan


class Counted:
    """ASGI middleware: counts answers and times them, and keeps what an unforeseen failure says out of the log."""

    def __init__(self, app: ASGIApp, metrics: Metrics, known: Collection[str]) -> None:
        self.app, self.metrics, self.known = app, metrics, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), "none"

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, counting)
        except Exception as error:
            logger.error("%s failed: %s", scope["path"], type(error).__name__)
        endpoint = scope["path"] if scope["path"] in self.known else "other"
        self.metrics.requests.labels(endpoint, status).inc()
        self.metrics.seconds.labels(endpoint).observe(time.perf_counter() - started)


async def _service_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return error.response()


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return wrong_body(error.errors(), error.body).response()


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return ServiceError(
        error.status_code, str(error.detail), headers=dict(error.headers or {})
    ).response()


async def _client_gone(_: Request, error: Exception) -> Response:
    return Json({"error": None}, status_code=CLIENT_GONE)


async def _unforeseen(_: Request, error: Exception) -> Response:
    return ServiceError(500, f"the service failed ({type(error).__name__})").response()


def _description(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with this service's error envelope where the framework would put its own."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        schemas = schema.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = schema
    return app.openapi_schema
