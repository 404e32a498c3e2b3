"""How uncertain a model is of the labels of texts: which texts people should see first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtail.types import NO_LABEL

if TYPE_CHECKING:
    import pyarrow as pa

    from longtail.methods.base import Method

N_LABELS = 20
"""Labels per text that are looked at."""


def uncertainties(model: Method, texts: pa.Table) -> NDArray[np.float64]:
    """Return how many wrong decisions are to be expected per text: (n_texts,).

    A label with the probability p is filed if p is at least a half, and is then wrong with probability 1 - p; else it
    is missed with probability p. Scores that are no probabilities are cut to 0 to 1.
    """
    lists = model.top_k(texts, N_LABELS)
    p = np.clip(np.where(lists.labels == NO_LABEL, 0.0, lists.scores), 0, 1)
    return np.asarray(np.minimum(p, 1 - p).sum(axis=1), np.float64)
