"""The papers' own ablations, on eurlex57k, one switch at a time.

    python benchmarks/ablations.py run --data FOLDER --encoder FOLDER --out FOLDER [--only GROUP ...] [--seeds 3]
    python benchmarks/ablations.py write              (docs/ablations.md and its pictures, from the kept results)

Trains on train and measures on dev. What was run is kept in
`GROUP.json`, by row, seed and options, and is not run again: a lent machine may be given back in between.
The groups are in `ablation_groups.py`; the page sets our differences beside the papers', seed by seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablation_groups import ENCODER, GROUPS, key_of
from ablation_page import SHOWN, write

KEPT = Path(__file__).parent / "results" / "ablations"


@dataclass
class Losses:
    """Progress that keeps the losses that training tells."""

    told: list[float] = field(default_factory=list)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
        yield lambda amount, note="": self.told.append(float(note.split()[1].strip(","))) if note else None


def run(given: argparse.Namespace) -> None:
    """Train what is not there yet."""
    from once import once

    from longtail.data import load_dataset

    once()
    data = load_dataset(given.data)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        file = given.out / f"{name}.json"
        kept = json.loads(file.read_text()) if file.exists() else {"runs": []}
        done = {run["key"] for run in kept["runs"]}
        for seed in range(given.seeds):
            for row, (method, options) in GROUPS[name].rows.items():
                key = key_of(row, seed, method, options)
                late = given.until is not None and time.monotonic() - given.began > given.until
                if key in done or late or given.rows not in row:
                    continue
                found = measured(method, {**options, "seed": 100 * seed}, given, data)
                if not GROUPS[name].curves:
                    del found["losses"]
                kept["runs"].append({"key": key, "row": row, "seed": seed, **found})
                file.write_text(json.dumps(kept, indent=1))
                shown = "  ".join(f"{metric} {found[metric]:.2f}" for metric in SHOWN)
                print(f"{name}: {row}, seed {seed}: {shown}  {found['train_s']:.0f} s", flush=True)


def measured(method: str, options: dict[str, Any], given: argparse.Namespace, data: Any) -> dict[str, Any]:
    """One model on dev."""
    import torch

    from longtail.evaluation import evaluate_model
    from longtail.methods import create_method

    filled = json.loads(json.dumps(options).replace(ENCODER, given.encoder))
    losses, start = Losses(), time.perf_counter()
    model = create_method(method, filled).fit(data.train, progress=losses)
    train_s = time.perf_counter() - start
    values = evaluate_model(model, data.dev).metrics.values
    return {
        **{metric: round(100 * values[metric], 3) for metric in SHOWN},
        "train_s": round(train_s, 1),
        "losses": losses.told,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "data": Path(given.data).name,
        "encoder": Path(given.encoder).name,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--data", required=True)
    runs.add_argument("--encoder", required=True)
    runs.add_argument("--out", type=Path, default=KEPT)
    runs.add_argument("--only", nargs="*", choices=[*GROUPS], default=[*GROUPS])
    runs.add_argument("--rows", default="", help="only rows whose name has this in it")
    runs.add_argument("--seeds", type=int, default=3)
    runs.add_argument("--until", type=float, help="begin no run after so many seconds")
    runs.set_defaults(do=run, began=time.monotonic())
    commands.add_parser("write").set_defaults(do=lambda _: write(KEPT))
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
