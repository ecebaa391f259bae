"""Splits a shell line at its operators, for those who ask in which order its commands
run and whose exit code lasts.
"""

from __future__ import annotations

import re
import time
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from codeloop.schema.limits import BASH_PARSE
from codeloop.shell.grammar import read_line
from codeloop.shell.tree_parser import LimitExceeded, parse_tree
from codeloop.shell.tree_words import WORD_NODES, group_adjacent, read_word
from codeloop.shell.word import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

# Characters of a line that are looked at.
_MAX_LINE_CHARS = 20_000
_OPERATORS = frozenset({"&&", "||", ";", ";;", "|", "|&", "&", "\n", "(", ")", "`"})
_QUOTES = r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)"
# What is not among the words of a command.
_SKIPPED_NODES = frozenset({"comment", "file_redirect", "herestring_redirect"})
_SKIPPED_HEREDOC_NODES = frozenset({"<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end"})


class LineStep(NamedTuple):
    """Words of a line between two operators, and the operator behind them ("": the line's end).

    The words come without their quotes, those of keywords (`if`, `do`, `!`) among them;
    redirections and here documents are left out. A substitution begins with the
    operator `(` or a backquote.
    """

    words: list[str]
    operator: str


def split_line(line: str) -> list[LineStep]:
    """Return the steps of a line; of one that can't be parsed, all its words as one."""
    text = line[:_MAX_LINE_CHARS]
    parsed_line = read_line(text)
    if not parsed_line.refusal:
        return [
            LineStep([_unquote(word) for word in each.words], each.operator)
            for each in parsed_line.commands
        ]
    source = text.encode("utf-8", "surrogateescape")
    try:
        root = parse_tree(source, time.thread_time() + BASH_PARSE.seconds)
    except LimitExceeded:
        return [LineStep(text.split(), "")]
    return _TreeSplitter(source).split(root)


def _unquote(word: Word) -> str:
    """Return a word's value; where that is only known at run time,
    its source without the quotes.
    """
    return word.value if word.is_known else _strip_quotes(word.source)


def _strip_quotes(source: str) -> str:
    return re.sub(
        _QUOTES, lambda quote: quote[1] or quote[2] or quote[3] or "", source, flags=re.DOTALL
    )


class _TreeSplitter:
    """One pass over the tokens of a tree. `words`: those behind the last operator;
    `end`: of the last token.
    """

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.steps: list[LineStep] = []
        self.words: list[str] = []
        self.end = 0

    def split(self, root: Node) -> list[LineStep]:
        self._visit_all(root.children)
        self._end_step("")
        return self.steps

    def _end_step(self, operator: str) -> None:
        self.steps.append(LineStep(self.words, operator))
        self.words = []

    def _visit_all(self, nodes: Sequence[Node]) -> None:
        for group in group_adjacent(nodes):
            self._visit(group)

    def _visit(self, group: list[Node]) -> None:
        """Read adjacent word nodes, which are one word, or one other node."""
        node = group[0]
        # The tree has no token for a newline that ends a command.
        gap = self.source[self.end : node.start_byte].replace(b"\\\n", b"")
        if self.words and b"\n" in gap:
            self._end_step("\n")
        if node.type in WORD_NODES or node.type == "variable_assignment":
            self._add_word(group)
        elif node.type == "heredoc_redirect":
            self._visit_all(
                [each for each in node.children if each.type not in _SKIPPED_HEREDOC_NODES]
            )
        elif node.type in _OPERATORS:
            self._end_step(node.type)
        elif node.children and node.type not in _SKIPPED_NODES:
            self._visit_all(node.children)
        elif node.type not in _SKIPPED_NODES:
            self.words.append(self._read_text(node.start_byte, node.end_byte))
        self.end = max(self.end, group[-1].end_byte)

    def _add_word(self, group: list[Node]) -> None:
        start, end = group[0].start_byte, group[-1].end_byte
        substitutions = _find_substitutions(group)
        if not substitutions:
            is_assignment = group[0].type == "variable_assignment"
            source = self._read_text(start, end)
            self.words.append(
                _strip_quotes(source) if is_assignment else _unquote(read_word(group, self.source))
            )
        for node in substitutions:
            opening, *inside, closing = node.children
            # `echo $(pytest)`: the word before the operator is the dollar sign.
            prefix = (
                self._read_text(start, opening.end_byte)
                .removesuffix("(")
                .removesuffix("`")
                .replace('"', "")
            )
            self.words += [prefix] if prefix else []
            self._end_step(opening.type.removeprefix("$"))
            self.end = opening.end_byte
            self._visit_all(inside)
            self._end_step(closing.type)
            start = self.end = node.end_byte

    def _read_text(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8", "replace")


def _find_substitutions(nodes: Sequence[Node]) -> list[Node]:
    """Return the outermost command substitutions in a word, in order."""
    found: list[Node] = []
    for node in nodes:
        if node.type in {"command_substitution", "process_substitution"} and len(node.children) > 1:
            found.append(node)
        elif node.type != "arithmetic_expansion":
            found += _find_substitutions(node.children)
    return found


def find_functions(line: str) -> set[str]:
    """Return the names of the shell functions and aliases that a line defines."""
    names: set[str] = set()
    steps = split_line(line)
    for step, following in pairwise([*steps, LineStep([], "")]):
        # `make() {`, `function make {`
        if step.operator == "(" and following == ([], ")"):
            names.update(step.words[-1:])
        if step.words[:1] == ["alias"]:
            names.update(word.partition("=")[0] for word in step.words[1:] if "=" in word)
        names.update(name for word, name in pairwise(step.words) if word == "function")
    return names
