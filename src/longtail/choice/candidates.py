"""Methods that come into question as members, by what is in the data and what the machine has.

DataFacts, MachineFacts  ->  [Candidate, ...]: the anchor first, then the others, most useful for their time first
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.choice.facts import DataFacts, MachineFacts

_NAMED = 0.05
"""Names of labels are looked for from this share of the assigned labels on that are named in their texts."""
_ENGLISH = ("en",)
_AT_BEST_S = 0.004
"""Seconds that a pass over a text takes on a CPU at least: four times faster than what was measured on two cores."""
_N_PASSES = 6
"""Passes over the texts that a network needs at least: three epochs, without held-out texts and with them."""


class Candidate(NamedTuple):
    """A method that may become a member."""

    method: str
    """A method or preset."""
    why: str
    """What it adds, or why it does not come into question."""
    comes_in: bool = True
    """Whether it comes into question."""
    is_network: bool = False
    """Whether its time is measured by steps of its training, not by training it on samples."""
    options: Mapping[str, Any] = {}
    """Options that follow from the data."""


ANCHOR = "linear"
"""The method that is always trained, and that the choice is compared with."""


def candidates(
    data: DataFacts, machine: MachineFacts, *, budget_s: float | None = None, encoder: str | None = None
) -> list[Candidate]:
    """Return the anchor and the other methods, whether they come into question or not.

    Args:
        data: What is in the data.
        machine: What the machine has.
        budget_s: The time for everything; networks that cannot be trained in it are not even measured.
        encoder: What networks read texts with, a name or folder; by default an English one, for English texts.
    """
    return [
        Candidate(ANCHOR, "always trained: the others must do better together with it"),
        Candidate("knn", "labels of similar texts, good for rare labels"),
        _lexical(data),
        _letters(data),
        _network(data, machine, budget_s, encoder),
    ]


def _lexical(data: DataFacts) -> Candidate:
    name = "lexical"
    if not data.words_per_text:
        return Candidate(name, "there are no texts to read", comes_in=False)
    if not data.has_names:
        return Candidate(name, "labels have no names", comes_in=False)
    named = f"{data.named_in_texts:.0%} of the assigned labels are named in their text"
    if data.named_in_texts < _NAMED:
        return Candidate(name, f"only {named}", comes_in=False)
    finds = ", and finds labels without training texts" if data.n_labels_without_texts else ""
    return Candidate(name, named + finds, options={"names": {"languages": list(data.languages)}})


def _letters(data: DataFacts) -> Candidate:
    name = "linear/letters"
    if not data.words_per_text:
        return Candidate(name, "there are no texts to read", comes_in=False)
    return Candidate(name, "reads letters instead of words, and errs elsewhere")


def _network(data: DataFacts, machine: MachineFacts, budget_s: float | None, encoder: str | None) -> Candidate:
    name = "lightxml" if machine.has_gpu else "lightxml/laptop"
    options = {} if encoder is None else {"encoders": [{"model": encoder}]}
    if not data.words_per_text:
        return Candidate(name, "there are no texts to read", comes_in=False)
    if not machine.has_torch:
        return Candidate(name, "torch is not installed (pip install 'longtail[neural]')", comes_in=False)
    if encoder is None and data.languages != _ENGLISH:
        why = "its encoder reads English, and not all texts are English; name another with `encoder`"
        return Candidate(name, why, comes_in=False)
    if not machine.has_gpu and budget_s is not None and data.n_texts * _N_PASSES * _AT_BEST_S > budget_s:
        return Candidate(name, "without a GPU, the time is too short for a network on so many texts", comes_in=False)
    return Candidate(name, "a transformer, which knows words that mean the same", is_network=True, options=options)
