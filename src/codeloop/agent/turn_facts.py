"""What the program itself knows of a turn, for the model that goes on after a summary:
a careless one loses nothing.
"""

from collections.abc import Iterable
from os.path import relpath

from codeloop.agent.answer.reminders import find_turn, read_turn_entries
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.agent.engine import Engine
from codeloop.schema.part import Part, PatchPart, ToolPart, ToolStateCompleted
from codeloop.tool.tool import EDIT_TOOLS

_MAX_FILES = 40
_MAX_LINE = 300


def describe_turn(engine: Engine, session_id: str) -> str:
    """Describe the changes of the turn, its last check, and the commands that run;
    "": there are none of these.
    """
    turn, _ = find_turn(read_turn_entries(engine, session_id))
    parts = [part for entry in turn for part in entry.parts]
    root = str(engine.workspace.directory)
    lines: list[str] = []
    if files := _list_changed_files(parts, root):
        more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
        lines.append(f"- files changed so far: {', '.join(files[:_MAX_FILES])}{more}")
    if checks := list_checks(parts, root):
        lines.append(f"- last check: {_describe_check(checks[-1])}")
    lines += [
        f"- still running: {job.id}, `{job.command[:_MAX_LINE]}`"
        for job in engine.workspace.shells.jobs.list_jobs()
        if job.session == session_id and job.status == "running"
    ]
    return "\n".join(["codeloop has recorded of this turn:", *lines]) if lines else ""


def _list_changed_files(parts: Iterable[Part], root: str) -> list[str]:
    """Return the files that edits and commands changed, relative to the session's directory,
    in that order.
    """
    files: dict[str, None] = {}
    for part in parts:
        if isinstance(part, PatchPart):
            files |= dict.fromkeys(part.files)
        elif (
            isinstance(part, ToolPart)
            and part.tool in EDIT_TOOLS
            and isinstance(part.state, ToolStateCompleted)
        ):
            path = part.state.input.get("filePath")
            files |= {path: None} if isinstance(path, str) else {}
    return list(
        dict.fromkeys(relpath(file, root) if file.startswith("/") else file for file in files)
    )


def _describe_check(check: CheckRun) -> str:
    outcome = (
        "passed" if check.passed else "failed" if check.failed else "neither passed nor failed"
    )
    code = "" if check.exit_code is None else f", exit code {check.exit_code}"
    error = f": {check.error[:_MAX_LINE]}" if check.error else ""
    late = "" if check.after_last_edit else "; files were changed after it"
    return f"`{check.command[:_MAX_LINE]}` {outcome}{code}{error}{late}"
