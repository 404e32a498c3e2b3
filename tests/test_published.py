"""The published counts and figures: complete, consistent with each other, and readable from a folder of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail.errors import ConfigError
from longtail.methods.base import METHODS
from longtail.metrics import MetricOptions
from longtail.presets import preset_names
from longtail.published import DataCounts, Published, Result

PAPERS = Published.load()
MEAN_SLACK = 0.005
"""Eurlex-4K's two means of AttentionXML's release contradict each other by 0.45 %; all others by less than 0.1 %."""

COUNTS = """
["lab/toys"]
title = "Toys"
n_train = 4
n_test = 2
n_labels = 3
labels_per_text = 1.5
"""
RESULTS = """
[[result]]
preset = "linear/fast"
data = "lab/toys"
metrics = { "P@1" = 50 }
kind = "single"
source = "our notes"
tolerance = 0.5
"""


def folder_of(path: Path, counts: str = COUNTS, results: str = RESULTS) -> Path:
    (path / "datasets.toml").write_text(counts)
    (path / "results.toml").write_text(results)
    return path


@pytest.mark.parametrize("counts", PAPERS.datasets.values(), ids=PAPERS.datasets)
def test_the_means_of_a_data_set_follow_from_its_counts(counts: DataCounts) -> None:
    if counts.texts_per_label is not None:
        expected = counts.n_train * counts.labels_per_text / counts.n_labels
        assert counts.texts_per_label == pytest.approx(expected, rel=MEAN_SLACK)


@pytest.mark.parametrize("counts", PAPERS.datasets.values(), ids=PAPERS.datasets)
def test_other_numbers_of_labels_are_close_to_the_first(counts: DataCounts) -> None:
    assert all(n == pytest.approx(counts.n_labels, rel=0.01) for n in counts.other_n_labels)
    assert counts.n_labels not in counts.other_n_labels


def test_both_families_are_there_and_differ_though_they_share_names() -> None:
    families = {name.partition("/")[0] for name in PAPERS.datasets}
    assert families == {"xbert-2019", "attentionxml"}
    for name in ("eurlex-4k", "amazoncat-13k", "wiki-500k"):
        old, new = PAPERS.datasets[f"xbert-2019/{name}"], PAPERS.datasets[f"attentionxml/{name}"]
        assert old.n_labels < new.n_labels
        assert old.n_train < new.n_train
        assert old.n_dev
        assert not new.n_dev


def test_the_dev_part_of_the_older_family_is_a_tenth_of_its_training_texts() -> None:
    older = [counts for counts in PAPERS.datasets.values() if counts.n_dev]
    assert len(older) == 4
    assert all(counts.n_dev == pytest.approx((counts.n_dev + counts.n_train) / 10, rel=0.003) for counts in older)


def test_clusters_are_powers_of_two_with_about_as_many_labels_each() -> None:
    cut = [counts for counts in PAPERS.datasets.values() if counts.n_clusters]
    assert all((counts.n_clusters or 0).bit_count() == 1 for counts in cut)
    assert all(50 < counts.n_labels / (counts.n_clusters or 1) < 60 for counts in cut)


@pytest.mark.parametrize("result", PAPERS.results, ids=lambda result: f"{result.preset} on {result.data}")
def test_a_result_can_be_run_and_measured(result: Result) -> None:
    assert result.preset in preset_names() or result.preset.partition("/")[0] not in METHODS.names()
    lengths = [int(name.partition("@")[2]) for name in result.metrics]
    assert set(result.metrics) <= set(MetricOptions(at=tuple(lengths)).names())


@pytest.mark.parametrize("result", PAPERS.results, ids=lambda result: f"{result.preset} on {result.data}")
def test_figures_of_a_result_are_in_order(result: Result) -> None:
    by_length = {(name.partition("@")[0], int(name.partition("@")[2])): value for name, value in result.metrics.items()}
    precision = [by_length["P", k] for k in (1, 3, 5) if ("P", k) in by_length]
    assert len(precision) > 1
    assert precision == sorted(precision, reverse=True), "precision falls with longer lists on all these data sets"
    found = [value for (family, _), value in sorted(by_length.items()) if family == "R"]
    assert found == sorted(found), "a longer list never finds less"
    counts = PAPERS.datasets[result.data]
    for (family, k), value in by_length.items():
        most = 100 * min(1.0, counts.labels_per_text / k)
        assert family != "P" or value <= most, f"a text has too few labels for P@{k} = {value}"


@pytest.mark.parametrize("result", PAPERS.results, ids=lambda result: f"{result.preset} on {result.data}")
def test_a_result_says_whose_it_is_and_how_close_is_close(result: Result) -> None:
    assert result.kind == "single" or result.kind.startswith("ensemble of ")
    assert len(result.source) > 10
    assert 0.1 <= result.tolerance <= 2


def test_no_result_stands_twice() -> None:
    seen = [(result.preset, result.data, result.source) for result in PAPERS.results]
    assert len(seen) == len(set(seen))


def test_results_are_found_by_preset_and_data_set() -> None:
    found = PAPERS.of_preset("linear/parabel")
    assert found["attentionxml/eurlex-4k"][0].metrics == {"P@1": 82.12, "P@3": 68.91, "P@5": 57.89}
    assert found["xbert-2019/eurlex-4k"][0].metrics["P@1"] == 82.48


def test_a_preset_without_figures_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no published figures for 'linear/parabell'; did you mean 'linear/parabel'"):
        PAPERS.of_preset("linear/parabell")
    with pytest.raises(
        ConfigError, match=r"no published figures for 'linear/fast'; there are some for .*linear/dismec"
    ):
        PAPERS.of_preset("linear/fast")


def test_a_folder_of_ones_own_is_read(tmp_path: Path) -> None:
    own = Published.load(folder_of(tmp_path))
    assert own.presets() == ["linear/fast"]
    assert own.datasets["lab/toys"].n_labels == 3


@pytest.mark.parametrize(
    ("counts", "results", "fault"),
    [
        (COUNTS.replace("n_test = 2", "n_tests = 2"), RESULTS, r"datasets\.toml, lab/toys: .*unknown option 'n_tests'"),
        (COUNTS.replace("n_train = 4", "n_train = 0"), RESULTS, r"n_train must be greater than 0, got 0"),
        ("toys = 3\n", RESULTS, r"datasets\.toml: 'toys' must be a table, got 3"),
        (COUNTS, RESULTS.replace("P@1", "Prec@1"), r"results\.toml, result 1: .*Prec@1"),
        (COUNTS, RESULTS.replace("= 50", "= 150"), r"must be less than or equal to 100, got 150"),
        (COUNTS, RESULTS.replace("lab/toys", "lab/toy"), r"has no data set 'lab/toy'; did you mean 'lab/toys'"),
        (COUNTS, "# nothing\n", r"results\.toml must hold \[\[result\]\] tables, got none"),
        (COUNTS, "result = [1]\n", r"results\.toml: 'result 1' must be a table, got 1"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, counts: str, results: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Published.load(folder_of(tmp_path, counts, results))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*datasets\.toml"):
        Published.load(tmp_path)
