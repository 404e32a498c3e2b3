from __future__ import annotations

import json
import math
from typing import NamedTuple

import napkinxc.metrics as napkinxc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, f1_score, ndcg_score

from longtail.errors import ConfigError, DataError
from longtail.metrics import BANDS, MetricOptions, evaluate
from longtail.propensity import USUAL, Propensity, inverse_propensity
from longtail.types import NO_LABEL, LabelMatrix, TopK

AT = (1, 2, 3, 7)


class Case(NamedTuple):
    predicted: TopK
    truth: LabelMatrix
    train_counts: np.ndarray
    n_train_texts: int


def topk_of(rows: list[list[int]], k: int | None = None) -> TopK:
    """Lists of labels with falling scores 1, 1/2, 1/3, ..."""
    k = max(len(row) for row in rows) if k is None else k
    labels = np.full((len(rows), k), NO_LABEL, np.int32)
    scores = np.full((len(rows), k), -np.inf, np.float32)
    for i, row in enumerate(rows):
        labels[i, : len(row)] = row
        scores[i, : len(row)] = 1.0 / np.arange(1, len(row) + 1)
    return TopK(labels, scores)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small cases with short lists, texts without labels, labels unknown to the model, and labels of every band."""
    n_texts, n_labels, k = draw(st.integers(1, 5)), draw(st.integers(1, 8)), draw(st.integers(1, 5))
    label = st.integers(0, n_labels - 1)
    truth = draw(st.lists(st.sets(label), min_size=n_texts, max_size=n_texts).filter(any))
    known = st.integers(0, n_labels + 1)  # a model may also know labels that no text has
    predicted = draw(st.lists(st.lists(known, unique=True, max_size=k), min_size=n_texts, max_size=n_texts))
    counts = draw(st.lists(st.sampled_from([0, 1, 5, 10, 11, 60, 100, 101, 900]), max_size=n_labels + 2))
    return Case(topk_of(predicted, k), LabelMatrix.from_lists(truth, n_labels), np.array(counts, np.int64), 2000)


def slow_metrics(case: Case, at: tuple[int, ...], threshold: float, band: str | None) -> dict[str, float]:
    """Every metric straight from its definition, with sets and loops."""

    def count(label: int) -> int:
        return int(case.train_counts[label]) if label < len(case.train_counts) else 0

    def inside(label: int) -> bool:
        n = count(label)
        of = "head" if n > 100 else "torso" if n > 10 else "tail" if n > 0 else "unseen"
        return band is None or of == band

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    def dcg(gains: list[float]) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))

    def weight(label: int) -> float:
        return 1 + (math.log(2000) - 1) * 2.5**0.55 * (count(label) + 1.5) ** -0.55

    rows = range(len(case.truth))
    texts = [
        (
            [int(label) for label in case.predicted.labels[i] if label != NO_LABEL],
            [float(score) for score in case.predicted.scores[i]],
            {int(label) for label in case.truth[i] if inside(int(label))},
        )
        for i in rows
        if len(case.truth[i])
    ]
    counted = [(ranked, true) for ranked, _, true in texts if true]
    result: dict[str, float] = {}
    sets = {f"@{k}": [set(ranked[:k]) for ranked, _, _ in texts] for k in at}
    sets[""] = [{x for x, s in zip(ranked, scores, strict=False) if s >= threshold} for ranked, scores, _ in texts]
    for k in at:
        hits = [len(set(ranked[:k]) & true) for ranked, true in counted]
        sizes = [len(true) for _, true in counted]
        both = list(zip(hits, sizes, strict=True))
        result[f"P@{k}"] = mean([h / k for h in hits])
        result[f"R@{k}"] = mean([h / n for h, n in both])
        result[f"RP@{k}"] = mean([h / min(k, n) for h, n in both])
        result[f"F1@{k}"] = mean([2 * h / (k + n) for h, n in both])
        ideal = [dcg([1.0] * min(k, n)) for n in sizes]
        found = [dcg([float(x in true) for x in ranked[:k]]) for ranked, true in counted]
        result[f"nDCG@{k}"] = mean([f / i for f, i in zip(found, ideal, strict=True)])
        heavy = [sorted((weight(x) for x in true), reverse=True)[:k] for _, true in counted]
        got = [[weight(x) if x in true else 0.0 for x in ranked[:k]] for ranked, true in counted]
        result[f"PSP@{k}"] = sum(map(sum, got)) / sum(map(sum, heavy))
        result[f"PSnDCG@{k}"] = sum(dcg(g) / i for g, i in zip(got, ideal, strict=True)) / sum(
            dcg(h) / i for h, i in zip(heavy, ideal, strict=True)
        )
        true_labels = set().union(*(true for _, true in counted))
        hit_labels = set().union(*(set(ranked[:k]) & true for ranked, true in counted))
        result[f"coverage@{k}"] = len(hit_labels) / len(true_labels)
        places = [
            (s, (x in true))
            for ranked, scores, true in texts
            for x, s in zip(ranked[:k], scores, strict=False)
            if inside(x)
        ]
        if places:
            bins = [[(s, y) for s, y in places if b <= 15 * s < b + 1 or (b == 14 and s == 1)] for b in range(15)]
            assert sum(map(len, bins)) == len(places)
            gaps = [abs(mean([s for s, _ in each]) - mean([y for _, y in each])) * len(each) for each in bins if each]
            result[f"ECE@{k}"] = sum(gaps) / len(places)
            result[f"Brier@{k}"] = mean([(s - y) ** 2 for s, y in places])
    for suffix, predicted in sets.items():
        chosen = [{x for x in labels if inside(x)} for labels in predicted]
        trues = [true for _, _, true in texts]
        right = sum(len(a & b) for a, b in zip(chosen, trues, strict=True))
        n_chosen, n_true = sum(map(len, chosen)), sum(map(len, trues))
        result[f"micro-F1{suffix}"] = 2 * right / (n_chosen + n_true)
        if not suffix:
            result |= {"micro-P": right / n_chosen} if n_chosen else {}
            result["micro-R"] = right / n_true
        f1 = []
        for label in set().union(*chosen, *trues):
            tp = sum(label in a and label in b for a, b in zip(chosen, trues, strict=True))
            f1.append(2 * tp / (sum(label in a for a in chosen) + sum(label in b for b in trues)))
        result[f"macro-F1{suffix}"] = mean(f1)
    return result


@settings(max_examples=300)
@given(cases(), st.sampled_from([0.3, 0.5, 2.0]))
def test_all_metrics_of_all_bands_follow_their_definitions(case: Case, threshold: float) -> None:
    found = evaluate(*case, MetricOptions(at=AT, threshold=threshold))
    assert found.values == pytest.approx(slow_metrics(case, AT, threshold, None), abs=1e-12)
    present = {band for band in BANDS if found.n_labels_by_band.get(band)}
    assert set(found.bands) == present
    for band in present:
        assert found.bands[band] == pytest.approx(slow_metrics(case, AT, threshold, band), abs=1e-12)


@given(cases())
def test_every_metric_lies_between_0_and_1(case: Case) -> None:
    found = evaluate(*case, MetricOptions(at=AT, threshold=0.5))
    for values in (found.values, *found.bands.values()):
        assert all(0.0 <= value <= 1.0 + 1e-12 for value in values.values())


@given(cases())
def test_a_perfect_list_is_perfect(case: Case) -> None:
    rarest_first = [
        sorted(row, key=lambda x: case.train_counts[x] if x < len(case.train_counts) else 0) for row in case.truth
    ]
    perfect = topk_of([[int(x) for x in row] for row in rarest_first], case.truth.n_labels)
    found = evaluate(perfect, case.truth, case.train_counts, case.n_train_texts, MetricOptions(at=(8,))).values
    for name in ("R@8", "RP@8", "nDCG@8", "PSP@8", "PSnDCG@8", "coverage@8", "micro-F1@8", "macro-F1@8"):
        assert found[name] == pytest.approx(1.0)


def big_case(n_texts: int = 300, n_labels: int = 40, k: int = 10) -> Case:
    """Full lists, every text labelled and every label true somewhere, so that other libraries' rules agree."""
    rng = np.random.default_rng(7)
    truth = [{i % n_labels, *rng.choice(n_labels, rng.integers(1, 7), replace=False).tolist()} for i in range(n_texts)]
    ranked = [
        sorted(range(n_labels), key=lambda x, row=row: -(x in row) * rng.random() - rng.random())[:k] for row in truth
    ]
    counts = np.array([0, 1, 3, 10, 11, 50, 100, 101, 400, 900] * 4)
    return Case(topk_of(ranked), LabelMatrix.from_lists(truth, n_labels), counts, 1500)


def test_napkinxc_gives_the_same_figures() -> None:
    case = big_case()
    true, ranked = [row.tolist() for row in case.truth], case.predicted.labels.tolist()
    weights = inverse_propensity(case.train_counts, case.n_train_texts)
    found = evaluate(*case, MetricOptions(at=tuple(range(1, 13)))).values  # 11 and 12 are beyond the lists
    theirs = {
        "P": napkinxc.precision_at_k(true, ranked, k=12),
        "R": napkinxc.recall_at_k(true, ranked, k=12),
        "nDCG": napkinxc.ndcg_at_k(true, ranked, k=12),
        "PSP": napkinxc.psprecision_at_k(true, ranked, weights, k=12),
        "PSnDCG": napkinxc.psndcg_at_k(true, ranked, weights, k=12),
        "coverage": napkinxc.coverage_at_k(true, ranked, k=12),
    }
    for metric, values in theirs.items():
        assert [found[f"{metric}@{k}"] for k in range(1, 13)] == pytest.approx(values.tolist(), abs=1e-12), metric
    for k in (1, 5, 10):
        first = [row[:k] for row in ranked]
        assert found[f"micro-F1@{k}"] == pytest.approx(napkinxc.micro_f1_measure(true, first), abs=1e-12)
        assert found[f"macro-F1@{k}"] == pytest.approx(napkinxc.macro_f1_measure(true, first), abs=1e-12)


def dense(case: Case, k: int) -> tuple[np.ndarray, np.ndarray]:
    """True labels and scores of the first k as full matrices."""
    n_texts, n_labels = case.truth.n_texts, case.truth.n_labels
    scores = np.zeros((n_texts, n_labels))
    np.put_along_axis(scores, case.predicted.labels[:, :k].astype(int), case.predicted.scores[:, :k], axis=1)
    return case.truth.to_scipy().toarray().astype(int), scores


def test_scikit_learn_gives_the_same_figures() -> None:
    case = big_case()
    found = evaluate(*case, MetricOptions(at=(1, 4, 10), threshold=0.3))
    for k in (1, 4, 10):
        true, scores = dense(case, k)
        assert found.values[f"micro-F1@{k}"] == pytest.approx(f1_score(true, scores > 0, average="micro"))
        assert found.values[f"macro-F1@{k}"] == pytest.approx(f1_score(true, scores > 0, average="macro"))
    true, scores = dense(case, 10)
    assert found.values["micro-F1"] == pytest.approx(f1_score(true, scores >= 0.3, average="micro"))
    assert found.values["macro-F1"] == pytest.approx(f1_score(true, scores >= 0.3, average="macro"))
    tail = [label for label, n in enumerate(case.train_counts) if 1 <= n <= 10]
    assert found.bands["tail"]["macro-F1"] == pytest.approx(
        f1_score(true[:, tail], scores[:, tail] >= 0.3, average="macro")
    )
    # ndcg_score has no lists: labels left out must tie in last place, so compare where the list is complete.
    whole = big_case(k=40)
    true, scores = dense(whole, 40)
    ours = evaluate(*whole, MetricOptions(at=(1, 5, 40))).values
    for k in (1, 5, 40):
        assert ours[f"nDCG@{k}"] == pytest.approx(ndcg_score(true, scores, k=k))


def test_a_case_worked_by_hand() -> None:
    # Text 0: hits at ranks 1 and 3 of Y = {0, 1, 2}. Text 1: no hit, Y = {3}. Text 2 has no labels.
    predicted = topk_of([[0, 4, 2], [1, 0, 2], [0, 1, 2]])
    truth = LabelMatrix.from_lists([{0, 1, 2}, {3}, set()], 5)
    found = evaluate(predicted, truth, np.array([200, 50, 5]), 1000, MetricOptions(at=(3, 5)))
    assert found.n_texts == 2
    assert found.n_texts_without_labels == 1
    dcg, ideal = 1 + 1 / 2, 1 + 1 / math.log2(3) + 1 / 2
    c = (math.log(1000) - 1) * 2.5**0.55
    w0, w1, w2, w3 = (1 + c * (n + 1.5) ** -0.55 for n in (200, 50, 5, 0))
    assert found.values["P@3"] == pytest.approx((2 / 3 + 0) / 2)
    assert found.values["P@5"] == pytest.approx((2 / 5 + 0) / 2)  # k stays 5 though the list has 3
    assert found.values["R@3"] == pytest.approx((2 / 3 + 0) / 2)
    assert found.values["F1@5"] == pytest.approx((2 * 2 / (5 + 3) + 0) / 2)
    assert found.values["nDCG@3"] == pytest.approx((dcg / ideal + 0) / 2)
    assert found.values["PSP@3"] == pytest.approx((w0 + w2) / (w0 + w1 + w2 + w3))
    assert found.values["PSnDCG@3"] == pytest.approx(
        (w0 + w2 / 2) / ideal / ((w2 + w1 / math.log2(3) + w0 / 2) / ideal + w3)
    )
    assert found.values["coverage@3"] == pytest.approx(2 / 4)
    assert found.values["micro-F1@3"] == pytest.approx(2 * 2 / (6 + 4))
    # Labels 0 and 2: one hit, one wrong, F1 = 2/3. Labels 1 and 4: wrong only. Label 3: missed.
    assert found.values["macro-F1@3"] == pytest.approx((2 / 3 + 2 / 3 + 0 + 0 + 0) / 5)
    assert found.n_texts_by_band == {"head": 1, "torso": 1, "tail": 1, "unseen": 1}
    assert found.bands["head"]["P@3"] == pytest.approx(1 / 3)  # text 1 has no head label
    assert found.bands["tail"]["nDCG@3"] == pytest.approx(1 / 2)  # at rank 3 of the whole list
    assert found.bands["torso"]["R@3"] == 0.0
    assert found.bands["unseen"]["R@3"] == 0.0


@pytest.mark.parametrize(
    ("n_texts", "band"), [(0, "unseen"), (1, "tail"), (10, "tail"), (11, "torso"), (100, "torso"), (101, "head")]
)
def test_a_label_belongs_to_one_band(n_texts: int, band: str) -> None:
    found = evaluate(topk_of([[0]]), LabelMatrix.from_lists([{0}], 1), np.array([n_texts]), 1000)
    assert found.n_labels_by_band == {band: 1}


def test_labels_unknown_to_the_model_are_missed() -> None:
    truth = LabelMatrix.from_lists([{0, 7}], 8)  # the model knows two labels
    found = evaluate(topk_of([[0, 1]]), truth, np.array([3, 3]), 10, MetricOptions(at=(2,)))
    assert found.values["R@2"] == 0.5
    assert found.bands["unseen"]["R@2"] == 0.0


def test_an_empty_place_is_never_a_hit() -> None:
    # NO_LABEL is -1: read as a number it would be the last label of the text before.
    predicted = TopK(np.array([[0], [NO_LABEL]], np.int32), np.array([[1.0], [-np.inf]], np.float32))
    truth = LabelMatrix.from_lists([{0, 4}, {0}], 5)
    found = evaluate(predicted, truth, np.ones(5, int), 10, MetricOptions(at=(1,), threshold=-1e38))
    assert found.values["P@1"] == 0.5
    assert found.values["micro-F1"] == pytest.approx(2 * 1 / (1 + 3))


def test_more_columns_than_the_largest_k_do_not_matter() -> None:
    case = big_case()
    short = case._replace(predicted=case.predicted.first(5))
    assert evaluate(*case, MetricOptions(at=(1, 5))) == evaluate(*short, MetricOptions(at=(1, 5)))


def test_calibration_is_measured_over_the_filled_places_of_all_texts() -> None:
    scores = np.array([[0.95, 0.30], [0.95, -np.inf]], np.float32)
    predicted = TopK(np.array([[0, 1], [2, NO_LABEL]], np.int32), scores)
    found = evaluate(predicted, LabelMatrix.from_lists([{0}, {1}], 3), np.ones(3, int), 10, MetricOptions(at=(1, 2)))
    assert found.values["ECE@1"] == pytest.approx(0.95 - 1 / 2)
    assert found.values["ECE@2"] == pytest.approx((2 * (0.95 - 1 / 2) + 0.30) / 3)
    assert found.values["Brier@2"] == pytest.approx((0.05**2 + 0.30**2 + 0.95**2) / 3)


def test_the_brier_score_is_that_of_scikit_learn() -> None:
    case = big_case()
    right = [label in set(case.truth[i]) for i, row in enumerate(case.predicted.labels[:, :7]) for label in row]
    found = evaluate(*case, MetricOptions(at=AT)).values["Brier@7"]
    assert found == pytest.approx(brier_score_loss(right, case.predicted.scores[:, :7].ravel()), abs=1e-6)


@pytest.mark.parametrize("scores", [[1.5, 1.0], [0.5, -0.1], [-2.0, -3.0]])
def test_scores_that_are_no_probabilities_have_no_calibration(scores: list[float]) -> None:
    predicted = TopK(np.array([[0, 1]], np.int32), np.array([scores], np.float32))
    found = evaluate(predicted, LabelMatrix.from_lists([{0}], 2), np.ones(2, int), 10, MetricOptions(at=(2,)))
    assert found.values["P@2"] == 0.5
    assert not {"ECE@2", "Brier@2"} & found.values.keys()


def test_what_nothing_predicted_has_no_precision() -> None:
    found = evaluate(topk_of([[0]]), LabelMatrix.from_lists([{0}], 1), np.ones(1, int), 10, MetricOptions(threshold=2))
    assert "micro-P" not in found.values
    assert found.values["micro-R"] == found.values["micro-F1"] == 0.0
    assert found.plain()["threshold"] == 2.0


def test_both_settings_are_reported_where_sources_disagree() -> None:
    case = big_case()
    both = evaluate(*case, MetricOptions(at=(5,), propensities=(USUAL, Propensity(a=0.6, b=2.6))))
    usual = evaluate(*case, MetricOptions(at=(5,)))
    other = evaluate(*case, MetricOptions(at=(5,), propensities=(Propensity(a=0.6, b=2.6),)))
    assert both.values["PSP@5"] == usual.values["PSP@5"]
    assert both.values["PSP@5 (a=0.6, b=2.6)"] == other.values["PSP@5"]
    assert both.bands["tail"]["PSnDCG@5 (a=0.6, b=2.6)"] == other.bands["tail"]["PSnDCG@5"]
    assert other.values["PSP@5"] != usual.values["PSP@5"]


def test_the_result_is_plain_data_with_names_in_reading_order() -> None:
    found = evaluate(*big_case(), MetricOptions(at=(1, 5)))
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert list(plain["metrics"])[:4] == ["P@1", "P@5", "R@1", "R@5"]
    assert list(plain["bands"]) == list(BANDS)
    assert plain["propensities"] == [{"a": USUAL.a, "b": USUAL.b}]
    assert (plain["n_texts"], plain["n_texts_without_labels"]) == (300, 0)


def test_predictions_of_other_texts_are_refused() -> None:
    with pytest.raises(DataError, match="same texts, got 2 and 1 texts"):
        evaluate(topk_of([[0], [0]]), LabelMatrix.from_lists([{0}], 1), np.array([1]), 1)


def test_truth_without_any_label_is_refused() -> None:
    with pytest.raises(DataError, match="must have true labels, got none in 2 texts"):
        evaluate(topk_of([[0], [0]]), LabelMatrix.from_lists([set(), set()], 1), np.array([1]), 1)


def test_a_label_predicted_twice_is_refused() -> None:
    with pytest.raises(DataError, match=r"got label 3 twice for text 1 "):
        evaluate(topk_of([[0, 1], [3, 3]]), LabelMatrix.from_lists([set(), {3}], 4), np.array([1]), 1)


@pytest.mark.parametrize("at", [[], [0], [1, -2]])
def test_k_must_be_positive(at: list[int]) -> None:
    with pytest.raises(ConfigError, match="at"):
        MetricOptions.of({"at": at})
