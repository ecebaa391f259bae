"""Which files hold tests, decide which tests run, or hold code: judged by their paths alone.
Pure.
"""

import re
from functools import cache
from pathlib import PurePath

from codeloop.workspace.check_files import SETTINGS_GLOBS, TEST_GLOBS, compile_patterns

# Folders that tools fill: no file in them is the project's own.
_TOOL_FOLDERS = frozenset(("__pycache__", "node_modules", ".pytest_cache", ".venv", "venv"))
_TEST_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__"))
CODE_FILE = (
    r".+\.(?:py|[cm]?[jt]sx?|go|rs|rb|java|kts?|cs|php|swift|exs?|scala|dart|lua|bats"
    r"|zig|c|cc|cpp|h|hpp|sh|vue|svelte)"
)
"""Matches files of code, which the checks of most projects look at."""
# Matches the names of files in which a runner finds tests: `test_a.py` or `a_test.py` for pytest
# and unittest, any name in other languages.
_COLLECTED_FILE = r"test.*\.py|.*_tests?\.py|.+\.(?!py$)\w+"


@cache
def _list_test_patterns() -> list[re.Pattern[str]]:
    return compile_patterns((*TEST_GLOBS, "**/conftest.py"))


@cache
def _list_settings_patterns() -> list[re.Pattern[str]]:
    return compile_patterns(SETTINGS_GLOBS)


def is_check_file(path: str) -> bool:
    """Return whether a file (relative to the project) holds tests or data of tests,
    or decides which tests run.
    """
    if _is_in_tool_folder(path):
        return False
    return any(
        pattern.fullmatch(path) for pattern in (*_list_test_patterns(), *_list_settings_patterns())
    )


def is_test_file(path: str) -> bool:
    """Return whether a file (relative to the project) holds tests or data of tests."""
    if _is_in_tool_folder(path) or path.startswith(("-", "/")):
        return False
    return any(pattern.fullmatch(path.removeprefix("./")) for pattern in _list_test_patterns())


def is_test_code(path: str) -> bool:
    """Return whether a path, as a command names it,
    is a folder of tests or a file of tests that is code.
    """
    name = PurePath(path).name
    if not name or _is_in_tool_folder(path) or path.startswith(("-", "/")):
        return False
    return name in _TEST_FOLDERS or (
        is_test_file(path) and re.fullmatch(CODE_FILE, name) is not None
    )


def is_settings_file(path: str) -> bool:
    """Return whether a file (relative to the project) decides which tests run,
    as `pytest.ini` does.
    """
    return not _is_in_tool_folder(path) and any(
        pattern.fullmatch(path) for pattern in _list_settings_patterns()
    )


def is_collected(file: str) -> bool:
    """Return whether a runner finds the tests of a file by its name."""
    return (
        re.fullmatch(CODE_FILE, file) is not None
        and re.fullmatch(_COLLECTED_FILE, PurePath(file).name) is not None
    )


def _is_in_tool_folder(path: str) -> bool:
    return not _TOOL_FOLDERS.isdisjoint(PurePath(path).parts)
