"""What `longtail serve` does with requests that are not meant well: python benchmarks/serve_attack.py

    schemathesis   requests generated from /openapi.json, in an environment of its own: no answer may be a 5xx
    malformed      10,000 requests: random bytes, damaged heads and JSON, deep nesting, huge numbers, wrong types,
                   endless and 50 MB bodies, while connections are held open by a byte a second. Every answer must
                   be a 4xx or a closed connection, good requests in between must be answered, memory must stay flat

A small model of the bundled data set is served by one process, which waits a second for heads and bodies.
Results: results/serve_attack.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from environments import python_of
from machine import describe_run, memory_of

HERE = Path(__file__).parent
WORK = HERE / "work" / "serve"
RESULTS = HERE / "results" / "serve_attack.json"
GOOD = json.dumps({"texts": ["a text editor for gnome"], "k": 3}).encode()
LARGE = 50 << 20
PATHS = [
    *["/v1/tag"] * 3,
    "/v1/labels?q=a",
    "/v1/labels?q=%ff&limit=99999999999999999999",
    "/v1/explain",
    "/v1/model/reload",
    "/v1/projects/debtags/suggest",
    "/v1/projects/debtags/suggest-batch",
    "/nowhere",
    "/docs",
    "/%ff%00",
]


def framed(body: bytes, path: str = "/v1/tag", method: str = "POST", headers: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def values(rng: random.Random) -> Any:
    """A value that a field should not have."""
    return rng.choice(
        [
            *[None, True, -1, 0, 10**18, 10**40, 1e308, -1e-300],
            *["", "auto", "a" * rng.randint(1, 5000), "\u0000", "\U0001f600" * 50],
            *[[], [[]], [None], ["a", 7], [""] * rng.randint(1, 300), {}, {"a": {"b": []}}],
        ]
    )


def wrong_types(rng: random.Random) -> bytes:
    fields = ["texts", "records", "k", "threshold", "allow", "deny", "model", "documents", "text", "label", "x"]
    chosen = rng.sample(fields, rng.randint(0, 5))
    return framed(json.dumps({name: values(rng) for name in chosen}).encode(), rng.choice(PATHS))


def damaged_json(rng: random.Random) -> bytes:
    body = bytearray(GOOD)
    for _ in range(rng.randint(1, 6)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return framed(bytes(body[: rng.randint(0, len(body))]), rng.choice(PATHS))


def deep(rng: random.Random) -> bytes:
    opening = rng.choice([b"[", b'{"a":', b'{"records":[{"text":[', b'{"texts":['])
    return framed(opening * rng.randint(100, 200_000 // len(opening)), rng.choice(PATHS))


def huge_numbers(rng: random.Random) -> bytes:
    number = rng.choice(
        ["9" * rng.randint(20, 100_000), "1e" + "9" * rng.randint(1, 50), "-" + "9" * 400, "0." + "1" * 100_000]
    )
    field = rng.choice(["k", "threshold", "texts", "limit"])
    return framed(f'{{"texts": ["a"], "{field}": {number}}}'.encode(), rng.choice(PATHS))


def random_bytes(rng: random.Random) -> bytes:
    return rng.randbytes(rng.randint(1, 3000)) + b"\r\n\r\n"


def damaged_head(rng: random.Random) -> bytes:
    request = bytearray(
        framed(GOOD, rng.choice(PATHS), rng.choice(["POST", "GET", "PUT", "BREW", "DELETE", "OPTIONS"]))
    )
    for _ in range(rng.randint(1, 10)):
        request[rng.randrange(60)] = rng.randrange(256)
    return bytes(request)


def odd_heads(rng: random.Random) -> bytes:
    return rng.choice(
        [
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
            b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\na: " + b"b" * 100_000 + b"\r\n\r\n",
            b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
            b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
            b"POST /v1/tag HTTP/9.9\r\n\r\n",
            b"GET /v1/tag HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            framed(b"text=" + b"%ff" * 1000, "/v1/projects/debtags/suggest"),
            framed(b"&" * 100_000, "/v1/projects/debtags/suggest"),
            framed(GOOD, headers="Authorization: Bearer \xff\r\nOrigin: null\r\nContent-Encoding: gzip\r\n"),
        ]
    )


KINDS = [wrong_types, damaged_json, deep, huge_numbers, random_bytes, damaged_head, odd_heads]


class Attack:
    """Sends requests to one server and counts what comes back."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid
        self.answers: Counter[str] = Counter()
        self.faults: list[str] = []

    async def exchange(self, request: bytes, timeout_s: float = 20.0) -> bytes:
        """Send bytes and return the first of what comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            try:
                await asyncio.wait_for(writer.drain(), timeout_s)
                return await asyncio.wait_for(reader.read(65536), timeout_s)
            except (ConnectionError, OSError):
                return b""
            except TimeoutError:
                return b"no answer"
        finally:
            writer.close()

    async def send(self, kind: str, request: bytes) -> None:
        answer = await self.exchange(request)
        status = (
            answer[9:12].decode("latin-1")
            if answer.startswith(b"HTTP/1.1 ")
            else answer.decode("latin-1")[:12] or "closed"
        )
        self.answers[status] += 1
        if status.startswith("5") or status == "no answer":
            self.faults.append(f"{kind}: {status} for {request[:200]!r}")

    async def large_body(self, chunked: bool) -> None:
        """Send 50 MB, or until the other side has had enough."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % LARGE
        piece = b"a" * (1 << 16)
        try:
            writer.write(b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
            for _ in range(LARGE // len(piece)):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                await asyncio.wait_for(writer.drain(), 20)
            answer = await asyncio.wait_for(reader.read(65536), 20)
            self.answers[answer[9:12].decode("latin-1") or "closed"] += 1
        except (ConnectionError, OSError, TimeoutError):
            self.answers["closed"] += 1
        finally:
            writer.close()

    async def slowly(self, until: float) -> None:
        """Hold connections open with a byte a second."""
        while time.monotonic() < until:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                for byte in b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + b"{" * 1000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1)
                    if time.monotonic() > until:
                        break
                writer.close()
            except (ConnectionError, OSError):
                self.answers["slow one closed"] += 1

    async def good(self) -> None:
        answer = await self.exchange(framed(GOOD))
        self.answers["good answered" if answer.startswith(b"HTTP/1.1 200") else "good failed"] += 1

    async def run(self, n_requests: int, seed: int) -> dict[str, Any]:
        rng = random.Random(seed)
        memory: list[float] = []
        slow = [asyncio.create_task(self.slowly(time.monotonic() + 3600)) for _ in range(100)]
        start = time.monotonic()
        for first in range(0, n_requests, 100):
            jobs = []
            for _ in range(99):
                make = rng.choice(KINDS)
                jobs.append(self.send(make.__name__, make(rng)))
            jobs.append(self.large_body(chunked=bool(first % 200)))
            jobs.append(self.good())
            await asyncio.gather(*jobs)
            memory.append(round(memory_of(self.pid) / 2**20, 1))
        for task in slow:
            task.cancel()
        await self.good()
        tenth = max(1, len(memory) // 10)
        return {
            "requests": n_requests,
            "seconds": round(time.monotonic() - start, 1),
            "answers": dict(sorted(self.answers.items())),
            "faults": self.faults[:20],
            "memory_mb": {"first_tenth": max(memory[:tenth]), "last_tenth": max(memory[-tenth:]), "most": max(memory)},
        }


def schemathesis(port: int, n_examples: int) -> dict[str, Any]:
    """Let schemathesis look for 5xx."""
    program = python_of("schemathesis", WORK / "environments").parent / "schemathesis"
    command = [str(program), "run", f"http://127.0.0.1:{port}/openapi.json", "--checks", "not_a_server_error"]
    command += ["--max-examples", str(n_examples), "--seed", "1", "--continue-on-failure", "--no-color"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=WORK)
    (WORK / "schemathesis.log").write_text(ran.stdout + ran.stderr)
    tail = [
        line.strip()
        for line in ran.stdout.splitlines()
        if re.search(r"generated|passed|failed|Operations|Selected|Tested", line)
    ]
    return {"exit_code": ran.returncode, "said": tail}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    model = WORK / "debtags"
    if not model.exists():
        command = [sys.executable, "-m", "longtail", "train", "debtags-sample", "--out", str(model), "--quiet"]
        subprocess.run(command, check=True)
    command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0", "--set", "read_timeout_s=1.0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log = open(WORK / "server.log", "w")  # noqa: SIM115
    try:
        first = process.stderr.readline()
        port = int(re.search(r":(\d+) serves", first)[1])
        subprocess.Popen(["cat"], stdin=process.stderr, stdout=log)
        ready = f"curl -s --retry 60 --retry-connrefused --retry-delay 1 http://127.0.0.1:{port}/readyz"
        subprocess.run(ready.split(), check=True, capture_output=True)
        tested = schemathesis(port, arguments.examples)
        attacked = asyncio.run(Attack(port, process.pid).run(arguments.requests, arguments.seed))
        alive = process.poll() is None
    finally:
        process.terminate()
        code = process.wait()
        log.close()
    attacked |= {"alive": alive, "exit_code": code}
    found = {"run": describe_run(1), "schemathesis": tested, "malformed": attacked}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({"schemathesis": tested, "malformed": attacked}, indent=1))


if __name__ == "__main__":
    main()
