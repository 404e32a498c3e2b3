"""The names that `import longtail` gives, and what it costs."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import longtail
from longtail.methods import METHODS


def loaded_by(code: str) -> set[str]:
    """Modules that are loaded after running `code` in a new process."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


def test_importing_loads_no_library() -> None:
    loaded = loaded_by("import longtail")
    assert loaded.isdisjoint({"torch", "numba", "numpy", "pyarrow", "pydantic", "scipy", "typer", "rich"})


def test_the_data_come_without_kernels_and_prediction_without_the_heavy_ones(tmp_path: Path) -> None:
    assert loaded_by("import longtail; longtail.load_dataset('debtags-sample')").isdisjoint(
        {"numba", "sklearn", "torch"}
    )
    model = tmp_path / "m"
    longtail.Linear().fit(["red apple", "grey stone"] * 3, [["a"], ["b"]] * 3).save(model)
    main = f"from longtail.cli.main import main; main(['predict', {str(model)!r}, '--text', 'x'])"
    heavy = {"sklearn", "scipy.stats", "matplotlib", "rdflib", "torch", "pandas", "rich.console", "rich.progress"}
    assert loaded_by(main).isdisjoint(heavy)


def test_dir_lists_the_api_and_nothing_else() -> None:
    assert dir(longtail) == sorted([*longtail._HOMES, "__version__"])
    for name in dir(longtail):
        assert getattr(longtail, name) is not None
        assert not inspect.ismodule(getattr(longtail, name))
    with pytest.raises(AttributeError, match="no attribute 'lode_model'"):
        longtail.lode_model  # type: ignore[attr-defined]  # noqa: B018


def test_every_method_has_its_class_at_the_front_door() -> None:
    built_in = [METHODS.get(name) for name in METHODS.names() if METHODS.get(name).__module__.startswith("longtail.")]
    assert len(built_in) >= 10
    assert all(getattr(longtail, method.__name__) is method for method in built_in)


def test_help_shows_the_api_and_the_options_of_a_method() -> None:
    page = pydoc.plain(pydoc.render_doc(longtail))
    assert all(name in page for name in ("class Linear", "class XBERT", "load_dataset(", "n_seeds"))
    assert not [name for name in ("annotations =", "TYPE_CHECKING =", "_HOMES", "import_module") if name in page]
    page = pydoc.plain(pydoc.render_doc(longtail.Linear))
    assert "n_seeds: int = 1" in page
    assert "Linear recall and ranking on TF-IDF" in page
    assert "Classifiers of the labels." in (inspect.getdoc(longtail.Linear) or "")


def test_without_torch_neural_methods_are_not_listed_but_say_what_to_install() -> None:
    code = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *more: None if name == "torch" else find(name, *more)
import longtail, pydoc
pydoc.render_doc(longtail)
from longtail import *
assert "Linear" in globals() and "XBERT" not in dir(longtail)
try:
    longtail.XBERT
except longtail.MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "longtail[neural]" in ran.stdout


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
    data = longtail.load_dataset("debtags-sample")
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
    assert repr(found).startswith("Evaluation(6 texts, P@1 1.000, ")
