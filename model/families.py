"""The open diffusion language models that can be served, and which of them a folder holds.

Responsible for the table of families (attention pattern, logit shift, block size, which tokens mean mask, end and
expand, what each was trained to do) and for recognising a checkpoint by its own files. Ids come from those files only.
Knows nothing of decoding or prompts; no code of a checkpoint is ever run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from model.config import ModelConfig, ModelError
from model.layouts import NAMED, PublishedCheckpoint, Shape, model_config
from model.published import PublishedTokenizer, read_json
from model.weights import Checkpoint

Attention = Literal["causal_context", "block_causal", "bidirectional"]
Order = Literal["confidence", "entropy"]
Reuse = Literal["none", "prefix", "dual"]
Infill = Literal["canvas", "tags", "continue"]

SIDECAR = "redraft.json"
GEMMA = "diffusion_gemma"
"""What the configuration of DiffusionGemma is called by; `model.gemma` runs it."""
MOST_POSITIONS = 33_792
BLOCK_KEYS = ("block_size", "bd_size", "block_length", "canvas_length")
NAMED_BLOCK = re.compile(r"-b(\d+)(?!\S)")
END_NAMES = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>")
EXPAND = "<|expand|>"
SEED_TAGS = ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>")


@dataclass(frozen=True, slots=True)
class Family:
    """What models of one kind have in common.

    `types` are the values of `model_type` or `architectures` that name it; where several families share them, `token`
    (a control token) or `named` (a part of the model's name) decides. `shift`: the state of a token tells the next one,
    not its own. Blocks are counted from the start of the text, or from the end of the prompt (`from_prompt`); `part` is
    how much of a block is filled at a time.

    `infill` is how a hole is shown to a model that was trained to fill one, `tags` the tokens used; `continue`: it was
    not, but it can go on from the cursor, and judge how far by the text that follows. `framed`: the text stands between
    the begin and the end token. `context` is the longest text that it was trained on, where its configuration promises
    more. `reuse` is what is kept of the texts around a canvas.
    """

    name: str
    models: str
    types: tuple[str, ...]
    shape: Shape
    attention: Attention
    shift: bool = False
    order: Order = "confidence"
    block: int = 32
    part: int | None = None
    from_prompt: bool = False
    token: str | None = None
    named: str | None = None
    infill: Infill | None = None
    tags: tuple[str, ...] = ()
    framed: bool = False
    context: int | None = None
    reuse: Reuse = "none"

    @property
    def variable(self) -> bool:
        """True when an answer may grow and shrink while it is written."""
        return self.token == EXPAND


FAMILIES = (
    Family(
        "nemotron",
        "NVIDIA Nemotron-Labs-Diffusion",
        ("nemotron_labs_diffusion", "NemotronLabsDiffusionModel"),
        "nemotron",
        "causal_context",
        infill="continue",
        framed=True,
    ),
    Family("sdar", "SDAR", ("sdar", "SDARForCausalLM"), "qwen3", "block_causal", block=4),
    Family(
        "fast-dllm-v2",
        "Fast-dLLM v2",
        ("Fast_dLLM_Qwen", "Fast_dLLM_QwenForCausalLM"),
        "qwen2",
        "block_causal",
        shift=True,
        part=8,
    ),
    Family(
        "stable-diffcoder",
        "Stable-DiffCoder",
        ("StableDiffcoderForCausalLM",),
        "llama",
        "block_causal",
        block=4,
        infill="tags",
        tags=SEED_TAGS,
    ),
    Family(
        "bd3lm",
        "dllm-hub Qwen3 bd3lm",
        ("a2d-qwen3",),
        "qwen3",
        "block_causal",
        from_prompt=True,
        named="bd3lm",
    ),
    Family(
        "bd3lm",
        "dllm-hub Qwen2.5-Coder bd3lm",
        ("a2d-qwen2",),
        "qwen2",
        "block_causal",
        from_prompt=True,
        named="bd3lm",
    ),
    Family(
        "mdlm",
        "dllm-hub Qwen3 mdlm",
        ("a2d-qwen3",),
        "qwen3",
        "bidirectional",
        named="mdlm",
        infill="canvas",
        reuse="dual",
    ),
    Family(
        "mdlm",
        "dllm-hub Qwen2.5-Coder mdlm",
        ("a2d-qwen2",),
        "qwen2",
        "bidirectional",
        named="mdlm",
        infill="canvas",
        reuse="dual",
    ),
    Family(
        "llada",
        "LLaDA 8B, LLaDA 1.5",
        ("llada", "LLaDAModelLM"),
        "llada",
        "bidirectional",
        infill="canvas",
        reuse="dual",
    ),
    Family(
        "dreamon",
        "DreamOn",
        ("DreamModel",),
        "qwen2",
        "bidirectional",
        shift=True,
        order="entropy",
        token=EXPAND,
        infill="canvas",
        framed=True,
        context=2048,
    ),
    Family(
        "dream",
        "Dream, Dream-Coder, DiffuCoder",
        ("DreamModel",),
        "qwen2",
        "bidirectional",
        shift=True,
        order="entropy",
        infill="canvas",
        reuse="dual",
        framed=True,
        context=2048,
    ),
    Family(
        "open-dcoder",
        "Open-dCoder",
        ("Qwen2ForCausalLM", "qwen2"),
        "qwen2",
        "bidirectional",
        shift=True,
        order="entropy",
        token="mask",
        infill="canvas",
        reuse="dual",
    ),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A checkpoint of a known family, its weights not yet read.

    `ends` close an answer, `forbidden` can never be part of one; `expand` stands for two masks, and `delete` for none,
    in a family of variable length.
    """

    folder: Path
    family: Family
    config: ModelConfig
    tokenizer: PublishedTokenizer
    mask: int
    block: int
    ends: frozenset[int]
    forbidden: tuple[int, ...]
    begin: int | None = None
    end: int | None = None
    expand: int | None = None
    reuse: Reuse = "none"

    @property
    def delete(self) -> int | None:
        return self.end if self.expand is not None else None

    def weights(self) -> PublishedCheckpoint:
        """Open the weights; raises `ModelError`."""
        return PublishedCheckpoint(self.folder, self.family.shape)


def is_ours(folder: Path) -> bool:
    """True for a checkpoint that Redraft's own training has written."""
    return "redraft" in read_json(folder / "config.json")


def open_published(folder: Path) -> Published:
    """Recognise the checkpoint in `folder`. Raises `ModelError` that names what was found."""
    if not (folder / "config.json").exists():
        raise ModelError(f"no model at {folder}: config.json is missing")
    raw = read_json(folder / "config.json")
    if raw.get("model_type") == GEMMA:
        raise ModelError(
            f"{folder} is DiffusionGemma, which is no family of Redraft's own network: download it with another "
            "program and name its folder"
        )
    own = read_json(folder / SIDECAR)
    tokenizer = PublishedTokenizer(folder)
    family = recognise(raw, own, tokenizer, folder)
    name = str(own.get("name") or raw.get("_name_or_path") or folder.name).rsplit("/", 1)[-1]
    try:
        config = model_config(raw, family.shape, name)
        block = block_size(raw, own, family, names(raw, own, folder))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / 'config.json'} does not describe a {family.name} model that can be run: {error}"
        ) from error
    most = min(config.max_positions, family.context or MOST_POSITIONS)
    config = replace(config, max_positions=most)
    mask = mask_id(raw, tokenizer, folder)
    reuse = own.get("reuse", family.reuse)
    if reuse not in get_args(Reuse):
        raise ModelError(
            f"{folder / SIDECAR}: reuse {reuse!r} is none of {', '.join(get_args(Reuse))}"
        )
    found = Published(folder, family, config, tokenizer, mask, block, frozenset(), (), reuse=reuse)
    return with_ids(found, raw)


def recognise(
    raw: Mapping[str, Any], own: Mapping[str, Any], tokenizer: PublishedTokenizer, folder: Path
) -> Family:
    """The first family whose signs are all there."""
    architectures = [str(one) for one in raw.get("architectures") or []]
    signs = {str(raw.get("model_type")), *architectures}
    alike = [family for family in FAMILIES if signs & set(family.types)]
    name = names(raw, own, folder)
    for family in alike:
        if own.get("family") == family.name:
            return family
        token = family.token is None or bool(tokenizer.like(family.token))
        if "family" not in own and token and (not family.named or family.named in name):
            return family
    found = (
        f"model_type {raw.get('model_type')!r}, architectures {architectures}, "
        f"tensors such as {', '.join(some_tensors(folder)) or 'none'}"
    )
    if choices := sorted({family.name for family in alike if family.named}):
        raise ModelError(
            f"{folder} is one of {', '.join(choices)} ({found}); say which: write "
            f'{{"family": "{choices[0]}"}} into {folder / SIDECAR}'
        )
    if alike:
        raise ModelError(
            f"{folder} looks like {alike[-1].models}, but its tokenizer has no {alike[-1].token} token ({found}): "
            "a model that is not a diffusion model cannot be used"
        )
    known = ", ".join(dict.fromkeys(family.name for family in FAMILIES))
    raise ModelError(f"{folder} fits no family that is known ({known}); it has {found}")


def names(raw: Mapping[str, Any], own: Mapping[str, Any], folder: Path) -> str:
    """All that the model is called by, in small letters."""
    called = (own.get("name"), raw.get("_name_or_path"), folder.name)
    return " ".join(str(one) for one in called if one).lower()


def block_size(raw: Mapping[str, Any], own: Mapping[str, Any], family: Family, name: str) -> int:
    """As the sidecar says, the configuration, or the model's name (`-b32`); else as the family has it."""
    named = NAMED_BLOCK.search(name)
    told = [own.get("block"), *(raw.get(key) for key in BLOCK_KEYS), named and named[1]]
    block = int(next((one for one in told if one), family.block))
    if block < 1:
        raise ValueError(f"a block of {block} tokens is none")
    return block


def some_tensors(folder: Path) -> list[str]:
    """A few tensor names, for a message."""
    try:
        return sorted(Checkpoint(folder))[:NAMED]
    except ModelError:
        return []


def mask_id(raw: Mapping[str, Any], tokenizer: PublishedTokenizer, folder: Path) -> int:
    """The mask's id: as the configuration says, as the tokenizer says, or the one control token called so."""
    if raw.get("mask_token_id") is not None:
        return int(raw["mask_token_id"])
    if "mask" in tokenizer.roles:
        return tokenizer.roles["mask"]
    named = tokenizer.like("mask")
    if len(named) == 1:
        return named[0]
    raise ModelError(
        f"{folder} does not say which token is the mask: config.json has no mask_token_id, the tokenizer "
        f"no mask_token, and {len(named)} of its control tokens are called so"
    )


def with_ids(found: Published, raw: Mapping[str, Any]) -> Published:
    """The control tokens that the family gives a meaning; raises `ModelError` for ids the model lacks."""
    tokenizer, size = found.tokenizer, found.config.vocab_size
    generation = read_json(found.folder / "generation_config.json")
    told = [raw.get("eos_token_id"), generation.get("eos_token_id")]
    ends = {id_ for one in told for id_ in as_ids(one)}
    ends |= {tokenizer.roles[role] for role in ("eos", "pad") if role in tokenizer.roles}
    ends |= {tokenizer.control[name] for name in END_NAMES if name in tokenizer.control}
    ends.discard(found.mask)
    expand = tokenizer.control.get(EXPAND) if found.family.variable else None
    for what, id_ in (("mask", found.mask), ("expand", expand), *(("end", one) for one in ends)):
        if id_ is not None and not 0 <= id_ < size:
            raise ModelError(
                f"the {what} token {id_} of {found.folder} is outside its {size} embeddings"
            )
    meant = ends | ({expand} if expand is not None else set())
    tokenizer.cover(size)
    silent = {*tokenizer.control_ids, found.mask} - meant
    first_end = tokenizer.roles.get("eos", next(iter(as_ids(told[0])), None))
    begin = tokenizer.roles.get("bos", next(iter(as_ids(raw.get("bos_token_id"))), None))
    return replace(
        found,
        ends=frozenset(ends),
        forbidden=tuple(sorted(id_ for id_ in silent if id_ < size)),
        begin=begin,
        end=first_end,
        expand=expand,
    )


def as_ids(told: object) -> Iterable[int]:
    """Ids of a configuration's value: none, one, or a list."""
    if told is None:
        return ()
    return [int(one) for one in told] if isinstance(told, list) else [int(str(told))]
