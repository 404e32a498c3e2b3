"""A server that is killed without warning while people accept: what it answered for is kept, on both databases."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from longtail.data.dataset import Dataset
from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.history import log
from longtail.review.store import ReviewStore
from tests.serve.conftest import trained  # skips where libraries are missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")]
N_PEOPLE = 4


@pytest.fixture(scope="module")
def model(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    trained(tiny).save(folder)
    return folder


@pytest.mark.parametrize("n_accepts", [40, pytest.param(1000, marks=pytest.mark.campaign)])
def test_no_accept_that_was_answered_is_lost_when_the_server_is_killed(
    address: str, model: Path, n_accepts: int
) -> None:
    with ReviewStore.open(address) as store:
        texts = [Record({"text": f"text {number} word1a"}) for number in range(n_accepts + 50)]
        add_texts(store, make_queue(store, "news"), texts)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", str(port), "--reviews", address]
    answered: list[str] = []
    claimed: list[int] = []

    def accept(person: str) -> None:
        url = f"http://127.0.0.1:{port}/v1/review/queues/news"
        with httpx2.Client(timeout=60) as client:
            while True:
                try:
                    item = client.post(f"{url}/next", json={"person": person}).json()["item"]
                    claimed.append(item["text"])
                    body = {"key": f"{person}/text/{item['text']}", "text": item["text"], "person": person}
                    if client.post(f"{url}/decisions", json=body).status_code == 200:
                        answered.append(body["key"])
                except httpx2.HTTPError:
                    return
                if len(answered) >= n_accepts:
                    os.kill(server.pid, signal.SIGKILL)
                    return

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert any(line.strip() == "ready" for line in server.stderr or ())
        people = [threading.Thread(target=accept, args=(f"person {number}",)) for number in range(N_PEOPLE)]
        for person in people:
            person.start()
        for person in people:
            person.join()
    with ReviewStore.open(address, create=False) as store:
        kept = {row["key"] for row in log(store)}
    assert len(answered) >= n_accepts
    assert set(answered) <= kept
    assert len(kept - set(answered)) <= N_PEOPLE, "at most those that were under way"
    assert len(claimed) == len(set(claimed)), "two people never get the same text"
