"""What drawing a conversation costs: CPU of this process, for a terminal of 100 columns."""

import statistics
import time
from collections.abc import Callable

from bench.figures import Bench
from codeloop.kit.diff import make_unified_diff
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted, ToolTime
from codeloop.schema.wire import JSON
from codeloop.tui.render.canvas import Canvas
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.state.items import Item, TextItem, ToolItem
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.themes import load

MESSAGES = 100
LIVE = 100_000
"""Characters of the answer that grows."""
DELTA = 20
PROSE = """The total was summed **before** the discount was applied, so `total()` returned too much: see
[the report](https://example.org/reports/12). What I changed:

1. `total` takes the discount, and applies it *last*.
2. Amounts are decimals, which cents need:
   - no rounding on the way
   - half even at the end

"""
CODE = """```python
def total(cart, discount=0):
    result = sum(item.price * item.count for item in cart.items)
    return result - result * discount  # the discount comes last
```

| case | before | after |
|------|-------:|------:|
| none | 100 | 100 |
| 10 % | 100 | 90 |

"""


def rendering(bench: Bench) -> None:
    """Measure a hundred messages drawn for the first time, and one more piece of a long answer."""
    canvas = Canvas(100, Styles(load("codeloop", "dark")), "/project")
    items = [_message(number) for number in range(MESSAGES)]
    _drawn(canvas, items)  # loads what colours code
    rounds = max(bench.rounds, 3)
    first = [_drawn(canvas, items) for _ in range(rounds)]
    live = [taken for _ in range(rounds) for taken in _grown(canvas)]
    for place in bench.places:
        if place.subject.name == "codeloop":
            bench.put(place, "render-messages", statistics.median(first))
            bench.put(place, "render-live", statistics.median(live))
            bench.put(place, "render-live-slow", sorted(live)[len(live) * 99 // 100])


def _message(number: int) -> Item:
    """Return one of the messages: as many calls as answers, every fifth answer with code."""
    key = f"prt_{number}"
    if number % 2:
        words = PROSE + (CODE if number % 10 == 1 else "")
        return TextItem(key, TextPart(id=key, session_id="s", message_id="m", text=words))
    output = "\n".join(f"tests/test_{line}.py ....." for line in range(40))
    before = "".join(f"line {line} of a file\n" for line in range(20))
    diff = make_unified_diff("/project/a.py", before, before.replace("line 9 ", "another line ")).patch
    calls: tuple[tuple[str, JSON, str, JSON], ...] = (
        ("bash", {"command": "pytest -q"}, output, {"exit": 0}),
        ("read", {"filePath": "/project/a.py"}, before, {}),
        ("edit", {"filePath": "/project/a.py"}, "Edited", {"diff": diff}),
        ("grep", {"pattern": "total"}, "3 matches in 2 files\na.py\n1: total", {"matches": 3}),
    )
    tool, given, said, metadata = calls[number // 2 % len(calls)]
    state = ToolStateCompleted(input=given, output=said, title="", metadata=metadata, time=ToolTime(start=0, end=40))
    return ToolItem(key, ToolPart(id=key, session_id="s", message_id="m", call_id="c", tool=tool, state=state))


def _drawn(canvas: Canvas, items: list[Item]) -> float:
    """Return how long (ms) all of them take."""
    renderer = Renderer(canvas)
    return _timed(lambda: [renderer.render(item) for item in items])


def _grown(canvas: Canvas) -> list[float]:
    """Return how long (ms) each of the last hundred pieces of a long answer takes."""
    text = (PROSE + CODE) * (LIVE // len(PROSE + CODE) + 1)
    renderer = Renderer(canvas)
    part = TextPart(id="p", session_id="s", message_id="m", text="")
    taken: list[float] = []
    for end in [LIVE - 100 * DELTA, *range(LIVE - 99 * DELTA, LIVE + 1, DELTA)]:
        item = TextItem("p", TextPart(id=part.id, session_id="s", message_id="m", text=text[:end]), is_live=True)
        taken.append(_timed(lambda item=item: renderer.render(item)))
    return taken[1:]


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000
