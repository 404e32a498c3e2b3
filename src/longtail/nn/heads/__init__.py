"""One file a head; `base` says what they have in common."""
