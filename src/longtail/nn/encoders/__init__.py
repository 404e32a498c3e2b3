"""One file an encoder; `base` says what they have in common."""
