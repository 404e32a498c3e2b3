"""What Prometheus is told at `/metrics`.

With several workers, the supervisor gives them a folder (PROMETHEUS_MULTIPROC_DIR) in which each keeps its numbers;
whichever worker is asked adds them up.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from longtail.serve.models import Models

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter(
            "longtail_requests", "Requests that were answered.", ("method", "path", "status"), registry=registry
        )
        self.seconds = Histogram(
            "longtail_request_seconds", "Time from the head of a request to its answer.", ("path",),
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.texts = Counter("longtail_texts", "Texts that were tagged.", ("model",), registry=registry)
        self.batch_texts = Histogram(
            "longtail_batch_texts", "Texts that were tagged together.", ("model",), buckets=_TEXTS, registry=registry
        )
        self.batch_seconds = Histogram(
            "longtail_batch_seconds",
            "Time that a batch of texts took.",
            ("model",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_progress = Gauge(
            "longtail_requests_in_progress", "Requests for labels that are worked on.",
            registry=registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self.reloads = Counter("longtail_reloads", "Models that were opened again.", ("model",), registry=registry)
        self.opened = Gauge(
            "longtail_model_opened_seconds", "When a model was opened, in seconds since 1970.", ("model", "method"),
            registry=registry, multiprocess_mode="livemax",
        )  # fmt: skip

        self._of_requests: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        kind = method, path, status
        if kind not in self._of_requests:
            counter = self.requests.labels(method, path, str(status))
            self._of_requests[kind] = counter, self.seconds.labels(path)
        counter, histogram = self._of_requests[kind]
        counter.inc()
        histogram.observe(seconds)

    def batch(self, model: str, n_texts: int, seconds: float) -> None:
        """Count a batch."""
        self.texts.labels(model).inc(n_texts)
        self.batch_texts.labels(model).observe(n_texts)
        self.batch_seconds.labels(model).observe(seconds)

    def models(self, models: Models) -> None:
        """Say which models are open now."""
        for model in models:
            self.opened.labels(model.name, model.method.name).set(model.opened.timestamp())

    def page(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        if FOLDER not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
