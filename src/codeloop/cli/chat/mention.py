"""What a prompt mentions with `@`: files of the server's directory and subagents become pieces of the prompt."""

import mimetypes
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from codeloop.client.client import Client
from codeloop.extend.template import mentions
from codeloop.schema.api.files import FileNode, FileQuery
from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput, PartInput, TextPartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import COMMAND_FILES
from codeloop.schema.operation import AGENT_LIST, FILE_LIST, NoArguments


async def prompt_parts(client: Client, text: str, note: Callable[[str], object]) -> list[PartInput]:
    """Return a prompt's pieces: its text, and what that mentions; what is no file there stays text alone.

    `note` is called with a line about each that looks like a path and is no file.
    """
    parts: list[PartInput] = [TextPartInput(text=text)]
    names = mentions(text)[: COMMAND_FILES.value]
    if not names:
        return parts
    agents = await client.call(AGENT_LIST, NoArguments())
    subagents = {agent.name for agent in agents if agent.mode != "primary"}
    for name in names:
        if name in subagents:
            parts.append(AgentPartInput(name=name))
            continue
        node = await _node(client, name)
        if node is not None and node.type == "file":
            mime = mimetypes.guess_type(name)[0] or "text/plain"
            parts.append(FilePartInput(mime=mime, url=Path(node.absolute).as_uri(), filename=name))
        elif node is not None:
            note(f"@{name} is a directory: nothing of it is attached.")
        elif "/" in name or "." in name:
            note(f"@{name} is no file here: nothing is attached.")
    return parts


async def _node(client: Client, name: str) -> FileNode | None:
    """Return what has this path on the server."""
    path = PurePosixPath(name)
    try:
        nodes = await client.call(FILE_LIST, FileQuery(path=str(path.parent)))
    except OperationError:
        return None
    return next((node for node in nodes if node.name == path.name), None)
