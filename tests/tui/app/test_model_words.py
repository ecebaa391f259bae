"""What is written for the model is on no screen, in no output of a run and in no export."""

from pathlib import Path

import pytest

from codeloop.agent.recovery import CHECK_FIRST_ADVICE
from codeloop.cli.output.tool_call import format_call
from codeloop.client.export.html import export_html
from codeloop.client.export.markdown import export_markdown
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.permission.gate import Denied
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.part import ToolPart
from tests.support.scripted_project import (
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
)
from tests.tui.app.running_ui import played

FOR_THE_MODEL = (
    Denied.advice,
    CHECK_FIRST_ADVICE,
    "Read it first",
    "read the file again",
    "(Note:",
    "call bash again",
    "run_in_background",
    "Leave task_id out",
    "Keep one in_progress",
    "shell_metadata",
    "Change it with a command instead.",
)


@pytest.mark.slow
async def test_words_for_the_model_are_shown_to_nobody(tmp_path: Path) -> None:
    made = make_answer(
        make_call("bash", "c1", command="touch denied"),
        make_call("edit", "c2", filePath="a.txt", oldString="nothing like it", newString="x"),
        make_call("grep", "c7", query="one"),
        make_call("write", "c3", filePath="a.txt", content="over\n"),
        make_call("bash", "c4", command="printf begun; sleep 9", timeout=1500),
        make_call("edit", "c9", filePath="odd.txt", oldString="x", newString="y"),
        make_call(
            "todowrite",
            "c5",
            todos=[{"content": str(n), "status": "in_progress", "priority": "low"} for n in "12"],
        ),
        make_call(
            "task",
            "c6",
            description="d",
            prompt="p",
            subagent_type="general",
            task_id="ses_nowhere",
        ),
    )
    rules = {"bash": {"*": "allow", "touch *": "deny"}}
    async with open_scripted_project(
        tmp_path, [made, ScriptedAnswer(text="Done.")], permission=rules
    ) as desk:
        (desk.work / "a.txt").write_text("one\ntwo\n")
        (desk.work / "odd.txt").write_bytes(b"\0\1\2" * 99)
        async with played(desk, tmp_path / "state", size=(140, 60)) as ui:
            await ui.type("go", "enter")
            await ui.sees("Done.")
            session = SessionId(session_id=ui.ui.session.id)
            screen = ui.screen()
        found = await desk.client.call(SESSION_GET, session)
        messages = await desk.client.call(
            SESSION_MESSAGES, ListMessages(session_id=session.session_id)
        )
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolPart)]
    for_model = " ".join(map(read_result, parts))
    run = "\n".join(line for part in parts for line in format_call(part, colour=False))
    shown = (screen, run, export_markdown(found, messages), export_html(found, messages))
    assert len([words for words in FOR_THE_MODEL if words in for_model]) >= 7
    for words in FOR_THE_MODEL:
        assert not any(words in text for text in shown), words
    assert "Permission denied by the rule bash touch *: deny" in " ".join(screen.split())
    assert "did not end" in run, run
