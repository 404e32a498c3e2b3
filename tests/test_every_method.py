"""What must hold for every method and preset, whatever it is made of."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from longtail.cli.main import main
from longtail.data import load_dataset
from longtail.data.dataset import Dataset, Split, as_table
from longtail.data.vocabulary import Vocabulary
from longtail.data.write import write_dataset
from longtail.errors import ConfigError, DataError, LongtailError, ModelFormatError, NotFittedError
from longtail.evaluation import evaluate_model
from longtail.methods import create_method, load_model
from longtail.methods.base import Method
from longtail.report import html_report, make_report
from longtail.run.progress import Advance
from longtail.types import NO_LABEL, TopK

KILLED = """
import json, os, signal, sys
from contextlib import contextmanager
from longtail.data import load_dataset
from longtail.methods import create_method

class Deadly:
    '''Kills the process as a step begins, or in the middle of the training of a network.'''
    left = int(sys.argv[5])
    @contextmanager
    def step(self, name, total=None, unit=""):
        self.event()
        yield lambda amount, note="": self.event() if name == "train" else None
    def event(self):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

method = create_method(sys.argv[1], json.loads(sys.argv[2]))
method.fit(load_dataset(sys.argv[3]).train, work=sys.argv[4], progress=Deadly(), threads=1)
"""

WITH_SHORT_LISTS = {"lexical"}
"""Methods that suggest only labels for which a text has evidence, however many are asked for."""
EXPORTED = {"lightxml", "lightxml:shortlist", "aplc-xlnet", "fasttext", "xml-cnn", "attentionxml"}
"""Methods whose models are one network that can be recorded as a graph."""

pytestmark = pytest.mark.usefixtures("plugin")  # whose method is one of them
Make = Callable[..., Method]
Quick = Callable[..., dict[str, Any]]


@pytest.fixture
def name(each_name: str) -> str:
    return each_name


@pytest.fixture(scope="session")
def make(quick: Quick) -> Make:
    """Makes an untrained model that trains quickly: `make("linear", {"seed": 4})`."""
    return lambda name, *more: create_method(name.partition(":")[0], quick(name), *more)


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=80, n_labels=12, named=True)


def id_lists(split: Split) -> list[list[str]]:
    """The ids of the labels of each text."""
    return [[split.vocabulary.ids[label] for label in split.labels[row]] for row in range(len(split))]


@pytest.fixture(scope="module")
def trained(data: Dataset, make: Make) -> Callable[[str], Method]:
    """One trained model a method, for tests that only look at it."""
    made: dict[str, Method] = {}

    def get(name: str) -> Method:
        if name not in made:
            made[name] = make(name).fit(data.train)
        return made[name]

    return get


def same(one: TopK, two: TopK) -> bool:
    return np.array_equal(one.labels, two.labels) and one.scores.tobytes() == two.scores.tobytes()


def test_top_k_has_k_labels_a_text_best_first_and_none_twice(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    found = trained(name).top_k(data.test, 5)
    assert found.labels.shape == found.scores.shape == (80, 5)
    assert found.labels.dtype == np.int32
    assert found.scores.dtype == np.float32
    assert (found.scores[:, :-1] >= found.scores[:, 1:]).all()
    filled = found.labels != NO_LABEL
    assert filled.all() or name in WITH_SHORT_LISTS
    assert (filled[:, :-1] >= filled[:, 1:]).all()
    assert np.isneginf(found.scores[~filled]).all()
    assert all(len({*row} - {NO_LABEL}) == n for row, n in zip(found.labels.tolist(), filled.sum(1), strict=True))
    assert found.labels.max() < 12


def test_what_can_be_learned_is_learned(name: str, data: Dataset, trained: Callable[[str], Method]) -> None:
    found = trained(name).top_k(data.test, 1)
    right = [found.labels[row, 0] in data.test.labels[row] for row in range(len(data.test))]
    assert np.mean(right) > 0.9


def test_predictions_carry_ids_names_and_scores(name: str, data: Dataset, trained: Callable[[str], Method]) -> None:
    model = trained(name)
    found, top = model.predict(data.test, 3), model.top_k(data.test, 3)
    listed = [[f"label{_number(model, i)}" for i in row if i != NO_LABEL] for row in top.labels]
    assert [[s.id for s in row] for row in found] == listed
    assert found[0][0].score == top.scores[0, 0]


def test_an_explanation_names_words_of_the_label(name: str, data: Dataset, trained: Callable[[str], Method]) -> None:
    """Texts are made of words that begin with the number of their label, and of noise."""
    model = trained(name)
    texts = data.test.texts["text"][:10].to_pylist()
    best = [row[0] for row in model.predict(texts, 1)]
    named = 0
    for text, label in zip(texts, best, strict=True):
        explanation = model.explain(text, label.name)
        assert (explanation.label, explanation.name) == (label.id, label.name)
        assert explanation.score == pytest.approx(label.score, abs=1e-5)
        assert json.loads(json.dumps(explanation.to_dict()))["method"] == explanation.method
        assert all(text[start:end] for _, start, end, _ in explanation.highlights())
        named += explanation.top(1)[0].word.startswith(f"word{label.id.removeprefix('label')}")
    assert named >= 8


def _number(model: Method, label: int) -> str:
    return model.vocabulary_.ids[label].removeprefix("label")


def test_a_saved_model_gives_the_same_bit_for_bit(
    name: str, data: Dataset, trained: Callable[[str], Method], tmp_path: Path
) -> None:
    model = trained(name)
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m", verify=True)
    assert same(opened.top_k(data.test, 12), model.top_k(data.test, 12))
    assert opened.predict(data.test, 3) == model.predict(data.test, 3)
    assert opened.options == model.options
    assert opened.vocabulary_.ids == model.vocabulary_.ids
    assert opened.facts_ == model.facts_
    assert opened.columns == model.columns
    opened.save(tmp_path / "again")
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (tmp_path / "m" / "manifest.json").read_bytes()


def test_a_model_is_shown_and_measured_in_a_report(
    name: str, data: Dataset, trained: Callable[[str], Method], tmp_path: Path
) -> None:
    model = trained(name)
    model.save(tmp_path / "m")
    assert main(["info", str(tmp_path / "m")]) == main(["info", str(tmp_path / "m"), "--json"]) == 0
    report = make_report(model, evaluate_model(model, data.test), "tiny", "test", tmp_path / "m")
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["reliability"]
    assert html_report(report).endswith("</html>\n")


def test_a_pickled_or_copied_model_gives_the_same_bit_for_bit(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    model = trained(name)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert same(copied.top_k(data.test, 12), model.top_k(data.test, 12))
        assert copied.get_params() == model.get_params()
    cloned = clone(model)
    assert cloned.options == model.options
    assert not cloned.__sklearn_is_fitted__()


def test_probabilities_and_scores_are_those_of_the_lists(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    model = trained(name)
    top = model.top_k(data.test, 3)
    scores = model.predict_proba(data.test, k=3)
    assert scores.shape == (80, len(model.classes_))
    filled = top.labels != NO_LABEL
    assert np.array_equal(np.take_along_axis(scores.toarray(), top.labels, 1)[filled], top.scores[filled])
    assert 0.9 < model.score(data.test, metric="P@1") <= 1


def test_a_text_gets_the_same_labels_alone_and_in_a_batch(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    model = trained(name)
    together = model.predict(data.test, 4)
    for row, text in enumerate(data.test.texts["text"].to_pylist()[:10]):
        alone = model.predict([text], 4)[0]
        assert [s.id for s in alone] == [s.id for s in together[row]]
        assert [s.score for s in alone] == pytest.approx([s.score for s in together[row]], abs=1e-5)


def test_the_same_seed_gives_the_same_model_for_any_number_of_threads(
    name: str, make: Make, quick: Quick, data: Dataset, tmp_path: Path
) -> None:
    runs = [1, 1, 2] if quick(name) else [1, 2, 5]
    models = [make(name, {"seed": 4}).fit(data.train, threads=threads) for threads in runs]
    for number, model in enumerate(models):
        model.save(tmp_path / str(number))
    written = [(tmp_path / str(number) / "manifest.json").read_bytes() for number in range(3)]
    if quick(name):  # networks: sums are cut by threads, so the last bits may differ between numbers of threads
        assert written[0] == written[1]
        one, two = (model.top_k(data.test, 1, threads=1).labels for model in models[1:])
        assert np.array_equal(one, two)
    else:
        assert written[0] == written[1] == written[2]
        model = load_model(tmp_path / "1")
        assert same(model.top_k(data.test, 5, threads=1), model.top_k(data.test, 5, threads=3))


def test_texts_and_label_lists_are_as_good_as_a_split(name: str, make: Make, data: Dataset, tmp_path: Path) -> None:
    texts = data.train.texts["text"].to_pylist()
    labels = id_lists(data.train)
    one = make(name).fit(texts, labels, vocabulary=data.vocabulary).top_k(data.test, 5)
    assert same(one, make(name).fit(data.train).top_k(data.test, 5))
    with pytest.raises(DataError, match="labels of the texts"):
        make(name).fit(texts)
    with pytest.raises(DataError, match="as many"):
        make(name).fit(texts, labels[:-1])


def test_a_model_that_is_not_trained_says_so(name: str, make: Make, tmp_path: Path) -> None:
    model = make(name)
    for use in (lambda: model.predict(["x"]), lambda: model.top_k(["x"]), lambda: model.save(tmp_path / "m")):
        with pytest.raises(NotFittedError, match="not trained"):
            use()
    assert not (tmp_path / "m").exists()


def test_empty_texts_get_an_answer(name: str, trained: Callable[[str], Method]) -> None:
    model = trained(name)
    for texts in (["", "word1a word1b"], [""], ["unknown words alone"]):
        found = model.top_k(texts, 3)
        assert found.labels.shape == (len(texts), 3)
        assert not np.isnan(found.scores).any()
    assert model.top_k([], 3).labels.shape == (0, 3)
    assert model.predict([]) == []


def test_texts_without_labels_may_stand_among_the_others(name: str, make: Make, data: Dataset) -> None:
    texts = [*data.train.texts["text"].to_pylist(), "nobody tagged this", ""]
    model = make(name).fit(texts, [*id_lists(data.train), [], []], vocabulary=data.vocabulary)
    assert model.facts_["n_texts"] == 82
    assert model.predict(["word3a word3b word3c"], 1)[0][0].id == "label3"


def test_labels_without_texts_have_numbers_but_are_never_found(
    name: str, make: Make, data: Dataset, trained: Callable[[str], Method], tmp_path: Path
) -> None:
    ids = ["idle", *data.vocabulary.ids[:5], "unused", *data.vocabulary.ids[5:]]
    wider = data.train.over(Vocabulary.of(ids).described_by(data.vocabulary))
    model = make(name).fit(wider)
    model.save(tmp_path / "m")
    for one in (model, load_model(tmp_path / "m")):
        assert one.facts_["n_labels_without_texts"] == 2
        assert one.vocabulary_.ids == ids
        assert np.flatnonzero(one.train_counts_ == 0).tolist() == [0, 6]
        scored = range(14) if name == "lexical" else [*range(1, 6), *range(7, 14)]
        assert one.scored_labels_.tolist() == [*scored]
        assert one.predict(data.test, 14) == trained(name).predict(data.test, 14)


def test_more_labels_than_there_are_give_all_of_them(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    lists = trained(name).top_k(data.test, 20)
    assert lists.labels.shape == lists.scores.shape == (80, 12)
    assert np.isneginf(lists.scores[lists.labels == NO_LABEL]).all()
    assert all(len(row) <= 12 for row in trained(name).predict(data.test, 20))
    with pytest.raises(ConfigError, match="k must be a whole number of at least 1, got 0"):
        trained(name).top_k(data.test, 0)


def test_a_tail_weight_of_0_changes_nothing_and_more_moves_rare_labels_up(
    name: str, data: Dataset, trained: Callable[[str], Method], tmp_path: Path
) -> None:
    trained(name).save(tmp_path / "m")
    plain, model = trained(name).top_k(data.test, 12), load_model(tmp_path / "m")
    assert same(model.top_k(data.test, 12, tail_weight=0.0), plain)
    weighted = model.top_k(data.test, 12, tail_weight=3.0)
    assert not same(weighted, plain)
    assert (weighted.scores[:, :-1] >= weighted.scores[:, 1:]).all()
    assert (np.sort(weighted.labels, axis=1) == np.sort(plain.labels, axis=1)).all()  # all twelve, in another order
    first, before = (model.train_counts_[found.labels[:, 0]].mean() for found in (weighted, plain))
    assert first <= before
    assert same(model.top_k(data.test, 12), plain)  # the model stays as it was
    with pytest.raises(ConfigError, match="tail_weight must be greater than or equal to 0, got -1"):
        model.top_k(data.test, 12, tail_weight=-1.0)


def test_allowed_labels_are_those_of_the_whole_list(name: str, data: Dataset, trained: Callable[[str], Method]) -> None:
    model = trained(name)
    every, some = model.predict(data.test, 12), ["label3", "label5", "label9"]
    expected = [[s for s in row if s.id in some] for row in every]
    assert model.predict(data.test, 4, allow=some) == expected
    assert model.predict(data.test, 12, deny=some) == [[s for s in row if s.id not in some] for row in every]


def test_threads_share_a_model_whatever_each_asks_for(
    name: str, data: Dataset, trained: Callable[[str], Method]
) -> None:
    model, some = trained(name), data.test.take(np.arange(20))
    calls: list[dict[str, Any]] = [{}, {"tail_weight": 2.0}, {"deny": ["label1"]}, {"threshold": 0.2}]
    serial = [model.top_k(some, 5, threads=1, **call) for call in calls]
    with ThreadPoolExecutor(len(calls)) as pool:
        together = list(pool.map(lambda call: model.top_k(some, 5, threads=1, **call), calls))
    assert all(map(same, together, serial))


@pytest.mark.parametrize(("texts", "labels"), [([], []), (["a", "b"], [[], []]), (["a", "b"], [["x"], ["x"]])])
def test_what_cannot_be_trained_on_is_refused(name: str, make: Make, texts: list[str], labels: list[list[str]]) -> None:
    with pytest.raises(DataError, match="training needs"):
        make(name).fit(Split.of(texts, labels))


def test_data_without_texts_are_refused_by_methods_that_read_them(name: str, make: Make, data: Dataset) -> None:
    """Data that came as features only have empty texts."""
    features = data.train.labels.to_scipy()  # whatever they say
    bare = replace(data.train, texts=as_table([""] * len(data.train)), features=features)
    make(name).check(replace(data.train, features=features))
    if make(name).reads_features:
        make(name).check(bare)
    else:
        with pytest.raises(DataError, match=r"must have texts to read, got 80 rows of features.* or method linear"):
            make(name).fit(bare)


def test_two_labels_are_enough(name: str, make: Make) -> None:
    texts = [f"{text} noise{number}" for number in range(4) for text in ("red apple", "grey stone")]
    model = make(name).fit(texts, [["apple"], ["stone"]] * 4)
    assert [row[0].id for row in model.predict(["an apple", "a stone"], 1)] == ["apple", "stone"]


def test_needs_are_told_before_training(name: str, make: Make, data: Dataset) -> None:
    needs = make(name).estimate_resources(data.train)
    assert needs.memory_bytes > 0
    assert needs.disk_bytes > 0
    assert needs.how_to_shrink


def test_a_damaged_folder_is_refused(name: str, trained: Callable[[str], Method], tmp_path: Path) -> None:
    for file in _files(trained(name), tmp_path / "whole"):
        trained(name).save(tmp_path / "m")
        content = bytearray((tmp_path / "m" / file).read_bytes())
        content[len(content) // 2] ^= 0xFF
        (tmp_path / "m" / file).write_bytes(content)
        with pytest.raises(ModelFormatError, match=file.split(".")[0]):
            load_model(tmp_path / "m")
        (tmp_path / "m" / file).write_bytes(content[:-1])
        with pytest.raises(ModelFormatError, match=file.split(".")[0]):
            load_model(tmp_path / "m", verify=False)
    with pytest.raises(ModelFormatError, match="is not a longtail model"):
        load_model(tmp_path)


def _files(model: Method, folder: Path) -> list[str]:
    model.save(folder)
    return [*json.loads((folder / "manifest.json").read_text())["files"], "manifest.json"]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_killed_training_goes_on_and_ends_with_the_same_model(each_plain: str, tmp_path: Path, part: float) -> None:
    counted, resumed = _killed_and_resumed(each_plain, {}, "debtags-sample", tmp_path, part)
    assert resumed[0] != counted[0]  # the first stage was not built again


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_network_killed_between_two_steps_ends_with_the_same_weights(
    each_network: str, quick: Quick, data: Dataset, tmp_path: Path
) -> None:
    write_dataset(data, tmp_path / "data")
    often = {"checkpoint_s": 1e-9, "epochs": 4, "averaging": {"kind": "ema", "every": 3}, "validation": 0.1}
    options = quick(each_network, **often)
    method = each_network.partition(":")[0]
    counted, resumed = _killed_and_resumed(method, options, str(tmp_path / "data"), tmp_path, 0.6)
    assert resumed.count("train") < 0.8 * counted.count("train")  # steps before the kill were not made again


def _killed_and_resumed(
    method: str, options: dict[str, Any], source: str, folder: Path, part: float
) -> tuple[list[str], list[str]]:
    """Events of a whole training, and of one that was killed at a `part` of these and then resumed."""
    split, counted, resumed = load_dataset(source).train, _Events(), _Events()
    whole = create_method(method, options).fit(split, work=folder / "whole.work", progress=counted, threads=1)
    whole.save(folder / "whole")
    at = str(max(1, int(len(counted.names) * part)))  # the first stage is whole
    command = [sys.executable, "-c", KILLED, method, json.dumps(options), source, str(folder / "work"), at]
    assert subprocess.run(command, check=False).returncode == -9
    again = create_method(method, options)
    again.fit(split, work=folder / "work", resume=True, progress=resumed, threads=1).save(folder / "m")
    assert (folder / "m" / "manifest.json").read_bytes() == (folder / "whole" / "manifest.json").read_bytes()
    with pytest.raises(LongtailError, match="other data or options"):
        create_method(method, options, {"seed": 1}).fit(split, work=folder / "work", resume=True)
    return counted.names, resumed.names


class _Events:
    """Remembers the steps of a training, and each step of a network's."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        self.names.append(name)

        def advance(amount: int, note: str = "") -> None:
            if name == "train":
                self.names.append(name)

        yield advance


def test_a_model_is_one_network_or_says_by_name_why_it_cannot_be_exported(
    name: str, trained: Callable[[str], Method]
) -> None:
    model = trained(name)
    try:
        network = model.exported_network()
    except ConfigError as error:
        assert "export" in str(error) and ("serve" in str(error) or "train" in str(error))
        assert f"method {model.name}" in str(error)
        assert name not in EXPORTED
    else:
        assert network.network.head.n_labels == len(model.scored_labels_)
        assert name in EXPORTED
