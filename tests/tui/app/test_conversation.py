"""A conversation as a user has it: prompts, answers, questions, undo, tabs."""

import time
from pathlib import Path

import pytest
from textual.geometry import Region

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.live_events import Idle, Retry
from codeloop.tui.actions.program import QUIT_QUESTION
from codeloop.tui.widgets.sidebar import Sidebar
from tests.support.scripted_project import (
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
)
from tests.tui.app.running_ui import played

__all__ = ["both_clients"]


@pytest.mark.slow
async def test_a_prompt_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="A **first** answer."), ScriptedAnswer(text="The second one.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("say something", "enter")
        await ui.sees("say something", "first", "build")
        await ui.type("and more", "enter")
        await ui.answered("The second one.")
        assert ui.ui.session.id != desk.session_id
        assert len(desk.project.store.list_sessions()) == 2
        assert ui.ui.tab.view is not None
        reason = f"{'The service is busy, and says so at length. ' * 4}(why)"
        ui.ui.tab.view.set_status(
            Retry(attempt=1, message=reason, next=round(time.time() * 1000) + 60_000)
        )
        ui.ui.tab.sync()
        await ui.sees("(why)")  # all of it, where the last row has room for its beginning
        ui.ui.tab.view.set_status(Idle())
        ui.ui.tab.sync()
        await ui.until(lambda: "(why)" not in ui.screen())


@pytest.mark.slow
async def test_a_session_that_is_resumed_is_shown_at_its_end(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text=f"Answer {n}.\n\n" + "line\n\n" * 6) for n in range(12)]
    ) as desk:
        for n in range(12):
            await desk.prompt(f"prompt {n}")
        session = await desk.client.call(SESSION_GET, SessionId(session_id=desk.session_id))
        async with played(desk, tmp_path / "state", session=session) as ui:
            await ui.sees("prompt 11")
            await ui.pilot.press("pageup", "pageup", "pageup")
            await ui.sees("prompt 8", "ctrl+alt+g newest")
            await ui.pilot.press("ctrl+g")
            await ui.sees("prompt 0")
            await ui.pilot.press("alt+ctrl+g")
            await ui.sees("prompt 11", "ctrl+p commands")
            await ui.pilot.press("ctrl+x")
            await ui.sees("l  Switch session", "ctrl+x …")  # to who hesitates
            await ui.pilot.press("escape")
            await ui.until(lambda: "Switch session" not in ui.screen())


@pytest.mark.slow
async def test_a_question_is_answered_on_the_screen_and_what_was_done_is_undone(
    tmp_path: Path,
) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\n")),
        ScriptedAnswer(text="Written."),
    ]
    async with (
        open_scripted_project(tmp_path, answers, permission={"edit": "ask"}) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("write it", "enter")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        assert "new.txt" in ui.screen()
        await ui.pilot.press("y")
        await ui.answered("Written.")
        assert (desk.work / "new.txt").read_text() == "one\n"
        await ui.type("/undo", "enter")
        await ui.until(lambda: not (desk.work / "new.txt").exists())
        await ui.sees("Undone from here on; /redo brings it back.", "  new.txt")
        assert ui.screen().lower().count("undone") == 1
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "write it")
        await ui.pilot.press("ctrl+x", "r")
        await ui.until(lambda: (desk.work / "new.txt").exists() and not ui.ui.tab.prompt.entry.text)
        await ui.sees("Redone")
        assert "Undone from" not in ui.screen()


@pytest.mark.slow
async def test_a_wider_terminal_shows_the_sidebar_and_a_narrower_one_hides_it(
    tmp_path: Path,
) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="An answer.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("say something", "enter")
        await ui.answered("An answer.")
        await ui.pilot.resize_terminal(140, 40)
        await ui.sees("Context")
        side, prompt = ui.ui.query_one(Sidebar).region, ui.ui.tab.prompt.region
        assert (side.y, side.right) == (0, 140)
        assert prompt.right <= side.x
        for words, shown in (
            (" commands", "Commands"),
            ("build scripted", "Agents"),
            ("scripted/", "Models"),
        ):
            await ui.click(words)
            await ui.sees("Type to filter", shown)
            await ui.pilot.press("escape")
            await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        await ui.pilot.resize_terminal(80, 24)
        await ui.until(lambda: "Context" not in ui.screen())


@pytest.mark.slow
async def test_a_command_that_a_person_runs_leaves_the_size_of_the_context(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="An answer.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("say something", "enter")
        await ui.answered("An answer.")
        used = ui.ui.tab.view.log.context_used if ui.ui.tab.view is not None else 0
        assert used
        await ui.type("!echo from-the-shell", "enter")
        await ui.sees("  from-the-shell")
        assert ui.ui.tab.view is not None
        assert ui.ui.tab.view.log.context_used == used


@pytest.mark.slow
async def test_a_session_is_renamed_in_a_dialog(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="An answer.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("say something", "enter")
        await ui.answered("An answer.")
        await ui.type("/rename", "enter")
        await ui.sees("Rename")
        await ui.until(lambda: len(ui.ui.screen_stack) == 2)
        await ui.pilot.press("end", "ctrl+u")
        await ui.type("parser work")
        x, y = ui.ui.cursor_position
        assert ui.screen().split("\n")[y][:x].endswith("parser work"), (
            "where an input method writes"
        )
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.ui.session.title == "parser work")


@pytest.mark.slow
async def test_what_is_typed_before_a_question_was_seen_stays_in_the_prompt(tmp_path: Path) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\n")),
        ScriptedAnswer(text="Written."),
    ]
    async with (
        open_scripted_project(tmp_path, answers, permission={"edit": "ask"}) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        # Three keys may take a busy machine longer than a user takes to read.
        ui.ui.tab.panel._early_keys._compute_pause = lambda: 60.0
        await ui.type("write it", "enter")
        await ui.until(lambda: ui.ui.tab.panel.request is not None)
        await ui.type("yes")
        assert ui.ui.tab.panel.request is not None
        assert ui.ui.tab.prompt.entry.text == "yes"
        assert not (desk.work / "new.txt").exists()


@pytest.mark.slow
async def test_a_turn_is_stopped_with_the_key_pressed_twice(tmp_path: Path) -> None:
    slow = ScriptedAnswer(text="word " * 400, deltas=400, delay_ms=200)
    async with (
        open_scripted_project(tmp_path, [slow]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("go on", "enter")
        await ui.sees("word word")
        await ui.pilot.press("escape")
        await ui.sees("esc again to stop the turn")
        await ui.pilot.press("escape")
        await ui.until(lambda: ui.ui.tab.view is not None and not ui.ui.tab.view.is_busy)
        assert "word word" in ui.screen()


@pytest.mark.slow
async def test_two_sessions_work_at_once_in_two_tabs(tmp_path: Path) -> None:
    answers = [
        ScriptedAnswer(text="slow " * 200, deltas=200, delay_ms=200),
        ScriptedAnswer(text="From the second."),
    ]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("first", "enter")
        await ui.sees("slow slow")
        await ui.pilot.press("ctrl+x", "n")
        await ui.until(lambda: len(ui.ui.tabs) == 2)
        await ui.type("second", "enter")
        await ui.sees("From the second.", "1 *")
        await ui.pilot.press("ctrl+x", "left")
        await ui.sees("slow slow")
        closed = ui.ui.tab.transcript
        await ui.pilot.press("ctrl+x", "w")
        await ui.until(lambda: len(ui.ui.tabs) == 1 and not closed.is_attached)
        assert closed.render_lines(Region(0, 0, 20, 3)), "a frame that began before can be finished"


@pytest.mark.slow
async def test_a_first_prompt_from_the_command_line_is_sent(tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text="At your service.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", prompt="hello") as ui,
    ):
        await ui.sees("hello", "At your service.")


@pytest.mark.slow
async def test_leaving_while_a_turn_runs_asks_for_the_key_again(tmp_path: Path) -> None:
    slow = ScriptedAnswer(text="word " * 400, deltas=400, delay_ms=200)
    async with (
        open_scripted_project(tmp_path, [slow]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("go on", "enter")
        await ui.sees("word word")
        await ui.pilot.press("ctrl+c")
        await ui.sees("again to leave")
        await ui.pilot.press("ctrl+c")
        assert ui.ui.return_code == 0


@pytest.mark.slow
async def test_a_key_that_was_to_stop_a_turn_does_not_leave_when_the_turn_has_just_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.tui.actions.program.STOP_GRACE_SECONDS", 60.0)
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("go on", "enter")
        await ui.answered("Done.")
        view = ui.ui.tab.view
        assert view is not None
        view.status_changed_at = time.monotonic()
        await ui.pilot.press("ctrl+c")
        await ui.sees("The turn is over: again to leave")
        assert ui.ui.repeated_key.confirm("Another question") is False
        assert ui.ui.repeated_key.confirm(QUIT_QUESTION) is False, "asked while the turn still ran"
        await ui.pilot.press("ctrl+c")
        assert ui.ui.return_code == 0


@pytest.mark.slow
async def test_a_profile_is_chosen_from_a_list(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("go on", "enter")
        await ui.sees("Done.")
        await ui.type("/profile", "enter")
        await ui.sees("Permission profile", "changes nothing")
        await ui.type("plan", "enter")
        await ui.sees("From the next call on, profile read-only holds")


@pytest.mark.slow
async def test_what_is_selected_with_the_mouse_is_copied(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="An answer of words.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("say something", "enter")
        await ui.answered("An answer of words.")
        row = next(at for at, line in enumerate(ui.screen().split("\n")) if "An answer" in line)
        column = ui.screen().split("\n")[row].index("answer")
        await ui.pilot.mouse_down(offset=(column, row))
        await ui.pilot.hover(offset=(column + 8, row))
        await ui.pilot.mouse_up(offset=(column + 9, row))
        await ui.until(lambda: ui.ui.clipboard == "answer of ")


@pytest.mark.slow
async def test_what_is_folded_opens_at_a_key_and_at_a_click(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="An answer.")]) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        ui.ui.tab.prompt.insert("\n".join(f"said {number}" for number in range(40)))
        await ui.pilot.press("enter")
        await ui.answered("An answer.", "more rows")
        assert "said 25" not in ui.screen()
        rows = ui.screen().split("\n")
        at = next(y for y, row in enumerate(rows) if "more rows" in row)
        await ui.pilot.click(offset=(6, at))
        await ui.sees("said 25", "show less")
        await ui.type("!seq 1 50", "enter")
        await ui.sees("more lines above")
        await ui.pilot.press("ctrl+x", "o")
        await ui.until(lambda: "more lines above" not in ui.screen())
        await ui.pilot.press("ctrl+x", "o")
        await ui.sees("more lines above")
