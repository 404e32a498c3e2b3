"""Count the terms of texts, and turn counts into TF-IDF: what the compiled kernels must return.

    text -> words or letters -> terms (n-grams) -> 64-bit hashes -> ids and counts, one row per text
    ids and counts -> features, tf × idf, each block and then each row of length 1

Terms are numbered as they first appear. A hash is folded from units: a word's from its letters, a word
n-gram's from the hashes of its words, a letter n-gram's from its letters. Hashes are stored in models,
so the two constants below never change.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from longtail.kernels.characters import CODE, CONTEXT

SEED = 0xA24BAED4963EE407
MULTIPLIER = 0x9E3779B97F4A7C15


def mix(state: int, unit: int) -> int:
    """Return the state after one step of the hash."""
    state = (state ^ unit) * MULTIPLIER % (1 << 64)
    return state ^ (state >> 32)


def fold(units: Iterable[int]) -> int:
    """Return the hash of some units."""
    return reduce(mix, units, SEED)


def add_terms(new_hashes: Any, n_terms: int, slots: Any, hashes: Any, ids: Any) -> int:
    """Find terms in the table or add them to it; fills in their ids and returns how many terms there are now.

    The table is open-addressing: a term lies in the first free slot from its hash on. Slots are a power of two
    and more than the terms; there must be room for all terms in `hashes`.
    """
    for i, term_hash in enumerate(map(int, new_hashes)):
        slot = term_hash % len(slots)
        while slots[slot] >= 0 and hashes[slots[slot]] != term_hash:
            slot = (slot + 1) % len(slots)
        if slots[slot] < 0:
            slots[slot], hashes[n_terms] = n_terms, term_hash
            n_terms += 1
        ids[i] = slots[slot]
    return n_terms


def needs_python(data: Any) -> int:
    """Return how often the letters that only Python can lower-case are among these bytes."""
    return sum(data.tobytes().count(letter.encode()) for letter in CONTEXT)


def words_of(text: str, numbers: bool, max_words: int) -> list[str]:
    """Return runs of at least two word characters; with `numbers`, every run of digits is the word `0`."""
    runs = re.findall(r"\w+", text)
    if numbers:
        runs = ["0" if re.fullmatch(r"\d+", run) else run for run in runs]
    return [run for run in runs if len(run) > 1 or (numbers and run == "0")][:max_words]


def word_terms(words: Sequence[str], low: int, high: int) -> Iterator[tuple[str, int]]:
    """Yield n-grams of words, each with its hash."""
    for first in range(len(words)):
        for n in range(low, high + 1):
            if first + n <= len(words):
                run = words[first : first + n]
                yield " ".join(run), fold(fold(map(ord, word)) for word in run)


def letter_terms(words: Sequence[str], low: int, high: int) -> Iterator[tuple[str, int]]:
    """Yield n-grams of letters inside words with a blank at both ends; a word shorter than `low` counts once."""
    for word in words:
        letters = f" {word} "
        for first in range(len(letters)):
            for n in range(low, high + 1):
                if first + n <= len(letters):
                    term = letters[first : first + n]
                    yield term, fold(map(ord, term))
        if len(letters) < low:
            yield letters, fold(map(ord, letters))


def count_terms(
    data: Any, offsets: Any, chart: Any, chars: bool, low: int, high: int, numbers: bool, max_words: int,
    stop_slots: Any, stop_hashes: Any, learn: bool, n_terms: int, slots: Any, hashes: Any, place: Any,
    df: Any, tf: Any, ends: Any, letters: Any,
) -> tuple[Any, Any, Any, int]:  # fmt: skip
    """Count the terms of each text, as far as the table of terms has room: (indptr, ids, counts, n_terms).

    data, offsets             UTF-8 bytes, and where each text begins (n_texts + 1,)
    chart                     lower-cases or not; must not be asked for İ and Σ
    stop_slots, stop_hashes   table of the words to leave out
    n_terms, slots, hashes    table of the terms: slots (-1, or an id), and the hash of each id
    df, tf                    texts with the term, and its occurrences
    ends, letters             all terms in UTF-8, and where each ends
    place                     scratch, one number per term

    With `learn`, new terms are added to the table, else they are dropped. Fewer rows than texts come back where
    `hashes` was full, or `letters` had no room for 4 bytes per character of a term. Some terms of the text that
    found no room may be in the table, but the text is not counted.
    """
    lowercase = chart[ord("A")] & CODE == ord("a")
    stop = set(stop_hashes.tolist())
    known = {int(term_hash): term for term, term_hash in enumerate(hashes[:n_terms])}
    rows: list[Counter[int]] = []
    for start, end in pairwise(offsets):
        text = data[start:end].tobytes().decode()
        text = text.lower() if lowercase else text
        if chars:
            terms = letter_terms(text.split()[:max_words], low, high)
        else:
            words = words_of(text, numbers, max_words)
            words = [word for word in words if fold([fold(map(ord, word))]) not in stop]
            terms = word_terms(words, low, high)
        row: Counter[int] = Counter()
        for term, term_hash in terms:
            if term_hash not in known and learn:
                at = int(ends[len(known) - 1]) if known else 0
                if len(known) == len(hashes) or at + 4 * len(term) > len(letters):
                    return _counted(rows, learn, known, slots, hashes, df, tf)
                encoded = np.frombuffer(term.encode(), np.uint8)
                letters[at : at + len(encoded)] = encoded
                ends[len(known)] = at + len(encoded)
                known[term_hash] = len(known)
            if term_hash in known:
                row[known[term_hash]] += 1
        rows.append(row)
    return _counted(rows, learn, known, slots, hashes, df, tf)


def _counted(
    rows: list[Counter[int]], learn: bool, known: dict[int, int], slots: Any, hashes: Any, df: Any, tf: Any
) -> tuple[Any, Any, Any, int]:
    indptr = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    ids = np.array([term for row in rows for term in row], np.int32)
    counts = np.array([count for row in rows for count in row.values()], np.int32)
    if learn:
        ids_of = np.empty(len(known), np.int32)
        add_terms(np.array(list(known), np.uint64), int((slots >= 0).sum()), slots, hashes, ids_of)
        np.add.at(df, ids, 1)
        np.add.at(tf, ids, counts)
    return indptr, ids, counts, len(known)


def weigh(
    indptr: Any, ids: Any, counts: Any, n_blocks: int, new_ids: Any, starts: Any, idf: Any, weights: Any, sublinear: Any
) -> tuple[Any, Any, Any]:
    """Turn counts into TF-IDF: (indptr, indices, values), features ascending, rows of length 1.

    indptr, ids, counts   counted terms, all texts of block 0, then all texts of block 1, ...: (n_blocks * n_texts + 1,)
    new_ids               feature of each term, -1 if dropped, block after block; empty where ids are features
    starts                where the terms of a block begin in `new_ids`, or its features in `idf`
    idf                   (n_features,)
    weights, sublinear    of each block: its length beside the other blocks, and whether tf is 1 + log(count)
    """
    n_texts = (len(indptr) - 1) // n_blocks
    out_indptr, indices, values = [0], [], []
    for text in range(n_texts):
        row: dict[int, float] = {}
        for block in range(n_blocks):
            line = block * n_texts + text
            part: dict[int, float] = {}
            for term, count in zip(*(array[indptr[line] : indptr[line + 1]] for array in (ids, counts)), strict=True):
                feature = int(starts[block]) + int(term)
                feature = int(new_ids[feature]) if len(new_ids) else feature
                if feature >= 0:
                    part[feature] = (1 + math.log(count) if sublinear[block] else float(count)) * float(idf[feature])
            length = math.sqrt(sum(value * value for value in part.values()))
            row |= {feature: weights[block] * value / length for feature, value in part.items()}
        length = math.sqrt(sum(value * value for value in row.values()))
        indices += sorted(row)
        values += [row[feature] / length for feature in sorted(row)]
        out_indptr.append(len(indices))
    return np.array(out_indptr, np.int64), np.array(indices, np.int32), np.array(values, np.float32)
