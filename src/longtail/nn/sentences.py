"""Encode texts or label names with a pretrained sentence encoder: the mean of the last layer, without training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import TEXT
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.network import Network
from longtail.nn.prediction import vectors_of
from longtail.nn.pretrained import DEFAULT
from longtail.nn.training.devices import choose_device
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenOptions, tokenise


class SentenceEncoder:
    """A sentence encoder that is loaded on first use."""

    def __init__(self, model: str = DEFAULT, max_tokens: int = 256, run: Run | None = None) -> None:
        self._options = TransformerOptions(model=model, pooling="mean", tokens=TokenOptions(max_tokens=max_tokens))
        self._run = run or Run()
        self._network: Network | None = None
        self._last: tuple[pa.Table, NDArray[np.float32]] | None = None

    def __call__(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per name, (n_names, width)."""
        return self.of_texts(pa.table({TEXT: pa.array(names, pa.string())}))

    def of_texts(self, texts: pa.Table) -> NDArray[np.float32]:
        """Return one vector per text, (n_texts, width).

        The result for the last texts is kept, because all members of an ensemble ask for the same.
        """
        if self._last is not None and self._last[0] is texts:
            return self._last[1]
        run = self._run
        if self._network is None:
            encoder = Transformer.create(self._options, TextReadings(texts))
            self._network = Network(encoder, Dense(encoder.width, 1)).to(choose_device("auto"))
        tokens = tokenise(texts, self._network.encoder.tokeniser, run=run, stage=None)
        vectors = vectors_of(self._network, tokens, run=run)
        self._last = texts, vectors
        return vectors
