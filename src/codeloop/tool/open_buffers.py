"""The unsaved texts of an editor: before a tool touches a file, the editor saves what it holds of it."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from codeloop.tool.tool import ToolContext
from codeloop.workspace.workspace import ResolvedPath

SaveBuffer = Callable[[str, Path], Awaitable[None]]
"""Has an editor save what it holds unsaved of a file, for a session; nothing, if it holds nothing. Raises nothing."""


class OpenBuffers:
    """The part of a work tree that an editor is connected to."""

    def __init__(self, save: SaveBuffer) -> None:
        self.save = save


async def save_buffers(ctx: ToolContext, targets: Iterable[ResolvedPath]) -> None:
    """Have the editor save the files, where there is one: what is read and edited is then what it shows."""
    buffers = ctx.workspace.part(OpenBuffers)
    if buffers is not None:
        for target in targets:
            await buffers.save(ctx.session_id, target.path)
