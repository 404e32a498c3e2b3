"""Any encoder of `transformers`: BERT, RoBERTa, XLNet, DistilBERT, MiniLM, E5, ModernBERT, from a folder or the hub.

    ids (B, T)  ->  hidden states (B, T, d) of the last layers  ->  pooled (B, n_layers · d)

Pooling takes one position (`cls`: the encoder's summary token, the last one in XLNet; `first`; `last`), the mean of the
real tokens, or the encoder's own pooler; from the last layer, or from several side by side, the last one first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.errors import ConfigError, ModelFormatError
from longtail.neighbours.scope import Scope
from longtail.nn.encoders.base import ENCODERS, Encoder, EncoderOptions, lengths_of
from longtail.nn.encoders.bert_layer import FAMILIES, Runs, shorten
from longtail.nn.heads.base import working_dtype
from longtail.nn.pretrained import (
    DEFAULT,
    config_of,
    find,
    load_config,
    load_tokenizer,
    load_weights,
    origin_of,
    quiet,
)
from longtail.persist import Folder
from longtail.run.log import LOG
from longtail.run.run import Run
from longtail.text.pieces import Pieces
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows, side_by_side

_NO_LIMIT = 1 << 20
_SQUARE_MASKS = {"bert", "distilbert", "roberta", "xlm-roberta"}
"""Architectures that take a mask (B, 1, 1, T) as it is; with (B, T) they synchronise to check if all is true."""
_QUERIES = {"query", "q", "q_lin", "q_proj", "Wqkv"}
"""Names of the projection to queries."""
_TIME_FIRST = {"xlnet"}
"""Architectures whose layers return states (T, B, d)."""


class TransformerOptions(EncoderOptions):
    """A pretrained encoder."""

    kind: Literal["transformer"] = "transformer"
    """Which encoder this is."""
    model: str = DEFAULT
    """A folder with config, weights and tokenizer, or a name on the hub."""
    pooling: Literal["cls", "first", "last", "mean", "pooler"] = "cls"
    """How hidden states become a text vector: the summary token, the first or last token, the mean of all, or the
    encoder's pooler. Encoders without a pooler (XLNet, DistilBERT, ModernBERT) use their summary token instead."""
    n_layers: PositiveInt = 1
    """Last layers whose vectors are concatenated."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout inside the encoder; by default as it was pretrained."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention weights, for encoders that have a separate one; by default as it was pretrained. On a GPU
    attention is faster without."""
    trainable_layers: int | None = Field(None, ge=0)
    """Train only this many of the last layers; by default all."""
    checkpointing: bool = False
    """Recompute hidden states in the backward pass: a third slower, a fraction of the memory."""
    scope_tokens: PositiveInt = 128
    """Where a label scope is read after the text: how many of `tokens.max_tokens` its label names may take."""

    def scope_fault(self, limit: int | None = None) -> str:
        """Return why a scope cannot be read; `limit` is the number of tokens that the encoder reads, if known."""
        limit = limit or self.tokens.max_tokens
        if self.scope_tokens <= limit // 2:
            return ""
        return f"scope_tokens must be at most half of max_tokens ({limit}), got {self.scope_tokens}; lower it"


@ENCODERS.register("transformer")
class Transformer(Encoder):
    """A pretrained encoder with pooling."""

    options_class = TransformerOptions

    def __init__(self, model: Any, tokeniser: Pieces, options: TransformerOptions, origin: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.tokeniser, self.options, self.origin = model, tokeniser, options, origin
        depth = int(model.config.num_hidden_layers)
        if tokeniser is not None:
            tokeniser.check_fits(int(model.config.vocab_size))
        if options.n_layers > depth:
            raise ConfigError(f"encoder.n_layers must be at most {depth} for {options.model}, got {options.n_layers}")
        lacks_pooler = options.pooling == "pooler" and getattr(model, "pooler", None) is None
        self.pooling = "cls" if lacks_pooler else options.pooling
        self.width = int(model.config.hidden_size) * (1 if self.pooling == "pooler" else options.n_layers)
        sdpa = getattr(model.config, "_attn_implementation", None) == "sdpa"
        self._square = sdpa and model.config.model_type in _SQUARE_MASKS
        pools_first = self._pools_first(tokeniser)
        kin = sdpa and model.config.model_type in FAMILIES
        self._packs = kin and pools_first and not options.checkpointing
        if kin:
            shorten(self.layers(), alone=pools_first)
        for layer in list(self.layers())[depth - options.n_layers : -1]:
            layer.register_forward_hook(_keep_state)
        if options.checkpointing:
            if not model.supports_gradient_checkpointing:
                name = model.config.model_type
                raise ConfigError(
                    f"encoder.checkpointing: {name} does not support it; use training.micro_batch to save memory"
                )
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if options.trainable_layers is not None:
            model.requires_grad_(False)
            for layer in list(self.layers())[depth - options.trainable_layers :]:
                layer.requires_grad_(True)

    @classmethod
    def create(cls, options: Any, texts: TextReadings, seed: int = 0, run: Run | None = None) -> Self:
        """Return a pretrained encoder from a folder or the hub."""
        pretrained = find(options.model)
        tokenizer = load_tokenizer(pretrained)
        pooler = options.pooling == "pooler"
        model, missing = load_weights(pretrained, add_pooling_layer=pooler)
        lost = sorted(name for name in missing if pooler or "pooler" not in name)
        if lost:
            raise ConfigError(f"encoder.model: {options.model} lacks the weights of {lost[0]} (of {len(lost)} in all)")
        set_dropout(model, options.dropout)
        set_dropout(model, options.attention_dropout, is_of_attention(model))
        origin = {"name": options.model, "source": pretrained.source}
        LOG.info("encoder %s from %s", options.model, pretrained.source)
        encoder = cls(model, _pieces(tokenizer, model, options), options, origin)
        if encoder.pooling != options.pooling:
            LOG.warning("encoder %s has no pooler: its summary token is used instead (pooling 'cls')", options.model)
        return encoder

    @classmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """Return the shape without weights; from the hub only config and tokenizer are fetched."""
        pretrained = find(options.model)
        tokenizer, config = load_tokenizer(pretrained), load_config(pretrained)
        with torch.device("meta"):
            encoder = cls.from_config(config, options, None)
        set_dropout(encoder.model, options.dropout)
        set_dropout(encoder.model, options.attention_dropout, is_of_attention(encoder.model))
        encoder.tokeniser = _pieces(tokenizer, encoder.model, options)
        return encoder

    @classmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """Return the shape of a saved encoder with its tokeniser; the caller loads its weights."""
        pieces = Pieces.load(folder, f"{name}-tokeniser")
        arrays = folder.arrays(name)
        try:
            with quiet():
                config = config_of(facts["config"])
                if int(config.num_hidden_layers) > len(arrays):
                    raise ValueError(f"{config.num_hidden_layers:,} layers of {len(arrays):,} arrays")
                with torch.device("meta"):  # before memory is taken for what somebody wrote into a manifest
                    shape = cls.from_config(config, options, pieces)
                n_weights = sum(weights.numel() for weights in shape.parameters())
                if n_weights > sum(array.size for array in arrays.values()):
                    raise ValueError(f"it has {n_weights:,} weights, more than are there")
                encoder = cls.from_config(config, options, pieces)
                pieces.check_fits(int(config.vocab_size), _limit(encoder.model))
        except Exception as error:  # transformers raises anything where a config is not as it expects
            reason = " ".join(str(error).split())[:200]
            raise ModelFormatError(f"{folder.path}, {name}: the config fits no encoder: {reason}; train it") from error
        encoder.origin = origin_of(facts)
        return encoder

    @classmethod
    def from_config(cls, config: Any, options: TransformerOptions, tokeniser: Any) -> Self:
        """Return an encoder with random weights from a `transformers` config, for measuring speed."""
        return cls(
            _without_weights(config, options), tokeniser, options, {"name": "random weights", "source": "a config"}
        )

    def facts(self) -> dict[str, Any]:
        """Return what `restore` needs beside options and weights."""
        config = self.model.config.to_dict()
        config.pop("_name_or_path", None)
        config["dtype"] = "float32"
        return {"config": config, "origin": self.origin}

    def embeddings(self) -> nn.Module | None:
        """Return the layer of the vectors of word pieces."""
        layer: nn.Module | None = self.model.get_input_embeddings()
        return layer

    def layers(self) -> nn.ModuleList:
        """Return the equal layers of the encoder."""
        lists = [module for module in self.model.modules() if isinstance(module, nn.ModuleList)]
        return max(lists, key=len)

    def packs(self, device: torch.device, kind: torch.dtype | None) -> bool:
        """Return whether it reads packed texts: if the GPU has the kernel for that."""
        halves = device.type == "cuda" and kind is not None and torch.cuda.get_device_capability(device) >= (8, 0)
        return self._packs and halves

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text, padded or packed."""
        if ids.ndim == 1 and mask is not None:
            return self._packed(ids, mask)
        seen = None if mask is None else mask[:, None, None, :] if self._square else mask.long()
        arguments: dict[str, Any] = {"input_ids": ids, "attention_mask": seen}
        if self.tokeniser_.last_type:
            last = (lengths_of(ids, mask) - 1)[:, None]
            types = (torch.arange(ids.shape[1], device=ids.device) == last).long() * self.tokeniser_.last_type
            arguments["token_type_ids"] = types
        with _kept_states() as before, _same_when_recorded():
            outputs = self.model(**arguments, return_dict=True)
        if self.pooling == "pooler":
            return cast(Tensor, outputs.pooler_output)
        if self.model.config.model_type in _TIME_FIRST:
            before = [state.transpose(0, 1) for state in before]
        pool = self._pooler(ids, mask)
        vectors = [pool(state) for state in [outputs.last_hidden_state, *reversed(before)]]
        return torch.cat(vectors, 1) if before else cast(Tensor, vectors[0])

    def _packed(self, ids: Tensor, edges: Tensor) -> Tensor:
        """Return the vectors of packed texts, from their first tokens."""
        embeddings, layers = self.model.embeddings, self.layers()
        place = torch.arange(len(ids), device=ids.device, dtype=edges.dtype)
        start = edges[torch.bucketize(place, edges[1:-1], right=True)]
        position = (place - start).long() + _first_position(embeddings.position_embeddings)
        kinds = embeddings.token_type_embeddings.weight[0]
        states = embeddings.word_embeddings(ids) + kinds + embeddings.position_embeddings(position)
        states = embeddings.dropout(embeddings.LayerNorm(states))
        states = states.to(working_dtype(states))
        by_layer: list[Tensor] = []
        seeds = torch.randint(1 << 31, (len(layers), 2), device=ids.device)
        runs = [Runs(edges, self.tokeniser.max_tokens, pair) for pair in seeds]
        for layer, layer_runs in zip(layers, runs, strict=True):
            states = layer(states, layer_runs)
            by_layer.append(states)
        before = [state[runs[0].starts] for state in reversed(by_layer[-self.options.n_layers : -1])]
        return torch.cat([states, *before], 1)[:-1]  # without the padding at the end

    def with_scope(self, tokens: TokenRows, scope: Scope) -> TokenRows:
        """Return texts followed by label names, each after a separator, the most likely labels first."""
        pieces, limit, room = self.tokeniser_, self.tokeniser.max_tokens, self.options.scope_tokens
        fault = self.options.scope_fault(limit)
        if fault:
            raise ConfigError(f"encoder.{fault}")
        names = self.names_of(scope)
        n_marks = int(pieces.separator is not None)
        ends = np.concatenate([[0], np.cumsum(names.lengths()[scope.labels] + n_marks)])
        text = np.repeat(np.arange(len(scope)), np.diff(scope.ptr))
        kept = ends[1:] - ends[scope.ptr[:-1]][text] <= room  # whole names
        chosen = names.take(scope.labels[kept])
        marks = TokenRows(np.full(n_marks * len(chosen), pieces.separator or 0), np.arange(len(chosen) + 1) * n_marks)
        chosen = side_by_side([marks, chosen])
        sizes = np.bincount(text[kept], chosen.lengths(), len(scope)).astype(np.int64)
        inner = TokenRows(chosen.ids, np.concatenate([[0], np.cumsum(sizes)]))
        lengths = tokens.lengths()
        last = lengths - pieces.n_after
        stop = np.minimum(last, limit - pieces.n_after - sizes)
        joined = side_by_side([tokens.part(0, stop), inner, tokens.part(last, lengths)])
        return replace(joined, n_cut=max(tokens.n_cut, int(np.count_nonzero(stop < last))))

    @property
    def tokeniser_(self) -> Pieces:
        """Return the tokeniser, typed as one of word pieces."""
        return cast(Pieces, self.tokeniser)

    def _pools_first(self, tokeniser: Pieces | None) -> bool:
        """Return whether the first token gives the text vector; an outline gets its `tokeniser` later."""
        return self.pooling == "first" or (self.pooling == "cls" and not (tokeniser is not None and tokeniser.cls_last))

    def _pooler(self, ids: Tensor, mask: Tensor | None) -> Any:
        """Return a function from states (B, T, d) to vectors (B, d)."""
        kind = self.pooling
        if kind == "cls":
            kind = "last" if self.tokeniser_.cls_last else "first"
        if kind == "first":
            return lambda states: states[:, 0]
        if kind == "last" and mask is None:
            return lambda states: states[:, -1]
        if kind == "last":
            last = (lengths_of(ids, mask) - 1).clamp(min=0)
            rows = torch.arange(ids.shape[0], device=ids.device)
            return lambda states: states[rows, last]
        if mask is None:
            return lambda states: states.mean(1)
        share = mask / mask.sum(1, keepdim=True).clamp(min=1)  # (B, T)
        return lambda states: (states * share[:, :, None].to(states.dtype)).sum(1)


def _without_weights(config: Any, options: TransformerOptions) -> Any:
    """Return the `transformers` model of a config, with random weights; code that a config names is never run."""
    from transformers import AutoModel

    build = partial(AutoModel.from_config, config, trust_remote_code=False)
    try:
        return build(add_pooling_layer=options.pooling == "pooler")
    except TypeError:  # architectures without a pooler refuse the option
        return build()


_KEPT: ContextVar[list[Tensor] | None] = ContextVar("kept", default=None)
"""The states that the forward pass of this thread has kept so far."""


def _keep_state(layer: nn.Module, inputs: Any, output: Any) -> None:
    """Keep the states that a layer returns, for pooling from several layers.

    The library's own way of returning hidden states puts hooks inside layers, which break compiled code. Layers are
    shared by all threads, so what they return goes to the pass that runs in the same thread.
    """
    kept = _KEPT.get()
    if kept is not None:
        kept.append(output[0] if isinstance(output, tuple) else output)


@contextmanager
def _kept_states() -> Iterator[list[Tensor]]:
    """Return a list that a forward pass fills with the states pooling needs from earlier layers."""
    kept: list[Tensor] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


@contextmanager
def _same_when_recorded() -> Iterator[None]:
    """Avoid the mask that `transformers` 5.17 makes while a CUDA graph is recorded: it selects slower code."""
    if not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
        yield
        return
    import transformers.masking_utils

    masks: Any = transformers.masking_utils
    before = masks.is_tracing
    masks.is_tracing = lambda *_: False
    try:
        yield
    finally:
        masks.is_tracing = before


def _pieces(tokenizer: Any, model: Any, options: TransformerOptions) -> Pieces:
    """Return the tokeniser of an encoder, with its limit."""
    limit = min(options.tokens.max_tokens, _limit(model))
    pad, mark = tokenizer.pad_token_id, tokenizer.cls_token_id
    return Pieces(tokenizer.backend_tokenizer, limit, 0 if pad is None else pad, mark)


def _limit(model: Any) -> int:
    """Return the number of tokens an encoder can read; RoBERTa's positions start after the padding id."""
    most = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    if most < 1:  # XLNet says -1
        return _NO_LIMIT
    tables = [part for name, part in model.named_modules() if name.endswith("position_embeddings")]
    return most - max(map(_first_position, tables), default=0)


def _first_position(table: Any) -> int:
    """Return the row of a text's first token in a table of positions."""
    return 0 if getattr(table, "padding_idx", None) is None else int(table.padding_idx) + 1


def set_dropout(model: Any, share: float | None, modules: Iterable[nn.Module] | None = None) -> None:
    """Set the dropout of layers, and of attention that keeps it as a number, in all modules or in some."""
    if share is None:
        return
    for module in model.modules() if modules is None else modules:
        if isinstance(module, nn.Dropout):
            module.p = share
        for name in [name for name, value in vars(module).items() if "dropout" in name and isinstance(value, float)]:
            setattr(module, name, share)


def is_of_attention(model: Any) -> Iterator[nn.Module]:
    """Yield the modules that drop attention weights: those with a projection to queries, and their dropout."""
    for module in model.modules():
        if any(name in _QUERIES for name, _ in module.named_children()):
            yield module
            yield from (child for name, child in module.named_children() if name == "dropout")
