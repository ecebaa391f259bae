"""Prompts of servers as commands: `/server:prompt arguments`."""

from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.known.listing import ListedPrompt
from codeloop.extend.mcp.known.table import McpTable
from codeloop.extend.template import words
from codeloop.kit.terminal_text import inert
from codeloop.schema.api.command import Command
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure

if TYPE_CHECKING:
    from mcp import Client


def prompts_of(table: McpTable) -> dict[str, Command]:
    """Return the prompts of the servers that are remembered, by their names as commands."""
    return {
        f"{server}:{each.name}": Command(
            name=f"{server}:{each.name}",
            template="",
            hints=[f"${number}" for number, _ in enumerate(each.arguments, 1)],
            description=_described(each),
            source="mcp",
        )
        for server, listing in table.listings.items()
        for each in listing.prompts
    }


def _described(prompt: ListedPrompt) -> str:
    named = " ".join(each.name if each.required else f"[{each.name}]" for each in prompt.arguments)
    return inert(f"{prompt.description} ({named})" if named else prompt.description)


async def prompt_text(table: McpTable, command: str, typed: str, ctx: ToolContext) -> str:
    """Get a prompt from a server with the arguments typed after its name. Raises ToolFailure, Denied, Rejected.

    Words are given in the order of the arguments, `name=value` to the one of that name; the last one takes the rest.
    """
    name, listed = prompt_named(table, command)
    given = arguments_of(listed, words(typed))
    if missing := [each.name for each in listed.arguments if each.required and each.name not in given]:
        raise ToolFailure(f"/{command} needs {', '.join(missing)}. Write: /{command} {_described(listed)}")
    server = table.running.by_name[name]
    if needs := await server.needs():
        await ctx.ask(*needs)
    answer: JSON = await server.request(partial(_got, listed.name, given), ctx)
    messages: list[JSON] = answer.get("messages") or []
    return "\n\n".join(filter(None, (_text(message) for message in messages)))


def prompt_named(table: McpTable, command: str) -> tuple[str, ListedPrompt]:
    """Return the server of a command and its prompt. Raises LookupError: there is no such command."""
    name, _, prompt = command.partition(":")
    while (name not in table.definitions) and ":" in prompt:
        more, _, prompt = prompt.partition(":")
        name = f"{name}:{more}"
    found = {each.name: each for each in table.listings[name].prompts}
    return name, found[prompt]


def arguments_of(prompt: ListedPrompt, typed: list[str]) -> dict[str, str]:
    """Return the arguments that words give to a prompt."""
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
    for place, name in enumerate(free):
        if place < len(plain):
            given[name] = " ".join(plain[place:]) if name == free[-1] else plain[place]
    return given


def _text(message: JSON) -> str:
    content: JSON = message.get("content") or {}
    resource: JSON = content.get("resource") or {}
    said = str(content.get("text") or resource.get("text") or "")
    return said if message.get("role") != "assistant" or not said else f"<assistant>\n{said}\n</assistant>"


async def _got(prompt: str, given: dict[str, str], client: "Client", _heard: Any) -> Any:
    return await client.get_prompt(prompt, given)
