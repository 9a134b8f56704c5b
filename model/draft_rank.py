"""Which drafts come first: a small logistic model over what is known without a language model.

Responsible for the features of a proposal and for their weights, which were fitted on the release
diffs of the training packages (`python -m model.training.draft_fit`). Knows nothing of how
proposals are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from model.draft_view import Proposal, View

WEIGHTS: Mapping[str, float] = {
    "above": -1.10,
    "distance": 0.08,
    "inside": 0.62,
    "link": 0.05,
    "link new": 0.22,
    "new lines": -0.38,
    "newest": 0.10,
    "old lines": 0.76,
    "open": -0.24,
    "order": -0.85,
    "recency": -0.46,
    "rule:above-definition": 0.03,
    "rule:add-import": 0.32,
    "rule:add-import-line": -0.72,
    "rule:analogy": -1.00,
    "rule:analogy-lossy": -1.00,
    "rule:delete-both": -0.35,
    "rule:delete-identical": 2.50,
    "rule:delete-left": -0.50,
    "rule:delete-moved": -0.48,
    "rule:delete-right": -0.14,
    "rule:delete-use": 0.64,
    "rule:drop-item": -1.00,
    "rule:finish-line": 2.92,
    "rule:finish-word": 1.13,
    "rule:half-done": 3.73,
    "rule:identical": 0.07,
    "rule:insert-after": 1.53,
    "rule:insert-before": 0.83,
    "rule:insert-both": -1.00,
    "rule:insert-left": -1.00,
    "rule:insert-right": -1.00,
    "rule:joint": -0.29,
    "rule:migrate-format": 2.86,
    "rule:migrate-quotes": 1.40,
    "rule:migrate-typing": 0.74,
    "rule:replace-both": -0.56,
    "rule:replace-left": -1.00,
    "rule:replace-right": -1.00,
    "rule:similar-block": -0.19,
    "rule:similar-insertion": -0.73,
    "rule:span": 0.15,
    "rule:substitution": 0.14,
    "rule:subword": -1.00,
    "rule:template": -1.00,
    "rule:together": 0.46,
    "rule:twin-argument": -0.92,
    "rule:twin-line": 0.40,
    "rule:unused-import": 1.75,
    "rule:variant": -1.00,
    "same line": -0.10,
    "siblings": -0.41,
    "touches": -1.57,
    "votes": 1.05,
    "bias": -4.14,
}


_LITERAL = frozenset({"substitution", "span", "variant", "subword", "joint"})


def family(rule: str) -> str:
    """Rules that repeat one substitution, only differently anchored, count as one."""
    return "literal" if rule in _LITERAL or rule.endswith(("-left", "-right", "-both")) else rule


def proposal_features(view: View, proposal: Proposal, order: int, votes: int) -> dict[str, float]:
    """Features by name.

    `order` is the place of the proposal among those of its rule and link, nearest first (0-based);
    `votes` the number of families of rules that propose the same.
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
