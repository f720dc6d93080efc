# Everything from a fresh clone: needs Python 3.11 or later, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
REMOTE := $(VENV)/.remote
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help sweep test lint format readme lock clean

help: ## show these lines
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

sweep: $(READY) ## the main job: GTX 580 against modern chips, tables here and a report in outputs/
	$(BIN)/flopscape sweep $(ARGS)

test: lint $(REMOTE) ## lint, formatting, types, import contracts, tests
	$(BIN)/python -m pytest $(ARGS)

lint: $(READY) ## lint, formatting, types and import contracts alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(READY) ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

readme: $(READY) ## renew the outputs and the table of columns in README.md
	FLOPSCAPE_UPDATE_README=1 $(BIN)/python -m pytest -q tests/test_readme.py
	git --no-pager diff --stat README.md

lock: ## renew requirements.lock from the bounds in pyproject.toml
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet -e '.[dev,remote]'
	.venv-lock/bin/pip freeze --exclude-editable --exclude pip --exclude setuptools > requirements.lock
	rm -rf .venv-lock

clean: ## remove the environment and caches; results stay
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .import_linter_cache

# A made environment is used as it is until the project's needs change.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "flopscape needs Python 3.11 or later, $(PYTHON) is older: call make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint requirements.lock -e '.[dev]'
	@touch $@

# Ray, Slurm's launcher and a server for S3, which the tests use where they are; nothing else needs them.
$(REMOTE): $(READY)
	@$(BIN)/pip install --quiet --constraint requirements.lock -e '.[remote]' && touch $@ || \
		echo "Ray, submitit and moto cannot be installed here: their tests will be skipped" >&2
