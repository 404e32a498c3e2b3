"""House rules that no linter knows: which way imports go, how long files are, what is never used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import longtail
from longtail.data.dataset import Dataset
from longtail.methods import create_method

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from house_figures import code_lines, long_argument_lists, splatted_calls, vague_locals

SOURCE = Path(longtail.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = [
    {
        "types",
        "checksums",
        "errors",
        "files",
        "registry",
        "mapped_arrays",
        "replacing",
        "persist",
        "options",
        "old_options",
        "settings",
        "structure",
        "topk",
        "sparse",
        "notebook",
        "predictions",
        "tables",
        "units",
    },
    {"kernels", "run"},
    {"data", "text", "labels", "metrics", "scores", "propensity", "neighbours", "explain"},
    {"linear", "nn", "presets", "published"},
    {"stacking"},
    {"choice"},
    {"methods"},
    {
        "batch_prediction",
        "compare",
        "distilling",
        "evaluation",
        "export",
        "label_editor",
        "model_selection",
        "plan",
        "report",
        "reproduce",
        "training",
        "tuning",
    },
    {"serve"},
    {"review"},
    {"cli", "__main__"},
]
"""Imports go from later to earlier layers, or stay inside one."""
MAX_LINES = 400
MAX_METHOD_LINES = 120
"""Of code: a method wires parts together, and the help of its options is not counted."""
BAD_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "core"}
FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
KERNELS = SOURCE / "kernels" / "native"
ONLY_IN = {
    "numba": [KERNELS],
    "llvmlite": [KERNELS],
    **{name: [SOURCE / "nn"] for name in ("torch", "transformers", "accelerate")},
    **{name: [SOURCE / "export"] for name in ("onnx", "onnxruntime")},
    "huggingface_hub": [SOURCE / "export", SOURCE / "nn" / "pretrained.py"],
    "captum": [SOURCE / "nn" / "gradients.py"],
    "ray": [SOURCE / "run" / "ray.py"],
    "optuna": [SOURCE / "tuning"],
    "faiss": [SOURCE / "neighbours" / "lists.py"],
    "lightgbm": [SOURCE / "stacking" / "trees.py"],
    **{name: [SOURCE / "review"] for name in ("sqlalchemy", "psycopg", "pypdfium2", "docx", "lxml")},
    **{
        name: [SOURCE / "serve", SOURCE / "review"]
        for name in ("fastapi", "starlette", "uvicorn", "msgspec", "prometheus_client")
    },
    "tokenizers": [SOURCE / "nn", SOURCE / "text" / "pieces.py", SOURCE / "export"],
}
"""Large libraries, and the only places that import them."""
COMMANDS = {"cli", "__main__"}
FORBIDDEN_CALLS = {"print", "exit", "quit", "eval", "exec", "input"}


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def room_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def layer_of(room: str) -> int:
    found = [number for number, rooms in enumerate(LAYERS) if room in rooms]
    assert found, f"longtail/{room} is in no layer; say in tests/test_house.py where it belongs"
    return found[0]


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "" if node.level == 0 else "relative"


def is_method(file: Path) -> bool:
    shared = {
        "__init__",
        "added_labels",
        "base",
        "calibrated",
        "estimator",
        "explaining",
        "exporting",
        "label_space",
        "manifest",
        "members",
        "network",
        "registry",
    }
    shared |= {"batches", "signature", "text_columns"}
    return room_of(file) == "methods" and file.stem not in shared


def test_imports_go_one_way() -> None:
    faults = []
    for file in FILES:
        own = room_of(file)
        if file == SOURCE / "__init__.py":
            continue  # the front door: it looks names up when they are asked for
        for name in imports_of(file):
            package, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if name == "relative" or (package == "longtail" and not rest and own != "cli"):
                faults.append(f"{file}: name the module that holds the thing")
            elif package == "longtail" and rest and layer_of(room) > layer_of(own):
                faults.append(f"{file}: longtail.{own} may not import longtail.{room}")
    assert not faults


def test_the_layers_name_what_exists() -> None:
    assert {room for rooms in LAYERS for room in rooms} <= {room_of(file) for file in FILES}


def test_methods_do_not_import_each_other() -> None:
    methods = [file for file in FILES if is_method(file)]
    assert methods
    allowed = {
        "longtail.methods",
        *(f"longtail.methods.{name}" for name in ("base", "calibrated", "keywords", "members", "network")),
    }
    faults = [
        f"{file} imports {name}"
        for file in methods
        for name in imports_of(file)
        if name.startswith("longtail.methods") and name not in allowed
    ]
    assert not faults


def test_large_libraries_stay_in_their_rooms_and_nothing_pickles() -> None:
    faults = []
    for file in FILES:
        for name in {name.partition(".")[0] for name in imports_of(file)}:
            places = ONLY_IN.get(name, [SOURCE])
            if name in FORBIDDEN or not any(place in (file, *file.parents) for place in places):
                faults.append(f"{file} imports {name}")
    assert not faults


def test_what_lies_outside_of_nn_imports_no_neural_library_before_it_is_asked_to() -> None:
    """An import inside a function, or for type checkers alone, costs those nothing who never call it."""
    neural = {name for name, places in ONLY_IN.items() if SOURCE / "nn" in places} | {"longtail.nn"}
    found = [
        f"{file} imports {name}"
        for file in FILES
        if room_of(file) not in {"nn", "methods"}
        for node in tree_of(file).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
        if name.partition(".")[0] in neural or name.startswith("longtail.nn")
    ]
    assert not found


def test_files_are_short() -> None:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert not {str(file): n for file, n in lengths.items() if n > MAX_LINES}
    assert not {str(file): n for file in FILES if is_method(file) and (n := code_lines(file)) > MAX_METHOD_LINES}


def test_argument_lists_are_short_and_calls_name_their_arguments() -> None:
    outside = [
        file for file in FILES if room_of(file) not in {"kernels", "cli"}
    ]  # one parameter per array, or per flag
    assert not [place for file in outside for place in long_argument_lists(file)]
    assert not [place for file in FILES for place in splatted_calls(file)]


def test_locals_say_what_they_hold() -> None:
    assert not [place for file in FILES for place in vague_locals(file)]


def test_tests_patch_no_private_names_and_import_none() -> None:
    faults = []
    for file in Path(__file__).parent.rglob("*.py"):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("longtail"):
                faults += [f"{file}: imports {name.name}" for name in node.names if name.name.startswith("_")]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setattr"):
                names = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                faults += [f"{file}: patches {name}" for name in names if name.rpartition(".")[2].startswith("_")]
    assert not faults


def test_names_say_what_is_inside_and_files_say_what_they_are_about() -> None:
    assert not [str(file) for file in FILES if BAD_NAMES & {*file.relative_to(SOURCE).with_suffix("").parts}]
    assert not [str(file) for file in FILES if not ast.get_docstring(tree_of(file))]


def test_one_name_is_one_class() -> None:
    files: dict[str, list[Path]] = {}
    for file in FILES:
        for node in tree_of(file).body:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(file)
    assert not {name: places for name, places in files.items() if len(places) > 1}


def test_the_library_never_prints_asserts_or_swallows_everything() -> None:
    faults = []
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            called = node.func if isinstance(node, ast.Call) else None
            if (
                (isinstance(node, ast.ExceptHandler) and node.type is None)
                or isinstance(node, ast.Assert)
                or (isinstance(called, ast.Name) and called.id in FORBIDDEN_CALLS)
                or (
                    isinstance(called, ast.Attribute)
                    and ast.unparse(called) == "sys.exit"
                    and room_of(file) not in COMMANDS
                )
            ):
                faults.append(f"{file}:{node.lineno}: {ast.unparse(node)[:60]}")
    assert not faults


def modules_after(code: str) -> set[str]:
    listing = f"import sys\n{code}\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stdout.split()}


def test_importing_longtail_loads_no_large_library() -> None:
    loaded = modules_after("import longtail")
    assert "longtail" in loaded
    large = {"torch", "numba", "llvmlite", "pyarrow", "scipy", "sklearn", "numpy", "pydantic", "typer", "rich"}
    assert not loaded & large


def test_a_linear_model_is_used_without_any_neural_library(tmp_path: Path, tiny: Callable[..., Dataset]) -> None:
    create_method("linear").fit(tiny().train).save(tmp_path / "m")
    (tmp_path / "texts.txt").write_text("word1a word1b\n")
    command = ["predict", str(tmp_path / "m"), str(tmp_path / "texts.txt"), "--out", str(tmp_path / "found.jsonl")]
    loaded = modules_after(f"from longtail.cli.main import main\nif main({command}): raise SystemExit('failed')")
    assert (tmp_path / "found.jsonl").stat().st_size
    assert "numba" in loaded
    assert not loaded & {"torch", "transformers", "accelerate", "tokenizers", "optuna"}


def test_every_public_name_is_where_the_front_door_says() -> None:
    names = dir(longtail)
    assert "load_dataset" in names
    for name in names:
        assert getattr(longtail, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Liner'"):
        _ = longtail.Liner  # type: ignore[attr-defined]
