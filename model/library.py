"""Which model is meant: the embedded one, a folder, one that was pulled, or the one chosen for good.

Responsible for the folder of pulled models, for the file that remembers a choice, and for loading whatever a name
means. Knows nothing of downloads or of LSP; torch is imported only to load.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from model.config import ModelError, Quantize
from model.feedback import data_folder

if TYPE_CHECKING:
    from model.denoise import Decoding
    from model.protocol import Predictor

EMBEDDED = "embedded"
CHOICE = "model.json"


@dataclass(frozen=True, slots=True)
class Choice:
    """A model by name; `instruct` lets it be asked in a chat for what it was not trained to do, `quantize` is how its
    weights are rounded, if they are."""

    model: str = EMBEDDED
    instruct: bool = False
    quantize: Quantize | None = None


def models_folder() -> Path:
    """Where pulled models are, each under its owner's name."""
    return data_folder() / "models"


def pulled() -> list[str]:
    """Names of the pulled models, `owner/model`."""
    return sorted(
        path.parent.relative_to(models_folder()).as_posix()
        for path in models_folder().glob("*/*/config.json")
    )


def folder_of(name: str) -> Path | None:
    """The folder that a name means; None for the embedded model. Raises `ModelError`."""
    if name == EMBEDDED:
        return None
    if name in pulled():
        return models_folder() / name
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    hint = f"; `redraft models pull {name}` would download it" if name.count("/") == 1 else ""
    raise ModelError(f"no model {name!r}: neither a folder nor one of `redraft models list`{hint}")


def chosen() -> Choice:
    """What `redraft models use` remembers; the embedded model where nothing is remembered."""
    path = data_folder() / CHOICE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        quantize = raw.get("quantize")
        if quantize not in (None, "int8", "int4"):
            raise ValueError(f"quantize is {quantize!r}, neither int8 nor int4")
        return Choice(str(raw["model"]), bool(raw.get("instruct", False)), quantize)
    except FileNotFoundError:
        return Choice()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} cannot be read: {error!r}; `redraft models use` writes it anew"
        ) from error


def choose(choice: Choice) -> None:
    """Remember a choice. Raises `ModelError` for a name that means nothing."""
    folder = folder_of(choice.model)
    if folder is not None and choice.model not in pulled():
        choice = replace(choice, model=str(folder.resolve()))
    path = data_folder() / CHOICE
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(asdict(choice)) + "\n", encoding="utf-8")
    os.replace(part, path)


def load(
    name: str,
    *,
    device: str = "auto",
    threads: int | None = None,
    context_tokens: int | None = None,
    decoding: Decoding | Literal["auto"] = "auto",
    tuned: Path | None = None,
    instruct: bool = False,
    quantize: Quantize | None = None,
) -> Predictor:
    """The predictor for a name; raises `ModelError` with a reason a user can act on."""
    from model.families import is_ours

    options: dict[str, Any] = dict(device=device, threads=threads, context_tokens=context_tokens)
    folder = folder_of(name)
    if folder is None or is_ours(folder) or not (folder / "config.json").exists():
        from model.local import LocalPredictor

        if quantize is not None:
            raise ModelError(f"{name} is Redraft's own and chooses its precision itself")
        return LocalPredictor.load(folder, **options, decoding=decoding, tuned=tuned)
    from model.gemma import GemmaPredictor, is_gemma
    from model.published_predictor import PublishedPredictor

    if decoding != "auto":
        raise ModelError(
            f"{name} decides canvases; --decoding {decoding} is for Redraft's own models"
        )
    if is_gemma(folder):
        if quantize is not None:
            raise ModelError(f"{name}: the weights of DiffusionGemma's experts cannot be quantised")
        return GemmaPredictor.load(folder, **options, instruct=instruct)
    return PublishedPredictor.load(folder, **options, instruct=instruct, quantize=quantize)
