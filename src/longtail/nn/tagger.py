"""A trained network with everything it needs to read texts: what neural methods are made of.

    Tagger.fit(texts, labels, plan, make_head)  ->  Tagger
    tagger.top_k(texts, k)                      ->  TopK (n_texts, k)
    tagger.vectors(texts)                       ->  (n_texts, width) float32

A method chooses the encoder and makes the head for the width of its text vectors. Folders hold the tokeniser, the shape
of the encoder and all weights: a saved model needs no hub.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from longtail.errors import ModelFormatError
from longtail.labels.recall import Recalled
from longtail.metrics import MetricOptions, evaluate
from longtail.neighbours.scope import Scope
from longtail.nn.encoders.base import ENCODERS, Encoder, EncoderOptions, encoder_class
from longtail.nn.heads.base import Head, NoHead, positions
from longtail.nn.heads.shards import shards_of
from longtail.nn.network import Network, device_of
from longtail.nn.precision import resolve_precision
from longtail.nn.prediction import top_k_and_vectors_of, top_k_of, vectors_of
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.devices import choose_device
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer
from longtail.nn.turns import in_turn
from longtail.old_options import current_options
from longtail.persist import Folder, FolderWriter
from longtail.run.log import LOG
from longtail.run.processes import is_main_process, n_processes, process_number
from longtail.run.run import Precision, Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import Tokeniser, TokenRows
from longtail.types import LabelMatrix, TopK

MakeHead = Callable[[int], Head]
"""Returns the head for text vectors of a width."""
MakeNetwork = Callable[[Encoder, Head, float], Network]
"""Returns a network of encoder and head, with dropout between them."""
VALIDATION_TEXTS = 4000
"""Largest number of texts held out for choosing weights."""


@dataclass(frozen=True)
class NetworkPlan:
    """What a network is made of and trained with, apart from its head."""

    encoder: EncoderOptions
    training: TrainingOptions
    dropout: float = 0.0
    """Dropout of the text vector."""
    seed: int = 0


@dataclass(eq=False)
class Tagger:
    """A trained network: tokeniser, encoder and head."""

    network: Network
    options: EncoderOptions
    facts: dict[str, Any] = field(default_factory=dict)
    _quantised: dict[Precision, Network] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.network.eval()

    @classmethod
    def fit(
        cls,
        texts: TextReadings,
        labels: LabelMatrix,
        plan: NetworkPlan,
        make_head: MakeHead,
        *,
        run: Run | None = None,
        start: Tagger | None = None,
        make_network: MakeNetwork = Network,
        scope: Scope | None = None,
        recalled: Recalled | None = None,
    ) -> Tagger:
        """Train a network on texts and their labels.

        `start` is a trained network whose encoder training begins with. A `scope` names some labels for each text,
        which the encoder reads beside it. `recalled` are label clusters of each text, for heads that read these.
        """
        run = run or Run()
        with torch.random.fork_rng(devices=[]):
            with in_turn(run.engine), run.progress.step("encoder"):
                torch.manual_seed(plan.seed)
                encoder = encoder_class(plan.encoder).create(plan.encoder, texts, plan.seed, run)
                if start is not None:
                    encoder.load_state_dict(start.network.encoder.state_dict())
                with shards_of(process_number(), n_processes()):
                    network = make_network(encoder, make_head(encoder.width), plan.dropout)
            tokens = texts.tokens(encoder.tokeniser, plan.encoder.tokens, run, stage="tokens")
            tokens = tokens if scope is None else _with_scope(encoder, tokens, scope)
            tokens = _with_clusters(tokens, recalled)
            _warn_of_cut_texts(tokens, encoder.tokeniser.max_tokens)
            places = _as_places(labels, network.head)
            with in_turn(run.engine):
                network.head.init_from_labels(places)
            trainer = Trainer(network, plan.training, plan.seed, run)
            return cls(network, plan.encoder, _train(trainer, tokens, places))

    @property
    def tokeniser(self) -> Tokeniser:
        """What turns texts into ids."""
        return self.network.encoder.tokeniser

    def tokens(self, texts: TextReadings, run: Run, scope: Scope | None = None) -> TokenRows:
        """Return texts as token ids, with their scopes."""
        tokens = texts.tokens(self.tokeniser, self.options.tokens, run)
        return tokens if scope is None else _with_scope(self.network.encoder, tokens, scope)

    def top_k(self, texts: TextReadings, k: int, run: Run | None = None, *, scope: Scope | None = None) -> TopK:
        """Return the k best labels of each text."""
        run = run or Run()
        tokens = self.tokens(texts, run, scope)
        return top_k_of(self.quantised(run.precision), tokens, k, run=run)

    def vectors(self, texts: TextReadings, run: Run | None = None) -> NDArray[np.float32]:
        """Return the vector of each text, (n_texts, width)."""
        run = run or Run()
        return vectors_of(self.quantised(run.precision), self.tokens(texts, run), run=run)

    def top_k_and_vectors(
        self, texts: TextReadings, k: int, run: Run, *, recalled: Recalled | None = None
    ) -> tuple[TopK, NDArray[np.float32]]:
        """Return what `top_k` and `vectors` do, among the `recalled` clusters if given; texts are encoded once."""
        tokens = _with_clusters(self.tokens(texts, run), recalled)
        return top_k_and_vectors_of(self.quantised(run.precision), tokens, k, run=run)

    def without_head(self) -> Tagger:
        """Return a tagger that gives text vectors alone; its encoder is this one."""
        return Tagger(Network(self.network.encoder, NoHead()), self.options, self.facts)

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of a network."""
        network = self.network
        origin = network.encoder.facts().get("origin", {})
        return {
            "encoder": origin.get("name", self.options.plain()["kind"]),
            **({"from": origin["source"]} if origin else {}),
            "n_weights_in_all": sum(parameter.numel() for parameter in network.parameters()),
            **self.facts,
            "head": type(network.head).__name__.lower(),
            **network.head.facts(),
        }

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.tokeniser.save(writer, f"{name}-tokeniser")
        writer.arrays(name, to_arrays(self.network.state_dict()))
        writer.manifest[name] = {
            "encoder": self.network.encoder.facts(),
            "options": self.options.plain(),
            "training": self.facts,
        }

    @classmethod
    def load(cls, folder: Folder, name: str, make_head: MakeHead, make_network: MakeNetwork = Network) -> Tagger:
        """Open what `save` wrote; weights stay on disk until they are used."""
        facts = folder.manifest[name]
        kind = ENCODERS.get(facts["options"]["kind"])
        options = kind.options_class.of(current_options(facts["options"]))
        with torch.random.fork_rng(devices=[]):
            encoder: Encoder = kind.restore(options, facts["encoder"], folder, name)
            network = make_network(encoder, make_head(encoder.width), 0.0)
        weights, expected = to_tensors(folder.arrays(name)), network.state_dict()
        wrong = [key for key in weights if key in expected and weights[key].dtype != expected[key].dtype]
        if wrong:
            raise ModelFormatError(
                f"{folder.path}, {name}: {wrong[0]} must be {expected[wrong[0]].dtype}; train it anew"
            )
        network.load_state_dict(weights, assign=True)  # refuses other names and shapes
        network.requires_grad_(False)
        return cls(network, options, dict(facts["training"]))

    def quantised(self, precision: Precision = "auto") -> Network:
        """Return the network for prediction, on the device that is used; a copy per precision is made once."""
        device = choose_device("auto")
        precision = resolve_precision(precision, device)
        with _MOVING:
            if device_of(self.network).type != device.type:
                self.network.to(device)
            if precision == "fp32":
                return self.network
            if precision not in self._quantised:
                self._quantised[precision] = self.network.quantised(precision).eval()
            return self._quantised[precision]


def split_rows(n_texts: int, training: TrainingOptions, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the texts that are trained on, and those held out for validation, both in ascending order."""
    if not training.validation or n_texts < 2:
        return np.arange(n_texts), np.empty(0, np.int64)
    drawn = np.random.default_rng([seed, 2]).permutation(n_texts)
    n_held = max(1, min(VALIDATION_TEXTS, int(n_texts * training.validation)))
    return np.sort(drawn[n_held:]), np.sort(drawn[:n_held])


def rows_held_out(plans: Iterable[NetworkPlan], n_texts: int) -> NDArray[np.int64]:
    """Return the texts that the networks of all these plans hold out for validation, in ascending order."""
    held = [split_rows(n_texts, plan.training, plan.seed)[1] for plan in plans]
    return reduce(partial(np.intersect1d, assume_unique=True), held)


def _train(trainer: Trainer, tokens: TokenRows, places: LabelMatrix) -> dict[str, Any]:
    """Train on all texts but those held out for validation; return the facts of the training."""
    network, tokeniser = trainer.network, trainer.network.encoder.tokeniser
    facts: dict[str, Any] = {"cut": round(tokens.n_cut / max(len(tokens), 1), 4)}
    kept, held = split_rows(len(tokens), trainer.options, trainer.seed)
    if not len(held):
        reached = trainer.fit(tokens, places, tokeniser.pad_id, tokeniser.max_tokens)
        return {"n_steps": reached.step, **facts}
    held_tokens, truth = tokens.take(held), places.take(held)
    counts = np.bincount(places.take(kept).indices, minlength=places.n_labels)

    def score() -> float:
        best = top_k_of(network, held_tokens, 5, run=Run(trainer.run.engine), places=True)
        return evaluate(best, truth, counts, len(kept), MetricOptions(at=(5,))).values["nDCG@5"]

    reached = trainer.fit(tokens.take(kept), places.take(kept), tokeniser.pad_id, tokeniser.max_tokens, score)
    return {"n_steps": reached.step, **facts, "best_step": reached.best_step, "validation": reached.history}


def _with_scope(encoder: Encoder, tokens: TokenRows, scope: Scope) -> TokenRows:
    """Return texts with the labels of their scopes, as the encoder reads them, and with their neighbours' votes."""
    return replace(encoder.with_scope(tokens, scope), votes=scope.votes)


def _with_clusters(tokens: TokenRows, recalled: Recalled | None) -> TokenRows:
    """Texts with the label clusters that were recalled for them."""
    if recalled is None:
        return tokens
    return replace(tokens, clusters=recalled.clusters, log_scores=recalled.log_scores)


def _as_places(labels: LabelMatrix, head: Head) -> LabelMatrix:
    """Return labels numbered as in the head."""
    if head.order is None:
        return labels
    return labels.renumber(positions(head.order, labels.n_labels), len(head.order))


def _warn_of_cut_texts(tokens: TokenRows, limit: int) -> None:
    if tokens.n_cut and is_main_process():
        LOG.warning(
            "%s of the texts are longer than %d tokens (encoder.tokens.max_tokens, or the encoder's own limit) and are "
            "cut there", f"{tokens.n_cut / len(tokens):.2%}", limit,
        )  # fmt: skip


_MOVING = threading.Lock()
"""Held while a network goes to another device or is copied in another precision: threads share it."""
