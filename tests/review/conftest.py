"""Stores to test with: a SQLite file and, where PostgreSQL is installed, a database of a server made for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs pip install 'longtail[review]'")

from longtail.review.adding import Queue, Record, add_texts, make_queue
from longtail.review.store import ReviewStore

_NUMBERS = count()


def postgresql_bin() -> Path | None:
    """The folder of PostgreSQL's programs, as Debian or a path has it."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return folders[0] if folders else None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server without its database; it listens on a socket in a folder of its own."""
    pytest.importorskip("psycopg", reason="needs pip install 'longtail[review]'")
    programs = postgresql_bin()
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if programs is None or (is_root and not shutil.which("runuser")):
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    as_user = ["runuser", "-u", "postgres", "--"] if is_root else []
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # not below pytest's folder: sockets have short names
        folder = Path(name)
        if is_root:
            shutil.chown(folder, "postgres")
        data, log = folder / "data", folder / "log"
        run([*as_user, str(programs / "initdb"), "-D", str(data), "-U", "tests", "-A", "trust", "-N", "-E", "UTF8"])
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w", "-t", "60"]
        run([*control, "-l", str(log), "-o", options, "start"])
        try:
            yield f"postgresql://tests@/{{}}?host={folder}"
        finally:
            run([*control, "-m", "immediate", "stop"])


def run(command: Sequence[str]) -> None:
    """Run a program; its output is shown if it fails. It may leave a server behind that keeps the streams open."""
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        assert ended.returncode == 0, output.read().decode()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "reviews.db")
    import psycopg

    server = request.getfixturevalue("postgresql")
    name = f"reviews{next(_NUMBERS)}"
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(server.format(name))


@pytest.fixture
def store(address: str) -> Iterator[ReviewStore]:
    """An empty store of each kind."""
    with ReviewStore.open(address) as opened:
        yield opened


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[ReviewStore]:
    """An empty SQLite store, for what does not depend on the database."""
    with ReviewStore.open(tmp_path / "reviews.db") as opened:
        yield opened


@pytest.fixture
def queue_of() -> Callable[..., Queue]:
    """A maker of queues: `queue_of(store, n_texts, per_text=2)`."""

    def make(store: ReviewStore, n_texts: int = 5, name: str = "news", **options: object) -> Queue:
        queue = make_queue(store, name, options)
        add_texts(store, queue, [Record({"text": f"text {number}"}) for number in range(n_texts)])
        return queue

    return make


def wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait for a condition; fail if it does not come."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs a Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
