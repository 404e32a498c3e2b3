"""What a call asks for: where lists end, and how many of a text's labels they are expected to have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.calibrate import fit_calibration
from longtail.scores.call import Call
from longtail.scores.chain import Chain
from longtail.types import NO_LABEL, LabelMatrix, TopK

N_LABELS = 60
LABELS = ModelLabels(
    Vocabulary.of([f"l{number}" for number in range(N_LABELS)]),
    np.ones(N_LABELS, np.int64),
    np.arange(N_LABELS, dtype=np.int32),
    100,
)


def drawn(n_texts: int, seed: int) -> tuple[TopK, LabelMatrix]:
    """Lists of all labels; a label is right as often as the square of its score."""
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.random((n_texts, N_LABELS)) ** (3 + 9 * rng.random((n_texts, 1))), axis=1)[:, ::-1]
    labels = np.argsort(rng.random((n_texts, N_LABELS)), axis=1).astype(np.int32)
    right = rng.random((n_texts, N_LABELS)) < scores**2
    truth = [labels[row, right[row]].tolist() for row in range(n_texts)]
    return TopK(labels, scores.astype(np.float32)), LabelMatrix.from_lists(truth, N_LABELS)


CHAIN = Chain((fit_calibration(*drawn(3000, 0)),))
LISTS, TRUTH = drawn(1500, 1)


def asked(n: int, rows: np.ndarray | None = None) -> TopK:
    return LISTS.first(n)


def answered(**call: Any) -> TopK:
    return Call(**call).answer(CHAIN, asked, LABELS).lists


def shares(lists: TopK) -> tuple[float, float]:
    """Precision of all labels, and mean recall of the texts that have labels."""
    hits = np.array([len({*row} & {*TRUTH[text]}) for text, row in enumerate(lists.labels.tolist())])
    some = TRUTH.labels_per_text() > 0
    kept = np.count_nonzero(lists.labels != NO_LABEL)
    return hits.sum() / kept, float((hits[some] / TRUTH.labels_per_text()[some]).mean())


def test_lists_end_at_k_or_at_a_threshold() -> None:
    assert answered(k=3).labels.shape == (1500, 3)
    assert (answered(k=3, threshold=0.5).scores[:, 0] >= 0.5).mean() == (answered(k=3).scores[:, 0] >= 0.5).mean()
    auto = answered(k=50, threshold="auto")
    assert np.min(auto.scores, where=auto.labels != NO_LABEL, initial=1) >= np.float32(CHAIN.steps[0].f1_threshold)  # type: ignore[attr-defined]


@pytest.mark.parametrize("level", [0.5, 0.7, 0.9])
def test_sets_have_the_precision_and_the_recall_that_is_asked_for(level: float) -> None:
    """On other texts; a share of 1,500 texts has a standard error of about 0.01."""
    assert shares(answered(min_precision=level))[0] > level - 0.02
    assert shares(answered(min_recall=level))[1] > level - 0.02


def test_more_precision_takes_less_labels_and_more_recall_takes_more() -> None:
    sizes = {
        name: [np.count_nonzero(answered(**{name: level}).labels != NO_LABEL) for level in (0.3, 0.5, 0.7, 0.9)]
        for name in ("min_precision", "min_recall")
    }
    assert sizes["min_precision"] == sorted(sizes["min_precision"], reverse=True)
    assert sizes["min_recall"] == sorted(sizes["min_recall"])


def test_a_level_that_cannot_be_reached_is_refused_and_the_highest_one_is_told() -> None:
    with pytest.raises(ConfigError, match=r"`min_precision` can be 0\.\d+ at most with this model, got 0.999") as told:
        answered(min_precision=0.999)
    highest = float(str(told.value).split("can be ")[1].split(" ")[0])
    answered(min_precision=highest)
    short = Chain((fit_calibration(LISTS.first(2), TRUTH),))
    with pytest.raises(ConfigError, match=r"`min_recall` can be 0\.\d+ at most"):
        Call(min_recall=0.99).answer(short, asked, LABELS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"min_precision": 0.5, "threshold": 0.5}, "only one of `threshold`, `min_precision` and `min_recall`"),
        ({"min_precision": 0.0}, "`min_precision` must be above 0 and at most 1, got 0.0"),
        ({"min_recall": 1.5}, "`min_recall` must be above 0 and at most 1, got 1.5"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        answered(**call)


def test_sets_need_calibrated_scores() -> None:
    with pytest.raises(ConfigError, match="`min_recall` needs a model with calibrated scores"):
        Call(min_recall=0.5).answer(Chain(()), asked, LABELS)


def test_the_predicted_recall_is_near_the_actual_one() -> None:
    for call in ({"k": 5}, {"k": 2}, {"k": 20}):
        answer = Call(**call).answer(CHAIN, asked, LABELS, with_recall=True)
        some = TRUTH.labels_per_text() > 0
        assert answer.recall is not None
        assert answer.recall.shape == (1500,)
        assert abs(answer.recall[some].mean() - shares(answer.lists)[1]) < 0.1
    empty = Call(threshold=1.0).answer(CHAIN, asked, LABELS, with_recall=True)
    assert empty.recall is not None
    assert (empty.recall == 0).all()
    assert Call().answer(Chain(()), asked, LABELS, with_recall=True).recall is None
