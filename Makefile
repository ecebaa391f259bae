# Every target sets its own environment up (scripts/setup), with uv when there is one and without when there is none.
# PYTHON=... names the interpreter for a new .venv; ARGS=... goes to the program that a target runs.

BIN := .venv/bin
READY := .venv/.ready
PROGRAM_READY := .venv/.program-ready
CODE := src automation bench tests examples scripts
# Thousands of tests and programs: what is compiled once is not compiled again.
unexport PYTHONDONTWRITEBYTECODE
# Where LC_ALL=C says so, the interpreter would not read the path of a clone that is not ASCII.
export PYTHONUTF8 := 1
ESCAPES := tests/workspace/sandbox/test_attacks.py tests/workspace/git/test_own_git.py tests/workspace/git/test_escapes_by_git.py \
	tests/cli/test_tree_walls.py tests/cli/test_key_origins.py tests/extend/mcp/test_sign_in_walls.py
# Half of what tests do is wait: for processes, sockets, deadlines. The short ones of `make test` have one more a core.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

.DEFAULT_GOAL := help
.PHONY: FORCE help venv demo quick test slow fresh everyday bare faults e2e web web-e2e interop lsp fuzz attacks check format bench tools reference map picture lock clean

help:  ## show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# scripts/setup itself finds out whether anything is to be done: what was moved is not older than what it is made of.
$(READY): FORCE
	@./scripts/setup developer

$(PROGRAM_READY): FORCE
	@./scripts/setup program

venv: $(READY)  ## set .venv up

demo: $(PROGRAM_READY)  ## watch the agent fix a failing test; the model is a recording, no key is needed
	@$(BIN)/codeloop demo $(ARGS)

quick: $(READY)  ## run the tests of what has changed since the branch left main: less than half a minute
	@$(BIN)/python -m scripts.run_changed_tests $(ARGS)

COVERED := $(if $(COVERAGE),--cov=codeloop --cov=codeloop_automation --cov-report= -p tests.support.room_coverage)
test: $(READY)  ## run the tests, but for those of the gates (make check); COVERAGE=1 prints what share of the lines ran
	@$(BIN)/pytest -n $$(($(WORKERS) * 3 / 2)) --dist worksteal -m "not slow and not e2e and not interop and not lsp and not registries" --ignore tests/faults --ignore tests/test_house.py $(addprefix --ignore ,$(ESCAPES)) $(COVERED) $(ARGS)

slow: $(READY)  ## run the tests that take more than 0.15 s of a core each, but for those of `make attacks`
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "slow and not e2e and not interop and not lsp and not registries" --ignore tests/faults --ignore tests/permission/attacks $(addprefix --ignore ,$(ESCAPES)) $(ARGS)

fresh:  ## the demo and the tests on fresh Debian machines of their own, ten minutes each; MACHINES="1 4", or `next`: see scripts/fresh
	@./scripts/fresh $(MACHINES)

everyday: $(READY)  ## install, build, test and commit in sandboxed sessions, from the registries that can be reached
	@$(BIN)/pytest -n $(WORKERS) -rs tests/everyday $(ARGS)

bare: $(READY)  ## run the tests as on a machine where neither namespaces nor Landlock can be had
	@$(BIN)/python tests/support/weak_machine.py no-namespaces,no-landlock $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not e2e and not interop and not lsp and not registries" $(ARGS)

faults: $(READY)  ## break the real program at every named point and go on: kill, full disk, Ctrl-C, two processes
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal tests/faults $(ARGS)

e2e: $(READY)  ## use the terminal UI in tmux as a person does: in process, and attached to a server
	@command -v tmux >/dev/null || (apt-get install -qy tmux >/dev/null 2>&1) || true
	@$(BIN)/pytest -n 2 --dist worksteal -m e2e -rs tests/e2e $(ARGS)

web:  ## build the browser UI into the package; needs node, and npm's registry once
	@cd web && { [ -d node_modules ] || npm ci; } && npm run --silent types && npm run --silent build

web-e2e: $(READY)  ## use the browser UI in Chromium as a person does; needs node, and npm's registry once
	@command -v chromium >/dev/null || (apt-get install -qy chromium >/dev/null 2>&1) || true
	@$(BIN)/pytest -n 2 --dist worksteal -m e2e -rs tests/web $(ARGS)

interop: $(READY)  ## drive the server with the reference's clients, and check its document; needs the network once, and node
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m interop -rs tests/interop $(ARGS)

lsp: $(READY)  ## drive the language servers and formatters that can be installed here; needs the network once
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m lsp -rs tests/lsp tests/workspace/format $(ARGS)

SEEDS ?= $(shell awk 'BEGIN { srand(); for (i = 0; i < 4; i++) printf "%d ", 1000000 * rand() }')
fuzz: $(READY)  ## look for what fixed examples miss, for half an hour; SEEDS="12 99" draws from these
	@CODELOOP_FUZZ=20 $(BIN)/pytest -n $(WORKERS) -m "hypothesis or fuzz" --ignore tests/faults $(ARGS)
	@CODELOOP_FUZZ_SEEDS="$(SEEDS)" $(BIN)/pytest -n 2 -m interop -rs tests/interop/test_document.py $(ARGS)

LINES ?= 1000000
attacks: $(READY)  ## compare what bash does with what was allowed, over a million drawn lines (LINES=50000: fewer); escape from sandboxes
	@CODELOOP_LINES=$(LINES) $(BIN)/pytest -n $(WORKERS) tests/permission/attacks $(ESCAPES) $(ARGS)

check: $(READY)  ## lint, format, types, floors, sizes
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/basedpyright --level error
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest tests/test_house.py $(ARGS)

format: $(READY)  ## format, mend what ruff can mend, write the map
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	@$(BIN)/python -m scripts.build_map

bench: $(READY)  ## print the budgets next to what is measured; ARGS="--only NAME --runs 9"
	@$(BIN)/python -m bench $(ARGS)

tools: $(READY)  ## write what models are told of the tools' parameters
	@$(BIN)/python scripts/build_tools.py

reference: $(READY)  ## write the reference of the library from its docstrings, and the table of models from their rows
	@$(BIN)/python scripts/build_reference.py
	@$(BIN)/python scripts/build_models.py

map: $(READY)  ## write docs/map.md, which says what each module is, from the docstrings
	@$(BIN)/python -m scripts.build_map

picture: $(READY)  ## make the pictures in docs/assets anew: a run of the demo, the terminal UI at work
	@$(BIN)/python -m scripts.record_demo docs/assets/demo.svg
	@$(BIN)/python -m scripts.record_ui docs/assets

lock:  ## resolve the dependencies anew (needs uv)
	./scripts/lock

clean:  ## remove .venv and everything that is made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build bench/results
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
