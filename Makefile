# `make demo` shows the main job, `make test` runs every test. Both need nothing but python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test torture check bench completions docs clean

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash tools/demo.sh

test: $(VENV)/.installed
	$(BIN)/pytest -n 4 --dist worksteal

torture: $(VENV)/.installed
	$(BIN)/python -m tests.torture

check: $(VENV)/.installed
	$(BIN)/ruff check kubepy tests tools
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	$(BIN)/python tests/benchmarks/start_up.py
	$(BIN)/python tests/benchmarks/daemonset_1000_nodes.py
	$(BIN)/python tests/benchmarks/statefulset_update.py

completions: $(VENV)/.installed
	for shell in bash zsh fish; do $(BIN)/kubepy completion $$shell > completions/kubepy.$$shell; done

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q kubepy
	touch $@

docs: $(VENV)/.installed
	$(BIN)/python tools/list_commands.py > docs/commands.md

clean:
	rm -rf $(VENV) .demo build dist
