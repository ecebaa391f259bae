"""What is written when a part of the screen has changed."""

from rich.console import Console
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip

from codeloop.tui.terminal.screen_updates import ChangedPartsUpdate, RectangleUpdate, render_strip

CONSOLE = Console(color_system=None, force_terminal=True, width=20)


def strip(text: str) -> Strip:
    return Strip([Segment(text)], len(text))


def written(x1: int, x2: int) -> str:
    """Return what is written when columns `x1` to `x2` of a row with three parts changed;
    the second is hidden.
    """
    chops = [{0: strip("never")}, {0: strip("left "), 5: None, 10: strip("right")}]
    return ChangedPartsUpdate(chops, [(1, x1, x2)], [[5], [5, 10, 15]]).render_segments(CONSOLE)


def test_only_parts_that_have_changed_are_written_each_at_its_place() -> None:
    assert written(0, 15) == "\x1b[2;1Hleft \x1b[2;11Hright"
    assert written(0, 5) == written(0, 10) == "\x1b[2;1Hleft "
    assert written(5, 15) == "\x1b[2;11Hright"
    assert written(10, 12) == "\x1b[2;11Hri"
    assert written(2, 4) == "\x1b[2;1Hleft"


def test_what_follows_a_character_of_an_uncertain_width_stands_where_it_belongs() -> None:
    assert render_strip(Strip([Segment("é 漢 ✅ x")]), 3, CONSOLE) == "é 漢 ✅ x"
    assert (
        render_strip(Strip([Segment("a"), Segment("👩‍👧 b")]), 3, CONSOLE)
        == "a  \x1b[5G👩‍👧\x1b[7G b"
    )
    whole = RectangleUpdate(
        [[strip("left "), Strip([Segment("🇩🇪!")])], [strip("x")]], Region(2, 4, 8, 2)
    )
    assert whole.render_segments(CONSOLE) == "\x1b[5;3Hleft   \x1b[8G🇩🇪\x1b[10G!\x1b[6;3Hx"
