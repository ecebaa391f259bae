"""Word boundaries in a text, by the rules of readline and of vi."""

import re
from typing import Literal

from codeloop.tui.editor.chips import is_chip

Class = Literal["blank", "word", "mark", "chip"]


def class_of(char: str, *, big: bool = False) -> Class:
    """Return a character's class; `big`: words are separated by blanks only. A chip is a word."""
    if char.isspace():
        return "blank"
    if is_chip(char):
        return "chip"
    return "word" if big or char == "_" or not _is_mark(char) else "mark"


def _is_mark(char: str) -> bool:
    return not (char.isalnum() or ord(char) > 127)


def _same(text: str, at: int, other: int, *, big: bool) -> bool:
    kind = class_of(text[at], big=big)
    return kind != "chip" and class_of(text[other], big=big) == kind


def next_word(text: str, at: int, *, big: bool = False) -> int:
    """Return where the next word begins; an empty line is a word."""
    end = len(text)
    if at >= end:
        return end
    place = at + 1
    if not text[at].isspace():
        while place < end and _same(text, at, place, big=big):
            place += 1
    while place < end and text[place].isspace():
        if text[place] == "\n" and text[place - 1] == "\n" and place > at:
            return place
        place += 1
    return place


def word_end(text: str, at: int, *, big: bool = False) -> int:
    """Return the last character of this word, or of the next one if this is its end."""
    end = len(text)
    place = at + 1
    while place < end and text[place].isspace():
        place += 1
    if place >= end:
        return max(end - 1, 0)
    while place + 1 < end and _same(text, place, place + 1, big=big):
        place += 1
    return place


def previous_word(text: str, at: int, *, big: bool = False) -> int:
    """Return where this word begins, or the one before if this is its beginning."""
    place = at
    while place > 0 and text[place - 1].isspace():
        place -= 1
        if place < at and text[place] == "\n" and (place == 0 or text[place - 1] == "\n"):
            return place
    if place == 0:
        return 0
    last = place - 1
    place -= 1
    while place > 0 and _same(text, last, place - 1, big=big):
        place -= 1
    return place


def after_word(text: str, at: int) -> int:
    """Return where a word ends that is here or follows, as alt+f goes."""
    place = at
    while place < len(text) and not _is_letter(text[place]):
        if is_chip(text[place]):
            return place + 1
        place += 1
    while place < len(text) and _is_letter(text[place]):
        place += 1
    return place


def before_word(text: str, at: int) -> int:
    """Return where a word begins that is before this place, as alt+b goes."""
    place = at
    while place > 0 and not _is_letter(text[place - 1]):
        if is_chip(text[place - 1]):
            return place - 1
        place -= 1
    while place > 0 and _is_letter(text[place - 1]):
        place -= 1
    return place


def before_blank(text: str, at: int) -> int:
    """Return the start of the text that ctrl+w deletes: back to a blank."""
    head = text[:at].rstrip()
    found = re.search(r"\S+\Z", head[-4096:])
    if found is None:
        return 0
    if is_chip(head[-1]):
        return len(head) - 1
    start = len(head) - len(found[0])
    for place in range(len(head) - 1, start - 1, -1):
        if is_chip(head[place]):
            return place + 1
    return start


def around(text: str, at: int) -> tuple[int, int]:
    """Return the start and end of the word, blanks or marks at a place."""
    start = end = at
    while start > 0 and text[start - 1] != "\n" and at < len(text) and _same(text, at, start - 1, big=False):
        start -= 1
    while end < len(text) and text[end] != "\n" and (end == at or _same(text, at, end, big=False)):
        end += 1
    return start, end


def _is_letter(char: str) -> bool:
    return class_of(char) == "word"
