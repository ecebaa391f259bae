"""Quotes a text, such as a command or a diff, within a question to the user.

Every row begins with a mark, so that nothing in the text can pass for the question itself. A long
text is cut, with the number of omitted lines, so that the question stays on the screen.
"""

from codeloop.client.formatting import measure_width
from codeloop.kit.text.terminal_text import escape_controls

QUOTE_MARK, WRAP_MARK = "  │ ", "  ┆ "
CUT_MARK = "  … "
MAX_FULL_ROWS = 5_000
"""Rows of a quoted text that are shown when the user asks to see all of it;
a longer one is cut even then.
"""


def quote_text(text: str, columns: int, max_rows: int) -> list[str]:
    """Quote a text in at most `max_rows` rows; the rows of a wrapped line have a mark of their own.

    A longer text is cut in the middle, where a row has the number of omitted lines.
    """
    room = max(columns - len(QUOTE_MARK) - 1, 20)
    # A longer line is cut before wrapping: it may have megabytes.
    max_chars = room * (max_rows + 1)
    lines = text.rstrip("\n").split("\n")
    head, tail, tail_lines = list[str](), list[str](), lines
    for index, line in enumerate(lines):
        head += _quote_line(line[:max_chars], room)
        if len(head) > max_rows:
            break
        # Combining marks take no cell, so the beginning of a line may fit
        # although the line does not.
        if len(line) > max_chars:
            tail_lines = [line[max_chars:], *lines[index + 1 :]]
            break
    else:
        return head
    # The end of a command may matter as much as its beginning,
    # and must not be hidden by a long middle.
    tail_rows = max_rows // 3
    for line in reversed(tail_lines):
        if len(tail) >= tail_rows:
            break
        tail = _quote_line(line[-max_chars:], room) + tail
    head, tail = head[: max_rows - tail_rows - 1], tail[len(tail) - tail_rows :]
    omitted = len(lines) - sum(row.startswith(QUOTE_MARK) for row in (*head, *tail))
    note = (
        f"{omitted:,} more line{'' if omitted == 1 else 's'}"
        if omitted > 0
        else "more of this line"
    )
    return [*head, CUT_MARK + note, *tail]


def _quote_line(line: str, room: int) -> list[str]:
    first, *rest = wrap_line(escape_controls(line).expandtabs(4), room)
    return [QUOTE_MARK + first, *(WRAP_MARK + piece for piece in rest)]


def wrap_line(line: str, room: int) -> list[str]:
    """Wrap a line into pieces of at most `room` cells,
    after a space or a wide character if there is one.
    """
    pieces, start, used = list[str](), 0, 0
    # The index after the last place where the piece may end, and the cells up to there.
    break_index = used_before_break = 0
    for index, char in enumerate(line):
        width = measure_width(char)
        if used + width > room:
            if line[start:break_index].strip():
                stop, used = break_index, used - used_before_break
            else:
                stop, used = index, 0
            pieces.append(line[start:stop])
            start = break_index = stop
            used_before_break = 0
        used += width
        if char == " " or width == 2:
            break_index, used_before_break = index + 1, used
    return [*pieces, line[start:]]
