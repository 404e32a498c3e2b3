"""A trained network with all that it needs to read texts: what neural methods are made of.

    Tagger.fit(texts, labels, …)  ->  Tagger
    tagger.top_k(texts, k)        ->  TopK
    tagger.vectors(texts)         ->  (n_texts, width) float32

A method says which encoder, and makes the head for the width of the text vectors. Folders hold the tokeniser, the
shape of the encoder and all weights: a saved model needs no hub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from longtail.engines.local import LocalEngine
from longtail.labels.scope import Scope
from longtail.log import LOG
from longtail.metrics import MetricOptions, evaluate
from longtail.nn.devices import choose_device
from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.nn.encoders.choice import ENCODERS
from longtail.nn.heads.base import Head, positions
from longtail.nn.network import Network, device_of
from longtail.nn.precision import settled
from longtail.nn.prediction import top_k_of, vectors_of
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.trainer import Trainer
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.processes import is_main_process
from longtail.progress import SILENT, Progress
from longtail.run import Precision, Run
from longtail.text.tokens import TokenRows, tokenise
from longtail.types import LabelMatrix, TopK

MakeHead = Callable[[int], Head]
"""Makes the head for text vectors of a width."""
MakeNetwork = Callable[[Encoder, Head, float], Network]
"""Puts encoder and head together, with dropout between them."""
VALIDATION_TEXTS = 4000
"""Held out for choosing weights, at most."""


@dataclass(eq=False)
class Tagger:
    """Encoder, head and tokeniser, trained."""

    network: Network
    options: EncoderOptions
    facts: dict[str, Any] = field(default_factory=dict)
    _lighter: dict[Precision, Network] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        texts: pa.Table,
        labels: LabelMatrix,
        encoder: EncoderOptions,
        make_head: MakeHead,
        training: TrainingOptions,
        dropout: float = 0.0,
        seed: int = 0,
        run: Run | None = None,
        start: Tagger | None = None,
        make_network: MakeNetwork = Network,
        scope: Scope | None = None,
    ) -> Tagger:
        """Train on texts and their labels; `start` gives the encoder that training begins with.

        A `scope` has some labels for each text, which the encoder reads beside it.
        """
        run = run or Run()
        with threads_of(run.engine), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            with run.progress.step("encoder"):
                made = ENCODERS[encoder.kind].create(encoder, texts, seed, run.progress)  # type: ignore[attr-defined]
            if start is not None:
                made.load_state_dict(start.network.encoder.state_dict())
            network = make_network(made, make_head(made.width), dropout)
            tokens = tokenise(texts, made.tokeniser, encoder.tokens, run.progress, run.stages)
            tokens = tokens if scope is None else _with_scope(made, tokens, scope)
            _tell_cut(tokens, made.tokeniser.max_tokens)
            places = _as_places(labels, network.head)
            network.head.begin(places)
            tagger = cls(network, encoder)
            trainer = Trainer(network, training, seed, run)
            tagger.facts = tagger._train(trainer, tokens, places, training, seed)
        return tagger

    def _train(
        self, trainer: Trainer, tokens: TokenRows, places: LabelMatrix, training: TrainingOptions, seed: int
    ) -> dict[str, Any]:
        pad_id, widest = self.tokeniser.pad_id, self.tokeniser.max_tokens
        cut = round(tokens.n_cut / max(len(tokens), 1), 4)
        kept, held = split_rows(len(tokens), training, seed)
        if not len(held):
            at = trainer.fit(tokens, places, pad_id, widest)
            return {"n_steps": at.step, "cut": cut}
        held_tokens, truth = tokens.take(held), places.take(held)
        counts = np.bincount(places.take(kept).indices, minlength=places.n_labels)

        def score() -> float:
            found = top_k_of(self.network, held_tokens, 5, pad_id, places=True)
            return evaluate(found, truth, counts, len(kept), MetricOptions(at=(5,))).values["nDCG@5"]

        at = trainer.fit(tokens.take(kept), places.take(kept), pad_id, widest, score)
        return {"n_steps": at.step, "cut": cut, "best_step": at.best_step, "validation": at.history}

    @property
    def tokeniser(self) -> Any:
        """What turns texts into ids."""
        return self.network.encoder.tokeniser

    def tokens(self, texts: pa.Table, progress: Progress = SILENT, scope: Scope | None = None) -> TokenRows:
        """Texts as ids, with their scopes."""
        tokens = tokenise(texts, self.tokeniser, self.options.tokens, progress)
        return tokens if scope is None else _with_scope(self.network.encoder, tokens, scope)

    def top_k(self, texts: pa.Table, k: int, run: Run | None = None, scope: Scope | None = None) -> TopK:
        """The k best labels of each text."""
        run = run or Run()
        with threads_of(run.engine):
            tokens = self.tokens(texts, run.progress, scope)
            return top_k_of(self.lightened(run.precision), tokens, k, self.tokeniser.pad_id, run.progress)

    def vectors(self, texts: pa.Table, run: Run | None = None, scope: Scope | None = None) -> NDArray[np.float32]:
        """The vector of each text."""
        run = run or Run()
        with threads_of(run.engine):
            tokens = self.tokens(texts, run.progress, scope)
            return vectors_of(self.lightened(run.precision), tokens, self.tokeniser.pad_id, run.progress)

    def describe(self) -> dict[str, Any]:
        """What people want to know of a network."""
        origin = self.network.encoder.facts().get("origin", {})
        size = sum(parameter.numel() for parameter in self.network.parameters())
        head = {"head": type(self.network.head).__name__.lower(), **self.network.head.facts()}
        named = {"encoder": origin.get("name", self.options.plain()["kind"])}
        found = {"from": origin["source"]} if origin else {}
        return {**named, **found, "n_weights_in_all": size, **self.facts, **head}

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
        kind = ENCODERS[facts["options"]["kind"]]
        options = kind.options_class.of(facts["options"])
        with torch.random.fork_rng(devices=[]):
            encoder: Encoder = kind.restore(options, facts["encoder"], folder, name)
            network = make_network(encoder, make_head(encoder.width), 0.0)
        network.load_state_dict(to_tensors(folder.arrays(name)), assign=True)
        network.requires_grad_(False)
        network.eval()
        return cls(network, options, facts["training"])

    def lightened(self, precision: Precision = "auto") -> Network:
        """The network as it is used, on the device where that is done; a lighter copy is made once."""
        device = choose_device("auto")
        if device_of(self.network).type != device.type:
            self.network.to(device)
        precision = settled(precision, device)
        if precision == "fp32":
            return self.network
        if precision not in self._lighter:
            self._lighter[precision] = self.network.lightened(precision).eval()
        return self._lighter[precision]


def split_rows(n_texts: int, training: TrainingOptions, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The texts that are trained on, and those held out for validation, if any; each in their order."""
    if not training.validation or n_texts < 2:
        return np.arange(n_texts), np.empty(0, np.int64)
    drawn = np.random.default_rng([seed, 2]).permutation(n_texts)
    n_held = max(1, min(VALIDATION_TEXTS, int(n_texts * training.validation)))
    return np.sort(drawn[n_held:]), np.sort(drawn[:n_held])


def _with_scope(encoder: Encoder, tokens: TokenRows, scope: Scope) -> TokenRows:
    """Texts with the labels of their scopes, as the encoder reads them, and with their neighbours' votes."""
    return replace(encoder.with_scope(tokens, scope), votes=scope.votes)


def _as_places(labels: LabelMatrix, head: Head) -> LabelMatrix:
    """Labels as the head numbers them."""
    if head.order is None:
        return labels
    return labels.renumber(positions(head.order, labels.n_labels), len(head.order))


def _tell_cut(tokens: TokenRows, limit: int) -> None:
    if tokens.n_cut and is_main_process():
        LOG.warning(
            "%s of the texts are longer than %d tokens (encoder.tokens.max_tokens, or the encoder's own limit) and are "
            "cut there", f"{tokens.n_cut / len(tokens):.2%}", limit,
        )  # fmt: skip


@contextmanager
def threads_of(engine: LocalEngine) -> Iterator[None]:
    """With as many threads as the run may use."""
    before = torch.get_num_threads()
    torch.set_num_threads(engine.n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def columns_of(encoders: Sequence[EncoderOptions]) -> tuple[str, ...]:
    """The columns of texts that encoders read."""
    return tuple(dict.fromkeys(column for encoder in encoders for column in encoder.tokens.columns))
