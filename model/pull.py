"""Downloading a model, at the user's word only.

Responsible for which files of a repository are fetched (never code), for knowing that a model can be used before its
weights come, and for showing it in the library only when it is whole. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from model.families import SIDECAR, Published, open_published
from model.footprint import needed_gib
from model.hub import Hub, HubError, RemoteFile, Repository
from model.library import models_folder
from model.published import read_json

SMALL = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|merges\.txt|chat_template\.jinja|.*\.safetensors\.index\.json|README\.md|(LICENSE|NOTICE)(\.\w+)?"
)
WEIGHTS = re.compile(r".*\.safetensors")
SPARE_DISK = 1 << 30
STAGE = "models.part"
TYPES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pull will do: files of a repository, and where they are gathered until all are there."""

    repository: Repository
    small: tuple[RemoteFile, ...]
    weights: tuple[RemoteFile, ...]
    stage: Path
    target: Path

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in (*self.small, *self.weights))

    @property
    def left(self) -> int:
        """Bytes that are still to come."""
        return sum(file.size - self._have(file) for file in (*self.small, *self.weights))

    def _have(self, file: RemoteFile) -> int:
        whole = self.stage / file.name
        part = whole.with_name(whole.name + ".part")
        sizes = [path.stat().st_size for path in (whole, part) if path.exists()]
        return min(file.size, max(sizes, default=0))

    def complete(self, file: RemoteFile) -> bool:
        path = self.stage / file.name
        return path.exists() and path.stat().st_size == file.size


def plan(hub: Hub, name: str, revision: str = "main") -> Plan:
    """Ask the hub what a model consists of. Raises `HubError`."""
    repository = hub.describe(name, revision)
    small = tuple(file for file in repository.files if SMALL.fullmatch(file.name))
    weights = tuple(file for file in repository.files if WEIGHTS.fullmatch(file.name))
    if not any(file.name == "config.json" for file in small):
        raise HubError(f"{name} holds no model: it has no config.json")
    if not weights:
        raise HubError(f"{name} has no safetensors; other kinds of weights are never loaded")
    stage = models_folder().with_name(STAGE) / name.replace("/", "--")
    return Plan(repository, small, weights, stage, models_folder() / name)


def fetch_small(hub: Hub, todo: Plan) -> Published:
    """Fetch all but the weights and recognise the model.

    Raises `HubError`, and `ModelError` for a model that cannot be used.
    """
    todo.stage.mkdir(parents=True, exist_ok=True)
    about = {"name": todo.repository.name, "revision": todo.repository.revision}
    sidecar = todo.stage / SIDECAR
    if read_json(sidecar).get("revision") not in (None, todo.repository.revision):
        shutil.rmtree(todo.stage)  # what was begun is of another revision
        todo.stage.mkdir(parents=True)
    sidecar.write_text(json.dumps({**about, "licence": todo.repository.licence}) + "\n")
    for file in todo.small:
        if not todo.complete(file):
            for _ in hub.fetch(todo.repository, file, todo.stage / file.name):
                pass
    return open_published(todo.stage)


def expected_gib(todo: Plan) -> float:
    """Memory that the model will take, from the size of its weights and the type they are stored in."""
    raw = read_json(todo.stage / "config.json")
    stored = TYPES.get(str(raw.get("torch_dtype") or raw.get("dtype")), 2)
    return needed_gib(sum(file.size for file in todo.weights) // stored)


def fetch_weights(hub: Hub, todo: Plan) -> Iterator[int]:
    """Fetch the weights and put the model into the library; yields the bytes that came with each piece.

    Raises `HubError`; what came so far is kept, and gone on with the next time.
    """
    free = shutil.disk_usage(todo.stage).free
    if todo.left + SPARE_DISK > free:
        raise HubError(
            f"{todo.left / 2**30:.1f} GiB are still to come, and the disk has {free / 2**30:.1f} GiB free"
        )
    for file in todo.weights:
        if not todo.complete(file):
            yield from hub.fetch(todo.repository, file, todo.stage / file.name)
    install(todo)


def install(todo: Plan) -> None:
    """Move a gathered model to its place; one that was there before is replaced."""
    open_published(todo.stage).weights()
    todo.target.parent.mkdir(parents=True, exist_ok=True)
    old = todo.stage.with_name(todo.stage.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if todo.target.exists():
        os.replace(todo.target, old)
    os.replace(todo.stage, todo.target)
    shutil.rmtree(old, ignore_errors=True)
