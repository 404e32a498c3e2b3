"""Cases of `faults.py` about models and work folders: kills, full disks, damage, crafted folders."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from fault_children import Outcome, count_file_events, run_case
from fault_mutations import change_array, changed_bytes, reseal

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.methods import create_method, load_model
from longtail.persist import MANIFEST
from longtail.training import fit_and_save
from longtail.types import LabelMatrix

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {"tree": {"max_leaf": 4, "branching": 2}}),
    "ensemble": ("linear", {"n_seeds": 2}),
    "knn": ("knn", {}),
    "words": ("knn", {"points": {"kind": "words", "vectors": {"width": 16}}}),
    "fasttext": ("fasttext", {"training": {"epochs": 1.0}}),
    "lexical": ("lexical", {}),
    "stack": (
        "stack",
        {
            "members": ["linear", {"method": "knn", "options": {"n_neighbours": 10}}],
            "n_folds": 2,
            "ranker": {"n_trees": 20, "min_leaf": 20},
        },
    ),
}
N_TEXTS, N_LABELS = 120, 30
LARGE_ROWS, LARGE_FEATURES, LARGE_TERMS = 330_000, 100, 100_000


def split_of(n_texts: int = N_TEXTS) -> Split:
    """Texts made of the words of their labels."""
    draw = np.random.default_rng(0)
    labels = [sorted({i % N_LABELS, *draw.integers(0, N_LABELS, 2).tolist()}) for i in range(n_texts)]
    texts = [
        " ".join(f"word{one}{'abc'[i % 3]} noise{draw.integers(50)}" for one in row for i in range(3)) for row in labels
    ]
    ids = [f"label{one:02}" for one in range(N_LABELS)]
    vocabulary = Vocabulary.of(ids, {id: f"word{one}a" for one, id in enumerate(ids)})
    return Split.of(texts, [[ids[one] for one in row] for row in labels], vocabulary)


class Models:
    """Models to be attacked, what they predict when they are whole, and a place to do it."""

    def __init__(self, place: Path, large: bool) -> None:
        self.place, self.split = place, split_of()
        self.texts = [self.split.texts["text"][i].as_py() for i in range(20)] + ["", "word1a", "é" * 50]
        self.folders: dict[str, Path] = {}
        self.whole: dict[str, Any] = {}
        for name, (method, options) in METHODS.items():
            self.folders[name] = place / "models" / name
            create_method(method, options).fit(self.split, threads=1).save(self.folders[name])
            self.whole[name] = self.answers(load_model(self.folders[name]), self.texts)
        work = place / "begun.work"
        create_method("linear", METHODS["linear"][1]).fit(self.split, threads=1, work=work)
        self.begun = work
        if large:
            self._make_large()

    def _make_large(self) -> None:
        draw = np.random.default_rng(1)
        indices = np.sort(draw.integers(0, LARGE_TERMS, (LARGE_ROWS, LARGE_FEATURES), dtype=np.int32), axis=1).ravel()
        values = draw.random(len(indices), np.float32)
        ptr = np.arange(0, len(indices) + 1, LARGE_FEATURES)
        features = sp.csr_matrix((values, indices, ptr), (LARGE_ROWS, LARGE_TERMS))
        features.sum_duplicates()
        labels = LabelMatrix(np.arange(LARGE_ROWS + 1), draw.integers(0, 100, LARGE_ROWS, dtype=np.int32), 100)
        import pyarrow as pa

        texts = pa.table({"text": pa.repeat("", LARGE_ROWS)})
        split = Split(texts, labels, Vocabulary.of([f"label{i}" for i in range(100)]), features)
        self.folders["large"] = self.place / "models" / "large"
        create_method("knn", {}).fit(split, threads=1).save(self.folders["large"])
        self.asked = split.take(np.arange(5))
        time.sleep(2.5)  # younger files are not remembered
        self.whole["large"] = self.answers(load_model(self.folders["large"]), self.asked)

    def answers(self, model: Any, texts: Any) -> Any:
        """Return all that a model says of texts, for comparing."""
        few, many = (
            model.top_k(texts[:1] if isinstance(texts, list) else texts, 5, threads=1),
            model.top_k(texts, 5, threads=1),
        )
        named = [[(one.id, one.name) for one in row] for row in model.suggestions(many)]
        model.describe()
        return [array.tobytes() for array in (few.labels, few.scores, many.labels, many.scores)], named

    def compare(self, folder: Path, name: str, sealed: bool) -> str:
        """Open a folder that was changed, use it, and say whether it differs."""
        texts = self.asked if name == "large" else self.texts
        same = self.answers(load_model(folder), texts) == self.whole[name]
        return "same" if same else "changed" if sealed else "silent"

    def copy(self, name: str) -> Path:
        """Return a copy of a model to be changed."""
        folder = self.place / "attacked"
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(self.folders[name], folder)

    # groups of cases

    def raw(self, draw: random.Random) -> Outcome:
        """Change bytes of any file."""
        name = draw.choice([*METHODS])
        folder = self.copy(name)
        file = draw.choice(sorted(folder.iterdir()))
        whole = file.read_bytes()
        file.write_bytes(changed_bytes(draw, whole, same_size=draw.random() < 0.8))
        if file.read_bytes() == whole:
            return Outcome("same")
        return run_case(lambda: self.compare(folder, name, sealed=False))

    def sealed(self, draw: random.Random) -> Outcome:
        """Change bytes or an array of any file, and make the checksums right again."""
        name = draw.choice([*METHODS])
        folder = self.copy(name)
        files = sorted(file for file in folder.iterdir() if file.name != MANIFEST)
        arrays = [file for file in files if file.suffix == ".safetensors"]
        if draw.random() < 0.7:
            change_array(draw, draw.choice(arrays))
        else:
            file = draw.choice(files)
            file.write_bytes(changed_bytes(draw, file.read_bytes()))
        reseal(folder)
        return run_case(lambda: self.compare(folder, name, sealed=True))

    def manifest(self, draw: random.Random) -> Outcome:
        """Write a manifest by hand."""
        name = draw.choice([*METHODS])
        folder = self.copy(name)
        reseal(folder, draw, files=[])
        return run_case(lambda: self.compare(folder, name, sealed=True))

    def large(self, draw: random.Random) -> Outcome:
        """Change bytes of a model above 256 MiB, with or without right checksums; then put them back."""
        folder, sealed = self.folders["large"], draw.random() < 0.4
        file = draw.choice(
            [*sorted(folder.glob("*.safetensors")), folder / "pool.safetensors", folder / "pool.safetensors"]
        )
        at, length = draw.randrange(file.stat().st_size), draw.choice([1, 8, 512])
        with open(file, "r+b") as stream:
            stream.seek(at)
            whole = stream.read(length)
            stream.seek(at)
            stream.write(changed_bytes(draw, whole, same_size=True))
        manifest = (folder / MANIFEST).read_bytes()
        if sealed:
            reseal(folder, files=[file.name])
        outcome = run_case(lambda: self.compare(folder, "large", sealed))
        (folder / MANIFEST).write_bytes(manifest)
        with open(file, "r+b") as stream:
            stream.seek(at)
            stream.write(whole)
        return outcome

    def stage(self, draw: random.Random) -> Outcome:
        """Damage the work folder of an unfinished training, and go on with it."""
        home = self._home()
        work = shutil.copytree(self.begun, home / "m.work")
        for _ in range(draw.choice([1, 1, 2, 4])):
            file = draw.choice(sorted(file for file in work.rglob("*")))
            if file.is_dir():
                shutil.rmtree(file)
                if draw.random() < 0.3:
                    file.touch()
            elif draw.random() < 0.2:
                file.unlink()
            else:
                file.write_bytes(changed_bytes(draw, file.read_bytes()))

        def case() -> str:
            fit_and_save(self._untrained(), self.split, home / "m", resume=True)
            return "same" if self._files(home / "m") == self._files(self.folders["linear"]) else "silent"

        return run_case(case, limit_s=30)

    def killed_save(self, draw: random.Random) -> Outcome:
        """Kill a process at any moment while it replaces a model."""
        home, delay = self._home(with_model="knn"), draw.uniform(0, 0.03)

        def case() -> str:
            model = load_model(self.folders["linear"])
            signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))  # ends the process at once, wherever it is
            model.save(home / "m")
            return "same"

        return self._after_kill(home, draw, run_case(case))

    def killed_at(self, draw: random.Random, training: bool, event: int) -> Outcome:
        """Kill a process at one event of files while it saves, or trains and saves."""
        home = self._home(with_model="knn")

        def case() -> str:
            model = self._untrained() if training else load_model(self.folders["linear"])
            count_file_events(home, event)
            self._save(model, home, training)
            return "same"

        return self._after_kill(home, draw, run_case(case, limit_s=30))

    def n_events(self, training: bool) -> int:
        """Return how many events of files a save has, or a training."""
        home = self._home(with_model="knn")
        file = self.place / "events"

        def case() -> str:
            model = self._untrained() if training else load_model(self.folders["linear"])
            n_events = count_file_events(home)
            self._save(model, home, training)
            file.write_text(str(n_events()))
            return "same"

        run_case(case, limit_s=60)
        return int(file.read_text())

    def full(self, draw: random.Random) -> Outcome:
        """Save or train where files cannot grow, or on a file system that is too small."""
        training, small_disk = draw.random() < 0.5, draw.random() < 0.3 and hasattr(os, "geteuid") and os.geteuid() == 0
        home = self._home(with_model=None if small_disk else "knn")
        size = sum(file.stat().st_size for file in self.folders["linear"].iterdir())
        limit = draw.randrange(1_000, size)
        if small_disk:
            command = ["mount", "-t", "tmpfs", "-o", f"size={limit + 400_000}", "tmpfs", str(home)]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                return Outcome("same", "may not mount")
            shutil.copytree(self.folders["knn"], home / "m")

        def case() -> str:
            model = self._untrained() if training else load_model(self.folders["linear"])
            if not small_disk:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            self._save(model, home, training)
            return "same"

        outcome = run_case(case, limit_s=30)
        try:
            if outcome.kind == "refused" and self._model_at(home / "m") not in {"knn", "linear"}:
                return Outcome("lost", "the older model is gone")
            return outcome
        finally:
            if small_disk:
                subprocess.run(["umount", "--lazy", str(home)], check=True)

    def _save(self, model: Any, home: Path, training: bool) -> None:
        if training:
            fit_and_save(model, self.split, home / "m", resume=True)
        else:
            model.save(home / "m")

    def _after_kill(self, home: Path, draw: random.Random, ended: Outcome) -> Outcome:
        """Judge what a kill left: a whole model, which can be replaced, beside nothing else."""
        if ended.kind not in ("killed", "same"):
            return ended
        if self._model_at(home / "m") not in {"linear", "knn"}:
            return Outcome("lost", "neither the old nor the new model is there")

        def again() -> str:
            fit_and_save(self._untrained(), self.split, home / "m", resume=draw.random() < 0.5)
            names = sorted(file.name for file in home.iterdir())
            if names != ["m"]:
                return "left"
            return "same" if self._files(home / "m") == self._files(self.folders["linear"]) else "silent"

        outcome = run_case(again, limit_s=30)
        return Outcome("traceback", f"after a kill: {outcome}") if outcome.kind != "same" else Outcome("killed")

    def _model_at(self, folder: Path) -> str | None:
        """Return which model a folder is, bit for bit."""
        file = self.place / "which"

        def case() -> str:
            answers = self.answers(load_model(folder), self.texts)
            file.write_text(next(name for name, whole in self.whole.items() if whole == answers))
            return "same"

        return file.read_text() if run_case(case).kind == "same" else None

    def _home(self, with_model: str | None = None) -> Path:
        home = self.place / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        if with_model is not None:
            shutil.copytree(self.folders[with_model], home / "m")
        return home

    def _untrained(self) -> Any:
        return create_method("linear", METHODS["linear"][1])

    def _files(self, folder: Path) -> Any:
        return json.loads((folder / MANIFEST).read_text())["files"]


def groups(models: Models) -> Iterator[tuple[str, Callable[[random.Random], Outcome]]]:
    """Return the groups of cases that are drawn at random."""
    yield "kills at random while saving", models.killed_save
    yield "damaged stages", models.stage
    yield "full disk", models.full
    yield "model bytes changed", models.raw
    yield "model changed, checksums right", models.sealed
    yield "crafted manifests", models.manifest
