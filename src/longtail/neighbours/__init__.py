"""The nearest training texts of a text, by cosine: exactly, or nearly for millions of texts.

    content_hashes(texts)                             ->  hashes (n,): the same for the same content
    build(points (n, d) or sparse rows, hashes (n,))  ->  NeighbourIndex, the pool
    nearest(points (m, d), k, hashes (m,))            ->  Neighbours: texts (m, k), cosines (m, k), best first

A pool holds training texts and nothing else. A training text must find neither itself nor a copy of itself, which would
show it its own labels: with `hashes`, texts of the pool that have the same content are no neighbours. They are left out
before the k best are taken, so that many copies cannot crowd out the others.

The cosines of all pairs of texts are never held at once: dense points are compared block by block, sparse ones text by
text.
"""

from longtail.neighbours.base import NO_TEXT, Blocks, Neighbours, Query, Search
from longtail.neighbours.hashes import content_hashes, row_hashes
from longtail.neighbours.index import NeighbourIndex, NeighbourSearchOptions, Points

__all__ = [
    "NO_TEXT",
    "Blocks",
    "NeighbourIndex",
    "NeighbourSearchOptions",
    "Neighbours",
    "Points",
    "Query",
    "Search",
    "content_hashes",
    "row_hashes",
]
