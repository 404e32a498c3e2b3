"""What all routes of an application share: models, who may ask, limits, the batcher, numbers for Prometheus.

It is `request.app.state.service`; routes get it from the dependency `service_of`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Literal, TypeVar

from fastapi import Request

from longtail.explain import ExampleTexts, Explanation
from longtail.scores.call import Call
from longtail.serve.access import Access
from longtail.serve.batching import Batcher, Question, TextLabels
from longtail.serve.metrics import ServerMetrics
from longtail.serve.models import Models, ServedModel
from longtail.serve.problems import LOG, Problem
from longtail.serve.settings import ServeSettings

T = TypeVar("T")
_RETRY = {"Retry-After": "1"}

Groups = Sequence[tuple[tuple[str, ...], list[int], Sequence[Sequence[str]]]]
"""Texts by the fields that they have: names of the fields, places of the texts, and the fields of each."""


class Service:
    """The state of one process."""

    def __init__(self, models: Models, settings: ServeSettings, examples: ExampleTexts | None = None) -> None:
        self.models, self.settings, self.examples = models, settings, examples
        self.access = Access(settings.tokens)
        self.metrics = ServerMetrics()
        self.metrics.models(models)
        self.batcher = Batcher(settings, models.run, self._count_batch)
        self.is_stopping = False
        self._n_requests = 0
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="explain")

    async def tag(
        self,
        model: ServedModel,
        groups: Groups,
        *,
        k: int,
        threshold: float | Literal["auto"] | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
    ) -> list[TextLabels]:
        """Return the labels of the texts of a request, in their order; raise 429 or 503 where there are too many.

        `k` to `deny` are as in `Method.top_k`.
        """
        allowed, denied = (None if labels is None else tuple(labels) for labels in (allow, deny))
        call = Call(k, threshold, min_precision, min_recall, allow=allowed, deny=denied)
        with self.admitted():
            asked = [self.batcher.lists(Question(model, columns, call), rows) for columns, _, rows in groups]
            if len(asked) == 1:  # needs no tasks
                return await self.in_time(asked[0])
            answers = await self.in_time(asyncio.gather(*asked))
        by_place = {
            place: labels
            for (_, places, _), answer in zip(groups, answers, strict=True)
            for place, labels in zip(places, answer, strict=True)
        }
        return [by_place[place] for place in sorted(by_place)]

    async def explain(self, model: ServedModel, fields: dict[str, str], label: str, n_examples: int) -> Explanation:
        """Return why a label fits a text, one at a time: tagging goes on beside it."""
        examples = self.examples if model is self.models.default else None
        explaining = partial(
            model.method.explain, fields, label, examples=examples, n_examples=n_examples, run=self.models.run
        )
        with self.admitted():
            return await self.in_time(asyncio.get_running_loop().run_in_executor(self._slow, explaining))

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request while it is worked on; raise 429 where there are too many."""
        if self._n_requests >= self.settings.max_requests:
            raise Problem(429, f"{self._n_requests:,} requests are worked on already; try again later", _RETRY)
        self._n_requests += 1
        self.metrics.in_progress.inc()
        try:
            yield
        finally:
            self._n_requests -= 1
            self.metrics.in_progress.dec()

    async def in_time(self, work: Awaitable[T]) -> T:
        """Return what `work` does; give it up with 503 where it takes too long."""
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                return await work
        except TimeoutError:
            took = f"it took longer than {self.settings.timeout_s:g} s"
            raise Problem(503, f"{took}; send fewer or shorter texts, or try again later", _RETRY) from None

    async def reload(self, name: str | None = None) -> list[ServedModel]:
        """Open models again whose folders were replaced, and read the tokens again; return the models that are new."""
        self.access.reload()
        new = await asyncio.to_thread(self.models.reload, name)
        for model in new:
            LOG.info("%s is now revision %s", model.name, model.revision)
            self.metrics.reloads.labels(model.name).inc()
        self.metrics.models(self.models)
        return new

    def close(self) -> None:
        """End the threads."""
        self.batcher.close()
        self._slow.shutdown(wait=False, cancel_futures=True)

    def _count_batch(self, question: Question, n_texts: int, seconds: float) -> None:
        self.metrics.batch(question.model.name, n_texts, seconds)


async def service_of(request: Request) -> Service:
    """Return the service of the application that a request was sent to."""
    service: Service = request.app.state.service
    return service
