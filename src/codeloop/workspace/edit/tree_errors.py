"""Describes in one line the syntax error of a parsed tree. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = {*_CLOSERS, *_CLOSERS.values()}
_LOOSE_BRACKETS = {"bash"}
"""Languages whose valid texts have unpaired brackets: `case` of a shell."""
_MACROS = {"c", "cpp"}
"""Languages with macros, where a grammar can't tell what is valid: only brackets count."""
_EXCERPT = 60
"""Characters of an unexpected text."""


def explain_error(root: Node, text: str, language: str) -> tuple[int, str] | None:
    """Return the line (from 1) and the description of a tree's first error; None: the text may be valid after all.

    A bracket is named first: where one is missing, what a grammar finds wrong is far from it.
    """
    leaves = [each for each in _walk(root) if not each.child_count or each.is_error]
    if language not in _LOOSE_BRACKETS and (bracket := _find_bracket(leaves, text.split("\n"))) is not None:
        return bracket
    if language in _MACROS:
        return None
    last = text.removesuffix("\n").count("\n") + 1
    as_read = f"(as tree-sitter's grammar of {language} reads it)"
    missing = next((each for each in leaves if each.is_missing), None)
    error = next((each for each in leaves if each.is_error), None)
    if error is None or (missing is not None and missing.start_byte <= error.start_byte):
        return None if missing is None else (min(_find_line(missing), last), f"`{missing.type}` is missing {as_read}")
    excerpt = (error.text or b"").decode(errors="replace").strip().split("\n")[0][:_EXCERPT]
    return _find_line(error), f"`{excerpt}` was not expected {as_read}"


def _find_bracket(leaves: Sequence[Node], lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the unpaired bracket; of several candidates, the one that the indentation points to."""
    above: list[tuple[Node, str]] = []
    unclosed: Node | None = None
    early: Node | None = None
    for each, bracket in _list_brackets(leaves):
        if bracket in _CLOSERS:
            above.append((each, _CLOSERS[bracket]))
            continue
        if not any(closer == bracket for _, closer in above):
            wrong = each if above else early or each
            return _find_line(wrong), f"`{_quote(wrong)}` closes nothing"
        opener, closer = above.pop()
        if closer != bracket:
            where = f"before the `{_quote(each)}` of line {_find_line(each)}"
            return _find_line(opener), f"`{_quote(opener)}` is not closed {where}"
        indent, outer = _measure_indent(lines, each), _measure_indent(lines, opener)
        if lines[_find_line(each) - 1].lstrip().startswith(_quote(each)):
            unclosed = unclosed or (opener if indent < outer else None)
            early = early or (each if indent > outer else None)
    if not above:
        return None
    wrong = unclosed or above[-1][0]
    return _find_line(wrong), f"`{_quote(wrong)}` is never closed"


def _list_brackets(leaves: Sequence[Node]) -> Iterator[tuple[Node, str]]:
    """Yield each bracket with its token: a token may be `${`, `#[`, `%w[` (its type is `%w(`), `]]` or `[]=` too."""
    for each in leaves:
        if not each.is_missing and not each.child_count:
            yield from ((each, char) for char in each.type if char in _BRACKETS)


def _quote(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _find_line(node: Node) -> int:
    return node.start_point[0] + 1


def _measure_indent(lines: Sequence[str], node: Node) -> int:
    line = lines[_find_line(node) - 1].expandtabs(4)
    return len(line) - len(line.lstrip())
