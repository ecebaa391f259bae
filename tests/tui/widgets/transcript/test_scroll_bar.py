"""The scroll bar of a conversation."""

from textual.geometry import Region

from codeloop.tui.widgets.transcript.scroll_bar import PlainScrollBar


def test_one_whose_view_is_closed_is_drawn_as_nothing() -> None:
    assert [strip.text for strip in PlainScrollBar().render_lines(Region(0, 0, 1, 3))] == [" "] * 3
