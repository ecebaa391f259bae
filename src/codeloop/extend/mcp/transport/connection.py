"""An open connection to a server: one task owns it, any task may call through it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from codeloop.extend.mcp.cache.listing import (
    ListedPrompt,
    ListedResource,
    ListedTool,
    Listing,
    PromptArgument,
)
from codeloop.extend.mcp.transport.change_stream import ChangeStream
from codeloop.extend.mcp.transport.failures import CONNECTION_CLOSED, describe_error
from codeloop.schema.bounds.extension import MCP_CALL_LONGEST
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_LIST_OTHER, MCP_PAGES, MCP_STOP, MCP_TOOLS, SHELL_TERM_TIME
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp import Client

# What is left out of lists is told to the user by name; a faulty list may be long.
_MAX_PROBLEMS = 20
_LIST_NAMES = {
    "tools": "tools",
    "resources": "resources",
    "resourceTemplates": "templates of resources",
    "prompts": "prompts",
}


async def _fetch_listing(client: "Client", transport: str, left_out: list[str]) -> Listing:
    """Return everything that a server offers. A list that it advertises but does
    not provide is left out. `left_out`: filled with what is left out of its answers.

    Raises what a request raises, and CodeloopError when it gives none of them.
    """
    capabilities = client.server_capabilities
    requests: dict[str, Callable[..., Awaitable[Any]]] = {}
    if capabilities.tools:
        requests["tools"] = client.list_tools
    if capabilities.resources:
        requests |= {
            "resources": client.list_resources,
            "resourceTemplates": client.list_resource_templates,
        }
    if capabilities.prompts:
        requests["prompts"] = client.list_prompts
    errors: dict[str, Exception] = {}
    left_out.clear()
    items = await asyncio.gather(
        *(_fetch_pages(request, name, errors) for name, request in requests.items())
    )
    lists = dict(zip(requests, items, strict=True))
    problems = [
        f"its {_LIST_NAMES[name]} can't be listed: {describe_error(error)}"
        for name, error in errors.items()
    ]
    if errors and len(errors) == len(requests):
        raise CodeloopError(problems[0]) from next(iter(errors.values()))
    problems += dict.fromkeys(left_out)
    tools = lists.get("tools", [])
    task_tools = [tool["name"] for tool in tools if _needs_task(tool)]
    problems += [
        f"its tool {name} runs only as a task, which is not supported" for name in task_tools
    ]
    server_info = client.server_info
    return Listing(
        server=f"{server_info.name} {server_info.version}".strip() if server_info else "",
        protocol=client.protocol_version,
        transport=transport,
        instructions=client.instructions or "",
        problems=problems,
        tools=[_convert_tool(tool) for tool in tools if tool["name"] not in task_tools],
        resources=[
            _convert_resource(each)
            for name in ("resources", "resourceTemplates")
            for each in lists.get(name, [])
        ],
        prompts=[_convert_prompt(prompt) for prompt in lists.get("prompts", [])],
    )


def _needs_task(tool: JSON) -> bool:
    execution: JSON = tool.get("execution") or {}
    return execution.get("taskSupport") == "required"


async def _fetch_pages(
    request: Callable[..., Awaitable[Any]], name: str, errors: dict[str, Exception]
) -> list[JSON]:
    """Return the items of all pages of one list; after an error, which goes into `errors`,
    those of earlier pages.

    Raises what ends the connection. For the list of tools only a missing handler is tolerated.
    """
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    items: list[JSON] = []
    cursor: str | None = None
    try:
        async with asyncio.timeout(None if name == "tools" else MCP_LIST_OTHER.seconds):
            for _ in range(MCP_PAGES.value):
                page: JSON = (await request(cursor=cursor)).model_dump(
                    by_alias=True, mode="json", exclude_none=True
                )
                items += page.get(name, [])
                cursor = page.get("nextCursor")
                # Both are bounded, since a faulty server may repeat one page forever.
                if not cursor or len(items) >= MCP_TOOLS.value:
                    break
    except (MCPError, ValueError, TimeoutError) as error:
        code = getattr(error, "code", None)
        # Without its tools a server is of no use; its other lists may fail.
        if code == CONNECTION_CLOSED or (name == "tools" and code != METHOD_NOT_FOUND):
            raise
        errors[name] = error
    return items[: MCP_TOOLS.value]


def _convert_tool(data: JSON) -> ListedTool:
    hints: JSON = data.get("annotations") or {}
    return ListedTool(
        name=data["name"],
        description=data.get("description", ""),
        schema=data.get("inputSchema", {}),
        title=data.get("title") or hints.get("title") or "",
        read_only=hints.get("readOnlyHint") is True,
    )


def _convert_resource(data: JSON) -> ListedResource:
    return ListedResource(
        uri=data.get("uri") or data.get("uriTemplate") or "",
        name=data["name"],
        description=data.get("description", ""),
        mime=data.get("mimeType", ""),
        is_template="uriTemplate" in data,
    )


def _convert_prompt(data: JSON) -> ListedPrompt:
    arguments = [
        PromptArgument(
            name=each["name"],
            description=each.get("description", ""),
            required=each.get("required") is True,
        )
        for each in data.get("arguments", [])
    ]
    return ListedPrompt(
        name=data["name"], description=data.get("description", ""), arguments=arguments
    )


ReportProgress = Callable[[float, float | None, str | None], None]
OpenClient = Callable[["ServerConnection"], "AbstractAsyncContextManager[Client]"]


class ServerConnection:
    """A connection. `end_reason`: why it has ended, or ""; `fatal`: the error that ended it.

    `status`: the HTTP status of the latest answer, 0 before one; `refusal`: the same in words,
    with the wait that the server asks for, "" below 400.
    `open_client` opens the package's client.
    `listing_seconds`: how long listing what the server offers may take.
    """

    def __init__(self, transport: str, open_client: OpenClient, listing_seconds: float) -> None:
        self.transport = transport
        self.end_reason = ""
        self.fatal: BaseException | None = None
        self.status = 0
        self.refusal = ""
        self.on_end: Callable[[], None] = lambda: None
        self._open_client = open_client
        self._listing_seconds = listing_seconds
        self._client: Client | None = None
        self._changes: ChangeStream | None = None
        self._owner: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._left_out: list[str] = []

    def note_problem(self, problem: str) -> None:
        """Note that something in the server's lists can't be used, and why; not without a bound."""
        if len(self._left_out) < _MAX_PROBLEMS:
            self._left_out.append(problem)

    async def open(self, seconds: float) -> Listing | None:
        """Start or reach the server and return its listing;
        None: it ended, `fatal` and `end_reason` say why.

        Raises TimeoutError, after cleaning up, as on cancellation.
        """
        future: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        # The package's contexts (anyio) must be entered and left by one task, which can't be the
        # caller's: callers come and go.
        self._owner = asyncio.create_task(self._hold_open(future))
        is_listed = False
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({self._owner, future}, return_when=asyncio.FIRST_COMPLETED)
            is_listed = future.done()
        finally:
            if not is_listed:
                await self.close()
        self._note_end()
        if not is_listed:
            return None
        self._owner.add_done_callback(lambda _: self._note_loss())
        return future.result()

    async def close(self) -> None:
        """End the connection, and a local server with its processes."""
        if self._owner is None:
            return
        self._closing.set()
        if self._client is None:
            self._owner.cancel()
        # Streams and program have deadlines of their own, one after the other.
        max_seconds = 2 * MCP_STOP.seconds + 2 * SHELL_TERM_TIME.seconds
        _, unfinished = await asyncio.wait({self._owner}, timeout=max_seconds)
        if unfinished:
            self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=max_seconds)

    def end(self, why: str) -> None:
        """Mark the server as gone."""
        if not self._closing.is_set():
            self.end_reason = why
            self._closing.set()
            self.on_end()

    @property
    def is_open(self) -> bool:
        """Return whether requests can be made."""
        return self._client is not None and not self._closing.is_set()

    async def request(
        self,
        make: "Callable[[Client, ReportProgress], Awaitable[Any]]",
        max_seconds: float,
        report: ReportProgress,
    ) -> JSON:
        """Make one request and return its result as JSON.
        It ends after `max_seconds` without progress.

        Progress, which `report` gets, extends it at most to `MCP_CALL_LONGEST`.

        Raises the request's error, TimeoutError, or CodeloopError when the
        connection ends meanwhile.
        """
        client, owner = self._client, self._owner
        if client is None or owner is None:
            raise CodeloopError(self.end_reason or "it is not connected")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max_seconds
        last_deadline = loop.time() + max(max_seconds, MCP_CALL_LONGEST.seconds)

        def note_progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal deadline
            deadline = min(loop.time() + max_seconds, last_deadline)
            report(progress, total, message)

        async def send() -> JSON:
            result = await make(client, note_progress)
            return cast("JSON", result.model_dump(by_alias=True, mode="json", exclude_none=True))

        work = asyncio.create_task(send())
        try:
            while not work.done():
                seconds_left = deadline - loop.time()
                if seconds_left <= 0:
                    raise TimeoutError(
                        f"it did not answer in time ({max_seconds:g} s; `timeout` in its entry, in ms, is another)"
                    )
                await asyncio.wait(
                    {work, owner}, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED
                )
                # Without its owner the connection is gone,
                # and the package would wait for an answer forever.
                if owner.done() and not work.done():
                    break
        finally:
            # A late answer is dropped, and the server is told that the request is cancelled.
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=MCP_STOP.seconds)
        # The package reports only that the connection is closed: its owner knows the cause.
        if (
            not work.cancelled()
            and work.done()
            and getattr(work.exception(), "code", None) == CONNECTION_CLOSED
        ):
            # The owner task records the reason of the end.
            await asyncio.wait({owner}, timeout=MCP_STOP.seconds)
        if work.cancelled() or not work.done():
            raise CodeloopError(self.end_reason or "the connection ended")
        return work.result()

    async def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource. Raises what a request raises."""
        if self._changes is not None:
            async with asyncio.timeout(self._listing_seconds):
                await self._changes.watch(uri)

    async def fetch_listing(self) -> Listing:
        """List the server's offers now. Raises what a request raises."""
        if self._client is None:
            raise CodeloopError(self.end_reason or "it is not connected")
        async with asyncio.timeout(self._listing_seconds):
            return await _fetch_listing(self._client, self.transport, self._left_out)

    async def _hold_open(self, future: "asyncio.Future[Listing]") -> None:
        """Hold the connection from its opening to its end, in one task."""
        async with self._open_client(self) as client:
            try:
                is_listed = False
                try:
                    async with asyncio.timeout(self._listing_seconds):
                        listing = await _fetch_listing(client, self.transport, self._left_out)
                    is_listed = True
                finally:
                    if not is_listed:
                        # The listing has failed; the end of the program, which follows now,
                        # is not the cause.
                        self._closing.set()
                self._client, self._changes = client, ChangeStream(client)
                future.set_result(listing)
                listening = asyncio.create_task(self._changes.run())
                try:
                    await self._closing.wait()
                finally:
                    listening.cancel()
                    await asyncio.wait({listening}, timeout=MCP_STOP.seconds)
            finally:
                self._client = self._changes = None

    def _note_loss(self) -> None:
        """Handle the end of the owner task, as it may end by itself."""
        self._note_end()
        self.end("the connection was lost")

    def _note_end(self) -> None:
        """Set `fatal` to the error of the owner task, if that has ended;
        `end_reason` is set by `end` alone.
        """
        owner = self._owner
        if owner is not None and owner.done() and not owner.cancelled():
            self.fatal = owner.exception()
