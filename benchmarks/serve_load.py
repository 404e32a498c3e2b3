"""A load generator for HTTP/1.1 that takes little time itself: python benchmarks/serve_load.py < plan.json

One process, raw connections, answers read only as far as it takes to count them. A plan:

    {"host": "127.0.0.1", "port": 8000, "connections": 64, "seconds": 10, "rate": null, "bodies": "bodies.bin"}

Without a `rate` each connection sends its next request as soon as the last one is answered. With one, requests begin at
even times whatever the server does; one that finds no free connection waits, and its time counts from when it should
have begun. `bodies` holds whole requests: 4 bytes of length and the bytes of each, sent in turn.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from itertools import cycle
from pathlib import Path

import uvloop


class Connection(asyncio.Protocol):
    """Sends requests one after the other."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.began = 0.0
        self.buffer = b""
        self.busy = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.load.free(self)

    def send(self, began: float) -> None:
        self.began, self.busy = began, True
        self.transport.write(next(self.load.requests))

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.lower().find(b"content-length: ", 0, head)
        length = int(self.buffer[at + 16 : self.buffer.index(b"\r\n", at)])
        if len(self.buffer) < head + 4 + length:
            return
        self.load.answered(self, self.buffer[9:12], time.perf_counter())
        self.buffer, self.busy = b"", False
        self.load.free(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.busy and not self.load.is_over:
            self.load.failures.append("connection lost")
        self.load.lost()


class Load:
    """One run."""

    def __init__(self, plan: dict) -> None:
        self.plan = plan
        self.requests = cycle(read_requests(plan["bodies"]))
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self.idle: deque[Connection] = deque()
        self.due: deque[float] = deque()
        self.is_over = False
        self.n_open = 0
        self.pause_s = plan.get("pause_s", 0)

    def free(self, connection: Connection) -> None:
        if self.is_over:
            connection.transport.close()
        elif self.plan.get("rate"):
            if self.due:
                connection.send(self.due.popleft())
            else:
                self.idle.append(connection)
        elif self.pause_s and connection.began:
            asyncio.get_running_loop().call_later(
                self.pause_s, lambda: self.is_over or connection.send(time.perf_counter())
            )
        else:
            connection.send(time.perf_counter())

    def answered(self, connection: Connection, status: bytes, now: float) -> None:
        if connection.began >= self.start:
            self.seconds.append(now - connection.began)
            if status != b"200":
                self.failures.append(status.decode())

    def lost(self) -> None:
        self.n_open -= 1

    async def run(self) -> dict:
        loop = asyncio.get_running_loop()
        self.start = time.perf_counter() + self.plan.get("warm_up_s", 1.0)
        for _ in range(self.plan["connections"]):
            await loop.create_connection(lambda: Connection(self), self.plan["host"], self.plan["port"])
            self.n_open += 1
        await asyncio.sleep(max(0, self.start - time.perf_counter()) if not self.plan.get("rate") else 0)
        cpu, begin = time.process_time(), time.perf_counter()
        end = self.start + self.plan["seconds"]
        if rate := self.plan.get("rate"):
            n_sent = 0
            while (now := time.perf_counter()) < end:
                while begin + n_sent / rate <= now:
                    due, n_sent = begin + n_sent / rate, n_sent + 1
                    if self.idle:
                        self.idle.popleft().send(due)
                    else:
                        self.due.append(due)
                await asyncio.sleep(max(0.0, begin + n_sent / rate - time.perf_counter()))
        else:
            await asyncio.sleep(end - time.perf_counter())
        wall, used = time.perf_counter() - begin, time.process_time() - cpu
        measured = end - self.start
        self.is_over = True
        for connection in self.idle:
            connection.transport.close()
        for _ in range(200):
            if self.n_open <= 0:
                break
            await asyncio.sleep(0.05)
        taken = sorted(self.seconds)
        return {
            "requests": len(taken),
            "failed": len(self.failures),
            "failures": sorted(set(self.failures)),
            "requests_per_s": round(len(taken) / measured, 1),
            "ms": {
                name: round(1000 * taken[min(int(share * len(taken)), len(taken) - 1)], 3)
                for name, share in SHARES.items()
            }
            if taken
            else {},
            "generator_cores": round(used / wall, 3),
        }


SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def read_requests(path: str) -> list[bytes]:
    """Read the requests of a file."""
    data, at, requests = Path(path).read_bytes(), 0, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        requests.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return requests


def write_requests(path: Path, bodies: list[bytes], target: str = "/v1/tag", kind: str = "application/json") -> None:
    """Write requests with these bodies."""
    with open(path, "wb") as out:
        for body in bodies:
            headers = f"Host: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
            request = f"POST {target} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body
            out.write(len(request).to_bytes(4, "little") + request)


if __name__ == "__main__":
    uvloop.install()
    print(json.dumps(asyncio.run(Load(json.load(sys.stdin)).run())))
