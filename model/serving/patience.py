"""How long a client waits, as it says itself.

Responsible for the headers in which the official SDKs and Redraft's own remote backend say it. Knows nothing of queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

HEADERS = ("x-stainless-read-timeout", "x-inception-read-timeout")
SHARE = 0.9
"""The part of it that the work may take, so that the answer is there in time."""


def patience(headers: Mapping[str, str]) -> float | None:
    """Seconds that work for a client may take; None where the client does not say, or not in seconds."""
    found = [seconds for name in HEADERS if (seconds := _seconds(headers.get(name))) is not None]
    return SHARE * min(found) if found else None


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
