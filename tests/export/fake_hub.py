"""A hub of models on this machine: the part of the Hugging Face hub's interface that its own library uses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = 1000
"""Files of more bytes are uploaded one by one, as objects, like those that a hub keeps by git-lfs."""


@dataclass
class FakeHub:
    """Repositories, and objects that were uploaded for them."""

    address: str = ""
    commits: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    """By repository and commit, the content of each file."""
    heads: dict[str, str] = field(default_factory=dict)
    """By repository, the commit of its branch main."""
    objects: dict[str, bytes] = field(default_factory=dict)

    def commit(self, repository: str, files: dict[str, bytes]) -> str:
        """Add a commit to main, and return its id."""
        number = len(self.commits.setdefault(repository, {}))
        oid = hashlib.sha1(f"{repository} {number} {sorted(files)}".encode()).hexdigest()
        self.commits[repository][oid] = files
        self.heads[repository] = oid
        return oid

    def files(self, repository: str, revision: str = "main") -> dict[str, bytes]:
        return self.commits[repository][self.resolved(repository, revision)]

    def resolved(self, repository: str, revision: str) -> str:
        return self.heads[repository] if revision == "main" else revision


@contextmanager
def running() -> Iterator[FakeHub]:
    """Run a hub without any models."""
    hub = FakeHub()

    class Handler(_Handler):
        the_hub = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    the_hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._route()

    def do_HEAD(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def do_PUT(self) -> None:
        self._route()

    def _route(self) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for pattern, name in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match:
                getattr(self, name)(body, *match.groups())
                return
        self._say({"error": "not found"}, 404)

    def _say(self, value: Any, status: int = 200, **headers: str) -> None:
        self._send(json.dumps(value).encode(), status, **{"Content-Type": "application/json", **headers})

    def _send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _missing(self, code: str) -> None:
        self._say({"error": code}, 404, X_Error_Code=code, X_Error_Message=code)

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        repository = "/".join(part for part in (asked.get("organization"), asked["name"]) if part)
        known = repository in self.the_hub.commits
        if not known:
            self.the_hub.commit(repository, {".gitattributes": b""})
        self._say({"url": f"{self.the_hub.address}/{repository}", "name": repository}, 409 if known else 200)

    def whoami(self, _: bytes) -> None:
        self._say({"name": "someone", "orgs": [], "auth": {}})

    def valid_yaml(self, _: bytes) -> None:
        self._say({"errors": [], "warnings": []})

    def info(self, _: bytes, repository: str, revision: str | None = None) -> None:
        if repository not in self.the_hub.commits:
            self._missing("RepoNotFound")
            return
        commit = self.the_hub.resolved(repository, revision or "main")
        if commit not in self.the_hub.commits[repository]:
            self._missing("RevisionNotFound")
            return
        files = [{"rfilename": name} for name in self.the_hub.commits[repository][commit]]
        self._say({"id": repository, "modelId": repository, "sha": commit, "siblings": files, "private": False})

    def tree(self, _: bytes, repository: str, revision: str) -> None:
        files = self.the_hub.files(repository, revision)
        entries = [(name, len(content), hashlib.sha1(content).hexdigest()) for name, content in files.items()]
        self._say([{"type": "file", "path": name, "size": size, "oid": oid} for name, size, oid in entries])

    def preupload(self, body: bytes, repository: str, _: str) -> None:
        modes = [("lfs" if one["size"] > LARGE else "regular", one["path"]) for one in json.loads(body)["files"]]
        self._say({"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for mode, path in modes]})

    def batch(self, body: bytes, _: str) -> None:
        wanted = [{"oid": one["oid"], "size": one["size"]} for one in json.loads(body)["objects"]]
        for one in wanted:
            one["actions"] = {"upload": {"href": f"{self.the_hub.address}/objects/{one['oid']}"}}
        self._say({"transfer": "basic", "objects": wanted})

    def stored(self, body: bytes, oid: str) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.the_hub.objects[oid] = body
        self._say({})

    def committed(self, body: bytes, repository: str, revision: str) -> None:
        files = dict(self.the_hub.files(repository, revision))
        for line in body.splitlines():
            one = json.loads(line)
            value = one["value"]
            if one["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif one["key"] == "lfsFile":
                files[value["path"]] = self.the_hub.objects[value["oid"]]
            elif one["key"] == "deletedFile":
                del files[value["path"]]
        oid = self.the_hub.commit(repository, files)
        self._say({"success": True, "commitOid": oid, "commitUrl": f"{self.the_hub.address}/{repository}/commit/{oid}"})

    def resolve(self, _: bytes, repository: str, revision: str, name: str) -> None:
        commit = self.the_hub.resolved(repository, revision)
        content = self.the_hub.commits[repository][commit].get(name)
        if content is None:
            self._missing("EntryNotFound")
            return
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        self._send(content, X_Repo_Commit=commit, ETag=etag, Content_Type="application/octet-stream")


_REPOSITORY = r"([\w.-]+/[\w.-]+)"
_ROUTES = [
    (r"/api/repos/create", "create"),
    (r"/api/whoami-v2", "whoami"),
    (r"/api/validate-yaml", "valid_yaml"),
    (rf"/api/models/{_REPOSITORY}/preupload/([\w.-]+)", "preupload"),
    (rf"/api/models/{_REPOSITORY}/commit/([\w.-]+)", "committed"),
    (rf"/api/models/{_REPOSITORY}/revision/([\w.-]+)", "info"),
    (rf"/api/models/{_REPOSITORY}/tree/([\w.-]+)", "tree"),
    (rf"/api/models/{_REPOSITORY}", "info"),
    (rf"/{_REPOSITORY}\.git/info/lfs/objects/batch", "batch"),
    (r"/objects/(\w+)", "stored"),
    (rf"/{_REPOSITORY}/resolve/([\w.-]+)/(.+)", "resolve"),
]
"""Paths, and what answers them."""
