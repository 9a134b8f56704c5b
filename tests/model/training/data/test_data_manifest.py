from __future__ import annotations

import json

from model.training.data import manifest
from model.training.data.allowlist import read_allow_list


def test_the_recorded_build_is_large_enough() -> None:
    recorded = json.loads(manifest.RECORDED.read_text())
    train, dev = recorded["counts"]["train"], recorded["counts"]["dev"]
    assert sum(train["cases by kind"].values()) >= 15_000
    assert len(train["cases by package"]) >= 25
    assert sum(train["gaps by kind"].values()) >= 200_000
    one = train["gaps by lines"]["one"] / sum(train["gaps by lines"].values())
    assert 0.55 <= one <= 0.65
    for topic in ("texts by package", "cases by package"):
        assert not train[topic].keys() & dev[topic].keys()
    assert recorded["test_data_runs"] > 10_000
    listed = {package.name: package for package in read_allow_list()}
    for package in recorded["packages"]:
        name = package["name"]
        assert package["split"] == listed[name].split
        assert tuple(package["releases"]) == listed[name].versions
        assert name in (train if package["split"] == "train" else dev)["texts by package"]
    assert len(recorded["packages"]) == len(listed)
    assert manifest.RECORDED.stat().st_size < 60_000
