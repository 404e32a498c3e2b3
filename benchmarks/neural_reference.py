"""longtail's training beside the plainest loop of the same network: losses, accuracy on dev and texts a second.

    python benchmarks/neural_reference.py --tokens eurlex.npz --encoder FOLDER --out FOLDER [--epochs 2]

The plain loop is what one would write by hand: the encoder of `transformers`, a linear layer, binary cross-entropy on
dense targets, AdamW, autocast. The same texts, batches of the same size, the same rates: where longtail is worse, it
has a fault, and its rows (not compiled; compiled and recorded; with a prior) tell in which part.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longtail.metrics import MetricOptions, evaluate
from longtail.nn.batch import Batch
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.prediction import top_k_of
from longtail.nn.training.batches import BatchPlan, steps
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.schedules import ScheduleOptions, factor
from longtail.nn.training.trainer import Trainer
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix, TopK

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RATE, HEAD_RATE, N_LAYERS = 1e-4, 2e-3, 5


class Data:
    """Tokens and labels as `neural_data.py` wrote them."""

    def __init__(self, file: str, n_texts: int | None, max_tokens: int = 512) -> None:
        stored = np.load(file)
        self.n_labels = int(stored["n_labels"])
        self.train = TokenRows(stored["train_ids"], stored["train_ptr"])
        self.labels = LabelMatrix(stored["train_label_ptr"], stored["train_labels"], self.n_labels)
        self.dev = TokenRows(stored["dev_ids"], stored["dev_ptr"])
        self.truth = LabelMatrix(stored["dev_label_ptr"], stored["dev_labels"], int(stored["n_all"]))
        if n_texts:
            some, few = np.arange(n_texts), np.arange(min(n_texts, len(self.dev)))
            self.train, self.labels = self.train.take(some), self.labels.take(some)
            self.dev, self.truth = self.dev.take(few), self.truth.take(few)
        self.train, self.dev = (part.part(0, np.minimum(part.lengths(), max_tokens)) for part in (self.train, self.dev))

    def judged(self, found: TopK) -> dict[str, float]:
        counts = np.bincount(self.labels.indices, minlength=self.n_labels)
        values = evaluate(found, self.truth, counts, len(self.train), MetricOptions(at=(1, 5))).values
        return {name: round(100 * values[name], 2) for name in ("P@1", "P@5", "RP@5", "nDCG@5")}


class Losses:
    """Progress that keeps what training tells."""

    def __init__(self) -> None:
        self.told: list[float] = []
        self.seconds = 0.0

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Callable[..., None]]:
        start = time.perf_counter()
        yield lambda amount, note="": self.told.append(float(note.split()[1].strip(","))) if note else None
        if name == "train":
            self.seconds = time.perf_counter() - start


def encoder_of(folder: str, **options: Any) -> Transformer:
    asked = TransformerOptions.of({"model": folder, "n_layers": N_LAYERS, **options})
    return Transformer.create(asked, TextReadings.of(["a"]))


def ours(
    data: Data, folder: str, epochs: float, batch_size: int, dropout: float, prior: bool = False, **more: Any
) -> dict[str, Any]:
    """longtail's trainer."""
    torch.manual_seed(0)
    encoder = encoder_of(folder)
    head = Dense(encoder.width, data.n_labels, LabelTableOptions(prior=prior))
    head.init_from_labels(data.labels)
    network, told = Network(encoder, head, dropout), Losses()
    asked = {"epochs": epochs, "batch_size": batch_size, "rate": RATE, "head_rate": HEAD_RATE, **more}
    trainer = Trainer(network, TrainingOptions.of({"averaging": {"kind": "none"}, **asked}), 0, Run(progress=told))
    trainer.fit(data.train, data.labels, 0, 512)
    found = top_k_of(network.quantised("bf16").eval() if DEVICE.type == "cuda" else network, data.dev, 5)
    return {**data.judged(found), "losses": told.told, "seconds": told.seconds}


def plain(
    data: Data, folder: str, epochs: float, batch_size: int, dropout: float, by_length: bool = False
) -> dict[str, Any]:
    """The loop that one would write by hand; `by_length`: with batches of texts that are near in length."""
    from transformers import AutoModel

    torch.manual_seed(0)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False).to(DEVICE)
    head = nn.Linear(N_LAYERS * model.config.hidden_size, data.n_labels).to(DEVICE)
    drop = nn.Dropout(dropout)
    groups = [{"params": model.parameters(), "lr": RATE}, {"params": head.parameters(), "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    plan = BatchPlan(data.train, data.labels, batch_size, 0, 0, 128, 512)
    n_steps = max(1, int(np.ceil(epochs * len(data.train) / plan.size)))
    losses = []

    def logits_of(batch: Batch) -> Tensor:
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda"):
            mask = torch.ones_like(batch.ids) if batch.mask is None else batch.mask.long()
            states = model(input_ids=batch.ids, attention_mask=mask, output_hidden_states=True).hidden_states
            return head(drop(torch.cat([state[:, 0] for state in states[-1 : -1 - N_LAYERS : -1]], 1))).float()

    model.train()
    start = time.perf_counter()
    for step, texts in zip(range(n_steps), steps(plan._replace(packed=not by_length)), strict=False):
        batch = plan.batch(texts).to(DEVICE)
        assert batch.targets is not None
        wanted = batch.targets.dense(data.n_labels)
        loss = nn.functional.binary_cross_entropy_with_logits(logits_of(batch), wanted, reduction="sum") / len(batch)
        loss.backward()
        for group, rate in zip(optimizer.param_groups, (RATE, HEAD_RATE), strict=True):
            group["lr"] = rate * factor(ScheduleOptions(), step, n_steps)
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0 or step + 1 == n_steps:
            losses.append(float(loss.detach()))
    seconds = time.perf_counter() - start
    model.eval()
    drop.eval()
    labels = np.empty((len(data.dev), 5), np.int32)
    scores = np.empty((len(data.dev), 5), np.float32)
    with torch.inference_mode():
        for start_at in range(0, len(data.dev), 256):
            texts = np.arange(start_at, min(start_at + 256, len(data.dev)))
            width = int(data.dev.lengths()[texts].max())
            best = logits_of(Batch.of(data.dev, texts, width, 0).to(DEVICE)).topk(5)
            labels[texts], scores[texts] = best.indices.cpu().numpy(), best.values.cpu().numpy()
    return {**data.judged(TopK(labels, scores)), "losses": losses, "seconds": seconds}


ROWS: dict[str, Callable[..., dict[str, Any]]] = {
    "plain .1": lambda *given: plain(*given, 0.1),
    "ours .1 not compiled": lambda *given: ours(*given, 0.1, compile="off"),
    "ours .1": lambda *given: ours(*given, 0.1),
    "ours .1 prior": lambda *given: ours(*given, 0.1, prior=True),
    "ours .5": lambda *given: ours(*given, 0.5),
    "ours .5 prior": lambda *given: ours(*given, 0.5, prior=True),
    "ours .1 prior ema clip": lambda *given: ours(*given, 0.1, True, averaging={"kind": "ema"}, clip_norm=1.0),
    "plain .5": lambda *given: plain(*given, 0.5),
    "plain .1 by length": lambda *given: plain(*given, 0.1, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--texts", type=int, help="the first so many texts only, for trying the script out")
    parser.add_argument("--max-tokens", type=int, default=512, help="of each text no more are read")
    parser.add_argument("--only", nargs="*", choices=[*ROWS], default=[*ROWS])
    given = parser.parse_args()
    data = Data(given.tokens, given.texts, given.max_tokens)
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for name in given.only:
        row = ROWS[name](data, given.encoder, given.epochs, given.batch_size)
        row["docs_s"] = round(given.epochs * len(data.train) / row["seconds"], 1)
        found[name] = row
        shown = "  ".join(f"{k} {v:,.2f}" for k, v in row.items() if k != "losses")
        marks = [round(loss, 1) for loss in row["losses"][:: max(1, len(row["losses"]) // 8)]]
        print(f"{name:26} {shown}  losses {marks} … {row['losses'][-1]:.2f}", flush=True)
        facts = {
            "data": Path(given.tokens).name,
            "split": "dev",
            "encoder": Path(given.encoder).name,
            "epochs": given.epochs,
            "batch_size": given.batch_size,
            "device": torch.cuda.get_device_name() if DEVICE.type == "cuda" else "cpu",
            "torch": torch.__version__,
            "results": found,
        }
        (given.out / "neural_reference.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
