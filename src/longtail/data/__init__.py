"""Texts, labels and vocabularies: read, checked, held and written.

    from longtail.data import load_dataset, load_vocabulary, write_dataset, write_split, Dataset, Split, Vocabulary

The names are looked up on first use, so that importing a part of the package does not load all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset as Dataset
    from longtail.data.dataset import Split as Split
    from longtail.data.load import bundled_datasets as bundled_datasets
    from longtail.data.load import load_dataset as load_dataset
    from longtail.data.load import load_vocabulary as load_vocabulary
    from longtail.data.vocabulary import Vocabulary as Vocabulary
    from longtail.data.write import write_dataset as write_dataset
    from longtail.data.write import write_split as write_split

_HOMES = {
    "Dataset": "dataset",
    "Split": "dataset",
    "Vocabulary": "vocabulary",
    "bundled_datasets": "load",
    "load_dataset": "load",
    "load_vocabulary": "load",
    "write_dataset": "write",
    "write_split": "write",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'longtail.data' has no attribute '{name}'")
    return getattr(import_module(f"longtail.data.{_HOMES[name]}"), name)
