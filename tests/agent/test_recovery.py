"""What a killed process left open is closed once, told to the model, and never run again."""

import asyncio
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.engine import TurnSettings
from codeloop.agent.moves import Recover, decide_next_move
from codeloop.agent.recovery import (
    ABORTED_ERROR,
    CHECK_FIRST_ADVICE,
    INTERRUPTED_ERROR,
    NOT_STARTED_ERROR,
    recover,
)
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    ADVICE_KEY,
    ReasoningPart,
    Span,
    TextPart,
    ToolPart,
    ToolStart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
    ToolTime,
)
from codeloop.schema.wire import replace
from tests.store.states import asked, assistant, put, question, said, text, user
from tests.support.examples import scale_examples
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    join_texts,
    list_texts,
    open_scripted_project,
    wait_until,
)

AFTER = ScriptedAnswer(text="After.")
ROOT = Path(__file__).resolve().parents[2]
VICTIM = """
import asyncio, sys
from pathlib import Path
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import TextPartInput
from tests.support.scripted_project import make_call, make_answer, open_scripted_project
async def main():
    script = [
        make_answer(
            make_call("bash", command="echo run >> count; touch begun; sleep 77"),
            make_call("bash", command="touch later"),
        ),
    ]
    async with open_scripted_project(Path(sys.argv[1]), script) as it:
        print(it.session_id, flush=True)
        await it.prompt("go")
asyncio.run(main())
"""

STEPS = """
import asyncio, sys
from pathlib import Path
from codeloop.model.testing.script import ScriptedAnswer
from tests.support.scripted_project import make_call, make_answer, open_scripted_project
async def main():
    script = [
        make_answer(
            make_call("bash", command=f"echo {n} >> log"),
            make_call("write", filePath=f"{n}.txt", content=str(n)),
            text="On.",
        )
        for n in range(12)
    ]
    async with open_scripted_project(Path(sys.argv[1]), [*script, ScriptedAnswer(text="Done.")]) as it:
        print(it.session_id, flush=True)
        await it.prompt("go")
asyncio.run(main())
"""


def left_by_a_crash(it: ScriptedProject) -> AssistantMessage:
    """Store what a killed process leaves: an open answer with text, thinking,
    calls and a question.
    """
    asking = user(it.session_id, at=now_ms() - 2)
    info = assistant(it.session_id, asking.id, at=now_ms() - 1)
    of: dict[str, Any] = {"session_id": it.session_id, "message_id": info.id}
    parts = [
        ReasoningPart(id=new_id("prt"), text="half a thought", time=Span(start=1), **of),
        TextPart(id=new_id("prt"), text="half a sent", time=Span(start=1), **of),
        ToolPart(
            id=new_id("prt"), call_id="a", tool="bash",
            state=ToolStateRunning(
                input={"command": "touch x"}, time=ToolStart(start=5), metadata={"output": "so far\n"}
            ), **of,
        ),
        ToolPart(id=new_id("prt"), call_id="b", tool="write", state=ToolStatePending(input={}, raw=""), **of),
    ]  # fmt: skip
    it.project.store.append(
        said(asking),
        put(text(asking, "first")),
        said(info),
        *(put(part) for part in parts),
        asked(question(it.session_id)),
    )
    return info


async def test_the_next_prompt_closes_what_was_open_and_tells_the_model(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [AFTER]) as it:
        left = left_by_a_crash(it)
        answer = await it.prompt("go on")
        assert join_texts(answer.parts) == "After."
        entry = it.view().entries[1]
        assert entry.info.id == left.id
        assert isinstance(entry.info, AssistantMessage)
        assert entry.info.error == ABORTED_ERROR
        assert entry.info.time.completed is not None
        running, pending = it.calls()
        assert isinstance(running.state, ToolStateError)
        assert (running.state.error, running.state.time.start) == (INTERRUPTED_ERROR, 5)
        assert running.state.metadata == {
            "output": "so far\n",
            "interrupted": True,
            ADVICE_KEY: CHECK_FIRST_ADVICE,
        }
        assert isinstance(pending.state, ToolStateError)
        assert pending.state.error == NOT_STARTED_ERROR
        assert it.project.store.list_pending_permissions() == []
        assert not (it.work / "x").exists(), "it is not run again"
        turns = it.model.requests[0].messages
        check_turns(turns)
        assert [output.split("\n")[0] for output in list_texts(turns[2])] == [
            f"{INTERRUPTED_ERROR} {CHECK_FIRST_ADVICE}",
            NOT_STARTED_ERROR,
        ]
        assert "so far" in list_texts(turns[2])[0]


async def test_recovery_twice_changes_nothing(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        left_by_a_crash(it)
        move = decide_next_move(it.view(), TurnSettings())
        assert isinstance(move, Recover)
        recover(it.project.store, it.session_id, move.entries)
        once = it.view()
        assert not isinstance(decide_next_move(once, TurnSettings()), Recover)
        recover(it.project.store, it.session_id, tuple(once.entries))
        twice = it.view()
        assert [entry.parts for entry in twice.entries] == [entry.parts for entry in once.entries]
        assert [entry.info for entry in twice.entries] == [entry.info for entry in once.entries]


async def test_a_crash_during_recovery_is_recovered_from(tmp_path: Path) -> None:
    """The first half of the closing events is stored,
    the rest is not: one result a call all the same.
    """
    async with open_scripted_project(tmp_path, [AFTER]) as it:
        left_by_a_crash(it)
        running = it.calls()[0]
        state = ToolStateError(input={}, error="closed before", time=replace_time(running))
        it.project.store.append(put(replace(running, state=state)))
        await it.prompt("go on")
        assert [
            part.state.error for part in it.calls() if isinstance(part.state, ToolStateError)
        ] == [
            "closed before",
            NOT_STARTED_ERROR,
        ]
        check_turns(it.model.requests[0].messages)


def replace_time(part: ToolPart) -> ToolTime:
    assert isinstance(part.state, ToolStateRunning)
    return ToolTime(start=part.state.time.start, end=part.state.time.start)


@pytest.mark.parametrize("parts", ["none", "empty text", "thinking only"])
async def test_an_answer_of_which_nothing_came_is_not_sent(tmp_path: Path, parts: str) -> None:
    async with open_scripted_project(tmp_path, [AFTER]) as it:
        asking = user(it.session_id, at=now_ms() - 2)
        info = assistant(it.session_id, asking.id, at=now_ms() - 1)
        it.project.store.append(said(asking), put(text(asking, "first")), said(info))
        if parts == "empty text":
            it.project.store.append(put(text(info, "")))
        if parts == "thinking only":
            thought = ReasoningPart(
                id=new_id("prt"),
                session_id=it.session_id,
                message_id=info.id,
                text="hm",
                time=Span(start=1),
            )
            it.project.store.append(put(thought))
        await it.prompt("go on")
        turns = it.model.requests[0].messages
        assert [type(turn).__name__ for turn in turns] == ["UserModelMessage", "UserModelMessage"]
        check_turns(turns)


@pytest.mark.slow
async def test_a_process_killed_in_a_call_never_runs_it_twice(tmp_path: Path) -> None:
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    session_id = victim.stdout.readline().strip()
    work = tmp_path / "work"
    await wait_until((work / "begun").exists)
    victim.kill()
    victim.wait()
    victim.stdout.close()
    async with open_scripted_project(tmp_path, [AFTER], session_id=session_id) as it:
        await it.prompt("go on")
        assert [
            part.state.error for part in it.calls() if isinstance(part.state, ToolStateError)
        ] == [
            INTERRUPTED_ERROR,
            NOT_STARTED_ERROR,
        ]
        check_turns(it.model.requests[0].messages)
    assert (work / "count").read_text() == "run\n"
    assert not (work / "later").exists()


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(scale_examples(4)))
async def test_a_turn_killed_at_any_time_goes_on_and_nothing_is_done_twice(
    tmp_path: Path, seed: int
) -> None:
    victim = subprocess.Popen(
        [sys.executable, "-c", STEPS, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    session_id = victim.stdout.readline().strip()
    await asyncio.sleep(random.Random(seed).random() * 0.12)
    victim.kill()
    victim.wait()
    victim.stdout.close()
    with closing(sqlite3.connect(next((tmp_path / "home").rglob("codeloop.db")))) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    async with open_scripted_project(tmp_path, [AFTER], session_id=session_id) as it:
        done = [
            part.state
            for part in it.calls()
            if isinstance(part.state, ToolStateCompleted) and part.tool == "bash"
        ]
        await it.prompt("go on")
        check_turns(it.model.requests[0].messages)
        log = it.work / "log"
        lines = log.read_text().split() if log.exists() else []
        assert lines == [str(n) for n in range(len(lines))]
        assert len(lines) - len(done) in {0, 1}, (
            "what was shown as done is done, and at most one call is unknown"
        )
        assert all(
            isinstance(part.state, ToolStateCompleted | ToolStateError) for part in it.calls()
        )
