"""Finds out from its output that a check ran nothing: its program,
its task or what it was to check is not there. Pure.

Such a run says nothing about the work, so it has neither failed nor passed.
"""

import re
from collections.abc import Sequence

from codeloop.agent.checks.runner_summaries import TestCounts
from codeloop.shell.check_scope import CheckCommand

# Lines by which a program says that there is nothing to run, whatever it was asked for.
_NOTHING_TO_RUN = (
    # the shell and interpreters: no such program, script or module
    r"(?m)^\S*sh: .*(?:not found|No such file or directory|cannot open)|^\S*python[\d.]*(?:\.exe)?: No module named "
    r"|: not found$|^\S*python\S*: can't open file |^Can't open perl script |^Could not open input file: "
    r"|requireStack: \[\]|^ruby: No such file or directory"
    # options and subcommands that it does not know
    r"|unrecognized (?:arguments|option)|No such option|[Uu]nknown (?:option|command)|no such (?:command|subcommand)"
    r"|^(?:ERROR: )?usage: .*\n(?:.*\n)?.*error: |^error: unexpected argument "
    # tasks and the files that hold them
    r"|Missing script:|^error: [Ss]cript not found|No rule to make target (?!.*needed by)|no makefile found"
    r"|could not determine executable|does not contain recipe|^error: No justfile found|No Taskfile found"
    r"|^task: Task \"[^\"]*\" does not exist|Don't know how to build task|No Rakefile found"
    r"|Could not read package\.json|ERR_PNPM_NO_(?:IMPORTER_MANIFEST|SCRIPT)|Couldn't find a package\.json"
    r"|^error Command \"[^\"]*\" not found|Composer could not find a composer\.json|^Command \"[^\"]*\" is not defined"
    r"|could not find `Cargo\.toml`|go\.mod file not found|cannot find main module|there is no POM in this directory"
    r"|Unknown lifecycle phase|does not contain a Gradle build|^Task '[^']*' not found|^Project '[^']*' not found"
    r"|Could not find the selected project in the reactor|^\*\* \(Mix\) (?:The task|Could not find a Mix\.Project)"
    r"|Could not find Package\.swift|No cabal file found|there is no package in the current directory"
    r"|error MSB10(?:03|09): |^No \.NET SDKs were found|does not contain a scheme named|^npm error No workspaces found"
    r"|^error: the package '[^']*' does not contain (?:this|these) feature|^No hook with id |InvalidConfigError"
    r"|only supported from within a workspace|Cannot connect to the Docker daemon|^service \"[^\"]*\" is not running"
    r"|there is no package called .(?:devtools|testthat|rcmdcheck|lintr|tinytest)\b"
    r"|checking for file .*DESCRIPTION.* NO$|^===> No rebar\.config|directory prefix \S+ does not contain main module"
    r"|[Nn]oxfile\S* .*not found|^nox > Error while collecting sessions"
    r"|^ROOT: (?:No|could not find) .*(?:tox\.ini|pyproject)|provided environments not found"
    # tests
    r"|^pattern \S+: .*no such file|^no required module provides package|^error: no tests to run|Error importing plugin"
    r"|^error: 0 test files matching|Executable doesn't exist at .*ms-playwright|Cypress binary is missing"
    r"|No testing infrastructure found|trying to test an unnamed project|did not provide a `test/runtests"
    r"|^ERROR: (?:file or directory )?not found:|^(?:=+ )?no tests ran|^collected 0 items$|^NO TESTS RAN"
    r"|^Could not find '[^']*'$|^(?:Error: )?No tests? (?:files )?found\b|^No tests found, exiting|No test files found"
    r"|^No tests were (?:found|executed)|No tests (?:found|matching|were found) (?:for|pattern|matching)"
    r"|no test target named|did not match any packages|Couldn['\u2019]t find any files to test"
    r"|No test modules found|did not match any test files|no spec files were found|^No specs found"
    r"|^Paths given to \"mix test\" did not match|^Cannot open file \"|^Test file \"[^\"]*\" not found"
    r"|directory not found$|^package \S+ is not in std|no Go files in |matched no packages$|\[no test files\]$"
    # linters and types
    r"|^No files matching (?:the pattern|these patterns)|^All files matched by .* are ignored"
    r"|error TS(?:5058|5083|6053|18003): |\bE902 |can't read file '|^mypy: error: Cannot find config file"
    r"|^There are no \.py\[i\] files|^No source files found|^warning: No Python files found"
    r"|F0001: No module named|^No files were processed|no go files to analyze|: openBinaryFile: does not exist"
)
# What a runner needs before it can run anything.
_GROUND = (
    r"(?:projects?|tasks?|scripts?|steps?|targets?|environments?|sessions?|packages?|gems?|commands?"
    r"|configuration|modules?|directory|tests?(?: \w+)?|spec files?|(?:build )?(?:data )?files?"
    r"|[\w.-]+\.(?:toml|ya?ml|json|gradle|xml|zig|ninja|lock|exs))"
)
# Lines by which any program says that it lacks that. Many outputs have such words, so that they
# count only in a short one that names no place in a file and no stack.
_LACKS_GROUND = (
    r"(?im)^(?!\S*ld(?:\.\w+)?: ).*\b(?:could not|couldn['\u2019]t|can ?not|can['\u2019]t|unable to|failed to|did not)"
    r" (?:find|locate|read|open|load|detect|spawn|change|test the target)\b"
    rf"|\b(?:no|no such|no matching|unknown|not a valid) {_GROUND}\b|\bno {_GROUND} (?:named|file|found)\b"
    rf"|\b{_GROUND}\b.{{0,40}}(?:not found|does not exist|no such file)"
    r"|^(?:error: )?\S+ is not a directory$|^make: \*\*\* \S+: No such file or directory"
)
_PLACE_OR_STACK = r"(?m)[\w./@+-]+\.\w+(?::\d+|\(\d+,\d+\))|^\s+at |^Traceback|Require stack:\n-"
_FAILED_TESTS = (
    r"(?i)failures?: [1-9]|[1-9]\d* (?:tests? )?fail|occurred while loading|\b[A-Z]\w+Error: "
    # what it started has run and failed
    r"|(?m:^make(?:\[\d+\])?: \*\*\* \[|^npm (?:ERR!|error) code 1$|^FAIL\b)|^error in |module not found"
    r"|failed to compile"
)
_MAX_GROUND_LINES = 12
# Words with which a program says that what follows, or what stands before them, is not there.
_NOT_FOUND_BEFORE = (
    r"(?:cannot find|can['\u2019]t find|could not find|cannot open|can['\u2019]t open|cannot load|no module named"
    r"|no such file or directory|cannot load such file|does not match|not found|unable to find|failed to find)"
)
_NOT_FOUND_AFTER = (
    r"(?:no such file or directory|does not exist|doesn['\u2019]t exist|(?:was |could )?not (?:be )?found"
    r"|cannot be found)"
)
# The test that unittest makes of a name that it can't load, and what was missing.
_UNITTEST_NAME = "unittest.loader._FailedTest"
_UNITTEST_MISSING = r"(?:No module named|has no attribute) '([\w.]+)'"
# Exit codes of pytest: called wrongly, and no test was collected.
_PYTEST_CODES = frozenset((4, 5))


def has_run_nothing(
    checks: Sequence[CheckCommand], code: int, output: str, counts: TestCounts | None = None
) -> bool:
    """Return whether a run that did not pass had nothing to run.
    `output`: without colours and notes.

    `counts`: of the tests that it ran; None: it printed none.
    """
    targets = [target for check in checks for target in check.targets if len(target) > 2]
    # unittest makes a test of a name that it can't find, and counts it.
    if _UNITTEST_NAME in output:
        names = re.findall(_UNITTEST_MISSING, output)
        return any(
            name in target.split(".") or target.startswith(name)
            for name in names
            for target in targets
        )
    if counts is not None and counts.ran > 0:
        return False
    if counts is not None and counts.skipped and re.search(_FAILED_TESTS, output) is None:
        return True
    # A shell exits with 127 where there is no such program,
    # and with 126 where it can't be executed.
    if code in {126, 127} or re.search(_NOTHING_TO_RUN, output):
        return True
    if checks and code in _PYTEST_CODES and all(check.program == "pytest" for check in checks):
        return True
    return _lacks_ground(output) or any(_is_missing(target, output) for target in targets)


def _lacks_ground(output: str) -> bool:
    """Return whether a short output says that something is missing that a runner starts from."""
    return (
        output.count("\n") < _MAX_GROUND_LINES
        and re.search(_PLACE_OR_STACK, output) is None
        and re.search(_FAILED_TESTS, output) is None
        and re.search(_LACKS_GROUND, output) is not None
    )


def _is_missing(target: str, output: str) -> bool:
    """Return whether a line says that a target is not there."""
    name = rf"(?:[^\s'\"`]*/)?{re.escape(target)}['\"`]?"
    return (
        re.search(
            rf"(?i){_NOT_FOUND_BEFORE}[\s:'\"`-]*(?:module |file |path |spec )?['\"`]?{name}(?![\w/.-]*\w)",
            output,
        )
        or re.search(rf"(?i)(?<![\w/.-]){name}:? {_NOT_FOUND_AFTER}", output)
    ) is not None
