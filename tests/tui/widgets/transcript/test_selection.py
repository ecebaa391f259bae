"""What the mouse selects in a conversation."""

import pytest
from textual import on
from textual.pilot import Pilot

from codeloop.tui.render.canvas import Canvas
from codeloop.tui.state.conversation_items import Item
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.theme_loader import load_theme
from codeloop.tui.widgets.transcript.selection import SelectionUnit, extend_to_unit
from codeloop.tui.widgets.transcript.transcript import Transcript
from tests.tui.parts import answer, done, prompt, text
from tests.tui.stage import Stage, staged

ANSWER = "Look at ./src/a.py:3 first.\n\n```python\ndef greet():\n    return 漢字\n```\n"


@pytest.mark.parametrize(
    ("cell", "unit", "reach"),
    [
        (4, "character", (4, 5)),
        (8, "character", (7, 9)),
        (4, "word", (2, 6)),
        (8, "word", (7, 11)),
        (6, "word", (6, 7)),
        (11, "word", (11, 12)),
        (30, "character", (30, 31)),
        (30, "word", (12, 12)),
        (4, "row", (0, 12)),
    ],
)
def test_a_click_reaches_over_a_character_a_word_or_a_row(
    cell: int, unit: SelectionUnit, reach: tuple[int, int]
) -> None:
    assert extend_to_unit("  a/b. 漢字)", cell, unit) == reach


class Hand:
    """A mouse over a conversation; `texts`: what was selected."""

    def __init__(self, stage: "Page", pilot: Pilot[None]) -> None:
        self.stage = stage
        self.pilot = pilot

    def at(self, words: str) -> tuple[int, int]:
        """Return where words stand on the screen."""
        rows = self.stage.shown().split("\n")
        row = next(at for at, line in enumerate(rows) if words in line)
        return rows[row].index(words), row

    async def drag(self, start: tuple[int, int], *ends: tuple[int, int]) -> None:
        """Press the button, move, and release it."""
        await self.pilot.mouse_down(offset=start)
        for end in ends:
            await self.pilot.hover(offset=end)
        await self.pilot.mouse_up(offset=ends[-1])


class Page(Stage):
    """One conversation."""

    def __init__(self, *items: Item) -> None:
        self.items = [*items]
        self.transcript = Transcript(
            Canvas(width=76, styles=Styles(load_theme("codeloop", "dark"))), lambda *_: []
        )
        self.texts: list[str] = []
        self.toggled: list[str] = []
        super().__init__(self.transcript)

    def show(self, *more: Item) -> None:
        self.items += more
        self.transcript.sync(["m"], {"m"}, lambda _: self.items)

    @on(Transcript.Selected)
    def selected(self, event: Transcript.Selected) -> None:
        self.texts.append(event.text)

    @on(Transcript.Toggled)
    def toggle(self, event: Transcript.Toggled) -> None:
        self.toggled.append(event.key)


@pytest.mark.slow
async def test_what_is_selected_is_seen_and_handed_over_without_the_margin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine clicks slowly.
    monkeypatch.setattr("codeloop.tui.widgets.transcript.selection.DOUBLE_CLICK_SECONDS", 60.0)
    page = Page(prompt(text("one\ntwo")), answer(ANSWER))
    async with staged(page) as pilot:
        page.show()
        await pilot.pause()
        hand = Hand(page, pilot)
        await hand.drag(hand.at("def greet"), hand.at("return"), (20, hand.at("return")[1]))
        await pilot.pause()
        row = page.transcript.render_lines(page.transcript.size.region)[hand.at("def greet")[1]]
        marked = page.transcript.canvas.styles.of("background", on="primary").bgcolor
        assert any(
            each.style is not None and each.style.bgcolor == marked
            for each in row
            if "greet" in each.text
        )
        await hand.drag((0, hand.at("one")[1]), (70, hand.at("two")[1]))
        await pilot.click(offset=hand.at("src"), times=2)
        await pilot.click(offset=hand.at("first"), times=3)
        await pilot.pause()
        assert page.texts == [
            "def greet():\n    return 漢字",
            "one\ntwo",
            "./src/a.py:3",
            "first.",
            "Look at ./src/a.py:3 first.",
        ]
        await pilot.click(offset=(0, 0))
        await pilot.pause()
        assert page.transcript.selection.range is None


async def test_a_call_that_is_selected_over_stays_closed_and_a_click_opens_it() -> None:
    page = Page(done("bash", {"command": "seq 3"}, "1\n2\n3\n"))
    async with staged(page) as pilot:
        page.show()
        await pilot.pause()
        hand = Hand(page, pilot)
        await hand.drag(hand.at("seq"), (hand.at("seq")[0] + 4, hand.at("seq")[1]))
        await pilot.pause()
        assert (page.texts, page.toggled) == (["seq 3"], [])
        await pilot.click(offset=(hand.at("seq")[0], hand.at("seq")[1]))
        await pilot.pause()
        assert page.toggled


async def test_of_a_diff_the_code_is_copied_without_numbers_and_signs() -> None:
    diff = (
        "--- a.py\n+++ a.py\n@@ -8,2 +8,3 @@\n def f():\n-    return 1\n+    x = 2\n+    return x\n"
    )
    page = Page(done("edit", {"filePath": "a.py"}, "", {"diff": diff}))
    async with staged(page) as pilot:
        page.show()
        await pilot.pause()
        hand = Hand(page, pilot)
        await hand.drag((2, hand.at("def f")[1]), (70, hand.at("return x")[1]))
        await hand.drag(hand.at("x = 2"), (70, hand.at("return x")[1]))
        await pilot.pause()
        assert page.texts == ["def f():\n    return 1\n    x = 2\n    return x", "x = 2\nreturn x"]


@pytest.mark.slow
async def test_the_edge_scrolls_and_a_growing_text_waits_for_the_mouse() -> None:
    page = Page(answer("\n\n".join(f"line {number}" for number in range(36))))
    async with staged(page) as pilot:
        page.show()
        await pilot.pause()
        hand = Hand(page, pilot)
        await pilot.mouse_down(offset=hand.at("line 34"))
        await pilot.hover(offset=hand.at("line 32"))
        top = page.transcript.scroll_y
        page.show(answer("and more\n\n" * 9, key="more"))
        await pilot.pause()
        assert page.transcript.scroll_y == top
        await pilot.hover(offset=(4, 0))
        while page.transcript.scroll_y > 0:
            await pilot.pause(0.02)
        await pilot.mouse_up(offset=(4, 0))
        await pilot.pause()
        assert page.texts[0].split("\n\n") == [f"line {number}" for number in range(34)] + ["l"]
