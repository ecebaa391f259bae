"""Fetches everything that a server offers, its lists page by page."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.cache.listing import ListedPrompt, ListedResource, ListedTool, Listing, PromptArgument
from codeloop.extend.mcp.transport.failures import CONNECTION_CLOSED, describe_error
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_LIST_OTHER, MCP_PAGES, MCP_TOOLS
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp import Client

_LIST_NAMES = {
    "tools": "tools",
    "resources": "resources",
    "resourceTemplates": "templates of resources",
    "prompts": "prompts",
}


async def fetch_listing(client: "Client", transport: str) -> Listing:
    """Return everything that a server offers. A list that it advertises but does not provide is left out.

    Raises what a request raises, and CodeloopError when it gives none of them.
    """
    capabilities = client.server_capabilities
    requests: dict[str, Callable[..., Awaitable[Any]]] = {}
    if capabilities.tools:
        requests["tools"] = client.list_tools
    if capabilities.resources:
        requests |= {"resources": client.list_resources, "resourceTemplates": client.list_resource_templates}
    if capabilities.prompts:
        requests["prompts"] = client.list_prompts
    errors: dict[str, Exception] = {}
    items = await asyncio.gather(*(_fetch_pages(request, name, errors) for name, request in requests.items()))
    lists = dict(zip(requests, items, strict=True))
    problems = [f"its {_LIST_NAMES[name]} can't be listed: {describe_error(error)}" for name, error in errors.items()]
    if errors and len(errors) == len(requests):
        raise CodeloopError(problems[0]) from next(iter(errors.values()))
    tools = lists.get("tools", [])
    task_tools = [tool["name"] for tool in tools if _needs_task(tool)]
    problems += [f"its tool {name} runs only as a task, which is not supported" for name in task_tools]
    server_info = client.server_info
    return Listing(
        server=f"{server_info.name} {server_info.version}".strip() if server_info else "",
        protocol=client.protocol_version,
        transport=transport,
        instructions=client.instructions or "",
        problems=problems,
        tools=[_convert_tool(tool) for tool in tools if tool["name"] not in task_tools],
        resources=[
            _convert_resource(each) for name in ("resources", "resourceTemplates") for each in lists.get(name, [])
        ],
        prompts=[_convert_prompt(prompt) for prompt in lists.get("prompts", [])],
    )


def _needs_task(tool: JSON) -> bool:
    execution: JSON = tool.get("execution") or {}
    return execution.get("taskSupport") == "required"


async def _fetch_pages(request: Callable[..., Awaitable[Any]], name: str, errors: dict[str, Exception]) -> list[JSON]:
    """Return the items of all pages of one list; after an error, which goes into `errors`, those of earlier pages.

    Raises what ends the connection. For the list of tools only a missing handler is tolerated.
    """
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    items: list[JSON] = []
    cursor: str | None = None
    try:
        async with asyncio.timeout(None if name == "tools" else MCP_LIST_OTHER.seconds):
            for _ in range(MCP_PAGES.value):
                page: JSON = (await request(cursor=cursor)).model_dump(by_alias=True, mode="json", exclude_none=True)
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
            name=each["name"], description=each.get("description", ""), required=each.get("required") is True
        )
        for each in data.get("arguments", [])
    ]
    return ListedPrompt(name=data["name"], description=data.get("description", ""), arguments=arguments)
