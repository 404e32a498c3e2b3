"""Texts in files into files of predictions, killed and run again."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longtail.batch_prediction import BlockSpec, FileOptions, predict_block, predict_files
from longtail.data.blocks import TextBlock
from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, DataError, LongtailError
from longtail.files import FileLock
from longtail.methods import create_method, load_model
from longtail.persist import revision_of
from longtail.run.run import Run
from longtail.scores.call import Call

N = 400


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Dataset]) -> Path:
    folder = tmp_path_factory.mktemp("model") / "m"
    create_method("linear").fit(tiny().train).save(folder)
    return folder


@pytest.fixture
def titles(tmp_path: Path) -> Path:
    texts = [f"word{row % 8}a word{row % 8}b {row}" for row in range(N)]
    pq.write_table(pa.table({"text": texts, "id": range(N)}), tmp_path / "titles.parquet", row_group_size=90)
    return tmp_path / "titles.parquet"


def read(folder: Path) -> pa.Table:
    """Read the folder as other programs do."""
    return pq.read_table(folder)


def test_the_parts_together_are_all_texts_with_their_labels_in_order(model: Path, titles: Path, tmp_path: Path) -> None:
    done = predict_files(model, titles, tmp_path / "out", FileOptions(Call(2)), block_texts=64)
    assert (done.n_parts, done.n_parts_before, done.n_texts) == (7, 0, N)
    parts = [f"part-{number:05d}.parquet" for number in range(7)]
    assert sorted(file.name for file in done.folder.iterdir()) == ["_SUCCESS", "_longtail.json", *parts]
    table = read(done.folder)
    assert table["id"].to_pylist() == list(range(N))
    expected = load_model(model).predict(table["text"], k=2)
    assert table["label_ids"].to_pylist() == [[label.id for label in row] for row in expected]


def test_a_second_run_makes_only_the_parts_that_are_missing(model: Path, titles: Path, tmp_path: Path) -> None:
    out = predict_files(model, titles, tmp_path / "out", block_texts=100).folder
    whole = read(out)
    (out / "part-00002.parquet").unlink()
    stamps = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    done = predict_files(model, titles, out, block_texts=100, run=Run.of(threads=1))
    assert (done.n_parts, done.n_parts_before, done.n_texts) == (4, 3, 100)
    assert {name: (out / name).stat().st_mtime_ns for name in stamps} == stamps
    assert read(out).equals(whole)


def test_what_would_be_mixed_is_refused_in_one_line(
    model: Path, titles: Path, tmp_path: Path, tiny: Callable[..., Dataset]
) -> None:
    out = predict_files(model, titles, tmp_path / "out").folder
    before = read(out)
    with pytest.raises(ConfigError, match="out was begun with other options, which must not be mixed; remove it"):
        predict_files(model, titles, out, FileOptions(Call(3)))
    with pytest.raises(ConfigError, match="other options"):
        predict_files(model, titles, out, block_texts=7)
    create_method("linear", settings=["seed=1"]).fit(tiny().train).save(tmp_path / "other")
    with pytest.raises(ConfigError, match="begun with other model, which"):
        predict_files(tmp_path / "other", titles, out)
    pq.write_table(pq.read_table(titles).slice(1), titles)
    with pytest.raises(ConfigError, match="begun with other texts, which"):
        predict_files(model, titles, out)
    assert read(out).equals(before)


def test_other_files_and_other_processes_are_left_alone(model: Path, titles: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds other files; choose another place"):
        predict_files(model, titles, tmp_path)
    lock = FileLock(tmp_path / "out")
    lock.acquire()
    with pytest.raises(LongtailError, match="out is being written by another process"):
        predict_files(model, titles, tmp_path / "out")
    lock.release()
    with pytest.raises(ConfigError, match="block_texts must be at least 1, got 0"):
        predict_files(model, titles, tmp_path / "out", block_texts=0)
    pq.write_table(pq.read_table(titles).slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(DataError, match=r"none.parquet must hold at least one text"):
        predict_files(model, tmp_path / "none.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_block_is_done_by_a_function_of_a_small_spec_that_other_processes_can_run(
    model: Path, titles: Path, tmp_path: Path
) -> None:
    options = FileOptions(Call(1), keep=("id",))
    block = TextBlock(titles, 10, 15)
    spec = BlockSpec(model, revision_of(model), block, tmp_path / "part.parquet", options)
    assert len(pickle.dumps(spec)) < 2000
    assert pickle.loads(pickle.dumps(predict_block))(pickle.loads(pickle.dumps(spec))) == 5
    assert pq.read_table(spec.out)["id"].to_pylist() == [10, 11, 12, 13, 14]
    stale = BlockSpec(model, "another", block, tmp_path / "other.parquet", options)
    with pytest.raises(LongtailError, match="was replaced while texts were tagged"):
        predict_block(stale)
    assert not stale.out.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_two_kills_leave_neither_holes_nor_duplicates(model: Path, titles: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    command = [sys.executable, "-m", "longtail", "predict", model, titles, "--out", f"{out}/", "--block-texts", "8"]
    for wanted in (3, 12):
        process = subprocess.Popen([*map(str, command), "--quiet"])
        while process.poll() is None and len(list(out.glob("part-*"))) < wanted:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (out / "_SUCCESS").exists() or len(list(out.glob("part-*"))) == 50
    subprocess.run([*map(str, command), "--quiet"], check=True)
    assert read(out)["id"].to_pylist() == list(range(N))
    assert all(not file.name.startswith(".") for file in out.iterdir())
