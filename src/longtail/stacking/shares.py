"""How much each member says for a label: what the ranker's log odds lose where a member leaves the label out.

ranker, lists [TopK (1, length), ...] of one text, label  ->  shares (n_members,), which sum to 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.explain.occlusion import log_odds, scores_of
from longtail.run.run import Run
from longtail.stacking.candidate_ranker import CandidateRanker
from longtail.types import NO_LABEL, TopK


def member_shares(
    ranker: CandidateRanker, lists: Sequence[TopK], text: pa.Table, label: int, run: Run
) -> NDArray[np.float64]:
    """Return the share of each member in a label of one text; all are 0 where none proposes it.

    Where the ranker would score the label as high without any single member, those that propose it share alike.
    """
    proposes = np.array([bool((one.labels == label).any()) for one in lists])
    if not proposes.any():
        return np.zeros(len(lists))
    variants = [
        [one if place != out else _without(one, label) for place, one in enumerate(lists)] for out in range(len(lists))
    ]
    k = sum(one.k for one in lists)
    scores = [scores_of(ranker.top_k(some, text, k, run), label)[0] for some in [lists, *variants]]
    values = log_odds(np.array(scores, np.float32))
    losses = np.where(proposes, np.maximum(values[0] - values[1:], 0), 0)
    losses = losses if losses.any() else proposes.astype(np.float64)
    return np.asarray(losses / losses.sum())


def _without(lists: TopK, label: int) -> TopK:
    """Return the lists without a label; the others keep their places."""
    return TopK(np.where(lists.labels == label, np.int32(NO_LABEL), lists.labels), lists.scores)
