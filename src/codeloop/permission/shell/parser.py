"""Parses a shell script into its simple commands, including those inside other commands."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from codeloop.kit.wildcard import MARKS
from codeloop.permission.shell import wrappers
from codeloop.permission.shell.builtins import evaluates
from codeloop.permission.shell.command import RESERVED, Redirect, SimpleCommand, strip_system_folder
from codeloop.permission.shell.grammar import read_line
from codeloop.permission.shell.words import Word, make_word, read_word
from codeloop.schema.limits import BASH_COMMANDS, BASH_NESTING, BASH_NODES, BASH_SIZE
from codeloop.schema.wire import replace

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_WORD_TYPES = """
word number raw_string string translated_string ansi_c_string concatenation simple_expansion expansion $ command_name
command_substitution arithmetic_expansion process_substitution brace_expression test_operator
"""
WORD_TYPES = frozenset(_WORD_TYPES.split())
RUNS_WHEN_SET = (  # variables whose value some program runs as a command, or reads more options from
    r"PAGER|(VISUAL_)?EDITOR|VISUAL|GIT_(SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)"
    r"|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|PROMPT_COMMAND|RIPGREP_CONFIG_PATH"
)
CHANGES_MEANING = (  # variables that change how bash reads a line, or what every program loads
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|IFS|LD_(PRELOAD|AUDIT)|TAR_OPTIONS|PERL5OPT|DYLD_\w+"
    r"|GIT_(CONFIG\w*|EXEC_PATH)|BASH_FUNC.*"
)
NESTS = frozenset({"command_substitution", "process_substitution", "subshell", "compound_statement"})
READ = frozenset({"command_substitution", "expansion", "simple_expansion", "arithmetic_expansion", "string"})
STEPS = frozenset({"program", "list", "redirected_statement"})
ONE_LINE = frozenset({"command", "file_redirect", "herestring_redirect", "redirected_statement", "declaration_command"})
ENDS_WORD = ONE_LINE | {"variable_assignment", "variable_assignments", "unset_command", "test_command"}
BORDERS = frozenset(bytes([char]) for char in b";&|()<>`\n \t")
HEREDOC_DELIMITER = r"[\w.-]+|'[\w. -]+'|\"[\w. -]+\"|\\[\w.-]+"
# Control characters, separators that only some readers take for line ends, and the marks of `kit.wildcard`.
STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u0085\u2028\u2029\ue000\ue001]")
LOST_DASH = re.compile(rb"[ \t]+-[ \t]+\Z")  # tree-sitter-bash drops a lone `-` before a here-document
QUOTING_TYPES = frozenset(
    {"raw_string", "string_content", "ansi_c_string", "heredoc_body", "heredoc_content", "heredoc_start", "heredoc_end"}
)
"""Tokens that may hold a newline; in any other one it would be the end of a command to the shell."""
ESCAPE = re.compile(rb"\\.", re.DOTALL)
CERTAIN_TEST = re.compile(r"\[\s+(!\s+)?(-[a-zA-Z]\s+)?Q?[^\s$`]*(\s+(=|==|!=|-\w\w)\s+Q?[^\s$`]*)?\s+\]")
NUMERIC_TEST = re.compile(r"(?<=\s)(?:\$#|\$\?|[+-]?[0-9]+)\s+-[engl][eqt]\s+(?:\$#|\$\?|[+-]?[0-9]+)(?=\s)")
NUMBERS = re.compile(r"[0-9\s+*/%<>=!&|^~?:,()-]*")
GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")


class TooMuch(Exception):
    """The script exceeds a limit; what follows is unknown."""


Variable = tuple[int, tuple[Word, ...]]


@dataclass(slots=True)
class Script:
    """The commands that have been read so far. `is_unknown`: the script may run something that is not among them.

    `variables`: the value of each, with the number of commands before its assignment; None: it can't be known.
    """

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    is_unknown: bool = False
    deadline: float = 0.0
    variables: dict[str, Variable | None] = field(default_factory=dict[str, "Variable | None"])

    def add(self, command: SimpleCommand, depth: int) -> None:
        """Add a command and what it runs. Raises TooMuch."""
        if len(self.commands) >= BASH_COMMANDS.value or depth > BASH_NESTING.value:
            raise TooMuch
        name = command.words[0]
        if not name.is_known or name.value in RESERVED or "=" in name.value:
            self.is_unknown = True
            self.commands.append(command)
            return
        short = strip_system_folder(name.value)
        words = (make_word(short), *command.words[1:])
        self.commands.append(
            SimpleCommand(words, command.redirects, command.stdin, command.is_plain_step, command.assigns)
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
        """Note what a variable becomes: one of the words; None, or a second time: it can't be known."""
        is_first = name not in self.variables and words
        self.variables[name] = (len(self.commands), tuple(words)) if is_first and words else None

    def _read_stdin(self, command: SimpleCommand, depth: int) -> None:
        if command.stdin is not None:
            self.read(command.stdin, depth + 1)
        elif not any(redirect.operator == "<" and redirect.target.is_known for redirect in command.redirects):
            self.is_unknown = True

    def read(self, text: str, depth: int = 0) -> None:
        """Read a script. Raises TooMuch."""
        if depth > BASH_NESTING.value or len(text) > BASH_SIZE.value:
            raise TooMuch
        reading = read_line(text)
        if not reading.refusal:  # the small grammar is certain; tree-sitter is loaded for other scripts only
            for simple in reading.commands:
                if simple.words[0].value != "[" or evaluates(simple.words):
                    self.add(replace(simple, is_plain_step=simple.is_plain_step and depth == 0), depth)
            return
        if STRANGE.search(text):
            self.is_unknown = True
        self._read_tree(text.encode("utf-8", "surrogateescape"), depth)

    def _read_tree(self, source: bytes, depth: int) -> None:
        try:
            tree = _make_parser().parse(
                lambda offset, _: source[offset : offset + 65536],
                progress_callback=lambda _, __: time.monotonic() > self.deadline,
            )
        except ValueError as error:
            raise TooMuch from error
        root = tree.root_node
        if root.has_error:
            self.is_unknown = True
        if root.descendant_count > BASH_NODES.value:
            raise TooMuch
        _Walk(self, source, depth).walk(root)


def _make_parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Walk:
    """One pass over one tree, in source order. Where tree-sitter and bash may differ, the script becomes unknown."""

    def __init__(self, script: Script, source: bytes, depth: int) -> None:
        self.script = script
        self.source = source
        self.depth = depth
        self.extra: dict[int, list[Node]] = {}
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
            nesting = self.nesting + (node.type in NESTS)
            is_step = self.is_step and node.type in STEPS
            self._check_borders(node, children)
            pending.extend((child, nesting, is_step) for child in reversed(children))
        if not GAP.fullmatch(self.source[self.end :]):
            self.script.is_unknown = True

    def _check_gap(self, node: Node) -> None:
        """Check that the text between two tokens, which the tree leaves out, can only be blank to the shell."""
        gap = self.source[self.end : node.start_byte]
        joins = gap.startswith(b"\\\n") and not gap.strip(b"\\\n") and gap == b"\\\n" * (len(gap) // 2)
        before = self.source[self.end - 1 : self.end]
        joins = joins and before not in b";&|(" and node.type not in {";", "&&", "||", "|"}
        text = node.text or b""
        if node.type not in QUOTING_TYPES and text.strip() and b"\n" in ESCAPE.sub(b"", text):
            self.script.is_unknown = True
        is_lost_dash = node.type in {"<<", "<<-"} and LOST_DASH.fullmatch(gap)
        if joins or not (is_lost_dash or GAP.fullmatch(gap)):
            self.script.is_unknown = True
        if node.type == "comment" and not gap and before and before not in b" \t\n;&|()":
            self.script.is_unknown = True
        self.end = max(self.end, node.end_byte)

    def _check_borders(self, node: Node, children: Sequence[Node]) -> None:
        """Check that each command in the tree starts and ends where it does for the shell."""
        for first, right in pairwise(children):
            gap = self.source[first.end_byte : right.start_byte]
            if gap:
                is_broken = node.type in ONE_LINE and b"\n" in gap.replace(b"\\\n", b"")
                self.script.is_unknown |= is_broken or node.type == "variable_assignment"
            elif first.type in ENDS_WORD and self.source[right.start_byte : right.start_byte + 1] not in BORDERS:
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
                self._note_assignment(node)
            case "for_statement":
                self._note_loop(node)
            case "command_substitution":
                self._read_file(node)
            case "heredoc_redirect":
                self._check_heredoc(node)
            case "expansion":
                text = self._plain_text(node)
                self.script.is_unknown |= bool(re.search(r"@[A-Za-z]\}$|^\$\{!|`|\$\(", text))
                offset = re.match(r"\$\{[\w@*#]+(?:\[[^\]]*\])?:(?![-=?+])(.*)\}", self._read_text(node), re.DOTALL)
                self.script.is_unknown |= offset is not None and not NUMBERS.fullmatch(offset[1])
            case "test_command":
                self.script.is_unknown |= _test_evaluates(self._read_text(node))
            case "arithmetic_expansion" | "c_style_for_statement" | "compound_statement":
                self.script.is_unknown |= _calculates(self._read_text(node))
            case "subscript":
                index = self._read_text(node).partition("[")[2].rpartition("]")[0]
                self.script.is_unknown |= index not in {"@", "*"} and not NUMBERS.fullmatch(index)
            case _:
                pass

    def _read_text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add_command(self, node: Node) -> None:
        children = [*node.children, *self.extra.get(node.id, ())]
        words, redirects, stdin = self._read_parts(children)
        assigns = any(child.type == "variable_assignment" for child in children)
        simple = SimpleCommand(tuple(words) or (make_word(":"),), tuple(redirects), stdin, self.is_step, assigns)
        self.script.add(simple, self.nesting)

    def _add_redirects(self, node: Node) -> None:
        """Assign a statement's redirections to their command, the last one of a pipeline or list."""
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        redirects += self.extra.get(node.id, ())
        body = next((child for child in node.children if not child.type.endswith("_redirect")), None)
        while body is not None and body.type in {"pipeline", "list", "negated_command"} and body.named_children:
            body = body.named_children[-1]
        if body is not None and body.type in {"command", "redirected_statement"}:
            self.extra[body.id] = redirects
            return
        words, more_redirects, _ = self._read_parts(redirects)
        self.script.add(SimpleCommand((make_word(":"), *words), tuple(more_redirects)), self.nesting)

    def _read_parts(self, children: Sequence[Node]) -> tuple[list[Word], list[Redirect], str | None]:
        words: list[Word] = []
        redirects: list[Redirect] = []
        stdin = None
        for group in _group_adjacent(children):
            first = group[0]
            if first.type in WORD_TYPES:
                words.append(read_word(group, self.source))
            elif first.type == "file_redirect":
                words += self._read_file_redirect(first, redirects)
            elif first.type == "herestring_redirect":
                targets = [g for g in _group_adjacent(first.children) if g[0].type in WORD_TYPES]
                word = read_word(targets[0], self.source) if targets else None
                stdin = word.value if word and word.is_known else None
                redirects += [Redirect("<<<", word)] if word else []
            elif first.type == "heredoc_redirect":
                more, more_redirects, stdin = self._read_heredoc(first)
                is_lost_dash = LOST_DASH.search(self.source[: first.start_byte][-64:])
                words += [make_word("-")] if is_lost_dash and words and words[-1].value != "-" else []
                words += more
                redirects += more_redirects
        return words, redirects, stdin

    def _read_file_redirect(self, node: Node, redirects: list[Redirect]) -> list[Word]:
        """Add a redirection; return the words that follow its target, which are the command's."""
        groups = _group_adjacent(node.children)
        operator = "".join(self._read_text(n) for group in groups for n in group if n.type not in WORD_TYPES)
        words = [read_word(group, self.source) for group in groups if group[0].type in WORD_TYPES]
        if words:
            redirects.append(Redirect(operator, words[0]))
        return words[1:]

    def _read_heredoc(self, node: Node) -> tuple[list[Word], list[Redirect], str | None]:
        words, redirects, stdin = self._read_parts(
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
            if child.type in READ:
                text += self.source[position : child.start_byte].decode("utf-8", "replace")
                position = child.end_byte
        text += self.source[position : node.end_byte].decode("utf-8", "replace")
        return re.sub(r"\\.", "", text, flags=re.DOTALL)

    def _read_file(self, node: Node) -> None:
        """Add what `$(< file)` reads: a redirection without a command."""
        _, redirects, _ = self._read_parts([child for child in node.children if child.type == "file_redirect"])
        if redirects:
            self.script.add(SimpleCommand((make_word(":"),), tuple(redirects)), self.nesting)

    def _note_loop(self, node: Node) -> None:
        name = next((self._read_text(child) for child in node.children if child.type == "variable_name"), "")
        words = [
            read_word(group, self.source) for group in _group_adjacent(node.children) if group[0].type in WORD_TYPES
        ]
        self.script.assign(name, words)

    def _note_assignment(self, node: Node) -> None:
        name, _, text = self._read_text(node).partition("=")
        groups = [group for group in _group_adjacent(node.children[2:]) if group[0].type in WORD_TYPES]
        is_certain = self.depth == 0 and node.parent is not None and node.parent.type == "program"
        self.script.assign(name, [read_word(groups[0], self.source)] if groups and is_certain else None)
        name = name.removesuffix("+")
        if re.fullmatch(CHANGES_MEANING, name):
            self.script.is_unknown = True
        elif re.fullmatch(RUNS_WHEN_SET, name) and text:
            values = [group for group in _group_adjacent(node.children[2:]) if group[0].type in WORD_TYPES]
            word = read_word(values[0], self.source) if values else None
            if word is None or not word.is_known:
                self.script.is_unknown = True
            elif word.value:
                self.script.read(word.value, self.depth + 1)


def _group_adjacent(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group adjacent word nodes; every other node is a group of its own."""
    groups: list[list[Node]] = []
    for node in nodes:
        last = groups[-1][-1] if groups else None
        if last and last.end_byte == node.start_byte and last.type in WORD_TYPES and node.type in WORD_TYPES:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _calculates(text: str) -> bool:
    """Return whether an arithmetic expression has variables: bash evaluates their values, which may run commands."""
    for start, end in (("$((", "))"), ("$[", "]"), ("((", "))")):
        if text.startswith(start):
            return not NUMBERS.fullmatch(text[len(start) :].removesuffix(end))
    return text.startswith("for")


def _test_evaluates(text: str) -> bool:
    """Return whether `[ ... ]` or `[[ ... ]]` may evaluate the value of a variable."""
    if MARKS.intersection(text):
        return True
    masked = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'", "Q", text, flags=re.DOTALL)
    if text.startswith("[["):
        masked = NUMERIC_TEST.sub("Q", masked)
        return re.search(r"\s-([vR]|eq|ne|l[te]|g[te])\s", masked) is not None
    return re.search(r"\s-[vR]\s", masked) is not None or ("$" in text and not CERTAIN_TEST.fullmatch(masked))
