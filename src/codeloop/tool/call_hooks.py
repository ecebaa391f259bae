"""Runs a tool call with the hooks of extensions: before the call, when it asks for permission,
and on its result.
"""

from collections.abc import Awaitable, Callable

import msgspec

from codeloop.permission.gate import Denied
from codeloop.permission.rules import Verdict
from codeloop.schema.errors import HookRefused
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.tool.call_session import CallSession, HookRunner
from codeloop.tool.services import ToolServices
from codeloop.tool.tool import (
    TURN_ENDED_KEY,
    Subtask,
    SubtaskResult,
    Tool,
    ToolContext,
    ToolFailure,
    ToolResult,
)
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall, Toolbox
from codeloop.workspace.workspace import Workspace

BeginCall = Callable[[PreparedCall], Awaitable[None]]
"""Is awaited with a call when its arguments are final, before the tool runs."""
BEFORE_HOOK, AFTER_HOOK = "tool.execute.before", "tool.execute.after"


class HookedContext:
    """The context of a call whose permissions a hook decided: each need carries
    that decision to the gate.

    All other members are those of the context that it wraps.
    """

    def __init__(self, inner: ToolContext, prepared: PreparedCall) -> None:
        self.session_id: str = inner.session_id
        self.message_id: str = inner.message_id
        self.call_id: str = inner.call_id
        self.workspace: Workspace = inner.workspace
        self.services: ToolServices = inner.services
        self.session: CallSession = inner.session
        self._inner = inner
        self._hook_verdict = prepared.hook_verdict

    async def ask(self, *needs: Need) -> bool:
        """Wait until all needs are permitted; return whether the user was asked.
        Raises Denied or Rejected.
        """
        return await self._inner.ask(*(replace(need, preset=self._hook_verdict) for need in needs))

    def report(self, *, title: str | None = None, metadata: JSON | None = None) -> None:
        """Show progress to every client; throttled."""
        self._inner.report(title=title, metadata=metadata)

    async def spawn(self, task: Subtask) -> SubtaskResult:
        """Run a subagent in a session of its own."""
        return await self._inner.spawn(task)


async def run_call(
    hooks: HookRunner | None,
    prepared: PreparedCall,
    ctx: ToolContext,
    begin: BeginCall | None = None,
) -> ToolResult:
    """Run a call with the hooks of extensions, which may change its arguments and its result.

    `hooks`: None: there are no extensions. `begin`: see BeginCall. Changed arguments are validated
    like the model's own, and permission is asked for them.
    Raises HookRefused when an extension refuses the call, ToolFailure when the changed arguments
    are invalid, Denied when a rule denies the tool by its name.
    """
    check_allowed(prepared.tool, ctx)
    if hooks is None:
        if begin is not None:
            await begin(prepared)
        return await prepared.run(ctx)
    call_input: JSON = {
        "tool": prepared.tool.name,
        "sessionID": ctx.session_id,
        "callID": ctx.call_id,
        "messageID": ctx.message_id,
    }
    note: str | None = None
    if hooks.has_handler(BEFORE_HOOK):
        prepared, note = await _run_before(hooks, prepared, call_input)
    if begin is not None:
        await begin(prepared)
    result = await prepared.run(
        ctx if prepared.hook_verdict is None else HookedContext(ctx, prepared)
    )
    if note:
        result = replace(result, output=f"{result.output}\n\n{note}")
    if hooks.has_handler(AFTER_HOOK):
        result = await _run_after(hooks, result, {**call_input, "args": prepared.input})
    return result


def check_allowed(tool: Tool, ctx: ToolContext) -> None:
    """Raise Denied if a rule denies the tool by its name: it was not offered,
    and is not run when it is called.
    """
    # A tool whose permission has its name is refused when it asks for that.
    if tool.name == tool.permission and tool.name != "batch":
        return
    rule = ctx.session.find_tool_denial(tool.name, tool.need_traits)
    if rule is not None:
        raise Denied(Need(permission=tool.name, patterns=("*",)), Verdict("deny", ("*",), rule))


async def _run_before(
    hooks: HookRunner, prepared: PreparedCall, call_input: JSON
) -> tuple[PreparedCall, str | None]:
    """Return the call as the hooks before it left it, and their note for the model,
    which is added to the result.
    """
    output = await hooks.run(BEFORE_HOOK, call_input, {"args": prepared.input})
    if output["args"] != prepared.input:
        arguments = msgspec.json.encode(output["args"]).decode()
        # A toolbox of this tool alone validates the arguments as it does those of a model.
        replacement = Toolbox((prepared.tool,)).prepare(prepared.tool.name, arguments)
        if isinstance(replacement, InvalidToolCall):
            raise ToolFailure(
                f"Not run: an extension changed the arguments of this call. {replacement}"
            )
        prepared = replace(replacement, note=prepared.note)
    return replace(prepared, hook_verdict=output.get("permission")), output.get("context")


async def _run_after(hooks: HookRunner, result: ToolResult, call_input: JSON) -> ToolResult:
    """Return the result as the hooks after the call left it."""
    fields = {"title": result.title, "output": result.output, "metadata": result.metadata}
    try:
        output = await hooks.run(AFTER_HOOK, call_input, fields)
    except HookRefused as error:
        # The model has to know that the call had its effect.
        raise HookRefused(f"The call was made, and its result is withheld. {error}") from error
    metadata: JSON = output["metadata"]
    if output.get("ends"):
        metadata = {**metadata, TURN_ENDED_KEY: output["ends"]}
    return replace(result, title=output["title"], output=output["output"], metadata=metadata)
