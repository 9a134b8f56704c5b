"""The commands `redraft data`, `pack`, `train`, `tune` and `export`.

Responsible for finding the module of a command only when it runs. Knows nothing of what they do.
"""

from __future__ import annotations

import argparse
from importlib import import_module

MODULES = {
    "data": ("model.training.data.build", "build the training data from package releases"),
    "pack": ("model.training.pack", "write training data as shards of lessons for one model"),
    "train": ("model.training.train", "train what a recipe names, or go on with it"),
    "tune": ("model.training.tune", "let the gate learn from what you accepted and rejected"),
    "export": ("model.training.export", "write a trained model as a checkpoint folder"),
}


def add_arguments(command: str, parser: argparse.ArgumentParser) -> None:
    import_module(MODULES[command][0]).add_arguments(parser)


def run(command: str, args: argparse.Namespace) -> int:
    """Carry a command out; returns the exit code."""
    code: int = import_module(MODULES[command][0]).run(args)
    return code
