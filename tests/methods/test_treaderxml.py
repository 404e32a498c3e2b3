"""TReaderXML: what its teacher adds, and the network without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError
from longtail.methods import create_method, load_model
from longtail.methods.treaderxml import TReaderXML
from longtail.nn.heads.softmax_sigmoid import SoftmaxSigmoid

N_THEMES = 6
THEMES = ["apples", "birds", "castles", "dances", "engines", "forests"]
Quick = Callable[..., dict[str, Any]]


def rare_words(seed: int, n: int) -> Dataset:
    """Texts of words that only a few other texts share: who counts words finds those, who knows few words does not."""
    rng = np.random.default_rng(seed)

    def part() -> tuple[list[str], list[list[str]]]:
        themes = rng.integers(0, N_THEMES, n)
        texts = [" ".join(f"{THEMES[theme]}{rng.integers(12)}" for _ in range(4)) + " of the" for theme in themes]
        return texts, [[THEMES[theme]] for theme in themes]

    return Dataset.of({"train": part(), "test": part()})


def hits(model: Any, data: Dataset) -> float:
    found = model.top_k(data.test, 1).labels[:, 0]
    ids = [model.vocabulary_.ids[label] for label in found]
    return float(np.mean([one == data.test.label_names(row)[0] for row, one in enumerate(ids)]))


@pytest.mark.parametrize("votes", [0.0, 3.0])
def test_what_only_the_neighbours_tell_is_learned_with_the_teacher_and_not_without(votes: float) -> None:
    """The readers know six words beside those of the labels' names, the points of neighbours all of them."""
    data = rare_words(0, 120)
    named = [f"{text} {' '.join(THEMES)}" for text in data.train.texts["text"].to_pylist()]
    data = Dataset.of(
        {
            "train": (named, [data.train.label_names(row) for row in range(120)]),
            "test": (data.test.texts["text"].to_pylist(), [data.test.label_names(row) for row in range(120)]),
        }
    )
    options: dict[str, Any] = {
        "encoder": {"vectors": {"width": 16}, "words": {"max_words": 8}, "bottleneck": 16, "dropout_words": 0.0},
        "scope": {"parents": "none", "n_neighbours": 3, "votes": votes},
        "dropout": 0.0,
        "training": {"epochs": 12, "batch_size": 16, "rate": 1e-2, "head_rate": 2e-2},
    }
    with_it = create_method("treaderxml", options).fit(data.train, threads=1)
    without = create_method("treaderxml", options, {"teacher": False}).fit(data.train, threads=1)
    assert hits(with_it, data) > 0.9
    assert hits(without, data) < 0.5


def test_without_a_teacher_nothing_of_it_is_made_or_kept(tiny: Any, quick: Quick, tmp_path: Path) -> None:
    model = create_method("treaderxml", quick("treaderxml", epochs=1), {"teacher": False}).fit(tiny().train, threads=1)
    model.save(tmp_path / "m")
    names = {file.name.split(".")[0] for file in (tmp_path / "m").iterdir()}
    assert not names & {"points", "pool", "pool-labels", "parents"}
    assert not [name for name in model.tagger_.network.state_dict() if "scope" in name or "nothing" in name]
    [again], [before] = load_model(tmp_path / "m").predict(["word1a"], 2), model.predict(["word1a"], 2)
    assert [one.id for one in again] == [one.id for one in before]
    assert [one.score for one in again] == pytest.approx([one.score for one in before], abs=1e-5)
    assert (
        model.estimate_resources(tiny().train).memory_bytes
        < TReaderXML(**quick("treaderxml")).estimate_resources(tiny().train).memory_bytes
    )


def test_validation_texts_are_held_out_of_the_pool_while_training_and_in_it_afterwards(
    tiny: Any, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtail.neighbours import teacher
    from longtail.nn.tagger import split_rows

    pools: list[int] = []
    build = teacher.NeighbourIndex.build.__func__
    monkeypatch.setattr(
        teacher.NeighbourIndex,
        "build",
        classmethod(lambda cls, points, *more: pools.append(len(points)) or build(cls, points, *more)),
    )
    model = create_method("treaderxml", quick("treaderxml", epochs=1, validation=0.25)).fit(tiny().train, threads=1)
    kept, held = split_rows(60, model.options.training, 0)
    assert (len(kept), len(held)) == (45, 15)
    assert sorted(pools) == [45, 60]
    assert len(model.teacher_.pool.index) == 60


@pytest.mark.parametrize(
    "more",
    [
        {
            "loss": "softmax_sigmoid",
            "encoder": {"mask": "anticausal", "positions": "none", "raw": False},
            "scope": {"parentless": "drop", "votes": 0.0},
        },
        {"encoder": {"layers": []}},
        {"encoder": {"layers": ["masked"]}},
        {"encoder": {"layers": ["full"]}},
        {"encoder": {"layers": ["full", "masked"]}},
        {"encoder": {"residual": False}},
        {"encoder": {"pooling": "flatten"}, "scope": {"points": {"kind": "words"}}},
    ],
)
def test_the_papers_ablations_and_printed_rules_can_be_trained(tiny: Any, quick: Quick, more: dict[str, Any]) -> None:
    model = create_method("treaderxml", quick("treaderxml", epochs=2), more).fit(tiny().train, threads=1)
    assert np.isfinite(model.top_k(tiny().test, 3).scores).all()
    assert isinstance(model.tagger_.network.head, SoftmaxSigmoid) == (more.get("loss") == "softmax_sigmoid")


def test_fields_are_read_by_encoder_and_points_alike() -> None:
    made = TReaderXML.options_for_fields("title,text", {"scope": {"points": {"kind": "words"}}})
    model = TReaderXML(**made)
    assert model.options.encoder.tokens.columns == ("title", "text")
    assert model.options.scope.points.tokens.columns == ("title", "text")
    assert set(TReaderXML(**TReaderXML.options_for_fields("title,text", {})).columns) == {"title", "text"}


@pytest.mark.parametrize("points", ["tfidf", "words"])
def test_fields_change_what_is_read_and_nothing_else(points: str) -> None:
    given = {"n_neighbours": 7, "points": {"kind": points}}
    model = create_method("treaderxml", {"scope": given}, fields="title,text")
    assert (model.options.scope.n_neighbours, model.options.scope.points.kind) == (7, points)
    assert set(model.columns) == {"title", "text"}
    knn = create_method("knn", given, fields="title")
    assert (knn.options.n_neighbours, knn.options.points.kind, knn.columns) == (7, points, ("title",))


def test_only_encoders_that_read_a_scope_can_be_chosen() -> None:
    with pytest.raises(ConfigError, match="encoder"):
        TReaderXML(encoder={"kind": "bilstm"})


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        ({"scope_words": 0}, "encoder.scope_words must be at least 1 to read a label scope, got 0"),
        (
            {"kind": "transformer", "tokens": {"max_tokens": 192}},
            "encoder.scope_tokens must be at most half of max_tokens (192), got 128; lower it",
        ),
    ],
)
def test_a_scope_that_has_no_room_is_found_before_anything_is_done(encoder: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        create_method("treaderxml", {"encoder": encoder})
    assert str(error.value) == f"treaderxml: {expected}"
    assert not create_method("treaderxml", {"encoder": encoder, "teacher": False}).options.teacher


def test_a_search_that_does_not_fit_the_points_is_told_with_its_whole_path() -> None:
    with pytest.raises(ConfigError, match=r"^treaderxml: scope\.search\.kind must be 'exact' where points are"):
        create_method("treaderxml", {"scope": {"search": {"kind": "faiss"}}})


@pytest.mark.parametrize("name", ["treaderxml", "treaderxml:transformer"])
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_lighter_numbers_find_nearly_the_same(
    tiny: Any, quick: Quick, name: str, precision: Any, tmp_path: Path
) -> None:
    data = tiny()
    create_method("treaderxml", quick(name)).fit(data.train, threads=1).save(tmp_path / "m")
    usual = load_model(tmp_path / "m").top_k(data.test, 1, threads=1)
    light = load_model(tmp_path / "m", precision=precision).top_k(data.test, 1, threads=1)
    assert not np.array_equal(light.scores, usual.scores)
    assert np.mean(light.labels == usual.labels) > 0.9


def test_votes_have_no_place_in_the_papers_loss() -> None:
    with pytest.raises(ConfigError, match=r"scope\.votes must be 0 with loss 'softmax_sigmoid'"):
        create_method("treaderxml", {"loss": "softmax_sigmoid"})
    assert (
        create_method("treaderxml", {"loss": "softmax_sigmoid", "scope": {"votes": 0}}).options.loss
        == "softmax_sigmoid"
    )
