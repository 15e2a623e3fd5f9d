# make demo and make test set everything up by themselves; see `make help`.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# Compiled XLA programs are kept from one run of the tests to the next, and shared between their processes.
TESTS := test test-all coverage
$(TESTS): export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
$(TESTS): export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
$(TESTS): export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1
# So is Python's byte code, also where the shell says otherwise: each process of the tests needs seconds to make it.
$(TESTS): export PYTHONDONTWRITEBYTECODE :=

# Nearly all the time of the tests is compilation, and these flags halve it. `XLA_FLAGS= make test-all` compiles as users do.
# A jaxlib that does not know a flag ends the process: later ones have no other emitters.
OF_JAXLIB_0.10 = $(if $(shell ls -d $(VENV)/lib/python*/site-packages/jaxlib-0.10.* 2>/dev/null),--xla_cpu_use_fusion_emitters=false)
$(TESTS): export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1 $(OF_JAXLIB_0.10)

.PHONY: help demo $(TESTS) ahead lint docs audit format

help:
	@echo "make demo    train, score and translate the toy language (into runs/demo)"
	@echo "make test    run the tests, but for the long ones"
	@echo "make test-all  run all tests"
	@echo "make coverage  run all tests and say which lines and branches of one_layer/ none of them reaches"
	@echo "make ahead   compile programs for accelerators that are not here, and check them (downloads about 400 MB into .cache/)"
	@echo "make lint    check style (ruff) and types (mypy)"
	@echo "make docs    build the pages, with the public API, into site/ (MkDocs); fails if a link in them leads nowhere"
	@echo "make audit   compare the installed packages with the published vulnerabilities (pip-audit; asks pypi.org)"
	@echo "make format  format the code (ruff)"
	@echo
	@echo "Each first installs requirements.txt into $(VENV) where that has not been done yet;"
	@echo "PYTHON=python3.12 chooses another Python (3.11 or later)."

demo: $(INSTALLED)
	$(BIN)/python main.py --config=configs/toy.py --workdir=runs/demo

# One file's tests stay in one process: they share compiled programs and module fixtures. tests/conftest.py orders the files.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(INSTALLED)
	$(PYTEST) -m "not slow"

test-all: $(INSTALLED)
	$(PYTEST)

coverage: $(INSTALLED)
	$(PYTEST) --cov --cov-report=term

# In a virtual environment of its own: where CUDA's plugin is installed, every start of JAX looks for a GPU.
ahead: .cache/ahead/.installed
	JAX_PLATFORMS=cpu .cache/ahead/bin/python -m pytest -m ahead tests/ahead

.cache/ahead/.installed: requirements-ahead.txt requirements.txt
	$(PYTHON) -m venv .cache/ahead
	.cache/ahead/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-ahead.txt
	@touch $@

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# In a virtual environment of its own: the generator reads the sources and needs nothing that they import.
# Not --quiet, which also keeps strict mode from seeing the warnings.
docs: .cache/docs/.installed
	NO_MKDOCS_2_WARNING=1 .cache/docs/bin/mkdocs build --clean
	@echo "The pages are in site/: open site/index.html"

.cache/docs/.installed: requirements-docs.txt requirements.txt
	$(PYTHON) -m venv .cache/docs
	.cache/docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

# In a virtual environment of its own, because pip-audit is no part of the program. It needs pypi.org. --strict, because otherwise a
# package for which no answer came is passed over, and the audit of nothing succeeds.
audit: $(INSTALLED)
	test -x .cache/audit/bin/pip-audit || ($(PYTHON) -m venv .cache/audit && .cache/audit/bin/python -m pip install --quiet pip-audit)
	.cache/audit/bin/pip-audit --strict --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')

format: $(INSTALLED)
	$(BIN)/ruff format .

# The stamp is written last, so that an installation cut short is done again.
$(INSTALLED): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	    f"Python {sys.version.split()[0]} is too old: 3.11 or later is needed; say make PYTHON=python3.12, or wherever one is")'
	@rm -f $@
	@echo "Installing requirements.txt into $(VENV); the first time takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@
