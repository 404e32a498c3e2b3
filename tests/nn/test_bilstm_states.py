"""A BiLSTM that hands out its states."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from longtail.nn.encoders.bilstm_states import States, StatesOptions
from longtail.nn.state import to_arrays, to_tensors
from longtail.persist import Folder, write_folder
from longtail.text.readings import TextReadings

from .reading import batch

TEXTS = pa.table({"text": ["the cat sat on the mat", "a cat and a dog", "", "the dog and the cat sat", "mat log"]})
OPTIONS = StatesOptions.of({"hidden": 4, "vectors": {"width": 6}, "tokens": {"max_tokens": 12}})


def an_encoder(seed: int = 0) -> States:
    return States.create(OPTIONS, TextReadings(TEXTS), seed).eval()


def test_each_word_has_a_state_and_padding_has_zeros() -> None:
    encoder = an_encoder()
    ids, mask = batch(encoder, TEXTS, more=3)
    states = encoder(ids, mask)
    assert states.shape == (len(TEXTS), ids.shape[1], encoder.width) == (5, 9, 8)
    assert (states[~mask] == 0).all()
    assert (states[mask].abs().sum(1) > 0).all()


def test_padding_and_what_stands_in_it_change_nothing() -> None:
    encoder = an_encoder()
    ids, mask = batch(encoder, TEXTS)
    wide, wide_mask = batch(encoder, TEXTS, more=5)
    other = wide.where(wide_mask, torch.full_like(wide, encoder.tokeniser.n_ids - 1))
    for given in (wide, other):
        torch.testing.assert_close(encoder(given, wide_mask)[:, : ids.shape[1]], encoder(ids, mask))


def test_a_text_alone_gives_what_it_gives_among_others() -> None:
    encoder = an_encoder()
    together = encoder(*batch(encoder, TEXTS))
    for row in range(len(TEXTS)):
        ids, mask = batch(encoder, TEXTS, [row])
        torch.testing.assert_close(encoder(ids, mask)[0], together[row, : ids.shape[1]])
        torch.testing.assert_close(encoder(ids, None)[0], together[row, : ids.shape[1]])


def test_states_are_those_of_a_packed_bidirectional_lstm() -> None:
    encoder = an_encoder()
    ids, mask = batch(encoder, TEXTS)
    plain = nn.LSTM(6, 4, batch_first=True, bidirectional=True)
    for name, value in encoder.forwards[0].named_parameters():
        getattr(plain, name).data.copy_(value)
        getattr(plain, f"{name}_reverse").data.copy_(dict(encoder.backwards[0].named_parameters())[name])
    packed = pack_padded_sequence(encoder.vectors_of(ids, mask), mask.sum(1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(plain(packed)[0], batch_first=True, total_length=ids.shape[1])
    torch.testing.assert_close(encoder(ids, mask), expected)


def test_states_are_dropped_in_training_only() -> None:
    encoder = an_encoder().train()
    ids, mask = batch(encoder, TEXTS)
    dropped = encoder(ids, mask)[mask]
    assert 0.3 < float((dropped == 0).float().mean()) < 0.7
    assert (encoder.eval()(ids, mask)[mask] != 0).all()


def test_a_saved_encoder_gives_the_same_states(tmp_path: Path) -> None:
    encoder = an_encoder(5)
    with write_folder(tmp_path / "model", "test") as writer:
        encoder.tokeniser.save(writer, "encoder-tokeniser")
        writer.arrays("encoder", to_arrays(encoder.state_dict()))
    folder = Folder(tmp_path / "model", "test")
    again = States.restore(StatesOptions.of(OPTIONS.plain()), encoder.facts(), folder, "encoder")
    again.load_state_dict(to_tensors(folder.arrays("encoder")))
    assert again.width == encoder.width
    assert torch.equal(again.eval()(*batch(again, TEXTS)), encoder(*batch(encoder, TEXTS)))
