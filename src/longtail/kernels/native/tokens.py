"""Count the terms of texts: decode, lower-case, tokenise, hash and look up in one pass over Arrow's bytes.

A text becomes units (the hashes of its words, or its letters), a term is a run of units, and a term's hash
is folded from its units, so that every n-gram costs one step more than the one before it. Terms are known
by their 64-bit hashes. Two of n terms share a hash with a chance of n² / 2^65: one in 370,000 for ten
million terms, and then they share one feature; so hashes are not checked against the terms' letters.

Arrow's own kernels (lower, split by pattern, encode) took 2.1 s for what takes 0.5 s here on one core, need memory for
every token, and know neither Python's word characters nor its lower case.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.characters import CODE, DIGIT, SPACE, WORD
from longtail.kernels.native.jit import kernel
from longtail.kernels.native.order import sort_first

_SEED = np.uint64(0xA24BAED4963EE407)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_BLANK = 32
_ZERO = 48
_REPLACEMENT = 0xFFFD
_LOW_HALF = 0xFFFFFFFF


@kernel
def _mix(state, unit):
    state = (state ^ unit) * _MULTIPLIER
    return state ^ (state >> _HALF)


@kernel
def _slot_of(term_hash, slots, hashes):
    """Return the slot that holds a term, or the free one where it belongs."""
    mask = len(slots) - 1
    at = np.int64(term_hash) & mask
    while slots[at] >= 0 and hashes[slots[at]] != term_hash:
        at = (at + 1) & mask
    return at


@kernel
def add_terms(new_hashes, n_terms, slots, hashes, ids):
    """Do what `reference.tokens.add_terms` does."""
    for i in range(len(new_hashes)):
        slot = _slot_of(new_hashes[i], slots, hashes)
        if slots[slot] < 0:
            slots[slot] = n_terms
            hashes[n_terms] = new_hashes[i]
            n_terms += 1
        ids[i] = slots[slot]
    return n_terms


@kernel
def needs_python(data):
    """Return how often İ (C4 B0) and Σ (CE A3) are among these bytes; the loop has no branch, for memory speed."""
    n = 0
    for at in range(len(data) - 1):
        here, after = data[at], data[at + 1]
        n += ((here == 0xC4) & (after == 0xB0)) | ((here == 0xCE) & (after == 0xA3))
    return n


@kernel
def _decode(data, start, stop, chart, codes):
    """UTF-8 to entries of the chart; bytes that are no UTF-8 are read as U+FFFD. Returns how many."""
    n_codes = 0
    at = start
    while at < stop:
        code = np.uint32(data[at])
        at += 1
        if code >= 0x80:
            n_more = 1 if code < 0xE0 else 2 if code < 0xF0 else 3
            code &= np.uint32(0x3F >> n_more)
            while n_more > 0 and at < stop:
                code = (code << np.uint32(6)) | np.uint32(data[at] & 0x3F)
                at += 1
                n_more -= 1
            if n_more > 0 or code > 0x10FFFF:
                code = np.uint32(_REPLACEMENT)
        codes[n_codes] = chart[code] if code < len(chart) else code
        n_codes += 1
    return n_codes


@kernel
def _encode(code, letters, at):
    """One character as UTF-8; returns the place after it."""
    if code < 0x80:
        letters[at] = code
        return at + 1
    n_more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
    letters[at] = (0xFF00 >> (n_more + 1)) & 0xFF | code >> (6 * n_more)
    for i in range(n_more):
        letters[at + 1 + i] = 0x80 | (code >> (6 * (n_more - 1 - i))) & 0x3F
    return at + 1 + n_more


@kernel
def _words(codes, n_codes, numbers, max_words, stop_slots, stop_hashes, units, firsts, lasts):
    """Hashes of the words that are not stop words, and where each lies in `codes`; returns how many."""
    n_units = 0
    n_words = 0
    at = 0
    while at < n_codes and n_words < max_words:
        if codes[at] & WORD == 0:
            at += 1
            continue
        first = at
        word = _SEED
        digits = np.uint32(DIGIT)
        while at < n_codes and codes[at] & WORD != 0:
            word = _mix(word, np.uint64(codes[at] & CODE))
            digits &= codes[at]
            at += 1
        last = at
        if numbers and digits != 0:
            # "0" stands for all numbers: no word has a single letter, so nothing else is called that.
            codes[first] = _ZERO
            last = first + 1
            word = _mix(_SEED, np.uint64(_ZERO))
        elif last - first < 2:
            continue
        n_words += 1
        if len(stop_hashes) > 0 and stop_slots[_slot_of(_mix(_SEED, word), stop_slots, stop_hashes)] >= 0:
            continue
        units[n_units] = word
        firsts[n_units] = first
        lasts[n_units] = last
        n_units += 1
    return n_units


@kernel
def _letters(codes, n_codes, max_words, units, firsts, lasts):
    """Write the letters of all words, each with blanks around it, and where each word lies; return how many words."""
    units[0] = _BLANK
    n_units = 1
    n_words = 0
    at = 0
    while n_words < max_words:
        while at < n_codes and codes[at] & SPACE != 0:
            at += 1
        if at == n_codes:
            break
        firsts[n_words] = n_units - 1
        while at < n_codes and codes[at] & SPACE == 0:
            units[n_units] = codes[at] & CODE
            n_units += 1
            at += 1
        units[n_units] = _BLANK
        n_units += 1
        lasts[n_words] = n_units
        n_words += 1
    return n_words


@kernel
def _count_text(
    chars, low, high, learn, codes, n_units, n_spans, units, firsts, lasts, row, ids, counts,
    n_terms, slots, hashes, place, ends, letters,
):  # fmt: skip
    """Append the terms of one text to `ids` and `counts`; returns (n_terms, n_out, whether space ran out)."""
    n_out = row
    for span in range(n_spans):
        begin = firsts[span] if chars else 0
        end = lasts[span] if chars else n_units
        for first in range(begin, end):
            term_hash = _SEED
            for last in range(first + 1, min(first + high, end) + 1):
                term_hash = _mix(term_hash, units[last - 1])
                # A word shorter than the shortest n-gram counts once, as a whole.
                if last - first < low and not (chars and first == begin and last == end):
                    continue
                slot = _slot_of(term_hash, slots, hashes)
                term = slots[slot]
                if term < 0:
                    if not learn:
                        continue
                    if n_terms == len(hashes):
                        return n_terms, n_out, True
                    at = ends[n_terms - 1] if n_terms > 0 else 0
                    n_letters = last - first
                    if not chars:
                        n_letters -= 1
                        for unit in range(first, last):
                            n_letters += lasts[unit] - firsts[unit]
                    if at + 4 * n_letters > len(letters):
                        return n_terms, n_out, True
                    for unit in range(first, last):
                        if chars:
                            at = _encode(np.int64(units[unit]), letters, at)
                            continue
                        if unit > first:
                            at = _encode(np.int64(_BLANK), letters, at)
                        for i in range(firsts[unit], lasts[unit]):
                            at = _encode(np.int64(codes[i] & CODE), letters, at)
                    term = np.int32(n_terms)
                    slots[slot] = term
                    hashes[term] = term_hash
                    ends[term] = at
                    n_terms += 1
                seen = place[term]
                # `place` is never cleared: an entry counts if it points into this row and the row agrees.
                if row <= seen < n_out and ids[seen] == term:
                    counts[seen] += 1
                    continue
                if n_out == len(ids):
                    return n_terms, n_out, True
                ids[n_out] = term
                counts[n_out] = 1
                place[term] = n_out
                n_out += 1
    return n_terms, n_out, False


@kernel
def _doubled(array):
    larger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # assigning a slice takes two seconds to be compiled, for its errors
        larger[i] = array[i]
    return larger


@kernel
def count_terms(
    data, offsets, chart, chars, low, high, numbers, max_words, stop_slots, stop_hashes,
    learn, n_terms, slots, hashes, place, df, tf, ends, letters,
):  # fmt: skip
    """Do what `reference.tokens.count_terms` does."""
    n_texts = len(offsets) - 1
    longest = 0
    for text in range(n_texts):
        longest = max(longest, offsets[text + 1] - offsets[text])
    codes = np.empty(longest, np.uint32)
    units = np.empty(longest + 2, np.uint64)
    firsts = np.empty(longest + 1, np.int64)
    lasts = np.empty(longest + 1, np.int64)

    indptr = np.zeros(n_texts + 1, np.int64)
    ids = np.empty(1024, np.int32)
    counts = np.empty(1024, np.int32)
    row = np.int64(0)
    for text in range(n_texts):
        n_codes = _decode(data, offsets[text], offsets[text + 1], chart, codes)
        n_units = np.int64(0)  # not literals, which would be types of their own to be compiled for
        n_spans = np.int64(1)
        if chars:
            n_spans = _letters(codes, n_codes, max_words, units, firsts, lasts)
        else:
            n_units = _words(codes, n_codes, numbers, max_words, stop_slots, stop_hashes, units, firsts, lasts)
        while True:
            n_terms, n_out, full = _count_text(
                chars, low, high, learn, codes, n_units, n_spans, units, firsts, lasts, row, ids, counts,
                n_terms, slots, hashes, place, ends, letters,
            )  # fmt: skip
            if not full or n_out < len(ids):
                break
            # Starting the text again keeps the loop in there free of arrays that may move.
            ids, counts = _doubled(ids), _doubled(counts)
        if full:
            n_texts = text
            break
        if learn:
            for at in range(row, n_out):
                df[ids[at]] += 1
                tf[ids[at]] += counts[at]
        row = n_out
        indptr[text + 1] = row
    return indptr[: n_texts + 1].copy(), ids[:row].copy(), counts[:row].copy(), n_terms


@kernel
def weigh(indptr, ids, counts, n_blocks, new_ids, starts, idf, weights, sublinear):
    """Do what `reference.tokens.weigh` does."""
    n_texts = (len(indptr) - 1) // n_blocks
    longest = 0
    for line in range(len(indptr) - 1):
        longest = max(longest, indptr[line + 1] - indptr[line])
    keys = np.empty(longest, np.int64)
    out_indptr = np.zeros(n_texts + 1, np.int64)
    indices = np.empty(len(ids), np.int32)
    values = np.empty(len(ids), np.float32)
    n_out = 0
    for text in range(n_texts):
        row = n_out
        row_squares = 0.0
        for block in range(n_blocks):
            line = block * n_texts + text
            n_keys = np.int64(0)  # not a literal, which would be a type of its own to be compiled for
            for at in range(indptr[line], indptr[line + 1]):
                feature = np.int64(ids[at]) + starts[block]
                if len(new_ids) > 0:
                    feature = np.int64(new_ids[feature])
                if feature >= 0:
                    # Feature and count in one number: sorting these is all the sorting there is.
                    keys[n_keys] = feature << 32 | np.int64(counts[at])
                    n_keys += 1
            if n_keys == 0:
                continue
            sort_first(keys, n_keys)
            squares = 0.0
            for i in range(n_keys):
                feature = keys[i] >> 32
                count = float(keys[i] & _LOW_HALF)
                value = (np.log(count) + 1.0 if sublinear[block] and count > 1.0 else count) * idf[feature]
                indices[n_out + i] = feature
                values[n_out + i] = value
                squares += value * value
            scale = weights[block] / np.sqrt(squares)
            for i in range(n_out, n_out + n_keys):
                values[i] *= scale
            n_out += n_keys
            row_squares += weights[block] * weights[block]
        if n_out > row:
            scale = 1.0 / np.sqrt(row_squares)
            for i in range(row, n_out):
                values[i] *= scale
        out_indptr[text + 1] = n_out
    return out_indptr, indices[:n_out].copy(), values[:n_out].copy()
