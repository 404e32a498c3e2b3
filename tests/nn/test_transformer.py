"""The transformer encoder beside plain `transformers`, for each family that pooling or masks treat differently."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from transformers import AutoModel

from longtail.errors import ConfigError
from longtail.nn.batch import Batch
from longtail.nn.encoders.bert_layer import FAMILIES as BERT_LAYERS
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.network import Network
from longtail.nn.prediction import top_k_of
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.devices import compile_layers
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer
from longtail.persist import Folder, write_folder
from longtail.run.run import Run
from longtail.text.pieces import Pieces
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenRows, tokenise
from longtail.types import LabelMatrix

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *["the", "cat", "sat", "on", "a", "mat", "and", "dog"]]
TEXTS = pa.table({"text": ["the cat sat on the mat", "a dog", "the dog and the cat sat on a mat and on a mat"]})
WIDTH, DEPTH = 16, 3
PLAIN = {"vocab_size": len(WORDS), "num_hidden_layers": DEPTH, "num_attention_heads": 2, "hidden_size": WIDTH}
BERTS = {**PLAIN, "intermediate_size": 24, "max_position_embeddings": 30, "pad_token_id": 0}


def config_of(family: str) -> Any:
    import transformers

    return {
        "bert": lambda: transformers.BertConfig(**BERTS),
        "roberta": lambda: transformers.RobertaConfig(**BERTS),
        "electra": lambda: transformers.ElectraConfig(**BERTS, embedding_size=WIDTH),
        "mpnet": lambda: transformers.MPNetConfig(**{**BERTS, "pad_token_id": 1}),
        "distilbert": lambda: transformers.DistilBertConfig(
            vocab_size=len(WORDS), n_layers=DEPTH, n_heads=2, dim=WIDTH, hidden_dim=24, max_position_embeddings=30
        ),
        "xlnet": lambda: transformers.XLNetConfig(
            vocab_size=len(WORDS), n_layer=DEPTH, n_head=2, d_model=WIDTH, d_inner=24, pad_token_id=0
        ),
        "modernbert": lambda: transformers.ModernBertConfig(
            **BERTS,
            local_attention=8,
            cls_token_id=2,
            sep_token_id=3,
            bos_token_id=2,
            eos_token_id=3,
            attention_dropout=0.1,
        ),
    }[family]()


FAMILIES = ["bert", "roberta", "electra", "distilbert", "xlnet", "modernbert"]
every_family = pytest.mark.parametrize("family", FAMILIES)


def pieces(family: str = "bert", limit: int = 28) -> Pieces:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    single = "$A:0 [SEP]:0 [CLS]:2" if family == "xlnet" else "[CLS] $A [SEP]"
    made.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return Pieces(made, limit, 0, 2)


def an_encoder(family: str = "bert", **options: Any) -> Transformer:
    torch.manual_seed(0)
    made = Transformer.from_config(config_of(family), TransformerOptions(**options), pieces(family))
    return made.eval()


def padded(encoder: Transformer, width: int = 16) -> tuple[Tensor, Tensor]:
    tokens = tokenise(TEXTS, encoder.tokeniser)
    ids, lengths = tokens.padded(torch.arange(3).numpy(), width, encoder.tokeniser.pad_id)
    return torch.from_numpy(ids).long(), torch.arange(width) < torch.from_numpy(lengths)[:, None]


def plain_states(encoder: Transformer, text: int) -> tuple[Tensor, ...]:
    """Hidden states (1, T, d) of one text by itself, from `transformers` alone; the embeddings' first."""
    ids, mask = padded(encoder)
    own = ids[[text], : int(mask[text].sum())]
    asked: dict[str, Any] = {"input_ids": own, "output_hidden_states": True}
    if encoder.tokeniser.cls_last:
        asked["token_type_ids"] = torch.where(torch.arange(own.shape[1]) == own.shape[1] - 1, 2, 0)[None]
    family = encoder.model.config.model_type
    plain = (
        AutoModel.from_config(config_of(family), add_pooling_layer=False) if family in BERT_LAYERS else encoder.model
    )
    plain.load_state_dict(encoder.model.state_dict())  # with the library's own layers
    return plain.eval()(**asked).hidden_states


@every_family
@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("pooling", ["cls", "first", "last", "mean"])
@torch.no_grad()
def test_vectors_are_pooled_from_the_last_layers_side_by_side_the_last_one_first(
    family: str, n_layers: int, pooling: str
) -> None:
    encoder = an_encoder(family, pooling=pooling, n_layers=n_layers)
    assert encoder.width == n_layers * WIDTH
    found = encoder(*padded(encoder))
    assert found.shape == (3, encoder.width)
    kind = {"cls": "last" if family == "xlnet" else "first"}.get(pooling, pooling)
    for text in range(3):
        states = plain_states(encoder, text)[: -n_layers - 1 : -1]
        pool = {"first": lambda s: s[0, 0], "last": lambda s: s[0, -1], "mean": lambda s: s[0].mean(0)}[kind]
        assert torch.allclose(found[text], torch.cat([pool(state) for state in states]), atol=1e-5)


@every_family
def test_threads_that_read_at_once_get_the_states_of_their_own_texts(family: str) -> None:
    encoder = an_encoder(family, pooling="mean", n_layers=2)
    ids, mask = padded(encoder)
    rows = [slice(0, 1), slice(1, 2), slice(2, 3)]
    with torch.no_grad():
        alone = [encoder(ids[row], mask[row]) for row in rows]
    together = threading.Barrier(len(rows), timeout=30)

    def wait(*_: Any) -> None:
        together.wait()

    encoder.layers()[-1].register_forward_pre_hook(wait)  # all threads have left the layer before by then

    @torch.no_grad()
    def read(row: slice) -> Tensor:
        return encoder(ids[row], mask[row])

    with ThreadPoolExecutor(len(rows)) as pool:
        for vectors, expected in zip(pool.map(read, rows), alone, strict=True):
            assert torch.allclose(vectors, expected, atol=1e-6)


@every_family
@torch.no_grad()
def test_the_first_columns_are_those_of_the_last_layer_alone(family: str) -> None:
    one, three = an_encoder(family), an_encoder(family, n_layers=3)
    assert torch.allclose(three(*padded(three))[:, :WIDTH], one(*padded(one)), atol=1e-6)


@every_family
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@torch.no_grad()
def test_padding_changes_nothing(family: str, pooling: str) -> None:
    encoder = an_encoder(family, pooling=pooling, n_layers=2)
    wide, narrow = encoder(*padded(encoder, 25)), encoder(*padded(encoder, 15))
    assert torch.allclose(wide, narrow, atol=1e-5)
    ids, mask = padded(encoder)
    own = ids[[0], : int(mask[0].sum())]
    assert torch.allclose(encoder(own, None)[0], wide[0], atol=1e-5)
    assert torch.allclose(encoder(own, torch.ones_like(own, dtype=torch.bool))[0], wide[0], atol=1e-5)


@every_family
def test_a_text_of_padding_alone_gives_finite_numbers_and_gradients(family: str) -> None:
    encoder = an_encoder(family, pooling="mean", n_layers=2).train()
    ids, mask = padded(encoder)
    ids[1], mask[1] = 0, False
    encoder(ids, mask).square().sum().backward()
    assert torch.isfinite(encoder(ids, mask)).all()
    assert all(torch.isfinite(value.grad).all() for value in encoder.parameters() if value.grad is not None)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "xlnet"])
def test_computing_states_again_gives_the_same_vectors_and_gradients(family: str) -> None:
    found = []
    for checkpointing in (False, True):
        encoder = an_encoder(family, n_layers=2, checkpointing=checkpointing, dropout=0.0).train()
        vectors = encoder(*padded(encoder))
        vectors.square().sum().backward()
        found.append((vectors.detach(), {n: p.grad for n, p in encoder.named_parameters() if p.grad is not None}))
    (one, gradients), (two, others) = found
    assert torch.allclose(one, two, atol=1e-6)
    assert gradients.keys() == others.keys()
    assert all(torch.allclose(gradients[name], others[name], atol=1e-5) for name in gradients)


def test_an_encoder_that_cannot_compute_states_again_says_so() -> None:
    with pytest.raises(ConfigError, match=r"encoder.checkpointing: xlnet does not .*micro_batch"):
        an_encoder("xlnet", checkpointing=True)


@every_family
@torch.no_grad()
def test_dropout_is_set_wherever_the_encoder_has_some(family: str) -> None:
    encoder = an_encoder(family)
    set_dropout(encoder, 0.0)
    quiet, given = encoder.eval()(*padded(encoder)), padded(encoder)
    assert torch.equal(encoder.train()(*given), quiet)
    set_dropout(encoder, 0.9)
    one, two = encoder(*given), encoder(*given)
    assert not torch.allclose(one, two)
    assert torch.equal(encoder.eval()(*given), quiet)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert", "modernbert"])
@torch.no_grad()
def test_dropoutis_of_attention_alone_drops_attention_weights_alone(family: str) -> None:
    from longtail.nn.encoders.transformer import is_of_attention, set_dropout

    encoder = an_encoder(family)
    given = padded(encoder)
    quiet = encoder(*given)
    set_dropout(encoder, 0.0)
    set_dropout(encoder.model, 0.9, is_of_attention(encoder.model))
    encoder.train()
    assert not torch.allclose(encoder(*given), quiet)
    others = [module for name, module in encoder.named_modules() if "output" in name.lower() and hasattr(module, "p")]
    assert all(module.p == 0.0 for module in others)
    set_dropout(encoder.model, 0.0, is_of_attention(encoder.model))
    assert torch.equal(encoder(*given), quiet)


def set_dropout(encoder: Transformer, share: float) -> None:
    from longtail.nn.encoders.transformer import set_dropout

    set_dropout(encoder.model, share)


@every_family
@torch.no_grad()
def test_a_saved_encoder_comes_back_without_the_hub(family: str, tmp_path: Path) -> None:
    encoder = an_encoder(family, n_layers=2)
    with write_folder(tmp_path / "e", "test") as writer:
        encoder.tokeniser.save(writer, "e-tokeniser")
        writer.arrays("e", to_arrays(encoder.state_dict()))
        writer.manifest["facts"] = encoder.facts()
    folder = Folder(tmp_path / "e", "test")
    again = Transformer.restore(encoder.options, folder.manifest["facts"], folder, "e").eval()
    again.load_state_dict(to_tensors(folder.arrays("e")), assign=True)
    assert torch.equal(again(*padded(again)), encoder(*padded(encoder)))
    assert again.tokeniser.encode(["the cat"]) == encoder.tokeniser.encode(["the cat"])


def test_xlnet_has_its_mark_at_the_end_with_a_type_of_its_own() -> None:
    encoder = an_encoder("xlnet")
    assert encoder.tokeniser.cls_last
    assert encoder.tokeniser.last_type == 2
    (ids,), _ = encoder.tokeniser.encode(["a dog"])
    assert [WORDS[i] for i in ids] == ["a", "dog", "[SEP]", "[CLS]"]
    bert = an_encoder("bert")
    assert not bert.tokeniser.cls_last
    assert bert.tokeniser.last_type == 0


@torch.no_grad()
def test_the_type_of_the_mark_reaches_the_encoder() -> None:
    encoder = an_encoder("xlnet")
    found = encoder(*padded(encoder))
    encoder.tokeniser.last_type = 0
    assert not torch.allclose(encoder(*padded(encoder)), found)


@torch.no_grad()
def test_the_pooler_of_an_encoder_is_used_as_it_is() -> None:
    encoder = an_encoder("bert", pooling="pooler")
    ids, mask = padded(encoder)
    plain = encoder.model(input_ids=ids, attention_mask=mask.long()).pooler_output
    assert torch.allclose(encoder(ids, mask), plain, atol=1e-6)
    assert encoder.width == WIDTH
    assert an_encoder("bert").model.pooler is None  # no weights that nothing reads


@pytest.mark.parametrize("family", ["xlnet", "electra", "distilbert", "modernbert"])
@pytest.mark.parametrize("n_layers", [1, 2])
@torch.no_grad()
def test_an_encoder_without_a_pooler_is_read_at_its_mark(family: str, n_layers: int) -> None:
    encoder, at_mark = (an_encoder(family, pooling=pooling, n_layers=n_layers) for pooling in ("pooler", "cls"))
    assert encoder.width == at_mark.width
    assert torch.equal(encoder(*padded(encoder)), at_mark(*padded(at_mark)))


@every_family
@pytest.mark.parametrize("n_trained", [0, 1, 3])
def test_only_the_last_layers_are_trained_where_that_is_asked_for(family: str, n_trained: int) -> None:
    encoder = an_encoder(family, trainable_layers=n_trained)
    trained = {n for n, p in encoder.named_parameters() if p.requires_grad}
    layers = list(encoder.layers())
    assert len(layers) == DEPTH
    inside = {id(p) for layer in layers[DEPTH - n_trained :] for p in layer.parameters()}
    assert {id(p) for n, p in encoder.named_parameters() if n in trained} == inside
    assert bool(trained) == bool(n_trained)


def test_more_layers_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"encoder.n_layers must be at most 3 .*got 4"):
        an_encoder("bert", n_layers=4)


# How long texts may be


def test_texts_are_as_long_as_the_encoder_has_positions(tiny_encoder: Path) -> None:
    options = TransformerOptions.of({"model": str(tiny_encoder)})
    encoder = Transformer.create(options, TextReadings(TEXTS))
    assert encoder.tokeniser.max_tokens == 62
    (ids,), n_cut = encoder.tokeniser.encode([" ".join(["word1a"] * 100)])
    assert len(ids) == 62
    assert n_cut == 1
    encoder(torch.tensor([ids]), None)


@pytest.mark.parametrize("family", ["roberta", "mpnet", "bert", "xlnet"])
@torch.no_grad()
def test_the_longest_text_fits_and_one_more_token_would_not(family: str, tmp_path: Path) -> None:
    from transformers import AutoModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = config_of(family)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=pieces(family).tokenizer, **marks).save_pretrained(tmp_path)
    encoder = Transformer.create(TransformerOptions.of({"model": str(tmp_path)}), TextReadings(TEXTS)).eval()
    (ids,), _ = encoder.tokeniser.encode([" ".join(["cat"] * 1000)])
    known = {"roberta": 30 - 0 - 1, "mpnet": 30 - 2, "bert": 30, "xlnet": 512}
    assert len(ids) == known[family]
    assert torch.isfinite(encoder(torch.tensor([ids]), None)).all()
    if family != "xlnet":  # it has no positions that could end
        with pytest.raises((IndexError, RuntimeError)):
            encoder(torch.tensor([[*ids, 3]]), None)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_last_layer_of_the_first_token_alone_has_the_values_and_gradients_of_a_whole_one(family: str) -> None:
    short = an_encoder(family, n_layers=2, dropout=0.0)
    whole = an_encoder(family, n_layers=2, dropout=0.0, pooling="last")  # which needs all tokens
    whole.load_state_dict(short.state_dict())
    assert short.layers()[-1].alone and not short.layers()[0].alone
    assert not whole.layers()[-1].alone
    whole.options, whole.pooling = short.options, short.pooling
    ids, mask = padded(short)
    found, expected = short(ids, mask), whole(ids, mask)
    assert found.detach() == pytest.approx(expected.detach(), abs=1e-6)
    weight = torch.randn(found.shape)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    for (name, one), two in zip(short.named_parameters(), whole.parameters(), strict=True):
        assert (one.grad is None) == (two.grad is None), name
        if one.grad is not None and two.grad is not None:
            torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_packed_texts_have_the_vectors_and_gradients_of_padded_ones(family: str, n_layers: int) -> None:
    encoder = an_encoder(family, n_layers=n_layers, dropout=0.0)
    ids, mask = padded(encoder)
    lengths = mask.sum(1).numpy()
    rows = TokenRows(ids[mask].numpy(), np.concatenate([[0], np.cumsum(lengths)]))
    batch = Batch.packed(rows, np.arange(len(rows)), 16)
    assert len(batch) == len(ids) and len(batch.ids) % 16 == 0 and len(batch.ids) > lengths.sum()
    weight = torch.randn(len(ids), encoder.width)
    found = []
    for inputs in ((ids, mask), batch.to(torch.device("cpu")).inputs):
        encoder.zero_grad()
        vectors = encoder(*inputs)
        (vectors * weight).sum().backward()
        grads = {name: part.grad.clone() for name, part in encoder.named_parameters() if part.grad is not None}
        found.append((vectors.detach(), grads))
    (one, of_one), (two, of_two) = found
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    assert of_one.keys() == of_two.keys()
    for name, gradient in of_one.items():
        torch.testing.assert_close(gradient, of_two[name], rtol=1e-3, atol=1e-5, msg=name)


def test_what_fills_up_packed_texts_changes_nothing() -> None:
    encoder = an_encoder("bert", n_layers=2)
    encoder.eval()
    rows = TokenRows(np.array([3, 4, 5, 6, 7, 8]), np.array([0, 2, 6]))
    short = Batch.packed(rows, np.arange(2), 1)
    long = Batch.packed(rows, np.arange(2), 10)
    assert len(short.ids) == 7 and len(long.ids) == 10
    found = [encoder(*batch.to(torch.device("cpu")).inputs) for batch in (short, long)]
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_a_network_that_is_given_packed_texts_learns_what_padded_ones_teach(micro_batch: int | None) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 12, 24)
    tokens = TokenRows(rng.integers(4, 12, lengths.sum()), np.append(0, np.cumsum(lengths)))
    labels = LabelMatrix.from_lists([[n % 5] for n in range(24)], 5)
    asked = {"n_steps": 12, "batch_size": 24, "micro_batch": micro_batch, "rate": 1e-3, "averaging": {"kind": "none"}}
    found = []
    for packs in (True, False):
        encoder = an_encoder("bert", n_layers=2, dropout=0.0)
        encoder.packs = lambda *_, packs=packs: packs
        for drop in (part for part in encoder.modules() if isinstance(part, torch.nn.Dropout)):
            drop.p = 0.0
        torch.manual_seed(1)
        network = Network(encoder, Dense(encoder.width, 5))
        Trainer(network, TrainingOptions.of(asked), 0, Run()).fit(tokens, labels, 0, 30)  # a batch is all texts
        found.append(top_k_of(network, tokens, 5))
    assert (found[0].labels == found[1].labels).mean() > 0.95
    assert np.sort(found[0].scores) == pytest.approx(np.sort(found[1].scores), abs=2e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel for packed texts is one of GPUs")
@pytest.mark.parametrize("compiled", [False, True])
def test_packed_texts_on_a_gpu_have_the_vectors_and_gradients_of_padded_ones_in_float32(compiled: bool) -> None:
    config = config_of("bert")
    config.hidden_size, config.num_attention_heads, config.intermediate_size = 64, 2, 128
    torch.manual_seed(0)
    encoder = Transformer.from_config(config, TransformerOptions(n_layers=2), pieces()).cuda().eval()
    ids, mask = (part.cuda() for part in padded(encoder))
    rows = TokenRows(ids[mask].cpu().numpy(), np.append(0, np.cumsum(mask.sum(1).cpu().numpy())))
    batch = Batch.packed(rows, np.arange(len(rows)), 16).to(torch.device("cuda"))
    weight = torch.randn(len(ids), encoder.width, device="cuda")
    found = []
    for inputs, mixed in (((ids, mask), False), (batch.inputs, True)):
        if compiled and mixed:
            compile_layers(encoder.layers())
        encoder.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=mixed):
            vectors = encoder(*inputs)
        (vectors.float() * weight).sum().backward()
        gradient = torch.cat([part.grad.flatten() for part in encoder.parameters() if part.grad is not None])
        found.append((vectors.detach().float(), gradient))
    for one, two in zip(*found, strict=True):
        assert float((one - two).norm() / one.norm()) < 0.02
