"""The data doctor: what is in a data set, what would break training, and what is merely odd.

Every text is read once, in blocks: white space and case are folded, words counted, the folded text hashed (64 bits),
and broken characters searched for, all but the hash in Arrow's C++ kernels. The rest is counting on arrays with one
number per text or label, so a million texts take seconds and little memory.

    Dataset  ->  examine  ->  Examination (counts, label-frequency curve, faults, warnings)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import TEXT, Dataset, Split
from longtail.data.examination import Examination, Finding, SplitCounts, examination_markdown, percent
from longtail.data.lines import read_lines
from longtail.data.matching import concept_findings, match
from longtail.data.similar import near_names, same_names
from longtail.run.progress import SILENT, Progress

__all__ = ["Examination", "Finding", "SplitCounts", "examination_markdown", "examine"]

TRAIN = "train"
N_EXAMPLES = 5
EXAMPLE_CHARACTERS = 60
BLOCK_TEXTS = 16_384
LENGTH_EDGES = (0, 1, 2, 3, 4, *(round(2 ** (half / 2)) for half in range(5, 80)))
"""Bins of words per text: two per doubling, the same for every data set."""
LINE_FORMATS = ("folder", "fasttext")
"""Formats where text n is line n of the file, not counting blank lines."""

# The later bytes of a UTF-8 character, read as Latin-1 or Windows-1252.
_TAIL = "[\u0080-\u00bfŒœŠšŸŽžƒˆ˜\u2013-\u2022…‰‹›€™]"
ENCODING_FAULTS = {
    "replacement characters": ("\ufffd", "bytes were lost when the text was decoded; read its source again"),
    "mojibake": (
        f"[ÃÂ]{_TAIL}|â€{_TAIL}|(?:[ÐÑ]{_TAIL}){{2}}",
        "UTF-8 was read as another encoding (Ã¼ for ü); read its source as UTF-8",
    ),
    "control characters": (
        "[\\x00-\\x08\\x0e-\\x1b\\x7f\u0080-\u0084\u0086-\u009f]",
        "NUL and its kin are no text, and \\x80 to \\x9f are Windows-1252 read as Latin-1",
    ),
}
"""Kind of broken character → its pattern (for RE2 and Python alike), and what it means."""


def examine(dataset: Dataset, progress: Progress = SILENT, *, block_texts: int = BLOCK_TEXTS) -> Examination:
    """Return the report on every text and label of `dataset`; bad data are reported, never raised.

    `block_texts` texts are read at a time.
    """
    scanned = [_scan(dataset, name, progress, block_texts) for name in dataset.splits]
    with progress.step("look for faults"):
        findings = [*_faults(dataset, scanned)]
        for split in scanned:
            findings += _odd_texts(split)
        findings += [*_shared_texts(scanned), *_odd_labels(dataset), *_alike_names(dataset)]
        if dataset.official is not None:
            findings += match(dataset.vocabulary.ids, dataset.official).findings()
            findings += concept_findings(dataset.official, dataset.vocabulary)
    return Examination(
        name=dataset.name,
        n_labels=len(dataset.vocabulary),
        splits=tuple(_count(split) for split in scanned),
        label_frequency=np.sort(_frequency(dataset, TRAIN))[::-1],
        findings=tuple(findings),
    )


@dataclass(frozen=True)
class _ScannedSplit:
    """A split, and the result of one pass over its texts."""

    name: str
    split: Split
    file: Path | None
    """The file whose lines are the texts, if known."""
    words: NDArray[np.int64]  # (n_texts,)
    hashes: NDArray[np.uint64]  # (n_texts,)
    broken: dict[str, NDArray[np.int64]]  # kind of encoding fault → rows

    @property
    def empty(self) -> NDArray[np.int64]:
        """Rows without a word."""
        return np.flatnonzero(self.words == 0)

    @property
    def unlabelled(self) -> NDArray[np.int64]:
        """Rows without a label."""
        return np.flatnonzero(self.split.labels.labels_per_text() == 0)

    @cached_property
    def repeated(self) -> NDArray[np.int64]:
        """Rows whose text is not empty and occurs in an earlier row."""
        _, first = np.unique(self.hashes, return_index=True)
        later = np.ones(len(self.hashes), np.bool_)
        later[first] = False
        return np.flatnonzero(later & (self.words > 0))

    def row_of(self, hash_: np.uint64) -> int:
        """Return the first row with this text."""
        return int(np.argmax(self.hashes == hash_))

    def quote(self, row: int, pattern: str = "") -> str:
        """Return the place of a text and its beginning or, with a pattern, what surrounds the first match."""
        columns = [TEXT, *(name for name in self.split.texts.column_names if name != TEXT)]
        texts = (str(self.split.texts[name][row].as_py() or "") for name in columns)
        text, match = next((text, match) for text in texts if (match := re.search(pattern, text)))
        start = max(0, match.start() - EXAMPLE_CHARACTERS // 2)
        shown = text[start : start + EXAMPLE_CHARACTERS]
        more = "…" if start + EXAMPLE_CHARACTERS < len(text) else ""
        place = f"{self.name} text {row + 1}"
        if pattern and self.file is not None:
            place += f" ({self.file}:{self._lines[row]})"
        return f"{place}: {'…' if start else ''}{shown!r}{more}"

    @cached_property
    def _lines(self) -> NDArray[np.int64]:
        """The line of each text: (n_texts,)."""
        blocks = read_lines(self.file, "replace") if self.file is not None else ()
        filled = [np.asarray(pc.not_equal(pc.utf8_trim_whitespace(block.lines), "")) for block in blocks]
        return np.flatnonzero(np.concatenate([*filled, np.ones(len(self.split), np.bool_)])) + 1


def _scan(dataset: Dataset, name: str, progress: Progress, block_texts: int) -> _ScannedSplit:
    split = dataset.splits[name]
    words, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    broken = {kind: [np.zeros(0, np.int64)] for kind in ENCODING_FAULTS}
    with progress.step(f"reading {name}", total=len(split), unit="texts") as advance:
        for start, block in _blocks(split, block_texts):
            trimmed = pc.utf8_trim_whitespace(pc.utf8_lower(block[TEXT]))
            tokens = pc.utf8_split_whitespace(trimmed)
            n_tokens = pc.if_else(pc.equal(trimmed, ""), 0, pc.list_value_length(tokens))
            words.append(np.asarray(n_tokens, np.int64))
            hashes.append(_hashes(pc.binary_join(tokens, " ")))
            for kind, (pattern, _) in ENCODING_FAULTS.items():
                hits = [np.asarray(pc.match_substring_regex(column, pattern)) for column in block.values()]
                broken[kind].append(np.flatnonzero(np.logical_or.reduce(hits)) + start)
            advance(len(trimmed))
    rows = {kind: np.concatenate(blocks) for kind, blocks in broken.items()}
    file = dataset.facts.get("files", {}).get(name) if dataset.facts.get("format") in LINE_FORMATS else None
    known = Path(file) if file is not None and Path(file).is_file() else None
    return _ScannedSplit(name, split, known, np.concatenate(words), np.concatenate(hashes), rows)


def _blocks(split: Split, block_texts: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Yield (first row, columns) of a bounded number of texts."""
    start = 0
    for batch in split.texts.to_batches(max_chunksize=block_texts):
        yield start, {name: pc.fill_null(batch.column(name), "") for name in batch.schema.names}
        start += batch.num_rows


def _hashes(texts: pa.Array) -> NDArray[np.uint64]:
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts.to_pylist())
    return np.frombuffer(b"".join(digests), np.uint64)


def _count(part: _ScannedSplit) -> SplitCounts:
    n_texts, n_assignments = len(part.split), len(part.split.labels.indices)
    longest = int(part.words.max(initial=0))
    edges = LENGTH_EDGES[: int(np.searchsorted(LENGTH_EDGES, longest, side="right")) + 1]
    return SplitCounts(
        name=part.name,
        n_texts=n_texts,
        n_labels=len(np.unique(part.split.labels.indices)),
        n_assignments=n_assignments,
        labels_per_text=n_assignments / n_texts if n_texts else 0.0,
        words_per_text=float(part.words.mean()) if n_texts else 0.0,
        median_words=float(np.median(part.words)) if n_texts else 0.0,
        most_words=longest,
        n_empty=len(part.empty),
        n_unlabelled=len(part.unlabelled),
        n_repeated=len(part.repeated),
        length_edges=edges,
        length_counts=tuple(np.histogram(part.words, edges)[0].tolist()),
    )


def _faults(dataset: Dataset, parts: Sequence[_ScannedSplit]) -> Iterator[Finding]:
    """Yield what would break training."""
    train = next((part for part in parts if part.name == TRAIN), None)
    if train is None or not len(train.split):
        got = ", ".join(f"{len(part.split):,} {part.name} texts" for part in parts) or "nothing"
        message = f"there must be training texts, got {got}; the training part must be named 'train'"
        yield _fault("no texts", 0, message)
        return
    n_texts, used = len(train.split), np.unique(train.split.labels.indices)
    if len(used) == 0:
        message = f"training texts must have labels, got none on {n_texts:,} texts; is the label column the right one?"
        yield _fault("no labels", n_texts, message)
    elif len(used) == 1:
        only = dataset.vocabulary.names[int(used[0])]
        message = f"training texts must have at least two labels to choose from, got only '{only}'; add texts of others"
        yield _fault("one label", 1, message)
    if train.split.features is None and not train.words.any():
        message = f"training texts must have words, got {n_texts:,} empty ones; is the text column the right one?"
        yield _fault("only empty texts", n_texts, message)


def _odd_texts(part: _ScannedSplit) -> Iterator[Finding]:
    name, n_texts = part.name, len(part.split)
    if not n_texts and name != TRAIN:
        yield _warning("empty split", 0, f"{name} has no texts")
    if len(part.empty) and part.split.has_texts:
        message = f"{_of(len(part.empty), n_texts)} {name} texts are empty"
        yield _warning("empty texts", len(part.empty), message, (f"{name} text {row + 1}" for row in part.empty))
    if len(part.unlabelled):
        message = f"{_of(len(part.unlabelled), n_texts)} {name} texts have no label"
        examples = (part.quote(row) for row in part.unlabelled.tolist())
        yield _warning("texts without labels", len(part.unlabelled), message, examples)
    if len(part.repeated):
        message = f"{_of(len(part.repeated), n_texts)} {name} texts occur earlier in {name}, word for word"
        rows = part.repeated.tolist()
        examples = (f"{part.quote(row)} = text {part.row_of(part.hashes[row]) + 1}" for row in rows)
        yield _warning("repeated texts", len(part.repeated), message, examples)
    for kind, (pattern, meaning) in ENCODING_FAULTS.items():
        if len(part.broken[kind]):
            message = f"{_of(len(part.broken[kind]), n_texts)} {name} texts hold {kind}: {meaning}"
            examples = (part.quote(row, pattern) for row in part.broken[kind].tolist())
            yield _warning(kind, len(part.broken[kind]), message, examples)


def _shared_texts(parts: Sequence[_ScannedSplit]) -> Iterator[Finding]:
    for one, other in combinations(parts, 2):
        shared = np.flatnonzero(np.isin(other.hashes, one.hashes) & (other.words > 0))
        if len(shared):
            share = _of(len(shared), len(other.words))
            message = f"{share} {other.name} texts occur in {one.name} too: scores on {other.name} will be too high"
            rows = shared.tolist()
            examples = (f"{other.quote(row)} = {one.name} text {one.row_of(other.hashes[row]) + 1}" for row in rows)
            yield _warning(f"texts in {one.name} and {other.name}", len(shared), message, examples)


def _odd_labels(dataset: Dataset) -> Iterator[Finding]:
    names = dataset.vocabulary.names
    seen = _frequency(dataset, TRAIN) > 0
    anywhere = np.zeros(len(names), np.bool_)
    for split in dataset.splits:
        frequency = _frequency(dataset, split)
        anywhere |= frequency > 0
        unseen = np.flatnonzero((frequency > 0) & ~seen)
        if len(unseen):
            share = percent(frequency[unseen].sum() / frequency.sum())
            message = (
                f"{_of(len(unseen), int(np.count_nonzero(frequency)))} labels of {split} have no training text and "
                f"cannot be learned: {share} of {split}'s assignments"
            )
            order = unseen[np.argsort(-frequency[unseen], kind="stable")]
            examples = (f"{names[label]} ({frequency[label]:,} {split} texts)" for label in order)
            yield _warning(f"labels of {split} unseen in training", len(unseen), message, examples)
    idle = np.flatnonzero(~anywhere)
    if len(idle):
        message = f"{_of(len(idle), len(names))} labels of the vocabulary have no text in any split"
        yield _warning("labels without texts", len(idle), message, (names[label] for label in idle))


def _alike_names(dataset: Dataset) -> Iterator[Finding]:
    names, ids = dataset.vocabulary.names, dataset.vocabulary.ids

    def title(label: int) -> str:
        return names[label] if names[label] == ids[label] else f"{names[label]} [{ids[label]}]"

    groups = same_names(names)
    if groups:
        message = (
            f"{len(groups):,} label names occur more than once, ignoring case, punctuation and spaces; one label each?"
        )
        examples = (" = ".join(title(label) for label in group[:N_EXAMPLES]) for group in groups)
        yield _warning("same label names", len(groups), message, examples)
    pairs = near_names(names)
    if pairs:
        # Long names that differ by a letter are the likeliest misspellings.
        longest_first = sorted(pairs, key=lambda pair: -len(names[pair[0]]))
        message = f"{len(pairs):,} pairs of label names differ by one letter or by accents; one label each?"
        yield _warning("near label names", len(pairs), message, (f"{title(a)} ~ {title(b)}" for a, b in longest_first))


def _frequency(dataset: Dataset, split: str) -> NDArray[np.int64]:
    """Return the number of texts of each label in a split: (n_labels,)."""
    if split not in dataset.splits:
        return np.zeros(len(dataset.vocabulary), np.int64)
    return np.bincount(dataset.splits[split].labels.indices, minlength=len(dataset.vocabulary))


def _of(count: int, total: int) -> str:
    return f"{count:,} of {total:,} ({percent(count / total)})"


def _fault(kind: str, count: int, message: str) -> Finding:
    return Finding(kind, "fault", count, message)


def _warning(kind: str, count: int, message: str, examples: Iterable[str] = ()) -> Finding:
    return Finding(kind, "warning", count, message, tuple(islice(examples, N_EXAMPLES)))
