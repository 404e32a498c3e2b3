"""What training needs beside what is free."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError
from longtail.methods import create_method
from longtail.plan import Plan, Resource, check_resources, plan_training
from longtail.run.resources import ResourceEstimate


def test_gpu_memory_is_looked_at_where_it_is_used(tmp_path: Path) -> None:
    estimate = ResourceEstimate(1, 1, "training.micro_batch", gpu_bytes=2 << 40)
    plan = Plan.of(estimate, tmp_path, free_memory=10, free_gpu=1 << 30)
    assert plan.resources[1] == Resource("GPU memory", 2 << 40, 1 << 30)
    helps = "make it smaller with `training.micro_batch`"
    assert plan.shortage == f"training needs about 2.2 TB of GPU memory, 1.1 GB are free; {helps}"


def test_what_nobody_can_tell_is_not_short(tmp_path: Path) -> None:
    plan = Plan.of(ResourceEstimate(1 << 50, 1, ""), tmp_path, None)
    assert plan.shortage is None
    assert str(plan.resources[0]) == "1,125.9 TB of memory"


def test_what_will_not_fit_is_refused_unless_it_is_forced(
    tiny: Callable[..., Dataset], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, split = create_method("linear"), tiny().train
    with caplog.at_level(logging.INFO, "longtail"):
        with pytest.raises(ConfigError, match=r"training needs about .* of memory, 1 bytes are free; .* with `force`"):
            check_resources(model, split, tmp_path, free_memory=1)
        estimate = check_resources(model, split, tmp_path, free_memory=1, force=True)
    assert estimate.memory_bytes > 1
    assert caplog.messages[0].startswith("training linear on 60 texts will take about ")


def test_each_of_several_processes_has_a_share_of_the_labels(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    model, split = create_method("fasttext"), tiny().train
    one, four = (plan_training(model, split, tmp_path, free_memory=None, ranks=ranks).estimate for ranks in (1, 4))
    share = dict(four.parts)["labels and their optimiser"] / dict(one.parts)["labels and their optimiser"]
    assert 0.2 < share < 0.5  # of 8 labels
    assert four.memory_bytes == 4 * sum(size for _, size in four.parts)
    assert four.disk_bytes == one.disk_bytes


def test_processes_are_at_least_one_and_train_networks(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    split = tiny().train
    with pytest.raises(ConfigError, match="ranks must be at least 1, got 0"):
        plan_training(create_method("fasttext"), split, tmp_path, free_memory=None, ranks=0)
    with pytest.raises(ConfigError, match="method linear must be trained by one process, got 2"):
        plan_training(create_method("linear"), split, tmp_path, free_memory=None, ranks=2)
