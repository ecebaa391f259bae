"""Handlers that search text in files, and files by name."""

import asyncio

from codeloop.app.handlers.project.project import get_location
from codeloop.app.project import Project
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.files import (
    FileSystemEntry,
    FindFiles,
    FindText,
    FoundFiles,
    FoundLine,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import FILES_NAMES, FILES_QUERY
from codeloop.schema.operation import NoArguments
from codeloop.workspace.search.file_index import IndexedName, NameKind, find_names
from codeloop.workspace.search.grep_query import SearchFailed

_DEFAULT_MAX_FILES = 100
_DEFAULT_MAX_COMPLETIONS = 20


async def find_text(project: Project, args: FindText) -> list[FoundLine]:
    """Return the first lines that match a regular expression, with paths relative to the directory.

    Raises OperationError with ripgrep's message for an invalid pattern.
    """
    workspace = project.workspace
    try:
        return await workspace.ripgrep.find_lines(
            workspace.directory, args.pattern, workspace.environment
        )
    except SearchFailed as error:
        raise OperationError(
            "BadRequest", f"The files can't be searched: {replace_undecodable(str(error))}"
        ) from error


async def find_files(project: Project, args: FindFiles) -> list[str]:
    """Return the files and folders whose path has the characters of the query in their order,
    best matches first.
    """
    kind: NameKind | None = args.type or ("file" if args.dirs is False else None)
    return [
        replace_undecodable(name.path)
        for name in await _find_names(project, args, kind, _DEFAULT_MAX_FILES)
    ]


async def complete_path(project: Project, args: FindFiles) -> FoundFiles:
    """Return completions of a path: the results of `find_files`,
    with the directory that they are relative to.
    """
    names = await _find_names(project, args, args.type, _DEFAULT_MAX_COMPLETIONS)
    data = [
        FileSystemEntry(
            path=replace_undecodable(name.path), type="directory" if name.is_folder else "file"
        )
        for name in names
    ]
    return FoundFiles(location=await get_location(project, NoArguments()), data=data)


async def _find_names(
    project: Project, args: FindFiles, kind: NameKind | None, default_limit: int
) -> list[IndexedName]:
    limit = default_limit if args.limit is None else args.limit
    if not 1 <= limit <= FILES_NAMES.value:
        raise OperationError(
            "BadRequest", f"limit is {limit}; it must be 1 to {FILES_NAMES.value}."
        )
    if len(args.query) > FILES_QUERY.value:
        raise OperationError(
            "BadRequest", f"query is longer than {FILES_QUERY.value} characters; name less."
        )
    workspace = project.workspace
    try:
        names = await workspace.file_index.list_names(
            workspace.directory, workspace.ripgrep, workspace.environment
        )
    except SearchFailed as error:
        raise OperationError(
            "BadRequest", f"The files can't be listed: {replace_undecodable(str(error))}"
        ) from error
    return await asyncio.to_thread(find_names, names, args.query, kind, limit)
