# Everything here works on a bare Linux with Python 3.11+, git and make: each target sets up what it needs.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := tests/interop/node/node_modules/.ready
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help run test test-fast lint format bench docs wheel clean
help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[redis,embedded,cli]' --group dev
	touch $@

$(NODE_READY): tests/interop/node/package.json tests/interop/node/package-lock.json $(READY)
	cd tests/interop/node && npm ci --silent --no-audit --no-fund
	touch $@

run: $(READY)  ## the demo: embedded servers, producers, workers, a live table
	@$(BIN)/jobwire demo

test: $(READY) $(NODE_READY)  ## every test, on real servers and beside real Node peers
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-fast: $(READY)  ## what needs no Node and no patience
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not slow' --ignore tests/interop

lint: $(READY)  ## formatting, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/sync_stub.py --check
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(READY)  ## let ruff rewrite what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the other targets made
	rm -rf $(VENV) dist .jobwire tests/interop/node/node_modules .pytest_cache .ruff_cache .hypothesis
