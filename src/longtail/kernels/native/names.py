"""Find names in texts: runs of words that are the words of a name, in any order."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.reference.names import (
    CLUE,
    COUNT,
    FIRST,
    FREE,
    LAST,
    ORDERED,
    PREFERRED,
    QUALIFIED,
    RIVAL_CLUE,
    RIVALS,
    STATS,
    TITLE,
    WHOLE,
    WORDS,
)

_N_STATS = len(STATS)


@kernel
def _mix(stem):
    state = (np.uint64(stem) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@kernel
def hash_names(stems, ptr):
    """Do what `reference.names.hash_names` does."""
    sums, orders = np.zeros(len(ptr) - 1, np.uint64), np.zeros(len(ptr) - 1, np.uint64)
    for i in range(len(ptr) - 1):
        for p in range(ptr[i], ptr[i + 1]):
            sums[i] += _mix(stems[p])
            orders[i] = _mix(orders[i] ^ np.uint64(stems[p]))
    return sums, orders


@kernel
def _number_of(value, hashes, slots):
    """Return the number of a hash, or −1."""
    mask = len(slots) - 1
    at = np.int64(value) & mask
    while slots[at] >= 0 and hashes[slots[at]] != value:
        at = (at + 1) & mask
    return slots[at]


@kernel
def _clue_share(name, clue_ptr, clues, stamps, text):
    n = clue_ptr[name + 1] - clue_ptr[name]
    n_seen = 0
    for p in range(clue_ptr[name], clue_ptr[name + 1]):
        n_seen += stamps[clues[p]] == text
    return np.float32(n_seen / n) if n else np.float32(0)


@kernel
def match_names(
    codes, ptr, titles, most_words, hashes, slots, name_ptr, name_labels, name_preferred, name_orders, clue_ptr,
    clues, n_labels, n_stems,
):  # fmt: skip
    """Do what `reference.names.match_names` does."""
    indptr = np.zeros(len(ptr), np.int64)
    room = 64 * len(ptr)
    labels, numbers = np.empty(room, np.int32), np.empty(room, np.int32)
    stats = np.empty((room, _N_STATS), np.float32)
    row_of = np.full(n_labels, -1, np.int64)
    stamps = np.full(n_stems, -1, np.int32)
    sums, orders = np.empty(most_words + 1, np.uint64), np.empty(most_words + 1, np.uint64)
    n_rows = 0
    for i in range(len(ptr) - 1):
        begin, end = ptr[i], ptr[i + 1]
        for p in range(begin, end):
            if codes[p] != -1:
                stamps[codes[p] if codes[p] >= 0 else -2 - codes[p]] = i
        covered_to = begin
        for start in range(begin, end):
            n_words = 0
            sums[0] = orders[0] = 0
            while n_words < most_words and start + n_words < end and codes[start + n_words] != -1:
                code = codes[start + n_words]
                stem = code if code >= 0 else -2 - code
                sums[n_words + 1] = sums[n_words] + _mix(stem)
                orders[n_words + 1] = _mix(orders[n_words] ^ np.uint64(stem))
                n_words += 1
            n_whole = 0
            while n_whole < n_words and codes[start + n_whole] >= 0:
                n_whole += 1
            for n in range(n_words, 0, -1):
                number = _number_of(sums[n], hashes, slots)
                if number < 0:
                    continue
                n_names = name_ptr[number + 1] - name_ptr[number]
                best, second = np.float32(-1), np.float32(-1)  # the largest shares of clues
                for name in range(name_ptr[number], name_ptr[number + 1]):
                    share = _clue_share(name, clue_ptr, clues, stamps, i)
                    best, second = max(best, share), max(second, min(best, share))
                for name in range(name_ptr[number], name_ptr[number + 1]):
                    label = name_labels[name]
                    share = _clue_share(name, clue_ptr, clues, stamps, i)
                    row = row_of[label]
                    if row < 0:
                        if n_rows == room:
                            room *= 2
                            labels, numbers = _longer(labels, room), _longer(numbers, room)
                            larger = np.empty((room, _N_STATS), np.float32)
                            larger[:n_rows] = stats
                            stats = larger
                        row = row_of[label] = n_rows
                        labels[row], numbers[row] = label, number
                        stats[row] = 0
                        stats[row, FIRST] = start - begin
                        stats[row, RIVALS] = n_names
                        stats[row, QUALIFIED] = 1
                        n_rows += 1
                    one = stats[row]
                    if n > one[WORDS]:
                        numbers[row], one[WORDS] = number, n
                    one[COUNT] += 1
                    one[FREE] += start + n > covered_to
                    one[LAST] = start - begin
                    one[TITLE] += start - begin < titles[i]
                    one[PREFERRED] = max(one[PREFERRED], name_preferred[name])
                    one[ORDERED] = max(one[ORDERED], name_orders[name] == orders[n])
                    one[WHOLE] += n <= n_whole
                    one[RIVALS] = min(one[RIVALS], n_names)
                    one[QUALIFIED] = min(one[QUALIFIED], clue_ptr[name] < clue_ptr[name + 1])
                    one[CLUE] = max(one[CLUE], share)
                    rival = second if share == best else best
                    one[RIVAL_CLUE] = max(one[RIVAL_CLUE], rival)
                covered_to = max(covered_to, start + n)
        for row in range(indptr[i], n_rows):
            row_of[labels[row]] = -1
        indptr[i + 1] = n_rows
    return indptr, labels[:n_rows].copy(), numbers[:n_rows].copy(), stats[:n_rows].copy()


@kernel
def _longer(array, room):
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger
