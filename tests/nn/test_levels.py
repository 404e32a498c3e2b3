"""Label-wise attention down a tree of labels: networks trained one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longtail.data.dataset import Dataset
from longtail.labels.index import LabelIndex
from longtail.nn.encoders.bilstm_states import StatesOptions
from longtail.nn.heads.labelwise import Labelwise, LabelwiseOptions
from longtail.nn.heads.labelwise_candidates import LabelwiseWithin
from longtail.nn.levels import Levels
from longtail.nn.tagger import NetworkPlan, Tagger, split_rows
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.readings import TextReadings

from .sameness import equal, same_lists
from .stopping import Counted, Stopped

N_LABELS, SEED, TOP = 12, 3, 3
ONE = Run(LocalEngine(1))
FEW = {"n_steps": 4}
INDEX = LabelIndex(
    (np.zeros(4, np.int32), np.array([0, 0, 1, 1, 2, 3], np.int32), np.arange(N_LABELS, dtype=np.int32) % 6)
)
"""Four clusters, six below them, twelve labels."""
LEVELS = Levels(INDEX, LabelwiseOptions(widths=(8,)), TOP)
ENCODER = StatesOptions.of(
    {"hidden": 8, "vectors": {"width": 8}, "tokens": {"max_tokens": 32}, "dropout": 0.1, "dropout_words": 0.0}
)
TRAINING = {
    "rate": 3e-2,
    "bottleneck_rate": 3e-2,
    "head_rate": 3e-2,
    "epochs": 20,
    "batch_size": 16,
    "clip_norm": 1.0,
    "averaging": {"kind": "none"},
}


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=80, n_labels=N_LABELS)


def fit(data: Dataset, levels: Levels = LEVELS, run: Run = ONE, **more: Any) -> Tagger:
    return levels.fit(TextReadings(data.train.texts), data.train.labels, plan(**more), run)


def plan(**more: Any) -> NetworkPlan:
    return NetworkPlan(ENCODER, TrainingOptions.of({**TRAINING, **more}), seed=SEED)


@pytest.fixture(scope="module")
def fitted(data: Dataset) -> Callable[..., Tagger]:
    """Trains each way once."""
    return cache(lambda **more: fit(data, **more))


def chain(tagger: Tagger) -> list[Any]:
    """The networks of all levels, from the top."""
    found: list[Any] = [tagger.network]
    while found[0].above is not None:
        found.insert(0, found[0].above)
    return found


def test_what_can_be_learned_is_learned(fitted: Any, data: Dataset) -> None:
    found = fitted().top_k(TextReadings(data.test.texts), 1, ONE)
    assert np.mean([found.labels[row, 0] in data.test.labels[row] for row in range(80)]) > 0.8


def test_there_is_a_network_a_level_and_each_has_the_words_of_its_own(fitted: Any) -> None:
    networks = chain(fitted(**FEW))
    assert [type(network.head) for network in networks] == [Labelwise, LabelwiseWithin, LabelwiseWithin]
    assert [network.head.n_labels for network in networks] == [4, 6, 12]
    assert len({id(network.encoder) for network in networks}) == 3
    assert [network.n_candidates for network in networks[1:]] == [TOP, TOP]


def test_a_level_begins_as_the_one_above_ended(data: Dataset) -> None:
    """At rates of nearly zero it also ends so."""
    above: Tagger | None = None
    for level, rate in enumerate((3e-2, 1e-30)):
        targets = list(INDEX.targets(data.train.labels))[level]
        slow = plan(**FEW, rate=rate, bottleneck_rate=rate)
        made = LEVELS.fit_level(level, above, TextReadings(data.train.texts), targets, slow, run=ONE)
        above = made
    first, second = chain(made)
    for part in ("encoder", "head.shared"):
        mine, other = second.get_submodule(part).state_dict(), first.get_submodule(part).state_dict()
        assert all(torch.allclose(mine[name], other[name], atol=1e-9) for name in mine)


def test_scores_are_products_down_the_tree(fitted: Any, data: Dataset) -> None:
    tagger = fitted()
    networks = chain(tagger)
    found = tagger.top_k(TextReadings(data.test.texts), N_LABELS, ONE)
    tokens = tagger.tokens(TextReadings(data.test.texts), ONE)
    for row in range(0, 80, 9):
        ids = torch.from_numpy(tokens.padded(np.array([row]), int(tokens.lengths()[row]), 0)[0]).long()
        logs: dict[int, float] = {}
        for level, network in enumerate(networks):
            own = _logits(network, ids)
            best = sorted(logs, key=lambda cluster: -logs[cluster])[:TOP]
            parent = INDEX.parents[level]
            logs = {
                child: float(own[child]) + (logs[int(parent[child])] if level else 0.0)
                for child in range(len(parent))
                if level == 0 or int(parent[child]) in best
            }
        expected = sorted(logs.values(), reverse=True)
        n = len(expected)
        assert found.scores[row, :n] == pytest.approx(np.exp(expected), rel=1e-3, abs=1e-6)
        assert [logs[label] for label in found.labels[row, :n].tolist()] == pytest.approx(expected, abs=1e-3)
        assert (found.labels[row, n:] == -1).all()


def _logits(network: Any, ids: torch.Tensor) -> torch.Tensor:
    """Log scores of all children of a level, by their own logits, each as the formulas say."""
    head = network.head
    with torch.no_grad():
        states = network.encoder.eval()(ids, None)[0]
        state = ((states @ head.rows.T).softmax(0).T @ states @ head.shared.first.weight.T) + head.shared.first.bias
        logits = head.shared.last(state.relu())[:, 0] + head.bias
    made = torch.nn.functional.logsigmoid(logits)
    if head.order is None:
        return made
    by_label = torch.empty(head.n_labels)
    real = torch.from_numpy(head.order >= 0)
    by_label[torch.from_numpy(head.order)[real]] = made[real]
    return by_label


@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_texts_are_trained_on_what_the_trained_level_above_finds(validation: float, fitted: Any, data: Dataset) -> None:
    tagger = fitted(**FEW, **({"validation": validation, "validations": 1} if validation else {}))
    kept, _ = split_rows(80, TrainingOptions(validation=validation), SEED)
    networks = chain(tagger)
    for level in (1, 2):
        above = Tagger(networks[level - 1], ENCODER).top_k(TextReadings(data.train.texts), TOP, ONE).labels
        assert np.array_equal(networks[level].head.fixed, above[kept])


def test_facts_tell_of_all_levels(fitted: Any) -> None:
    facts = fitted(**FEW, validation=0.25, validations=2).facts
    for _ in range(3):
        assert [entry["step"] for entry in facts["validation"]] == [2, 4]
        facts = facts.get("above")
    assert facts is None


def test_a_saved_one_gives_the_same_bit_for_bit(fitted: Any, data: Dataset, tmp_path: Path) -> None:
    tagger = fitted()
    with write_folder(tmp_path / "t", "test") as writer:
        tagger.save(writer, "network")
    opened = LEVELS.load(Folder(tmp_path / "t", "test"), "network")
    assert equal(opened.network, tagger.network)
    assert same_lists(opened, tagger, data.test.texts)


def test_a_copy_in_bfloat16_finds_nearly_the_same(fitted: Any, data: Dataset) -> None:
    tagger = fitted()
    halved = tagger.network.quantised("bf16")
    for network in (halved, halved.above, halved.above.above):
        assert {parameter.dtype for parameter in network.encoder.parameters()} == {torch.bfloat16}
    found = Tagger(halved.eval(), ENCODER).top_k(TextReadings(data.test.texts), 1, ONE)
    assert np.mean(found.labels == tagger.top_k(TextReadings(data.test.texts), 1, ONE).labels) > 0.9


def test_without_clusters_there_is_one_network(data: Dataset) -> None:
    levels = Levels(LabelIndex.flat(N_LABELS), LabelwiseOptions(widths=(8,)), TOP)
    tagger = fit(data, levels, **FEW)
    assert levels.n_levels == len(chain(tagger)) == 1
    assert "above" not in tagger.facts
    assert tagger.network.head.n_labels == N_LABELS


@pytest.mark.parametrize("last", [2, 7, 11])
def test_a_stopped_run_goes_on_in_its_level(last: int, data: Dataset, fitted: Any, tmp_path: Path) -> None:
    """Three trainings of four steps; the step that it stops in is lost."""

    def run(progress: Counted, resume: bool) -> Tagger:
        stages = FolderStages.open(tmp_path / "work", {}, resume)
        return fit(data, run=Run(LocalEngine(1), progress, stages), **FEW, checkpoint_s=1e-9)

    with pytest.raises(Stopped):
        run(Counted(last), resume=False)
    assert (tmp_path / "work" / "level-2-candidates").is_dir() == (last > 8)
    rest = Counted()
    again = run(rest, resume=True)
    assert rest.n == 12 - (last - 1)
    assert equal(again.network, fitted(**FEW).network)


@pytest.mark.parametrize("measure", [False, True])
def test_what_levels_need_is_told(measure: bool, data: Dataset) -> None:
    needs = LEVELS.estimate_resources(data.train, plan(**FEW), measure=measure)
    alone = Levels(LabelIndex.flat(N_LABELS), LEVELS.labelwise, TOP)
    one = alone.estimate_resources(data.train, plan(**FEW), measure=measure)
    assert needs.disk_bytes > 2 * one.disk_bytes
    assert (needs.seconds is not None) == measure
