"""Renders the items of a conversation as rows: calls the function for each kind of item."""

import time
from collections.abc import Callable

from codeloop.schema.part import ToolStateRunning
from codeloop.tui.render.answers import LiveTexts, draw_reasoning, draw_summary
from codeloop.tui.render.calls.renderers import draw_call
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.endings import draw_end, draw_notice
from codeloop.tui.render.prompts import draw_prompt
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
        """Return the rows of an item, none of them wider than the canvas; empty if nothing of the item is shown."""
        match item:
            case PromptItem():
                return draw_prompt(item, self._canvas)
            case TextItem():
                return self._texts.render_answer(item)
            case ReasoningItem():
                return draw_reasoning(item, self._canvas, self._texts)
            case ToolItem():
                return draw_call(item, self._canvas, int(self._now() * 1000))
            case SummaryItem():
                return draw_summary(item, self._canvas, self._texts)
            case EndItem():
                return draw_end(item, self._canvas)
            case NoticeItem():
                return draw_notice(item, self._canvas)

    def is_timed(self, item: Item) -> bool:
        """Return whether an item shows a running time, so that it must be rendered again as time passes."""
        return isinstance(item, ToolItem) and isinstance(item.part.state, ToolStateRunning)

    def forget(self, key: str) -> None:
        """Drop the state kept for an item."""
        self._texts.forget(key)
