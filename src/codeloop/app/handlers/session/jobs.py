"""Handlers of what runs beside a turn: background commands, subagents,
calls of MCP servers that take long.
"""

from collections.abc import Iterator

from codeloop.app.job_followers import get_start_ms
from codeloop.app.project import Project
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.jobs import JobId, JobInfo, JobOutputText
from codeloop.schema.bounds.session import LONG_CALL
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import now_ms
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import ToolPart, ToolStateRunning
from codeloop.store.conversation import find_last_text
from codeloop.workspace.process.background_jobs import Job

_MAX_LINE = 300
_MAX_OUTPUT_CHARS = 30_000


async def list_running(project: Project, _args: NoArguments) -> list[JobInfo]:
    """Return the jobs of this process, the oldest first."""
    rows = [*_list_commands(project), *_list_subagents(project), *_list_calls(project)]
    return sorted(rows, key=lambda row: row.started)


async def read_output(project: Project, args: JobId) -> JobOutputText:
    """Return the end of what a command has printed, or of what a subagent has said.
    Raises OperationError.
    """
    if (job := _find_job(project, args.job_id)) is not None:
        return JobOutputText(output=job.read_end()[-_MAX_OUTPUT_CHARS:])
    if args.job_id in project.engine.supervisor.list_busy_sessions():
        return JobOutputText(output=_read_last_text(project, args.job_id)[-_MAX_OUTPUT_CHARS:])
    part = next((each for each in _list_running_calls(project) if each.id == args.job_id), None)
    if part is None:
        raise _make_unknown_error(args.job_id)
    return JobOutputText(output=_read_call_output(part))


async def end_job(project: Project, args: JobId) -> bool:
    """End a command or a subagent; of a call, the turn that waits for it.
    Return whether it ran until now.

    Raises OperationError.
    """
    if (job := _find_job(project, args.job_id)) is not None:
        return await job.kill(is_by_user=True)
    if args.job_id in project.engine.supervisor.list_busy_sessions():
        await project.engine.supervisor.cancel(args.job_id)
        return True
    part = next((each for each in _list_running_calls(project) if each.id == args.job_id), None)
    if part is None:
        raise _make_unknown_error(args.job_id)
    await project.runs.abort(part.session_id)
    return True


def _make_unknown_error(job_id: str) -> OperationError:
    return OperationError(
        "NotFoundError", f"Nothing of the id {job_id} runs in this process. /jobs lists what runs."
    )


def _find_job(project: Project, job_id: str) -> Job | None:
    return project.workspace.shells.jobs.find_job(job_id) if project.workspace.has_jobs else None


def _list_commands(project: Project) -> Iterator[JobInfo]:
    for job in project.workspace.shells.jobs.list_jobs() if project.workspace.has_jobs else ():
        if job.status == "running":
            yield JobInfo(
                id=job.id,
                kind="command",
                session_id=job.session,
                title=one_line(job.command, _MAX_LINE),
                started=get_start_ms(job),
                last_line=_find_last_line(job.read_end()),
                addresses=[*job.addresses.values()],
                is_overdue=job.is_overdue,
            )


def _list_subagents(project: Project) -> Iterator[JobInfo]:
    for session_id in project.engine.supervisor.list_busy_sessions():
        session = project.store.find_session(session_id)
        if session is not None:
            yield JobInfo(
                id=session_id,
                kind="subagent",
                session_id=session.parent_id or session_id,
                title=one_line(session.title, _MAX_LINE),
                started=session.time.created,
                last_line=_find_last_line(_read_last_text(project, session_id)),
            )


def _list_calls(project: Project) -> Iterator[JobInfo]:
    for part in _list_running_calls(project):
        if isinstance(part.state, ToolStateRunning):
            yield JobInfo(
                id=part.id,
                kind="call",
                session_id=part.session_id,
                title=part.tool,
                started=part.state.time.start,
                last_line=_find_last_line(_read_call_output(part)),
            )


def _list_running_calls(project: Project) -> Iterator[ToolPart]:
    """Yield the calls of tools of others, such as MCP servers, that have taken long,
    of the turns in this process.
    """
    for session_id in project.runs.list_running():
        for entry in project.store.read_context(session_id).entries[-1:]:
            for part in entry.parts:
                if (
                    isinstance(part, ToolPart)
                    and part.tool not in BUILTIN_TOOLS
                    and isinstance(part.state, ToolStateRunning)
                    and now_ms() - part.state.time.start >= LONG_CALL.value
                ):
                    yield part


def _read_last_text(project: Project, session_id: str) -> str:
    return find_last_text(project.store.read_context(session_id).entries)


def _read_call_output(part: ToolPart) -> str:
    metadata = part.state.metadata if isinstance(part.state, ToolStateRunning) else None
    return str((metadata or {}).get("output", ""))


def _find_last_line(text: str) -> str:
    lines = text.rstrip().rsplit("\n", 1)
    return one_line(lines[-1], _MAX_LINE)
