"""The protocol side of `codeloop mcp serve`: handles calls, returns reports, passes questions to the client.

Older versions of the protocol ask in a request of ours; the newest one gets a result that says what is asked, and
calls again with the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from codeloop import __version__
from codeloop.client.client import Client
from codeloop.client.mcp_server.forms import Request
from codeloop.client.mcp_server.tools import (
    TOOLS,
    ContinueTool,
    PromptTool,
    Report,
    StatusTool,
    StopTool,
    ToolArguments,
    argument_schema,
    read,
    result_schema,
)
from codeloop.client.mcp_server.turns import ServedPrompts, ServedSession, Turns
from codeloop.client.mcp_server.wire import open_standard_wire
from codeloop.client.target import Target
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_ALIVE
from codeloop.schema.message import Session
from codeloop.schema.permission import NOBODY
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        ElicitRequest,
        ElicitResult,
        InputRequiredResult,
        ListToolsResult,
        PaginatedRequestParams,
    )

_ABOUT = (
    "codeloop is a coding agent. `prompt` gives it a task in the project that this server was started in, and reports "
    "what came of it; `continue` says more in the same session. Both work until the task is done, and tell of their "
    "progress; with `wait` they return earlier, and `status` waits for the rest."
)

_LATEST = 3
"""How many lines of earlier work the progress begins with."""


class ServeLaunch(Struct, frozen=True):
    """What the flags say: how to open the project, to create and to resume a session, and how to send prompts."""

    open_target: Callable[[], AbstractAsyncContextManager[Target]]
    create_session: Callable[[Client], Awaitable[Session]]
    resume_session: Callable[[Client, str], Awaitable[Session]]
    prompts: ServedPrompts
    note: Callable[[str], object]


async def serve_standard_streams(launch: ServeLaunch) -> None:
    """Serve over stdin and stdout until stdin ends, or this is cancelled. Raises CodeloopError."""
    await asyncio.to_thread(_import)
    async with open_standard_wire() as (inbound, outbound), launch.open_target() as target:
        for note in target.notes:
            launch.note(note)
        client = target.client
        turns = Turns(
            client, launch.prompts, partial(launch.create_session, client), partial(launch.resume_session, client)
        )
        following = asyncio.create_task(turns.run())
        try:
            server = server_of(Calls(turns))
            await server.run(inbound, outbound, server.create_initialization_options())
        finally:
            await turns.close()
            following.cancel()
            await asyncio.wait({following})


def server_of(calls: "Calls") -> "Server[Any]":
    """Return the server of the protocol's package."""
    from mcp.server import Server

    return Server(
        "codeloop",
        version=__version__,
        title="codeloop",
        instructions=_ABOUT,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
    )


class Calls:
    """The handlers of the protocol's requests."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def list_tools(
        self, _context: "ServerRequestContext[Any]", _params: "PaginatedRequestParams | None"
    ) -> "ListToolsResult":
        """Return the tools."""
        from mcp_types import ListToolsResult, Tool, ToolAnnotations

        tools = [
            Tool(
                name=name,
                title=row.title,
                description=row.description,
                input_schema=argument_schema(row),
                output_schema=result_schema(name),
                annotations=ToolAnnotations(read_only_hint=row.reads, open_world_hint=not row.reads),
            )
            for name, row in TOOLS.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(
        self, context: "ServerRequestContext[Any]", params: "CallToolRequestParams"
    ) -> "CallToolResult | InputRequiredResult":
        """Carry out a call. An error is a result, too: the model reads it."""
        if params.name not in TOOLS:
            return _fail(f"There is no tool {params.name!r}. There are: {', '.join(TOOLS)}.")
        try:
            arguments = read(params.name, params.arguments or {})
            return await self._do(context, params, arguments)
        except msgspec.ValidationError as error:
            return _fail(f"The arguments of {params.name} don't fit: {error}.")
        except CodeloopError as error:
            return _fail(str(error))

    async def _do(
        self, context: "ServerRequestContext[Any]", params: "CallToolRequestParams", arguments: ToolArguments
    ) -> "CallToolResult | InputRequiredResult":
        turns, can_ask = self._turns, _can_ask(context)
        if params.request_state is not None:  # the same call again, with answers
            served_session = await turns.find(params.request_state)
            for name, response in (params.input_responses or {}).items():
                if (request := served_session.open.pop(name, None)) is not None:
                    await turns.answer(request, _content(response))
            return await self._wait(context, served_session, arguments)
        match arguments:
            case PromptTool():
                served_session = await turns.start(arguments.prompt, can_ask=can_ask)
            case ContinueTool():
                served_session = await turns.go_on(arguments.session_id, arguments.prompt, can_ask=can_ask)
            case StatusTool(session_id=""):
                return _join_reports([await turns.report(each) for each in list(turns.sessions.values())])
            case StatusTool():
                served_session = await turns.find(arguments.session_id)
            case StopTool():
                served_session = await turns.find(arguments.session_id)
                await turns.stop(served_session)
        return await self._wait(context, served_session, arguments)

    async def _wait(
        self, context: "ServerRequestContext[Any]", served_session: ServedSession, arguments: ToolArguments
    ) -> "CallToolResult | InputRequiredResult":
        """Wait for the end of the work, for as long as the caller asked; a cancelled call stops what it began."""
        try:
            return await self._follow(
                context, served_session, None if isinstance(arguments, StopTool) else arguments.wait
            )
        except asyncio.CancelledError:
            if isinstance(arguments, PromptTool | ContinueTool):
                self._turns.stop_soon(served_session)
            raise

    async def _follow(
        self, context: "ServerRequestContext[Any]", served_session: ServedSession, wait: float | None
    ) -> "CallToolResult | InputRequiredResult":
        loop = asyncio.get_running_loop()
        start, report_count, last_report, next_line = loop.time(), 0, 0.0, max(len(served_session.lines) - _LATEST, 0)
        asking: asyncio.Task[None] | None = None
        try:
            while served_session.is_working:
                change = served_session.change
                waiting = list(served_session.open.values())
                if waiting and not context.session.can_send_request:
                    return await self._require_input(served_session, waiting)
                if asking is not None and served_session.asked_id not in served_session.open:
                    asking.cancel()  # it was answered elsewhere, or withdrawn
                elif waiting and asking is None and served_session.asked_id not in served_session.open:
                    served_session.asked_id = waiting[0].id
                    asking = asyncio.create_task(self._ask(context, served_session, waiting[0]))
                    asking.add_done_callback(lambda _: served_session.touch())
                if asking is not None and asking.done():
                    asking = None
                    continue
                seconds = loop.time() - start
                if wait is not None and seconds >= wait and asking is None:
                    break
                silent = seconds - last_report >= MCP_ALIVE.seconds
                for line in served_session.lines[next_line:] or ([f"works, {seconds:.0f} s"] if silent else []):
                    report_count, last_report = report_count + 1, seconds
                    await context.session.report_progress(report_count, None, line)
                next_line = len(served_session.lines)
                wait_seconds = MCP_ALIVE.seconds if wait is None or asking else min(MCP_ALIVE.seconds, wait - seconds)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_seconds):
                        await change.wait()
        finally:
            if asking is not None:
                asking.cancel()
                served_session.asked_id = ""
        return _result(await self._turns.report(served_session))

    async def _ask(self, context: "ServerRequestContext[Any]", served_session: ServedSession, request: Request) -> None:
        """Ask the client's user; a client that fails to show the form is taken for one that can't ask."""
        from mcp import MCPError
        from pydantic import ValidationError

        form = await self._turns.form(request)
        if form is None:
            return
        try:
            answer = await context.session.elicit_form(form.message, form.schema, context.request_id)
        except (MCPError, ValidationError):
            await self._turns.refuse(served_session, request, NOBODY)
        else:
            await self._turns.answer(request, _content(answer))
        served_session.open.pop(request.id, None)

    async def _require_input(self, served_session: ServedSession, waiting: list[Request]) -> "InputRequiredResult":
        from mcp_types import InputRequiredResult

        requests: dict[str, Any] = {each.id: await self._elicitation(each) for each in waiting}
        return InputRequiredResult(input_requests=requests, request_state=served_session.session.id)

    async def _elicitation(self, request: Request) -> "ElicitRequest":
        from mcp_types import ElicitRequest, ElicitRequestFormParams

        form = await self._turns.form(request)
        if form is None:
            raise CodeloopError("A secret is not asked for.")
        return ElicitRequest(params=ElicitRequestFormParams(message=form.message, requested_schema=form.schema))


def _can_ask(context: "ServerRequestContext[Any]") -> bool:
    """Return whether the client shows forms; one that only names elicitation does."""
    capabilities = context.session.client_capabilities
    forms = capabilities.elicitation if capabilities is not None else None
    return forms is not None and (forms.form is not None or forms.url is None)


def _content(response: Any) -> JSON | None:
    """Return the values of a filled-in form; None: it was not filled in."""
    answer: ElicitResult = response
    if getattr(answer, "action", "decline") != "accept":
        return None
    return dict(answer.content or {})


def _result(report: Report) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    text = TextContent(type="text", text=_text(report))
    return CallToolResult(content=[text], structured_content=_value(report), is_error=report.status == "failed")


def _join_reports(reports: list[Report]) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    values = [_value(each) for each in reports]
    text = "\n\n".join(map(_text, reports)) or "No session was prompted through this server yet."
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content={"sessions": values})


def _value(report: Report) -> JSON:
    """Return a report as a structured result: without what is empty, but always with its session and status."""
    return {"session_id": report.session_id, "status": report.status, **msgspec.to_builtins(report)}


def _text(report: Report) -> str:
    """Return a report as clients without structured results read it."""
    sums = f"{report.steps} step{'' if report.steps == 1 else 's'}, ${report.cost:.4f}"
    lines = [f"[session_id {report.session_id}: {report.status}; {sums}]"]
    lines += [f"It asks: {report.asks}"] if report.asks else []
    lines += [report.message] if report.message else []
    lines += [f"Changed: {', '.join(report.changed)}"] if report.changed else []
    return "\n".join([*([f"{report.answer}\n"] if report.answer else []), *lines])


def _fail(text: str) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _import() -> None:
    """Import the protocol's package: it takes so long that this is done in a thread."""
    from mcp.server import Server

    del Server
