"""Texts as tokens for a machine that has neither the data sets nor a tokeniser.

    python benchmarks/neural_data.py DATA ENCODER OUT.npz [--max-tokens 512]

Train and dev as flat token ids (uint16), and labels as CSR over the labels that occur in train, as `longtail` numbers
them in training; dev labels that train lacks are kept behind those, so that they count as misses.
"""

from __future__ import annotations

import argparse

import numpy as np

from longtail.data import load_dataset
from longtail.nn.pretrained import find, load_tokenizer
from longtail.text.pieces import Pieces
from longtail.text.tokens import tokenise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("encoder")
    parser.add_argument("out")
    parser.add_argument("--max-tokens", type=int, default=512)
    given = parser.parse_args()
    data = load_dataset(given.data)
    tokenizer = load_tokenizer(find(given.encoder))
    pieces = Pieces(tokenizer.backend_tokenizer, given.max_tokens, tokenizer.pad_token_id, tokenizer.cls_token_id)
    counts = data.train.labels.texts_per_label()
    order = np.concatenate([np.flatnonzero(counts), np.flatnonzero(counts == 0)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    made = {"n_labels": np.int64((counts > 0).sum()), "n_all": np.int64(len(order))}
    for name in ("train", "dev"):
        split = data.split(name)
        tokens = tokenise(split.texts, pieces)
        labels = split.labels.renumber(place, len(order))
        made |= {f"{name}_ids": tokens.ids, f"{name}_ptr": tokens.ptr}
        made |= {f"{name}_label_ptr": labels.indptr, f"{name}_labels": labels.indices}
        print(f"{name}: {len(tokens):,} texts, {tokens.n_cut / len(tokens):.0%} cut")
    np.savez_compressed(given.out, **made)


if __name__ == "__main__":
    main()
