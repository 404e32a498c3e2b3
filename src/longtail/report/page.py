"""The report as one HTML page with style and pictures inside; it suits light and dark screens, phones and paper."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from longtail.report.html import document, figures_html, list_html, section, table_html
from longtail.report.pictures import (
    band_picture,
    frequency_picture,
    precision_recall_picture,
    reliability_picture,
)
from longtail.report.tables import (
    band_table,
    baseline_table,
    confusion_table,
    count_table,
    label_table,
    list_lengths,
    main_length,
    model_table,
    new_table,
    overall_table,
    percent,
    published_table,
    threshold_table,
    why_sentence,
)
from longtail.tables import Table


def html_report(report: dict[str, Any]) -> str:
    """Return the page of a report."""
    results, data, labels = report["results"], report["data"], report["labels"]
    interval = results.get("intervals")
    k = main_length(results)
    note = "In per cent, over all labels."
    if interval:
        level, n = interval["bootstrap"]["level"], interval["bootstrap"]["n_resamples"]
        note += f" In brackets {level:.0%} intervals: {n:,} bootstrap resamples of the texts."
    caption = (
        f"Of the true labels, found among the first {k} suggestions (R@{k}), by how many training texts a label has."
    )
    figures = filter(None, (overall_table(results), threshold_table(results)))
    sections = [
        section("In words", list_html(report["findings"])),
        _tiles(results, k),
        section("Results", "".join(map(table_html, figures)), note),
        section(
            "Frequent and rare labels",
            figures_html([(band_picture(results), caption)]) + table_html(band_table(results)),
        ),
    ]
    if report.get("published"):
        caveats = " ".join(f"{caveat}." for caveat in report["caveats"])
        sections.insert(
            0, section("Beside the published figures", table_html(published_table(report)), escape(caveats))
        )
    new = new_table(results)
    if new is not None:
        note = "A text that occurs word for word in training is easy; this is what is left without."
        sections.append(section("Texts that are new", table_html(new), note))
    beside = baseline_table(report)
    if beside is not None:
        seconds = report["baseline"]["train_s"]
        note = f"Both learned from the same texts, linear in {seconds:.1f} s; intervals are paired, text by text."
        sections.append(section("Beside the linear baseline", table_html(beside), note))
    if report["precision_recall"]:
        caption = (
            "Of the suggestions that score at least as much (numbers at the curve), so many are right; and so many of "
            "the true labels they are."
        )
        figure = figures_html([(precision_recall_picture(report["precision_recall"]), caption)])
        sections.append(section("Precision and recall", figure))
    if report["reliability"]:
        caption = (
            f"Of the first {k} suggestions with such a score, so many are right; bars show how many there are. Where "
            "scores are probabilities, the curve follows the dashed line."
        )
        figure = figures_html([(reliability_picture(report["reliability"]), caption)])
        sections.append(section("Scores as probabilities", figure))
    sections.append(
        section(
            "Data",
            f'<div class="two"><div>{table_html(count_table(data), head=False)}</div>'
            f"<figure>{frequency_picture(data['label_frequency'])}<figcaption>How many training texts each label has."
            f"</figcaption></figure></div>",
        )
    )
    if labels["best"]:
        least = labels["at_least_true_texts"]
        among = f" Among labels with at least {least} true texts." if least > 1 else ""
        note = f"By F1 of the first {labels['among_first']} suggestions on the evaluated texts.{among}"
        best, worst = (table_html(label_table(labels[kind])) for kind in ("best", "worst"))
        tables = f"<h3>Best</h3>{best}<h3>Worst</h3>{worst}"
        sections.append(section("Labels", tables, note))
    if labels["confused"]:
        note = f"A true label that is not among the first {labels['among_first']}, and what stands there in its texts."
        sections.append(
            section("Labels that are taken for each other", table_html(confusion_table(labels["confused"])), note)
        )
    if report["worst"]:
        worst_shown = "".join(_text(text) for text in report["worst"])
        note = "Fewest right suggestions, surest mistakes first; with words that speak for a wrong and a missed label."
        sections.append(section("The worst texts", worst_shown, note))
    shown = "".join(_text(text) for text in report["texts"])
    words = {"right": "right", "wrong": "not among the true labels", "missed": "missed"}
    legend = "Drawn at random, with the scores of the suggestions. " + " ".join(
        f'<b class="{kind}">{word}</b>' for kind, word in words.items()
    )
    sections.append(section("Some texts", shown, legend))
    sections.append(section("Model", table_html(model_table(report), head=False) + _options(report["model"])))
    if report["model"].get("choice"):
        sections.append(section("Why this model", list_html(report["model"]["choice"])))
    intro = (
        f"{escape(report['model']['method'])} on the <b>{escape(data['split'])}</b> part: "
        f"{results['n_texts']:,} texts, {data['n_train_labels']:,} labels to choose from"
    )
    return document(report, data["name"], intro, sections)


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


def _text(text: dict[str, Any]) -> str:
    labels = [("right" if label["right"] else "wrong", label["name"], label["score"]) for label in text["suggested"]]
    suggested = "".join(
        f'<li class="{kind}">{escape(name)} <small>{score:.2f}</small></li>' for kind, name, score in labels
    )
    missed = "".join(f'<li class="missed">{escape(name)}</li>' for name in text["missed"])
    number = f"text {text['number']:,}"
    place = f"id {text['id']}, {number}" if text["id"] else number
    return (
        f"<article><h3>{escape(text['title'] or place)}</h3>"
        + (f'<p class="place">{escape(place)}</p>' if text["title"] else "")
        + f"<p>{escape(text['text']) or '<i>an empty text</i>'}</p>"
        + f'<ul class="labels">{suggested}{missed}</ul>{_why(text)}</article>'
    )


def _why(text: dict[str, Any]) -> str:
    """Return the words that spoke for a wrong and for a missed label, where they are known."""
    return list_html([why_sentence(one) for one in text.get("why", ())])


def _options(model: dict[str, Any]) -> str:
    changed = model["changed_options"]
    rows = [[path, json.dumps(value, ensure_ascii=False)] for path, value in changed.items()]
    table = table_html(Table(["option", "value"], rows)) if rows else "<p>All options have their defaults.</p>"
    everything = escape(json.dumps(model["options"], indent=1, ensure_ascii=False))
    return (
        f"<h3>Options that differ from the defaults</h3>{table}"
        f"<details><summary>All options</summary><pre>{everything}</pre></details>"
    )
