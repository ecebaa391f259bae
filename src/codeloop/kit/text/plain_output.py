"""Cleans program output for a model: the text that remains on a terminal, in few lines. Pure.

Control sequences are removed. A line that was overwritten keeps its last state. Where it is
shorter, equal lines in a row become one with their number, and only the first and last row of a
progress display stay. All else is kept.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

_CONTROL_SEQUENCE = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links
    r"|[ -/]+[0-~]|[0-Z\\`-~])?"
)
# Both begin the line again: 2K erases it, G moves to its first column.
_LINE_RESTART = r"\x1b\[(?:2K|[01]?G)"
_CURSOR_BACK = r"\x1b\[(\d{0,3})D"
# What leads to another row: a line feed, or a sequence (A and F up, B and E down).
# J clears the rows below.
_ROW_MOVE = r"\n|\x1b\[(\d{0,4})([ABEFJ])"
_MOVE_UP = r"\x1b\[\d{0,4}[AF]"
_CONTROL_CHARACTER = "[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
_CONTROL_REPLACEMENTS = {"\0": "\ufffd", "\x0b": "\n", "\x0c": "\n", "\x85": "\n"}
_NUMBER = r"(?<![A-Za-z_\-./\d])\d+(?:[.,:]\d+)*(?: ?[kKMGT]?i?B\b(?:/s)?)?"
_PROGRESS_BAR = r"[=#>*.\-\s\u2500-\u259f]{2,}"
_PROGRESS_COUNT = r"(?<![\w.])(\d+(?:\.\d+)?) ?%|(?<![\w./-])(\d+)(?:/| of )\d+(?![\w/])"
# Results of tests that pytest prints, none of them a failure: `..s.x..  [ 42%]`.
_PYTEST_PROGRESS = r"[.sxXpP]+ +\[ *(\d+)%\]"
# The most columns that one sequence goes back, since each becomes a character.
_MAX_BACK_COLUMNS = 160
# A longer line is not a row of progress.
_MAX_PROGRESS_CHARS = 300
# Longer runs of equal lines or rows of progress are shortened.
_MAX_RUN_LINES = 3
# The size of the note about the file with the whole output, which ends a reduced output.
_NOTE_CHARS = 130


class PlainOutput(Struct, frozen=True):
    """The text. `is_reduced`: printed text is missing from it,
    such as earlier states of a line or rows of progress.
    """

    text: str
    is_reduced: bool = False


def to_plain_text(output: str) -> PlainOutput:
    """Convert a program's output to the text that a terminal would show in the end,
    with long runs shortened.
    """
    is_reduced = False
    if "\x1b" in output:
        output = compile_once(_CURSOR_BACK).sub(
            lambda match: "\b" * min(int(match[1] or 1), _MAX_BACK_COLUMNS),
            compile_once(_LINE_RESTART).sub("\r", output),
        )
        if compile_once(_MOVE_UP).search(output):
            output, is_reduced = _apply_row_moves(output)
        output = compile_once(_CONTROL_SEQUENCE).sub("", output)
    lines = (
        compile_once(_CONTROL_CHARACTER)
        .sub(lambda match: _CONTROL_REPLACEMENTS.get(match[0], ""), output)
        .split("\n")
    )
    if "\r" in output or "\b" in output:
        states = [_find_last_state(line) for line in lines]
        lines = [line for line, _ in states]
        is_reduced = is_reduced or any(has_others for _, has_others in states)
    # What follows a final line end is not a line.
    end = [lines.pop()] if not lines[-1] else []
    shown_lines: list[str] = []
    for run in _group_runs(lines):
        shown_run, omits_text = _shorten_run(run)
        shown_lines += shown_run
        is_reduced = is_reduced or omits_text
    return PlainOutput("\n".join(shown_lines + end), is_reduced)


def _apply_row_moves(output: str) -> tuple[str, bool]:
    """Put what was written after a move to another row at the end of that row,
    after a carriage return.

    Return the text, and whether rows that held text were cleared.
    """
    # The pieces of each row, in the order in which they were written.
    rows: list[list[str]] = [[]]
    row, begin, is_reduced = 0, 0, False
    for match in compile_once(_ROW_MOVE).finditer(output):
        rows[row].append(output[begin : match.start()])
        begin = match.end()
        # None for a line feed.
        command = match[2]
        if command == "J":
            # Without a number, or with 0, it clears to the end of the screen.
            if not int(match[1] or 0):
                is_reduced = is_reduced or any(map("".join, rows[row + 1 :]))
                del rows[row + 1 :]
            continue
        count = int(match[1] or 1)
        row = max(row - count, 0) if command in {"A", "F"} else row + count
        # Only a line feed makes new rows; a move down ends at the last one.
        if row >= len(rows) and command is None:
            rows.append([])
        row = min(row, len(rows) - 1)
        if rows[row]:
            rows[row].append("\r")
    rows[row].append(output[begin:])
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
    """Return the text after its backspaces, and whether a character was
    replaced by a different one.
    """
    if "\b" not in text:
        return text, False
    cells: list[str] = []
    column, is_reduced = 0, False
    for char in text:
        if char == "\b":
            column = max(column - 1, 0)
            continue
        if column == len(cells):
            cells.append(char)
        else:
            # As `man` prints: a letter over itself is bold, a letter and `_` are underlined.
            is_reduced = is_reduced or cells[column] not in {char, "_", " "}
            cells[column] = char if char != "_" else cells[column]
        column += 1
    return "".join(cells), is_reduced


def _group_runs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines in runs: equal ones, or rows of one progress display that moves forward."""
    run: list[str] = []
    last_shape, last_value = "", 0.0
    for line in lines:
        shape, value = _read_progress(line)
        if run and (shape != last_shape or value < last_value):
            yield run
            run = []
        run.append(line)
        last_shape, last_value = shape, value
    yield run


def _shorten_run(run: list[str]) -> tuple[list[str], bool]:
    """Return the lines that are shown for a run, and whether they leave something out."""
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
    """Return the shape that all rows of a progress display share, and its progress;
    for other lines the line and 0.

    `Copying 3/20 [==  ]` and `Copying 7/20 [=== ]` have the same shape, and are at 3 and 7. The
    shape of a row of progress starts with a carriage return, which no line has.
    """
    if progress := compile_once(_PYTEST_PROGRESS).fullmatch(line):
        return "\rpassed", float(progress[1])
    match = compile_once(_PROGRESS_COUNT).search(line) if len(line) <= _MAX_PROGRESS_CHARS else None
    if match is None:
        return line, 0
    return "\r" + compile_once(_PROGRESS_BAR).sub(" ", compile_once(_NUMBER).sub("0", line)), float(
        match[1] or match[2]
    )
