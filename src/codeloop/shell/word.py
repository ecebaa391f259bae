"""A word of a shell line and its value: the text without quoting,
with marks for parts only known at run time.
"""

import shlex

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.wildcard import ANY_WORDS, MARKS

_UNQUOTED_CHARS = r"[A-Za-z0-9_./=:@%+,~^{}-]+"


class Word(Struct, frozen=True):
    """A word of a shell line: its value, with marks of `kit.wildcard` where that is unknown,
    and its source text.
    """

    value: str
    source: str

    @property
    def is_known(self) -> bool:
        """Whether it is fully known before the line runs."""
        return not MARKS.intersection(self.value)

    @property
    def text(self) -> str:
        """The word as rules see it: quoted only where it has to be,
        one spelling for all that mean the same.
        """
        return quote_word(self.value, self.source) if self.is_known else self.source

    @property
    def marked_text(self) -> str:
        """The word with a blank before it, and with marks for its unknown parts,
        to be joined to a whole command.
        """
        # ANY_WORDS stands for any number of words, none included, so it brings its own blank.
        if self.value == ANY_WORDS:
            return ANY_WORDS
        return " " + (quote_word(self.value, self.source) if self.is_known else self.value)


def make_word(text: str) -> Word:
    """Return a word with exactly this value."""
    return Word(text, quote_word(text))


def quote_word(value: str, source: str = "") -> str:
    """Return one spelling of a known word: bare where it can be,
    else as written if that is one pair of quotes.
    """
    if compile_once(_UNQUOTED_CHARS).fullmatch(value) or value in {"[", "]"}:
        return value
    if source in {f"'{value}'", f'"{value}"', "\\" + value[:1]} and value:
        return source
    return shlex.quote(value)
