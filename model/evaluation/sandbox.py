"""The child process that runs one program with as little power as the system lets it give up.

Responsible for limits and isolation; run as a script by `model.evaluation.execute`, so it imports
nothing of the project. It knows nothing of what a pass means: it leaves with the exit code it was
told when the program came to its end.

Everywhere: limits on processor time, memory, file size, open files, processes (which Linux does not
hold root to) and core dumps. On Linux, where users may make namespaces: no network, a read-only
file system but for a small working folder in memory, and processes that all end with the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

FILE_BYTES = 1 << 20
FOLDER_BYTES = 16 << 20
OPEN_FILES = 128
PROCESSES = 32

# From linux/sched.h, sys/mount.h, linux/mount.h, sys/prctl.h.
NEW_NAMESPACES = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x00020000
PRIVATE_RECURSIVE = 1 << 18 | 1 << 14
NO_SUID_NO_DEVICES = 2 | 4
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38


class MountAttributes(ctypes.Structure):
    """`struct mount_attr`; `set` = 1 makes a mount read-only."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def isolate(folder: str) -> None:
    """Leave the network, the writable file system and the other processes behind.

    Returns in a child process that is the first of its namespace. Raises OSError, with nothing or
    only a part done, where the system forbids it.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), "the system forbids it")

    user, group = os.getuid(), os.getgid()
    call(libc.unshare(NEW_NAMESPACES))
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(line)
    follow(os.fork())
    call(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    call(libc.mount(None, b"/", None, PRIVATE_RECURSIVE, None))
    read_only = MountAttributes(set=1)
    size = ctypes.sizeof(read_only)
    reference = ctypes.byref(read_only)
    call(libc.syscall(MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, reference, size))
    options = f"size={FOLDER_BYTES},mode=700".encode()
    call(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", NO_SUID_NO_DEVICES, options))
    os.chdir(folder)
    call(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def follow(child: int) -> None:
    """In the parent: wait for the child and leave as it did. In the child (0): go on."""
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 1)


def limit(memory: int, seconds: int) -> None:
    """Limit what this process and its children may use; a limit that the system lacks is left out.

    `memory` in bytes of address space, `seconds` of processor time.
    """
    import resource

    limits = {
        "RLIMIT_AS": memory,
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": FILE_BYTES,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_NPROC": PROCESSES,
        "RLIMIT_CORE": 0,
    }
    for name, value in limits.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def main() -> None:
    """Arguments: the program's file, memory in bytes, seconds, and the code that says it ended."""
    path, memory, seconds, passed = sys.argv[1], *map(int, sys.argv[2:5])
    with open(path, encoding="utf-8", newline="") as file:
        source = file.read()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            isolate(os.path.dirname(path))
    with contextlib.suppress(ImportError):
        limit(memory, seconds)
    sys.argv[1:] = []
    exec(compile(source, "program", "exec"), {"__name__": "__main__"})
    os._exit(passed)


if __name__ == "__main__":
    main()
