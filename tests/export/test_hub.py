"""Models on the hub, by the hub's own library: `push` and `pull` against a hub on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="pip install 'longtail[hub]'")

from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.methods import create_method, load_model

from .fake_hub import FakeHub, running

REPOSITORY = "someone/tiny-model"
Command = Callable[..., str]


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running() as hub:
        yield hub


@pytest.fixture
def longtail(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command; the hub's own library asks this hub, as with HF_ENDPOINT, which it reads when it is imported."""
    files = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    for name, value in {"ENDPOINT": hub.address, "HUGGINGFACE_CO_URL_TEMPLATE": files}.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    for name, switch in {"HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", switch)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.chdir(tmp_path)

    def run(*words: str, fails: bool = False) -> str:
        capfd.readouterr()
        assert main([*words, "--quiet"]) == (2 if fails else 0)
        said = capfd.readouterr()
        assert not (fails and said.out)
        return said.err if fails else said.out

    return run


@pytest.fixture(scope="module")
def model(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    create_method("linear/fast").fit(tiny(n_texts=80).train).save(folder)
    return folder


@pytest.fixture(scope="module")
def other(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "other"
    create_method("knn").fit(tiny(n_texts=40).train).save(folder)
    return folder


def test_a_pushed_model_comes_back_by_its_commit_after_another_one_took_its_place(
    longtail: Command, hub: FakeHub, model: Path, other: Path, tmp_path: Path
) -> None:
    said = longtail("push", str(model), REPOSITORY, "--language", "en", "--license", "apache-2.0")
    commit = hub.heads[REPOSITORY]
    assert f"longtail pull {REPOSITORY} OUT --revision {commit}" in said
    files = hub.files(REPOSITORY)
    assert set(files) == {".gitattributes", "README.md", "config.json", *(file.name for file in model.iterdir())}
    assert json.loads(files["config.json"])["method"] == "linear"
    front, _, text = files["README.md"].decode().removeprefix("---\n").partition("---\n")
    facts = dict(line.split(": ", 1) for line in front.splitlines())
    assert json.loads(facts["library_name"]) == "longtail"
    assert json.loads(facts["pipeline_tag"]) == "text-classification"
    assert (json.loads(facts["language"]), json.loads(facts["license"])) == (["en"], "apache-2.0")
    assert f"longtail pull {REPOSITORY} tiny-model" in text

    longtail("push", str(other), REPOSITORY)
    now = set(hub.files(REPOSITORY))
    assert now == {".gitattributes", "README.md", "config.json", *(file.name for file in other.iterdir())}

    longtail("pull", REPOSITORY, "back", "--revision", commit)
    assert {file.name: file.read_bytes() for file in (tmp_path / "back").iterdir()} == {
        file.name: file.read_bytes() for file in model.iterdir()
    }
    longtail("pull", REPOSITORY, "back")  # the newest one takes its place
    assert load_model(tmp_path / "back").name == "knn"
    assert sorted(path.name for path in tmp_path.iterdir() if "back" in path.name) in (["back"], [".back.lock", "back"])


def test_a_changed_or_incomplete_model_never_takes_a_models_place(
    longtail: Command, hub: FakeHub, model: Path, tmp_path: Path
) -> None:
    longtail("push", str(model), REPOSITORY)
    good, files = hub.heads[REPOSITORY], hub.files(REPOSITORY)
    longtail("pull", REPOSITORY, "out")
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    largest = max((name for name in files if name.endswith(".safetensors")), key=lambda name: len(files[name]))
    changed = bytearray(files[largest])
    changed[-1] ^= 1
    hub.commit(REPOSITORY, {**files, largest: bytes(changed)})
    assert "damaged" in longtail("pull", REPOSITORY, "out", fails=True)
    hub.commit(REPOSITORY, {name: content for name, content in files.items() if name != largest})
    assert f"{largest} is missing" in longtail("pull", REPOSITORY, "out", fails=True)
    manifest = files["manifest.json"].replace(largest.encode(), b"../outside")
    hub.commit(REPOSITORY, {**files, "manifest.json": manifest})
    assert "manifest" in longtail("pull", REPOSITORY, "out", fails=True)
    hub.commit(REPOSITORY, {"README.md": b"something else"})
    assert "no manifest.json" in longtail("pull", REPOSITORY, "out", fails=True)
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before
    longtail("pull", REPOSITORY, "out", "--revision", good)


def test_what_is_not_there_is_one_line_with_a_next_step(longtail: Command, hub: FakeHub, tmp_path: Path) -> None:
    hub.commit(REPOSITORY, {"README.md": b""})
    for words, reason in (
        (("nobody/nothing", "out"), "is not on the hub"),
        ((REPOSITORY, "out", "--revision", "v9"), "no such revision"),
        (("a/b/c", "out"), "must be named like name/model"),
    ):
        said = longtail("pull", *words, fails=True)
        assert reason in said
        assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
