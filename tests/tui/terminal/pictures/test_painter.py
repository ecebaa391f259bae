"""Pictures above cells: drawn when they are not there, never twice,
and not while they move too fast.
"""

from collections.abc import Mapping

import pytest
from textual._compositor import LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from codeloop.tui.terminal.pictures import painter
from codeloop.tui.terminal.pictures.painter import Painter, PictureSlice, ScreenCell
from codeloop.tui.terminal.screen_updates import ChangedPartsUpdate


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(painter, "time", clock)
    return clock


class Sight:
    """What is in sight, and how long the painter wants to wait."""

    def __init__(self, *rows: int, size: int = 10) -> None:
        self.rows = rows
        self.size = size
        self.waits: list[float] = []
        self.painter = Painter(self.seen, self.waits.append)

    def seen(self) -> Mapping[ScreenCell, PictureSlice]:
        return {(row, 4): PictureSlice(row, "x" * self.size, 10) for row in self.rows}


def cells(row: int, start: int, end: int) -> ChangedPartsUpdate:
    """An update that writes some cells of a row; those before and after are as they were."""
    cuts = sorted({0, start, end, 80})
    chops: list[Mapping[int, Strip | None]] = [{} for _ in range(24)]
    chops[row] = {at: Strip.blank(end - start) if at == start else None for at in cuts[:-1]}
    return ChangedPartsUpdate(chops, [(row, start, end)], [cuts[1:]] * 24)


def test_a_picture_is_drawn_once_at_its_place_and_the_cursor_stays(clock: Clock) -> None:
    sight = Sight(2, 3)
    assert sight.painter.draw_missing() == f"\x1b7\x1b[3;5H{'x' * 10}\x1b[4;5H{'x' * 10}\x1b8"
    assert sight.painter.draw_missing() == ""


def test_only_rows_that_were_written_over_are_drawn_again(clock: Clock) -> None:
    sight = Sight(2, 3)
    sight.painter.draw_missing()
    clock.now += 1
    for update in (cells(2, 14, 20), cells(2, 0, 4), cells(5, 0, 80)):
        sight.painter.mark_erased(update)
        assert sight.painter.draw_missing() == ""
    for update in (cells(3, 13, 20), cells(3, 0, 5)):
        sight.painter.mark_erased(update)
        assert sight.painter.draw_missing() == f"\x1b7\x1b[4;5H{'x' * 10}\x1b8"
        clock.now += 1
    sight.painter.mark_erased(LayoutUpdate([], Region(0, 0, 80, 24)))
    assert sight.painter.draw_missing().count("H") == 2


def test_a_picture_that_moves_faster_than_it_can_be_written_waits_until_it_rests(
    clock: Clock,
) -> None:
    sight = Sight(2, size=painter.MAX_OUTPUT_RATE)
    assert sight.painter.draw_missing()
    clock.now += 0.9
    sight.rows = (1,)
    assert sight.painter.draw_missing() == ""
    assert sight.waits == [painter.SETTLE_SECONDS]
    clock.now += 0.2
    assert sight.painter.draw_missing()


def test_what_is_no_longer_in_sight_is_not_drawn(clock: Clock) -> None:
    sight = Sight(2)
    sight.painter.draw_missing()
    sight.rows = ()
    sight.painter.mark_erased(cells(2, 0, 80))
    assert sight.painter.draw_missing() == ""
