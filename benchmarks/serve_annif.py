"""Annif's REST server with an omikuji model of the same data, for benchmarks/serve.py.

The model is trained once, by Annif itself, with its omikuji backend as the Finnish national library sets it up
(Bonsai-like trees), on the texts and labels that longtail is given.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROJECTS = """
[omikuji]
name=omikuji
language=de
backend=omikuji
analyzer=snowball(german)
vocab=labels
cluster_balanced=False
cluster_k=100
max_depth=3
"""


@contextmanager
def served(python: Path, folder: Path, data: Any, n_workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train if that was not done, run gunicorn, and yield its port and facts about it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = python.parent
    if not (folder / "trained").exists():
        (folder / "projects.cfg").write_text(PROJECTS)
        write(folder, data)
        for command in (["load-vocab", "labels", "labels.csv"], ["train", "omikuji", "train.tsv"]):
            subprocess.run([str(program / "annif"), *command], cwd=folder, check=True)
        (folder / "trained").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [str(program / "gunicorn"), "-w", str(n_workers), "-b", f"127.0.0.1:{port}", "-t", "600", "-k"]
    command += ["uvicorn.workers.UvicornWorker", "annif:create_app()"]
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "ANNIF_CONFIG": "annif.default_config.ProductionConfig"}
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/projects", timeout=10).read()
                break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.5)
        version = subprocess.run([str(program / "annif"), "--version"], capture_output=True, text=True, check=False)
        yield port, {"workers": n_workers, "annif": version.stdout.strip()}
    finally:
        process.terminate()
        process.wait()


def write(folder: Path, data: Any) -> None:
    """Write vocabulary and training texts as Annif reads them."""
    train = data.train
    ids, names = train.vocabulary.ids, train.vocabulary.names
    with open(folder / "labels.csv", "w", encoding="utf-8") as out:
        out.write("uri,label_de\n")
        for number, name in enumerate(names):
            quoted = name.replace('"', '""')
            out.write(f'http://example.org/{number},"{quoted}"\n')
    with open(folder / "train.tsv", "w", encoding="utf-8") as out:
        for text, labels in zip(train.texts["text"].to_pylist(), train.labels, strict=True):
            uris = " ".join(f"<http://example.org/{number}>" for number in labels)
            out.write(f"{' '.join(text.split())}\t{uris}\n")
    assert len(ids) == len(names)
