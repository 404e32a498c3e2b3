"""Three million labels on one GPU: training and prediction beside the same encoder without labels, in one minute.

    . benchmarks/gpu_setup.sh FOLDER…            on a lent machine, where FOLDER holds the wheels of gpu_parts.sh
    python benchmarks/million_labels.py --out OUT --seconds 58                  all rows that fit into 58 seconds
    python benchmarks/million_labels.py --out OUT --seconds 58 --rows encoder@1024 dense@1024     larger batches
    python benchmarks/million_labels.py --out OUT --rehearse                    the same rows, tiny, on a CPU

Rows are run in the order given, and OUT/million_labels.json is written after each one. A row is begun only if the
seconds that it is expected to take are left. Texts are random tokens, 128 each, with 36 labels of Amazon-3M's rarity;
weights are BERT-base's by shape, drawn at random: rates and memory, not accuracy. "Label side" is the peak of a row
less the peak of the encoder alone in the same run.

Memory by arithmetic, for n = 3,000,000 labels, d = 768 numbers each, GiB = 2^30 bytes:

    dense       weights in bfloat16   n · d · 2 B = 4.29      momentum in bfloat16   4.29      biases, theirs   0.02
                a chunk of 65,536 labels at batch 256: logits 0.03, gradient of the rows 0.09, rounding 0.3 at most
                together 8.9: below 12. With Adam in float32 the same labels take 8.6 + 17.2 = 25.7
    momentum 0  4.6: no momentum is kept
    shortlist   32,768 clusters of 92: rows of 400 numbers 2.25, momentum 2.25; clusters of 3,840 numbers 0.23 twice
                together 5.3

So what keeps it below 12 GiB is `labels.storage=bfloat16 labels.optimizer=sgd` and `training.averaging.kind=none`
(averages would take 4 bytes a weight more: 8.6 GiB); `labels.passes=1` saves time, not memory.

Time by arithmetic, batch 256 at 600 TFLOP/s and 4.2 TB/s: a product is 1.18 TFLOP, 2.0 ms; two passes have four, one
pass three. Rows and momentum are read and written once: 18.4 GB, 4.4 ms. The encoder takes 43.7 ms. So one pass is
expected at 43.7 / (43.7 + 5.9 + 4.4 + 3) = 77 % of the encoder's rate at batch 256, and, because rows are read once a
batch, at 84 % at batch 1,024; two passes (`dense-2`) at 72 %.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from neural_speed import NoLabels, Pads, Shape, predict_rates, random_texts, train_rate

from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.base import Head, positions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.training.devices import choose_device

TABLE = LabelTableOptions(optimizer="sgd", storage="bfloat16", passes=1)
AMAZON_3M = Shape("3M ", 3_000_000, 36, 75, 400, n_clusters=32_768)
TINY = Shape("tiny ", 3_000, 3, 5, 16, n_clusters=64)
N_TEXTS = 8_192
HEAD_RATE = 0.05


class Setting(NamedTuple):
    """What is measured, and at which size."""

    shape: Shape
    config: dict[str, Any]
    """Arguments of `BertConfig` where they are not BERT-base's."""
    width: int
    """Tokens of a text."""
    n_texts: int
    shrink: int
    """Batches are so many times smaller than a row says."""
    n_layers: int
    """Layers that the shortlist reads."""

    def encoder(self, n_layers: int = 1) -> Transformer:
        """Return a new encoder, made where it is used."""
        from transformers import BertConfig

        with choose_device("auto"):
            return Transformer.from_config(BertConfig(**self.config), TransformerOptions(n_layers=n_layers), Pads())

    def texts(self, n_texts: int) -> Any:
        return random_texts(n_texts, self.width, self.shape.n_labels, self.shape.labels_per_text)

    def dense(self, table: LabelTableOptions = TABLE) -> Dense:
        with choose_device("auto"):
            return Dense(self.encoder_width, self.shape.n_labels, table)

    @property
    def encoder_width(self) -> int:
        return int(self.config.get("hidden_size", 768))


FULL = Setting(AMAZON_3M, {}, 128, N_TEXTS, 1, 5)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
REHEARSAL = Setting(TINY, SMALL, 16, 256, 32, 2)


class Row(NamedTuple):
    """A measurement, and the seconds that it is expected to take."""

    measure: Callable[[Setting], dict[str, float]]
    seconds: float


def encoder(setting: Setting, batch_size: int = 256, n_steps: int = 61) -> dict[str, float]:
    return trained(setting, setting.encoder(), NoLabels(), setting.texts(setting.n_texts), batch_size, n_steps)


def dense(
    setting: Setting, batch_size: int = 256, n_steps: int = 61, table: LabelTableOptions = TABLE
) -> dict[str, float]:
    texts = setting.texts(setting.n_texts)
    head = setting.dense(table)
    return trained(setting, setting.encoder(), head, texts, batch_size, n_steps) | sizes(head)


def shortlist(setting: Setting) -> dict[str, float]:
    shape = setting.shape
    tokens, labels = setting.texts(setting.n_texts)
    options = ShortlistOptions(n_clusters_ranked=shape.n_clusters_ranked, bottleneck_width=shape.bottleneck_width)
    network = setting.encoder(setting.n_layers)
    with choose_device("auto"):
        head = Shortlist(network.width, shape.index(), options, TABLE)
    places = labels.renumber(positions(head.order, shape.n_labels), len(head.order))
    return trained(setting, network, head, (tokens, places), 256, 61) | sizes(head)


def predict(setting: Setting) -> dict[str, float]:
    tokens, _ = setting.texts(2 * setting.n_texts)
    return predict_rates(Network(setting.encoder(), setting.dense()), tokens, repeats=2)


def trained(
    setting: Setting, encoder: Transformer, head: Head, texts: Any, batch_size: int, n_steps: int
) -> dict[str, float]:
    """Texts per second and memory of longtail's trainer."""
    return train_rate(encoder, head, *texts, batch_size // setting.shrink, n_steps, head_rate=HEAD_RATE)


def sizes(head: Head) -> dict[str, float]:
    """Return the GiB of the weights of a head's tables and of their optimiser, as they are in memory."""
    held = {"weights_gib": 0.0, "moments_gib": 0.0}
    for table in head.tables().values():
        held["weights_gib"] += sum(value.nbytes for value in table.parameters()) / 2**30
        held["moments_gib"] += table.moment_bytes / 2**30
    return held


def large(measure: Callable[..., dict[str, float]]) -> Callable[[Setting], dict[str, float]]:
    """Return a measurement at batches of 1,024 texts."""
    return lambda setting: measure(setting, 1024, 41)


ROWS = {
    "encoder": Row(encoder, 14),
    "dense": Row(dense, 10),
    "predict": Row(predict, 8),
    "shortlist": Row(shortlist, 9),
    "dense-2": Row(lambda setting: dense(setting, table=TABLE.model_copy(update={"passes": 2})), 8),
    "momentum 0": Row(lambda setting: dense(setting, table=TABLE.model_copy(update={"momentum": 0.0})), 8),
    "encoder@1024": Row(large(encoder), 18),
    "dense@1024": Row(large(dense), 14),
}


def compared(found: dict[str, dict[str, float]]) -> None:
    """Add to each row of training its share of the encoder's rate, and the memory of its labels."""
    for name, row in found.items():
        alone = found.get("encoder@1024" if name.endswith("@1024") else "encoder")
        if alone is None or row is alone or "peak_gib" not in row:
            continue
        row["share_of_encoder"] = row["docs_s"] / alone["docs_s"]
        row["label_side_gib"] = row["peak_gib"] - alone["peak_gib"]


def main() -> None:
    begun = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no row that would end later")
    parser.add_argument("--rehearse", action="store_true", help="tiny, for a CPU")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    setting = REHEARSAL if given.rehearse else FULL
    found: dict[str, dict[str, float]] = {}
    skipped = []
    for name in given.rows:
        start = time.perf_counter()
        if start - begun + ROWS[name].seconds > given.seconds:
            skipped.append(name)
            continue
        found[name] = ROWS[name].measure(setting)
        compared(found)
        took = time.perf_counter() - start
        print(f"{name:14} {took:5.1f} s ", "  ".join(f"{k} {v:,.3f}" for k, v in found[name].items()), flush=True)
        facts = {
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU (a rehearsal)",
            "torch": torch.__version__,
            "n_labels": setting.shape.n_labels,
            "batch_size": 256 // setting.shrink,
            "skipped": skipped,
            "results": found,
        }
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "million_labels.json").write_text(json.dumps(facts, indent=1))
    print(f"{time.perf_counter() - begun:.0f} s; skipped: {', '.join(skipped) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
