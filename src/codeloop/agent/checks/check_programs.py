"""Programs that test, lint, type-check and build, and those that run them. Rows, no code."""

from collections.abc import Mapping
from typing import Literal

CheckKind = Literal["test", "lint", "types", "build", "all"]
"""What a check checks; `all`: a task such as `check`, whose content only the project knows."""

WRAPPER_PROGRAMS = frozenset(
    (
        *("env", "sudo", "doas", "nice", "ionice", "timeout", "gtimeout", "nohup", "stdbuf", "xvfb-run", "caffeinate"),
        *("taskset", "unbuffer", "xargs", "npx", "pnpx", "bunx", "uvx", "pipx", "cross-env", "dotenv", "direnv", "nyc"),
        *("c8", "nix-shell", "bash", "sh", "zsh", "dash", "ssh", "su", "script", "watchexec", "setarch", "flock"),
    )
)
"""Programs that run the command that they are given."""
RUNNER_SUBCOMMANDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("uv", "pdm", "rye", "pixi", "hatch", "poetry", "pipenv", "devbox", "dotenvx"), ("run",)),
    **dict.fromkeys(("conda", "mamba", "micromamba"), ("run",)),
    **dict.fromkeys(("docker", "podman", "docker-compose", "nerdctl"), ("run", "exec")),
    **dict.fromkeys(("mise", "asdf", "rbenv", "pyenv", "bundle", "kubectl", "devcontainer"), ("exec", "x")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("exec", "x", "dlx")),
    **dict.fromkeys(("nix",), ("develop", "shell", "run")),
    **dict.fromkeys(("coverage",), ("run",)),
}
"""Programs that run the command after one of these words."""
TASK_RUNNER_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake", "just", "task", "poe", "mage", "invoke", "inv", "nox", "rake", "grunt"), ()),
    **dict.fromkeys(("gulp", "jake", "ant", "bb", "doit", "earthly", "scons", "ninja", "b", "pants", "xtask"), ()),
    **dict.fromkeys(("npm", "bun", "composer", "deno"), ("run", "run-script", "task")),
    **dict.fromkeys(("pnpm", "yarn", "turbo", "nx", "lerna"), ("run", "run-script", "")),
    **dict.fromkeys(("uv", "pdm", "rye", "pixi", "hatch", "poetry", "pipenv", "devbox", "mise"), ("run", "r")),
}
"""Programs with tasks of the project's own, and the words of which one stands before a task's name.

"": none has to. A program without such words takes any number of tasks.
"""


def _make_rows(kind: CheckKind, names: str, *subcommands: str) -> dict[str, dict[str, CheckKind]]:
    return {name: dict.fromkeys(subcommands or ("",), kind) for name in names.split()}


CHECK_PROGRAMS: dict[str, dict[str, CheckKind]] = {
    **_make_rows(
        "test", "pytest py.test tox jest vitest mocha ava jasmine tap uvu wtr phpunit pest behat rspec cucumber"
    ),
    **_make_rows(
        "test", "minitest bats shellspec ctest prove busted nosetests nose2 green stestr trial behave robot ginkgo"
    ),
    **_make_rows("test", "unittest doctest gotestsum elm-test testem qunit kyua zunit web-test-runner"),
    **_make_rows("test", "playwright hardhat anchor nimble lein", "test"),
    **_make_rows("test", "cypress codecept", "run"),
    **_make_rows("test", "karma", "start"),
    **_make_rows(
        "lint", "eslint flake8 pylint shellcheck staticcheck hadolint yamllint actionlint ansible-lint stylelint"
    ),
    **_make_rows(
        "lint", "markdownlint oxlint xo standard rubocop standardrb ktlint detekt swiftlint clang-tidy cppcheck"
    ),
    **_make_rows("lint", "ameba luacheck selene tflint phpcs bandit pydocstyle codespell golint revive"),
    **_make_rows("lint", "golangci-lint pre-commit prek", "run"),
    **_make_rows("lint", "biome", "check", "lint", "ci"),
    **_make_rows("lint", "ruff", "check", "format --check"),
    **_make_rows("lint", "black isort rustfmt", "--check"),
    **_make_rows("lint", "prettier", "--check", "-c", "-l", "--list-different"),
    **_make_rows("lint", "helm", "lint"),
    **_make_rows("lint", "terraform", "validate"),
    **_make_rows("types", "mypy pyright basedpyright pytype tsc vue-tsc svelte-check tsd attw psalm"),
    **_make_rows("types", "dmypy", "run", "check"),
    **_make_rows("types", "ty pyrefly flow steep pyre", "check"),
    **_make_rows("types", "phpstan", "analyse", "analyze"),
    **_make_rows("build", "rollup webpack esbuild tsup microbundle unbuild tsdown"),
    **_make_rows("build", "vite parcel next nuxt", "build"),
    **_make_rows("build", "cmake", "--build"),
    **_make_rows("build", "xcodebuild", "build"),
    "go": {"test": "test", "vet": "lint", "build": "build"},
    "cargo": {
        **dict.fromkeys(("test", "t", "nextest run", "miri", "tarpaulin", "llvm-cov"), "test"),
        **dict.fromkeys(("clippy", "fmt --check"), "lint"),
        **dict.fromkeys(("check", "c", "build", "b"), "build"),
    },
    "dotnet": {"test": "test", "build": "build"},
    "swift": {"test": "test", "build": "build"},
    "mix": {
        "test": "test",
        "credo": "lint",
        "format --check-formatted": "lint",
        "dialyzer": "types",
        "compile": "build",
    },
    "sbt": {"test": "test", "testOnly": "test", "compile": "build"},
    "deno": {"test": "test", "lint": "lint", "check": "types"},
    "bun": {"test": "test", "build": "build"},
    **_make_rows("test", "npm pnpm yarn", "test", "t", "tst"),
    "composer": {"test": "test"},
    "node": {"--test": "test"},
    "rails": {"test": "test", "spec": "test"},
    "flutter": {"test": "test", "analyze": "lint", "build": "build"},
    "dart": {"test": "test", "analyze": "lint"},
    "stack": {"test": "test", "build": "build"},
    "cabal": {"test": "test", "build": "build"},
    "dune": {"test": "test", "runtest": "test", "build": "build"},
    "zig": {"test": "test", "build": "build"},
    "crystal": {"spec": "test", "build": "build"},
    "gleam": {"test": "test", "check": "types", "build": "build"},
    "forge": {"test": "test", "build": "build"},
    "rebar3": {"ct": "test", "eunit": "test", "dialyzer": "types", "compile": "build"},
    "meson": {"test": "test", "compile": "build"},
    **{name: {"test": "test", "build": "build"} for name in ("bazel", "bazelisk", "buck2")},
    "ng": {"test": "test", "e2e": "test", "lint": "lint", "build": "build"},
    "astro": {"check": "types", "build": "build"},
    "hatch": {"test": "test", "build": "build"},
    "uv": {"build": "build"},
    "poetry": {"build": "build"},
    "build": {"": "build"},  # python -m build
    "tape": {"": "test"},
    "nox": {"": "test"},
    "artisan": {"test": "test"},
    "setup.py": {"test": "test", "build": "build"},
    "manage.py": {"test": "test", "check": "lint"},
}
"""By program: the subcommands or options that make it check ("": it checks without one), and what each checks."""
INFORMATION_OPTIONS = frozenset(
    (
        "--version",
        "-V",
        "--help",
        "-h",
        "--collect-only",
        "--collectonly",
        "--co",
        "--list",
        "--listTests",
        "--list-tests",
        "--fixtures",
    )
)
"""Options with which a program only prints something about itself or its tests, and checks nothing."""
FILTER_OPTIONS = frozenset(
    (
        *("-k", "-m", "-t", "-g", "-e", "--grep", "-run", "--run", "--testNamePattern", "--filter", "--only"),
        *("--select", "--deselect", "--ignore", "--exclude", "--test", "--example", "--package", "--tests", "-Dtest"),
        *("--testPathPattern", "--testPathPatterns", "--shard", "--test-name-pattern", "--env", "--example-matches"),
        *("--ignore-glob", "--testPathIgnorePatterns", "--findRelatedTests", "--exclude-task"),
    )
)
"""Options that narrow what is checked by their value, the word after them."""
NARROWING_FLAGS = frozenset(
    ("--lf", "--last-failed", "--changed", "--onlyChanged", "--only-failures", "--lib", "--bins")
)
"""Options without a value that narrow what is checked."""
_PYTEST_SETTINGS = frozenset(("-c", "--config-file", "-o", "--override-ini", "--rootdir", "--confcutdir"))
PROGRAM_FILTER_OPTIONS: Mapping[str, frozenset[str]] = {
    "pytest": _PYTEST_SETTINGS,
    "py.test": _PYTEST_SETTINGS,
    "unittest": frozenset(("-p", "--pattern")),
}
"""Options, each with the word after it, by which one program may check less than its project says."""
ATTACHED_VALUE_OPTIONS: Mapping[str, frozenset[str]] = {
    "pytest": frozenset(("-k", "-m", "-c", "-o")),
    "py.test": frozenset(("-k", "-m", "-c", "-o")),
    "unittest": frozenset(("-k",)),
    "ctest": frozenset(("-R", "-E", "-L")),
}
"""Short options of a program whose value may be attached (`-kname`)."""
VALUE_OPTIONS = frozenset(
    (
        *("-n", "-c", "-o", "-W", "-p", "-r", "-j", "-C", "-f", "-R", "-S", "--tb", "--cov", "--cov-report", "--color"),
        *("--reporter", "--config", "--rootdir", "--jobs", "--maxfail", "--log-level", "--project", "--format"),
        *("--timeout", "--durations"),
    )
)
"""Options whose next word is neither a target nor a filter."""
WHOLE_PROJECT_TARGETS = frozenset(
    (".", "./...", "...", "test", "tests", "spec", "specs", "src", "all", "//...", "--all", "--workspace")
)
"""Targets that stand for all of a project: with one of them a check counts as one of everything."""
CANONICAL_NAMES = {
    f"{manager} {word}": "npm test" for manager in ("npm", "pnpm", "yarn") for word in ("test", "t", "tst")
} | {
    **dict.fromkeys(("py.test",), "pytest"),
    **dict.fromkeys(("cargo t", "cargo nextest run"), "cargo test"),
}
"""Commands that are the same check under another name."""
TASK_PROGRAMS = frozenset(("npm test", "tox", "nox", "hatch test", "composer test"))
"""Programs in the table that run whatever the project's settings name, like a task of its own."""
