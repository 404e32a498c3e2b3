"""The features that all systems share: plain unigram TF-IDF, fitted on train once and kept as files.

features/<data>/  X_train, X_eval  (n_texts, n_features) float32 CSR, one .npz each
                  Y_train          (n_train, n_labels) the labels of train, in sorted order
                  Y_eval           (n_eval, n_labels + n_unseen) labels that train lacks stand behind
                  labels.txt       label ids in that order
                  vectoriser.json, idf.npy   terms, options and weights: all that vectorising needs
                  sample.json      rows and texts of the evaluation texts that are timed one by one
                  repeated.npy     (n_eval,) bool: the text occurs word for word in train
                  facts.json       counts, options and checksums of the sources; written last
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import zstandard
from sklearn.feature_extraction.text import TfidfVectorizer

EVAL_SPLIT = {"tibkat-gnd": "dev", "eurlex57k": "dev", "yso-finna-en": "test", "debtags": "test"}
"""The data sets, and the split that each is measured on."""
OPTIONS = {"min_df": 2, "sublinear_tf": True}
N_SAMPLE = 220
"""Texts that are timed one by one: 20 to warm up, 200 that count."""


def build_features(source: Path, split: str, folder: Path) -> dict[str, Any]:
    """Make the features of the data set in `source`, or keep those that are there; returns their facts."""
    files = {name: source / f"{name}.jsonl.zst" for name in ("train", split)}
    made_from = {"options": OPTIONS, "sha256": {name: _sha256(file) for name, file in files.items()}}
    facts_file = folder / "facts.json"
    if facts_file.is_file():
        facts = json.loads(facts_file.read_text())
        if facts["made_from"] == made_from:
            return dict(facts)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counts = _write_features(_read(files["train"]), _read(files[split]), folder)
    facts = {**counts, "made_from": made_from}
    facts_file.write_text(json.dumps(facts, indent=1))
    return facts


def _write_features(train: list[dict[str, Any]], held_out: list[dict[str, Any]], folder: Path) -> dict[str, int]:
    tfidf = TfidfVectorizer(dtype=np.float32, **OPTIONS)
    train_texts, eval_texts = ([row["text"] for row in rows] for rows in (train, held_out))
    _save(folder, "X_train", tfidf.fit_transform(train_texts))
    _save(folder, "X_eval", tfidf.transform(eval_texts))
    terms = tfidf.get_feature_names_out().tolist()
    stored = {"terms": terms, "options": {"sublinear_tf": OPTIONS["sublinear_tf"]}}
    (folder / "vectoriser.json").write_text(json.dumps(stored))
    np.save(folder / "idf.npy", tfidf.idf_)

    known = sorted({label for row in train for label in row["labels"]})
    unseen = sorted({label for row in held_out for label in row["labels"]} - set(known))
    (folder / "labels.txt").write_text("\n".join(known + unseen) + "\n")
    _save(folder, "Y_train", _label_matrix(train, known))
    _save(folder, "Y_eval", _label_matrix(held_out, known + unseen))

    rows = np.linspace(0, len(held_out) - 1, N_SAMPLE).astype(int).tolist()
    (folder / "sample.json").write_text(json.dumps({"rows": rows, "texts": [eval_texts[row] for row in rows]}))
    seen = set(train_texts)
    np.save(folder / "repeated.npy", np.array([text in seen for text in eval_texts]))
    return {
        "n_train": len(train), "n_eval": len(held_out), "n_features": len(terms),
        "n_labels": len(known), "n_unseen_labels": len(unseen),
    }  # fmt: skip


def _label_matrix(rows: list[dict[str, Any]], labels: list[str]) -> sp.csr_matrix:
    position = {label: i for i, label in enumerate(labels)}
    sets = [sorted({position[label] for label in row["labels"]}) for row in rows]
    indptr = np.cumsum([0, *map(len, sets)])
    indices = np.concatenate(sets).astype(np.int32)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(labels)))


def _save(folder: Path, name: str, matrix: sp.csr_matrix) -> None:
    sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)


def _read(file: Path) -> list[dict[str, Any]]:
    with open(file, "rb") as stream:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(stream), encoding="utf-8")
        return [json.loads(line) for line in lines]


def _sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
