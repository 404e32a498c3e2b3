"""What several test files need: the shared data sets where they are, and tiny ones that can be learned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from longtail.data.dataset import Dataset

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data sets beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("needs the data sets of ../shared")
    return SHARED


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Dataset]:
    """A maker of tiny data sets: `tiny(n_texts=60, n_labels=8, seed=0)`."""
    return tiny_dataset


def tiny_dataset(
    n_texts: int = 60, n_labels: int = 8, seed: int = 0, splits: tuple[str, ...] = ("train", "test")
) -> Dataset:
    """Texts made of the words of their labels (three each) and of noise; every label occurs in the first split."""
    rng = np.random.default_rng(seed)
    made = {}
    for split in splits:
        texts, labels = [], []
        for number in range(n_texts):
            own = {number % n_labels, *rng.choice(n_labels, rng.integers(0, min(3, n_labels)), replace=False).tolist()}
            words = [f"word{label}{rng.choice(list('abc'))}" for label in sorted(own) for _ in range(3)]
            noise = [f"noise{i}" for i in rng.integers(0, 30, 4)]
            texts.append(" ".join(rng.permutation(words + noise).tolist()))
            labels.append([f"label{label}" for label in sorted(own)])
        made[split] = (texts, labels)
    return Dataset.of(made, name="tiny")
