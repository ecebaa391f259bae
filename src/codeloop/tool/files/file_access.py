"""File access of tools: resolves the paths that models write,
and asks for permission to read and change the files.

`file_changes.py` makes the permitted changes.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from stat import S_ISDIR

from codeloop.kit.guarded_paths import is_protected, is_secret, needs_confirmation
from codeloop.kit.paths import find_folder
from codeloop.kit.text.undecodable import escape_undecodable, replace_undecodable
from codeloop.kit.wildcard import make_exact_wildcards
from codeloop.schema.errors import CodeloopError
from codeloop.schema.permission import Action, Need, Writes
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.encoding import NotText
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.files.safe_open import FileRefused, check_regular
from codeloop.workspace.workspace import ResolvedPath, Workspace

_ERROR_REASONS = {
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
# Paths that are judged at once; then the event loop gets to other work.
_JUDGE_BATCH_SIZE = 200
REPEATED_FOLDER = "`path` and {} both name the folder; looked for {} in it"
"""The note for the model on a pattern that `strip_search_folder` has changed."""


def format_path(workspace: Workspace, path: Path) -> str:
    """Return a path as the model reads it: relative to the working directory,
    absolute only outside of it.
    """
    return escape_undecodable(workspace.format_for_model(path))


@contextmanager
def convert_errors(workspace: Workspace, *targets: ResolvedPath) -> Generator[None]:
    """Convert errors of the system and of the workspace to ToolFailures that name the file,
    or the patch.
    """
    name = format_path(workspace, targets[0].path) if len(targets) == 1 else "the patch"
    try:
        yield
    except CodeloopError as error:
        text = str(error)
        # The model knows the files by their shortened paths.
        for target in targets:
            text = text.replace(str(target.real), format_path(workspace, target.path))
        text = text.replace(f"{os.path.realpath(workspace.directory)}/", "")
        advice = error.advice if isinstance(error, FileRefused | NotText) else ""
        raise ToolFailure(
            replace_undecodable(text if name in text else f"{name}: {text}"), advice=advice
        ) from error
    except OSError as error:
        reason = _ERROR_REASONS.get(
            errno.errorcode.get(error.errno or 0, ""), error.strerror or str(error)
        )
        raise ToolFailure(f"{name}: {replace_undecodable(reason)}; nothing was changed") from error


def resolve_path(ctx: ToolContext, path: str) -> ResolvedPath:
    """Resolve a path as the model wrote it. Raises ToolFailure if no file can have that path, or
    it leads out of the project where one from the shell's folder would not.
    """
    if not path.strip():
        raise ToolFailure("filePath is empty.", advice="Give the path of a file.")
    try:
        target = ctx.workspace.resolve(path)
    except (ValueError, RuntimeError, OSError) as error:
        raise ToolFailure(f"{path!r} is not a valid path: {error}") from error
    _check_start(ctx, path, target)
    return target


ListNeeds = Callable[[ResolvedPath], Sequence[Need]]
"""Takes the resolved path of a call; returns the call's further needs."""


async def resolve_allowed(ctx: ToolContext, path: str, needs: ListNeeds) -> ResolvedPath:
    """Resolve a path and ask, in one question, for all that the call needs.

    A path outside the workspace needs `external_directory` for its real target, too.
    Raises ToolFailure, Denied or Rejected.
    """
    target = resolve_path(ctx, path)
    await ctx.ask(*make_outside_needs([target], {}), *needs(target))
    return target


def _check_start(ctx: ToolContext, path: str, target: ResolvedPath) -> None:
    """Refuse a relative path that leads out of the project if it would not from
    the folder that `cd` led to.

    Paths start in one folder, whatever commands did; the model took the shell's for it.
    Raises ToolFailure.
    """
    workspace = ctx.workspace
    if not target.is_outside or Path(path).is_absolute() or path.startswith("~"):
        return
    folder = workspace.shells.find_directory(ctx.session_id)
    if (
        folder is None
        or folder == workspace.directory
        or workspace.resolve(path, folder).is_outside
    ):
        return
    meant = format_path(workspace, workspace.resolve(path, folder).path)
    raise ToolFailure(
        f"{path} leads out of the project.",
        advice=f"Paths start in {workspace.directory}, also after `cd`. From {folder} that is {meant}: give this.",
    )


async def resolve_search_target(
    ctx: ToolContext, path: str | None, needs: ListNeeds, *, only_folder: bool = False
) -> ResolvedPath:
    """Resolve the path that a search is for (default: the working directory) and ask for
    all that it needs at once.

    Raises ToolFailure if there is no such file or folder,
    Denied or Rejected if it may not be searched.
    """
    if path and "\0" in path:
        raise ToolFailure(
            "The path contains a NUL character, which no file name can have.",
            advice="Leave it out.",
        )
    target = resolve_path(ctx, path or ".")
    # Whether a path outside the project exists is only revealed once permission was given.
    if not target.is_outside:
        await _check_exists(ctx, target, only_folder=only_folder)
    await ctx.ask(*make_outside_needs([target], {}), *needs(target))
    if target.is_outside:
        await _check_exists(ctx, target, only_folder=only_folder)
    return target


def strip_search_folder(workspace: Workspace, target: ResolvedPath, pattern: str) -> str | None:
    """Return a pattern without the search folder at its start;
    None when the pattern does not start with it.

    Models name the folder twice: as `path`, and at the start of the pattern. A pattern that starts
    with a folder of the same name inside the search folder means that one, and stays.
    """
    where = format_path(workspace, target.path)
    rest = pattern.removeprefix("/").removeprefix("./").removeprefix(f"{where}/")
    is_repeated = (
        len(rest) + len(where) < len(pattern)
        and not (target.path / where.partition("/")[0]).exists()
    )
    return rest if is_repeated and not where.startswith("/") else None


async def _check_exists(ctx: ToolContext, target: ResolvedPath, *, only_folder: bool) -> None:
    name = format_path(ctx.workspace, target.path)
    try:
        mode = target.path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolFailure(
            await describe_missing_file(ctx, target, "There is no file or folder {}")
        ) from error
    except OSError as error:
        raise ToolFailure(f"{name} can't be searched: {error.strerror}.") from error
    if only_folder and not S_ISDIR(mode):
        raise ToolFailure(f"{name} is a file.", advice="Give the path of a folder, or read it.")
    if not S_ISDIR(mode):
        # From a pipe or a device a search would read for ever.
        with convert_errors(ctx.workspace, target):
            check_regular(target.real, mode)


def check_unmoved(ctx: ToolContext, target: ResolvedPath) -> None:
    """Raise ToolFailure if a path leads elsewhere than when permission was asked,
    which may be days ago.
    """
    if os.path.realpath(target.path) != str(target.real):
        name = format_path(ctx.workspace, target.path)
        raise ToolFailure(
            f"{name} leads elsewhere than when it was asked about.", advice="Look at it again."
        )


async def describe_missing_file(
    ctx: ToolContext, target: ResolvedPath, text: str = "File not found: {}"
) -> str:
    """Return a message that a file does not exist (its path for each `{}` of `text`),
    with similar paths.
    """
    from codeloop.tool.files.similar_paths import find_similar_paths

    similar_paths = await find_similar_paths(ctx.workspace, target.path)
    folder = target.path.parent
    where = (
        ""
        if folder.is_dir()
        else f" (the folder {format_path(ctx.workspace, folder)} does not exist)"
    )
    first = text.replace("{}", format_path(ctx.workspace, target.path)) + where
    return "\n".join(
        [
            first,
            *(["Similar paths:"] if similar_paths else []),
            *map(escape_undecodable, similar_paths),
        ]
    )


def list_outside_patterns(paths: Iterable[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the patterns of `external_directory` for paths, a folder with all below it,
    and the folders' that "always" may allow: () where a name has a character of patterns.
    """
    folders = {path: find_folder(path) for path in paths}
    patterns = (str(path / "*" if path == folders[path] else path) for path in folders)
    names = tuple(dict.fromkeys(map(str, folders.values())))
    always = tuple(str(Path(name, "*")) for name in make_exact_wildcards(names))
    return tuple(dict.fromkeys(patterns)), always


def make_outside_needs(targets: Iterable[ResolvedPath], metadata: JSON) -> list[Need]:
    """Return one permission need for all targets outside the work tree; none if all are inside."""
    outside = [target.real for target in targets if target.is_outside]
    if not outside:
        return []
    shown = {
        "filepath": ", ".join(map(str, outside)),
        "parentDir": ", ".join(dict.fromkeys(str(find_folder(path)) for path in outside)),
    }
    patterns, always = list_outside_patterns(outside)
    return [
        Need(
            permission="external_directory",
            patterns=patterns,
            always=always,
            metadata={**metadata, **shown},
        )
    ]


def is_free_to_read(ctx: ToolContext, real: Path) -> bool:
    """Return whether a resolved path is in the project and this session may
    read it without a question.
    """
    workspace = ctx.workspace
    return workspace.contains(real) and not ctx.session.judge(
        "read", [make_permission_name(workspace, real)]
    )


async def filter_free_to_read(ctx: ToolContext, paths: Sequence[Path]) -> list[Path]:
    """Return the paths that this session may read without a question.
    Does not block the event loop for long.
    """
    not_free = await _judge_paths(ctx, "read", paths)
    return [path for path in paths if path not in not_free]


async def filter_names(
    ctx: ToolContext, permission: str, paths: Sequence[Path]
) -> tuple[list[Path], str]:
    """Leave out the paths that a rule denies for a tool that lists names;
    return the others, and a note on it.

    A rule that denies to read a file keeps its content, not its name.
    Does not block the event loop for long.
    """
    # Rules like that are few, and a listing may have a hundred thousand names.
    if not ctx.session.list_denials(permission):
        return list(paths), ""
    actions = await _judge_paths(ctx, permission, paths)
    shown = [path for path in paths if actions.get(path) != "deny"]
    left_out = len(paths) - len(shown)
    return shown, f"{left_out} left out, as rules for {permission} deny them" if left_out else ""


async def _judge_paths(
    ctx: ToolContext, permission: str, paths: Sequence[Path]
) -> dict[Path, Action]:
    """Return the action of the rules on each path, judged alone; allowed paths are left out."""

    def make_names(batch: Sequence[Path]) -> list[str]:
        return [make_permission_name(ctx.workspace, Path(os.path.realpath(path))) for path in batch]

    not_allowed: dict[Path, Action] = {}
    for start in range(0, len(paths), _JUDGE_BATCH_SIZE):
        batch = paths[start : start + _JUDGE_BATCH_SIZE]
        names = await asyncio.to_thread(make_names, batch)
        actions = ctx.session.judge(permission, names)
        not_allowed |= {
            path: actions[name] for path, name in zip(batch, names, strict=True) if name in actions
        }
    return not_allowed


def make_read_need(workspace: Workspace, target: ResolvedPath) -> Need:
    """Return the permission to read a file. "Always" covers all files;
    for a file with keys it covers that file.
    """
    name = make_permission_name(workspace, target.real)
    always = make_exact_wildcards((name,)) if is_secret(name) else ("*",)
    return Need(permission="read", patterns=(name,), always=always)


def make_edit_needs(
    workspace: Workspace, files: Iterable[Path], metadata: JSON, possible: tuple[str, ...] = ()
) -> list[Need]:
    """Return the permissions to change files (resolved paths).
    `possible`: patterns of files that may be changed too.

    Protected files are a question of their own, which "always" does not cover. For files that make
    something run later, "always" covers these files only,
    and a permitted change is not asked about again in the session.
    """
    files_by_name = {make_permission_name(workspace, real): real for real in files}
    protected = {name: real for name, real in files_by_name.items() if is_protected(name)}
    confirmed = {
        name: real
        for name, real in files_by_name.items()
        if needs_confirmation(name) and name not in protected
    }
    plain = {
        name: real
        for name, real in files_by_name.items()
        if name not in protected and name not in confirmed
    }
    needs = [
        Need(
            permission="edit",
            patterns=tuple(group),
            always=always,
            metadata=metadata,
            writes=Writes(tuple(group.values())),
            once=group is confirmed and bool(always),
        )
        for group, always in (
            (protected, ()),
            (confirmed, make_exact_wildcards([*confirmed])),
            (plain, ("*",)),
        )
        if group
    ]
    return [
        *needs,
        *(
            [Need(permission="edit", patterns=(), metadata=metadata, possible=possible)]
            if possible
            else []
        ),
    ]


async def ask_edit(ctx: ToolContext, targets: Sequence[ResolvedPath], metadata: JSON) -> None:
    """Ask for permission to change the files, and to work outside the project,
    in one question that shows the diff.
    """
    edits = make_edit_needs(ctx.workspace, (target.real for target in targets), metadata)
    await ctx.ask(*make_outside_needs(targets, metadata), *edits)


async def check_edit(ctx: ToolContext, targets: Sequence[ResolvedPath]) -> None:
    """Raise Denied when a rule forbids changing the files, before they are read."""
    names = [make_permission_name(ctx.workspace, target.real) for target in targets]
    folders = [pattern for need in make_outside_needs(targets, {}) for pattern in need.patterns]
    judge = ctx.session.judge
    # Asking raises Denied with the reason of the rule.
    if "deny" in {*judge("edit", names).values(), *judge("external_directory", folders).values()}:
        await ask_edit(
            ctx, targets, {"filepath": ", ".join(str(target.path) for target in targets)}
        )


@asynccontextmanager
async def ask_before_failure(
    ctx: ToolContext, targets: Iterable[ResolvedPath], arguments: JSON
) -> AsyncGenerator[None]:
    """Ask before the model learns why a change outside the project fails,
    since that reveals what is there.

    Every failure is recorded as a refusal, for the next `read` of the files.
    `arguments`: those of the call, which the question shows in place of a diff.
    """
    try:
        yield
    except ToolFailure:
        # The next `read` must return these files' lines again,
        # not a reference to an earlier result.
        for target in targets:
            ctx.workspace.read_log.record_refusal(ctx.session_id, target.real)
        last_stamp = ctx.workspace.read_log.find_last_stamp
        unseen = [target for target in targets if last_stamp(ctx.session_id, target.real) is None]
        if needs := make_outside_needs(unseen, {"input": arguments}):
            await ctx.ask(*needs)
        raise
