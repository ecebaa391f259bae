"""What runs beside a turn: it is listed with its output, ended, and known to other processes."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.jobs import JOB_END, JOB_LIST, JOB_OUTPUT, JobId
from codeloop.schema.api.session_reports import SESSION_OVERVIEW, SessionOverviewQuery
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession
from codeloop.schema.errors import OperationError
from codeloop.schema.jobs import JOBS_KEY, RunningJob, count_running_jobs, read_running_jobs
from codeloop.schema.operation import NoArguments
from tests.support.scripted_project import (
    ScriptedProject,
    both_clients,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

__all__ = ["both_clients"]

SERVE = "echo ready; until [ -e go ]; do sleep 0.02; done; exit 3"
START = make_answer(make_call("bash", command=SERVE, run_in_background=True))
DONE = ScriptedAnswer(text="Done.")


def metadata(it: ScriptedProject) -> dict[str, Any]:
    return it.project.store.get_session(it.session_id).metadata or {}


@pytest.mark.slow
async def test_a_command_in_the_background_is_listed_read_and_ended(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [START, DONE, DONE]) as it:
        await it.prompt()
        (job,) = it.project.workspace.shells.jobs.list_jobs()
        await wait_until(lambda: "ready" in job.read_end())
        (row,) = await it.client.call(JOB_LIST, NoArguments())
        assert (row.id, row.kind, row.session_id, row.title) == (
            "bash_1",
            "command",
            it.session_id,
            SERVE,
        )
        assert (row.last_line, row.is_overdue, row.addresses) == ("ready", False, [])
        output = await it.client.call(JOB_OUTPUT, JobId(job_id="bash_1"))
        assert output.output == "ready\n"
        assert await it.client.call(JOB_END, JobId(job_id="bash_1"))
        assert not await it.client.call(JOB_LIST, NoArguments())
        assert not await it.client.call(JOB_END, JobId(job_id="bash_1"))
        with pytest.raises(OperationError, match=r"bash_7 runs.*/jobs lists"):
            await it.client.call(JOB_END, JobId(job_id="bash_7"))
        # The model did not end it, so it is told.
        await it.prompt("and?")
        assert "was ended by the user" in str(it.model.requests[-1].messages)


@pytest.mark.slow
async def test_other_processes_see_what_runs_until_it_ends(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [START, DONE, DONE]) as it:
        await it.prompt()
        (stored,) = msgspec.convert(metadata(it)[JOBS_KEY], list[RunningJob])
        assert (stored.id, stored.session_id, stored.command, stored.pid) == (
            "bash_1",
            it.session_id,
            SERVE,
            os.getpid(),
        )
        (overview,) = await it.client.call(SESSION_OVERVIEW, SessionOverviewQuery())
        assert [job.command for job in overview.jobs] == [SERVE]
        fork = await it.client.call(SESSION_FORK, ForkSession(session_id=it.session_id))
        assert JOBS_KEY not in (fork.metadata or {})
        (it.work / "go").touch()
        await wait_until(lambda: JOBS_KEY not in metadata(it))
        (_, overview) = await it.client.call(SESSION_OVERVIEW, SessionOverviewQuery())
        assert not overview.jobs


def test_commands_of_a_process_that_was_killed_do_not_count() -> None:
    row = RunningJob(
        id="bash_1",
        session_id="ses_1",
        command="x",
        started=0,
        pid=os.getpid(),
        process_started="never",
    )
    stored = {JOBS_KEY: msgspec.to_builtins([row])}
    assert read_running_jobs(stored) == []
    assert read_running_jobs(stored, on_server=True) == [row]
    assert read_running_jobs({JOBS_KEY: "nonsense"}) == []
    assert count_running_jobs([None], on_server=False) == 0


@pytest.mark.slow
async def test_a_subagent_is_listed_and_ended(tmp_path: Path) -> None:
    task = make_answer(
        make_call("task", description="Look around", prompt="look", subagent_type="general")
    )
    wait = make_answer(make_call("bash", command="touch begun; sleep 600"))
    async with open_scripted_project(tmp_path, [task, wait, DONE, DONE]) as it:
        turn = asyncio.create_task(it.prompt())
        await wait_until((it.work / "begun").exists)
        rows = await it.client.call(JOB_LIST, NoArguments())
        assert [(row.kind, row.session_id) for row in rows] == [("subagent", it.session_id)]
        assert await it.client.call(JOB_END, JobId(job_id=rows[0].id))
        await turn
        assert not await it.client.call(JOB_LIST, NoArguments())
