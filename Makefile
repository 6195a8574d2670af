# Everything a contributor types. Needs Python 3.11 or newer, git and make; oha or cargo to put load,
# Go for the load tools ghz and k6.
# Each recipe line is one plain command, so that make and not a shell gets the Ctrl-C.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python

# Each process would compile anew what it loads, which takes longer than the loading.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo seeds run manage test chaos soak tools bench-dispatch bench-fidelity bench-detection bench-scale bench-api bench-pages fuzz fuzz-api audit screenshots permissions check lock openapi schemas check-docker clean clean-all

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

demo: ## start Pitwall, measure three commits and compare them (ONCE=1: end after that)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack demo $(if $(ONCE),--once)

seeds: ## reproduce the five reports in miniature (ARGS="--only 002", ARGS="--full": for hours)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack seeds -- $(ARGS)

run: ## start Pitwall and leave it running until Ctrl-C
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack run

manage: ## run a command of manage.py on what `make run` keeps (ARGS="create_team red")
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack manage -- $(ARGS)

test: NAME ?= test
test: ## run the tests on a PostgreSQL and a Redis of their own (ARGS="tests/stats -k change")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m devstack exec --name $(NAME) $(if $(WITHOUT_OHA),--without-oha) -- $(VENV_PYTHON) -m pytest $(ARGS)

chaos: export PITWALL_CHAOS ?= full
chaos: ## break workers, servers, links and hosts under running jobs (PITWALL_CHAOS=short: as in test)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m devstack exec --name chaos -- $(VENV_PYTHON) -m pytest tests/chaos $(ARGS)

soak: ## an hour of small runs on four hosts under random faults; memory, losses, leftovers (ARGS="--minutes 5")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.soak $(ARGS)

tools: ## get oha, ghz and k6 for all checkouts of this user (some minutes; needs cargo and Go)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack.tools oha ghz k6

bench-dispatch: bench-%: ## jobs a minute and CPU time beside ansible, pyinfra, fabric and ssh (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-fidelity: bench-%: ## Pitwall's readings to those of the load tools started by hand (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-scale: bench-%: ## pages and ingest with 10 million trials beside a bare view (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-api: bench-%: ## what reading and starting a run takes in the server, beside a bare view (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-detection: bench-%: ## changes found and false alarms beside Otava and others (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-pages: bench-%: ## what Lighthouse says of the main screens, and how soon a live run shows a result; needs node (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

fuzz: ## try all that reads what others wrote with a million changed inputs (ARGS="--inputs 20000 --seed 2")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.fuzz.inputs $(ARGS)

audit: ## look up all that is pinned among the known vulnerabilities (needs a network)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack.audit

fuzz-api: ## try the API with at least 20,000 made-up requests by schemathesis (ARGS="--requests 2000")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.fuzz $(ARGS)

screenshots: export PITWALL_TEST_PICTURES ?= $(CURDIR)/.pitwall/screenshots
screenshots: ## picture every screen, wide and on a phone, light and dark, into .pitwall/screenshots
	@$(PYTHON) -m devstack.bootstrap --dev
	@rm -rf "$(PITWALL_TEST_PICTURES)"
	@$(VENV_PYTHON) -m devstack exec --name screenshots --without-oha -- $(VENV_PYTHON) -m pytest -q tests/browser/test_screens.py $(ARGS)

check: ## style, import rules, missing migrations, types
	@$(PYTHON) -m devstack.bootstrap --dev
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	.venv/bin/lint-imports
	$(VENV_PYTHON) -m devstack exec --name check --without-oha -- $(VENV_PYTHON) manage.py makemigrations --check --dry-run
	$(VENV_PYTHON) -m mypy orchestrator agents cli devstack perf

check-docker: ## what hadolint and Compose's own reader say of docker/; needs Go
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.deployment.linted

lock: ## write the lock files from pyproject.toml (ARGS=--upgrade)
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) -m devstack.lock $(ARGS)

schemas: ## write the JSON Schema of definitions anew, after a change of their models
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py definition_schema > docs/schemas/definition.json

openapi: ## write the API's schema anew, after a change of the API
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py openapi > docs/api/openapi.json

permissions: ## write the table of who may do what anew, after a change of it
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py permissions > docs/permissions.md

clean: ## remove the tests' servers and all caches; the demo's data stay
	rm -rf .pitwall/test* .pitwall/check* .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find orchestrator agents devstack tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-all: clean ## remove the virtual environment and the demo's data as well
	rm -rf .pitwall .venv staticfiles
