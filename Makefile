# All commands of a contributor. Needs Python 3.11 or newer, git and make; oha or cargo for load;
# Go for the load tools ghz and k6.
# Each recipe line is one plain command, so that make gets the Ctrl-C, not a shell.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python

# Without this, each process would compile its modules again, which takes longer than loading them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo seeds run manage test chaos soak tools bench-dispatch bench-fidelity bench-detection bench-scale bench-api bench-pages fuzz fuzz-api audit screenshots permissions check lock openapi schemas check-docker clean clean-all

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

demo: ## start Pitwall, measure three commits and compare them (ONCE=1: end after that)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack demo $(if $(ONCE),--once)

seeds: ## reproduce the five reports in miniature (ARGS="--only 002"; ARGS="--full" takes hours)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack seeds -- $(ARGS)

run: ## start Pitwall and leave it running until Ctrl-C
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack run

manage: ## run a command of manage.py on the data of `make run` (ARGS="create_team red")
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack manage -- $(ARGS)

test: NAME ?= test
test: ## run the tests on a separate PostgreSQL and Redis (ARGS="tests/stats -k change")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m devstack exec --name $(NAME) $(if $(WITHOUT_OHA),--without-oha) -- $(VENV_PYTHON) -m pytest $(ARGS)

chaos: export PITWALL_CHAOS ?= full
chaos: ## break workers, servers, links and hosts during jobs (PITWALL_CHAOS=short: as in test)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m devstack exec --name chaos -- $(VENV_PYTHON) -m pytest tests/chaos $(ARGS)

soak: ## one hour of small runs on four hosts with random faults: memory, losses, leftovers (ARGS="--minutes 5")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.soak $(ARGS)

tools: ## install oha, ghz and k6 for all checkouts of this user (some minutes; needs cargo and Go)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack.tools oha ghz k6

bench-dispatch: bench-%: ## jobs per minute and CPU time, compared with ansible, pyinfra, fabric and ssh (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-fidelity: bench-%: ## Pitwall's results, compared with load tools started by hand (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-scale: bench-%: ## pages and ingest with 10 million trials, compared with an empty view (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-api: bench-%: ## cost of reading and starting a run in the server, compared with an empty view (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-detection: bench-%: ## detected changes and false alarms, compared with Otava and others (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

bench-pages: bench-%: ## Lighthouse results of the main screens, and delay of results in a live run; needs node (ARGS=--short)
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

fuzz: ## test all parsers of external data with a million modified inputs (ARGS="--inputs 20000 --seed 2")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.fuzz.inputs $(ARGS)

audit: ## check all pinned packages for known vulnerabilities (needs a network)
	@$(PYTHON) -m devstack.bootstrap
	@$(VENV_PYTHON) -m devstack.audit

fuzz-api: ## test the API with at least 20,000 generated requests of schemathesis (ARGS="--requests 2000")
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.fuzz $(ARGS)

screenshots: export PITWALL_TEST_PICTURES ?= $(CURDIR)/.pitwall/screenshots
screenshots: ## write screenshots of every screen, desktop and phone, light and dark, to .pitwall/screenshots
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

check-docker: ## check docker/ with hadolint and Compose's parser; needs Go
	@$(PYTHON) -m devstack.bootstrap --dev
	@$(VENV_PYTHON) -m tests.deployment.linted

lock: ## write the lock files from pyproject.toml (ARGS=--upgrade)
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) -m devstack.lock $(ARGS)

schemas: ## generate the JSON Schema of definitions
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py definition_schema > docs/schemas/definition.json

openapi: ## generate the API's schema
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py openapi > docs/api/openapi.json

permissions: ## generate docs/permissions.md
	@$(PYTHON) -m devstack.bootstrap
	$(VENV_PYTHON) manage.py permissions > docs/permissions.md

clean: ## remove the servers of the tests and all caches; the demo's data stay
	rm -rf .pitwall/test* .pitwall/check* .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find orchestrator agents devstack tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-all: clean ## also remove the virtual environment and the demo's data
	rm -rf .pitwall .venv staticfiles
