from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from longtail.errors import DataError
from longtail.review.adding import find_queue, make_queue
from longtail.review.history import log
from longtail.review.store import ReviewStore, is_store

REVIEWER = """
import sys
from longtail.review.adding import find_queue
from longtail.review.desk import Decision, Shown, claim, decide
from longtail.review.store import ReviewStore

with ReviewStore.open(sys.argv[1]) as store:
    queue, person = find_queue(store, "news"), sys.argv[2]
    while (text := claim(store, queue, person)) is not None:
        key = f"{person}/{text.id}"
        decide(store, Decision(key, text.id, person, ("x",), (Shown("x", 0.5, True, "Ex"),)))
        print(key, flush=True)
"""
"""Accepts text after text, and says so when each is kept."""


def accept_and_kill(address: str, person: str, n_accepts: int) -> set[str]:
    """Let a process accept, kill it without warning, and return what it reported as kept."""
    command = [sys.executable, "-c", REVIEWER, address, person]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reported = {process.stdout.readline().strip() for _ in range(n_accepts)}
        os.kill(process.pid, signal.SIGKILL)
        return (reported | {line.strip() for line in process.stdout if line.endswith("\n")}) - {""}


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
@pytest.mark.parametrize("n_accepts", [3, 40])
def test_no_accept_that_was_reported_is_lost_when_the_process_is_killed(
    address: str, n_accepts: int, queue_of: object
) -> None:
    with ReviewStore.open(address) as store:
        queue_of(store, 200)  # type: ignore[operator]
    reported = accept_and_kill(address, "ada", n_accepts)
    assert len(reported) >= n_accepts
    with ReviewStore.open(address, create=False) as store:
        kept = {row["key"] for row in log(store)}
    assert reported <= kept
    assert len(kept - reported) <= 1, "at most the one that was under way"


@pytest.mark.campaign
@pytest.mark.parametrize("n_accepts", [1, 10, 100, 300, 600, 1000])
def test_no_accept_of_a_thousand_is_lost(address: str, n_accepts: int, queue_of: object) -> None:
    with ReviewStore.open(address) as store:
        queue_of(store, 2000)  # type: ignore[operator]
    reported = accept_and_kill(address, "ada", n_accepts)
    with ReviewStore.open(address, create=False) as store:
        assert reported <= {row["key"] for row in log(store)}


def test_a_store_is_known_by_its_file_and_not_by_its_name(tmp_path: Path) -> None:
    ReviewStore.open(tmp_path / "x").close()
    assert is_store(tmp_path / "x")
    (tmp_path / "y.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    assert not is_store(tmp_path / "y.db")
    assert not is_store(tmp_path)
    assert not is_store(tmp_path / "none")


def test_sqlite_writes_to_the_disk_before_it_reports(sqlite: ReviewStore) -> None:
    with sqlite.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2, "FULL"
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_store_opens_twice_and_keeps_what_it_has(address: str) -> None:
    with ReviewStore.open(address) as first, ReviewStore.open(address) as second:
        make_queue(first, "news")
        assert find_queue(second, "news").name == "news"


def test_a_missing_store_is_made_only_where_that_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no review store .*; `longtail review add` makes one"):
        ReviewStore.open(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE other (id INTEGER)")
    engine.dispose()
    with pytest.raises(DataError, match="holds other tables; choose another"):
        ReviewStore.open(tmp_path / "other.db")


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    with ReviewStore.open(tmp_path / "r.db") as store, store.writing() as connection:
        connection.exec_driver_sql("UPDATE longtail_review SET version = 2")
    with pytest.raises(DataError, match="must be a review store of version 1, got 2; upgrade longtail"):
        ReviewStore.open(tmp_path / "r.db")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("mysql://localhost/x", "must be a file or begin with postgresql://"),
        ("no/such/folder/reviews.db", "must be a file in a folder that exists"),
        ("postgresql://localhost:1/x", "cannot use the review store .*; is the server running"),
        ("postgresql://user:secret@localhost:nonsense/x", "must be named postgresql://user:password@host/database"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line(address: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        ReviewStore.open(address)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "reviews.db").write_text("not a database, but long enough to look at" * 10)
    with pytest.raises(DataError, match=r"cannot use the review store .*: file is not a database"):
        ReviewStore.open(tmp_path / "reviews.db")
