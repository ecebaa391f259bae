"""Changes that vi's commands make to a buffer."""

from msgspec import Struct

from codeloop.tui.prompt.text.buffer import Buffer
from codeloop.tui.prompt.text.graphemes import next_edge, previous_edge
from codeloop.tui.prompt.vim.motions import first_letter, line_end, line_start


class Register(Struct):
    """What was yanked or deleted last; `is_lines`: whole lines, without their last line feed."""

    text: str = ""
    is_lines: bool = False

    def take(self, buffer: Buffer, low: int, high: int, *, is_lines: bool = False) -> None:
        """Take a piece of the text; ctrl+y puts it back, too."""
        self.text, self.is_lines = buffer.text[low:high], is_lines
        buffer.killed = self.text


def replace_characters(buffer: Buffer, char: str, times: int) -> None:
    """Replace as many characters with one each, if the line has them."""
    at = end = buffer.cursor
    for _ in range(times):
        if end >= line_end(buffer.text, at):
            return
        end = next_edge(buffer.text, end)
    buffer.replace(at, end, char * times)
    if char != "\n":
        buffer.move(previous_edge(buffer.text, buffer.cursor))


def put(buffer: Buffer, register: Register, times: int, *, after: bool) -> None:
    """Insert what is in the register behind the cursor or before it."""
    text, at = buffer.text, buffer.cursor
    if register.is_lines:
        lines = "\n".join([register.text] * times)
        place = line_end(text, at) if after else line_start(text, at)
        buffer.replace(place, place, f"\n{lines}" if after else f"{lines}\n")
        buffer.move(first_letter(buffer.text, place + after))
    elif register.text:
        place = min(next_edge(text, at), line_end(text, at)) if after else at
        buffer.replace(place, place, register.text * times)
        buffer.move(previous_edge(buffer.text, place + len(register.text) * times))


def join(buffer: Buffer, times: int) -> None:
    """Put the next lines behind this one, with a blank between them."""
    buffer.begin()
    for _ in range(times):
        end = line_end(buffer.text, buffer.cursor)
        if end == len(buffer.text):
            break
        after = end + 1
        while after < len(buffer.text) and buffer.text[after] in " \t":
            after += 1
        is_bare = end == 0 or buffer.text[end - 1].isspace() or buffer.text[after : after + 1] in {")", "\n", ""}
        buffer.replace(end, after, "" if is_bare else " ")
        buffer.move(end)
    buffer.end()


def delete_lines(buffer: Buffer, low: int, high: int) -> None:
    """Delete whole lines with a line feed: the one behind them, or for the last line the one before."""
    low, high = (low, high + 1) if high < len(buffer.text) else (max(low - 1, 0), high)
    buffer.replace(low, high, "")
    buffer.move(first_letter(buffer.text, min(low, len(buffer.text))))


def word_range(text: str, low: int, high: int) -> tuple[int, int]:
    """Return what an operator takes on the way to the next word: not the line feed behind the last one of a line."""
    start = line_start(text, high)
    if low < start and not text[start:high].strip():
        return low, max(start - 1, low)
    return low, high
