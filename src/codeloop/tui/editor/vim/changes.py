"""The changes that vi's commands make to a buffer, as functions;
`vim.py` and `vim_operators.py` call them.
"""

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.grapheme_bounds import find_next_edge, find_previous_edge
from codeloop.tui.editor.vim.motions import find_first_nonblank, find_line_end, find_line_start
from codeloop.tui.editor.vim.operator_span import OperatorSpan
from codeloop.tui.editor.vim.registers import Register, Registers

INDENT = "    "
"""The text that `>` inserts at the start of a line."""


def replace_characters(buffer: Buffer, char: str, times: int) -> None:
    """Replace each of the next `times` characters by `char`;
    nothing is changed if the line has fewer.
    """
    offset = end = buffer.cursor
    for _ in range(times):
        if end >= find_line_end(buffer.text, offset):
            return
        end = find_next_edge(buffer.text, end)
    buffer.replace(offset, end, char * times)
    if char != "\n":
        buffer.move(find_previous_edge(buffer.text, buffer.cursor))


def put_register(buffer: Buffer, register: Register, times: int, *, after: bool) -> None:
    """Insert the content of a register `times` times, behind the cursor (`after`) or before it."""
    text, offset = buffer.text, buffer.cursor
    if register.is_lines:
        lines = "\n".join([register.text] * times)
        index = find_line_end(text, offset) if after else find_line_start(text, offset)
        buffer.replace(index, index, f"\n{lines}" if after else f"{lines}\n")
        buffer.move(find_first_nonblank(buffer.text, index + after))
    elif register.text:
        index = min(find_next_edge(text, offset), find_line_end(text, offset)) if after else offset
        buffer.replace(index, index, register.text * times)
        buffer.move(find_previous_edge(buffer.text, index + len(register.text) * times))


def replace_selection(
    buffer: Buffer, register: Register, low: int, high: int, *, is_lines: bool
) -> None:
    """Replace a selection by the content of a register. `is_lines`: whole lines are selected."""
    # Lines that replace a part of a line stand on lines of their own.
    text, is_whole = register.text, register.is_lines and not is_lines
    buffer.replace(low, high, f"\n{text}\n" if is_whole else text)
    if register.is_lines or is_lines:
        buffer.move(find_first_nonblank(buffer.text, low + is_whole))
    elif text:
        buffer.move(find_previous_edge(buffer.text, low + len(text)))


def join_lines(buffer: Buffer, times: int, *, keeps_blanks: bool = False) -> None:
    """Join the next `times` lines to this one, with a blank between them;
    `keeps_blanks`: with the blanks they have.
    """
    buffer.begin_group()
    for _ in range(times):
        end = find_line_end(buffer.text, buffer.cursor)
        if end == len(buffer.text):
            break
        after = end + 1
        if keeps_blanks:
            buffer.replace(end, after, "")
            buffer.move(end)
            continue
        while after < len(buffer.text) and buffer.text[after] in " \t":
            after += 1
        # As in vi: no blank behind another one, before a closing parenthesis,
        # or next to an empty line.
        follows_blank = end == 0 or buffer.text[end - 1].isspace()
        needs_no_blank = follows_blank or buffer.text[after : after + 1] in {")", "\n", ""}
        buffer.replace(end, after, "" if needs_no_blank else " ")
        buffer.move(end)
    buffer.end_group()


def delete_lines(buffer: Buffer, low: int, high: int) -> None:
    """Delete whole lines, with the line feed behind them, or before the last line."""
    # The last line has no line feed of its own, so the one before it goes.
    low, high = (low, high + 1) if high < len(buffer.text) else (max(low - 1, 0), high)
    buffer.replace(low, high, "")
    buffer.move(find_first_nonblank(buffer.text, min(low, len(buffer.text))))


CASE_OPERATORS = {"gu": str.lower, "gU": str.upper, "g~": str.swapcase}
"""Vi's operators for lower case, upper case, and the other case."""


def apply_operator(
    buffer: Buffer,
    registers: Registers,
    operator: str,
    span: OperatorSpan,
    register: str,
    times: int,
) -> None:
    """Apply an operator to a span; for `c`, the caller has started insert mode before."""
    low, high = span.low, span.high
    if span.is_lines or operator in {"<", ">"}:
        low, high = find_line_start(buffer.text, low), find_line_end(buffer.text, high)
    if operator in {"<", ">"}:
        shift_lines(buffer, low, high, times if operator == ">" else -times)
    elif operator in CASE_OPERATORS:
        buffer.replace(low, high, CASE_OPERATORS[operator](buffer.text[low:high]))
        buffer.move(low)
    elif low == high and not span.is_lines:
        buffer.move(low)
    else:
        registers.store(
            buffer, register, low, high, is_lines=span.is_lines, is_yank=operator == "y"
        )
        if operator == "y":
            buffer.move(span.low)
        elif operator == "d" and span.is_lines:
            delete_lines(buffer, low, high)
        else:
            buffer.replace(low, high, "")


def shift_lines(buffer: Buffer, low: int, high: int, times: int) -> None:
    """Indent whole lines `times` times; if that is negative, remove indentation.
    Empty lines stay as they are.
    """
    lines = buffer.text[low:high].split("\n")
    if times > 0:
        lines = [f"{INDENT * times}{line}" if line else line for line in lines]
    for _ in range(-times):
        lines = [line.removeprefix("\t") if line[:1] == "\t" else _outdent(line) for line in lines]
    buffer.replace(low, high, "\n".join(lines))
    buffer.move(find_first_nonblank(buffer.text, low))


def _outdent(line: str) -> str:
    """Return a line without one level of indentation, or as much of it as there is."""
    content = line.lstrip(" ")
    return line[min(len(line) - len(content), len(INDENT)) :]


def overwrite_character(buffer: Buffer, char: str) -> None:
    """Replace the character under the cursor; at the end of a line, insert."""
    offset = buffer.cursor
    buffer.replace(
        offset, min(find_next_edge(buffer.text, offset), find_line_end(buffer.text, offset)), char
    )
