# Two commands do all the set-up: `make demo` and `make test`. The environment is made in .venv.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
VSCODE := editors/vscode
export PYTHONPATH := $(CURDIR)

.PHONY: demo test lint typecheck lsp lsp-tcp serve eval bench flame data train-smoke format vscode test-vscode test-vscode-e2e clean

demo: $(VENV)/.run  ## the main job: a server, a real file, real edits, the embedded model
	$(PY) -m lsp_server demo

test: $(VENV)/.dev  ## all tests
	$(PY) -m pytest -q

lint: $(VENV)/.dev  ## style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

typecheck: $(VENV)/.dev  ## types
	$(PY) -m mypy

data: $(VENV)/.dev  ## a small corpus for training: a few releases of three small packages, in build/data
	$(PY) -m lsp_server data build --out build/data --only itsdangerous pluggy tenacity --releases 3

train-smoke: $(VENV)/.dev  ## the whole training in small, after `make data`: train, interrupt, resume, export, answer
	$(PY) -m model.training.smoke --data build/data --out build/smoke

format: $(VENV)/.dev  ## rewrite in the house style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lsp: $(VENV)/.run  ## the language server on stdin and stdout
	@$(PY) -m lsp_server lsp

lsp-tcp: $(VENV)/.run  ## the language server on a TCP port of this machine
	$(PY) -m lsp_server lsp --tcp

serve: $(VENV)/.dev  ## the model over HTTP, on this machine
	$(PY) -m lsp_server serve

eval: $(VENV)/.run  ## score the embedded model and its causal baseline on the public test data
	$(PY) -m lsp_server eval --benchmark random-span-light --compare auto causal --execute
	$(PY) -m lsp_server eval --benchmark nep --compare auto causal propagate

bench: $(VENV)/.run  ## speed over editing traces
	$(PY) -m lsp_server bench

flame: $(VENV)/.run  ## where the time of one key goes, as a table and as docs/flame.svg
	$(PY) -m model.evaluation.flame --processor-time --out docs/flame.svg

vscode: $(VSCODE)/node_modules/.installed  ## the VS Code extension, as editors/vscode/redraft.vsix
	cd $(VSCODE) && npm run -s package

test-vscode: $(VSCODE)/node_modules/.installed  ## types, style and unit tests of the VS Code extension
	cd $(VSCODE) && npm run -s check

test-vscode-e2e: $(VENV)/.run vscode  ## the extension in a real VS Code, after `sh editors/vscode/e2e/install.sh`; skips without it
	cd $(VSCODE) && REDRAFT_PYTHON=$(abspath $(PY)) npm run -s e2e

$(VSCODE)/node_modules/.installed: $(VSCODE)/package-lock.json
	cd $(VSCODE) && npm ci --ignore-scripts
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Redraft needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PY) -m pip install -q -c constraints.txt torch
	$(PY) -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PY) -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@
