"""When a user who looks elsewhere is called."""

import time
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.event import PermissionAsked
from codeloop.schema.live_events import SessionIdle, SessionRef
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import replace
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from tests.support.scripted_project import open_scripted_project
from tests.tui.app.running_ui import played


@pytest.mark.slow
async def test_a_subagents_question_calls_the_user_and_the_end_of_its_turn_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [ScriptedAnswer(text="Hello.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", prompt="hello") as ui,
    ):
        await ui.sees("Hello.")
        view, handler, calls = ui.ui.tab.view, ui.ui.event_handler, list[str]()
        assert view is not None
        assert handler is not None
        monkeypatch.setattr(ui.ui.window, "alert", lambda _title, text, **_: calls.append(text))
        ui.ui.app_focus = False
        child = replace(view.session, id="ses_child", parent_id=view.session.id)
        assert view.children.update(child)
        request = PermissionRequest(
            id="per_1",
            session_id=child.id,
            permission="bash",
            patterns=["ls"],
            metadata={},
            always=[],
        )
        asked = PermissionAsked(properties=request)
        view.apply_event(asked)
        handler.handle(asked)
        assert calls == ["A permission is asked for"]
        for session_id, expected in ((child.id, 1), (view.session.id, 2)):
            handler._turn_starts[session_id] = time.monotonic() - 60
            handler.handle(SessionIdle(properties=SessionRef(session_id=session_id)))
            assert len(calls) == expected


@pytest.mark.slow
async def test_a_lost_server_is_shown_at_once_and_so_is_its_return(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk,
        played(desk, tmp_path / "state", size=(140, 30)) as ui,
    ):
        await ui.type("say hello", "enter")
        await ui.answered("Hello.")
        # Nothing else happens meanwhile that draws the last row.
        ui.ui.choices.report_connection("The connection is lost: refused.")
        await ui.sees("is lost")
        ui.ui.choices.report_connection("The server http://localhost:1 is back.")
        await ui.until(lambda: "is lost" not in ui.screen())


@pytest.mark.slow
async def test_a_prompt_for_a_lost_server_is_shown_as_waiting_until_it_is_stored(
    tmp_path: Path,
) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk,
        played(desk, tmp_path / "state", size=(140, 30)) as ui,
    ):
        await ui.type("say hello", "enter")
        await ui.answered("Hello.")
        tab = ui.ui.tab
        ui.ui.choices.report_connection("The connection is lost: refused.")
        tab.unsent["msg_1"] = PromptEntry("go on")
        ui.ui.show_unsent()
        await ui.sees("when the server is back  go on")
        # It can't be taken back: the server may have it already.
        assert not tab.prompt.queue.has_prompts
        ui.ui.choices.report_connection("The server http://localhost:1 is back.")
        await ui.until(lambda: "when the server" not in ui.screen())


@pytest.mark.slow
async def test_a_key_that_waits_for_a_second_press_is_forgotten_when_text_is_typed(
    tmp_path: Path,
) -> None:
    async with (
        open_scripted_project(tmp_path, []) as desk,
        played(desk, tmp_path / "state", size=(140, 30)) as ui,
    ):
        await ui.type("", "ctrl+c")
        await ui.sees("again to exit")
        await ui.type("n")
        await ui.until(lambda: "again to exit" not in ui.screen())
