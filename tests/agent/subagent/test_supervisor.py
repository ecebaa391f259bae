"""Subagents at work: bounded in number, time and money;
how they stand is stored, whatever becomes of their process.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.agent.subagent.supervisor import Supervisor, TimeLimits, wait_until_overdue
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.event import PartInfo, PartUpdated, PermissionAsked
from codeloop.schema.ids import new_id
from codeloop.schema.limits import RUNNING_SUBAGENTS
from codeloop.schema.live_events import SessionIdle, SessionRef
from codeloop.schema.message import Session
from codeloop.schema.part import ToolPart, ToolStateError, ToolStateRunning
from codeloop.schema.permission import PermissionRequest
from codeloop.store.subagents import read_subagent_state
from codeloop.tool.tool import SubtaskResult, ToolFailure
from tests.agent.subagent.test_spawn import DONE, FOUND, INFO, children
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

ROOT = Path(__file__).resolve().parents[3]
SLOW = make_answer(make_call("bash", command="touch begun; sleep 77"))
BACKGROUND = make_call(
    "task", description="d", prompt="p", subagent_type="general", run_in_background=True
)
VICTIM = """
import asyncio, sys
from pathlib import Path
from tests.agent.subagent.test_supervisor import BACKGROUND, DONE, SLOW
from tests.support.scripted_project import make_answer, open_scripted_project
async def main():
    async with open_scripted_project(Path(sys.argv[1]), [make_answer(BACKGROUND), SLOW, DONE]) as it:
        print(it.session_id, flush=True)
        await it.prompt()
        await asyncio.sleep(60)
asyncio.run(main())
"""


def state(it: ScriptedProject, child: Session | None = None) -> str:
    """Return how the (only) subagent stands now."""
    session = it.project.store.get_session((child or children(it)[0]).id)
    standing = read_subagent_state(it.project.store, session)
    assert standing is not None
    return standing.state


async def start(it: ScriptedProject) -> None:
    await it.client.call(
        PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
    )


async def test_a_task_is_running_while_it_works_and_done_after_it(tmp_path: Path) -> None:
    waits = make_answer(make_call("bash", command="while [ ! -e go ]; do sleep 0.02; done"))
    async with open_scripted_project(
        tmp_path, [make_answer(BACKGROUND), waits, DONE, FOUND], info=INFO
    ) as it:
        await start(it)
        await wait_until(lambda: children(it) and state(it) == "running")
        (it.work / "go").touch()
        await wait_until(lambda: state(it) == "done")
        assert not it.project.store.leases.is_held(children(it)[0].id)


async def test_a_task_whose_question_is_open_waits(tmp_path: Path) -> None:
    script = [
        make_answer(BACKGROUND),
        make_answer(make_call("bash", command="touch x")),
        DONE,
        FOUND,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO, permission={"bash": "ask"}) as it:
        await start(it)
        request = await it.question()
        assert state(it) == "waiting"
        await it.answer(request, "once")
        await wait_until(lambda: state(it) == "done")


async def test_a_task_beyond_the_number_is_queued_until_one_ends(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(BACKGROUND), DONE, FOUND], info=INFO
    ) as it:
        for _ in range(RUNNING_SUBAGENTS.value):
            await it.project.engine.supervisor.slots.acquire()
        await it.prompt()
        assert state(it) == "queued"
        it.project.engine.supervisor.slots.release()
        await wait_until(lambda: state(it) == "done")


async def test_a_person_can_cancel_a_task_in_the_background(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [make_answer(BACKGROUND), SLOW, DONE], info=INFO
    ) as it:
        await start(it)
        await wait_until((it.work / "begun").exists)
        async with asyncio.timeout(30):
            await it.client.call(ABORT, SessionId(session_id=children(it)[0].id))
        assert state(it) == "cancelled"
        assert not it.project.engine.supervisor.is_any_running


@pytest.mark.slow
async def test_a_child_that_a_person_aborts_is_an_error_for_its_parent_which_goes_on(
    tmp_path: Path,
) -> None:
    script = [
        make_answer(make_call("task", description="d", prompt="p", subagent_type="general")),
        SLOW,
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        turn = asyncio.create_task(it.prompt())
        await wait_until((it.work / "begun").exists)
        await it.client.call(ABORT, SessionId(session_id=children(it)[0].id))
        answer = await turn
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateError)
        assert "cancelled" in made.state.error


@pytest.mark.slow
async def test_a_task_that_was_at_work_when_its_process_was_killed_is_cancelled(
    tmp_path: Path,
) -> None:
    victim = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-c", VICTIM, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert victim.stdout is not None
        session_id = (await asyncio.to_thread(victim.stdout.readline)).strip()
        await wait_until((tmp_path / "work" / "begun").exists)
        async with open_scripted_project(tmp_path, [], info=INFO, session_id=session_id) as it:
            assert state(it) == "running", "another process works on it"
            victim.kill()
            victim.wait(60)
            assert state(it) == "cancelled"
    finally:
        victim.kill()
        victim.communicate()


async def test_the_call_shows_at_once_which_session_works_on_it(tmp_path: Path) -> None:
    script = [
        make_answer(make_call("task", description="d", prompt="p", subagent_type="general")),
        SLOW,
        DONE,
    ]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        shown: list[str] = []

        async def watch() -> None:
            async for stamped in it.client.follow():
                match stamped.event:
                    case PartUpdated(
                        properties=PartInfo(
                            part=ToolPart(state=ToolStateRunning(metadata=metadata))
                        )
                    ):
                        shown.append((metadata or {}).get("sessionId", ""))
                    case _:
                        pass

        watching = asyncio.create_task(watch())
        await start(it)
        await wait_until((it.work / "begun").exists)
        assert children(it)[0].id in shown
        watching.cancel()
        await it.client.call(ABORT, SessionId(session_id=it.session_id))


async def test_a_child_has_what_is_left_of_its_parents_money(tmp_path: Path) -> None:
    work = [make_answer(make_call("glob", pattern=f"*.{name}")) for name in ("a", "b", "c", "d")]
    hand_on = make_answer(make_call("task", description="d", prompt="p", subagent_type="general"))
    script = [make_answer(make_call("glob", pattern="*")), hand_on, *work, DONE]
    async with open_scripted_project(tmp_path, script, info=INFO) as it:
        answer = await it.prompt(limits=RunLimits(cost=0.0035))  # a step costs 0.001
        assert answer.stop is not None
        assert answer.stop.reason == "limit"
        assert it.view().session.cost == pytest.approx(0.004), (
            "the child made two steps: 0.0015 was left when it began"
        )


async def test_a_task_that_shows_nothing_is_overdue_and_one_that_works_too_long(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        store = it.project.store
        quiet = await wait_for_result(
            wait_until_overdue(
                store,
                it.session_id,
                TimeLimits(
                    max_work_seconds=60, max_silence_seconds=0.06, check_interval_seconds=0.02
                ),
            )
        )
        assert "no sign of life" in quiet

        async def work() -> None:
            while True:
                store.publish_live(SessionIdle(properties=SessionRef(session_id=it.session_id)))
                await asyncio.sleep(0.005)

        working = asyncio.create_task(work())
        long = await wait_for_result(
            wait_until_overdue(
                store,
                it.session_id,
                TimeLimits(
                    max_work_seconds=0.3, max_silence_seconds=0.1, check_interval_seconds=0.02
                ),
            )
        )
        assert "which is the limit" in long
        working.cancel()


async def test_a_task_that_waits_for_a_person_is_never_overdue(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        request = PermissionRequest(
            id=new_id("per"),
            session_id=it.session_id,
            permission="bash",
            patterns=["x"],
            metadata={},
            always=[],
        )
        it.project.store.append(PermissionAsked(properties=request))
        with pytest.raises(TimeoutError):
            await wait_for_result(
                wait_until_overdue(
                    it.project.store,
                    it.session_id,
                    TimeLimits(
                        max_work_seconds=0.1, max_silence_seconds=0.1, check_interval_seconds=0.02
                    ),
                ),
                0.6,
            )


async def test_a_task_that_still_works_is_not_started_twice() -> None:
    tasks = Supervisor()

    async def work() -> SubtaskResult:
        await asyncio.sleep(20)
        return SubtaskResult("s", "", {})

    tasks.begin("ses_1", work())
    with pytest.raises(ToolFailure, match="is still working"):
        tasks.begin("ses_1", work())
    await tasks.close()
    assert not tasks.is_any_running
