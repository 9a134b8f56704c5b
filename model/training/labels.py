"""What a user's feedback says of a suggestion: wanted, unwanted, or nothing.

Responsible for turning the life of a suggestion into a label. Silence is not an answer: a suggestion that was not
accepted and merely went away says nothing. Knows nothing of gates.
"""

from __future__ import annotations

from model.feedback import MISSED, SPARED, Life

KEPT = 0.5
"""An accepted suggestion of which less is left after it has settled was a mistake."""

SEEN_S = 0.5
"""Seconds after which a suggestion that nobody reports as shown was seen."""

WANTED = frozenset({"accepted", "typed", "partly-accepted", MISSED})


def label(life: Life) -> bool | None:
    """True: accepted, or typed as it stood, and not taken back. False: rejected, taken back, or something else was
    typed in its place while it could be seen, or although it was held back. None: nothing is known."""
    kept = [e.value for e in life.events if e.state == "settled" and e.value is not None]
    states = {event.state for event in life.events}
    if states & WANTED or any(e.state == "ignored" and e.value for e in life.events):
        return not kept or kept[-1] >= KEPT
    if states & {"rejected", SPARED}:
        return False
    for event in life.events:
        if event.state == "ignored" and event.why == "overtyped":
            return False if "shown" in states or event.after >= SEEN_S else None
    return None
