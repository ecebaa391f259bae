"""The tool `bash_kill`: ends a background command."""

from codeloop.schema.wire import Wire
from codeloop.tool.builtin.shell.bash_output import find_job
from codeloop.tool.tool import ToolContext, ToolResult, Traits, tool


class BashKillParams(Wire):
    """What the model passes."""

    id: str


@tool("bash_kill", params=BashKillParams, traits=Traits(permission="bash"))
async def bash_kill(params: BashKillParams, ctx: ToolContext) -> ToolResult:
    """End it with everything it started."""
    job = find_job(params.id, ctx)
    was_running = await job.kill()
    before = f"had exited before, with code {job.code}" if job.status == "exited" else "had been ended before"
    output = f"{job.id} was ended with all its processes." if was_running else f"{job.id} {before}."
    return ToolResult(
        title=job.command,
        output=output,
        metadata={"id": job.id, "status": job.status, "exit": job.code, "truncated": False},
    )
