"""`longtail reproduce`, on small data in the layout of each release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.methods import load_model
from longtail.text.tfidf import Tfidf

Run = Callable[..., Any]

FAST = ("--set", "n_seeds=1")
COUNTS = {"n_train": 60, "n_test": 60, "n_labels": 8}


def lines(values: list[str]) -> str:
    return "".join(f"{value}\n" for value in values)


def label_lists(dataset: Dataset, part: str) -> list[list[str]]:
    split = dataset.split(part)
    return [[dataset.vocabulary.ids[label] for label in split.labels[row]] for row in range(len(split))]


@pytest.fixture
def attentionxml(tmp_path: Path, tiny: Callable[..., Dataset]) -> Path:
    """The layout of AttentionXML's release: texts, labels and sparse features, row by row."""
    folder, dataset = tmp_path / "Toys-8", tiny()
    folder.mkdir()
    for part in ("train", "test"):
        texts = dataset.split(part).texts["text"].to_pylist()
        (folder / f"{part}_raw_texts.txt").write_text(lines([f"{text} /SEP/" for text in texts]))
        (folder / f"{part}_texts.txt").write_text(lines(texts))
        (folder / f"{part}_labels.txt").write_text(lines([" ".join(row) for row in label_lists(dataset, part)]))
        (folder / f"{part}_v1.txt").write_text(lines(["0 1:0.5"] * len(texts)))
    return folder


@pytest.fixture
def xbert(tmp_path: Path, tiny: Callable[..., Dataset]) -> Path:
    """The layout of X-BERT's release: matrices, and lines of label numbers and texts in a folder of its own."""
    folder, dataset = tmp_path / "Toys-8", tiny(splits=("train", "dev", "test"))
    (folder / "mlc2seq").mkdir(parents=True)
    tfidf = Tfidf()
    tfidf.fit_transform(dataset.train.texts)
    for part, long, short in (("train", "train", "trn"), ("dev", "valid", "val"), ("test", "test", "tst")):
        split = dataset.split(part)
        numbers = [",".join(map(str, split.labels[row].tolist())) for row in range(len(split))]
        rows = [f"{own}\t{text}" for own, text in zip(numbers, split.texts["text"].to_pylist(), strict=True)]
        (folder / "mlc2seq" / f"{long}.txt").write_text(lines(rows))
        sp.save_npz(folder / f"X.{short}.npz", tfidf.transform(split.texts))
        sp.save_npz(folder / f"Y.{short}.npz", split.labels.to_scipy())
    frequency = dataset.train.labels.texts_per_label().tolist()
    named = [f"{n}\tLabel {label}" for label, n in enumerate(frequency)]
    (folder / "mlc2seq" / "label_vocab.txt").write_text(lines(named))
    return folder


@pytest.fixture
def papers(tmp_path: Path, tiny: Callable[..., Dataset]) -> Callable[..., Path]:
    """A folder of published tables about the toys: `papers(n_train=61, result={"metrics": {"P@1": 99.0}})`; `more` are
    further rows of the table."""
    labels = tiny().train.labels
    mean = len(labels.indices) / len(labels)

    def write(result: dict[str, Any] | None = None, more: list[dict[str, Any]] | None = None, **changed: Any) -> Path:
        folder = tmp_path / "papers"
        folder.mkdir(exist_ok=True)
        counts = {"title": "Toys", "labels_per_text": mean} | COUNTS | changed
        published = {
            "preset": "linear/parabel",
            "data": "lab/toys",
            "metrics": {"P@1": 80.0, "R@5": 80.0},
            "kind": "ensemble of 3",
            "source": "our notes, table 2",
            "tolerance": 30.0,
        } | (result or {})
        metrics = published.pop("metrics")
        about = {"data": published.pop("data"), "source": published.pop("source"), "columns": list(metrics)}
        rows = [{"system": "Toy", "figures": list(metrics.values()), **published}, *(more or [])]
        (folder / "datasets.toml").write_text('["lab/toys"]\n' + toml(counts))
        written = "[[table]]\n" + toml(about) + "".join("[[table.rows]]\n" + toml(row) for row in rows)
        (folder / "results.toml").write_text(written)
        return folder

    return write


def toml(values: dict[str, Any]) -> str:
    return lines([f"{name} = {json.dumps(value)}" for name, value in values.items()])


def test_our_figures_stand_beside_the_published_ones_with_a_verdict(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = longtail("reproduce", "linear/parabel", attentionxml, "--published", papers(), "--out", out)
    assert ran.code == 0, ran.err
    assert "linear/parabel on lab/toys: 60 training texts, 60 test texts" in ran.out
    assert "published: ensemble of 3; our notes, table 2" in ran.out
    assert "agrees: no figure differs by more than 30" in ran.out
    rows = [line.split() for line in ran.out.splitlines() if line.strip().startswith(("P@1", "R@5"))]
    assert [row[0] for row in rows] == ["P@1", "R@5"]
    assert all(float(ours) - 80 == pytest.approx(float(by), abs=0.006) for _, ours, _, by, _ in rows)
    assert "note:" not in ran.err
    assert load_model(out / "model").facts_["name"] == "lab/toys"
    assert {"model", "report.html", "report.json", "reproduced.json"} <= {file.name for file in out.iterdir()}


def test_json_holds_counts_figures_and_verdict_and_lies_in_the_folder_too(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    folder = papers({"metrics": {"P@1": 0.0, "P@3": 0.0}, "tolerance": 0.5})
    command = ["reproduce", "linear/parabel", attentionxml, "--published", folder, "--out", tmp_path / "out"]
    ran = longtail(*command, "--json", "--quiet")
    found = ran.json
    assert ran.err == ""
    assert (found["preset"], found["data"], found["verdict"]) == ("linear/parabel", "lab/toys", "above")
    assert all(count["agrees"] for count in found["counts"])
    assert found["results"][0]["rows"][0]["ours"] == pytest.approx(100 * found["metrics"]["P@1"])
    assert set(found["metrics"]) >= {"P@1", "P@3", "R@3"}
    assert found["changed_options"] == {}
    assert json.loads((tmp_path / "out" / "reproduced.json").read_text()) == found


def test_a_row_of_ablations_has_its_own_options_and_figures_and_quoted_systems_stand_beside(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    ablation = {"system": "1: one tree", "figures": [0.0, 0.0], "preset": "linear/parabel", "settings": ["n_seeds=1"]}
    quoted = {"system": "FastXML", "figures": [70.5, "-"]}
    folder = papers(more=[ablation | {"kind": "single", "tolerance": 0.5}, quoted])
    command = ["reproduce", "linear/parabel", attentionxml, "--published", folder]
    ran = longtail(*command, "--row", "1", "--out", tmp_path / "one")
    assert ran.code == 0, ran.err
    assert "published: single; our notes, table 2, 1: one tree" in ran.out
    assert "above: P@1, R@5 by more than 0.5" in ran.out
    assert "note: options are not those of the preset" not in ran.err
    assert load_model(tmp_path / "one" / "model").options.n_seeds == 1
    cells = {line.split("  ")[0].strip(): line.split() for line in ran.out.splitlines() if line.strip()}
    assert cells["FastXML"] == ["FastXML", "70.50", "–"]
    assert "linear/parabel, this run" in cells
    found = json.loads((tmp_path / "one" / "reproduced.json").read_text())
    assert [row["system"] for row in found["tables"][0]["rows"]] == ["Toy", "1: one tree", "FastXML"]
    whole = longtail(*command, "--out", tmp_path / "whole", "--json", "--quiet").json
    assert [result["row"] for result in whole["results"]] == ["Toy"], "rows with settings are judged with these only"
    ran = longtail(*command, "--row", "2", "--limit", 0)
    assert ran.code == 2
    assert "no published row '2' for 'linear/parabel'; there are Toy, 1" in ran.err


def test_every_published_row_is_listed_with_what_reproduces_it(longtail: Run) -> None:
    ran = longtail("reproduce", "--list")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["XML-CNN", "33.41", "30.00", "27.42", "xml-cnn/amazon-670k"] in lines
    assert ["HAXMLNet", "+2.40", "+5.75", "+6.42", "quoted"] in lines
    assert ["BS", "75.30", "56.64", "43.03", "lightxml/wiki-500k", "--row", "BS"] in lines


def test_figures_that_fall_short_are_below(longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path) -> None:
    folder = papers({"metrics": {"P@1": 1.0, "P@5": 99.9}, "tolerance": 0.5})
    ran = longtail("reproduce", "linear/parabel", attentionxml, "--published", folder, "--out", tmp_path / "out")
    assert ran.code == 0
    assert "below: P@5 by more than 0.5" in ran.out


@pytest.mark.parametrize(
    ("preset", "layout", "settings"),
    [
        ("lightxml/eurlex-4k", "attentionxml",
         ['encoders=[{{model="{encoder}", n_layers=2, tokens={{max_tokens=32}}}}]', "training.epochs=1"]),
        ("aplc-xlnet/eurlex-4k", "attentionxml",
         ["encoder.model={encoder}", "encoder.tokens.max_tokens=32", "buckets.cuts=[4]", "training.n_steps=3"]),
        ("xbert/eurlex-4k", "xbert",
         ['recalls=[{{kind="transformer", model="{encoder}", tokens={{max_tokens=32}}}}]', "sentence_model={encoder}",
          "matcher.training.n_steps=3", "n_seeds=1"]),
    ],
)  # fmt: skip
def test_presets_of_networks_run_on_data_as_they_were_released(
    preset: str,
    layout: str,
    settings: list[str],
    longtail: Run,
    papers: Run,
    tmp_path: Path,
    tiny_encoder: Path,
    request: pytest.FixtureRequest,
) -> None:
    place = request.getfixturevalue(layout)
    place = place / "mlc2seq" if layout == "xbert" else place
    changed = [part for one in settings for part in ("--set", one.format(encoder=tiny_encoder))]
    folder = papers(result={"preset": preset})
    ran = longtail("reproduce", preset, place, "--published", folder, "--out", tmp_path / "out", *changed)
    assert ran.code == 0, ran.err
    assert f"{preset} on lab/toys: 60 training texts, 60 test texts" in ran.out
    assert load_model(tmp_path / "out" / "model").name == preset.split("/")[0]


def test_both_parts_of_an_x_bert_release_can_be_read(longtail: Run, xbert: Path, papers: Run, tmp_path: Path) -> None:
    folder = papers(n_dev=60)
    for place in (xbert, xbert / "mlc2seq"):
        ran = longtail("reproduce", "linear/parabel", place, "--published", folder, "--out", tmp_path / "out", *FAST)
        assert ran.code == 0, ran.err
        assert "agrees" in ran.out
    assert load_model(tmp_path / "out" / "model").vocabulary_.names[0] == "Label 0"


def test_sparse_features_of_a_release_are_counted(longtail: Run, xbert: Path, papers: Run) -> None:
    folder = papers(n_dev=60, n_features=7)
    ran = longtail("reproduce", "linear/parabel", xbert, "--published", folder, "--limit", 0)
    assert ran.code == 2
    assert "features: expected 7, got " in ran.err


def test_counts_that_differ_stop_in_one_line_that_names_them(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    folder = papers(n_train=61, n_labels=9)
    ran = longtail("reproduce", "linear/parabel", attentionxml, "--published", folder, "--out", tmp_path / "out")
    assert ran.code == 2
    assert ran.out == ""
    [line] = ran.err.splitlines()
    assert line == (
        "longtail: the data are not lab/toys (Toys): training texts: expected 61, got 60; "
        "labels: expected 9, got 8; go on all the same with --force"
    )
    assert not (tmp_path / "out").exists()


def test_force_goes_on_and_says_that_data_and_options_are_others(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    command = ["reproduce", "linear/parabel", attentionxml, "--published", papers(n_train=61), "--force", *FAST]
    ran = longtail(*command, "--out", tmp_path / "out")
    assert ran.code == 0
    assert "note: the data are not those of the paper: training texts: expected 61, got 60" in ran.err
    assert "note: options are not those of the preset: n_seeds" in ran.err
    assert load_model(tmp_path / "out" / "model").options.n_seeds == 1
    for name in ("report.html", "report.md"):
        page = (tmp_path / "out" / name).read_text()
        assert ", which is not lab/toys" in page
        assert "the data are not those of the paper: training texts: expected 61, got 60" in page
        assert "Beside the published figures" in page
    assert "no verdict" in ran.out


def test_a_limit_of_nothing_only_checks_the_data(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["reproduce", "linear/parabel", attentionxml, "--published", papers(), "--limit", 0]
    ran = longtail(*command)
    assert ran.code == 0
    assert "lab/toys: all counts agree" in ran.out
    assert not (tmp_path / "reproduced").exists()
    counts = longtail(*command, "--json").json["counts"]
    assert {"what": "labels", "expected": "8", "got": "8", "agrees": True} in counts
    differing = longtail(*command[:-2], "--published", papers(n_test=7), "--limit", 0, "--force")
    assert "lab/toys: counts differ" in differing.out


def test_a_dry_run_takes_the_first_texts_and_gives_no_verdict(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["reproduce", "linear/parabel", attentionxml, "--published", papers(), "--limit", 20, *FAST]
    ran = longtail(*command)
    assert ran.code == 0, ran.err
    assert "no verdict" in ran.out
    assert "agrees" not in ran.out
    assert "note: only the first 20 texts were used" in ran.err
    found = json.loads((tmp_path / "reproduced" / "linear-parabel-dry-run" / "reproduced.json").read_text())
    assert found["n_texts"] == {"train": 20, "test": 20}
    assert found["verdict"] is None
    assert "dry run with 20 texts" in (tmp_path / "reproduced" / "linear-parabel-dry-run" / "report.md").read_text()


def test_labels_that_only_test_has_count_as_missed(
    longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path
) -> None:
    file = attentionxml / "test_labels.txt"
    file.write_text(lines([f"{row} only-here" for row in file.read_text().splitlines()]))
    labels = papers(n_labels=9, result={"metrics": {"R@8": 1.0}})
    command = ["reproduce", "linear/parabel", attentionxml, "--published", labels, "--out", tmp_path / "out"]
    found = longtail(*command, "--json", *FAST, "--set", "search.beam=100", "--set", "search.upper_beam=100").json
    assert all(count["agrees"] for count in found["counts"])
    own = [len(row.split()) for row in file.read_text().splitlines()]
    best = sum((n - 1) / n for n in own) / len(own)
    assert found["metrics"]["R@8"] == pytest.approx(best), "all that train has are found, the other one never"


def test_the_data_set_can_be_named_and_is_else_told_by_its_counts(longtail: Run, attentionxml: Path) -> None:
    ran = longtail("reproduce", "linear/parabel", attentionxml)
    assert ran.code == 2
    assert "the data only come near " in ran.err
    assert "--as" in ran.err
    ran = longtail("reproduce", "linear/parabel", attentionxml, "--as", "attentionxml/amazon-670k")
    assert "the data are not attentionxml/amazon-670k (Amazon-670K of AttentionXML's release): training" in ran.err
    assert "labels: expected 670,091 or 667,317, got 8" in ran.err
    ran = longtail("reproduce", "linear/parabel", attentionxml, "--as", "attentionxml/amazon-67k")
    assert "did you mean 'attentionxml/amazon-670k'" in ran.err


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("linear/fast", "no published figures for 'linear/fast'"),
        ("linear/parable", "did you mean 'linear/parabel'"),
    ],
)
def test_a_preset_without_figures_is_refused_before_data_are_read(longtail: Run, preset: str, message: str) -> None:
    ran = longtail("reproduce", preset, "no-such-folder")
    assert ran.code == 2
    assert message in ran.err


def test_a_killed_run_can_be_asked_to_go_on(longtail: Run, attentionxml: Path, papers: Run, tmp_path: Path) -> None:
    command = ["reproduce", "linear/parabel", attentionxml, "--published", papers(), "--out", tmp_path / "out", *FAST]
    first = longtail(*command, "--json").json
    again = longtail(*command, "--json", "--resume").json
    assert again["metrics"] == first["metrics"]
