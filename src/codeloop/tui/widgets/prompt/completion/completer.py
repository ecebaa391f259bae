"""The source of completions for the prompt: files, symbols, agents, resources,
commands and arguments of a project.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, Protocol
from urllib.parse import unquote

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.mentions import find_mentions
from codeloop.client.slash.commands import format_hints
from codeloop.schema.api.agents import AGENT_LIST, COMMAND_LIST
from codeloop.schema.api.files import FIND_FILES, FIND_SYMBOLS, FindFiles, FindSymbols
from codeloop.schema.api.mcp import (
    MCP_COMPLETE,
    RESOURCE_LIST,
    CompleteMcpPrompt,
    McpPromptCompletion,
)
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput
from codeloop.schema.bounds.tui import PROMPT_FOUND
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILES_QUERY
from codeloop.schema.operation import NoArguments
from codeloop.tui.widgets.prompt.completion.trigger import format_mention

CompletionKind = Literal[
    "file", "folder", "agent", "symbol", "resource", "command", "argument", "prompt"
]


class CompletionRow(Struct, frozen=True):
    """A candidate. `text`: what is inserted; `detail`: its description."""

    text: str
    kind: CompletionKind
    label: str
    detail: str = ""


class PromptCommand(Struct, frozen=True):
    """A slash command: its name, its arguments as shown in the help, and its description.

    `completes_arguments`: its source can complete them.
    `aliases`: other names, which count if no command is called so.
    """

    name: str
    arguments: str = ""
    description: str = ""
    completes_arguments: bool = False
    aliases: tuple[str, ...] = ()


class Completer(Protocol):
    """A source of completions. Its methods never raise: one that fails returns nothing."""

    async def find_files(self, query: str) -> list[str]:
        """Return the paths that fit, best first; a folder's ends in `/`."""
        ...

    async def find_symbols(self, query: str) -> list[CompletionRow]:
        """Return the symbols that fit."""
        ...

    async def list_agents(self) -> list[CompletionRow]:
        """Return the agents that can be mentioned."""
        ...

    async def list_resources(self) -> list[CompletionRow]:
        """Return the known resources of MCP servers that can be mentioned."""
        ...

    async def list_commands(self) -> list[PromptCommand]:
        """Return the commands, those of the program first."""
        ...

    async def complete_argument(
        self, command: str, text: str, *, may_start_server: bool
    ) -> McpPromptCompletion:
        """Complete the argument typed after a command;
        `may_start_server`: a server is started for it.
        """
        ...

    async def find_mentions(
        self, text: str, note: Callable[[str], object]
    ) -> tuple[list[FilePartInput], list[AgentPartInput]]:
        """Find the mentions in a text; `note` is called with each that can't be attached."""
        ...


class ClientCompleter:
    """Completes through a client. `commands`: the program's,
    which replace the server's of the same name.

    `directory`: the folder that paths are relative to.
    """

    def __init__(
        self, client: Client, commands: Sequence[PromptCommand] = (), directory: str = ""
    ) -> None:
        self._client = client
        self._program_commands = tuple(commands)
        self._directory = directory

    async def find_files(self, query: str) -> list[str]:
        """Return the paths that fit, best first."""
        with suppress(CodeloopError):
            request = FindFiles(query=query[: FILES_QUERY.value], limit=PROMPT_FOUND.value)
            return await self._client.call(FIND_FILES, request)
        return []

    async def find_symbols(self, query: str) -> list[CompletionRow]:
        """Return the symbols that fit, each as a mention of the lines of
        its file that define it.
        """
        with suppress(CodeloopError):
            symbols = await self._client.call(FIND_SYMBOLS, FindSymbols(query=query))
            rows = (
                _make_symbol_row(symbol.name, symbol.location, self._directory)
                for symbol in symbols
            )
            return [row for row in rows if row is not None]
        return []

    async def list_agents(self) -> list[CompletionRow]:
        """Return the subagents that a prompt can mention."""
        with suppress(CodeloopError):
            agents = await self._client.call(AGENT_LIST, NoArguments())
            return [
                CompletionRow(f"@{agent.name}", "agent", agent.name, agent.description or "")
                for agent in agents
                if agent.mode != "primary" and not agent.hidden
            ]
        return []

    async def list_resources(self) -> list[CompletionRow]:
        """Return the known resources of servers."""
        with suppress(CodeloopError):
            resources_by_name = await self._client.call(RESOURCE_LIST, NoArguments())
            return [
                CompletionRow(format_mention(name), "resource", name, each.description or each.name)
                for name, each in resources_by_name.items()
            ]
        return []

    async def list_commands(self) -> list[PromptCommand]:
        """Return the program's commands, then the server's."""
        program_names = {command.name for command in self._program_commands}
        with suppress(CodeloopError):
            commands = await self._client.call(COMMAND_LIST, NoArguments())
            server_commands = [
                PromptCommand(
                    name=command.name,
                    arguments=format_hints(command.hints),
                    description=command.description or command.source or "",
                    completes_arguments=command.source == "mcp",
                )
                for command in commands
                if command.name not in program_names
            ]
            return [*self._program_commands, *server_commands]
        return list(self._program_commands)

    async def complete_argument(
        self, command: str, text: str, *, may_start_server: bool
    ) -> McpPromptCompletion:
        """Complete the argument typed after a command;
        `may_start_server`: a server is started for it.
        """
        # Only the arguments of MCP prompts can be completed: the server of the
        # prompt knows their values.
        with suppress(CodeloopError):
            request = CompleteMcpPrompt(command=command, typed=text, connect=may_start_server)
            return await self._client.call(MCP_COMPLETE, request)
        return McpPromptCompletion()

    async def find_mentions(
        self, text: str, note: Callable[[str], object]
    ) -> tuple[list[FilePartInput], list[AgentPartInput]]:
        """Return the files and agents that a text mentions."""
        try:
            parts = await find_mentions(self._client, text, note)
        except CodeloopError as error:
            note(f"The files that you mention were not attached: {error}")
            return [], []
        files = [part for part in parts if isinstance(part, FilePartInput)]
        return files, [part for part in parts if isinstance(part, AgentPartInput)]


def _make_symbol_row(name: str, location: object, directory: str) -> CompletionRow | None:
    """Return a symbol as a mention of its lines, from its location."""
    match location:
        case {
            "uri": str(uri),
            "range": {"start": {"line": int(first)}, "end": {"line": int(last)}},
        }:
            # Language servers count lines from 0, mentions from 1.
            path = unquote(uri.removeprefix("file://")).removeprefix(f"{directory.rstrip('/')}/")
            return CompletionRow(
                format_mention(path, f"#{first + 1}-{last + 1}"),
                "symbol",
                name,
                f"{path}:{first + 1}",
            )
        case _:
            return None
