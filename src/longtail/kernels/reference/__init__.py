"""Plain numpy: the definition of correct, for tests and for reading."""
