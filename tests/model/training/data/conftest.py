from __future__ import annotations

from pathlib import Path

import pytest
from tiny_releases import make_tarball, make_wheel

OLD = "def area(width):\n    return width * 2\n\n\n" + "".join(
    f"shape_{i} = area({i})\nlabel_{i} = 'shape {i}'\n" for i in range(8)
)
OLD_TS = "export function area(width: number): number {\n  return width * 2\n}\n\n" + "".join(
    f"export const shape{i} = area({i})\nexport const label{i} = 'shape {i}'\n" for i in range(8)
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two packages of Python and two of TypeScript, one of each held out, as downloaded before."""
    releases = tmp_path / "releases"
    releases.mkdir()
    for name, word in (("learned", "area"), ("held_out", "volume")):
        old = OLD.replace("area", word).replace("shape", f"{word}_shape")
        make_wheel(releases, name, "1.0", {f"{name}/shapes.py": old})
        make_wheel(
            releases, name, "1.1", {f"{name}/shapes.py": old.replace(f"{word}(", f"{word}_of(")}
        )
    for name, word in (("web", "area"), ("web-dev", "volume")):
        old = OLD_TS.replace("area", word).replace("shape", f"{word}Shape")
        make_tarball(releases, name, "2.0.0", {"package/src/shapes.ts": old})
        new = {
            "package/src/shapes.ts": old.replace(f"{word}(", f"{word}Of("),
            "package/dist/shapes.js": OLD,
        }
        make_tarball(releases, name, "2.1.0", new)
    (tmp_path / "packages.toml").write_text(
        "".join(
            f'[[package]]\nname = "{name}"\nregistry = "{registry}"\nlicence = "MIT"\n'
            f'split = "{split}"\nversions = {versions}\n'
            for name, registry, split, versions in (
                ("learned", "pypi", "train", '["1.0", "1.1"]'),
                ("held-out", "pypi", "dev", '["1.0", "1.1"]'),
                ("web", "npm", "train", '["2.0.0", "2.1.0"]'),
                ("web-dev", "npm", "dev", '["2.0.0", "2.1.0"]'),
            )
        )
    )
    return tmp_path
