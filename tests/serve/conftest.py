"""A tiny model, saved, and clients of an application that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

for library in ("fastapi", "uvicorn", "msgspec", "prometheus_client", "httpx2"):
    pytest.importorskip(library, reason="pip install 'longtail[serve]'")

from starlette.testclient import TestClient  # noqa: E402

from longtail.data.dataset import Dataset  # noqa: E402
from longtail.data.vocabulary import Vocabulary  # noqa: E402
from longtail.methods import create_method  # noqa: E402
from longtail.methods.base import Method  # noqa: E402
from longtail.serve.app import create_app  # noqa: E402
from longtail.serve.models import Models  # noqa: E402
from longtail.serve.settings import ServeSettings  # noqa: E402

ADMIN, REVIEWER, TAGGER = (f"{role}-0123456789abcdef" for role in ("admin", "review", "tag"))


def trained(tiny: Callable[..., Dataset], seed: int = 0, n_texts: int = 60) -> Method:
    """A linear model of labels with names, other names and a hierarchy."""
    data = tiny(n_texts, n_labels=12, seed=seed)
    ids = [f"label{number}" for number in range(12)]
    words = {label: [f"word{number}{letter}" for letter in "abc"] for number, label in enumerate(ids)}
    vocabulary = Vocabulary.of(
        ids,
        {label: first for label, (first, *_) in words.items()},
        {label: others for label, (_, *others) in words.items()},
        {label: ["even" if number % 2 == 0 else "odd"] for number, label in enumerate(ids)},
    )
    return create_method("linear", {"seed": seed}).fit(data.named_by(vocabulary).train)


@pytest.fixture(scope="session")
def folder(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "tiny"
    trained(tiny).save(path)
    return path


@pytest.fixture(scope="session")
def models(folder: Path) -> Models:
    return Models.open({"tiny": folder, "again": folder})


@pytest.fixture
def client(models: Models) -> Iterator[Callable[..., TestClient]]:
    """A maker of clients: `client(max_texts=3)` of an application with these settings."""
    with ExitStack() as stack:

        def make(**settings: Any) -> TestClient:
            app = create_app(models, ServeSettings.of(settings))
            return stack.enter_context(TestClient(app, raise_server_exceptions=False))

        yield make


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.txt"
    file.write_text(f"# role name token\nadmin ops {ADMIN}\nreview anna {REVIEWER}\n\ntag website {TAGGER}\n")
    return file


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def problem(answer: Any, status: int) -> str:
    """Check that an answer is a problem, and return what it says."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert {"type", "title", "status", "detail"} == set(said)
    assert said["status"] == status
    return str(said["detail"])
