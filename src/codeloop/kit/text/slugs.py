"""Makes two-word names (`brave-otter`) for sessions and work trees."""

import os

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
    """Return a random number without `random`, whose import takes longer than everything else in a new session."""
    return int.from_bytes(os.urandom(4), "big")
