"""Migrations that a programmer does line by line and that no single substitution describes.

Responsible for recognising that one has begun (other quotes, modern Python annotations, format
strings) and for doing it to another line. Knows nothing of where lines stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Migration = tuple[str, tuple[str, str], str, Callable[[str], str]]

_STRING = re.compile(r"([rbfuRBFU]{0,2})(\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')")
_GENERIC = re.compile(r"\b(?:t\.|typing\.)?(List|Dict|Tuple|Set|FrozenSet|Type)(?=\[)")
_UNION = re.compile(r"\b(?:t\.|typing\.)?(Optional|Union)\[")
_ANNOTATION = re.compile(
    r"((?:(?<![\w\"'\])}])\w+|\))\s*(?::|->)\s*|\[|, |\| )"
    r"([\"'])([\w.\[\], |]+)\2(?=\s*(?:[,)\]=:|]|$))"
)
_PERCENT = re.compile(
    r"(?<![\w\"'])([\"'])((?:(?!\1)[^\\\n{}]|\\.)*%[srd](?:(?!\1)[^\\\n{}]|\\.)*)\1 % "
)

_FORMAT = re.compile(r"(?<![\w\"'])([\"'])((?:(?!\1)[^\\\n])*)\1\.format\(")
_OPERAND = r"\"[^\"\\\n]*\"|'[^'\\\n]*'|(?<![\w$.])[A-Za-z_$][\w$.]*(?:\([^()\n]*\)|\[[^\[\]\n]*\])?(?![\w$.(\[])"
_SUM = re.compile(rf"(?:{_OPERAND})(?: \+ (?:{_OPERAND}))+")


def requote(line: str, old: str, new: str) -> str:
    """Strings in `old` quotes get `new` ones where nothing inside needs escaping."""

    def swap(match: re.Match[str]) -> str:
        prefix, body = match.groups()
        if (
            body[0] != old
            or len(body) < 2
            or body[:3] == old * 3
            or new in body
            or "\\" + old in body
        ):
            return match.group()
        return prefix + new + body[1:-1] + new

    return _STRING.sub(swap, line)


def _split_arguments(text: str) -> list[str]:
    """Comma-separated parts at the outermost level."""
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def _closing(text: str, at: int) -> int:
    """Index of the bracket that closes the one before `at`; -1 when it is not on the line."""
    depth = 1
    for index in range(at, len(text)):
        depth += (text[index] in "([{") - (text[index] in ")]}")
        if depth == 0:
            return index
    return -1


def pipe_unions(line: str) -> str:
    """`Optional[X]` -> `X | None`, `Union[X, Y]` -> `X | Y`, inside out."""
    at = len(line)
    while True:
        matches = [match for match in _UNION.finditer(line) if match.start() < at]
        if not matches:
            return line
        match = matches[-1]
        at = match.start()
        end = _closing(line, match.end())
        if end < 0:
            continue
        members = _split_arguments(line[match.end() : end])
        if match[1] == "Optional":
            members = [part for part in members if part != "None"]
            members = [*" | ".join(members).split(" | None"), "None"] if members else ["None"]
            members = [part for part in members if part]
        line = line[: match.start()] + " | ".join(members) + line[end + 1 :]


def unquote_annotations(line: str) -> str:
    """Annotations written as strings lose their quotes."""
    if "Literal[" in line:
        return line
    return _ANNOTATION.sub(lambda match: match[1] + match[3], line)


def percent_to_f_string(line: str) -> str:
    """`"%s is" % name` -> `f"{name} is"`, when the arguments can be told apart."""
    match = _PERCENT.search(line)
    if not match:
        return line
    rest = line[match.end() :]
    if rest.startswith("("):
        end = _closing(rest, 1)
        if end < 0:
            return line
        arguments, tail = _split_arguments(rest[1:end]), rest[end + 1 :]
    else:
        single = re.match(r"[\w.]+", rest)
        if not single:
            return line
        end = single.end()
        while end < len(rest) and rest[end] in "([":
            end = _closing(rest, end + 1) + 1
            if end == 0:
                return line
        arguments, tail = [rest[:end]], rest[end:]
    pieces = re.split(r"%([srd])", match[2])
    if len(pieces) // 2 != len(arguments) or any(match[1] in part for part in arguments):
        return line
    body = pieces[0]
    for number, argument in enumerate(arguments):
        mark = "!r" if pieces[2 * number + 1] == "r" else ""
        body += "{" + argument + mark + "}" + pieces[2 * number + 2]
    return line[: match.start()] + "f" + match[1] + body.replace("%%", "%") + match[1] + tail


def format_to_f_string(line: str) -> str:
    """`"{} is".format(name)` -> `f"{name} is"`, when every field is plain and the call ends on the line."""
    match = _FORMAT.search(line)
    end = _closing(line, match.end()) if match else -1
    if not match or end < 0:
        return line
    arguments = _split_arguments(line[match.end() : end])
    known = dict(enumerate(arguments))
    named = {key: value for key, sep, value in (part.partition("=") for part in arguments) if sep}
    count = 0

    def fill(field: re.Match[str]) -> str:
        nonlocal count
        number = count if not field[1] else int(field[1]) if field[1].isdigit() else -1
        count += not field[1]
        value = known.get(number) if number >= 0 else named.get(field[1])
        return "{" + value + field[2] + "}" if value else field.group() + "\0"

    body = re.sub(r"\{(\w*)((?:![rsa])?(?::[^{}]*)?)\}", fill, match[2])
    if "\0" in body or any(match[1] in part for part in arguments):
        return line
    return line[: match.start()] + "f" + match[1] + body + match[1] + line[end + 1 :]


def sum_to_template(line: str) -> str:
    """`"hi " + name` -> `` `hi ${name}` `` in JavaScript."""

    def join(match: re.Match[str]) -> str:
        parts = re.findall(_OPERAND, match.group())
        texts = [part for part in parts if part[0] in "\"'"]
        if (
            not texts
            or len(texts) == len(parts)
            or any("`" in text or "${" in text for text in texts)
        ):
            return match.group()
        return "`" + "".join(p[1:-1] if p in texts else "${" + p + "}" for p in parts) + "`"

    return _SUM.sub(join, line)


def _began(old: str, new: str, migrate: Callable[[str], str]) -> bool:
    """True when the edit did what the migration does (the rest of the line aside)."""
    migrated = migrate(old)
    return migrated != old and (migrated.strip() == new.strip() or migrate(new) == new != old)


def migrations(pairs: Iterable[tuple[str, str]]) -> list[Migration]:
    """(rule, link, needle, rewrite) of every migration that the pairs of old and new lines have
    begun.

    The last entry, when there are several, does all of them at once.
    """
    found: dict[str, Migration] = {}
    for old, new in pairs:
        for quote, other in (("'", '"'), ('"', "'")):
            swapped = requote(old, quote, other)
            if swapped != old and swapped.strip() == new.strip():
                found["quotes"] = (
                    "migrate-quotes",
                    (quote, other),
                    quote,
                    lambda s, a=quote, b=other: requote(s, a, b),  # type: ignore[misc]
                )
        if _UNION.search(old) and not _UNION.search(new) and " | " in new:
            found["unions"] = ("migrate-typing", ("Optional[", "| None"), "[", pipe_unions)
        if (
            _GENERIC.search(old)
            and not _GENERIC.search(new)
            and re.search(r"\b(?:list|dict|tuple|set|frozenset|type)\[", new)
        ):
            found["generics"] = (
                "migrate-typing",
                ("List[", "list["),
                "[",
                lambda s: _GENERIC.sub(lambda m: m[1].lower(), s),
            )
        if _began(old, new, unquote_annotations) or (
            unquote_annotations(old) != old
            and '"' in old
            and new.count('"') < old.count('"')
            and unquote_annotations(new) == new
        ):
            found["annotations"] = ("migrate-typing", ('"', ""), "", unquote_annotations)
        if _PERCENT.search(old) and not _PERCENT.search(new) and re.search(r"\bf[\"']", new):
            found["percent"] = ("migrate-format", ("%", "f"), "%", percent_to_f_string)
        if ".format(" in old and ".format(" not in new and re.search(r"\bf[\"']", new):
            found["format"] = ("migrate-format", (".format", "f"), ".format(", format_to_f_string)
        if " + " in old and "${" in new and "${" not in old:
            found["template"] = ("migrate-format", ("+", "${}"), " + ", sum_to_template)
    single = list(found.values())
    typing = [entry for entry in single if entry[0] == "migrate-typing"]
    if len(typing) > 1:

        def every(line: str) -> str:
            for _, _, _, rewrite in reversed(typing):
                line = rewrite(line)
            return line

        single.append(("migrate-typing", typing[0][1], "", every))
    return single
