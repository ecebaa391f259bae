"""The folders that a call works in, and the question about those outside the work tree."""

from collections.abc import Iterable
from pathlib import Path
from stat import S_ISDIR

from codeloop.schema.rules import Need
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.workspace import Target


async def searched(ctx: ToolContext, path: str | None, *, only_folder: bool = False) -> Target:
    """Resolve what a search works on (default: the agent's directory), asking first when it is outside.

    Raises ToolFailure when there is no such file or folder, Denied or Rejected when it may not be searched.
    """
    if path and "\0" in path:
        raise ToolFailure("The path holds a NUL character, which no file has in its name. Leave it out.")
    target = ctx.workspace.resolve(path or ".")
    if target.outside:
        folder = folder_of(target.real)
        await ask_outside(ctx, [folder], {"filepath": str(target.path), "parentDir": str(folder)})
    try:
        mode = target.path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        why = f"There is no file or folder {target.path}. Check the path, or list the folder above it."
        raise ToolFailure(why) from error
    except OSError as error:
        raise ToolFailure(f"{target.path} can't be searched: {error.strerror}.") from error
    if only_folder and not S_ISDIR(mode):
        raise ToolFailure(f"{target.path} is a file; give the path of a folder.")
    return target


def folder_of(path: Path) -> Path:
    """Give the path itself when it is a folder that can be seen, else the folder that it is in."""
    try:
        return path if path.is_dir() else path.parent
    except OSError:
        return path.parent


async def ask_outside(ctx: ToolContext, folders: Iterable[Path], metadata: JSON) -> None:
    """Ask to work in folders outside the work tree (resolved paths). Raises Denied or Rejected."""
    patterns = tuple(dict.fromkeys(str(folder / "*") for folder in folders))
    if patterns:
        await ctx.ask(Need(permission="external_directory", patterns=patterns, always=patterns, metadata=metadata))
