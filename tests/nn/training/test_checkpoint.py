from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from longtail.errors import LongtailError
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.checkpoint import Kept, Progressed, copy_into, finite, load, save
from longtail.run.run import Run
from longtail.run.stages import NO_STAGES, FolderStages

from ..small import a_network, train, weights


def kept_of(kind: str, n_steps: int = 0) -> Kept:
    """What a checkpoint is made of after some steps; none are a network as it was made."""
    network = a_network(kind)
    trainer = train(network, n_steps=max(n_steps, 1), averaging={"kind": "ema", "every": 1})
    if n_steps == 0:
        fresh = a_network(kind)
        return Kept(
            fresh,
            torch.optim.AdamW(fresh.groups(trainer.options.rates, 0.1)),
            _averager(fresh),
            None,
            Progressed(),
            None,
            torch.zeros(5),
        )
    trainer.at.history.append({"step": n_steps, "score": 0.1 + 0.2})
    best = {name: value + 1 for name, value in weights(network).items() if name in network.trained()}
    return Kept(network, trainer.optimizer, trainer.averager, None, trainer.at, best, torch.arange(5.0))


def _averager(network: Any) -> Any:
    from longtail.nn.training.averaging import Averager, AveragingOptions

    return Averager(network.trained(), AveragingOptions(every=1))


def state(kept: Kept) -> dict[str, Any]:
    """All tensors that a checkpoint must bring back."""
    numbers = [kept.optimizer.state[value] for group in kept.optimizer.param_groups for value in group["params"]]
    found = {f"optimizer {i} {name}": value for i, own in enumerate(numbers) for name, value in own.items()}
    tables = {f"{n} {k}": v for n, table in kept.network.head.tables().items() for k, v in table.state().items()}
    return {**found, **tables, **kept.averager.average, **{f"own {n}": v for n, v in weights(kept.network).items()}}


@pytest.fixture
def stages(tmp_path: Path) -> FolderStages:
    return FolderStages.open(tmp_path / "work", {}, resume=False)


@pytest.mark.parametrize("kind", ["dense", "shortlist", "adaptive", "tree"])
def test_all_that_was_kept_comes_back_bit_for_bit(kind: str, stages: FolderStages) -> None:
    kept, fresh = kept_of(kind, 4), kept_of(kind)
    save(stages, kept)
    at, best = load(stages, fresh)
    assert at == kept.at
    assert fresh.averager.n == kept.averager.n == 4
    wanted, found = state(kept), state(fresh)
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        assert value.shape == found[name].shape, name
        assert value.dtype == found[name].dtype, name
        assert torch.equal(value, found[name]), name
    assert best.keys() == kept.best_weights.keys()
    assert all(torch.equal(best[name], kept.best_weights[name]) for name in best)


def test_what_came_back_does_not_hang_on_the_file(stages: FolderStages) -> None:
    save(stages, kept_of("dense", 2))
    fresh = kept_of("dense")
    load(stages, fresh)
    before = {name: value.clone() for name, value in state(fresh).items()}
    save(stages, kept_of("dense", 3))
    assert all(torch.equal(value, before[name]) for name, value in state(fresh).items())


def test_without_a_checkpoint_or_a_folder_there_is_nothing_to_go_on_from(stages: FolderStages) -> None:
    assert load(stages, kept_of("dense")) is None
    save(NO_STAGES, kept_of("dense", 1))
    assert load(NO_STAGES, kept_of("dense")) is None


def test_a_damaged_checkpoint_counts_as_none(stages: FolderStages) -> None:
    save(stages, kept_of("dense", 2))
    (stages.folder / "training" / "weights.safetensors").write_bytes(b"x")
    assert load(stages, kept_of("dense")) is None


def test_the_last_checkpoint_stands_until_the_next_one_does(stages: FolderStages) -> None:
    save(stages, kept_of("dense", 2))
    broken = kept_of("dense", 3)
    broken.network.head.tables()["table"].moments["bad"] = "no tensor"  # type: ignore[assignment]
    with pytest.raises((AttributeError, LongtailError)):
        save(stages, broken)
    assert load(stages, kept_of("dense"))[0].step == 2


def test_a_run_that_has_not_been_validated_has_no_best_score(stages: FolderStages) -> None:
    kept = kept_of("dense", 1)
    assert kept.at.best == -math.inf
    save(stages, kept)
    assert load(stages, kept_of("dense"))[0].best == -math.inf


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_no_numbers_are_found(bad: float) -> None:
    network = a_network("shortlist")
    assert finite(network)
    network.head.rank.weight.data[3, 1] = bad
    assert not finite(network)


def test_weights_are_overwritten_in_place() -> None:
    one, two = a_network(), a_network()
    train(one, Run())
    places = {name: value.data_ptr() for name, value in two.named_parameters()}
    copy_into(one.trained(), two.trained())
    assert all(torch.equal(value, dict(one.named_parameters())[name]) for name, value in two.named_parameters())
    assert places == {name: value.data_ptr() for name, value in two.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_tensors_survive_as_arrays(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.randn(shape) * 9).to(dtype)
    found = to_tensors(to_arrays({"t": tensor, "turned": tensor.T if tensor.ndim == 2 else tensor}))
    assert found["t"].dtype == dtype
    assert found["t"].shape == tensor.shape
    assert torch.equal(found["t"], tensor)
    assert torch.equal(found["turned"], tensor.T if tensor.ndim == 2 else tensor)
