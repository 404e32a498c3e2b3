"""The README of an exported model: what its inputs and outputs are, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.units import in_bytes

_TOKENISERS = {
    "tokenizers": "`{file}`, a file of the `tokenizers` library, which cuts texts itself",
    "words": "`{file}`, one word per line, the first with id {first_id}; `config.json` has patterns that find words",
}


def readme(config: Mapping[str, Any]) -> str:
    """Return the README of an export with this config."""
    tokeniser, text, agreement = config["tokeniser"], config["text"], config["agreement"]
    packages = "onnxruntime numpy tokenizers" if tokeniser["kind"] == "tokenizers" else "onnxruntime numpy"
    fields = ", ".join(f"`{name}`" for name in text["columns"])
    scores = "probabilities" if config["scores_are_probabilities"] else "not probabilities"
    threshold = config["threshold"]
    lines = [
        "# An exported longtail model",
        "",
        f"Tags texts with {config['n_labels']:,} labels; method `{config['method']}`, weights in {config['weights']}. "
        "longtail is not needed to use it:",
        "",
        "```",
        f"pip install {packages}",
        'python run.py "a text"',
        "```",
        "",
        "```python",
        "from run import Runner",
        "",
        'Runner(".").tag(["a text"], k=5)  # [[{"id": ..., "name": ..., "score": ...}, ...]]',
        "```",
        "",
        "## The graph",
        "",
        *(f"- input `{name}`: {what}" for name, what in config["inputs"].items()),
        *(f"- output `{name}`: {what}" for name, what in config["outputs"].items()),
        "",
        f"Scores are {scores}"
        + ("." if threshold is None else f"; keeping those of at least {threshold:.3f} gives the best micro-F1."),
        "",
        "## Texts",
        "",
        f"- what is read: {fields}, joined by blanks"
        + (", in lower case" if text["lowercase"] else "")
        + (f", the first {text['max_words']:,} words" if text["max_words"] else ""),
        f"- tokeniser: {_TOKENISERS[tokeniser['kind']].format(**tokeniser)}",
        "- labels: `labels.json`, ids and names by number; null for labels that are no longer used",
        "",
        "## How it was checked",
        "",
        f"On {agreement['n_texts']:,} texts the five best scores of the graph with float32 weights differ from the "
        f"model's by at most {agreement['largest_difference']:.1g}; in {agreement['n_swapped']:,} of them labels with "
        "scores as near as 0.0001 stand in another order.",
    ]
    loss = config["int8"]
    if loss is not None:
        lines += [
            "",
            f"With 8-bit weights nDCG@5 on {loss['n_texts']:,} texts is {100 * loss['ndcg_after']:.2f} instead of "
            f"{100 * loss['ndcg_before']:.2f}; {loss['same_lists']:.1%} of the texts keep their five best labels. The "
            f"graph takes {in_bytes(loss['bytes_after'])} instead of {in_bytes(loss['bytes_before'])}.",
        ]
    return "\n".join(lines) + "\n"
