"""Texts, labels and vocabularies: read, checked and held."""
