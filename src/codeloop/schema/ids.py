"""Identifiers, and readable names made of two words.

An identifier is `prefix_` + 12 hex digits of time and counter + 14 random characters of
[0-9A-Za-z]. The hex digits are the low 48 bits of `milliseconds * 4096 + counter`, so ids of one
kind sort by creation. Session ids hold the complement, so that newer sessions sort first.
"""

import os
import time
from typing import Literal

Prefix = Literal["ses", "msg", "prt", "evt", "per", "que", "pty", "tool"]

_STAMP_MASK = (1 << 48) - 1
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BYTE_TO_CHARACTER = (_ALPHABET * 5)[:256].encode()
"""A character for each byte: some stand for five bytes, most for four,
which costs less than a tenth of a bit an id.
"""


def now_ms() -> int:
    """Return the wall clock in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Clock:
    """Hands out strictly increasing `milliseconds * 4096 + counter` stamps,
    also when the wall clock steps back.
    """

    def __init__(self) -> None:
        self._last = 0

    def stamp(self) -> int:
        """Return the next stamp; the counter starts from 1 within a millisecond."""
        self._last = max(now_ms() * 4096 + 1, self._last + 1)
        return self._last


_clock = Clock()


def new_id(prefix: Prefix) -> str:
    """Make a fresh id. Unique within the process by its stamp,
    between processes by 83 random bits.
    """
    stamp = _clock.stamp()
    if prefix == "ses":
        stamp = ~stamp
    return f"{prefix}_{stamp & _STAMP_MASK:012x}{os.urandom(14).translate(_BYTE_TO_CHARACTER).decode()}"


def is_id(value: str, prefix: Prefix) -> bool:
    """Return whether `value` could be an id of that kind (only the prefix counts,
    as on the wire).
    """
    return value.startswith(prefix)


FIRST_WORDS = """
    amber bold brave bright brisk calm clear clever cosmic crisp curious eager fair fleet gentle glad golden happy
    honest jolly keen kind lively lucky mellow merry mighty misty neat nimble noble patient plucky proud quick quiet
    ready silver smart snowy sturdy sunny swift tidy vivid warm wise witty"""
SECOND_WORDS = """
    anchor badger beacon birch brook canyon cedar cliff comet coral crane creek dawn delta eagle falcon fern fjord
    forest garden glade harbor hawk heron island lagoon lantern maple meadow moon mountain oak ocean orchid otter
    panda pebble pine planet prairie raven reef river robin sparrow star stone summit tiger valley willow wolf"""


def make_slug() -> str:
    """Return two words with a hyphen."""
    first, second = FIRST_WORDS.split(), SECOND_WORDS.split()
    return f"{first[_draw_number() % len(first)]}-{second[_draw_number() % len(second)]}"


def _draw_number() -> int:
    """Return a random number without `random`, whose import takes longer than everything
    else in a new session.
    """
    return int.from_bytes(os.urandom(4), "big")
