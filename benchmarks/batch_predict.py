"""Five million titles, Parquet to Parquet, killed twice on the way: python benchmarks/batch_predict.py

Draws titles from the texts of yso-finna-en, with a seed, into one Parquet file with row groups of a million rows. Then
`longtail predict MODEL titles.parquet --out tagged.parquet/ --keep id` runs as a process of its own: twice it is killed
(SIGKILL) after a part of the texts that a seed draws, and the third time it ends by itself. What is checked:

    the ids of all parts, read as one table, are 0, 1, 2, ... in order     complete, and nothing twice
    the labels of 20,000 texts are those that `model.predict` gives
    the peak of each process's memory (VmHWM), beside the bytes of the model

Results: results/batch_predict.json.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import longtail

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "yso-finna-en"
RESULTS = Path(__file__).parent / "results" / "batch_predict.json"
ROW_GROUP = 1_000_000
CHECKED = 20_000
MAY_TAKE_MB = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--model", type=Path, help="a trained model; by default linear/fast is trained")
    parser.add_argument("--texts", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--place", type=Path, default=Path("build/batch_predict"), help="a folder for what is made")
    given = parser.parse_args()
    given.place.mkdir(parents=True, exist_ok=True)
    model = given.model or trained(given.data, given.place / "model")
    titles, out = given.place / f"titles-{given.texts}.parquet", given.place / "tagged.parquet"
    if not titles.exists():
        write_titles(titles, given.data, given.texts)
    if out.exists():
        raise SystemExit(f"{out} is there already; remove it, for nothing would be measured")
    command = [sys.executable, "-m", "longtail", "predict", str(model), str(titles), "--out", f"{out}/"]
    command += ["--keep", "id", "--threads", str(given.threads)]
    drawn = random.Random(0)
    n_parts = -(-given.texts // max(50_000, -(-min(ROW_GROUP, given.texts) // 16)))
    kills = sorted(drawn.sample(range(1, max(n_parts, 3)), 2))
    runs = [run(command, out, parts) for parts in (*kills, None)]
    model_mb = sum(file.stat().st_size for file in model.iterdir()) / 1e6
    peak_mb = max(each["peak_mb"] for each in runs)
    found = {
        "command": " ".join(["python", "benchmarks/batch_predict.py", *sys.argv[1:]]),
        "texts": given.texts,
        "mean_characters": round(float(np.mean([len(text) for text in first_texts(titles)])), 1),
        "method": "linear/fast",
        "model_mb": round(model_mb, 1),
        "peak_mb": peak_mb,
        "peak_above_model_mb": round(peak_mb - model_mb, 1),
        "peak_holds": peak_mb <= model_mb + MAY_TAKE_MB,
        **checked(out, titles, model, given.texts),
        "ms_of_processors_per_text": round(sum(each["cpu_s"] for each in runs) / given.texts * 1e3, 4),
        "texts_per_s": round(given.texts / sum(each["wall_s"] for each in runs)),
        "out_mb": round(sum(file.stat().st_size for file in out.iterdir()) / 1e6, 1),
        "runs": runs,
        "threads": given.threads,
        "load_average": Path("/proc/loadavg").read_text().split()[:3],
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def trained(data: Path, model: Path) -> Path:
    """A linear/fast model of the data set."""
    if not model.exists():
        longtail.Linear("linear/fast").fit(longtail.load_dataset(data).train).save(model)
    return model


def write_titles(file: Path, data: Path, n: int) -> None:
    """Texts of the data set, drawn with replacement."""
    texts = longtail.load_dataset(data).train.texts["text"].combine_chunks()
    draw = np.random.default_rng(0)
    with pq.ParquetWriter(file, pa.schema({"id": pa.int64(), "text": pa.string()})) as writer:
        for start in range(0, n, ROW_GROUP):
            rows = range(start, min(start + ROW_GROUP, n))
            drawn = texts.take(pa.array(draw.integers(len(texts), size=len(rows))))
            writer.write_table(pa.table({"id": pa.array(rows, pa.int64()), "text": drawn}), ROW_GROUP)


def first_texts(titles: Path) -> list[str]:
    return next(pq.ParquetFile(titles).iter_batches(CHECKED, columns=["text"]))["text"].to_pylist()


def run(command: list[str], out: Path, kill_after: int | None) -> dict[str, Any]:
    """Run the command, until it ends or so many parts are there; return its time and the peak of its memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, peak_mb = time.perf_counter(), 0.0
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    killed = False
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak_mb = max(peak_mb, int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6)
        except (OSError, IndexError):
            pass  # it has just ended
        if kill_after is not None and len(list(out.glob("part-*"))) >= kill_after:
            process.send_signal(signal.SIGKILL)
            killed = True
        time.sleep(0.05)
    assert process.stderr is not None
    said = process.stderr.read().splitlines()
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "killed": killed,
        "exit_code": process.returncode,
        "parts": len(list(out.glob("part-*"))),
        "wall_s": round(wall_s, 1),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_mb": round(peak_mb, 1),
        "last_line": said[-1] if said and not killed else "",
    }


def checked(out: Path, titles: Path, model: Path, n: int) -> dict[str, bool]:
    """Whether the parts are complete, without duplicates, in order, and right."""
    ids = pq.read_table(out, columns=["id"])["id"].to_numpy()
    told = next(pq.ParquetFile(out / "part-00000.parquet").iter_batches(CHECKED, columns=["label_ids"]))
    texts = first_texts(titles)[: len(told)]
    expected = longtail.load_model(model).predict(texts)
    labels = [[label.id for label in row] for row in expected]
    return {
        "complete": (out / "_SUCCESS").exists() and len(ids) == n,
        "in_order_without_duplicates": bool(np.array_equal(ids, np.arange(n))),
        "labels_as_predict": told["label_ids"].to_pylist() == labels,
    }


if __name__ == "__main__":
    main()
