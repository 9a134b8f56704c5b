"""The VS Code extension's package.json agrees with the server. Needs no node."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "editors" / "vscode"
GENERATOR = runpy.run_path(str(FOLDER / "settings.py"))
MANIFEST: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))


def test_settings_are_up_to_date() -> None:
    """When this fails: python editors/vscode/settings.py."""
    assert (FOLDER / "package.json").read_text(encoding="utf-8") == GENERATOR["manifest"]()


def test_schema_of_each_kind_of_setting() -> None:
    schema = GENERATOR["properties"]()
    assert schema["redraft.inline.enable"]["type"] == "boolean"
    assert schema["redraft.gate"]["enum"] == ["eager", "balanced", "quiet"]
    assert schema["redraft.maxTokens"]["maximum"] == 1024
    assert schema["redraft.exclude"]["items"] == {"type": "string"}


def test_untrusted_folders_cannot_choose_what_runs() -> None:
    known = {
        name for group in MANIFEST["contributes"]["configuration"] for name in group["properties"]
    }
    restricted = set(MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    assert restricted <= known
    assert {"redraft.serverCommand", "redraft.model", "redraft.allow"} <= restricted


def test_no_workspace_decides_where_text_is_sent() -> None:
    """The editor ignores values of machine scope in a workspace's own settings, trusted or not."""
    schema = GENERATOR["properties"]()
    remote = {name for name in schema if name.startswith("redraft.remote.")} | {"redraft.backend"}
    assert len(remote) == 5
    assert all(schema[name]["scope"] == "machine" for name in remote)
    assert remote <= set(
        MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    )


def test_only_the_stable_api_is_used_unless_the_user_asks_for_more() -> None:
    assert MANIFEST["enabledApiProposals"] == ["inlineCompletionsAdditions"]
    sections = MANIFEST["contributes"]["configuration"]
    settings = [one["properties"].get("redraft.inlineEdits") for one in sections]
    assert [one["default"] for one in settings if one] == [False]
    users = [
        path.name for path in (FOLDER / "src").glob("*.ts") if "isInlineEdit" in path.read_text()
    ]
    assert users == ["proposed.ts"]


def test_the_package_carries_the_licences_of_what_it_bundles() -> None:
    packed = (FOLDER / ".vscodeignore").read_text(encoding="utf-8").splitlines()
    assert {"!LICENSE.txt", "!ThirdPartyNotices.txt"} <= set(packed)
    assert "node notices.mjs" in MANIFEST["scripts"]["package"]


def test_the_lockfile_names_no_registry() -> None:
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text(encoding="utf-8")
