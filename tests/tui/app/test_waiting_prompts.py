"""Prompts that are sent while the model works, and drafts, in the whole UI."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import PROMPT
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import AnyOperation
from tests.support.scripted_project import (
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
)
from tests.tui.app.running_ui import played

__all__ = ["both_clients"]


@pytest.mark.slow
async def test_what_a_stopped_turn_had_not_read_yet_can_be_edited_and_sent(tmp_path: Path) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\n")),
        ScriptedAnswer(text="Never said."),
    ]
    async with (
        open_scripted_project(tmp_path, answers, permission={"edit": "ask"}) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("write it", "enter")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        ui.ui.tab.prompt.focus()
        await ui.type("rather not", "enter")
        await ui.sees("at the next step  rather not")
        await ui.pilot.press("escape", "escape")
        await ui.until(lambda: ui.ui.tab.prompt.entry.text == "rather not")
        assert "rather not" not in str(
            desk.project.store.read_conversation(ui.ui.session.id).entries
        )


@pytest.mark.slow
@pytest.mark.parametrize("key", ["enter", "ctrl+s"])
async def test_what_waits_can_be_sent_at_once_in_place_of_the_turn(
    tmp_path: Path, key: str
) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\n")),
        ScriptedAnswer(text="Then this."),
    ]
    async with (
        open_scripted_project(tmp_path, answers, permission={"edit": "ask"}) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("write it", "enter")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        ui.ui.tab.prompt.focus()
        await ui.type("rather this", key)
        await ui.sees("  rather this")
        await ui.pilot.press("escape")
        await ui.sees("enter to stop it and send what waits")
        await ui.pilot.press("enter")
        await ui.sees("Then this.")
        assert not ui.ui.tab.prompt.queue.has_prompts
        assert not (desk.work / "new.txt").exists()


@pytest.mark.slow
async def test_a_prompt_for_after_the_turn_waits_for_its_end(tmp_path: Path) -> None:
    answers = [
        make_answer(make_call("write", filePath="new.txt", content="one\n")),
        ScriptedAnswer(text="Written."),
        ScriptedAnswer(text="The notes are done."),
    ]
    async with (
        open_scripted_project(tmp_path, answers, permission={"edit": "ask"}) as desk,
        played(desk, tmp_path / "state") as ui,
    ):
        await ui.type("write it", "enter")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        ui.ui.tab.prompt.focus()
        await ui.type("then the notes", "ctrl+s")
        await ui.sees("after this turn  then the notes")
        await ui.type("and mind the tests", "enter")
        await ui.sees("at the next step  and mind the tests")
        ui.ui.tab.panel.focus()
        await ui.pilot.press("y")
        await ui.sees("Written.", "The notes are done.")
        assert "after this turn" not in ui.screen()
        said = [
            text
            for message in desk.project.store.read_conversation(ui.ui.session.id).entries
            for text in (getattr(part, "text", "") for part in message.parts)
            if text in {"write it", "then the notes", "and mind the tests", "Written."}
        ]
        assert said == ["write it", "and mind the tests", "Written.", "then the notes"]


@pytest.mark.slow
async def test_what_was_typed_for_a_new_session_is_back_after_a_crash(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Hello.")]) as desk:
        async with played(desk, tmp_path / "state") as ui:
            await ui.type("half a thou")
        async with played(desk, tmp_path / "state") as ui:
            await ui.until(lambda: ui.ui.tab.prompt.entry.text == "half a thou")
            await ui.type("ght", "enter")
            await ui.sees("Hello.")
            await ui.type("next")
            ui.ui.tab.prompt.draft_keeper.write()
            assert ui.ui.tab.prompt.store.drafts.load(ui.ui.session.id) is not None
            assert ui.ui.tab.prompt.store.drafts.load("new") is None


@pytest.mark.slow
async def test_a_prompt_that_could_not_be_stored_is_not_lost_even_if_nothing_can_be_written(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as desk, played(desk, tmp_path / "state") as ui:
        call_of, goes_on = desk.client.call, asyncio.Event()
        goes_on.set()

        async def refusing(operation: AnyOperation, args: Any) -> Any:
            if operation is PROMPT:
                await goes_on.wait()
                raise CodeloopError("The disk is full.")
            return await call_of(operation, args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desk.client, "call", refusing)
            await ui.type("my words", "enter")
            await ui.sees("The disk is full.")
            await ui.until(lambda: ui.ui.tab.prompt.entry.text == "my words")
            folder = ui.ui.tab.prompt.store.folder
            shutil.rmtree(folder)
            folder.write_text("")  # nothing can be kept there
            goes_on.clear()
            await ui.type("", "enter")
            await ui.type("next")
            goes_on.set()
            await ui.until(lambda: ui.ui.tab.prompt.entry.text == "my words\nnext")
