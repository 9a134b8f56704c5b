"""The passes of several requests, run as one.

Responsible for letting requests wait for each other where they need the model: what reads the weights once for all of
them costs little more than for one. Requests come and go between passes, and each keeps its own keys and values:
iteration-level scheduling with selective batching, Yu et al. 2022 (Orca, OSDI). All run in one thread and change places
only where one waits for a pass, so nothing of theirs needs a lock. Knows nothing of models, nor of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import torch
from greenlet import getcurrent, greenlet

from model.protocol import Predictor

if TYPE_CHECKING:
    from model.transformer import Transformer

A = TypeVar("A")
B = TypeVar("B")

BESIDE = {"cpu": 64}
BESIDE_ON_A_GPU = 1024
"""Rows beside those of the one that has waited longest. More are no cheaper together, and a pass is not interrupted."""


@dataclass(frozen=True, slots=True)
class Step:
    """`run` gives a result for each of some arguments; this request has one of them, of so many `rows`."""

    run: Callable[[list[Any]], Sequence[Any]]
    argument: Any
    rows: int
    rank: int


class Lane(greenlet):
    """A request on its way; `waits_for` is the step that it cannot go on without."""

    waits_for: Step | None = None

    def begin(self) -> None:
        self.waits_for = self.switch()

    def go_on(self, result: Any) -> None:
        self.waits_for = self.switch(result)

    def give_up(self, error: BaseException) -> None:
        self.waits_for = self.throw(error)


class Together:
    """Runs requests side by side, in the thread that calls `run`; `beside` bounds the rows of a common pass."""

    def __init__(self, beside: int = BESIDE["cpu"]) -> None:
        self._beside = beside
        self._lanes: list[Lane] = []

    def step(
        self, run: Callable[[list[A]], Sequence[B]], argument: A, *, rows: int, rank: int = 0
    ) -> B:
        """`run([argument])[0]`; where other requests are on their way, together with what they ask `run` for.

        Steps of the lowest `rank` are run first, so that those of a higher one find as much company as there is.
        """
        lane = getcurrent()
        if not isinstance(lane, Lane):
            return run([argument])[0]
        assert lane.parent is not None
        result: B = lane.parent.switch(Step(run, argument, rows, rank))
        return result

    @torch.inference_mode()
    def run(self, arrivals: Callable[[], Sequence[Callable[[], None]]]) -> None:
        """Run what `arrivals` gives, which is asked again before each pass; until it gives nothing and all have ended.

        What arrives must not raise. (Modes of the library belong to the thread, so inference mode is held here: a
        request that ends must not end it for the others.)
        """
        while (new := arrivals()) or self._lanes:
            for work in new:
                lane = Lane(work)
                self._lanes.append(lane)
                lane.begin()
            self._pass()
            self._lanes = [lane for lane in self._lanes if not lane.dead]

    def _pass(self) -> None:
        """One step of those that wait for the same: of the one that has waited longest, and of the smallest others, so
        that who writes does not wait for those who read long prompts."""
        waiting = [(lane, lane.waits_for) for lane in self._lanes if lane.waits_for is not None]
        if not waiting:
            return
        eldest, first = min(waiting, key=lambda pair: pair[1].rank)
        others = [(lane, step.rows) for lane, step in waiting if step.run == first.run]
        group, rows = [eldest], 0
        for lane, count in sorted(others[1:], key=lambda pair: pair[1]):
            rows += count
            if rows <= self._beside:
                group.append(lane)
        self._lanes = [lane for lane in self._lanes if lane not in group] + group
        arguments = [lane.waits_for.argument for lane in group if lane.waits_for is not None]
        try:
            results = first.run(arguments)
        except Exception as error:
            if len(group) == 1:
                group[0].give_up(error)
                return
            for lane, argument in zip(group, arguments, strict=True):
                self._alone(lane, first, argument)
            return
        for lane, result in zip(group, results, strict=True):
            lane.go_on(result)

    def _alone(self, lane: Lane, step: Step, argument: Any) -> None:
        """Of several one cannot be done, and the others are not to suffer for it."""
        try:
            result = step.run([argument])[0]
        except Exception as error:
            lane.give_up(error)
        else:
            lane.go_on(result)


@runtime_checkable
class Sharing(Predictor, Protocol):
    """A predictor whose model can run the passes of several; a sibling has the same model, and caches of its own."""

    @property
    def trunk(self) -> Transformer: ...

    def sibling(self) -> Predictor: ...


def together_on(device: str) -> Together:
    """For a model on a device, by its name in torch."""
    return Together(BESIDE.get(device.partition(":")[0], BESIDE_ON_A_GPU))


def side_by_side(predictor: Predictor, count: int, together: Together) -> list[Predictor]:
    """So many predictors of one model that share its passes; only the one where its model cannot do that."""
    if count == 1 or not isinstance(predictor, Sharing):
        return [predictor]
    predictor.trunk.together = together
    return [predictor, *(predictor.sibling() for _ in range(count - 1))]
