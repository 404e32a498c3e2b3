"""X-BERT with the encoders that its paper names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.methods import create_method, load_model


@pytest.fixture(scope="module")
def tiny_xlnet(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    """A folder with an XLNet of two layers with random weights, whose tokenizer puts its mark behind the text."""
    import torch
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast, XLNetConfig, XLNetModel

    from longtail.nn.pretrained import quiet

    tokenizer = Tokenizer.from_file(str(tiny_encoder / "tokenizer.json"))
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="$A:0 [SEP]:0 [CLS]:2", special_tokens=marks)
    shape = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
    folder = tmp_path_factory.mktemp("encoder") / "xlnet"
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        XLNetModel(XLNetConfig(vocab_size=tokenizer.get_vocab_size(), pad_token_id=0, **shape)).save_pretrained(folder)
        names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return folder


def test_presets_train_with_an_encoder_without_a_pooler(
    tiny: Callable[..., Dataset],
    tiny_xlnet: Path,
    quick: Callable[..., dict[str, Any]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = tiny(n_texts=80, n_labels=12)
    recall = {"kind": "transformer", "model": str(tiny_xlnet), "pooling": "pooler", "tokens": {"max_tokens": 32}}
    training = quick("xbert", epochs=25)["matcher"]["training"]
    changes = {"recalls": [recall], "vectors": [{"kinds": ["pifa"]}], "n_seeds": 1, "tree": {"max_leaf": 3}}
    model = create_method("xbert/eurlex-4k", {**changes, "matcher": {"training": training}})
    with caplog.at_level(logging.WARNING, logger="longtail"):
        model.fit(data.train)
    assert [record.message for record in caplog.records if "pooler" in record.message] == [
        f"encoder {tiny_xlnet} has no pooler: its summary token is used instead (pooling 'cls')"
    ]
    found = model.top_k(data.test, 1)
    assert np.mean([found.labels[row, 0] in data.test.labels[row] for row in range(len(data.test))]) > 0.9
    model.save(tmp_path / "m")
    assert np.array_equal(load_model(tmp_path / "m").top_k(data.test, 1).labels, found.labels)


def test_a_model_shows_how_its_clusters_share_the_texts_for_every_kind_of_label_vectors(
    tiny: Callable[..., Dataset], tiny_encoder: Path, tmp_path: Path
) -> None:
    data, kinds = tiny(n_texts=60, n_labels=12), ["pifa", "embedding", "text", "sentence", "file", "random"]
    file = tmp_path / "elmo.tsv"
    file.write_text("".join(f"{label}\t{place} 1\n" for place, label in enumerate(data.vocabulary.ids)))
    options = {
        "vectors": [{"kinds": [kind], "file": str(file)} for kind in kinds],
        "recalls": [{"kind": "linear"}],
        "tree": {"max_leaf": 3},
        "sentence_model": str(tiny_encoder),
    }
    model = create_method("xbert", options).fit(data.train)
    model.save(tmp_path / "m")
    for opened in (model, load_model(tmp_path / "m")):
        members = opened.describe()["members"]
        assert [member["vectors"] for member in members] == kinds
        for member, described in zip(opened.members_, members, strict=True):
            ranker, told = member.ranker, described["texts_per_cluster"].tolist()
            clusters = np.split(ranker.children, ranker.child_ptr[1:-1])
            rows = [set(data.train.labels[row].tolist()) for row in range(len(data.train))]
            assert told == [sum(bool(row & set(labels.tolist())) for row in rows) for labels in clusters]


def test_needs_are_those_of_the_networks_and_of_the_linear_ranker(
    tiny: Callable[..., Dataset], quick: Callable[..., dict[str, Any]]
) -> None:
    train = tiny(n_texts=80, n_labels=12).train
    neural = create_method("xbert", quick("xbert"))
    linear = create_method("xbert", {**quick("xbert"), "recalls": [{"kind": "linear"}], "matcher": {}})
    ranker = linear.estimate_resources(train)
    memory = dict(ranker.parts)
    assert ranker.memory_bytes == pytest.approx(sum(memory.values()), abs=len(memory))
    assert memory["features"] > 2 * 8 * len(train)  # an id and a number for each word, twice
    assert ranker.memory_bytes - memory["features"] > train.texts.nbytes
    both = neural.estimate_resources(train)
    assert both.memory_bytes >= ranker.memory_bytes
    assert both.disk_bytes > ranker.disk_bytes
