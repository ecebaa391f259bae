"""Finds the `@` mentions of files, subagents and MCP resources in a prompt,
and converts them to parts of it.
"""

import mimetypes
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from codeloop.client.client import Client
from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.mentions import list_resource_mentions, list_spellings
from codeloop.schema.api.agents import AGENT_LIST
from codeloop.schema.api.files import FILE_LIST, FileNode, FileQuery
from codeloop.schema.api.mcp import MCP_STATUS, RESOURCE_LIST
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import COMMAND_FILES
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import FOLDER_MIME, FileSource, ResourceSource, locate_mention

_FILE_WITH_LINES = r"(.+?)[#:]L?(\d{1,9})(?:-L?(\d{1,9}))?"
"""A file and lines of it: `src/main.py#10-20`, `src/main.py:10`, `src/main.py#L10-L20`."""


async def find_mentions(
    client: Client, text: str, note: Callable[[str], object]
) -> list[FilePartInput | AgentPartInput]:
    """Return the files, subagents and resources that a prompt mentions with `@`.

    `note` is called with a line about each mention that looks like a file but is not one.
    """
    # Each name costs a request to the server.
    mentions = list_spellings(text)[: COMMAND_FILES.value]
    if not mentions:
        return []
    agents = await client.call(AGENT_LIST, NoArguments())
    subagents = {agent.name for agent in agents if agent.mode != "primary"}
    resources = await _find_resources(client, text)
    # Both spellings: among the names of files, that of a resource ends at its first colon,
    # unless it is quoted.
    resource_names = {
        name
        for each in resources
        for name in (str(each.filename), str(each.filename).partition(":")[0])
    }
    parts: list[FilePartInput | AgentPartInput] = [*resources]
    for spellings in mentions:
        name = spellings[-1]
        if name in resource_names:
            continue
        if name in subagents:
            parts.append(AgentPartInput(name=name))
            continue
        found = [
            (spelling, file)
            for spelling in spellings
            if (file := await _find_file(client, spelling)) is not None
        ]
        # A folder only if nothing longer is a file: of `@app/(auth)/a.ts`, `app/` is the beginning.
        files = [each for each in found if each[1].node.type == "file"] or found
        if files:
            parts.append(_make_file_part(files[0][1], files[0][0], text))
        # Other words after an @ are taken for text, such as the name of a person or a decorator.
        elif "/" in name or "." in name:
            note(f"@{name} does not exist and was not attached.")
    return parts


class _MentionedFile(NamedTuple):
    """A file or folder. `line_query`: the mentioned lines, as the query of its URL;
    "" for the whole file.
    """

    node: FileNode
    line_query: str = ""


async def _find_file(client: Client, name: str) -> _MentionedFile | None:
    node = await _find_node(client, name)
    if node is not None:
        return _MentionedFile(node)
    # Only where no file has the whole name: `#` may be part of a file's name.
    match = re.fullmatch(_FILE_WITH_LINES, name)
    node = await _find_node(client, match[1]) if match is not None else None
    if match is None or node is None:
        return None
    return _MentionedFile(node, f"?start={match[2]}&end={match[3] or match[2]}")


def _make_file_part(mentioned_file: _MentionedFile, name: str, text: str) -> FilePartInput:
    """Return the part for a file or folder that a prompt's text mentions by this name."""
    node = mentioned_file.node
    return FilePartInput(
        mime=FOLDER_MIME
        if node.type == "directory"
        else mimetypes.guess_type(node.path)[0] or "text/plain",
        url=Path(node.absolute).as_uri() + mentioned_file.line_query,
        filename=name,
        source=FileSource(path=name, text=locate_mention(name, text)),
    )


async def _find_resources(client: Client, text: str) -> list[FilePartInput]:
    """Return a part for each mention that names a known MCP server.
    The server checks whether it has the resource.
    """
    names = list_resource_mentions(text)[: COMMAND_FILES.value]
    servers = await client.call(MCP_STATUS, NoArguments()) if names else {}
    mcp_resources = await client.call(RESOURCE_LIST, NoArguments()) if servers else {}
    file_part_inputs: list[FilePartInput] = []
    for name in names:
        # The longest name: of two servers `a` and `a:b`, `a:b:uri` means the second.
        server = max(
            (each for each in servers if name.startswith(f"{each}:")), key=len, default=None
        )
        if server is None:
            continue
        uri, mcp_resource = name.removeprefix(f"{server}:"), mcp_resources.get(name)
        source = ResourceSource(client_name=server, uri=uri, text=locate_mention(name, text))
        mime = (mcp_resource.mime_type if mcp_resource is not None else None) or "text/plain"
        file_part_inputs.append(FilePartInput(mime=mime, url=uri, filename=name, source=source))
    return file_part_inputs


async def _find_node(client: Client, name: str) -> FileNode | None:
    """Find a path on the server; outside its project only if this machine has it too."""
    path = PurePosixPath(name)
    try:
        nodes = await client.call(FILE_LIST, FileQuery(path=str(path.parent)))
    except OperationError:
        directory = (await client.call(PATH_GET, NoArguments())).directory
        file = Path(os.path.normpath(directory / expand_user_path(name)))
        if (kind := _find_kind(file)) is None:
            return None
        return FileNode(
            name=file.name, path=str(file), absolute=str(file), type=kind, ignored=False
        )
    return next((node for node in nodes if node.name == path.name), None)


def _find_kind(path: Path) -> Literal["file", "directory"] | None:
    """Return whether a path is a file or a directory; None: it does not exist, or is neither."""
    try:
        if path.is_dir():
            return "directory"
        return "file" if path.is_file() else None
    # A typed name may be too long for the system, or hold a zero byte.
    except (OSError, ValueError):
        return None
