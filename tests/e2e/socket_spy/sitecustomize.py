"""Imported by every Python that has this folder on its path: notes what is done with sockets and which programs start.

One line an event, `name argument`, in the file that `SOCKET_SPY` names.
"""

from __future__ import annotations

import os
import sys

WATCHED = (
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"),
    *("socket.gethostbyname", "socket.gethostbyaddr", "subprocess.Popen", "os.system", "os.exec"),
)


def spy(path: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event in WATCHED:
            shown = [str(one) for one in arguments if not hasattr(one, "fileno")]
            os.write(descriptor, f"{event} {' '.join(shown)}".replace("\n", " ").encode() + b"\n")

    sys.addaudithook(note)
    os.write(descriptor, b"spy is there\n")


if path := os.environ.get("SOCKET_SPY"):
    spy(path)
