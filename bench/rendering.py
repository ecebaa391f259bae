"""Measures the CPU of drawing a conversation, in this process, for a terminal of 100 columns."""

import statistics
import time
from collections.abc import Callable

from bench.bench_run import BenchRun
from codeloop.kit.text.diff import make_unified_diff
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted, ToolTime
from codeloop.schema.wire import JSON
from codeloop.tui.render.canvas import Canvas
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.state.conversation_items import Item, TextItem, ToolItem
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.theme_loader import load_theme

MESSAGE_COUNT = 100
LIVE_CHARACTERS = 100_000
"""Characters of the answer that grows."""
DELTA_CHARACTERS = 20
PROSE_MARKDOWN = """The total was summed **before** the discount was applied, so `total()` returned too much: see
[the report](https://example.org/reports/12). What I changed:

1. `total` takes the discount, and applies it *last*.
2. Amounts are decimals, which cents need:
   - no rounding on the way
   - half even at the end

"""
CODE_MARKDOWN = """```python
def total(cart, discount=0):
    result = sum(item.price * item.count for item in cart.items)
    return result - result * discount  # the discount comes last
```

| case | before | after |
|------|-------:|------:|
| none | 100 | 100 |
| 10 % | 100 | 90 |

"""


def measure_rendering(bench: BenchRun) -> None:
    """Measure the first drawing of a hundred messages,
    and that of one more delta of a long answer.
    """
    canvas = Canvas(100, Styles(load_theme("codeloop", "dark")), "/project")
    items = [_make_item(number) for number in range(MESSAGE_COUNT)]
    # The first drawing loads the library that colours code, and does not count.
    _time_items(canvas, items)
    rounds = max(bench.rounds, 3)
    first = [_time_items(canvas, items) for _ in range(rounds)]
    live = [time_ms for _ in range(rounds) for time_ms in _time_deltas(canvas)]
    bench.put_own("render-messages", statistics.median(first))
    bench.put_own("render-live", statistics.median(live))
    bench.put_own("render-live-slow", sorted(live)[len(live) * 99 // 100])


def _make_item(number: int) -> Item:
    """Return message `number`: every other one is an answer, every fifth answer has code;
    the rest are calls.
    """
    key = f"prt_{number}"
    if number % 2:
        words = PROSE_MARKDOWN + (CODE_MARKDOWN if number % 10 == 1 else "")
        return TextItem(key, TextPart(id=key, session_id="s", message_id="m", text=words))
    test_output = "\n".join(f"tests/test_{line}.py ....." for line in range(40))
    before = "".join(f"line {line} of a file\n" for line in range(20))
    diff = make_unified_diff(
        "/project/a.py", before, before.replace("line 9 ", "another line ")
    ).patch
    calls: tuple[tuple[str, JSON, str, JSON], ...] = (
        ("bash", {"command": "pytest -q"}, test_output, {"exit": 0}),
        ("read", {"filePath": "/project/a.py"}, before, {}),
        ("edit", {"filePath": "/project/a.py"}, "Edited", {"diff": diff}),
        ("grep", {"pattern": "total"}, "3 matches in 2 files\na.py\n1: total", {"matches": 3}),
    )
    tool, arguments, output, metadata = calls[number // 2 % len(calls)]
    state = ToolStateCompleted(
        input=arguments, output=output, title="", metadata=metadata, time=ToolTime(start=0, end=40)
    )
    return ToolItem(
        key, ToolPart(id=key, session_id="s", message_id="m", call_id="c", tool=tool, state=state)
    )


def _time_items(canvas: Canvas, items: list[Item]) -> float:
    """Return the CPU of drawing all items with a new renderer, which has nothing cached, ms."""
    renderer = Renderer(canvas)
    return _time_work(lambda: [renderer.render(item) for item in items])


def _time_deltas(canvas: Canvas) -> list[float]:
    """Return the CPU of drawing each of the last hundred deltas of a long answer, ms."""
    text = (PROSE_MARKDOWN + CODE_MARKDOWN) * (
        LIVE_CHARACTERS // len(PROSE_MARKDOWN + CODE_MARKDOWN) + 1
    )
    renderer = Renderer(canvas)
    part = TextPart(id="p", session_id="s", message_id="m", text="")
    times: list[float] = []
    start = LIVE_CHARACTERS - 100 * DELTA_CHARACTERS
    for end in range(start, LIVE_CHARACTERS + 1, DELTA_CHARACTERS):
        item = TextItem(
            "p", TextPart(id=part.id, session_id="s", message_id="m", text=text[:end]), is_live=True
        )
        times.append(_time_work(lambda item=item: renderer.render(item)))
    # The first drawing is that of the whole answer so far.
    return times[1:]


def _time_work(work: Callable[[], object]) -> float:
    """Return the CPU of a call, ms."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000
