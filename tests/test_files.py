"""Files that are whole or not there, and locks that end with their process."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from longtail.errors import LongtailError
from longtail.files import FileLock, whole, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_replaced_at_the_end_or_not_at_all(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "x.txt", "one")
    with pytest.raises(KeyError), whole(tmp_path / "new" / "x.txt") as temporary:
        temporary.write_text("two")
        raise KeyError
    assert (tmp_path / "new" / "x.txt").read_text() == "one"
    assert names(tmp_path / "new") == ["x.txt"]


def test_what_a_killed_process_left_is_removed_but_not_what_a_living_one_writes(tmp_path: Path) -> None:
    for name in (".17.x.txt", ".18.x.txt", ".a.x.txt", ".17.y.txt"):
        (tmp_path / name).touch()
    living = FileLock(tmp_path / ".18.x.txt")
    assert living.acquire()
    write_text(tmp_path / "x.txt", "one")
    living.release()
    assert names(tmp_path) == [".17.y.txt", ".18.x.txt", ".a.x.txt", "x.txt"]


@posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "x")
    for text in ("one", "two"):  # a link to nothing, then to a file
        write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "x").read_text() == text


@posix
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text(tmp_path / "pipe", "one")
    reader.join()
    assert read == ["one"]
    assert (tmp_path / "pipe").is_fifo()


@posix
def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for device in (Path("/dev/null"), tmp_path / "null"):
        write_text(device, "x")
        assert device.is_char_device()
    assert names(tmp_path) == ["null"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at Linux's own files")
def test_a_full_device_is_one_clear_line() -> None:
    with pytest.raises(LongtailError, match="cannot write /dev/full: No space left on device; choose another place"):
        write_text(Path("/dev/full"), "x")


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path: Path) -> None:
    one, other = FileLock(tmp_path / "x"), FileLock(tmp_path / "x")
    assert one.acquire(wait=False)
    assert not other.acquire(wait=False)
    one.release()
    assert other.acquire()
    other.release()
    assert names(tmp_path) == []
