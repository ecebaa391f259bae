"""How tools access files: resolving paths, asking for permission, making permitted changes."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from stat import S_ISDIR

from codeloop.kit.diff import Diff, trim_indent, unified_diff
from codeloop.kit.guarded_paths import fold, is_confirmed, is_protected, is_secret
from codeloop.kit.wildcard import escape_names
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON, replace
from codeloop.tool.after_edit import FileChange, LandedChanges, skip_formatting
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.atomic_write import Replacement, replace_files
from codeloop.workspace.files.encoding import DecodedText, NotText, decode
from codeloop.workspace.files.safe_open import FileRefused, LoadedFile, load_if_there
from codeloop.workspace.workspace import ResolvedPath, Workspace

_REASONS = {
    "ENOSPC": "no space is left on the disk",
    "EDQUOT": "the disk quota is used up",
    "EROFS": "the file system is read-only",
    "EACCES": "permission denied by the system",
    "EPERM": "not permitted by the system",
    "ENAMETOOLONG": "the name is too long",
    "EISDIR": "it is a directory",
    "ENOTDIR": "a part of its path is not a directory",
    "ELOOP": "its links go round in a loop",
}


_HEADER = 4
"""The header lines of a diff."""
_AT_ONCE = 200
"""Paths that are judged before the event loop gets to other work."""
_REPLACED = 24
_WIDTH = 200


def format_path(workspace: Workspace, path: Path) -> str:
    """Return a path as the model reads it: relative to the working directory, absolute only outside of it."""
    return readable(workspace.shorten(path))


@contextmanager
def failures(workspace: Workspace, *targets: ResolvedPath) -> Generator[None]:
    """Turn errors of the system or the workspace into a ToolFailure that names the file, or the patch."""
    name = format_path(workspace, targets[0].path) if len(targets) == 1 else "the patch"
    try:
        yield
    except CodeloopError as error:
        text = str(error)
        for target in targets:
            text = text.replace(str(target.real), format_path(workspace, target.path))
        text = text.replace(f"{os.path.realpath(workspace.directory)}/", "")
        advice = error.advice if isinstance(error, FileRefused | NotText) else ""
        raise ToolFailure(readable(text if name in text else f"{name}: {text}"), advice=advice) from error
    except OSError as error:
        import errno

        reason = _REASONS.get(errno.errorcode.get(error.errno or 0, ""), error.strerror or str(error))
        raise ToolFailure(f"{name}: {readable(reason)}; nothing was changed") from error


def resolve(workspace: Workspace, path: str) -> ResolvedPath:
    """Resolve a path as the model wrote it; ToolFailure when it can't name a file."""
    if not path.strip():
        raise ToolFailure("filePath is empty.", advice="Give the path of a file.")
    try:
        return workspace.resolve(path)
    except (ValueError, RuntimeError, OSError) as error:
        raise ToolFailure(f"{path!r} is not a valid path: {error}") from error


NeedsOf = Callable[[ResolvedPath], Sequence[Need]]
"""Returns a call's further needs, given its resolved path."""


async def resolve_allowed(ctx: ToolContext, path: str, needs: NeedsOf) -> ResolvedPath:
    """Resolve a path and ask, in one question, for all that the call needs.

    A path outside the workspace needs `external_directory` for its real target, too.
    Raises ToolFailure, Denied or Rejected.
    """
    target = resolve(ctx.workspace, path)
    await ctx.ask(*outside_needs([target], {}), *needs(target))
    return target


async def search_target(
    ctx: ToolContext, path: str | None, needs: NeedsOf, *, only_folder: bool = False
) -> ResolvedPath:
    """Resolve what a search works on (default: the agent's directory) and ask for all that it needs at once.

    Raises ToolFailure when there is no such file or folder, Denied or Rejected when it may not be searched. Whether
    one exists outside the project is only revealed when it may be searched.
    """
    if path and "\0" in path:
        raise ToolFailure("The path contains a NUL character, which no file name can have.", advice="Leave it out.")
    target = resolve(ctx.workspace, path or ".")
    if not target.is_outside:
        await _check_there(ctx, target, only_folder=only_folder)
    await ctx.ask(*outside_needs([target], {}), *needs(target))
    if target.is_outside:
        await _check_there(ctx, target, only_folder=only_folder)
    return target


async def _check_there(ctx: ToolContext, target: ResolvedPath, *, only_folder: bool) -> None:
    name = format_path(ctx.workspace, target.path)
    try:
        mode = target.path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolFailure(await missing(ctx, target, "There is no file or folder {}")) from error
    except OSError as error:
        raise ToolFailure(f"{name} can't be searched: {error.strerror}.") from error
    if only_folder and not S_ISDIR(mode):
        raise ToolFailure(f"{name} is a file.", advice="Give the path of a folder, or read it.")


def check_unmoved(ctx: ToolContext, target: ResolvedPath) -> None:
    """Raise ToolFailure when a path resolves differently than when permission was asked, which may be days ago."""
    if os.path.realpath(target.path) != str(target.real):
        name = format_path(ctx.workspace, target.path)
        raise ToolFailure(f"{name} leads elsewhere than when it was asked about.", advice="Look at it again.")


async def missing(ctx: ToolContext, target: ResolvedPath, text: str = "File not found: {}") -> str:
    """Return a message that a file is missing (`text` takes its path), with similar paths."""
    from codeloop.tool.similar_paths import similar_paths

    alike, folder = await similar_paths(ctx.workspace, target.path), target.path.parent
    where = "" if folder.is_dir() else f" (the folder {format_path(ctx.workspace, folder)} does not exist)"
    first = text.format(format_path(ctx.workspace, target.path)) + where
    return "\n".join([first, *(["Similar paths:"] if alike else []), *map(readable, alike)])


def folder_of(path: Path) -> Path:
    """Return the path itself when it is a visible folder, else its parent."""
    try:
        return path if path.is_dir() else path.parent
    except OSError:
        return path.parent


def outside_needs(targets: Iterable[ResolvedPath], metadata: JSON) -> list[Need]:
    """Return one permission need for all targets outside the work tree; none if all are inside."""
    outside = [target for target in targets if target.is_outside]
    folders = tuple(dict.fromkeys(str(folder_of(target.real)) for target in outside))
    if not folders:
        return []
    shown = {"filepath": ", ".join(str(target.real) for target in outside), "parentDir": ", ".join(folders)}
    patterns = tuple(f"{folder.rstrip('/')}/*" for folder in folders)
    always = patterns if escape_names(folders) else ()
    return [Need(permission="external_directory", patterns=patterns, always=always, metadata={**metadata, **shown})]


def permission_path(workspace: Workspace, target: ResolvedPath) -> str:
    """Return the path that a permission names: of the real target, relative to the worktree; "." for its top."""
    return permission_name(workspace, target.real)


def permission_name(workspace: Workspace, real: Path) -> str:
    """Return the path that a permission names, for a resolved one; guarded files as rules spell them."""
    name = workspace.relative(real) or "."
    return fold(name) if is_protected(name) or is_secret(name) else name


def is_free(ctx: ToolContext, real: Path) -> bool:
    """Return whether a resolved path is a file of the project that this session may read without a question."""
    workspace = ctx.workspace
    return workspace.contains(real) and not ctx.session.judge("read", [permission_name(workspace, real)])


async def filter_free(ctx: ToolContext, paths: Sequence[Path]) -> list[Path]:
    """Return those of many paths of a search that this session may read without a question.

    The event loop is not blocked meanwhile.
    """

    def name_all(some: Sequence[Path]) -> list[str]:
        return [permission_name(ctx.workspace, Path(os.path.realpath(path))) for path in some]

    free: list[Path] = []
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        names = await asyncio.to_thread(name_all, some)
        not_free = ctx.session.judge("read", names)
        free += [path for path, name in zip(some, names, strict=True) if name not in not_free]
    return free


def read_need(workspace: Workspace, target: ResolvedPath) -> Need:
    """Return the permission to read a file. Its "always" covers any file; for one with keys, this file alone."""
    name = permission_path(workspace, target)
    return Need(permission="read", patterns=(name,), always=escape_names((name,)) if is_secret(name) else ("*",))


def edit_needs(
    workspace: Workspace, files: Iterable[Path], metadata: JSON, possible: tuple[str, ...] = ()
) -> list[Need]:
    """Return the permissions to change files (resolved paths). `possible`: files that may be changed too.

    Protected files are a separate question, which no "always" covers; for files that make something run later,
    "always" covers these alone, and a permitted change is not asked about again in the session.
    """
    files_by_name = {permission_name(workspace, real): real for real in files}
    protected = {name: real for name, real in files_by_name.items() if is_protected(name)}
    confirmed = {name: real for name, real in files_by_name.items() if is_confirmed(name) and name not in protected}
    plain = {name: real for name, real in files_by_name.items() if name not in protected and name not in confirmed}
    needs = [
        Need(
            permission="edit",
            patterns=tuple(group),
            always=always,
            metadata=metadata,
            writes=Writes(tuple(group.values())),
            once=group is confirmed and bool(always),
        )
        for group, always in ((protected, ()), (confirmed, escape_names([*confirmed])), (plain, ("*",)))
        if group
    ]
    return [*needs, *([Need(permission="edit", patterns=(), metadata=metadata, possible=possible)] if possible else [])]


async def ask_edit(ctx: ToolContext, targets: Sequence[ResolvedPath], metadata: JSON) -> None:
    """Ask, in one question that shows the change, to change the files and to work where they are."""
    edits = edit_needs(ctx.workspace, (target.real for target in targets), metadata)
    await ctx.ask(*outside_needs(targets, metadata), *edits)


async def check_edit(ctx: ToolContext, targets: Sequence[ResolvedPath]) -> None:
    """Raise Denied when a rule forbids changing the files, before they are read."""
    names = [permission_path(ctx.workspace, target) for target in targets]
    folders = [pattern for need in outside_needs(targets, {}) for pattern in need.patterns]
    judge = ctx.session.judge
    if "deny" in {*judge("edit", names).values(), *judge("external_directory", folders).values()}:
        await ask_edit(ctx, targets, {"filepath": ", ".join(str(target.path) for target in targets)})


@asynccontextmanager
async def ask_before_failure(
    ctx: ToolContext, targets: Iterable[ResolvedPath], arguments: JSON
) -> AsyncGenerator[None]:
    """Ask before telling the model why a change outside the project fails, since that reveals what is there.

    `arguments`: of the call; the question shows them in place of a diff.
    """
    try:
        yield
    except ToolFailure:
        for target in targets:
            ctx.workspace.read_log.note_refusal(ctx.session_id, target.real)
        last_stamp = ctx.workspace.read_log.last_stamp
        unseen = [target for target in targets if last_stamp(ctx.session_id, target.real) is None]
        if needs := outside_needs(unseen, {"input": arguments}):
            await ctx.ask(*needs)
        raise


def load_text(real: Path) -> tuple[LoadedFile, DecodedText] | None:
    """Read a file as text; None when there is no such file. Raises FileRefused or NotText, OSError."""
    file = load_if_there(real)
    return None if file is None else (file, decode(file.data))


async def lock_files(ctx: ToolContext, stack: AsyncExitStack, targets: Sequence[ResolvedPath]) -> None:
    """Take the locks of the files, always in the same order, until the stack is closed."""
    for real in sorted({target.real for target in targets}):
        await stack.enter_async_context(ctx.workspace.read_log.lock(real))


def summarize_change(target: ResolvedPath, diff: Diff) -> JSON:
    """Return the wire's summary of a change of one file."""
    return {"file": str(target.path), "patch": diff.patch, "additions": diff.additions, "deletions": diff.deletions}


def patch_metadata(ctx: ToolContext, changes: Sequence[FileChange], diffs: Sequence[Diff]) -> JSON:
    """Return the metadata of a change of several files, for the screen."""
    files = [
        {
            **summarize_change(change.target, diff),
            "relativePath": ctx.workspace.relative(change.target.path),
            "type": _name_status(change),
        }
        for change, diff in zip(changes, diffs, strict=True)
    ]
    first: JSON = {"filediff": summarize_change(changes[0].target, diffs[0])} if len(changes) == 1 else {}
    return {"diff": "".join(diff.patch for diff in diffs), "files": files, "diagnostics": {}, **first}


async def commit_patch(
    ctx: ToolContext, changes: Sequence[FileChange], diffs: Sequence[Diff]
) -> tuple[LandedChanges, Sequence[Diff], JSON]:
    """Make permitted changes of several files with `commit`; return also their final diffs and metadata."""
    with failures(ctx.workspace, *(change.target for change in changes)):
        result = await commit(ctx, changes)
    if any(now is not change for now, change in zip(result.changes, changes, strict=True)):
        diffs = await asyncio.to_thread(lambda: [diff_of(change) for change in result.changes])
    return result, diffs, {**patch_metadata(ctx, result.changes, diffs), "diagnostics": result.diagnostics}


def _name_status(change: FileChange) -> str:
    if change.before is None:
        return "added"
    return "deleted" if change.after is None else "modified"


def diff_of(change: FileChange) -> Diff:
    """Return the diff of a change, named by the path as the model named it, without the shared indentation."""
    diff = unified_diff(str(change.target.path), readable(change.text_before), readable(change.text_after))
    return replace(diff, patch=trim_indent(diff.patch))


def readable(text: str) -> str:
    """Return a text that can be sent to clients: undecodable bytes become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def describe_change(ctx: ToolContext, change: FileChange, diff: Diff, how: str = "", note: str = "") -> str:
    """Describe a change for the model: `Edited src/a.py: lines 3-5`.

    `how`: how the old text was matched; `note`: what its formatters did.
    """
    path = format_path(ctx.workspace, change.target.path)
    if change.before is None:
        return f"Created {path}: {format_line_count(diff.additions)}{note}"
    how_matched = f" (oldString was matched {how})" if how else ""
    if not diff.where:
        return f"{path} is as it was{note}" if note else f"{path} already holds exactly this; nothing was changed."
    return f"Edited {path}: {diff.where if change.text_after else 'it is empty now'}{how_matched}{note}"


def format_replaced(diff: Diff) -> str:
    """Return the removed and added lines of a change: what an approximate match chose, for the model to check."""
    lines = [line[:_WIDTH] for line in diff.patch.split("\n")[_HEADER:] if line[:1] in {"-", "+"}]
    more = [f"({len(lines) - _REPLACED} more)"] if len(lines) > _REPLACED else []
    return "\n".join(["What was replaced:", *lines[:_REPLACED], *more])


def format_line_count(lines: int) -> str:
    """Return a number of lines in words."""
    return f"{lines} line{'' if lines == 1 else 's'}"


async def apply_change(ctx: ToolContext, change: FileChange, how: str = "", note: str = "") -> tuple[str, JSON]:
    """Ask for permission with the diff, make the change if the file is still what it was, and record it as read.

    Returns what was done, for the model (`how`: how the text was matched; `note`: a line below), and the metadata
    `diff`, `filediff`, `diagnostics`. The caller holds the file's lock.
    """
    diff = await asyncio.to_thread(diff_of, change)
    target = change.target
    metadata = {"diff": diff.patch, "filediff": summarize_change(target, diff), "diagnostics": {}}
    ctx.report(title=ctx.workspace.relative(target.path), metadata=metadata)
    await ask_edit(ctx, [target], {"filepath": str(target.path), "diff": diff.patch})
    with failures(ctx.workspace, target):
        result = await commit(ctx, [change])
    if result.changes[0] is not change:
        change = result.changes[0]
        diff = await asyncio.to_thread(diff_of, change)
        metadata |= {"diff": diff.patch, "filediff": summarize_change(target, diff)}
    metadata["diagnostics"] = result.diagnostics
    removed_lines = format_replaced(diff) if how else ""
    lines = (describe_change(ctx, change, diff, how, result.notes[0]), removed_lines, note, result.text)
    return "\n".join(line for line in lines if line), metadata


async def commit(ctx: ToolContext, changes: Sequence[FileChange]) -> LandedChanges:
    """Make permitted changes, all or none; record each file's new state as read by the session; notify the clients.

    Then AfterEdit runs; the changes are returned as it left them.
    """
    after = ctx.services.after_edit
    if after is not None:
        await after.before(changes)
    replacements = [Replacement(c.target.real, c.before, c.after, c.mode) for c in changes]
    stamps = replace_files(replacements, ctx.workspace.notes)
    for change, stamp in zip(changes, stamps, strict=True):
        ctx.session.publish_edit(change.target.path, ctx.workspace.directory)
        if stamp is None:
            ctx.workspace.read_log.forget(ctx.session_id, change.target.real)
        else:
            ctx.workspace.read_log.record(ctx.session_id, change.target.real, stamp)
    if after is None:
        return skip_formatting(changes)
    result = await after.after(ctx.session_id, changes, lambda real: is_free(ctx, real))
    for real, stamp in result.stamps.items():
        ctx.workspace.read_log.record(ctx.session_id, real, stamp)
    return result
