"""Rows of compilers, interpreters, build tools, task runners, and of what tests,
lints and checks types.
"""

from codeloop.shell.program_row import ProgramRow, list_by_name
from codeloop.shell.script_files import list_backups

_ROWS = {
    "Rscript julia lua luajit nodejs runghc runhaskell ts-node tsx": ProgramRow(
        is_interpreter=True
    ),
    """
actionlint ameba ansible-lint bandit brakeman clang-tidy codespell cppcheck cspell detekt erb_lint
eslint flake8 golint hadolint haml-lint hlint knip ktlint luacheck markdownlint markdownlint-cli2
oxlint perlcritic phpcs pycodestyle pydocstyle pyflakes pylint revive rubocop selene shellcheck standard
standardrb staticcheck stylelint swiftlint tflint typos vulture xo yamllint
""": ProgramRow(checks="lint"),
    "anchor artisan hardhat playwright": ProgramRow(checks="test: test"),
    """
ant b doit earthly grunt gulp inv invoke jake mage pants poe scons xtask
""": ProgramRow(tasks="*"),
    "as c++ cc clang clang++ g++ gcc gfortran ld rustc": ProgramRow(
        operands="r",
        options="""
-o=w -MF=w -MT=- -MQ=- -I=n -L=n -isystem=n -include=r -D=- -U=- -l=- -x=- -std? -T=r -Xlinker=-
-z=- -e=- -u=- -B=n -A=- --param=-
""",
    ),
    "astro": ProgramRow(checks="types: check; build: build"),
    "attw basedpyright psalm pyright pytype stubtest svelte-check tsc tsd tsgo\nvue-tsc": ProgramRow(
        checks="types"
    ),
    "ava borp jasmine jest mocha qunit tap tape testem uvu vitest web-test-runner wtr": ProgramRow(
        checks="test", language="js", modes="run related"
    ),
    "bats shellspec zunit": ProgramRow(checks="test", language="shell"),
    "behat pest phpunit": ProgramRow(checks="test", language="php"),
    "behave doctest green nose2 nosetests robot stestr trial ward": ProgramRow(
        checks="test", language="python", modes="run"
    ),
    "busted cucumber cucumber-js elm-test kyua prove": ProgramRow(checks="test"),
    "ginkgo gotestsum": ProgramRow(checks="test", language="go", modes="run"),
    "minitest rspec": ProgramRow(checks="test", language="ruby"),
    "R": ProgramRow(is_interpreter=True, checks="all: CMD check; build: CMD build, CMD INSTALL"),
    "bazel bazelisk buck2": ProgramRow(checks="test: test; build: build", language="bazel"),
    "Build dzil forge": ProgramRow(checks="test: test; build: build"),
    "biome": ProgramRow(checks="lint: check, lint, ci"),
    "autopep8 yapf": ProgramRow(checks="format: --diff, -d"),
    "black isort rustfmt": ProgramRow(checks="format: --check, --check-only, --diff"),
    "build esbuild microbundle rollup tsdown tsup unbuild webpack": ProgramRow(checks="build"),
    "clang-format": ProgramRow(checks="format: --dry-run, -n"),
    "codecept cypress": ProgramRow(checks="test: run"),
    "cross": ProgramRow(checks="test: test; lint: clippy; build: check, build", language="rust"),
    "crystal": ProgramRow(checks="test: spec; build: build"),
    "ctest": ProgramRow(checks="test", narrows="-E? -L? -R?", enters="--test-dir"),
    "dmypy": ProgramRow(checks="types: run, check"),
    "dotenv nix-shell": ProgramRow(runs_words="command"),
    "dprint pint taplo": ProgramRow(
        checks="lint: lint; format: check, fmt --check, format --check, --test"
    ),
    "dune": ProgramRow(
        checks="test: test, runtest, build @runtest, build @test; format: build @fmt; build: build"
    ),
    "flow pyre pyrefly steep ty zuban": ProgramRow(checks="types: check"),
    "gmake ninja": ProgramRow(tasks="*", enters="-C"),
    "fourmolu ormolu": ProgramRow(checks="format: --mode check"),
    "gofmt goimports gofumpt shfmt": ProgramRow(checks="format: -l, -d"),
    "golangci-lint prek": ProgramRow(checks="lint: run"),
    "karma": ProgramRow(checks="test: start", language="js"),
    "manage.py": ProgramRow(checks="test: test; lint: check", language="python"),
    "meson": ProgramRow(checks="test: test; build: compile", enters="-C"),
    "next nuxt parcel vite": ProgramRow(checks="build: build"),
    "ng": ProgramRow(checks="test: test, e2e; lint: lint; build: build"),
    "node": ProgramRow(
        options="-v --version",
        reads="option max:0",
        is_interpreter=True,
        checks="test: --test",
        language="js",
    ),
    "nox": ProgramRow(checks="test", tasks="*"),
    "perl": ProgramRow(
        operands="r",
        options="-e=- -E=- -i?!edit -l? -0? -F=- -M=- -m=- -I=n -x? -C? -D?",
        find_more_uses=list_backups,
        is_interpreter=True,
    ),
    "php-cs-fixer": ProgramRow(checks="format: check, fix --dry-run"),
    "phpstan": ProgramRow(checks="types: analyse, analyze"),
    "prettier": ProgramRow(checks="format: --check, -c, -l, --list-different"),
    "pypy pypy3": ProgramRow(is_interpreter=True, runs_after="-m"),
    "py.test pytest": ProgramRow(
        checks="test",
        narrows="-c? -k? -m? -o? --config-file --confcutdir --override-ini --rootdir",
        language="python",
    ),
    "python python3": ProgramRow(
        options="-V -VV --version", reads="option max:0", is_interpreter=True, runs_after="-m"
    ),
    "swiftformat": ProgramRow(checks="format: --lint"),
    "rails": ProgramRow(checks="test: test, spec", language="ruby"),
    "rebar3": ProgramRow(checks="test: ct, eunit; types: dialyzer; build: compile"),
    "ruby": ProgramRow(
        operands="r",
        options="-v --version",
        risky="-e=- -i?!edit -l? -0? -F=- -I=n -r=- -C=n -x? -K? -W? -E=-",
        find_more_uses=list_backups,
        reads="option max:0",
        is_interpreter=True,
    ),
    "unittest": ProgramRow(
        checks="test",
        narrows="-k? -p --pattern",
        language="python",
        modes="discover",
        locates="-s --start-directory",
        ignores="-t --top-level-directory",
    ),
}
PROGRAMS = list_by_name(_ROWS)
