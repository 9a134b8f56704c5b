"""FIM prompts in one text, as clients of `/v1/completions` render them for the models that they know.

Responsible for finding what stands before and after the cursor between the tags. Knows nothing of HTTP.
"""

from __future__ import annotations

from model.serving.prompts import PromptError

SHAPES = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("<PRE> ", " <SUF>", " <MID>"),
)
"""What stands first, between prefix and suffix, and last: Qwen, StarCoder, GLM, DeepSeek, Code Llama."""

SUFFIX_FIRST = ("[SUFFIX]", "[PREFIX]")
"""Codestral's."""


def split_fim(prompt: str) -> tuple[str, str] | None:
    """(before the cursor, after it), or None for a text without such tags.

    `PromptError` where the tag in the middle stands there more than once: it is in the user's own text too.
    """
    for begin, middle, end in SHAPES:
        if prompt.startswith(begin) and prompt.endswith(end):
            return _halves(prompt[len(begin) : -len(end)], middle)
    begin, middle = SUFFIX_FIRST
    if prompt.startswith(begin) and middle in prompt:
        suffix, prefix = _halves(prompt[len(begin) :], middle)
        return prefix, suffix
    return None


def _halves(text: str, tag: str) -> tuple[str, str]:
    count = text.count(tag)
    if count != 1:
        raise PromptError(
            f"{tag.strip()} stands {count} times in the prompt: where the cursor is cannot be told",
            "ambiguous_prompt",
        )
    before, _, after = text.partition(tag)
    return before, after
