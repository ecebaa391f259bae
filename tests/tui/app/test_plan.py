"""The plan loop: the question shows the plan, its lines can be commented on,
and its approval changes the agent.
"""

from pathlib import Path

import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.part import ToolPart
from tests.support.scripted_project import (
    make_answer,
    make_call,
    open_scripted_project,
    read_result,
)
from tests.tui.app.running_ui import played

PLAN = (
    "# Round half up\n\n- in `money.py`\n\n```python\ndef total():\n    return 1\n```\n\n"
    + "long words " * 20
    + "end\n"
)
WRITE = make_answer(make_call("write", filePath=".codeloop/plans/p.md", content=PLAN))
EXIT = make_answer(make_call("plan_exit"))
EDIT = make_answer(make_call("write", filePath="a.txt", content="new\n"))


@pytest.mark.slow
async def test_an_approved_plan_leads_to_the_agent_that_carries_it_out(tmp_path: Path) -> None:
    answers = [
        WRITE,
        EXIT,
        ScriptedAnswer(text="Carried out."),
        EDIT,
        ScriptedAnswer(text="Edited."),
    ]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", size=(100, 40)) as ui,
    ):
        await ui.pilot.press("tab")
        assert ui.ui.choices.find_agent(ui.ui.tab) == "plan"
        await ui.type("plan it", "enter")
        await ui.sees(
            "Carry out the plan .codeloop/plans/p.md?",
            "Round half up",
            "    return 1",
            "comment on lines",
        )
        assert "# Round" not in ui.screen().split("Carry out the plan", 1)[1], "it is rendered"
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        await ui.pilot.press("1")
        await ui.answered("Carried out.")
        assert ui.ui.choices.find_agent(ui.ui.tab) == "build"
        await ui.type("go on", "enter")
        await ui.answered("Edited.")
        assert (desk.project.workspace.root / "a.txt").read_text() == "new\n"
        # A key chooses again.
        await ui.pilot.press("tab")
        assert ui.ui.choices.find_agent(ui.ui.tab) == "plan"


@pytest.mark.slow
async def test_a_key_in_the_question_shows_the_lines_for_comments(tmp_path: Path) -> None:
    again = make_answer(make_call("plan_exit", answers=[{"thread": 1, "answer": "It is two now."}]))
    answers = [WRITE, EXIT, again, ScriptedAnswer(text="Carried out.")]
    async with (
        open_scripted_project(tmp_path, answers) as desk,
        played(desk, tmp_path / "state", size=(100, 40)) as ui,
    ):
        await ui.pilot.press("tab")
        await ui.type("plan it", "enter")
        await ui.sees("Carry out the plan")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        await ui.pilot.press("c")
        await ui.sees("comments for the model", "     return 1", "words end")
        await ui.pilot.press(*["down"] * 6, "enter")
        await ui.sees("Comment on line 7")
        await ui.type("why one?", "enter")
        await ui.sees("why one?")
        await ui.pilot.press("ctrl+s")
        await ui.sees("Answer: It is two now.")
        await ui.until(lambda: ui.ui.tab.panel.is_ready)
        await ui.pilot.press("1")
        await ui.answered("Carried out.")
        asked = ListMessages(session_id=ui.ui.session.id)
        messages = await desk.client.call(SESSION_MESSAGES, asked)
        parts = [
            part for message in messages for part in message.parts if isinstance(part, ToolPart)
        ]
        assert any("line 7: why one?" in read_result(part) for part in parts)
