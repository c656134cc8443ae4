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
.PHONY: help demo test test-newer lint format docs docs-build docs-check docs-deploy docs-outputs bench parity ecosystem checkouts objects names clean
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

test-newer: ## test what depends on JAX's internals, with PYTHON=/path/to/a/newer/python and its newest JAX
	$(MAKE) VENV=$(VENV)-newer test ARGS='$(sort $(wildcard tests/funcgrad/interpreters tests/funcgrad/runtime tests/funcgrad/parallel tests/funcgrad/test_*.py tests/compat/core/autograd tests/compat/devices))'

lint: $(VENV)/.has-dev ## formatting, lint, types, who imports whom
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/python tools/check_rules.py
	$(bin)/python tools/index_names.py --check

format: $(VENV)/.has-dev ## rewrite the code and the index of names as lint wants them, where a tool can
	$(bin)/ruff check --fix-only .
	$(bin)/ruff format .
	$(bin)/python tools/index_names.py

docs: $(VENV)/.has-docs ## build the documentation strictly, serve it, and build again what changes
	$(bin)/mkdocs serve --strict --dev-addr $(ADDRESS)

docs-build: $(VENV)/.has-docs ## build the documentation strictly, into site/
	$(bin)/mkdocs build --strict

docs-check: $(VENV)/.has-docs ## crawl site/: links, anchors, weights; BROWSER=1 looks at it in Chromium
	$(bin)/python tools/docs/crawl.py site $(if $(BROWSER),--browser --search)

docs-deploy: $(VENV)/.has-docs ## put the documentation on the branch gh-pages: VERSION=1.2 ALIAS=latest
	$(bin)/mike deploy --push --update-aliases $(VERSION) $(ALIAS)
	$(if $(ALIAS),$(bin)/mike set-default --push $(ALIAS))

docs-outputs: $(VENV)/.has-test ## run the pages' code and write its output into them
	$(bin)/python tests/docs/pages.py --write

bench: $(VENV)-parity/.has-bench ## measure against PyTorch and JAX, as ratios from one run
	$(VENV)-parity/bin/python -m benchmarks $(ARGS)

parity: $(VENV)-parity/.has-parity ## compare with real PyTorch, op by op (PARITY= is where its tools are)
	$(VENV)-parity/bin/python tests/parity/run.py --tools $(PARITY) $(ARGS)

ecosystem: $(VENV)-parity/.has-parity ## run packages from the registry beside PyTorch; ARGS='einops_use' runs one program
	$(VENV)-parity/bin/python tests/ecosystem/run.py --table docs/start/packages.md $(ARGS)

checkouts: $(VENV)-parity/.has-parity ## run programs of public repositories in FOLDER= beside PyTorch
	$(VENV)-parity/bin/python tests/ecosystem/checkouts.py $(FOLDER) --table docs/start/packages.md $(ARGS)

objects: $(VENV)-parity/.has-parity ## whole modules and schedulers, saved on either side, load on the other
	$(VENV)-parity/bin/python tests/ecosystem/whole_objects.py save out/objects/pytorch
	$(VENV)-parity/bin/python -m compat tests/ecosystem/whole_objects.py save out/objects/compat
	$(VENV)-parity/bin/python tests/ecosystem/whole_objects.py load out/objects/compat
	$(VENV)-parity/bin/python -m compat tests/ecosystem/whole_objects.py load out/objects/pytorch

names: $(VENV)-parity/.has-parity ## names of PyTorch's that packages in SITE= mention and compat has not
	mkdir -p out
	$(VENV)-parity/bin/python tests/ecosystem/names.py scan $(SITE) > out/mentioned.json
	$(VENV)-parity/bin/python tests/ecosystem/names.py have out/mentioned.json > out/pytorch.json
	$(VENV)-parity/bin/python -m compat tests/ecosystem/names.py have out/mentioned.json > out/compat.json
	$(VENV)-parity/bin/python tests/ecosystem/names.py missing out/mentioned.json out/pytorch.json out/compat.json

clean: ## back to a fresh clone: environments, caches and outputs removed
	rm -rf $(VENV) $(VENV)-parity build dist site out .cache
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says that an extra is installed. A vanished interpreter (its link broken) starts the environment afresh.
$(VENV)/bin/python $(VENV)-parity/bin/python:
	@tools/venv.sh $(@D:/bin=)

define install
@echo "Installing funcgrad[$(1)] and what it needs into $(@D) (minutes the first time)"
@$(@D)/bin/python -m pip install $$(test -t 1 || echo --quiet) --disable-pip-version-check --editable '.[$(1)]'
@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps torchviz==0.0.3
@$(@D)/bin/python -m funcgrad.native || echo 'No native kernels: XLA computes everything.'
@touch $@
endef

$(VENV)/.has-%: pyproject.toml $(VENV)/bin/python
	$(call install,$*)

$(VENV)-parity/.has-%: pyproject.toml $(VENV)-parity/bin/python
	$(call install,$*)
