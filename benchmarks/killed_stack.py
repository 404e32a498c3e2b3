"""Kill the training of a stack with SIGKILL at random moments, resume it, and compare the model with a whole run's.

    python benchmarks/killed_stack.py [--kills 20] [--minutes 20]                  results/killed_stack.json

A round ends when a resumed training comes to its end; its model must have the files of the whole run, by their
checksums. Rounds go on until there were as many kills as asked for, or time is over. A model folder that is there after
a kill must be whole. `tests/campaigns/test_kills.py` does the same to other methods, too.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from longtail.errors import ModelFormatError
from longtail.methods import load_model

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import describe_run

RESULT = Path(__file__).resolve().parent / "results" / "killed_stack.json"
TRAIN = [sys.executable, "-m", "longtail", "train", "debtags-sample", "--method", "stack", "--quiet"]
OPTIONS = ["--set", 'members=["linear/fast","knn"]', "--set", "ranker.n_trees=20"]


def files_of(model: Path) -> Any:
    """Return the checksums of a model's files."""
    return json.loads((model / "manifest.json").read_bytes())["files"]


def main() -> None:
    """Kill and resume."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=20, help="no further kill after so many minutes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    place, start, moments = Path(tempfile.mkdtemp()), time.perf_counter(), random.Random(args.seed)
    subprocess.run([*TRAIN, *OPTIONS, "-o", str(place / "whole")], check=True)
    seconds, whole = time.perf_counter() - start, files_of(place / "whole")
    kills: list[float] = []
    rounds: list[dict[str, Any]] = []
    killed_in_round = 0
    while len(kills) < args.kills or killed_in_round:
        over = len(kills) >= args.kills or time.perf_counter() - start > 60 * args.minutes
        if over and not killed_in_round:
            break
        process = subprocess.Popen([*TRAIN, *OPTIONS, "-o", str(place / "killed"), "--resume"])
        moment = None if over else moments.uniform(0.1, seconds)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills.append(round(moment or 0, 1))
            killed_in_round += 1
            try:
                load_model(place / "killed", verify=True)
            except ModelFormatError:
                if (place / "killed" / "manifest.json").exists():
                    raise
            print(f"kill {len(kills)} after {moment:.1f} s", flush=True)
            continue
        if process.returncode != 0:
            raise SystemExit(f"a resumed training failed with exit code {process.returncode}")
        same = files_of(place / "killed") == whole
        rounds.append({"kills": killed_in_round, "same_model": same})
        print(rounds[-1], flush=True)
        killed_in_round = 0
    result = {
        "options": OPTIONS,
        "whole_run_s": round(seconds, 1),
        "kills": len(kills),
        "seconds_until_kill": kills,
        "rounds": rounds,
        "all_the_same": all(one["same_model"] for one in rounds),
        "run": describe_run(2),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
