"""One checkpoint decoded in several ways, side by side.

Responsible for the names of the ways and for making predictors that share one set of weights and
one cache of encoded contexts; what a decoder remembers of its answers is its own. It knows nothing
of cases or scores.

A name is a decoding (`auto`, `causal`, `refine`, `block`) and options, each after a colon:
`accept=0.8` keeps drafted tokens that are at least so likely compared with the best one (1, the
default, is lossless), `bound=0.5` denoises a whole block, committing as many tokens a step as keep
their joint entropy under the bound in nats, `steps=2` and `rows=8` limit the steps and the rows of
a block, `drafts=off` makes no drafts of next edits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

if TYPE_CHECKING:
    from model.denoise import Decoding
    from model.local import LocalPredictor

AUTO = "auto"
LADDER = (
    AUTO,
    "causal",
    "refine",
    "refine:accept=0.8",
    "refine:accept=0.5",
    "block",
    "block:accept=0.8",
    "block:accept=0.5",
    "block:bound=0",
    "block:bound=0.1",
    "block:bound=0.5",
    "block:bound=1",
    "block:bound=2",
)
WITHOUT_DRAFTS = "auto:drafts=off"
SWITCH = {"on": True, "off": False}
OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "accept": float,
    "bound": float,
    "steps": int,
    "rows": int,
    "drafts": SWITCH.__getitem__,
}


class VariantError(ValueError):
    """A name that says no way of decoding; the message is for the user."""


@dataclass(frozen=True)
class Variant:
    """A way to decode; what is None is as the checkpoint was loaded."""

    name: str
    decoding: Decoding | None = None
    accept: float | None = None
    bound: float | None = None
    steps: int | None = None
    rows: int | None = None
    drafts: bool = True


def ladder(modes: Sequence[str]) -> list[str]:
    """The ways that are compared when none is named, for cases of these modes."""
    return [*LADDER, *([WITHOUT_DRAFTS] if "next_edit" in modes else [])]


def parse_variant(name: str) -> Variant:
    """Read a name; raises `VariantError`."""
    from model.denoise import Decoding

    decoding, *options = name.split(":")
    if decoding != AUTO and decoding not in get_args(Decoding):
        known = ", ".join((AUTO, *get_args(Decoding)))
        raise VariantError(f"variant {name!r}: {decoding!r} is none of {known}")
    values: dict[str, Any] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in OPTIONS:
            raise VariantError(f"variant {name!r}: {key!r} is none of {', '.join(OPTIONS)}")
        try:
            values[key] = OPTIONS[key](value)
        except (ValueError, KeyError) as error:
            raise VariantError(f"variant {name!r}: {value!r} is no value for {key}") from error
    chosen = None if decoding == AUTO else cast("Decoding", decoding)
    return Variant(name, chosen, **values)


def build(variant: Variant, base: LocalPredictor) -> LocalPredictor:
    """A predictor that decodes so, with the weights and the encoded contexts of `base`."""
    from model.denoise import Decoder
    from model.local import LocalPredictor

    bundle, own = base.bundle, base.bundle.decoder
    decoding = variant.decoding or own.decoding
    if decoding == "block" and bundle.denoiser is None:
        raise VariantError(f"variant {variant.name!r}: the model has no block denoiser")
    rows, steps = variant.rows, variant.steps
    if rows is None and variant.bound is None:
        rows = own.block
    if steps is None:
        trained = bundle.denoiser.shape.block if bundle.denoiser else 1
        steps = own.steps if variant.bound is None else rows or trained
    decoder = Decoder(
        bundle.trunk,
        bundle.tokenizer,
        bundle.denoiser,
        decoding,
        steps=steps,
        bound=own.bound if variant.bound is None else variant.bound,
        accept=own.accept if variant.accept is None else variant.accept,
        block=rows,
    )
    other = replace(bundle, decoder=decoder)
    return LocalPredictor(other, base.gate, base.contexts.budget, drafting=variant.drafts)
