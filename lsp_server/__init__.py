"""The language server: documents, scheduling, suggestions, settings. Knows no tensor, no token."""

__version__ = "0.1.0"
