"""Which drafts come first: a small logistic model over what is known without a language model.

Responsible for the features of a proposal and for their weights, which were fitted on the release
diffs of the training packages (`python -m model.training.draft_recall --fit`). Knows nothing of how
proposals are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from model.draft_view import Proposal, View

WEIGHTS: Mapping[str, float] = {
    "above": -1.13,
    "distance": 0.06,
    "inside": 0.58,
    "link": 0.15,
    "link new": 0.19,
    "new lines": -0.29,
    "newest": 0.02,
    "old lines": 0.78,
    "open": -0.29,
    "order": -0.82,
    "recency": -0.52,
    "rule:above-definition": 0.51,
    "rule:add-import": 0.41,
    "rule:add-import-line": -0.29,
    "rule:analogy": -1.00,
    "rule:analogy-lossy": -1.00,
    "rule:complete-pair": -1.00,
    "rule:delete-both": -0.22,
    "rule:delete-identical": 2.54,
    "rule:delete-left": -0.76,
    "rule:delete-moved": -0.45,
    "rule:delete-right": 0.16,
    "rule:delete-use": 0.61,
    "rule:drop-item": -0.72,
    "rule:finish-line": 2.56,
    "rule:finish-word": 0.83,
    "rule:half-done": 3.50,
    "rule:identical": 0.01,
    "rule:insert-after": 1.73,
    "rule:insert-before": 0.75,
    "rule:insert-both": -0.91,
    "rule:insert-left": -1.00,
    "rule:insert-right": -1.00,
    "rule:joint": -0.91,
    "rule:migrate-format": 3.05,
    "rule:migrate-quotes": 1.76,
    "rule:migrate-typing": 1.02,
    "rule:replace-both": -0.28,
    "rule:replace-left": -1.00,
    "rule:replace-right": -1.00,
    "rule:similar-block": -0.28,
    "rule:similar-insertion": -1.00,
    "rule:span": 0.28,
    "rule:substitution": -0.99,
    "rule:subword": -1.00,
    "rule:template": -0.75,
    "rule:together": 0.48,
    "rule:twin-argument": -1.00,
    "rule:twin-line": 0.60,
    "rule:unused-import": 1.92,
    "rule:variant": -1.00,
    "same line": -0.01,
    "siblings": -0.35,
    "touches": -1.24,
    "votes": 0.84,
    "bias": -4.33,
}


def proposal_features(view: View, proposal: Proposal, order: int, votes: int) -> dict[str, float]:
    """Features by name.

    `order` is the place of the proposal among those of its rule and link, nearest first (0-based);
    `votes` the number of rules that propose the same.
    """
    away = view.distance(proposal.first)
    old, new = proposal.last - proposal.first, len(proposal.new)
    link = proposal.link or ("", "")
    newest = view.changes[0].span if view.changes else range(0)
    touches = bool(newest) and proposal.first < newest.stop and proposal.last > newest.start
    before = view.typed.rstrip()[-1:]
    return {
        "rule:" + proposal.rule: 1.0,
        "siblings": math.log1p(proposal.siblings),
        "distance": math.log1p(abs(away)),
        "above": float(away < 0),
        "same line": float(away == 0),
        "recency": float(proposal.recency),
        "newest": float(proposal.recency == 0),
        "order": math.log1p(order),
        "votes": float(min(votes, 4) - 1),
        "link": math.log1p(len(link[0])),
        "link new": math.log1p(len(link[1])),
        "old lines": math.log1p(old),
        "new lines": math.log1p(new),
        "touches": float(touches),
        "open": float(before in tuple("([{=.+-|&,\"'") and before != ""),
        "inside": float(view.lines[view.cursor_line][view.cursor_column :].strip() != ""),
    }


def log_odds(features: Mapping[str, float], weights: Mapping[str, float] = WEIGHTS) -> float:
    """Log-odds that the proposal is a right next edit, by the fitted weights."""
    return weights.get("bias", -4.0) + sum(
        weights.get(name, 0.0) * value for name, value in features.items()
    )
