"""Real server processes: what they say, how they reload and end, several workers, connections that send too little."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from longtail.data.dataset import Dataset

from .conftest import TAGGER, bearer, problem, trained

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]
BODY = {"texts": ["word1a word2b"]}
PATIENCE_S = 60


class Server:
    """A running `longtail serve`."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0", *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self.url = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if match := re.search(r"(http://\S+) serves", line):
                self.url = match[1]
                break
        threading.Thread(target=lambda: self.said.extend(self.process.stderr or ()), daemon=True).start()

    def wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if httpx2.get(f"{self.url}/readyz", timeout=PATIENCE_S).status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"not ready: {self.said}")

    def tag(self, **asked: Any) -> Any:
        return httpx2.post(f"{self.url}/v1/tag", json=BODY, timeout=PATIENCE_S, **asked)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextmanager
def running(model: Path, *flags: str) -> Iterator[Server]:
    server = Server(model, *flags)
    try:
        server.wait_until_ready()
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@contextmanager
def under_load(server: Server, n_threads: int = 4) -> Iterator[list[Any]]:
    """Send requests all the time, each thread on a connection of its own; yield the list of answers."""
    answers: list[Any] = []
    stop = threading.Event()

    def ask() -> None:
        with httpx2.Client(timeout=PATIENCE_S) as client:
            while not stop.is_set():
                try:
                    answers.append(client.post(f"{server.url}/v1/tag", json=BODY).status_code)
                except httpx2.TransportError as error:
                    answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_model_is_replaced_without_a_failed_request(
    tiny: Callable[..., Dataset], tmp_path: Path, n_workers: int
) -> None:
    trained(tiny).save(tmp_path / "m")
    new = trained(tiny, seed=1)
    with running(tmp_path / "m", "--workers", str(n_workers)) as server:
        before = server.tag().json()["revision"]
        with under_load(server) as answers:
            wait_for(lambda: len(answers) > 20)
            new.save(tmp_path / "m")
            if n_workers == 1:
                server.process.send_signal(signal.SIGHUP)
            else:
                assert httpx2.post(f"{server.url}/v1/model/reload", timeout=PATIENCE_S).json()["reloaded"] == ["m"]
            wait_for(lambda: all(server.tag().json()["revision"] != before for _ in range(20)))
            n_answers = len(answers)
            wait_for(lambda: len(answers) > n_answers + 20)
        assert set(answers) == {200}
        assert server.end() == 0


def test_a_model_that_cannot_be_opened_stays_as_it_was(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    trained(tiny).save(tmp_path / "m")
    with running(tmp_path / "m") as server:
        (tmp_path / "m" / "manifest.json").write_text("{}")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any("nothing was reloaded" in line for line in server.said))
        assert server.tag().status_code == 200


def test_what_has_begun_is_ended_at_sigterm(folder: Path) -> None:
    with running(folder, "--set", "batch_wait_s=1.0") as server, ExitStack() as stack:
        answers: list[Any] = []
        threads = [threading.Thread(target=lambda: answers.append(server.tag())) for _ in range(3)]
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        wait_for(lambda: "in_progress 3.0" in httpx2.get(f"{server.url}/metrics").text)
        assert server.end() == 0
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [200] * 3


def test_workers_answer_together_and_a_dead_one_is_replaced(folder: Path) -> None:
    with running(folder, "--workers", "2") as server:
        children = children_of(server.process.pid)
        assert len(children) == 2
        for _ in range(10):
            assert server.tag().status_code == 200
        numbers = httpx2.get(f"{server.url}/metrics").text
        assert 'longtail_texts_total{model="tiny"} 10.0' in numbers
        os.kill(children[0], signal.SIGKILL)
        wait_for(lambda: len(new := children_of(server.process.pid)) == 2 and children[0] not in new)
        for _ in range(10):
            assert server.tag().status_code == 200
        assert server.end(signal.SIGINT) == 0
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_workers_end_with_their_supervisor(folder: Path) -> None:
    with running(folder, "--workers", "2") as server:
        children = children_of(server.process.pid)
        server.process.kill()
        wait_for(lambda: not [child for child in children if is_alive(child)])


def test_connections_that_send_too_little_or_too_much_are_closed(folder: Path) -> None:
    with running(folder, "--set", "read_timeout_s=0.5") as server:
        port = int(server.url.rpartition(":")[2])
        head = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\n"
        for sent in (b"", b"GET /healthz HT", head, head + b"Content-Length: 100\r\n\r\n{"):
            said = exchange(port, sent)
            assert b"408" in said.partition(b"\r\n")[0] if sent.endswith(b"{") else said == b""
        for sent in (b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"):
            said = exchange(port, sent)
            assert said.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
        assert server.tag().status_code == 200


def exchange(port: int, sent: bytes) -> bytes:
    """Send bytes and return all that comes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        said = b""
        try:
            connection.sendall(sent)
            while piece := connection.recv(65536):
                said += piece
        except ConnectionError:
            pass
        return said


def test_tokens_are_asked_for_and_an_open_address_without_them_is_warned_of(folder: Path, tokens: Path) -> None:
    with running(folder, "--tokens", str(tokens), "--host", "0.0.0.0") as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        problem(server.tag(), 401)
        assert server.tag(headers=bearer(TAGGER)).status_code == 200
        assert not [line for line in server.said if "everybody" in line]
    with running(folder, "--host", "0.0.0.0") as server:
        assert [line for line in server.said if line.startswith("note: everybody who reaches this machine may use")]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
