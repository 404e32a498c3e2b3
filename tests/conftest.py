"""What several test files need: the shared data sets where they are, tiny ones that can be learned, and a tiny encoder.

No test reaches the network: the hub of `transformers` is switched off here, before anything imports it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.data.vocabulary import Vocabulary
from longtail.methods import METHODS
from longtail.presets import preset_names

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin while they wait crawl where cores are busy

hypothesis.settings.register_profile(  # no test is timed: machines may be busy
    "longtail", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("longtail")

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TINY_WORDS = [
    *(f"word{label}{letter}" for label in range(20) for letter in "abc"),
    *(f"noise{number}" for number in range(30)),
    *["a", "an", "apple", "grey", "red", "stone"],
]
"""The words of `tiny_dataset`, and of texts that tests write by hand."""

TRAINING = {"rate": 5e-3, "head_rate": 2e-2, "epochs": 15, "batch_size": 16, "averaging": {"kind": "none"}}
WORDS = {"hidden": 16, "vectors": {"width": 16}, "tokens": {"max_tokens": 32}, "dropout": 0.1, "dropout_words": 0.0}
ATTENTION = {"rate": 3e-2, "bottleneck_rate": 3e-2, "head_rate": 3e-2, "clip_norm": 1.0}
XBERT = {"tree": {"max_leaf": 3}, "n_clusters_ranked": 2}
STACK = {
    "members": ["linear", {"method": "knn", "options": {"n_neighbours": 10}}],
    "n_folds": 2,
    "ranker": {"n_trees": 20, "min_leaf": 20},
}
QUICK: dict[str, Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    "lightxml": lambda encoder, training: {"encoders": [encoder], "dropout": 0.1, "training": training},
    "lightxml:ensemble": lambda encoder, training: {
        "encoders": [encoder],
        "dropout": 0.1,
        "n_seeds": 2,
        "training": {**training, "epochs": training["epochs"] - 3},
    },
    "lightxml:shortlist": lambda encoder, training: {
        "encoders": [encoder],
        "dropout": 0.1,
        "dense_up_to": 1,
        "tree": {"max_leaf": 4},
        "shortlist": {"n_clusters_ranked": 2, "bottleneck_width": 16},
        "training": {**training, "head_rate": 5e-2, "epochs": training["epochs"] + 5},
    },
    "aplc-xlnet": lambda encoder, training: {
        "encoder": {**encoder, "n_layers": 1},
        "labels": {"bottleneck": 64},
        "training": {**training, "bottleneck_rate": 5e-3, "head_rate": 1e-2, "epochs": training["epochs"] + 10},
    },
    "fasttext": lambda encoder, training: {
        "encoder": {"vectors": {"width": 32}, "n_buckets": 50},
        "training": {**training, "rate": 0.1},
    },
    "xml-cnn": lambda encoder, training: {
        "encoder": {
            "vectors": {"width": 32},
            "heights": [1, 2],
            "n_filters": 64,
            "slots": 1,
            "bottleneck": 64,
            "dropout_words": 0.0,
            "dropout": 0.1,
        },
        "training": training,
    },
    "xt": lambda encoder, training: {
        "encoder": {"vectors": {"width": 32}},
        "tree": {"max_leaf": 3},
        "training": {**training, "rate": 0.1, "head_rate": 0.3},
    },
    "xr-transformer": lambda encoder, training: {
        "encoders": [{"kind": "transformer", **encoder}],
        "tree": {"branching": 2, "max_leaf": 3},
        "first_clusters": 2,
        "final_tree": {"max_leaf": 3},
        "fine_tuning": {
            "n_candidates": 2,
            "training": [{**training, "epochs": 2}, {**training, "epochs": 3}, training],
        },
    },
    "treaderxml": lambda encoder, training: {
        "encoder": {
            "kind": "reader",
            "vectors": {"width": 64},
            "tokens": {"max_tokens": 32},
            "bottleneck": 64,
            "dropout_words": 0.5,
        },
        "dropout": 0.1,
        "training": {**training, "epochs": training["epochs"] + 15},
    },
    "treaderxml:transformer": lambda encoder, training: {
        "encoder": {"kind": "transformer", **encoder, "scope_tokens": 8},
        "dropout": 0.1,
        "training": training,
    },
    "attentionxml": lambda encoder, training: {
        "encoder": WORDS,
        "labels": {"widths": [16]},
        "training": {**training, **ATTENTION, "epochs": training["epochs"] + 5},
    },
    "attentionxml:tree": lambda encoder, training: {
        "encoder": WORDS,
        "labels": {"widths": [16], "own_output": True},
        "tree": {"n_levels": 1, "max_leaf": 3},
        "n_candidates": 3,
        "training": {**training, **ATTENTION, "epochs": training["epochs"] + 5},
    },
    "xbert": lambda encoder, training: {
        **XBERT,
        "recalls": [{"kind": "transformer", **encoder}],
        "matcher": {"training": training},
    },
    "xbert:linear": lambda encoder, training: {**XBERT, "recalls": [{"kind": "linear"}], "embedding_weight": 0.0},
    "xbert:similarity": lambda encoder, training: {
        **XBERT,
        "recalls": [{"kind": "cnn", "vectors": {"width": 32}, "heights": [1, 2], "n_filters": 32, "slots": 1}],
        "vectors": [{"kinds": ["random"]}],
        "ranking": "similarity",
        "matcher": {"training": training},
    },
    "auto": lambda encoder, training: {"budget": None, "leave_out": ["lightxml"]},
    "stack": lambda encoder, training: STACK,
    "stack:logistic": lambda encoder, training: {**STACK, "ranker": {"kind": "logistic"}},
    "peak-network": lambda encoder, training: {
        "encoder": {"vectors": {"width": 32}, "tokens": {"max_tokens": 32}},
        "training": {**training, "rate": 5e-2, "bottleneck_rate": 2e-2, "epochs": training["epochs"] + 10},
    },
}
"""For methods whose defaults would take long or name an encoder: options with which they learn tiny data in a second or
two, by the options of the tiny encoder and of its training. `method:word` is another way to train the same method."""
PLAIN = [name for name in METHODS.names() if name not in QUICK]
"""Methods that train offline as they are, and so do their presets; presets of the others name encoders of the hub."""
WITHOUT_NETWORK = {"xbert:linear", "auto", "stack", "stack:logistic"}
ASKED = {
    "each_plain": PLAIN,
    "each_network": [name for name in QUICK if name not in WITHOUT_NETWORK],
    "each_name": [*PLAIN, *QUICK, *(name for name in preset_names() if name.split("/")[0] in PLAIN)],
}


IN_QUICK = {"linear", "knn", "lightxml", "xbert"}
"""Of the tests that run for every method, these alone are part of `make quick`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test for every method if it asks for `each_name`, or for those of one kind."""
    for argument, names in ASKED.items():
        if argument in metafunc.fixturenames:
            slow = [pytest.param(name, marks=() if name in IN_QUICK else pytest.mark.slow) for name in names]
            metafunc.parametrize(argument, slow)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package in tests/plugin as if it were installed, here and in processes that tests start."""
    root = Path(__file__).parent / "plugin"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = tmp_path_factory.mktemp("site")
    facts = installed / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (facts / "entry_points.txt").write_text("\n".join(groups) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        for folder in (root / "src", installed):
            patch.syspath_prepend(folder)
            patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data sets beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("needs the data sets of ../shared")
    return SHARED


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Dataset]:
    """A maker of tiny data sets: `tiny(n_texts=60, n_labels=8, seed=0)`; `named` labels are called by their words."""
    return tiny_dataset


def tiny_dataset(
    n_texts: int = 60,
    n_labels: int = 8,
    seed: int = 0,
    splits: tuple[str, ...] = ("train", "test"),
    *,
    named: bool = False,
) -> Dataset:
    """Texts made of the words of their labels (three each) and of noise; every label occurs in the first split."""
    rng = np.random.default_rng(seed)
    made = {}
    for split in splits:
        texts, labels = [], []
        for number in range(n_texts):
            own = {number % n_labels, *rng.choice(n_labels, rng.integers(0, min(3, n_labels)), replace=False).tolist()}
            words = [f"word{label}{rng.choice(list('abc'))}" for label in sorted(own) for _ in range(3)]
            noise = [f"noise{i}" for i in rng.integers(0, 30, 4)]
            texts.append(" ".join(rng.permutation(words + noise).tolist()))
            labels.append([f"label{label}" for label in sorted(own)])
        made[split] = (texts, labels)
    data = Dataset.of(made, name="tiny")
    if not named:
        return data
    words = {f"label{label}": [f"word{label}{letter}" for letter in "abc"] for label in range(n_labels)}
    names = {label: first for label, (first, *_) in words.items()}
    others = {label: more for label, (_, *more) in words.items()}
    return data.named_by(Vocabulary.of(list(words), names, others))


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as encoders of the hub have it: a BERT of two layers with random weights, a tokenizer of whole words."""
    for library in ("torch", "transformers", "tokenizers"):
        pytest.importorskip(library)
    import torch
    from transformers import BertConfig, BertModel

    from longtail.nn.pretrained import quiet

    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(MARKS) + len(TINY_WORDS), max_position_embeddings=62, **shape)
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
        tiny_tokenizer(TINY_WORDS).save_pretrained(folder)
    return folder


def tiny_tokenizer(words: list[str]) -> Any:
    """A `transformers` tokenizer of whole words, with BERT's marks around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate([*MARKS, *words])}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = [(mark, ids[mark]) for mark in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=made, **dict(zip(names, MARKS, strict=True)))


@pytest.fixture(scope="session")
def quick(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Options with which a method learns tiny data quickly; none for those that do by default.

    `quick("lightxml", epochs=4)` changes how its network is trained.
    """

    def options_for(name: str, **training: Any) -> dict[str, Any]:
        if name not in QUICK:
            return {}
        encoder = {
            "model": str(request.getfixturevalue("tiny_encoder")),
            "pooling": "mean",
            "tokens": {"max_tokens": 32},
        }
        return QUICK[name](encoder, {**TRAINING, **training})

    return options_for
