"""Recall a few clusters of labels, rank the labels inside: LightXML's head, trained jointly (docs/methods/lightxml.md).

    vectors (B, d) -> recall table -> g (B, K)                         a logit per cluster
    vectors (B, d) -> bottleneck -> h (B, w); rank table E (K·s, w)    logits E·h + b of the labels in chosen clusters

    score(label) = σ(rank logit) · σ(logit of its cluster), computed as a sum of logs

In training the chosen clusters of a text are those of its labels, filled up with the ones that the recall currently
finds most likely: negatives get harder as it learns (`dynamic`). Candidates are whole clusters, so a positive is never
left out, and none occurs twice (docs/methods/lightxml.md#candidates).

Clusters are padded to the largest one, s slots: place = cluster · s + slot. Places without a label have the logit −inf,
so they have no loss and no gradient and are never returned.

The rank loss is computed in one of two ways with the same result. `masked` scores every row in chunks and lets only
candidates count: plain matrix products, which suit a GPU. `gather` reads only the candidates' rows (`candidates`):
that suits a CPU, or more labels than a GPU scores in reasonable time. Neither makes the device wait.

The gradient of the rank loss reaches the encoder through the bottleneck only, not through the recall or the choice.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import PositiveInt
from torch import Tensor, nn

from longtail.errors import ConfigError, DataError
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.base import HEADS, Head, HeadInputs, Step, as_scores, best_first, with_gradients, working_dtype
from longtail.nn.heads.candidates import (
    CandidateClusters,
    Fetched,
    Gathered,
    best_candidates,
    candidate_scores,
    choose,
    gathered_gradient,
)
from longtail.nn.heads.row_work import RowWork, Work
from longtail.nn.heads.table import LabelTable, LabelTableOptions
from longtail.options import Ablation, Options
from longtail.types import LabelMatrix

_FEW = 20
"""Gathering is faster on a CPU if less than one in so many clusters is ranked (16 texts, 20,000 labels, one core)."""


class ShortlistOptions(Options):
    """Shape, negatives and loss of the shortlist head."""

    n_clusters_ranked: PositiveInt = 75
    """Clusters per text whose labels are ranked."""
    bottleneck_width: PositiveInt = 400
    """Width that text vectors are narrowed to before ranking, and numbers per label."""
    bottleneck: Ablation[Literal["linear", "sigmoid"]] = "linear"
    """What is narrowed stays as it is, or goes through a sigmoid."""
    negatives: Ablation[Literal["dynamic", "static"]] = "dynamic"
    """Clusters to rank in training: chosen by the recall at every step, or fixed for each text beforehand."""
    loss: Ablation[Literal["mean", "mean_over_slots", "sum"]] = "mean"
    """`mean`: the recall loss is a mean over clusters, the rank loss over the labels of a text's candidates.
    `mean_over_slots`: the rank loss is divided by all slots of the ranked clusters, padding included. `sum`: sums."""
    parts: Ablation[Literal["both", "recall", "rank"]] = "both"
    """Which of the two losses is trained."""
    compute: Literal["auto", "masked", "gather"] = "auto"
    """How rank losses are computed: over all labels, masked, or over the gathered candidates. By default masked on a
    GPU, and on a CPU unless less than a twentieth of the clusters are ranked."""


@HEADS.register("shortlist")
class Shortlist(Head):
    """Recall over clusters and ranking inside the best of them."""

    built_from = "index"
    recordable = True
    options_class = ShortlistOptions

    order: NDArray[np.int64]
    sizes: Tensor  # (K,) labels of each cluster
    labels: Tensor  # (K·s,) `order` on the device

    def __init__(
        self,
        width: int,
        index: LabelIndex,
        options: ShortlistOptions | None = None,
        table: LabelTableOptions | None = None,
    ) -> None:
        """Rank labels by the last level of clusters of `index`, for text vectors of `width` numbers."""
        super().__init__()
        options, table = options or ShortlistOptions(), table or LabelTableOptions()
        slots = cluster_slots(index)
        self.options, self.n_labels, self.order = options, index.n_labels, slots.reshape(-1)
        self.n_clusters, self.size = slots.shape
        self.n_ranked = min(options.n_clusters_ranked, self.n_clusters)
        inner = options.bottleneck_width
        self.bottleneck = nn.Linear(width, inner)
        self.recall = LabelTable(self.n_clusters, width, table)
        real, bound = self.order >= 0, (6 / (self.n_labels + inner)) ** 0.5  # Xavier's
        self.rank = LabelTable(
            len(real), inner, table, bias=table.prior, group=self.size, real=real, bound=bound, sharded=True
        )
        self.register_buffer("sizes", torch.from_numpy((slots >= 0).sum(1)), persistent=False)
        self.register_buffer("labels", torch.from_numpy(self.order), persistent=False)
        self.works: dict[str, list[RowWork]]
        self.forget()
        self.fixed: NDArray[Any] | None = None

    def start_from(self, recall: Head) -> None:
        """Take over the weights of a trained dense head over the same clusters as the recall of this one."""
        self.recall.load_state_dict(recall.tables()["table"].state_dict())

    def fix_candidates(self, clusters: NDArray[Any]) -> None:
        """Set the clusters (n_texts, n) in which each training text is ranked, for static negatives."""
        if clusters.ndim != 2 or clusters.size == 0 or clusters.min() < 0 or clusters.max() >= self.n_clusters:
            raise DataError(
                f"candidates must be clusters 0 to {self.n_clusters - 1}, one row per text; got {clusters!r}"
            )
        ordered = np.sort(clusters, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            raise DataError("a text's candidates must differ, got a cluster twice in a row; recall gives each one once")
        self.fixed = clusters

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the loss of the recall plus that of the ranking."""
        vectors = inputs.vectors
        positives = cluster_targets(targets, self.size, vectors.device)
        plain, n_step = vectors.detach().to(working_dtype(vectors)), len(vectors) / share
        total = torch.zeros((), device=vectors.device)
        if self.options.parts != "rank":
            total = total + self._recall_loss(vectors, plain, positives, n_step, show)
        if self.options.parts != "recall":
            chosen = self.choose(plain, positives)
            total = total + self._rank_loss(self._narrow(vectors), targets, chosen, n_step, show)
        return total

    def choose(self, vectors: Tensor, positives: Targets) -> CandidateClusters:
        """Return the clusters in which texts are ranked for a loss; static ones are known for training texts only."""
        if self.options.negatives == "dynamic" or not torch.is_grad_enabled():
            return choose(self._recall_logits(vectors), positives, self.n_ranked)
        if self.fixed is None:
            raise ConfigError(
                "static negatives must be given before training, got none; use fix_candidates or lightxml's `negatives`"
            )
        fixed = on_device(self.fixed[positives.texts].astype(np.int64), vectors.device)  # (B, n)
        scores = torch.full((len(fixed), self.n_clusters), -torch.inf, device=vectors.device)
        first_best = torch.arange(fixed.shape[1], 0, -1.0, device=vectors.device).expand(fixed.shape)
        return choose(scores.scatter_(1, fixed, first_best), positives, fixed.shape[1])

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start from how frequent labels are, and clusters unless only the ranking is trained."""
        self.rank.init_from_labels(places.texts_per_label(), places.n_texts)
        if self.options.parts == "rank":
            return
        cluster_of = np.arange(len(self.order)) // self.size
        self.recall.init_from_labels(places.renumber(cluster_of, self.n_clusters).texts_per_label(), places.n_texts)

    def begin_step(self, step: Step) -> None:
        """Let the tables learn from the next loss, if their options say so."""
        for table in self.tables().values():
            table.begin_step(step.rates["head"], step.decay, step.epsilon)

    def step(self, step: Step) -> None:
        """Update the tables with all that `loss` was given since the last step."""
        for name, table in self.tables().items():
            table.update(self.works[name], step.rates["head"], step.decay, step.epsilon)
        self.forget()

    def forget(self) -> None:
        """Drop what `loss` was given since the last step."""
        self.works = {"recall": [], "rank": []}

    @torch.no_grad()
    def recalled(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and ids (B, n) of the clusters that are ranked in use, best first."""
        logits, clusters = self._recall_logits(vectors).topk(self.n_ranked)
        return logits, clusters

    @torch.no_grad()
    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels of the recalled clusters, exactly; equal scores are ordered by label.

        `inputs.recall_vectors` are the vectors that clusters are recalled by, where these are not those of ranking.
        """
        vectors = inputs.vectors
        logits, clusters = self.recalled(vectors if inputs.recall_vectors is None else inputs.recall_vectors)
        with torch.autocast(vectors.device.type, enabled=False):
            inner = self._narrow(vectors.to(self.bottleneck.weight.dtype))
            log_scores, places = best_candidates(self.rank, inner, clusters, F.logsigmoid(logits), k)
        logs, places = best_first(log_scores, places, k, self.labels[places])
        return as_scores(logs, places), places

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels of the recalled clusters; ties in the order of clusters and slots."""
        vectors = inputs.vectors
        recalling = vectors if inputs.recall_vectors is None else inputs.recall_vectors
        logits, clusters = self._recall_logits(recalling).topk(self.n_ranked)
        scores, places = candidate_scores(self.rank, self._narrow(vectors), clusters, F.logsigmoid(logits))
        logs, at = scores.topk(min(k, scores.shape[1]))
        places, missing = places.gather(1, at).masked_fill(logs == -torch.inf, -1), (0, k - logs.shape[1])
        logs, places = F.pad(logs, missing, value=-torch.inf), F.pad(places, missing, value=-1)
        return as_scores(logs, places), places

    def tables(self) -> dict[str, LabelTable]:
        """Return the tables that train themselves, by attribute."""
        return {"recall": self.recall, "rank": self.rank}

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        width, inner = self.bottleneck.in_features, self.options.bottleneck_width
        n_biases = 0 if self.rank.bias is None else self.n_labels
        return {
            "n_labels": self.n_labels,
            "n_clusters": self.n_clusters,
            "largest_cluster": self.size,
            "n_clusters_ranked": self.n_ranked,
            "n_weights": n_weights(width, self.n_clusters, inner, self.n_labels) + n_biases,
        }

    def group_of(self, name: str) -> str:
        """Return the parameter group of a parameter; the bottleneck has its own."""
        return "bottleneck" if name.startswith("bottleneck.") else "head"

    def _narrow(self, vectors: Tensor) -> Tensor:
        narrow: Tensor = self.bottleneck(vectors)
        return narrow.sigmoid() if self.options.bottleneck == "sigmoid" else narrow

    def _recall_logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of all clusters, (B, K) float32."""
        with torch.autocast(vectors.device.type, enabled=False):
            return self.recall.all_logits(vectors).float()

    def _recall_loss(self, vectors: Tensor, plain: Tensor, positives: Targets, n_step: float, show: bool) -> Tensor:
        summed = self.recall.options.reduction == "sum"
        work = Work(plain, positives, n_step if summed else n_step / self._recall_scale())
        with torch.autocast(vectors.device.type, enabled=False):
            gradient, value = self.recall.gradient(work, show)
        self._keep("recall", work)
        scale = torch.full((len(vectors), 1), self._recall_scale(), device=vectors.device)
        return _loss(vectors, gradient, value, scale, n_step)

    def _rank_loss(
        self, inner: Tensor, targets: Targets, chosen: CandidateClusters, n_step: float, show: bool
    ) -> Tensor:
        """Return the mean over texts of each text's scaled loss; rows get the same scale, or a constant times it."""
        plain, scale = inner.detach().to(working_dtype(inner)), self._rank_scale(chosen)
        typical = self.n_ranked * self.n_labels / self.n_clusters
        weights = None
        if self.rank.options.reduction == "mean":
            weights = scale[:, 0]
        elif self.options.loss == "mean":
            weights = scale[:, 0] * typical
        work: RowWork
        with torch.autocast(inner.device.type, enabled=False):
            if self._gathers(inner.device):
                gradient, value, signal = gathered_gradient(self.rank, plain, targets, chosen, show)
                signal = signal if weights is None else signal * weights[:, None]
                work = Gathered(plain, chosen.clusters, signal, n_step, Fetched(chosen.clusters))
            else:
                work = Work(plain, targets, n_step, weights, chosen.allowed(self.n_clusters))
                work = self.rank.of_all_texts(work)
                gradient, value = self.rank.gradient(work, show)
        self._keep("rank", work)
        return _loss(inner, gradient, value, scale, n_step)

    def _recall_scale(self) -> float:
        return 1.0 if self.options.loss == "sum" else 1 / self.n_clusters

    def _rank_scale(self, chosen: CandidateClusters) -> Tensor:
        """Return the factor of each text's sum over candidates, (B, 1)."""
        if self.options.loss == "mean":
            return 1 / chosen.n_real(self.sizes).clamp(min=1).float()[:, None]
        value = 1.0 if self.options.loss == "sum" else 1 / (self.n_ranked * self.size)
        return torch.full((len(chosen.clusters), 1), value, device=chosen.clusters.device)

    def _gathers(self, device: torch.device) -> bool:
        if self.rank.is_sharded:  # the candidates of a text are in several processes
            return False
        if self.options.compute != "auto":
            return self.options.compute == "gather"
        return device.type == "cpu" and _FEW * self.n_ranked < self.n_clusters

    def _keep(self, name: str, work: RowWork) -> None:
        if torch.is_grad_enabled():
            self.works[name].append(work)


def cluster_slots(index: LabelIndex) -> NDArray[np.int64]:
    """Return the labels of each last-level cluster (n_clusters, size of the largest), padded with −1."""
    level = index.levels()[-1]
    sizes = np.diff(level.child_ptr)
    slots = np.full((len(sizes), max(1, int(sizes.max()))), -1, np.int64)
    slots[np.arange(slots.shape[1]) < sizes[:, None]] = level.children
    return slots


def cluster_targets(targets: Targets, size: int, device: torch.device) -> Targets:
    """Return the clusters of each text's labels, each once, from places in clusters of `size` slots."""
    keys = np.unique(targets.host_labels // size * targets.n_texts + targets.host_rows)
    clusters, rows = np.divmod(keys, targets.n_texts)
    return Targets.of_pairs(rows, clusters, targets.texts).to(device)


def n_weights(width: int, n_clusters: int, bottleneck_width: int, n_labels: int) -> int:
    """Return the number of parameters of recall, bottleneck and labels, without padding and biases of labels."""
    return (width + 1) * n_clusters + (width + 1) * bottleneck_width + n_labels * bottleneck_width


def _loss(vectors: Tensor, gradient: Tensor, value: Tensor | None, scale: Tensor, n_step: float) -> Tensor:
    """Return a loss with this gradient (B, d) and, if it is shown, value (B,), each text scaled by `scale` (B, 1)."""
    shown = torch.zeros((), device=vectors.device) if value is None else (value * scale[:, 0]).sum() / n_step
    return with_gradients(shown, [vectors], [gradient * scale / n_step])
