"""Bytes in and out: stdio and TCP, and every way a session can end.

Responsible for a stdout that carries frames and nothing else, for a reader that no slow request can
starve, and for leaving at once on `exit`, end of input, a vanished client or SIGTERM, whatever the
worker is doing. Knows nothing of methods and documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from pygls.io_ import run_async

if TYPE_CHECKING:
    from lsp_server.server import RedraftServer

logger = logging.getLogger(__name__)

PORT_UNUSABLE = 2
_CHUNK = 1 << 16
_LAST_REPLIES_S = 0.3
_PARENT_POLL_S = 3.0


def take_stdout() -> BinaryIO:
    """Keep the real stdout for the protocol; anything else that prints goes to stderr.

    Works below Python too: file descriptor 1 itself is redirected, so a C library or a child
    process can't break the framing.
    """
    sys.stdout.flush()
    frames = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return frames


class FrameWriter:
    """Writes frames from a thread of its own, so that a client which does not read can't block us.

    A reader that is gone ends the session quietly: `on_lost` is called once, from that thread.
    """

    def __init__(self, stream: BinaryIO, on_lost: Callable[[], None]) -> None:
        self._stream = stream
        self._on_lost = on_lost
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._copy, name="stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._frames.put(data)

    def close(self, timeout: float = 1.0) -> None:
        """Write what is waiting, but not for longer than `timeout` seconds."""
        self._frames.put(None)
        self._thread.join(timeout)

    def _copy(self) -> None:
        try:
            while (frame := self._frames.get()) is not None:
                view = memoryview(frame)
                while view:
                    view = view[self._stream.write(view) or 0 :]
        except (OSError, ValueError):
            self._on_lost()


def serve_stdio(server: RedraftServer) -> int:
    """Talk over stdin and stdout until the session ends; the exit code."""
    return asyncio.run(_stdio(server, take_stdout()))


async def _stdio(server: RedraftServer, frames: BinaryIO) -> int:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    _feed_from_thread(os.dup(0), reader, loop)
    writer = FrameWriter(frames, lambda: _soon(loop, server.leave))
    server.protocol.set_writer(writer)
    _leave_on_signals(server, loop)
    code = await _session(server, reader)
    writer.close()
    return code


def serve_tcp(server: RedraftServer, host: str, port: int) -> int:
    """Serve one client over TCP; the exit code. A port that can't be had gives `PORT_UNUSABLE`."""
    return asyncio.run(_tcp(server, host, port))


async def _tcp(server: RedraftServer, host: str, port: int) -> int:
    connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    connected = asyncio.get_running_loop().create_future()

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if connected.done():
            writer.close()
        else:
            connected.set_result((reader, writer))

    try:
        listener = await asyncio.start_server(on_connect, host, port)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = "the port is in use by another program" if in_use else error.strerror or str(error)
        print(f"redraft: cannot listen on {host}:{port}: {why}", file=sys.stderr)
        return PORT_UNUSABLE
    actual = listener.sockets[0].getsockname()[1]
    print(f"redraft: listening on {host}:{actual}", file=sys.stderr, flush=True)
    _leave_on_signals(server, asyncio.get_running_loop())
    waiting = asyncio.ensure_future(server.left.wait())
    either: set[asyncio.Future[Any]] = {connected, waiting}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    code = 0
    if connected.done():
        reader, writer = connected.result()
        server.protocol.set_writer(writer)
        code = await _session(server, reader)
        with contextlib.suppress(OSError):
            await asyncio.wait_for(writer.drain(), 1)
        writer.close()
    listener.close()
    return code


class _InOrder:
    """Lets each message's handler begin before the next message is looked at.

    A stream whose buffer is full never suspends its reader; a request's handler would then start
    only after later changes of the document had been applied.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def readline(self) -> bytes:
        await asyncio.sleep(0)
        return await self._reader.readline()

    async def readexactly(self, n: int) -> bytes:
        return await self._reader.readexactly(n)


async def _session(server: RedraftServer, reader: asyncio.StreamReader) -> int:
    """Handle messages until `leave` is called or the input ends."""
    messages = asyncio.ensure_future(
        run_async(
            stop_event=threading.Event(),
            reader=_InOrder(reader),
            protocol=server.protocol,
            logger=logger,
            error_handler=server.report_server_error,
        )
    )
    parent = asyncio.ensure_future(_watch_parent(server))
    leaving = asyncio.ensure_future(server.left.wait())
    await asyncio.wait({messages, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (messages, parent, leaving):
        task.cancel()
    for outcome in await asyncio.gather(messages, parent, leaving, return_exceptions=True):
        if isinstance(outcome, Exception) and not isinstance(outcome, asyncio.IncompleteReadError):
            logger.warning("the connection ended badly: %r", outcome)
    await server.close()
    await _let_handlers_answer()
    return server.exit_code


async def _let_handlers_answer() -> None:
    """Give the handlers that were just cancelled the time to send their replies."""
    handlers = asyncio.all_tasks() - {asyncio.current_task()}
    if handlers:
        await asyncio.wait(handlers, timeout=_LAST_REPLIES_S)
    await asyncio.sleep(0)  # replies are sent by callbacks of the tasks that ended


def _feed_from_thread(
    descriptor: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop
) -> None:
    """Copy a descriptor into `reader` from a thread that never keeps the process alive."""

    def feed() -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except OSError:
                chunk = b""
            _soon(loop, reader.feed_data if chunk else reader.feed_eof, *([chunk] if chunk else []))

    threading.Thread(target=feed, name="stdin", daemon=True).start()


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(call, *args)


def _leave_on_signals(server: RedraftServer, loop: asyncio.AbstractEventLoop) -> None:
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            with contextlib.suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, server.leave)


async def _watch_parent(server: RedraftServer) -> None:
    """Leave when the client's process is gone although the pipe stays open."""
    while server.process_id is None:
        await asyncio.sleep(_PARENT_POLL_S / 10)
    if not _alive(server.process_id):  # another machine's or container's number
        return
    while _alive(server.process_id):
        await asyncio.sleep(_PARENT_POLL_S)
    logger.warning("the client (process %d) is gone", server.process_id)
    server.leave()


def _alive(process_id: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
