"""One measured run of one system: what every adapter has in common.

    python -m peers.<adapter> TASK.json      (working folder: benchmarks/)

TASK.json    data (folder), split, features (folder), work (folder), settings, n_threads
work/        model/       the saved model, by whose size the model's MB are counted
             top.npz      labels (n_eval, 20) int32, -1 where a row is short; scores (n_eval, 20) float32
             result.json  {"versions": {package: version}, "measured": {...}}, written anew after each stage,
                          so that a run that is stopped leaves what it had measured

measured: rss_loaded_mb  memory right after imports and loading of the training matrices
          train_s        wall time from matrices in memory to a model in memory, label tree included
          train_cpu_s    the same in processor time of all threads: steadier where others share the machine
          peak_mb        the most memory that the process held from there until training ended
          model_mb       bytes on disk
          load_s         opening the saved model
          batch_ms       a text, all evaluation texts at once, matrix in, top 20 out, n_threads threads
          single_ms      a text, one at a time, from raw text: vectorising and predicting; median of 200

An adapter subclasses `Adapter` and ends with `main(ItsAdapter)`.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from memory import peak_mb, reset_peak, resident_mb

K = 20
N_WARM_UP = 20
BATCH_PASSES_S = 10.0


class Task:
    """What is to be run, and where its files are."""

    def __init__(self, file: str) -> None:
        values = json.loads(Path(file).read_text())
        self.settings: dict[str, Any] = values["settings"]
        self.n_threads: int = values["n_threads"]
        self.split: str = values["split"]
        self.data, self.features, self.work = (Path(values[name]) for name in ("data", "features", "work"))

    def matrix(self, name: str) -> sp.csr_matrix:
        """X_train, Y_train, X_eval: float32 CSR. (The driver keeps Y_eval to itself.)"""
        return sp.csr_matrix(sp.load_npz(self.features / f"{name}.npz"))


class Adapter:
    """The steps of a run. Only `train`, `save`, `load` and `predict` must be written."""

    packages: tuple[str, ...] = ()
    """Distributions whose versions are recorded."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def training_data(self) -> Any:
        """What `train` is given. By default the shared features and labels: (X_train, Y_train)."""
        return self.task.matrix("X_train"), self.task.matrix("Y_train")

    def eval_data(self) -> Any:
        """What `predict` is given for all evaluation texts. By default the shared features."""
        return self.task.matrix("X_eval")

    def vectoriser(self) -> Callable[[list[str]], Any]:
        """From raw texts to what `predict` takes. By default scikit-learn, with the shared vocabulary and weights.

        Where the data are features only, a text is the number of its row.
        """
        if not (self.task.features / "vectoriser.json").is_file():
            rows = self.eval_data()
            return lambda numbers: rows[[int(number) for number in numbers]]
        from sklearn.feature_extraction.text import TfidfVectorizer

        stored = json.loads((self.task.features / "vectoriser.json").read_text())
        tfidf = TfidfVectorizer(vocabulary=stored["terms"], dtype=np.float32, **stored["options"])
        tfidf.idf_ = np.load(self.task.features / "idf.npy")
        return tfidf.transform  # type: ignore[no-any-return]

    def train(self, data: Any) -> Any:
        """From matrices in memory to a model in memory."""
        raise NotImplementedError

    def save(self, model: Any, folder: Path) -> None:
        """Write the model into `folder`, which exists and is empty."""
        raise NotImplementedError

    def load(self, folder: Path) -> Any:
        """Open the saved model in the library's fastest way to predict."""
        raise NotImplementedError

    def predict(self, model: Any, data: Any, n_threads: int) -> Any:
        """The best K labels of each text, in whatever form the library returns them."""
        raise NotImplementedError

    def top(self, found: Any) -> tuple[np.ndarray, np.ndarray]:
        """What `predict` returned as (labels, scores), each (n_texts, K). By default from CSR. Not timed."""
        return top_of_csr(found)


def top_of_csr(scores: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """The best K entries of each row, by (-score, label)."""
    n_texts = scores.shape[0]
    rows = np.repeat(np.arange(n_texts), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, rows))
    place = np.arange(len(rows)) - scores.indptr[:-1][rows]
    keep = place < K
    labels = np.full((n_texts, K), -1, np.int32)
    values = np.full((n_texts, K), -np.inf, np.float32)
    labels[rows[keep], place[keep]] = scores.indices[order][keep]
    values[rows[keep], place[keep]] = scores.data[order][keep]
    return labels, values


def top_of_pairs(rows: list[list[tuple[int, float]]]) -> tuple[np.ndarray, np.ndarray]:
    """The best K of lists of (label, score)."""
    lengths = [len(row) for row in rows]
    flat = [pair for row in rows for pair in row]
    labels = np.fromiter((label for label, _ in flat), np.int32, len(flat))
    values = np.fromiter((score for _, score in flat), np.float32, len(flat))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    n_labels = int(labels.max(initial=0)) + 1
    return top_of_csr(sp.csr_matrix((values, labels, indptr), shape=(len(rows), n_labels)))


def main(kind: type[Adapter]) -> None:
    """Run the task named on the command line and write its results."""
    task = Task(sys.argv[1])
    adapter = kind(task)
    measured: dict[str, float] = {}

    def note(**values: float) -> None:
        measured.update({name: round(value, 4) for name, value in values.items()})
        print(values, flush=True)
        result = {"versions": {name: version(name) for name in kind.packages}, "measured": measured}
        (task.work / "result.json").write_text(json.dumps(result, indent=1))

    data = adapter.training_data()
    gc.collect()
    reset_peak()
    note(rss_loaded_mb=resident_mb())
    start, start_cpu = time.perf_counter(), time.process_time()
    model = adapter.train(data)
    note(train_s=time.perf_counter() - start, train_cpu_s=time.process_time() - start_cpu, peak_mb=peak_mb())

    folder = task.work / "model"
    folder.mkdir()
    adapter.save(model, folder)
    note(model_mb=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6)
    del model, data
    start = time.perf_counter()
    model = adapter.load(folder)
    note(load_s=time.perf_counter() - start)

    eval_data = adapter.eval_data()
    labels, scores = _time_batch(adapter, model, eval_data, note)
    np.savez(task.work / "top.npz", labels=labels, scores=scores)
    _time_single(adapter, model, eval_data, note)


def _time_batch(adapter: Adapter, model: Any, data: Any, note: Callable[..., None]) -> tuple[np.ndarray, np.ndarray]:
    """The fastest of up to three passes: on small sets one pass is too short to be timed well."""
    adapter.predict(model, data[:N_WARM_UP], adapter.task.n_threads)
    times: list[float] = []
    while len(times) < 3 and sum(times) < BATCH_PASSES_S:
        start = time.perf_counter()
        found = adapter.predict(model, data, adapter.task.n_threads)
        times.append(time.perf_counter() - start)
    labels, scores = adapter.top(found)
    note(batch_ms=min(times) / len(labels) * 1e3)
    return labels, scores


def _time_single(adapter: Adapter, model: Any, data: Any, note: Callable[..., None]) -> None:
    sample = json.loads((adapter.task.features / "sample.json").read_text())
    vectorise = adapter.vectoriser()
    if sp.issparse(data) and abs(vectorise(sample["texts"]) - data[sample["rows"]]).max() > 1e-6:
        raise SystemExit("vectorising raw texts must give the same features as the batch had")
    times = []
    for text in sample["texts"]:
        start = time.perf_counter()
        adapter.predict(model, vectorise([text]), 1)
        times.append(time.perf_counter() - start)
    note(single_ms=statistics.median(times[N_WARM_UP:]) * 1e3)
