"""What papers report: the counts of their data sets and the figures of their systems. Data, not code.

    datasets.toml   name of a data set -> DataCounts
    results.toml    a list of Result: preset, data set, figures in per cent, source, tolerance

`Published.load()` reads the two files beside this one, `Published.load(folder)` two such files of your own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, StringConstraints

from longtail.errors import ConfigError, did_you_mean
from longtail.options import Options
from longtail.presets import preset_names, read_options

_ROOT = Path(str(files("longtail.published")))
_DATASETS, _RESULTS = "datasets.toml", "results.toml"

MetricName = Annotated[str, StringConstraints(pattern=r"^(P|R|RP|F1|nDCG|PSP|PSnDCG)@[1-9]\d*$")]
PerCent = Annotated[float, Field(ge=0, le=100)]


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


class Result(Options):
    """Figures of one system on one data set."""

    preset: str
    """The preset that should give them."""
    data: str
    """The data set, as in datasets.toml."""
    metrics: Annotated[dict[MetricName, PerCent], Field(min_length=1)]
    """In per cent."""
    kind: str
    """`single`, or `ensemble of 3`."""
    source: str
    """Paper and table."""
    tolerance: PositiveFloat
    """Points by which a run may differ and still agree."""
    note: str = ""
    """What to know before comparing."""


@dataclass(frozen=True)
class Published:
    """All counts and results of two files."""

    datasets: Mapping[str, DataCounts]
    results: tuple[Result, ...]

    @classmethod
    def load(cls, folder: str | Path = _ROOT) -> Self:
        """Read datasets.toml and results.toml of a folder."""
        folder = Path(folder)
        counts = _tables(folder / _DATASETS, read_options(folder / _DATASETS))
        datasets = {name: DataCounts.of(table, source=source) for name, (source, table) in counts.items()}
        listed = read_options(folder / _RESULTS).get("result")
        if not isinstance(listed, list) or not listed:
            raise ConfigError(f"{folder / _RESULTS} must hold [[result]] tables, got none")
        numbered = {f"result {number}": row for number, row in enumerate(listed, 1)}
        rows = _tables(folder / _RESULTS, numbered)
        results = tuple(Result.of(row, source=source) for source, row in rows.values())
        strangers = [result.data for result in results if result.data not in datasets]
        if strangers:
            hint = did_you_mean(strangers[0], datasets)
            raise ConfigError(f"{folder / _RESULTS}: {_DATASETS} has no data set '{strangers[0]}'{hint}")
        return cls(datasets, results)

    def presets(self) -> list[str]:
        """Presets with a published result."""
        return sorted({result.preset for result in self.results})

    def of_preset(self, preset: str) -> dict[str, list[Result]]:
        """The results of a preset by data set."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            if result.preset == preset:
                found.setdefault(result.data, []).append(result)
        if not found:
            ready = [name for name in self.presets() if name in preset_names()]
            close = "" if preset in preset_names() else did_you_mean(preset, ready)
            hint = close or f"; there are some for {', '.join(ready)}"
            raise ConfigError(f"no published figures for '{preset}'{hint}")
        return found


def _tables(path: Path, given: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Named tables of a file, each with where it stands."""
    wrong = next((name for name, table in given.items() if not isinstance(table, dict)), None)
    if wrong is not None:
        raise ConfigError(f"{path}: '{wrong}' must be a table, got {given[wrong]!r}")
    return {name: (f"{path}, {name}", table) for name, table in given.items()}
