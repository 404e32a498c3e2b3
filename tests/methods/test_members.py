"""Methods of several members: texts are read once for all of them, and their lists are combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError
from longtail.methods import create_method, load_model
from longtail.methods.members import EnsembleMethod, MemberOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.progress import Advance
from longtail.run.run import Run
from longtail.text.pieces import Pieces
from longtail.text.readings import TextReadings
from longtail.text.words import WordTokeniser
from longtail.types import TopK

N_TEXTS = 80
Quick = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=N_TEXTS, n_labels=12)


class Steps:
    """Progress that counts the steps of each name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        self.counts[name] += 1
        yield lambda amount, note="": None


@dataclass
class Reads:
    """Texts that went through tokenisers, and rows that went through encoders."""

    tokenised: int = 0
    encoded: int = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    torch = pytest.importorskip("torch")
    from longtail.nn.encoders.base import Encoder

    counts = Reads()

    def counting(encode: Any) -> Any:
        def counted(self: Any, texts: Sequence[str]) -> Any:
            counts.tokenised += len(texts)
            return encode(self, texts)

        return counted

    def count_rows(module: Any, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, Encoder):
            counts.encoded += len(inputs[0])

    for tokeniser in (Pieces, WordTokeniser):
        monkeypatch.setattr(tokeniser, "encode", counting(tokeniser.encode))
    hook = torch.nn.modules.module.register_module_forward_pre_hook(count_rows)
    yield counts
    hook.remove()


@pytest.mark.parametrize("ranking", ["trained", "similarity"])
def test_xbert_tokenises_and_encodes_each_text_once(ranking: str, quick: Quick, data: Dataset, reads: Reads) -> None:
    """An epoch encodes 80 rows, and reading the texts for the ranker 80 more."""
    model = create_method("xbert", quick("xbert", epochs=1), {"ranking": ranking}).fit(data.train)
    assert reads == Reads(tokenised=N_TEXTS, encoded=(2 if ranking == "trained" else 1) * N_TEXTS)
    reads.tokenised = reads.encoded = 0
    model.top_k(data.test, 5)
    assert reads == Reads(tokenised=N_TEXTS, encoded=N_TEXTS)


@pytest.mark.parametrize("name", ["lightxml", "lightxml:shortlist", "xbert", "attentionxml", "attentionxml:tree"])
def test_three_seeds_tokenise_each_text_once(
    name: str, quick: Quick, data: Dataset, reads: Reads, tmp_path: Path
) -> None:
    model = create_method(name.partition(":")[0], quick(name, epochs=1), {"n_seeds": 3}).fit(data.train)
    assert reads.tokenised == N_TEXTS
    model.save(tmp_path / "m")
    for used in (model, load_model(tmp_path / "m")):
        reads.tokenised = 0
        used.top_k(data.test, 5)
        assert reads.tokenised == N_TEXTS


@pytest.mark.parametrize("negatives", ["static", "frozen"])
def test_trainings_of_one_member_tokenise_each_text_once(
    negatives: str, quick: Quick, data: Dataset, reads: Reads
) -> None:
    create_method("lightxml", quick("lightxml:shortlist", epochs=1), {"negatives": negatives}).fit(data.train)
    assert reads.tokenised == N_TEXTS


def test_word_vectors_are_made_of_the_tokens_that_training_reads(quick: Quick, data: Dataset, reads: Reads) -> None:
    vectors = {"encoder": {"vectors": {"source": "train", "width": 32}}}
    steps = Steps()
    create_method("xml-cnn", quick("xml-cnn", epochs=1), vectors).fit(data.train, progress=steps)
    assert reads.tokenised == N_TEXTS
    assert steps.counts["word vectors"] == steps.counts["words"] == 1


def test_members_learn_their_words_once(quick: Quick, data: Dataset) -> None:
    steps = Steps()
    create_method("attentionxml", quick("attentionxml", epochs=1), {"n_seeds": 3}).fit(data.train, progress=steps)
    assert (steps.counts["words"], steps.counts["train"]) == (1, 3)


@pytest.mark.parametrize("name", ["linear", "xbert:linear", "lightxml:shortlist", "attentionxml:tree"])
def test_tfidf_is_made_once_for_all_members(name: str, quick: Quick, data: Dataset) -> None:
    steps = Steps()
    more = {"n_seeds": 2} | ({"vectors": [{"kinds": ["pifa"]}, {"kinds": ["random"]}]} if "lin" in name else {})
    method, training = name.partition(":")[0], {} if "lin" in name else {"epochs": 1}
    model = create_method(method, quick(name, **training), more).fit(data.train, progress=steps)
    assert steps.counts["features"] == 1
    used = Steps()
    model.top_k(data.test, 5, progress=used)
    assert used.counts["features"] == ("lin" in name)  # networks need TF-IDF only to cluster labels


@dataclass
class Fixed:
    """A member that gives every text the same list, and remembers how long lists were asked for."""

    labels: list[int]
    scores: list[float]
    asked: list[int] = field(default_factory=list)

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        self.asked.append(k)
        labels, scores = np.array([self.labels[:k]], np.int32), np.array([self.scores[:k]], np.float32)
        return TopK(labels.repeat(len(texts), 0), scores.repeat(len(texts), 0))

    def save(self, writer: FolderWriter, name: str) -> None:
        writer.manifest[name] = self.labels

    def describe(self) -> dict[str, Any]:
        return {"labels": self.labels}


class Lists(EnsembleMethod[Fixed]):
    """A method whose members know what they will answer."""

    name = "lists"
    options_class = MemberOptions

    def _plans(self) -> Iterable[int]:
        return self.options.seeds

    def _fit_member(self, plan: int, split: Split, texts: TextReadings, run: Run) -> Fixed:
        return Fixed([plan % 4, (plan + 1) % 4], [0.9, 0.5])

    def _open_member(self, plan: int, folder: Folder, name: str) -> Fixed:
        return Fixed(folder.manifest[name], [0.9, 0.5])


@pytest.mark.parametrize(("n_seeds", "list_length", "asked"), [(1, 100, 3), (2, 100, 100), (2, 2, 4)])
def test_one_member_is_asked_for_k_labels_and_several_for_longer_lists(
    n_seeds: int, list_length: int, asked: int, data: Dataset
) -> None:
    model = Lists(n_seeds=n_seeds, list_length=list_length).fit(data.train)
    model.top_k(["a", "b"], 3)
    assert [member.asked for member in model.members_] == [[asked]] * n_seeds


def test_lists_of_members_are_combined_as_the_options_say(data: Dataset, tmp_path: Path) -> None:
    model = Lists(n_seeds=2, ensemble={"weights": (1.0, 3.0)}).fit(data.train)
    best = model.top_k(["a"], 3)
    assert best.labels[0].tolist() == [1, 2, 0]
    assert best.scores[0].tolist() == pytest.approx([(0.5 + 2.7) / 4, 1.5 / 4, 0.9 / 4])
    assert model.describe() == {"networks": [{"labels": [0, 1]}, {"labels": [1, 2]}]}


def test_members_are_saved_and_opened_by_their_names(data: Dataset, tmp_path: Path) -> None:
    model = Lists(n_seeds=3).fit(data.train)
    model.save(tmp_path / "m")
    opened = Lists.open(Folder(tmp_path / "m", "model"))
    assert [member.labels for member in opened.members_] == [[0, 1], [1, 2], [2, 3]]


def test_weights_must_be_one_per_member(data: Dataset) -> None:
    with pytest.raises(ConfigError, match="one number per member, got 2 for 3"):
        Lists(n_seeds=3, ensemble={"weights": (1.0, 3.0)}).fit(data.train).top_k(["a"], 2)
