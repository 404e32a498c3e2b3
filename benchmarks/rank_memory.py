"""What one GPU of several holds of millions of labels: counted by the real tables, without memory for them.

    python benchmarks/rank_memory.py --out benchmarks/results/rank_memory.json

Tables are made on torch's `meta` device, as `longtail plan` does it: their bytes are those of a training, nothing is
trained. BERT-base's part is added as its 110M weights with gradients and Adam, 16 bytes each. Chunks are those of a
batch of 1,024 texts, all of which every card scores with its own labels.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shards import shards_of
from longtail.nn.heads.table import LabelTableOptions

ENCODER = 110_000_000 * 16
CARD_GIB, KEPT_FREE_GIB = 139, 30
"""An H200, and what is left for activations and the rest."""
BATCH, WIDTH = 1024, 768
STORES = {
    "adam, float32": LabelTableOptions(),
    "sgd, bfloat16": LabelTableOptions(optimizer="sgd", storage="bfloat16"),
    "sgd without momentum, bfloat16": LabelTableOptions(optimizer="sgd", storage="bfloat16", momentum=0.0),
}


def one_card(n_labels: int, n_ranks: int, options: LabelTableOptions) -> dict[str, Any]:
    """Return the GiB that one card holds."""
    with shards_of(0, n_ranks), torch.device("meta"):
        table = Dense(WIDTH, n_labels, options).table
    gib = 2**30
    weights = sum(parameter.numel() * parameter.element_size() for parameter in table.parameters()) / gib
    chunk = table.n_at_once * (3 * BATCH * 4 + 8 * WIDTH * 4) / gib
    total = weights + table.moment_bytes / gib + chunk + ENCODER / gib
    return {
        "n_rows": len(table.rows),
        "weights_gib": round(weights, 2),
        "moments_gib": round(table.moment_bytes / gib, 2),
        "chunk_gib": round(chunk, 2),
        "encoder_gib": round(ENCODER / gib, 2),
        "total_gib": round(total, 2),
        "fits": total <= CARD_GIB - KEPT_FREE_GIB,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [
        {"n_labels": n_labels, "ranks": n_ranks, "labels": name, **one_card(n_labels, n_ranks, options)}
        for n_labels in (3_000_000, 10_000_000, 100_000_000)
        for n_ranks in (1, 8)
        for name, options in STORES.items()
    ]
    command = f"python benchmarks/rank_memory.py --out {given.out}"
    given.out.write_text(json.dumps({"command": command, "card_gib": CARD_GIB, "rows": rows}, indent=1) + "\n")
    for row in rows:
        print("  ".join(f"{value}" for value in row.values()))


if __name__ == "__main__":
    main()
