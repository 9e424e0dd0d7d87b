# make demo    find modules in a simulated cohort          make test    lint, types, doctests and the whole suite
# make install the private environment (.venv) alone       make format  let ruff tidy the sources
# make paper   the paper's figures and table (docs/paper)   make pictures  redraw the README's picture
# make bench   time it against its peers (minutes)         make docs    the documentation site, in docs/_build/html
# make fuzz    2,000 damaged files of every format         make kills   200 commands killed at random moments
# make nightly the tests that only repeat others, on more data and seeds
# make clean   remove .venv, caches and the site

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS := anndata,plot,report,dask,dev

# Real data and the larger golden set live outside the repository; tests that need them skip where they are absent.
ifneq ($(wildcard ../shared/data),)
export NETBIC_DATA ?= $(abspath ../shared/data)
endif
ifneq ($(wildcard ../shared/golden),)
export NETBIC_GOLDEN ?= $(abspath ../shared/golden)
endif

.PHONY: demo test nightly fuzz kills install format paper bench pictures docs clean

demo: install
	$(BIN)/netbic demo

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal -q --durations=15

# What repeats a test of the suite on more data or more seeds.
nightly: install
	$(BIN)/pytest -n 2 --dist worksteal -q --durations=15 -m nightly

# The long versions of what the suite does briefly; seeds are printed, e.g. make fuzz SEED=7
SEED ?= 0
fuzz: install
	$(BIN)/python tests/fuzz/damaged_files.py --files 2000 --seed $(SEED)

kills: install
	$(BIN)/python tests/kills/random_kills.py --kills 200 --seed $(SEED)

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "netbic needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@touch $@

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paper: install
	$(BIN)/netbic reproduce all --out docs/paper

bench: install
	$(BIN)/python benchmarks/speed.py

pictures: install
	$(BIN)/python docs/pictures.py

# The tools of the site are large: they are installed here, not by every `make install`.
docs: $(VENV)/.installed-docs
	@echo "building the site; its tutorials are run, which takes a few minutes"
	$(BIN)/python -m sphinx -b html -W --keep-going -n -a docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build
