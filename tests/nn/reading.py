"""What encoders are asked in tests: to read some texts, and to say what they would learn from them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from longtail.nn.encoders.base import Encoder
from longtail.nn.rows import Touches
from longtail.text.tokens import tokenise


def batch(encoder: Encoder, texts: pa.Table, rows: list[int] | None = None, more: int = 0) -> tuple[Tensor, Tensor]:
    """Some of the texts as ids and mask, padded to the longest and `more`."""
    tokens = tokenise(texts, encoder.tokeniser)
    chosen = np.arange(len(tokens)) if rows is None else np.array(rows)
    width = int(tokens.lengths()[chosen].max()) + more
    ids, lengths = tokens.padded(chosen, width, encoder.tokeniser.pad_id)
    return torch.from_numpy(ids).long(), torch.from_numpy(np.arange(width) < lengths[:, None])


def gradients_of(encoder: Encoder) -> dict[str, Tensor | None]:
    """Return the gradient of each parameter: autograd's, or what a table that trains itself has kept."""
    gradients = {name: parameter.grad for name, parameter in encoder.named_parameters()}
    tables = {id(table.weight): table for table in encoder.tables().values()}
    for name, parameter in encoder.named_parameters():
        if id(parameter) in tables and tables[id(parameter)].works:
            rows, of_rows = Touches.joined(tables[id(parameter)].works).gradients()
            gradients[name] = torch.zeros_like(parameter).index_copy_(0, rows, of_rows)
    return gradients
