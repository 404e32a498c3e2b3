"""The report as one HTML page: style and pictures inside, readable by day and by night, on paper and on a phone."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from longtail.report.pictures import band_picture, frequency_picture
from longtail.report.tables import (
    Table,
    band_table,
    count_table,
    label_table,
    list_lengths,
    main_length,
    model_table,
    new_table,
    overall_table,
    percent,
)


def html_report(report: dict[str, Any]) -> str:
    """The whole page."""
    results, data, labels = report["results"], report["data"], report["labels"]
    interval = results.get("intervals")
    k = main_length(results)
    sure = ""
    if interval:
        level, n = interval["bootstrap"]["level"], interval["bootstrap"]["n_resamples"]
        sure = f"In brackets {level:.0%} intervals: {n:,} bootstrap resamples of the texts."
    sections = [
        _tiles(results, k),
        _section("Results", _table(overall_table(results)), f"In per cent, over all labels. {sure}"),
        _section(
            "Frequent and rare labels",
            f"<figure>{band_picture(results)}<figcaption>Of the true labels, found among the first {k} suggestions "
            f"(R@{k}), by how many training texts a label has.</figcaption></figure>{_table(band_table(results))}",
        ),
    ]
    new = new_table(results)
    if new is not None:
        note = "A text that occurs word for word in training is easy; this is what is left without."
        sections.append(_section("Texts that are new", _table(new), note))
    sections.append(
        _section(
            "Data",
            f'<div class="two"><div>{_table(count_table(data), head=False)}</div>'
            f"<figure>{frequency_picture(data['label_frequency'])}<figcaption>How many training texts each label has."
            f"</figcaption></figure></div>",
        )
    )
    if labels["best"]:
        least = labels["at_least_true_texts"]
        among = f" Among labels with at least {least} true texts." if least > 1 else ""
        note = f"By F1 of the first {labels['among_first']} suggestions on the evaluated texts.{among}"
        tables = (
            f"<h3>Best</h3>{_table(label_table(labels['best']))}<h3>Worst</h3>{_table(label_table(labels['worst']))}"
        )
        sections.append(_section("Labels", tables, note))
    shown = "".join(_text(text) for text in report["texts"])
    words = {"right": "right", "wrong": "not among the true labels", "missed": "missed"}
    legend = "Drawn at random. " + " ".join(f'<b class="{kind}">{word}</b>' for kind, word in words.items())
    sections.append(_section("Some texts", shown, legend))
    sections.append(_section("Model", _table(model_table(report), head=False) + _options(report["model"])))
    made = f"{escape(report['made'])}, longtail {escape(report['environment']['longtail'])}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report['title'])}</title><style>{_style()}</style></head>\n"
        f"<body><main><header><h1>{escape(data['name'])}</h1>"
        f"<p>{escape(report['model']['method'])} on the <b>{escape(data['split'])}</b> part: "
        f"{results['n_texts']:,} texts, {data['n_train_labels']:,} labels to choose from</p></header>\n"
        + "\n".join(sections)
        + f"\n<footer>{made}</footer></main></body></html>\n"
    )


def _style() -> str:
    return (files("longtail.report") / "page.css").read_text(encoding="utf-8")


def _tiles(results: dict[str, Any], k: int) -> str:
    first = list_lengths(results)[0]
    words = {
        f"P@{first}": "the first suggestion is right" if first == 1 else f"of the first {first} are right",
        f"R@{k}": f"of the true labels are among the first {k}",
        f"nDCG@{k}": "quality of the order",
        f"PSP@{k}": "right, rare labels count more",
    }
    tiles = "".join(
        f'<div class="tile"><b>{percent(results["metrics"][name])}</b><i>{name}</i><span>{about}</span></div>'
        for name, about in words.items()
    )
    return f'<div class="tiles">{tiles}</div>'


def _section(title: str, inside: str, note: str = "") -> str:
    told = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{told}{inside}</section>"


def _table(table: Table, head: bool = True) -> str:
    top = "<thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in table.head) + "</tr></thead>" if head else ""
    rows = "".join(
        f"<tr><th>{escape(row[0])}</th>" + "".join(f"<td>{_number(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in table.rows
    )
    words = "" if head else ' class="words"'
    return f'<div class="scroll"><table{words}>{top}<tbody>{rows}</tbody></table></div>'


def _number(cell: str) -> str:
    """A value, and its interval smaller."""
    value, bracket, rest = cell.partition(" (")
    is_interval = bracket and rest.endswith(")") and "–" in rest
    return f"{escape(value)} <small>({escape(rest)}</small>" if is_interval else escape(cell)


def _text(text: dict[str, Any]) -> str:
    labels = [("right" if label["right"] else "wrong", label["name"], label["score"]) for label in text["suggested"]]
    found = "".join(f'<li class="{kind}" title="{score:.3f}">{escape(name)}</li>' for kind, name, score in labels)
    missed = "".join(f'<li class="missed">{escape(name)}</li>' for name in text["missed"])
    return f"<article><p>{escape(text['text']) or '<i>an empty text</i>'}</p><ul>{found}{missed}</ul></article>"


def _options(model: dict[str, Any]) -> str:
    changed = model["changed_options"]
    rows = [[path, json.dumps(value, ensure_ascii=False)] for path, value in changed.items()]
    own = _table(Table(["option", "value"], rows)) if rows else "<p>All options have their defaults.</p>"
    everything = escape(json.dumps(model["options"], indent=1, ensure_ascii=False))
    return (
        f"<h3>Options that differ from the defaults</h3>{own}"
        f"<details><summary>All options</summary><pre>{everything}</pre></details>"
    )
