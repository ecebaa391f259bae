"""Prompts of servers as commands (`/server:prompt arguments`), and completion of their arguments."""

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.cache.listing import ListedPrompt
from codeloop.extend.mcp.cache.table import McpTable
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.extend.template import word_spans, words
from codeloop.kit.terminal_text import inert
from codeloop.schema.api.command import Command
from codeloop.schema.api.project import CompleteMcpPrompt, McpPromptCompletion
from codeloop.schema.limits import MCP_COMPLETE
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure

if TYPE_CHECKING:
    from mcp import Client


def prompts_of(table: McpTable) -> dict[str, Command]:
    """Return the cached prompts of servers, by their command names."""
    return {
        f"{server}:{each.name}": Command(
            name=f"{server}:{each.name}",
            template="",
            hints=[f"${number}" for number, _ in enumerate(each.arguments, 1)],
            description=_describe(each),
            source="mcp",
        )
        for server, listing in table.listings.items()
        for each in listing.prompts
    }


def _describe(prompt: ListedPrompt) -> str:
    named = " ".join(each.name if each.required else f"[{each.name}]" for each in prompt.arguments)
    return inert(f"{prompt.description} ({named})" if named else prompt.description)


async def prompt_text(table: McpTable, command: str, typed: str, ctx: ToolContext) -> str:
    """Get a prompt from a server with the arguments typed after its name. Raises ToolFailure, Denied, Rejected.

    Words are assigned in order, `name=value` by name; the last argument takes the rest.
    """
    name, listed = find_prompt(table, command)
    given = arguments_of(listed, words(typed))
    if missing := [each.name for each in listed.arguments if each.required and each.name not in given]:
        raise ToolFailure(f"/{command} needs {', '.join(missing)}. Write: /{command} {_describe(listed)}")
    server = table.running.by_name[name]
    if needs := await server.needs():
        await ctx.ask(*needs)
    answer: JSON = await server.request(partial(_get_prompt, listed.name, given), ctx)
    messages: list[JSON] = answer.get("messages") or []
    return "\n\n".join(filter(None, (_text(message) for message in messages)))


def find_prompt(table: McpTable, command: str) -> tuple[str, ListedPrompt]:
    """Return the server of a command and its prompt. Raises LookupError: there is no such command."""
    name, _, prompt = command.partition(":")
    while (name not in table.definitions) and ":" in prompt:
        more, _, prompt = prompt.partition(":")
        name = f"{name}:{more}"
    found = {each.name: each for each in table.listings[name].prompts}
    return name, found[prompt]


def arguments_of(prompt: ListedPrompt, typed: list[str]) -> dict[str, str]:
    """Parse typed words into a prompt's arguments."""
    names = [each.name for each in prompt.arguments]
    given: dict[str, str] = {}
    plain: list[str] = []
    for word in typed:
        name, found, value = word.partition("=")
        if found and name in names:
            given[name] = value
        else:
            plain.append(word)
    free = [name for name in names if name not in given]
    for index, name in enumerate(free):
        if index < len(plain):
            given[name] = " ".join(plain[index:]) if name == free[-1] else plain[index]
    return given


def _text(message: JSON) -> str:
    content: JSON = message.get("content") or {}
    resource: JSON = content.get("resource") or {}
    said = str(content.get("text") or resource.get("text") or "")
    return said if message.get("role") != "assistant" or not said else f"<assistant>\n{said}\n</assistant>"


async def _get_prompt(prompt: str, given: dict[str, str], client: "Client", _heard: Any) -> Any:
    return await client.get_prompt(prompt, given)


_MOST = 100
"""The protocol's maximum of values in one answer."""


async def argument_values(table: McpTable, asked: CompleteMcpPrompt) -> McpPromptCompletion:
    """Return completions of the argument being typed; none if the server has none, or is late."""
    try:
        name, prompt = find_prompt(table, asked.command)
    except LookupError:
        return McpPromptCompletion()
    server: McpServer = table.running.by_name[name]
    if asked.connect and not server.is_running and not await server.needs():
        with suppress(ServerFailed):  # its status says why
            await server.connect()
    argument, start = _find_typed_argument(prompt, asked.typed)
    if not argument or server.status.state != "connected":
        return McpPromptCompletion()
    value = asked.typed[start:]
    given = arguments_of(prompt, words(asked.typed[:start].removesuffix(f"{argument}=")))
    answer: JSON = {}
    with suppress(ServerFailed, TimeoutError):
        async with asyncio.timeout(MCP_COMPLETE.seconds):
            answer = await server.request(partial(_complete, prompt.name, (argument, _plain(value)), given), None)
    completion: JSON = answer.get("completion") or {}
    found: list[str] = completion.get("values") or []
    values = [quoted for each in found[:_MOST] if (quoted := _quote(each))]
    return McpPromptCompletion(argument=argument, replaces=value, values=values)


def _find_typed_argument(prompt: ListedPrompt, typed: str) -> tuple[str, int]:
    """Return the argument being typed at the end ("" for none), and the start of its value."""
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
    index = min(len(plain), len(names)) - 1  # the last argument takes the rest
    return names[index], plain[index]


def _plain(value: str) -> str:
    """Return a value without its quotes, also where the closing one is still to come."""
    return re.sub(r"""["']""", "", value) if value[:1] in {'"', "'"} else value


def _quote(value: str) -> str:
    """Quote a value for typing; "": impossible, or it contains invisible characters."""
    if inert(value) != value or "\n" in value or ('"' in value and "'" in value):
        return ""
    if not re.search(r"""[\s"']""", value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


async def _complete(
    prompt: str, argument: tuple[str, str], given: dict[str, str], client: "Client", _heard: Any
) -> Any:
    from mcp_types import CompleteResult, Completion, PromptReference

    if client.server_capabilities.completions is None:
        return CompleteResult(completion=Completion(values=[]))
    name, value = argument
    return await client.complete(PromptReference(name=prompt), {"name": name, "value": value}, given)
