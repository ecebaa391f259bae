"""Under every fault of a service the loop ends, and what is stored can be sent again."""

from pathlib import Path

import pytest

from codeloop.agent.request.projection import project_conversation
from codeloop.model.testing.chaos import ChaosModel, FaultRates
from codeloop.model.testing.replay import SCRIPT_INFO, ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall, TokenCount
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import ToolStateCompleted, ToolStateError
from tests.support.examples import scale_examples
from tests.support.scripted_project import check_turns, make_call, open_scripted_project

RATES = FaultRates(
    cut=0.2,
    stall=0.05,
    broken_json=0.15,
    unknown_tool=0.15,
    duplicate_id=0.15,
    rate_limit=0.1,
    server_error=0.1,
    stall_ms=1,
)
SCRIPT = [
    ScriptedAnswer(
        text="Look.", calls=(make_call("glob", pattern="*"), make_call("list")), deltas=3
    ),
    ScriptedAnswer(
        reasoning="hm",
        calls=(
            make_call("write", filePath="a.txt", content="one\n"),
            make_call("read", filePath="a.txt"),
        ),
    ),
    ScriptedAnswer(
        calls=(make_call("bash", command="echo x >> ran"), make_call("grep", pattern="one")),
        tokens=TokenCount(input=10),
    ),
    ScriptedAnswer(
        calls=(ScriptedCall("edit", '{"filePath": "a.txt", "oldSt', complete=False),),
        finish="length",
    ),
    ScriptedAnswer(
        calls=(
            make_call("edit", filePath="a.txt", oldString="one", newString="two"),
            make_call("bash", command="cat a.txt"),
        )
    ),
    ScriptedAnswer(text="Done.", deltas=4),
]


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "start",
    [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(5, scale_examples(50), 5))],
)
async def test_every_turn_ends_and_every_history_is_valid(tmp_path: Path, start: int) -> None:
    ran = 0
    for seed in range(start, start + 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        chaos = ChaosModel(ScriptedModel(SCRIPT), seed, RATES)
        async with open_scripted_project(folder, chaos) as it:
            for number in range(8):
                answer = await it.prompt(f"prompt {number}")
                assert answer.stop is not None
                if answer.stop.reason == "error":
                    assert isinstance(answer.info, AssistantMessage)
                    assert answer.info.error is not None
            for request in it.model.requests:
                check_turns(request.messages)
            check_turns(project_conversation(it.view().entries, SCRIPT_INFO))
            assert all(
                isinstance(part.state, ToolStateCompleted | ToolStateError) for part in it.calls()
            )
            effects = (it.work / "ran").read_text() if (it.work / "ran").exists() else ""
            done = [
                each
                for each in it.calls()
                if each.tool == "bash" and "echo" in str(each.state.input)
            ]
            assert effects == "x\n" * sum(
                isinstance(each.state, ToolStateCompleted) for each in done
            ), "a call is run once"
            ran += len(done)
            assert len(it.project.store.list_pending_permissions()) == 0
    assert ran, "under none of these faults did the command run"
