# make chat   set up .venv when there is none, then chat in the terminal (data under data/)
# make test   set up .venv with the development tools, and a browser where apt can; then lint, types and the tests
# make campaigns  what tries the same again with kills, attacks and whole matrices; FORM=short is what CI runs of it
# make test-postgres  the integration tests with their stores on a PostgreSQL server that it starts
# make check  lint, types and the tests without the journeys, on the environment that is already there: for every commit
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := bench/.peers
REAL := bench/.real
# Tests start the program hundreds of times: to compile it anew each time takes longer than to start it.
unexport PYTHONDONTWRITEBYTECODE
# Recipes below never reach out for a newer pip, and keep the screen quiet unless something fails.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: chat venv browser test campaigns test-postgres check lint types format bench bench-against bench-recall bench-scale bench-load bench-year soak drill bench-peers real-model crash faults fuzz leaks attack container requirements docs pictures page-pictures clean

chat: $(VENV)/.runtime
	@$(BIN)/remora chat

venv: $(VENV)/.dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Remora needs Python 3.11 or newer; $$($(PYTHON) --version) is what '$(PYTHON)' starts. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.txt pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) (once; takes about a minute) ..." >&2
	@$(PIP) install --require-hashes -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@echo "Adding the development tools ..." >&2
	@$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@

# The tests of the page need browsers. Where none can be installed they are skipped, and the end of the run names them.
browser:
	@missing=; for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && break; done || missing=chromium; \
	command -v firefox-esr >/dev/null || missing="$$missing firefox-esr"; [ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing for the tests of the page: $$missing ..." >&2; apt-get update -qq >/dev/null 2>&1; \
	  for name in $$missing; do DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$name >/dev/null 2>&1 || \
	    echo "It could not be installed; see: apt-get install $$name" >&2; done; \
	else \
	  echo "Some tests of the page are skipped. On Debian: sudo apt-get install $$missing" >&2; \
	fi

# A file at a time on each core, begun in the order of the folders.
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

test:
	@$(MAKE) --no-print-directory -j2 venv browser
	@$(MAKE) --no-print-directory lint
	@$(BIN)/mypy & types=$$!; $(PYTEST) -m "not campaign and not postgres"; tests=$$?; wait $$types && exit $$tests

# The tests marked `campaign`, and some on PostgreSQL. Without FORM=short also the long forms, which take hours.
campaigns: venv browser
	@$(if $(filter short,$(FORM)),,REMORA_POISON_STRIDE=1) $(PYTEST) -m "(campaign or postgres)$(if $(filter short,$(FORM)), and not campaign(long=True))" $$(grep -rlE 'mark\.(campaign|postgres)' tests --include='test_*.py'); marked=$$?; \
	  $(PYTEST) --postgres $(ON_POSTGRES); exit $$((marked + $$?))
ifneq ($(FORM),short)
	@$(MAKE) --no-print-directory crash faults leaks attack test-postgres
endif

# Integration tests that the short form runs on PostgreSQL: the way of a message, the work of the night, and reads that
# look past their scope.
ON_POSTGRES := $(foreach name,delivery jobs enrich privacy,tests/integration/test_$(name).py)

# All integration tests with their stores on a PostgreSQL server of their own.
test-postgres: venv
	$(PYTEST) --postgres tests/integration

check: lint types
	$(PYTEST) -m "not campaign and not postgres" --ignore tests/journeys

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

# The pages of commands, options and the API, made from the tables and models; the conversation in README.md, made by
# holding it.
docs:
	$(BIN)/python -m bench.commands > docs/commands.md
	$(BIN)/python -m bench.options > docs/configuration.md
	$(BIN)/python -m bench.openapi > docs/openapi.json
	$(BIN)/python -m bench.conversation --write

# The pictures in README.md, drawn from the program at a terminal.
pictures: venv
	$(BIN)/python -m bench.pictures

# The web page in a browser, every page in both themes and two widths; with WRITE=--write also those in README.md.
page-pictures: venv
	$(BIN)/python -m bench.page_pictures $(WRITE)

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m bench.turn --engine both
	$(BIN)/python -m bench.truth

# This tree and another revision in turns, with the ratio of each figure; without REV, the last tag before this commit:
# make bench-against REV=v0.1.0 WHAT="turn --sessions 1 recall" PAIRS=3
bench-against: venv
	@$(BIN)/python -m bench.against $(REV) --what "$(or $(WHAT),turn)" --pairs $(or $(PAIRS),5)

# What recall finds on public data: make bench-recall DATA="FILE_OR_FOLDER ..."
bench-recall: venv
	$(BIN)/python -m bench.recall $(DATA)

# What recall costs from a thousand to a million rows; some minutes and 4 GB of temporary files.
bench-scale: venv
	$(BIN)/python -m bench.scale

# The whole process under load; some twelve minutes. One scenario: make bench-load SCENARIOS=flooder
bench-load: venv
	$(BIN)/python -m bench.load $(SCENARIOS)

# Three days of 50 people in some ten minutes, while models, network, disk and clock fail: make soak SOAK="--hours 24"
soak: venv
	$(BIN)/python -m bench.soak $(SOAK)

# A lost machine and the way back, by the commands that an operator types; some minutes: make drill DRILL="--messages 1000"
drill: venv
	$(BIN)/python -m bench.drill $(DRILL)

# A simulated year of 20 people, with the work of its nights; some twenty minutes: make bench-year DATA="FILE ..."
bench-year: venv
	$(BIN)/python -m bench.year $(DATA) --picture docs/design/year.png

# Remora beside mem0, in an environment apart: make bench-peers DATA=FILE
bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m bench.peers $(DATA)

$(PEERS)/.ready: bench/peers-requirements.txt pyproject.toml | $(BIN)/python
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --disable-pip-version-check --quiet install -e . -r bench/peers-requirements.txt
	@touch $@

# Conversations with a real small model on this machine, in an environment apart. Without a prebuilt wheel for it,
# llama.cpp is compiled first, which takes some ten minutes: make real-model ARGS="--turns 5 --contexts 2048"
real-model: $(REAL)/.ready
	$(REAL)/bin/python -m bench.real_model $(ARGS)

$(REAL)/.ready: bench/real-requirements.txt pyproject.toml | $(BIN)/python
	@echo "Setting up $(REAL) (once; may compile llama.cpp) ..." >&2
	@$(BIN)/python -m venv $(REAL)
	@$(REAL)/bin/python -m pip --disable-pip-version-check --quiet install -e . -r bench/real-requirements.txt
	@touch $@

# Kills the bot many times over; the short form of the campaigns does it a few times. One of six: PLATFORM=telegram,
# PLATFORM=discord or PLATFORM=reminders (each prints one line of JSON and takes some 15 minutes), PLATFORM=replicas (the
# same, with its PostgreSQL server), PLATFORM=terminal, which has the work of the night with it, or PLATFORM=page; KILLS=
# sets how often.
crash: venv
ifneq ($(filter terminal,$(or $(PLATFORM),terminal)),)
	@REMORA_KILLS=$${KILLS:-100} $(BIN)/python -m pytest -q tests/crash/test_terminal_crash.py \
	  tests/crash/test_night_crash.py >&2
endif
	@for world in $(filter telegram discord reminders replicas,$(or $(PLATFORM),telegram discord reminders replicas)); do \
	  $(BIN)/python -m tests.crash.$${world}_world --kills $${KILLS:-200} || exit 1; done
ifneq ($(filter page,$(or $(PLATFORM),page)),)
	@REMORA_KILLS=$${KILLS:-30} $(BIN)/python -m pytest -q tests/crash/test_page_crash.py >&2
endif

# Every operation of the store, the channel and the model fails once, in turn; and people, kills and clocks at random.
faults: venv
	REMORA_NTH_STRIDE=1 $(BIN)/python -m pytest -q tests/integration/test_nth_failure.py
	REMORA_MACHINE_STEPS=$${STEPS:-10000} $(BIN)/python -m pytest -q tests/integration/test_delivery_machine.py

# Property tests with new random examples, a thousand each, and 2,000 orders in which messages may be read; `make check`
# always draws the same ones.
fuzz: venv
	REMORA_EXAMPLES=fuzz $(BIN)/python -m pytest -q -n auto tests/unit
	REMORA_EXAMPLES=fuzz REMORA_ORDERS=2000 $(BIN)/python -m pytest -q tests/integration/test_order_of_reading.py

# People tell, forget, link and unlink in 10,000 random steps; nobody may read what is not theirs.
leaks: venv
	REMORA_LEAK_STEPS=$${STEPS:-10000} $(BIN)/python -m pytest -q tests/integration/test_scope_machine.py

# Attacks a running bot by every scenario of tests/attack, two at a time; half an hour on two free cores. Another checkout, or one scenario:
# make attack ATTACK="--target ../other --only native" (the short form of the campaigns tries a bit of each).
attack: venv
	@$(BIN)/python -m tests.attack $(ATTACK)

# Builds the image without a daemon and lives in it: a chat, a kill, an update, a restore. Needs root, buildah and
# debootstrap; five minutes after the first time.
container: venv
	@$(BIN)/python -m bench.container

# The pins cover Python 3.11 to 3.13 on every platform; run this after changing pyproject.toml.
requirements: $(BIN)/python
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra build pyproject.toml -o requirements.txt
	echo 'psycopg[binary]>=3.2' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 --constraint requirements.txt - -o requirements-postgres.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra build --extra bench --extra mcp --extra otel --extra postgres --extra dev pyproject.toml -o requirements-dev.txt

clean:
	rm -rf $(VENV) $(PEERS) $(REAL) .mypy_cache .pytest_cache .ruff_cache .hypothesis
