"""Tools that connected clients offer to a session and run themselves,
such as the functions of a library's user.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.api.client_tools import (
    AnswerToolCall,
    AskForToolCall,
    ClientTool,
    OfferTools,
    ReportToolCall,
    ToolPermission,
    ToolsOffered,
)
from codeloop.schema.bounds.extension import CLIENT_OFFERS, CLIENT_TOOL_CALL, CLIENT_TOOLS
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.live_events import ClientToolChanged, LiveEvent
from codeloop.schema.part import FilePart
from codeloop.schema.permission import Need, Writes
from codeloop.schema.resources import ClientToolCall
from codeloop.schema.wire import JSON, replace
from codeloop.tool.batch import make_batch_tool
from codeloop.tool.tool import (
    NO_TRAITS,
    ExternalParameters,
    Tool,
    ToolContext,
    ToolFailure,
    ToolResult,
    Traits,
)
from codeloop.tool.toolbox import Toolbox

CLIENT_GONE_MESSAGE = (
    "The program that offers the tool {} is gone, so it can't be called any "
    "more. Go on without it, and say so."
)
CLIENT_LATE_MESSAGE = (
    "The program that offers the tool {} did not answer within {:g} s. Look "
    "whether the call had an effect."
)


class WaitingCall(Struct):
    """A call that a client is running. `request`: what the client was told of it."""

    request: ClientToolCall
    ctx: ToolContext
    answer: asyncio.Future[ToolResult]
    deadline: asyncio.Timeout

    def renew(self) -> None:
        """Restart the client's deadline, unless the call has ended."""
        if not self.answer.done():
            self.deadline.reschedule(asyncio.get_running_loop().time() + CLIENT_TOOL_CALL.seconds)


class ToolOffer(Struct):
    """One client's offer to a session. `timer` ends it at the time `until` (ms since the epoch)."""

    id: str
    session_id: str
    tools: list[ClientTool]
    timer: asyncio.TimerHandle | None = None
    until: int = 0
    is_over: bool = False
    calls: dict[str, WaitingCall] = struct_field(default_factory=dict[str, WaitingCall])


class ClientTools:
    """The offers of one project's clients.

    `publish` sends a live event to the clients. `find_agent` returns the agent
    of a session's message.
    """

    def __init__(
        self, publish: Callable[[LiveEvent], None], find_agent: Callable[[str, str], str]
    ) -> None:
        self._publish = publish
        self._find_agent = find_agent
        self._offers: dict[tuple[str, str], ToolOffer] = {}
        """By session and id of the client's offer."""

    @property
    def is_busy(self) -> bool:
        """Whether there is any offer."""
        return bool(self._offers)

    async def close(self) -> None:
        """End every offer."""
        # A copy, since `_end_offer` removes the offer from the dictionary.
        for offer in list(self._offers.values()):
            self._end_offer(offer)

    def offer(self, args: OfferTools) -> ToolsOffered:
        """Add or renew an offer. Raises OperationError when too many clients offer something."""
        key = (args.session_id, args.lease_id)
        offer = self._offers.get(key)
        if offer is None:
            if (
                sum(session_id == args.session_id for session_id, _ in self._offers)
                >= CLIENT_OFFERS.value
            ):
                raise OperationError(
                    "BadRequest",
                    f"{CLIENT_OFFERS.value} clients offer tools to this session. Withdraw one.",
                )
            offer = self._offers[key] = ToolOffer(args.lease_id, args.session_id, args.tools)
        offer.tools = args.tools
        if offer.timer is not None:
            offer.timer.cancel()
        # An offer is a lease: a client that is killed, or whose network is gone,
        # is noticed because it does not renew it.
        offer.timer = asyncio.get_running_loop().call_later(
            CLIENT_TOOLS.seconds, self._end_offer, offer
        )
        offer.until = now_ms() + CLIENT_TOOLS.value
        # The pending calls are listed in each renewal, so that a call whose event was lost with the
        # stream still reaches the client.
        return ToolsOffered(
            until=offer.until, calls=[call.request for call in offer.calls.values()]
        )

    def withdraw(self, session_id: str, lease_id: str) -> bool:
        """End an offer; return whether there was one."""
        offer = self._offers.get((session_id, lease_id))
        if offer is not None:
            self._end_offer(offer)
        return offer is not None

    def answer(self, args: AnswerToolCall) -> bool:
        """End a call with its client's answer. Raises OperationError (NotFoundError)
        when it is over.
        """
        call = self._get_call(args.session_id, args.lease_id, args.request_id)
        if args.error is not None:
            call.answer.set_exception(
                ToolFailure(args.error or f"The tool {call.request.tool} failed.", args.metadata)
            )
            return True
        session_id, message_id = call.request.session_id, call.request.message_id
        files = tuple(
            FilePart(
                id=new_id("prt"),
                session_id=session_id,
                message_id=message_id,
                mime=each.mime,
                url=each.url,
                filename=each.filename,
            )
            for each in args.attachments
        )
        title = escape_controls(args.title) or call.request.tool
        call.answer.set_result(ToolResult(title, args.output, args.metadata, files))
        return True

    async def ask(self, args: AskForToolCall) -> ToolPermission:
        """Ask for permission on behalf of a call; a refusal ends the call.
        Raises as `answer` does.
        """
        call = self._get_call(args.session_id, args.lease_id, args.request_id)
        need = Need(
            permission=args.permission,
            patterns=tuple(args.patterns),
            always=tuple(args.always),
            metadata={"tool": call.request.tool, **args.metadata},
            writes=Writes(),
        )
        asking = asyncio.ensure_future(call.ctx.ask(need))
        # No deadline while the user decides: an answer may take days.
        call.deadline.reschedule(None)
        try:
            await asyncio.wait((asking, call.answer), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return ToolPermission(allowed=False, message="The call has ended.")
            await asking
        except (Denied, Rejected) as error:
            if not call.answer.done():
                call.answer.set_exception(error)
            return ToolPermission(allowed=False, message=str(error))
        finally:
            asking.cancel()
            call.renew()
        return ToolPermission(allowed=True)

    def report(self, args: ReportToolCall) -> bool:
        """Show the progress of a call, which gives it more time. Raises as `answer` does."""
        call = self._get_call(args.session_id, args.lease_id, args.request_id)
        call.renew()
        call.ctx.report(title=args.title and escape_controls(args.title), metadata=args.metadata)
        return True

    def build_toolbox(self, session_id: str, base: Toolbox) -> Toolbox:
        """Return the tools of a session: the project's,
        overridden by clients' tools of the same name.
        """
        offers = [offer for offer in self._offers.values() if offer.session_id == session_id]
        client_tools = {
            tool.name: self._make_tool(offer, tool) for offer in offers for tool in offer.tools
        }
        if not client_tools:
            return base
        # The batch tool is made anew: the project's own would not know the tools of clients.
        project_tools = [
            tool for tool in base.tools if tool.name not in client_tools and tool.name != "batch"
        ]
        tools = (*project_tools, *client_tools.values())
        return Toolbox((*tools, make_batch_tool(Toolbox(tools))), base.fit_specs, base.find_tool)

    def _make_tool(self, offer: ToolOffer, tool: ClientTool) -> Tool:
        schema: JSON = {"type": "object", "properties": {}, **tool.parameters}
        traits = (
            Traits(concurrent=True, need_traits=("read-only",)) if tool.read_only else NO_TRAITS
        )
        run = partial(self._run, offer, tool.name, traits)
        return Tool(
            tool.name,
            escape_controls(tool.description),
            ExternalParameters,
            run,
            traits,
            schema=schema,
            origin="the client",
        )

    async def _run(
        self, offer: ToolOffer, name: str, traits: Traits, arguments: JSON, ctx: ToolContext
    ) -> ToolResult:
        """Have the client run a call, once permitted. Raises ToolFailure, Denied, Rejected."""
        metadata: JSON = {"tool": name, "input": arguments}
        # A client's tool may change any file, unless the client says that it only reads.
        writes = None if traits.need_traits else Writes()
        need = Need(
            permission=name, patterns=("*",), always=("*",), metadata=metadata, writes=writes
        )
        await ctx.ask(replace(need, traits=traits.need_traits))
        # The offer may have ended while the user was asked.
        if offer.is_over:
            raise ToolFailure(CLIENT_GONE_MESSAGE.format(name))
        answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        request = ClientToolCall(
            request_id=new_id("tool"),
            lease_id=offer.id,
            state="called",
            session_id=ctx.session_id,
            message_id=ctx.message_id,
            call_id=ctx.call_id,
            agent=self._find_agent(ctx.session_id, ctx.message_id),
            tool=name,
            arguments=arguments,
            directory=str(ctx.workspace.directory),
            worktree=str(ctx.workspace.root),
        )
        try:
            async with asyncio.timeout(CLIENT_TOOL_CALL.seconds) as deadline:
                offer.calls[request.request_id] = WaitingCall(request, ctx, answer, deadline)
                self._publish(ClientToolChanged(properties=request))
                return await answer
        except TimeoutError:
            raise ToolFailure(CLIENT_LATE_MESSAGE.format(name, CLIENT_TOOL_CALL.seconds)) from None
        finally:
            offer.calls.pop(request.request_id, None)
            # The call timed out or was cancelled: the client is told,
            # so that it can stop working on it.
            if not answer.done() or answer.cancelled():
                self._publish(ClientToolChanged(properties=replace(request, state="ended")))

    def _get_call(self, session_id: str, lease_id: str, request_id: str) -> WaitingCall:
        offer = self._offers.get((session_id, lease_id))
        call = offer.calls.get(request_id) if offer is not None else None
        if call is None or call.answer.done():
            raise OperationError("NotFoundError", f"No call {request_id} waits for an answer.")
        return call

    def _end_offer(self, offer: ToolOffer) -> None:
        """End an offer; its pending calls fail."""
        if offer.timer is not None:
            offer.timer.cancel()
        offer.is_over = True
        self._offers.pop((offer.session_id, offer.id), None)
        for call in offer.calls.values():
            if not call.answer.done():
                call.answer.set_exception(
                    ToolFailure(CLIENT_GONE_MESSAGE.format(call.request.tool))
                )
