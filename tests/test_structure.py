"""Folders that hold anything, with right checksums: an error, or a model whose kernels stay inside their arrays."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from longtail.data.dataset import Dataset
from longtail.errors import LongtailError, ModelFormatError
from longtail.kernels.rows import Rows
from longtail.labels.buckets import Buckets
from longtail.labels.index import LabelIndex
from longtail.mapped_arrays import map_arrays, store_arrays
from longtail.methods import create_method, load_model
from longtail.persist import MANIFEST, Folder, write_folder

OPTIONS: dict[str, dict[str, Any]] = {
    "linear": {"tree": {"max_leaf": 2, "branching": 2}},
    "knn": {},
    "knn words": {"points": {"kind": "words", "vectors": {"width": 8}}},
    "lexical": {},
    "stack": {"members": ["linear", "knn"], "n_folds": 2, "ranker": {"n_trees": 8, "min_leaf": 5}},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Dataset]) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name, options in OPTIONS.items():
        create_method(name.split()[0], options).fit(tiny(named=True).train, threads=1).save(folder / name)
    return {name: folder / name for name in OPTIONS}


@pytest.fixture(scope="module")
def network(
    tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Dataset], quick: Callable[..., dict[str, Any]]
) -> Path:
    folder = tmp_path_factory.mktemp("network") / "model"
    create_method("lightxml", quick("lightxml", epochs=1)).fit(tiny().train, threads=1).save(folder)
    return folder


def reseal(model: Path, change: Callable[[dict[str, Any]], Any] = lambda manifest: None) -> None:
    """Write a manifest whose checksums are right again, after a change."""
    manifest = json.loads((model / MANIFEST).read_text())
    del manifest["checksum"]
    for name in manifest["files"]:
        content = (model / name).read_bytes()
        manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change(manifest)
    manifest["checksum"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (model / MANIFEST).write_text(json.dumps(manifest))


def put(place: int, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array.reshape(-1)[place] = value
        return array

    return change


LARGE = 10_000
CUT: Callable[[Any], Any] = lambda array: array[:-1]  # noqa: E731
WIDER: Callable[[Any], Any] = lambda array: array.astype(np.float64)  # noqa: E731
WIDER_INT: Callable[[Any], Any] = lambda array: array.astype(np.int64)  # noqa: E731
LAYER = {
    "child_ptr": [put(1, LARGE), put(0, 1), put(-1, LARGE), put(1, -1), CUT],
    "children": [put(0, LARGE), put(0, -1), CUT],
    "scale": [put(0, np.nan), CUT, WIDER],
    "bias": [put(0, np.inf), CUT],
    "row_ptr": [put(-1, LARGE), put(0, -1), CUT],
    "row_feature": [put(0, LARGE), put(0, -1), CUT],
    "entry_base": [put(-1, LARGE), put(0, -5), CUT],
    "row_entry": [put(1, LARGE), put(-1, LARGE), CUT],
    "entry_child": [put(0, 200), CUT, WIDER],
    "entry_value": [CUT, WIDER],
}
TERMS = {"slots": [put(slice(None), 0), put(0, LARGE), put(0, -2), CUT], "hashes": [CUT, WIDER]}
CASES = {
    "linear": {
        "member-0-level-0": LAYER,
        "member-0-level-1": LAYER,
        "features": {"idf": [put(0, np.nan), CUT, WIDER], **{f"0.{name}": changes for name, changes in TERMS.items()}},
        "labels": {
            "train_counts": [put(0, -1), put(0, LARGE), CUT],
            "scored": [put(0, LARGE), put(0, -1), put(slice(None), 0), CUT],
        },
        "clusters": {"member-0": [CUT, WIDER]},
    },
    "knn": {
        "pool": {
            "ptr": [put(1, LARGE), put(-1, LARGE), put(0, -1), CUT],
            "texts": [put(0, LARGE), put(0, -1), CUT],
            "weights": [put(0, np.nan), CUT, WIDER],
            "hashes": [CUT, WIDER],
        },
        "pool-labels": {"indptr": [put(-1, LARGE), put(1, -1), CUT], "indices": [put(0, LARGE), put(0, -1), CUT]},
    },
    "knn words": {
        "pool": {"points": [put(0, np.nan), CUT, WIDER, lambda array: array[:, 1:]], "hashes": [CUT]},
        "points": {"vectors": [CUT, put(0, np.inf), WIDER]},
    },
    "lexical": {
        "names": {
            "hashes": [CUT, WIDER],
            "slots": TERMS["slots"],
            "name_ptr": [put(-1, LARGE), put(0, -1), CUT],
            "name_labels": [put(0, LARGE), put(0, -1), CUT],
            "name_preferred": [put(0, 2), CUT, WIDER],
            "name_orders": [CUT, WIDER],
            "clue_ptr": [put(-1, LARGE), put(0, -1), CUT],
            "letters": [put(0, -1), CUT],
        },
        "ranker": {
            "weights": [put(0, np.nan), CUT, WIDER_INT],
            "new_weights": [put(0, np.inf), CUT],
            "counts.texts": [put(0, -1), CUT, WIDER],
            "counts.names": [CUT, WIDER],
            "n_texts": [put(0, 0), CUT],
        },
    },
    "stack": {
        "facts": {
            "counts": [put(0, np.nan), put(0, -1), CUT],
            "pairs": [put(0, LARGE), put(0, -1), CUT],
            "shares": [put(0, np.nan), CUT, WIDER],
        },
        "precision": {"precision": [put(0, np.inf), CUT, WIDER]},
        "ranker": {
            "roots": [put(0, LARGE), put(0, -1), WIDER],
            "feature": [put(0, LARGE), put(0, -2), CUT],
            "left": [put(0, LARGE), put(0, 0), CUT],
            "right": [put(0, LARGE), put(0, 0), CUT],
            "threshold": [put(0, np.nan), CUT],
            "value": [put(0, np.inf), CUT],
        },
        "member-0-member-0-level-0": {"entry_child": LAYER["entry_child"]},
    },
}


def cases() -> Iterator[Any]:
    for model, files in CASES.items():
        for file, arrays in files.items():
            for name, changes in arrays.items():
                for number, change in enumerate(changes):
                    yield pytest.param(model, file, name, change, id=f"{model}-{file}-{name}-{number}")


@pytest.mark.parametrize(("name", "file", "array", "change"), list(cases()))
def test_arrays_that_do_not_fit_together_are_refused(
    models: dict[str, Path], tmp_path: Path, name: str, file: str, array: str, change: Callable[[Any], Any]
) -> None:
    model = shutil.copytree(models[name], tmp_path / "m")
    place = model / f"{file}.safetensors"
    arrays = {key: np.array(value) for key, value in map_arrays(place).items()}
    arrays[array] = change(arrays[array])
    store_arrays(place, arrays)
    reseal(model)
    with pytest.raises(ModelFormatError, match=r"damaged|cannot open"):
        load_model(model)


@pytest.mark.parametrize("name", OPTIONS)
def test_models_as_they_were_written_open(models: dict[str, Path], tmp_path: Path, name: str) -> None:
    model = shutil.copytree(models[name], tmp_path / "m")
    reseal(model)
    assert load_model(model).predict(["word1a word1b"], 2) == load_model(models[name]).predict(["word1a word1b"], 2)


def places_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places_of(below, (*path, key))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("value", [None, -1, "x", [], {}, 1.5, [{"x": None}]], ids=str)
def test_a_manifest_that_somebody_wrote_is_one_clear_line_or_a_model(
    models: dict[str, Path], tmp_path: Path, name: str, value: Any
) -> None:
    model = shutil.copytree(models[name], tmp_path / "m")
    whole = (model / MANIFEST).read_text()
    manifest = json.loads(whole)
    for path in places_of({key: value for key, value in manifest.items() if key not in ("checksum", "options")}):
        for gone in (False, True):

            def change(
                manifest: dict[str, Any], path: tuple[str, ...] = path, gone: bool = gone, value: Any = value
            ) -> None:
                for key in path[:-1]:
                    manifest = manifest[key]
                manifest[path[-1]] = value
                if gone:
                    del manifest[path[-1]]

            (model / MANIFEST).write_text(whole)
            reseal(model, change)
            try:
                opened = load_model(model, verify=False)
                opened.predict(["word1a word1b"], 2)
                opened.describe()
            except LongtailError as error:
                assert "\n" not in str(error)


def test_labels_without_a_name_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    whole = pa.ipc.open_file(str(models["linear"] / "labels.arrow")).read_all()
    n = whole.num_rows
    for change in ({"name": [None] * n}, {"id": list(range(n))}, {"parents": [[None]] * n}):
        (column,) = change
        values = pa.array(change[column], whole.schema.field(column).type if column != "id" else None)
        table = whole.set_column(whole.schema.names.index(column), column, values)
        model = shutil.copytree(models["linear"], tmp_path / "m", dirs_exist_ok=True)
        with pa.OSFile(str(model / "labels.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        reseal(model)
        with pytest.raises(ModelFormatError, match="label"):
            load_model(model)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("config", "hidden_size"), "x"),
        (("config", "layer_norm_eps"), 2**31),
        (("config", "model_type"), 3),
        (("config",), []),
        (("config", "num_hidden_layers"), 2**31),
        (("config", "intermediate_size"), 2**31),
        (("config", "vocab_size"), 3),
        (("origin",), "x"),
        (("origin",), [None]),
        (("origin", "source"), 3),
    ],
)
def test_an_encoder_that_somebody_described_is_one_clear_line_or_a_model(
    network: Path, tmp_path: Path, place: tuple[str, ...], value: Any
) -> None:
    model = shutil.copytree(network, tmp_path / "m")

    def change(manifest: dict[str, Any]) -> None:
        holder = manifest["member-0"]["encoder"]
        for name in place[:-1]:
            holder = holder[name]
        holder[place[-1]] = value

    reseal(model, change)
    try:
        load_model(model).describe()
    except LongtailError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("version", [-1, 0, True, "2", 1.0, None])
def test_a_format_that_never_was_is_refused(models: dict[str, Path], tmp_path: Path, version: Any) -> None:
    model = shutil.copytree(models["linear"], tmp_path / "m")
    reseal(model, lambda manifest: manifest.update(format=version))
    with pytest.raises(ModelFormatError, match="format must be a number from 1"):
        load_model(model)


@pytest.mark.parametrize(
    "parents",
    [
        [np.zeros(2, np.int32), np.array([0, 2, 1], np.int32)],
        [np.zeros(2, np.int32), np.array([0, -1, 1], np.int32)],
        [np.array([0, 1], np.int32), np.array([0, 1, 1], np.int32)],
        [np.zeros(2, np.int32), np.array([0, 1], np.int32)],
        [np.zeros(2, np.int32), np.array([0, 1, 1], np.int64)],
    ],
    ids=["above", "below", "root", "labels", "type"],
)
def test_clusters_that_are_not_there_are_refused(parents: list[Any]) -> None:
    with pytest.raises(ModelFormatError, match="the label index is damaged: parents_"):
        LabelIndex.from_arrays({f"parents_{t}": array for t, array in enumerate(parents)}, 3)


@pytest.mark.parametrize(
    ("order", "edges"), [([0, 1, 1], [0, 3]), ([0, 1, 3], [0, 3]), ([2, 0, 1], [0, 1]), ([2, 0, 1], [0, 1, 1, 3])]
)
def test_buckets_that_do_not_hold_every_label_once_are_refused(order: list[int], edges: list[int]) -> None:
    with pytest.raises(ModelFormatError, match="buckets is damaged"):
        Buckets.from_arrays({"order": np.array(order), "edges": np.array(edges)}, 3)


def test_sparse_rows_that_point_elsewhere_are_refused(tmp_path: Path) -> None:
    right = Rows(np.array([0, 1, 3]), np.array([0, 1, 4], np.int32), np.ones(3, np.float32), 5)
    for name, change in {"indptr": put(1, 9), "indices": put(0, 5), "values": put(0, np.nan)}.items():
        with write_folder(tmp_path / "rows", "test") as writer:
            writer.arrays("rows", right.arrays())
        assert len(Rows.load(Folder(tmp_path / "rows", "test"), "rows", 5)) == 2
        with write_folder(tmp_path / "rows", "test") as writer:
            writer.arrays("rows", {**right.arrays(), name: change(right.arrays()[name].copy())})
        with pytest.raises(ModelFormatError, match=f"{name} must"):
            Rows.load(Folder(tmp_path / "rows", "test"), "rows", 5)
