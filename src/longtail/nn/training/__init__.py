"""Training of networks: the one loop, and what it needs."""
