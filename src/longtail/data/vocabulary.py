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

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.errors import DataError


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Labels by position: position i is label id i of every LabelMatrix and TopK."""

    table: pa.Table  # columns id, name: string; alternatives, parents: list<string>
    parent_names: Mapping[str, str] = field(default_factory=dict)
    """Names of parents that are not labels themselves."""

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
        table = pa.table(
            {
                "id": pa.array(ids, pa.string()),
                "name": pa.array([names.get(i) or i for i in ids], pa.string()),
                "alternatives": pa.array([list(alternatives.get(i, ())) for i in ids], lists),
                "parents": pa.array([list(parents.get(i, ())) for i in ids], lists),
            }
        )
        own = set(ids)
        outside = {p for group in parents.values() for p in group if p not in own}
        return cls(table, {p: names.get(p) or p for p in sorted(outside)})

    def __len__(self) -> int:
        return int(self.table.num_rows)

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
        """The name of a label or of a parent, by id."""
        at = self.position.get(label_id)
        return self.names[at] if at is not None else self.parent_names.get(label_id, label_id)

    def take(self, labels: NDArray[Any]) -> Vocabulary:
        """The given labels, in the given order."""
        kept = self.table.take(pa.array(np.asarray(labels, np.int64)))
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

    def described_by(self, *others: Vocabulary) -> Vocabulary:
        """The same labels, each named as in the first of `others` that knows it; so for what else is known of it."""
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
        return Vocabulary.of(self.ids, names, **groups)
