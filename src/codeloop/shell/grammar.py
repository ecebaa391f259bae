"""The small language of shell lines whose meaning is certain,
read to the last character or not at all.

A list of pipelines of simple commands: words that are plain or quoted, redirections from and to
named files, harmless assignments before a command, variables as whole quoted words, file patterns
that can't become options. All of it means the same to bash whatever its variables hold. Anything
else is refused, with the reason; `parser.py` then reads the line with tree-sitter, but nothing that
it finds counts as proved.
"""

import re
from functools import lru_cache
from typing import NoReturn

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.wildcard import ANY_TEXT
from codeloop.schema.limits import BASH_COMMANDS, BASH_SIZE
from codeloop.schema.wire import replace
from codeloop.shell.simple_command import RESERVED_WORDS, Redirect, SimpleCommand
from codeloop.shell.word import Word

# Values that are harmless: a locale, a switch, a number, no pager or `cat`, a setting of Python.
_LOCALE = r"(C|POSIX|[a-z]{2,3}_[A-Z]{2})?(\.(UTF-8|utf8))?"
_SWITCH = r"[A-Za-z0-9]*"
_NUMBER = r"[0-9]*"
_PAGER = r"(cat)?"
_PYTHON = r"[A-Za-z0-9-]*"
HARMLESS_VARIABLES = {
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
"""Variables that may be set for a command -> their values that change nothing
but how its output looks.
"""

# `(?<=[ \t])\\\n`: a line may go on after a blank and a backslash;
# without the blank it would join two words.
_BLANK = r"(?:[ \t]|(?<=[ \t])\\\n)*"
_GAP = r"(?:[ \t\n]+|(?<=[ \t])\\\n|#[^\n]*)*"
_COMMENT = r"#[^\n]*"
_WORD_END = r"(?=[ \t\n;|&<>]|\Z)"
# Unquoted characters that mean themselves. A `#` begins a comment only at the start of a word, and
# `~` expands to a home directory there and behind `=` or `:`,
# so both are allowed only where they can't do that.
_FIRST_CHARS = r"[A-Za-z0-9_./:,@%+=^!-](?:[A-Za-z0-9_./:,@%+=^!#-]|(?<=[A-Za-z0-9_^.])~)*"
_WORD_CHARS = r"(?:[A-Za-z0-9_./:,@%+=^!#-]|(?<=[A-Za-z0-9_^.])~)+"
# The end of `HEAD@{1}`: without a comma or two dots, bash leaves the braces as they are.
_REFLOG_SUFFIX = r"(?<=@)\{[A-Za-z0-9-]+\}"
_HOME_PATH = r"~(?:/[A-Za-z0-9_./:,@%+^-]*)?" + _WORD_END
# `{}` of `find -exec`, and the end of `[ ... ]`.
_LONE_BRACKETS = r"(?:\{\}|\])" + _WORD_END
_SINGLE_QUOTED = r"'([^']*)'"
_DOUBLE_QUOTED = r'"((?:[^"\\$`]|\\["\\$`])*)"'
_DOUBLE_QUOTED_ESCAPE = r'\\(["\\$`])'
_ESCAPE = r"\\([ ;()!*?\[\]{}$&|<>'\"\\#~`])"
_QUOTED_VARIABLE = r'"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"' + _WORD_END
_WHOLE_WORDS = {'"': _QUOTED_VARIABLE, "~": _HOME_PATH, "{": _LONE_BRACKETS, "]": _LONE_BRACKETS}
_WORD_ENDS = frozenset(" \t\n;|&<>")
_GLOB = r"[*?]+"
_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)"
_REDIRECT = r"([012]?)(&>(?!>)|>>|>|<)(?![<>&|(])"
# `2>&1`
_DUPLICATION = r"([12]?>&)([12])" + _WORD_END
_COMMAND_NAME = r"~?[A-Za-z0-9_./:][A-Za-z0-9_./:,@%+^-]*"
# Commands of bash that change how the rest of a line is read, or what its names and variables mean.
_READING_CHANGERS = """
case coproc declare do done elif else esac export fi for function if in let local readonly select then time typeset
unset unsetenv until while
"""
_REFUSED_COMMAND_NAMES = RESERVED_WORDS.union(_READING_CHANGERS.split())
# What is read of a longer line is not kept.
_SHORT_LINE_CHARS = 1000
_DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdout"})

_REFUSALS = {
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
    """The simple commands of a line in order, or the reason why the line is not
    in the grammar (`refusal`).
    """

    commands: tuple[SimpleCommand, ...] = ()
    refusal: str = ""


class _NotInGrammar(Exception):
    """The line is not in the grammar; the text is the reason."""


def read_line(text: str) -> ParsedLine:
    """Read a line. Takes time in proportion to its length, and never fails."""
    if len(text) > BASH_SIZE.value:
        return ParsedLine(refusal="it is too long to be read")
    return _read_short_line(text) if len(text) < _SHORT_LINE_CHARS else _read_line(text)


# A step asks for its line in several places: its permission, its effect, its checks;
# the end of a turn for all of them.
@lru_cache(maxsize=256)
def _read_short_line(text: str) -> ParsedLine:
    return _read_line(text)


def _read_line(text: str) -> ParsedLine:
    # Characters that a user does not see could hide what runs;
    # the marks of `kit.wildcard` are among them.
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return ParsedLine(refusal="it has control characters or invisible ones")
    try:
        return ParsedLine(tuple(_LineReader(text).read()))
    except _NotInGrammar as refusal:
        return ParsedLine(refusal=str(refusal))


def is_harmless_assignment(name: str, value: str) -> bool:
    """Return whether an assignment changes nothing but how the output of a program looks."""
    return name in HARMLESS_VARIABLES and re.fullmatch(HARMLESS_VARIABLES[name], value) is not None


class _LineReader:
    """One pass over one line; `position` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position: int = 0

    def read(self) -> list[SimpleCommand]:
        commands: list[SimpleCommand] = []
        self._skip(_GAP)
        while self.position < len(self.text):
            pipeline = [self._read_simple_command()]
            while self._is_at("|") and not self._is_at("||"):
                self.position += 1
                self._skip(_GAP)
                pipeline.append(self._read_simple_command())
            operator = next(filter(self._is_at, ("&&", "||", ";", "\n")), "")
            commands += [replace(command, operator="|") for command in pipeline[:-1]]
            # Each part of a pipeline runs in a shell of its own.
            commands.append(
                replace(pipeline[-1], operator=operator, is_plain_step=len(pipeline) == 1)
            )
            if len(commands) > BASH_COMMANDS.value:
                raise _NotInGrammar(f"it has more than {BASH_COMMANDS.value} commands")
            if self._is_at("&&") or self._is_at("||"):
                self.position += 2
                self._skip(_GAP)
                if self.position == len(self.text):
                    raise _NotInGrammar("a command is missing at its end")
            else:
                if self._is_at(";"):
                    self.position += 1
                elif self.position < len(self.text) and not self._is_at("\n"):
                    self._refuse()
                self._skip(_GAP)
        if not commands:
            raise _NotInGrammar("there is no command in it")
        return commands

    def _is_at(self, token: str) -> bool:
        return self.text.startswith(token, self.position)

    def _skip(self, pattern: str) -> None:
        match = compile_once(pattern).match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _refuse(self) -> NoReturn:
        char = self.text[self.position : self.position + 1]
        if char == "\\":
            after = self.text[self.position + 1 : self.position + 2]
            raise _NotInGrammar(
                "a newline inside a word"
                if after == "\n"
                else "a backslash before a plain character"
            )
        if not char.isascii():
            raise _NotInGrammar("it has characters outside of ASCII that are not quoted")
        raise _NotInGrammar(
            _REFUSALS.get(
                char, f"`{char}` has a meaning of its own there" if char else "it ends too early"
            )
        )

    def _read_simple_command(self) -> SimpleCommand:
        words: list[Word] = []
        redirects: list[Redirect] = []
        has_assignments = False
        while True:
            self._skip(_BLANK)
            if self._is_at("#"):
                self._skip(_COMMENT)
            if (
                self.position == len(self.text)
                or self.text[self.position] in "\n;|"
                or self._is_at("&&")
            ):
                break
            if redirect := self._read_redirect():
                if not words:
                    raise _NotInGrammar("a redirection stands before the command")
                redirects.append(redirect)
            elif words:
                words.append(self._read_word())
            elif self._read_assignment():
                has_assignments = True
            else:
                words.append(self._read_name())
        if not words:
            if has_assignments:
                raise _NotInGrammar("it sets variables")
            self._refuse()
        return SimpleCommand(tuple(words), tuple(redirects))

    def _read_name(self) -> Word:
        """Read the name of a command, which has to be plain."""
        if self._is_at("[") and self.text[self.position + 1 : self.position + 2] in {" ", "\t"}:
            self.position += 1
            return Word("[", "[")
        word = self._read_word()
        if word.source != word.value or not compile_once(_COMMAND_NAME).fullmatch(word.value):
            raise _NotInGrammar("the name of a command is not plain")
        if word.value in _REFUSED_COMMAND_NAMES:
            raise _NotInGrammar(f"`{word.value}` is a word of the shell's own")
        return word

    def _read_assignment(self) -> bool:
        match = compile_once(_ASSIGNMENT).match(self.text, self.position)
        if match is None:
            return False
        name, operator = match.groups()
        self.position = match.end()
        value = compile_once(_WORD_CHARS).match(self.text, self.position)
        self.position = value.end() if value else self.position
        is_plain = self.text[self.position : self.position + 1] in {" ", "\t"}
        if (
            operator != "="
            or not is_plain
            or not is_harmless_assignment(name, value[0] if value else "")
        ):
            raise _NotInGrammar(f"it assigns {name}")
        return True

    def _read_redirect(self) -> Redirect | None:
        if match := compile_once(_DUPLICATION).match(self.text, self.position):
            self.position = match.end()
            return Redirect(match[1], Word(match[2], match[2]))
        match = compile_once(_REDIRECT).match(self.text, self.position)
        if match is None:
            return None
        if match[1] and match[2].startswith("&"):
            raise _NotInGrammar("it has a rare redirection")
        self.position = match.end()
        self._skip(_BLANK)
        if self.position == len(self.text) or self.text[self.position] in "\n;|&<>#":
            raise _NotInGrammar("a redirection leads nowhere")
        target = self._read_word()
        if not target.is_known or not target.value:
            raise _NotInGrammar("where it redirects to is not known")
        if target.value.startswith("/dev/") and target.value not in _DEVICES:
            raise _NotInGrammar("it redirects to a device")
        return Redirect(match[1] + match[2], target)

    def _read_word(self) -> Word:
        """Read one word: pieces without a gap between them."""
        text, start, value = self.text, self.position, ""
        pattern = _WHOLE_WORDS.get(text[start])
        if pattern is not None and (match := compile_once(pattern).match(text, start)):
            self.position = match.end()
            return Word(ANY_TEXT if match[0][0] == '"' else match[0], match[0])
        while self.position < len(text) and text[self.position] not in _WORD_ENDS:
            value += self._read_piece(value)
        source = text[start : self.position]
        # Digits right before a redirection are its descriptor to bash, not a word.
        if not source or (
            source.isdigit() and text[self.position : self.position + 1] in {"<", ">"}
        ):
            self._refuse()
        return Word(value, source)

    def _read_piece(self, before: str) -> str:
        """Read a piece of a word and return its value.
        `before`: the value of the pieces before it.
        """
        text, position = self.text, self.position
        plain_chars = _WORD_CHARS if before else _FIRST_CHARS
        if match := compile_once(plain_chars).match(text, position):
            piece = match[0]
        elif match := compile_once(_SINGLE_QUOTED).match(text, position):
            piece = match[1]
        elif match := compile_once(_REFLOG_SUFFIX).match(text, position):
            piece = match[0]
        elif match := compile_once(_DOUBLE_QUOTED).match(text, position):
            piece = re.sub(_DOUBLE_QUOTED_ESCAPE, r"\1", match[1])
        elif match := compile_once(_ESCAPE).match(text, position):
            piece = match[1]
        elif (match := compile_once(_GLOB).match(text, position)) and _can_be_glob(before):
            piece = ANY_TEXT
        else:
            self._refuse()
        self.position = match.end()
        return piece


def _can_be_glob(before: str) -> bool:
    """Return whether a file pattern after these characters can't turn the word into an option.

    A file named `-rf` would be one for `*`; in `--file=*` the option is known, and `src/*` is none.
    """
    return (
        bool(before)
        and (not before.startswith("-") or "=" in before)
        and not before.startswith(ANY_TEXT)
    )
