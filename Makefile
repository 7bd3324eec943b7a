# Every target makes the virtual environment by itself when it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test attack lint bench docs clean

# The paper's example, then the five commands of `gridless example`, which end with a report.
demo: .venv/ready
	$(BIN)/gridless demo --output demo
	$(BIN)/gridless example demo/top_mass --force
	cd demo/top_mass && PATH="$(CURDIR)/$(BIN):$$PATH" sh -ec "$$(grep '^    gridless' README.md)"
	@echo "open demo/top_mass/report.html"

test: .venv/ready
	$(BIN)/python -m pytest

# Half an hour of damaged files and hostile input, then commands killed at random moments.
attack: .venv/ready
	$(BIN)/python -m tests.attack --minutes 30
	$(BIN)/python -m tests.attack --kill 10

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,lint]'
	touch $@

clean:
	rm -rf .venv .venv-sbi demo build dist docs/_build
