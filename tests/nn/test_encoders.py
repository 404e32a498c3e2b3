"""What is special to each kind of encoder; tests/test_every_part.py has what every one of them must keep."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from longtail.nn.encoders.bag import Bag, BagOptions
from longtail.nn.encoders.base import Encoder
from longtail.nn.encoders.bilstm import BiLSTM, BiLSTMOptions
from longtail.nn.encoders.cnn import CNN, CNNOptions, slot_maxima
from longtail.nn.encoders.reader import Reader
from longtail.nn.heads.base import Step
from longtail.nn.heads.dense import Dense
from longtail.nn.network import Network
from longtail.nn.training.options import TrainingOptions
from longtail.text.readings import TextReadings

from .reading import batch, gradients_of

SMALL = {"vectors": {"width": 6}, "tokens": {"max_tokens": 12}}
LSTM = {**SMALL, "hidden": 4, "n_heads": 3, "attention_width": 5}
AS_TRIED_BY_XBERT = {"heights": [1, 3, 5], "stride": 2, "slots": 4, "dropout_words": 0.25, "dropout": 0.5}

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


def close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, rtol=1e-6, atol=1e-6)


def word_encoder(cls: type[Encoder], options: dict[str, Any]) -> Any:
    return cls.create(cls.options_class.of(options), TextReadings(TEXTS), 0).eval()


@pytest.mark.parametrize("cls", [Bag, BiLSTM, CNN, Reader])
def test_words_are_as_methods_say(cls: type[Encoder]) -> None:
    """docs/methods/shared.md#words: 0 is padding and stays zero, 1 is the unknown word, random words lie within -1 and
    1."""
    encoder = word_encoder(cls, {"vectors": {"width": 50}})
    weight = encoder.embedding.weight
    assert encoder.tokeniser.pad_id == 0
    assert encoder.options.words.max_words == 500_000
    assert not weight[0].any()
    assert 0.9 < weight.abs().max() <= 1
    assert weight[1].any()
    ids, mask = batch(encoder, TEXTS, more=2)
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
    ids, mask = batch(encoder, TEXTS, more=2)
    for row, text in enumerate(encoder(ids, mask)):
        own = ids[row, mask[row]]
        buckets = [int(a * 116_049_371 + b) % 10_000 for a, b in pairwise(own)]
        close(text, torch.cat([words[own], pairs[buckets]]).mean(0))
    plain = word_encoder(Bag, SMALL)
    close(plain(ids[:1, :3], None)[0], plain.embedding.weight[ids[0, :3]].mean(0))
    assert not torch.allclose(encoder(ids[:1].flip(1), None), encoder(ids[:1], None))  # pairs know the order
    close(plain(ids[:1].flip(1), None), plain(ids[:1], None))


def test_attention_rows_sum_to_one_over_real_words() -> None:
    """docs/methods/xbert.md#invariant-11."""
    encoder = word_encoder(BiLSTM, LSTM)
    ids, mask = batch(encoder, TEXTS, more=3)
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
    ids, mask = batch(encoder, TEXTS, more=2)
    packed = pack_padded_sequence(encoder.embedding(ids), mask.sum(1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(reference(packed)[0], batch_first=True, total_length=ids.shape[1])
    close(encoder.states(ids, mask), expected)


def test_the_authors_code_lets_padding_in_and_has_a_layer_of_2000_units() -> None:
    encoder = word_encoder(BiLSTM, {**LSTM, "padding": "read", "dense": 2000})
    assert encoder.width == 2000
    short, long = encoder(*batch(encoder, TEXTS)), encoder(*batch(encoder, TEXTS, more=4))
    assert (short - long).abs().max() > 1e-4
    ids, mask = batch(encoder, TEXTS)
    assert torch.equal(encoder(ids, mask), encoder(ids, None))
    assert (short >= 0).all()
    assert word_encoder(BiLSTM, LSTM).width == 3 * 2 * 4
    assert word_encoder(BiLSTM, {**LSTM, "dense": 9}).width == 9


def test_sizes_are_those_of_the_methods_by_default() -> None:
    assert (BiLSTMOptions().hidden, BiLSTMOptions().n_heads, BiLSTMOptions().attention_width) == (512, 30, 350)
    assert word_encoder(BiLSTM, {"vectors": {"width": 4}}).width == 30_720
    assert (CNNOptions().heights, word_encoder(CNN, {"vectors": {"width": 4}}).width) == ((2, 4, 8), 512)
    tried = word_encoder(CNN, {"vectors": {"width": 4}, **AS_TRIED_BY_XBERT})
    assert (tried.bottleneck.in_features, tried.width) == (3 * 128 * 4, 512)
    assert BagOptions().n_buckets == 0


@settings(max_examples=60)
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
    ids, mask = batch(encoder, TEXTS, more=3)
    plain = encoder(ids, mask)
    for row, text in enumerate(mask):
        for place in range(int(text.sum())):
            other = ids.clone()
            other[row, place] = (ids[row, place] + 1) % encoder.tokeniser.n_ids
            seen = bool((encoder(other, mask)[row] != plain[row]).any())
            assert seen == (place % stride < height), (row, place)


def test_word_vectors_are_a_group_of_their_own_and_learn_at_their_own_rate() -> None:
    encoder = word_encoder(BiLSTM, LSTM)
    network = Network(encoder, Dense(encoder.width, 3))
    rates = TrainingOptions(rate=1e-3, word_rate=7e-3).rates
    groups = {group["name"]: group for group in network.groups(rates, 0.0)}
    assert groups["words"]["params"] == [network.encoder.embedding.weight]
    assert (groups["words"]["lr"], groups["encoder"]["lr"]) == (7e-3, 1e-3)
    assert TrainingOptions(rate=2e-3).rates["words"] == 2e-3
