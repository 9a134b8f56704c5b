"""docs/models.md says of each family what the code does."""

from __future__ import annotations

from pathlib import Path

from model.catalogue import KNOWN, fitness
from model.families import FAMILIES, Family

TEXT = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
PATTERNS = {
    "causal_context": "causal context, open canvas",
    "block_causal": "block-causal",
    "bidirectional": "bidirectional",
}


def rows(marker: str) -> dict[str, list[str]]:
    """The cells of a table by the family they are about."""
    body = TEXT.split(f"<!-- {marker} -->")[1].split(f"<!-- /{marker} -->")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in body.split("\n")]
    return {row[0]: row[1:] for row in cells if len(row) > 1 and row[0] not in ("family", "---")}


def attention(family: Family) -> str:
    more = ", blocks from the end of the prompt" if family.from_prompt else ""
    more += ", variable length" if family.variable else ""
    return PATTERNS[family.attention] + more


def block(family: Family) -> str:
    if family.attention == "bidirectional":
        return "one canvas"
    return f"{family.block}, filled by {family.part}" if family.part else str(family.block)


def test_the_table_of_families_is_that_of_the_code() -> None:
    told = rows("families")
    assert set(told) == {family.name for family in FAMILIES}
    for family in FAMILIES:
        shift = "yes" if family.shift else "no"
        assert told[family.name][1:4] == [attention(family), shift, block(family)], family.name


def test_how_well_a_family_serves_a_mode_is_that_of_the_code() -> None:
    told = rows("fitness")
    for family in FAMILIES:
        assert told[family.name] == [*fitness(family).values()], family.name


def test_every_known_model_is_of_a_family_and_named_once() -> None:
    assert {known.family for known in KNOWN} == {family.name for family in FAMILIES}
    assert len({known.name for known in KNOWN}) == len(KNOWN)
