"""The training loop: steps, micro-batches, stops and starts, and what goes wrong."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longtail.errors import ConfigError, LongtailError
from longtail.nn.network import Network
from longtail.nn.training.checkpoint import finite
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer
from longtail.run.run import Run
from longtail.run.stages import FolderStages

from ..small import LONGEST, Mean, a_head, a_network, options, places, texts, train, weights

ALWAYS = 1e-9
"""Seconds between checkpoints: one after every step."""
HEADS = ["dense", "shortlist", "adaptive", "tree"]


class Stop(Exception):
    """What `Watched` raises."""


class Watched:
    """Progress that remembers, and that may end a training after so many steps."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after, self.amounts, self.notes, self.total = stop_after, [], [], None

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
        self.total = total

        def advance(amount: int, note: str = "") -> None:
            self.amounts.append(amount)
            self.notes.append(note)
            if self.stop_after is not None and len(self.amounts) - 1 == self.stop_after:
                raise Stop

        yield advance


def same(one: Network, two: Network) -> bool:
    mine, other = weights(one), weights(two)
    return mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def close(one: Network, two: Network, tolerance: float = 1e-5) -> bool:
    mine, other = weights(one), weights(two)
    return all(torch.allclose(mine[n].float(), other[n].float(), atol=tolerance, rtol=tolerance) for n in mine)


def score_by(steps: dict[int, float] | Callable[[int], float]) -> Callable[[Trainer], float]:
    """A validation score by the number of steps made."""
    return lambda trainer: steps(trainer.at.step) if callable(steps) else steps.get(trainer.at.step, 0.0)


def fitted(network: Network, score: Callable[[Trainer], float], run: Run | None = None, **more: Any) -> Trainer:
    """Trained with a validation that sees the trainer."""
    trainer = Trainer(network, options(**more), 3, run or Run())
    tokens, labels = texts()
    trainer.fit(tokens, places(labels, network.head), 0, LONGEST, lambda: score(trainer))
    return trainer


def test_what_can_be_learned_is_learned() -> None:
    network = a_network()
    watched = Watched()
    train(network, Run(progress=watched), n_steps=None, epochs=60, head_rate=2e-2)
    losses = [float(note.split()[1]) for note in watched.notes if note]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("kind", HEADS)
def test_the_same_seed_gives_the_same_weights_bit_for_bit(kind: str) -> None:
    one, two = a_network(kind, dropout=0.3), a_network(kind, dropout=0.3)
    train(one)
    torch.manual_seed(99)  # whatever was drawn before does not matter
    train(two)
    assert same(one, two)
    tokens, labels = texts()
    other = a_network(kind, dropout=0.3)
    Trainer(other, options(), 4, Run()).fit(tokens, places(labels, other.head), 0, LONGEST)
    assert not same(one, other)


def test_epochs_and_steps_are_counted_and_told() -> None:
    watched = Watched()
    assert train(a_network(), Run(progress=watched), n_steps=None, epochs=2).at.step == math.ceil(2 * 30 / 7)
    assert watched.total == sum(watched.amounts) == 9 * 7
    assert watched.notes[1].startswith("loss ")
    assert train(a_network(), n_steps=None, epochs=3, epochs_left_out=1).at.step == 13 - 4
    assert train(a_network(), n_steps=5, epochs=3).at.step == 5


def test_a_batch_larger_than_the_data_is_all_of_it() -> None:
    watched = Watched()
    assert train(a_network(), Run(progress=watched), n_texts=5, batch_size=64, n_steps=None, epochs=4).at.step == 4
    assert watched.total == 4 * 5
    assert train(a_network(), n_texts=1, n_steps=3).at.step == 3


# Micro-batches


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_micro_batches_add_up_to_the_batch(kind: str, size: int) -> None:
    whole, cut = a_network(kind), a_network(kind)
    train(whole, clip_norm=0.5)
    train(cut, clip_norm=0.5, micro_batch=size)
    assert close(whole, cut)


class Full(Mean):
    """Memory for so many texts at once."""

    room = 7

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        if self.training and len(ids) > self.room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return super().forward(ids, mask)


def a_full_network(room: int, kind: str = "dense") -> Network:
    torch.manual_seed(0)
    encoder = Full()
    encoder.room = room
    return Network(encoder, a_head(kind))


@pytest.mark.parametrize("kind", HEADS)
def test_full_memory_halves_the_micro_batch_and_changes_nothing_else(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    cut, full = a_full_network(9, kind), a_full_network(2, kind)
    train(cut, micro_batch=1)
    with caplog.at_level(logging.WARNING, "longtail"):
        trainer = train(full)
    assert trainer.at.micro_batch == 1  # 7, 3, 1
    assert [record.getMessage() for record in caplog.records] == [
        f"GPU memory is full: micro-batches of {size} texts from step 0 on, still 7 texts per step" for size in (3, 1)
    ]
    assert same(cut, full)


def test_memory_that_is_too_small_for_one_text_is_an_error_that_says_what_helps() -> None:
    with pytest.raises(LongtailError, match=r"memory is full at step 1 with micro-batches of 1; use .*max_tokens"):
        train(a_full_network(0))


def test_a_step_whose_weights_are_partly_new_is_not_tried_again() -> None:
    network = a_network()

    class FullLater(type(network.head)):  # type: ignore[misc]
        def step(self, step: Any) -> None:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    network.head.__class__ = FullLater
    with pytest.raises(LongtailError, match="memory is full at step 1 with"):
        train(network)


# Stops and starts


CASES: list[tuple[str, dict[str, Any]]] = [
    ("dense", {}),
    ("dense", {"averaging": {"kind": "ema", "every": 3, "decay": 0.5}}),
    ("dense", {"averaging": {"kind": "swa", "every": 2, "start": 0.4}, "micro_batch": 3}),
    ("shortlist", {"dropout_steps": 2}),
    ("adaptive", {"averaging": {"kind": "ema", "every": 2}, "clip_norm": 0.1}),
]


@pytest.mark.parametrize(("kind", "more"), CASES)
def test_a_run_that_is_stopped_after_any_step_ends_with_the_same_weights(
    kind: str, more: dict[str, Any], tmp_path: Path
) -> None:
    whole = a_network(kind, dropout=0.2)
    train(whole, **more)
    for stop in range(1, 11) if kind == "shortlist" else (1, 4, 5, 10):
        stages = FolderStages.open(tmp_path / f"work{stop}", {}, resume=False)
        with pytest.raises(Stop):
            train(a_network(kind, dropout=0.2), Run(stages=stages, progress=Watched(stop)), checkpoint_s=ALWAYS, **more)
        again, watched = a_network(kind, dropout=0.2), Watched()
        train(again, Run(stages=FolderStages(stages.folder), progress=watched), checkpoint_s=ALWAYS, **more)
        assert watched.amounts[0] == 7 * (stop - 1)  # the step at which it was stopped had not been saved
        assert len(watched.amounts) == 1 + 10 - (stop - 1)
        assert same(whole, again)


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5, 10])
def test_validation_goes_on_where_it_was(stop: int, tmp_path: Path) -> None:
    scores = {2: 0.3, 4: 0.9, 6: 0.5, 8: 0.6, 10: 0.1}
    more: dict[str, Any] = {"validations": 5, "averaging": {"kind": "ema", "every": 1}, "checkpoint_s": ALWAYS}
    more["schedule"] = {"kind": "plateau", "plateau_patience": 0}
    whole = a_network()
    reference = fitted(whole, score_by(scores), **more)
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    with pytest.raises(Stop):
        fitted(a_network(), score_by(scores), Run(stages=stages, progress=Watched(stop)), **more)
    again = a_network()
    trainer = fitted(again, score_by(scores), Run(stages=stages), **more)
    assert trainer.at == reference.at
    assert trainer.at.drops == 3
    assert same(whole, again)


def test_a_network_that_is_done_is_not_trained_again(tmp_path: Path) -> None:
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    one, two = a_network(), a_network()
    train(one, Run(stages=stages), averaging={"kind": "ema", "every": 2})
    watched = Watched()
    train(two, Run(stages=stages, progress=watched), averaging={"kind": "ema", "every": 2})
    assert watched.amounts == [70]
    assert same(one, two)


def test_a_run_that_stopped_early_stays_stopped(tmp_path: Path) -> None:
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    one, two = a_network(), a_network()
    more: dict[str, Any] = {"validations": 10, "patience": 2}
    assert fitted(one, score_by({1: 1.0}), Run(stages=stages), **more).at.step == 3
    assert fitted(two, score_by({1: 1.0}), Run(stages=stages), **more).at.step == 3
    assert same(one, two)


def test_a_smaller_micro_batch_is_remembered(tmp_path: Path) -> None:
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    with pytest.raises(Stop):
        train(a_full_network(4), Run(stages=stages, progress=Watched(5)), checkpoint_s=ALWAYS)
    assert train(a_full_network(9), Run(stages=stages)).at.micro_batch == 3


# Validation


def test_the_best_weights_are_kept_and_training_stops_when_nothing_gets_better() -> None:
    network = a_network()
    scores = {2: 0.3, 4: 0.9, 6: 0.5, 8: 0.6, 10: 0.7, 12: 0.8}
    plan: dict[str, Any] = {
        "n_steps": 20,
        "validations": 10,
        "patience": 3,
        "schedule": {"kind": "constant", "warmup": 0},
    }
    trainer = fitted(network, score_by(scores), **plan)
    assert trainer.at.step == 10  # three validations after the best
    assert (trainer.at.best, trainer.at.best_step) == (0.9, 4)
    assert trainer.at.history == [{"step": step, "score": scores[step]} for step in (2, 4, 6, 8, 10)]
    reference = a_network()
    train(reference, n_steps=4, schedule={"kind": "constant", "warmup": 0})
    assert same(network, reference)


def test_validation_sees_averages_without_dropout_and_training_goes_on_from_the_weights() -> None:
    seen = []
    network = a_network(dropout=0.3)

    def score(trainer: Trainer) -> float:
        seen.append((trainer.at.step, weights(trainer.network)))
        return 0.0

    more: dict[str, Any] = {"validations": 2, "averaging": {"kind": "swa", "every": 1, "start": 0.0}}
    fitted(network, score, **more)
    halves = [a_network(dropout=0.3) for _ in range(2)]
    train(halves[0], n_steps=10, epochs_left_out=5 * 7 / 30, averaging=more["averaging"])
    train(halves[1], averaging=more["averaging"])
    for (step, found), half, wanted in zip(seen, halves, (5, 10), strict=True):
        assert step == wanted
        assert all(torch.equal(value, found[name]) for name, value in weights(half).items())


def test_validation_is_due_at_even_intervals_and_at_the_end() -> None:
    for validations, wanted in [(1, [10]), (2, [5, 10]), (3, [4, 8, 10]), (99, list(range(1, 11)))]:
        trainer = fitted(a_network(), score_by(lambda step: -step), validations=validations)
        assert [entry["step"] for entry in trainer.at.history] == wanted


# What goes wrong


class Broken(Mean):
    """Gives no numbers from some step on."""

    last_good, n_seen = 4, 0

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        self.n_seen += 1
        return super().forward(ids, mask) * (1.0 if self.n_seen <= self.last_good else torch.nan)


@pytest.mark.parametrize("kind", HEADS)
def test_a_loss_that_is_no_number_stops_with_the_step_and_keeps_the_last_good_checkpoint(
    kind: str, tmp_path: Path
) -> None:
    stages = FolderStages.open(tmp_path / "work", {}, resume=False)
    torch.manual_seed(0)
    network = Network(Broken(), a_head(kind))
    told = r"not finite at step 5 \(last finite at step 1\); the checkpoint of step 4 is kept; lower training.rate"
    with pytest.raises(LongtailError, match=told):
        train(network, Run(stages=stages), checkpoint_s=ALWAYS)
    assert stages.get("training").manifest["at"]["step"] == 4
    torch.manual_seed(0)
    mended = Network(Mean(), a_head(kind))
    watched = Watched()
    train(mended, Run(stages=stages, progress=watched))
    assert watched.amounts[0] == 4 * 7
    assert finite(mended)


def test_a_loss_that_is_no_number_is_found_without_checkpoints_too() -> None:
    torch.manual_seed(0)
    with pytest.raises(LongtailError, match=r"not finite at step 10 \(last finite at step 1\); lower training.rate"):
        train(Network(Broken(), a_head("dense")))


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("here it is")
    with pytest.raises(ConfigError, match=r"training\.device must be cpu or auto, got cuda"):
        train(a_network(), device="cuda")


def test_half_precision_on_a_cpu_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.precision must be .*bf16.* on a CPU, got fp16"):
        train(a_network(), precision="fp16")


def test_tensorboard_is_written_or_asked_for(tmp_path: Path) -> None:
    try:
        import tensorboard
    except ImportError:
        with pytest.raises(ImportError, match="pip install tensorboard"):
            train(a_network(), tensorboard=str(tmp_path / "board"))
    else:
        assert tensorboard
        train(a_network(), tensorboard=str(tmp_path / "board"))
        assert list((tmp_path / "board").iterdir())


# What is trained, and how


def test_each_group_of_weights_has_its_own_rate_and_biases_do_not_decay() -> None:
    two = [(group, kind) for group in ("bottleneck_rate", "head_rate") for kind in ("adaptive", "shortlist")]
    for group, kind in [("rate", "dense"), *two]:
        before, network = weights(a_network(kind)), a_network(kind)
        tiny = {name: 1e-30 for name in ("rate", "bottleneck_rate", "head_rate") if name != group}
        train(network, decay=0.0, **{group: 1e-2, **tiny})
        moved = {name for name, value in weights(network).items() if not torch.allclose(value, before[name], atol=1e-9)}
        wanted = {"rate": "encoder.", "bottleneck_rate": "head.bottleneck", "head_rate": "head."}[group]
        assert moved
        assert all(name.startswith(wanted) for name in moved)
        assert not (group == "head_rate" and any("bottleneck" in name for name in moved))


def test_a_large_epsilon_slows_the_encoder_and_the_labels() -> None:
    before, moved = weights(a_network()), {}
    for epsilon in (1e-8, 1e3):
        network = a_network()
        train(network, epsilon=epsilon, decay=0.0)
        moved[epsilon] = {name: (value - before[name]).abs().max() for name, value in weights(network).items()}
    assert all(0 < moved[1e3][name] < 0.01 * moved[1e-8][name] for name in before)


def test_rates_are_multiplied_together() -> None:
    options = TrainingOptions(rate=1e-4, bottleneck_rate=2e-4, head_rate=3e-4).with_rates(5)
    assert options.rates == pytest.approx({"encoder": 5e-4, "words": 5e-4, "bottleneck": 1e-3, "head": 1.5e-3})


def test_only_matrices_decay() -> None:
    network = a_network("adaptive")
    groups = network.groups({"encoder": 1.0, "bottleneck": 2.0, "head": 3.0}, 0.5)
    decays = {id(value): group["weight_decay"] for group in groups for value in group["params"]}
    for name, value in network.named_parameters():
        assert decays[id(value)] == (0.5 if value.ndim > 1 and "bias" not in name and "norm" not in name else 0.0), name


def test_rates_follow_the_schedule_and_their_ratios_stay() -> None:
    seen: list[list[float]] = []

    def look(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        seen.append([group["lr"] for group in optimizer.param_groups])

    network = a_network("adaptive")
    tokens, labels = texts()
    plan = options(schedule={"kind": "linear", "warmup": 0.0}, rate=1e-3, bottleneck_rate=2e-3, head_rate=4e-3)
    trainer = Trainer(network, plan, 3, Run())
    trainer.optimizer.optimizer.register_step_pre_hook(look)  # the one that accelerate wraps
    trainer.fit(tokens, places(labels, network.head), 0, LONGEST)
    rates = np.array(seen)
    assert set(np.round(rates[0], 12)) == {1e-3, 2e-3, 4e-3}  # the full ones at the start
    assert np.allclose(rates, rates[0] * np.linspace(1, 0.1, 10)[:, None])


def test_a_frozen_encoder_stays_as_it_is_while_the_labels_learn() -> None:
    network = a_network(frozen=True)
    before = weights(network)
    train(network)
    after = weights(network)
    assert all(torch.equal(after[name], before[name]) for name in after if name.startswith("encoder."))
    assert not torch.equal(after["head.table.weight"], before["head.table.weight"])


def test_dropout_may_be_on_at_the_start_of_epochs_only() -> None:
    modes: list[bool] = []

    class Noting(Mean):
        def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
            modes.append(self.training)
            return super().forward(ids, mask)

    torch.manual_seed(0)
    train(Network(Noting(0.5), a_head("dense"), 0.5), dropout_steps=2)
    assert modes == [True, True, False, False, False] * 2  # five steps an epoch
    modes.clear()
    train(Network(Noting(0.5), a_head("dense"), 0.5))
    assert modes == [True] * 10


def test_a_trained_network_is_ready_for_use() -> None:
    network = a_network(dropout=0.5)
    train(network)
    assert not network.training


@pytest.mark.parametrize("kind", HEADS)
def test_bfloat16_products_give_nearly_the_same(kind: str) -> None:
    one, two, other = a_network(kind), a_network(kind), a_network(kind)
    train(one, precision="fp32")
    train(two, precision="bf16")
    train(other, precision="auto")
    assert same(one, other)  # on a CPU
    assert not same(one, two)
    assert all(value.dtype == torch.float32 for value in weights(two).values())
    change = math.sqrt(sum(float((weights(one)[n] - v).square().sum()) for n, v in weights(a_network(kind)).items()))
    apart = math.sqrt(sum(float((weights(one)[n] - v).square().sum()) for n, v in weights(two).items()))
    assert apart < 0.3 * change
