"""A model card in Markdown, as the Hugging Face hub reads it: facts of the model first, as YAML, then in words.

    model, its folder, report of an evaluation or none  ->  Markdown with front matter

It says nothing that the model's folder or the report does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longtail.errors import DataError
from longtail.methods.base import Method
from longtail.report.contents import changed_options, folder_bytes
from longtail.report.tables import band_table, list_lengths, main_length, overall_table
from longtail.tables import escape_markdown, markdown_lines

LIBRARY = "longtail"
TASK = "text-classification"


def model_card(
    model: Method,
    path: str | Path,
    *,
    report: Mapping[str, Any] | None = None,
    languages: Sequence[str] = (),
    licence: str | None = None,
    repository: str | None = None,
) -> str:
    """Return the card of a saved model.

    Args:
        model: The trained model.
        path: Its folder, whose name is that of the model.
        report: An evaluation of it (`make_report`, or report.json as read by `load_report`).
        languages: Codes of the languages of its texts, such as en.
        licence: The licence that the model is shared under, as the hub writes it, such as apache-2.0.
        repository: Where it is on the hub, such as `name/model`, if it is there.
    """
    name = Path(path).resolve().name if repository is None else repository.rpartition("/")[2]
    lines = [
        "---",
        *_front_matter(model, name, report, languages, licence),
        "---",
        "",
        f"# {escape_markdown(name)}",
        "",
    ]
    facts = model.facts_
    lines += [
        f"Tags texts with labels of a vocabulary of {len(model.vocabulary_):,}, by method `{model.name}` of longtail. "
        f"It learned from {facts['n_texts']:,} texts with {facts['n_labels']:,} labels and can suggest "
        f"{len(model.scored_labels_):,} of them.",
        *("", "## Use", "", *_fetching(repository, name), "```python", "import longtail", ""),
        f"model = longtail.load_model({json.dumps(name)})",
        'print(model.predict(["a text"], k=5))',
        "```",
    ]
    lines += _results(report) if report else ["", "## Results", "", "Not measured yet: `longtail evaluate --report`."]
    lines += ["", "## Training", "", *_training(model, path)]
    changed = changed_options(model.options.plain(), model.options_class().plain())
    options = [f"- `{option} = {json.dumps(value, ensure_ascii=False)}`" for option, value in changed.items()]
    lines += ["", "Options that differ from the defaults:", "", *(options or ["- none"])]
    return "\n".join(lines) + "\n"


def load_report(folder: str | Path) -> dict[str, Any]:
    """Return the report that `write_report` left in a folder; raise if there is none."""
    file = Path(folder) / "report.json"
    try:
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"there must be a report in {folder} (report.json), got none that can be read: {error}"
        ) from error
    if not {"results", "findings", "data"} <= set(report):
        raise DataError(f"{file} is no report of this version; run longtail evaluate with `report` again")
    return report


def _front_matter(
    model: Method, name: str, report: Mapping[str, Any] | None, languages: Sequence[str], licence: str | None
) -> list[str]:
    """Return YAML: every value is JSON, which YAML reads as it is."""
    entries: dict[str, Any] = {
        "library_name": LIBRARY,
        "pipeline_tag": TASK,
        "tags": ["extreme-multi-label", "multi-label", model.name],
        **({"language": list(languages)} if languages else {}),
        **({"license": licence} if licence else {}),
    }
    if report is not None:
        data, results = report["data"], report["results"]
        first, k = list_lengths(results)[0], main_length(results)
        names = dict.fromkeys([f"P@{first}", f"P@{k}", f"R@{k}", f"nDCG@{k}", f"PSP@{k}"])
        metrics = [{"type": one, "name": one, "value": round(results["metrics"][one], 4)} for one in names]
        entries["model-index"] = [
            {
                "name": name,
                "results": [
                    {
                        "task": {"type": TASK, "name": "Extreme multi-label text classification"},
                        "dataset": {"type": data["name"], "name": data["name"], "split": data["split"]},
                        "metrics": metrics,
                    }
                ],
            }
        ]
    return [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items()]


def _fetching(repository: str | None, name: str) -> list[str]:
    """Return how the model is fetched from the hub."""
    return [] if repository is None else ["```", f"longtail pull {repository} {name}", "```", ""]


def _results(report: Mapping[str, Any]) -> list[str]:
    data, results = report["data"], dict(report["results"])
    return [
        "",
        "## Results",
        "",
        f"On the {escape_markdown(data['split'])} part of {escape_markdown(data['name'])}, {results['n_texts']:,} "
        "texts, in per cent.",
        "",
        *(f"- {escape_markdown(sentence)}" for sentence in report["findings"]),
        "",
        *markdown_lines(overall_table(results)),
        "",
        *markdown_lines(band_table(results)),
    ]


def _training(model: Method, path: str | Path) -> list[str]:
    facts = model.facts_
    named = (
        f"{facts['name']}, part {facts['split']}"
        if "name" in facts and "split" in facts
        else "texts handed over in Python"
    )
    versions = _versions(path)
    return [
        f"- data: {escape_markdown(named)}; fingerprint `{facts['fingerprint']}`",
        f"- labels without training texts: {facts.get('n_labels_without_texts', 0):,}",
        f"- size: {folder_bytes(path) / 1e6:,.1f} MB",
        f"- seed: {model.options.seed}",
        *([f"- versions: {versions}"] if versions else []),
    ]


def _versions(path: str | Path) -> str:
    manifest = json.loads((Path(path) / "manifest.json").read_text(encoding="utf-8"))
    return ", ".join(f"{name} {version}" for name, version in manifest.get("versions", {}).items())
