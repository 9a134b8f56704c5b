from __future__ import annotations

import json
import random
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from model.training import data, releases

OLD = "def area(width):\n    return width * 2\n\n\n" + "".join(
    f"shape_{i} = area({i})\nlabel_{i} = 'shape {i}'\n" for i in range(8)
)
NEW = OLD.replace("area", "surface")


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = f"Name: {name}\nVersion: {version}\nLicense-Expression: MIT\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        for file, text in files.items():
            archive.writestr(file, text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, word in (("learned", "area"), ("held_out", "volume")):
        old, new = OLD.replace("area", word), NEW.replace("surface", f"{word}_of")
        make_wheel(wheels, name, "1.0", {f"{name}/shapes.py": old})
        make_wheel(wheels, name, "1.1", {f"{name}/shapes.py": new})
    (tmp_path / "packages.toml").write_text(
        '[[package]]\nname = "learned"\nlicence = "MIT"\nsplit = "train"\n'
        'versions = ["1.0", "1.1"]\n'
        '[[package]]\nname = "held-out"\nlicence = "MIT"\nsplit = "dev"\n'
        'versions = ["1.0", "1.1"]\n'
    )
    return tmp_path


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_build_from_local_wheels(project: Path) -> None:
    summary = data.build(project, project / "packages.toml", None)
    texts = rows_of(project / "texts-train.jsonl")
    assert [(row["path"], row["package"]) for row in texts] == [("learned/shapes.py", "learned")]
    assert texts[0]["text"] == NEW.replace("surface", "area_of")
    train, dev = rows_of(project / "cases-train.jsonl"), rows_of(project / "cases-dev.jsonl")
    assert {row["meta"]["package"] for row in train} == {"learned"}
    assert {row["meta"]["package"] for row in dev} == {"held-out"}
    assert all(row["id"].startswith("learned-1.1-") for row in train)
    assert len({row["id"] for row in train}) == len(train) > 5
    manifest = json.loads((project / "manifest.json").read_text())
    assert manifest["cases"] == summary["cases"]
    release = manifest["packages"][0]["releases"][1]
    assert (release["version"], release["licence"], len(release["sha256"])) == ("1.1", "MIT", 64)
    before = (project / "cases-train.jsonl").read_bytes()
    data.build(project, project / "packages.toml", None)
    assert (project / "cases-train.jsonl").read_bytes() == before, "a second build is the same"


def test_build_keeps_test_data_out(project: Path) -> None:
    avoid = project / "avoid"
    avoid.mkdir()
    (avoid / "test.jsonl").write_text(
        json.dumps({"new_contents": NEW.replace("surface", "area_of")})
    )
    summary = data.build(project, project / "packages.toml", avoid)
    assert rows_of(project / "texts-train.jsonl") == []
    assert summary["counts"]["texts dropped: overlap with test data"] == 1
    assert summary["counts"]["cases dropped: overlap with test data"] > 0


def test_selection_follows_the_mix() -> None:
    rows = [
        {"meta": {"kind": kind, "linked": linked}}
        for kind, linked, count in [
            ("jump", True, 70),
            ("jump", False, 100),
            ("mid-typing", True, 500),
            ("fim", False, 500),
            ("done", None, 10),
            ("idle", None, 500),
        ]
        for _ in range(count)
    ]
    counts = Counter(
        (row["meta"]["kind"], row["meta"]["linked"]) for row in data.select(rows, random.Random(0))
    )
    assert counts == {
        ("jump", True): 70,
        ("jump", False): 18,
        ("mid-typing", True): 50,
        ("fim", False): 30,
        ("done", None): 10,
        ("idle", None): 20,
    }


def test_equal_answers_are_not_repeated_for_ever() -> None:
    def row(number: int) -> dict:
        return {
            "text": f"# {number}\nyear = 2024\n",
            "cursor": {"line": 0, "character": 0},
            "mode": "next_edit",
            "expected": [f"# {number}\nyear = 2025\n"],
            "meta": {"kind": "jump"},
        }

    counts: Counter[str] = Counter()
    rows = [row(0), row(0), *map(row, range(1, 9))]
    kept = list(data.deduplicate(rows, set(), Counter(), counts))
    assert [r["text"][2] for r in kept] == ["0", "1", "2"]
    assert counts == {"cases dropped: same question": 1, "cases dropped: same change": 6}


def test_changed_part() -> None:
    assert data.changed_part("a\nb\nc", "a\nx\ny\nc") == ("b", "x\ny")
    assert data.changed_part("a\na", "a\na\na") == ("", "a")


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("pkg/_vendor/x.py", "x = 1\n" * 100, "vendored"),
        ("pkg/x_pb2.py", "x = 1\n" * 100, "generated"),
        ("pkg/x.py", "# Generated by a tool; DO NOT EDIT\n" + "x = one\n" * 100, "generated"),
        ("pkg/x.py", "x = 1\n", "size"),
        ("pkg/x.py", "x = '" + "ab" * 300 + "'\n", "minified"),
        ("pkg/x.py", "key = one\n" * 30 + 'k = """-----BEGIN RSA PRIVATE KEY-----"""\n', "secret"),
        ("pkg/x.py", "t = [11, 22, 33]\n" * 40, "data"),
        ("pkg/x.py", "x = one\r\n" * 40, "unusual characters"),
        ("pkg/x.py", "value = compute(other)\n" * 40, None),
    ],
)
def test_reject_source(path: str, text: str, reason: str | None) -> None:
    assert releases.reject_source(path, text) == reason


def test_somebody_elses_folder_is_skipped(tmp_path: Path) -> None:
    text = "value = compute(other)\n" * 40
    files = {"pkg/own.py": text, "pkg/_lib/code.py": text, "pkg/_lib/LICENSE.txt": "theirs"}
    make_wheel(tmp_path, "pkg", "2.0", files)
    package = releases.Package("pkg", "MIT", "train", ("2.0.0",))
    wheel = releases.open_wheel(package, "2.0.0", tmp_path)
    assert [path for path, _ in releases.python_sources(wheel)] == ["pkg/own.py"]


def test_other_licences_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg-1.0.dist-info/METADATA", "Name: pkg\nLicense: GPL-3.0\n")
    package = releases.Package("pkg", "GPL", "train", ("1.0",))
    with pytest.raises(ValueError, match=r"GPL-3\.0"):
        releases.open_wheel(package, "1.0", tmp_path)


def test_the_manifest_holds_out_whole_packages() -> None:
    packages = releases.read_manifest()
    splits = Counter(package.split for package in packages)
    assert 0.1 <= splits["dev"] / len(packages) <= 0.2
    assert all(len(package.versions) >= 3 for package in packages)
    assert {"click", "fastapi"}.isdisjoint(package.name for package in packages)


def test_a_wrong_manifest_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[[package]]\nname = "x"\nlicence = "MIT"\nsplit = "test"\nversions = ["1"]\n')
    with pytest.raises(ValueError, match="x: split is 'test'"):
        releases.read_manifest(path)
