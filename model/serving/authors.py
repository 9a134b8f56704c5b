"""Which author writes for a predictor.

Responsible for that choice alone.
"""

from __future__ import annotations

from typing import Any

from model.gemma import GemmaPredictor
from model.protocol import Predictor
from model.published_predictor import PublishedPredictor
from model.serving.author import Author, BundleAuthor, PredictorAuthor
from model.serving.gemma_author import GemmaAuthor
from model.serving.published_author import PublishedAuthor


def author_for(predictor: Predictor) -> Author:
    """The best author that a predictor allows."""
    bundle: Any = getattr(predictor, "bundle", None)
    if bundle is not None:
        return BundleAuthor(bundle)
    if isinstance(predictor, PublishedPredictor):
        return PublishedAuthor(predictor)
    if isinstance(predictor, GemmaPredictor):
        return GemmaAuthor(predictor)
    return PredictorAuthor(predictor)
