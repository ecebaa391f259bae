"""Reads the simple commands of a script from the tree that tree-sitter made of it.

The tree is not trusted: wherever it may differ from how bash reads the script, the script counts as
unknown. The comments give lines that tree-sitter and bash read in different ways; tree-sitter
reports no error in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from codeloop.shell.builtin_checks import (
    CONSTANT_ARITHMETIC,
    may_evaluate_arithmetic,
    may_evaluate_expansion,
    may_evaluate_test_text,
)
from codeloop.shell.simple_command import Redirect, SimpleCommand
from codeloop.shell.tree_words import WORD_NODES, group_adjacent, read_word
from codeloop.shell.word import Word, make_word

if TYPE_CHECKING:
    from tree_sitter import Node

# Variables whose value some program runs as a command, or reads more options from.
_COMMAND_VARIABLES = (
    r"PAGER|(VISUAL_)?EDITOR|VISUAL|GIT_(SSH|SSH_COMMAND|PAGER|EDITOR|SEQUENCE_EDITOR"
    r"|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)"
    r"|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER"
    r"|PROMPT_COMMAND|RIPGREP_CONFIG_PATH"
)
# Variables that change how bash reads a line, or what every program loads.
_SHELL_CHANGING_VARIABLES = (
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PS[0-4]|IFS|LD_(PRELOAD|AUDIT)|TAR_OPTIONS|PERL5OPT|DYLD_\w+"
    r"|GIT_(CONFIG\w*|EXEC_PATH)|BASH_FUNC.*"
)
# Further ones that change which code a program is, or where git writes.
_STEERING_VARIABLES = (
    rf"PATH|LD_\w+|GIT_DIR|GIT_WORK_TREE|{_COMMAND_VARIABLES}|{_SHELL_CHANGING_VARIABLES}"
)
# Inside these the commands run one level deeper; BASH_NESTING bounds the levels.
_NESTING_NODES = frozenset(
    {"command_substitution", "process_substitution", "subshell", "compound_statement"}
)
# Parts of a text that the tree shows as nodes of their own, so that they are checked there.
_EXPANSION_NODES = frozenset(
    {"command_substitution", "expansion", "simple_expansion", "arithmetic_expansion", "string"}
)
# Commands directly in these run in the shell of the line itself, so a `cd` among them lasts.
_STEP_NODES = frozenset({"program", "list", "redirected_statement"})
# To bash these end at a newline. A tree that continues one over a newline is wrong.
_ONE_LINE_NODES = frozenset(
    {
        "command",
        "file_redirect",
        "herestring_redirect",
        "redirected_statement",
        "declaration_command",
    }
)
# Where one of these ends, a word ends, so one of _WORD_BORDERS has to follow.
_WORD_ENDING_NODES = _ONE_LINE_NODES | {
    "variable_assignment",
    "variable_assignments",
    "unset_command",
    "test_command",
}
_WORD_BORDERS = frozenset(bytes([char]) for char in b";&|()<>`\n \t")
_HEREDOC_DELIMITER = r"[\w.-]+|'[\w. -]+'|\"[\w. -]+\"|\\[\w.-]+"
# tree-sitter-bash drops a lone `-` before a here-document: of `cat - <<E` it shows `cat <<E`.
_LOST_DASH = rb"[ \t]+-[ \t]+\Z"
# Bytes before a here-document that are searched for such a dash.
_LOST_DASH_BYTES = 64
# Tokens that may hold a newline; in any other one it would be the end of a command to the shell.
_MULTILINE_TOKENS = frozenset(
    {
        "raw_string",
        "string_content",
        "ansi_c_string",
        "heredoc_body",
        "heredoc_content",
        "heredoc_start",
        "heredoc_end",
    }
)
_ESCAPED_BYTE = rb"(?s)\\."
# All that may stand between two tokens: blanks, newlines, and continued lines.
_BLANK_GAP = rb"(?:[ \t\n]|\\\n)*"
_LINE_CONTINUATIONS = rb"(?:\\\n)+"
# `unset 'a[$(cmd)]'` and `declare -i a='b[$(cmd)]'` evaluate;
# so may the name that a variable holds.
_EVALUATED_NAME = r"[\[$`'\"\\]|^[-+]\w*[aAin]"
_QUOTING_CHARS = r"['\"\\]"


def steers_programs(name: str) -> bool:
    """Return whether a variable may make a line do something else than its text says."""
    return re.fullmatch(_STEERING_VARIABLES, name) is not None


class CommandCollector(Protocol):
    """Collects what a tree shows: `parser.Script` as its reader uses it,
    whose methods raise LimitExceeded.
    """

    is_unknown: bool

    def add(self, command: SimpleCommand, depth: int) -> None:
        """Add a command and what it runs."""

    def assign(self, name: str, words: Sequence[Word] | None) -> None:
        """Record that a variable becomes one of the words; None: its value can't be known."""

    def read(self, text: str, depth: int = 0) -> None:
        """Read a script that is part of this one."""


class _CommandParts(NamedTuple):
    """The words and redirections of a command, and the text of its standard input;
    None: not known, or not given.
    """

    words: list[Word]
    redirects: list[Redirect]
    stdin: str | None


class TreeReader:
    """One pass over one tree, in source order. Where tree-sitter and bash may differ,
    the script becomes unknown.

    `end`: the offset behind the last token. `nesting`, `is_step`: of the node that is visited.
    `inherited_redirects`: by the id of a command's node,
    the redirections of the statement around it.
    """

    def __init__(self, script: CommandCollector, source: bytes, depth: int) -> None:
        self.script = script
        self.source = source
        self.depth = depth
        self.inherited_redirects: dict[int, list[Node]] = {}
        self.end = 0
        self.nesting = depth
        self.is_step = depth == 0

    def walk(self, root: Node) -> None:
        """Read the commands below a node. Raises LimitExceeded."""
        pending = [(root, self.depth, self.depth == 0)]
        while pending:
            node, self.nesting, self.is_step = pending.pop()
            children = node.children
            if not children:
                self._check_token(node)
            self._visit(node)
            nesting = self.nesting + (node.type in _NESTING_NODES)
            is_step = self.is_step and node.type in _STEP_NODES
            self._check_borders(node, children)
            pending.extend((child, nesting, is_step) for child in reversed(children))
        # tree-sitter leaves out a carriage return at the end,
        # which is a character of the last word to bash.
        if not re.fullmatch(_BLANK_GAP, self.source[self.end :]):
            self.script.is_unknown = True

    def _check_token(self, token: Node) -> None:
        """Check a token, and the text between it and the one before, which the tree leaves out."""
        gap = self.source[self.end : token.start_byte]
        before = self.source[self.end - 1 : self.end]
        # In `r⏎m x`, with a backslash before the newline, the tree shows the words `r`,
        # `m` and `x`; bash runs `rm x`.
        is_joined = (
            re.fullmatch(_LINE_CONTINUATIONS, gap) is not None
            and before not in b";&|("
            and token.type not in {";", "&&", "||", "|"}
        )
        is_lost_dash = token.type in {"<<", "<<-"} and re.fullmatch(_LOST_DASH, gap)
        if is_joined or not (is_lost_dash or re.fullmatch(_BLANK_GAP, gap)):
            self.script.is_unknown = True
        # In `echo a⏎\rm x` the tree shows one command, with the word `⏎\rm`.
        text = token.text or b""
        if (
            token.type not in _MULTILINE_TOKENS
            and text.strip()
            and b"\n" in re.sub(_ESCAPED_BYTE, b"", text)
        ):
            self.script.is_unknown = True
        # A `#` within a word, as in `a#b`, begins no comment.
        if token.type == "comment" and not gap and before and before not in b" \t\n;&|()":
            self.script.is_unknown = True
        self.end = max(self.end, token.end_byte)

    def _check_borders(self, node: Node, children: Sequence[Node]) -> None:
        """Check that each command in the tree starts and ends where it does for the shell."""
        for first, second in pairwise(children):
            gap = self.source[first.end_byte : second.start_byte]
            if gap:
                # In `>f a⏎\⏎rm x` the tree shows one command; bash runs `a` and then `rm x`. In
                # `x=\⏎⏎rm` it shows the value `rm`; bash assigns "" and runs `rm`.
                is_continued = node.type in _ONE_LINE_NODES and b"\n" in gap.replace(b"\\\n", b"")
                if is_continued or node.type == "variable_assignment":
                    self.script.is_unknown = True
            # In `y=()-x` the tree shows an assignment and a command; bash assigns the text `()-x`.
            elif (
                first.type in _WORD_ENDING_NODES
                and self.source[second.start_byte : second.start_byte + 1] not in _WORD_BORDERS
            ):
                self.script.is_unknown = True

    def _visit(self, node: Node) -> None:
        match node.type:
            case "command":
                self._add_command(node)
            case "redirected_statement":
                self._add_redirects(node)
            case "declaration_command" | "unset_command":
                self._add_declaration(node)
            case "variable_assignment":
                self._assign_variable(node)
            case "for_statement":
                self._assign_loop_variable(node)
            case "command_substitution":
                self._add_file_reading(node)
            case "heredoc_redirect":
                self._check_heredoc(node)
            case "expansion":
                self.script.is_unknown |= may_evaluate_expansion(
                    self._read_text(node), self._read_plain_text(node)
                )
            case "test_command":
                self.script.is_unknown |= may_evaluate_test_text(self._read_text(node))
            case "arithmetic_expansion" | "c_style_for_statement" | "compound_statement":
                self.script.is_unknown |= may_evaluate_arithmetic(self._read_text(node))
            case "subscript":
                # `a[$(cmd)]=1` runs `cmd`, and so does `a[b]=1` where b holds such a text.
                index = self._read_text(node).partition("[")[2].rpartition("]")[0]
                self.script.is_unknown |= index not in {"@", "*"} and not re.fullmatch(
                    CONSTANT_ARITHMETIC, index
                )
            case _:
                pass

    def _read_text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _add_command(self, node: Node) -> None:
        children = [*node.children, *self.inherited_redirects.get(node.id, ())]
        parts = self._read_children(children)
        simple = SimpleCommand(
            # Redirections and assignments alone are a command that does nothing else, as `:` does.
            words=tuple(parts.words) or (make_word(":"),),
            redirects=tuple(parts.redirects),
            stdin=parts.stdin,
            is_plain_step=self.is_step,
        )
        self.script.add(simple, self.nesting)

    def _add_declaration(self, node: Node) -> None:
        """Add `declare`, `export`, `unset` and their like."""
        parts = self._read_text(node).split()
        words = [make_word(part) if part.isalpha() else Word(part, part) for part in parts]
        self.script.add(SimpleCommand(tuple(words)), self.nesting)
        names = [
            self._read_text(child)
            for child in node.named_children
            if child.type != "variable_assignment"
        ]
        self.script.is_unknown |= any(re.search(_EVALUATED_NAME, name) for name in names)

    def _add_redirects(self, node: Node) -> None:
        """Assign a statement's redirections to their command,
        the last one of a pipeline or list.
        """
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        redirects += self.inherited_redirects.get(node.id, ())
        body = next(
            (child for child in node.children if not child.type.endswith("_redirect")), None
        )
        while (
            body is not None
            and body.type in {"pipeline", "list", "negated_command"}
            and body.named_children
        ):
            body = body.named_children[-1]
        if body is not None and body.type in {"command", "redirected_statement"}:
            self.inherited_redirects[body.id] = redirects
            return
        parts = self._read_children(redirects)
        self.script.add(
            SimpleCommand((make_word(":"), *parts.words), tuple(parts.redirects)), self.nesting
        )

    def _read_children(self, children: Sequence[Node]) -> _CommandParts:
        words: list[Word] = []
        redirects: list[Redirect] = []
        stdin = None
        for group in group_adjacent(children):
            first = group[0]
            if first.type in WORD_NODES:
                words.append(read_word(group, self.source))
            elif first.type == "file_redirect":
                words += self._read_file_redirect(first, redirects)
            elif first.type == "herestring_redirect":
                texts = self._list_words(first.children)
                stdin = texts[0].value if texts and texts[0].is_known else None
                redirects += [Redirect("<<<", text) for text in texts[:1]]
            elif first.type == "heredoc_redirect":
                heredoc = self._read_heredoc(first)
                stdin = heredoc.stdin
                is_dash_lost = re.search(
                    _LOST_DASH, self.source[: first.start_byte][-_LOST_DASH_BYTES:]
                )
                words += (
                    [make_word("-")] if is_dash_lost and words and words[-1].value != "-" else []
                )
                words += heredoc.words
                redirects += heredoc.redirects
        return _CommandParts(words, redirects, stdin)

    def _list_words(self, nodes: Sequence[Node]) -> list[Word]:
        return [
            read_word(group, self.source)
            for group in group_adjacent(nodes)
            if group[0].type in WORD_NODES
        ]

    def _read_file_redirect(self, node: Node, redirects: list[Redirect]) -> list[Word]:
        """Add a redirection; return the words that follow its target, which are the command's."""
        operator = "".join(
            self._read_text(child) for child in node.children if child.type not in WORD_NODES
        )
        words = self._list_words(node.children)
        if words:
            redirects.append(Redirect(operator, words[0]))
        return words[1:]

    def _read_heredoc(self, node: Node) -> _CommandParts:
        """Read a here-document, with the words and redirections that stand behind its delimiter."""
        parts = self._read_children(
            [child for child in node.children if child.type != "heredoc_redirect"]
        )
        start = _find_child(node, "heredoc_start")
        body = _find_child(node, "heredoc_body")
        delimiter = self._read_text(start) if start else ""
        stdin = parts.stdin
        if stdin is None and body is not None:
            text = self._read_text(body)
            # The text is expanded unless the delimiter is quoted.
            is_known = re.search(_QUOTING_CHARS, delimiter) is not None or not re.search(
                r"[$`\\]", text
            )
            stdin = text if is_known else None
        redirect = Redirect("<<", Word(re.sub(_QUOTING_CHARS, "", delimiter), delimiter))
        return _CommandParts(parts.words, [redirect, *parts.redirects], stdin)

    def _check_heredoc(self, node: Node) -> None:
        """Check for what the tree does not show: backquotes in the text,
        and an earlier end of the document.
        """
        start = _find_child(node, "heredoc_start")
        body = _find_child(node, "heredoc_body")
        end = _find_child(node, "heredoc_end")
        if start is None or body is None or end is None:
            self.script.is_unknown = True
            return
        delimiter = self._read_text(start)
        plain_delimiter = re.sub(_QUOTING_CHARS, "", delimiter)
        is_indented = _find_child(node, "<<-") is not None
        lines = self._read_text(body).split("\n")
        if any((line.lstrip("\t") if is_indented else line) == plain_delimiter for line in lines):
            self.script.is_unknown = True
        if self._read_text(end).strip() != plain_delimiter or not re.fullmatch(
            _HEREDOC_DELIMITER, delimiter
        ):
            self.script.is_unknown = True
        is_expanded = plain_delimiter == delimiter
        if is_expanded and (
            "$\\\n" in self._read_text(body)
            or re.search(r"`|\$[({\[]", self._read_plain_text(body))
        ):
            self.script.is_unknown = True

    def _read_plain_text(self, node: Node) -> str:
        """Return the text of a node without the substitutions that the tree shows in it,
        and without escapes.
        """
        text, position = "", node.start_byte
        for child in node.named_children:
            if child.type in _EXPANSION_NODES:
                text += self.source[position : child.start_byte].decode("utf-8", "replace")
                position = child.end_byte
        text += self.source[position : node.end_byte].decode("utf-8", "replace")
        return re.sub(r"\\.", "", text, flags=re.DOTALL)

    def _add_file_reading(self, node: Node) -> None:
        """Add what `$(< file)` reads: a redirection without a command."""
        redirects = self._read_children(
            [child for child in node.children if child.type == "file_redirect"]
        ).redirects
        if redirects:
            self.script.add(SimpleCommand((make_word(":"),), tuple(redirects)), self.nesting)

    def _assign_loop_variable(self, node: Node) -> None:
        name = _find_child(node, "variable_name")
        self.script.assign(self._read_text(name) if name else "", self._list_words(node.children))

    def _assign_variable(self, node: Node) -> None:
        name, _, text = self._read_text(node).partition("=")
        # The first two children are the name and the `=`.
        value = next(iter(self._list_words(node.children[2:])), None)
        is_certain = self.depth == 0 and node.parent is not None and node.parent.type == "program"
        self.script.assign(name, [value] if value is not None and is_certain else None)
        name = name.removesuffix("+")
        if re.fullmatch(_SHELL_CHANGING_VARIABLES, name):
            self.script.is_unknown = True
        elif re.fullmatch(_COMMAND_VARIABLES, name) and text:
            if value is None or not value.is_known:
                self.script.is_unknown = True
            elif value.value:
                self.script.read(value.value, self.depth + 1)


def _find_child(node: Node, kind: str) -> Node | None:
    """Return the first child of a type, or None."""
    return next((child for child in node.children if child.type == kind), None)
