"""What papers report: the counts of their data sets and the figures of their systems. Data, not code.

    datasets.toml   name of a data set -> DataCounts
    results.toml    [[table]] -> PublishedTable: one printed table on one data set, a row for each system

Rows that name a preset become `Result`s, which a run is judged by. Rows without one are quoted: systems that longtail
does not have, or figures whose settings were not published.

`Published.load()` reads the two files beside this one, `Published.load(folder)` two such files of your own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, StringConstraints, model_validator

from longtail.errors import ConfigError, did_you_mean
from longtail.options import Options
from longtail.presets import preset_names, read_options
from longtail.propensity import USUAL, Propensity

_ROOT = Path(str(files("longtail.published")))
_DATASETS, _RESULTS = "datasets.toml", "results.toml"

MetricName = Annotated[str, StringConstraints(pattern=r"^(P|R|RP|F1|nDCG|PSP|PSnDCG)@[1-9]\d*$")]
CostName = Literal["train_h", "predict_ms", "model_gb"]
PerCent = Annotated[float, Field(ge=0, le=100)]
BLANK = "-"
"""Stands in a row where the source has no figure."""


class DataCounts(Options):
    """The size of a data set, as a paper gives it."""

    title: str
    """What people call it."""
    n_train: PositiveInt
    """Training texts."""
    n_dev: NonNegativeInt = 0
    """Texts for choices; 0 where the data set has no such part."""
    n_test: PositiveInt
    """Test texts."""
    n_labels: PositiveInt
    """Labels."""
    other_n_labels: tuple[PositiveInt, ...] = ()
    """Other numbers of labels that copies of the same data have."""
    labels_per_text: PositiveFloat
    """Mean number of labels of a training text."""
    texts_per_label: PositiveFloat | None = None
    """Mean number of training texts of a label."""
    n_features: PositiveInt | None = None
    """Columns of the sparse features that come with the data."""
    n_clusters: PositiveInt | None = None
    """Label clusters that the paper makes of it."""
    words_per_text: tuple[PositiveFloat, PositiveFloat] | None = None
    """Mean number of words of a training and of a test text."""
    propensities: Annotated[tuple[Propensity, ...], Field(min_length=1)] = (USUAL,)
    """Constants of PSP@k in use for it, the usual ones first; more than one where sources disagree."""


class Result(Options):
    """Figures of one system on one data set that a preset should give."""

    preset: str
    """The preset that should give them."""
    row: str = ""
    """The name of its row in the table; the number where rows are numbered."""
    settings: tuple[str, ...] = ()
    """`option=value` on top of the preset, as after `--set`."""
    data: str
    """The data set, as in datasets.toml."""
    metrics: Annotated[dict[MetricName, float], Field(min_length=1)]
    """In per cent; with `base`, gains over it in per cent of it."""
    base: dict[MetricName, PerCent] = Field(default_factory=dict)
    """The figures that gains are over."""
    kind: str
    """`single`, or `ensemble of 3`."""
    source: str
    """Paper, table and row."""
    tolerance: PositiveFloat
    """Points by which a run may differ and still agree."""
    note: str = ""
    """What to know before comparing."""

    @model_validator(mode="after")
    def _shares_are_at_most_100(self) -> Self:
        wrong = next((value for value in self.metrics.values() if not self.base and not 0 <= value <= 100), None)
        if wrong is not None:
            raise ValueError(f"metrics must be per cent from 0 to 100, got {wrong}")
        return self


class Row(Options):
    """One system in a table."""

    system: str
    """What the table calls it."""
    figures: tuple[float | Literal["-"], ...]
    """One per column; `-` where the table has none."""
    preset: str | None = None
    """The preset that should give them; none where the figures are only quoted."""
    settings: tuple[str, ...] = ()
    """`option=value` on top of the preset, as after `--set`."""
    kind: str = ""
    """`single`, or `ensemble of 3`; empty where no source says."""
    tolerance: PositiveFloat | None = None
    """Points by which a run may differ and still agree; for rows with a preset."""
    note: str = ""
    """What to know before comparing."""

    @property
    def name(self) -> str:
        """The system, or what stands before a colon: the number where rows are numbered."""
        return self.system.partition(":")[0]


class PublishedTable(Options):
    """The part of a printed table that is about one data set."""

    source: str
    """Paper and number of the table."""
    data: str | None = None
    """The data set, as in datasets.toml; none where the source does not name it."""
    columns: tuple[MetricName | CostName, ...] = Field(min_length=1)
    """What the figures are: metrics in per cent, hours of training, milliseconds per text, gigabytes of a model."""
    over: str = ""
    """Where figures are relative gains in per cent: the row, as `source, system`, that they are gains over."""
    rows: tuple[Row, ...] = Field(min_length=1)
    """The systems, in the order of the table."""

    @model_validator(mode="after")
    def _rows_fit_the_columns(self) -> Self:
        for row in self.rows:
            if len(row.figures) != len(self.columns):
                raise ValueError(f"'{row.system}' must have {len(self.columns)} figures, got {len(row.figures)}")
            if row.preset and row.tolerance is None:
                raise ValueError(f"'{row.system}' names a preset and must have a tolerance, got none")
        return self

    def figures_of(self, row: Row) -> dict[str, float]:
        """Return the figures that a row has, by column."""
        pairs = zip(self.columns, row.figures, strict=True)
        return {column: figure for column, figure in pairs if not isinstance(figure, str)}


@dataclass(frozen=True)
class Published:
    """All counts and tables of two files."""

    datasets: Mapping[str, DataCounts]
    tables: tuple[PublishedTable, ...]
    results: tuple[Result, ...]
    """The rows of the tables that name a preset."""

    @classmethod
    def load(cls, folder: str | Path = _ROOT) -> Self:
        """Read datasets.toml and results.toml of a folder."""
        folder = Path(folder)
        counts = _tables(folder / _DATASETS, read_options(folder / _DATASETS))
        datasets = {name: DataCounts.of(table, source=source) for name, (source, table) in counts.items()}
        listed = read_options(folder / _RESULTS).get("table")
        if not isinstance(listed, list) or not listed:
            raise ConfigError(f"{folder / _RESULTS} must hold [[table]] tables, got none")
        numbered = _tables(folder / _RESULTS, {f"table {number}": table for number, table in enumerate(listed, 1)})
        tables = tuple(PublishedTable.of(table, source=source) for source, table in numbered.values())
        unknown = [table.data for table in tables if table.data is not None and table.data not in datasets]
        if unknown:
            hint = did_you_mean(unknown[0], datasets)
            raise ConfigError(f"{folder / _RESULTS}: {_DATASETS} has no data set '{unknown[0]}'{hint}")
        places = zip(tables, (source for source, _ in numbered.values()), strict=True)
        results = tuple(result for table, source in places for result in _results(table, tables, source))
        return cls(datasets, tables, results)

    def presets(self) -> list[str]:
        """Return the presets with a published result."""
        return sorted({result.preset for result in self.results})

    def of_preset(self, preset: str) -> dict[str, list[Result]]:
        """Return the results of a preset by data set."""
        by_data: dict[str, list[Result]] = {}
        for result in self.results:
            if result.preset == preset:
                by_data.setdefault(result.data, []).append(result)
        if not by_data:
            ready = [name for name in self.presets() if name in preset_names()]
            close = "" if preset in preset_names() else did_you_mean(preset, ready)
            hint = close or f"; there are some for {', '.join(ready)}"
            raise ConfigError(f"no published figures for '{preset}'{hint}")
        return by_data

    def of_data(self, data: str) -> list[PublishedTable]:
        """Return the tables about a data set."""
        return [table for table in self.tables if table.data == data]


def _results(table: PublishedTable, tables: Iterable[PublishedTable], place: str) -> list[Result]:
    """Return the rows of a table that name a preset as results; `place` says where the table is."""
    base = _base(table, tables, place) if table.over else {}
    return [
        Result.of(
            {
                **row.model_dump(include={"preset", "settings", "kind", "tolerance", "note"}),
                "data": table.data,
                "base": base,
                "row": row.name,
                "metrics": table.figures_of(row),
                "source": f"{table.source}, {row.system}",
            },
            source=f"{place}, {row.system}",
        )
        for row in table.rows
        if row.preset
    ]


def _base(table: PublishedTable, tables: Iterable[PublishedTable], place: str) -> dict[str, float]:
    """Return the figures that the gains of a table are relative to; empty if no row needs them."""
    if not any(row.preset for row in table.rows):
        return {}
    for other in tables:
        for row in other.rows:
            if other.data == table.data and f"{other.source}, {row.system}" == table.over:
                return {name: figure for name, figure in other.figures_of(row).items() if name in table.columns}
    raise ConfigError(f"{place}: over must be 'source, system' of a row on the same data, got '{table.over}'")


def _tables(path: Path, content: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the named tables of a file, each with where it is."""
    wrong = next((name for name, table in content.items() if not isinstance(table, dict)), None)
    if wrong is not None:
        raise ConfigError(f"{path}: '{wrong}' must be a table, got {content[wrong]!r}")
    return {name: (f"{path}, {name}", table) for name, table in content.items()}
