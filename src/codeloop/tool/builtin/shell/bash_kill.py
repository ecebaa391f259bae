"""The tool `bash_kill`: ends a background command."""

from codeloop.schema.wire import Wire
from codeloop.tool.builtin.shell.bash_output import find_job
from codeloop.tool.tool import ToolContext, ToolResult, Traits, tool


class BashKillParams(Wire):
    """Arguments of the tool `bash_kill`: the id of the background command."""

    id: str


@tool("bash_kill", params=BashKillParams, traits=Traits(permission="bash"))
async def bash_kill(params: BashKillParams, ctx: ToolContext) -> ToolResult:
    """End a background command with all its processes."""
    job = find_job(params.id, ctx)
    was_running = await job.kill()
    before = f"had exited before, with code {job.code}" if job.status == "exited" else "had been ended before"
    output = f"{job.id} was ended with all its processes." if was_running else f"{job.id} {before}."
    return ToolResult(
        title=job.command,
        output=output,
        metadata={"id": job.id, "status": job.status, "exit": job.code, "truncated": False},
    )
