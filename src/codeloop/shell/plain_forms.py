"""Writes common forms of bash in the small language of `grammar.py`,
where they mean exactly the same. Pure.

Constant here-documents, `time`, loops over plain words, and a few variables in what `echo` prints.
Whatever is not certainly one of these stays as it is, and so is not proved.
"""

import re
from typing import NamedTuple

from codeloop.kit.text.patterns import compile_once
from codeloop.schema.limits import BASH_COMMANDS, BASH_SIZE

_DELIMITER = r"<<[ \t]?(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|([A-Za-z_]\w*))(?=[ \t\n;|&>)]|\Z)"
_SUBSTITUTED = r"\"\$\(cat <<[ \t]?(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\")\n"
_QUOTED = r"'[^']*'|\"(?:[^\"\\$`]|\\[\s\S]|\$(?!\())*\""
_PLAIN = r"[^'\"\\<$`(){}\n;&|#]+"
_TIME = r"time[ \t]+(?:-p[ \t]+)?(?=[A-Za-z_./])"
# What a here-document may be the input of: these never run what they read.
_DOCUMENT_READERS = frozenset(
    {"cat", "gh", "git", "glab", "grep", "head", "sort", "tail", "tee", "wc"}
)
_EXPANDING = frozenset("$`\\")
# A name in lower case, without an underscore, is of no program's environment.
# Words of a loop are not options.
_LOOP_WORD = r"[A-Za-z0-9_./:,@%+][A-Za-z0-9_./:,@%+-]*"
_LOOP = (
    rf"for ([a-z][a-z0-9]{{0,11}}) in((?:[ \t]+{_LOOP_WORD})+)[ \t]*[;\n]\s*do\s+(.*?)[;\n]\s*done"
)
_NESTING = r"\b(?:for|while|until|select|case|if|do|done|function|break|continue)\b|[{}()`'\\#]|<<"
# Commands by which a loop's variable could change within a round.
_SETTERS = r"\b(?:read|printf|getopts|mapfile|readarray|declare|typeset|local|export|unset|let|readonly|eval|source)\b"
_PRINTED_NAMES = "HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME|PATH"
_PRINTED = rf"\$(?:({_PRINTED_NAMES})\b|\{{({_PRINTED_NAMES})\}})"
_PRINTED_TEXT = rf"\"(?:[^\"\\`$]|\\[\"\\]|{_PRINTED})*\"|[A-Za-z0-9_./:,@%+=^-]|{_PRINTED}"
_NO_ECHO = frozenset("'<>")
_ECHO = rf"echo(?:[ \t]+(?:{_PRINTED_TEXT})+)+"


class _Document(NamedTuple):
    """A here-document whose body begins on the next line."""

    end: str
    is_literal: bool


def write_plainly(line: str) -> str:
    """Return a line in which the known forms are written plainly;
    the line itself if it has none.
    """
    if len(line) > BASH_SIZE.value:
        return line
    plain = _unroll_loop(line)
    if "<<" in plain or "time" in plain:
        plain = _Scanner(plain).scan() or plain
    if "$" in plain and "echo" in plain and not _NO_ECHO.intersection(plain):
        # Within quotes, what separates commands would be text.
        steps = [plain] if '"' in plain else re.split(r"([ \t]*(?:&&|\|\||[;|\n])[ \t]*)", plain)
        plain = "".join(map(_print_names, steps))
    return plain


def _print_names(step: str) -> str:
    """Return a command; if it is an `echo`, with the names of variables in
    place of their values.
    """
    is_echo = compile_once(_ECHO).fullmatch(step.strip()) is not None
    return re.sub(_PRINTED, r"\\$\1\2", step) if is_echo else step


def _unroll_loop(line: str) -> str:
    """Write a loop over plain words as its rounds, one after the other."""
    loop = re.fullmatch(_LOOP, line.strip(), re.DOTALL)
    if loop is None:
        return line
    name, words, body = loop[1], loop[2].split(), loop[3]
    rest = re.sub(rf"\$\{{{name}\}}", "", body)
    if re.search(rf"{_NESTING}|{_SETTERS}|(?<![\w$-]){name}(?:\+?=|\[)", rest):
        return line
    if len(words) * (1 + len(re.findall(r"[;\n|&]", body))) > BASH_COMMANDS.value:
        return line
    rounds = [re.sub(rf"\$(?:{name}\b|\{{{name}\}})", word, body).strip() for word in words]
    return "\n".join(rounds)


class _Scanner:
    """One pass over a line that copies it, without what is a known form."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.position = 0
        self.pieces: list[str] = []
        self.documents: list[_Document] = []
        self.command_start = 0

    def scan(self) -> str | None:
        """Return the line as it is written plainly; None: it has something that is not known."""
        line = self.line
        while self.position < len(line):
            is_start = not "".join(self.pieces[self.command_start :]).strip()
            if (is_start and (match := self._match(r"[ \t]+"))) or (
                is_start and (match := self._match(_TIME))
            ):
                self.position = match.end()
            elif match := self._match(_SUBSTITUTED):
                body = self._take_body(
                    match.end(), _Document(match[1] or match[2], is_literal=True)
                )
                # A here-document that is still to come would begin within this text.
                if body is None or self.documents or not line.startswith(')"', self.position):
                    return None
                self.position += 2
                self.pieces.append("'" + body.rstrip("\n").replace("'", "'\\''") + "'")
            elif match := self._match(_DELIMITER):
                if self._get_name() not in _DOCUMENT_READERS:
                    return None
                self.documents.append(
                    _Document(match[1] or match[2] or match[3], is_literal=match[3] is None)
                )
                self.position = match.end()
            elif match := self._match(_QUOTED) or self._match(_PLAIN):
                self.pieces.append(match[0])
                self.position = match.end()
            elif line[self.position] == "\n":
                self.position += 1
                if not self._take_documents():
                    return None
                self._end_command("\n")
            elif line[self.position] in ";&|":
                self.position += 1
                self._end_command(line[self.position - 1])
            else:
                return None
        return "".join(self.pieces).rstrip("\n") if self._take_documents() else None

    def _match(self, pattern: str) -> re.Match[str] | None:
        return compile_once(pattern).match(self.line, self.position)

    def _get_name(self) -> str:
        words = "".join(self.pieces[self.command_start :]).split()
        return words[0] if words else ""

    def _end_command(self, end: str) -> None:
        self.pieces.append(end)
        self.command_start = len(self.pieces)

    def _take_documents(self) -> bool:
        """Pass over the bodies of the here-documents of a line;
        return False if one is not constant or not ended.
        """
        for document in self.documents:
            if self._take_body(self.position, document) is None:
                return False
        self.documents.clear()
        return True

    def _take_body(self, start: int, document: _Document) -> str | None:
        """Return a body, and go behind the line that ends it;
        None: it has no end, or is not constant.
        """
        end = re.compile(rf"^{document.end}(?:\n|\Z)", re.MULTILINE).search(self.line, start)
        if end is None:
            return None
        self.position = end.end()
        body = self.line[start : end.start()]
        return None if not document.is_literal and _EXPANDING.intersection(body) else body
