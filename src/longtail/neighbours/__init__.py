"""The nearest training texts of a text, by cosine: exactly, or nearly for millions of texts.

    content_hashes(texts)                             ->  hashes (n,): the same for the same content
    build(points (n, d) or sparse rows, hashes (n,))  ->  NeighbourIndex, the pool
    nearest(points (m, d), k, hashes (m,))            ->  Neighbours: texts (m, k), cosines (m, k), best first

A pool is made of training texts and of nothing else. A training text that looks for neighbours must find neither itself
nor a copy of itself, which would show it its own labels: with `hashes`, texts of the pool that have the same content
are no neighbours. They are left out before the k best are taken, so that many copies cannot crowd out the others.

Never is one number held for each pair of texts: dense points are compared block by block, sparse ones text by text.
"""

from longtail.neighbours.base import NO_TEXT, Neighbours, Search
from longtail.neighbours.hashes import content_hashes, row_hashes
from longtail.neighbours.index import NeighbourIndex, Points, SearchOptions

__all__ = [
    "NO_TEXT",
    "NeighbourIndex",
    "Neighbours",
    "Points",
    "Search",
    "SearchOptions",
    "content_hashes",
    "row_hashes",
]
