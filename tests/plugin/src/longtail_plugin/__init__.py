"""Parts that a package outside of longtail adds to it."""
