"""After a plan is approved, every interface goes on with the agent that carries it out."""

from pathlib import Path

import pytest

from tests.cli.editor import choose, editing, text
from tests.cli.program import Desk, call, one_after_another, serving
from tests.cli.terminal import Terminal
from tests.support.answers import Answer

WRITE_PLAN = call("write", filePath=".codeloop/plans/p.md", content="First:\n\n    this\n")
PLANNED = (WRITE_PLAN, call("plan_exit"), Answer(text="Carried out."))
EDITED = (call("write", filePath="a.txt", content="new\n"), Answer(text="Edited."))


@pytest.mark.slow
def test_line_mode_goes_on_with_the_agent_that_carried_the_plan_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(*PLANNED, *EDITED, *EDITED)) as server:
        desk.use(server)
        terminal = Terminal(desk, "--plain", "--agent", "plan", "--prompt", "plan it")
        terminal.wait_for("A number, or your own words: ")
        terminal.type("1")
        terminal.wait_for("Carried out.")
        terminal.wait_for("> ")
        terminal.type("and now")
        terminal.wait_for("Edited.")
        assert (desk.work / "a.txt").read_text() == "new\n"
        (desk.work / "a.txt").unlink()
        terminal.wait_for("> ")
        # A choice made after it holds.
        terminal.type("/agent plan")
        terminal.wait_for("The next prompts use agent plan.")
        terminal.type("and now")
        terminal.wait_for("Edited.")
        assert not (desk.work / "a.txt").exists()
        terminal.type("/exit")
        assert terminal.end() == 0


@pytest.mark.slow
def test_an_editor_is_told_of_the_agent_that_carries_the_plan_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(*PLANNED, *EDITED)) as model:
        desk.use(model)
        with editing(desk, choose("0")) as editor:
            session_id = editor.begin(desk)["sessionId"]
            assert editor.ask("session/set_mode", sessionId=session_id, modeId="plan") == {}
            editor.ask("session/prompt", sessionId=session_id, prompt=text("plan it"))
            assert editor.last("current_mode_update")["currentModeId"] == "build"
            editor.ask("session/prompt", sessionId=session_id, prompt=text("and now"))
        assert (desk.work / "a.txt").read_text() == "new\n"
