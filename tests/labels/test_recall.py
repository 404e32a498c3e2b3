"""What recall hands to a ranker."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.kernels.rows import Rows
from longtail.labels.recall import Recalled
from longtail.types import TopK

BEST = TopK(np.array([[2, 0], [1, -1]], np.int32), np.array([[1.5, 0.25], [0.0, -np.inf]], np.float32))


def test_scores_become_logs_of_at_most_0_that_are_all_finite() -> None:
    recalled = Recalled.of(BEST)
    np.testing.assert_array_equal(recalled.clusters, BEST.labels)
    np.testing.assert_allclose(recalled.log_scores, [[0, np.log(0.25)], [np.log(1e-30), 0]], rtol=1e-6)
    assert recalled.log_scores.dtype == np.float32
    assert recalled.vectors is None


def test_vectors_stand_beside_features_where_there_are_some_and_they_weigh_something() -> None:
    features = Rows.of(sp.csr_matrix(np.eye(2, 3, dtype=np.float32)))
    vectors = np.array([[3, 4], [0, 1]], np.float32)
    assert Recalled.of(BEST).joined(features, 1.0) is features
    assert Recalled.of(BEST, vectors).joined(features, 0.0) is features
    joined = Recalled.of(BEST, vectors).joined(features, 1.0)
    np.testing.assert_allclose(joined.matrix().toarray()[0] * np.sqrt(2), [1, 0, 0, 0.6, 0.8], rtol=1e-6)
