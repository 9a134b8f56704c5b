"""How a troubled service is treated: which failures are tried again, and when it is left alone.

Responsible for the retry budget and for the circuit breaker with its episodes. Knows nothing of HTTP or of requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

Clock = Callable[[], float]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
LASTING_PAUSE_S, LONGEST_LASTING_PAUSE_S = 30.0, 600.0


class RetryBudget:
    """A token bucket: every request adds a share of a token, every second attempt takes one.

    So retries never add more than that share to the load of a service that is in trouble.
    """

    def __init__(self, tokens: float = 5.0, share: float = 0.1) -> None:
        self._most = self.tokens = tokens
        self._share = share

    def asked(self) -> None:
        self.tokens = min(self._most, self.tokens + self._share)

    def take(self) -> bool:
        """Whether another attempt may be made; it is paid for then."""
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Breaker:
    """Stops asking after some failures in a row, then lets one request through at a time to see whether it is over.

    Pauses double with each failed probe. An episode of trouble begins when the breaker opens and ends after `calm`
    answers in a row, so a service that answers now and then does not begin a new one each time.
    """

    def __init__(self, failures: int = 3, calm: int = 5, clock: Clock = time.monotonic) -> None:
        self._most_failures, self._calm, self._clock = failures, calm, clock
        self._lock = threading.Lock()
        self._failures = 0
        self._successes = calm
        self._pauses = 0
        self._until: float | None = None
        self._probing = False
        self._told = False
        self.problem = ""

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    @property
    def pause_s(self) -> float:
        """Seconds until the next probe."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())

    def admits(self) -> bool:
        """Whether a request may go out now. Who is admitted reports `succeeded`, `failed` or `withdrawn`."""
        with self._lock:
            if self._until is None:
                return True
            if self._clock() < self._until or self._probing:
                return False
            self._probing = True
            return True

    def withdrawn(self) -> None:
        """The request was given up by its caller; it tells nothing."""
        with self._lock:
            self._probing = False

    def succeeded(self) -> None:
        with self._lock:
            self._probing, self._until = False, None
            self._failures = self._pauses = 0
            self._successes += 1
            if self._successes >= self._calm:
                self._told, self.problem = False, ""

    def failed(self, problem: str, *, lasting: bool = False, least_s: float = 0.0) -> bool:
        """Note a failure; True when it is the one of its episode to tell the user about.

        `lasting` trouble, such as a key that is refused, opens the breaker at once. `least_s` is how long the service
        wants to be left alone, in seconds.
        """
        with self._lock:
            probe, self._probing = self._probing, False
            self._failures += 1
            self._successes = 0
            self.problem = problem
            if not (lasting or probe or self._failures >= self._most_failures):
                if least_s:
                    self._until = self._clock() + min(least_s, LONGEST_PAUSE_S)
                return False
            first, longest = (
                (LASTING_PAUSE_S, LONGEST_LASTING_PAUSE_S)
                if lasting
                else (FIRST_PAUSE_S, LONGEST_PAUSE_S)
            )
            pause = max(min(first * 2**self._pauses, longest), min(least_s, longest))
            self._pauses = min(self._pauses + 1, 16)
            self._until = self._clock() + pause
            tell, self._told = not self._told, True
            return tell
