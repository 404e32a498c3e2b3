"""The names that `import longtail` gives, and what it costs."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import longtail


def loaded_by(code: str) -> set[str]:
    """Modules that are loaded after running `code` in a new process."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


def test_importing_loads_no_library() -> None:
    loaded = loaded_by("import longtail")
    assert loaded.isdisjoint({"torch", "numba", "numpy", "pyarrow", "pydantic", "scipy", "typer", "rich"})


def test_the_data_come_without_kernels_and_prediction_without_the_heavy_ones(tmp_path: Path) -> None:
    assert loaded_by("import longtail; longtail.load_dataset('debtags')").isdisjoint({"numba", "sklearn", "torch"})
    model = tmp_path / "m"
    longtail.Linear().fit(["red apple", "grey stone"] * 3, [["a"], ["b"]] * 3).save(model)
    main = f"from longtail.cli.main import main; main(['predict', {str(model)!r}, '--text', 'x'])"
    heavy = {"sklearn", "scipy.stats", "matplotlib", "rdflib", "torch", "pandas", "rich.console", "rich.progress"}
    assert loaded_by(main).isdisjoint(heavy)


def test_every_name_can_be_had_and_is_listed() -> None:
    assert 20 <= len(longtail._HOMES) <= 30
    for name in [*longtail._HOMES, "__version__"]:
        assert name in dir(longtail)
        assert getattr(longtail, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode_model'"):
        longtail.lode_model  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(inspect.getfile(longtail)).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.asname: f"{node.module.removeprefix('longtail.')}"
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert imported == longtail._HOMES


def test_the_first_steps_run_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = longtail.load_dataset("debtags")
    model = longtail.Linear().fit(data.train)
    found = model.predict(["a text editor for gnome"], k=5)
    model.save("m")
    assert longtail.load_model("m").predict(["a text editor for gnome"], k=5) == found
    assert "use::editing" in {suggestion.id for suggestion in found[0]}
    assert all(suggestion.name and 0 <= suggestion.score <= 1 for suggestion in found[0])


def test_a_model_is_evaluated_in_one_call() -> None:
    texts, labels = ["red apple", "grey stone"] * 3, [["a"], ["b"]] * 3
    model = longtail.Linear().fit(texts, labels)
    found = longtail.evaluate_model(model, longtail.Split.of(texts, labels))
    assert isinstance(found, longtail.Evaluation)
    assert found.metrics.values["P@1"] == 1.0
