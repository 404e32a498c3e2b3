"""What a server allows: sizes, times, requests at once."""

from __future__ import annotations

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from longtail.options import Options


class ServeSettings(Options):
    """Limits of a server, and how it works."""

    max_body_bytes: PositiveInt = 8 << 20
    """Longer bodies are refused with 413."""
    max_texts: PositiveInt = 128
    """Texts of one request."""
    max_characters: PositiveInt = 1_000_000
    """Characters of one text, all its fields together."""
    max_k: PositiveInt = 1_000
    """Labels per text that can be asked for."""
    max_requests: PositiveInt = 512
    """Requests for labels that a process works on at once; further ones are refused with 429."""
    max_connections: PositiveInt = 4096
    """Connections that a process holds open, idle ones included; further ones are refused with 503."""
    timeout_s: PositiveFloat = 30.0
    """A request for labels that takes longer is given up with 503."""
    read_timeout_s: PositiveFloat = 10.0
    """Time for the head of a request to arrive, and again for its body; then the connection is closed."""
    drain_s: PositiveInt = 30
    """Time that requests have to end when the server stops."""
    batch_texts: PositiveInt = 256
    """Texts that a model tags at once, at most."""
    batch_wait_s: NonNegativeFloat = 0.0
    """Time that a batch waits for further requests. By default a batch holds what arrived while the last one was
    tagged, and nobody waits for others."""
    batches_at_once: PositiveInt | None = None
    """Batches that a process tags at the same time, once as many texts wait as the largest of them has; by default one
    per thread."""
    tokens: str | None = None
    """A file of bearer tokens with their roles; without one everybody who can connect may do everything."""
    local_only: bool = False
    """Whether requests must be addressed to this machine by a local name, as those to a loopback address are: pages
    of other sites that point a name of theirs here are refused."""
