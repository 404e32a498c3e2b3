"""How texts of concurrent requests come into batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.methods import load_model
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.scores.call import Call
from longtail.serve.batching import Batcher, Question
from longtail.serve.models import ServedModel
from longtail.serve.settings import ServeSettings


class Slow:
    """A model that notes how many texts it is given, and answers when it may."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.began: list[int] = []
        self.may_answer = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)

    def answer(self, texts: Any, *asked: Any, **more: Any) -> Any:
        self.began.append(len(texts))
        self.may_answer.wait()
        return self.method.answer(texts, *asked, **more)


def tried(folder: Path, steps: Callable[[Slow, Callable[[int], None]], Awaitable[None]]) -> list[int]:
    """Let requests come as `steps` says, with two threads; return the sizes of the batches in their order."""
    slow = Slow(load_model(folder))
    model: Any = slow
    question = Question(ServedModel("m", folder, model, "", datetime.now(UTC)), ("text",), Call())
    batcher = Batcher(ServeSettings(batch_texts=16), Run(LocalEngine(2)), lambda *batch: None)

    async def run() -> None:
        asked: list[asyncio.Task[Any]] = []

        def ask(n_texts: int) -> None:
            asked.append(asyncio.create_task(batcher.lists(question, [("word1a",)] * n_texts)))

        try:
            await steps(slow, ask)
        finally:
            slow.may_answer.set()
        for answers in await asyncio.gather(*asked):
            assert all(answer.labels for answer in answers)

    try:
        asyncio.run(run())
    finally:
        batcher.close()
    return slow.began


async def until(slow: Slow, n_batches: int) -> None:
    while len(slow.began) < n_batches:
        await asyncio.sleep(0.001)


def test_a_text_begins_beside_another_one_and_further_texts_wait_for_a_thread(folder: Path) -> None:
    async def steps(slow: Slow, ask: Callable[[int], None]) -> None:
        for n_batches in (1, 2):
            ask(1)
            await until(slow, n_batches)
        for _ in range(3):
            ask(1)
        await asyncio.sleep(0.05)
        assert slow.began == [1, 1]

    assert tried(folder, steps) == [1, 1, 3]


def test_beside_a_large_batch_another_begins_when_as_many_texts_wait(folder: Path) -> None:
    async def steps(slow: Slow, ask: Callable[[int], None]) -> None:
        ask(8)
        await until(slow, 1)
        for _ in range(7):
            ask(1)
        await asyncio.sleep(0.05)
        assert slow.began == [8]
        ask(1)
        await until(slow, 2)

    assert tried(folder, steps) == [8, 8]


def test_a_batch_has_as_many_texts_as_it_may(folder: Path) -> None:
    async def steps(slow: Slow, ask: Callable[[int], None]) -> None:
        for _ in range(5):
            ask(7)
        await until(slow, 2)

    assert tried(folder, steps) == [14, 14, 7]
