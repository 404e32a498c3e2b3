"""A folder of texts is tagged file by file; work that was killed goes on, and files that are done stay as they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.errors import DataError
from longtail.folder_prediction import FolderSpec, tag_folder
from longtail.methods import create_method, load_model
from longtail.run.local import LocalEngine
from longtail.run.run import Run


@pytest.fixture
def model(tiny: Callable[..., Dataset], tmp_path: Path) -> Path:
    create_method("linear").fit(tiny().train, threads=1).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def texts(tiny: Callable[..., Dataset], tmp_path: Path) -> Path:
    """A folder of three Parquet files, and what tools leave in such folders."""
    folder = tmp_path / "in.parquet"
    folder.mkdir()
    every = tiny().test.texts["text"].to_pylist()
    for number, name in enumerate("abc"):
        some = every[number * 7 : number * 7 + 7]
        table = pa.table({"text": some, "id": [f"{name}{row}" for row in range(7)]})
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


def test_each_file_gets_a_file_with_the_suggestions_for_its_texts(model: Path, texts: Path, tmp_path: Path) -> None:
    done = tag_folder(FolderSpec(model, k=3, kept=("id",)), texts, tmp_path / "out.parquet", run=Run(LocalEngine(2)))
    assert done == (3, 0, 21)
    assert {path.name for path in (tmp_path / "out.parquet").glob("*.parquet")} == {f"{n}.parquet" for n in "abc"}
    opened = load_model(model)
    for name in "abc":
        found = pq.read_table(tmp_path / "out.parquet" / f"{name}.parquet")
        expected = opened.predict(pq.read_table(texts / f"{name}.parquet")["text"].to_pylist(), 3, threads=1)
        assert found["label_id"].to_pylist() == [label.id for labels in expected for label in labels]
        assert found["id"].to_pylist() == [f"{name}{row}" for row, labels in enumerate(expected) for _ in labels]


def test_files_that_are_done_are_not_made_again(model: Path, texts: Path, tmp_path: Path) -> None:
    out, spec = tmp_path / "out.parquet", FolderSpec(model)
    tag_folder(spec, texts, out)
    (out / "b.parquet").unlink()
    (out / ".12345678.b.parquet").write_bytes(b"what a killed process left")
    before = {path: path.stat().st_mtime_ns for path in out.glob("[ac].parquet")}
    assert tag_folder(spec, texts, out) == (3, 2, 7)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not (out / ".12345678.b.parquet").exists()
    assert tag_folder(spec, texts, out) == (3, 3, 0)


def test_a_file_whose_texts_were_changed_later_is_made_again(model: Path, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    tag_folder(FolderSpec(model), texts, out)
    later = (out / "a.parquet").stat().st_mtime_ns + 10**9
    os.utime(texts / "a.parquet", ns=(later, later))
    assert tag_folder(FolderSpec(model), texts, out) == (3, 2, 7)


def test_suggestions_of_other_options_are_not_mixed(model: Path, texts: Path, tmp_path: Path) -> None:
    tag_folder(FolderSpec(model, k=3), texts, tmp_path / "out.parquet")
    with pytest.raises(DataError, match="begun with another model or other options"):
        tag_folder(FolderSpec(model, k=4), texts, tmp_path / "out.parquet")
    with pytest.raises(DataError, match="must be a new folder"):
        tag_folder(FolderSpec(model), texts, model)
    with pytest.raises(DataError, match="the texts are read from"):
        tag_folder(FolderSpec(model), texts, texts)


def test_an_empty_folder_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="must hold files with texts, it has none"):
        tag_folder(FolderSpec(model), tmp_path / "empty", tmp_path / "out.parquet")


def test_the_command_line_tags_a_folder(
    model: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(texts)]) == 2
    assert "is a folder of files with texts; --out must name a folder" in capsys.readouterr().err
    command = ["predict", str(model), str(texts), "--out", str(tmp_path / "out.jsonl"), "--keep", "id", "-k", "2"]
    assert main(command) == 0
    assert "3 files; 21 texts tagged" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out.jsonl").glob("*.jsonl")} == {f"{n}.parquet.jsonl" for n in "abc"}
    assert main(command) == 0
    assert "3 files, 3 done before; 0 texts tagged" in capsys.readouterr().err
