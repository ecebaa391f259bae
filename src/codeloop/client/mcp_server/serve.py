"""The protocol of `codeloop mcp serve`: handles tool calls, returns reports,
and passes questions to the client.

With older protocol versions the server sends the client a request with the question.
With the newest version the
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
from codeloop.client.mcp_server.results import join_reports, make_error_result, make_result
from codeloop.client.mcp_server.served_session import ServedSession
from codeloop.client.mcp_server.served_sessions import PromptOptions, ServedSessions
from codeloop.client.mcp_server.stdio_streams import open_stdio_streams
from codeloop.client.mcp_server.tools import (
    TOOLS,
    ContinueArguments,
    PromptArguments,
    StatusArguments,
    StopArguments,
    ToolArguments,
    build_argument_schema,
    build_result_schema,
    read_arguments,
)
from codeloop.client.questions.forms import Request
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
"""Lines about earlier steps that are reported when a call begins to wait."""


class ServeLaunch(Struct, frozen=True):
    """What the flags decide about serving: how the project and its sessions are opened,
    and the options of prompts.

    `write_note` shows a line to the user.
    """

    open_target: Callable[[], AbstractAsyncContextManager[Target]]
    create_session: Callable[[Client], Awaitable[Session]]
    resume_session: Callable[[Client, str], Awaitable[Session]]
    prompts: PromptOptions
    write_note: Callable[[str], object]


async def serve_stdio(launch: ServeLaunch) -> None:
    """Serve over stdin and stdout until stdin ends, or this is cancelled. Raises CodeloopError."""
    # The import takes long, and would block the event loop.
    await asyncio.to_thread(_preload_mcp)
    async with open_stdio_streams() as (inbound, outbound), launch.open_target() as target:
        for note in target.notes:
            launch.write_note(note)
        client = target.client
        sessions = ServedSessions(
            client,
            launch.prompts,
            partial(launch.create_session, client),
            partial(launch.resume_session, client),
        )
        follow_task = asyncio.create_task(sessions.follow())
        try:
            server = create_server(McpRequestHandler(sessions))
            await server.run(inbound, outbound, server.create_initialization_options())
        finally:
            await sessions.close()
            follow_task.cancel()
            await asyncio.wait({follow_task})


def create_server(handler: "McpRequestHandler") -> "Server[Any]":
    """Return a server of the `mcp` package that answers with these handlers."""
    from mcp.server import Server

    return Server(
        "codeloop",
        version=__version__,
        title="codeloop",
        instructions=_INSTRUCTIONS,
        on_list_tools=handler.list_tools,
        on_call_tool=handler.call_tool,
    )


class McpRequestHandler:
    """Handles the requests of the MCP client: listing tools and calling one."""

    def __init__(self, sessions: ServedSessions) -> None:
        self._sessions = sessions

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
                input_schema=build_argument_schema(row),
                output_schema=build_result_schema(name),
                annotations=ToolAnnotations(
                    read_only_hint=row.is_read_only, open_world_hint=not row.is_read_only
                ),
            )
            for name, row in TOOLS.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(
        self, context: "ServerRequestContext[Any]", params: "CallToolRequestParams"
    ) -> "CallToolResult | InputRequiredResult":
        """Carry out a call. Errors are returned as results,
        so that the calling model reads them.
        """
        if params.name not in TOOLS:
            return make_error_result(
                f"Unknown tool {params.name!r}. Available tools: {', '.join(TOOLS)}."
            )
        try:
            arguments = read_arguments(params.name, params.arguments or {})
            return await self._run_tool(context, params, arguments)
        except msgspec.ValidationError as error:
            return make_error_result(f"Invalid arguments for {params.name}: {error}.")
        except CodeloopError as error:
            return make_error_result(str(error))

    async def _run_tool(
        self,
        context: "ServerRequestContext[Any]",
        params: "CallToolRequestParams",
        arguments: ToolArguments,
    ) -> "CallToolResult | InputRequiredResult":
        sessions, can_ask = self._sessions, _can_show_forms(context)
        # The newest protocol version: the client repeats the call with the answers;
        # the prompt is not sent again.
        if params.request_state is not None:
            served_session = await sessions.find(params.request_state)
            for name, response in (params.input_responses or {}).items():
                if (request := served_session.pending_requests.pop(name, None)) is not None:
                    await sessions.answer(request, _read_form(response))
            return await self._wait_for_result(context, served_session, arguments)
        match arguments:
            case PromptArguments():
                served_session = await sessions.start(arguments.prompt, can_ask=can_ask)
            case ContinueArguments():
                served_session = await sessions.resume(
                    arguments.session_id, arguments.prompt, can_ask=can_ask
                )
            case StatusArguments(session_id=""):
                return join_reports(
                    [await sessions.report(each) for each in list(sessions.by_id.values())]
                )
            case StatusArguments():
                served_session = await sessions.find(arguments.session_id)
            case StopArguments():
                served_session = await sessions.find(arguments.session_id)
                await sessions.stop(served_session)
        return await self._wait_for_result(context, served_session, arguments)

    async def _wait_for_result(
        self,
        context: "ServerRequestContext[Any]",
        served_session: ServedSession,
        arguments: ToolArguments,
    ) -> "CallToolResult | InputRequiredResult":
        """Wait for the session as long as the arguments say.
        A cancelled call stops the turn that it started.
        """
        try:
            return await self._report_until_idle(
                context,
                served_session,
                None if isinstance(arguments, StopArguments) else arguments.wait,
            )
        except asyncio.CancelledError:
            # In the background: the cancelled call can't wait any more.
            if isinstance(arguments, PromptArguments | ContinueArguments):
                self._sessions.stop_in_background(served_session)
            raise

    async def _report_until_idle(
        self,
        context: "ServerRequestContext[Any]",
        served_session: ServedSession,
        wait: float | None,
    ) -> "CallToolResult | InputRequiredResult":
        """Report progress and ask the session's questions until it is idle,
        at most `wait` seconds (None: no limit).

        An open question is waited for even after `wait`.
        A client that takes no requests gets the questions at once.
        """
        loop = asyncio.get_running_loop()
        start, report_count, last_report = loop.time(), 0, 0.0
        next_line = max(len(served_session.lines) - _EARLIER_LINES, 0)
        question_task: asyncio.Task[None] | None = None
        try:
            while served_session.is_working:
                # Taken before the state is read: a change in between then ends
                # the wait below at once.
                change = served_session.change
                if served_session.pending_requests and not context.session.can_send_request:
                    return await self._require_input(served_session)
                question_task = self._update_question_task(context, served_session, question_task)
                if question_task is not None and question_task.done():
                    question_task = None
                    continue
                elapsed = loop.time() - start
                if wait is not None and elapsed >= wait and question_task is None:
                    break
                # Clients end a call that reports no progress for long.
                is_sign_of_life_due = elapsed - last_report >= MCP_KEEP_ALIVE.seconds
                sign_of_life = [f"works, {elapsed:.0f} s"] if is_sign_of_life_due else []
                for line in served_session.lines[next_line:] or sign_of_life:
                    report_count, last_report = report_count + 1, elapsed
                    await context.session.report_progress(report_count, None, line)
                next_line = len(served_session.lines)
                timeout = MCP_KEEP_ALIVE.seconds
                if wait is not None and question_task is None:
                    timeout = min(timeout, wait - elapsed)
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await change.wait()
        finally:
            if question_task is not None:
                question_task.cancel()
                served_session.asked_id = ""
        return make_result(await self._sessions.report(served_session))

    def _update_question_task(
        self,
        context: "ServerRequestContext[Any]",
        served_session: ServedSession,
        question_task: asyncio.Task[None] | None,
    ) -> asyncio.Task[None] | None:
        """Return the task that asks the user: the given one,
        or a new one that asks the oldest pending request.

        A request that another call already asks is left to that call. The given task is cancelled
        when its request was answered elsewhere or withdrawn.
        """
        if served_session.asked_id in served_session.pending_requests:
            return question_task
        if question_task is not None:
            question_task.cancel()
        elif request := next(iter(served_session.pending_requests.values()), None):
            served_session.asked_id = request.id
            question_task = asyncio.create_task(self._ask(context, served_session, request))
            question_task.add_done_callback(lambda _: served_session.announce_change())
        return question_task

    async def _ask(
        self, context: "ServerRequestContext[Any]", served_session: ServedSession, request: Request
    ) -> None:
        """Ask the client's user. If the client fails to show the form,
        refuse the request: nobody can be asked.
        """
        from mcp import MCPError
        from pydantic import ValidationError

        form = await self._sessions.build_request_form(request)
        if form is None:
            return
        try:
            answer = await context.session.elicit_form(
                form.message, form.schema, context.request_id
            )
        # An error of the client, or an answer that does not have the form's fields.
        except (MCPError, ValidationError):
            await self._sessions.refuse(served_session, request, NOBODY_MESSAGE)
        else:
            await self._sessions.answer(request, _read_form(answer))
        served_session.pending_requests.pop(request.id, None)

    async def _require_input(self, served_session: ServedSession) -> "InputRequiredResult":
        """Return a result with all pending questions; the client answers by repeating the call."""
        from mcp_types import InputRequiredResult

        pending = list(served_session.pending_requests.values())
        requests: dict[str, Any] = {each.id: await self._make_elicitation(each) for each in pending}
        return InputRequiredResult(input_requests=requests, request_state=served_session.session.id)

    async def _make_elicitation(self, request: Request) -> "ElicitRequest":
        from mcp_types import ElicitRequest, ElicitRequestFormParams

        form = await self._sessions.build_request_form(request)
        if form is None:
            raise CodeloopError("Secrets can't be asked for through an MCP client.")
        return ElicitRequest(
            params=ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
        )


def _can_show_forms(context: "ServerRequestContext[Any]") -> bool:
    """Return whether the client shows forms."""
    capabilities = context.session.client_capabilities
    # Before there were modes, `elicitation` without one meant forms.
    forms = capabilities.elicitation if capabilities is not None else None
    return forms is not None and (forms.form is not None or forms.url is None)


def _read_form(response: Any) -> JSON | None:
    """Return the values of a form; None: the user declined or cancelled."""
    answer: ElicitResult = response
    if getattr(answer, "action", "decline") != "accept":
        return None
    return dict(answer.content or {})


def _preload_mcp() -> None:
    """Import the `mcp` package, which takes long: call this in a thread."""
    from mcp.server import Server

    del Server
