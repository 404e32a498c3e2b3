"""Attack files and processes, and count what goes wrong: python benchmarks/faults.py --cases 10000

    kills           at random and at every event of files, while a model is saved and while one is trained
    full disk       files that cannot grow, and a file system that is too small
    models          bytes changed, with old and with right checksums, below and above 256 MiB; manifests written by hand
    stages          damage in the work folder of an unfinished training
    readers         CSV, JSON lines, Parquet, fastText, svmlight, XMC, PECOS, X-BERT, SKOS, names: bytes and words

Each case is a forked process of its own (Linux). What must not be: a crash, a hang over 10 s of processor time, a
traceback, a model that is lost, and other answers from files whose checksums were not made right. Results:
results/faults.json and faults.md. In slices: --slice 1/3, then --slice 2/3 and 3/3, which add theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "faults"
FAULTS = ("crash", "hang", "traceback", "silent", "lost")
GOOD = ("same", "refused", "changed", "killed")
SHARES = {
    "kills at random while saving": 0.02,
    "damaged stages": 0.03,
    "full disk": 0.02,
    "model bytes changed": 0.2,
    "model changed, checksums right": 0.2,
    "crafted manifests": 0.1,
    "model above 256 MiB changed": 0.03,
}
"""Of all cases; readers get the rest, and the kills at every event come on top."""
SHOWN = 30
MEMORY = Path("/dev/shm")
"""Files in memory: thousands of copies of models are written."""


def main() -> None:
    """Share the cases out to workers, wait for them and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600, help="begin no case later than this")
    parser.add_argument("--only", default="", help="groups whose names hold this")
    parser.add_argument("--slice", default="1/1", help="2/3 is the second third of the cases, added to the first one's")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options)
        return
    from machine import describe_run

    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "XDG_CACHE_HOME": place}
        command = [sys.executable, __file__, *sys.argv[1:]]
        workers = []
        for number in range(options.workers):
            with open(Path(place) / f"{number}.jsonl", "wb") as out:
                workers.append(subprocess.Popen([*command, "--worker", str(number)], stdout=out, env=environment))
        ended = [worker.wait() for worker in workers]
        lines = [
            json.loads(line) for file in sorted(Path(place).glob("*.jsonl")) for line in file.read_bytes().splitlines()
        ]
    minutes = round((time.monotonic() - start) / 60, 1)
    run = describe_run(options.workers, minutes=minutes, seed=options.seed, slice=options.slice)
    write(summary(lines, run, {} if options.slice.startswith("1/") else earlier()))
    if any(ended):
        raise SystemExit(f"a worker ended with {ended}")


def work(options: argparse.Namespace) -> None:
    """Do every n-th case and print how each ended."""
    from fault_models import Models, groups
    from fault_readers import Readers

    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        models = Models(Path(place), large=options.worker == 0 and options.only in "model above 256 MiB changed")
        readers = Readers(Path(place))
        cases: list[tuple[str, Any]] = []
        for training in (False, True):
            name = "kills at every event of files, " + ("training" if training else "saving")
            for event in range(1, models.n_events(training) + 1):
                if event % options.workers == options.worker:
                    cases.append((name, lambda draw, t=training, e=event: models.killed_at(draw, t, e)))
        drawn: dict[str, Any] = dict(groups(models))
        n_readers = round(options.cases * (1 - sum(SHARES.values())))
        counts = {name: round(options.cases * SHARES[name]) for name in drawn}
        for number, reader in enumerate(readers.names()):
            name = f"reader: {reader}"
            drawn[name] = lambda draw, reader=reader: readers.attack(reader, draw)
            counts[name] = (n_readers + number) // len(readers.names())
        n_each = {name: (n + options.worker) // options.workers for name, n in counts.items()}
        if "large" in models.folders:
            drawn["model above 256 MiB changed"] = models.large
            n_each["model above 256 MiB changed"] = round(options.cases * SHARES["model above 256 MiB changed"])
        cases += [(name, drawn[name]) for name, n in n_each.items() for _ in range(n)]
        cases = [case for case in cases if options.only in case[0]]
        random.Random(options.seed).shuffle(cases)  # a run that is cut short has some of everything
        part, n_parts = map(int, options.slice.split("/"))
        for number, (name, case) in list(enumerate(cases))[part - 1 :: n_parts]:
            if time.monotonic() > end:
                break
            outcome = case(random.Random(f"{options.seed}-{options.worker}-{number}"))
            print(json.dumps([name, *outcome]), flush=True)


def earlier() -> dict[str, Any]:
    """Return the results that slices before this one left."""
    file = RESULTS.with_suffix(".json")
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return results


def summary(lines: list[list[str]], run: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Count outcomes by group, and list each fault once; add those of slices `before` this one."""
    counts = {name: Counter(of_group) for name, of_group in before.get("groups", {}).items()}
    for name, kind, _ in lines:
        counts.setdefault(name, Counter())[kind] += 1
    faults = Counter({(f["group"], f["kind"], f["detail"]): f["cases"] for f in before.get("faults", ())})
    faults.update((name, kind, detail) for name, kind, detail in lines if kind in FAULTS)
    named = [{"group": n, "kind": k, "detail": d, "cases": times} for (n, k, d), times in faults.most_common()]
    groups = {name: dict(of_group) for name, of_group in sorted(counts.items())}
    return {"runs": [*before.get("runs", ()), run], "groups": groups, "faults": named}


def write(results: dict[str, Any]) -> None:
    """Write the results as JSON and as a table."""
    head = ["", "cases", *GOOD, *FAULTS]
    rows = [
        [name, sum(kinds.values()), *(kinds.get(kind, 0) for kind in (*GOOD, *FAULTS))]
        for name, kinds in results["groups"].items()
    ]
    rows.append(["all", *(sum(row[at] for row in rows) for at in range(1, len(head)))])
    runs = results["runs"]
    minutes, last = sum(run["minutes"] for run in runs), runs[-1]
    text = [
        "# Faults",
        "",
        f"`python benchmarks/faults.py`, {last['date']}, {minutes:.0f} minutes, {last['machine']['system']}.",
        "`same`: the right answers; `refused`: an error that says what is wrong; `changed`: other answers, from files",
        "whose checksums were made right, or from other data; `killed`: and all was well after it.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " --- |" + " ---: |" * (len(head) - 1),
        *("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |" for row in rows),
        "",
    ]
    if results["faults"]:
        text += ["## What went wrong", ""]
        text += [
            f"- {one['group']}: {one['kind']}, {one['cases']}×: `{one['detail']}`" for one in results["faults"][:SHOWN]
        ]
        text.append("")
    RESULTS.with_suffix(".json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
