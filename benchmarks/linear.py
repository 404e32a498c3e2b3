"""longtail's linear family beside its peers: same features, same machine, one after the other.

    python benchmarks/linear.py [--data debtags,tibkat-gnd] [--systems pecos,omikuji-bonsai] [--resume]

Makes the shared features (features.py) and one environment a peer (environments.py), then runs each system of
systems.toml as a process of its own (peers/contract.py says what it measures) and writes

    results/linear/<data>/<system>.json   one result, also when a system failed or went over a limit
    results/linear.json, results/linear.md   all of them together (table.py)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from accuracy import accuracy_of
from environments import python_of
from features import EVAL_SPLIT, build_features
from machine import Others, describe_run, memory_bytes, memory_of
from table import write_tables

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
OK, OVER_TIME, OVER_MEMORY, FAILED = "ok", "over the time limit", "over the memory limit", "failed"


def main() -> int:
    """Run what the command line asks for; 1 when a system failed."""
    systems = tomllib.loads((HERE / "systems.toml").read_text())
    options = _options(systems)
    if options.table_only:
        print(write_tables(options.out))
        return 0
    # Children inherit it: on a larger machine, nothing uses more cores than it may.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    chosen = [(data, name) for data in options.data for name in options.systems if _runs_on(systems[name], data)]
    pythons = {adapter: python_of(adapter, WORK / "envs") for adapter in {systems[n]["adapter"] for _, n in chosen}}
    limits = {"time_limit_s": options.time_limit, "memory_limit_gb": options.memory_limit}
    run = describe_run(options.threads, **limits)
    failed = False
    for data, name in chosen:
        file = options.out / "linear" / data / f"{name}.json"
        if options.resume and file.is_file() and json.loads(file.read_text())["status"] != FAILED:
            continue
        system = systems[name]
        print(f"{data}: {system['name']}", flush=True)
        source, features = options.shared / "data" / data, WORK / "features" / data
        facts = build_features(source, EVAL_SPLIT[data], features)
        task = {
            "data": str(source), "split": EVAL_SPLIT[data], "features": str(features),
            "work": str(WORK / "runs" / data / name), "settings": system.get("settings", {}),
            "n_threads": options.threads,
        }  # fmt: skip
        result = _measure(pythons[system["adapter"]], system["adapter"], task, options)
        counts = {key: value for key, value in facts.items() if key.startswith("n_")}
        described = {
            "data": data, "split": task["split"], "system": name, "name": system["name"],
            "adapter": system["adapter"], "settings": task["settings"], "features": counts,
        }  # fmt: skip
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**described, **result, "run": run}, indent=1) + "\n")
        failed |= result["status"] == FAILED
        print(f"  others used {result['others_cores']} cores", flush=True)
        print(f"  {result['status']} {result.get('error', '')} {result['measured']}", flush=True)
    print(write_tables(options.out))
    return int(failed)


def _measure(python: Path, adapter: str, task: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Run one adapter to its end or to a limit; what it had measured until then is kept."""
    work = Path(task["work"])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "task.json").write_text(json.dumps(task, indent=1))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), str(options.threads))
    others = Others()
    with open(work / "log.txt", "wb") as log:
        process = subprocess.Popen(
            [str(python), "-m", f"peers.{adapter}", str(work / "task.json")],
            cwd=HERE, env={**os.environ, **threads}, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        status = _wait(process, options.time_limit, options.memory_limit * 1e9)
    others_cores = round(others.cores(), 2)
    file = work / "result.json"
    result = json.loads(file.read_text()) if file.is_file() else {"measured": {}}
    result = {"status": status, "others_cores": others_cores, **result}
    if status == FAILED:
        result["error"] = _last_line(work / "log.txt") or f"ended with {process.returncode}"
    if status == OK:
        result["accuracy"] = accuracy_of(work / "top.npz", Path(task["features"]))
    for folder in ("model", "trained"):
        shutil.rmtree(work / folder, ignore_errors=True)
    return result


def _wait(process: subprocess.Popen[bytes], time_limit_s: float, memory_limit: float) -> str:
    end = time.monotonic() + time_limit_s
    try:
        while True:
            try:
                # A system that the kernel killed for memory dies of SIGKILL; nobody else sends it.
                code = process.wait(timeout=0.5)
                return OK if code == 0 else OVER_MEMORY if code == -signal.SIGKILL else FAILED
            except subprocess.TimeoutExpired:
                if memory_of(process.pid) > memory_limit:
                    return OVER_MEMORY
                if time.monotonic() > end:
                    return OVER_TIME
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _last_line(log: Path) -> str:
    """The last line of a log, with folders of this machine taken out of it."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return re.sub(r"(/[\w.+-]+)+/", "", lines[-1])[:300] if lines else ""


def _runs_on(system: Mapping[str, Any], data: str) -> bool:
    return data in system.get("data", EVAL_SPLIT)


def _options(systems: Collection[str]) -> argparse.Namespace:
    def names_of(known: Collection[str]) -> Any:
        def parse(value: str) -> list[str]:
            unknown = [name for name in value.split(",") if name not in known]
            if unknown:
                raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
            return value.split(",")

        return parse

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=names_of(EVAL_SPLIT), default=list(EVAL_SPLIT), help="data sets, by commas")
    parser.add_argument("--systems", type=names_of(systems), default=list(systems), help="systems, by commas")
    parser.add_argument("--shared", type=_path, default=HERE.parent.parent / "shared", help="folder that holds data/")
    parser.add_argument("--out", type=_path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--threads", type=int, default=2, help="threads, and cores, for every system")
    parser.add_argument("--time-limit", type=float, default=1200, metavar="S", help="seconds a system may take")
    gigabytes = round(0.8 * memory_bytes() / 1e9, 1)
    parser.add_argument("--memory-limit", type=float, default=gigabytes, metavar="GB", help="memory it may hold")
    parser.add_argument("--resume", action="store_true", help="keep finished results and run only what is missing")
    parser.add_argument("--table-only", action="store_true", help="only write the tables from the results again")
    return parser.parse_args()


def _path(value: str) -> Path:
    return Path(value).resolve()


if __name__ == "__main__":
    sys.exit(main())
