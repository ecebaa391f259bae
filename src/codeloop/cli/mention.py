"""What a prompt mentions with `@`: files of the server's directory and subagents become pieces of the prompt."""

import mimetypes
from pathlib import Path, PurePosixPath

from codeloop.client.client import Client
from codeloop.extend.template import mentions
from codeloop.schema.agent import Agent
from codeloop.schema.errors import OperationError
from codeloop.schema.files import FileNode
from codeloop.schema.limits import COMMAND_FILES
from codeloop.schema.operation import AGENT_LIST, FILE_LIST
from codeloop.schema.prompts import AgentInput, FileInput, PartInput, TextInput


async def prompt_parts(client: Client, text: str) -> list[PartInput]:
    """Give a prompt's pieces: its text, and what that mentions; what is no file there stays text alone."""
    parts: list[PartInput] = [TextInput(text=text)]
    names = mentions(text)[: COMMAND_FILES.value]
    if not names:
        return parts
    agents: list[Agent] = await client.call(AGENT_LIST)
    subagents = {agent.name for agent in agents if agent.mode != "primary"}
    for name in names:
        if name in subagents:
            parts.append(AgentInput(name=name))
        elif (path := await _file(client, name)) is not None:
            mime = mimetypes.guess_type(name)[0] or "text/plain"
            parts.append(FileInput(mime=mime, url=Path(path).as_uri(), filename=name))
    return parts


async def _file(client: Client, name: str) -> str | None:
    """Give the absolute path of a file that there is on the server."""
    path = PurePosixPath(name)
    try:
        nodes: list[FileNode] = await client.call(FILE_LIST, path=str(path.parent))
    except OperationError:
        return None
    return next((node.absolute for node in nodes if node.name == path.name and node.type == "file"), None)
