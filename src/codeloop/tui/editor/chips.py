"""Chips: large pasted texts and images, each of which is one character of the
buffer and shown as a label.

Characters of a text that would be taken for a chip become chips, too.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

# Private-use code points stand for chips: no text should contain them,
# and those that do are escaped.
_FIRST_CODE_POINT, _LAST_CODE_POINT = 0x100000, 0x10FFFD
_CHIP_PATTERN = f"[{chr(_FIRST_CODE_POINT)}-{chr(_LAST_CODE_POINT)}]"
"""A pattern that matches a character which may represent a chip."""


class Chip(Struct, frozen=True, omit_defaults=True):
    """The content of a chip. `label`: its displayed text in brackets, unique in the buffer;
    `text`: the pasted text.

    An image has a `url` (`data:`), a `mime` and a file's `name` instead, and is sent as an
    attachment. `file`: the name of the file that holds the content of a stored chip.
    """

    label: str
    text: str = ""
    url: str = ""
    mime: str = ""
    name: str = ""
    file: str = ""

    @property
    def sent_text(self) -> str:
        """The text that is sent for the chip: the label of an image, or the pasted text."""
        return self.label if self.url else self.text


Chips = dict[str, Chip]
"""Chips by the character that represents each in the text."""


def is_chip(char: str) -> bool:
    """Return whether a character represents a chip."""
    return len(char) == 1 and _FIRST_CODE_POINT <= ord(char) <= _LAST_CODE_POINT


def add_chip(chips: Chips, chip: Chip, text: str = "") -> str:
    """Add a chip, with a label that is unique in a text,
    and return the character that represents it.

    Beside a chip `[Image]`, a second one gets the label `[Image #2]`.
    """
    char = chr(max((ord(each) for each in chips), default=_FIRST_CODE_POINT - 1) + 1)
    labels = {each.label for each in find_chips(chips, text).values()}
    label, number = chip.label, 2
    while label in labels:
        label, number = f"{chip.label[:-1]} #{number}]", number + 1
    chips[char] = replace(chip, label=label)
    return char


def escape_chips(chips: Chips, text: str) -> str:
    """Return a pasted or typed text, with its private-use characters replaced by chips
    that show their code point.
    """
    if text.isascii() or re.search(_CHIP_PATTERN, text) is None:
        return text
    return re.sub(
        _CHIP_PATTERN, lambda match: add_chip(chips, Chip(f"[U+{ord(match[0]):X}]", match[0])), text
    )


def expand_chips(chips: Chips, text: str) -> str:
    """Return a text as it is sent: each chip is replaced by its text or label."""
    if text.isascii() or not chips:
        return text
    return re.sub(
        _CHIP_PATTERN,
        lambda match: chips[match[0]].sent_text if match[0] in chips else match[0],
        text,
    )


def find_chips(chips: Chips, text: str) -> Chips:
    """Return the chips that occur in a text, in order."""
    if text.isascii() or not chips:
        return {}
    return {
        char: chips[char]
        for char in dict.fromkeys(re.findall(_CHIP_PATTERN, text))
        if char in chips
    }


def adopt_chips(chips: Chips, text: str, other_chips: Chips) -> str:
    """Add the chips of another text to `chips`; return that text with the characters
    that its chips now have.
    """
    new_characters: dict[int, str] = {}
    for char, chip in other_chips.items():
        if char not in chips:
            chips[char] = chip
        elif chips[char] != chip:
            new_characters[ord(char)] = next(
                (ours for ours, each in chips.items() if each == chip), None
            ) or add_chip(chips, chip)
    return text.translate(new_characters)


def collapse_chips(chips: Chips, text: str) -> str:
    """Return an expanded and edited text, in which the chip again replaces its content
    if that occurs exactly once.
    """
    once = {
        chip.sent_text: char
        for char, chip in chips.items()
        if chip.sent_text and text.count(chip.sent_text) == 1
    }
    if not once:
        return text
    # In one pass, since the character of one chip may be in the content of another; the longest
    # content first, since it may contain a shorter one.
    longest_first = sorted(once, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: once[match[0]], text)
