"""Encoders: what every one of them must keep, in one table; then what is special to each kind.

A new encoder joins by a line in ENCODERS.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from longtail.errors import ConfigError
from longtail.nn.encoders.bag import Bag, BagOptions
from longtail.nn.encoders.base import Encoder
from longtail.nn.encoders.bilstm import BiLSTM, BiLSTMOptions
from longtail.nn.encoders.cnn import CNN, CNNOptions, slot_maxima
from longtail.nn.encoders.reader import Reader
from longtail.nn.heads.base import Step
from longtail.nn.heads.dense import Dense
from longtail.nn.network import Network
from longtail.nn.rows import Touches
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, write_folder
from longtail.text.tokens import tokenise

KIND, NAME = "test-encoder", "encoder"
SMALL = {"vectors": {"width": 6}, "tokens": {"max_tokens": 12}}
LSTM = {**SMALL, "hidden": 4, "n_heads": 3, "attention_width": 5}
FILTERS = {**SMALL, "n_filters": 4, "slots": 3, "bottleneck": 7}
READER = {**SMALL, "n_heads": 2, "scope_words": 0, "bottleneck": 7}
AS_TRIED_BY_XBERT = {"heights": [1, 3, 5], "stride": 2, "slots": 4, "dropout_words": 0.25, "dropout": 0.5}

ENCODERS: dict[str, tuple[type[Encoder], dict[str, Any]]] = {
    "bag": (Bag, SMALL),
    "bag with pairs": (Bag, {**SMALL, "n_buckets": 50}),
    "bag with trained vectors": (Bag, {**SMALL, "vectors": {"width": 5, "source": "train"}}),
    "bilstm": (BiLSTM, LSTM),
    "bilstm as in the paper": (BiLSTM, {**LSTM, "variant": "paper"}),
    "bilstm in layers": (BiLSTM, {**LSTM, "n_layers": 2, "dense": 6, "dropout": 0.2, "dropout_words": 0.2}),
    "cnn": (CNN, FILTERS),
    "cnn with strides": (CNN, {**FILTERS, **AS_TRIED_BY_XBERT}),
    "cnn without bottleneck": (CNN, {**FILTERS, "bottleneck": None, "heights": [3], "stride": 3}),
    "reader": (Reader, READER),
    "reader as in the paper": (Reader, {**READER, "mask": "paper", "positions": "none", "pooling": "flatten"}),
    "reader without layers": (Reader, {**READER, "layers": [], "positions": "waves"}),
    "reader in another order": (Reader, {**READER, "layers": ["full", "masked"], "residual": False}),
}
every_encoder = pytest.mark.parametrize("name", ENCODERS)

TEXTS = pa.table(
    {
        "text": [
            "the cat sat on the mat",
            "a cat and a dog",
            "dog",
            "the dog sat on a log and the cat sat on the mat and on a log",
            "",
            "new words here, a mat nowhere else",
            "mat log",
        ]
    }
)


def made(name: str, seed: int = 0) -> Encoder:
    """An encoder of the table, ready for use."""
    cls, options = ENCODERS[name]
    return cls.create(cls.options_class.of(options), TEXTS, seed).eval()


def batch(encoder: Encoder, rows: list[int] | None = None, more: int = 0) -> tuple[Tensor, Tensor]:
    """Some of the texts as ids and mask, padded to the longest and `more`."""
    tokens = tokenise(TEXTS, encoder.tokeniser)
    chosen = np.arange(len(tokens)) if rows is None else np.array(rows)
    width = int(tokens.lengths()[chosen].max()) + more
    ids, lengths = tokens.padded(chosen, width, encoder.tokeniser.pad_id)
    return torch.from_numpy(ids).long(), torch.from_numpy(np.arange(width) < lengths[:, None])


def gradients_of(encoder: Encoder) -> dict[str, Tensor | None]:
    """Of each parameter: autograd's, or what a table that trains itself has kept."""
    found = {name: parameter.grad for name, parameter in encoder.named_parameters()}
    tables = {id(table.weight): table for table in encoder.tables().values()}
    for name, parameter in encoder.named_parameters():
        if id(parameter) in tables and tables[id(parameter)].works:
            rows, made = Touches.joined(tables[id(parameter)].works).gradients()
            found[name] = torch.zeros_like(parameter).index_copy_(0, rows, made)
    return found


def close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-6)


@every_encoder
def test_the_vector_is_as_wide_as_the_encoder_says_and_tells_texts_apart(name: str) -> None:
    encoder = made(name)
    vectors = encoder(*batch(encoder))
    assert vectors.shape == (len(TEXTS), encoder.width)
    assert vectors.dtype == torch.float32
    assert torch.isfinite(vectors).all()
    distances = torch.cdist(vectors, vectors) + torch.eye(len(TEXTS))
    assert distances.min() > 1e-4


@every_encoder
@pytest.mark.parametrize("more", [1, 2, 9])
def test_padding_changes_nothing(name: str, more: int) -> None:
    encoder = made(name)
    close(encoder(*batch(encoder, more=more)), encoder(*batch(encoder)))


@every_encoder
def test_what_stands_in_the_padding_changes_nothing(name: str) -> None:
    encoder = made(name)
    ids, mask = batch(encoder, more=3)
    other = ids.where(mask, torch.full_like(ids, encoder.tokeniser.n_ids - 1))
    close(encoder(other, mask), encoder(ids, mask))


@every_encoder
def test_a_text_alone_gives_what_it_gives_among_others(name: str) -> None:
    encoder = made(name)
    together = encoder(*batch(encoder))
    for row in range(len(TEXTS)):
        ids, mask = batch(encoder, [row])
        close(encoder(ids, mask)[0], together[row])
        close(encoder(ids, None)[0], together[row])


@every_encoder
def test_no_mask_means_that_all_tokens_are_real(name: str) -> None:
    encoder = made(name)
    ids, _ = batch(encoder, [0, 5, 1])
    close(encoder(ids, None), encoder(ids, torch.ones_like(ids, dtype=torch.bool)))


@every_encoder
def test_a_row_without_tokens_gives_numbers_and_leaves_the_others_alone(name: str) -> None:
    encoder = made(name).train()
    ids, mask = batch(encoder)
    mask[2] = False
    vectors = encoder(ids, mask)
    vectors.square().sum().backward()
    assert torch.isfinite(vectors).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients_of(encoder).values() if gradient is not None)
    encoder.eval()
    close(encoder(ids, mask)[3:], encoder(*batch(encoder))[3:])


@every_encoder
def test_the_same_seed_gives_the_same_weights_and_leaves_chance_to_others(name: str) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = made(name, seed=5).state_dict()
    assert torch.equal(torch.rand(3), expected)
    second, third = made(name, seed=5).state_dict(), made(name, seed=6).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], third[key]) for key in first)


@every_encoder
def test_a_saved_encoder_gives_the_same_vectors(name: str, tmp_path: Path) -> None:
    encoder = made(name)
    options = ENCODERS[name][0].options_class.of(ENCODERS[name][1])
    with write_folder(tmp_path / "model", KIND) as writer:
        encoder.tokeniser.save(writer, f"{NAME}-tokeniser")
        writer.arrays(NAME, to_arrays(encoder.state_dict()))
        writer.manifest.update(options=options.plain(), facts=encoder.facts())
    folder = Folder(tmp_path / "model", KIND)
    cls = type(encoder)
    again = cls.restore(cls.options_class.of(folder.manifest["options"]), folder.manifest["facts"], folder, NAME)
    again.load_state_dict(to_tensors(folder.arrays(NAME)))
    again.eval()
    assert again.width == encoder.width
    assert again.facts() == encoder.facts()
    assert torch.equal(again(*batch(again)), encoder(*batch(encoder)))


@every_encoder
def test_gradients_reach_every_parameter(name: str) -> None:
    encoder = made(name)
    vectors = encoder(*batch(encoder, more=2))
    (vectors * torch.linspace(-1, 2, vectors.shape[1])).square().sum().backward()
    for name, gradient in gradients_of(encoder).items():
        assert gradient is not None, name
        assert torch.isfinite(gradient).all(), name
        assert gradient.abs().sum() > 0, name


@every_encoder
def test_half_precision_stays_near_full_precision(name: str) -> None:
    encoder = made(name)
    ids, mask = batch(encoder, more=2)
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder(ids, mask).float()
    torch.testing.assert_close(vectors, encoder(ids, mask), rtol=0.1, atol=0.05)


def word_encoder(cls: type[Encoder], options: dict[str, Any]) -> Any:
    return cls.create(cls.options_class.of(options), TEXTS, 0).eval()


@pytest.mark.parametrize("cls", [Bag, BiLSTM, CNN, Reader])
def test_words_are_as_methods_say(cls: type[Encoder]) -> None:
    """methods.md 0.4: 0 is padding and stays zero, 1 is the unknown word, random words lie within -1 and 1."""
    encoder = word_encoder(cls, {"vectors": {"width": 50}})
    weight = encoder.embedding.weight
    assert encoder.tokeniser.pad_id == 0
    assert encoder.options.words.max_words == 500_000
    assert not weight[0].any()
    assert 0.9 < weight.abs().max() <= 1
    assert weight[1].any()
    ids, mask = batch(encoder, more=2)
    encoder(ids, mask).sum().backward()
    gradient = gradients_of(encoder)["embedding.weight"]
    assert gradient is not None
    assert not gradient[0].any()
    assert gradient[1].any()
    torch.optim.AdamW(encoder.parameters(), 0.1).step()
    encoder.step(Step({"encoder": 0.1}, encoder_decay=0.1))
    assert not weight[0].any()
    assert encoder.tables() == {} or encoder.embedding.works == []


@pytest.mark.parametrize("cls", [Bag, BiLSTM, CNN, Reader])
def test_vectors_come_from_the_file_and_stay_if_they_are_not_trainable(cls: type[Encoder], tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("cat 1 2 0 0\nzebra 3 4 0 0\ndog 5 6 0 0\n")
    encoder = word_encoder(cls, {"vectors": {"source": str(tmp_path / "v.txt"), "trainable": False}})
    place = 2 + encoder.tokeniser.words.index("dog")
    assert encoder.embedding.weight[place].tolist() == [5, 6, 0, 0]
    assert not encoder.embedding.weight.requires_grad
    assert not encoder.tables()
    facts = encoder.facts()
    assert facts == {"n_words": len(encoder.tokeniser.words), "n_found": 2, "word_width": 4}


def test_a_bag_is_the_mean_of_its_words_and_pairs() -> None:
    encoder = word_encoder(Bag, {**SMALL, "n_buckets": 10_000})
    words, pairs = encoder.embedding.weight, encoder.pairs.weight
    ids, mask = batch(encoder, more=2)
    for row, text in enumerate(encoder(ids, mask)):
        own = ids[row, mask[row]]
        buckets = [int(a * 116_049_371 + b) % 10_000 for a, b in pairwise(own)]
        close(text, torch.cat([words[own], pairs[buckets]]).mean(0))
    plain = word_encoder(Bag, SMALL)
    close(plain(ids[:1, :3], None)[0], plain.embedding.weight[ids[0, :3]].mean(0))
    assert not torch.allclose(encoder(ids[:1].flip(1), None), encoder(ids[:1], None))  # pairs know the order
    close(plain(ids[:1].flip(1), None), plain(ids[:1], None))


def test_attention_rows_sum_to_one_over_real_words() -> None:
    """methods.md A.12 (11)."""
    encoder = word_encoder(BiLSTM, LSTM)
    ids, mask = batch(encoder, more=3)
    attention = encoder.attention(encoder.states(ids, mask), mask)
    assert attention.shape == (len(ids), 3, ids.shape[1])
    close(attention.sum(2), torch.ones(len(ids), 3))
    assert not attention.masked_select(~mask[:, None].expand_as(attention)).any()
    assert (attention >= 0).all()


@pytest.mark.parametrize("n_layers", [1, 2])
def test_states_are_those_of_a_packed_bidirectional_lstm(n_layers: int) -> None:
    encoder = word_encoder(BiLSTM, {**LSTM, "n_layers": n_layers})
    reference = nn.LSTM(6, 4, n_layers, batch_first=True, bidirectional=True)
    for suffix, lstms in (("", encoder.forwards), ("_reverse", encoder.backwards)):
        for number, lstm in enumerate(lstms):
            for weights, value in lstm.named_parameters():
                reference.get_parameter(weights[:-1] + str(number) + suffix).data.copy_(value.data)
    ids, mask = batch(encoder, more=2)
    packed = pack_padded_sequence(encoder.embedding(ids), mask.sum(1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(reference(packed)[0], batch_first=True, total_length=ids.shape[1])
    close(encoder.states(ids, mask), expected)


def test_the_authors_code_lets_padding_in_and_has_a_layer_of_2000_units() -> None:
    encoder = word_encoder(BiLSTM, {**LSTM, "variant": "code"})
    assert encoder.width == 2000
    short, long = encoder(*batch(encoder)), encoder(*batch(encoder, more=4))
    assert (short - long).abs().max() > 1e-4
    ids, mask = batch(encoder)
    assert torch.equal(encoder(ids, mask), encoder(ids, None))
    assert (short >= 0).all()
    assert word_encoder(BiLSTM, {**LSTM, "variant": "paper"}).width == 3 * 2 * 4


def test_only_the_fixed_variant_has_a_dense_layer_of_free_width() -> None:
    assert word_encoder(BiLSTM, {**LSTM, "dense": 9}).width == 9
    with pytest.raises(ConfigError, match="dense can be set only with variant 'fixed', got 9 with 'paper'"):
        BiLSTMOptions.of({"dense": 9, "variant": "paper"})


def test_sizes_are_those_of_the_methods_by_default() -> None:
    assert (BiLSTMOptions().hidden, BiLSTMOptions().n_heads, BiLSTMOptions().attention_width) == (512, 30, 350)
    assert word_encoder(BiLSTM, {"vectors": {"width": 4}}).width == 30_720
    assert (CNNOptions().heights, word_encoder(CNN, {"vectors": {"width": 4}}).width) == ((2, 4, 8), 512)
    tried = word_encoder(CNN, {"vectors": {"width": 4}, **AS_TRIED_BY_XBERT})
    assert (tried.bottleneck.in_features, tried.width) == (3 * 128 * 4, 512)
    assert BagOptions().n_buckets == 0


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.lists(st.integers(1, 25), min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 999))
def test_slots_divide_each_row_as_adaptive_pooling_of_it_alone(
    slots: int, lengths: list[int], more: int, seed: int
) -> None:
    values = torch.randn(len(lengths), 2, max(lengths) + more, generator=torch.Generator().manual_seed(seed))
    found = slot_maxima(values, torch.tensor(lengths), slots)
    for row, length in enumerate(lengths):
        expected = functional.adaptive_max_pool1d(values[row, :, :length], slots)
        assert torch.equal(found[row], expected)


@pytest.mark.parametrize(("height", "stride"), [(1, 1), (2, 3), (3, 2), (5, 2), (8, 1)])
def test_filters_see_every_word_of_a_text(height: int, stride: int) -> None:
    encoder = word_encoder(CNN, {**SMALL, "heights": [height], "stride": stride, "bottleneck": None, "n_filters": 60})
    ids, mask = batch(encoder, more=3)
    plain = encoder(ids, mask)
    for row, text in enumerate(mask):
        for place in range(int(text.sum())):
            other = ids.clone()
            other[row, place] = (ids[row, place] + 1) % encoder.tokeniser.n_ids
            seen = bool((encoder(other, mask)[row] != plain[row]).any())
            assert seen == (place % stride < height), (row, place)


def test_word_vectors_are_a_group_of_their_own_and_learn_at_their_own_rate() -> None:
    encoder = made("bilstm")
    network = Network(encoder, Dense(encoder.width, 3))
    rates = TrainingOptions(rate=1e-3, word_rate=7e-3).rates
    groups = {group["name"]: group for group in network.groups(rates, 0.0)}
    assert groups["words"]["params"] == [network.encoder.embedding.weight]
    assert (groups["words"]["lr"], groups["encoder"]["lr"]) == (7e-3, 1e-3)
    assert TrainingOptions(rate=2e-3).rates["words"] == 2e-3
