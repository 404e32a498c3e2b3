"""Integrated gradients: what each word adds to a label's logit on the way from padding to the text (captum).

    network, one text, label  ->  weights of words (n_words,); or why there are none

The way leads from the text with padding in place of its words to the text itself. Gradients of a way that is cut into
too few steps do not add up, and captum does not see to it (captum issue 1413): steps are doubled until they miss the
difference of both logits by at most `_CLOSE` of it. Where `_MOST_STEPS` do not suffice, or where a network has no logit
that gradients reach, the caller leaves words out instead and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.explain.words import TextWords
from longtail.nn.batch import Batch
from longtail.nn.heads.base import positions
from longtail.nn.network import Network, device_of
from longtail.nn.tagger import Tagger
from longtail.nn.turns import in_turn
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import Tokeniser, TokenOptions

_STEPS, _MOST_STEPS = 32, 256
_CLOSE = 0.05
_AT_ONCE = 16

NO_LOGIT = "This network has no logit that gradients reach, so words were left out one by one."
NO_PLACES = "The places of tokens in this text are not known, so words were left out one by one."
NO_CAPTUM = "Integrated gradients need captum (pip install 'longtail[explain]'), so words were left out one by one."


def mean_gradients(
    taggers: Sequence[Tagger], texts: TextReadings, words: TextWords, label: int, run: Run
) -> tuple[NDArray[np.float64] | None, str]:
    """Return the mean over networks of what `integrated_gradients` returns; none where one of them has none."""
    results = []
    for tagger in taggers:
        weights, why_not = integrated_gradients(tagger, texts, words, label, run)
        if weights is None:
            return None, why_not
        results.append(weights)
    return np.mean(results, axis=0), ""


def integrated_gradients(
    tagger: Tagger, texts: TextReadings, words: TextWords, label: int, run: Run
) -> tuple[NDArray[np.float64] | None, str]:
    """Return the weights of the words (n_words,) of the one text of `texts` for a label of the network.

    Where there are none, the first is None and the second says why.
    """
    network = tagger.quantised("fp32")
    layer, place = network.encoder.embeddings(), _place(network, label)
    if layer is None or not network.head.has_logits:
        return None, NO_LOGIT
    tokens = tagger.tokens(texts, run)
    word_of_token = words_of_tokens(words, texts.table, tagger.tokeniser, tagger.options.tokens)
    if word_of_token is None or len(word_of_token) != len(tokens.ids):
        return None, NO_PLACES
    try:
        from captum.attr import LayerIntegratedGradients
    except ImportError:
        return None, NO_CAPTUM
    batch = Batch.of(tokens, np.zeros(1, np.int64), len(tokens.ids), tagger.tokeniser.pad_id).to(device_of(network))
    inside = word_of_token >= 0
    base = batch.ids.masked_fill(torch.from_numpy(inside).to(batch.ids.device), tagger.tokeniser.pad_id)
    with in_turn(run.engine), torch.enable_grad(), torch.compiler.set_stance("force_eager"):
        logit = _Logit(network, place)
        method = LayerIntegratedGradients(logit, layer)
        with torch.no_grad():
            difference = float(logit(batch.ids) - logit(base))
        missed, steps = 1.0, _STEPS
        while steps <= _MOST_STEPS:
            weights = _attributed(method, batch.ids, base, steps)
            missed = abs(float(weights.sum()) - difference) / max(abs(difference), 1e-9)
            if missed <= _CLOSE:
                sums = np.bincount(word_of_token[inside], weights[inside], len(words))
                return sums.astype(np.float64), ""
            steps *= 2
    return None, (
        f"Integrated gradients missed the logit by {missed:.0%} after {_MOST_STEPS} steps, so words were left out one "
        "by one."
    )


class _Logit(nn.Module):
    """The logit of one label, by token ids."""

    def __init__(self, network: Network, place: int) -> None:
        super().__init__()
        self.network, self.place = network, place

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logit for each text, (B,)."""
        vectors = self.network.encoder(ids, None)
        return self.network.head.logit_of(vectors, self.place)


def _attributed(method: Any, ids: Tensor, base: Tensor, steps: int) -> NDArray[np.float64]:
    """Return what each token adds, (n_tokens,)."""
    of_numbers = method.attribute(ids, base, n_steps=steps, internal_batch_size=_AT_ONCE)  # (1, T, width)
    weights: NDArray[np.float64] = of_numbers.detach().sum(2)[0].double().cpu().numpy()
    return weights


def _place(network: Network, label: int) -> int:
    """Return the place of a label in the head."""
    head = network.head
    return label if head.order is None else int(positions(head.order, head.n_labels)[label])


def words_of_tokens(
    words: TextWords, table: pa.Table, tokeniser: Tokeniser, options: TokenOptions
) -> NDArray[np.int64] | None:
    """Return the word that each token of a text is part of, −1 for marks and for what lies between words.

    None where the text is changed before it is cut into tokens, so that places are lost.
    """
    text = options.read(table)[0]
    read = [name for name in options.columns if words.fields.get(name)]
    charts = [np.append(words.word_of_character[name], -1) for name in read]
    chart = np.concatenate(charts)[:-1] if charts else np.empty(0, np.int64)
    places = tokeniser.places(text) if len(chart) == len(text) and options.max_words is None else None
    if places is None:
        return None
    return np.array([_most(chart[start:end]) for start, end in places], np.int64)


def _most(chart: NDArray[Any]) -> int:
    """Return the first word among some characters, −1 if there is none."""
    inside = chart[chart >= 0]
    return int(inside[0]) if len(inside) else -1
