"""TF-IDF features: equal to scikit-learn's, the same for any number of threads, saved and loaded bit for bit."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from longtail.errors import ConfigError, DataError, ModelFormatError, NotFittedError
from longtail.kernels.native import tokens
from longtail.persist import Folder, write_folder
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.text.tfidf import Tfidf

few = settings(max_examples=60)
letters = st.one_of(
    st.sampled_from("abcAB  _1٣ßẞÄäİIıiΣσς'\u0307\u0301\x00\n\u3000漢字"), st.characters(exclude_categories=["Cs"])
)
TEXTS = [
    "Die Größe des Hauses: 3 Zimmer, 1. Stock",
    "Suomen HÄMEENLINNAN kaupunki - Åbo, Yö_töitä",
    "ΟΔΥΣΣΕΥΣ και ΟΔΟΣ. ΣΑΣ Σ",
    "İSTANBUL ve Iğdır'da ılık İİ",
    "e\u0301te\u0301 été E\u0301TE\u0301 naïve 2. 3.14 ١٢٣ x² Ⅷ",
    "",
    "a b c \x00 NUL\x00NUL \x1c\x85 tab\tline\nend",
    "die die die größe größe haus",
]


def table(texts: list[str], **others: list[str]) -> pa.Table:
    return pa.table({"text": pa.array(texts, pa.string()), **{name: pa.array(own) for name, own in others.items()}})


def tfidf(*blocks: FieldOptions) -> Tfidf:
    return Tfidf(TfidfOptions(blocks=blocks))


def of_scikit_learn(texts: list[str], new: list[str], names: list[str], **options: Any) -> list[sp.csr_matrix]:
    """Features of scikit-learn, its columns in our order."""
    peer = TfidfVectorizer(dtype=np.float32, **options).fit(texts)
    position = {term: column for column, term in enumerate(peer.get_feature_names_out())}
    assert sorted(names) == sorted(position)
    return [peer.transform(some)[:, [position[name] for name in names]] for some in (texts, new)]


def assert_close(own: sp.csr_matrix, other: sp.csr_matrix) -> None:
    assert own.shape == other.shape
    assert own.nnz == other.nnz
    assert abs(own - other).max() < 1e-6 if own.nnz else True


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"words": (1, 3)}, {"ngram_range": (1, 3)}),
    ({"words": (2, 2), "sublinear": False}, {"ngram_range": (2, 2), "sublinear_tf": False}),
    ({"words": (1, 2), "stop_words": ("die", "και")}, {"ngram_range": (1, 2), "stop_words": ["die", "και"]}),
    ({"lowercase": False}, {"lowercase": False}),
    ({"chars": (3, 5)}, {"analyzer": "char_wb", "ngram_range": (3, 5)}),
    ({"chars": (1, 1)}, {"analyzer": "char_wb", "ngram_range": (1, 1)}),
    ({"chars": (6, 8), "lowercase": False}, {"analyzer": "char_wb", "ngram_range": (6, 8), "lowercase": False}),
    ({"min_df": 2}, {"min_df": 2}),
    ({"chars": (2, 3), "min_df": 0.3, "max_df": 0.7},
     {"analyzer": "char_wb", "ngram_range": (2, 3), "min_df": 0.3, "max_df": 0.7}),
    ({"max_df": 1}, {"max_df": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("own", "theirs"), CASES)
def test_features_equal_those_of_scikit_learn(own: dict[str, Any], theirs: dict[str, Any]) -> None:
    model = tfidf(FieldOptions(**{"min_df": 1, **own}))
    found = model.fit_transform(table(TEXTS))
    new = ["ganz neue Größe", "σας", *TEXTS[::2]]
    expected = of_scikit_learn(TEXTS, new, model.feature_names(), **{"sublinear_tf": True, **theirs})
    assert_close(found, expected[0])
    assert_close(model.transform(table(new)), expected[1])


@few
@given(st.lists(st.text(letters, max_size=25), min_size=1, max_size=6), st.sampled_from(CASES))
@example(["aΣ.Σa ΣΣ", "İ\u0307ẞ"], CASES[5])
@example(["aa bb aa cc", "bb  "], CASES[1])
def test_features_equal_those_of_scikit_learn_on_any_texts(
    texts: list[str], case: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    own, theirs = case
    model = tfidf(FieldOptions(**{"min_df": 1, **own}))
    try:
        expected = TfidfVectorizer(dtype=np.float32, **{"sublinear_tf": True, **theirs}).fit(texts)
    except ValueError:
        with pytest.raises(DataError):
            model.fit(table(texts))
        return
    found = model.fit_transform(table(texts))
    assert sorted(model.feature_names()) == sorted(expected.get_feature_names_out())
    assert_close(found, of_scikit_learn(texts, texts[:1], model.feature_names(), **{"sublinear_tf": True, **theirs})[0])


@pytest.mark.shared
@pytest.mark.parametrize("case", [0, 3, 5, 8])
@pytest.mark.parametrize(("name", "column"), [("tibkat-gnd", "title"), ("yso-finna-en", "text"), ("debtags", "text")])
def test_features_equal_those_of_scikit_learn_on_real_texts(shared: Path, name: str, column: str, case: int) -> None:
    own, theirs = CASES[case]
    with zstandard.open(shared / "data" / name / "train.jsonl.zst", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)[column] for line in islice(lines, 2000)]
    model = tfidf(FieldOptions(**{"min_df": 1, **own}))
    found = model.fit_transform(table(texts))
    expected = of_scikit_learn(texts, texts[:1], model.feature_names(), **{"sublinear_tf": True, **theirs})
    assert_close(found, expected[0])


def test_max_features_are_those_of_scikit_learn() -> None:
    texts = ["aa aa aa bb bb cc", "bb bb cc dd", "aa ee"]  # 4, 4, 2, 1, 1 occurrences
    model = tfidf(FieldOptions(min_df=1, max_features=3))
    found = model.fit_transform(table(texts))
    assert model.feature_names() == ["aa", "bb", "cc"]
    assert_close(found, of_scikit_learn(texts, texts[:1], model.feature_names(), max_features=3, sublinear_tf=True)[0])


BLOCKS = (
    FieldOptions(words=(1, 2), weight=2.0),
    FieldOptions(column="title", min_df=1, stop_words="german"),
    FieldOptions(column="title", chars=(3, 5), weight=0.5),
)


@pytest.fixture
def many() -> pa.Table:
    rng = np.random.default_rng(0)
    words = [f"{first}{number}" for first in ("haus", "Größe", "ΟΔΟΣ", "x_") for number in range(100)]
    texts = [" ".join(rng.choice(words, rng.integers(0, 30))) for _ in range(400)]
    titles = [" ".join(rng.choice(words, rng.integers(0, 4))) for _ in range(400)]
    return table(texts, title=titles)


def arrays_of(model: Tfidf, matrix: sp.csr_matrix) -> list[bytes]:
    tables = [array for own in model.tables_ for array in own.table]
    return [array.tobytes() for array in (matrix.indptr, matrix.indices, matrix.data, model.idf_, *tables)]


def test_any_number_of_threads_and_any_spans_give_the_same_bits(many: pa.Table) -> None:
    results, names = [], []
    for n_threads, span_bytes in ((1, 1 << 20), (1, 300), (2, 300), (5, 77)):
        model, run = tfidf(*BLOCKS), Run(LocalEngine(n_threads))
        results.append(arrays_of(model, model.fit_transform(many, run, span_bytes=span_bytes)))
        results.append(arrays_of(model, model.transform(many, run, span_bytes=span_bytes)))
        fitted = tfidf(*BLOCKS).fit(many, run, span_bytes=span_bytes)
        results.append(arrays_of(fitted, fitted.transform(many)))
        names.append(model.feature_names())
    assert all(result == results[0] for result in results)
    assert all(own == names[0] for own in names)


def test_each_block_has_the_length_of_its_weight_in_rows_of_length_one(many: pa.Table) -> None:
    model = tfidf(*BLOCKS)
    found = model.fit_transform(many)
    alone = [tfidf(block).fit_transform(many) for block in BLOCKS]
    expected = sp.hstack([block.weight * part for block, part in zip(BLOCKS, alone, strict=True)]).tocsr()
    lengths = np.sqrt(np.asarray(expected.multiply(expected).sum(1)).ravel())
    expected = sp.diags_array(1 / np.where(lengths == 0, 1, lengths)) @ expected
    assert found.shape[1] == model.n_features_ == sum(part.shape[1] for part in alone)
    assert abs(found - expected).max() < 1e-6
    own = np.sqrt(np.asarray(found.multiply(found).sum(1)).ravel())
    assert set(np.round(own, 5).tolist()) <= {0.0, 1.0}
    first = alone[0].shape[1]
    assert model.feature_names([0, first])[1].startswith("title:")
    assert model.feature_names()[:first] == [f"text:{name}" for name in tfidf(BLOCKS[0]).fit(many).feature_names()]


def test_the_matrix_is_ready_for_kernels(many: pa.Table) -> None:
    found = tfidf(*BLOCKS).fit_transform(many)
    assert found.dtype == np.float32
    assert found.indices.dtype == np.int32
    again = found.copy()
    again.has_sorted_indices = again.has_canonical_format = False
    again.sum_duplicates()
    assert np.array_equal(again.indices, found.indices)


def test_one_text_gives_the_row_it_has_among_many(many: pa.Table) -> None:
    model = tfidf(*BLOCKS)
    found = model.fit_transform(many)
    for row, fields in enumerate(many.slice(0, 50).to_pylist()):
        indices, values = model.transform_one(fields)
        assert indices.dtype == np.int32 and values.dtype == np.float32
        assert indices.tolist() == found[row].indices.tolist()
        assert values.tobytes() == found[row].data.tobytes()


def test_a_plain_string_is_the_text() -> None:
    model = tfidf(FieldOptions(min_df=1)).fit(table(TEXTS))
    indices, _ = model.transform_one("unbekannt ΟΔΟΣ größe größe")
    assert sorted(model.feature_names(indices)) == ["größe", "οδος"]


def test_saved_and_loaded_features_are_the_same_bit_for_bit(many: pa.Table, tmp_path: Path) -> None:
    model = tfidf(*BLOCKS)
    before = arrays_of(model, model.fit_transform(many))
    with write_folder(tmp_path / "m", "model") as writer:
        model.save(writer, "features")
    loaded = Tfidf.load(Folder(tmp_path / "m", "model"), "features")
    assert loaded.options == model.options
    assert loaded.n_features_ == model.n_features_
    assert arrays_of(loaded, loaded.transform(many)) == before
    assert loaded.feature_names() == model.feature_names()
    text = many.slice(3, 1).to_pylist()[0]
    assert loaded.transform_one(text)[1].tobytes() == model.transform_one(text)[1].tobytes()


def test_one_compilation_serves_texts_of_every_origin(many: pa.Table, tmp_path: Path) -> None:
    model = tfidf(*BLOCKS).fit(many)
    with write_folder(tmp_path / "m", "model") as writer:
        model.save(writer, "features")
    loaded = Tfidf.load(Folder(tmp_path / "m", "model"), "features")
    loaded.transform(table(["ΟΔΟΣ haus1", ""], title=["", ""]))
    loaded.transform_one({"text": "", "title": "haus1"})
    tfidf(FieldOptions(stop_words=("haus1",), lowercase=False)).fit_transform(many)
    for kernel in (tokens.count_terms, tokens.weigh, tokens.add_terms, tokens.needs_python):
        assert len(kernel.signatures) == 1, kernel


def test_what_is_not_there_cannot_be_loaded(tmp_path: Path) -> None:
    with write_folder(tmp_path / "m", "model") as writer:
        writer.manifest["half"] = TfidfOptions().plain()
        writer.arrays("half", {"idf": np.ones(3, np.float32)})
        writer.table("half", pa.table({"term": ["a", "b", "c"]}))
    folder = Folder(tmp_path / "m", "model")
    with pytest.raises(ModelFormatError, match="no features called 'features'"):
        Tfidf.load(folder, "features")
    with pytest.raises(ModelFormatError, match=r"0\.hashes must be there"):
        Tfidf.load(folder, "half")


def test_numbers_are_one_feature_and_only_the_first_words_are_read() -> None:
    model = tfidf(FieldOptions(min_df=1, numbers=True, max_words=4))
    found = model.fit_transform(table(["born 1999 in 7", "of 12 men and more", "2000"]))
    assert sorted(model.feature_names()) == ["0", "and", "born", "in", "men", "of"]
    assert found.getnnz(axis=1).tolist() == [3, 4, 1]


def test_odd_texts_have_defined_features() -> None:
    texts = ["word " * 1_000_000 + "end", "\x00", "", "   ", "a", "nul\x00nul", "end"]
    for block in (FieldOptions(min_df=1, words=(1, 2)), FieldOptions(min_df=1, chars=(3, 5))):
        model = tfidf(block)
        found = model.fit_transform(table(texts))
        assert found.shape == (7, model.n_features_)
        assert found[2].nnz == found[3].nnz == 0
        assert found[0].nnz > 3
        assert np.isfinite(found.data).all()
    # 999,999 times "word word", and "end" in one text more
    model = tfidf(FieldOptions(min_df=1, words=(1, 2), sublinear=False))
    row = model.fit_transform(table(texts))[0]
    assert row[0, model.feature_names().index("word word")] == pytest.approx(
        row[0, model.feature_names().index("word")] * 0.999999
    )


def test_texts_of_a_missing_column_are_refused() -> None:
    model = tfidf(FieldOptions(min_df=1), FieldOptions(column="title", min_df=1))
    with pytest.raises(ConfigError, match="column 'title', the texts have only text"):
        model.fit(table(TEXTS))
    model.fit(table(TEXTS, title=TEXTS))
    with pytest.raises(ConfigError, match="column 'title', the texts have only text"):
        model.transform(table(TEXTS))
    with pytest.raises(ConfigError, match="column 'title', the texts have only text"):
        model.transform_one("only a text")


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(DataError, match="at least one text"):
        Tfidf().fit(table([]))
    with pytest.raises(DataError, match="column 'title'"):
        tfidf(FieldOptions(column="title")).fit(table(["good words"], title=[""]))


def test_no_texts_have_no_rows_after_fitting() -> None:
    model = Tfidf().fit(table(TEXTS))
    assert model.transform(table([])).shape == (0, model.n_features_)


@pytest.mark.parametrize("use", [lambda own: own.transform(table(["a"])), lambda own: own.transform_one("a"),
                                 lambda own: own.n_features_, lambda own: own.feature_names()])  # fmt: skip
def test_features_must_be_fitted_first(use: Any) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        use(Tfidf())


def test_progress_counts_the_texts() -> None:
    class Watcher:
        def __init__(self) -> None:
            self.steps: list[tuple[str, int | None]] = []
            self.done = 0

        def step(self, name: str, total: int | None = None, unit: str = "") -> Any:
            from contextlib import nullcontext

            self.steps.append((name, total))
            return nullcontext(self.advance)

        def advance(self, amount: int) -> None:
            self.done += amount

    for use in ("fit", "fit_transform", "transform"):
        watcher = Watcher()
        getattr(Tfidf().fit(table(TEXTS)), use)(table(TEXTS), run=Run(progress=watcher))
        assert watcher.steps == [("features", len(TEXTS))]
        assert watcher.done == len(TEXTS)
