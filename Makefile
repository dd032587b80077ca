# `make train` trains CartPole, `make test` checks everything, `make quick` what changed. All build .venv first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
LEDGER_STAMP := .venv/.installed-ledger
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
SOURCES := ding dizoo tests nervex.py app_zoo.py $(wildcard benchmarks ledger)
SEED ?= 0
BASE ?= main

.PHONY: help train test quick test-compile test-cluster lint bench ledger ledger-check check clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# torch first: the other packages then find it installed and cannot move its version.
$(STAMP): pyproject.toml constraints.txt
	@echo "installing into .venv (once; needs a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) torch
	@$(PIP) -e '.[dev,ray,video]'
	@touch $@

# LunarLander, Pong and MuJoCo are not needed for anything else.
$(LEDGER_STAMP): $(STAMP)
	@$(PIP) -e '.[box2d,atari,minigrid,mujoco,pettingzoo]'
	@touch $@

train: $(STAMP)  ## train CartPole with DQN; SEED=1 for another seed
	@$(BIN)/ding -m serial -e cartpole -p dqn -s $(SEED) --exp-name runs/cartpole_dqn_seed$(SEED)

# One thread a process: the tests' networks are small and two processes run at once.
test: export OMP_NUM_THREADS = 1
test: export MPLBACKEND = Agg
test: lint  ## format, lint, types and tests with coverage
	$(BIN)/python -m pytest -n 2 --cov=ding --cov-report=term:skip-covered --cov-fail-under=90 </dev/null

quick: export OMP_NUM_THREADS = 1
quick: export MPLBACKEND = Agg
quick: lint  ## lint, types and the quick tests of what differs from main; BASE=REV for another
	@tests=$$($(BIN)/python tests/quick/changed.py $(BASE)) || exit 1; \
	if [ -z "$$tests" ]; then echo "no test is of what changed"; else \
	  $(BIN)/python -m pytest -n 2 -m "not slow and not learning and not compiles" $$tests </dev/null || [ $$? = 5 ]; fi

test-compile: export DING_COMPILE_TESTS = 1
test-compile: $(STAMP)  ## compiled updates of every algorithm against eager ones; takes long
	$(BIN)/python -m pytest -n 2 -k test_compiled tests/policy </dev/null

test-cluster: export DING_CLUSTER_TESTS = 1
test-cluster: $(STAMP)  ## the SLURM script with Ray on two pretended nodes; needs root
	$(BIN)/python -m pytest tests/entry/test_deploy_ray.py </dev/null

lint: $(STAMP)  ## format, lint and types only
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

check: test  ## the same as test

bench: $(STAMP)  ## measure speed; prints a table
	@$(BIN)/python -m benchmarks

ledger: $(LEDGER_STAMP)  ## train the rows that are stale or missing; can be stopped and goes on
	@$(BIN)/python -m ledger

ledger-check: $(LEDGER_STAMP)  ## train on new seeds, compare with the stored results; changes nothing
	@$(BIN)/python -m ledger --check

clean:  ## remove the environment, caches and runs
	rm -rf .venv benchmarks/.venv-peers runs build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
