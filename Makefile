# `make demo` shows a lesson, `make serve` serves a cluster for kubectl and other clients, `make test` runs all tests, `make check` runs linters, unit tests and measurements.
# They need only python3 and make.
PYTHON ?= python3
VENV := .venv
# Workers of pytest share what it compiles of the tests; where Python writes no bytecode each takes 5 seconds for it.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin

# Unit tests: those of the packages below the command line. Acceptance tests: those that run whole commands.
UNIT := tests/api tests/apiserver tests/controllers tests/demo tests/fuzz tests/importing tests/insight tests/kubelet tests/runtime tests/scheduler tests/server tests/shell tests/storage
ACCEPTANCE := tests/bundles tests/cli tests/clients tests/conformance tests/platforms tests/python tests/site tests/torture $(wildcard tests/test_*.py)
# Tests wait: for processes, for clocks, for quiet. So there are more workers than cores.
CORES := $(shell getconf _NPROCESSORS_ONLN)
PYTEST := $(BIN)/pytest -n $(shell expr $(CORES) \* 3 / 2) --dist worksteal

.PHONY: demo serve test unit coverage acceptance clients test-etcd test-interop test-browser browser etcd torture fuzz bundles check bench bench-short bench-record bench-parts pythons completions man release-check release-build release-inspect release-try release-sbom release-files try-action docs site generated clean

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash tools/demo.sh

# A server on a new cluster with three nodes, or on a folder of yours: make serve STATE=path FLAGS=--port=6443
STATE ?= .demo/served
FLAGS ?= --port=0
serve: $(VENV)/.installed
	@test -e $(STATE)/kubepy.yaml || $(BIN)/kubepy --state $(STATE) init --nodes=3 --bootstrap=full
	@exec $(BIN)/kubepy --state $(STATE) serve $(FLAGS)

test: $(VENV)/.installed
	$(PYTEST)

unit: $(VENV)/.installed
	$(PYTEST) $(UNIT)

# The lines that unit tests run, and the limit of their share: tracing them takes as long again as the tests
coverage: $(VENV)/.installed
	$(PYTEST) $(UNIT) --cov --cov-report= --cov-fail-under=0  # `coverage report` has the limit
	$(BIN)/coverage report

acceptance: $(VENV)/.installed
	$(PYTEST) $(ACCEPTANCE)

# The clients kubernetes, kr8s, lightkube, kopf and helm against `kubepy serve`
clients: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[clients]'
	$(BIN)/pytest tests/clients

torture: $(VENV)/.installed
	$(BIN)/python -m tests.torture

# Disturb the real controllers in the scenarios of tests/fuzz/scenarios; `make test` tries a few seeds of each, and
# `python -m tests.fuzz --mutations` looks whether planted mistakes are found
MINUTES ?= 60
fuzz: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

# The tests of the store in etcd, with those that take long, all recorded cases with their state in etcd, and five minutes
# of random histories; Debian's etcd is installed if there is none
ETCD ?= etcd
ETCD_TESTS := tests/storage/etcd tests/storage/test_contract.py tests/conformance tests/python/test_plugin.py
test-etcd: $(VENV)/.installed etcd
	ETCD=$(ETCD) LONG_ETCD_TESTS=1 $(PYTEST) $(ETCD_TESTS) -k etcd
	ETCD=$(ETCD) $(BIN)/python -m tests.torture etcd --minutes 5

# kubepy and a real kube-apiserver v1.36 on the same etcd: make test-interop KUBE_APISERVER=path
KUBE_APISERVER ?= kube-apiserver
test-interop: $(VENV)/.installed etcd
	@command -v $(KUBE_APISERVER) > /dev/null || { echo "$(KUBE_APISERVER): not found; KUBE_APISERVER=path names one of v1.36"; exit 1; }
	ETCD=$(ETCD) KUBE_APISERVER=$(KUBE_APISERVER) $(BIN)/pytest -n0 tests/storage/etcd/test_interop.py

etcd:
	command -v $(ETCD) > /dev/null || { apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends etcd-server; }

# The page with a cluster in a browser's tab, as static files in build/browser (node and npm build it)
browser: $(VENV)/.installed
	cd browser && npm install --no-package-lock --no-audit --no-fund --silent
	$(BIN)/python tools/build_browser.py build/browser

# Type commands into that page in headless Chromium: make test-browser CHROMIUM=path PICTURES=folder
CHROMIUM ?= /usr/bin/chromium
PICTURES ?=
test-browser: browser
	TEST_BROWSER=1 CHROMIUM=$(CHROMIUM) PICTURES=$(PICTURES) $(BIN)/pytest -n0 tests/platforms/test_browser.py

# Apply, settle, apply again, describe and delete each bundle of manifests in a folder: make bundles DIR=path
DIR ?= tests/bundles
bundles: $(VENV)/.installed
	$(BIN)/python tools/run_bundles.py $(DIR)

check: $(VENV)/.installed
	$(BIN)/ruff check kubepy tests tools packaging
	$(BIN)/ruff format --check --quiet kubepy tests tools packaging
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/measure_house.py
	$(MAKE) unit

# The table of docs/cost.md, measured: make bench ROWS="get label-large"; `python -m tests.benchmarks --help` tells more
ROWS ?=
bench: $(VENV)/.installed
	$(BIN)/python -m tests.benchmarks $(ROWS)

# The same with small clusters, in a minute; fails when a ratio is worse by a third than in tests/benchmarks/recorded.json
bench-short: $(VENV)/.installed
	$(BIN)/python -m tests.benchmarks --short $(ROWS)

# Measure both forms and write them to recorded.json and docs/cost.md
bench-record: $(VENV)/.installed
	$(BIN)/python -m tests.benchmarks --short --record $(ROWS)
	$(BIN)/python -m tests.benchmarks --record $(ROWS)
	$(BIN)/python -m tests.benchmarks --page

# Single parts: serve, plan, timeline, etcd and others
bench-parts: $(VENV)/.installed etcd
	for part in python_api statefulset_update fork plan serve min_ready_seconds seven_days timeline why etcd; do \
	  $(BIN)/python tests/benchmarks/$$part.py || exit 1; done
	$(BIN)/python -m tests.benchmarks.writes

# Environments of other Pythons, with which tests/test_same_bytes.py compares: make pythons PYTHONS="python3.12 python3.13"
PYTHONS ?= python3.12 python3.13 python3.14
pythons: $(VENV)/.installed
	for python in $(PYTHONS); do command -v $$python > /dev/null || continue; \
	  $$python -m venv $(VENV)/python-$$python && $(VENV)/python-$$python/bin/python -m pip install --quiet \
	  --disable-pip-version-check -e '.[explain]'; done

completions: $(VENV)/.installed
	for shell in bash zsh fish; do $(BIN)/kubepy completion $$shell > completions/kubepy.$$shell; done

# The manual pages in man/, made of what `--help` prints
man: $(VENV)/.installed
	$(BIN)/python tools/write_man_pages.py

# A release of the commit that is checked out, up to where it would be published; the release workflow
# runs the same steps (docs/releasing.md)
RELEASE := $(VENV)/release
RELEASE_STEP := $(RELEASE)/bin/python packaging/release.py
release-check: release-build release-inspect release-try release-sbom release-files

release-build: $(RELEASE)/.installed
	$(RELEASE_STEP) build

release-inspect: $(RELEASE)/.installed
	$(RELEASE_STEP) inspect

release-try: $(RELEASE)/.installed
	$(RELEASE_STEP) try

release-sbom: $(RELEASE)/.installed
	$(RELEASE_STEP) sbom

release-files: $(RELEASE)/.installed
	$(RELEASE_STEP) files

# The GitHub Action with a kubepy that it installs, on a repository with two pull requests
try-action: $(VENV)/.installed
	$(BIN)/python -m tests.try_action

$(RELEASE)/.installed: packaging/requirements.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check -r packaging/requirements.txt
	touch $@

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q kubepy
	touch $@

generated: $(VENV)/.installed
	$(BIN)/python tools/generate_schemas.py
	$(BIN)/python tools/generate_typed_dicts.py

docs: $(VENV)/.installed
	$(BIN)/python tools/list_commands.py > docs/commands.md
	$(BIN)/python tools/list_programs.py
	$(BIN)/python tools/draw_timeline.py
	$(BIN)/python tools/generate_reference.py

# The documentation site in build/site; fails on a link that leads nowhere
site: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python tools/build_site.py
	$(BIN)/pytest -n0 tests/site/built.py

clean:
	rm -rf $(VENV) .demo build dist
