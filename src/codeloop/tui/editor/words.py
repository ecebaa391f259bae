"""Finds the boundaries of words in a text: by the rules of vi, for its motions, and of readline,
for the other keys.
"""

import re
from typing import Literal

from codeloop.tui.editor.chips import is_chip

_MAX_WORD_LENGTH = 4_096
"""Characters before the cursor in which the start of a word is searched."""
CharacterClass = Literal["blank", "word", "mark", "chip"]
"""As vi distinguishes them, `mark` for punctuation; chips are our own."""


def classify_character(char: str, *, big: bool = False) -> CharacterClass:
    """Return a character's class; `big`: words are separated by blanks only.
    A chip is a class of its own.
    """
    if char.isspace():
        return "blank"
    if is_chip(char):
        return "chip"
    return "word" if big or char == "_" or not _is_punctuation(char) else "mark"


def _is_punctuation(char: str) -> bool:
    # As in vi, characters beyond ASCII are parts of words.
    return not (char.isalnum() or ord(char) > 127)


def _is_same_class(text: str, first: int, second: int, *, big: bool) -> bool:
    """Return whether two characters belong to the same word, or run of blanks or marks."""
    # Each chip is a word of its own, even next to another one.
    kind = classify_character(text[first], big=big)
    return kind != "chip" and classify_character(text[second], big=big) == kind


def find_next_word(text: str, offset: int, *, big: bool = False) -> int:
    """Return the start of the next word, as vi's `w` does; an empty line is a word."""
    end = len(text)
    if offset >= end:
        return end
    index = offset + 1
    if not text[offset].isspace():
        while index < end and _is_same_class(text, offset, index, big=big):
            index += 1
    while index < end and text[index].isspace():
        if text[index] == "\n" and text[index - 1] == "\n" and index > offset:
            return index
        index += 1
    return index


def find_word_end(text: str, offset: int, *, big: bool = False) -> int:
    """Return the offset of the last character of this word, or at its end, of the next one,
    as vi's `e` does.
    """
    end = len(text)
    index = offset + 1
    while index < end and text[index].isspace():
        index += 1
    if index >= end:
        return max(end - 1, 0)
    while index + 1 < end and _is_same_class(text, index, index + 1, big=big):
        index += 1
    return index


def find_previous_word(text: str, offset: int, *, big: bool = False) -> int:
    """Return the start of this word, or at its start, of the previous one, as vi's `b` does."""
    index = offset
    while index > 0 and text[index - 1].isspace():
        index -= 1
        if index < offset and text[index] == "\n" and (index == 0 or text[index - 1] == "\n"):
            return index
    if index == 0:
        return 0
    last = index - 1
    index -= 1
    while index > 0 and _is_same_class(text, last, index - 1, big=big):
        index -= 1
    return index


def find_end_forward(text: str, offset: int) -> int:
    """Return the end of the word at an offset or after it, as readline's alt+f does."""
    index = offset
    while index < len(text) and not _is_word_character(text[index]):
        if is_chip(text[index]):
            return index + 1
        index += 1
    while index < len(text) and _is_word_character(text[index]):
        index += 1
    return index


def find_start_backward(text: str, offset: int) -> int:
    """Return the start of the word before an offset, as readline's alt+b does."""
    index = offset
    while index > 0 and not _is_word_character(text[index - 1]):
        if is_chip(text[index - 1]):
            return index - 1
        index -= 1
    while index > 0 and _is_word_character(text[index - 1]):
        index -= 1
    return index


def find_blank_backward(text: str, offset: int) -> int:
    """Return the start of the text that readline's ctrl+w deletes: back to a blank, or a chip."""
    # Bounded, since the search starts anew at each character,
    # and so takes the square of the text's length.
    head = text[:offset].rstrip()
    match = re.search(r"\S+\Z", head[-_MAX_WORD_LENGTH:])
    if match is None:
        return 0
    if is_chip(head[-1]):
        return len(head) - 1
    start = len(head) - len(match[0])
    for index in range(len(head) - 1, start - 1, -1):
        if is_chip(head[index]):
            return index + 1
    return start


def find_word_span(text: str, offset: int) -> tuple[int, int]:
    """Return the start and end of the word, the blanks or the punctuation marks at an offset."""
    start = end = offset
    # Behind the last character there is no class to compare with.
    if offset < len(text):
        while (
            start > 0
            and text[start - 1] != "\n"
            and _is_same_class(text, offset, start - 1, big=False)
        ):
            start -= 1
    while (
        end < len(text)
        and text[end] != "\n"
        and (end == offset or _is_same_class(text, offset, end, big=False))
    ):
        end += 1
    return start, end


def _is_word_character(char: str) -> bool:
    return classify_character(char) == "word"
