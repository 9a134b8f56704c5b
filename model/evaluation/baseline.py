"""What can be had without a model: the last edit's substitution at the nearest place it fits.

Responsible for one predictor to compare others with. It knows nothing of models or scores.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from diffing.edits import Edit
from diffing.hunks import substitutions
from model.protocol import Prediction, Request, Stop

PLACES = 5


class PropagateLastSubstitution:
    """Replaces a token that the newest edit replaced where it still stands, nearest to the cursor.

    Of several substitutions of that edit the first that still has a place counts. It always speaks
    when it has something, and has nothing to say at the cursor (`fim`).
    """

    name = "propagate-last-substitution"
    device = "none"

    def threshold(self, mode: str, setting: str) -> float:
        """Nothing is held back: it does not know how sure it is."""
        return 0.0

    def predict(self, request: Request, stop: Stop) -> Prediction:
        stop.check()
        edits = [] if request.mode == "fim" or not request.history else propagated(request)
        if not edits:
            return Prediction(model=self.name)
        starts = [0, *(m.end() for m in re.finditer("\n", request.text))]
        lines = list(dict.fromkeys(bisect_right(starts, edit.start) - 1 for edit in edits))
        return Prediction(
            edits=(edits[0],),
            confidence=1 / len(lines),
            model=self.name,
            where=tuple((line, 1 / len(lines)) for line in lines[:PLACES]),
        )


def propagated(request: Request) -> list[Edit]:
    """The newest edit's substitution at every place where its old token stands, nearest first."""
    try:
        pairs = substitutions(request.history[-1])
    except ValueError:
        return []
    for old, new in pairs:
        places = re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", request.text)
        found = [Edit(place.start(), place.end(), new) for place in places]
        if found:
            return sorted(found, key=lambda edit: abs(edit.start - request.cursor))
    return []
