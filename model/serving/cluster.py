"""The service on Ray Serve: replicas that hold one loaded model each.

Responsible for what Ray is told about replicas, and for carrying requests to them. Which replica gets a request is
decided by Ray's consistent hash router: the one that has the session's prefix cache, the next one on the ring when
that is dead or has too much to do. Knows nothing of how a service is loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.exceptions import BackPressureError, ReplicaUnavailableError
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp, Message

from model.serving.app import create_app
from model.serving.front import Asked, Front, NoRoom, ReplicaLost
from model.serving.security import Guard, guarded
from model.serving.service import Service

NAME = "redraft"
ONGOING = 4
"""Requests that a replica has at once, one running and the others next; a further one goes to another replica."""
UPSCALE_S, DOWNSCALE_S = 10.0, 120.0
"""How long there must be more, or less, to do than the replicas are for before one comes or goes. A model takes seconds
to load, so one that goes too soon costs more than one that stays."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How many replicas there are, and what each takes. More than `least` come when the load asks for them; `queue`
    is how many requests wait at the door when all replicas are busy; `timeout` in seconds; `parallel` is how many a
    replica works on side by side."""

    least: int = 2
    most: int = 2
    queue: int = 16
    timeout: float = 30.0
    parallel: int = 4
    cpus: float = 1
    gpus: float = 0
    affinity: bool = True


class Replica:
    """One service with its model, in a process of its own."""

    def __init__(self, load: Callable[[], Service]) -> None:
        self._service = load()
        self._app = create_app(self._service)

    async def answer(self, asked: Asked) -> AsyncIterator[Message]:
        """The answer of the service's application, message by message."""
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        left, given = asyncio.Event(), False

        async def receive() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": asked.body, "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.put_nowait(dict(message))

        scope = {**asked.scope, "asgi": {"version": "3.0"}, "root_path": ""}
        running = asyncio.ensure_future(self._app(scope, receive, send))
        running.add_done_callback(lambda _: messages.put_nowait(None))
        try:
            while (message := await messages.get()) is not None:
                yield message
        finally:
            left.set()

    async def whole(self, asked: Asked) -> tuple[int, bytes]:
        """Status and body of an answer."""
        status, parts = 500, []
        async for message in self.answer(asked):
            status = message.get("status", status)
            parts.append(message.get("body", b""))
        return status, b"".join(parts)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):
            self._service.close()


class Handle:
    """The replicas behind a handle of Ray's."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle

    async def ask(self, asked: Asked) -> AsyncIterator[Message]:
        response: Any = self._handle.options(
            stream=True, method_name="answer", session_id=asked.key
        ).remote(asked)
        try:
            async for message in response:
                yield message
        except BackPressureError as error:
            raise NoRoom from error
        except ReplicaUnavailableError as error:
            raise ReplicaLost from error
        except RayError as error:
            if isinstance(error, RayTaskError):
                raise
            raise ReplicaLost from error
        except (asyncio.CancelledError, GeneratorExit):
            response.cancel()
            raise

    async def ask_all(self, asked: Asked) -> list[tuple[int, bytes]]:
        response: Any = self._handle.broadcast("whole", asked)
        return [
            one
            for one in await response.results_async(return_exceptions=True)
            if isinstance(one, tuple)
        ]


def replicas(load: Callable[[], Service], scale: Scale) -> serve.Application:
    """What to deploy; `load` runs in each replica. Deployed again, it replaces the replicas one after another, and
    each ends what it has begun."""
    options: dict[str, Any] = {
        "max_ongoing_requests": min(max(ONGOING, scale.parallel), scale.queue),
        "max_queued_requests": scale.queue,
        "graceful_shutdown_timeout_s": scale.timeout + 5,
        "graceful_shutdown_wait_loop_s": 0.5,
        "health_check_period_s": 5,
        "ray_actor_options": {"num_cpus": scale.cpus, "num_gpus": scale.gpus},
    }
    if scale.affinity:
        options["request_router_config"] = RequestRouterConfig(
            request_router_class=ConsistentHashRouter
        )
    if scale.most > scale.least:
        options["autoscaling_config"] = AutoscalingConfig(
            min_replicas=scale.least,
            max_replicas=scale.most,
            target_ongoing_requests=2,
            upscale_delay_s=UPSCALE_S,
            downscale_delay_s=DOWNSCALE_S,
        )
    else:
        options["num_replicas"] = scale.least
    return serve.deployment(name="Replica", **options)(Replica).bind(load)


def front(handle: DeploymentHandle, guard: Guard, timeout: float) -> ASGIApp:
    """The door: who may ask is decided here, and again at the replica."""
    return guarded(Front(Handle(handle), timeout), guard)


@serve.ingress()
class Door:
    """The front as a deployment, behind Ray's own proxy."""

    def __init__(self, handle: DeploymentHandle, guard: Guard, timeout: float) -> None:
        self._front = front(handle, guard, timeout)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return self._front


def application(
    load: Callable[[], Service], scale: Scale, guard: Guard, doors: int = 1
) -> serve.Application:
    """The whole for `serve run`: Ray's proxy asks a door, the door asks the replicas."""
    door = serve.deployment(
        name="Door",
        num_replicas=doors,
        max_ongoing_requests=1000,
        ray_actor_options={"num_cpus": 0},
    )(Door)
    return door.bind(replicas(load, scale), guard, scale.timeout)


def start(load: Callable[[], Service], scale: Scale) -> DeploymentHandle:
    """Replicas in the Ray cluster at `RAY_ADDRESS`, or on this machine alone, with no proxy of Ray's before them."""
    if not ray.is_initialized():
        alone: dict[str, Any] = {
            "num_cpus": max(1, math.ceil(scale.cpus * scale.most)),
            "include_dashboard": False,
            "object_store_memory": 128 * 2**20,
        }
        away = "RAY_ADDRESS" in os.environ
        ray.init(logging_level="warning", log_to_driver=False, **({} if away else alone))
    serve.start(proxy_location="Disabled", logging_config={"log_level": "WARNING"})
    return serve.run(replicas(load, scale), name=NAME, route_prefix=None)


def stop() -> None:
    """Take the replicas down, and what `start` started of Ray."""
    serve.delete(NAME)
    ray.shutdown()
