"""Parses a shell script with tree-sitter, within limits."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from codeloop.schema.limits import BASH_NODES

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# tree-sitter asks for the text in pieces of this size.
_PIECE_BYTES = 65_536


class LimitExceeded(Exception):
    """The script exceeds a limit; the rest of it is unknown."""


@cache
def load_grammar() -> Language:
    """Return the grammar of bash, which takes long to load."""
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def parse_tree(source: bytes, deadline: float) -> Node:
    """Return the root of a script's tree. `deadline`: seconds of this thread's processor time.
    Raises LimitExceeded.
    """
    from tree_sitter import Parser

    try:
        # Read in pieces: tree-sitter calls `progress_callback`, which can stop it,
        # only with a reader function.
        tree = Parser(load_grammar()).parse(
            lambda offset, _: source[offset : offset + _PIECE_BYTES],
            progress_callback=lambda _, __: time.thread_time() > deadline,
        )
    except ValueError as error:
        raise LimitExceeded from error
    if tree.root_node.descendant_count > BASH_NODES.value:
        raise LimitExceeded
    return tree.root_node
