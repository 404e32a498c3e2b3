"""Suggest labels with an exported model: onnxruntime, numpy and, for word pieces, tokenizers are all it needs.

    from run import Runner

    runner = Runner("folder")
    runner.tag(["a text editor"], k=5)      [[{"id": …, "name": …, "score": …}, …]], best first

As a program, `python run.py "a text" "another one"` writes one line of JSON per text. This file belongs to the folder
of an exported model, where it is called run.py; it imports nothing of longtail.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Texts = Sequence[str | Mapping[str, str]]
_TEXTS_AT_ONCE = 32
_SHORTEST = 2


class Runner:
    """An exported model."""

    def __init__(self, folder: str | Path = ".", threads: int = 0) -> None:
        """Open the folder; `threads` is the number of threads, 0 all cores."""
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        labels = json.loads((self.folder / "labels.json").read_text(encoding="utf-8"))
        self.ids, self.names = labels["ids"], labels["names"]
        readers: dict[str, type[_Pieces] | type[_Words]] = {"tokenizers": _Pieces, "words": _Words}
        self.tokeniser = readers[self.config["tokeniser"]["kind"]](self.folder, self.config["tokeniser"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(self.folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def tag(self, texts: Texts, k: int = 5, threshold: float = 0.0) -> list[list[dict[str, Any]]]:
        """Return up to `k` labels of each text, best first, that score at least `threshold`.

        A text is a string, or a mapping from the names of its fields (`text.columns` of the config) to theirs.
        """
        tagged = []
        for scores, labels in zip(*self.top_k(texts), strict=True):
            best: dict[str, dict[str, Any]] = {}
            for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
                shown = self.ids[label] if label >= 0 else None  # none: the label was retired
                if shown is not None and score >= threshold and len(best) < k:
                    best.setdefault(shown, {"id": shown, "name": self.names[label], "score": score})
            tagged.append(list(best.values()))
        return tagged

    def top_k(self, texts: Texts) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return scores and labels (n_texts, k) as the graph gives them; labels are places in `ids`, −1 for none."""
        rows = self.tokeniser.encode([self.read(text) for text in texts])
        n = int(self.config["labels_per_text"])
        scores, labels = np.full((len(rows), n), -np.inf, np.float32), np.full((len(rows), n), -1, np.int64)
        by_length = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        for start in range(0, len(rows), _TEXTS_AT_ONCE):
            chosen = by_length[start : start + _TEXTS_AT_ONCE]
            ids, mask = self._padded([rows[row] for row in chosen])
            scores[chosen], labels[chosen] = self.session.run(
                ["scores", "labels"], {"input_ids": ids, "attention_mask": mask}
            )
        return scores, labels

    def read(self, text: str | Mapping[str, str]) -> str:
        """Return a text as the string that is tokenised."""
        facts = self.config["text"]
        if not isinstance(text, str):
            text = " ".join(text[name] for name in facts["columns"] if text.get(name))
        text = text.lower() if facts["lowercase"] else text
        most = facts["max_words"]
        return text if most is None else " ".join(text.split(maxsplit=most)[:most])

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return ids and mask (n, width), padded on the right."""
        width = max(_SHORTEST, *map(len, rows))
        ids = np.full((len(rows), width), self.config["tokeniser"]["pad_id"], np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)], mask[number, : len(row)] = row, 1
        return ids, mask


class _Pieces:
    """Word pieces, read by the `tokenizers` library."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.tokenizer, self.pad_id = Tokenizer.from_file(str(folder / facts["file"])), facts["pad_id"]

    def encode(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Return the ids of each text, at least one."""
        return [one.ids or [self.pad_id] for one in self.tokenizer.encode_batch(list(texts))]


class _Words:
    """Whole words, by the patterns of the config."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        words = (folder / facts["file"]).read_text(encoding="utf-8").split("\n")
        self.ids = {word: number for number, word in enumerate(words, facts["first_id"])}
        self.inside, self.word, self.facts = re.compile(facts["inside"]), re.compile(facts["word"]), facts

    def encode(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Return the ids of each text, at least one."""
        unknown, most = self.facts["unknown_id"], self.facts["max_tokens"]
        rows = ([self.ids.get(word, unknown) for word in self._words_of(text)[:most]] for text in texts)
        return [row or [unknown] for row in rows]

    def _words_of(self, text: str) -> list[str]:
        text = self.inside.sub(r" \1", unicodedata.normalize("NFC", text).replace("’", "'"))
        words = "\n".join(self.word.findall(text)).lower().split("\n")
        separator = self.facts["separator"]
        if separator in text:
            return [separator if word == separator.lower() else word for word in words]
        return words if words[0] else []


def main(texts: Iterable[str]) -> None:
    """Write the labels of each text as a line of JSON."""
    for labels in Runner(Path(__file__).parent).tag(list(texts)):
        sys.stdout.write(json.dumps(labels, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
