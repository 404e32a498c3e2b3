"""How fast the neural engine is beside what the hardware allows: one GPU, everything in one run.

    python benchmarks/neural_speed.py --out FOLDER [--only NAME ...] [--eurlex TOKENS.npz --e5 FOLDER]

Each rate of longtail is one of its own trainer or of its own prediction, with batches made on the host as in real
training. The same encoder without any labels ("encoder only") is measured in the same run, in a plain loop compiled
as a whole and in longtail's trainer; the faster of the two is what the head's cost is measured by.

Texts are random tokens at the shapes of Amazon-670K (128 tokens, 670,091 labels) and Wiki-500K (128 tokens, 501,008
labels), as LightXML has them, and, where given, the real tokens of
eurlex57k (`benchmarks/neural_data.py` makes them). Weights are random, from BERT-base's config: rates, not accuracy.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.base import Head, HeadInputs
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.prediction import top_k_of
from longtail.nn.training.devices import choose_device, gpu_bytes
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

N_TEXTS = 8_192
CHEAP = LabelTableOptions(optimizer="sgd", storage="bfloat16")


class Shape(NamedTuple):
    """A data set as LightXML trains on it: sizes, and the clusters that it ranks."""

    name: str
    n_labels: int
    labels_per_text: float
    n_clusters_ranked: int
    bottleneck_width: int
    n_clusters: int = 8_192

    def texts(self, n_texts: int = N_TEXTS, width: int = 128) -> tuple[TokenRows, LabelMatrix]:
        return random_texts(n_texts, width, self.n_labels, self.labels_per_text)

    def index(self) -> LabelIndex:
        """Labels in clusters of the same size but for one label."""
        cluster_of = (np.arange(self.n_labels) * self.n_clusters // self.n_labels).astype(np.int32)
        return LabelIndex((np.zeros(self.n_clusters, np.int32), cluster_of))


AMAZON = Shape("", 670_091, 5.45, 75, 400)
WIKI = Shape("wiki ", 501_008, 4.75, 32, 500)


class NoLabels(Head):
    """An encoder without labels: what a head's cost is measured by."""

    n_labels = 1

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        return inputs.vectors.float().pow(2).mean() * share

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        vectors = inputs.vectors
        return vectors[:, :1].float(), torch.zeros(len(vectors), 1, dtype=torch.long, device=vectors.device)


class Pads:
    """Stands for a tokeniser where tokens are given."""

    pad_id, cls_last, last_type, n_ids, max_tokens = 0, False, 0, 30_522, 512

    def check_fits(self, n_ids: int) -> None:
        """Accept any vocabulary: ids are random."""


class Clock:
    """Progress that notes the time whenever the loss was read, which waits for the device."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float]] = []
        self.losses: list[float] = []

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
        done = 0

        def advance(amount: int, note: str = "") -> None:
            nonlocal done
            done += amount
            if note:
                wait()
                self.marks.append((done, time.perf_counter()))
                self.losses.append(float(note.split()[1].strip(",")))

        yield advance

    def rate(self, skip: int) -> float:
        """Texts a second after the first `skip` marks: compiling and warming up are over."""
        (first, start), (last, end) = self.marks[skip], self.marks[-1]
        return (last - first) / (end - start)


def random_texts(
    n_texts: int, width: int, n_labels: int, labels_per_text: float = 5.0
) -> tuple[TokenRows, LabelMatrix]:
    """Random tokens, and labels that are as rare as in the real data."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 30_000, n_texts * width).astype(np.uint16)
    counts = np.maximum(1, rng.poisson(labels_per_text, n_texts))
    texts = np.repeat(np.arange(n_texts), counts)
    labels = np.minimum(n_labels - 1, (n_labels * rng.random(counts.sum()) ** 2).astype(np.int64))
    tokens = TokenRows(ids, np.arange(n_texts + 1, dtype=np.int64) * width)
    return tokens, LabelMatrix.from_pairs(texts, labels, n_texts, n_labels)


def bert_base() -> Transformer:
    from transformers import BertConfig

    return Transformer.from_config(BertConfig(), TransformerOptions(), Pads())


def bert_base_5() -> Transformer:
    from transformers import BertConfig

    return Transformer.from_config(BertConfig(), TransformerOptions(n_layers=5), Pads())


def e5(folder: str) -> Transformer:
    options = TransformerOptions.of({"model": folder, "n_layers": 5, "attention_dropout": 0.0})

    return Transformer.create(options, TextReadings.of(["a"]))


def train_rate(
    encoder: Transformer,
    head: Head,
    tokens: TokenRows,
    labels: LabelMatrix,
    batch_size: int,
    n_steps: int,
    skip: int = 1,
    dropout: float = 0.0,
    **more: Any,
) -> dict[str, float]:
    """Texts a second and peak memory of longtail's trainer."""
    fresh()
    options = TrainingOptions.of({"n_steps": n_steps, "batch_size": batch_size, "averaging": {"kind": "none"}, **more})
    clock = Clock()
    network = Network(encoder, head, dropout)
    trainer = Trainer(network, options, 0, Run(progress=clock))
    begun = time.perf_counter()
    trainer.fit(tokens, labels, 0, int(tokens.lengths().max()))
    return {
        "docs_s": clock.rate(skip),
        "ms_step": 1000 * batch_size / clock.rate(skip),
        "peak_gib": gpu_bytes() / 2**30,
        "first_step_s": clock.marks[0][1] - begun,
    }


def plain_rate(encoder: Transformer, width: int, batch_size: int, n_steps: int = 40) -> dict[str, float]:
    """The same encoder in the plainest loop, compiled as a whole."""
    fresh()
    model = torch.compile(encoder.model.cuda())
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-5, fused=True)
    ids = torch.randint(5, 30_000, (batch_size, width), device="cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(ids).last_hidden_state[:, 0].float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"docs_s": batch_size / timed(step, n_steps), "peak_gib": torch.cuda.max_memory_allocated() / 2**30}


def predict_rates(network: Network, tokens: TokenRows, repeats: int = 3) -> dict[str, float]:
    """Texts a second of longtail's prediction of the best five, and of its encoder alone."""
    fresh()
    network.to(choose_device("auto")).eval()
    network.encoder.to(torch.bfloat16)  # as `Tagger` does for prediction on a GPU
    alone = Network(network.encoder, NoLabels())
    made = {}
    for name, net in (("top_5", network), ("encoder", alone)):
        top_k_of(net, tokens, 5)
        wait()
        start = time.perf_counter()
        for _ in range(repeats):
            top_k_of(net, tokens, 5)
        wait()
        made[name] = repeats * len(tokens) / (time.perf_counter() - start)
    return {"docs_s": made["top_5"], "encoder_docs_s": made["encoder"], "ms_text": 1000 / made["top_5"]}


def timed(step: Any, n: int, warm: int = 6) -> float:
    """Seconds a call."""
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n


def fresh() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def wait() -> None:
    """Wait for the GPU, if there is one: rehearsals run on a CPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def check(found: dict[str, Any]) -> None:
    """Compiled, recorded training beside plain training: the same losses but for rounding."""
    from transformers import BertConfig

    tokens, labels = random_texts(2048, 128, 2000)
    lengths = np.random.default_rng(0).integers(20, 129, len(tokens))  # several widths, with padding
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = TokenRows(tokens.ids[: starts[-1]], starts)
    losses: dict[str, list[float]] = {}
    for compile_ in ("auto", "off"):
        torch.manual_seed(0)
        config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1024)
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        encoder = Transformer.from_config(config, TransformerOptions(n_layers=3), Pads())
        head = Dense(3 * 256, labels.n_labels)
        head.init_from_labels(labels)
        clock = Clock()
        options = TrainingOptions.of({"n_steps": 201, "batch_size": 32, "compile": compile_})
        trainer = Trainer(Network(encoder, head), options, 0, Run(progress=clock))
        trainer.fit(tokens, labels, 0, 128)
        losses[compile_] = clock.losses
    one, two = np.array(losses["auto"]), np.array(losses["off"])
    found["check"] = {"first": one[0], "last": one[-1], "worst_difference": float(np.abs(one / two - 1).max())}


def encoder_only(found: dict[str, Any]) -> None:
    texts = AMAZON.texts()
    found["plain 128x256"] = plain_rate(bert_base(), 128, 256)
    found["encoder 128x256"] = train_rate(bert_base(), NoLabels(), *texts, 256, 61)
    found["encoder5 128x256"] = train_rate(bert_base_5(), NoLabels(), *texts, 256, 61)


def dense(found: dict[str, Any], shape: Shape = AMAZON, batch_sizes: Sequence[int] = (256, 64)) -> None:
    texts = shape.texts()
    for batch_size in batch_sizes:
        head = Dense(768, shape.n_labels, CHEAP)
        key = f"{shape.name}dense 128x{batch_size}"
        found[key] = train_rate(bert_base(), head, *texts, batch_size, 61, head_rate=0.05)


def shortlist(found: dict[str, Any], shape: Shape = AMAZON, batch_sizes: Sequence[int] = (256, 64)) -> None:
    tokens, labels = shape.texts()
    options = ShortlistOptions(n_clusters_ranked=shape.n_clusters_ranked, bottleneck_width=shape.bottleneck_width)
    for batch_size in batch_sizes:
        head = Shortlist(5 * 768, shape.index(), options, CHEAP)
        place = np.empty(shape.n_labels, np.int64)
        real = np.flatnonzero(head.order >= 0)
        place[head.order[real]] = real
        places = labels.renumber(place, len(head.order))
        found[f"{shape.name}shortlist 128x{batch_size}"] = train_rate(
            bert_base_5(), head, tokens, places, batch_size, 61, dropout=0.5, head_rate=0.05
        )


def predict(found: dict[str, Any], shape: Shape = AMAZON) -> None:
    tokens, _ = shape.texts(4 * N_TEXTS)
    found[f"{shape.name}predict 128"] = predict_rates(Network(bert_base(), Dense(768, shape.n_labels, CHEAP)), tokens)


def wiki(found: dict[str, Any]) -> None:
    """The other shape; its encoder alone is the same."""
    dense(found, WIKI, [256])
    shortlist(found, WIKI, [256])
    predict(found, WIKI)


def eurlex(found: dict[str, Any], tokens_file: str, folder: str) -> None:
    """Real texts, e5-small, tokens mapped from disk, everything on: dropout, averaging, checkpoints."""
    stored = np.load(tokens_file)
    tokens = TokenRows(stored["train_ids"], stored["train_ptr"])
    labels = LabelMatrix(stored["train_label_ptr"], stored["train_labels"], int(stored["n_labels"]))
    for batch_size in (64, 128):
        steps = 161 if batch_size == 64 else 101, 2
        found[f"eurlex encoder 512x{batch_size}"] = train_rate(
            e5(folder), NoLabels(), tokens, labels, batch_size, *steps
        )
        head = Dense(5 * 384, labels.n_labels)
        found[f"eurlex dense 512x{batch_size}"] = train_rate(
            e5(folder), head, tokens, labels, batch_size, *steps, 0.2, averaging={"kind": "ema"}
        )


PARTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "check": check,
    "encoder": encoder_only,
    "dense": dense,
    "shortlist": shortlist,
    "predict": predict,
    "wiki": wiki,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", choices=[*PARTS, "eurlex"], default=[*PARTS, "eurlex"])
    parser.add_argument("--eurlex")
    parser.add_argument("--e5")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    found: dict[str, Any] = {}
    for name in given.only:
        start = time.perf_counter()
        if name != "eurlex":
            PARTS[name](found)
        elif given.eurlex and given.e5:
            eurlex(found, given.eurlex, given.e5)
        print(f"-- {name}: {time.perf_counter() - start:.0f} s", flush=True)
        for key, value in found.items():
            print(f"{key:28}", "  ".join(f"{k} {v:,.2f}" for k, v in value.items()), flush=True)
        given.out.mkdir(parents=True, exist_ok=True)
        facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "results": found}
        (given.out / "neural_speed.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
