"""The text objects of vi: what `iw`, `a"`, `i(` mean around a place. Pure."""

from codeloop.tui.prompt.text.words import class_of
from codeloop.tui.prompt.vim.motions import line_end, line_start

_PAIRS = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "B": "{}", "<": "<>", ">": "<>"}
KINDS = frozenset({"w", "W", "p", '"', "'", "`", *_PAIRS})


def text_object(text: str, at: int, kind: str, *, around: bool) -> tuple[int, int] | None:
    """Return where an object begins and ends; None: there is none here."""
    if kind in {"w", "W"}:
        return _word(text, at, around=around, big=kind == "W")
    if kind == "p":
        return _paragraph(text, at, around=around)
    if kind in _PAIRS:
        return _bracketed(text, at, _PAIRS[kind], around=around)
    return _quoted(text, at, kind, around=around)


def _word(text: str, at: int, *, around: bool, big: bool) -> tuple[int, int] | None:
    low, high = line_start(text, at), line_end(text, at)
    if low == high:
        return at, at
    at = min(at, high - 1)
    start, end = _run(text, at, low, high, big=big)
    if not around:
        return start, end
    if text[at].isspace():
        return start, _run(text, end, low, high, big=big)[1] if end < high else end
    if end < high and text[end].isspace():
        return start, _run(text, end, low, high, big=big)[1]
    while start > low and text[start - 1].isspace():
        start -= 1
    return start, end


def _run(text: str, at: int, low: int, high: int, *, big: bool) -> tuple[int, int]:
    kind = class_of(text[at], big=big)
    if kind == "chip":
        return at, at + 1
    start = end = at
    while start > low and class_of(text[start - 1], big=big) == kind:
        start -= 1
    while end < high and class_of(text[end], big=big) == kind:
        end += 1
    return start, end


def _paragraph(text: str, at: int, *, around: bool) -> tuple[int, int] | None:
    start = text.rfind("\n\n", 0, at + 1)
    start = 0 if start < 0 else start + 2
    end = text.find("\n\n", at)
    end = len(text) if end < 0 else end + 1
    while around and end < len(text) and text[end] == "\n":
        end += 1
    return min(start, end), end


def _bracketed(text: str, at: int, pair: str, *, around: bool) -> tuple[int, int] | None:
    opening, closing = pair
    depth, start = 0, -1
    for place in range(min(at, len(text) - 1), -1, -1):
        if text[place] == closing and place != at:
            depth += 1
        elif text[place] == opening:
            if depth == 0:
                start = place
                break
            depth -= 1
    if start < 0:  # the next one in the line, as in newer versions
        start = text.find(opening, at, line_end(text, at))
    if start < 0:
        return None
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return (start, place + 1) if around else (start + 1, place)
    return None


def _quoted(text: str, at: int, quote: str, *, around: bool) -> tuple[int, int] | None:
    low, high = line_start(text, at), line_end(text, at)
    places = [place for place in range(low, high) if text[place] == quote and (place == low or text[place - 1] != "\\")]
    for first, last in zip(places[::2], places[1::2], strict=False):
        if last >= at:
            if not around:
                return first + 1, last
            end = last + 1
            while end < high and text[end].isspace():
                end += 1
            return first, end
    return None
