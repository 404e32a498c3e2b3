"""Find names in texts: runs of words that are the words of a name, in any order.

    texts      codes[ptr[i] : ptr[i+1]] of text i: ids of stems, −1 for a word of no name, −2 − id for part of a
               compound; the first titles[i] of them are its title
    names      the hash of a name is the sum of the hashes of its stems; slots is an open-addressing table of hashes;
               name_ptr[h] : name_ptr[h+1] are the names of hash h: their label, whether it is a preferred name, their
               words in order (another hash), and clues[clue_ptr[n] : clue_ptr[n+1]], the stems of the qualifier
    matches    labels, the hash that matched with most words, and STATS of each label of each text, by first match

A run inside a longer one that is a name as well is covered by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STATS = (
    "count",  # matches
    "free",  # those that no longer name covers
    "first",  # the place of the first match, in words
    "last",
    "title",  # matches in the title
    "words",  # of the longest match
    "preferred",  # whether a preferred name is among them
    "ordered",  # whether the words of one stand in the order of the name
    "whole",  # matches that are no parts of compounds
    "rivals",  # the fewest labels that share a name, this one included
    "qualified",  # whether all names have qualifiers
    "clue",  # the largest share of the words of a qualifier that the text has
    "rival_clue",  # the same of other labels with the same name
)
(COUNT, FREE, FIRST, LAST, TITLE, WORDS, PREFERRED, ORDERED, WHOLE, RIVALS, QUALIFIED, CLUE, RIVAL_CLUE) = range(
    len(STATS)
)

_M = (1 << 64) - 1


def mix(stem: int) -> int:
    """Return the hash of a stem (splitmix64)."""
    state = (stem + 1) * 0x9E3779B97F4A7C15 & _M
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _M
    state = (state ^ state >> 27) * 0x94D049BB133111EB & _M
    return state ^ state >> 31


def hash_names(stems: Any, ptr: Any) -> tuple[Any, Any]:
    """Return the hash of each name, and the hash of its words in order, both (n_names,) uint64."""
    sums, orders = np.empty(len(ptr) - 1, np.uint64), np.empty(len(ptr) - 1, np.uint64)
    for i in range(len(ptr) - 1):
        total = order = 0
        for stem in stems[ptr[i] : ptr[i + 1]].tolist():
            total, order = total + mix(stem) & _M, mix(order ^ stem)
        sums[i], orders[i] = total, order
    return sums, orders


def match_names(
    codes: Any, ptr: Any, titles: Any, most_words: int, hashes: Any, slots: Any, name_ptr: Any, name_labels: Any,
    name_preferred: Any, name_orders: Any, clue_ptr: Any, clues: Any, n_labels: int, n_stems: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return indptr (n_texts + 1,), and labels, hashes (n_matched,) and stats (n_matched, len(STATS)) float32."""
    number_of = {value: number for number, value in enumerate(hashes.tolist())}
    indptr, rows = [0], []
    for i in range(len(ptr) - 1):
        text = codes[ptr[i] : ptr[i + 1]].tolist()
        stems = [code if code >= -1 else -2 - code for code in text]
        matched: dict[int, list[Any]] = {}
        covered_to = 0
        for start in range(len(stems)):
            for n in range(most_words, 0, -1):
                run = stems[start : start + n]
                number = number_of.get(sum(map(mix, run)) & _M) if len(run) == n and -1 not in run else None
                if number is None:
                    continue
                names = range(name_ptr[number], name_ptr[number + 1])
                order = 0
                for stem in run:
                    order = mix(order ^ stem)
                shares = [_share(clues[clue_ptr[name] : clue_ptr[name + 1]], stems) for name in names]
                for at, name in enumerate(names):
                    label, qualified = int(name_labels[name]), clue_ptr[name] < clue_ptr[name + 1]
                    rival = max((share for other, share in enumerate(shares) if other != at), default=0.0)
                    one = [
                        1, start + n > covered_to, start, start, start < titles[i], n, name_preferred[name],
                        name_orders[name] == order, all(code >= 0 for code in text[start : start + n]), len(names),
                        qualified, shares[at], rival,
                    ]  # fmt: skip
                    one = [float(value) for value in one]
                    matched[label] = _joined(matched[label], one, number) if label in matched else [number, *one]
                covered_to = max(covered_to, start + n)
        rows += [(label, *values) for label, values in matched.items()]
        indptr.append(len(rows))
    table = np.array(rows, np.float64).reshape(len(rows), 2 + len(STATS))
    return np.array(indptr), table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2:].astype(np.float32)


def _share(clues: Any, stems: list[int]) -> np.float32:
    return np.float32(np.isin(clues, stems).mean() if len(clues) else 0)


def _joined(values: list[Any], one: list[Any], number: int) -> list[Any]:
    """Return the stats of a label with one more match."""
    number = number if one[WORDS] > values[1 + WORDS] else values[0]
    joined = [max(pair) for pair in zip(values[1:], one, strict=True)]
    for place in (COUNT, FREE, TITLE, WHOLE):
        joined[place] = values[1 + place] + one[place]
    for place in (FIRST, RIVALS, QUALIFIED):
        joined[place] = min(values[1 + place], one[place])
    return [number, *joined]
