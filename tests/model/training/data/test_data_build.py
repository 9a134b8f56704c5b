from __future__ import annotations

import argparse
import json
import random
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tiny_releases import make_wheel

from model.training.data import build, manifest
from model.training.data.allowlist import narrowed, read_allow_list
from model.training.data.selection import select


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def built(project: Path, avoid: Path | None = None) -> dict[str, Any]:
    return build.build(project, read_allow_list(project / "packages.toml"), avoid)


def test_texts_and_cases_of_both_registries(project: Path) -> None:
    summary = built(project)
    texts = rows_of(project / "texts-train.jsonl")
    assert [(row["path"], row["package"], row["language"]) for row in texts] == [
        ("learned/shapes.py", "learned", "python"),
        ("src/shapes.ts", "web", "typescript"),
    ]
    assert "def area_of(width):" in texts[0]["text"]
    train, dev = rows_of(project / "cases-train.jsonl"), rows_of(project / "cases-dev.jsonl")
    assert {row["meta"]["package"] for row in train} == {"learned", "web"}
    assert {row["meta"]["package"] for row in dev} == {"held-out", "web-dev"}
    assert {row["language"] for row in train} == {"python", "typescript"}
    assert len({row["id"] for row in train}) == len(train) > 10
    assert summary == json.loads((project / "manifest.json").read_text())
    assert summary["files_dropped"] == {"generated": 2}
    web = next(package for package in summary["packages"] if package["name"] == "web")
    assert (web["registry"], web["stated"], len(web["releases"]["2.1.0"])) == ("npm", ["MIT"], 64)


def test_gaps_refer_to_the_texts(project: Path) -> None:
    summary = built(project)
    for split in ("train", "dev"):
        texts = rows_of(project / f"texts-{split}.jsonl")
        holes = rows_of(project / f"fim-{split}.jsonl")
        assert {hole["text"] for hole in holes} == set(range(len(texts)))
        for hole in holes:
            middle = texts[hole["text"]]["text"][hole["start"] : hole["end"]]
            assert middle.strip()
            assert hole["lines"] == middle.count("\n") + (not middle.endswith("\n"))
        assert sum(summary["counts"][split]["gaps by kind"].values()) == len(holes)


def test_a_second_build_is_the_same_and_makes_only_what_is_missing(project: Path) -> None:
    names = [
        f"{topic}-{split}.jsonl" for topic in ("texts", "fim", "cases") for split in build.SPLITS
    ]
    built(project)
    before = {name: (project / name).read_bytes() for name in names}
    parts = sorted((project / "parts").iterdir())
    assert len(parts) == 4
    marks = {part: part.stat().st_ino for part in parts}
    # Cut off while it wrote: one part half done, one result missing.
    lost = parts[0]
    for file in lost.iterdir():
        file.unlink()
    lost.rmdir()
    half = lost.with_name(lost.name + ".part")
    half.mkdir()
    (half / "texts.jsonl").write_text('{"path": ')
    (project / "cases-dev.jsonl").unlink()
    built(project)
    assert {name: (project / name).read_bytes() for name in names} == before
    assert not half.exists()
    assert all(part.stat().st_ino == mark for part, mark in marks.items() if part != lost)


def test_test_data_is_kept_out(project: Path) -> None:
    # One line of it is enough, whatever the white space.
    line = "def area_of(width):\n        return width * 2\nareashape0 = area_of(0)"
    avoid = project / "avoid"
    avoid.mkdir()
    (avoid / "test.jsonl").write_text(
        json.dumps({"new_contents": line.replace("reas", "rea_s").replace("e0", "e_0")})
    )
    summary = built(project, avoid)
    assert {row["package"] for row in rows_of(project / "texts-train.jsonl")} == {"web"}
    assert {row["meta"]["package"] for row in rows_of(project / "cases-train.jsonl")} == {"web"}
    assert {row["text"] for row in rows_of(project / "fim-train.jsonl")} == {0}
    assert summary["dropped"]["texts: overlap with test data"] == 1
    assert summary["dropped"]["episodes: overlap with test data"] > 0


def test_a_near_duplicate_is_dropped(project: Path) -> None:
    releases = project / "releases"
    for version in ("1.0", "1.1"):
        with zipfile.ZipFile(releases / f"learned-{version}-py3-none-any.whl") as wheel:
            text = wheel.read("learned/shapes.py").decode()
        make_wheel(releases, "held_out", version, {"held_out/copy.py": "# a copy\n" + text})
    summary = built(project)
    assert rows_of(project / "texts-dev.jsonl")[0]["package"] == "web-dev"
    assert {row["meta"]["package"] for row in rows_of(project / "cases-dev.jsonl")} == {"web-dev"}
    assert summary["dropped"]["texts: near duplicate"] == 1
    assert summary["dropped"]["episodes: near duplicate"] > 0


def test_another_file_than_the_recorded_one_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"packages": [{"name": "web", "releases": {"2.1.0": "0" * 64}}]}
    (project / "record.json").write_text(json.dumps(record))
    hashes = manifest.recorded_hashes(project / "record.json")
    monkeypatch.setattr(build, "recorded_hashes", lambda: hashes)
    with pytest.raises(ValueError, match=r"web-2\.1\.0\.tgz: not the file"):
        built(project)


def test_the_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    build.add_arguments(parser)
    common = ["build", "--out", str(project), "--packages", str(project / "packages.toml")]
    assert build.run(parser.parse_args([*common, "--only", "web", "--releases", "2"])) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["train"]["texts by package"] == {"web": 1}
    assert rows_of(project / "texts-dev.jsonl") == []
    assert build.run(parser.parse_args([*common, "--only", "nobody"])) == 1
    assert "not on the allow-list: nobody" in capsys.readouterr().err


def test_selection_follows_the_mix() -> None:
    kinds: list[tuple[str, bool | None]] = [
        *[("jump", True)] * 70,
        *[("jump", False)] * 100,
        *[("mid-typing", True)] * 500,
        *[("fim", False)] * 500,
        *[("done", None)] * 10,
        *[("idle", None)] * 500,
    ]
    assert Counter(kinds[i] for i in select(kinds, random.Random(0))) == {
        ("jump", True): 70,
        ("jump", False): 18,
        ("mid-typing", True): 50,
        ("fim", False): 30,
        ("done", None): 10,
        ("idle", None): 20,
    }


def test_the_allow_list_holds_out_whole_packages() -> None:
    packages = read_allow_list()
    for registry in ("pypi", "npm"):
        splits = Counter(p.split for p in packages if p.registry == registry)
        assert 0.1 <= splits["dev"] / splits.total() <= 0.2
    assert all(len(package.versions) >= 3 for package in packages)
    assert {"click", "fastapi"}.isdisjoint(package.name for package in packages)
    assert [p.name for p in narrowed(packages, ["ws"], 2)] == ["ws"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('split = "test"', "x: split is 'test'"),
        ('registry = "crates"', "x: registry is 'crates'"),
        ('licence = "GPL-3.0"', r"x: licence 'GPL-3\.0'"),
        ("versions = []", "x: versions"),
    ],
)
def test_a_wrong_allow_list_is_named(tmp_path: Path, line: str, message: str) -> None:
    entry = {"name": '"x"', "licence": '"MIT"', "split": '"dev"', "versions": '["1"]'}
    key, _, value = line.partition(" = ")
    entry[key] = value
    path = tmp_path / "p.toml"
    path.write_text("[[package]]\n" + "".join(f"{k} = {v}\n" for k, v in entry.items()))
    with pytest.raises(ValueError, match=message):
        read_allow_list(path)
