# Every target sets up what it needs. A fresh checkout needs Python 3.11 or newer; the real control plane also needs Go,
# or KUBEBUILDER_ASSETS with the path of a folder that has its programs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# In the environment's own folder, so that both go together.
INSTALLED := $(VENV)/.installed
RESULTS := build/tests
PACKAGES := $(addprefix packages/konverge,/ -cluster -resolution -box)

# Bytecode is kept even where the environment forbids it: else each process that a test starts compiles all that it
# imports, and each of pytest's workers the assertions of all tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := test
.PHONY: demo test test-fast check coverage bench control-plane servers constraints clean

demo: $(INSTALLED)  ## See an operator at work on the embedded cluster.
	@$(BIN)/konverge demo

test-fast: $(INSTALLED)  ## What to run after an edit: all tests that are neither slow nor of the real cluster.
	@rm -rf $(RESULTS)
	$(BIN)/pytest -m "not real and not slow" --numprocesses auto --dist worksteal --junitxml=$(RESULTS)/fast.xml

# What runs on the real cluster waits for most of its time, so that two at once (each with a control plane of its own)
# need little more than half of it. Whoever is done takes over half of what the other one has left.
# Its last lines name the cases that were left out, and what brings what they need (make servers, make control-plane).
test: test-fast  ## All tests: what is fast, what takes long, what runs on the real cluster.
	$(BIN)/pytest -m "slow and not real" --numprocesses auto --dist worksteal --junitxml=$(RESULTS)/slow.xml
	@if command -v go > /dev/null || [ -n "$$KUBEBUILDER_ASSETS$$KONVERGE_REQUIRE_REAL" ]; \
	then $(BIN)/python tools/controlplane/build.py; fi
	$(BIN)/pytest -m real --numprocesses 2 --dist worksteal --junitxml=$(RESULTS)/real.xml
	@$(BIN)/python tools/test_totals.py $(RESULTS)/fast.xml $(RESULTS)/slow.xml $(RESULTS)/real.xml

check: $(INSTALLED)  ## Style, types by two checkers, the layers, and the vocabulary.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python tools/vocabulary.py

# It takes about twice as long as `make test-fast`. Lines that only slow or real tests reach count as missed.
coverage: $(INSTALLED)  ## Run the fast tests again, report the lines that they miss, and fail below the floor.
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/pytest -m "not real and not slow" --numprocesses auto --dist worksteal --cov \
	--cov-report=term --cov-report=html

bench: $(INSTALLED)  ## The benchmarks that need no control plane, side by side with their peers.
	$(BIN)/python -m pip install --quiet --require-hashes --requirement tools/bench-constraints.txt
	$(BIN)/python -m bench

control-plane: $(INSTALLED)  ## Build the real control plane once, into the user's cache folder.
	$(BIN)/python tools/controlplane/build.py

# Debian starts what it installs, docker-registry on all interfaces: that one is told not to be started at all.
servers:  ## Install the servers that tests start, by Debian's packages where there are none (needs root).
	@wanted=""; \
	command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || wanted="postgresql"; \
	command -v redis-server > /dev/null || wanted="$$wanted redis-server"; \
	command -v docker-registry > /dev/null || wanted="$$wanted docker-registry"; \
	command -v sshd > /dev/null || test -x /usr/sbin/sshd || wanted="$$wanted openssh-server"; \
	command -v tinyproxy > /dev/null || wanted="$$wanted tinyproxy"; \
	test -n "$$wanted" || exit 0; \
	command -v apt-get > /dev/null && test "$$(id -u)" = 0 || { \
	echo "expected root and apt-get to install:" $$wanted >&2; \
	echo "Install what has these servers by other means; without them, make test leaves their cases out." >&2; exit 1; }; \
	for each in docker-registry tinyproxy; do \
	case "$$wanted" in *$$each*) systemctl mask $$each > /dev/null 2>&1;; esac; done; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$wanted

clean:  ## Remove what the targets made here; what they cached for all checkouts stays.
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

constraints: $(INSTALLED)  ## Write down anew what to install, with the hashes; newer versions: UPGRADE=--upgrade.
	$(BIN)/python tools/lock_dependencies.py $(UPGRADE)

# pip takes nothing whose hash is not written down, what builds the project included.
$(INSTALLED): pyproject.toml $(wildcard packages/*/pyproject.toml) tools/constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or \
	sys.exit("Python 3.11 or newer is needed, found " + sys.version.split()[0] + "; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement tools/constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(PACKAGES:%=--editable %)
	@touch $@
