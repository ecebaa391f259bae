"""Prompts of servers as commands (`/server:prompt arguments`),
and completion of their arguments.
"""

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.cache.listing import ListedPrompt
from codeloop.extend.mcp.cache.table import McpTable
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.extend.template import find_word_spans, split_arguments
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.agents import Command
from codeloop.schema.api.mcp import CompleteMcpPrompt, McpPromptCompletion
from codeloop.schema.limits import MCP_COMPLETE
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure

if TYPE_CHECKING:
    from mcp import Client


def list_prompt_commands(table: McpTable) -> dict[str, Command]:
    """Return the known prompts of servers, by their command names."""
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
    arguments = " ".join(
        each.name if each.required else f"[{each.name}]" for each in prompt.arguments
    )
    return escape_controls(
        f"{prompt.description} ({arguments})" if arguments else prompt.description
    )


async def fetch_prompt(table: McpTable, command: str, text: str, ctx: ToolContext) -> str:
    """Get a prompt from a server with the arguments typed after its name.

    Words are assigned in order, `name=value` by name; the last argument takes the rest. Raises
    LookupError: there is no such command; ToolFailure, ServerFailed, Denied, Rejected.
    """
    name, listed_prompt = find_prompt(table, command)
    arguments = parse_arguments(listed_prompt, split_arguments(text))
    if missing := [
        each.name
        for each in listed_prompt.arguments
        if each.required and each.name not in arguments
    ]:
        raise ToolFailure(
            f"/{command} needs {', '.join(missing)}. Write: /{command} {_describe(listed_prompt)}"
        )
    server = table.running.by_name[name]
    if needs := await server.find_needs():
        await ctx.ask(*needs)
    answer: JSON = await server.request(partial(_get_prompt, listed_prompt.name, arguments), ctx)
    messages: list[JSON] = answer.get("messages") or []
    return "\n\n".join(filter(None, (_format_message(message) for message in messages)))


def find_prompt(table: McpTable, command: str) -> tuple[str, ListedPrompt]:
    """Return the server of a command and its prompt.
    Raises LookupError: there is no such command.
    """
    name, _, prompt = command.partition(":")
    # The name of a server may itself hold a colon.
    while name not in table.definitions and ":" in prompt:
        next_part, _, prompt = prompt.partition(":")
        name = f"{name}:{next_part}"
    listed_prompts = {each.name: each for each in table.listings[name].prompts}
    return name, listed_prompts[prompt]


def parse_arguments(prompt: ListedPrompt, pieces: list[str]) -> dict[str, str]:
    """Parse typed words into a prompt's arguments."""
    names = [each.name for each in prompt.arguments]
    arguments: dict[str, str] = {}
    plain: list[str] = []
    for word in pieces:
        name, equals, value = word.partition("=")
        if equals and name in names:
            arguments[name] = value
        else:
            plain.append(word)
    unset_names = [name for name in names if name not in arguments]
    for index, name in enumerate(unset_names[: len(plain)]):
        # The last argument takes all further words.
        arguments[name] = " ".join(plain[index:]) if name == unset_names[-1] else plain[index]
    return arguments


def _format_message(message: JSON) -> str:
    content: JSON = message.get("content") or {}
    resource: JSON = content.get("resource") or {}
    text = str(content.get("text") or resource.get("text") or "")
    return (
        text
        if message.get("role") != "assistant" or not text
        else f"<assistant>\n{text}\n</assistant>"
    )


async def _get_prompt(
    prompt: str, arguments: dict[str, str], client: "Client", _report_progress: Any
) -> Any:
    return await client.get_prompt(prompt, arguments)


# The protocol allows at most 100 values in one answer.
_MAX_COMPLETIONS = 100


async def complete_argument(table: McpTable, request: CompleteMcpPrompt) -> McpPromptCompletion:
    """Return completions of the argument being typed; none if the server has none, or is late."""
    try:
        name, prompt = find_prompt(table, request.command)
    except LookupError:
        return McpPromptCompletion()
    server: McpServer = table.running.by_name[name]
    if request.connect and not server.is_running and not await server.find_needs():
        # If this fails, the server's status says why.
        with suppress(ServerFailed):
            await server.connect()
    argument, start = _find_typed_argument(prompt, request.typed)
    if not argument or server.status.state != "connected":
        return McpPromptCompletion()
    value = request.typed[start:]
    arguments = parse_arguments(
        prompt, split_arguments(request.typed[:start].removesuffix(f"{argument}="))
    )
    answer: JSON = {}
    with suppress(ServerFailed, TimeoutError):
        async with asyncio.timeout(MCP_COMPLETE.seconds):
            answer = await server.request(
                partial(_complete, prompt.name, (argument, _unquote(value)), arguments), None
            )
    completion: JSON = answer.get("completion") or {}
    completions: list[str] = completion.get("values") or []
    values = [quoted for each in completions[:_MAX_COMPLETIONS] if (quoted := _quote(each))]
    return McpPromptCompletion(argument=argument, replaces=value, values=values)


def _find_typed_argument(prompt: ListedPrompt, typed: str) -> tuple[str, int]:
    """Return the argument being typed at the end ("" for none), and the start of its value.

    `typed`: what stands after the command's name, up to the cursor.
    """
    names = [each.name for each in prompt.arguments]
    spans = find_word_spans(typed)
    if typed.count('"') % 2:
        # The user is typing inside a quote, which keeps its words together.
        word_start = typed.rfind(" ", 0, typed.rfind('"')) + 1
        spans = [
            *((start, end) for start, end in spans if end <= word_start),
            (word_start, len(typed)),
        ]
    elif not spans or spans[-1][1] < len(typed):
        # After a blank a new word begins, which is still empty.
        spans.append((len(typed), len(typed)))
    last_start, _ = spans[-1]
    name, equals, _ = typed[last_start:].partition("=")
    if equals and name in names:
        return name, last_start + len(name) + 1
    plain_starts: list[int] = []
    for start, end in spans:
        name, equals, _ = typed[start:end].partition("=")
        if equals and name in names:
            names.remove(name)
        else:
            plain_starts.append(start)
    if not names:
        return "", len(typed)
    # The last argument takes all further words.
    index = min(len(plain_starts), len(names)) - 1
    return names[index], plain_starts[index]


def _unquote(value: str) -> str:
    """Return a value without its quotes, also where the closing one is still to come."""
    return re.sub(r"""["']""", "", value) if value[:1] in {'"', "'"} else value


def _quote(value: str) -> str:
    """Quote a value for typing; "": impossible, or it contains invisible characters."""
    if escape_controls(value) != value or "\n" in value or ('"' in value and "'" in value):
        return ""
    if not re.search(r"""[\s"']""", value):
        return value
    return f"'{value}'" if '"' in value else f'"{value}"'


async def _complete(
    prompt: str,
    argument: tuple[str, str],
    arguments: dict[str, str],
    client: "Client",
    _report_progress: Any,
) -> Any:
    """Request completions. `argument`: name and value of the one being typed;
    `arguments`: those before it.
    """
    from mcp_types import CompleteResult, Completion, PromptReference

    if client.server_capabilities.completions is None:
        return CompleteResult(completion=Completion(values=[]))
    name, value = argument
    return await client.complete(
        PromptReference(name=prompt), {"name": name, "value": value}, arguments
    )
