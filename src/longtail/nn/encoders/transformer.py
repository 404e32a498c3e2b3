"""Any encoder of `transformers`: BERT, RoBERTa, XLNet, DistilBERT, MiniLM, E5, ModernBERT, from a folder or the hub.

    ids (B, T)  ->  hidden states (B, T, d) of the last layers  ->  pooled (B, n_layers · d)

Pooling reads one place (`cls`: where the encoder puts its mark, the last token in XLNet; `first`; `last`), the mean of
the real tokens, or the encoder's own pooler; of the last layer, or of several side by side, the last one first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.errors import ConfigError
from longtail.labels.scope import Scope
from longtail.log import LOG
from longtail.nn.encoders.base import Encoder, EncoderOptions, lengths_of
from longtail.nn.encoders.bert_layer import FAMILIES, Runs, shorten
from longtail.nn.heads.base import working_dtype
from longtail.nn.pretrained import DEFAULT, find, load_config, load_tokenizer, load_weights, quiet
from longtail.persist import Folder
from longtail.progress import SILENT, Progress
from longtail.text.pieces import Pieces
from longtail.text.tokens import TokenRows, side_by_side

_NO_LIMIT = 1 << 20
_SQUARE_MASKS = {"bert", "distilbert", "roberta", "xlm-roberta"}
"""Architectures that take a mask (B, 1, 1, T) as it is; from (B, T) they would ask the device whether all is true."""
_QUERIES = {"query", "q", "q_lin", "q_proj", "Wqkv"}
"""What architectures call the projection to queries."""
_TIME_FIRST = {"xlnet"}
"""Architectures whose layers pass states on as (T, B, d)."""


class TransformerOptions(EncoderOptions):
    """A pretrained encoder."""

    kind: Literal["transformer"] = "transformer"
    """Which encoder this is."""
    model: str = DEFAULT
    """A folder with config, weights and tokenizer, or a name of the hub."""
    pooling: Literal["cls", "first", "last", "mean", "pooler"] = "cls"
    """What of the hidden states stands for the text: the encoder's mark, the first or the last token, the mean of all,
    or its pooler."""
    n_layers: PositiveInt = 1
    """Last layers whose vectors are put side by side."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout inside the encoder; by default what it was trained with."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention weights, where an encoder has one of its own for them; by default what it was trained with.
    On a GPU attention is faster without."""
    trainable_layers: int | None = Field(None, ge=0)
    """Train only so many of the last layers; by default all."""
    checkpointing: bool = False
    """Compute hidden states again in the backward pass: a third slower, a fraction of the memory."""
    scope_tokens: PositiveInt = 128
    """Where a label scope is read behind the text: at most so many of `tokens.max_tokens` are its labels' names."""

    def scope_fault(self, limit: int | None = None) -> str:
        """See `EncoderOptions.scope_fault`; `limit` are the tokens that the encoder reads, where that is known."""
        limit = limit or self.tokens.max_tokens
        if self.scope_tokens <= limit // 2:
            return ""
        return f"scope_tokens must be at most half of max_tokens ({limit}), got {self.scope_tokens}; lower it"


class Transformer(Encoder):
    """A pretrained encoder with pooling."""

    options_class = TransformerOptions

    def __init__(self, model: Any, tokeniser: Pieces, options: TransformerOptions, origin: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.tokeniser, self.options, self.origin = model, tokeniser, options, origin
        depth = int(model.config.num_hidden_layers)
        if options.n_layers > depth:
            raise ConfigError(f"encoder.n_layers must be at most {depth} for {options.model}, got {options.n_layers}")
        self.width = int(model.config.hidden_size) * (1 if options.pooling == "pooler" else options.n_layers)
        sdpa = getattr(model.config, "_attn_implementation", None) == "sdpa"
        self._square = sdpa and model.config.model_type in _SQUARE_MASKS
        pools_first = self._pools_first(tokeniser)
        kin = sdpa and model.config.model_type in FAMILIES
        self._packs = kin and pools_first and not options.checkpointing
        if kin:
            shorten(self.layers(), alone=pools_first)
        if options.checkpointing:
            if not model.supports_gradient_checkpointing:
                name = model.config.model_type
                raise ConfigError(
                    f"encoder.checkpointing: {name} cannot do that; use training.micro_batch to save memory"
                )
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if options.trainable_layers is not None:
            model.requires_grad_(False)
            for layer in list(self.layers())[depth - options.trainable_layers :]:
                layer.requires_grad_(True)

    @classmethod
    def create(cls, options: Any, texts: pa.Table, seed: int = 0, progress: Progress = SILENT) -> Self:
        """See `Encoder.create`."""
        found = find(options.model)
        tokenizer = load_tokenizer(found)
        pooler = options.pooling == "pooler"
        model, missing = load_weights(found, add_pooling_layer=pooler)
        lost = sorted(name for name in missing if pooler or "pooler" not in name)
        if lost:
            raise ConfigError(f"encoder.model: {options.model} lacks the weights of {lost[0]} (of {len(lost)} in all)")
        _set_dropout(model, options.dropout)
        _set_dropout(model, options.attention_dropout, _of_attention(model))
        origin = {"name": options.model, "source": found.source}
        LOG.info("encoder %s from %s", options.model, found.source)
        return cls(model, _pieces(tokenizer, model, options), options, origin)

    @classmethod
    def outline(cls, options: Any, texts: pa.Table, n_texts: int) -> Self:
        """See `Encoder.outline`: of an encoder of the hub, only config and tokenizer are fetched."""
        found = find(options.model)
        tokenizer, config = load_tokenizer(found), load_config(found)
        with torch.device("meta"):
            made = cls.from_config(config, options, None)
        _set_dropout(made.model, options.dropout)
        _set_dropout(made.model, options.attention_dropout, _of_attention(made.model))
        made.tokeniser = _pieces(tokenizer, made.model, options)
        return made

    @classmethod
    def restore(cls, options: Any, facts: dict[str, Any], folder: Folder, name: str) -> Self:
        """See `Encoder.restore`."""
        from transformers import AutoConfig, AutoModel

        config = dict(facts["config"])
        with quiet():
            made = AutoConfig.for_model(config.pop("model_type"), **config)
            try:
                model = AutoModel.from_config(made, add_pooling_layer=options.pooling == "pooler")
            except TypeError:
                model = AutoModel.from_config(made)
        return cls(model, Pieces.load(folder, f"{name}-tokeniser"), options, facts["origin"])

    @classmethod
    def from_config(cls, config: Any, options: TransformerOptions, tokeniser: Any) -> Self:
        """With random weights, from a `transformers` config: for measuring speed."""
        from transformers import AutoModel

        try:
            model = AutoModel.from_config(config, add_pooling_layer=options.pooling == "pooler")
        except TypeError:
            model = AutoModel.from_config(config)
        return cls(model, tokeniser, options, {"name": "random weights", "source": "a config"})

    def facts(self) -> dict[str, Any]:
        """See `Encoder.facts`."""
        config = self.model.config.to_dict()
        config.pop("_name_or_path", None)
        config["dtype"] = "float32"
        return {"config": config, "origin": self.origin}

    def layers(self) -> nn.ModuleList:
        """The layers, which are all alike."""
        lists = [module for module in self.model.modules() if isinstance(module, nn.ModuleList)]
        return max(lists, key=len)

    def packs(self, device: torch.device, kind: torch.dtype | None) -> bool:
        """See `Encoder.packs`: where the GPU has the kernel for it."""
        halves = device.type == "cuda" and kind is not None and torch.cuda.get_device_capability(device) >= (8, 0)
        return self._packs and halves

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """See `Encoder.forward`."""
        if ids.ndim == 1 and mask is not None:
            return self._packed(ids, mask)
        seen = None if mask is None else mask[:, None, None, :] if self._square else mask.long()
        asked: dict[str, Any] = {"input_ids": ids, "attention_mask": seen}
        if self.tokeniser_.last_type:
            last = (lengths_of(ids, mask) - 1)[:, None]
            types = (torch.arange(ids.shape[1], device=ids.device) == last).long() * self.tokeniser_.last_type
            asked["token_type_ids"] = types
        before, hooks = self._watched()
        try:
            with _same_when_recorded():
                found = self.model(**asked, return_dict=True)
        finally:
            for hook in hooks:
                hook.remove()
        if self.options.pooling == "pooler":
            return cast(Tensor, found.pooler_output)
        pool = self._pooler(ids, mask)
        vectors = [pool(state) for state in [found.last_hidden_state, *reversed(before)]]
        return torch.cat(vectors, 1) if before else cast(Tensor, vectors[0])

    def _packed(self, ids: Tensor, edges: Tensor) -> Tensor:
        """Vectors of texts that lie one after the other, known by their first tokens."""
        parts, layers = self.model.embeddings, self.layers()
        place = torch.arange(len(ids), device=ids.device, dtype=edges.dtype)
        start = edges[torch.bucketize(place, edges[1:-1], right=True)]
        position = (place - start).long() + _first_position(parts.position_embeddings)
        kinds = parts.token_type_embeddings.weight[0]
        states = parts.word_embeddings(ids) + kinds + parts.position_embeddings(position)
        states = parts.dropout(parts.LayerNorm(states))
        states = states.to(working_dtype(states))
        found: list[Tensor] = []
        seeds = torch.randint(1 << 31, (len(layers), 2), device=ids.device)
        runs = [Runs(edges, self.tokeniser.max_tokens, own) for own in seeds]
        for layer, own in zip(layers, runs, strict=True):
            states = layer(states, own)
            found.append(states)
        before = [state[runs[0].starts] for state in reversed(found[-self.options.n_layers : -1])]
        return torch.cat([states, *before], 1)[:-1]  # what fills up is no text

    def with_scope(self, tokens: TokenRows, scope: Scope) -> TokenRows:
        """See `Encoder.with_scope`: names behind the text, each after a separator, the likeliest labels first."""
        pieces, limit, room = self.tokeniser_, self.tokeniser.max_tokens, self.options.scope_tokens
        fault = self.options.scope_fault(limit)
        if fault:
            raise ConfigError(f"encoder.{fault}")
        names = self.names_of(scope)
        n_marks = int(pieces.separator is not None)
        ends = np.concatenate([[0], np.cumsum(names.lengths()[scope.labels] + n_marks)])
        text = np.repeat(np.arange(len(scope)), np.diff(scope.ptr))
        kept = ends[1:] - ends[scope.ptr[:-1]][text] <= room  # whole names
        given = names.take(scope.labels[kept])
        marks = TokenRows(np.full(n_marks * len(given), pieces.separator or 0), np.arange(len(given) + 1) * n_marks)
        given = side_by_side([marks, given])
        sizes = np.bincount(text[kept], given.lengths(), len(scope)).astype(np.int64)
        inner = TokenRows(given.ids, np.concatenate([[0], np.cumsum(sizes)]))
        own, last = tokens.lengths(), tokens.lengths() - pieces.n_after
        stop = np.minimum(last, limit - pieces.n_after - sizes)
        made = side_by_side([tokens.part(0, stop), inner, tokens.part(last, own)])
        return replace(made, n_cut=max(tokens.n_cut, int(np.count_nonzero(stop < last))))

    def _watched(self) -> tuple[list[Tensor], list[Any]]:
        """What the layers before the last one give is put into the list, as far as pooling needs it.

        The library's own way of returning hidden states puts hooks inside layers, which cut compiled code in pieces.
        """
        before: list[Tensor] = []

        def keep(module: nn.Module, given: Any, made: Any) -> None:
            state = made[0] if isinstance(made, tuple) else made
            before.append(state.transpose(0, 1) if self.model.config.model_type in _TIME_FIRST else state)

        wanted = list(self.layers())[-self.options.n_layers : -1]
        return before, [layer.register_forward_hook(keep) for layer in wanted]

    @property
    def tokeniser_(self) -> Pieces:
        """The tokeniser, with what only word pieces have."""
        return cast(Pieces, self.tokeniser)

    def _pools_first(self, tokeniser: Pieces | None) -> bool:
        """Whether texts are known by their first token; `tokeniser` may come later where only costs are counted."""
        return self.options.pooling == "first" or (
            self.options.pooling == "cls" and not (tokeniser is not None and tokeniser.cls_last)
        )

    def _pooler(self, ids: Tensor, mask: Tensor | None) -> Any:
        """States (B, T, d) -> (B, d)."""
        kind = self.options.pooling
        if kind == "cls":
            kind = "last" if self.tokeniser_.cls_last else "first"
        if kind == "first":
            return lambda states: states[:, 0]
        if kind == "last" and mask is None:
            return lambda states: states[:, -1]
        if kind == "last":
            last = (lengths_of(ids, mask) - 1).clamp(min=0)
            rows = torch.arange(len(ids), device=ids.device)
            return lambda states: states[rows, last]
        if mask is None:
            return lambda states: states.mean(1)
        share = mask / mask.sum(1, keepdim=True).clamp(min=1)  # (B, T)
        return lambda states: (states * share[:, :, None].to(states.dtype)).sum(1)


@contextmanager
def _same_when_recorded() -> Iterator[None]:
    """While a CUDA graph is recorded, `transformers` 5.17 makes a mask where none is needed: other code, slower."""
    if not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
        yield
        return
    import transformers.masking_utils

    masks: Any = transformers.masking_utils
    before = masks.is_tracing
    masks.is_tracing = lambda *given: False
    try:
        yield
    finally:
        masks.is_tracing = before


def _pieces(tokenizer: Any, model: Any, options: TransformerOptions) -> Pieces:
    """The tokeniser of an encoder, with its limit."""
    limit = min(options.tokens.max_tokens, _limit(model))
    pad, mark = tokenizer.pad_token_id, tokenizer.cls_token_id
    return Pieces(tokenizer.backend_tokenizer, limit, 0 if pad is None else pad, mark)


def _limit(model: Any) -> int:
    """Tokens that an encoder can read; positions of RoBERTa and its kin begin behind the padding id."""
    most = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    if most < 1:  # XLNet says -1
        return _NO_LIMIT
    tables = [part for name, part in model.named_modules() if name.endswith("position_embeddings")]
    return most - max(map(_first_position, tables), default=0)


def _first_position(table: Any) -> int:
    """The row of a text's first place in a table of positions."""
    return 0 if getattr(table, "padding_idx", None) is None else int(table.padding_idx) + 1


def _set_dropout(model: Any, share: float | None, modules: Iterable[nn.Module] | None = None) -> None:
    """Layers of dropout, and shares that attention keeps as plain numbers; in all modules, or in some."""
    if share is None:
        return
    for module in model.modules() if modules is None else modules:
        if isinstance(module, nn.Dropout):
            module.p = share
        for name in [name for name, value in vars(module).items() if "dropout" in name and isinstance(value, float)]:
            setattr(module, name, share)


def _of_attention(model: Any) -> Iterator[nn.Module]:
    """What drops attention weights: in modules that project to queries, beside those projections."""
    for module in model.modules():
        if any(name in _QUERIES for name, _ in module.named_children()):
            yield module
            yield from (child for name, child in module.named_children() if name == "dropout")
