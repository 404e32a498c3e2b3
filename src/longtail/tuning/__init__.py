"""Choose options on a part of the training texts: what to try, and the search for what is best."""

from __future__ import annotations

from longtail.tuning.search import Trial, Tuned, tune
from longtail.tuning.space import Choices, Range, Tried, default_space, read_space

__all__ = ["Choices", "Range", "Trial", "Tried", "Tuned", "default_space", "read_space", "tune"]
