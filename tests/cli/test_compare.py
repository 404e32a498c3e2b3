"""`longtail compare`."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.cli.compare import fit_table, read_entries
from longtail.methods import load_model
from longtail.tables import Table

from .test_bad_input import refused
from .test_interrupt import PATIENCE_S, started, wait_for

pytestmark = pytest.mark.slow

Run = Callable[..., Any]

SMALL = ["--methods", "linear,linear/fast,rare=linear", "--set", "rare:tail_weight=2", "--relative-to", "linear/fast"]


@pytest.fixture(scope="module")
def compared(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished comparison."""
    from longtail.cli.main import main

    out = tmp_path_factory.mktemp("compared") / "out"
    assert main(["compare", str(data), *SMALL, "--out", str(out), "--quiet", "--threads", "1"]) == 0
    return out


def test_a_table_a_page_and_the_models_are_left(compared: Path, data: Path) -> None:
    names = {path.name for path in compared.iterdir()}
    assert names == {"compare.html", "compare.json", "compare.md", "data.json", "runs"}
    made = json.loads((compared / "compare.json").read_text())
    assert made["relative_to"] == "linear/fast"
    assert [run["name"] for run in made["runs"]] == ["linear", "linear/fast", "rare"]
    assert made["data"]["split"] == "dev"
    assert all(run["error"] is None for run in made["runs"])
    assert made["runs"][0]["model"] == made["runs"][2]["model"]  # one training serves all tail weights
    assert len(list((compared / "runs").iterdir())) == 2
    model = load_model(made["runs"][1]["model"])
    assert model.facts_["name"] == "tiny"
    assert model.facts_["costs"]["threads"] == 1


def test_a_second_call_trains_nothing_and_says_so(longtail: Run, compared: Path, data: Path) -> None:
    logs = {log: log.stat().st_mtime_ns for log in compared.glob("runs/*/log.txt")}
    ran = longtail("compare", data, *SMALL, "--out", compared)
    assert ran.code == 0
    assert [line for line in ran.err.splitlines() if "of 3" in line] == [
        "1 of 3: linear, done before",
        "2 of 3: linear/fast, done before",
        "3 of 3: rare, done before",
    ]
    assert logs == {log: log.stat().st_mtime_ns for log in compared.glob("runs/*/log.txt")}
    assert "tiny, dev: 60 texts, 60 training texts, 8 labels" in ran.out
    assert re.search(r"linear +linear/fast +rare", ran.out)
    assert re.search(r"P@1 +\d+\.\d \(\d+\.\d–\d+\.\d\)", ran.out)
    assert "gain in PSP@5, %" in ran.out
    assert ran.out.splitlines()[-1] == f"page: {compared / 'compare.html'}"


def test_an_anchor_that_is_not_among_the_methods_is_trained_too(longtail: Run, compared: Path, data: Path) -> None:
    ran = longtail("compare", data, "--methods", "linear", "--relative-to", "linear/fast", "-o", compared, "--json")
    assert ran.code == 0
    assert ran.json["relative_to"] == "linear/fast"
    assert [run["name"] for run in ran.json["runs"]] == ["linear", "linear/fast"]


def test_json_has_all_of_it_and_a_method_is_added_to_what_is_there(longtail: Run, compared: Path, data: Path) -> None:
    ran = longtail("compare", data, "--methods", "linear,more=linear", "--set", "more:seed=5", "-o", compared, "--json")
    assert ran.code == 0
    assert "1 of 2: linear, done before" in ran.err
    assert "2 of 2: more\n" in ran.err
    assert ran.json["relative_to"] == "linear"
    assert ran.json["files"]["compare.md"] == str(compared / "compare.md")
    assert ran.json["runs"][1]["difference"]["metrics"]["P@1"]["low"] <= 0
    assert ran.json["runs"][1]["changed_options"] == {"seed": 5}


def test_a_run_that_fails_costs_the_others_nothing(longtail: Run, data: Path, tmp_path: Path) -> None:
    command = ["compare", data, "--methods", "linear,lost=linear", "--out", tmp_path / "out", "--threads", 1]
    ran = longtail(*command, "--set", "lost:features.blocks.0.column=none", "--relative-to", "lost")
    assert ran.code == 1
    assert "note: lost failed: features need the column 'none', the texts have only text" in ran.err
    assert "Traceback" not in ran.err
    assert "lost (failed)" in ran.out
    assert "lost failed: features need the column 'none', the texts have only text" in ran.out
    made = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert made["runs"][0]["results"]["metrics"]["P@1"] > 0.9
    assert made["runs"][1]["error"] == "features need the column 'none', the texts have only text"
    assert "1 of 2: linear, done before" in longtail(*command, "--set", "lost:features.blocks.0.column=none").err


def test_steps_of_the_run_are_drawn_on_a_terminal(on_terminal: Callable[..., str], data: Path, tmp_path: Path) -> None:
    shown = on_terminal("compare", data, "--methods", "linear", "--out", tmp_path / "out", "--threads", 1)
    assert "label weights" in shown
    assert re.search(r"label weights[ ━╸]+ 8 of 8 labels", shown)
    assert re.search(r"compare[ ━╸]+ 1 of 1 methods", shown)


def test_data_without_a_dev_part_are_held_out_alike_for_all(longtail: Run, data: Path, tmp_path: Path) -> None:
    file = data / "train.jsonl.zst"
    command = ["compare", file, "--out", tmp_path / "out", "--threads", 1, "--json", "--seed", 2, "--methods"]
    made = longtail(*command, "linear,other=linear", "--set", "other:seed=7").json
    assert made["data"]["split"] == "dev (held out)"
    assert (made["data"]["n_train_texts"], made["data"]["n_texts"]) == (54, 6)
    trained = [load_model(run["model"]).facts_ for run in made["runs"]]
    assert trained[0]["fingerprint"] == trained[1]["fingerprint"]
    assert trained[0]["held_out"]["seed"] == 2
    told = longtail("evaluate", made["runs"][0]["model"], file, "--json").json
    assert told["metrics"] == made["runs"][0]["results"]["metrics"]
    command[command.index("--seed") + 1] = 3
    refused(longtail(*command, "linear"), "on another part held out of them")


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")
@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_comparison_that_was_ended_goes_on(longtail: Run, tmp_path: Path, end: int, code: int) -> None:
    command = [
        "compare",
        "debtags-sample",
        "--methods",
        "linear",
        "--set",
        "linear:n_seeds=4",
        "--out",
        tmp_path / "out",
    ]
    with started(*command) as process:
        wait_for(tmp_path / "out" / "data.json", process)
        while not list((tmp_path / "out").glob("runs/*/model.work/member-1-tree/manifest.json")):
            assert process.poll() is None
        process.send_signal(end)
        printed, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert printed == ""
    assert "Traceback" not in told
    made = longtail(*command, "--json").json
    assert made["runs"][0]["costs"]["sittings"] == 2
    assert made["runs"][0]["results"]["metrics"]["P@1"] > 0.8


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--methods", ""], ["--methods must name methods", "got ''"]),
        (["--methods", " , "], ["--methods must name methods"]),
        (["--methods", "linear,linaer"], ["unknown method 'linaer'; did you mean 'linear'?"]),
        (["--methods", "linear,linear/parable"], ["unknown preset 'linear/parable'; did you mean 'linear/parabel'?"]),
        (["--methods", "linear,linear"], ["--methods must be different names, got 'linear'"]),
        (["--methods", "linear,=linear"], ["--methods must be different names, got '=linear'"]),
        (["--methods", "linear", "--relative-to", "linear/parable"],
         ["unknown preset 'linear/parable'; did you mean 'linear/parabel'?"]),
        (["--methods", "linear", "--set", "n_seeds=3"], ["--set must be NAME:option=value", "got 'n_seeds=3'"]),
        (["--methods", "linear", "--set", "liner:n_seeds=3"], ["not among --methods; did you mean 'linear'?"]),
        (["--methods", "linear", "--set", "linear:n_seed=3"], ["unknown option 'n_seed'; did you mean 'n_seeds'?"]),
        (["--methods", "linear", "--config", "linear"], ["--config must be NAME:FILE"]),
        (["--methods", "linear", "--config", "linear:none.toml"], ["cannot read none.toml"]),
        (["--methods", "linear", "--config", "linear:a", "--config", "linear:b"], ["--config must be given once"]),
        (["--methods", "linear", "--split", "train"], ["--split must not be train"]),
        (["--methods", "linear", "--split", "tset"], ["has no split 'tset'"]),
        (["--methods", "linear", "--at", "x"], ["--at must be whole numbers"]),
        (["--methods", "linear", "--threads", "0"], ["threads must be a whole number of at least 1, got 0"]),
    ],
)  # fmt: skip
def test_bad_input_is_told_before_anything_is_trained(
    longtail: Run, data: Path, tmp_path: Path, arguments: list[str], parts: list[str]
) -> None:
    refused(longtail("compare", data, "--out", tmp_path / "out", *arguments), *parts)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_data_or_of_somebody_is_refused(
    longtail: Run, compared: Path, data: Path, tmp_path: Path
) -> None:
    refused(longtail("compare", "debtags-sample", "--methods", "linear", "--out", compared), "other training texts")
    (tmp_path / "thesis.tex").write_text("somebody's")
    refused(longtail("compare", data, "--methods", "linear", "--out", tmp_path), "is not a comparison of longtail")
    refused(longtail("compare", data), "--methods", "longtail compare --help")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_methods_have_names_files_and_settings_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("n_seeds = 2\nlist_length = 30\n")
    settings = ["a:n_seeds=3", "linear/fast:seed=9"]
    entries = read_entries("a=linear, linear/fast", config=[f"a:{tmp_path / 'own.toml'}"], settings=settings, seed=4)
    assert [entry.name for entry in entries] == ["a", "linear/fast"]
    assert (entries[0].model.options.n_seeds, entries[0].model.options.list_length) == (3, 30)
    assert [entry.model.options.seed for entry in entries] == [4, 9]


def test_a_table_fits_the_screen() -> None:
    head = ["", *(f"method{number}" for number in range(4))]
    table = Table(head, [["P@1", *["88.9 (87.8–90.1)"] * 4]], frozenset({(0, 3)}))
    assert fit_table(table, 200) == [table]
    [under] = fit_table(table, 60)
    assert under.rows[0][1] == "88.9\n(87.8–90.1)"
    assert under.best == {(0, 3)}
    blocks = fit_table(table, 34)
    assert [block.head[1:] for block in blocks] == [["method0", "method1"], ["method2", "method3"]]
    assert [block.best for block in blocks] == [frozenset(), frozenset({(0, 1)})]
