"""Folders that are whole or not there, and that say what is wrong with them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from longtail.errors import LongtailError, ModelFormatError
from longtail.persist import FORMAT_VERSION, MANIFEST, Folder, write_folder

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at Linux's own files")


def save(path: Path, number: int = 1, kind: str = "model") -> None:
    with write_folder(path, kind) as writer:
        writer.manifest["number"] = number
        writer.arrays("weights", {"a": np.full(1000, number), "b": np.arange(7, dtype=np.uint16)})
        writer.table("labels", pa.table({"id": ["x", "ÿ", str(number)]}))


def number_of(path: Path) -> int:
    """Open everything and check that it is of one piece."""
    folder = Folder(path, "model")
    number = int(folder.manifest["number"])
    np.testing.assert_array_equal(folder.arrays("weights")["a"], np.full(1000, number))
    assert folder.table("labels")["id"].to_pylist() == ["x", "ÿ", str(number)]
    return number


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save(tmp_path / "model")
    return tmp_path / "model"


# writing


def test_what_was_written_is_read_back(model: Path) -> None:
    assert number_of(model) == 1
    folder = Folder(model, "model", verify=True)
    assert folder.manifest["format"] == FORMAT_VERSION
    assert "weights.safetensors" in folder
    assert "other.safetensors" not in folder
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


def test_a_second_save_replaces_the_first(model: Path) -> None:
    save(model, 2)
    assert number_of(model) == 2
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


def test_folders_above_are_made(tmp_path: Path) -> None:
    save(tmp_path / "some" / "where" / "model")
    assert number_of(tmp_path / "some" / "where" / "model") == 1


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, OSError, SystemExit])
def test_an_error_while_writing_leaves_the_old_folder_and_nothing_else(model: Path, kind: type[BaseException]) -> None:
    with pytest.raises((kind, LongtailError)), write_folder(model, "model") as writer:
        writer.arrays("weights", {"a": np.zeros(3)})
        raise kind("no")
    assert number_of(model) == 1
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


def test_an_error_while_writing_a_first_folder_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), write_folder(tmp_path / "model", "model") as writer:
        writer.arrays("weights", {"a": np.zeros(3)})
        raise RuntimeError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("at", [1, 2])
def test_an_error_between_the_renames_brings_the_old_folder_back(
    model: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], at: int
) -> None:
    rename, calls = Path.rename, []

    def broken(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == at:
            raise kind("now")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises((kind, LongtailError)):
        save(model, 2)
    assert number_of(model) == 1
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


def test_leftovers_of_a_killed_run_with_the_same_number_are_no_hindrance(model: Path) -> None:
    left = model.with_name(f".model.{os.getpid()}.tmp")
    left.mkdir()
    (left / "stray").write_text("x")
    save(model, 2)
    assert number_of(model) == 2
    assert "stray" not in Folder(model, "model")


def test_a_link_to_a_folder_stays_a_link(model: Path) -> None:
    link = model.with_name("link")
    link.symlink_to(model, target_is_directory=True)
    save(link, 2)
    assert link.is_symlink()
    assert number_of(link) == number_of(model) == 2
    assert sorted(file.name for file in model.parent.iterdir()) == ["link", "model"]


def test_the_current_folder_can_be_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    save(Path())
    assert number_of(tmp_path / "here") == 1


# what must not be overwritten, and where nothing can be written


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    save(tmp_path / "model")
    assert number_of(tmp_path / "model") == 1


def test_somebody_elses_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    with pytest.raises(LongtailError, match="photos exists and is not a longtail model; choose another place"):
        save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "meow"


def test_a_folder_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    save(tmp_path / "stage", kind="stage")
    with pytest.raises(LongtailError, match="exists and is not a longtail model"):
        save(tmp_path / "stage")


def test_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    with pytest.raises(LongtailError, match="notes exists and is not a longtail model"):
        save(tmp_path / "notes")
    with pytest.raises(LongtailError, match=r"cannot write .*model: .*notes is not a writable folder"):
        save(tmp_path / "notes" / "model")
    assert (tmp_path / "notes").read_text() == "x"


def test_a_name_that_is_too_long_is_one_clear_line(tmp_path: Path) -> None:
    for length in (250, 300):
        with pytest.raises(LongtailError, match=r"cannot write .*: File name too long; .*choose another place"):
            save(tmp_path / ("x" * length))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is writable for root")
def test_an_unwritable_folder_is_one_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(LongtailError, match="is not a writable folder; choose another place"):
        save(tmp_path / "model")


@linux
def test_a_place_where_nothing_can_be_made_is_one_clear_line() -> None:
    with pytest.raises(LongtailError, match=r"cannot write /proc/nothing/model: .*choose another place"):
        save(Path("/proc/nothing/model"))


# a full disk


SAVE_MUCH = """
import resource, sys
import numpy as np, pyarrow as pa
from longtail.errors import LongtailError
from longtail.persist import write_folder

if sys.argv[3] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    with write_folder(sys.argv[1], "model") as writer:
        if sys.argv[2] == "arrays":
            writer.arrays("weights", {"a": np.zeros(100_000)})
        else:
            writer.table("labels", pa.table({"id": pa.array(np.arange(100_000))}))
except LongtailError as error:
    print(error)
    sys.exit(2)
"""


def save_much(path: Path, what: str, limit: str) -> str:
    """Try to save 800 kB in another process; its message."""
    command = [sys.executable, "-c", SAVE_MUCH, str(path), what, limit]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stdout.strip()


@linux
@pytest.mark.parametrize("what", ["arrays", "table"])
def test_a_file_that_cannot_grow_leaves_the_existing_model_whole(model: Path, what: str) -> None:
    message = save_much(model, what, "limit")
    assert message.startswith(f"cannot write {model}: ")
    assert "File too large" in message
    assert "nothing there was changed" in message
    assert "\n" not in message
    assert number_of(model) == 1
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@linux
@pytest.mark.parametrize("what", ["arrays", "table"])
def test_a_full_disk_leaves_the_existing_model_whole(small_disk: Path, what: str) -> None:
    save(small_disk / "model")
    message = save_much(small_disk / "model", what, "none")
    assert "No space left on device" in message
    assert "Free some space or choose another place" in message
    assert number_of(small_disk / "model") == 1
    assert sorted(file.name for file in small_disk.iterdir()) == ["model"]


# damage


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0x10
    file.write_bytes(content)


FILES = ["weights.safetensors", "labels.arrow"]


@pytest.mark.parametrize("file", [*FILES, MANIFEST])
def test_a_missing_file_is_named(model: Path, file: str) -> None:
    (model / file).unlink()
    with pytest.raises(ModelFormatError, match=file):
        Folder(model, "model")


@pytest.mark.parametrize("file", FILES)
def test_a_truncated_file_is_named_even_without_checksums(model: Path, file: str) -> None:
    content = (model / file).read_bytes()
    (model / file).write_bytes(content[:-1])
    with pytest.raises(ModelFormatError, match=rf"{file} has [\d,]+ bytes, must have [\d,]+; copy the model again"):
        Folder(model, "model", verify=False)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_flipped_bit_is_found_by_the_checksum(model: Path, file: str, share: float) -> None:
    flip(model / file, int((model / file).stat().st_size * share))
    with pytest.raises(ModelFormatError, match=rf"{file} is damaged \(checksum differs\)"):
        Folder(model, "model")


def test_a_flipped_bit_of_the_manifest_is_always_found(model: Path, tmp_path: Path) -> None:
    whole = (model / MANIFEST).read_bytes()
    for at in range(0, len(whole), 3):
        (model / MANIFEST).write_bytes(whole)
        flip(model / MANIFEST, at)
        if whole[at : at + 1].isspace() and json_equal(whole, (model / MANIFEST).read_bytes()):
            continue
        with pytest.raises(ModelFormatError):
            Folder(model, "model")


def json_equal(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_a_changed_manifest_is_refused(model: Path) -> None:
    manifest = json.loads((model / MANIFEST).read_text())
    (model / MANIFEST).write_text(json.dumps(manifest))  # laid out differently: no change
    assert number_of(model) == 1
    (model / MANIFEST).write_text(json.dumps({**manifest, "number": 7}))
    with pytest.raises(ModelFormatError, match=r"manifest\.json was changed after it was written"):
        Folder(model, "model")


@pytest.mark.parametrize("also", [{}, {"kind": "model"}, {"kind": "model", "checksum": "of tomorrow"}])
def test_a_newer_format_asks_for_a_newer_longtail(model: Path, also: dict[str, str]) -> None:
    (model / MANIFEST).write_text(json.dumps({"format": FORMAT_VERSION + 1, **also}))
    with pytest.raises(ModelFormatError, match="has format 3, this longtail reads up to 2; install a newer longtail"):
        Folder(model, "model")


@pytest.mark.parametrize("text", ["", "5", "[]", "null", "{}", '{"format": "x"}', '{"format": 1e400}', "[" * 100_000])
def test_a_manifest_that_is_none_is_named(model: Path, text: str) -> None:
    (model / MANIFEST).write_text(text)
    with pytest.raises(ModelFormatError, match=r"manifest\.json is damaged .*; save the model again"):
        Folder(model, "model")


def test_another_kind_of_folder_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "stage", kind="stage")
    with pytest.raises(ModelFormatError, match="holds a stage, not a model"):
        Folder(tmp_path / "stage", "model")


def test_a_folder_that_is_no_folder_of_ours_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", Path(__file__)):
        with pytest.raises(ModelFormatError, match=r"is not a longtail model: it has no manifest\.json"):
            Folder(path, "model")


def test_asking_for_what_is_not_there_names_it(model: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"has no tree\.safetensors"):
        Folder(model, "model").arrays("tree")


def test_a_damaged_table_is_a_table_or_a_clear_error(model: Path) -> None:
    file = model / "labels.arrow"
    whole, found = file.read_bytes(), set()
    for at in range(0, len(whole), 5):
        file.write_bytes(whole)
        flip(file, at)
        try:
            Folder(model, "model", verify=False).table("labels")
            found.add("table")
        except ModelFormatError as error:
            found.add("error")
            assert "labels.arrow is damaged" in str(error)
    assert found == {"table", "error"}


# memory maps


@linux
def test_arrays_are_mapped_not_read_and_writing_to_them_leaves_the_file_alone(model: Path) -> None:
    before = (model / "weights.safetensors").read_bytes()
    folder = Folder(model, "model")
    first, second = folder.arrays("weights")["a"], folder.arrays("weights")["a"]
    assert Path("/proc/self/maps").read_text().count(str(model / "weights.safetensors")) >= 2
    first[:] = 9
    assert (second == 1).all()
    assert (model / "weights.safetensors").read_bytes() == before


@linux
def test_an_open_model_can_be_replaced_while_somebody_reads_it(model: Path) -> None:
    array, table = Folder(model, "model").arrays("weights")["a"], Folder(model, "model").table("labels")
    save(model, 2)
    assert (array == 1).all()
    assert table["id"].to_pylist()[-1] == "1"
    assert number_of(model) == 2


def test_a_model_that_a_killed_replacement_had_moved_aside_is_put_back(tmp_path: Path) -> None:
    model, aside, new = tmp_path / "m[1]", tmp_path / ".m[1].12345.old", tmp_path / ".m[1].12345.tmp"
    save(model, 1)
    save(new, 2)
    model.rename(aside)  # what is left when the kill falls between the two renames
    assert number_of(model) == 1
    save(new, 2)
    model.rename(aside)
    save(model, 3)
    assert number_of(model) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m[1]"]


def test_a_model_that_was_replaced_never_comes_back(model: Path, tmp_path: Path) -> None:
    """A kill while the replaced model is removed leaves it behind; who then deletes the new one has no model."""
    model.rename(tmp_path / ".model.12345.old")
    with pytest.raises(ModelFormatError, match="is not a longtail model"):
        Folder(model, "model")
    save(model, 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model"]


def test_what_killed_processes_left_is_removed_by_the_next_save(model: Path, tmp_path: Path) -> None:
    for name in (".model.1.tmp", ".model.99999999.tmp", ".model.2.old"):
        (tmp_path / name).mkdir()
    (tmp_path / ".model.lock").touch()
    others = [".model.backup.old", ".model.1.tmp.txt", ".models.1.tmp"]
    for name in others:
        (tmp_path / name).mkdir()
    save(model, 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([*others, "model"])


REPLACE_AND_STOP = """
import os, signal, sys
from pathlib import Path
import numpy as np
from longtail.persist import write_folder

rename, calls = Path.rename, []

def stopping(self, target):
    calls.append(target)
    if len(calls) == 2:
        print("between", flush=True)
        sys.stdin.readline()
    return rename(self, target)

Path.rename = stopping
with write_folder(sys.argv[1], "model") as writer:
    writer.arrays("weights", {"a": np.zeros(3)})
"""


@linux
def test_a_reader_does_not_undo_a_replacement_that_is_going_on(model: Path) -> None:
    command = [sys.executable, "-c", REPLACE_AND_STOP, str(model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin
        assert writer.stdout
        assert writer.stdout.readline() == "between\n"
        with ThreadPoolExecutor(1) as pool:
            opened = pool.submit(Folder, model, "model")
            writer.stdin.write("\n")
            writer.stdin.flush()
            assert "number" not in opened.result().manifest
    assert writer.returncode == 0
    assert sorted(file.name for file in model.parent.iterdir()) == ["model"]


@linux
def test_a_process_that_dies_frees_its_lock(tmp_path: Path) -> None:
    code = "import os, sys; from pathlib import Path; from longtail.files import FileLock\n"
    code += "FileLock(Path(sys.argv[1])).acquire(); os.abort()"
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGABRT
    assert (tmp_path / ".model.lock").exists()
    save(tmp_path / "model", 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model"]


def test_files_that_longtail_did_not_write_are_not_deleted_with_the_older_model(model: Path) -> None:
    (model / "notes.txt").write_text("mine")
    (model / "plots").mkdir()
    with pytest.raises(LongtailError, match=r"holds 2 files that longtail did not write \(notes.txt, plots\)"):
        save(model, 2)
    assert (model / "notes.txt").read_text() == "mine"
    assert number_of(model) == 1
