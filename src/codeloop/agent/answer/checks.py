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
    # pytest and unittest
    r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|^[1-9]\d* failed\b|^(?:FAILED|ERROR) \S+\.py"
    r"|^(?:\d+ \w+, )*[1-9]\d* errors? in [\d.]+s|\bInterrupted: \d+ error|^ERROR: .*not found|^E {3,}\S"
    r"|^(?:=+ )?no tests ran|^NO TESTS RAN|^FAILED \("
    # jest, vitest, mocha, ava, node (TAP, spec, dot), bun, deno, playwright
    r"|^ *Tests:? +(?:.*\b)?[1-9]\d* failed|^ *Test (?:Suites:|Files) +[1-9]\d* failed"
    r"|^No tests? (?:files )?found\b"
    r"|^ +[1-9]\d* failing\b|^ +[1-9]\d* (?:tests? )?failed$|^ +[1-9]\d* uncaught exceptions?"
    r"|^[#\u2139] (?:fail|cancelled) [1-9]|^\u2716 failing tests:|^Failed tests:|^# Error \["
    r"|^ *not ok\b(?!.*# (?:TODO|SKIP))|^ *[1-9]\d* fail$|^FAILED \|"
    # rspec, jasmine, mix, minitest, bats, phpunit, swift, ctest
    r"|^(?:\d+ \w+, )+[1-9]\d* (?:failures?|errors?)\b|\b[1-9]\d* errors? occurred outside of examples"
    r"|^Tests: \d+, .*(?:Failures|Errors): [1-9]|^(?:FAILURES|ERRORS)!|^[ \t]*Executed \d+ tests?, with [1-9]"
    r"|\b[1-9]\d* tests? failed out of \d"
    # go, cargo, dotnet, gradle, maven, make, npm
    r"|^FAIL(?:\s|$)|^ *--- FAIL|^\S+\.go:\d+:\d+: |^test result: FAILED|^error(?:\[E\d+\])?: "
    r"|^ *Summary .*\b[1-9]\d* failed"
    r"|^Failed! +-|^Test Run Failed|: error [A-Z]+\d+: |\bBUILD FAIL(?:URE|ED)\b|^Build FAILED"
    r"|^ *\[ERROR\] (?:Tests run:|Failed|COMPIL|Found)"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error)|\bELIFECYCLE\b|^error Command failed|^\[!\] "
    # linters and types
    r"|\berror TS\d+:|^Found [1-9]\d* (?:errors?|problems?)\b|^[1-9]\d* errors?,|\b\d+ problems? \([1-9]"
    r"|^\S+:\d+(?::\d+)?: (?:fatal )?error: |^\S+\.py:\d+:\d+: [A-Z]+\d+\b|^[1-9]\d* issues:"
    # it didn't start
    r"|^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named ",
    re.MULTILINE,
)
"""A line by which a known program says that something failed, or by which it is known that it didn't start."""
_CRASH = re.compile(r"^(?:\w+\.)*(?:\w+(?:Error|Exception)|Error(?: \[\w+\])?)(?:: |$)", re.MULTILINE)
"""The last line of a traceback. Tests that pass may print one, too."""
_PASS = re.compile(
    r"^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* passed\b.* in [\d.]+s|^OK(?: \(.*\))?$"
    r"|^ *Tests:? .*\b[1-9]\d* passed|^ +[1-9]\d* passing\b|^ +[1-9]\d* tests? passed|^ +[1-9]\d* passed \("
    r"|^[#\u2139] fail 0$|^ *0 fail$|^ok \| [1-9]\d* passed"
    r"|^[1-9]\d* (?:examples?|specs?|tests?|runs|doctests?|properties)\b.*, 0 failures\b"
    r"|^[ \t]*Executed [1-9]\d* tests?, with 0 failures|^100% tests passed"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^PASS$|^test result: ok\.|^ +Finished .*\Z"
    r"|^ *Summary .*\b[1-9]\d* passed"
    r"|^Passed! +-|^Test Run Successful|^Build succeeded|\bBUILD SUCCESS(?:FUL)?\b"
    r"|^All checks passed!|^Success: no issues found|^0 errors, |^Found 0 errors|^Checked [1-9]\d* files?\b"
    r"|^0 issues\."
    r"|\brated at 10\.00/10|\[OK\] No errors",
    re.MULTILINE,
)
"""A line by which a known program says that all passed."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended), and whether no file was edited after it.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found: there its own closing
    line counts. Without one that is known, it neither `failed` nor `passed`.
    """

    command: str
    exit_code: int | None
    after_last_edit: bool
    failed: bool
    passed: bool


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
            failed, passed = _judge(command, code, part.state.output)
            run = CheckRun(command=command, exit_code=code, after_last_edit=True, failed=failed, passed=passed)
            check_runs.append(run)
    return check_runs


def _judge(command: str, code: object, output: str) -> tuple[bool, bool]:
    """Return whether a check failed, and whether it passed; neither where nothing tells."""
    if code != 0 or not _hides_exit_code(command):
        return code != 0, code == 0
    text = _COLOUR.sub("", output).rstrip()
    has_pass = _PASS.search(text) is not None
    failed = _FAILURE.search(text) is not None or (not has_pass and _CRASH.search(text) is not None)
    return failed, has_pass and not failed


def _hides_exit_code(command: str) -> bool:
    """Return whether a line exits with 0 although a check in it failed."""
    ends = r"\|\||[;\n]" if "pipefail" in command else r"[|;\n]"
    *earlier, _last = re.split(ends, command.rstrip("; \t\n"))
    return any(is_check(each) for each in earlier)
