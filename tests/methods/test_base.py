"""What all methods have from their base: the label space, score steps per call, constants, folders."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.evaluation import evaluate_model
from longtail.methods import create_method, load_model
from longtail.methods.base import MODEL, Method, MethodOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.local import LocalEngine
from longtail.run.progress import SILENT
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


def same(one: TopK, two: TopK) -> bool:
    return np.array_equal(one.labels, two.labels) and one.scores.tobytes() == two.scores.tobytes()


@pytest.fixture(scope="module")
def skewed() -> Dataset:
    """Eighty labels, the first in most texts, the last in a few, over forty words that several of them share."""
    rng = np.random.default_rng(1)
    share = 1 / np.arange(1, 81)
    made = {}
    for split, n in (("train", 900), ("test", 400)):
        rows = [sorted(set(rng.choice(80, 4, p=share / share.sum()).tolist())) for _ in range(n)]
        texts = [
            " ".join(f"word{(label + 7 * rng.integers(0, 3)) % 40}" for label in row for _ in range(2)) for row in rows
        ]
        made[split] = (texts, [[f"label{label:02}" for label in row] for row in rows])
    return Dataset.of(made, name="skewed")


@pytest.fixture(scope="module")
def model(skewed: Dataset) -> Method:
    return create_method("linear").fit(skewed.train)


def test_as_the_weight_grows_rare_labels_are_found_and_the_first_suggestion_is_less_often_right(
    model: Method, skewed: Dataset
) -> None:
    found = []
    for weight in WEIGHTS:
        found.append(evaluate_model(model, skewed.test, tail_weight=weight).metrics)
    first = [metrics.values["P@1"] for metrics in found]
    assert first == sorted(first, reverse=True)
    assert first[-1] < first[0]
    weighed = [metrics.values["PSP@5"] for metrics in found]
    assert weighed == sorted(weighed)
    assert weighed[-1] > weighed[0]
    assert found[-1].bands["tail"]["R@5"] > found[0].bands["tail"]["R@5"]


def test_constants_are_an_option_that_is_saved_and_weighs(skewed: Dataset, model: Method, tmp_path: Path) -> None:
    amazon = create_method("linear", {"propensity": {"a": 0.6, "b": 2.6}, "tail_weight": 1.0}).fit(skewed.train)
    amazon.save(tmp_path / "m")
    weighted = load_model(tmp_path / "m").top_k(skewed.test, 5)
    assert same(weighted, amazon.top_k(skewed.test, 5))
    assert not same(weighted, model.top_k(skewed.test, 5, tail_weight=1.0))


def test_votes_by_place_keep_their_order_when_they_are_weighted(skewed: Dataset) -> None:
    model = create_method("linear", {"n_seeds": 2, "ensemble": {"vote": "rank"}}).fit(skewed.train)
    plain = model.top_k(skewed.test, 5)
    assert (np.diff(plain.scores, axis=1) < 0).mean() > 0.9  # and not all the same
    assert np.array_equal(model.top_k(skewed.test, 5, tail_weight=1e-9).labels, plain.labels)


CALLS: list[dict[str, Any]] = [
    {},
    {"tail_weight": 1.0},
    {"tail_weight": 2.0, "threshold": 0.05},
    {"allow": ["label03", "label70", "label79"]},
    {"deny": [f"label{number:02}" for number in range(10)]},
    {"deny": ["label00"], "tail_weight": 0.5},
    {"allow": [f"label{number:02}" for number in range(40, 80)], "threshold": 0.01},
    {"threshold": 0.3},
]


@pytest.mark.parametrize("name", ["linear", "knn"])
def test_eight_threads_with_different_options_get_what_one_gets(skewed: Dataset, name: str) -> None:
    model = create_method(name).fit(skewed.train)
    serial = [model.top_k(skewed.test, 5, threads=1, **call) for call in CALLS]
    assert len({found.labels.tobytes() + found.scores.tobytes() for found in serial}) == len(CALLS)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(lambda call: model.top_k(skewed.test, 5, threads=1, **call), CALLS))
            assert all(map(same, together, serial))


@pytest.mark.parametrize("name", ["linear", "linear/bonsai", "knn"])
def test_allowed_labels_are_found_wherever_the_method_can_score_them(skewed: Dataset, name: str) -> None:
    model = create_method(name).fit(skewed.train)
    every = model.top_k(skewed.test, 80)
    allowed = [model.vocabulary_.position[label] for label in ("label05", "label41", "label77")]
    found = model.top_k(skewed.test, 3, allow=["label05", "label41", "label77"])
    for row in range(len(every)):
        known = [
            (label, score)
            for label, score in zip(every.labels[row].tolist(), every.scores[row].tolist(), strict=True)
            if label in allowed
        ]
        pairs = zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True)
        assert [pair for pair in pairs if pair[0] != NO_LABEL] == known


def test_denied_labels_make_place_for_others(model: Method, skewed: Dataset) -> None:
    plain = model.top_k(skewed.test, 6)
    without = model.top_k(skewed.test, 5, deny=["label00"])
    first = model.vocabulary_.position["label00"]
    for row in range(len(plain)):
        assert without.labels[row].tolist() == [label for label in plain.labels[row].tolist() if label != first][:5]
    assert model.predict(skewed.test, 5, deny=["label00"]) == model.suggestions(without)


def test_a_threshold_leaves_out_what_scores_less(model: Method, skewed: Dataset) -> None:
    plain = model.predict(skewed.test, 5)
    assert model.predict(skewed.test, 5, threshold=0.4) == [[s for s in row if s.score >= 0.4] for row in plain]


def test_unknown_labels_and_precisions_are_refused(model: Method, skewed: Dataset) -> None:
    with pytest.raises(ConfigError, match="`deny`: the model has no label 'label99'; did you mean"):
        model.top_k(skewed.test, 5, deny=["label99"])
    with pytest.raises(ConfigError, match="precision must be one of auto, fp32 for method linear, got 'int8'"):
        model.top_k(skewed.test, 5, precision="int8")
    with pytest.raises(ConfigError, match="precision must be one of auto, fp32"):
        model.top_k(skewed.test, 5, run=Run(precision="bf16"))
    with pytest.raises(AttributeError):
        model.precision = "fp32"  # type: ignore[misc]


def test_a_run_is_given_whole_or_by_its_parts(model: Method, skewed: Dataset) -> None:
    run = Run(LocalEngine(1), SILENT)
    assert same(model.top_k(skewed.test, 5, run=run), model.top_k(skewed.test, 5, threads=1))
    assert same(create_method("linear").fit(skewed.train, run=run).top_k(skewed.test, 5), model.top_k(skewed.test, 5))
    with pytest.raises(ConfigError, match="threads and progress must be left out beside run"):
        model.top_k(skewed.test, 5, run=run, threads=2)


def test_no_number_depends_on_the_name_of_the_data(skewed: Dataset) -> None:
    found = []
    for name in ("books", "amazon-books", "Wiki-500K"):
        model = create_method("linear", {"tail_weight": 1.0}).fit(replace(skewed, name=name).train)
        model.facts_["name"] = name
        evaluation = evaluate_model(model, skewed.test)
        found.append((evaluation.predicted, evaluation.metrics))
    for lists, metrics in found[1:]:
        assert same(lists, found[0][0])
        assert metrics == found[0][1]


def test_figures_use_the_constants_of_the_model_unless_others_are_asked_for(skewed: Dataset) -> None:
    model = create_method("linear", {"propensity": {"a": 0.6, "b": 2.6}}).fit(skewed.train)
    assert [str(constants) for constants in evaluate_model(model, skewed.test).metrics.propensities] == ["a=0.6, b=2.6"]


OFFICIAL = Vocabulary.of(
    ["label03", "idle", "label00", "new"],
    {"idle": "Idle", "new": "New", "group": "A group"},
    parents={"idle": ["new"], "new": ["group"]},
)


def test_labels_without_texts_stay_in_the_model_behind_the_others(skewed: Dataset, tmp_path: Path) -> None:
    plain = create_method("linear").fit(skewed.train)
    few = skewed.train.over(skewed.vocabulary.extended(["listed"]))
    model = create_method("linear").fit(replace(few, official=OFFICIAL))
    model.save(tmp_path / "m")
    for one in (model, load_model(tmp_path / "m"), create_method("linear").fit(few, vocabulary=OFFICIAL)):
        n = len(plain.scored_labels_)
        assert one.vocabulary_.ids == [*plain.vocabulary_.ids[:n], *one.vocabulary_.ids[n:]]
        assert one.vocabulary_.ids[-3:] == ["listed", "idle", "new"]
        assert one.vocabulary_.names[-2:] == ["Idle", "New"]
        assert one.vocabulary_.parents(len(one.vocabulary_) - 2) == ["new"]
        assert one.vocabulary_.parent_names == {"group": "A group"}
        assert one.scored_labels_.tolist() == list(range(n))
        assert one.train_counts_[n:].tolist() == [0] * (len(one.vocabulary_) - n)
        assert (one.facts_["n_labels"], one.facts_["n_labels_without_texts"]) == (n, len(one.vocabulary_) - n)
        assert same(one.top_k(skewed.test, 5, tail_weight=1.0), plain.top_k(skewed.test, 5, tail_weight=1.0))
    with pytest.raises(ConfigError, match=r"`allow` must leave one of the .* labels that the model can score"):
        model.top_k(skewed.test, 5, allow=["Idle", "group/*"])


def test_true_labels_without_training_texts_are_missed_and_unseen(skewed: Dataset) -> None:
    texts, labels = ["word1 word2", "word3"], [["label01", "idle"], ["idle", "elsewhere"]]
    new = Split.of(texts, labels)
    with_idle = create_method("linear").fit(replace(skewed.train, official=OFFICIAL))
    plain = create_method("linear").fit(skewed.train)
    found, expected = evaluate_model(with_idle, new), evaluate_model(plain, new)
    assert found.metrics == expected.metrics
    assert found.metrics.n_labels_by_band["unseen"] == 2
    assert len(found.vocabulary) == len(with_idle.vocabulary_) + 1


class ByName(Method):
    """Scores every label whose id is a word of the text, seen in training or not."""

    name = "by-name"
    options_class = MethodOptions
    sees_all_labels = True

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.ids_ = list(split.vocabulary.ids)
        assert split.labels.n_labels == len(self.ids_)

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        words = [set(text.split()) for text in texts.table["text"].to_pylist()]
        found = np.array([[label in row for label in self.ids_] for row in words])
        labels = np.where(found, np.arange(len(self.ids_)), NO_LABEL)
        return top_k(labels, np.where(found, 0.5, -np.inf), k)

    def _save(self, writer: FolderWriter) -> None: ...

    def _open(self, folder: Folder) -> None:
        self.ids_ = self._scored_vocabulary().ids


def test_a_method_may_score_labels_that_no_training_text_has(tmp_path: Path) -> None:
    model = ByName().fit(["a b", "b"] * 9, [["a", "b"], ["b"]] * 9, vocabulary=Vocabulary.of(["z", "b", "y"]))
    model.save(tmp_path / "m")
    for one in (model, ByName.open(Folder(tmp_path / "m", MODEL))):
        assert one.vocabulary_.ids == ["z", "b", "y", "a"]
        assert one.scored_labels_.tolist() == [0, 1, 2, 3]
        assert one.train_counts_.tolist() == [0, 18, 0, 9]
        assert [s.id for s in one.predict(["z y b"], 5)[0]] == ["z", "b", "y"]
        assert [s.id for s in one.predict(["z y b"], 5, allow=["y"])[0]] == ["y"]
        assert one.predict(["z y b"], 1, tail_weight=1.0)[0][0].id == "z"


@pytest.mark.parametrize("k", ["5", 2.5, None, 0])
def test_k_must_be_a_whole_number(k: Any, tiny: Callable[..., Dataset]) -> None:
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got"):
        create_method("linear").fit(tiny().train).predict(["word1a"], k=k)


@pytest.mark.parametrize(("name", "value"), [("threads", "2"), ("threads", 1.5), ("threshold", "high")])
def test_numbers_of_a_call_must_be_numbers(name: str, value: Any, tiny: Callable[..., Dataset]) -> None:
    model = create_method("linear").fit(tiny().train)
    with pytest.raises(ConfigError, match=f"{name} must be a .*number.*, got {value!r}"):
        model.predict(["word1a"], **{name: value})


@pytest.mark.parametrize("path", [None, 3, b"m", "a\0b"])
def test_a_path_that_is_none_is_refused(path: Any, tiny: Callable[..., Dataset]) -> None:
    model = create_method("linear").fit(tiny().train)
    for use in (model.save, load_model):
        with pytest.raises(ConfigError, match="a path must be a text without null characters, got"):
            use(path)


def test_no_more_labels_are_asked_for_than_the_model_can_score(tiny: Callable[..., Dataset]) -> None:
    assert create_method("linear").fit(tiny().train).top_k(["word1a"], 2**70).labels.shape == (1, 8)
