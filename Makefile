# Every target installs what it needs. A fresh checkout needs Python 3.11 or newer. The real control plane also needs Go,
# or KUBEBUILDER_ASSETS with the path of a folder that contains its programs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# In the folder of the environment, so that both are deleted together.
INSTALLED := $(VENV)/.installed
RESULTS := build/tests
PACKAGES := $(addprefix packages/konverge,/ -cluster -resolution -box)

# Bytecode is written even if the environment disables it. Otherwise each process that a test starts compiles all its
# imports, and each worker of pytest the assertions of all tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := test
.PHONY: demo test test-fast check coverage bench control-plane servers constraints clean

demo: $(INSTALLED)  ## Run an operator on the embedded cluster as a demo.
	@$(BIN)/konverge demo

test-fast: $(INSTALLED)  ## Run after an edit: all tests that are neither slow nor on the real cluster.
	@rm -rf $(RESULTS)
	$(BIN)/pytest -m "not real and not slow" --numprocesses auto --dist worksteal --junitxml=$(RESULTS)/fast.xml

# Tests on the real cluster mostly wait, so two workers (each with its own control plane) need little more than half of
# the time. A worker without tests takes over half of the other one's rest.
# The last lines list the cases that were left out and the target that installs what they need (make servers, make
# control-plane).
test: test-fast  ## Run all tests: fast, slow, and on the real cluster.
	$(BIN)/pytest -m "slow and not real" --numprocesses auto --dist worksteal --junitxml=$(RESULTS)/slow.xml
	@if command -v go > /dev/null || [ -n "$$KUBEBUILDER_ASSETS$$KONVERGE_REQUIRE_REAL" ]; \
	then $(BIN)/python tools/controlplane/build.py; fi
	$(BIN)/pytest -m real --numprocesses 2 --dist worksteal --junitxml=$(RESULTS)/real.xml
	@$(BIN)/python tools/test_totals.py $(RESULTS)/fast.xml $(RESULTS)/slow.xml $(RESULTS)/real.xml

# --verifytypes ignores the environment in pyproject.toml and asks the first python of PATH for its packages.
check: $(INSTALLED)  ## Check style, types (two checkers), the types of public names, layers and vocabulary.
	@mkdir -p build
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	@for package in konverge konverge_cluster konverge_resolution konverge_box; do \
	echo "pyright --verifytypes $$package" && \
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes $$package --ignoreexternal > build/verify.txt || \
	{ cat build/verify.txt; exit 1; }; done
	$(BIN)/lint-imports
	$(BIN)/python tools/vocabulary.py

# This takes about twice as long as without coverage. Lines that only tests on the real cluster cover count as missed.
coverage: $(INSTALLED)  ## Run the fast and the slow tests, report the lines that they miss, and fail below the floor.
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/pytest -m "not real" --numprocesses auto --dist worksteal --cov \
	--cov-report=term --cov-report=html

bench: $(INSTALLED)  ## Run the benchmarks without a control plane, beside their peers.
	$(BIN)/python -m pip install --quiet --require-hashes --requirement tools/bench-constraints.txt
	$(BIN)/python -m bench

control-plane: $(INSTALLED)  ## Build the real control plane once, into the user's cache folder.
	$(BIN)/python tools/controlplane/build.py

# Debian starts installed servers, docker-registry on all interfaces: systemd must not start these two.
servers:  ## Install the servers for tests that are missing, from Debian packages (needs root).
	@missing=""; \
	command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || missing="postgresql"; \
	command -v redis-server > /dev/null || missing="$$missing redis-server"; \
	command -v docker-registry > /dev/null || missing="$$missing docker-registry"; \
	command -v sshd > /dev/null || test -x /usr/sbin/sshd || missing="$$missing openssh-server"; \
	command -v tinyproxy > /dev/null || missing="$$missing tinyproxy"; \
	test -n "$$missing" || exit 0; \
	command -v apt-get > /dev/null && test "$$(id -u)" = 0 || { \
	echo "expected root and apt-get to install:" $$missing >&2; \
	echo "Install these servers in another way; without them, make test leaves out their cases." >&2; exit 1; }; \
	for server in docker-registry tinyproxy; do \
	case "$$missing" in *$$server*) systemctl mask $$server > /dev/null 2>&1;; esac; done; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$missing

clean:  ## Remove the output of the targets; caches for all checkouts stay.
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

constraints: $(INSTALLED)  ## Lock the dependencies again, with hashes; newer versions: UPGRADE=--upgrade.
	$(BIN)/python tools/lock_dependencies.py $(UPGRADE)

# pip accepts only packages with a locked hash, including the build tools.
$(INSTALLED): pyproject.toml $(wildcard packages/*/pyproject.toml) tools/constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or \
	sys.exit("Python 3.11 or newer is needed, found " + sys.version.split()[0] + "; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement tools/constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(PACKAGES:%=--editable %)
	@touch $@
