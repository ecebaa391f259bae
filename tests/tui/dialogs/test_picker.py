"""The picker: every key path, ten thousand rows, rows that can't be loaded, foreign text."""

import asyncio
from collections.abc import Sequence

import pytest
from rich.segment import Segment
from textual import events

from codeloop.schema.errors import CodeloopError
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import FilterInput, Picker
from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.rows_view import RowsView
from tests.support.scripted_project import wait_until
from tests.tui.stage import Stage, staged

PICKS = [
    Pick(1, "Fix the parser", "src", "2 min", group="Today"),
    Pick(2, "Write the docs", "docs", "1 h", group="Today", mark="●"),
    Pick(
        3, "An old thing\x1b[2J\n\u202egnp", "src", "3 d", group="Older", search_text="hidden words"
    ),
    Pick(4, "No key", group="Older", problem="needs a key"),
]


class Table:
    """Rows that can change, and what was done with them."""

    def __init__(self) -> None:
        self.picks = PICKS
        self.problem = ""
        self.done: list[int | None] = []
        self.moves: list[int | None] = []

    async def load(self) -> Sequence[Pick[int]]:
        if self.problem:
            raise CodeloopError(self.problem)
        return self.picks

    async def remove(self, value: int | None) -> bool:
        self.done.append(value)
        self.picks = [pick for pick in self.picks if pick.value != value]
        return True

    async def search(self, text: str) -> Sequence[Pick[int]]:
        return [Pick(9, "Found elsewhere", f"… {text} …"), *self.picks[:1]]

    async def preview(self, value: int, width: int) -> Sequence[Row]:
        return [[Segment(f"About number {value}")]]

    def source(self) -> PickSource[int]:
        return PickSource(
            title="Things",
            load=self.load,
            actions=(PickAction("ctrl+d", "delete", self.remove),),
            search=self.search,
            preview=self.preview,
            on_move=self.moves.append,
            start=2,
        )


@pytest.mark.slow
async def test_each_key_does_what_it_says() -> None:
    table, app = Table(), Stage()
    async with staged(app) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("Write the docs")
        assert "▸ ● Write the docs" in app.shown(), "the cursor is where it should start"
        assert "Today" in app.shown()
        assert "An old thing␛[2J <U+202E>gnp" in app.shown()
        await pilot.press("down", "down", "enter")
        assert not app.results, "what has a problem can't be chosen"
        await pilot.press("down", "down", "ctrl+d")
        await wait_until(lambda: "Write the docs" not in app.shown())
        assert table.done == [2]
        await pilot.press("ctrl+end", "up", "pageup", "ctrl+home", "escape")
        assert app.results == [None]
        assert table.moves[:2] == [2, 3]


async def test_a_closed_one_is_not_held_by_the_app() -> None:
    app = Stage()
    async with staged(app) as pilot:
        picker = Picker(Table().source(), app.colours)
        app.open(picker)
        await app.sees("Write the docs")
        assert picker in app.theme_changed_signal._subscriptions
        await pilot.press("escape")
        await wait_until(lambda: picker not in app.theme_changed_signal._subscriptions)


@pytest.mark.slow
async def test_what_is_typed_filters_and_finds_more() -> None:
    table, app = Table(), Stage()
    async with staged(app) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("Write the docs")
        await pilot.press(*"prsr")
        assert "Fix the parser" in app.shown()
        assert "Write the docs" not in app.shown()
        await app.sees("Found elsewhere")
        assert app.shown().count("Fix the parser") == 1
        await pilot.press("down", "enter")
        assert app.results == [9]
        app.open(Picker(PickSource(title="Things", load=table.load), app.colours))
        await app.sees("Write the docs")
        await pilot.press(*"hidden")
        assert "An old thing" in app.shown()
        await pilot.press("x")
        assert "Nothing matches what you typed." in app.shown()


async def test_a_click_chooses() -> None:
    table, app = Table(), Stage()
    async with staged(app) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("Write the docs")
        await pilot.click("#picker-list", offset=(8, 1))
        await pilot.pause()
        assert app.results == [1]


@pytest.mark.slow
async def test_what_can_not_be_loaded_says_why_and_is_tried_again() -> None:
    table, app = Table(), Stage()
    table.problem = "The server is away."
    async with staged(app) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("The server is away.")
        table.problem, table.picks = "", []
        await pilot.press("enter")
        await app.sees("There is nothing here yet.")


@pytest.mark.slow
async def test_where_there_is_room_the_row_has_a_preview() -> None:
    table, app = Table(), Stage()
    async with staged(app, (140, 45)) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("About number 2")
        await pilot.press("up")
        await app.sees("About number 1")
        await pilot.resize_terminal(40, 20)
        await wait_until(lambda: "About number" not in app.shown())
        assert "Fix the parser" in app.shown()


@pytest.mark.slow
async def test_only_rows_that_are_seen_are_made() -> None:
    table, app = Table(), Stage()
    table.picks = [Pick(number, f"Thing {number}") for number in range(10_000)]
    async with staged(app) as pilot:
        app.open(Picker(PickSource(title="Things", load=table.load), app.colours))
        await app.sees("Thing 0")
        await pilot.press(*"9999")
        assert app.screen.query_one("#picker-list", RowsView).size.height == 1
        await pilot.press("enter")
        assert app.results == [9_999]


async def test_yes_is_only_said_with_its_own_key() -> None:
    app = Stage()
    async with staged(app) as pilot:
        for key, answer in (("n", False), ("escape", False), ("y", True)):
            app.open(Confirm("Delete it?", "It is gone then.", "delete it", app.colours))
            await app.sees("Delete it?")
            await pilot.press("enter", "space", key)
            assert app.results[-1] is answer


async def test_a_line_is_typed_and_a_hidden_one_is_not_shown() -> None:
    app = Stage()
    async with staged(app) as pilot:
        app.open(TextInput("Rename", app.colours, "Old"))
        await app.sees("Rename")
        await pilot.press("end", "e", "r", "enter")
        app.open(TextInput("The key", app.colours, is_secret=True))
        await app.sees("The key")
        await pilot.press(*"secret")
        assert "secret" not in app.shown()
        await pilot.press("escape")
        assert app.results == ["Older", None]


async def test_a_choice_right_after_typing_is_among_what_was_typed() -> None:
    table, app = Table(), Stage()
    async with staged(app):
        app.open(Picker(table.source(), app.colours))
        await app.sees("Fix the parser")
        picker = app.screen
        assert isinstance(picker, Picker)
        picker.query_one(FilterInput).value = "parser"
        picker.press("enter")
        await wait_until(lambda: app.results)
        assert app.results == [1]


@pytest.mark.slow
async def test_enter_before_the_rows_have_come_chooses_when_they_do() -> None:
    app, came = Stage(), asyncio.Event()

    async def load() -> Sequence[Pick[int]]:
        await came.wait()
        return PICKS

    async with staged(app) as pilot:
        app.open(Picker(PickSource(title="Things", load=load), app.colours))
        await app.sees("Loading")
        await pilot.press(*"docs", "enter")
        came.set()
        await wait_until(lambda: app.results == [2])
        came.clear()
        app.open(Picker(PickSource(title="Things", load=load), app.colours))
        await app.sees("Loading")
        await pilot.press(*"docs", "enter", "x")
        came.set()
        await app.sees("Nothing matches what you typed.")
        assert app.results == [2], "what is typed after Enter takes it back"


async def test_what_comes_to_a_picker_that_closes_is_dropped() -> None:
    table, app = Table(), Stage()
    async with staged(app) as pilot:
        app.open(Picker(table.source(), app.colours))
        await app.sees("Fix the parser")
        picker = app.screen
        assert isinstance(picker, Picker)
        filtering = picker.query_one(FilterInput)
        picker.reload()
        picker.cancel()
        picker.cancel()
        filtering.value = "found"
        await wait_until(lambda: app.results)
        await pilot.resize_terminal(100, 30)
        await wait_until(lambda: not picker.is_attached)
        assert app.results == [None]


async def test_keys_that_come_in_a_burst_act_in_their_order() -> None:
    app, table = Stage(), Table()
    async with staged(app):
        app.open(TextInput("Name", app.colours, "old"))
        await wait_until(lambda: isinstance(app.focused, LineInput))
        burst(app, "ctrl+u", *"abc", "backspace", "d", "left", "x", "home", "y", "enter")
        await wait_until(lambda: app.results)
        assert app.results == ["yabxd"]
        app.open(Picker(table.source(), app.colours))
        await app.sees("Write the docs")
        burst(app, *"docx", "backspace", "backspace", *"zs", "backspace", "backspace", "enter")
        await wait_until(lambda: len(app.results) == 2)
        assert app.results[1] == 2


def burst(app: Stage, *keys: str) -> None:
    """Press keys without a pause, as they come from a slow line or into a busy loop."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


class FailingPicker(Picker[int]):
    """A picker whose choice can't be carried out."""

    def choose(self, value: int) -> None:
        self.perform(self.fail)

    async def fail(self) -> None:
        raise CodeloopError("The server is gone.")


async def test_a_choice_that_fails_is_reported_and_the_list_stays() -> None:
    app = Stage()
    async with staged(app) as pilot:
        app.open(FailingPicker(Table().source(), app.colours))
        await app.sees("Fix the parser")
        await pilot.press("enter")
        await wait_until(
            lambda: [note.message for note in app._notifications] == ["The server is gone."]
        )
        assert not app.results
        await pilot.press("escape")
        await wait_until(lambda: app.results == [None])


async def test_the_start_of_a_long_error_of_an_action_is_shown() -> None:
    async def fail(_value: int | None) -> bool:
        raise CodeloopError("It failed.\n" + "<p>many words</p>\n" * 500)

    table = Table()
    source = PickSource(
        title="Things", load=table.load, actions=(PickAction("ctrl+d", "delete", fail),)
    )
    app = Stage()
    async with app.run_test(notifications=True) as pilot:
        app.open(Picker(source, app.colours))
        await app.sees("Fix the parser")
        await pilot.press("ctrl+d")
        await app.sees("It failed.")
