"""The trainer beside the plainest loop that anybody would write in torch: the same weights after the same steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import nn

from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.training.batches import BatchPlan, steps
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.schedules import factor
from longtail.nn.training.trainer import Trainer
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import tokenise
from longtail.types import LabelMatrix

N_TEXTS, N_LABELS, N_STEPS, SIZE = 60, 30, 25, 8


def an_encoder(folder: Path) -> Transformer:
    options = TransformerOptions.of({"model": str(folder), "n_layers": 2, "dropout": 0.0})
    return Transformer.create(options, TextReadings.of(["a"]))


def test_a_network_learns_as_in_plain_torch(tiny_encoder: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{rng.integers(20)}a" for _ in range(rng.integers(2, 20))) for _ in range(N_TEXTS)]
    labels = LabelMatrix.from_lists([rng.choice(N_LABELS, rng.integers(0, 4), False).tolist() for _ in texts], N_LABELS)
    ours, theirs = an_encoder(tiny_encoder), an_encoder(tiny_encoder)
    tokens = tokenise(pa.table({"text": texts}), ours.tokeniser)
    head = Dense(ours.width, N_LABELS, LabelTableOptions(chunk=7))
    layer = nn.Linear(ours.width, N_LABELS)
    with torch.no_grad():
        layer.weight.copy_(head.table.weight)
        layer.bias.zero_()

    options = TrainingOptions.of(
        {"n_steps": N_STEPS, "batch_size": SIZE, "rate": 1e-3, "head_rate": 1e-2, "averaging": {"kind": "none"}}
    )
    limit = ours.tokeniser.max_tokens
    Trainer(Network(ours, head), options, 3, Run()).fit(tokens, labels, ours.tokeniser.pad_id, limit)

    decayed = [p for p in theirs.parameters() if p.ndim > 1]
    others = [p for p in theirs.parameters() if p.ndim == 1]
    groups = [
        {"params": decayed, "lr": 1e-3, "weight_decay": 0.01},
        {"params": others, "lr": 1e-3, "weight_decay": 0.0},
        {"params": [*layer.parameters()], "lr": 1e-2, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups)
    first = [group["lr"] for group in optimizer.param_groups]
    plan = BatchPlan(tokens, labels, SIZE, 3, 0, 8, limit)
    theirs.train()
    for step, rows in zip(range(N_STEPS), steps(plan), strict=False):
        for group, rate in zip(optimizer.param_groups, first, strict=True):
            group["lr"] = rate * factor(options.schedule, step, N_STEPS)
        batch = plan.batch(rows)
        truth = torch.zeros(SIZE, N_LABELS)
        for row, text in enumerate(rows):
            truth[row, labels[text].astype(np.int64)] = 1
        logits = layer(theirs(batch.ids.long(), batch.mask))
        loss = F.binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    assert torch.allclose(head.table.weight, layer.weight, atol=2e-4)
    assert head.table.bias is not None
    assert torch.allclose(head.table.bias, layer.bias, atol=2e-4)
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=2e-4), name
