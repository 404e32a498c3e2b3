"""Interface of heads: text vectors in; a loss in training, the best labels in use.

    loss(inputs, targets)  ->  scalar: the mean over texts, with gradients to the vectors and the parameters
    top_k(inputs, k)       ->  scores (B, k) in 0..1, labels (B, k) int64, best first

`HeadInputs` holds the text vectors (B, d) and whatever else some heads read: token states, votes, recalled clusters.

A head numbers its labels by place: `order[place]` is the label. Training labels are renumbered once before training, so
`targets` hold places, and `top_k` returns places. Scores are computed in float32 and ordered by their logits (or log
scores), so that saturated scores make no ties.

The trainer's optimiser trains parameters, except those that a head trains itself (`step`): a large label table needs a
cheap optimiser and a gradient that is never held as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from longtail.errors import ConfigError
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets
from longtail.options import Options
from longtail.registry import Registry
from longtail.types import LabelMatrix

T = TypeVar("T")

if TYPE_CHECKING:
    from longtail.nn.heads.table import LabelTable
    from longtail.nn.rows import RowTable


@dataclass(frozen=True)
class Step:
    """What parts that train themselves need to know at the end of a training step."""

    rates: dict[str, float]
    """Learning rate of each parameter group by name."""
    decay: float = 0.0
    """Weight decay of label weights."""
    encoder_decay: float = 0.0
    """Weight decay of the encoder."""
    epsilon: float = 1e-8
    """Adam's epsilon."""
    scale: float = 1.0
    """Factor by which gradients from autograd are too large (float16)."""


@dataclass(frozen=True, eq=False)
class HeadInputs:
    """What a network hands to its head for one batch. Each head uses the fields it needs."""

    vectors: Tensor
    """(B, d) text vectors; (B, T, d) token states where the encoder returns these."""
    mask: Tensor | None = None
    """(B, T) bool, true where a token is real; None if all are."""
    votes: Targets | None = None
    """What is added to the logits of some labels."""
    recall_vectors: Tensor | None = None
    """(B, d) text vectors for recalling clusters, where these differ from the ones for ranking."""
    clusters: Tensor | None = None
    """(B, n) int64, clusters that an earlier network recalled."""
    log_scores: Tensor | None = None
    """(B, n) log scores of `clusters`; −inf where a slot holds none."""


@dataclass(frozen=True, eq=False)
class LabelSpace:
    """The labels that a head is built for."""

    n_labels: int
    counts: NDArray[np.int64] | None = None
    """(n_labels,) training texts of each label, for heads that order labels by frequency."""
    index: LabelIndex | None = None
    """Clusters of the labels, for heads that recall or search clusters."""


class Head(nn.Module):
    """Scores labels for text vectors."""

    options_class: ClassVar[type[Options]] = Options
    reads_votes: ClassVar[bool] = False
    """Whether this head adds `HeadInputs.votes` to its logits. Votes for other heads are an error."""
    reads_states: ClassVar[bool] = False
    """Whether `HeadInputs.vectors` must be token states (B, T, d)."""
    reads_clusters: ClassVar[bool] = False
    """Whether `top_k` needs `HeadInputs.clusters`, and training needs `fix_candidates`."""

    has_logits: ClassVar[bool] = False
    """Whether `logit_of` gives a label's logit, with gradients to the vectors."""

    recordable: ClassVar[bool] = False
    """Whether `recorded_top_k` computes the best labels in one go, so that the network can be exported as a graph."""

    built_from: ClassVar[str] = "n_labels"
    """The field of a `LabelSpace` that the head is made from."""

    n_labels: int
    order: NDArray[np.int64] | None = None
    """(n_places,) label at each place, −1 for padding; None if places are the labels."""

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: Any | None = None) -> Self:
        """Return a new head for text vectors (or token states) of `width` numbers.

        `options` are of `options_class`; None means the defaults.
        """
        return cls(width, required(getattr(labels, cls.built_from), cls.built_from), options)

    @abstractmethod
    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the loss of a batch times `share`. Its value must be right only with `show`, its gradients always.

        `share` is the fraction of the whole batch that these texts are, where a batch is cut into micro-batches.
        """

    @abstractmethod
    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return scores and places of the k best labels; k is at most `n_labels`.

        A head that looks only at a shortlist may find fewer: the rest of a row has place −1 and score −inf.
        """

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return what `top_k` does, computed so that it can be recorded as a graph for any batch (`nn.recording`).

        No number may leave its tensor, and no loop may depend on the batch. Only heads that are `recordable` have it.
        """
        raise ValueError(f"{type(self).__name__} cannot be recorded")

    def logit_of(self, vectors: Tensor, place: int) -> Tensor:
        """Return the logit of the label at a place for each text, (B,) float32: what explanations take apart."""
        raise ValueError(f"{type(self).__name__} has no logits of single labels")

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Set initial weights from the labels of the training texts, as places; called before the first step."""

    def begin_step(self, step: Step) -> None:
        """Say that the next loss is that of a whole step, which ends with this `step`; tables may be updated by it."""

    def step(self, step: Step) -> None:
        """Update what this head trains itself with all that `loss` was given since the last step."""

    def forget(self) -> None:
        """Drop what `loss` was given since the last step; the step will be tried again."""

    def tables(self) -> Mapping[str, LabelTable | RowTable]:
        """Return what trains itself, by attribute; the state of its optimiser belongs in a checkpoint."""
        return {}

    @property
    def bulk(self) -> dict[str, nn.Parameter]:
        """Return the parameters of the tables, named as in `named_parameters`; most of the memory of a large head."""
        return {
            f"{name}.{key}": value for name, table in self.tables().items() for key, value in table.named_parameters()
        }

    def held_bytes(self, n_texts: int, n_tokens: int) -> int:
        """Return the bytes that a step needs for `n_texts` texts of `n_tokens` tokens, without the encoder's.

        By default for logits, their gradient and the value of the loss.
        """
        widths = [table.n_at_once for table in self.tables().values()]
        return 3 * 4 * n_texts * (max(widths) if widths else self.n_labels)

    def group_of(self, name: str) -> str:
        """Return the parameter group (learning rate) of a parameter of this head."""
        return "head"

    def facts(self) -> dict[str, Any]:
        """Return facts about this head (sizes, ratios) as plain data, for `longtail info`."""
        return {}


class NoHead(Head):
    """Stands where a network gives text vectors alone: there are no labels."""

    n_labels = 0

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: Any | None = None) -> NoHead:
        """Return it, for text vectors of any width."""
        return cls()

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Raise: there is nothing to learn."""
        raise ValueError("a network without labels cannot be trained")

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Raise: there is nothing to find."""
        raise ValueError("a network without labels ranks none; ask for text vectors")


HEADS: Registry[type[Head]] = Registry(
    "head",
    {
        "dense": "longtail.nn.heads.dense",
        "dense-candidates": "longtail.nn.heads.dense_candidates",
        "adaptive": "longtail.nn.heads.adaptive",
        "shortlist": "longtail.nn.heads.shortlist",
        "tree": "longtail.nn.heads.tree",
        "labelwise": "longtail.nn.heads.labelwise",
        "labelwise-candidates": "longtail.nn.heads.labelwise_candidates",
        "softmax-sigmoid": "longtail.nn.heads.softmax_sigmoid",
    },
)


def required(value: T | None, name: str) -> T:
    """Return a part of a `LabelSpace`; raise if it is missing."""
    if value is None:
        raise ConfigError(f"this head must be given the {name} of its labels, got none")
    return value


def working_dtype(vectors: Tensor) -> torch.dtype:
    """Return the number type of large products: that of autocast if it is on, else that of the vectors."""
    kind = vectors.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else vectors.dtype


def positions(order: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    """Return the place of each label (n_labels,) from the label of each place; −1 for a label without one."""
    places = np.full(n_labels, -1, np.int64)
    real = np.flatnonzero(order >= 0)
    places[order[real]] = real
    return places


def best_first(logs: Tensor, places: Tensor, k: int, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the k best of log scores (B, n) and their places, ties by label; place −1 and −inf where there are fewer.

    `labels` (B, n) are those at `places`, where these differ.
    """
    by_label = (places if labels is None else labels).argsort(dim=1)
    logs, by_score = logs.gather(1, by_label).sort(dim=1, descending=True, stable=True)
    logs, places = logs[:, :k], places.gather(1, by_label).gather(1, by_score[:, :k])
    places, missing = places.masked_fill(logs == -torch.inf, -1), (0, k - logs.shape[1])
    return F.pad(logs, missing, value=-torch.inf), F.pad(places, missing, value=-1)


def as_scores(logs: Tensor, places: Tensor) -> Tensor:
    """Return log scores as scores; −inf stays where there is no place."""
    return logs.exp().masked_fill(places < 0, -torch.inf)


def with_gradients(value: Tensor, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """Return `value` as a loss whose gradients by `leaves` are `gradients`, whatever the value is."""
    loss: Tensor = _WithGradients.apply(value, gradients, *leaves)  # type: ignore[no-untyped-call]
    return loss


class _WithGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *leaves: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        ctx.kinds = [leaf.dtype for leaf in leaves]
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:
        pairs = zip(ctx.saved_tensors, ctx.kinds, strict=True)
        return None, None, *((gradient * upper).to(kind) for gradient, kind in pairs)
