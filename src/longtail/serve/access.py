"""Who may do what: bearer tokens with roles, from a file.

    # role(s)   name      token, or sha256:… of it
    tag         website   3c9f…
    review      anna      sha256:9f86d0…
    admin       ops       7a01…

`review` may also tag, `admin` may do everything. Without a file everybody may do everything.

    @router.get("/v1/queues", dependencies=[Depends(requires("review"))])
    async def queues(caller: Annotated[Caller, Depends(requires("review"))]): ...
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from fastapi import Request
from starlette.types import Scope

from longtail.errors import ConfigError
from longtail.serve.problems import Problem

Role: TypeAlias = Literal["tag", "review", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
_IMPLIED: dict[str, frozenset[str]] = {
    "tag": frozenset({"tag"}),
    "review": frozenset({"tag", "review"}),
    "admin": frozenset(ROLES),
}
_HASH = "sha256:"
_SHORTEST = 16


@dataclass(frozen=True)
class Caller:
    """Who sends a request."""

    name: str
    """The name beside the token; empty where no tokens are used."""
    roles: frozenset[str]


ANYBODY = Caller("", frozenset(ROLES))


class Access:
    """The tokens that are accepted."""

    def __init__(self, file: str | Path | None = None) -> None:
        """Read the tokens of a file; without one nobody needs any."""
        self.file = None if file is None else Path(file)
        self._callers: dict[bytes, Caller] | None = None
        self.reload()

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return self._callers is None

    def reload(self) -> None:
        """Read the file again; if it cannot be used, raise and leave everything as it was."""
        if self.file is not None:
            self._callers = _read(self.file)

    def caller(self, authorization: bytes | None) -> Caller:
        """Return who sends this `Authorization` header, or raise 401."""
        if self._callers is None:
            return ANYBODY
        scheme, _, token = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            raise Problem(401, "a bearer token is needed: Authorization: Bearer TOKEN", _CHALLENGE)
        digest = hashlib.sha256(token.strip()).digest()
        callers = [caller for known, caller in self._callers.items() if hmac.compare_digest(known, digest)]
        if not callers:
            raise Problem(401, "the bearer token is not known; ask whoever runs the server for one", _CHALLENGE)
        return callers[0]

    def check(self, scope: Scope, role: Role) -> Caller:
        """Return who sends a request, or raise if the role is missing: 401 without a token, 403 with another role."""
        if self._callers is None:
            return ANYBODY
        caller = self.caller(next((value for name, value in scope["headers"] if name == b"authorization"), None))
        if role not in caller.roles:
            raise Problem(403, f"the role '{role}' is needed, the token of '{caller.name}' has not got it")
        return caller


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def requires(role: Role) -> Callable[[Request], Any]:
    """Return a dependency that lets only callers with a role pass, and gives the route the `Caller`."""

    async def caller(request: Request) -> Caller:
        access: Access = request.app.state.service.access
        return access.check(request.scope, role)

    return caller


def _read(file: Path) -> dict[bytes, Caller]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"`tokens` must be a file of roles, names and tokens; {file} cannot be read: {reason}"
        ) from error
    callers: dict[bytes, Caller] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3:
            raise ConfigError(f"{file}:{number}: a line must be role, name and token, got {len(words)} words")
        roles, name, token = words
        unknown = [role for role in roles.split(",") if role not in ROLES]
        if unknown:
            raise ConfigError(f"{file}:{number}: a role must be one of {', '.join(ROLES)}, got '{unknown[0]}'")
        digest = _digest(token, f"{file}:{number}")
        if digest in callers:
            raise ConfigError(f"{file}:{number}: tokens must be distinct, that of '{name}' is used above")
        callers[digest] = Caller(name, frozenset().union(*(_IMPLIED[role] for role in roles.split(","))))
    if not callers:
        raise ConfigError(f"{file} must hold at least one token, got none")
    return callers


def _digest(token: str, place: str) -> bytes:
    if token.startswith(_HASH):
        try:
            digest = bytes.fromhex(token.removeprefix(_HASH))
        except ValueError:
            digest = b""
        if len(digest) != hashlib.sha256().digest_size:
            raise ConfigError(f"{place}: {_HASH} must be followed by 64 hexadecimal digits")
        return digest
    if len(token) < _SHORTEST:
        raise ConfigError(f"{place}: a token must have at least {_SHORTEST} characters, got {len(token)}")
    return hashlib.sha256(token.encode()).digest()
