"""The small language of shell lines whose meaning is certain, read to the last character or not at all.

A list of pipelines of simple commands: words that are plain or quoted, redirections from and to named files, harmless
assignments before a command, variables as whole quoted words, file patterns that can't become options. All of it means
the same to bash whatever its variables hold. What is not described here is refused, with the reason.
"""

import re
from typing import NoReturn

from msgspec import Struct

from codeloop.kit.wildcard import ANY
from codeloop.permission.shell.command import KEYWORDS, RESERVED, Redirect, SimpleCommand
from codeloop.permission.shell.words import Word
from codeloop.schema.limits import BASH_COMMANDS, BASH_SIZE

_LOCALE = r"(C|POSIX|[a-z]{2,3}_[A-Z]{2})?(\.(UTF-8|utf8))?"
_SWITCH = r"[A-Za-z0-9]*"
_NUMBER = r"[0-9]*"
_PAGER = r"(cat)?"
_PYTHON = r"[A-Za-z0-9-]*"
HARMLESS = {
    "CI": _SWITCH, "CLICOLOR": _SWITCH, "CLICOLOR_FORCE": _SWITCH, "FORCE_COLOR": _SWITCH, "NO_COLOR": _SWITCH,
    "COLUMNS": _NUMBER, "LINES": _NUMBER,
    "DEBIAN_FRONTEND": r"noninteractive",
    "GIT_OPTIONAL_LOCKS": r"[01]", "GIT_TERMINAL_PROMPT": r"[01]",
    "GIT_PAGER": _PAGER, "MANPAGER": _PAGER, "PAGER": _PAGER, "SYSTEMD_PAGER": _PAGER,
    "LANG": _LOCALE, "LC_ALL": _LOCALE, "LC_COLLATE": _LOCALE, "LC_CTYPE": _LOCALE, "LC_MESSAGES": _LOCALE,
    "LC_MONETARY": _LOCALE, "LC_NUMERIC": _LOCALE, "LC_TIME": _LOCALE,
    "PYTHONDONTWRITEBYTECODE": _PYTHON, "PYTHONIOENCODING": _PYTHON, "PYTHONUNBUFFERED": _PYTHON, "PYTHONUTF8": _PYTHON,
    "RUST_BACKTRACE": _SWITCH,
    "TERM": r"(dumb|linux|vt100|ansi|(xterm|screen|tmux)(-[a-z0-9]+)?)",
    "TZ": r"([A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)?",
}  # fmt: skip
"""Variables that may be set for a command -> their values that change nothing but how its output looks."""

# `(?<=[ \t])\\\n`: a line may go on after a blank and a backslash; without the blank it would join two words.
_BLANK = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")
_GAP = re.compile(r"(?:[ \t\n]+|(?<=[ \t])\\\n|#[^\n]*)*")
_COMMENT = re.compile(r"#[^\n]*")
_END = r"(?=[ \t\n;|&<>]|\Z)"
_UNQUOTED = re.compile(r"[A-Za-z0-9_./:,@%+=^!-](?:[A-Za-z0-9_./:,@%+=^!#-]|(?<=[A-Za-z0-9_^.])~)*")
_INSIDE = re.compile(r"(?:[A-Za-z0-9_./:,@%+=^!#-]|(?<=[A-Za-z0-9_^.])~)+")
_REFLOG = re.compile(r"(?<=@)\{[A-Za-z0-9-]+\}")
_HOME = re.compile(r"~(?:/[A-Za-z0-9_./:,@%+^-]*)?" + _END)
_LONE = re.compile(r"(?:\{\}|\])" + _END)
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\["\\$`])*)"')
_IN_DOUBLE = re.compile(r'\\(["\\$`])')
_ESCAPE = re.compile(r"\\([ ;()!*?\[\]{}$&|<>'\"\\#~`])")
_VARIABLE = re.compile(r'"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"' + _END)
_WHOLE_WORDS = {'"': _VARIABLE, "~": _HOME, "{": _LONE, "]": _LONE}
_WORD_ENDS = frozenset(" \t\n;|&<>")
_FILES = re.compile(r"[*?]+")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_REDIRECT = re.compile(r"([012]?)(&>(?!>)|>>|>|<)(?![<>&|(])")
_DUPLICATE = re.compile(r"([12]?>&)([12])" + _END)
_NAME = re.compile(r"~?[A-Za-z0-9_./:][A-Za-z0-9_./:,@%+^-]*")
_BASH_WORDS = RESERVED | KEYWORDS | {"time"}
_DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdout"})

_REASONS = {
    "$": "it expands `$...` outside of a whole quoted word",
    "`": "it runs a command substitution",
    "(": "it has parentheses",
    ")": "it has parentheses",
    "{": "it has braces",
    "}": "it has braces",
    "&": "it starts something in the background",
    "[": "it has a bracket pattern",
    "~": "it expands `~` otherwise than as `~/`",
    "*": "a file pattern at the start of a word could expand to an option",
    "?": "a file pattern at the start of a word could expand to an option",
    "'": "a quote is not closed",
    '"': "a double-quoted text expands something, or is not closed",
    "<": "it has a here-document or another rare redirection",
    ">": "it has a rare redirection",
    ";": "a command is missing before `;`",
    "|": "a command is missing before `|`",
}


class ParsedLine(Struct, frozen=True):
    """A line as the grammar reads it: its simple commands in order, or why it is not in the grammar (`refusal`)."""

    commands: tuple[SimpleCommand, ...] = ()
    refusal: str = ""


class _NotInGrammar(Exception):
    """The line is not in the grammar; the text says why."""


def read_line(text: str) -> ParsedLine:
    """Read a line. Linear; never fails."""
    if len(text) > BASH_SIZE.value:
        return ParsedLine(refusal="it is too long to be read")
    # Characters that a user does not see could hide what runs; the marks of `kit.wildcard` are among them.
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return ParsedLine(refusal="it has control characters or invisible ones")
    try:
        return ParsedLine(tuple(_Reader(text).read()))
    except _NotInGrammar as refusal:
        return ParsedLine(refusal=str(refusal))


def is_harmless(name: str, value: str) -> bool:
    """Return whether a variable with this value changes nothing but how a program's output looks."""
    return name in HARMLESS and re.fullmatch(HARMLESS[name], value) is not None


class _Reader:
    """One pass over one line; `at` is the position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> list[SimpleCommand]:
        commands: list[SimpleCommand] = []
        self._skip(_GAP)
        while self.at < len(self.text):
            pipeline = [self._read_simple_command()]
            while self._is_at("|") and not self._is_at("||"):
                self.at += 1
                self._skip(_GAP)
                pipeline.append(self._read_simple_command())
            is_step = len(pipeline) == 1  # each part of a pipeline runs in a shell of its own
            commands += [SimpleCommand(c.words, c.redirects, None, is_step, c.assigns) for c in pipeline]
            if len(commands) > BASH_COMMANDS.value:
                raise _NotInGrammar(f"it has more than {BASH_COMMANDS.value} commands")
            if self._is_at("&&") or self._is_at("||"):
                self.at += 2
                self._skip(_GAP)
                if self.at == len(self.text):
                    raise _NotInGrammar("a command is missing at its end")
            else:
                if self._is_at(";"):
                    self.at += 1
                elif self.at < len(self.text) and not self._is_at("\n"):
                    self._refuse()
                self._skip(_GAP)
        if not commands:
            raise _NotInGrammar("there is no command in it")
        return commands

    def _is_at(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _refuse(self) -> NoReturn:
        char = self.text[self.at : self.at + 1]
        if char == "\\":
            after = self.text[self.at + 1 : self.at + 2]
            raise _NotInGrammar("a newline inside a word" if after == "\n" else "a backslash before a plain character")
        if not char.isascii():
            raise _NotInGrammar("it has characters outside of ASCII that are not quoted")
        raise _NotInGrammar(
            _REASONS.get(char, f"`{char}` has a meaning of its own there" if char else "it ends too early")
        )

    def _read_simple_command(self) -> SimpleCommand:
        words: list[Word] = []
        redirects: list[Redirect] = []
        assigns = False
        while True:
            self._skip(_BLANK)
            if self._is_at("#"):
                self._skip(_COMMENT)
            if self.at == len(self.text) or self.text[self.at] in "\n;|" or self._is_at("&&"):
                break
            if redirect := self._read_redirect():
                if not words:
                    raise _NotInGrammar("a redirection stands before the command")
                redirects.append(redirect)
            elif words:
                words.append(self._read_word())
            elif self._read_assignment():
                assigns = True
            else:
                words.append(self._read_name())
        if not words:
            if assigns:
                raise _NotInGrammar("it sets variables")
            self._refuse()
        return SimpleCommand(tuple(words), tuple(redirects), assigns=assigns)

    def _read_name(self) -> Word:
        """Read the name of a command, which has to be plain."""
        if self._is_at("[") and self.text[self.at + 1 : self.at + 2] in {" ", "\t"}:
            self.at += 1
            return Word("[", "[")
        word = self._read_word()
        if word.source != word.value or not _NAME.fullmatch(word.value):
            raise _NotInGrammar("the name of a command is not plain")
        if word.value in _BASH_WORDS:
            raise _NotInGrammar(f"`{word.value}` is a word of the shell's own")
        return word

    def _read_assignment(self) -> bool:
        match = _ASSIGNMENT.match(self.text, self.at)
        if match is None:
            return False
        name, operator = match.groups()
        self.at = match.end()
        value = _INSIDE.match(self.text, self.at)
        self.at = value.end() if value else self.at
        is_plain = self.text[self.at : self.at + 1] in {" ", "\t"}
        if operator != "=" or not is_plain or not is_harmless(name, value[0] if value else ""):
            raise _NotInGrammar(f"it assigns {name}")
        return True

    def _read_redirect(self) -> Redirect | None:
        if match := _DUPLICATE.match(self.text, self.at):
            self.at = match.end()
            return Redirect(match[1], Word(match[2], match[2]))
        match = _REDIRECT.match(self.text, self.at)
        if match is None:
            return None
        if match[1] and match[2].startswith("&"):
            raise _NotInGrammar("it has a rare redirection")
        self.at = match.end()
        self._skip(_BLANK)
        if self.at == len(self.text) or self.text[self.at] in "\n;|&<>#":
            raise _NotInGrammar("a redirection leads nowhere")
        target = self._read_word()
        if not target.is_known or not target.value:
            raise _NotInGrammar("where it redirects to is not known")
        if target.value.startswith("/dev/") and target.value not in _DEVICES:
            raise _NotInGrammar("it redirects to a device")
        return Redirect(match[1] + match[2], target)

    def _read_word(self) -> Word:
        """Read one word: pieces without a gap between them."""
        text, start, value = self.text, self.at, ""
        pattern = _WHOLE_WORDS.get(text[start])
        if pattern is not None and (match := pattern.match(text, start)):
            self.at = match.end()
            return Word(ANY if match[0][0] == '"' else match[0], match[0])
        while self.at < len(text) and text[self.at] not in _WORD_ENDS:
            value += self._read_piece(value)
        source = text[start : self.at]
        # Digits right before a redirection are its descriptor to bash, not a word.
        if not source or (source.isdigit() and text[self.at : self.at + 1] in {"<", ">"}):
            self._refuse()
        return Word(value, source)

    def _read_piece(self, before: str) -> str:
        """Read a piece of a word and return its value."""
        text, at = self.text, self.at
        if match := _INSIDE.match(text, at) if before else _UNQUOTED.match(text, at):
            piece = match[0]
        elif (match := _SINGLE.match(text, at)) or (match := _REFLOG.match(text, at)):
            piece = match[1] if match[0][0] == "'" else match[0]
        elif match := _DOUBLE.match(text, at):
            piece = _IN_DOUBLE.sub(r"\1", match[1])
        elif match := _ESCAPE.match(text, at):
            piece = match[1]
        elif (match := _FILES.match(text, at)) and _may_expand(before):
            piece = ANY
        else:
            self._refuse()
        self.at = match.end()
        return piece


def _may_expand(before: str) -> bool:
    """Return whether a file pattern after these characters can't turn the word into an option.

    A file named `-rf` would be one for `*`; in `--file=*` the option is known, and `src/*` is none.
    """
    return bool(before) and (not before.startswith("-") or "=" in before) and not before.startswith(ANY)
