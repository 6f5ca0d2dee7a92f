# Every target makes the environment .venv when it is missing. `make help` lists them.
PYTHON ?= python3.11
PYTHON310 ?= python3.10
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
OUT ?= runs/sample

.DEFAULT_GOAL := help
.PHONY: help env train test test-slow test-browser check smoke-classic format configs lock licences \
  audit clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

$(READY): setup.py constraints-modern.txt
	@echo "Making $(VENV) with $(PYTHON): torch, what AllenNLP needs, AllenNLP (about 6 GB on disk, a few minutes)"
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet -c constraints-modern.txt -e '.[dev]'
	$(RUN)/pip install --quiet --no-deps allennlp==2.10.1 allennlp-models==2.10.1
	@# allennlp-models looks for this NLTK data at every start and would try to download it; nothing here uses it.
	mkdir -p $(VENV)/nltk_data/tokenizers/punkt
	touch $@

env: $(READY)  ## only make the environment .venv

train: $(READY)  ## train on the embedded sample, then evaluate and predict
	rm -rf $(OUT)
	$(RUN)/allennlp train training_configs/mr.jsonnet -s $(OUT)
	$(RUN)/allennlp evaluate $(OUT)/model.tar.gz fixtures/mr/rt_val.txt
	echo '{"sentence": "a warm , funny and quietly moving portrait of two sisters ."}' > $(OUT)/input.jsonl
	$(RUN)/allennlp predict $(OUT)/model.tar.gz $(OUT)/input.jsonl --silent --output-file $(OUT)/output.jsonl
	@cat $(OUT)/output.jsonl

test: $(READY)  ## the fast tests, in two processes, under a minute
	$(RUN)/python -m pytest --numprocesses 2

test-slow: $(READY)  ## the tests that run real commands in processes of their own, some minutes
	@# Two threads that share a core wait for each other more than they compute.
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -m slow --numprocesses 2 --dist loadfile

test-browser: $(READY)  ## drive a report page in headless Chromium, which must be installed
	$(RUN)/python -m pytest -m browser

check: $(READY)  ## lint, floors and types
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/lint-imports
	$(RUN)/mypy

format: $(READY)  ## format the code and mend what the linter can
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

smoke-classic:  ## install AllenNLP's own pins for Python 3.10 into .venv-classic and train the sample there
	$(PYTHON310) -m venv .venv-classic
	.venv-classic/bin/pip install --quiet -c constraints-classic.txt -e .
	mkdir -p .venv-classic/nltk_data/tokenizers/punkt
	rm -rf runs/classic
	.venv-classic/bin/allennlp train training_configs/mr.jsonnet -s runs/classic \
	  -o "import 'training_configs/overrides/smoke.libsonnet'"
	.venv-classic/bin/allennlp evaluate runs/classic/model.tar.gz fixtures/mr/rt_val.txt
	head -n 5 fixtures/mr/rt_val.txt > runs/classic/rows.txt
	.venv-classic/bin/allennlp predict runs/classic/model.tar.gz runs/classic/rows.txt --use-dataset-reader --silent \
	  --output-file runs/classic/predictions.jsonl
	test "$$(wc -l < runs/classic/predictions.jsonl)" = 5

configs: $(READY)  ## write the .json twin of every config, for machines without jsonnet
	$(RUN)/python training_configs/write_json.py

lock: $(READY)  ## write supply/modern.lock: every file that is installed, with its hash; minutes
	$(RUN)/python supply/lock.py

licences: $(READY)  ## write supply/licences.md: the licence of every package in the lock
	$(RUN)/python supply/licences.py

audit:  ## ask the package index for known vulnerabilities of what is in the lock
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --strict --disable-pip --require-hashes -r supply/modern.lock

clean:  ## remove .venv and the sample runs
	rm -rf $(VENV) .venv-classic .venv-audit runs
