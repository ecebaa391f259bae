"""Makes names for work trees and copies: short, free,
and usable as the names of a folder and of a branch.
"""

import os
import re
from pathlib import Path

from codeloop.schema.ids import make_slug

MAX_NAME_CHARS = 48
MAX_NAME_TRIES = 20
"""The number of names that are tried. All but the first have random words,
so even the second is hardly ever taken.
"""
_FORBIDDEN_CHARS = r"[^a-z0-9]+"
_FILLER_WORDS = frozenset(
    ("a", "an", "and", "for", "in", "of", "on", "please", "the", "to", "with")
)
_MAX_WORDS = 5
_MAX_TEXT_CHARS = 1_000
"""The start of a text that a name is made from;
the context of a copy may be a whole conversation.
"""


def to_name(text: str) -> str:
    """Convert a text to a name of lower-case letters, digits and hyphens, cut to MAX_NAME_CHARS;
    may be empty.
    """
    return re.sub(_FORBIDDEN_CHARS, "-", text.lower())[:MAX_NAME_CHARS].strip("-")


def make_name_from_text(text: str) -> str:
    """Return a name made from the first words of a text, without filler words;
    "" if there are none.
    """
    words = [
        word
        for word in re.split(_FORBIDDEN_CHARS, text[:_MAX_TEXT_CHARS].lower())
        if word and word not in _FILLER_WORDS
    ]
    return to_name(" ".join(words[:_MAX_WORDS]))


def choose_free_name(name: str, *folders: Path) -> str:
    """Return a name that no entry of the folders has: the given one,
    or the given one with random words appended.

    The name after MAX_NAME_TRIES taken ones is returned unchecked;
    creating its folder fails if it is taken, too.
    """
    for _ in range(MAX_NAME_TRIES):
        if not any(os.path.lexists(folder / name) for folder in folders):
            return name
        name = f"{name[:MAX_NAME_CHARS]}-{make_slug()}"
    return name
