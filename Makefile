# Everything that a contributor types. Needs Python 3.11 or newer, git and make; load tools need oha or cargo, and Go for
# ghz and k6. Each recipe line is one plain command, so that make and no shell gets the Ctrl-C.

PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
BENCHMARKS := bench-api bench-detection bench-dispatch bench-disturbance bench-fidelity bench-pages bench-scale
# Runs a command on a PostgreSQL and a Redis of its own; the first option is its name.
WITH_SERVERS := $(VENV_PYTHON) -m devstack exec --name

# Without byte code each process compiles again what it imports, which takes longer than the import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env dev-env demo seeds run manage test chaos soak tools vm-test fuzz fuzz-api audit screenshots pictures check check-docker lock \
	generate openapi schemas permissions load-tools clean clean-all $(BENCHMARKS)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

env:
	@$(PYTHON) -m devstack.bootstrap

dev-env:
	@$(PYTHON) -m devstack.bootstrap --dev

demo: env ## start Pitwall, measure three commits and compare them (ONCE=1 ends afterwards)
	@$(VENV_PYTHON) -m devstack demo $(if $(ONCE),--once)

seeds: env ## reproduce the five reports in short form (ARGS="--only 002"; ARGS=--report takes 3 hours)
	@$(VENV_PYTHON) -m devstack seeds -- $(ARGS)

run: env ## start Pitwall until Ctrl-C; the data stay
	@$(VENV_PYTHON) -m devstack run

manage: env ## run a command of manage.py on the data of `make run` (ARGS="create_team red")
	@$(VENV_PYTHON) -m devstack manage -- $(ARGS)

tools: env ## install oha, ghz and k6 for all checkouts of this user (minutes; needs cargo and Go)
	@$(VENV_PYTHON) -m devstack.tools oha ghz k6

test: NAME ?= test
test: dev-env ## run the tests, each process on its own PostgreSQL and Redis (ARGS="tests/stats", ARGS="-m slow")
	@$(VENV_PYTHON) -m tests --name $(NAME) $(ARGS)

check: dev-env ## check style, imports, migrations and types
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	$(if $(wildcard .venv/bin/biome),.venv/bin/biome ci --colors=off,@echo "No Biome for this platform: JavaScript was not checked.")
	.venv/bin/djhtml --check --tabwidth 2 templates orchestrator/api/templates
	.venv/bin/lint-imports
	$(WITH_SERVERS) check --without-oha -- $(VENV_PYTHON) manage.py makemigrations --check --dry-run
	$(VENV_PYTHON) -m mypy orchestrator agents cli devstack perf

check-docker: dev-env ## check docker/ with hadolint and the reader of Compose files (needs Go)
	@$(VENV_PYTHON) -m tests.deployment.linted

chaos: export PITWALL_CHAOS ?= full
chaos: dev-env ## break workers, servers, links and hosts under running jobs (PITWALL_CHAOS=short)
	@$(WITH_SERVERS) chaos -- $(VENV_PYTHON) -m pytest tests/chaos $(ARGS)

vm-test: dev-env ## test the setup of a host on an emulated machine (needs qemu-system-x86, mmdebstrap)
	@$(WITH_SERVERS) vm -- $(VENV_PYTHON) -m pytest -v tests/vm/real_kernel.py $(ARGS)

fuzz: dev-env ## give a million changed inputs to every reader (ARGS="--inputs 20000 --seed 2")
	@$(VENV_PYTHON) -m tests.fuzz.inputs $(ARGS)

fuzz-api: dev-env ## send at least 20,000 generated requests to the API (ARGS="--requests 2000")
	@$(VENV_PYTHON) -m tests.fuzz $(ARGS)

screenshots: export PITWALL_TEST_PICTURES ?= $(CURDIR)/.pitwall/screenshots
screenshots: dev-env ## take pictures of every screen, into .pitwall/screenshots
	@rm -rf "$(PITWALL_TEST_PICTURES)"
	@$(WITH_SERVERS) screenshots --without-oha -- $(VENV_PYTHON) -m pytest -q tests/browser/test_screens.py $(ARGS)

pictures: export PITWALL_PICTURES ?= $(CURDIR)/docs/images
pictures: dev-env ## measure nine commits and write the pictures of the README (10 minutes; needs a quiet machine)
	@$(WITH_SERVERS) pictures -- $(VENV_PYTHON) -m pytest -q tests/browser/readme_pictures.py $(ARGS)

bench-api: ## benchmark requests to the API next to a bare Django view (all: ARGS=--short, ARGS=--keep)
bench-detection: ## benchmark change detection and verdicts of runs next to Otava and others (ARGS="--only runs")
bench-dispatch: ## benchmark jobs a minute and CPU time next to ansible, pyinfra, fabric and ssh
bench-disturbance: ## show how much a busy neighbour moves results, and whether the checks detect it
bench-fidelity: ## compare Pitwall's numbers with those of the load tools alone
bench-pages: ## run Lighthouse on the main screens, and time the page of a live run (needs node)
bench-scale: ## benchmark pages and ingest with 10 million trials next to a bare Django view
$(BENCHMARKS): bench-%: dev-env
	@$(VENV_PYTHON) -m perf.$* $(ARGS)

soak: dev-env ## run for an hour under random faults; check memory and losses (ARGS="--minutes 5")
	@$(VENV_PYTHON) -m perf.soak $(ARGS)

audit: env ## look up known vulnerabilities of all pinned packages (needs a network)
	@$(VENV_PYTHON) -m devstack.audit

lock: env ## write the lock files from pyproject.toml (ARGS=--upgrade)
	$(VENV_PYTHON) -m devstack.lock $(ARGS)

generate: openapi schemas permissions load-tools ## write all generated files

openapi: env ## write docs/api/openapi.json
	$(VENV_PYTHON) manage.py openapi > docs/api/openapi.json

schemas: env ## write docs/schemas
	$(VENV_PYTHON) manage.py definition_schema > docs/schemas/definition.json
	$(VENV_PYTHON) manage.py command_line_schema > docs/schemas/command-line.json

permissions: env ## write docs/permissions.md
	$(VENV_PYTHON) manage.py permissions > docs/permissions.md

load-tools: env ## write docs/load-tools.md
	$(VENV_PYTHON) manage.py loadtools > docs/load-tools.md

clean: ## remove the servers of the tests and all caches; the data of the demo stay
	rm -rf .pitwall/test* .pitwall/check* .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	find orchestrator agents devstack perf tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-all: clean ## remove the virtual environment and all data as well
	rm -rf .pitwall .venv staticfiles
