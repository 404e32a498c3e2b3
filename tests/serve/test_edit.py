"""Labels of a served model are changed over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from longtail.data.dataset import Dataset
from longtail.methods import load_model
from longtail.serve.app import create_app
from longtail.serve.models import Models
from longtail.serve.settings import ServeSettings

from .conftest import ADMIN, REVIEWER, bearer, problem, trained

EDITS = "/v1/labels/edits"


@pytest.fixture(scope="module")
def saved(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edited") / "m"
    trained(tiny, n_texts=700).save(path)
    return path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    load_model(saved).save(tmp_path / "m")
    return tmp_path / "m"


def test_labels_are_tagged_as_they_are_after_an_edit(folder: Path) -> None:
    with TestClient(create_app(Models.open({"m": folder}))) as client:

        def suggested(text: str) -> dict[str, str]:
            labels = client.post("/v1/tag", json={"texts": [text], "k": 13}).json()["results"][0]["labels"]
            return {label["id"]: label["name"] for label in labels}

        done = client.post(
            EDITS, json={"action": "rename", "label": "word3a", "name": "Three", "person": "Anna"}
        ).json()
        assert (done["action"], done["label"], done["name"], done["person"]) == ("rename", "label3", "Three", "Anna")
        assert done["revision"] == client.get("/v1/model").json()["models"][0]["revision"]
        assert suggested("word3a word3b")["label3"] == "Three"
        client.post(EDITS, json={"action": "retire", "label": "label3"})
        assert "label3" not in suggested("word3a word3b")
        examples = ["word1a word2b", "word1b word2c", "word1c word2a"]
        assert (
            client.post(EDITS, json={"action": "add", "name": "Both", "examples": examples}).json()["label"] == "both"
        )
        assert "both" in suggested("word1a word2a")
        [label, *_] = client.get("/v1/labels", params={"q": "Both"}).json()["labels"]
        assert (label["id"], label["n_train_texts"]) == ("both", 3)
        for action in ("add", "retire", "rename"):
            assert client.post(EDITS, json={"action": "undo"}).json()["action"] == "undo", action
        assert suggested("word3a word3b")["label3"] == "word3a"
        assert [edit.action for edit in load_model(folder).label_history][:3] == ["rename", "retire", "add"]


def test_edits_that_cannot_be_are_problems(folder: Path) -> None:
    with TestClient(create_app(Models.open({"m": folder}))) as client:
        assert "no label 'q'" in problem(client.post(EDITS, json={"action": "retire", "label": "q"}), 422)
        assert "nothing to restore" in problem(client.post(EDITS, json={"action": "restore", "label": "label1"}), 422)
        problem(client.post(EDITS, json={"action": "delete", "label": "label1"}), 422)
        problem(client.post(EDITS, json={"action": "undo", "model": "other"}), 404)
    assert load_model(folder).label_history == ()


def test_only_an_admin_changes_labels(folder: Path, tokens: Path) -> None:
    with TestClient(create_app(Models.open({"m": folder}), ServeSettings.of({"tokens": str(tokens)}))) as client:
        asked = {"action": "retire", "label": "label1"}
        problem(client.post(EDITS, json=asked), 401)
        problem(client.post(EDITS, json=asked, headers=bearer(REVIEWER)), 403)
        assert client.post(EDITS, json=asked, headers=bearer(ADMIN)).status_code == 200


def test_the_history_says_what_was_changed_by_whom_and_what_was_undone(folder: Path, tokens: Path) -> None:
    with TestClient(create_app(Models.open({"m": folder}), ServeSettings.of({"tokens": str(tokens)}))) as client:
        problem(client.get(EDITS), 401)
        empty = client.get(EDITS, headers=bearer(REVIEWER)).json()
        assert (empty["edits"], empty["may_edit"], empty["person"]) == ([], False, "anna")
        for asked in (
            {"action": "rename", "label": "label3", "name": "Three", "person": "somebody else"},
            {"action": "rename", "label": "label3", "name": "3"},
            {"action": "undo"},
            {"action": "merge", "label": "label4", "into": "label3"},
            {"action": "add", "name": "New", "examples": ["word1a", {"text": "word1b"}], "alternatives": ["Newer"]},
        ):
            assert client.post(EDITS, json=asked, headers=bearer(ADMIN)).status_code == 200
        told = client.get(EDITS, headers=bearer(ADMIN)).json()
        assert told["may_edit"]
        rows = [(one["action"], one["old_name"], one["name"], one["undone"]) for one in told["edits"]]
        assert rows == [
            ("rename", "word3a", "Three", False),
            ("rename", "Three", "3", True),
            ("undo", "", "", False),
            ("merge", "", "word4a", False),
            ("add", "", "New", False),
        ]
        assert (told["edits"][3]["into_name"], told["edits"][4]["n_examples"]) == ("Three", 2)
        assert {one["person"] for one in told["edits"]} == {"ops"}, "the name beside the token counts"
        last = client.get(EDITS, params={"limit": 1}, headers=bearer(ADMIN)).json()
        assert ([one["action"] for one in last["edits"]], last["n_edits"]) == (["add"], 5)
    assert load_model(folder).vocabulary_.alternatives(12) == ["Newer"]


def test_labels_that_are_no_longer_in_use_are_found_only_when_asked_for(folder: Path) -> None:
    with TestClient(create_app(Models.open({"m": folder}))) as client:

        def found(**more: object) -> dict[str, str]:
            labels = client.get("/v1/labels", params={"q": "word3a", "limit": 1, **more}).json()["labels"]
            return {label["id"]: label["state"] for label in labels}

        assert found() == {"label3": ""}
        client.post(EDITS, json={"action": "merge", "label": "label3", "into": "label4"})
        assert "label3" not in found()
        assert found(in_use=False) == {"label3": "merged into 'label4'"}
