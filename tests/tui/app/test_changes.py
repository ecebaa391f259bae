"""What stands beside a conversation: changed files with their diffs, what is undone,
the servers.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession
from codeloop.schema.live_events import (
    DirectoryRef,
    InstanceDisposed,
    McpToolsChanged,
    Toast,
    ToastShown,
)
from codeloop.schema.resources import McpServerName
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tui.app.running_ui import played
from tests.tui.stored.client import PLACE, StoredClient
from tests.tui.stored.play import stored


@pytest.mark.slow
async def test_changed_files_are_listed_and_one_is_read_over_the_whole_screen(
    tmp_path: Path,
) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\ntwo\n")),
        ScriptedAnswer(text="Written."),
    ]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", size=(120, 30)) as ui,
    ):
        await ui.type("write it", "enter")
        await ui.answered("Written.", "Changed files (1)")
        await ui.type("/diff", "enter")
        await ui.sees("▸   new.txt", "+2 -0", "│ 2 + two")
        await ui.pilot.press("enter")
        await ui.sees("↑↓ pgup pgdn", "│ 1 + one")
        await ui.pilot.press("escape")
        await ui.until(lambda: len(ui.ui.screen_stack) == 1)
        await ui.type("/undo", "enter")
        await ui.sees("Undone from here on")
        await ui.until(lambda: "Changed files" not in ui.screen())


@pytest.mark.slow
async def test_a_redo_that_is_typed_brings_back_the_prompt_that_is_still_undone(
    tmp_path: Path,
) -> None:
    answers = [ScriptedAnswer(text=f"Answer {number}.") for number in (1, 2)]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        for number in (1, 2):
            await ui.type(f"prompt {number}", "enter")
            await ui.answered(f"Answer {number}.")
        for number in (2, 1):
            await ui.type("/undo", "enter")
            await ui.until(lambda at=number: ui.ui.tab.prompt.entry.text == f"prompt {at}")
        await ui.type("/redo", "enter")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "prompt 2")
        await ui.type("/redo", "enter")
        await ui.sees("Answer 2.")
        assert not ui.ui.tab.prompt.entry.text


@pytest.mark.slow
async def test_the_sidebar_hears_what_becomes_of_a_server_and_says_why(tmp_path: Path) -> None:
    client = StoredClient()
    client.answers["mcp.status"] = {"tracker": {"status": "disabled", "state": "configured"}}
    async with stored(tmp_path, size=(140, 40), client=client) as it:
        await it.sees("tracker not looked at yet")
        client.answers["mcp.status"] = {
            "tracker": {"status": "failed", "error": "no such program is installed"}
        }
        it.say(McpToolsChanged(properties=McpServerName(server="tracker")))
        await it.sees("tracker failed", "  no such program is installed")


async def test_a_message_for_the_person_is_shown(tmp_path: Path) -> None:
    async with stored(tmp_path, size=(140, 40), client=StoredClient()) as it:
        it.say(
            ToastShown(
                properties=Toast(
                    message="A plugin [failed] and was passed over.", variant="warning"
                )
            )
        )
        await it.settle(lambda: it.ui._notifications)
        (note,) = it.ui._notifications
        assert (note.message, note.severity) == (
            "A plugin [failed] and was passed over.",
            "warning",
        )


async def test_what_can_be_chosen_follows_the_configuration(tmp_path: Path) -> None:
    client = StoredClient()
    async with stored(tmp_path, size=(80, 24), client=client) as it:
        await it.sees("build")
        client.answers["app.agents"] = [
            each for each in client.answers["app.agents"] if each["name"] != "build"
        ]
        it.say(InstanceDisposed(properties=DirectoryRef(directory=PLACE)))
        await it.settle(lambda: [agent.name for agent in it.ui.choices.primary_agents] == ["plan"])


async def test_an_answer_that_was_cut_off_says_so_when_its_session_is_opened(
    tmp_path: Path,
) -> None:
    client = StoredClient()
    last = client.answers[f"session.messages {client.main}"][-1]
    last["info"]["time"].pop("completed")
    last["info"].pop("finish", None)
    async with stored(tmp_path, size=(80, 24), client=client) as it:
        await it.sees("The last answer has no end")


@pytest.mark.slow
async def test_tabs_that_are_opened_at_once_hold_one_session_each(tmp_path: Path) -> None:
    async with (
        open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk,
        played(desk, tmp_path / "state", size=(100, 30)) as ui,
    ):
        await ui.type("say hello", "enter")
        await ui.answered("Hello.")
        sessions = [await desk.client.call(SESSION_CREATE, CreateSession()) for _ in range(4)]
        tabs = await asyncio.gather(*(ui.ui.open_tab(session) for session in sessions))
        assert len(set(tabs)) == 4
        assert [tab.session for tab in tabs] == sessions
        assert len(ui.ui.tabs) == 5
