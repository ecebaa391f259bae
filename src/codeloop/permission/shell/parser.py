"""Parses a shell script into its simple commands, including those inside other commands.

Lines of the small language (`grammar.py`) are read by it alone. For any other script tree-sitter makes the tree, which
is not trusted: wherever it may differ from how bash reads the script, the script counts as unknown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from codeloop.permission.shell import wrappers
from codeloop.permission.shell.builtins import (
    CONSTANT_ARITHMETIC,
    may_evaluate,
    may_evaluate_arithmetic,
    may_evaluate_test,
)
from codeloop.permission.shell.grammar import read_line
from codeloop.permission.shell.simple_command import RESERVED_WORDS, Redirect, SimpleCommand, strip_system_folder
from codeloop.permission.shell.word import Word, make_word, read_word
from codeloop.schema.limits import BASH_COMMANDS, BASH_NESTING, BASH_NODES, BASH_SIZE
from codeloop.schema.wire import replace

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_WORD_NODES = """
word number raw_string string translated_string ansi_c_string concatenation simple_expansion expansion $ command_name
command_substitution arithmetic_expansion process_substitution brace_expression test_operator
"""
WORD_NODES = frozenset(_WORD_NODES.split())
# Variables whose value some program runs as a command, or reads more options from.
COMMAND_VARIABLES = (
    r"PAGER|(VISUAL_)?EDITOR|VISUAL|GIT_(SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)"
    r"|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|PROMPT_COMMAND|RIPGREP_CONFIG_PATH"
)
# Variables that change how bash reads a line, or what every program loads.
SHELL_CHANGING_VARIABLES = (
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|IFS|LD_(PRELOAD|AUDIT)|TAR_OPTIONS|PERL5OPT|DYLD_\w+"
    r"|GIT_(CONFIG\w*|EXEC_PATH)|BASH_FUNC.*"
)
# Inside these the commands run one level deeper; BASH_NESTING bounds the levels.
NESTING_NODES = frozenset({"command_substitution", "process_substitution", "subshell", "compound_statement"})
# Parts of a text that the tree shows as nodes of their own, so that they are checked there.
EXPANSION_NODES = frozenset({"command_substitution", "expansion", "simple_expansion", "arithmetic_expansion", "string"})
# Commands directly in these run in the shell of the line itself, so a `cd` among them lasts.
STEP_NODES = frozenset({"program", "list", "redirected_statement"})
# To bash these end at a newline. A tree that continues one over a newline is wrong.
ONE_LINE_NODES = frozenset(
    {"command", "file_redirect", "herestring_redirect", "redirected_statement", "declaration_command"}
)
# Where one of these ends, a word ends, so one of WORD_BORDERS has to follow.
WORD_ENDING_NODES = ONE_LINE_NODES | {"variable_assignment", "variable_assignments", "unset_command", "test_command"}
WORD_BORDERS = frozenset(bytes([char]) for char in b";&|()<>`\n \t")
HEREDOC_DELIMITER = r"[\w.-]+|'[\w. -]+'|\"[\w. -]+\"|\\[\w.-]+"
# Control characters, separators that only some readers take for line ends, and the marks of `kit.wildcard`.
HIDDEN_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u0085\u2028\u2029\ue000\ue001]")
# tree-sitter-bash drops a lone `-` before a here-document.
LOST_DASH = re.compile(rb"[ \t]+-[ \t]+\Z")
# Tokens that may hold a newline; in any other one it would be the end of a command to the shell.
MULTILINE_TOKENS = frozenset(
    {"raw_string", "string_content", "ansi_c_string", "heredoc_body", "heredoc_content", "heredoc_start", "heredoc_end"}
)
ESCAPED_BYTE = re.compile(rb"\\.", re.DOTALL)
# All that may stand between two tokens: blanks, newlines, and continued lines.
BLANK_GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")


class LimitExceeded(Exception):
    """The script exceeds a limit; the rest of it is unknown."""


class Assignment(NamedTuple):
    """The words that a variable may become, and the number of commands before the assignment."""

    command_count: int
    words: tuple[Word, ...]


@dataclass(slots=True)
class Script:
    """The commands that have been read so far. `is_unknown`: the script may run something that is not among them.

    `deadline`: when parsing gives up, in seconds of the monotonic clock. `variables`: the assignment of each by name;
    None: its value can't be known.
    """

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    is_unknown: bool = False
    deadline: float = 0.0
    variables: dict[str, Assignment | None] = field(default_factory=dict[str, "Assignment | None"])

    def add(self, command: SimpleCommand, depth: int) -> None:
        """Add a command and what it runs. Raises LimitExceeded."""
        if len(self.commands) >= BASH_COMMANDS.value or depth > BASH_NESTING.value:
            raise LimitExceeded
        name = command.words[0]
        if not name.is_known or name.value in RESERVED_WORDS or "=" in name.value:
            self.is_unknown = True
            self.commands.append(command)
            return
        short = strip_system_folder(name.value)
        words = (make_word(short), *command.words[1:])
        self.commands.append(
            SimpleCommand(words, command.redirects, command.stdin, command.is_plain_step, command.has_assignments)
        )
        bare_words = (make_word(short.rpartition("/")[2] or short), *command.words[1:])
        if bare_words[0].value in wrappers.SHELLS | {".", "source"} and wrappers.reads_stdin(bare_words):
            self._read_stdin(command, depth)
            return
        inner = wrappers.unwrap(bare_words)
        self.is_unknown = self.is_unknown or inner.is_unknown
        for inside in inner.commands:
            self.add(SimpleCommand(inside), depth + 1)
        for text in inner.scripts:
            self.read(text, depth + 1)

    def assign(self, name: str, words: Sequence[Word] | None) -> None:
        """Record that a variable becomes one of the words. With None, or at a second time, its value can't be known."""
        is_first = name not in self.variables
        self.variables[name] = Assignment(len(self.commands), tuple(words)) if is_first and words else None

    def _read_stdin(self, command: SimpleCommand, depth: int) -> None:
        if command.stdin is not None:
            self.read(command.stdin, depth + 1)
        elif not any(redirect.operator == "<" and redirect.target.is_known for redirect in command.redirects):
            self.is_unknown = True

    def read(self, text: str, depth: int = 0) -> None:
        """Read a script. Raises LimitExceeded."""
        if depth > BASH_NESTING.value or len(text) > BASH_SIZE.value:
            raise LimitExceeded
        parsed_line = read_line(text)
        # The small grammar is certain, and most lines are in it, so tree-sitter is loaded for other scripts only.
        if not parsed_line.refusal:
            for simple in parsed_line.commands:
                if simple.words[0].value != "[" or may_evaluate(simple.words):
                    self.add(replace(simple, is_plain_step=simple.is_plain_step and depth == 0), depth)
            return
        if HIDDEN_CHARS.search(text):
            self.is_unknown = True
        self._read_tree(text.encode("utf-8", "surrogateescape"), depth)

    def _read_tree(self, source: bytes, depth: int) -> None:
        try:
            # Read in pieces: tree-sitter calls `progress_callback`, which can stop it, only with a reader function.
            tree = _make_parser().parse(
                lambda offset, _: source[offset : offset + 65536],
                progress_callback=lambda _, __: time.monotonic() > self.deadline,
            )
        except ValueError as error:
            raise LimitExceeded from error
        root = tree.root_node
        if root.has_error:
            self.is_unknown = True
        if root.descendant_count > BASH_NODES.value:
            raise LimitExceeded
        _TreeReader(self, source, depth).walk(root)


def _make_parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _TreeReader:
    """One pass over one tree, in source order. Where tree-sitter and bash may differ, the script becomes unknown.

    `end`: the offset behind the last token. `nesting`, `is_step`: of the node that is visited.
    `inherited_redirects`: by the id of a command's node, the redirections of the statement around it.
    """

    def __init__(self, script: Script, source: bytes, depth: int) -> None:
        self.script = script
        self.source = source
        self.depth = depth
        self.inherited_redirects: dict[int, list[Node]] = {}
        self.end = 0
        self.nesting = depth
        self.is_step = depth == 0

    def walk(self, root: Node) -> None:
        pending = [(root, self.depth, self.depth == 0)]
        while pending:
            node, self.nesting, self.is_step = pending.pop()
            children = node.children
            if not children:
                self._check_gap(node)
            self._visit(node)
            nesting = self.nesting + (node.type in NESTING_NODES)
            is_step = self.is_step and node.type in STEP_NODES
            self._check_borders(node, children)
            pending.extend((child, nesting, is_step) for child in reversed(children))
        if not BLANK_GAP.fullmatch(self.source[self.end :]):
            self.script.is_unknown = True

    def _check_gap(self, node: Node) -> None:
        """Check that the text between two tokens, which the tree leaves out, can only be blank to the shell."""
        gap = self.source[self.end : node.start_byte]
        joins = gap.startswith(b"\\\n") and not gap.strip(b"\\\n") and gap == b"\\\n" * (len(gap) // 2)
        before = self.source[self.end - 1 : self.end]
        joins = joins and before not in b";&|(" and node.type not in {";", "&&", "||", "|"}
        text = node.text or b""
        if node.type not in MULTILINE_TOKENS and text.strip() and b"\n" in ESCAPED_BYTE.sub(b"", text):
            self.script.is_unknown = True
        is_lost_dash = node.type in {"<<", "<<-"} and LOST_DASH.fullmatch(gap)
        if joins or not (is_lost_dash or BLANK_GAP.fullmatch(gap)):
            self.script.is_unknown = True
        if node.type == "comment" and not gap and before and before not in b" \t\n;&|()":
            self.script.is_unknown = True
        self.end = max(self.end, node.end_byte)

    def _check_borders(self, node: Node, children: Sequence[Node]) -> None:
        """Check that each command in the tree starts and ends where it does for the shell."""
        for first, right in pairwise(children):
            gap = self.source[first.end_byte : right.start_byte]
            if gap:
                is_broken = node.type in ONE_LINE_NODES and b"\n" in gap.replace(b"\\\n", b"")
                self.script.is_unknown |= is_broken or node.type == "variable_assignment"
            elif (
                first.type in WORD_ENDING_NODES
                and self.source[right.start_byte : right.start_byte + 1] not in WORD_BORDERS
            ):
                self.script.is_unknown = True

    def _visit(self, node: Node) -> None:
        match node.type:
            case "command":
                self._add_command(node)
            case "redirected_statement":
                self._add_redirects(node)
            case "declaration_command" | "unset_command":
                parts = self._read_text(node).split()
                words = [make_word(part) if part.isalpha() else Word(part, part) for part in parts]
                self.script.add(SimpleCommand(tuple(words)), self.nesting)
                names = [self._read_text(child) for child in node.named_children if child.type != "variable_assignment"]
                self.script.is_unknown |= any(re.search(r"[\[$`'\"\\]|^[-+]\w*[aAin]", name) for name in names)
            case "variable_assignment":
                self._assign_variable(node)
            case "for_statement":
                self._assign_loop_variable(node)
            case "command_substitution":
                self._add_file_reading(node)
            case "heredoc_redirect":
                self._check_heredoc(node)
            case "expansion":
                text = self._plain_text(node)
                self.script.is_unknown |= bool(re.search(r"@[A-Za-z]\}$|^\$\{!|`|\$\(", text))
                offset = re.match(r"\$\{[\w@*#]+(?:\[[^\]]*\])?:(?![-=?+])(.*)\}", self._read_text(node), re.DOTALL)
                self.script.is_unknown |= offset is not None and not CONSTANT_ARITHMETIC.fullmatch(offset[1])
            case "test_command":
                self.script.is_unknown |= may_evaluate_test(self._read_text(node))
            case "arithmetic_expansion" | "c_style_for_statement" | "compound_statement":
                self.script.is_unknown |= may_evaluate_arithmetic(self._read_text(node))
            case "subscript":
                index = self._read_text(node).partition("[")[2].rpartition("]")[0]
                self.script.is_unknown |= index not in {"@", "*"} and not CONSTANT_ARITHMETIC.fullmatch(index)
            case _:
                pass

    def _read_text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add_command(self, node: Node) -> None:
        children = [*node.children, *self.inherited_redirects.get(node.id, ())]
        words, redirects, stdin = self._read_children(children)
        has_assignments = any(child.type == "variable_assignment" for child in children)
        simple = SimpleCommand(
            tuple(words) or (make_word(":"),), tuple(redirects), stdin, self.is_step, has_assignments
        )
        self.script.add(simple, self.nesting)

    def _add_redirects(self, node: Node) -> None:
        """Assign a statement's redirections to their command, the last one of a pipeline or list."""
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        redirects += self.inherited_redirects.get(node.id, ())
        body = next((child for child in node.children if not child.type.endswith("_redirect")), None)
        while body is not None and body.type in {"pipeline", "list", "negated_command"} and body.named_children:
            body = body.named_children[-1]
        if body is not None and body.type in {"command", "redirected_statement"}:
            self.inherited_redirects[body.id] = redirects
            return
        words, more_redirects, _ = self._read_children(redirects)
        self.script.add(SimpleCommand((make_word(":"), *words), tuple(more_redirects)), self.nesting)

    def _read_children(self, children: Sequence[Node]) -> tuple[list[Word], list[Redirect], str | None]:
        words: list[Word] = []
        redirects: list[Redirect] = []
        stdin = None
        for group in _group_adjacent(children):
            first = group[0]
            if first.type in WORD_NODES:
                words.append(read_word(group, self.source))
            elif first.type == "file_redirect":
                words += self._read_file_redirect(first, redirects)
            elif first.type == "herestring_redirect":
                targets = [g for g in _group_adjacent(first.children) if g[0].type in WORD_NODES]
                word = read_word(targets[0], self.source) if targets else None
                stdin = word.value if word and word.is_known else None
                redirects += [Redirect("<<<", word)] if word else []
            elif first.type == "heredoc_redirect":
                more_words, more_redirects, stdin = self._read_heredoc(first)
                is_lost_dash = LOST_DASH.search(self.source[: first.start_byte][-64:])
                words += [make_word("-")] if is_lost_dash and words and words[-1].value != "-" else []
                words += more_words
                redirects += more_redirects
        return words, redirects, stdin

    def _read_file_redirect(self, node: Node, redirects: list[Redirect]) -> list[Word]:
        """Add a redirection; return the words that follow its target, which are the command's."""
        groups = _group_adjacent(node.children)
        operator = "".join(self._read_text(n) for group in groups for n in group if n.type not in WORD_NODES)
        words = [read_word(group, self.source) for group in groups if group[0].type in WORD_NODES]
        if words:
            redirects.append(Redirect(operator, words[0]))
        return words[1:]

    def _read_heredoc(self, node: Node) -> tuple[list[Word], list[Redirect], str | None]:
        words, redirects, stdin = self._read_children(
            [child for child in node.children if child.type != "heredoc_redirect"]
        )
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        delimiter = self._read_text(start) if start else ""
        if stdin is None and body is not None:
            text = self._read_text(body)
            is_quoted = bool(re.search(r"['\"\\]", delimiter))
            stdin = text if is_quoted or not re.search(r"[$`\\]", text) else None
        return words, [Redirect("<<", Word(re.sub(r"['\"\\]", "", delimiter), delimiter)), *redirects], stdin

    def _check_heredoc(self, node: Node) -> None:
        """Check for what the tree does not show: backquotes in the text, and an earlier end of the document."""
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        end = next((child for child in node.children if child.type == "heredoc_end"), None)
        if start is None or body is None or end is None:
            self.script.is_unknown = True
            return
        delimiter = self._read_text(start)
        plain = re.sub(r"['\"\\]", "", delimiter)
        strip = "\t" if any(child.type == "<<-" for child in node.children) else ""
        if any(line.lstrip(strip) == plain if strip else line == plain for line in self._read_text(body).split("\n")):
            self.script.is_unknown = True
        if self._read_text(end).strip() != plain or not re.fullmatch(HEREDOC_DELIMITER, delimiter):
            self.script.is_unknown = True
        if plain != delimiter:
            return
        if "$\\\n" in self._read_text(body) or re.search(r"`|\$[({\[]", self._plain_text(body)):
            self.script.is_unknown = True

    def _plain_text(self, node: Node) -> str:
        """Return the text of a node without the substitutions that the tree shows in it, and without escapes."""
        text, position = "", node.start_byte
        for child in node.named_children:
            if child.type in EXPANSION_NODES:
                text += self.source[position : child.start_byte].decode("utf-8", "replace")
                position = child.end_byte
        text += self.source[position : node.end_byte].decode("utf-8", "replace")
        return re.sub(r"\\.", "", text, flags=re.DOTALL)

    def _add_file_reading(self, node: Node) -> None:
        """Add what `$(< file)` reads: a redirection without a command."""
        _, redirects, _ = self._read_children([child for child in node.children if child.type == "file_redirect"])
        if redirects:
            self.script.add(SimpleCommand((make_word(":"),), tuple(redirects)), self.nesting)

    def _assign_loop_variable(self, node: Node) -> None:
        name = next((self._read_text(child) for child in node.children if child.type == "variable_name"), "")
        words = [
            read_word(group, self.source) for group in _group_adjacent(node.children) if group[0].type in WORD_NODES
        ]
        self.script.assign(name, words)

    def _assign_variable(self, node: Node) -> None:
        name, _, text = self._read_text(node).partition("=")
        groups = [group for group in _group_adjacent(node.children[2:]) if group[0].type in WORD_NODES]
        is_certain = self.depth == 0 and node.parent is not None and node.parent.type == "program"
        self.script.assign(name, [read_word(groups[0], self.source)] if groups and is_certain else None)
        name = name.removesuffix("+")
        if re.fullmatch(SHELL_CHANGING_VARIABLES, name):
            self.script.is_unknown = True
        elif re.fullmatch(COMMAND_VARIABLES, name) and text:
            values = [group for group in _group_adjacent(node.children[2:]) if group[0].type in WORD_NODES]
            word = read_word(values[0], self.source) if values else None
            if word is None or not word.is_known:
                self.script.is_unknown = True
            elif word.value:
                self.script.read(word.value, self.depth + 1)


def _group_adjacent(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group word nodes without a gap between them, which are one word; every other node is a group of its own."""
    groups: list[list[Node]] = []
    for node in nodes:
        last = groups[-1][-1] if groups else None
        if last and last.end_byte == node.start_byte and last.type in WORD_NODES and node.type in WORD_NODES:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups
