"""Handler that lists the folders of the machine, for who chooses one to open."""

import asyncio
import os
from pathlib import Path

from codeloop.app.project import Project
from codeloop.kit.text.undecodable import find_undecodable, replace_undecodable
from codeloop.schema.api.project import Folder, FolderListing, FolderQuery
from codeloop.schema.errors import OperationError

_MAX_FOLDERS = 1_000


async def list_folders(project: Project, args: FolderQuery) -> FolderListing:
    """Return the folders in a folder, without hidden ones: those with the prefix.
    Raises OperationError when it is missing, unreadable, not absolute or no folder.
    """
    if "\0" in args.path:
        raise OperationError("BadRequest", "The path holds a NUL character.")
    home = project.settings.paths.home
    first, _, rest = (args.path or "~").partition("/")
    named = Path(home, rest) if first == "~" else Path(args.path)
    if not named.is_absolute():
        raise OperationError(
            "BadRequest", f"{args.path} does not begin with / or ~: name the whole path."
        )
    folder = Path(find_undecodable(os.path.normpath(named)))
    try:
        folders = await asyncio.to_thread(_read_folders, folder, args.prefix.casefold())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise OperationError("NotFoundError", f"Folder not found: {args.path}") from error
    except OSError as error:
        raise OperationError(
            "BadRequest", f"{args.path} can't be listed: {error.strerror}."
        ) from error
    return FolderListing(
        path=replace_undecodable(str(folder)),
        parent="" if folder.parent == folder else replace_undecodable(str(folder.parent)),
        folders=folders[:_MAX_FOLDERS],
        is_cut=len(folders) > _MAX_FOLDERS,
    )


def _read_folders(folder: Path, prefix: str) -> list[Folder]:
    with os.scandir(folder) as entries:
        names = [
            each.name
            for each in entries
            if each.name.casefold().startswith(prefix)
            and not each.name.startswith(".")
            and _is_dir(each)
        ]
    # One more than is shown tells that there are more.
    return [
        Folder(
            name=replace_undecodable(name),
            path=replace_undecodable(str(folder / name)),
            is_repository=_is_repository(folder / name),
        )
        for name in sorted(names, key=str.casefold)[: _MAX_FOLDERS + 1]
    ]


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder; one that can't be looked at, as a loop of links, is
    none.
    """
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        # A folder that may not be entered.
        return False
