"""Texts to features: what a text says, as numbers."""
