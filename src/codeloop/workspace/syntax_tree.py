"""Parses source text into syntax trees: by tree-sitter's grammars,
and Python by Python's own parser.

Each grammar is a wheel of its own and is imported when the first text of its language is parsed.
"""

from __future__ import annotations

import time
import warnings
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from codeloop.schema.bounds.outlines import GRAMMAR_PARSE_TIME, GRAMMAR_TEXT

if TYPE_CHECKING:
    import ast

    from tree_sitter import Language, Node

# Suffix of a file's name, without the dot -> the grammar for its text.
LANGUAGES = {
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "c": "c",
    # A header may be C or C++: it is parsed as C++, since few headers hold C that is not valid C++.
    **dict.fromkeys(("h", "cc", "cpp", "cxx", "hpp", "hh", "hxx"), "cpp"),
    "rb": "ruby",
    "php": "php",
    **dict.fromkeys(("sh", "bash"), "bash"),
}

# By grammar: pairs of valid syntax that the grammar does not know,
# and a replacement that it parses.
_UNSUPPORTED_SYNTAX: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(
    ("typescript", "tsx"), (("export type *", "export *"),)
)

# Python 3.11 counts the depth of a tree that it builds for all threads together: two
# at once end in a SystemError.
_python_parser = Lock()


def parse_python(text: str) -> ast.Module:
    """Return the syntax tree of a Python text. Raises SyntaxError, ValueError, RecursionError,
    MemoryError.
    """
    import ast

    with _python_parser:
        # The parser's warnings would be printed onto the screen.
        warnings.filterwarnings("ignore", module="<unknown>")
        return ast.parse(text)


def parse_tree(text: str, suffix: str) -> Node | None:
    """Return the root of a text's syntax tree; None: no grammar, too large a text, or a timeout.

    `suffix`: that of the file's name, such as `.go`. Syntax errors are nodes of type `ERROR`.
    """
    name = LANGUAGES.get(suffix.removeprefix(".").lower())
    if name is None or len(text) > GRAMMAR_TEXT.value:
        return None
    from tree_sitter import Parser

    for unsupported, replacement in _UNSUPPORTED_SYNTAX.get(name, ()):
        text = text.replace(unsupported, replacement)
    # Some grammars report an error for a last line without a line end.
    source = f"{text}\n".encode("utf-8", "surrogateescape")
    parser = Parser(_load_grammar(name))
    # Processor time, and none before the grammar is loaded: on a busy machine a short
    # text would have no tree.
    deadline = time.thread_time() + GRAMMAR_PARSE_TIME.seconds
    try:
        tree = parser.parse(
            lambda offset, _: source[offset : offset + 65536],
            progress_callback=lambda _, __: time.thread_time() > deadline,
        )
    except ValueError:
        return None
    return tree.root_node


@cache
def _load_grammar(name: str) -> Language:
    from tree_sitter import Language

    match name:
        case "javascript":
            from tree_sitter_javascript import language as load
        case "typescript":
            from tree_sitter_typescript import language_typescript as load
        case "tsx":
            from tree_sitter_typescript import language_tsx as load
        case "go":
            from tree_sitter_go import language as load
        case "rust":
            from tree_sitter_rust import language as load
        case "java":
            from tree_sitter_java import language as load
        case "c":
            from tree_sitter_c import language as load
        case "cpp":
            from tree_sitter_cpp import language as load
        case "ruby":
            from tree_sitter_ruby import language as load
        case "php":
            from tree_sitter_php import language_php as load
        case _:
            from tree_sitter_bash import language as load
    return Language(load())
