"""Find label names that are probably one label written twice.

    same_names   equal once case, punctuation and white space are folded away ("E-Mail", "email")
    near_names   one letter more or less inside or at the end of a word, or other accents
                 ("Color" and "Colour", "Tree" and "Trees", "Cafe" and "Café")

A changed letter or another first letter makes another word far more often than a misspelling (food, wood; migration,
emigration), so such pairs are not reported.

Near names are found without comparing all pairs: hashes of every name without each of its letters are computed in one
vectorised sweep and looked up among the hashes of the whole names; matches are then compared letter by letter. The
cost is nearly linear in the number of letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHORTEST_INSIDE = 6
"""Words must be this long for a letter inside to count ("colour"); short words differ on purpose."""
SHORTEST_ENDING = 5
"""Words must be this long for the last letter to count ("trees")."""
LONGEST_NAME = 200
BLOCK_NAMES = 100_000
"""So many names are hashed at a time, to bound memory."""

# Punctuation between digits carries meaning (1.5 is not 15), and so do the signs of C++ and C#.
_UNIMPORTANT = re.compile(r"(?<!\d)[^\w+#]|[^\w+#](?!\d)|_")
_GAP = re.compile(r"(?:[^\w+#]|_)+")
_BASE = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 1 << 64)
_SIEVE_BITS = 24


def same_names(names: Sequence[str]) -> list[list[int]]:
    """Return groups of positions whose names are equal when folded, in order of their first position."""
    groups: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        plain = unicodedata.normalize("NFKC", name).casefold()
        groups.setdefault(_UNIMPORTANT.sub("", plain) or plain, []).append(position)
    return [group for group in groups.values() if len(group) > 1]


def near_names(names: Sequence[str], *, block_names: int = BLOCK_NAMES) -> list[tuple[int, int]]:
    """Return sorted pairs of positions whose names differ by one letter or by accents, not only by folding.

    `block_names` names are hashed at a time.
    """
    position_of: dict[str, int] = {}
    pairs = set()
    for position, name in enumerate(names):
        key = _without_accents(name)
        if 0 < len(key) <= LONGEST_NAME and position_of.setdefault(key, position) != position:
            other = position_of[key]
            if not same_names([names[other], name]):
                pairs.add((other, position))
    keys = list(position_of)
    for one, other in _one_letter_longer(keys, block_names):
        a, b = position_of[keys[one]], position_of[keys[other]]
        pairs.add((min(a, b), max(a, b)))
    return sorted(pairs)


def _without_accents(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name).casefold()
    if not folded.isascii():
        folded = "".join(c for c in folded if not unicodedata.combining(c))
    return _GAP.sub(" ", folded).strip()


@dataclass(frozen=True)
class _Sweep:
    """The hashes of a block of names, modulo 2^64: hash(name) = sum of scrambled letter × base^place."""

    whole: NDArray[np.uint64]  # (n_names,)
    without: NDArray[np.uint64]  # (n_letters,): the hash of the letter's name without this letter
    owner: NDArray[np.int64]  # (n_letters,)
    place: NDArray[np.int64]  # (n_letters,)
    may_differ: NDArray[np.bool_]  # (n_letters,)


def _one_letter_longer(keys: list[str], block_names: int) -> Iterator[tuple[int, int]]:
    """Yield pairs (longer, shorter) of keys that differ by one letter of the longer."""
    if len(keys) < 2:
        return
    blocks = range(0, len(keys), block_names)
    whole = np.concatenate([_sweep(keys[start : start + block_names]).whole for start in blocks])
    order = np.argsort(whole)
    ordered = whole[order]
    sieve = np.zeros(1 << _SIEVE_BITS, np.bool_)
    shift = np.uint64(64 - _SIEVE_BITS)
    sieve[whole >> shift] = True
    for start in blocks:
        sweep = _sweep(keys[start : start + block_names])
        maybe = np.flatnonzero(sweep.may_differ & sieve[sweep.without >> shift])
        at = np.minimum(np.searchsorted(ordered, sweep.without[maybe]), len(ordered) - 1)
        hit = ordered[at] == sweep.without[maybe]
        for letter, other in zip(maybe[hit].tolist(), order[at[hit]].tolist(), strict=True):
            longer, place = keys[start + sweep.owner[letter]], int(sweep.place[letter])
            if longer[:place] + longer[place + 1 :] == keys[other]:  # hashes may collide
                yield start + int(sweep.owner[letter]), other


def _sweep(keys: list[str]) -> _Sweep:
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    flat = "".join(keys)
    codes = np.frombuffer(flat.encode("utf-32-le"), np.uint32)
    owner = np.repeat(np.arange(len(keys)), lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(len(codes)) - starts[owner]
    powers = np.cumprod(np.full(LONGEST_NAME + 1, _BASE, np.uint64))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(_scramble(codes) * powers[place], dtype=np.uint64)])
    before = sums[:-1] - sums[starts[owner]]
    after = sums[starts[owner + 1]] - sums[1:]
    return _Sweep(
        whole=sums[starts[1:]] - sums[starts[:-1]],
        without=before + after * np.uint64(_INVERSE),
        owner=owner,
        place=place,
        may_differ=_inside_long_word(flat, codes, place),
    )


def _inside_long_word(flat: str, codes: NDArray[Any], place: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which characters are letters, not the first of a word, in words that are long enough."""
    is_letter = np.zeros(0x110000, np.bool_)
    is_letter[[ord(character) for character in set(flat) if character.isalpha()]] = True
    space = codes == ord(" ")
    first = (place == 0) | np.concatenate([[False], space[:-1]])
    word = np.cumsum(first)
    last = np.concatenate([space[1:] | (place[1:] == 0), [True]])
    needed = np.where(last, SHORTEST_ENDING, SHORTEST_INSIDE)
    lengths = np.bincount(word, weights=~space)
    inside: NDArray[np.bool_] = is_letter[codes] & ~first & (lengths[word] >= needed)
    return inside


def _scramble(values: NDArray[Any]) -> NDArray[np.uint64]:
    mixed = (values.astype(np.uint64) + np.uint64(1)) * np.uint64(_BASE)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    result: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(29))
    return result
