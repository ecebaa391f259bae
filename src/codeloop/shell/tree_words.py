"""Reads the values of words from the nodes of tree-sitter: quotes and escapes undone,
unknown parts marked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS
from codeloop.shell.word import Word

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD_NODE_NAMES = """
word number raw_string string translated_string ansi_c_string concatenation simple_expansion expansion $ command_name
command_substitution arithmetic_expansion process_substitution brace_expression test_operator
"""
WORD_NODES = frozenset(_WORD_NODE_NAMES.split())
"""The types of the nodes that words consist of."""
_QUOTED_ESCAPE = r'(?s)\\([$`"\\\n])'
_ESCAPE = r"(?s)\\(.)"
_ANSI_ESCAPE = r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|.)"
_ANSI_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
# In a text without escapes: a backquote, or a `$` that is not just a dollar sign.
_EXPANSION = r"`|\$[\w({@*#?!-]"
_PIECE_NODES = frozenset(
    [
        *(
            "word",
            "number",
            "raw_string",
            "string",
            "translated_string",
            "ansi_c_string",
            "simple_expansion",
        ),
        *("expansion", "command_substitution", "arithmetic_expansion", "process_substitution"),
    ]
)


def group_adjacent(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group word nodes without a gap between them, which are one word;
    every other node is a group of its own.
    """
    groups: list[list[Node]] = []
    for node in nodes:
        last = groups[-1][-1] if groups else None
        if (
            last
            and last.end_byte == node.start_byte
            and last.type in WORD_NODES
            and node.type in WORD_NODES
        ):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def read_word(nodes: list[Node], source: bytes) -> Word:
    """Read a word from its nodes, which follow each other without a gap."""
    source_text = source[nodes[0].start_byte : nodes[-1].end_byte].decode("utf-8", "replace")
    text = _read_value(nodes[0]) if len(nodes) == 1 else ANY_TEXT
    if _may_expand_braces(nodes, source_text):
        text = ANY_WORDS
    if text and not text.strip(ANY_TEXT + ANY_WORDS):
        # An unquoted expansion alone may become no word, or several.
        text = ANY_WORDS
    return Word(text, source_text)


def _may_expand_braces(nodes: list[Node], text: str) -> bool:
    """Return whether unquoted braces may expand to several words,
    for which they need a comma or two dots.
    """
    if "," not in text and ".." not in text:
        return False
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node.type == "brace_expression" or (
            node.type == "word" and re.search("[{}]", _strip_escapes(node))
        ):
            return True
        if node.type in {"concatenation", "command_name"}:
            pending.extend(node.children)
    return False


def _read_source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _strip_escapes(node: Node) -> str:
    """Return the source without what a backslash escapes."""
    return re.sub(_ESCAPE, "", _read_source(node))


def _read_value(node: Node) -> str:
    match node.type:
        case "word" | "number":
            return (
                ANY_TEXT
                if re.search(_EXPANSION, _strip_escapes(node))
                else _unescape(_read_source(node))
            )
        case "command_name" if len(node.children) == 1:
            return _read_value(node.children[0])
        case "raw_string":
            return _read_source(node)[1:-1]
        case "string" | "translated_string":
            return _read_double_quotes(node)
        case "ansi_c_string":
            return _unescape_ansi(_read_source(node)[2:-1])
        case "concatenation":
            return _join_pieces(node)
        case _:
            return ANY_TEXT


def _unescape(text: str) -> str:
    """Undo escapes; a part that the shell would replace by file names becomes a mark."""
    if not {"*", "?", "["}.intersection(text):
        return re.sub(_ESCAPE, lambda match: "" if match[1] == "\n" else match[1], text)
    pieces: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            position += 1
            pieces.append("" if text[position] == "\n" else text[position])
        elif char == "[":
            return "".join(pieces) + ANY_TEXT
        else:
            pieces.append(ANY_TEXT if char in "*?" else char)
        position += 1
    return "".join(pieces)


def _join_pieces(node: Node) -> str:
    """Join the pieces of one word. A gap or a bracket between pieces makes the rest unknown."""
    pieces: list[str] = []
    end = node.start_byte
    for child in node.children:
        if child.start_byte != end or child.type not in _PIECE_NODES or _read_source(child) == "[":
            return "".join(pieces) + ANY_TEXT
        pieces.append(_read_value(child))
        end = child.end_byte
    return "".join(pieces)


def _read_double_quotes(node: Node) -> str:
    # `$"..."`, which bash translates, has a dollar sign in front.
    text = _read_source(node).removeprefix("$")
    if all(child.type in {'"', "string_content", "$"} for child in node.children):
        inner = text[1:-1]
        return (
            ANY_TEXT
            if re.search(_EXPANSION, re.sub(_ESCAPE, "", inner))
            else _unescape_quoted(inner)
        )
    pieces = [
        _unescape_quoted(_read_source(child)) if child.type == "string_content" else ANY_TEXT
        for child in node.children
        if child.type != '"'
    ]
    return "".join(pieces)


def _unescape_quoted(text: str) -> str:
    return re.sub(_QUOTED_ESCAPE, lambda match: "" if match[1] == "\n" else match[1], text)


def _unescape_ansi(text: str) -> str:
    """Undo the escapes of `$'...'`; rare ones (control characters) and characters
    beyond ASCII become marks.
    """

    def decode_escape(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if 0 < number < 0x80 else ANY_TEXT
        if code[0] in "01234567":
            number = int(code, 8)
            return chr(number) if 0 < number < 0x80 else ANY_TEXT
        if code in "\\'\"?":
            return code
        return _ANSI_LETTERS.get(code, ANY_TEXT)

    return re.sub(_ANSI_ESCAPE, decode_escape, text, flags=re.DOTALL)
