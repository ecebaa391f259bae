"""Finds the syntax errors of edited files by the installed parsers, without a language server.
Pure.

Each parser is imported when the first file of its kind is edited.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.syntax_tree import LANGUAGES, parse_python, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

# A larger text is not parsed, since that takes half a second.
_MAX_CHARS = 1_000_000
# Signs of a template: the file is valid only after something is filled in.
_TEMPLATE_SIGNS = ("{{", "{%", "<%")
# Starts of names of JSON files in which comments and last commas are usual.
_COMMENTED_JSON_FILES = (
    "tsconfig",
    "jsconfig",
    "settings",
    "launch",
    "tasks",
    "extensions",
    "devcontainer",
    "api-extractor",
)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = {*_CLOSERS, *_CLOSERS.values()}
# Languages whose valid texts have unpaired brackets: `case` of a shell.
_LOOSE_BRACKET_LANGUAGES = {"bash"}
# Languages with macros, where a grammar can't tell what is valid: only brackets count.
_MACRO_LANGUAGES = {"c", "cpp"}
# The characters of an unexpected text that are quoted.
_MAX_EXCERPT_CHARS = 60


class SyntaxProblem(Struct, frozen=True):
    """An error that keeps a text from being parsed: its line, from 1, and the parser's reason.

    `is_new`: the text before the edit could be parsed.
    """

    line: int
    reason: str
    is_new: bool = True


def has_parser(path: Path) -> bool:
    """Return whether the syntax of a file can be checked, by its name."""
    suffix = path.suffix.lower()
    return suffix in _CHECKS or suffix[1:] in LANGUAGES


def find_syntax_problem(path: Path, before: str, after: str) -> SyntaxProblem | None:
    """Return the syntax error of a file after an edit, or None.
    Files without a parser have none.
    """
    suffix = path.suffix.lower()
    check = _CHECKS.get(suffix) or (
        partial(_check_tree, suffix) if suffix[1:] in LANGUAGES else None
    )
    if check is None or max(len(before), len(after)) > _MAX_CHARS:
        return None
    # An existing file that a grammar parses is not a template: in programs, braces may be doubled.
    if (suffix in _CHECKS or not before) and any(each in after for each in _TEMPLATE_SIGNS):
        return None
    if path.suffix == ".json" and path.name.startswith(_COMMENTED_JSON_FILES):
        return None
    problem = check(after)
    if problem is None or check(before or _EMPTY_TEXTS.get(path.suffix, "")) is None:
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
    error = (
        None
        if root is None or not root.has_error
        else _explain_error(root, text, LANGUAGES[suffix[1:]])
    )
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


def _explain_error(root: Node, text: str, language: str) -> tuple[int, str] | None:
    """Return the line (from 1) and the description of a tree's first error;
    None: the text may be valid after all.

    An unpaired bracket is looked for first: where one is missing,
    the grammar's error is far from it.
    """
    leaves = [each for each in _list_nodes(root) if not each.child_count or each.is_error]
    if language not in _LOOSE_BRACKET_LANGUAGES:
        bracket_problem = _find_unpaired_bracket(leaves, text.split("\n"))
        if bracket_problem is not None:
            return bracket_problem
    if language in _MACRO_LANGUAGES:
        return None
    last_line = text.removesuffix("\n").count("\n") + 1
    reader_note = f"(as tree-sitter's grammar of {language} reads it)"
    missing = next((each for each in leaves if each.is_missing), None)
    error = next((each for each in leaves if each.is_error), None)
    if missing is not None and (error is None or missing.start_byte <= error.start_byte):
        return min(_get_line(missing), last_line), f"`{missing.type}` is missing {reader_note}"
    if error is None:
        return None
    excerpt = (
        (error.text or b"").decode(errors="replace").strip().split("\n")[0][:_MAX_EXCERPT_CHARS]
    )
    return _get_line(error), f"`{excerpt}` was not expected {reader_note}"


def _find_unpaired_bracket(leaves: Sequence[Node], lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the line and a description of an unpaired bracket;
    of several candidates, the one with odd indentation.
    """
    # Brackets that are open, each with the bracket that closes it.
    open_brackets: list[tuple[Node, str]] = []
    # The first bracket whose closer is indented less than it: its own closer may be missing.
    unclosed: Node | None = None
    # The first closer that is indented more than its bracket: it may be one too many.
    early: Node | None = None
    for each, bracket in _list_brackets(leaves):
        if bracket in _CLOSERS:
            open_brackets.append((each, _CLOSERS[bracket]))
            continue
        if not any(closer == bracket for _, closer in open_brackets):
            wrong = each if open_brackets else early or each
            return _get_line(wrong), f"`{_quote(wrong)}` closes nothing"
        opener, closer = open_brackets.pop()
        if closer != bracket:
            where = f"before the `{_quote(each)}` of line {_get_line(each)}"
            return _get_line(opener), f"`{_quote(opener)}` is not closed {where}"
        indent, outer = _measure_indent(lines, each), _measure_indent(lines, opener)
        if lines[_get_line(each) - 1].lstrip().startswith(_quote(each)):
            unclosed = unclosed or (opener if indent < outer else None)
            early = early or (each if indent > outer else None)
    if not open_brackets:
        return None
    wrong = unclosed or open_brackets[-1][0]
    return _get_line(wrong), f"`{_quote(wrong)}` is never closed"


def _list_brackets(leaves: Sequence[Node]) -> Iterator[tuple[Node, str]]:
    """Yield each bracket with its token, which may also be `${`, `#[`, `%w[` (its type is `%w(`),
    `]]` or `[]=`.
    """
    for each in leaves:
        if not each.is_missing and not each.child_count:
            yield from ((each, char) for char in each.type if char in _BRACKETS)


def _quote(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _list_nodes(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _get_line(node: Node) -> int:
    return node.start_point[0] + 1


def _measure_indent(lines: Sequence[str], node: Node) -> int:
    line = lines[_get_line(node) - 1].expandtabs(4)
    return len(line) - len(line.lstrip())


_CHECKS: dict[str, Callable[[str], SyntaxProblem | None]] = {
    ".json": _check_json,
    ".toml": _check_toml,
    ".yaml": _check_yaml,
    ".yml": _check_yaml,
    ".py": _check_python,
    ".pyi": _check_python,
}
# The valid text that stands for a file that did not exist, where an empty text can't be parsed.
_EMPTY_TEXTS = {".json": "null"}
