"""What must hold for every encoder, head, kind of label vectors and format, those of plug-ins among them.

A new part joins by a line in one of the tables. What is special to a part stands in its own file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

import longtail
from longtail.data import load_dataset
from longtail.data.dataset import Split, as_table
from longtail.data.formats import FORMATS, find_format
from longtail.data.vocabulary import Vocabulary
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.vectors import LABEL_VECTORS, LabelInputs, Sources, VectorOptions, label_vectors
from longtail.nn.batch import Targets
from longtail.nn.encoders.base import ENCODERS as ENCODER_REGISTRY
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import HEADS as HEAD_REGISTRY
from longtail.nn.heads.base import Head, HeadInputs, LabelSpace, Step, positions
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.options import TrainingOptions
from longtail.options import help_of
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

from .nn.reading import batch, gradients_of

pytestmark = pytest.mark.usefixtures("plugin")  # whose parts are among them

FOLDER, NAME = "test-part", "part"

# encoders

SMALL = {"vectors": {"width": 6}, "tokens": {"max_tokens": 12}}
LSTM = {**SMALL, "hidden": 4}
HEADS_OF_LSTM = {**LSTM, "n_heads": 3, "attention_width": 5}
FILTERS = {**SMALL, "n_filters": 4, "slots": 3, "bottleneck": 7}
READER = {**SMALL, "n_heads": 2, "scope_words": 0, "bottleneck": 7}
AS_TRIED_BY_XBERT = {"heights": [1, 3, 5], "stride": 2, "slots": 4, "dropout_words": 0.25, "dropout": 0.5}
PAPERS_READER = {"mask": "anticausal", "positions": "none", "pooling": "flatten"}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "transformer": ("transformer", {"tokens": {"max_tokens": 20}}),
    "transformer, mean of two layers": ("transformer", {"n_layers": 2, "pooling": "mean"}),
    "bag": ("bag", SMALL),
    "bag with pairs": ("bag", {**SMALL, "n_buckets": 50}),
    "bag with trained vectors": ("bag", {**SMALL, "vectors": {"width": 5, "source": "train"}}),
    "bilstm": ("bilstm", HEADS_OF_LSTM),
    "bilstm in layers": ("bilstm", {**HEADS_OF_LSTM, "n_layers": 2, "dense": 6, "dropout": 0.2, "dropout_words": 0.2}),
    "bilstm-states": ("bilstm-states", LSTM),
    "cnn": ("cnn", FILTERS),
    "cnn with strides": ("cnn", {**FILTERS, **AS_TRIED_BY_XBERT}),
    "cnn without bottleneck": ("cnn", {**FILTERS, "bottleneck": None, "heights": [3], "stride": 3}),
    "reader": ("reader", READER),
    "reader as in the paper": ("reader", {**READER, **PAPERS_READER}),
    "reader without layers": ("reader", {**READER, "layers": [], "positions": "waves"}),
    "reader in another order": ("reader", {**READER, "layers": ["full", "masked"], "residual": False}),
    "peak": ("peak", {**SMALL, "vectors": {"width": 24}}),
}
"""By name: a kind, and options that make it small."""
every_encoder = pytest.mark.parametrize("name", ENCODERS)
TEXTS = pa.table(
    {
        "text": [
            "red apple on a grey stone",
            "a red apple and word1a word2b",
            "stone",
            "word3a stone on a noise1 and red apple on red stone and on noise1 a noise2",
            "",
            "noise3 noise4 word5a, a stone word7c word8a",
            "stone noise1",
        ]
    }
)
Make = Callable[..., Encoder]


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an encoder of the table, ready for use: `make("bag", seed=3)`."""

    def encoder(name: str, seed: int = 0) -> Encoder:
        kind, options = ENCODERS[name]
        if kind == "transformer":
            options = {**options, "model": str(request.getfixturevalue("tiny_encoder"))}
        part = ENCODER_REGISTRY.get(kind)
        return part.create(part.options_class.of({"kind": kind, **options}), TextReadings(TEXTS), seed).eval()

    return encoder


def read(encoder: Encoder, ids: Tensor, mask: Tensor | None) -> list[Tensor]:
    """What an encoder makes of each text: its vector, or the states of its real tokens."""
    found = encoder(ids, mask)
    if not encoder.returns_states:
        return list(found)
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
    return [states[own] for states, own in zip(found, real, strict=True)]


def close(first: Any, second: Any) -> None:
    torch.testing.assert_close(first, second, rtol=1e-5, atol=2e-6)


def test_every_registered_part_is_in_a_table() -> None:
    assert {kind for kind, _ in ENCODERS.values()} == set(ENCODER_REGISTRY.names())
    assert {kind for kind, _ in HEADS.values()} == set(HEAD_REGISTRY.names())
    assert set(LABEL_VECTORS.names()) == set(VECTORS)
    assert set(FORMATS.names()) == set(SAMPLES)


def test_no_file_of_the_library_names_the_plug_in() -> None:
    names = ("longtail_plugin", "longtail-plugin", "peak-network", "low-rank", "PeakOptions", "LowRank")
    files = [file for file in Path(longtail.__file__).parent.rglob("*") if file.suffix in {".py", ".pyi", ".toml"}]
    assert len(files) > 200
    assert not [file for file in files if any(name in file.read_text(encoding="utf-8") for name in names)]


@every_encoder
def test_the_vector_is_as_wide_as_the_encoder_says_and_tells_texts_apart(name: str, make: Make) -> None:
    encoder = make(name)
    ids, mask = batch(encoder, TEXTS)
    vectors = encoder(ids, mask)
    tokens = ids.shape[1:] if encoder.returns_states else ()
    assert vectors.shape == (len(TEXTS), *tokens, encoder.width)
    assert vectors.dtype == torch.float32
    assert torch.isfinite(vectors).all()
    flat = vectors.flatten(1)
    assert (torch.cdist(flat, flat) + torch.eye(len(TEXTS))).min() > 1e-4


@every_encoder
@pytest.mark.parametrize("more", [1, 2, 7])
def test_padding_changes_nothing(name: str, more: int, make: Make) -> None:
    encoder = make(name)
    close(read(encoder, *batch(encoder, TEXTS, more=more)), read(encoder, *batch(encoder, TEXTS)))


@every_encoder
def test_what_stands_in_the_padding_changes_nothing(name: str, make: Make) -> None:
    encoder = make(name)
    ids, mask = batch(encoder, TEXTS, more=3)
    close(read(encoder, ids.where(mask, ids.max()), mask), read(encoder, ids, mask))


@every_encoder
def test_a_text_alone_gives_what_it_gives_among_others(name: str, make: Make) -> None:
    encoder = make(name)
    together = read(encoder, *batch(encoder, TEXTS))
    for row in range(len(TEXTS)):
        ids, mask = batch(encoder, TEXTS, [row])
        close(read(encoder, ids, mask)[0], together[row])
        close(read(encoder, ids, None)[0], together[row])


@every_encoder
def test_no_mask_means_that_all_tokens_are_real(name: str, make: Make) -> None:
    encoder = make(name)
    ids, _ = batch(encoder, TEXTS, [0, 5, 1])
    close(encoder(ids, None), encoder(ids, torch.ones_like(ids, dtype=torch.bool)))


@every_encoder
def test_a_row_without_tokens_gives_numbers_and_leaves_the_others_alone(name: str, make: Make) -> None:
    encoder = make(name).train()
    ids, mask = batch(encoder, TEXTS)
    mask[2] = False
    vectors = encoder(ids, mask)
    vectors.square().sum().backward()
    assert torch.isfinite(vectors).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients_of(encoder).values() if gradient is not None)
    encoder.eval()
    close(read(encoder, ids, mask)[3:], read(encoder, *batch(encoder, TEXTS))[3:])


@every_encoder
def test_the_same_seed_gives_the_same_weights_and_leaves_chance_to_others(name: str, make: Make) -> None:
    make(name)  # what it needs is there
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = make(name, seed=5).state_dict()
    assert torch.equal(torch.rand(3), expected)
    second, third = make(name, seed=5).state_dict(), make(name, seed=6).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    pretrained = ENCODERS[name][0] == "transformer"
    assert pretrained or any(not torch.equal(first[key], third[key]) for key in first)


@every_encoder
def test_a_saved_encoder_gives_the_same_vectors(name: str, make: Make, tmp_path: Path) -> None:
    encoder = make(name)
    with write_folder(tmp_path / "model", FOLDER) as writer:
        encoder.tokeniser.save(writer, f"{NAME}-tokeniser")
        writer.arrays(NAME, to_arrays(encoder.state_dict()))
        writer.manifest.update(options=encoder.options.plain(), facts=encoder.facts())  # type: ignore[operator, union-attr]
    folder = Folder(tmp_path / "model", FOLDER)
    cls = type(encoder)
    again = cls.restore(cls.options_class.of(folder.manifest["options"]), folder.manifest["facts"], folder, NAME)
    again.load_state_dict(to_tensors(folder.arrays(NAME)))
    again.eval()
    assert again.width == encoder.width
    assert again.facts() == encoder.facts()
    assert torch.equal(again(*batch(again, TEXTS)), encoder(*batch(encoder, TEXTS)))


@every_encoder
def test_gradients_reach_every_parameter(name: str, make: Make) -> None:
    encoder = make(name)
    vectors = encoder(*batch(encoder, TEXTS, more=2))
    (vectors * torch.linspace(-1, 2, vectors.shape[-1])).square().sum().backward()
    for parameter, gradient in gradients_of(encoder).items():
        assert gradient is not None, parameter
        assert torch.isfinite(gradient).all(), parameter
        assert gradient.abs().sum() > 0, parameter


@every_encoder
def test_half_precision_stays_near_full_precision(name: str, make: Make) -> None:
    encoder = make(name)
    ids, mask = batch(encoder, TEXTS, more=2)
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder(ids, mask).float()
    torch.testing.assert_close(vectors, encoder(ids, mask), rtol=0.1, atol=0.05)


@every_encoder
def test_an_outline_has_the_shape_of_the_encoder_and_no_weights(name: str, make: Make) -> None:
    encoder = make(name)
    outline = type(encoder).outline(encoder.options, TEXTS, len(TEXTS))
    assert outline.width == encoder.width
    assert all(parameter.is_meta for parameter in outline.parameters())
    shapes = {key: value.shape for key, value in encoder.named_parameters()}
    assert {key: value.shape for key, value in outline.named_parameters()} == shapes


# heads

WIDTH, N_LABELS, N_TEXTS, N_TOKENS, N_CLUSTERS = 6, 12, 5, 4, 4
LISTS = [[0, 3], [1], [], [7, 2, 11], [0, 5]]
INDEX = LabelIndex((np.zeros(N_CLUSTERS, np.int32), (np.arange(N_LABELS) % N_CLUSTERS).astype(np.int32)))
COUNTS = np.arange(2 * N_LABELS, 0, -2)
HEADS: dict[str, tuple[str, dict[str, Any]]] = {
    "dense": ("dense", {}),
    "dense in chunks": ("dense", {"chunk": 5, "optimizer": "sgd"}),
    "dense with a softmax": ("dense", {"loss": "softmax"}),
    "dense with a hinge": ("dense", {"loss": "squared_hinge"}),
    "dense-candidates": ("dense-candidates", {}),
    "dense-candidates with a hinge": ("dense-candidates", {"loss": "squared_hinge"}),
    "adaptive": ("adaptive", {"bottleneck": 8}),
    "adaptive as in the paper": (
        "adaptive",
        {"bottleneck": 8, "tails": "linear", "gates": "touched", "normaliser": "per_text", "prior": False},
    ),
    "shortlist": ("shortlist", {"n_clusters_ranked": N_CLUSTERS, "bottleneck_width": 4}),
    "shortlist, gathered": (
        "shortlist",
        {"n_clusters_ranked": N_CLUSTERS, "bottleneck_width": 4, "compute": "gather", "loss": "sum"},
    ),
    "tree": ("tree", {}),
    "labelwise": ("labelwise", {"widths": [4]}),
    "labelwise with own outputs": ("labelwise", {"widths": [5, 3], "own_output": True}),
    "labelwise-candidates": ("labelwise-candidates", {"widths": [4]}),
    "softmax-sigmoid": ("softmax-sigmoid", {}),
    "low-rank": ("low-rank", {"rank": 4}),
}
"""By name: a kind, and options. Heads that recall clusters look into all of them, so that no choice ever changes."""
every_head = pytest.mark.parametrize("name", HEADS)
SCORE_IS_PROBABILITY = (
    "dense",
    "dense in chunks",
    "dense-candidates",
    "labelwise",
    "labelwise with own outputs",
    "low-rank",
)
"""Heads whose loss is the binary cross-entropy of the scores that they give."""


def a_head(name: str, seed: int = 0, shaken: bool = True) -> Head:
    """A head of the table; `shaken` moves its weights away from where they begin, so that no scores are equal."""
    kind, options = HEADS[name]
    part = HEAD_REGISTRY.get(kind)
    torch.manual_seed(seed)
    head = part.create(WIDTH, LabelSpace(N_LABELS, COUNTS, INDEX), part.options_class.of(options)).eval()
    for parameter in head.parameters() if shaken else ():
        parameter.data += torch.randn_like(parameter) / 2
    if part.reads_clusters:
        head.fix_candidates(np.tile(np.arange(N_CLUSTERS), (N_TEXTS, 1)))
    return head


def inputs_for(head: Head, vectors: Tensor | None = None, rows: slice = slice(None)) -> HeadInputs:
    """Inputs of the texts `rows` as a head reads them; `vectors` instead of those that all tests share."""
    generator = torch.Generator().manual_seed(3)
    shape = (N_TEXTS, N_TOKENS, WIDTH) if head.reads_states else (N_TEXTS, WIDTH)
    drawn = torch.randn(shape, generator=generator)
    mask = torch.arange(N_TOKENS) < torch.tensor([[4], [2], [3], [1], [4]])
    clusters = torch.arange(N_CLUSTERS).expand(N_TEXTS, -1)
    log_scores = -torch.rand(N_TEXTS, N_CLUSTERS, generator=generator)
    return HeadInputs(
        (drawn if vectors is None else vectors)[rows],
        mask=mask[rows] if head.reads_states else None,
        clusters=clusters[rows] if head.reads_clusters else None,
        log_scores=log_scores[rows] if head.reads_clusters else None,
    )


def places_for(head: Head, lists: list[list[int]] = LISTS) -> LabelMatrix:
    labels = LabelMatrix.from_lists(lists, N_LABELS)
    return labels if head.order is None else labels.renumber(positions(head.order, N_LABELS), len(head.order))


def targets_for(head: Head) -> Targets:
    return Targets.of(places_for(head), np.arange(N_TEXTS))


def labels_at(head: Head, places: Tensor) -> Any:
    found = places.numpy()
    return found if head.order is None else np.where(found >= 0, head.order[found], -1)


@every_head
@pytest.mark.parametrize("k", [1, 3, N_LABELS])
def test_the_best_labels_come_first_and_none_twice(name: str, k: int) -> None:
    head = a_head(name)
    scores, places = head.top_k(inputs_for(head), k)
    labels = labels_at(head, places)
    assert scores.shape == places.shape == (N_TEXTS, k)
    assert (scores.dtype, places.dtype) == (torch.float32, torch.int64)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (scores[:, :-1] >= scores[:, 1:]).all()
    assert ((labels >= 0) & (labels < N_LABELS)).all()
    assert all(len(set(row)) == k for row in labels.tolist())
    whole = head.top_k(inputs_for(head), N_LABELS)
    close(scores, whole[0][:, :k])
    assert torch.equal(places, whole[1][:, :k])


@every_head
def test_a_text_gets_the_same_labels_alone_and_in_a_batch(name: str) -> None:
    head = a_head(name)
    scores, places = head.top_k(inputs_for(head), 4)
    for row in range(N_TEXTS):
        alone = head.top_k(inputs_for(head, rows=slice(row, row + 1)), 4)
        close(alone[0][0], scores[row])
        assert torch.equal(alone[1][0], places[row])


@every_head
def test_the_gradient_of_the_vectors_is_that_of_the_loss(name: str) -> None:
    """Along random directions, beside the loss a little to both sides."""
    head = a_head(name)
    targets = targets_for(head)
    vectors = inputs_for(head).vectors.clone().requires_grad_()
    loss = head.loss(inputs_for(head, vectors), targets, show=True)
    assert loss.shape == ()
    loss.backward()
    head.forget()
    gradient, step = vectors.grad, 2e-3
    assert gradient is not None
    for seed in range(4):
        direction = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            above, below = (
                head.loss(inputs_for(head, vectors + sign * step * direction), targets, show=True) for sign in (1, -1)
            )
        expected = (above - below).item() / (2 * step)
        assert (gradient * direction).sum().item() == pytest.approx(expected, rel=0.02, abs=0.02)


@pytest.mark.parametrize("name", SCORE_IS_PROBABILITY)
def test_the_loss_is_the_cross_entropy_of_the_scores(name: str) -> None:
    head = a_head(name)
    scores, places = head.top_k(inputs_for(head), N_LABELS)
    dense = torch.zeros(N_TEXTS, N_LABELS).scatter_(1, places, scores)
    truth = targets_for(head).dense(N_LABELS)
    expected = torch.nn.functional.binary_cross_entropy(dense, truth, reduction="sum") / N_TEXTS
    torch.testing.assert_close(head.loss(inputs_for(head), targets_for(head), show=True).detach(), expected)


@every_head
def test_micro_batches_add_up_to_the_whole(name: str) -> None:
    head = a_head(name)
    targets = targets_for(head)
    leaves = [inputs_for(head).vectors.clone().requires_grad_() for _ in range(2)]
    whole = head.loss(inputs_for(head, leaves[0]), targets, show=True)
    whole.backward()
    total = torch.zeros(())
    for start, stop in ((0, 2), (2, N_TEXTS)):
        inputs = inputs_for(head, leaves[1], slice(start, stop))
        cut = head.loss(inputs, targets.part(start, stop), (stop - start) / N_TEXTS, show=True)
        cut.backward()
        total += cut.detach()
    close(total, whole.detach())
    close(leaves[1].grad, leaves[0].grad)


def one_step(head: Head, optimizer: torch.optim.Optimizer | None) -> float:
    loss = head.loss(inputs_for(head), targets_for(head), show=True)
    if loss.requires_grad:
        loss.backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
    head.step(Step({"head": 0.05}))
    return loss.item()


@every_head
def test_training_makes_the_loss_smaller(name: str) -> None:
    head = a_head(name, shaken=False)
    parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, 0.02, weight_decay=0.0) if parameters else None
    losses = [one_step(head, optimizer) for _ in range(25)]
    assert losses[-1] < 0.9 * losses[0] or name == "softmax-sigmoid"  # whose loss hardly moves, by its nature
    assert losses[-1] < losses[0]
    assert all(torch.isfinite(parameter).all() for parameter in head.parameters())


@every_head
def test_forgotten_losses_change_no_weight(name: str) -> None:
    head = a_head(name)
    before = {key: value.clone() for key, value in head.state_dict().items()}
    head.loss(inputs_for(head), targets_for(head))
    head.forget()
    head.step(Step({"head": 0.5}))
    assert all(torch.equal(value, before[key]) for key, value in head.state_dict().items())


@every_head
def test_a_saved_head_gives_the_same_labels(name: str, tmp_path: Path) -> None:
    head, again = a_head(name), a_head(name, seed=1)
    head.init_from_labels(places_for(head))
    expected = head.top_k(inputs_for(head), 5)
    with write_folder(tmp_path / "model", FOLDER) as writer:
        writer.arrays(NAME, to_arrays(head.state_dict()))
    again.load_state_dict(to_tensors(Folder(tmp_path / "model", FOLDER).arrays(NAME)))
    for mine, theirs in zip(again.top_k(inputs_for(again), 5), expected, strict=True):
        assert torch.equal(mine, theirs)


@every_head
def test_starting_from_the_labels_never_starts_worse(name: str) -> None:
    """Measured on texts that say nothing: what is left is how frequent labels are."""
    head = a_head(name, shaken=False)
    silent = inputs_for(head).vectors * 1e-3
    losses = []
    with torch.no_grad():
        losses.append(head.loss(inputs_for(head, silent), targets_for(head), show=True).item())
        head.init_from_labels(places_for(head))
        losses.append(head.loss(inputs_for(head, silent), targets_for(head), show=True).item())
    assert losses[1] <= losses[0] + 1e-6


@every_head
def test_a_head_says_what_it_is_and_how_it_learns(name: str) -> None:
    head = a_head(name)
    assert json.loads(json.dumps(head.facts())) == head.facts()
    assert {head.group_of(parameter) for parameter, _ in head.named_parameters()} <= set(TrainingOptions().rates)
    assert head.held_bytes(8, 16) > 0
    assert head.n_labels == N_LABELS
    assert all(getattr(head, key) is table for key, table in head.tables().items())
    assert set(head.bulk) <= {key for key, _ in head.named_parameters()}


@every_head
def test_options_of_heads_have_help(name: str) -> None:
    options = HEAD_REGISTRY.get(HEADS[name][0]).options_class
    assert set(help_of(options)) == set(options.model_fields)


# label vectors

ONE = Run(LocalEngine(1))
VECTORS = ("pifa", "embedding", "file", "text", "sentence", "random")
NAMES = ["rail transport", "rail traffic", "poetry", "lyric poetry", "ab", "!!!"]
VOCABULARY = Vocabulary.of([f"id{i}" for i in range(6)], {f"id{i}": name for i, name in enumerate(NAMES)})
SOURCES = Sources(
    encode_names=lambda names: np.array([[name.count(letter) for letter in "abcdefgr"] for name in names], np.float32),
    encode_texts=lambda texts: np.random.default_rng(0).standard_normal((len(texts), 5)).astype(np.float32),
)


@pytest.fixture(autouse=True)
def vectors_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of five of the six labels, where `vectors_of` looks for them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vectors.txt").write_text("".join(f"id{label}\t{label} 1 -{label} 2\n" for label in range(5)))


def vectors_of(kind: str, seed: int = 0, n_texts: int = 20) -> Any:
    """Of six labels, the last two of which have no texts."""
    rows = Rows.of(sp.random(n_texts, 15, 0.4, "csr", np.float32, random_state=0))
    labels = LabelMatrix.from_lists([[i % 4, (i + 1) % 4] for i in range(n_texts)], 6)
    split = Split(as_table([""] * n_texts), labels, VOCABULARY)
    file = "vectors.txt" if kind == "file" else None
    return label_vectors(
        LabelInputs(rows, split, seed, ONE, SOURCES), VectorOptions(kinds=(kind,), n_components=4, file=file)
    )


@pytest.mark.parametrize("kind", VECTORS)
def test_every_label_has_a_vector_of_length_one_with_or_without_texts(kind: str) -> None:
    vectors = vectors_of(kind)
    assert vectors.dtype == np.float32
    assert vectors.shape[0] == len(VOCABULARY)
    np.testing.assert_allclose(np.linalg.norm(vectors.toarray(), axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", VECTORS)
def test_label_vectors_depend_on_the_seed_alone(kind: str) -> None:
    np.testing.assert_array_equal(vectors_of(kind, 7).toarray(), vectors_of(kind, 7).toarray())


@pytest.mark.parametrize("kind", VECTORS)
def test_labels_without_texts_do_not_share_a_vector(kind: str) -> None:
    dense = vectors_of(kind).toarray()
    assert np.abs(dense[4] - dense[5]).max() > 1e-3


# formats


def _matrices(folder: Path) -> None:
    sp.save_npz(folder / "Y.trn.npz", sp.csr_matrix(np.array([[1, 1], [0, 1]], np.float32)))
    (folder / "X.trn.txt").write_text("red apple\ngrey stone\n")


def _table(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def _reviews(folder: Path) -> Path:
    pytest.importorskip("sqlalchemy", reason="pip install 'longtail[review]'")
    from longtail.review.adding import Record, add_texts, make_queue
    from longtail.review.desk import Decision, decide
    from longtail.review.store import ReviewStore

    with ReviewStore.open(folder / "reviews.db") as store:
        add_texts(store, make_queue(store, "news"), [Record({"text": "red apple"}), Record({"text": "grey stone"})])
        for number, labels in enumerate((("0", "1"), ("1",)), 1):
            decide(store, Decision(f"decision {number}", number, "ada", labels))
    return folder / "reviews.db"


SAMPLES: dict[str, Callable[[Path], Path | None]] = {
    "folder": _table(
        "train.jsonl", '{"text": "red apple", "labels": ["0", "1"]}\n{"text": "grey stone", "labels": ["1"]}\n'
    ),
    "table": _table("train.csv", "text,labels\nred apple,0 1\ngrey stone,1\n"),
    "pecos": _matrices,
    "rawtext": lambda folder: (
        (folder / "train_texts.txt").write_text("red apple\ngrey stone\n")
        and (folder / "train_labels.txt").write_text("0 1\n1\n")
        and None
    ),
    "xmc": _table("train.txt", "2 3 2\n0,1 0:1.0 2:0.5\n1 1:2.0\n"),
    "svmlight": _table("train.txt", "0,1 0:1.0 2:0.5\n1 1:2.0\n"),
    "fasttext": _table("train.txt", "__label__0 __label__1 red apple\n__label__1 grey stone\n"),
    "xbert": _table("train.txt", "0,1\tred apple\n1\tgrey stone\n"),
    "reviews": _reviews,
}
"""By format: writes two texts, the first with labels 0 and 1, the second with 1; returns the file if it is no folder.

Two formats hold features only.
"""
OPTIONS: dict[str, dict[str, Any]] = {"table": {"label_separator": " "}}
FEATURES_ONLY = ("xmc", "svmlight")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recognised_and_reads_its_sample(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path) or tmp_path
    assert find_format(path) == name
    for named in (None, name):
        data = load_dataset(path, format=named, **OPTIONS.get(name, {}))
        assert data.facts["format"] == name
        ids = data.vocabulary.ids
        assert [[ids[label] for label in data.train.labels[row]] for row in range(2)] == [["0", "1"], ["1"]]
        if name in FEATURES_ONLY:
            assert data.train.features is not None
            assert data.train.features.toarray().tolist() == [[1, 0, 0.5], [0, 2, 0]]
        else:
            assert data.train.texts["text"].to_pylist() == ["red apple", "grey stone"]


@pytest.mark.parametrize("name", SAMPLES)
def test_options_of_formats_have_help(name: str) -> None:
    options = FORMATS.get(name).options
    assert FORMATS.get(name).about
    assert set(help_of(options)) == set(options.model_fields)
