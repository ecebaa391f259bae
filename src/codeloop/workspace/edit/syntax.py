"""Syntax errors of edited files, found by the installed parsers, without a language server. Pure.

Each parser is imported when the first file of its kind is edited.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.edit.tree_errors import explain_error
from codeloop.workspace.syntax_tree import LANGUAGES, parse_python, parse_tree

_LARGEST = 1_000_000
"""Characters; a larger text is not parsed: that takes half a second."""
_TEMPLATE = ("{{", "{%", "<%")
"""Signs of a template: the file is valid only after something is filled in."""
_WITH_COMMENTS = ("tsconfig", "jsconfig", "settings", "launch", "tasks", "extensions", "devcontainer", "api-extractor")
"""Starts of names of JSON files in which comments and last commas are usual."""


class SyntaxProblem(Struct, frozen=True):
    """Why a text can't be parsed: the line, from 1, and the parser's reason. `is_new`: before the edit it could be."""

    line: int
    reason: str
    is_new: bool = True


def find_problem(path: Path, before: str, after: str) -> SyntaxProblem | None:
    """Return the syntax error of a file after an edit, or None. Files without a parser have none."""
    suffix = path.suffix.lower()
    check = _CHECKS.get(suffix) or (partial(_check_tree, suffix) if suffix[1:] in LANGUAGES else None)
    if check is None or max(len(before), len(after)) > _LARGEST:
        return None
    # A program that was one before is no template: there braces may be doubled.
    if (suffix in _CHECKS or not before) and any(each in after for each in _TEMPLATE):
        return None
    if path.suffix == ".json" and path.name.startswith(_WITH_COMMENTS):
        return None
    problem = check(after)
    if problem is None or check(before or _EMPTY.get(path.suffix, "")) is None:
        return problem
    return replace(problem, is_new=False)


def _check_json(text: str) -> SyntaxProblem | None:
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return SyntaxProblem(error.lineno, error.msg)
    except RecursionError:
        return None
    return None


def _check_toml(text: str) -> SyntaxProblem | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, _, location = str(error).partition(" (at ")
        line = location.removeprefix("line ").partition(",")[0]
        return SyntaxProblem(int(line) if line.isdigit() else text.count("\n") + 1, reason)
    except RecursionError:
        return None
    return None


def _check_yaml(text: str) -> SyntaxProblem | None:
    import yaml

    reader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while reader.check_event():
            reader.get_event()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return SyntaxProblem(mark.line + 1 if mark else 1, error.problem or "it can't be parsed")
    except (yaml.YAMLError, RecursionError):
        return None
    return None


def _check_tree(suffix: str, text: str) -> SyntaxProblem | None:
    root = parse_tree(text, suffix)
    error = None if root is None or not root.has_error else explain_error(root, text, LANGUAGES[suffix[1:]])
    return None if error is None else SyntaxProblem(*error)


def _check_python(text: str) -> SyntaxProblem | None:
    try:
        parse_python(text)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return SyntaxProblem(error.lineno or 1, f"{error.msg} (as Python {version} reads it)")
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


_CHECKS: dict[str, Callable[[str], SyntaxProblem | None]] = {
    ".json": _check_json,
    ".toml": _check_toml,
    ".yaml": _check_yaml,
    ".yml": _check_yaml,
    ".py": _check_python,
    ".pyi": _check_python,
}
_EMPTY = {".json": "null"}
"""The valid text that stands for a file that did not exist, where an empty text can't be parsed."""
