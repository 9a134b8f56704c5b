"""Prompts in, predictions out. Knows no LSP, no editor and no document."""
