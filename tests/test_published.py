"""The published counts and figures: complete, consistent with each other, and readable from a folder of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from longtail import presets
from longtail.errors import ConfigError
from longtail.methods import create_method
from longtail.metrics import MetricOptions
from longtail.presets import preset_names
from longtail.published import DataCounts, Published, PublishedTable, Result, Row
from longtail.settings import with_settings

PAPERS = Published.load()
PRESETS = Path(presets.__file__).parent
DOCS = Path(__file__).resolve().parents[1] / "docs"
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
[[table]]
source = "our notes"
data = "lab/toys"
columns = ["P@1"]
rows = [
    { system = "Ours", figures = [50], preset = "linear/fast", kind = "single", tolerance = 0.5 },
    { system = "Theirs", figures = [40] },
]
"""
PRINTED = {
    "X-BERT (2019), Table 2": (19, 114, 5440.29),
    "X-BERT (2019), Table 3": (24, 144, 7173.19),
    "X-BERT (2019), Table 4": (22, 66, -282.81),
    "X-BERT (2019), Table 5": (1, 3, 72.67),
    "APLC-XLNet (ICML 2020), Table 4": (45, 135, 8260.67),
    "LightXML (AAAI 2021), Table 3": (38, 114, 7415.42),
    "LightXML (AAAI 2021), Table 4": (4, 12, 604.16),
    "LightXML (AAAI 2021), Table 5": (6, 18, 892.29),
    "LightXML (AAAI 2021), Table 6": (4, 12, 158.72),
    "TReaderXML (Wang et al. 2022), Table 2": (29, 130, 9749.27),
    "TReaderXML (Wang et al. 2022), Table 3": (7, 35, 2922.96),
    "TReaderXML (Wang et al. 2022), Table 4": (8, 24, 1549.39),
}
"""Every table of results of the four papers: rows with figures, figures, and their sum, counted in the printed tables.
The other tables are about data (datasets.toml) and settings (below)."""
APLC_SETTINGS = {  # Tables 2 and 3: width, labels of the head, tokens, three rates, batch, epochs
    "eurlex-4k": (768, (1978,), 512, 5e-5, 1e-4, 2e-3, 12, 8),
    "amazoncat-13k": (768, (6665,), 256, 5e-5, 1e-4, 2e-3, 48, 8),
    "wiki10-31k": (768, (15469,), 512, 1e-5, 1e-4, 1e-3, 12, 6),
    "wiki-500k": (512, (125252, 250504, 375756), 128, 5e-5, 1e-4, 2e-3, 96, 15),
    "amazon-670k": (384, (167522, 335045, 502566), 128, 5e-5, 1e-4, 2e-3, 28, 20),
}
LIGHTXML_SETTINGS = {  # Table 1: epochs, batch, bottleneck, tokens
    "eurlex-4k": (20, 16, None, 512),
    "amazoncat-13k": (5, 16, None, 512),
    "wiki10-31k": (30, 16, None, 512),
    "wiki-500k": (10, 32, 500, 128),
    "amazon-670k": (15, 16, 400, 128),
}
MORE_EPOCHS = 5
"""LightXML's released loop runs five epochs more than its paper states; the presets follow the code."""


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


CONSTANTS = {
    "eurlex-4k": ["a=0.55, b=1.5"],
    "wiki10-28k": ["a=0.55, b=1.5", "a=0.5, b=0.4"],
    "wiki10-31k": ["a=0.55, b=1.5", "a=0.5, b=0.4"],
    "amazoncat-13k": ["a=0.55, b=1.5", "a=0.6, b=2.6"],
    "wiki-500k": ["a=0.5, b=0.4"],
    "amazon-670k": ["a=0.6, b=2.6"],
    "rcv1": ["a=0.55, b=1.5"],
}


def test_a_data_set_has_the_propensity_constants_of_the_literature() -> None:
    for name, counts in PAPERS.datasets.items():
        assert [str(constants) for constants in counts.propensities] == CONSTANTS[name.partition("/")[2]], name


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_of_a_data_set_carries_its_propensity_constants(preset: str) -> None:
    data = preset.partition("/")[2].removesuffix("-ensemble")
    name = next((name for name in CONSTANTS if data.endswith(name)), "eurlex-4k")
    assert str(create_method(preset).options.propensity) == CONSTANTS[name][0]


def test_clusters_are_powers_of_two_with_about_as_many_labels_each() -> None:
    cut = [counts for counts in PAPERS.datasets.values() if counts.n_clusters]
    assert all((counts.n_clusters or 0).bit_count() == 1 for counts in cut)
    assert all(50 < counts.n_labels / (counts.n_clusters or 1) < 60 for counts in cut)


def of_table(source: str) -> list[tuple[PublishedTable, Row]]:
    return [(table, row) for table in PAPERS.tables if table.source == source for row in table.rows]


def named(result: Result) -> str:
    return f"{result.preset} on {result.data}: {result.source}"


@pytest.mark.parametrize("source", PRINTED)
def test_every_figure_of_the_four_papers_is_there(source: str) -> None:
    figures = [list(table.figures_of(row).values()) for table, row in of_table(source)]
    flat = [figure for row in figures for figure in row]
    assert (sum(map(bool, figures)), len(flat), pytest.approx(sum(flat), abs=0.001)) == PRINTED[source]


def test_no_table_of_the_four_papers_is_there_without_being_counted() -> None:
    papers = {source.partition(",")[0] for source in PRINTED}
    assert {table.source for table in PAPERS.tables if table.source.partition(",")[0] in papers} == set(PRINTED)


@pytest.mark.parametrize("table", PAPERS.tables, ids=lambda table: f"{table.source} on {table.data}")
def test_a_row_is_reproduced_by_a_preset_or_quoted(table: PublishedTable) -> None:
    for row in table.rows:
        if row.preset is None:
            assert row.tolerance is None, "what is quoted is not judged"
            assert not row.settings
        else:
            assert row.preset in preset_names()
            assert table.figures_of(row)
    assert len({row.system for row in table.rows}) == len(table.rows)
    assert all(row.preset is None for row in table.rows) or table.data is not None


def test_systems_that_longtail_does_not_have_are_only_quoted() -> None:
    elsewhere = {"PD-Sparse", "PPD-Sparse", "FastXML", "PfastreXML", "SLEEC", "AnnexML", "SLICE", "ProXML", "HAXMLNet"}
    quoted = {row.system for table in PAPERS.tables for row in table.rows if row.preset is None}
    judged = {row.system for table in PAPERS.tables for row in table.rows if row.preset is not None}
    assert elsewhere <= quoted
    assert not elsewhere & judged


@pytest.mark.parametrize("preset", PAPERS.presets())
def test_a_preset_names_the_tables_that_have_its_figures(preset: str) -> None:
    lines = (PRESETS / f"{preset}.toml").read_text().splitlines()
    header = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    for result in (result for result in PAPERS.results if result.preset == preset):
        assert ", ".join(result.source.split(", ")[:2]) in header.partition("Published figures: ")[2]


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_that_claims_figures_has_them(preset: str) -> None:
    claims = "# Published figures: " in (PRESETS / f"{preset}.toml").read_text()
    assert claims == (preset in PAPERS.presets())


def test_a_preset_has_figures_of_its_own_wherever_it_has_those_of_an_ablation() -> None:
    for preset in PAPERS.presets():
        for data, results in PAPERS.of_preset(preset).items():
            assert any(not result.settings for result in results), f"{preset} on {data}"


@pytest.mark.parametrize("result", PAPERS.results, ids=named)
def test_a_result_can_be_run_and_measured(result: Result) -> None:
    usual = create_method(result.preset)
    changed = type(usual).from_options(with_settings(usual.options, result.settings))
    assert (changed.options == usual.options) == (not result.settings)
    lengths = [int(name.partition("@")[2]) for name in result.metrics]
    assert set(result.metrics) <= set(MetricOptions(at=tuple(lengths)).names())


def test_settings_follow_from_the_name_of_the_row() -> None:
    by_name: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for result in PAPERS.results:
        by_name.setdefault((result.preset, result.row), set()).add(result.settings)
    assert all(len(settings) == 1 for settings in by_name.values()), "--row must not be ambiguous"


@pytest.mark.parametrize("table", PAPERS.tables, ids=lambda table: f"{table.source} on {table.data}")
def test_figures_of_a_row_are_in_order(table: PublishedTable) -> None:
    if table.over or table.data is None or "P@1" not in table.columns:
        return
    counts = PAPERS.datasets[table.data]
    for row in table.rows:
        metrics = table.figures_of(row)
        by_length = {(name.partition("@")[0], int(name.partition("@")[2])): value for name, value in metrics.items()}
        precision = [by_length["P", k] for k in (1, 3, 5) if ("P", k) in by_length]
        assert len(precision) > 1 or not metrics
        assert precision == sorted(precision, reverse=True), "precision falls with longer lists on all these data sets"
        found = [value for (family, _), value in sorted(by_length.items()) if family == "R"]
        assert found == sorted(found), "a longer list never finds less"
        for (family, k), value in by_length.items():
            most = 100 * min(1.0, counts.labels_per_text / k)
            assert family != "P" or value <= most, f"a text has too few labels for P@{k} = {value}"


@pytest.mark.parametrize("result", PAPERS.results, ids=named)
def test_a_result_says_whose_it_is_and_how_close_is_close(result: Result) -> None:
    assert result.kind == "single" or result.kind.startswith("ensemble of ")
    assert len(result.source) > 10
    assert 0.1 <= result.tolerance <= 2


@pytest.mark.parametrize("data", ["xbert-2019/eurlex-4k", "xbert-2019/wiki-500k"])
def test_the_gains_of_x_bert_follow_from_its_table_of_results(data: str) -> None:
    [table] = [table for table in PAPERS.of_data(data) if table.source == "X-BERT (2019), Table 2"]
    [gains] = [table for table in PAPERS.of_data(data) if table.source == "X-BERT (2019), Table 4"]
    by_system = {row.system: table.figures_of(row) for row in table.rows}
    for row in gains.rows:
        if row.system not in ("X-BERT", "fastText"):
            continue
        # the printed row of fastText on Eurlex-4K holds the gains of PD-Sparse
        system = "PD-Sparse" if (data, row.system) == ("xbert-2019/eurlex-4k", "fastText") else row.system
        for name, gain in gains.figures_of(row).items():
            base = by_system["Parabel"][name]
            assert gain == pytest.approx(100 * (by_system[system][name] - base) / base, abs=0.006)


def test_the_same_run_has_the_same_figures_in_every_table() -> None:
    for data in ("amazoncat-13k", "wiki-500k"):
        [whole, first] = [r for r in PAPERS.of_preset(f"xbert/{data}")[f"xbert-2019/{data}"] if not r.base][:2]
        assert first.source.endswith("Table 3, 0: ELMo and PIFA, BERT, linear, 6 trees")
        assert whole.metrics == first.metrics
    for data in ("wiki-500k", "amazon-670k"):
        found = PAPERS.of_preset(f"lightxml/{data}")[f"attentionxml/{data}"]
        assert [result.row for result in found] == ["LightXML-1", "D", "BS", "S"]
        assert found[0].metrics == found[1].metrics


@pytest.mark.parametrize("data", APLC_SETTINGS)
def test_aplc_xlnet_is_trained_as_its_paper_says(data: str) -> None:
    options: Any = create_method(f"aplc-xlnet/{data}").options
    training = options.training
    assert APLC_SETTINGS[data] == (
        options.labels.bottleneck,
        options.buckets.cuts,
        options.encoder.tokens.max_tokens,
        training.rate,
        training.bottleneck_rate,
        training.head_rate,
        training.batch_size,
        training.epochs,
    )
    assert options.labels.shrink == 2


@pytest.mark.parametrize("data", LIGHTXML_SETTINGS)
def test_lightxml_is_trained_as_its_paper_says_but_for_the_epochs_of_its_code(data: str) -> None:
    options: Any = create_method(f"lightxml/{data}").options
    epochs, batch, bottleneck, tokens = LIGHTXML_SETTINGS[data]
    assert options.training.epochs == epochs + MORE_EPOCHS
    assert options.training.batch_size == batch
    assert options.encoders[0].tokens.max_tokens == tokens
    assert bottleneck in (None, options.shortlist.bottleneck_width)


@pytest.mark.parametrize(
    "page", sorted({preset.partition("/")[0] for preset in PAPERS.presets()} | {"x-ttention", "x-transformer"})
)
def test_a_page_says_first_that_its_presets_never_met_the_data_of_the_paper(page: str) -> None:
    opening = (DOCS / "methods" / f"{page}.md").read_text().partition("\n## ")[0]
    assert "**Not reproduced yet.**" in opening


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
        (COUNTS, RESULTS.replace("P@1", "Prec@1"), r"results\.toml, table 1: .*Prec@1"),
        (COUNTS, RESULTS.replace("[50]", "[150]"), r"table 1, Ours: .*metrics must be per cent from 0 to 100, got 150"),
        (COUNTS, RESULTS.replace("[50]", "[50, 60]"), r"table 1: 'Ours' must have 1 figures, got 2"),
        (
            COUNTS,
            RESULTS.replace(", tolerance = 0.5", ""),
            r"'Ours' names a preset and must have a tolerance, got none",
        ),
        (
            COUNTS,
            RESULTS.replace("data =", 'over = "notes, X"\ndata ='),
            r"table 1: over must be 'source, system' of a row",
        ),
        (COUNTS, RESULTS.replace("lab/toys", "lab/toy"), r"has no data set 'lab/toy'; did you mean 'lab/toys'"),
        (COUNTS, "# nothing\n", r"results\.toml must hold \[\[table\]\] tables, got none"),
        (COUNTS, "table = [1]\n", r"results\.toml: 'table 1' must be a table, got 1"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, counts: str, results: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Published.load(folder_of(tmp_path, counts, results))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*datasets\.toml"):
        Published.load(tmp_path)
