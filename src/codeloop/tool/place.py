"""The folders that a call works in, and the question about those outside the work tree."""

from collections.abc import Iterable
from pathlib import Path

from codeloop.schema.rules import Need
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.workspace import Target


async def searched(ctx: ToolContext, path: str | None, *, only_folder: bool = False) -> Target:
    """Resolve what a search works on (default: the agent's directory), asking first when it is outside.

    Raises ToolFailure when there is no such file or folder, Denied or Rejected when it may not be searched.
    """
    target = ctx.workspace.resolve(path or ".")
    if target.outside:
        folder = target.real if target.real.is_dir() else target.real.parent
        await ask_outside(ctx, [folder], {"filepath": str(target.path), "parentDir": str(folder)})
    if not target.path.exists():
        raise ToolFailure(f"There is no file or folder {target.path}. Check the path, or list the folder above it.")
    if only_folder and not target.path.is_dir():
        raise ToolFailure(f"{target.path} is a file; give the path of a folder.")
    return target


async def ask_outside(ctx: ToolContext, folders: Iterable[Path], metadata: JSON) -> None:
    """Ask to work in folders outside the work tree (resolved paths). Raises Denied or Rejected."""
    patterns = tuple(dict.fromkeys(str(folder / "*") for folder in folders))
    if patterns:
        await ctx.ask(Need(permission="external_directory", patterns=patterns, always=patterns, metadata=metadata))
