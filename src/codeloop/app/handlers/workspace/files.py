"""Handlers that read files and folders for clients, in the work tree and nowhere else."""

import asyncio
import base64
import mimetypes
import os
import re
from pathlib import Path

from msgspec import Struct

from codeloop.app.handlers.workspace.vcs import open_git
from codeloop.app.project import Project
from codeloop.kit.text.diff import make_unified_diff, split_lines
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.api.files import (
    File,
    FileContent,
    FileNode,
    FilePatch,
    FileQuery,
    PatchHunk,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import FILES_CONTENT, SNAPSHOT_DIFF
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.workspace.files.encoding import NotText, decode_text, is_binary
from codeloop.workspace.files.folder_listing import list_folder_entries
from codeloop.workspace.files.media_type import detect_media_type
from codeloop.workspace.files.safe_open import FileRefused, read_file
from codeloop.workspace.git.ignore_patterns import list_user_excludes
from codeloop.workspace.git.repository import GitFailed
from codeloop.workspace.git.working_diff import list_changes

_SAMPLE_BYTES = 8_192
"""The start of a file that is searched for binary data."""
_HUNK_HEADER = r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@"
_HUNK_FIELDS = ("old_start", "old_lines", "new_start", "new_lines")
"""The fields of a PatchHunk in the order of the header's numbers."""


class ResolvedFile(Struct, frozen=True):
    """A path in the work tree. `named`: as requested, absolute; `real`: without links;
    `root`: the tree's real top.
    """

    named: Path
    real: Path
    root: Path


async def list_folder(project: Project, args: FileQuery) -> list[FileNode]:
    """Return the entries of a folder, folders first.

    Raises OperationError if the folder is missing, unreadable, outside of the work tree,
    or no folder.
    """

    def read_entries() -> list[FileNode]:
        target = resolve_inside(project, args.path)
        try:
            folder_entries = list_folder_entries(
                target.root, target.real, list_user_excludes(project.settings.environment)
            )
        except FileNotFoundError as error:
            raise OperationError("NotFoundError", f"Folder not found: {args.path}") from error
        except FileRefused as error:
            raise OperationError(
                "BadRequest", f"{args.path} is not a folder that can be listed."
            ) from error
        except OSError as error:
            raise _make_read_error(args.path, error) from error
        directory = project.workspace.directory
        return [
            FileNode(
                name=replace_undecodable(entry.name),
                path=replace_undecodable(os.path.relpath(target.named / entry.name, directory))
                + ("/" if entry.is_folder else ""),
                absolute=replace_undecodable(str(target.named / entry.name)),
                type="directory" if entry.is_folder else "file",
                ignored=entry.is_ignored,
            )
            for entry in folder_entries
        ]

    return await asyncio.to_thread(read_entries)


async def read_file_content(project: Project, args: FileQuery) -> FileContent:
    """Return the content of a file, "" for a missing one;
    with a diff if its text differs from the last commit.

    Raises OperationError if the path is outside of the work tree, or the file is too large,
    unreadable or not regular.
    """
    target, data = await asyncio.to_thread(load_file, project, args.path)
    if data is None:
        return FileContent(type="text", content="")
    text = _decode_text(data)
    if text is None:
        mime = (
            detect_media_type(data)
            or mimetypes.guess_type(target.named.name)[0]
            or "application/octet-stream"
        )
        content = await asyncio.to_thread(base64.b64encode, data)
        return FileContent(
            type="binary", content=content.decode(), encoding="base64", mime_type=mime
        )
    file_content = FileContent(type="text", content=text.rstrip())
    before = await _read_committed(project, target) if len(data) <= SNAPSHOT_DIFF.value else None
    # A checkout may have converted the line endings, which is not a change.
    if before is None or before.replace("\r\n", "\n") == text.replace("\r\n", "\n"):
        return file_content
    name = replace_undecodable(os.path.relpath(target.named, project.workspace.directory))
    return await asyncio.to_thread(_add_diff, file_content, name, before, text)


async def list_changed_files(project: Project, _args: NoArguments) -> list[File]:
    """Return the files that differ from the last commit, with paths relative to the directory.
    Raises GitFailed.
    """
    git = open_git(project)
    if git is None:
        return []
    return [
        File(
            path=replace_undecodable(
                os.path.relpath(git.root / each.file, project.workspace.directory)
            ),
            added=each.additions,
            removed=each.deletions,
            status=each.status,
        )
        for each in await list_changes(git, await git.resolve_commit("HEAD"), None)
    ]


def resolve_inside(project: Project, path: str) -> ResolvedFile:
    """Resolve a path before anything is read. Raises OperationError when it
    leads out of the work tree.
    """
    if "\0" in path:
        raise OperationError(
            "BadRequest", "The path holds a NUL character, which no file has in its name."
        )
    workspace = project.workspace
    absolute = Path(os.path.normpath(workspace.directory / path))
    real, root = Path(os.path.realpath(absolute)), Path(os.path.realpath(workspace.root))
    if not real.is_relative_to(root):
        raise OperationError(
            "BadRequest",
            f"{replace_undecodable(path)} is outside of the work tree {root}; name a file in it.",
        )
    return ResolvedFile(absolute, real, root)


def load_file(project: Project, path: str) -> tuple[ResolvedFile, bytes | None]:
    """Return a file and its bytes; None if it is missing. Blocks. Raises OperationError as
    `read_file_content` does.
    """
    target = resolve_inside(project, path)
    try:
        return target, read_file(target.real, FILES_CONTENT.value).data
    except FileNotFoundError:
        return target, None
    except FileRefused as error:
        raise OperationError("BadRequest", replace_undecodable(str(error))) from error
    except OSError as error:
        raise _make_read_error(path, error) from error


def _make_read_error(path: str, error: OSError) -> OperationError:
    return OperationError(
        "BadRequest", f"{replace_undecodable(path)} can't be read: {error.strerror}."
    )


def _decode_text(data: bytes) -> str | None:
    """Return the text of a file; None if it is binary."""
    if detect_media_type(data) is not None or is_binary(data[:_SAMPLE_BYTES]):
        return None
    try:
        return replace_undecodable(decode_text(data).content)
    except NotText:
        return None


async def _read_committed(project: Project, target: ResolvedFile) -> str | None:
    """Return a file's text in the last commit; None if the commit has none, or git fails."""
    git = open_git(project)
    if git is None:
        return None
    try:
        data = await git.read_blob(
            "HEAD", str(target.real.relative_to(target.root)), SNAPSHOT_DIFF.value
        )
    except GitFailed:
        return None
    return None if data is None else _decode_text(data)


def _add_diff(file_content: FileContent, name: str, before: str, after: str) -> FileContent:
    """Return the content with a diff whose context is the whole file."""
    all_lines = max(len(split_lines(before)), len(split_lines(after)))
    patch = make_unified_diff(name, before, after, all_lines).patch
    hunks: list[PatchHunk] = []
    for line in patch.removesuffix("\n").split("\n"):
        header = re.fullmatch(_HUNK_HEADER, line)
        if header is not None:
            numbers = (int(number) for number in header.groups())
            hunks.append(PatchHunk(**dict(zip(_HUNK_FIELDS, numbers, strict=True)), lines=[]))
        elif hunks:
            hunks[-1].lines.append(line)
    return replace(
        file_content,
        diff=patch,
        patch=FilePatch(old_file_name=name, new_file_name=name, hunks=hunks),
    )
