"""How much each member of a stack says for a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.methods import create_method
from longtail.run.run import Run
from longtail.stacking.shares import member_shares
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL, TopK

TEXT = "word1a word1b noise2 noise3"


@pytest.fixture(scope="module")
def stack(tiny: Callable[..., Dataset]) -> Any:
    options = {"members": ["linear", "knn"], "n_folds": 2, "ranker": {"kind": "logistic"}, "calibrate": False}
    return create_method("stack", options).fit(tiny().train)


def shares_of(stack: Any, lists: list[TopK], label: int) -> list[float]:
    texts = TextReadings.of([TEXT])
    return member_shares(stack.ranker_, lists, texts.table, label, Run()).tolist()


def test_shares_sum_to_one_and_a_member_that_leaves_the_label_out_has_none(stack: Any) -> None:
    label = stack.vocabulary_.position["label1"]
    lists = [member.top_k([TEXT], 8) for member in stack.members_]
    shares = shares_of(stack, lists, label)
    assert sum(shares) == pytest.approx(1)
    assert all(share > 0 for share in shares)
    without = TopK(np.where(lists[1].labels == label, np.int32(NO_LABEL), lists[1].labels), lists[1].scores)
    assert shares_of(stack, [lists[0], without], label) == [1.0, 0.0]
    assert shares_of(stack, [without, without], label) == [0.0, 0.0]


def test_an_explanation_has_the_members_with_their_shares(stack: Any) -> None:
    explanation = stack.explain(TEXT, "label1")
    assert explanation.method == "members"
    assert [member.name for member in explanation.members] == ["linear", "knn"]
    assert [member.explanation.method for member in explanation.members] == ["contributions", "occlusion"]
    assert {word.word for word in explanation.top(2)} == {"word1a", "word1b"}
    assert explanation.nearest[0].text is None  # knn keeps numbers, no texts
