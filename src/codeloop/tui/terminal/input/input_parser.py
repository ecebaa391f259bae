"""Splits the input from the terminal into keys, pastes, and answers to queries."""

import re
import sys
from collections.abc import Generator, Iterator
from typing import Literal

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
"""The marks of bracketed paste."""
_ANSWER = (
    r"\x1b\](?P<query>\d+);(?P<text>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b\[\?(?P<attributes>[\d;]*)c"
    r"|\x1b\[\?1;0;(?P<colours>\d+)(?:;\d+)?S"
    r"|\x1b\[6;(?P<cell>\d+;\d+)t"
    r"|\x1bP>\|(?P<version>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    # Kitty's answer about a picture, which nobody waits for.
    r"|\x1b_G[^\x1b]*\x1b\\"
)
# The start of an answer or of a paste's mark that was cut off at the end of a read.
_INCOMPLETE = (
    r"\x1b(?:\](?:\d+(?:;[^\x07\x1b]*\x1b?)?)?|_(?:G[^\x1b]*\x1b?)?|P(?:>(?:\|[^\x07\x1b]*\x1b?)?)?"
    r"|\[(?:\?[\d;]*|6(?:;[\d;]*)?|2|20|200)?)?"
)
# Within a paste, tmux writes line ends and control characters as keys if `extended-keys` is on.
_PASTED_KEY = r"\x1b\[(?:27;(?P<modifiers>\d+);(?P<code>\d+)~|(?P<kitty>\d+)(?:;(?P<kitty_modifiers>\d+)(?::\d+)?)?u)"
"""Matches a key in xterm's format, or in that of kitty and `csi-u`: the code point,
and modifiers + 1.
"""
_CTRL_BIT = 4
# What looks like an unfinished answer may be a key, such as Alt+],
# and the text that is typed after it.
_MAX_ANSWER_LENGTH = 4096
"""Characters of an answer; a longer sequence is taken as keys."""


class TerminalInput(Struct, frozen=True):
    """Input of one kind: `keys` as the terminal sends them, the text of a `paste`,
    or an `answer` of the terminal.

    `query`: the answered query: its number, or `version`, `colours` (how many a sixel may have),
    `cell` (its height and width in pixels) or `attributes`.
    """

    kind: Literal["keys", "paste", "answer"]
    text: str
    query: str = ""


class InputParser:
    """Parses input incrementally. An incomplete sequence is held until it continues,
    or `flush` is called.
    """

    def __init__(self) -> None:
        self._partial = ""
        self._paste_pieces: list[str] | None = None
        """The pieces of a paste that has not ended; None: there is none."""

    @property
    def is_idle(self) -> bool:
        """Whether `flush` would yield nothing; what is held of a paste is not flushed,
        it waits for the paste's end.
        """
        return not self._partial or self._paste_pieces is not None

    def parse(self, data: str) -> Iterator[TerminalInput]:
        """Parse more input; yield what is complete."""
        data, self._partial = self._partial + data, ""
        while data:
            if self._paste_pieces is not None:
                data = yield from self._parse_paste(data, self._paste_pieces)
                continue
            start = data.find("\x1b")
            if start < 0:
                yield TerminalInput("keys", data)
                return
            if start:
                yield TerminalInput("keys", data[:start])
                data = data[start:]
            if data.startswith(PASTE_START):
                self._paste_pieces = []
                data = data[len(PASTE_START) :]
            elif (match := compile_once(_ANSWER).match(data)) is not None:
                # The last group that matched holds the answer's text. Its name is that of the
                # query, unless this has a number, which is then in the group `query`.
                name = match.lastgroup or ""
                yield TerminalInput("answer", match[name] if name else "", match["query"] or name)
                data = data[match.end() :]
            elif len(data) < _MAX_ANSWER_LENGTH and compile_once(_INCOMPLETE).fullmatch(data):
                self._partial = data
                return
            else:
                end = data.find("\x1b", 1)
                yield TerminalInput("keys", data if end < 0 else data[:end])
                data = "" if end < 0 else data[end:]

    def flush(self) -> Iterator[TerminalInput]:
        """Yield a held sequence as keys, since it did not continue."""
        if not self.is_idle:
            data, self._partial = self._partial, ""
            yield TerminalInput("keys", data)

    def _parse_paste(self, data: str, pieces: list[str]) -> Generator[TerminalInput, None, str]:
        """Add a piece of a paste, and yield the paste once it ends; return the input after it."""
        end = data.find(PASTE_END)
        if end < 0:
            # The end mark may be cut off at the end of a read.
            overlap = next(
                (
                    size
                    for size in range(len(PASTE_END) - 1, 0, -1)
                    if data.endswith(PASTE_END[:size])
                ),
                0,
            )
            pieces.append(data[: len(data) - overlap])
            self._partial = data[len(data) - overlap :]
            return ""
        pieces.append(data[:end])
        self._paste_pieces = None
        # An argument or a path that is passed to a program can't contain a NUL.
        text = compile_once(_PASTED_KEY).sub(_read_pasted_key, "".join(pieces))
        yield TerminalInput("paste", text.replace("\x00", ""))
        return data[end + len(PASTE_END) :]


def _read_pasted_key(match: re.Match[str]) -> str:
    """Return the character that a key in a paste stands for; "": it stands for none."""
    code, modifiers = (
        int(match["code"] or match["kitty"]),
        int(match["modifiers"] or match["kitty_modifiers"] or 1),
    )
    if code > sys.maxunicode:
        return ""
    is_control = bool((modifiers - 1) & _CTRL_BIT) and "@" <= chr(code).upper() <= "_"
    return chr(ord(chr(code).upper()) & 0x1F) if is_control else chr(code)
