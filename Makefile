# Every target makes its own .venv first; the second time that costs nothing (a stamp per extra, renewed when
# pyproject.toml changes).
PYTHON ?= python3
PYTHONS ?= 3.11 3.12 3.13 3.14
WORKERS ?= 2
PYTEST_FLAGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Workers share the cores: a thread pool in each of them would only get in the way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

PYTEST = $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_FLAGS)

# The engine's tests run again under each of these.
STRATEGIES := balanced budget region
ENGINE_TESTS := $(addprefix tests/,autodiff functions linalg manipulation operations tensor transforms)
# Only `make test-all` runs these under a strategy, too: PyTorch and finite differences say there what JAX says, and
# whether the samples notice a wrong rule is a question to the samples.
NOT_AGAIN := --deselect tests/operations/test_references.py::test_jax_agrees --ignore tests/operations/test_mutations.py

# What depends on the interpreter itself, its bytecode or its counts of references. These run on every Python.
INTERPRETER_TESTS := $(wildcard tests/compiler/guards) $(addprefix tests/,compiler/calling transforms autodiff \
	backends/test_ownership.py tensor/test_writing.py)

.PHONY: help test test-all test-pythons test-minimal types lint format bench demo docs docs-check figures clean
.DEFAULT_GOAL := help

help:
	@echo 'make test           lint, the tests, the engine under each checkpointing strategy, other Pythons: what CI runs'
	@echo 'make test-all       lint and all tests, the slow ones too'
	@echo 'make test-pythons   what depends on the interpreter, on each other Python that is found: $(PYTHONS)'
	@echo 'make types          what mypy and pyright say of programs of users, on an installed wheel'
	@echo 'make lint           ruff, mypy and import-linter'
	@echo 'make format         let ruff format the code'
	@echo 'make bench          install the peers and run all benchmarks'
	@echo 'make figures        measure everything beside the peers, and put the tables into README and docs'
	@echo 'make docs           run all pages and build the site: site/index.html'
	@echo 'make docs-check     look at the site with a headless Chromium'
	@echo 'make demo           fit a small network to handwritten digits'
	@echo 'make clean          remove .venv and all caches'

test: lint $(STAMP)-test
	$(PYTEST)
	$(foreach strategy,$(STRATEGIES),$(PYTEST) $(ENGINE_TESTS) $(NOT_AGAIN) --checkpointing $(strategy) &&) true
	@$(MAKE) --no-print-directory test-pythons

test-all: lint $(STAMP)-test
	$(PYTEST) -m 'slow or not slow'
	$(foreach strategy,$(STRATEGIES),$(PYTEST) $(ENGINE_TESTS) -m 'slow or not slow' --checkpointing $(strategy) &&) true
	@$(MAKE) --no-print-directory test-pythons

# Each Python has an environment of its own beside .venv, with NumPy, llvmlite and pytest alone.
test-pythons: | $(BIN)/python
	@for version in $(PYTHONS); do \
		python=$$($(BIN)/python scripts/find_python.py $$version) || continue; \
		$(MAKE) --no-print-directory test-minimal PYTHON=$$python VENV=.venv-$$version || exit 1; \
	done

test-minimal: $(STAMP)-test-minimal
	$(PYTEST) $(INTERPRETER_TESTS)

# As users have it: not the source but a wheel, and pyright, whose node.js is too large for what CI installs each time.
types:
	test -x .venv-types/bin/python || $(PYTHON) -m venv .venv-types
	rm -rf build
	.venv-types/bin/python -m pip install --progress-bar off '.[types]'
	.venv-types/bin/python -m pip install --progress-bar off --force-reinstall --no-deps .
	.venv-types/bin/python tests/typing/checking.py

lint: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(STAMP)-bench
	$(BIN)/python -m benchmarks

figures: $(STAMP)-bench
	$(BIN)/python -m benchmarks.figures run
	$(BIN)/python -m benchmarks.figures tables

demo: $(STAMP)-demo
	$(BIN)/python -m pullback train --example digits --folder demo-output --overwrite

# Material announces its successor at every build; a warning of MkDocs itself ends the build.
docs: $(STAMP)-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-check: docs $(STAMP)-docs-check
	$(BIN)/python -m website.browser

clean:
	rm -rf $(VENV) .venv-* .cache build site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP)-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --progress-bar off --editable '.[$*]'
	@# pip compiles what it installs, but not what it installs editable
	$(BIN)/python -m compileall -q src
	@touch $@
