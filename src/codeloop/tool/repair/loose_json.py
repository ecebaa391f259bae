"""Parses the JSON that models write: with trailing commas, with line ends in strings,
or as Python literals.
"""

import ast
import json
import re
from contextlib import suppress
from typing import Any, cast

from codeloop.kit.text.patterns import compile_once
from codeloop.workspace.syntax_tree import parse_python

# Matches brackets and, so that those in them don't count, strings.
_BRACKETS = r"(?s)\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\[\]{}]"
# Matches a string, or a comma before a closing bracket.
_LAST_COMMA = r"(?s)\"(?:[^\"\\]|\\.)*\"|,(?=\s*[\]}])"
_CONSTANTS = {"true": True, "false": False, "null": None}
# `strict=False` accepts line ends in strings.
_decode = json.JSONDecoder(strict=False).raw_decode


def read_json(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that begins at the offset `start`, and the offset of its end;
    None: there is none.

    Trailing commas, and Python's quotes and constants, are understood.
    """
    with suppress(ValueError, RecursionError):
        return _decode(text, start)
    end = _find_end(text, start)
    value: Any = _read_without_last_commas(text[start:end])
    return (cast("Any", value), end) if isinstance(value, dict | list) else None


def _read_without_last_commas(text: str) -> object:
    """Return the value of a text as JSON without trailing commas, else as a Python literal;
    None: it is neither.
    """
    strict = re.sub(_LAST_COMMA, lambda match: "" if match[0] == "," else match[0], text)
    with suppress(ValueError, RecursionError):
        value, end = _decode(strict, 0)
        if end == len(strict):
            return value
    return _read_literal(text)


def _find_end(text: str, start: int) -> int:
    """Return the offset after the bracket that closes the one at `start`;
    `start` if nothing closes it.
    """
    depth = 0
    for token in compile_once(_BRACKETS).finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if not depth:
            return token.end()
    return start


def _read_literal(text: str) -> object:
    """Return the value of a Python literal that may use JSON's constants; None if it is none."""
    with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        match parse_python(text.strip()).body:
            case [ast.Expr(value=node)]:
                return to_value(node)
            case _:
                return None
    return None


class _JsonConstants(ast.NodeTransformer):
    """Replaces the names `true`, `false` and `null`, which Python does not have,
    by their values.
    """

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace one name."""
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node


def to_value(node: ast.expr) -> Any:
    """Return the value of a literal. Raises ValueError if the expression is not a literal."""
    return ast.literal_eval(_JsonConstants().visit(node))
