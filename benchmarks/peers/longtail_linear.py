"""longtail's linear family, on the shared features or with its own.

settings: method (a preset), options (over it), own_features (true: from raw texts, features as the method makes them).

The shared features come from longtail's vectoriser: they equal scikit-learn's but for the order of the columns, which
is checked. They are made by a process of their own, as the driver made those of the others, so that what this needs
of memory is no part of training.
"""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from peers.contract import Adapter, K, Task, main

from longtail.data import Split, Vocabulary, load_dataset
from longtail.kernels.rows import Rows
from longtail.methods import create_method, load_model
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.scores.combine import combine
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.text.tfidf import Tfidf
from longtail.types import LabelMatrix

FEATURES = "longtail-features"
TRAIN, EVAL = "train", "eval"


@dataclass(frozen=True)
class Part:
    """Rows that can be sliced, as the contract asks."""

    rows: Rows

    def __getitem__(self, span: slice) -> "Part":
        return Part(self.rows.part(span.start or 0, min(span.stop, len(self.rows))))


class OnSharedFeatures(Adapter):
    packages = ("longtail", "numpy", "scipy", "numba", "pyarrow")

    def training_data(self):
        subprocess.run([sys.executable, "-m", "peers.longtail_linear", sys.argv[1], FEATURES], check=True)
        labels = self.task.matrix("Y_train")
        return self._rows(TRAIN), LabelMatrix(labels.indptr.astype(np.int64), labels.indices, labels.shape[1])

    def eval_data(self):
        return Part(self._rows(EVAL))

    def vectoriser(self):
        tfidf = Tfidf.load(self._folder(), "tfidf")

        def vectorise(texts):
            indices, values = tfidf.transform_one(texts[0])
            return Part(Rows(np.array([0, len(indices)]), indices, values, tfidf.n_features_))

        return vectorise

    def train(self, data):
        rows, labels = data
        empty = pa.table({"text": pa.array([""] * len(rows), pa.string())})
        vocabulary = Vocabulary.of([str(label) for label in range(labels.n_labels)])
        return self._method().fit(Split(empty, labels, vocabulary, rows.matrix()), threads=self.task.n_threads)

    def save(self, model, folder):
        folder.rmdir()
        model.save(folder)

    def load(self, folder):
        return load_model(folder)

    def predict(self, model, data, n_threads):
        run, options = Run(LocalEngine(n_threads)), model.options
        length = K if len(model.members_) == 1 else options.list_length
        lists = [member.tree.predict(data.rows, length, options.search, run) for member in model.members_]
        return lists[0] if len(lists) == 1 else combine(lists, K, options.ensemble)

    def top(self, found):
        return found.labels, found.scores

    def _method(self):
        settings = self.task.settings
        return create_method(settings["method"], settings.get("options"))

    def _folder(self):
        return Folder(self.task.work / FEATURES, FEATURES)

    def _rows(self, name):
        folder = self._folder()
        return Rows(**folder.arrays(name), n_columns=folder.manifest["n_features"])


class OnOwnFeatures(OnSharedFeatures):
    def training_data(self):
        return load_dataset(self.task.data).train

    def eval_data(self):
        return load_dataset(self.task.data).split(self.task.split).texts

    def vectoriser(self):
        return lambda texts: texts

    def train(self, data):
        return self._method().fit(data, threads=self.task.n_threads)

    def predict(self, model, data, n_threads):
        return model, model.top_k(data, K, threads=n_threads)

    def top(self, found):
        """Labels by their number in the shared label list."""
        model, predicted = found
        numbers = {label: n for n, label in enumerate((self.task.features / "labels.txt").read_text().splitlines())}
        number = np.array([numbers[label] for label in model.vocabulary_.ids] + [-1], np.int32)
        return number[predicted.labels], predicted.scores


def make_features(task: Task) -> None:
    """Fit longtail's vectoriser like the shared one, check it against that, and keep both matrices."""
    data = load_dataset(task.data)
    tfidf = Tfidf(TfidfOptions(blocks=(FieldOptions(min_df=2),)))
    matrices = {TRAIN: tfidf.fit_transform(data.train.texts)}
    matrices[EVAL] = tfidf.transform(data.split(task.split).texts)
    order = np.argsort(np.array(tfidf.feature_names(), object).astype(str), kind="stable")
    for name, matrix in matrices.items():
        shared = task.matrix(f"X_{name}")
        if matrix.shape != shared.shape or abs(matrix[:, order] - shared).max() > 1e-6:
            raise SystemExit(f"longtail's features of {name} must equal the shared ones")
    with write_folder(task.work / FEATURES, FEATURES) as writer:
        tfidf.save(writer, "tfidf")
        writer.manifest["n_features"] = tfidf.n_features_
        for name, matrix in matrices.items():
            rows = Rows.of(matrix)
            writer.arrays(name, {key: getattr(rows, key) for key in ("indptr", "indices", "values")})


def _chosen(task: Task) -> Adapter:
    return OnOwnFeatures(task) if task.settings.get("own_features") else OnSharedFeatures(task)


if FEATURES in sys.argv:
    make_features(Task(sys.argv[1]))
else:
    _chosen.packages = OnSharedFeatures.packages
    main(_chosen)
