"""Asking a server what it offers, page by page."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.known.listing import ListedPrompt, ListedResource, ListedTool, Listing, PromptArgument
from codeloop.schema.limits import MCP_PAGES, MCP_TOOLS
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp import Client


async def listing_of(client: "Client", transport: str) -> Listing:
    """Return everything that a server offers. Raises what a request raises."""
    can = client.server_capabilities
    tools = await _pages(client.list_tools, "tools") if can.tools else []
    resources = await _pages(client.list_resources, "resources") if can.resources else []
    templates = await _pages(client.list_resource_templates, "resourceTemplates") if can.resources else []
    prompts = await _pages(client.list_prompts, "prompts") if can.prompts else []
    about = client.server_info
    return Listing(
        server=f"{about.name} {about.version}".strip() if about else "",
        protocol=client.protocol_version,
        transport=transport,
        instructions=client.instructions or "",
        tools=[_tool(each) for each in tools],
        resources=[*map(_resource, resources), *map(_resource, templates)],
        prompts=[_prompt(each) for each in prompts],
    )


async def _pages(ask: Callable[..., Awaitable[Any]], name: str) -> list[JSON]:
    found: list[JSON] = []
    cursor: str | None = None
    for _ in range(MCP_PAGES.value):
        page: JSON = (await ask(cursor=cursor)).model_dump(by_alias=True, mode="json", exclude_none=True)
        found += page.get(name, [])
        cursor = page.get("nextCursor")
        if not cursor or len(found) >= MCP_TOOLS.value:
            break
    return found[: MCP_TOOLS.value]


def _tool(given: JSON) -> ListedTool:
    hints: JSON = given.get("annotations") or {}
    return ListedTool(
        name=given["name"],
        description=given.get("description", ""),
        schema=given.get("inputSchema", {}),
        title=given.get("title") or hints.get("title") or "",
        read_only=hints.get("readOnlyHint") is True,
    )


def _resource(given: JSON) -> ListedResource:
    return ListedResource(
        uri=given.get("uri") or given.get("uriTemplate") or "",
        name=given["name"],
        description=given.get("description", ""),
        mime=given.get("mimeType", ""),
        is_template="uriTemplate" in given,
    )


def _prompt(given: JSON) -> ListedPrompt:
    arguments = [
        PromptArgument(
            name=each["name"], description=each.get("description", ""), required=each.get("required") is True
        )
        for each in given.get("arguments", [])
    ]
    return ListedPrompt(name=given["name"], description=given.get("description", ""), arguments=arguments)
