"""Shortens the alike messages of compilers, linters and tests: from the third of a kind
on only their places. Pure.

A message that occurs once, among hundreds of others,
is the one that the model needs: it always stays whole.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

# Messages of a kind that are shown whole.
_WHOLE = 2
# With fewer that would be shortened nothing is won.
_MIN_SHORTENED = 3
# The characters of a message that a line about the others repeats.
_SHOWN_CHARS = 80
# A longer line begins no message.
_MAX_HEAD_CHARS = 2_000
# Lines that may belong to one message.
_MAX_BLOCK_LINES = 40
# Without a line that matches this there is no such message: the other patterns are slow.
_HINT = r"error|[Ww]arning| --> |FAILED |ERROR|:\d+:\d+:? |SC\d{4}"

_SEVERITY = r"(?P<severity>fatal error|error|warning|style|info|hint|e|w|note(?=.*\[SC\d+\]$))"
_HEADS = (
    # src/a.ts(3,4): error TS2304: ...   and dotnet
    r"(?P<file>\S[^()\n]*)\((?P<line>\d+),\d+\): (?P<severity>error|warning) (?P<code>\w+): (?P<text>.*)",
    # src/a.ts:3:4 - error TS2304: ...   and pyright
    r"\s*(?P<file>\S+):(?P<line>\d+):\d+ - (?P<severity>error|warning)(?: (?P<code>TS\d+))?: (?P<text>.*)",
    # src/a.py:3: error: ...  gcc, clang, mypy, javac
    rf"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?: {_SEVERITY}(?P<code>\[\w+\])?: ?(?P<text>.*)",
    # e: file:///x/A.kt:3:4 ...
    r"(?P<severity>[ew]): (?:file://)?(?P<file>\S+?):(?P<line>\d+):\d+:? (?P<text>.*)",
    # info - lib/a.dart:3:4 - ... - rule, and flutter, whose place stands behind the text
    r"\s*(?P<severity>info|warning|error) [-\u2022] (?P<file>\S+):(?P<line>\d+):\d+ [-\u2022] (?P<text>.*)",
    r"\s*(?P<severity>info|warning|error) \u2022 (?P<text>.*) \u2022 (?P<file>\S+):(?P<line>\d+):\d+ .*",
    # src/a.py:3:4: E501 ...   ruff, flake8, pylint, rubocop
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?: (?P<code>[A-Z]{1,4}\d*(?:: \S+)?) (?P<text>.*)",
    # /x/a.py:3: DeprecationWarning: ...
    r"\s*(?P<file>[^\s:][^:\n]*):(?P<line>\d+): (?P<code>\w*Warning): (?P<text>.*)",
    # ./a.go:3:4: ...
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<text>\S.*)",
    # [ERROR] /x/A.java:[3,4] ...
    r"\[(?P<severity>ERROR|WARNING)\] (?P<file>\S+):\[(?P<line>\d+),\d+\] (?P<text>.*)",
    # FAILED tests/a.py::test_b - ...
    r"(?P<severity>FAILED|ERROR) (?P<file>[^\s:]+)::(?P<line>\S+)(?: - (?P<text>.*))?",
    # (node:4) [DEP0005] DeprecationWarning: ..., also in comments of TAP
    r"#? ?\(\w+:\d+\) (?:\[(?P<code>\w+)\] )?(?P<severity>\w*Warning): (?P<text>.*)",
)
_GROUP = r"\(\?P<(\w+)>"
# All of them in one pattern: the groups of each have its number before their names.
_HEAD = "|".join(
    f"(?P<h{number}>{re.sub(_GROUP, lambda group, number=number: f'(?P<g{number}_{group[1]}>', head)}$)"
    for number, head in enumerate(_HEADS)
)
# Messages whose place stands on a line below: those of rustc, of ruff, and of elixir.
_LONG_HEAD = r"\s*(?:(?P<severity>error|warning)(?P<code>\[\w+\])?: |(?P<rule>[A-Z]{1,4}\d+) (?:\[\*\] )?)(?P<text>.*)$"
_LONG_PLACE = (
    r"\s*(?:-->|\u2514\u2500|\u256d\u2500\[|\u250c\u2500)"
    r" ?(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?::\d+)?(?:[\]: ].*)?$"
)
_MAX_PLACE_LINES = 8
# Of shellcheck: the place, the line of source, and what is wrong with it.
_SHELL_PLACE = r"In (?P<file>\S+) line (?P<line>\d+):$"
_SHELL_TEXT = r"\s*\^-*\^? (?P<code>SC\d+)(?: \((?P<severity>\w+)\))?: (?P<text>.*)"
_SHELL_END = r"In \S+ line \d+:$|For more information"
# Of eslint: a file, and messages below it.
_FILE_LINE = r"(?:/|\.{1,2}/)?[\w./@+ -]+\.\w+$"
_ESLINT = r"\s+(?P<line>\d+):\d+\s+(?P<severity>error|warning)\s+(?P<text>.*?)(?:\s{2,}(?P<code>[\w@/-]+))?$"
# Of phpstan: a file in the head of a table, and its rows.
_TABLE_HEAD = r"\s*Line\s+(?P<file>\S+\.\w+)"
_TABLE_ROW = r"\s+:?(?P<line>\d+)\s{3,}(?P<text>\S.*)"
# A line of source with its number, and a line that marks a part of the one above it.
_SOURCE_LINE = r"\d+(?: \||\s)"
_RULER = r"\s*\^[~^]*\s*$"
# Lines that belong to the message above them, and those that announce the one below
# (`a.c: In function 'f':`).
_PART = rf"\S+:\d+(?::\d+)?: note: |{_SOURCE_LINE}"
_ANNOUNCEMENT = r"\S+: (?:In|At) .*:$|In file included from "
# A rule or code at the start or the end of a message.
_CODE = (
    r"^\[(?P<first>[\w.-]+)\] ?|\s*(?:[\[(]|- |\u2022 )(?P<last>[\w./-]*[A-Za-z][\w./-]*)[\])]?$"
)
# Names and numbers, without which messages of one kind are equal: what is quoted, what stands
# alone behind the last colon, and what is written as only code is.
_NAMES = (
    r"(?<=: )\S+$|[\w\\]+(?:::|\\|\.(?=\w))[\w\\.:]+(?:\(\))?"
    r"|\w+\(\)|\b[a-z]+[A-Z]\w*|\b\w*_\w+|\b[A-Za-z]+\d\w*"
    r"|'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|\u2018[^\u2019\n]*\u2019|\d+"
)
_PROPERTY = r"\b\w+(?= property| option| argument| parameter)"


class _Message(Struct):
    """A message: its lines, from index `start` up to `end`;
    its kind, and its place ("": it has none).
    """

    start: int
    end: int
    kind: tuple[str, ...]
    file: str
    line: str
    text: str
    is_whole: bool = False
    """Whether `end` is known to be the end of all of it."""


def shorten_alike(lines: Sequence[str]) -> list[str]:
    """Return the lines with only the places of those messages of which alike ones stand above."""
    if not any(compile_once(_HINT).search(line) for line in lines):
        return [*lines]
    messages = [*_find_messages(lines)]
    by_kind: dict[tuple[str, ...], list[_Message]] = {}
    for message in messages:
        by_kind.setdefault(message.kind, []).append(message)
    replacements: dict[int, tuple[int, str]] = {}
    for alike in by_kind.values():
        others = alike[_WHOLE:]
        note = _describe(others) if len(others) >= _MIN_SHORTENED else ""
        if not note or len(note) >= sum(
            len(line) + 1 for each in others for line in lines[each.start : each.end]
        ):
            continue
        for index, message in enumerate(others):
            replacements[message.start] = (message.end, "" if index else note)
    kept: list[str] = []
    index = 0
    while index < len(lines):
        if index not in replacements:
            kept.append(lines[index])
            index += 1
            continue
        index, note = replacements[index]
        kept += [note] if note else []
    return kept


def _find_messages(lines: Sequence[str]) -> Iterator[_Message]:
    file = ""
    is_table = False
    index = 0
    while index < len(lines):
        line = lines[index]
        message = _read_head(lines, index)
        if message is None and (match := compile_once(_ESLINT).match(line)) and file:
            message = _make_message(index, match.groupdict(), file)
        elif message is None and (head := compile_once(_TABLE_HEAD).match(line)):
            file, is_table = head["file"], True
        elif message is None and is_table and (match := compile_once(_TABLE_ROW).match(line)):
            message = _make_message(index, match.groupdict(), file)
        elif message is None and compile_once(_FILE_LINE).match(line):
            file, is_table = line, False
        if message is None:
            index += 1
            continue
        # One line of eslint is one message; lines below others belong to them as
        # long as they are not heads.
        is_single = line.startswith(("FAILED ", "ERROR ", "#", "("))
        if message.is_whole:
            pass
        elif line.startswith(" "):
            message.end = _find_deeper_end(lines, index)
        else:
            message.end = index + 1 if is_single else _find_end(lines, message.end)
        if index and compile_once(_ANNOUNCEMENT).match(lines[index - 1]):
            message.start -= 1
        yield message
        index = message.end


def _read_head(lines: Sequence[str], index: int) -> _Message | None:
    """Return the message that begins with a line, as far as its place; None: none does."""
    line = lines[index]
    if len(line) > _MAX_HEAD_CHARS:
        return None
    if match := compile_once(_HEAD).match(line):
        number = next(number for number in range(len(_HEADS)) if match[f"h{number}"] is not None)
        start = f"g{number}_"
        groups = {
            name.removeprefix(start): text
            for name, text in match.groupdict().items()
            if name.startswith(start)
        }
        return (
            None
            if (groups.get("text") or "").startswith("note: ")
            else _make_message(index, groups)
        )
    if place := compile_once(_SHELL_PLACE).match(line):
        return _read_shell_message(lines, index, place.groupdict())
    match = compile_once(_LONG_HEAD).match(line)
    if match is None:
        return None
    for end in range(index + 1, min(len(lines), index + 1 + _MAX_PLACE_LINES)):
        if place := compile_once(_LONG_PLACE).match(lines[end]):
            message = _make_message(index, match.groupdict() | place.groupdict())
            message.end = end + 1
            # Behind the place stands the source, unless that was above it.
            message.is_whole = end > index + 1
            return message
        if not lines[end].strip():
            return None
    return None


def _read_shell_message(
    lines: Sequence[str], index: int, place: dict[str, str | None]
) -> _Message | None:
    """Return the message of shellcheck whose place stands on a line; None: more than one has it."""
    end = index + 1
    while end < len(lines) and not compile_once(_SHELL_END).match(lines[end]):
        end += 1
    texts = [match for line in lines[index:end] if (match := compile_once(_SHELL_TEXT).match(line))]
    if len(texts) != 1 or end - index > _MAX_BLOCK_LINES:
        return None
    message = _make_message(index, place | texts[0].groupdict())
    message.end, message.is_whole = end, True
    return message


def _make_message(index: int, groups: dict[str, str | None], file: str = "") -> _Message:
    text = (groups.get("text") or "").strip()
    code = groups.get("code") or groups.get("rule") or ""
    if not code and (match := compile_once(_CODE).search(text)):
        # Its digits tell it from another one: they are no name.
        code = match["first"] or match["last"]
        text = text[: match.start()] + text[match.end() :]
    kind = (
        groups.get("severity") or "",
        code,
        compile_once(_NAMES).sub("", compile_once(_PROPERTY).sub("", text)),
    )
    shown = " ".join(filter(None, (code, text)))
    return _Message(
        index, index + 1, kind, groups.get("file") or file, groups.get("line") or "", shown
    )


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the index behind the lines that belong to a message: indented ones, notes,
    and what a ruler marks.
    """
    end = start
    while end < min(len(lines), start + _MAX_BLOCK_LINES):
        line, below = lines[end], lines[end + 1] if end + 1 < len(lines) else ""
        if not line and compile_once(_SOURCE_LINE).match(below):
            end += 1
            continue
        is_marked = compile_once(_RULER).match(below) is not None
        if not (line.startswith((" ", "\t")) or is_marked or compile_once(_PART).match(line)):
            break
        if compile_once(_HEAD).match(line):
            break
        end += 1
    # The blank line that divides it from the next one goes with it.
    return end + 1 if end > start and end < len(lines) and not lines[end].strip() else end


def _find_deeper_end(lines: Sequence[str], index: int) -> int:
    """Return the index behind the lines that are indented more than the message above them."""
    depth = len(lines[index]) - len(lines[index].lstrip())
    end = index + 1
    while end < min(len(lines), index + _MAX_BLOCK_LINES):
        line = lines[end]
        if len(line) - len(line.lstrip()) <= depth or compile_once(_HEAD).match(line):
            break
        end += 1
    return end


def _describe(others: Sequence[_Message]) -> str:
    """Return a line about messages with their places, by file."""
    first = others[0].text
    shown = f"{first[:_SHOWN_CHARS]}..." if len(first) > _SHOWN_CHARS else first
    places: dict[str, list[str]] = {}
    for message in others:
        places.setdefault(message.file, []).append(message.line)
    listed = "; ".join(f"{file}: {_join(lines)}" for file, lines in places.items() if file)
    return f"... {len(others)} more alike ({shown})" + (f" in {listed}" if listed else "")


def _join(lines: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(filter(None, lines)))
