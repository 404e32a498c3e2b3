"""How often labels occur, as initial values of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def smoothed_share(counts: NDArray[Any], n_texts: int | NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of `n_texts` texts that have each label, never 0 or 1."""
    share: NDArray[np.float64] = (counts + 0.5) / (n_texts + 1.0)
    return share


def log_odds(counts: NDArray[Any], n_texts: int | NDArray[Any]) -> NDArray[np.float32]:
    """Return the logit of each label's share."""
    share = smoothed_share(counts, n_texts)
    odds: NDArray[np.float32] = np.log(share / (1 - share)).astype(np.float32)
    return odds
