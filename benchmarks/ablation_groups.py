"""The papers' own ablations on eurlex57k: which rows each table has, and what the paper found.

Rows of a group have the same budget, unless its note says otherwise. A group also says what the paper found (`claims`)
and, in words, what was found here (`found`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ENCODER = "{encoder}"
"""Stands for the encoder's folder in options, so that results do not depend on where it lies."""

READER: dict[str, Any] = {
    "kind": "transformer",
    "model": ENCODER,
    "tokens": {"max_tokens": 64},
    "attention_dropout": 0.0,
}
TRAINING: dict[str, Any] = {"epochs": 3.0, "batch_size": 64, "rate": 2e-4, "head_rate": 4e-3, "bottleneck_rate": 2e-3}
WORDS: dict[str, Any] = {"tokens": {"max_tokens": 128}, "vectors": {"width": 200}}


@dataclass(frozen=True)
class Claim:
    """What a paper found: `better` is above `worse`, there by so many points of `metric`."""

    better: str
    worse: str
    metric: str
    there: str
    """Empty where the paper has no figure for it: then there is nothing to agree with."""
    equal: bool = False
    """Whether the paper found hardly any difference."""


@dataclass(frozen=True)
class Group:
    """One table or figure of a paper."""

    title: str
    note: str
    rows: dict[str, tuple[str, dict[str, Any]]]
    claims: tuple[Claim, ...] = ()
    found: str = ""
    """What it comes to, in words."""
    curves: bool = False
    """Whether losses are drawn."""


def xbert(vectors: Sequence[str] = ("pifa",), n_seeds: int = 1, **more: Any) -> tuple[str, dict[str, Any]]:
    options = {
        "recalls": [READER],
        "vectors": [{"kinds": [kind]} for kind in vectors],
        "n_seeds": n_seeds,
        "tree": {"n_levels": 1, "max_leaf": 100, "fill": False},
        "embedding_weight": 0.0,
        "n_clusters_ranked": 10,
        "ranker": {"negatives": "cluster", "threshold": 0.01},
        "score": {"cluster_weight": 1.0, "label_power": 3},
        "matcher": {"training": TRAINING},
        "sentence_model": ENCODER,
    }
    return "xbert", {**options, **more}


def bilstm(n_words: int = 128) -> dict[str, Any]:
    words = {**WORDS, "tokens": {"max_tokens": n_words}}
    return {"recalls": [{"kind": "bilstm", "hidden": 256, "n_heads": 10, **words}], "matcher": {"training": SLOWER}}


def words_of(n_words: int | None = None) -> dict[str, Any]:
    """TF-IDF of single words of the text alone, the first ones or all."""
    return {"features": {"blocks": [{"column": "text", **({"max_words": n_words} if n_words else {})}]}}


LINEAR: dict[str, Any] = {"recalls": [{"kind": "linear"}]}


SLOWER: dict[str, Any] = {"epochs": 6.0, "batch_size": 128, "rate": 3e-3, "word_rate": 1e-2, "head_rate": 4e-3}


def aplc(shares: Sequence[float], rates: dict[str, float] | None = None, **labels: Any) -> tuple[str, dict[str, Any]]:
    training = {**TRAINING, **(rates or {})}
    return "aplc-xlnet", {
        "encoder": READER,
        "buckets": {"shares": list(shares)},
        "labels": labels,
        "training": training,
    }


LIGHT: dict[str, Any] = {"dropout": 0.2, "training": {**TRAINING, "clip_norm": 0.0}}


def lightxml(negatives: str, epochs: float = 3.0) -> tuple[str, dict[str, Any]]:
    return "lightxml", {
        **LIGHT,
        "training": {**LIGHT["training"], "epochs": epochs},
        "encoders": [{**READER, "n_layers": 5}],
        "dense_up_to": 0,
        "tree": {"n_levels": 1, "max_leaf": 16, "fill": False},
        "shortlist": {"n_clusters_ranked": 30, "bottleneck_width": 300},
        "negatives": negatives,
    }


def layers(n_layers: int) -> tuple[str, dict[str, Any]]:
    return "lightxml", {**LIGHT, "encoders": [{**READER, "n_layers": n_layers}]}


def treader(teacher: bool, layers: Sequence[str], residual: bool = True) -> tuple[str, dict[str, Any]]:
    words = {"tokens": {"max_tokens": 64}, "vectors": {"width": 100}, "bottleneck": 256}
    encoder = {
        "kind": "reader",
        "layers": list(layers),
        "residual": residual,
        "raw": False,
        "root_weight": 0.0,
        **words,
    }
    training = {"epochs": 3.0, "validation": 0.02, "patience": 3}
    scope = {"n_neighbours": 5, "votes": 0.0, "max_labels": 0}
    return "treaderxml", {"teacher": teacher, "encoder": encoder, "scope": scope, "training": training}


ONE_RATE = {"rate": 5e-5, "bottleneck_rate": 5e-5, "head_rate": 5e-5}

GROUPS: dict[str, Group] = {
    "xbert": Group(
        "X-BERT, Table 3: label vectors, matcher, ranker, members",
        "As in the authors' code: a TF-IDF ranker that learns within clusters, ten clusters, both scores multiplied "
        "(the paper states neither the negatives nor the number of clusters). ELMo is replaced by a sentence encoder "
        "(e5-small) of label names. Matchers do not read alike: transformers 64 tokens for 3 epochs, BiLSTMs 128 words "
        "for 6, the linear one whole texts.",
        {
            "pifa, transformer": xbert(),
            "sentence, transformer": xbert(["sentence"]),
            "pifa, transformer, similarity for a ranker": xbert(ranking="similarity"),
            "pifa, BiLSTM": xbert(**bilstm()),
            "sentence, BiLSTM": xbert(["sentence"], **bilstm()),
            "pifa, linear": xbert(recalls=[{"kind": "linear"}]),
            "sentence, linear": xbert(["sentence"], recalls=[{"kind": "linear"}]),
            "random, linear": xbert(["random"], recalls=[{"kind": "linear"}]),
            "pifa, transformer, 2 seeds": xbert(n_seeds=2),
            "sentence, transformer, 2 seeds": xbert(["sentence"], n_seeds=2),
            "pifa and sentence, transformer": xbert(["pifa", "sentence"]),
            "pifa and sentence, transformer, 3 seeds": xbert(["pifa", "sentence"], n_seeds=3),
            "pifa, transformer, vector beside TF-IDF": xbert(embedding_weight=1.0),
            "pifa, linear, negatives of the matcher": xbert(
                recalls=[{"kind": "linear"}],
                ranker={"threshold": 0.01},
                score={"cluster_weight": 0.4, "label_power": 4},
            ),
        },
        (
            Claim("pifa, transformer", "pifa, BiLSTM", "P@1", "+1.3 (AmazonCat), +1.0 (Wiki-500K)"),
            Claim("pifa, BiLSTM", "pifa, linear", "P@1", "+1.4, +3.8"),
            Claim("pifa, transformer", "pifa, linear", "P@1", "+2.7, +4.8"),
            Claim("pifa, linear", "random, linear", "P@1", "+1.9, +19.1"),
            Claim("pifa, transformer", "sentence, transformer", "P@1", "+0.0, +0.3", equal=True),
            Claim("pifa, transformer", "pifa, transformer, similarity for a ranker", "P@1", "+37.2, +17.5"),
            Claim("pifa, transformer, 2 seeds", "pifa, transformer", "P@1", "+0.8, +1.4"),
            Claim("pifa and sentence, transformer", "pifa, transformer, 2 seeds", "P@1", "+0.3, +0.8"),
            Claim(
                "pifa and sentence, transformer, 3 seeds",
                "pifa and sentence, transformer",
                "P@1",
                "+0.6, +1.6 (6 members)",
            ),
        ),
        "As in the paper: clusters by PIFA are better than random ones, a trained ranker is far better than "
        "similarity, and two members are better than one; what a second kind of label vectors and four more members "
        "add is within the noise of seeds. Not as there: the linear matcher is above both networks; and the vector of "
        "the network beside TF-IDF (X-Transformer's idea) makes the ranker worse. The first of these is not on even "
        "ground: the linear matcher reads the whole text, and its title again as pairs of words and as letters, the "
        "networks its beginning (the next table has rows that read the same). With 256 tokens and negatives of the "
        "matcher the transformer has 93.9 / 84.8 ([xbert](methods/xbert.md)), what the linear matcher has with these "
        "negatives. On texts this long, with "
        "this small encoder, the network's gain over TF-IDF is not there.",
    ),
    "xbert-even": Group(
        "X-BERT, Table 3 on even ground: all rows read the same words",
        "As above, but rankers and linear matchers read TF-IDF of single words of the text and no titles: of whole "
        "texts (*words*), or of the first 50 words, which is what 64 tokens of e5-small hold on average here (*50 "
        "words*). In rows of 50 words nothing reads more than that: not the ranker, not the BiLSTM, nor the linear "
        "matcher.",
        {
            "pifa, transformer, words": xbert(**words_of()),
            "pifa, transformer of 256 tokens, words": xbert(
                recalls=[{**READER, "tokens": {"max_tokens": 256}}], **words_of()
            ),
            "pifa, BiLSTM, words": xbert(**bilstm(), **words_of()),
            "pifa, linear, words": xbert(**LINEAR, **words_of()),
            "sentence, linear, words": xbert(["sentence"], **LINEAR, **words_of()),
            "random, linear, words": xbert(["random"], **LINEAR, **words_of()),
            "pifa, transformer, 50 words": xbert(**words_of(50)),
            "pifa, BiLSTM, 50 words": xbert(**bilstm(50), **words_of(50)),
            "pifa, linear, 50 words": xbert(**LINEAR, **words_of(50)),
            "sentence, linear, 50 words": xbert(["sentence"], **LINEAR, **words_of(50)),
            "random, linear, 50 words": xbert(["random"], **LINEAR, **words_of(50)),
        },
        (
            Claim("pifa, transformer of 256 tokens, words", "pifa, linear, words", "P@1", "+2.7, +4.8"),
            *(
                Claim(f"{better}, {words}", f"{worse}, {words}", "P@1", gain)
                for words in ("words", "50 words")
                for better, worse, gain in (
                    ("pifa, transformer", "pifa, linear", "+2.7, +4.8"),
                    ("pifa, BiLSTM", "pifa, linear", "+1.4, +3.8"),
                    ("pifa, linear", "random, linear", "+1.9, +19.1"),
                    ("pifa, linear", "sentence, linear", "+1.0, +5.1"),
                )
            ),
        ),
        "Run so far: the linear rows, on a CPU. Those with networks wait for a GPU, so X-BERT's main claim, that a "
        "network recalls better than a linear matcher, is open here. What holds: how much is read decides more than "
        "the 0.8 points between matchers above. With a linear matcher, titles read again are worth 1.7 points (93.1 "
        "above, 91.4 here), and all words instead of the first 50 another 0.7. The networks above do without titles "
        "in the matcher, not in the ranker, so neither table says yet who is better. Clusters by PIFA are better than "
        "random ones, as in the paper, by 1.1 points here and 0.4 above; label names by a sentence encoder come close.",
    ),
    "aplc": Group(
        "APLC-XLNet, Figures 4 and 5, rates, and the place of the head",
        "The same transformer for all rows, not XLNet. The one rate is 5e-5, that of the paper's encoder; no other "
        "was tried.",
        {
            "2 clusters": aplc([0.5, 0.5]),
            "3 clusters": aplc([0.34, 0.33, 0.33]),
            "4 clusters": aplc([0.25] * 4),
            "6 clusters": aplc([0.17, 0.17, 0.17, 0.17, 0.16, 0.16]),
            "3 clusters, 0.7 0.2 0.1": aplc([0.7, 0.2, 0.1]),
            "3 clusters, 0.1 0.2 0.7": aplc([0.1, 0.2, 0.7]),
            "2 clusters, one rate": aplc([0.5, 0.5], ONE_RATE),
            "2 clusters, all in leaves": aplc([0.5, 0.5], head_in_root=False),
        },
        (
            Claim("2 clusters", "6 clusters", "P@1", "+2.0 (EURLex)"),
            Claim("3 clusters, 0.7 0.2 0.1", "3 clusters", "P@1", "above 0"),
            Claim("3 clusters", "3 clusters, 0.1 0.2 0.7", "P@1", "above 0; about +3 from first to last"),
            Claim("2 clusters", "2 clusters, one rate", "P@1", "one rate is found infeasible"),
            Claim("2 clusters", "2 clusters, all in leaves", "P@1", "above 0"),
        ),
        "Every finding of the paper shows here too: fewer clusters, more labels in the head, rates of their own, and "
        "frequent labels in the root.",
    ),
    "lightxml-negatives": Group(
        "LightXML, Table 5: dynamic and static negatives",
        "Labels in clusters of up to 16, thirty of which are ranked; static rows train two networks in turn, 3 epochs "
        "each: as many steps as 6 epochs of the dynamic one. Measured before the labels of a shortlist started from "
        "their frequencies, as clusters did; to be run again.",
        {
            "dynamic": lightxml("dynamic"),
            "static, a second encoder": lightxml("static"),
            "static, one frozen encoder": lightxml("frozen"),
            "dynamic, 6 epochs": lightxml("dynamic", 6.0),
        },
        (
            Claim("dynamic", "static, a second encoder", "P@1", "+0.9 (Wiki-500K), +0.9 (Amazon-670K)"),
            Claim("static, a second encoder", "static, one frozen encoder", "P@1", "+2.0, +2.9"),
            Claim(
                "dynamic, 6 epochs", "static, a second encoder", "P@1", "the same, with as many steps as both networks"
            ),
            Claim("dynamic, 6 epochs", "static, a second encoder", "P@5", "+1.1, +0.5"),
        ),
        "Three epochs of both parts at once are not enough to be better than three of one and then three of the "
        "other. With as many steps as those two trainings have together, dynamic negatives are as good in P@1 and "
        "better further down the list, in the same time and with one network. With three epochs it also depends on "
        "the seed: one of three is two points below the others.",
    ),
    "lightxml-layers": Group(
        "LightXML, Figure 2: the last five layers against one",
        "Every label is scored.",
        {"five layers": layers(5), "one layer": layers(1)},
        (Claim("five layers", "one layer", "P@5", "above +1; half the epochs to the same loss"),),
        "The gain is the paper's. The loss falls faster too, but not twice as fast: see below.",
        curves=True,
    ),
    "treaderxml": Group(
        "TReaderXML, Table 3: teacher, order of the two attentions, residual",
        "Word vectors of 100 numbers made of the texts, the first 64 words, up to 3 epochs with early stopping on "
        "texts held out of train; five neighbours (our number, the paper gives none) by TF-IDF, no text among its own, "
        "whose labels are read as in the paper (no votes, no mean of the words; LayerNorm, learned places and pooling "
        "are ours). Neighbours are compared by whole texts with their titles, so part of the teacher's gain is more "
        "text.",
        {
            "neither": treader(False, []),
            "text alone, masked and full": treader(False, ["masked", "full"]),
            "teacher only": treader(True, []),
            "teacher, masked": treader(True, ["masked"]),
            "teacher, full": treader(True, ["full"]),
            "teacher, full and masked": treader(True, ["full", "masked"]),
            "teacher, masked and full, no residual": treader(True, ["masked", "full"], residual=False),
            "teacher, masked and full": treader(True, ["masked", "full"]),
        },
        (
            Claim("teacher only", "neither", "P@1", "+5.2 (AmazonCat)"),
            Claim("teacher, masked", "teacher only", "P@1", "+1.6"),
            Claim("teacher, full", "teacher, masked", "P@1", "+0.0", equal=True),
            Claim("teacher, full and masked", "teacher, masked", "P@1", "+1.0"),
            Claim("teacher, masked and full", "teacher, full and masked", "P@1", "+0.2"),
            Claim("teacher, masked and full", "teacher, masked and full, no residual", "P@1", "+0.4"),
            Claim("teacher, masked and full", "text alone, masked and full", "P@5", ""),
        ),
        "The teacher helps, with attention and without, as in the paper; so does the residual, and to look back first "
        "and everywhere then is better than the other way round. Not as there: attention itself gains nothing. One "
        "layer changes little, and two make it worse, perhaps because the last has no residual around it and all "
        "words reach the labels through its tanh alone. By default longtail puts the words' own mean beside it "
        "(`encoder.raw`, [treaderxml](methods/treaderxml.md)).",
    ),
}


def key_of(row: str, seed: int, method: str, options: dict[str, Any]) -> str:
    """What a run is known by."""
    return hashlib.sha256(json.dumps([row, seed, method, options], sort_keys=True).encode()).hexdigest()[:16]
