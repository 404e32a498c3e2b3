"""Tasks of a Ray cluster: the same jobs as threads carry out here, on as many machines as the cluster has.

    with RayEngine("10.0.0.1:6379", storage="/shared/scratch") as engine:
        model.fit(texts, labels, run=Run(engine), work="/shared/work", resume=True)

Jobs are sent as small specs. Arrays that they share are files: in `storage`, which all machines see, or in a temporary
folder of this machine; then each other machine that runs a job fetches a file once and maps it like one of its own.
Results come back in the order of the jobs, and this process alone writes stages and models, whole or not at all. A job
whose process or machine died is done again. When this process dies its cluster work ends, and `resume` goes on with it.

This is the only file that imports ray.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import uuid4

from longtail.errors import ConfigError, LongtailError, MissingExtraError
from longtail.files import FileLock, held, whole
from longtail.mapped_arrays import Arrays
from longtail.run.engine import ArrayStore, StoredArrays
from longtail.run.local import available_cores, checked_threads
from longtail.run.log import LOG

T = TypeVar("T")
R = TypeVar("R")

SCHEME = "ray://"
_PREFIX = "longtail-"
"""Begins the names of folders for shared arrays."""
_WAITING_PER_JOB = 2
"""Jobs that are sent ahead for each that can run: as many results may wait to be taken."""
_PIECE_BYTES = 64 << 20
"""A file is fetched from another machine in pieces of this size."""
_PATIENCE_S = 10.0
"""Time that other machines have to remove what they fetched."""


class RayEngine:
    """Carries out jobs as tasks of a Ray cluster (`pip install 'longtail[ray]'`).

    Args:
        address: `HOST:PORT` of a cluster that this machine belongs to, also written `ray://HOST:PORT`, or `auto` for
            the one that runs here. By default that of the environment variable `RAY_ADDRESS`, or the one that this
            process uses already; if there is none, a cluster of this machine alone is started, and ends with `close`.
        n_jobs: Jobs that run at the same time; by default as many as the cluster has processors.
        storage: A folder that all machines see under the same name, for arrays that jobs share. Without one, machines
            fetch them from this one.
        retries: How often a job is tried again after its process or machine died.
        object_store_bytes: Memory for results on their way, in a cluster that is started here.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        n_jobs: int | None = None,
        storage: str | Path | None = None,
        retries: int = 5,
        object_store_bytes: int = 512 << 20,
    ) -> None:
        if retries < 0:
            raise ConfigError(f"retries must be at least 0, got {retries}")
        asked, self.n_local_threads = checked_threads(n_jobs), min(checked_threads(n_jobs), available_cores())
        ray = _ray()
        is_ours = not ray.is_initialized()
        if is_ours:
            _connect(address, asked, object_store_bytes)
        elif address and address.removeprefix(SCHEME) not in ("auto", ray.get_runtime_context().gcs_address):
            used = ray.get_runtime_context().gcs_address
            raise ConfigError(
                f"this process uses the Ray cluster at {used} already; leave `address` out, got {address}"
            )
        n_processors = int(ray.cluster_resources().get("CPU", 0))
        if not n_processors:
            raise LongtailError("the Ray cluster has no processors for jobs; start a node with `ray start --num-cpus`")
        self.n_threads = n_processors if n_jobs is None else min(asked, n_processors)
        self._storage = None if storage is None else Path(storage).absolute()
        self._folder = _claimed_folder(self._storage or Path(tempfile.gettempdir()))
        self._store = ArrayStore(self._folder.path)
        self._node = ray.get_runtime_context().get_node_id()
        self._task = ray.remote(num_cpus=1, max_retries=retries)(_do)
        self.close = weakref.finalize(self, _close, self._folder, self._node, is_ours)
        """Remove the shared arrays, and end the cluster if it was started here."""

    @property
    def folder(self) -> Path:
        """Where the arrays that jobs share are written, until `close`."""
        return self._folder.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order; a bounded number of results wait on the cluster."""
        ray = _ray()
        waiting: deque[Any] = deque()
        name = (function.func if isinstance(function, partial) else function).__name__
        task = partial(self._task.options(name=name).remote, version("longtail"), function)
        try:
            for item in items:
                waiting.append(task(item))
                if len(waiting) > _WAITING_PER_JOB * self.n_threads:
                    yield _result(waiting.popleft(), name)
            while waiting:
                yield _result(waiting.popleft(), name)
        finally:
            if waiting and ray.is_initialized():
                for left in waiting:
                    ray.cancel(left)

    def plain(self) -> dict[str, Any]:
        """Return plain data of which `engine_of` makes an engine on the same cluster."""
        address = _ray().get_runtime_context().gcs_address
        storage = None if self._storage is None else str(self._storage)
        return {"kind": "ray", "address": address, "threads": self.n_threads, "storage": storage}

    def share(self, name: str, arrays: Arrays) -> ClusterArrays:
        """Return a handle of the arrays, which are written to a file unless they are mapped from one."""
        stored = self._store.share(name, arrays)
        path = stored.path.absolute()
        seen_by_all = self._storage is not None and path.is_relative_to(self._storage)
        facts = path.stat()
        return ClusterArrays(
            StoredArrays(path, stored.kept),
            node=None if seen_by_all else self._node,
            owner=self._folder.path.name,
            n_bytes=facts.st_size,
            changed_ns=facts.st_mtime_ns,
        )


@dataclass(frozen=True)
class ClusterArrays:
    """Arrays in a file of one machine, or of all."""

    stored: StoredArrays
    node: str | None
    """The machine that has the file; None if all see it."""
    owner: str
    """The engine's name, for the folder where other machines keep what they fetched."""
    n_bytes: int
    changed_ns: int

    def open(self) -> Arrays:
        """Return the arrays, mapped into memory; a machine that does not see the file fetches it once."""
        here = _node_here()
        if self.node is None or self.node == here:
            return self.stored.open()
        place = _fetched(self.owner) / here / self._file_name()
        place.parent.mkdir(parents=True, exist_ok=True)
        with held(FileLock(place)):
            if not place.exists():
                self._fetch(place)
        return StoredArrays(place).open()

    def _file_name(self) -> str:
        about = f"{self.stored.path} {self.n_bytes} {self.changed_ns}"
        return f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.safetensors"

    def _fetch(self, place: Path) -> None:
        """Copy the file here, piece by piece."""
        ray, path = _ray(), str(self.stored.path)
        read = ray.remote(num_cpus=0)(_read).options(scheduling_strategy=_on_node(str(self.node)))
        with whole(place) as temporary, open(temporary, "wb") as file:
            for start in range(0, self.n_bytes, _PIECE_BYTES):
                file.write(_got(read.remote(path, start, _PIECE_BYTES), "fetching shared arrays"))


@dataclass(frozen=True)
class _ClaimedFolder:
    """A folder of this process, and the lock that shows that the process lives."""

    path: Path
    lock: FileLock

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.release()


def _claimed_folder(parent: Path) -> _ClaimedFolder:
    """Make a folder for the shared arrays of this process, and remove those that dead processes left."""
    mine = f"{_PREFIX}{socket.gethostname()}-"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f"{mine}*"):
            lock = FileLock(left)
            if lock.acquire(wait=False):
                _ClaimedFolder(left, lock).remove()
        path = parent / f"{mine}{uuid4().hex[:12]}"
        lock = FileLock(path)
        lock.acquire()
        path.mkdir()
    except OSError as error:
        raise LongtailError(
            f"cannot use the folder {parent}: {error.strerror or error}; choose another place"
        ) from error
    return _ClaimedFolder(path, lock)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            "the ray engine needs ray, not installed here; install with pip install 'longtail[ray]'"
        ) from error
    return ray


def _connect(address: str | None, n_jobs: int, object_store_bytes: int) -> None:
    """Join a cluster, or start one."""
    address = (address or os.environ.get("RAY_ADDRESS", "")).removeprefix(SCHEME)
    if not address:
        LOG.info(f"no Ray cluster is given: one with {n_jobs} processors of this machine is started")
        local: dict[str, Any] = {"num_cpus": n_jobs, "object_store_memory": object_store_bytes}
        local |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}  # nothing from outside reaches it
        with _without_reports():
            _init("cannot start Ray on this machine", "try again when it is less busy", address="local", **local)
        return
    _init(
        f"cannot join the Ray cluster at {address}",
        "run this on a machine of it (ray start --address)",
        address=address,
    )


def _init(what: str, hint: str, **arguments: Any) -> None:
    """Call `ray.init`, which raises whatever went wrong, plain exceptions too."""
    try:
        _ray().init(log_to_driver=False, logging_level="ERROR", **arguments)
    except Exception as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise LongtailError(f"{what}: {reason}; {hint}") from error


@contextmanager
def _without_reports() -> Iterator[None]:
    """Keep Ray from sending reports of its use to its makers, unless the environment asks for it."""
    name = "RAY_USAGE_STATS_ENABLED"
    given = name in os.environ
    os.environ.setdefault(name, "0")
    try:
        yield
    finally:
        if not given:
            del os.environ[name]


def _close(folder: _ClaimedFolder, node: str, is_ours: bool) -> None:
    """Remove the shared arrays here and where they were fetched, and end the cluster if it is ours."""
    ray = _ray()
    if ray.is_initialized():
        others = [str(one["NodeID"]) for one in ray.nodes() if one["Alive"] and one["NodeID"] != node]
        forget = ray.remote(num_cpus=0, max_retries=0)(_forget)
        left = [forget.options(scheduling_strategy=_on_node(one)).remote(folder.path.name) for one in others]
        ray.wait(left, num_returns=len(left), timeout=_PATIENCE_S) if left else None
    folder.remove()
    if is_ours:
        ray.shutdown()


# What runs on the cluster


def _do(longtail: str, function: Callable[[T], R], item: T) -> bytes:
    """Return the result of a job as bytes, from which arrays come back that may be written into."""
    if longtail != version("longtail"):
        raise LongtailError(
            f"longtail must be the same on all machines, {_node_here()} has {version('longtail')} and not {longtail}"
        )
    return bytes(_ray().cloudpickle.dumps(function(item)))


def _read(path: str, start: int, n_bytes: int) -> bytes:
    """Return a piece of a file of this machine."""
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(n_bytes)


def _forget(owner: str) -> None:
    """Remove what this machine fetched from an engine."""
    shutil.rmtree(_fetched(owner) / _node_here(), ignore_errors=True)


def _fetched(owner: str) -> Path:
    return Path(tempfile.gettempdir()) / owner


@cache
def _node_here() -> str:
    return str(_ray().get_runtime_context().get_node_id())


def _on_node(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


# What comes back


def _result(reference: Any, name: str) -> Any:
    """Return what a job returned."""
    return _ray().cloudpickle.loads(_got(reference, name))


def _got(reference: Any, name: str) -> bytes:
    """Return the bytes that a task made, or raise what it raised."""
    ray = _ray()
    try:
        return bytes(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        reason = str(error).split("\n")[0]
        raise LongtailError(f"a job of the Ray cluster was lost ({name}): {reason}; `resume` goes on") from error
