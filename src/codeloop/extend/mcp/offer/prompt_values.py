"""What an argument of a server's prompt can be, asked of the server while it is typed."""

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.known.listing import ListedPrompt
from codeloop.extend.mcp.known.table import McpTable
from codeloop.extend.mcp.link.failures import ServerFailed
from codeloop.extend.mcp.offer.prompts import arguments_of, prompt_named
from codeloop.extend.mcp.server import McpServer
from codeloop.extend.template import word_spans, words
from codeloop.kit.terminal_text import inert
from codeloop.schema.api.project import CompleteMcpPrompt, McpPromptCompletion
from codeloop.schema.limits import MCP_COMPLETE
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp import Client

_MOST = 100
"""Values that a server may give at once, as the protocol has it."""


async def argument_values(table: McpTable, asked: CompleteMcpPrompt) -> McpPromptCompletion:
    """Return the values of the argument that is typed; none where the server has none, or does not say in time."""
    try:
        name, prompt = prompt_named(table, asked.command)
    except LookupError:
        return McpPromptCompletion()
    server: McpServer = table.running.by_name[name]
    if asked.connect and not server.is_running and not await server.needs():
        with suppress(ServerFailed):  # its status says why
            await server.connect()
    argument, start = _being_typed(prompt, asked.typed)
    if not argument or server.status.state != "connected":
        return McpPromptCompletion()
    value = asked.typed[start:]
    given = arguments_of(prompt, words(asked.typed[:start].removesuffix(f"{argument}=")))
    answer: JSON = {}
    with suppress(ServerFailed, TimeoutError):
        async with asyncio.timeout(MCP_COMPLETE.seconds):
            answer = await server.request(partial(_completed, prompt.name, (argument, _plain(value)), given), None)
    completion: JSON = answer.get("completion") or {}
    found: list[str] = completion.get("values") or []
    values = [quoted for each in found[:_MOST] if (quoted := _quoted(each))]
    return McpPromptCompletion(argument=argument, replaces=value, values=values)


def _being_typed(prompt: ListedPrompt, typed: str) -> tuple[str, int]:
    """Return the argument that is typed at the end, "" where there is none, and where its value begins."""
    names = [each.name for each in prompt.arguments]
    spans = word_spans(typed)
    if typed.count('"') % 2:  # a quote that is open keeps its words together
        opened = typed.rfind(" ", 0, typed.rfind('"')) + 1
        spans = [*((start, end) for start, end in spans if end <= opened), (opened, len(typed))]
    elif not spans or spans[-1][1] < len(typed):
        spans.append((len(typed), len(typed)))
    begun = spans[-1][0]
    name, is_named, _ = typed[begun:].partition("=")
    if is_named and name in names:
        return name, begun + len(name) + 1
    plain: list[int] = []
    for start, end in spans:
        name, is_named, _ = typed[start:end].partition("=")
        if is_named and name in names:
            names.remove(name)
        else:
            plain.append(start)
    if not names:
        return "", len(typed)
    place = min(len(plain), len(names)) - 1  # the last argument takes the rest
    return names[place], plain[place]


def _plain(value: str) -> str:
    """Return a value without its quotes, also where the closing one is still to come."""
    return re.sub(r"""["']""", "", value) if value[:1] in {'"', "'"} else value


def _quoted(value: str) -> str:
    """Return a value as it is typed; "": it can't be, or it holds what a person would not see."""
    if inert(value) != value or "\n" in value or ('"' in value and "'" in value):
        return ""
    if not re.search(r"""[\s"']""", value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


async def _completed(
    prompt: str, argument: tuple[str, str], given: dict[str, str], client: "Client", _heard: Any
) -> Any:
    from mcp_types import CompleteResult, Completion, PromptReference

    if client.server_capabilities.completions is None:
        return CompleteResult(completion=Completion(values=[]))
    name, value = argument
    return await client.complete(PromptReference(name=prompt), {"name": name, "value": value}, given)
