"""The two readers (docs/methods/treaderxml.md#invariants 4 to 8, 10 and 11), and scopes as transformers read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from longtail.errors import ConfigError
from longtail.neighbours.scope import Scope
from longtail.nn.batch import Batch
from longtail.nn.encoders.bag import Bag, BagOptions
from longtail.nn.encoders.reader import Attention, Order, Reader, ReaderOptions, attend, waves
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.state import to_arrays, to_tensors
from longtail.persist import Folder, write_folder
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows, tokenise
from longtail.types import LabelMatrix

TEXTS = pa.table({"text": ["apple bean corn dill egg", "fig grape", "honey ice jam kale lemon apple fig", "", "corn"]})
NAMES = ("apple", "bean corn", "dill egg fig", "grape honey ice jam kale", "honey", "!?")
SMALL: dict[str, Any] = {
    "vectors": {"width": 6},
    "words": {"min_df": 1},
    "tokens": {"max_tokens": 9},
    "n_heads": 2,
    "scope_words": 3,
    "bottleneck": 5,
}
label_sets = st.lists(st.integers(0, len(NAMES) - 1), max_size=5, unique=True)


def reader(**more: Any) -> Reader:
    return Reader.create(ReaderOptions.of({**SMALL, **more}), TextReadings(TEXTS)).eval()


def scope(lists: list[list[int]]) -> Scope:
    ptr = np.cumsum([0, *map(len, lists)])
    return Scope(ptr, np.array([label for row in lists for label in row], np.int32), NAMES)


def batch_of(encoder: Any, lists: list[list[int]] | None, rows: list[int] | None = None, width: int = 9) -> Batch:
    """The first texts with their scopes, as the network is given them."""
    tokens = tokenise(TEXTS, encoder.tokeniser)
    if lists is not None:
        tokens = encoder.with_scope(tokens.take(np.arange(len(lists))), scope(lists))
    chosen = np.arange(len(tokens)) if rows is None else np.array(rows)
    return Batch.of(tokens, chosen, width, encoder.tokeniser.pad_id).to(torch.device("cpu"))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def ids_of(encoder: Reader, label: int) -> list[int]:
    return list(encoder.tokeniser.encode_names([NAMES[label]])[0])[:3]


@settings(max_examples=40)
@given(label_sets, st.randoms(use_true_random=False))
def test_a_scope_is_the_mean_of_its_labels_place_by_place_in_any_order(labels: list[int], chance: Any) -> None:
    encoder = reader()
    mixed = chance.sample(labels, len(labels))
    one, two = (encoder.scope_vectors(batch_of(encoder, [own]).scope) for own in (labels, mixed))
    close(one[0], two[0])
    words = [ids_of(encoder, label) for label in labels]
    for place in range(3):
        there = [own[place] for own in words if len(own) > place]
        assert bool(one[1][0, place]) == (bool(there) or (place == 0 and not any(words)))
        if there:
            close(one[0][0, place], encoder.embedding.weight[there].mean(0))


def test_one_label_is_read_as_its_own_words_and_no_label_as_the_learned_vector() -> None:
    encoder = reader()
    vectors, real = encoder.scope_vectors(batch_of(encoder, [[2], [0], [], [5]]).scope)
    close(vectors[0], encoder.embedding.weight[ids_of(encoder, 2)])
    close(vectors[1, 0], encoder.embedding.weight[ids_of(encoder, 0)[0]])
    close(vectors[2:, 0], encoder.nothing.expand(2, -1))
    assert real.tolist() == [[True] * 3, *[[True, False, False]] * 3]
    encoder(*batch_of(encoder, [[], [1]]).inputs).sum().backward()
    assert encoder.nothing.grad is not None
    assert encoder.nothing.grad.any()


def states(encoder: Reader, batch: Batch) -> tuple[Tensor, Tensor]:
    """What the interaction gives: places of the scope, places of the text."""
    kept: list[Tensor] = []
    hook = encoder.interaction.register_forward_hook(lambda module, given, made: kept.append(made))
    encoder(*batch.inputs)
    hook.remove()
    n = 0 if batch.scope is None else encoder.options.scope_words
    return kept[0][:, :n], kept[0][:, n:]


@pytest.mark.parametrize("layers", [["masked"], []])
def test_places_see_nothing_that_comes_later_and_the_text_sees_the_scope(layers: list[str]) -> None:
    encoder = reader(layers=layers)
    batch = batch_of(encoder, [[1, 2], [3], [4]])
    ahead, own = states(encoder, batch)
    for place in range(5):
        ids = batch.ids.clone()
        ids[0, place] = ids[2, 4]
        changed = states(encoder, Batch(ids, batch.mask, scope=batch.scope))
        close(changed[0], ahead)
        close(changed[1][0, :place], own[0, :place])
        assert not torch.allclose(changed[1][0, place:5], own[0, place:5])
    other = states(encoder, batch_of(encoder, [[4], [3], [4]]))
    assert (other[1][0, :5] - own[0, :5]).abs().amax(1).min() > 1e-4  # every word of the first text
    close(other[1][1:], own[1:])


def test_the_printed_mask_hides_the_scope_from_the_text_and_shows_it_what_comes_later() -> None:
    encoder = reader(mask="anticausal", layers=["masked"])
    batch = batch_of(encoder, [[1, 2], [3], [4]])
    ahead, own = states(encoder, batch)
    other = states(encoder, batch_of(encoder, [[4], [3], [4]]))
    close(other[1], own)
    ids = batch.ids.clone()
    ids[0, 3] = ids[2, 4]
    changed = states(encoder, Batch(ids, batch.mask, scope=batch.scope))
    close(changed[1][0, 4], own[0, 4])
    assert not torch.allclose(changed[1][0, :4], own[0, :4])
    assert not torch.allclose(changed[0][0], ahead[0])


@settings(max_examples=60)
@given(
    st.sampled_from(["all", "before", "behind"]),
    st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4),
    st.integers(0, 999),
)
def test_attention_rows_sum_to_one_over_places_that_may_be_seen(
    order: Order, real: list[list[bool]], seed: int
) -> None:
    """Values that are unit vectors show the weights themselves."""
    torch.manual_seed(seed)
    mask = torch.tensor(real)
    queries, keys = torch.randn(2, len(real), 1, 5, 3)
    found = attend(queries, keys, torch.eye(5).expand(len(real), 1, 5, 5), order, mask)[:, 0]
    close(found.sum(2), torch.ones(len(real), 5))
    places = torch.arange(5)
    seen = {
        "all": places == places,
        "before": places[None] <= places[:, None],
        "behind": places[None] >= places[:, None],
    }
    allowed = (seen[order] & mask[:, None]) | (places[None] == places[:, None])
    assert not found[~allowed.expand_as(found)].any()
    assert (found[allowed.expand_as(found)] > 0).all()


@settings(max_examples=20)
@given(st.permutations(range(6)), st.integers(0, 99))
def test_full_attention_without_places_does_not_know_the_order_and_masked_attention_does(
    order: list[int], seed: int
) -> None:
    torch.manual_seed(seed)
    given_states = torch.randn(2, 6, 8)
    full, masked = Attention(8, 2, "all"), Attention(8, 2, "before")
    close(full(given_states[:, order], None), full(given_states, None)[:, order])
    if order != sorted(order):
        moved = masked(given_states[:, order], None) - masked(given_states, None)[:, order]
        assert moved.abs().max() > 1e-5


def test_places_are_told_by_learned_vectors_or_waves_or_not_at_all() -> None:
    order = torch.tensor([[2, 3, 4]])
    for kind, knows in (("learned", True), ("waves", True), ("none", False)):
        encoder = reader(layers=["full"], positions=kind)
        one, two = (encoder.text(encoder.embedding(ids), None) for ids in (order, order.flip(1)))
        assert torch.allclose(one.flip(1), two, atol=1e-6) != knows
    made = waves(50, 7, torch.device("cpu"))
    assert made.shape == (50, 7)
    close(made[0], torch.tensor([0.0, 1.0] * 3 + [0.0]))
    assert torch.cdist(made, made).fill_diagonal_(1).min() > 0.1


def test_a_reader_whose_heads_say_nothing_passes_on_what_it_read() -> None:
    encoder = reader(layers=["masked"])
    nn.init.zeros_(encoder.text.layers[0].outer.weight)
    vectors = torch.randn(2, 4, 6)
    close(encoder.text(vectors, None), encoder.text.placed(vectors))
    plain = reader(layers=["masked"], residual=False)
    nn.init.zeros_(plain.text.layers[0].outer.weight)
    assert not plain.text(vectors, None).any()


def test_without_a_scope_the_network_is_the_one_that_knows_of_none() -> None:
    encoder, plain = reader(), reader(scope_words=0)
    assert not [name for name in plain.state_dict() if name.startswith(("scope", "nothing"))]
    plain.load_state_dict({name: value for name, value in encoder.state_dict().items() if name in plain.state_dict()})
    batch = batch_of(encoder, None)
    assert torch.equal(encoder(*batch.inputs), plain(*batch.inputs))
    kept: list[Any] = []
    encoder.scope.register_forward_hook(lambda *given: kept.append(given))
    encoder(*batch.inputs)
    assert not kept
    vectors = encoder(*batch_of(encoder, [[1], [2], [3], [], [0]]).inputs)
    assert (vectors - plain(*batch.inputs)).abs().amax(1).min() > 1e-4  # whoever has a scope is read otherwise


def test_the_root_of_how_many_words_there_are_lets_longer_texts_say_more() -> None:
    """Without attention and places, what a text's vector has of means is their number's root times as long."""
    bare = {"layers": [], "positions": "none", "scope_words": 0}
    plain, rooted = reader(**bare, root_weight=0.0), reader(**bare, root_weight=0.5)
    rooted.load_state_dict(plain.state_dict())
    batch = batch_of(plain, None)
    found: list[list[Tensor]] = []
    for encoder in (plain, rooted):
        heard: list[Tensor] = []
        encoder.raw.register_forward_pre_hook(lambda _, given, heard=heard: heard.append(given[0]))
        encoder.bottleneck.register_forward_pre_hook(lambda _, given, heard=heard: heard.append(given[0]))
        encoder(*batch.inputs)
        found.append(heard)
    (summary, raw), (summary_rooted, raw_rooted) = found
    longer = 0.5 * torch.tensor([5.0, 2, 7, 1, 1]).sqrt()[:, None]
    close(raw_rooted, raw * longer)
    close(summary_rooted[:, :6], summary[:, :6])  # the largest of each number
    close(summary_rooted[:, 6:], summary[:, 6:] * longer)
    words = plain.embedding(batch.ids[0, :5])
    close(raw[0], words.mean(0))


@pytest.mark.parametrize(
    "more", [{}, {"mask": "anticausal"}, {"pooling": "flatten"}, {"layers": []}, {"scope_words": 1}]
)
def test_a_text_with_its_scope_gives_alone_what_it_gives_among_others(more: dict[str, Any]) -> None:
    encoder = reader(**more)
    lists = [[1, 2], [3], [0, 1, 2, 3, 4], [], [5]]
    together = encoder(*batch_of(encoder, lists).inputs)
    assert torch.isfinite(together).all()
    for row, length in enumerate([5, 2, 7, 1, 1]):
        batch = batch_of(encoder, lists, [row], length)
        assert batch.mask is None
        close(encoder(*batch.inputs)[0], together[row])
        ids, mask, own = batch.inputs
        wider = torch.cat([own, torch.zeros_like(own)], 1)
        close(encoder(ids, mask, wider)[0], together[row])


def test_a_row_without_words_and_labels_gives_numbers() -> None:
    for more in ({}, {"mask": "anticausal"}, {"pooling": "flatten"}):
        encoder = reader(**more)
        batch = batch_of(encoder, [[1], [], [2]])
        mask = batch.mask.clone()
        mask[1] = False
        made = encoder(batch.ids, mask, batch.scope)
        made.square().sum().backward()
        assert torch.isfinite(made).all()
        assert all(torch.isfinite(p.grad).all() for p in encoder.parameters() if p.grad is not None)


def test_gradients_reach_both_readers() -> None:
    encoder = reader()
    vectors = encoder(*batch_of(encoder, [[1, 2], [], [3]]).inputs)
    (vectors * torch.linspace(-1, 2, 5)).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_half_precision_with_a_scope_stays_near_full_precision() -> None:
    encoder = reader()
    batch = batch_of(encoder, [[1, 2], [], [3]])
    with torch.autocast("cpu", torch.bfloat16):
        half = encoder(*batch.inputs).float()
    torch.testing.assert_close(half, encoder(*batch.inputs), rtol=0.1, atol=0.05)


def test_scopes_travel_with_texts_and_have_few_widths() -> None:
    encoder = reader()
    lists = [[number % 4 for number in range(n)] for n in (1, 30, 3, 0, 22)]
    tokens = encoder.with_scope(tokenise(TEXTS, encoder.tokeniser), scope(lists))
    assert tokens.scope is not None
    taken = tokens.take(np.array([4, 1]))
    assert taken.scope is not None
    assert taken.scope.lengths().tolist() == [66, 90]
    labels = LabelMatrix.from_lists([[0]] * 5, 1)
    widths = [Batch.of(tokens, np.array(rows), 9, 0, labels).scope.shape[1] for rows in ([0, 2, 3], [4], [1, 0], [3])]
    assert widths == [64, 128, 128, 64]
    whole = Batch.of(tokens, np.arange(5), 9, 0, labels)
    assert torch.equal(whole.part(1, 3).scope, whole.scope[1:3])
    assert len(whole.part(1, 3).inputs) == 3
    nothing = encoder.with_scope(tokenise(TEXTS, encoder.tokeniser), scope([[]] * 5))
    assert not Batch.of(nothing, np.arange(5), 9, 0).scope.any()


def test_pieces_of_a_pretrained_encoder_can_be_read_instead_of_words(tiny_encoder: Path, tmp_path: Path) -> None:
    options = ReaderOptions.of({**SMALL, "pieces": str(tiny_encoder), "n_heads": 4})
    texts = pa.table({"text": ["word1a word2b noise3", "nowhere", ""]})
    encoder = Reader.create(options, TextReadings(texts)).eval()
    pretrained = Transformer.create(
        TransformerOptions(model=str(tiny_encoder)), TextReadings(texts)
    ).model.get_input_embeddings()
    assert encoder.word_width == 32
    assert torch.equal(encoder.embedding.weight[1:], pretrained.weight[1:])
    assert not encoder.embedding.weight[0].any()
    names = ("word1a word2a", "noise1")
    tokens = encoder.with_scope(tokenise(texts, encoder.tokeniser), Scope(np.arange(4), np.array([0, 1, 0]), names))
    batch = Batch.of(tokens, np.arange(3), 5, 0).to(torch.device("cpu"))
    assert tokens.scope.ids[:6].tolist() == [*encoder.tokeniser.encode_names(names)[0], 0, *tokens.scope.ids[3:4], 0, 0]
    with write_folder(tmp_path / "m", "test") as writer:
        encoder.tokeniser.save(writer, "e-tokeniser")
        writer.arrays("e", to_arrays(encoder.state_dict()))
    folder = Folder(tmp_path / "m", "test")
    again = Reader.restore(ReaderOptions.of(options.plain()), encoder.facts(), folder, "e").eval()
    again.load_state_dict(to_tensors(folder.arrays("e")))
    assert torch.equal(again(*batch.inputs), encoder(*batch.inputs))
    assert again.facts() == encoder.facts()
    outline = Reader.outline(options, texts, 3)
    assert {k: v.shape for k, v in outline.state_dict().items()} == {k: v.shape for k, v in again.state_dict().items()}


def rows_of(tokens: TokenRows) -> list[list[int]]:
    return [tokens.ids[start:stop].tolist() for start, stop in zip(tokens.ptr[:-1], tokens.ptr[1:], strict=True)]


def test_a_transformer_reads_names_behind_the_text_the_likeliest_first(tiny_encoder: Path) -> None:
    options = {"model": str(tiny_encoder), "scope_tokens": 5, "tokens": {"max_tokens": 12}}
    texts = pa.table({"text": ["apple grey", "stone " * 20, "red", ""]})
    encoder = Transformer.create(TransformerOptions.of(options), TextReadings(texts)).eval()
    names = ("word1a word2a", "noise1", "noise2 noise3 noise4 noise5 noise6")
    lists = [[1, 0, 1], [0, 2, 1], [], [2]]
    labels = np.array([label for own in lists for label in own], np.int32)
    own = tokenise(texts, encoder.tokeniser)
    made = encoder.with_scope(own, Scope(np.cumsum([0, *map(len, lists)]), labels, names))
    first, last = 2, 3
    word = {text: encoder.tokeniser.encode_names([text])[0][0] for text in ("apple", "grey", "stone", "red", "noise1")}
    two = list(encoder.tokeniser.encode_names(names)[0])
    assert rows_of(made) == [
        [first, word["apple"], word["grey"], last, word["noise1"], last, *two, last],
        [first, *[word["stone"]] * 7, last, *two, last],  # cut to leave room; the second name would be too long
        [first, word["red"], last],
        [first, last],
    ]
    assert (own.n_cut, made.n_cut) == (1, 1)
    assert made.ids.dtype == own.ids.dtype
    batch = Batch.of(made, np.arange(4), 12, 0).to(torch.device("cpu"))
    assert torch.isfinite(encoder(*batch.inputs)).all()


def test_encoders_say_when_they_cannot_read_a_scope(tiny_encoder: Path) -> None:
    bag = Bag.create(BagOptions.of({"vectors": {"width": 4}}), TextReadings(TEXTS))
    with pytest.raises(ConfigError, match="must be transformer or reader to read a label scope, got bag"):
        bag.with_scope(tokenise(TEXTS, bag.tokeniser), scope([[0]] * 5))
    plain = reader(scope_words=0)
    with pytest.raises(ConfigError, match="scope_words must be at least 1 to read a label scope, got 0"):
        plain.with_scope(tokenise(TEXTS, plain.tokeniser), scope([[0]] * 5))
    options = TransformerOptions.of({"model": str(tiny_encoder), "tokens": {"max_tokens": 20}})
    short = Transformer.create(options, TextReadings(TEXTS))
    with pytest.raises(ConfigError, match=r"scope_tokens must be at most half of max_tokens \(20\), got 128"):
        short.with_scope(tokenise(TEXTS, short.tokeniser), scope([[0]] * 5))
    with pytest.raises(ConfigError, match=r"n_heads must be at most the width of word vectors \(6\), got 7"):
        reader(n_heads=7)
