# Use netbic
#   make demo            find modules in ovarian tumours
#   make install         only set up the environment, in .venv
# Develop
#   make test            lint and suite: what must pass
#   make lint            ruff and mypy
#   make suite           the tests and doctests; some of them: make suite TESTS=tests/solver/test_solver.py
#   make coverage        the same with a coverage report (also with TESTS=...)
#   make format          apply ruff's fixes and formatting
#   make nightly         the tests that repeat others on more data and seeds
#   make fuzz            read 2,000 damaged files of every format
#   make kills           kill 200 commands at random moments
#   make lowest          tests with the lowest versions of the dependencies that pyproject.toml allows
#   make prerelease      tests with pre-releases of the dependencies
# Documentation
#   make docs            the documentation site, in docs/_build/html
#   make paper           the paper's figures and table, in docs/paper
#   make pictures        redraw the pictures of the README and of the pages
#   make bench           compare running times with other packages (minutes)
# Comparison with other methods
#   make field-small     a few problems and quick methods (minutes); others: make field-small METHODS="pca nmf"
#   make field           all problems and methods, and the page (many hours; it can be stopped and started again)
#   make field-environments  an environment for each method that needs its own, in .venv-field
# Release
#   make build           wheel and sdist, in dist
#   make check-install   install what is in dist in new environments and run the demo
#   make check-tag       check that the git tag in $TAG is the version
#   make lint-workflows  check the files for GitHub, Read the Docs and the citation
#   make clean           remove environments, caches and everything that was built

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNTIME_EXTRAS := anndata,mudata,plot,report,dask,excel
EXTRAS := $(RUNTIME_EXTRAS),dev
PIP    := -m pip install --quiet --disable-pip-version-check

TESTS  ?=
JOBS   ?= 2
PYTEST := pytest -n $(JOBS) --dist worksteal -q --durations=15

# Real data and the larger golden set live outside the repository; tests that need them skip where they are absent.
ifneq ($(wildcard ../shared/data),)
export NETBIC_DATA ?= $(abspath ../shared/data)
endif
ifneq ($(wildcard ../shared/golden),)
export NETBIC_GOLDEN ?= $(abspath ../shared/golden)
endif

.PHONY: demo install test lint suite coverage format nightly fuzz kills lowest prerelease docs paper pictures bench \
        field field-small field-environments build check-install check-tag lint-workflows clean

demo: install
	$(BIN)/netbic demo --force

test: lint suite

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

suite: install
	$(BIN)/$(PYTEST) $(TESTS)

coverage: install
	$(BIN)/$(PYTEST) --cov --cov-report=term --cov-report=html --cov-report=xml $(TESTS)

# What repeats a test of the suite on more data or more seeds.
nightly: install
	$(BIN)/$(PYTEST) -m nightly

# The long versions of what the suite does briefly; seeds are printed, e.g. make fuzz SEED=7
SEED ?= 0
fuzz: install
	$(BIN)/python tests/fuzz/damaged_files.py --files 2000 --seed $(SEED)

kills: install
	$(BIN)/python tests/kills/random_kills.py --kills 200 --seed $(SEED)

# The lowest and the newest dependencies, in environments of their own. uv can resolve to the lowest versions, pip cannot.
# Old packages use what newer Pythons and packages have deprecated: there, deprecations are no errors.
# SCIPY_ARRAY_API: without it, the estimator checks of scikit-learn 1.6 cannot be imported with SciPy 1.14 and newer.
LOWEST_TESTS := $(addprefix tests/,penalties/test_thresholds.py graph operators solver/test_solver.py \
                estimators/test_sparse_graph_svd.py io storage test_files.py)
lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP) uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct --editable ".[$(EXTRAS)]"
	SCIPY_ARRAY_API=1 .venv-lowest/bin/$(PYTEST) -W ignore::DeprecationWarning $(or $(TESTS),$(LOWEST_TESTS))

prerelease:
	$(PYTHON) -m venv --clear .venv-prerelease
	.venv-prerelease/bin/python $(PIP) --pre --editable ".[$(EXTRAS)]"
	.venv-prerelease/bin/$(PYTEST) $(TESTS)

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "netbic needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	$(BIN)/python $(PIP) --editable ".[$(EXTRAS)]"
	@touch $@

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paper: install
	$(BIN)/python -m reproduction.run all --out docs/paper

bench: install
	$(BIN)/python benchmarks/speed.py

# Methods are the names of files in benchmarks/field/methods. Fits that are there are not run again: they are in .field.
METHODS ?= pca ica varimax nmf netbic
FIELD := $(BIN)/python -m benchmarks.field
field-small: install
	$(FIELD) fit --small --jobs $(JOBS) --methods $(METHODS)
	$(FIELD) figures --small --methods $(METHODS)

field: install field-environments
	$(FIELD) fit --jobs $(JOBS)
	$(FIELD) figures
	$(FIELD) page

# Versions in these lists are for Python 3.11.
FIELD_LISTS := $(wildcard benchmarks/field/environments/*.txt)
field-environments: $(FIELD_LISTS:benchmarks/field/environments/%.txt=.venv-field/%/.installed)
	@Rscript -e 'library(WGCNA)' >/dev/null 2>&1 || \
	  echo "WGCNA needs R and its package. On Debian: apt install r-base-core r-cran-wgcna"

.venv-field/%/.installed: benchmarks/field/environments/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP) --requirement $<
	@touch $@

pictures: install
	$(BIN)/python docs/pictures.py

# The tools of the site are large: they are installed here, not by every `make install`.
docs: $(VENV)/.installed-docs
	@echo "building the site; its tutorials are run, which takes a few minutes"
	$(BIN)/python -m sphinx -b html -W --keep-going -n -a docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python $(PIP) --editable ".[docs]"
	@touch $@

build: $(VENV)/.installed-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# Each archive is installed with the required dependencies only; then pip resolves the extras without installing them.
check-install:
	@ls dist/*.whl dist/*.tar.gz >/dev/null || { echo "dist has no wheel or no sdist. Run: make build"; exit 1; }
	@set -e; for archive in dist/*.whl dist/*.tar.gz; do \
	  echo "$$archive with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv --clear .venv-install; \
	  .venv-install/bin/python $(PIP) "$$archive"; \
	  .venv-install/bin/netbic --version; \
	  .venv-install/bin/netbic demo --force; \
	  .venv-install/bin/python $(PIP) --dry-run "$$archive[$(RUNTIME_EXTRAS)]"; \
	done

check-tag:
	@grep -qxF "__version__ = \"$${TAG#v}\"" src/netbic/__init__.py || \
	  { echo "the tag '$$TAG' is not v followed by __version__ of src/netbic/__init__.py"; exit 1; }

SCHEMA := $(BIN)/check-jsonschema --builtin-schema
lint-workflows: $(VENV)/.installed-release
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(SCHEMA) vendor.readthedocs .readthedocs.yaml
	$(SCHEMA) vendor.citation-file-format CITATION.cff

$(VENV)/.installed-release: $(VENV)/.installed
	$(BIN)/python $(PIP) --editable ".[release]"
	@touch $@

clean:
	rm -rf .venv .venv-* dist htmlcov netbic-demo .coverage* coverage.xml
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build
