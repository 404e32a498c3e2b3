"""Heads, one per file; `base` has what they share."""
