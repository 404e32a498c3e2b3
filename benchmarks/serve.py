"""How fast `longtail serve` is on two cores: python benchmarks/serve.py [--annif]

A linear model of tibkat-gnd (trained once, under benchmarks/work/serve) is served, and a load generator of its own
process (serve_load.py; the cores that it takes are reported) asks it with texts of the dev split:

    sixteen       16 texts a request, 32 connections: texts per second
    one           one text a request, 64 connections: requests per second
    unbatched     the same, of a server that tags every text by itself
    half          half the requests per second of `one`, at even times: milliseconds
    idle          one request after another with pauses, beside the library in the same pattern: milliseconds
    swap          as `one`, while the model is replaced and opened again: failed requests
    memory        proportional set size of 2 and 4 workers after load
    annif         with --annif: Annif's server with an omikuji model of the same data, one gunicorn worker per core

    workers       with --workers: `sixteen` and `one` of two processes

Annif gets an environment of its own (environments.py). Nothing else should run on the machine: `others_cores` says
what did. Results: results/serve.json.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import serve_annif
from machine import Others, arguments_of, describe_run
from serve_load import write_requests

from longtail.data.load import load_dataset

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "serve.json"
WORK = HERE / "work" / "serve"
TEXTS = 4000
BARS = {
    "sixteen_texts_per_s": 4000,
    "one_requests_per_s": 1200,
    "batching_gain": 2.5,
    "half_p99_ms": 25,
    "idle_over_library_ms": 1.0,
    "swap_failed": 0,
    "memory_over_model_mb_per_worker": 250,
    "annif_gain": 5,
}


@contextmanager
def served(model: Path, *flags: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a server and yield its port."""
    command = [sys.executable, "-m", "longtail", "serve", str(model), "--port", "0", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+) serves", process.stderr.readline())[1])
        while json.loads(asked(port, "/readyz") or "{}").get("status") != "ready":
            time.sleep(0.1)
        yield port, process
    finally:
        process.terminate()
        process.wait()


def asked(port: int, path: str, method: str = "GET") -> str:
    command = ["curl", "-s", "-X", method, f"http://127.0.0.1:{port}{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def load(port: int, bodies: Path, connections: int, seconds: float, **plan: Any) -> dict[str, Any]:
    """Run the load generator."""
    plan = {
        "host": "127.0.0.1",
        "port": port,
        "bodies": str(bodies),
        "connections": connections,
        "seconds": seconds,
        **plan,
    }
    command = [sys.executable, str(HERE / "serve_load.py")]
    return json.loads(
        subprocess.run(command, input=json.dumps(plan), capture_output=True, text=True, check=True).stdout
    )


def library_ms(model: Path, texts: list[str], pause_s: float) -> float:
    """Median time of the library for one text, in a process that pauses as the client of `idle` does."""
    code = f"""
import json, statistics, sys, time
from longtail.methods import load_model
model, texts, taken = load_model({str(model)!r}), json.load(sys.stdin), []
for text in texts:
    start = time.perf_counter()
    model.predict([text], 5)
    taken.append(time.perf_counter() - start)
    time.sleep({pause_s})
print(1000 * statistics.median(taken[20:]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    return float(ran.stdout)


def pss_mb(process: subprocess.Popen[str]) -> float:
    """Proportional set size of a server's workers, or of the server itself."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split() or [str(process.pid)]
    lines = (Path(f"/proc/{child}/smaps_rollup").read_text() for child in children)
    return sum(int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1]) for text in lines) / 1024


def replaced(model: Path, number: int) -> None:
    """Put an equal model with another manifest in the place of a model."""
    from longtail.methods import load_model

    copy = load_model(model)
    copy.facts_["swap"] = number
    copy.save(model)


def main() -> None:
    parser = arguments_of(__doc__, "tibkat-gnd")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many runs counts where speed is measured")
    parser.add_argument("--model", type=Path, help="a model that is trained already")
    parser.add_argument("--annif", action="store_true", help="measure Annif's server too; it is trained once")
    parser.add_argument("--workers", action="store_true", help="measure two processes too")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", default="", help="parts by commas")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    others, run = Others(), describe_run(arguments.threads)
    data = load_dataset(str(arguments.shared / "data" / arguments.data))
    texts = list(islice(data.dev.texts["text"].to_pylist(), TEXTS))
    model = arguments.model or WORK / arguments.data
    if not model.exists():
        command = [sys.executable, "-m", "longtail", "train", str(arguments.shared / "data" / arguments.data), "--out"]
        subprocess.run([*command, str(model)], check=True)
    one, sixteen = WORK / "one.bin", WORK / "sixteen.bin"
    write_requests(one, [json.dumps({"texts": [text]}).encode() for text in texts])
    write_requests(sixteen, [json.dumps({"texts": texts[at : at + 16]}).encode() for at in range(0, len(texts), 16)])
    seconds, rounds = arguments.seconds, arguments.rounds
    only = set(arguments.only.split(",")) - {""}
    results: Path = arguments.results
    measured: dict[str, Any] = json.loads(results.read_text())["measured"] if only and results.exists() else {}

    def wanted(*names: str) -> bool:
        return not only or bool(only & set(names))

    def best(**asked_for: Any) -> dict[str, Any]:
        runs = [load(seconds=seconds, **asked_for) for _ in range(rounds)]
        return max(runs, key=lambda result: result["requests_per_s"]) | {
            "all_requests_per_s": [result["requests_per_s"] for result in runs]
        }

    if wanted("sixteen", "one", "half", "idle"):
        with served(model) as (port, process):
            measured["sixteen"] = best(port=port, bodies=sixteen, connections=32)
            measured["one"] = best(port=port, bodies=one, connections=64)
            rate = measured["one"]["requests_per_s"] / 2
            halves = [load(port, one, 64, seconds, rate=rate) for _ in range(rounds)]
            measured["half"] = min(halves, key=lambda result: result["ms"]["p99"]) | {"rate": rate}
            pause_s = 0.02
            idle = [load(port, one, 1, 6, pause_s=pause_s)["ms"]["p50"] for _ in range(rounds)]
            library = [library_ms(model, texts[:250], pause_s) for _ in range(rounds)]
            measured["idle"] = {
                "server_ms": statistics.median(idle), "library_ms": round(statistics.median(library), 3),
                "all_server_ms": idle, "all_library_ms": [round(ms, 3) for ms in library],
            }  # fmt: skip
            measured["memory_one_process"] = {"pss_mb": round(pss_mb(process), 1)}
    if wanted("unbatched", "one"):
        with served(model, "--set", "batch_texts=1") as (port, _):
            measured["unbatched"] = best(port=port, bodies=one, connections=64)
    if wanted("swap"):
        swapped = WORK / "swapped"
        shutil.rmtree(swapped, ignore_errors=True)
        shutil.copytree(model, swapped)
        with served(swapped) as (port, _):
            plan = {"host": "127.0.0.1", "port": port, "bodies": str(one), "connections": 64, "seconds": 20}
            command = [sys.executable, str(HERE / "serve_load.py")]
            generator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            generator.stdin.write(json.dumps(plan))
            generator.stdin.close()
            time.sleep(3)
            reloads = []
            for number in range(3):
                replaced(swapped, number)
                reloads.append(json.loads(asked(port, "/v1/model/reload", "POST"))["reloaded"])
            measured["swap"] = json.loads(generator.stdout.read()) | {"reloads": sum(map(len, reloads))}
            generator.wait()
    if wanted("memory"):
        model_mb = sum(file.stat().st_size for file in model.iterdir()) / 2**20
        measured["memory"] = {"model_mb": round(model_mb, 1), "workers": {}}
        for n_workers in (2, 4):
            with served(model, "--workers", str(n_workers)) as (port, process):
                load(port, sixteen, 32, 10)
                measured["memory"]["workers"][n_workers] = {"pss_mb": round(pss_mb(process), 1)}
        for n_workers, memory in measured["memory"]["workers"].items():
            memory["over_model_mb_per_worker"] = round((memory["pss_mb"] - model_mb) / int(n_workers), 1)
    if arguments.workers and wanted("workers"):
        with served(model, "--workers", "2") as (port, _):
            measured["workers"] = {
                "sixteen": best(port=port, bodies=sixteen, connections=32),
                "one": best(port=port, bodies=one, connections=64),
            }

    def keep() -> None:
        facts = {"run": run | {"others_cores": round(others.cores(), 2)}, "bars": BARS, "reached": reached(measured)}
        results.write_text(json.dumps(facts | {"measured": measured}, indent=1) + "\n")

    keep()  # in case Annif cannot be installed or trained
    if arguments.annif and wanted("annif"):
        folder = WORK / f"annif-{arguments.data}"
        with serve_annif.served(WORK / "environments", folder, data, arguments.threads) as (port, facts):
            bodies = WORK / "annif.bin"
            documents = [
                {"documents": [{"text": text} for text in texts[at : at + 16]]} for at in range(0, len(texts), 16)
            ]
            write_requests(
                bodies, [json.dumps(document).encode() for document in documents],
                "/v1/projects/omikuji/suggest-batch?limit=5",
            )  # fmt: skip
            measured["annif"] = best(port=port, bodies=bodies, connections=32) | facts
    keep()
    print(json.dumps(json.loads(results.read_text())["reached"], indent=1))


def reached(measured: dict[str, Any]) -> dict[str, float]:
    """Return the figures that the bars are about."""
    figures: dict[str, float] = {}
    if "one" in measured:
        figures["sixteen_texts_per_s"] = 16 * measured["sixteen"]["requests_per_s"]
        figures["one_requests_per_s"] = measured["one"]["requests_per_s"]
        figures["half_p99_ms"] = measured["half"]["ms"]["p99"]
        figures["idle_over_library_ms"] = round(measured["idle"]["server_ms"] - measured["idle"]["library_ms"], 3)
    if "unbatched" in measured and "one" in measured:
        figures["batching_gain"] = round(measured["one"]["requests_per_s"] / measured["unbatched"]["requests_per_s"], 2)
    if "swap" in measured:
        figures["swap_failed"] = measured["swap"]["failed"]
    if "memory" in measured:
        workers = measured["memory"]["workers"].values()
        figures["memory_over_model_mb_per_worker"] = max(memory["over_model_mb_per_worker"] for memory in workers)
    if "annif" in measured and "sixteen" in measured and measured["annif"]["requests_per_s"]:
        figures["annif_gain"] = round(measured["sixteen"]["requests_per_s"] / measured["annif"]["requests_per_s"], 2)
    return figures


if __name__ == "__main__":
    main()
