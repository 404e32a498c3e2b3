"""Models that are open, and how they are replaced."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

from longtail.methods import load_model
from longtail.serve.models import Models


def test_a_replaced_model_is_freed_without_the_garbage_collector(folder: Path, tmp_path: Path) -> None:
    """The server keeps what it has opened at its start from the collector."""
    path = tmp_path / "m"
    shutil.copytree(folder, path)
    models = Models.open({"m": path})
    gc.collect()
    gc.disable()
    try:
        old = weakref.ref(models.default.method)
        new = load_model(path)
        new.facts_["swap"] = 1
        new.save(path)
        assert [model.name for model in models.reload()] == ["m"]
        assert old() is None
    finally:
        gc.enable()
