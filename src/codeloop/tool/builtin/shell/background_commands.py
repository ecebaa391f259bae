"""The tools `bash_output` and `bash_kill`: read what a background command has printed, and end it.

Models are offered `bash_output` alone, which also does what `bash_kill` and `task_output` do.
"""

import time
from typing import Annotated

from msgspec import Meta

from codeloop.schema.limits import SHELL_WAIT
from codeloop.schema.wire import Wire
from codeloop.tool.builtin.shell.command_result import append_notes, strip_advice
from codeloop.tool.builtin.shell.stray_files import ask_to_keep
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.process.background_jobs import Job, JobOutput

_SESSION_PREFIX = "ses_"


class BashOutputParams(Wire):
    """Arguments of the tool `bash_output`. `wait`: how long to wait for new output, in ms;
    `stop`: end the command.
    """

    id: str
    wait: Annotated[int, Meta(ge=0, description="ms to wait for output, at most 60000")] = 0
    stop: bool = False


@tool("bash_output", params=BashOutputParams, traits=Traits(keep="tail", permission="bash"))
async def bash_output(params: BashOutputParams, ctx: ToolContext) -> ToolResult:
    """Return the new output of a background command and whether it still runs."""
    from codeloop.tool.call_hooks import check_allowed

    if params.stop:
        check_allowed(bash_kill, ctx)
        return await bash_kill.run(BashKillParams(id=params.id), ctx)
    if params.id.startswith(_SESSION_PREFIX):
        from codeloop.tool.builtin.session.task_output import TaskOutputParams, task_output

        check_allowed(task_output, ctx)
        return await task_output.run(TaskOutputParams(params.id), ctx)
    job = _find_job(params.id, ctx)
    result = await job.read(min(params.wait, SHELL_WAIT.value) / 1000)
    notes = [*result.notes, *(await ask_to_keep(result.moved_files, ctx)), *result.warnings]
    for warning in result.warnings:
        ctx.session.warn(warning)
    output, marks = append_notes(
        result.output or "(no new output)", [_describe_status(job, result), *notes]
    )
    return ToolResult(
        title=job.command,
        output=output,
        metadata={
            "id": job.id,
            "output": result.screen_text,
            "status": result.status,
            "exit": result.code,
            "truncated": result.is_cut,
            "outputPath": str(job.running.buffer.path or ""),
        }
        | ({"notes": [*map(strip_advice, notes)]} if notes else {})
        | marks,
    )


class BashKillParams(Wire):
    """Arguments of the tool `bash_kill`: the id of the background command."""

    id: str


@tool("bash_kill", params=BashKillParams, traits=Traits(permission="bash"))
async def bash_kill(params: BashKillParams, ctx: ToolContext) -> ToolResult:
    """End a background command with all its processes."""
    job = _find_job(params.id, ctx)
    was_running = await job.kill()
    before = (
        f"had exited before, with code {job.code}"
        if job.status == "exited"
        else "had been ended before"
    )
    output = f"{job.id} was ended with all its processes." if was_running else f"{job.id} {before}."
    return ToolResult(
        title=job.command,
        output=output,
        metadata={"id": job.id, "status": job.status, "exit": job.code, "truncated": False},
    )


def _find_job(name: str, ctx: ToolContext) -> Job:
    """Return the background command of that id, if this session or a subagent of it started it.

    Raises ToolFailure with the known ids; another session's command counts as unknown.
    """
    jobs = {
        job.id: job
        for job in ctx.workspace.shells.jobs.list_jobs()
        if ctx.session.includes_session(job.session)
    }
    # Models sometimes give the number of a command alone.
    job = jobs.get(name) or jobs.get(f"bash_{name}")
    if job is None:
        names = ", ".join(f"{one.id} ({one.status})" for one in jobs.values()) or "none"
        hint = (
            " A task ends by itself; the user can end it."
            if name.startswith(_SESSION_PREFIX)
            else ""
        )
        raise ToolFailure(f"There is no background command {name}.{hint} Known: {names}.")
    return job


def _describe_status(job: Job, result: JobOutput) -> str:
    match result.status:
        case "running":
            listens = "".join(
                f" The user reaches its port {port} at {url}."
                for port, url in job.addresses.items()
            )
            return (
                f"{job.id} has been running for {time.monotonic() - job.start_time:.0f} s.{listens}"
            )
        case "exited":
            return f"{job.id} has exited with code {result.code}."
        case "killed":
            return f"{job.id} was ended."
