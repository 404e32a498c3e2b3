from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data.dataset import Split
from longtail.data.formats.batch import no_texts
from longtail.data.inputs import as_labels
from longtail.data.load import load_dataset
from longtail.errors import DataError
from longtail.sparse import checked_csr
from longtail.types import LabelMatrix

DENSE = np.array([[0, 1, 2], [0, 0, 0], [3, 0, 0], [0, 4, 0]], np.float32)


def broken(kind: str, format: str = "csr") -> Any:
    """Return a matrix (4, 3) with a fault that scipy does not see."""
    matrix = sp.csr_matrix(DENSE).asformat(format)
    if kind == "negative index":
        matrix.indices[1] = -7
    elif kind == "large index":
        matrix.indices[1] = 1 << 30
    elif kind == "falling pointers":
        matrix.indptr[1:3] = matrix.indptr[2], 0
    elif kind == "pointers beyond the entries":
        matrix.indptr[-1] = 1 << 30
    elif kind == "empty rows that are not":
        matrix.indptr[:] = 0
        matrix.indptr[1] = 1 << 30
    elif kind == "pointers from 1":
        matrix.indptr[0] = 1
    else:
        matrix.data[1] = {"nan": np.nan, "inf": -np.inf}[kind]
    return matrix


FAULTS = {
    "negative index": "indices from 0 to",
    "large index": "indices from 0 to",
    "falling pointers": "row pointers that rise",
    "pointers beyond the entries": "row pointers that rise",
    "empty rows that are not": "row pointers that rise",
    "pointers from 1": "row pointers that rise",
    "nan": r"finite numbers below 3\.4e38, got nan in row \d, column \d",
    "inf": "finite numbers .* got -inf",
}


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_matrix_that_would_crash_or_train_nonsense_is_refused(kind: str, format: str) -> None:
    with pytest.raises(DataError, match=f"X must have {FAULTS[kind]}|X must hold {FAULTS[kind]}"):
        checked_csr(broken(kind, format), "X")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_a_sound_matrix_of_any_format_has_the_same_values(format: str) -> None:
    for matrix in (sp.csr_matrix(DENSE), sp.csr_array(DENSE), sp.csr_matrix((0, 3)), sp.csr_matrix((3, 0))):
        assert (checked_csr(matrix.asformat(format), "X").toarray() == matrix.toarray()).all()


def test_places_outside_a_list_of_entries_are_refused() -> None:
    matrix = sp.coo_matrix(DENSE)
    matrix.col[0] = 99
    with pytest.raises(DataError, match="X must have indices from 0 to 2, got 99"):
        checked_csr(matrix, "X")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 2)), "must be a sparse matrix"),
        (sp.coo_array(np.ones(3)), "rows and columns"),
        (sp.csr_matrix((1, 1 << 31)), "at most 134,217,728 columns, got 2,147,483,648; renumber them"),
        (sp.csr_matrix([[1e300]]), "below 3.4e38, got 1e+300 in row 0, column 0"),
        (sp.csr_matrix([[1j]]), "must hold numbers, got complex128"),
    ],
)
def test_what_kernels_cannot_hold_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        checked_csr(matrix, "X")


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("file", ["X.trn.npz", "Y.trn.npz"])
def test_matrices_in_files_are_checked_and_the_file_is_named(tmp_path: Any, kind: str, file: str) -> None:
    for name in ("X.trn.npz", "Y.trn.npz"):
        sp.save_npz(tmp_path / name, broken(kind) if name == file else sp.csr_matrix(DENSE))
    with pytest.raises(DataError, match=re.escape(file)):
        load_dataset(tmp_path)


@pytest.mark.parametrize("kind", FAULTS)
def test_matrices_that_a_program_hands_over_are_checked(kind: str) -> None:
    labels = LabelMatrix.from_lists([[0], [1], [0], [1]], 2)
    vocabulary = Split.of(["x", "y"], [["a"], ["b"]]).vocabulary
    with pytest.raises(DataError, match="features must"):
        Split(no_texts(4), labels, vocabulary, broken(kind))
    with pytest.raises(DataError, match="an indicator matrix must"):
        as_labels(broken(kind), 4)


@pytest.mark.parametrize("line", ["1 0:nan", "1 0:inf", "1 0:1e39", "1 0:3e38 0:3e38"])
@pytest.mark.parametrize("header", ["", "1 5 2\n"])
def test_numbers_that_are_not_finite_are_refused_in_lines_of_features(tmp_path: Any, line: str, header: str) -> None:
    (tmp_path / "train.txt").write_text(f"{header}{line}\n")
    with pytest.raises(DataError, match=r"train\.txt"):
        load_dataset(tmp_path / "train.txt", format="xmc" if header else "svmlight")
