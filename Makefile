# What one does with this repository. Every target sets up what it needs, once, in a virtual environment of its own.
#
#   make PYTHON=/path/to/python3.12 test    another interpreter (for a .venv that is there already: make clean first)
#   make ARGS='-k vjp -x' test              arguments for pytest; likewise for bench and parity

VENV    ?= .venv
WORKERS ?= 2
ADDRESS ?= 127.0.0.1:8000
PARITY  ?= ../shared/parity
ARGS    ?=

bin := $(VENV)/bin
export PYTHON
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs docs-build docs-outputs bench parity clean
.NOTPARALLEL:
.DELETE_ON_ERROR:

help: ## this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'

demo: $(VENV)/.has-demo ## train a digits classifier through each API; pictures in out/
	$(bin)/python -m compat examples/digits.py
	$(bin)/python examples/digits_functional.py

test: $(VENV)/.has-test ## run the tests, pages and docstrings included
	$(bin)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(VENV)/.has-dev ## formatting, lint, types, who imports whom
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python tools/house_rules.py

format: $(VENV)/.has-dev ## rewrite the code as lint wants it, where a tool can
	$(bin)/ruff check --fix-only .
	$(bin)/ruff format .

docs: docs-build ## build the documentation strictly, then serve it
	$(bin)/mkdocs serve --dev-addr $(ADDRESS)

docs-build: $(VENV)/.has-docs ## build the documentation strictly, into site/
	$(bin)/mkdocs build --strict

docs-outputs: $(VENV)/.has-test ## run the pages' code and write its output into them
	$(bin)/python tests/docs/pages.py --write

bench: $(VENV)-parity/.has-bench ## measure against PyTorch and JAX, as ratios from one run
	$(VENV)-parity/bin/python -m benchmarks $(ARGS)

parity: $(VENV)-parity/.has-parity ## compare with real PyTorch, op by op (PARITY= is where its tools are)
	$(VENV)-parity/bin/python tests/parity/run.py --tools $(PARITY) $(ARGS)

clean: ## back to a fresh clone: environments, caches and outputs removed
	rm -rf $(VENV) $(VENV)-parity build dist site out
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says that an extra is installed. A vanished interpreter (its link broken) starts the environment afresh.
$(VENV)/bin/python $(VENV)-parity/bin/python:
	@tools/venv.sh $(@D:/bin=)

define install
@echo "Installing funcgrad[$(1)] and what it needs into $(@D) (minutes the first time)"
@$(@D)/bin/python -m pip install $$(test -t 1 || echo --quiet) --disable-pip-version-check --editable '.[$(1)]'
@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torchviz==0.0.3
@touch $@
endef

$(VENV)/.has-%: pyproject.toml $(VENV)/bin/python
	$(call install,$*)

$(VENV)-parity/.has-%: pyproject.toml $(VENV)-parity/bin/python
	$(call install,$*)
