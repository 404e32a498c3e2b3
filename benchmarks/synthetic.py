"""Data of the size of Amazon-3M or Wiki-500K, drawn at random: python benchmarks/synthetic.py amazon-3m --share 0.01

Texts are sparse features in PECOS' layout (X.trn.npz, Y.trn.npz, …), which longtail and PECOS read alike. Everything
is drawn from a seed, block of texts by block of texts, and written as it is drawn: memory does not grow with the share.
`--share` scales texts and labels alike and features by its root, as vocabularies grow; a text stays as it is.

How words and labels hang together, so that accuracy means something:

    topic   some neighbouring labels, with a few words of their own
    label   six words of its own, mid-rare to rare
    text    one or two labels that no other text was begun with (so each label occurs), the topics of these and one
            more; further labels from these topics, frequent ones first by Zipf's law; words: half of them of its
            labels, a fifth of its topics, the rest of all words by Zipf's law

A value is the logarithm of the word's rank (Zipf's law makes that its idf), rows have length 1.
"""

from __future__ import annotations

import argparse
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
BLOCK = 10_000
"""Texts that are drawn at once."""
_LABELS_PER_TOPIC = 64
_WORDS_PER_LABEL, _WORDS_PER_TOPIC = 6, 40
_N_TOPICS = 3
"""Topics of a text."""
_OVERDRAWN = 1.6
"""Draws per label or word that is wanted: what is drawn twice is kept once."""
_SPREAD = 0.35
"""Standard deviation of the logarithms of lengths."""
_COPIED = 16 << 20


@dataclass(frozen=True)
class Shape:
    """Counts of a data set."""

    n_texts: int
    n_labels: int
    n_features: int
    labels_per_text: float
    terms_per_text: float
    n_test: int = 10_000

    def of_share(self, share: float) -> Shape:
        """Return a smaller data set whose texts are alike."""
        return Shape(
            max(100, round(self.n_texts * share)),
            max(100, round(self.n_labels * share)),
            max(1000, round(self.n_features * share**0.5)),
            self.labels_per_text,
            self.terms_per_text,
            max(100, round(min(self.n_test, self.n_texts * share / 4))),
        )


SHAPES = {
    "amazon-3m": Shape(1_717_899, 2_812_281, 337_067, 36.0, 84.6e6 / 1_717_899),
    "wiki-500k": Shape(1_779_881, 501_070, 2_381_304, 4.75, 690e6 / 1_779_881),
}


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--share", type=float, default=0.01, help="of texts and labels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder; by default work/synthetic/SHAPE-SHARE")
    options = parser.parse_args()
    out = options.out or HERE / "work" / "synthetic" / f"{options.shape}-{options.share:g}"
    print(write(SHAPES[options.shape].of_share(options.share), out, options.seed))


def write(shape: Shape, out: Path, seed: int = 0) -> dict[str, int]:
    """Write both splits into the folder `out`; return how many non-zeros the training texts have."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    counts = {}
    for number, (name, n_texts) in enumerate((("trn", shape.n_texts), ("tst", shape.n_test))):
        features = CsrFile(out / f"X.{name}.npz", shape.n_features)
        labels = CsrFile(out / f"Y.{name}.npz", shape.n_labels)
        for some_features, some_labels in blocks(shape, n_texts, [seed, number]):
            features.append(*some_features)
            labels.append(*some_labels)
        counts[name] = {"n_texts": n_texts, "n_terms": features.close(), "n_assignments": labels.close()}
    return {**counts["trn"], "n_labels": shape.n_labels, "n_features": shape.n_features}


Block = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Rows as lengths, sorted columns and values."""


def blocks(shape: Shape, n_texts: int, seed: list[int]) -> Iterator[tuple[Block, Block]]:
    """Yield features and labels of `n_texts` texts, `BLOCK` of them at a time."""
    world = _World(shape)
    # Every label begins a text; test texts are begun with labels of the same order.
    order = np.random.default_rng(seed[0]).permutation(shape.n_labels)
    for number, first in enumerate(range(0, n_texts, BLOCK)):
        n = min(BLOCK, n_texts - first)
        rng = np.random.default_rng([*seed, number])
        edges = (np.arange(first, first + n + 1) * shape.n_labels) // n_texts  # labels that begin each text
        labels = world.labels(rng, order, edges)
        yield world.words(rng, labels), (labels.lengths, labels.columns, np.ones(len(labels.columns), np.float32))


@dataclass(frozen=True)
class _Labels:
    lengths: NDArray[np.int64]  # (n_texts,)
    columns: NDArray[np.int64]  # (n_assignments,)
    topics: NDArray[np.int64]  # (n_texts, _N_TOPICS)


class _World:
    """Which words belong to labels and topics, and how often each is drawn."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.n_topics = -(-shape.n_labels // _LABELS_PER_TOPIC)

    def labels(self, rng: np.random.Generator, order: NDArray[Any], edges: NDArray[Any]) -> _Labels:
        """Draw the labels of texts that are begun with the labels at `edges[i]:edges[i + 1]` of `order`."""
        n = len(edges) - 1
        # (n_texts, _N_TOPICS): those of the first two labels (one, where there is one), and one of any
        starts = edges[:-1, None] + np.arange(_N_TOPICS - 1)
        starts = np.minimum(starts, np.maximum(edges[1:, None] - 1, edges[:-1, None])) % len(order)
        topics = np.hstack([order[starts] // _LABELS_PER_TOPIC, rng.integers(0, self.n_topics, (n, 1))])
        wanted = _lengths(rng, n, self.shape.labels_per_text)
        begun = np.diff(edges)
        n_drawn = np.ceil(wanted * _OVERDRAWN).astype(np.int64) + 1
        rows = np.repeat(np.arange(n), n_drawn)
        topic = topics[rows, rng.integers(0, _N_TOPICS, len(rows))]
        place = (_LABELS_PER_TOPIC * rng.random(len(rows)) ** 2).astype(np.int64)  # P(rank) falls as rank^-1/2
        drawn = np.minimum(topic * _LABELS_PER_TOPIC + place, self.shape.n_labels - 1)
        rows = np.concatenate([np.repeat(np.arange(n), begun), rows])
        drawn = np.concatenate([order[edges[0] : edges[-1]], drawn])
        lengths, columns = _first_distinct(rows, drawn, np.maximum(wanted, begun), self.shape.n_labels)
        return _Labels(lengths, columns, topics)

    def words(self, rng: np.random.Generator, labels: _Labels) -> Block:
        """Draw the words of texts with these labels, and their values."""
        n, n_words = len(labels.lengths), self.shape.n_features
        wanted = _lengths(rng, n, self.shape.terms_per_text)
        rows = np.repeat(np.arange(n), np.ceil(wanted * _OVERDRAWN).astype(np.int64))
        kind, spread = rng.random(len(rows)), rng.random(len(rows))
        starts = np.cumsum(labels.lengths) - labels.lengths
        label = labels.columns[starts[rows] + (rng.random(len(rows)) * labels.lengths[rows]).astype(np.int64)]
        topic = labels.topics[rows, rng.integers(0, _N_TOPICS, len(rows))]
        of_label = _hashed(label * _WORDS_PER_LABEL + (spread * _WORDS_PER_LABEL).astype(np.int64))
        of_topic = _hashed(-1 - topic * _WORDS_PER_TOPIC - (spread * _WORDS_PER_TOPIC).astype(np.int64))
        # Where on a logarithmic scale of ranks a word lies: by Zipf's law, all places are equally likely.
        place = np.where(kind < 0.5, 0.6 + 0.4 * of_label, np.where(kind < 0.7, 0.5 + 0.5 * of_topic, spread))
        ranks = np.minimum((n_words + 1.0) ** place - 1, n_words - 1).astype(np.int64)
        lengths, columns = _first_distinct(rows, ranks, wanted, n_words)
        values = 1 + np.log1p(columns)
        owner = np.repeat(np.arange(n), lengths)
        norms = np.sqrt(np.bincount(owner, values**2, minlength=n))
        return lengths, columns, (values / norms[owner]).astype(np.float32)


def _lengths(rng: np.random.Generator, n: int, mean: float) -> NDArray[np.int64]:
    """Draw lengths of at least 1 with this mean, most of them near it."""
    drawn = rng.lognormal(np.log(mean) - _SPREAD**2 / 2, _SPREAD, n)
    return np.maximum(1, drawn + rng.random(n)).astype(np.int64)  # floor of x + u is x on average


def _first_distinct(
    rows: NDArray[Any], drawn: NDArray[Any], wanted: NDArray[Any], n_columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lengths and sorted columns of rows: the first `wanted` distinct columns of each."""
    keys = rows * n_columns + drawn
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])
    keys, order = keys[is_first], order[is_first]
    by_draw = np.argsort(order)  # keys in the order in which they were drawn
    row = keys[by_draw] // n_columns
    by_row = np.argsort(row, kind="stable")
    row = row[by_row]
    place = np.arange(len(row)) - np.searchsorted(row, np.arange(len(wanted)))[row]
    kept = np.sort(keys[by_draw][by_row][place < wanted[row]])
    return np.bincount(kept // n_columns, minlength=len(wanted)), kept % n_columns


def _hashed(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in 0..1 for each whole number, always the same one."""
    x = numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the mixer of SplitMix64
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((x ^ (x >> np.uint64(31))) >> np.uint64(11)) / float(1 << 53)


class CsrFile:
    """A sparse matrix in the file format of `scipy.sparse.save_npz`, written as its rows come."""

    def __init__(self, path: Path, n_columns: int) -> None:
        self.path, self.n_columns = path, n_columns
        self._lengths: list[NDArray[np.int64]] = []
        self._parts = {name: path.with_suffix(f".{name}") for name in ("indices", "data")}
        self._files = {name: open(part, "wb") for name, part in self._parts.items()}  # noqa: SIM115 (closed in `close`)

    def append(self, lengths: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]) -> None:
        """Add rows at the end."""
        self._lengths.append(lengths)
        self._files["indices"].write(columns.astype(np.int32).tobytes())
        self._files["data"].write(values.astype(np.float32).tobytes())

    def close(self) -> int:
        """Write the file and return its number of entries."""
        for file in self._files.values():
            file.close()
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self._lengths))])
        small = {
            "format": np.array(b"csr"), "shape": np.array([len(indptr) - 1, self.n_columns]), "indptr": indptr,
        }  # fmt: skip
        with zipfile.ZipFile(self.path, "w", allowZip64=True) as archive:
            for name, array in small.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array)
            for name, kind in (("indices", "<i4"), ("data", "<f4")):
                header = {"descr": kind, "fortran_order": False, "shape": (int(indptr[-1]),)}
                with (
                    archive.open(f"{name}.npy", "w", force_zip64=True) as member,
                    open(self._parts[name], "rb") as part,
                ):
                    np.lib.format.write_array_header_1_0(member, header)
                    shutil.copyfileobj(part, member, _COPIED)
                self._parts[name].unlink()
        return int(indptr[-1])


if __name__ == "__main__":
    main()
