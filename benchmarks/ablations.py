"""The papers' own ablations, on eurlex57k, one switch at a time.

    python benchmarks/ablations.py run --data FOLDER --encoder FOLDER --out FOLDER [--only GROUP ...] [--seeds 3]
    python benchmarks/ablations.py write              (docs/ablations.md and its pictures, from the kept results)

Trains on train and measures on dev; every row of a group has the same budget. What was run is kept in
`GROUP.json`, by row, seed and options, and is not run again: a lent machine may be given back in between.
A group also says what the paper found (`claims`); the page sets our difference beside it, seed by seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE / "results" / "ablations"
PAGE = HERE.parent / "docs" / "ablations.md"
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "R@1", "R@3", "R@5")
HARDLY = 0.3
"""Points that are hardly a difference."""
ENCODER = "{encoder}"
"""Stands for the encoder's folder in options, so that results do not depend on where it lies."""

READER: dict[str, Any] = {
    "kind": "transformer",
    "model": ENCODER,
    "tokens": {"max_tokens": 64},
    "attention_dropout": 0.0,
}
TRAINING: dict[str, Any] = {"epochs": 3.0, "batch_size": 64, "rate": 2e-4, "head_rate": 4e-3, "bottleneck_rate": 2e-3}
WORDS: dict[str, Any] = {"tokens": {"max_tokens": 128}, "vectors": {"width": 200}}


@dataclass(frozen=True)
class Claim:
    """What a paper found: `better` is above `worse`, there by so many points of `metric`."""

    better: str
    worse: str
    metric: str
    there: str
    equal: bool = False
    """Whether the paper found hardly any difference."""


@dataclass(frozen=True)
class Group:
    """One table or figure of a paper."""

    title: str
    note: str
    rows: dict[str, tuple[str, dict[str, Any]]]
    claims: tuple[Claim, ...] = ()
    curves: bool = False
    """Whether losses are drawn."""


def xbert(vectors: Sequence[str] = ("pifa",), n_seeds: int = 1, **more: Any) -> tuple[str, dict[str, Any]]:
    options = {
        "recalls": [READER],
        "vectors": [{"kinds": [kind]} for kind in vectors],
        "n_seeds": n_seeds,
        "tree": {"n_levels": 1, "max_leaf": 100, "fill": False},
        "embedding_weight": 0.0,
        "n_clusters_ranked": 10,
        "ranker": {"negatives": "cluster", "threshold": 0.01},
        "score": {"cluster_weight": 1.0, "label_power": 3},
        "matcher": {"training": TRAINING},
        "sentence_model": ENCODER,
    }
    return "xbert", {**options, **more}


def bilstm() -> dict[str, Any]:
    return {"recalls": [{"kind": "bilstm", "hidden": 256, "n_heads": 10, **WORDS}], "matcher": {"training": SLOWER}}


SLOWER: dict[str, Any] = {"epochs": 6.0, "batch_size": 128, "rate": 3e-3, "word_rate": 1e-2, "head_rate": 4e-3}


def aplc(shares: Sequence[float], rates: dict[str, float] | None = None, **labels: Any) -> tuple[str, dict[str, Any]]:
    training = {**TRAINING, **(rates or {})}
    return "aplc-xlnet", {
        "encoder": READER,
        "buckets": {"shares": list(shares)},
        "labels": labels,
        "training": training,
    }


LIGHT: dict[str, Any] = {"dropout": 0.2, "training": {**TRAINING, "clip_norm": 0.0}}


def lightxml(negatives: str) -> tuple[str, dict[str, Any]]:
    return "lightxml", {
        **LIGHT,
        "encoders": [{**READER, "n_layers": 5}],
        "dense_up_to": 0,
        "tree": {"n_levels": 1, "max_leaf": 16, "fill": False},
        "shortlist": {"n_clusters_ranked": 30, "bottleneck_width": 300},
        "negatives": negatives,
    }


def layers(n_layers: int) -> tuple[str, dict[str, Any]]:
    return "lightxml", {**LIGHT, "encoders": [{**READER, "n_layers": n_layers}]}


def treader(teacher: bool, layers: Sequence[str], residual: bool = True) -> tuple[str, dict[str, Any]]:
    words = {"tokens": {"max_tokens": 64}, "vectors": {"width": 100}, "bottleneck": 256}
    encoder = {"kind": "reader", "layers": list(layers), "residual": residual, "raw": False, **words}
    training = {"epochs": 3.0, "validation": 0.02, "patience": 3}
    scope = {"n_neighbours": 5, "votes": 0.0, "max_labels": 0}
    return "treaderxml", {"teacher": teacher, "encoder": encoder, "scope": scope, "training": training}


ONE_RATE = {"rate": 5e-5, "bottleneck_rate": 5e-5, "head_rate": 5e-5}

GROUPS: dict[str, Group] = {
    "xbert": Group(
        "X-BERT, Table 3: label vectors, matcher, ranker, members",
        "As there: a TF-IDF ranker that learns within clusters, ten clusters, both scores multiplied. ELMo "
        "is replaced by a sentence encoder (e5-small) of label names. Linear rows were trained on two CPU cores.",
        {
            "pifa, transformer": xbert(),
            "sentence, transformer": xbert(["sentence"]),
            "pifa, transformer, similarity for a ranker": xbert(ranking="similarity"),
            "pifa, BiLSTM": xbert(**bilstm()),
            "sentence, BiLSTM": xbert(["sentence"], **bilstm()),
            "pifa, linear": xbert(recalls=[{"kind": "linear"}]),
            "sentence, linear": xbert(["sentence"], recalls=[{"kind": "linear"}]),
            "random, linear": xbert(["random"], recalls=[{"kind": "linear"}]),
            "pifa, transformer, 2 seeds": xbert(n_seeds=2),
            "sentence, transformer, 2 seeds": xbert(["sentence"], n_seeds=2),
            "pifa and sentence, transformer": xbert(["pifa", "sentence"]),
            "pifa and sentence, transformer, 3 seeds": xbert(["pifa", "sentence"], n_seeds=3),
            "pifa, transformer, vector beside TF-IDF": xbert(embedding_weight=1.0),
            "pifa, linear, negatives of the matcher": xbert(
                recalls=[{"kind": "linear"}],
                ranker={"threshold": 0.01},
                score={"cluster_weight": 0.4, "label_power": 4},
            ),
        },
        (
            Claim("pifa, transformer", "pifa, BiLSTM", "P@1", "+1.3 (AmazonCat), +1.0 (Wiki-500K)"),
            Claim("pifa, BiLSTM", "pifa, linear", "P@1", "+1.4, +3.8"),
            Claim("pifa, transformer", "pifa, linear", "P@1", "+2.7, +4.8"),
            Claim("pifa, linear", "random, linear", "P@1", "+1.9, +19.1"),
            Claim("pifa, transformer", "sentence, transformer", "P@1", "+0.0, +0.3", equal=True),
            Claim("pifa, transformer", "pifa, transformer, similarity for a ranker", "P@1", "+37.2, +17.5"),
            Claim("pifa, transformer, 2 seeds", "pifa, transformer", "P@1", "+0.8, +1.4"),
            Claim("pifa and sentence, transformer", "pifa, transformer, 2 seeds", "P@1", "+0.3, +0.8"),
            Claim(
                "pifa and sentence, transformer, 3 seeds",
                "pifa and sentence, transformer",
                "P@1",
                "above 0 (6 members)",
            ),
        ),
    ),
    "aplc": Group(
        "APLC-XLNet, Figures 4 and 5, rates, and the place of the head",
        "The same transformer for all rows, not XLNet.",
        {
            "2 clusters": aplc([0.5, 0.5]),
            "3 clusters": aplc([0.34, 0.33, 0.33]),
            "4 clusters": aplc([0.25] * 4),
            "6 clusters": aplc([0.17, 0.17, 0.17, 0.17, 0.16, 0.16]),
            "3 clusters, 0.7 0.2 0.1": aplc([0.7, 0.2, 0.1]),
            "3 clusters, 0.1 0.2 0.7": aplc([0.1, 0.2, 0.7]),
            "2 clusters, one rate": aplc([0.5, 0.5], ONE_RATE),
            "2 clusters, all in leaves": aplc([0.5, 0.5], head_in_root=False),
        },
        (
            Claim("2 clusters", "6 clusters", "P@1", "+2.0 (EURLex)"),
            Claim("3 clusters, 0.7 0.2 0.1", "3 clusters", "P@1", "above 0"),
            Claim("3 clusters", "3 clusters, 0.1 0.2 0.7", "P@1", "above 0; about +3 from first to last"),
            Claim("2 clusters", "2 clusters, one rate", "P@1", "one rate is found infeasible"),
            Claim("2 clusters", "2 clusters, all in leaves", "P@1", "above 0"),
        ),
    ),
    "lightxml-negatives": Group(
        "LightXML, Table 5: dynamic and static negatives",
        "Labels in clusters of up to 16, thirty of which are ranked; static rows train two networks in turn.",
        {
            "dynamic": lightxml("dynamic"),
            "static, a second encoder": lightxml("static"),
            "static, one frozen encoder": lightxml("frozen"),
        },
        (
            Claim("dynamic", "static, a second encoder", "P@1", "+0.9 (Wiki-500K), +0.9 (Amazon-670K)"),
            Claim("static, a second encoder", "static, one frozen encoder", "P@1", "+2.0, +2.9"),
        ),
    ),
    "lightxml-layers": Group(
        "LightXML, Figure 2: the last five layers against one",
        "Every label is scored.",
        {"five layers": layers(5), "one layer": layers(1)},
        (Claim("five layers", "one layer", "P@5", "above +1; half the epochs to the same loss"),),
        curves=True,
    ),
    "treaderxml": Group(
        "TReaderXML, Table 3: teacher, order of the two attentions, residual",
        "Word vectors of 100 numbers made of the texts, the first 64 words, up to 3 epochs with early stopping on "
        "texts held out of train; five neighbours by TF-IDF, no text among its own, whose labels are read as in the "
        "paper (no votes, no mean of the words).",
        {
            "neither": treader(False, []),
            "text alone, masked and full": treader(False, ["masked", "full"]),
            "teacher only": treader(True, []),
            "teacher, masked": treader(True, ["masked"]),
            "teacher, full": treader(True, ["full"]),
            "teacher, full and masked": treader(True, ["full", "masked"]),
            "teacher, masked and full, no residual": treader(True, ["masked", "full"], residual=False),
            "teacher, masked and full": treader(True, ["masked", "full"]),
        },
        (
            Claim("teacher only", "neither", "P@1", "+5.2 (AmazonCat)"),
            Claim("teacher, masked", "teacher only", "P@1", "+1.6"),
            Claim("teacher, full", "teacher, masked", "P@1", "+0.0", equal=True),
            Claim("teacher, full and masked", "teacher, masked", "P@1", "+1.0"),
            Claim("teacher, masked and full", "teacher, full and masked", "P@1", "+0.2"),
            Claim("teacher, masked and full", "teacher, masked and full, no residual", "P@1", "+0.4"),
            Claim("teacher, masked and full", "text alone, masked and full", "P@5", "not told"),
        ),
    ),
}


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


def key_of(row: str, seed: int, method: str, options: dict[str, Any]) -> str:
    """What a run is known by."""
    return hashlib.sha256(json.dumps([row, seed, method, options], sort_keys=True).encode()).hexdigest()[:16]


def write(given: argparse.Namespace) -> None:
    """The page, from what was kept."""
    parts = [HEAD]
    for name, group in GROUPS.items():
        file = KEPT / f"{name}.json"
        parts.append(f"## {group.title}\n\n{group.note}\n")
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        keys = {key_of(row, seed, *group.rows[row]) for row in group.rows for seed in range(10)}
        runs = [run for run in runs if run["key"] in keys]
        if not runs:
            parts.append("Not run yet.\n")
            continue
        parts += [
            table(group, runs),
            verdicts(group, runs),
            picture(f"ablations-{name}", "P@1 by row", bars(group, runs)),
        ]
        if group.curves:
            parts.append(picture(f"ablations-{name}-losses", "Loss by step", curves(group, runs)))
    PAGE.write_text("\n".join(parts))


HEAD = """# Ablations

The papers' own ablations on eurlex57k: trained on train (45,000 texts), measured on dev (6,000 texts; labels that train
lacks count as misses), e5-small with the first 64 tokens and 3 epochs unless a row says otherwise; mean over
seeds, ± standard deviation. Small budgets: rows can be compared with each other, not with the best figures of the
README. Seconds were taken beside other trainings and leave out what rows have in common. Figures of the papers are on
other data and with larger encoders: what can be compared is the sign.
`benchmarks/ablations.py` runs them again; its results are kept in `benchmarks/results/ablations/`.
"""


def table(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    lines = ["| | " + " | ".join(SHOWN) + " | training s | seeds |", "|---|" + "---|" * (len(SHOWN) + 2)]
    for row in group.rows:
        own = [run for run in runs if run["row"] == row]
        if own:
            cells = [_mean([run[metric] for run in own if metric in run]) for metric in SHOWN]
            seconds = statistics.mean(run["train_s"] for run in own)
            lines.append(f"| {row} | {' | '.join(cells)} | {seconds:.0f} | {len(own)} |")
    return "\n".join(lines) + "\n"


def verdicts(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    """What the paper found, beside what was found here."""
    by = {(run["row"], run["seed"]): run for run in runs}
    lines = ["| the paper: better | than | there | here | seeds above 0 | agrees |", "|---|---|---|---|---|---|"]
    for claim in group.claims:
        seeds = [s for s in range(10) if (claim.better, s) in by and (claim.worse, s) in by]
        gains = [by[claim.better, s][claim.metric] - by[claim.worse, s][claim.metric] for s in seeds]
        if gains:
            above = sum(gain > 0 for gain in gains)
            here = f"{statistics.mean(gains):+.2f} {claim.metric}"
            cells = claim.better, claim.worse, claim.there, here, f"{above} of {len(gains)}", agrees(claim, gains)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def agrees(claim: Claim, gains: Sequence[float]) -> str:
    """Whether what was found here is what the paper found; one seed is never enough to say so."""
    if len(gains) < 2:
        return "–"
    if claim.equal:
        return "yes" if abs(statistics.mean(gains)) <= HARDLY else "no"
    signs = {gain > 0 for gain in gains}
    return "unclear" if len(signs) == 2 else "yes" if signs == {True} else "no"


def picture(name: str, says: str, drawn: str) -> str:
    """A picture beside the page, and the line that shows it."""
    file = PAGE.parent / "pictures" / f"{name}.svg"
    file.parent.mkdir(exist_ok=True)
    file.write_text(drawn)
    return f"![{says}](pictures/{file.name})\n"


def bars(group: Group, runs: Sequence[dict[str, Any]], metric: str = "P@1") -> str:
    """A metric of each row as SVG: a bar for the mean, a dot a seed."""
    found = {row: [run[metric] for run in runs if run["row"] == row] for row in group.rows}
    found = {row: values for row, values in found.items() if values}
    every = [value for values in found.values() for value in values]
    least, most = min(every) - 0.2 * (max(every) - min(every) + 1), max(every) + 0.1
    left, width, step = 300, 640, 26
    parts = []
    for number, (row, values) in enumerate(found.items()):
        at = [left + (width - left - 60) * (value - least) / (most - least) for value in values]
        mean, y = statistics.mean(at), 12 + step * number
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end" fill="#333">{row}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{mean - left:.1f}" height="18" fill="#9cc5d3"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y + 9}" r="2.5" fill="#1f6f8b"/>' for x in at]
        label = f"{statistics.mean(values):.1f}"
        parts.append(f'<text x="{max(*at, mean) + 8:.1f}" y="{y + 13}" fill="#333">{label}</text>')
    return _svg(width, 20 + step * len(found), parts)


def curves(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    """Losses by step as SVG, first seed."""
    width, height, left, top, bottom = 640, 320, 60, 16, 40
    first = {run["row"]: run["losses"] for run in runs if run["seed"] == 0 and run["losses"]}
    longest = max(map(len, first.values()))
    most = max(loss for losses in first.values() for loss in losses[1:])
    parts = []
    for number, (row, losses) in enumerate(first.items()):
        colour = ("#1f6f8b", "#c1440e", "#4f772d", "#6a4c93")[number % 4]
        points = " ".join(
            f"{left + (width - left - 16) * at / max(1, longest - 1):.1f},"
            f"{top + (height - top - bottom) * (1 - min(loss, most) / most):.1f}"
            for at, loss in enumerate(losses)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        parts.append(f'<text x="{width - 150}" y="{top + 16 + 18 * number}" fill="{colour}">{row}</text>')
    floor = height - bottom
    parts.append(f'<line x1="{left}" x2="{width - 16}" y1="{floor}" y2="{floor}" stroke="#888"/>')
    parts.append(f'<text x="{left}" y="{height - 10}" fill="#555">step 0 to {20 * (longest - 1):,}</text>')
    parts.append(
        f'<text x="6" y="{top + 10}" fill="#555">{most:.1f}</text><text x="6" y="{floor}" fill="#555">0</text>'
    )
    return _svg(width, height, parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    style = 'font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>{"".join(parts)}</svg>\n'


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "–"
    if len(values) < 2:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


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
    commands.add_parser("write").set_defaults(do=write)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
