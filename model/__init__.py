"""Prompts in, predictions out. Knows no LSP, no editor and no document."""

import os

# OpenMP threads that wait must sleep, not spin: beside a busy editor or compiler, spinning made a forward pass four to
# seven times slower (docs/LOG.md). Read by the OpenMP runtime when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
