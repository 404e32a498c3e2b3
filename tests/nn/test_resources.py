"""What training a network will take, told before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig

from longtail.data.dataset import Dataset, Split
from longtail.nn.encoders.base import ENCODERS
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.resources import Advice, estimate_network, kept_bytes
from longtail.nn.training.batches import BatchPlan, steps
from longtail.nn.training.options import TrainingOptions
from longtail.nn.trial import batch_widths, fill
from longtail.run.resources import ResourceEstimate
from longtail.text.readings import TextReadings
from longtail.text.tokens import tokenise

GIB = 2**30
Tiny = Callable[..., Dataset]


class NoTokens:
    pad_id, cls_last, last_type, n_ids, max_tokens = 0, False, 0, 30_522, 512

    def check_fits(self, n_ids: int) -> None:
        """Every encoder will do."""


@pytest.fixture
def split(tiny: Tiny) -> Split:
    return tiny(200).train


@pytest.fixture
def told(split: Split, tiny_encoder: Path) -> Callable[..., ResourceEstimate]:
    """ResourceEstimate of a tiny transformer with these options of training, table and encoder."""

    def estimate_resources(
        table: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **training: Any
    ) -> ResourceEstimate:
        options = TransformerOptions.of({"model": str(tiny_encoder), **(encoder or {})})
        how = {name: training.pop(name) for name in ("n_seeds", "measure", "advice") if name in training}

        def head(width: int) -> Head:
            return Dense(width, 5000, LabelTableOptions.of(table))

        return estimate_network(split, [options], head, TrainingOptions.of(training), **how)

    return estimate_resources


def part(needs: ResourceEstimate, name: str) -> int:
    return next(size for what, size in needs.parts if name in what)


def test_a_gpu_needs_what_was_measured_on_one() -> None:
    """BERT-base, 128 tokens, 256 texts, bfloat16: 12.6 GiB with gradients, moments and weights in half precision.

    Then, the last layer was computed for all tokens, as it is now for their mean.
    """
    with torch.device("meta"):
        config = BertConfig(num_hidden_layers=2, vocab_size=100)  # a sixth of its layers, to be quick
        encoder = Transformer.from_config(config, TransformerOptions(pooling="mean"), NoTokens())
    kept = 6 * kept_bytes(encoder, 128, torch.device("cuda"), half=True)
    weights = 108_891_648
    assert 256 * kept + 18 * weights == pytest.approx(12.6 * GIB, rel=0.05)
    table = 2 * 2 * 670_091 * 768  # rows and momentum in bfloat16
    assert 64 * kept + 18 * weights + table == pytest.approx(6.2 * GIB, rel=0.1)


def test_weights_and_optimisers_are_counted_to_the_byte(
    told: Callable[..., ResourceEstimate], tiny_encoder: Path
) -> None:
    encoder = Transformer.create(TransformerOptions(model=str(tiny_encoder)), TextReadings.of([]))
    n = sum(parameter.numel() for parameter in encoder.parameters())
    rows = 5000 * (32 + 1)
    assert part(told(), "encoder") == 3 * 4 * n
    assert part(told(), "labels") == 3 * 4 * rows
    assert part(told(), "averages") == 4 * (n + rows)
    cheap = told({"optimizer": "sgd", "storage": "bfloat16"})
    assert part(cheap, "labels") == 2 * 2 * 5000 * 32 + 2 * 4 * 5000  # the bias stays float32
    frozen = told(encoder={"trainable_layers": 0}, averaging={"kind": "none"})
    assert part(frozen, "encoder") == 4 * n
    assert part(frozen, "averages") == 0


def test_what_makes_a_step_smaller_is_seen(told: Callable[..., ResourceEstimate]) -> None:
    step = part(told(batch_size=64), "step")
    assert part(told(batch_size=64, micro_batch=8), "step") < step
    assert part(told(batch_size=64, encoder={"tokens": {"max_tokens": 6}}), "step") < step
    assert part(told(batch_size=64, encoder={"trainable_layers": 0}), "step") < step
    again = part(told(batch_size=64, encoder={"checkpointing": True}), "step")
    assert step / 3 < again < step  # one of two layers at a time


def test_members_share_memory_but_not_the_disk(told: Callable[..., ResourceEstimate]) -> None:
    one, three = told(), told(n_seeds=3)
    weights = part(one, "averages")  # as large as all weights here
    assert three.memory_bytes == one.memory_bytes + 2 * weights
    assert three.disk_bytes == 2 * one.disk_bytes  # a checkpoint each, and one more while the last is written


def test_the_advice_names_what_takes_most(told: Callable[..., ResourceEstimate]) -> None:
    advice = Advice("reader", "rows", "how")
    assert (
        told({"chunk": 1}, batch_size=200, advice=advice).how_to_shrink == "how.micro_batch or reader.tokens.max_tokens"
    )
    assert told(batch_size=1, advice=advice).how_to_shrink == "rows"  # the update of 5,000 labels at once


def test_time_is_told_where_it_is_measured(told: Callable[..., ResourceEstimate]) -> None:
    assert told(epochs=1.0).seconds is None
    found = told(epochs=1.0, measure=True).seconds
    assert found is not None
    assert found > 0


def test_widths_are_those_of_the_real_batches(split: Split, tiny_encoder: Path) -> None:
    encoder = Transformer.create(TransformerOptions(model=str(tiny_encoder)), TextReadings.of(split))
    tokens = tokenise(split.texts, encoder.tokeniser)
    training = TrainingOptions(batch_size=10, device="cpu")
    plan = BatchPlan(tokens, split.labels, 10, 0, 0, 8, 62)
    drawn = steps(plan)
    real = sorted(plan.width(next(drawn)) for _ in range(plan.window))
    assert batch_widths(tokens, len(split), training, 62).tolist() == real


def test_a_text_as_long_as_the_encoder_reads_is_counted(tiny_encoder: Path) -> None:
    """62 tokens are no multiple of a batch's width step."""
    texts = Split.of(["apple " * 100, "stone"] * 8, [["fruit"], ["rock"]] * 8)
    options = TransformerOptions(model=str(tiny_encoder))
    assert estimate_network(texts, [options], lambda width: Dense(width, 2), TrainingOptions(), measure=True).seconds


@pytest.mark.parametrize("kind", ["bilstm", "cnn", "bag"])
def test_encoders_of_words_have_outlines_too(split: Split, kind: str) -> None:
    options = ENCODERS.get(kind).options_class.of({"kind": kind})
    outline = ENCODERS.get(kind).outline(options, split.texts, len(split))
    real = ENCODERS.get(kind).create(options, TextReadings.of(split))
    assert all(parameter.is_meta for parameter in outline.parameters())
    assert {name: value.shape for name, value in outline.state_dict().items()} == {
        name: value.shape for name, value in real.state_dict().items()
    }
    fill(outline)
    assert np.isfinite(outline(torch.tensor([[2, 3]]), None).detach().numpy()).all()
    more = ENCODERS.get(kind).outline(options, split.texts, 100 * len(split))
    assert more.tokeniser.n_ids > outline.tokeniser.n_ids
