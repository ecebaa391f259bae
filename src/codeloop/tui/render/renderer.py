"""Renders items of a conversation as rows."""

import time
from collections.abc import Callable

from codeloop.schema.part import ToolStateRunning
from codeloop.tui.render.answers import LiveTexts, reasoning_rows, summary_rows
from codeloop.tui.render.calls.renderers import call_rows
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.endings import end_rows, notice_rows
from codeloop.tui.render.prompts import prompt_rows
from codeloop.tui.state.items import (
    EndItem,
    Item,
    NoticeItem,
    PromptItem,
    ReasoningItem,
    SummaryItem,
    TextItem,
    ToolItem,
)


class Renderer:
    """Renders the items of one conversation for one canvas; `now`: the time in seconds since the epoch."""

    def __init__(self, canvas: Canvas, now: Callable[[], float] = time.time) -> None:
        self._canvas = canvas
        self._now = now
        self._texts = LiveTexts(canvas)

    def rows(self, item: Item) -> list[Row]:
        """Return an item as rows of at most the canvas's width; none, if there is nothing to show of it."""
        match item:
            case PromptItem():
                return prompt_rows(item, self._canvas)
            case TextItem():
                return self._texts.draw_answer(item)
            case ReasoningItem():
                return reasoning_rows(item, self._canvas, self._texts)
            case ToolItem():
                return call_rows(item, self._canvas, int(self._now() * 1000))
            case SummaryItem():
                return summary_rows(item, self._canvas, self._texts)
            case EndItem():
                return end_rows(item, self._canvas)
            case NoticeItem():
                return notice_rows(item, self._canvas)

    def is_timed(self, item: Item) -> bool:
        """Return whether an item's look depends on the time."""
        return isinstance(item, ToolItem) and isinstance(item.part.state, ToolStateRunning)

    def forget(self, key: str) -> None:
        """Drop the state kept for an item."""
        self._texts.forget(key)
