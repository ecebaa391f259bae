"""The protocol side of `codeloop mcp serve`: handles calls, returns reports, passes questions to the client.

With older protocol versions the server sends the client a request with the question. With the newest version the
call returns the questions as its result, and the client repeats the call with the answers.
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
    read_arguments,
    result_schema,
)
from codeloop.client.mcp_server.turns import ServedPrompts, ServedSession, Turns
from codeloop.client.mcp_server.wire import open_standard_wire
from codeloop.client.target import Target
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_KEEP_ALIVE
from codeloop.schema.message import Session
from codeloop.schema.permission import NOBODY_MESSAGE
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

_INSTRUCTIONS = (
    "codeloop is a coding agent. `prompt` gives it a task in the project that this server was started in, and reports "
    "the result; `continue` adds a prompt to the same session. Both return when the task is done, and report progress "
    "meanwhile; with `wait` they return earlier, and `status` waits for the end."
)

_EARLIER_LINES = 3
"""How many lines about earlier steps are reported when a call begins to wait."""


class ServeLaunch(Struct, frozen=True):
    """The flags of `codeloop mcp serve`, as functions that open the project and its sessions, and options of prompts.

    `write_note` shows the user a line.
    """

    open_target: Callable[[], AbstractAsyncContextManager[Target]]
    create_session: Callable[[Client], Awaitable[Session]]
    resume_session: Callable[[Client, str], Awaitable[Session]]
    prompts: ServedPrompts
    write_note: Callable[[str], object]


async def serve_standard_streams(launch: ServeLaunch) -> None:
    """Serve over stdin and stdout until stdin ends, or this is cancelled. Raises CodeloopError."""
    await asyncio.to_thread(_preload_mcp)
    async with open_standard_wire() as (inbound, outbound), launch.open_target() as target:
        for note in target.notes:
            launch.write_note(note)
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
    """Return a server of the `mcp` package that answers with these handlers."""
    from mcp.server import Server

    return Server(
        "codeloop",
        version=__version__,
        title="codeloop",
        instructions=_INSTRUCTIONS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call_tool,
    )


class Calls:
    """Handles the requests of the MCP client: listing tools and calling one."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def list_tools(
        self, _context: "ServerRequestContext[Any]", _params: "PaginatedRequestParams | None"
    ) -> "ListToolsResult":
        """Return the four tools with the schemas of their arguments and results."""
        from mcp_types import ListToolsResult, Tool, ToolAnnotations

        tools = [
            Tool(
                name=name,
                title=row.title,
                description=row.description,
                input_schema=argument_schema(row),
                output_schema=result_schema(name),
                annotations=ToolAnnotations(read_only_hint=row.is_read_only, open_world_hint=not row.is_read_only),
            )
            for name, row in TOOLS.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(
        self, context: "ServerRequestContext[Any]", params: "CallToolRequestParams"
    ) -> "CallToolResult | InputRequiredResult":
        """Carry out a call. Errors are returned as results, so that the calling model reads them."""
        if params.name not in TOOLS:
            return _fail(f"Unknown tool {params.name!r}. Available tools: {', '.join(TOOLS)}.")
        try:
            arguments = read_arguments(params.name, params.arguments or {})
            return await self._carry_out(context, params, arguments)
        except msgspec.ValidationError as error:
            return _fail(f"Invalid arguments for {params.name}: {error}.")
        except CodeloopError as error:
            return _fail(str(error))

    async def _carry_out(
        self, context: "ServerRequestContext[Any]", params: "CallToolRequestParams", arguments: ToolArguments
    ) -> "CallToolResult | InputRequiredResult":
        turns, can_ask = self._turns, _can_ask(context)
        if params.request_state is not None:  # the client repeats the call with the answers
            served_session = await turns.find(params.request_state)
            for name, response in (params.input_responses or {}).items():
                if (request := served_session.pending_requests.pop(name, None)) is not None:
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
        """Follow the session for as long as the caller asked. A cancelled call stops the turn that it started."""
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
        """Report progress and ask the session's questions until it is idle, at most `wait` seconds (None: no limit).

        An open question is waited for even after `wait`. A client that takes no requests gets the questions at once.
        """
        loop = asyncio.get_running_loop()
        start, report_count, last_report = loop.time(), 0, 0.0
        next_line = max(len(served_session.lines) - _EARLIER_LINES, 0)
        question_task: asyncio.Task[None] | None = None
        try:
            while served_session.is_working:
                change = served_session.change
                if served_session.pending_requests and not context.session.can_send_request:
                    return await self._require_input(served_session)
                question_task = self._update_question_task(context, served_session, question_task)
                if question_task is not None and question_task.done():
                    question_task = None
                    continue
                seconds = loop.time() - start
                if wait is not None and seconds >= wait and question_task is None:
                    break
                is_sign_of_life_due = seconds - last_report >= MCP_KEEP_ALIVE.seconds
                sign_of_life = [f"works, {seconds:.0f} s"] if is_sign_of_life_due else []
                for line in served_session.lines[next_line:] or sign_of_life:
                    report_count, last_report = report_count + 1, seconds
                    await context.session.report_progress(report_count, None, line)
                next_line = len(served_session.lines)
                timeout = MCP_KEEP_ALIVE.seconds
                if wait is not None and question_task is None:
                    timeout = min(timeout, wait - seconds)
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await change.wait()
        finally:
            if question_task is not None:
                question_task.cancel()
                served_session.asked_id = ""
        return _result(await self._turns.report(served_session))

    def _update_question_task(
        self,
        context: "ServerRequestContext[Any]",
        served_session: ServedSession,
        question_task: asyncio.Task[None] | None,
    ) -> asyncio.Task[None] | None:
        """Return the task that asks the user: the given one, or a new one that asks the oldest pending request.

        A request that another call already asks is left to that call. The given task is cancelled when its request
        was answered elsewhere or withdrawn.
        """
        if served_session.asked_id in served_session.pending_requests:
            return question_task
        if question_task is not None:
            question_task.cancel()
        elif request := next(iter(served_session.pending_requests.values()), None):
            served_session.asked_id = request.id
            question_task = asyncio.create_task(self._ask(context, served_session, request))
            question_task.add_done_callback(lambda _: served_session.touch())
        return question_task

    async def _ask(self, context: "ServerRequestContext[Any]", served_session: ServedSession, request: Request) -> None:
        """Ask the client's user. If the client fails to show the form, refuse the request: nobody can be asked."""
        from mcp import MCPError
        from pydantic import ValidationError

        form = await self._turns.form(request)
        if form is None:
            return
        try:
            answer = await context.session.elicit_form(form.message, form.schema, context.request_id)
        except (MCPError, ValidationError):
            await self._turns.refuse(served_session, request, NOBODY_MESSAGE)
        else:
            await self._turns.answer(request, _content(answer))
        served_session.pending_requests.pop(request.id, None)

    async def _require_input(self, served_session: ServedSession) -> "InputRequiredResult":
        """Return the result that asks all pending requests; the client repeats the call with the answers."""
        from mcp_types import InputRequiredResult

        pending = list(served_session.pending_requests.values())
        requests: dict[str, Any] = {each.id: await self._elicitation(each) for each in pending}
        return InputRequiredResult(input_requests=requests, request_state=served_session.session.id)

    async def _elicitation(self, request: Request) -> "ElicitRequest":
        from mcp_types import ElicitRequest, ElicitRequestFormParams

        form = await self._turns.form(request)
        if form is None:
            raise CodeloopError("Secrets can't be asked for through an MCP client.")
        return ElicitRequest(params=ElicitRequestFormParams(message=form.message, requested_schema=form.schema))


def _can_ask(context: "ServerRequestContext[Any]") -> bool:
    """Return whether the client shows forms. `elicitation` without a mode counts: it means forms."""
    capabilities = context.session.client_capabilities
    forms = capabilities.elicitation if capabilities is not None else None
    return forms is not None and (forms.form is not None or forms.url is None)


def _content(response: Any) -> JSON | None:
    """Return the values of a filled-in form; None: the user declined or cancelled."""
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
    """Return a report as a structured result: its session, its status, and its other fields that are not empty."""
    return {"session_id": report.session_id, "status": report.status, **msgspec.to_builtins(report)}


def _text(report: Report) -> str:
    """Return a report as text, for clients that do not read structured results."""
    totals = f"{report.steps} step{'' if report.steps == 1 else 's'}, ${report.cost:.4f}"
    lines = [f"[session_id {report.session_id}: {report.status}; {totals}]"]
    lines += [f"It asks: {report.asks}"] if report.asks else []
    lines += [report.message] if report.message else []
    lines += [f"Changed: {', '.join(report.changed)}"] if report.changed else []
    return "\n".join([*([f"{report.answer}\n"] if report.answer else []), *lines])


def _fail(text: str) -> "CallToolResult":
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _preload_mcp() -> None:
    """Import the `mcp` package. The import is slow: call this in a thread."""
    from mcp.server import Server

    del Server
