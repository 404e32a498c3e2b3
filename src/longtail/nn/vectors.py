"""Word vectors, which need no torch: see `longtail.text.vectors`."""

from longtail.text.vectors import DEFAULT_WIDTH, TRAIN, WordVectorOptions, WordVectors, trained_vectors, word_vectors

__all__ = ["DEFAULT_WIDTH", "TRAIN", "WordVectorOptions", "WordVectors", "trained_vectors", "word_vectors"]
