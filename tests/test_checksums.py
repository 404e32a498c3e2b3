"""Files that are known to have their checksum are not read again; changed ones are."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from longtail.checksums import first_damaged

RIGHT = hashlib.sha256(b"right").hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "longtail" / "verified.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"right")
    return tmp_path / "file"


def damaged(file: Path, *, again: bool = False, settled_after_s: float = -10.0) -> bool:
    return first_damaged({file: RIGHT}, again, settled_after_s=settled_after_s) is not None


def test_a_file_is_known_until_it_changes_even_if_its_times_are_put_back(file: Path, cache: Path) -> None:
    assert not damaged(file)
    assert cache.exists()
    status = file.stat()
    file.write_bytes(b"wrong")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert damaged(file)


def test_a_file_that_changed_just_now_is_not_known(file: Path, cache: Path) -> None:
    assert not damaged(file, settled_after_s=60)
    assert not cache.exists()


def test_a_known_file_is_not_read_unless_asked_for(file: Path, cache: Path) -> None:
    file.write_bytes(b"wrong")
    other = file.with_name("other")
    other.write_bytes(b"right")
    assert not damaged(other)
    identities = cache.read_text()
    status = [file.stat(), other.stat()]
    numbers = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in status]
    wrong, right = ("-".join(map(str, of_file)) for of_file in numbers)
    cache.write_text(identities.replace(right, wrong))
    assert not damaged(file)
    assert damaged(file, again=True)


@pytest.mark.parametrize("content", ["", "[]", "null", '{"a": 1}'])
def test_a_damaged_list_of_known_files_is_made_anew(file: Path, cache: Path, content: str) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(content)
    assert not damaged(file)
    assert "file" not in cache.read_text()


def test_without_a_place_for_the_list_files_are_read_every_time(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert not damaged(file)
    file.write_bytes(b"wrong")
    assert damaged(file)
