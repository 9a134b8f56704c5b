"""What followed a run of tokens when it stood in the text before.

Responsible for finding it at once, however long the text: an index that grows with every token. It gives what
`model.denoise.ngram_draft` finds by searching. Knows nothing of what tokens mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.denoise import NGRAM_DRAFTS


class Repeats:
    """A text of tokens, and where each of its runs of some lengths stood last.

    `limits` are the lengths that are tried, in order, and how many tokens a run of that length is trusted for.
    """

    def __init__(
        self, tokens: Iterable[int] = (), limits: Mapping[int, int] = NGRAM_DRAFTS
    ) -> None:
        self.tokens: list[int] = []
        self.limits = limits
        self._behind: dict[tuple[int, ...], int] = {}
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            end = len(self.tokens)
            for size in self.limits:
                if size <= end:
                    self._behind[tuple(self.tokens[end - size :])] = end
            self.tokens.append(token)

    def draft(self, last: int) -> list[int]:
        """What might follow the text and then the token `last`."""
        for size, limit in self.limits.items():
            run = (*self.tokens[len(self.tokens) - size + 1 :], last)
            at = self._behind.get(run)
            if run == tuple(self.tokens[-size:]):
                at = len(self.tokens)
            if at is not None:
                return [*self.tokens[at : at + limit], last][:limit]
        return []
