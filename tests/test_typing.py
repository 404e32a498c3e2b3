"""What type checkers know: options of the constructors, and what may be given as texts and labels."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SNIPPETS = """
from typing import Any

import numpy as np
import pandas  # type: ignore[import-untyped]
import polars
import scipy.sparse as sp

import longtail
from longtail.linear.ranker import RankerOptions
from longtail.predictions import Predictions, Suggestion

# Constructors
longtail.Linear(n_seeds=3)
longtail.Linear("linear/parabel", ranker={"threshold": 0.1}, tree=dict(max_leaf=10))
longtail.Linear(ranker=RankerOptions(threshold=0.1), vectors=[{"kinds": ["pifa"]}])
longtail.Linear(n_sedes=3)  # error: Unexpected keyword argument "n_sedes" for "Linear"; did you mean "n_seeds"?
longtail.Linear(n_seeds="3")  # error: Argument "n_seeds" to "Linear" has incompatible type "str"; expected "int"
longtail.Linear(ranker={"treshold": 0.1})  # error: expected "RankerKeywords | RankerOptions"
longtail.Linear(ranker={"threshold": "a"})  # error: expected "RankerKeywords | RankerOptions"
longtail.KNN(points={"kind": "words", "vectors": {"width": 10}})
longtail.KNN(points={"kind": "letters"})  # error:
longtail.TReaderXML(encoder={"kind": "transformer", "model": "m"})
longtail.XBERT(recalls=[{"kind": "bilstm", "hidden": 16}])
longtail.AttentionXML(first_cluster=3)  # error: did you mean "first_clusters"?
options: dict[str, Any] = {"n_seeds": 2}
longtail.Linear(**options)
longtail.Liner()  # error: Module has no attribute "Liner"

# Texts and labels
model = longtail.Linear()
model.fit(["a"], [["b"]])
model.fit(("a",), [("b",), {"c"}])
model.fit(np.array(["a"]), [np.array(["b"])])
model.fit(["a"], np.array([[1, 0]]))
model.fit(["a"], sp.csr_matrix((1, 2)))
model.fit({"text": ["a"], "title": ["t"]}, [["b"]])
model.fit([{"text": "a", "labels": ["b"]}])
model.fit(pandas.DataFrame({"text": ["a"]}), [["b"]])
model.fit(polars.DataFrame({"text": ["a"], "labels": [["b"]]}))
model.fit(longtail.load_dataset("debtags-sample").train)
model.fit(["a"], ["b"])  # error: List item 0 has incompatible type "str"
model.fit(["a"], "b")  # error: Argument 2 to "fit" of "Method" has incompatible type "str"
model.fit("a", [["b"]])  # error: Argument 1 to "fit" of "Method" has incompatible type "str"
model.predict("a")  # error: Argument 1 to "predict" of "Method" has incompatible type "str"
model.predict(["a"], 5)
model.predict(["a"], "5")  # error: Argument 2 to "predict" of "Method" has incompatible type "str"

# Results
predictions: Predictions = model.predict(["a"])
first: Suggestion = predictions[0][0]
some: Predictions = predictions[:2]
split = longtail.Split.of(["a"], [["b"]])
record: dict[str, Any] = split[0]
half: longtail.Split = split[:1]
value: float = model.score(["a"], [["b"]])
"""


def test_mypy_accepts_what_is_meant_and_refuses_what_is_not(tmp_path: Path) -> None:
    file = tmp_path / "snippets.py"
    file.write_text(SNIPPETS)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    reported = dict(re.findall(r"snippets\.py:(\d+): error: (.*)", checked.stdout))
    expected = dict(re.findall(r"^(\d+):.*# error:(.*)$", _numbered(SNIPPETS), re.MULTILINE))
    assert reported.keys() == expected.keys(), checked.stdout + checked.stderr
    assert not {line: reported[line] for line, text in expected.items() if text.strip() not in reported[line]}


def _numbered(text: str) -> str:
    return "\n".join(f"{number}:{line}" for number, line in enumerate(text.splitlines(), 1))


def test_the_keywords_of_the_constructors_follow_from_the_options() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tools'); import make_keywords as m; sys.exit(m.page() != m.FILE.read_text())"
    )
    made = subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT)
    assert made.returncode == 0, "run python tools/make_keywords.py"
