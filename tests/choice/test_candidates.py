"""Which methods come into question follows from data and machine."""

from __future__ import annotations

import pytest

from longtail.choice.candidates import Candidate, candidates
from longtail.choice.facts import DataFacts, MachineFacts

DATA = DataFacts(
    n_texts=1000,
    n_labels=50,
    n_labels_without_texts=5,
    labels_per_text=2.0,
    words_per_text=30.0,
    languages=("en",),
    has_names=True,
    named_in_texts=0.4,
    has_hierarchy=False,
)
MACHINE = MachineFacts(n_threads=2, free_memory_bytes=1 << 34, has_gpu=False, has_torch=True)


def offered(data: DataFacts = DATA, machine: MachineFacts = MACHINE, **wishes: object) -> dict[str, Candidate]:
    return {one.method: one for one in candidates(data, machine, **wishes)}  # type: ignore[arg-type]


def test_linear_comes_first_and_everything_suits_named_english_texts() -> None:
    assert list(offered()) == ["linear", "knn", "lexical", "linear/letters", "lightxml/laptop"]
    assert all(one.comes_in for one in offered().values())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"has_names": False}, "labels have no names"),
        ({"named_in_texts": 0.01}, "only 1% of the assigned labels are named in their text"),
        ({"words_per_text": 0.0}, "there are no texts to read"),
    ],
)
def test_lexical_needs_names_that_occur(change: dict[str, object], why: str) -> None:
    lexical = offered(DATA.model_copy(update=change))["lexical"]
    assert not lexical.comes_in
    assert lexical.why == why


def test_lexical_reads_the_languages_of_the_texts() -> None:
    german = DATA.model_copy(update={"languages": ("de", "en")})
    assert offered(german)["lexical"].options == {"names": {"languages": ["de", "en"]}}


def test_networks_need_torch_time_and_an_encoder_for_the_language() -> None:
    german = DATA.model_copy(update={"languages": ("de",)})
    assert not offered(german)["lightxml/laptop"].comes_in
    named = offered(german, encoder="some/encoder")["lightxml/laptop"]
    assert named.comes_in
    assert named.options == {"encoders": [{"model": "some/encoder"}]}
    assert not offered(machine=MACHINE.model_copy(update={"has_torch": False}))["lightxml/laptop"].comes_in
    many = DATA.model_copy(update={"n_texts": 1_000_000})
    assert not offered(many, budget_s=600.0)["lightxml/laptop"].comes_in
    gpu = offered(many, MACHINE.model_copy(update={"has_gpu": True}), budget_s=600.0)
    assert gpu["lightxml"].comes_in
    assert "lightxml/laptop" not in gpu
