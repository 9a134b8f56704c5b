"""`python -m model.training.data`: the same as `redraft data`. Responsible for the exit code only."""

from __future__ import annotations

import argparse

from model.training.data import build

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m model.training.data")
    build.add_arguments(parser)
    raise SystemExit(build.run(parser.parse_args()))
