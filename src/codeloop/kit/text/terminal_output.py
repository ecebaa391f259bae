"""Cleans program output for a model: the text that remains on a terminal, in few lines. Pure.

Control sequences are removed. Of a line that was overwritten its last state is kept, of equal lines one with their
number, of rows of progress the first and the last, where that is shorter. Every other character is kept.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

_CONTROL_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links
    r"|[ -/]+[0-~]|[0-Z\\`-~])?"  # character sets, and all of one character
)
# Both sequences begin the line again.
_LINE_RESTART = re.compile(r"\x1b\[(?:2K|[01]?G)")
_CURSOR_BACK = re.compile(r"\x1b\[(\d{0,3})D")
# Sequences that lead to another row; J clears the rows below.
_ROW_MOVE = re.compile(r"\n|\x1b\[(\d{0,4})([ABEFJ])")
_MOVE_UP = re.compile(r"\x1b\[\d{0,4}[AF]")
_CONTROL_CHARACTER = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONTROL_REPLACEMENTS = {"\0": "\ufffd", "\x0b": "\n", "\x0c": "\n", "\x85": "\n"}
_NUMBER = re.compile(r"(?<![A-Za-z_\-./\d])\d+(?:[.,:]\d+)*(?: ?[kKMGT]?i?B\b(?:/s)?)?")
_PROGRESS_BAR = re.compile(r"[=#>*.\-\s\u2500-\u259f]{2,}")
_PROGRESS_COUNT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?%|(?<![\w./-])(\d+)(?:/| of )\d+(?![\w/])")
# pytest's results of tests, none of which failed.
_PYTEST_PROGRESS = re.compile(r"[.sxXpP]+ +\[ *(\d+)%\]")
# One sequence goes back at most so far: each column becomes a character here.
_MAX_BACK_COLUMNS = 160
# A longer line is not a row of progress.
_MAX_PROGRESS_CHARS = 300
# Longer runs are shortened.
_MAX_RUN_LINES = 3
# The size of the note that ends a reduced output and says where the whole output is.
_NOTE_CHARS = 130


class PlainOutput(Struct, frozen=True):
    """The text. `is_reduced`: printed text is missing from it: earlier states of a line, or rows of progress."""

    text: str
    is_reduced: bool = False


def to_plain_text(output: str) -> PlainOutput:
    """Convert a program's output to the text that a terminal would show in the end."""
    is_reduced = False
    if "\x1b" in output:
        output = _CURSOR_BACK.sub(
            lambda match: "\b" * min(int(match[1] or 1), _MAX_BACK_COLUMNS), _LINE_RESTART.sub("\r", output)
        )
        if _MOVE_UP.search(output):
            output, is_reduced = _apply_row_moves(output)
        output = _CONTROL_SEQUENCE.sub("", output)
    lines = _CONTROL_CHARACTER.sub(lambda match: _CONTROL_REPLACEMENTS.get(match[0], ""), output).split("\n")
    if "\r" in output or "\b" in output:
        states = [_find_last_state(line) for line in lines]
        lines, is_reduced = [line for line, _ in states], is_reduced or any(is_cut for _, is_cut in states)
    end = [lines.pop()] if not lines[-1] else []
    rows: list[str] = []
    for run in _group_runs(lines):
        short, left_out = _shorten_run(run)
        rows += short
        is_reduced = is_reduced or left_out
    return PlainOutput("\n".join(rows + end), is_reduced)


def _apply_row_moves(output: str) -> tuple[str, bool]:
    """Return the text with what was written after moving up as later states of its rows, and whether rows are gone."""
    rows: list[list[str]] = [[]]
    at, begin, is_reduced = 0, 0, False
    for match in _ROW_MOVE.finditer(output):
        rows[at].append(output[begin : match.start()])
        begin = match.end()
        order, count = match[2], int(match[1] or 1)
        if order == "J":
            if not int(match[1] or 0):
                is_reduced = is_reduced or any(map("".join, rows[at + 1 :]))
                del rows[at + 1 :]
            continue
        at = max(at - count, 0) if order in {"A", "F"} else at + (count if order else 1)
        if at >= len(rows) and order is None:
            rows.append([])
        at = min(at, len(rows) - 1)
        rows[at] += ["\r"] if rows[at] else []
    rows[at].append(output[begin:])
    return "\n".join(map("".join, rows)), is_reduced


def _find_last_state(line: str) -> tuple[str, bool]:
    """Return the last state of a line that was overwritten, and whether earlier states differed."""
    if "\r" not in line and "\b" not in line:
        return line, False
    states = [_apply_backspaces(state) for state in line.split("\r")]
    last = next((state for state, _ in reversed(states) if state.strip()), states[0][0])
    has_others = any(is_cut or state.strip() not in {"", last.strip()} for state, is_cut in states)
    return last, has_others


def _apply_backspaces(text: str) -> tuple[str, bool]:
    if "\b" not in text:
        return text, False
    cells: list[str] = []
    at, is_reduced = 0, False
    for char in text:
        if char == "\b":
            at = max(at - 1, 0)
            continue
        if at == len(cells):
            cells.append(char)
        else:
            # As `man` prints: a letter over itself is bold, a letter and `_` are underlined.
            is_reduced = is_reduced or cells[at] not in {char, "_", " "}
            cells[at] = char if char != "_" else cells[at]
        at += 1
    return "".join(cells), is_reduced


def _group_runs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines in runs: equal ones, or rows of one progress that goes on."""
    run, key, stand = list[str](), "", 0.0
    for line in lines:
        shape, value = _read_progress(line)
        if run and (shape != key or value < stand):
            yield run
            run = []
        run.append(line)
        key, stand = shape, value
    yield run


def _shorten_run(run: list[str]) -> tuple[list[str], bool]:
    """Return the lines shown for a run, and whether they leave something out."""
    if len(run) <= _MAX_RUN_LINES:
        return run, False
    if all(line == run[0] for line in run):
        note = f"... the line above {len(run) - 1} times more"
        return ([run[0], note] if _count_characters(run[1:]) > len(note) else run), False
    note = f"... {len(run) - 2} rows of progress in between"
    if _count_characters(run[1:-1]) <= len(note) + _NOTE_CHARS:
        return run, False
    return [run[0], note, run[-1]], True


def _count_characters(lines: list[str]) -> int:
    return sum(map(len, lines)) + len(lines) - 1


def _read_progress(line: str) -> tuple[str, float]:
    """Return the common text of rows of one progress and how far this row is; another line has only itself."""
    if progress := _PYTEST_PROGRESS.fullmatch(line):
        return "\rpassed", float(progress[1])
    match = _PROGRESS_COUNT.search(line) if len(line) <= _MAX_PROGRESS_CHARS else None
    if match is None:
        return line, 0
    return "\r" + _PROGRESS_BAR.sub(" ", _NUMBER.sub("0", line)), float(match[1] or match[2])
