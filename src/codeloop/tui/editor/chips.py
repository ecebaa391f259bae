"""Chips: a large pasted text or an image, represented by one character and shown as a label."""

import re

from msgspec import Struct
from msgspec.structs import replace

_FIRST, _LAST = 0x100000, 0x10FFFD
_RANGE = f"[{chr(_FIRST)}-{chr(_LAST)}]"
"""Private-use code points, which represent chips."""


class Chip(Struct, frozen=True, omit_defaults=True):
    """The content of a chip. `label`: how it is shown, unique in its text; `text`: what is sent instead.

    An image has a `url` (`data:`) and a `mime`, and is sent as an attachment; its label is part of the text.
    `file`: where its content is stored.
    """

    label: str
    text: str = ""
    url: str = ""
    mime: str = ""
    name: str = ""
    file: str = ""

    @property
    def replacement(self) -> str:
        """What stands for it in the text that is sent: an image's label, or the pasted text."""
        return self.label if self.url else self.text


Chips = dict[str, Chip]


def is_chip(char: str) -> bool:
    """Return whether a character is a chip."""
    return len(char) == 1 and _FIRST <= ord(char) <= _LAST


def add_chip(chips: Chips, chip: Chip, text: str = "") -> str:
    """Add a chip under a label that is unique in the text, and return its character."""
    char = chr(max((ord(each) for each in chips), default=_FIRST - 1) + 1)
    labels = {each.label for each in chips_in(chips, text).values()}
    label, number = chip.label, 2
    while label in labels:
        label, number = f"{chip.label[:-1]} #{number}]", number + 1
    chips[char] = replace(chip, label=label)
    return char


def escape_chips(chips: Chips, text: str) -> str:
    """Escape a text from outside: private-use characters in it become chips that show their code point."""
    if text.isascii() or re.search(_RANGE, text) is None:
        return text
    return re.sub(_RANGE, lambda match: add_chip(chips, Chip(f"[U+{ord(match[0]):X}]", match[0])), text)


def expand_chips(chips: Chips, text: str) -> str:
    """Return the text as it is sent."""
    if text.isascii() or not chips:
        return text
    return re.sub(_RANGE, lambda match: chips[match[0]].replacement if match[0] in chips else match[0], text)


def chips_in(chips: Chips, text: str) -> Chips:
    """Return the chips in a text, in order."""
    if text.isascii() or not chips:
        return {}
    return {char: chips[char] for char in dict.fromkeys(re.findall(_RANGE, text)) if char in chips}


def adopt_chips(chips: Chips, text: str, other_chips: Chips) -> str:
    """Add the chips of another text to ours, and return that text with their new characters."""
    new_characters: dict[int, str] = {}
    for char, chip in other_chips.items():
        if char not in chips:
            chips[char] = chip
        elif chips[char] != chip:
            new_characters[ord(char)] = next((ours for ours, each in chips.items() if each == chip), None) or add_chip(
                chips, chip
            )
    return text.translate(new_characters)


def collapse_chips(chips: Chips, text: str) -> str:
    """Collapse the chips whose content occurs once and unchanged in an expanded text."""
    once = {
        chip.replacement: char for char, chip in chips.items() if chip.replacement and text.count(chip.replacement) == 1
    }
    if not once:
        return text
    # In one pass: the character of one chip may be the content of another.
    longest_first = sorted(once, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: once[match[0]], text)
