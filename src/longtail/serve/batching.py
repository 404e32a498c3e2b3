"""Texts of concurrent requests are tagged together.

While a batch is tagged in a thread, requests that arrive wait; the next batch takes as many of them as ask alike. So a
single request is tagged at once, and under load batches grow by themselves. Another thread begins a batch beside those
at work once as many texts wait as the largest of them has: under little load with the next text, so that no core
idles while texts wait; under much load with many, as a text in a large batch takes much less time than in a small one.

    await batcher.lists(Question(model, columns, call), rows)  ->  Lists of these rows
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple

from longtail.predictions import Route, route_of
from longtail.run.run import Run
from longtail.scores.call import Call
from longtail.serve.models import ServedModel
from longtail.serve.settings import ServeSettings
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL

Row = Sequence[str]
"""The fields of a text."""


@dataclass(frozen=True)
class Question:
    """What is asked of a model; texts with equal questions are tagged together."""

    model: ServedModel
    columns: tuple[str, ...]
    """Names of the fields of the texts."""
    call: Call
    """Which labels; whatever is a list there must be a tuple."""


class TextLabels(NamedTuple):
    """The labels of a text, best first."""

    labels: list[int]
    scores: list[float]
    predicted_recall: float | None
    """The share of the text's labels that is expected to be among them, where scores are calibrated."""
    cut: bool
    """Whether the model has read only the beginning of the text."""

    @property
    def route(self) -> Route | None:
        """Who should look at the text, where scores are calibrated."""
        return None if self.predicted_recall is None else route_of(self.predicted_recall)


def tag(question: Question, rows: Sequence[Row], run: Run) -> list[TextLabels]:
    """Return the labels of some texts."""
    model = question.model
    readings = TextReadings(model.table(question.columns, rows))
    answer = model.method.answer(readings, question.call, run, with_recall=True)
    rows_of_labels, rows_of_scores = answer.lists.labels.tolist(), answer.lists.scores.tolist()
    lengths = (answer.lists.labels != NO_LABEL).sum(axis=1).tolist()
    recall = [None] * len(rows) if answer.recall is None else answer.recall.tolist()
    cut = readings.cut().tolist()
    return [
        TextLabels(rows_of_labels[row][:n], rows_of_scores[row][:n], recall[row], cut[row])
        for row, n in enumerate(lengths)
    ]


class _Waiting(NamedTuple):
    rows: Sequence[Row]
    answer: asyncio.Future[list[TextLabels]]


Observe = Callable[[Question, int, float], None]
"""Is told the question, the number of texts and the seconds of each batch."""


class Batcher:
    """Puts the texts of requests together; belongs to one event loop."""

    def __init__(self, settings: ServeSettings, run: Run, observe: Observe) -> None:
        self.settings, self.run, self.observe = settings, run, observe
        self._waiting: dict[Question, deque[_Waiting]] = {}
        self._n_texts = 0
        """Texts that wait."""
        self._at_work: list[int] = []
        """Number of texts of each batch that is being tagged."""
        self._most_running = settings.batches_at_once or run.engine.n_threads
        self._pool = ThreadPoolExecutor(self._most_running, thread_name_prefix="batch")

    async def lists(self, question: Question, rows: Sequence[Row]) -> list[TextLabels]:
        """Return the labels of texts."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(rows, loop.create_future())
        self._waiting.setdefault(question, deque()).append(waiting)
        self._n_texts += len(rows)
        if self._may_start():
            # Later, so that all requests that have arrived by now are in the first batch.
            if self.settings.batch_wait_s:
                loop.call_later(self.settings.batch_wait_s, self._start, loop)
            else:
                loop.call_soon(self._start, loop)
        return await waiting.answer

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _may_start(self) -> bool:
        """Return whether another batch may begin now."""
        return len(self._at_work) < self._most_running and self._n_texts >= max(self._at_work, default=1)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._may_start():
            question, batch = self._next()
            if batch:
                n_texts = sum(len(waiting.rows) for waiting in batch)
                self._at_work.append(n_texts)
                job = self._pool.submit(self._tag, question, batch)
                answer = partial(self._answer, loop, batch, n_texts)
                job.add_done_callback(lambda job, answer=answer: loop.call_soon_threadsafe(answer, job))  # type: ignore[misc]

    def _next(self) -> tuple[Question, list[_Waiting]]:
        """Return the question that has waited longest, and as many of its texts as fit."""
        question = next(iter(self._waiting))
        queue = self._waiting.pop(question)
        batch: list[_Waiting] = []
        n_texts = 0
        while queue and (not batch or n_texts + len(queue[0].rows) <= self.settings.batch_texts):
            waiting = queue.popleft()
            self._n_texts -= len(waiting.rows)
            if not waiting.answer.done():  # who asked may have given up
                batch.append(waiting)
                n_texts += len(waiting.rows)
        if queue:
            self._waiting[question] = queue  # behind other questions
        return question, batch

    def _tag(self, question: Question, batch: Sequence[_Waiting]) -> list[TextLabels]:
        start = perf_counter()
        rows = [row for waiting in batch for row in waiting.rows]
        labels = tag(question, rows, self.run)
        self.observe(question, len(rows), perf_counter() - start)
        return labels

    def _answer(
        self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Waiting], n_texts: int, job: Future[list[TextLabels]]
    ) -> None:
        self._at_work.remove(n_texts)
        self._start(loop)  # the next batch is tagged while answers are written
        error = job.exception()
        first = 0
        for waiting in batch:
            last = first + len(waiting.rows)
            if not waiting.answer.done():
                if error is None:
                    waiting.answer.set_result(job.result()[first:last])
                else:
                    waiting.answer.set_exception(error)
            first = last
