"""How the C library keeps memory that tensors have freed.

Responsible for glibc's settings. By default it raises by itself the size from which a block is mapped on its own, and
from then on puts tensors of many megabytes between small ones that stay; what they leave is not given back
(docs/LOG.md).
"""

from __future__ import annotations

import ctypes
import os
import sys

# Names of glibc's <malloc.h>, and values: large blocks go back to the system as soon as they are freed.
SETTINGS = {
    "M_MMAP_THRESHOLD": (-3, 2**20),
    "M_TRIM_THRESHOLD": (-1, 2**24),
    "M_ARENA_MAX": (-8, 1),
}


def give_back_what_is_freed() -> bool:
    """Whether the C library took the settings. The user's own, by environment variables, are left alone."""
    own = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if own or sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return all(library.mallopt(name, value) == 1 for name, value in SETTINGS.values())
