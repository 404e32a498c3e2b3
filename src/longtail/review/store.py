"""A review store: a SQLite file, or a PostgreSQL database for a team.

    with ReviewStore.open("reviews.db") as store: ...
    with ReviewStore.open("postgresql://user@host/database") as store: ...

What a call reports as kept is on disk: SQLite runs with `synchronous=FULL`, PostgreSQL commits synchronously.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from longtail.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

DEFAULT_STORE = "reviews.db"
ADDRESSES = ("postgresql://", "postgres://", "postgresql+psycopg://")
"""Beginnings of the addresses of PostgreSQL stores."""
_BUSY_MS = 30_000
"""How long a process waits for another one that writes to the same SQLite file."""
APPLICATION_ID = 0x6C745256
"""Marks the SQLite files of review stores ("ltRV", in bytes 68 to 71)."""
_MAGIC, _ID_AT = b"SQLite format 3\0", 68


class ReviewStore:
    """An open store; safe to use from many threads and from many processes at once."""

    def __init__(self, engine: Engine, address: str) -> None:
        self.engine, self.address = engine, address

    @classmethod
    def open(cls, address: str | Path, *, create: bool = True) -> Self:
        """Open the store at a path or URL.

        Args:
            address: A SQLite file, or `postgresql://user:password@host/database`.
            create: Whether to make a store where there is none; otherwise that is an error.
        """
        address = str(address)
        engine = _postgresql(address) if address.startswith(ADDRESSES) else _sqlite(address, create)
        store = cls(engine, _without_password(engine))
        with store.reported():
            store._prepare(create)
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection whose changes are all kept at the end, or none of them."""
        with self.reported(), self.engine.execution_options(writes=True).begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the store."""
        with self.reported(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Turn what the database cannot do into a `DataError`."""
        from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError, TimeoutError

        try:
            yield
        except IntegrityError:
            raise  # a rule of ours: whoever asked knows what it means
        except (DatabaseError, InterfaceError, TimeoutError) as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())
            hint = "; is the server running, and may you use it?" if self.address.startswith(ADDRESSES) else ""
            raise DataError(f"cannot use the review store {self.address}: {reason}{hint}") from error

    def _prepare(self, create: bool) -> None:
        import sqlalchemy as sa

        from longtail.review.schema import FACTS, METADATA, VERSION

        with self.engine.execution_options(writes=True).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(APPLICATION_ID)))
            tables = sa.inspect(connection).get_table_names()
            if FACTS.name not in tables:
                if tables or not create:
                    what = "holds other tables" if tables else "holds no reviews"
                    raise DataError(f"the review store must be of longtail, {self.address} {what}; choose another")
                METADATA.create_all(connection)
                connection.execute(sa.insert(FACTS).values(version=VERSION))
                if connection.dialect.name == "sqlite":
                    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            version = connection.execute(sa.select(sa.func.max(FACTS.c.version))).scalar_one()
            if version != VERSION:
                raise DataError(
                    f"{self.address} must be a review store of version {VERSION}, got {version}; upgrade longtail"
                )


def is_store(path: Path) -> bool:
    """Return whether a file is the SQLite file of a review store."""
    if not path.is_file():
        return False
    with open(path, "rb") as stream:
        start = stream.read(_ID_AT + 4)
    return start.startswith(_MAGIC) and start[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _sqlite(address: str, create: bool) -> Engine:
    sa = _sqlalchemy()
    path = Path(address).expanduser()
    if "://" in address:
        raise DataError(f"a review store must be a file or begin with postgresql://, got {address}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise DataError(f"a review store must be a file in a folder that exists, got {path}")
    if not create and not path.is_file():
        raise DataError(f"there is no review store {path}; `longtail review add` makes one")
    engine: Engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)))

    def set_up(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin where `begin` says so
        cursor = connection.cursor()
        for pragma in (f"busy_timeout = {_BUSY_MS}", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could fail when it writes: writers lock at once.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    sa.event.listen(engine, "connect", set_up)
    sa.event.listen(engine, "begin", begin)
    return engine


def _postgresql(address: str) -> Engine:
    sa = _sqlalchemy()
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"PostgreSQL needs psycopg: pip install 'longtail[review]' ({error})") from error
    try:
        url = sa.make_url(address).set(drivername="postgresql+psycopg")
    except (sa.exc.ArgumentError, ValueError) as error:
        raise DataError("a PostgreSQL store must be named postgresql://user:password@host/database") from error
    return sa.create_engine(url, pool_pre_ping=True)  # type: ignore[no-any-return]


def _sqlalchemy() -> Any:
    try:
        import sqlalchemy
    except ImportError as error:
        raise MissingExtraError("reviews need SQLAlchemy: pip install 'longtail[review]'") from error
    return sqlalchemy


def _without_password(engine: Engine) -> str:
    return (
        engine.url.database or ""
        if engine.dialect.name == "sqlite"
        else engine.url.set(drivername="postgresql").render_as_string()
    )
