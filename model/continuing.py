"""Filling a hole with an open model that was trained to go on from a text, not to fill one.

Responsible for the use of the embedded model's own means with another's weights: the text before the cursor is
continued, the text after it judges how far. The network that continues also drafts canvases; the causal pass that keeps
a block verifies it, so the answer is that of plain decoding. Knows nothing of gates or edits.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from model.bundle import Bundle
from model.cache import KeyValueCache, PrefixCache
from model.complete import Completer, Completion
from model.config import DenoiserConfig
from model.context import ContextBuilder
from model.denoise import Decoder, Generation
from model.denoiser import Denoiser
from model.families import Published
from model.local import settled_history
from model.prompt import PromptWriter
from model.protocol import Request, Stop
from model.transformer import Transformer


class TrunkDenoiser(Denoiser):
    """Canvases drafted by the trunk itself: they see all before them and themselves."""

    def __init__(self, trunk: Transformer, block: int, mask: int) -> None:
        self.trunk, self.shape = trunk, DenoiserConfig((), block, mask)

    def forward(
        self,
        canvas: Tensor,
        context: Tensor,
        cache: KeyValueCache,
        positions: Tensor,
        allowed: Tensor | None = None,
    ) -> Tensor:
        if allowed is None:
            shape = (len(canvas), cache.length + len(canvas))
            allowed = torch.ones(shape, dtype=torch.bool, device=canvas.device)
        return self.trunk.forward(canvas, cache, positions, allowed)


class Continuer:
    """Completions by one model of a token-causal context."""

    def __init__(
        self, published: Published, trunk: Transformer, prefixes: PrefixCache, budget: int
    ) -> None:
        denoiser = TrunkDenoiser(trunk, published.block, published.mask)
        tokenizer = published.tokenizer
        self.bundle = Bundle(
            published.folder,
            published.config,
            tokenizer,
            trunk,
            denoiser,
            prefixes,
            Decoder(trunk, tokenizer, denoiser, "block"),
        )
        self.begin = [] if published.begin is None else [published.begin]
        self.writer = PromptWriter(tokenizer, published.config)
        self.contexts = ContextBuilder(self.writer.count, budget)
        self.completer = Completer(self.bundle)

    def complete(self, request: Request, stop: Stop) -> tuple[Completion | None, Generation]:
        """The likeliest text to insert, however unlikely, and what it took. Raises `Cancelled` and `Expired`."""
        settled = replace(request, history=settled_history(request))
        prompt = self.writer.fim(request.path, self.contexts.build(settled))
        found, made = self.completer.complete(
            [*self.begin, *prompt.tokens], prompt.required, request, stop, prompt.reference
        )
        return next((one for one in found if one.text), None), made
