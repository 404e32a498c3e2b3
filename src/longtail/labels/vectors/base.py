"""What all kinds of label vectors share: their inputs, their options and their registry.

features (n_texts, n_features), split  ->  one sparse row per label
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, PositiveInt

from longtail.data.dataset import Split
from longtail.errors import ConfigError
from longtail.kernels.rows import Rows
from longtail.options import Ablation, Options
from longtail.registry import Registry
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.types import LabelMatrix

Weighting: TypeAlias = Literal["equal", "by_label_count"]


@dataclass(frozen=True)
class Sources:
    """What label vectors may be made from beside the features of texts. Encoders are handed in, none is made here."""

    name_features: Callable[[Sequence[str]], Rows | None] | None = None
    """Turns label names into rows like `features`, for labels without texts."""
    encode_names: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    """Turns names (n) into vectors (n, d)."""
    encode_texts: Callable[[pa.Table], NDArray[np.float32]] | None = None
    """Turns texts (n) into vectors (n, d)."""


@dataclass(frozen=True, eq=False)
class LabelInputs:
    """What label vectors are made from."""

    features: Rows  # (n_texts, n_features) of the texts of `split`
    split: Split
    seed: int = 0
    run: Run = field(default_factory=Run)
    sources: Sources = Sources()


@dataclass(frozen=True)
class LabelVectorKind:
    """A kind of label vectors, as registries hold it."""

    make: Callable[[LabelInputs, VectorOptions], sp.csr_matrix]
    """Returns one row per label, of length one unless options say otherwise."""
    needs: Literal["encode_names", "encode_texts"] | None = None
    """The field of `Sources` without which it cannot be made."""
    instead: str = ""
    """What to use where that is missing."""


LABEL_VECTORS: Registry[LabelVectorKind] = Registry(
    "label vector",
    {kind: f"longtail.labels.vectors.{kind}" for kind in ("pifa", "embedding", "text", "sentence", "file", "random")},
)


def _known(kind: str) -> str:
    if kind not in LABEL_VECTORS:
        LABEL_VECTORS.get(kind)  # raises, and says what is known
    return kind


class VectorOptions(Options):
    """What labels are clustered by."""

    kinds: tuple[Annotated[str, AfterValidator(_known)], ...] = Field(("pifa",), min_length=1)
    """Which vectors, side by side: `pifa`, `embedding`, `text`, `sentence`, `file` or `random`."""
    file: str | None = None
    """file: where the vectors of labels are. Text, with a label's id, a tab and numbers on each line; or .npy, with the
    ids in a .txt beside it."""
    unit_length: Ablation[bool] = True
    """file: scale vectors to length one; X-BERT's code leaves those of ELMo as they are."""
    geometry: Ablation[Literal["spherical", "euclidean"] | None] = None
    """How labels with these vectors are split, where not as `tree.geometry` says."""
    weighting: Ablation[Weighting] = "equal"
    """pifa, embedding: every text of a label counts the same, or by 1/√(its number of labels)."""
    max_weights: PositiveInt | None = 300
    """pifa: the largest weights kept per label, 8 bytes each; none keeps all. Of 3 million labels, 100 each are 2.3 GB,
    all would be 11 GB."""
    n_components: PositiveInt = 256
    """text, random: numbers per label."""


def label_vectors(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    """Return the vector of each label of a split, one row of length one per label.

    Names and texts are encoded only where `options.kinds` need it.
    """
    kinds = {name: LABEL_VECTORS.get(name) for name in options.kinds}
    for name, kind in kinds.items():  # before any work is done
        if kind.needs and getattr(inputs.sources, kind.needs) is None:
            raise ConfigError(
                f"vectors.kinds '{name}' needs a neural encoder, which this method does not have; "
                f"use `method=xbert`, or {kind.instead}"
            )
    blocks = [kinds[name].make(inputs, options) for name in options.kinds]
    if len(blocks) == 1:
        return blocks[0]
    return sp.hstack([block / np.sqrt(len(blocks)) for block in blocks], format="csr", dtype=np.float32)


def text_weights(labels: LabelMatrix, weighting: Weighting) -> NDArray[np.float32]:
    """Return how much each text counts for its labels, (n_texts,)."""
    if weighting == "by_label_count":
        return (1 / np.sqrt(np.maximum(labels.labels_per_text(), 1))).astype(np.float32)
    return np.ones(labels.n_texts, np.float32)
