"""What a ranker of candidates is trained on: their features, and which of them are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class CandidateExamples:
    """Candidates of training texts that follow each other."""

    features: NDArray[np.float32]  # (n_candidates, n_features)
    right: NDArray[np.bool_]  # (n_candidates,)
    per_text: NDArray[np.int64]  # (n_texts,) candidates of each text

    @classmethod
    def joined(cls, examples: Sequence[CandidateExamples]) -> CandidateExamples:
        """Return all examples, one after the other."""
        features, right, per_text = (
            np.concatenate([getattr(one, name) for one in examples]) for name in ("features", "right", "per_text")
        )
        return cls(features, right, per_text)
