"""What the service counts, for Prometheus.

Responsible for names and labels of the metrics. No label ever holds what a client sent.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one service; `pending` tells how many requests wait or run."""

    def __init__(self, pending: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "redraft_requests",
            "Requests by endpoint and status.",
            ("endpoint", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "redraft_request_seconds",
            "Time from a complete request to the end of its answer.",
            ("endpoint",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.tokens = Counter(
            "redraft_tokens",
            "Tokens of prompts, those of them that were cached, and of answers.",
            ("kind",),
            registry=self._registry,
        )
        self.verdicts = Counter(
            "redraft_answers",
            "FIM and edit answers, by whether the gate would have shown them.",
            ("endpoint", "shown"),
            registry=self._registry,
        )
        self.feedback = Counter(
            "redraft_feedback", "Feedback by action.", ("action",), registry=self._registry
        )
        waiting = Gauge(
            "redraft_pending_requests", "Requests that wait or run.", registry=self._registry
        )
        waiting.set_function(pending)

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def used(self, prompt: int, cached: int, answer: int) -> None:
        for kind, count in (("prompt", prompt), ("cached", cached), ("answer", answer)):
            self.tokens.labels(kind).inc(count)
