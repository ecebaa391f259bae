"""Tells the model how its commands in the background ended,
and waits for those that are past their timeout.
"""

import asyncio
import time

from codeloop.agent.answer.reminders import ENDED_REMINDER, store_reminder
from codeloop.agent.engine import Engine
from codeloop.agent.moves import Stop
from codeloop.schema.event import make_part_updated
from codeloop.schema.limits import SHELL_OVERDUE
from codeloop.schema.part import LATER_OUTPUT_KEY, ToolPart, ToolStateCompleted
from codeloop.schema.wire import replace
from codeloop.tool.builtin.shell.command_result import strip_advice
from codeloop.workspace.process.background_jobs import Job

# The end of what an ended command printed, by which it is judged whether a check passed.
_KEPT_CHARS = 4_000
_MAX_COMMAND_CHARS = 200


def take_ended_commands(engine: Engine, session_id: str) -> str:
    """Return a text for the model on commands of the session that have ended, each once;
    "": there are none.
    """
    if not engine.workspace.has_jobs:
        return ""
    return "\n\n".join(
        _take_end(engine, job) for job in engine.workspace.shells.jobs.list_untold(session_id)
    )


async def remind_of_ended_commands(engine: Engine, session_id: str) -> None:
    """Store a prompt that says how commands of the session ended."""
    if ends := take_ended_commands(engine, session_id):
        store_reminder(engine, session_id, ENDED_REMINDER.format(ends=ends))


async def settle_overdue(engine: Engine, session_id: str, stop: Stop) -> Stop | None:
    """Return how a turn ends, with the commands that still run;
    None: it continues, as one of them has ended.
    """
    if stop.reason == "done" and await _wait_for_overdue(engine, session_id):
        await remind_of_ended_commands(engine, session_id)
        return None
    overdue_jobs = engine.workspace.shells.jobs.list_overdue(session_id)
    return replace(
        stop, unended_commands=tuple(job.command[:_MAX_COMMAND_CHARS] for job in overdue_jobs)
    )


async def _wait_for_overdue(engine: Engine, session_id: str) -> bool:
    """Wait until a command of the session that is overdue ends;
    return whether the model has to be told of one.

    Where a user is there, nothing waits: the end wakes the session.
    The time is SHELL_OVERDUE for each command.
    """
    jobs = engine.workspace.shells.jobs
    is_subagent = engine.store.get_session(session_id).parent_id is not None
    while not any(job.is_overdue for job in jobs.list_untold(session_id)):
        overdue_jobs = jobs.list_overdue(session_id)
        if not overdue_jobs or (engine.turn_settings.is_attended and not is_subagent):
            return False
        # A command is waited for so long after its timeout, however many others there are.
        deadline = max(job.overdue_since for job in overdue_jobs) + SHELL_OVERDUE.seconds
        tasks = [asyncio.create_task(job.wait_for_end()) for job in overdue_jobs]
        try:
            await asyncio.wait(
                tasks,
                timeout=max(0, deadline - time.monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for task in tasks:
                task.cancel()
        if time.monotonic() >= deadline:
            break
    return any(job.is_overdue for job in jobs.list_untold(session_id))


def _take_end(engine: Engine, job: Job) -> str:
    """Return how a command ended, for the model, and store it with its call."""
    seconds = (job.end_time or time.monotonic()) - job.start_time
    lines = [
        f"{job.id} (`{job.command[:_MAX_COMMAND_CHARS]}`) has ended after {seconds:.0f} s with exit code {job.code}."
    ]
    if job.status == "killed":
        lines = [
            f"{job.id} (`{job.command[:_MAX_COMMAND_CHARS]}`) was ended by the user after {seconds:.0f} s."
        ]
    notes: tuple[str, ...] = ()
    if job.is_overdue:
        output = job.take_output()
        notes = (*output.notes, *output.warnings)
        if output.output.strip():
            lines.append(f"It has printed since:\n{output.output.rstrip()}")
        lines += notes
        lines += [
            f"{moved.path} appeared meanwhile at a protected name, and was moved to {moved.moved}."
            for moved in output.moved_files
        ]
    else:
        # What it printed is left to the tool that reads it.
        job.is_end_known = True
        lines.append("bash_output has what it printed.")
    _store_end(engine, job, notes)
    return "\n".join(lines)


def _store_end(engine: Engine, job: Job, notes: tuple[str, ...]) -> None:
    """Store how a command ended with the call that started it,
    for screens and for what judges checks.
    """
    for entry in reversed(engine.store.read_conversation(job.session).entries):
        for part in entry.parts:
            if not isinstance(part, ToolPart) or part.call_id != job.call_id:
                continue
            if isinstance(part.state, ToolStateCompleted):
                metadata = part.state.metadata | {
                    "exit": job.code,
                    "status": job.status,
                    LATER_OUTPUT_KEY: job.read_end()[-_KEPT_CHARS:],
                }
                if notes:
                    metadata["notes"] = [*metadata.get("notes", ()), *map(strip_advice, notes)]
                engine.store.append(
                    make_part_updated(replace(part, state=replace(part.state, metadata=metadata)))
                )
            return
