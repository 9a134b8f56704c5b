"""How the user is getting on: how fast he types, and how lately and often he said no.

Responsible for two numbers that a gate may weigh, and for the pause after several rejections in a row. Knows nothing of
suggestions themselves, of documents or of requests.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

KEYS = 12
SLOW_S = 10.0
FADES_S = 30.0
PATIENCE = 3
REST_S = 2.0
LONGEST_REST_S = 30.0


class Mood:
    """One user's. Times are those of the clock, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: deque[float] = deque(maxlen=KEYS)
        self._rejected_at = -math.inf
        self._in_a_row = 0

    def typed(self) -> None:
        """He changed a document."""
        self._keys.append(self._clock())

    def rejected(self) -> None:
        self._in_a_row += 1
        self._rejected_at = self._clock()

    def accepted(self) -> None:
        self._in_a_row = 0
        self._rejected_at = -math.inf

    @property
    def resting(self) -> bool:
        """Whether nothing that he did not ask for should be shown: for a while after some rejections in a row,
        longer after each further one."""
        if self._in_a_row < PATIENCE:
            return False
        rest = min(LONGEST_REST_S, REST_S * 2 ** min(self._in_a_row - PATIENCE, 8))
        return self._clock() - self._rejected_at < rest

    def signals(self) -> dict[str, float]:
        """`typing speed`: keys a second over the last ones, 0 after a pause. `after rejection`: 1 at once after one,
        fading away."""
        now = self._clock()
        recent = [at for at in self._keys if now - at < SLOW_S]
        span = now - recent[0] if len(recent) > 1 else 0.0
        speed = (len(recent) - 1) / span if span > 0 else 0.0
        return {
            "typing speed": round(min(speed, 20.0), 2),
            "after rejection": round(math.exp((self._rejected_at - now) / FADES_S), 3),
        }
