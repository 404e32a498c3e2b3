"""Whether two networks are the same, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch

from longtail.nn.tagger import Tagger
from longtail.run.run import Run
from longtail.text.readings import TextReadings


def equal(one: Any, two: Any) -> bool:
    """Whether two modules have the same weights."""
    mine, other = one.state_dict(), two.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def same_lists(one: Tagger, two: Tagger, texts: pa.Table) -> bool:
    """Whether both give the texts the same labels and scores."""
    mine, other = (tagger.top_k(TextReadings(texts), 5, Run.of(threads=1)) for tagger in (one, two))
    return np.array_equal(mine.labels, other.labels) and mine.scores.tobytes() == other.scores.tobytes()
