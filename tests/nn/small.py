"""Small networks, texts for them to learn, and their training; as a program, one of several processes that train them.

RANK=0 WORLD_SIZE=2 … python small.py FOLDER

writes the weights of each of CASES to FOLDER/<case>-<rank>.npz, and what networks of several processes predict while
they are trained to FOLDER/<case>-lists-<rank>.npz. FOLDER/begun is gone on with, FOLDER/stopped left after six steps.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.labels.buckets import BucketOptions, build_buckets
from longtail.labels.index import LabelIndex
from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions
from longtail.nn.heads.base import Head, positions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.dense_candidates import DenseCandidates
from longtail.nn.heads.shards import shards_of
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.heads.tree import Tree, TreeHeadOptions
from longtail.nn.network import Network
from longtail.nn.prediction import top_k_of
from longtail.nn.rows import RowTable
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.sparse import sp
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

ALONE = LocalEngine(1)
"""One thread: processes that train together would wait for each other's."""
WIDTH, N_WORDS, N_LABELS, N_TEXTS, LONGEST = 8, 40, 11, 30, 13


class Ids:
    """Stands for a tokeniser where texts are given as ids."""

    pad_id, n_ids, max_tokens = 0, N_WORDS, LONGEST


class Mean(Encoder):
    """The mean of word vectors, and a layer above it."""

    width = WIDTH
    options_class = EncoderOptions

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokeniser: Any = Ids()
        self.words = nn.Embedding(N_WORDS, WIDTH)
        self.above = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        words = self.dropout(self.words(ids))
        share = torch.ones_like(ids, dtype=words.dtype) if mask is None else mask.to(words.dtype)
        return self.above((words * share[:, :, None]).sum(1) / share.sum(1, keepdim=True).clamp(min=1))


class Bag(Mean):
    """The same without a layer, of words that train themselves."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.words, self.above = RowTable(N_WORDS, WIDTH, 1.0), nn.Identity()

    def tables(self) -> dict[str, RowTable]:
        return {"words": self.words}

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        return self.dropout(self.words.sums(ids, real) / real.sum(1, keepdim=True).clamp(min=1))


def a_head(kind: str, storage: str = "float32", passes: Literal[1, 2] = 2, **options: Any) -> Head:
    table = LabelTableOptions(chunk=4, storage=storage, passes=passes)
    if kind == "dense":
        return Dense(WIDTH, N_LABELS, table, **options)
    if kind == "adaptive":
        counts = np.arange(N_LABELS)[::-1]
        return Adaptive(WIDTH, build_buckets(counts, BucketOptions(shares=(0.4, 0.3, 0.3))), AdaptiveOptions(**options))
    parent = np.arange(N_LABELS, dtype=np.int32) % 4
    index = LabelIndex((np.zeros(4, np.int32), np.sort(parent)))
    if kind == "dense-candidates":
        head = DenseCandidates(WIDTH, index, table, **options)
        counts = texts()[1].to_scipy().astype(np.float32)
        counts.data = 1 + np.arange(len(counts.data), dtype=np.float32) % 3
        head.weigh(counts)
        return head
    if kind == "tree":
        return Tree(WIDTH, index, TreeHeadOptions(**options))
    return Shortlist(WIDTH, index, ShortlistOptions(n_clusters_ranked=2, bottleneck_width=6, **options), table)


def a_network(
    kind: str = "dense", dropout: float = 0.0, frozen: bool = False, bag: bool = False, **options: Any
) -> Network:
    torch.manual_seed(0)
    if kind == "adaptive":
        options["dropout"] = dropout
    network = Network((Bag if bag else Mean)(dropout), a_head(kind, **options), dropout)
    if frozen:
        network.encoder.requires_grad_(False)
    return network


def texts(n: int = N_TEXTS, seed: int = 0) -> tuple[TokenRows, LabelMatrix]:
    """Words that tell the labels of their texts; the second text has none."""
    rng = np.random.default_rng(seed)
    lists = [sorted(rng.choice(N_LABELS, rng.integers(1, 4), replace=False).tolist()) for _ in range(n)]
    lists[1:2] = [[]] if n > 1 else []
    rows = [[*(1 + label for label in own), *rng.integers(20, N_WORDS, rng.integers(1, 10)).tolist()] for own in lists]
    ptr = np.cumsum([0, *map(len, rows)])
    return TokenRows(np.concatenate(rows).astype(np.uint16), ptr), LabelMatrix.from_lists(lists, N_LABELS)


def places(labels: LabelMatrix, head: Head) -> LabelMatrix:
    """Labels as the head numbers them."""
    return labels if head.order is None else labels.renumber(positions(head.order, head.n_labels), len(head.order))


def options(**more: Any) -> TrainingOptions:
    """Ten steps of seven texts, all on a CPU, unless told otherwise."""
    plain = {"n_steps": 10, "batch_size": 7, "rate": 1e-2, "device": "cpu", "averaging": {"kind": "none"}}
    return TrainingOptions.of({**plain, **more})


def train(
    network: Network,
    run: Run | None = None,
    n_texts: int = N_TEXTS,
    validate: Any = None,
    voted: bool = False,
    recalled: bool = False,
    **more: Any,
) -> Trainer:
    """A trainer that has trained the network."""
    tokens, labels = texts(n_texts)
    if voted:
        numbers = np.random.default_rng(1).random((n_texts, labels.n_labels), np.float32)
        tokens = replace(tokens, votes=sp.csr_matrix(np.where(numbers > 0.7, 3 * numbers, 0)))
    if recalled:
        clusters = np.random.default_rng(1).permuted(np.tile(np.arange(4), (n_texts, 1)), axis=1)[:, :2]
        tokens = replace(tokens, clusters=clusters.astype(np.int32), log_scores=np.zeros((n_texts, 2), np.float32))
    trainer = Trainer(network, options(**more), 3, run or Run())
    trainer.fit(tokens, places(labels, network.head), 0, LONGEST, validate)
    return trainer


def weights(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dense": ({}, {}),
    "dense, cut": ({}, {"micro_batch": 2, "clip_norm": 0.5}),
    "dense, an even batch": ({}, {"batch_size": 8}),
    "dense, frozen encoder": ({"frozen": True}, {}),
    "dense, softmax": ({"loss": "softmax"}, {"micro_batch": 3}),
    "dense, votes": ({}, {"voted": True}),
    "dense, votes, cut": ({}, {"voted": True, "micro_batch": 2}),
    "dense within candidates": ({"kind": "dense-candidates"}, {"recalled": True}),
    "dense within candidates, cut": ({"kind": "dense-candidates"}, {"recalled": True, "micro_batch": 2}),
    "dense in bfloat16": ({"storage": "bfloat16"}, {}),
    "shortlist": ({"kind": "shortlist", "compute": "masked"}, {}),
    "shortlist, cut": ({"kind": "shortlist", "compute": "masked"}, {"micro_batch": 3}),
    "shortlist, gathered": ({"kind": "shortlist", "compute": "gather"}, {"micro_batch": 2}),
    "shortlist, frozen encoder": ({"kind": "shortlist", "frozen": True}, {}),
    "shortlist, recall alone": ({"kind": "shortlist", "parts": "recall"}, {}),
    "tree": ({"kind": "tree"}, {"micro_batch": 3}),
    "bag and tree": ({"kind": "tree", "bag": True}, {"rate": 0.1, "head_rate": 0.1}),
    "bag, cut": ({"bag": True}, {"micro_batch": 2, "rate": 0.1, "decay": 0.1}),
    "adaptive": ({"kind": "adaptive"}, {}),
    "adaptive, cut": ({"kind": "adaptive"}, {"micro_batch": 1}),
    "fewer texts than a batch": ({}, {"n_texts": 5}),
    "averages": ({}, {"averaging": {"kind": "ema", "every": 2}}),
    "dense, one pass": ({"passes": 1}, {}),
    "shortlist, one pass": ({"kind": "shortlist", "passes": 1}, {}),
}
"""How networks are made, and how trained."""


STOPPED: dict[str, Any] = {"averaging": {"kind": "ema"}}
"""How networks are trained that are stopped on the way."""
RESUMED = "stopped and resumed"
"""One more case: in two goes, by as many processes."""
GONE_ON_WITH = "stopped by others and gone on with"
"""One more case: in two goes, by other processes."""
PREDICTING: dict[str, dict[str, Any]] = {
    "dense": {},
    "dense, softmax": {"loss": "softmax"},
    "shortlist": {"kind": "shortlist"},
}
"""Networks that predict while they are trained."""


def begin(folder: Path) -> None:
    """Train six steps of ten."""
    run = Run(ALONE, stages=FolderStages.open(folder, {}, resume=False))
    train(a_network(), run, epochs_left_out=4 * 7 / N_TEXTS, **STOPPED)


def go_on(folder: Path) -> tuple[Network, Trainer]:
    """Train the other four."""
    network = a_network()
    run = Run(ALONE, stages=FolderStages.open(folder, {}, resume=True))
    return network, train(network, run, **STOPPED)


def lists_in_training(network: Network) -> dict[str, NDArray[Any]]:
    """Return what a network predicts for its texts in the midst of its training: labels and scores."""
    tokens, _ = texts()
    kept: dict[str, NDArray[Any]] = {}

    def validate() -> float:
        best = top_k_of(network, tokens, 5)
        kept.update(labels=best.labels, scores=best.scores)
        return 0.5

    train(network, Run(ALONE), validate=validate, validations=1)
    return kept


def main(folder: Path) -> None:
    rank, n_ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with shards_of(rank, n_ranks):
        for case, (shape, training) in CASES.items():
            network = a_network(**shape)
            _keep(folder, case, network, train(network, Run(ALONE), **training))
        for case, shape in PREDICTING.items():
            np.savez(folder / f"{case}-lists-{rank}.npz", **lists_in_training(a_network(**shape)))
        for name in ("work", "stopped"):
            begin(folder / name)
            torch.distributed.barrier()  # until the main process has written it
        _keep(folder, RESUMED, *go_on(folder / "work"))
        _keep(folder, GONE_ON_WITH, *go_on(folder / "begun"))


def _keep(folder: Path, case: str, network: Network, trainer: Trainer) -> None:
    made = {name: value.float().numpy() for name, value in weights(network).items()}
    np.savez(folder / f"{case}-{trainer.accelerator.process_index}.npz", **made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
