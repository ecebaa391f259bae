"""What is found is marked where it stands, across the ends of rows too."""

from rich.segment import Segment

from codeloop.tui.state.conversation_items import NoticeItem
from codeloop.tui.widgets.transcript.blocks import Block
from codeloop.tui.widgets.transcript.highlights import Highlights


def test_an_occurrence_that_is_broken_into_rows_is_one() -> None:
    rows = [[Segment("▌ a 日本 broken")], [Segment("▌ phrase, and a broken phrase")], [Segment("")]]
    block = Block("msg", NoticeItem("key", ""), rows, 3)
    found = Highlights()
    found.show("broken phrase", "key", 1)
    assert [found.find_match_row(block, rows, ordinal) for ordinal in (0, 1, 7)] == [
        (0, 0),
        (1, 1),
        (1, 1),
    ]
    assert found._get_spans(block, rows) == {0: [(9, 15, 0)], 1: [(0, 8, 0), (16, 29, 1)]}
    found.show("nothing")
    assert found.find_match_row(block, rows, 0) == (0, -1)
