"""Downloads from a hub: what is fetched, resumed and checked. The hub is a server of this machine."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import COMMIT, HubServer
from published_checkpoints import save_published

from lsp_server.cli import run
from model.hub import Hub, HubError
from model.library import chosen, models_folder, pulled
from model.pull import STAGE, fetch_small, fetch_weights, plan

NAME = "JetLM/SDAR-1.7B-Chat"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder, _ = save_published(tmp_path_factory.mktemp("hub"), "sdar")
    (folder / "modeling_sdar.py").write_text("raise SystemExit('code of a checkpoint was run')\n")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "README.md").write_text("a card\n")
    return folder


@pytest.fixture
def server(folder: Path, home: Path, monkeypatch) -> Iterator[HubServer]:
    server = HubServer(folder, NAME)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    for variable in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    yield server
    server.close()


def pull(server: HubServer) -> None:
    hub = Hub(pause=0.0)
    todo = plan(hub, NAME)
    fetch_small(hub, todo)
    for _ in fetch_weights(hub, todo):
        pass


def test_a_model_comes_whole_and_without_code(server: HubServer, folder: Path, capsys) -> None:
    assert run(["models", "pull", NAME]) == 0
    told = capsys.readouterr().out
    for part in (
        COMMIT[:12],
        "licence apache-2.0",
        "family       sdar",
        "GiB free",
        "checksums are right",
    ):
        assert part in told
    target = models_folder() / NAME
    assert pulled() == [NAME]
    names = {path.name for path in target.iterdir()}
    assert names == {path.name for path in folder.iterdir()} - {
        *("modeling_sdar.py", "pytorch_model.bin")
    } | {"redraft.json"}
    for shard in SHARDS:
        assert (target / shard).read_bytes() == (folder / shard).read_bytes()
    assert json.loads((target / "redraft.json").read_text())["revision"] == COMMIT
    assert not any(models_folder().with_name(STAGE).iterdir())
    assert not any(".py" in path or ".bin" in path for path, *_ in server.asked)


def test_a_download_goes_on_where_it_broke_off(server: HubServer, folder: Path) -> None:
    server.faults.break_after = [1000, 700]
    pull(server)
    ranges = [asked for path, asked, _ in server.asked if path == f"/cdn/{SHARDS[0]}"]
    assert ranges == [None, "bytes=1000-", "bytes=1700-"]
    assert (models_folder() / NAME / SHARDS[0]).read_bytes() == (folder / SHARDS[0]).read_bytes()


def test_what_came_before_is_kept_for_another_run(server: HubServer) -> None:
    hub = Hub(pause=0.0)
    server.faults.break_after = [900, *[0] * 50]
    todo = plan(hub, NAME)
    fetch_small(hub, todo)
    with pytest.raises(HubError, match="run the same again"):
        list(fetch_weights(hub, todo))
    assert pulled() == []
    assert todo.left == todo.size - sum(f.size for f in todo.small) - 900
    server.faults.break_after = []
    server.asked.clear()
    pull(server)
    asked = [path for path, *_ in server.asked if path.startswith("/cdn/")]
    assert asked == [f"/cdn/{shard}" for shard in SHARDS]  # no small file comes twice
    assert server.asked[-3][1] == "bytes=900-"
    assert pulled() == [NAME]


def test_a_hub_that_sends_the_whole_again_is_understood(server: HubServer, folder: Path) -> None:
    server.faults.ignore_range = True
    server.faults.break_after = [1000]
    pull(server)
    assert (models_folder() / NAME / SHARDS[0]).read_bytes() == (folder / SHARDS[0]).read_bytes()


@pytest.mark.parametrize("file", [SHARDS[1], "tokenizer.json"])
def test_a_wrong_checksum_throws_the_file_away(server: HubServer, file: str, capsys) -> None:
    server.faults.wrong_checksum = file
    assert run(["models", "pull", NAME]) == 1
    assert f"{file} is not what the hub says" in capsys.readouterr().err
    assert pulled() == []
    assert not list(models_folder().with_name(STAGE).rglob(f"{file}*"))
    server.faults.wrong_checksum = ""
    assert run(["models", "pull", NAME]) == 0


def test_a_busy_hub_is_asked_again(server: HubServer) -> None:
    hub = Hub(pause=0.0)
    todo = plan(hub, NAME)
    server.faults.statuses = [503, 429]
    fetch_small(hub, todo)
    assert len([1 for path, *_ in server.asked if "/resolve/" in path]) == 2 + len(todo.small)


@pytest.mark.parametrize(
    ("status", "says"), [(401, "HF_TOKEN"), (404, "the hub has no"), (418, "418")]
)
def test_a_refusal_is_explained(server: HubServer, status: int, says: str, capsys) -> None:
    server.faults.status = status
    assert run(["models", "pull", NAME]) == 1
    assert says in capsys.readouterr().err


def test_a_token_goes_to_the_hub_alone(server: HubServer, folder: Path, monkeypatch) -> None:
    other = HubServer(folder, NAME)
    monkeypatch.setenv("HF_TOKEN", "secret")
    server.faults.redirect = other.url
    try:
        pull(server)
    finally:
        other.close()
    assert {token for *_, token in server.asked} == {"Bearer secret"}
    assert {token for *_, token in other.asked} == {None}
    assert len(other.asked) >= 2


def test_no_redirect_away_from_https(server: HubServer) -> None:
    server.faults.redirect = "http://example.invalid"
    hub = Hub(pause=0.0)
    with pytest.raises(HubError, match="redirect"):
        fetch_small(hub, plan(hub, NAME))
    with pytest.raises(HubError, match="no https address"):
        Hub("http://example.invalid")


def test_names_that_lead_out_of_the_folder_are_left_out(server: HubServer) -> None:
    for name in (
        "../../evil.json",
        "/etc/config.json",
        "..",
        "sub/config.json",
        ".hidden.safetensors",
    ):
        server.faults.extra.append({"rfilename": name, "size": 1, "blobId": "0" * 40})
    names = {file.name for file in Hub().describe(NAME).files}
    assert "config.json" in names
    assert not {name for name in names if "/" in name or name.startswith(".")}
    for name in ("../x", "a/../b", "a", "a/b/c", "https://x/y"):
        with pytest.raises(HubError, match="no repository"):
            Hub().describe(name)


def test_a_model_that_cannot_be_used_is_known_before_its_weights_come(
    server: HubServer, tmp_path: Path, capsys
) -> None:
    folder, _ = save_published(tmp_path, "sdar")
    raw = json.loads((folder / "config.json").read_text())
    raw |= {"model_type": "llada2_moe", "architectures": ["LLaDA2MoeModelLM"]}
    (folder / "config.json").write_text(json.dumps(raw))
    server.folder = folder
    assert run(["models", "pull", NAME]) == 1
    assert "llada2_moe" in capsys.readouterr().err
    assert not any(".safetensors" in path and "index" not in path for path, *_ in server.asked)


def test_a_repository_without_safetensors_is_refused(
    server: HubServer, tmp_path: Path, capsys
) -> None:
    (tmp_path / "config.json").write_text("{}")
    server.folder = tmp_path
    assert run(["models", "pull", NAME]) == 1
    assert "no safetensors" in capsys.readouterr().err


def test_a_full_disk_is_seen_before_the_weights_come(
    server: HubServer, monkeypatch, capsys
) -> None:
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("model.pull.shutil.disk_usage", lambda _: usage(9, 0, 9))
    assert run(["models", "pull", NAME]) == 1
    assert "GiB free" in capsys.readouterr().err


def test_offline_no_connection_is_tried(server: HubServer, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert run(["models", "pull", NAME]) == 1
    assert "forbidden" in capsys.readouterr().err
    assert server.asked == []


def test_a_hub_that_is_not_there(home: Path, monkeypatch, capsys) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
        assert run(["models", "pull", NAME]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_list_info_and_use_open_no_connection(server: HubServer, monkeypatch, capsys) -> None:
    pull(server)
    capsys.readouterr()

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert run(["models", "list"]) == 0
    listed = capsys.readouterr().out
    here, others = listed.split("known, not pulled")
    assert NAME in here
    assert NAME not in others
    assert "Dream-org/DreamOn-v0-7B" in others
    assert run(["models", "info", NAME]) == 0
    told = capsys.readouterr().out
    for part in (
        "mask         <|MASK|>",
        "blocks of 4",
        "has no chat template",
        "by instruction",
        COMMIT,
    ):
        assert part in told
    assert run(["models", "info", "Dream-org/DreamOn-v0-7B"]) == 0
    assert "models pull Dream-org/DreamOn-v0-7B" in capsys.readouterr().out
    assert run(["models", "info", "embedded"]) == 0
    assert run(["models", "info", "nobody/nothing"]) == 1


def test_only_a_model_that_serves_something_can_be_chosen(server: HubServer, capsys) -> None:
    pull(server)
    assert run(["models", "use", NAME]) == 1
    assert "neither mode" in capsys.readouterr().err
    assert run(["models", "use", NAME, "--instruct"]) == 1
    assert "no chat template" in capsys.readouterr().err
    template = {"chat_template": "{{ messages[0].content }}"}
    (models_folder() / NAME / "tokenizer_config.json").write_text(json.dumps(template))
    assert run(["models", "use", NAME]) == 1
    assert "--instruct" in capsys.readouterr().err
    assert run(["models", "use", NAME, "--instruct"]) == 0
    assert chosen().model == NAME
    assert run(["models", "list"]) == 0
    assert f"* {NAME}" in capsys.readouterr().out
    assert run(["models", "use", "embedded"]) == 0
    assert chosen().model == "embedded"


def test_a_new_pull_replaces_the_old_model(server: HubServer) -> None:
    pull(server)
    (models_folder() / NAME / "stale").touch()
    pull(server)
    assert not (models_folder() / NAME / "stale").exists()
    assert pulled() == [NAME]
