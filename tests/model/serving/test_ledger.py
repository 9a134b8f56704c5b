"""Feedback on served answers goes to the store that `redraft tune` learns from."""

from __future__ import annotations

from pathlib import Path

from edit_prompt_shapes import Situation, kilo
from served import Serve

from model.feedback import Store
from model.training.labels import label

EDIT = kilo(Situation("src/a.py", ("total = 1", "print(count)"), 0, 1, 1, 6))


def test_feedback_is_kept_and_read_as_a_label(serve: Serve, tmp_path: Path) -> None:
    served = serve(feedback=tmp_path / "kept" / "f.sqlite3")
    ids = {}
    for action in ("accept", "reject", "ignore"):
        ids[action] = served.edit(EDIT).json()["id"]
        told = {"request_id": ids[action], "user_action": action, "provider_name": "cursortab-nvim"}
        assert served.client.post("/feedback", json=told).json() == {"status": "ok"}
    unreported = served.edit(EDIT).json()["id"]
    served.service.ledger.close()
    with Store(tmp_path / "kept" / "f.sqlite3") as store:
        lives = {life.suggested.id: life for life in store.lives()}
    assert unreported not in lives
    assert {action: label(lives[id]) for action, id in ids.items()} == {
        "accept": True,
        "reject": False,
        "ignore": None,
    }
    kept = lives[ids["accept"]].suggested
    assert (kept.mode, kept.language, kept.model, kept.text) == (
        "next_edit",
        "py",
        "scripted",
        None,
    )
    assert kept.confidence == 0.9


def test_without_a_store_nothing_is_written(serve: Serve, home: Path) -> None:
    served = serve()
    id = served.fim().json()["id"]
    told = {"request_id": id, "user_action": "accept"}
    assert served.client.post("/feedback", json=told).status_code == 200
    assert not home.exists()


def test_a_store_that_cannot_be_used_does_not_end_the_service(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    served = serve(feedback=tmp_path / "file" / "f.sqlite3")
    told = {"request_id": served.fim().json()["id"], "user_action": "reject"}
    assert served.client.post("/feedback", json=told).status_code == 200
    served.service.ledger.close()
    assert "cannot be used" in served.service.ledger.problem
