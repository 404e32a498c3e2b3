"""What came of a choice: the model that is kept, and how it and all members did on texts that they had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from longtail.options import Options
from longtail.stacking.held_out import METRIC, HeldOutFigures
from longtail.units import in_seconds


class Figure(Options):
    """nDCG@5 of a model on the held-out texts."""

    model: str
    ndcg: float


class Outcome(Options):
    """Which model is kept, and why."""

    model: str
    why: str
    n_held_out: int = 0
    """Training texts that the models were compared on; none had seen them."""
    figures: tuple[Figure, ...] = ()
    took_s: float | None = None
    """Seconds from the beginning; None where time did not matter."""

    @classmethod
    def compared(cls, figures: HeldOutFigures, stack: str, members: Sequence[str]) -> Self:
        """Return the stack, or the first member where the stack is not better on the texts that nobody has seen."""
        values = [figures.stack, *figures.members]
        by_model = tuple(Figure(model=name, ndcg=value) for name, value in zip((stack, *members), values, strict=True))
        first, second = by_model[:2]
        better = first.ndcg > second.ndcg
        winner, loser = (first, second) if better else (second, first)
        compared = f"{METRIC} {winner.ndcg:.4f}, {loser.model} {loser.ndcg:.4f}"
        why = f"it is {'better' if better else 'at least as good'}: {compared}"
        return cls(model=winner.model, why=why, n_held_out=figures.n_texts, figures=by_model)

    def __str__(self) -> str:
        where = f" on {self.n_held_out:,} training texts that they had not seen" if self.n_held_out else ""
        took = "" if self.took_s is None else f"; all took {in_seconds(self.took_s)}"
        return f"keeps {self.model}: {self.why}{where}{took}"
