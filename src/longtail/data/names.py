"""Files of label names, one label per line, and of a hierarchy, one pair per line.

labels.txt, vocabulary.txt   id <tab> name <tab> alternative | alternative
hierarchy.tsv                child id <tab> parent id [<tab> name of the parent]
output-items.txt             name; the id is the number of the line, from 0
label_vocab.txt              count <tab> name; the id is the number of the line, from 0

A line of a vocabulary may end after its id or its name. Lines that start with `#` are labels too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from longtail.data.lines import fault, read_lines, read_rows
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError

NUMBERED = ("output-items.txt", "label_map.txt", "Yf.txt")
"""The files that name numbered labels in data of PECOS, X-BERT and the XMC repository."""
_BETWEEN = " | "
_COUNT = re.compile(r"\d+\t")


def read_names(path: Path) -> Vocabulary:
    """Return the vocabulary in a file, in the order of its lines."""
    ids: dict[str, int] = {}
    names: dict[str, str] = {}
    alternatives: dict[str, list[str]] = {}
    for number, cells in read_rows(path):
        label = cells[0]
        if not label:
            raise fault(path, number, "a line must start with a label id, got an empty one")
        if label in ids:
            raise fault(path, number, f"label ids must be distinct, got '{label}' as in line {ids[label]}")
        if len(cells) > 3:
            raise fault(path, number, f"a line must be id, name and alternatives between tabs, got {len(cells)} cells")
        ids[label] = number
        if len(cells) > 1:
            names[label] = cells[1]
        if len(cells) > 2:
            alternatives[label] = _alternatives(cells[2])
    return Vocabulary.of(list(ids), names, alternatives)


def read_hierarchy(path: Path) -> Vocabulary:
    """Return a vocabulary of all children with their parents."""
    parents: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for number, cells in read_rows(path):
        if len(cells) not in (2, 3) or not cells[0] or not cells[1]:
            raise fault(path, number, f"a line must be child and parent with a tab between, got {len(cells)} cells")
        child, parent = cells[:2]
        if child == parent:
            raise fault(path, number, f"a label must not be its own parent, got '{child}' twice")
        group = parents.setdefault(child, [])
        if parent not in group:
            group.append(parent)
        if len(cells) == 3 and cells[2]:
            names[parent] = cells[2]
    return Vocabulary.of(list(parents), names, parents=parents)


def numbered_names(
    file: str | None, folder: Path | None = None, usual_names: Iterable[str] = NUMBERED
) -> dict[str, Any]:
    """Return the names of labels that are numbers, as keywords of a `Source`; empty if there is no such file.

    If every line starts with a count and a tab, as in X-BERT's label_vocab.txt, the name is what follows.

    Args:
        file: One name per line; by default a file with a usual name is looked for.
        folder: Where to look for it.
        usual_names: The names to look for.
    """
    if file is not None and not Path(file).is_file():
        raise DataError(f"label_names must be a file of one name per line, {file} is none")
    usual = [folder / name for name in usual_names] if folder is not None else []
    path = Path(file) if file is not None else next((name for name in usual if name.is_file()), None)
    if path is None:
        return {}
    names = [name for block in read_lines(path) for name in block.lines.to_pylist()]
    if all(_COUNT.match(name) for name in names):
        names = [name.partition("\t")[2] for name in names]
    ids = [str(number) for number in range(len(names))]
    vocabulary = Vocabulary.of(ids, dict(zip(ids, names, strict=True)))
    return {"labels": vocabulary, "files": {"labels": str(path)}}


def write_names(vocabulary: Vocabulary, path: Path) -> None:
    """Write ids, names and alternatives."""
    columns = (vocabulary.table[name].to_pylist() for name in ("id", "name", "alternatives"))
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        for label, name, alternatives in zip(*columns, strict=True):
            joined = _BETWEEN.join(alternatives)
            if _alternatives(joined) != alternatives:
                raise DataError(f"alternative names of '{label}' must not be empty or hold '{_BETWEEN}', got {joined}")
            out.write(_row([label, name, joined] if joined else [label, name]))


def write_hierarchy(vocabularies: Iterable[Vocabulary], path: Path) -> None:
    """Write the parents of all labels; no file is written if no label has any."""
    written: dict[tuple[str, str], str] = {}
    for vocabulary in vocabularies:
        for child, parents in zip(vocabulary.ids, vocabulary.table["parents"].to_pylist(), strict=True):
            for parent in parents:
                name = vocabulary.parent_names.get(parent, parent)
                written.setdefault((child, parent), "" if name == parent else name)
    if written:
        with open(path, "w", encoding="utf-8", newline="\n") as out:
            for pair, name in written.items():
                out.write(_row([*pair, name] if name else [*pair]))


def _alternatives(cell: str) -> list[str]:
    return [name for name in cell.split(_BETWEEN) if name]


def _row(cells: list[str]) -> str:
    wrong = next((cell for cell in cells if any(c in cell for c in "\t\n\r")), None)
    if wrong is not None:
        raise DataError(f"ids and names of labels must not hold tabs or line breaks in a file of names, got {wrong!r}")
    return "\t".join(cells) + "\n"
