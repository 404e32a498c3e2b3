"""The labels of a data set: ids, names, alternative names and parents.

ids           what files call a label (`gnd:4026801-9`), in label order
names         what people call it (`Industrieanlage`)
alternatives  other names of it
parents       ids of its broader concepts; a parent need not be a label itself
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.arrow import int_array
from longtail.errors import DataError, ModelFormatError
from longtail.notebook import SHOWN_ROWS, html_table, shorten


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Labels by position: position i is label number i of every LabelMatrix and TopK.

    vocabulary = Vocabulary.of(["Q1", "Q2"], names={"Q1": "apple", "Q2": "stone"})
    vocabulary.position["Q2"]       1
    vocabulary.name_of("Q2")        "stone"
    """

    table: pa.Table  # columns id, name: string; alternatives, parents: list<string>
    parent_names: Mapping[str, str] = field(default_factory=dict)
    """Names of parents that are not labels themselves."""

    @classmethod
    def load(cls, table: pa.Table, parent_names: Any) -> Vocabulary:
        """Return a stored vocabulary, or raise if it cannot be one."""
        texts, lists = pa.string(), pa.list_(pa.string())
        kinds = {"id": texts, "name": texts, "alternatives": lists, "parents": lists}
        if dict(zip(table.schema.names, table.schema.types, strict=True)) != kinds:
            raise ModelFormatError(f"labels must have the columns {', '.join(kinds)}, got {table.schema.names}")
        chunks = [chunk for name in ("alternatives", "parents") for chunk in table[name].chunks]
        if any(one.null_count for one in (*table.columns, *(chunk.values for chunk in chunks))):
            raise ModelFormatError("labels must be texts, got some without; copy the model folder again")
        if not isinstance(parent_names, dict) or not all(isinstance(name, str) for name in parent_names.values()):
            raise ModelFormatError(f"parent_names must be names by id, got {parent_names!r:.60}; save the model again")
        return cls(table, parent_names)

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        names: Mapping[str, str] | None = None,
        alternatives: Mapping[str, Sequence[str]] | None = None,
        parents: Mapping[str, Sequence[str]] | None = None,
    ) -> Vocabulary:
        """Build from label ids in order; whatever is not named is called by its id."""
        ids = list(ids)
        if len(set(ids)) != len(ids):
            seen: set[str] = set()
            twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise DataError(f"label ids must be distinct, got '{twice}' twice")
        names, alternatives, parents = names or {}, alternatives or {}, parents or {}
        lists = pa.list_(pa.string())
        columns = {
            "id": (ids, pa.string()),
            "name": ([names.get(i) or i for i in ids], pa.string()),
            "alternatives": ([list(alternatives.get(i, ())) for i in ids], lists),
            "parents": ([list(parents.get(i, ())) for i in ids], lists),
        }
        try:
            table = pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})
        except UnicodeEncodeError as error:
            raise DataError(f"ids and names of labels must be Unicode, got half a character: {error}") from error
        labels = set(ids)
        outside = {p for group in parents.values() for p in group if p not in labels}
        return cls(table, {p: names.get(p) or p for p in sorted(outside)})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        first = ", ".join(shorten(label, 30) for label in self.table["id"][:3].to_pylist())
        return f"Vocabulary({len(self):,} labels{': ' if first else ''}{first}{', …' if len(self) > 3 else ''})"

    def _repr_html_(self) -> str:
        first = self.table.slice(0, SHOWN_ROWS).to_pylist()
        names = (", ".join(map(self.name_of, label["parents"])) for label in first)
        rows = [(label["id"], label["name"], parents) for label, parents in zip(first, names, strict=True)]
        return html_table(f"{len(self):,} labels", rows, ("id", "name", "parents"), len(self) - len(rows))

    @cached_property
    def ids(self) -> list[str]:
        """Label ids in label order."""
        return self.table["id"].to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def names(self) -> list[str]:
        """Label names in label order."""
        return self.table["name"].to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def position(self) -> dict[str, int]:
        """Label id → label number."""
        return {label: i for i, label in enumerate(self.ids)}

    def alternatives(self, label: int) -> list[str]:
        """Other names of a label."""
        return self.table["alternatives"][label].as_py()  # type: ignore[no-any-return]

    def parents(self, label: int) -> list[str]:
        """Ids of the broader concepts of a label."""
        return self.table["parents"][label].as_py()  # type: ignore[no-any-return]

    def name_of(self, label_id: str) -> str:
        """Return the name of a label or of a parent, by id."""
        at = self.position.get(label_id)
        return self.names[at] if at is not None else self.parent_names.get(label_id, label_id)

    def path(self, label: int) -> list[str]:
        """Return the names of the broader concepts of a label from the top down, by the first parent of each."""
        names: list[str] = []
        parents, passed = self.parents(label), set()
        while parents and parents[0] not in passed:  # a hierarchy may have cycles
            passed.add(parents[0])
            names.append(self.name_of(parents[0]))
            at = self.position.get(parents[0])
            parents = [] if at is None else self.parents(at)
        return names[::-1]

    def take(self, labels: NDArray[Any]) -> Vocabulary:
        """Return the given labels, in the given order."""
        kept = self.table.take(int_array(labels))
        inside = set(kept["id"].to_pylist())
        wanted = {p for group in kept["parents"].to_pylist() for p in group if p not in inside}
        return Vocabulary(kept, {p: self.name_of(p) for p in sorted(wanted)})

    def extended(self, ids: Iterable[str]) -> Vocabulary:
        """With further labels behind the present ones, called by their ids; known ones are skipped."""
        new = [label for label in dict.fromkeys(ids) if label not in self.position]
        if not new:
            return self
        more = Vocabulary.of(new).table
        return Vocabulary(pa.concat_tables([self.table, more]).combine_chunks(), self.parent_names)

    def followed_by(self, other: Vocabulary) -> Vocabulary:
        """Return these labels, then those that only `other` has, as it describes them."""
        ids = self.table["id"]
        further = other.table.filter(pc.invert(pc.is_in(other.table["id"], value_set=ids.combine_chunks())))
        if not further.num_rows:
            return self
        table = pa.concat_tables([self.table, further]).combine_chunks()
        names = {**other.parent_names, **self.parent_names}
        known = pc.is_in(pa.array(list(names), pa.string()), value_set=table["id"].combine_chunks()).to_pylist()
        outside = sorted(name for name, is_label in zip(names, known, strict=True) if not is_label)
        return Vocabulary(table, {parent: names[parent] for parent in outside})

    def described_by(self, *others: Vocabulary) -> Vocabulary:
        """Return the same labels, with name, alternatives and parents of the first of `others` that has them."""
        if not others:
            return self
        names: dict[str, str] = {}
        groups: dict[str, dict[str, list[str]]] = {"alternatives": {}, "parents": {}}
        sources = (self, *reversed(others))  # whatever comes later wins
        for source in sources:
            names.update(source.parent_names)
        for source in sources:
            names.update(zip(source.ids, source.names, strict=True))
            for column, known in groups.items():
                given = zip(source.ids, source.table[column].to_pylist(), strict=True)
                known.update((label, group) for label, group in given if group and label in self.position)
        return Vocabulary.of(self.ids, names, groups["alternatives"], groups["parents"])
