"""Text in, text out: positions, edits, hunks, edit history and the file policy.

Knows no LSP and no model.
"""
