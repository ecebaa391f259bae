"""The checks that a turn has run (tests, linters, types, builds), and whether files changed after them. Pure."""

import re
from collections.abc import Iterable

from codeloop.schema.part import CHECK, Part, ToolPart, ToolStateCompleted
from codeloop.schema.wire import Wire, replace

_EDITS = frozenset({"edit", "multiedit", "write", "apply_patch"})
_CHECK = re.compile(
    r"\b(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|ava|mypy|pyright|basedpyright|tsc|eslint"
    r"|biome (?:check|lint)|ruff check|flake8|pylint|ctest|phpunit|phpstan|rspec|bats|shellcheck|golangci-lint"
    r"|go (?:test|vet|build)|cargo (?:test|nextest|clippy|check|build)|dotnet (?:test|build)|swift (?:test|build)"
    r"|mix test|sbt test|deno (?:test|lint|check)|mvn \S*.*\b(?:test|verify)|gradlew? .*\b(?:test|check|build)"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? (?:t\b|test|lint|check|typecheck|build)|node --test|rake (?:test|spec)"
    r"|(?:make|just) (?:\S+ )*?(?:test|check|lint|build|types)|(?:run_?)?(?:tests?|checks?)\.(?:sh|py|js))"
    r"(?![\w/-])",  # a folder may have such a name
    re.IGNORECASE,
)
_PROSE = (".md", ".rst", ".adoc")
"""Suffixes of files that checks ignore: a line in a changelog leaves the last check valid."""
_LOOKS = re.compile(r"\s*(?:cat|ls|grep|rg|head|tail|sed|find|echo|git|which|pip|wc|less|diff|cp|mv|rm|mkdir|touch)\b")


_FAILURE = re.compile(
    r"^=+ .*\b\d+ (?:failed|errors?)\b.* =+$|^\d+ failed\b|^(?:FAILED|ERROR) \S+\.py|^FAILED \("
    r"|^ *Tests:? +\d+ failed|^Test Suites: \d+ failed|^ +\d+ failing$|^FAIL(?:\t|$)|^--- FAIL"
    r"|^test result: FAILED|^error(?:\[E\d+\])?: |\berror TS\d+:|^Found [1-9]\d* errors?\b|^[1-9]\d* errors?,"
    r"|\b\d+ problems? \([1-9]|^Tests: \d+, .*(?:Failures|Errors): [1-9]|^make: \*\*\* |^npm (?:ERR!|error)",
    re.MULTILINE,
)
"""A line by which a known program says that something failed."""


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended), whether no file was edited after it, and if it failed.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found: there its own closing
    line counts.
    """

    command: str
    exit_code: int | None
    after_last_edit: bool
    failed: bool


def is_check(command: str) -> bool:
    """Return whether a command tests, lints, type-checks or builds, and does not only look at such a file."""
    return any(_CHECK.search(each) and not _LOOKS.match(each) for each in re.split(r"&&|\|\||[;|\n]", command))


def is_own_check(part: ToolPart) -> bool:
    """Return whether a call is a check of a goal that codeloop ran itself."""
    return isinstance(part.state, ToolStateCompleted) and bool(part.state.metadata.get(CHECK))


def list_checks(parts: Iterable[Part]) -> list[CheckRun]:
    """Return the checks among the calls of a turn, oldest first."""
    check_runs: list[CheckRun] = []
    for part in parts:
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
            continue
        command = str(part.state.input.get("command"))
        if part.tool in _EDITS and not str(part.state.input.get("filePath")).lower().endswith(_PROSE):
            check_runs = [replace(each, after_last_edit=False) for each in check_runs]
        elif part.tool == "bash" and part.state.input.get("unchanged"):
            continue  # it says nothing about the files as they are
        elif part.tool == "bash" and "id" not in part.state.metadata and (is_check(command) or is_own_check(part)):
            code = part.state.metadata.get("exit")
            is_hidden = code == 0 and re.search(r"[|;\n]", command) and _FAILURE.search(part.state.output)
            failed = code != 0 or bool(is_hidden)
            check_runs.append(CheckRun(command=command, exit_code=code, after_last_edit=True, failed=failed))
    return check_runs
