"""Blocks found by layout, with exact ends from the language's grammar. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeloop.schema.wire import replace
from codeloop.workspace.search.blocks import CodeBlock, list_blocks, split_lines
from codeloop.workspace.syntax_tree import parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

_NO_CODE = ("string", "comment", "heredoc", "template")
"""Parts of node types whose text defines nothing, such as strings."""
_CONTAINERS = ("_list", "statements", "body", "body_statement")
"""Suffixes of node types that hold definitions, and may begin with the first of them."""
_VARIABLES = {"declaration", "field_declaration"}
"""What C and C++ call a line such as `struct point *corner;`."""


def list_exact_blocks(text: str, suffix: str) -> list[CodeBlock]:
    """Return the blocks of a text like `list_blocks`, but ignoring the contents of strings."""
    blocks = list_blocks(text, suffix)
    root = parse_tree(text, suffix) if blocks else None
    if root is None or root.has_error:
        return blocks
    lines = split_lines(text)
    return [exact for each in blocks if (exact := _fit(each, root, lines)) is not None]


def _fit(block: CodeBlock, root: Node, lines: Sequence[str]) -> CodeBlock | None:
    """Return a block with its exact last line; None when its first line is not code."""
    row, line = block.first - 1, lines[block.first - 1]
    start = (row, len(line[: len(line) - len(line.lstrip())].encode(errors="replace")))
    leaf = root.descendant_for_point_range(start, start)
    if leaf is None or any(each in leaf.type for each in _NO_CODE):
        return None
    node = root
    while node != leaf and (node.start_point.row != row or node.type.endswith(_CONTAINERS) or node == root):
        node = node.child_with_descendant(leaf) or leaf
    return None if node.type in _VARIABLES else replace(block, last=node.end_point.row + 1)
