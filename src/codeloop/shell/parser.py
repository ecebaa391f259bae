"""Parses a shell script into its simple commands, including those inside other commands.

Lines of the small language (`grammar.py`) are read by it alone. For any other script tree-sitter
makes the tree, which `tree_reader.py` reads, since it can't be trusted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from codeloop.schema.limits import BASH_COMMANDS, BASH_NESTING, BASH_SIZE
from codeloop.schema.wire import replace
from codeloop.shell.grammar import read_line
from codeloop.shell.simple_command import RESERVED_WORDS, SimpleCommand, strip_system_folder
from codeloop.shell.tree_parser import LimitExceeded, load_grammar, parse_tree
from codeloop.shell.tree_reader import TreeReader
from codeloop.shell.unwrap import may_evaluate, reads_stdin, unwrap
from codeloop.shell.word import Word, make_word

# Control characters, separators that only some readers take for line ends,
# and the marks of `kit.wildcard`.
_HIDDEN_CHARS = r"[\x00-\x08\x0b-\x1f\x7f\u0085\u2028\u2029\ue000\ue001]"


class Assignment(NamedTuple):
    """The words that a variable may become, and the number of commands before the assignment."""

    command_count: int
    words: tuple[Word, ...]


class Script(Struct):
    """The commands that have been read so far. `is_unknown`: the script may run something
    that is not among them.

    `deadline`: when parsing gives up, in seconds of this thread's processor time: on a busy machine
    a line would be unknown after any pause. `variables`: the assignment of each by name;
    None: its value can't be known.
    """

    commands: list[SimpleCommand] = []
    is_unknown: bool = False
    deadline: float = 0.0
    variables: dict[str, Assignment | None] = {}

    def add(self, command: SimpleCommand, depth: int) -> None:
        """Add a command and what it runs. Raises LimitExceeded."""
        if len(self.commands) >= BASH_COMMANDS.value or depth > BASH_NESTING.value:
            raise LimitExceeded
        name = command.words[0]
        if not name.is_known or name.value in RESERVED_WORDS or "=" in name.value:
            self.is_unknown = True
            self.commands.append(command)
            return
        program = strip_system_folder(name.value)
        words = (make_word(program), *command.words[1:])
        self.commands.append(replace(command, words=words))
        # What a program of another folder runs is judged by its bare name,
        # too: `./sudo rm x` may run `rm x`.
        bare_words = (make_word(program.rpartition("/")[2] or program), *command.words[1:])
        if reads_stdin(bare_words):
            self._read_stdin(command, depth)
            return
        wrapped = unwrap(bare_words)
        self.is_unknown = self.is_unknown or wrapped.is_unknown
        for inner_words in wrapped.commands:
            self.add(SimpleCommand(inner_words), depth + 1)
        for text in wrapped.scripts:
            self.read(text, depth + 1)

    def assign(self, name: str, words: Sequence[Word] | None) -> None:
        """Record that a variable becomes one of the words.
        With None, or at a second time, its value can't be known.
        """
        is_first = name not in self.variables
        self.variables[name] = (
            Assignment(len(self.commands), tuple(words)) if is_first and words else None
        )

    def _read_stdin(self, command: SimpleCommand, depth: int) -> None:
        if command.stdin is not None:
            self.read(command.stdin, depth + 1)
        elif not any(
            redirect.operator == "<" and redirect.target.is_known for redirect in command.redirects
        ):
            self.is_unknown = True

    def read(self, text: str, depth: int = 0) -> None:
        """Read a script. Raises LimitExceeded."""
        if depth > BASH_NESTING.value or len(text) > BASH_SIZE.value:
            raise LimitExceeded
        parsed_line = read_line(text)
        # The small grammar is certain, and most lines are in it,
        # so tree-sitter is loaded for other scripts only.
        if not parsed_line.refusal:
            for simple in parsed_line.commands:
                # A test that evaluates nothing runs nothing, so no rule need be asked about it.
                if simple.words[0].value != "[" or may_evaluate(simple.words):
                    self.add(
                        replace(simple, is_plain_step=simple.is_plain_step and depth == 0), depth
                    )
            return
        if re.search(_HIDDEN_CHARS, text):
            self.is_unknown = True
        self._read_tree(text.encode("utf-8", "surrogateescape"), depth)

    def _read_tree(self, source: bytes, depth: int) -> None:
        began = time.thread_time()
        load_grammar()
        # The grammar is loaded with the first line that needs it,
        # which may take longer than all parsing.
        self.deadline += time.thread_time() - began
        root = parse_tree(source, self.deadline)
        if root.has_error:
            self.is_unknown = True
        TreeReader(self, source, depth).walk(root)
