"""How the file tools ask for leave, and make a change that was agreed to."""

from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from codeloop.kit.diff import Diff, trim_indent, unified
from codeloop.permission.defaults import SECRETS
from codeloop.permission.rules import decide
from codeloop.schema.errors import CodeloopError
from codeloop.schema.live import FileEdited, FilePath
from codeloop.schema.rules import Need, Rule
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files import Loaded, Replacement, load_if_there, replace_all
from codeloop.workspace.text import Text, decode
from codeloop.workspace.workspace import Target, Workspace

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


class Change(Struct, frozen=True):
    """A change of one file that waits for leave. `after` is None for a deletion; `text_*` are for the diff."""

    target: Target
    before: Loaded | None
    after: bytes | None
    text_before: str
    text_after: str
    mode: int | None = None


@contextmanager
def failures(path: str) -> Generator[None]:
    """Turn what the system or the workspace refuses into a ToolFailure that names the path."""
    try:
        yield
    except CodeloopError as error:
        raise ToolFailure(readable(_about(path, str(error)))) from error
    except OSError as error:
        import errno

        name = errno.errorcode.get(error.errno or 0, "")
        reason = _REASONS.get(name, error.strerror or str(error))
        raise ToolFailure(readable(f"{path}: {reason}; nothing was changed")) from error


def _about(path: str, text: str) -> str:
    return text if path in text else f"{path}: {text}"


def resolve(workspace: Workspace, path: str) -> Target:
    """Resolve a path as the model wrote it; ToolFailure when it can't name a file."""
    if not path.strip():
        raise ToolFailure("filePath is empty; give the path of a file")
    try:
        return workspace.resolve(path)
    except (ValueError, RuntimeError, OSError) as error:
        raise ToolFailure(f"{path!r} can't be a path: {error}") from error


async def admit(ctx: ToolContext, path: str, *, folder: bool = False) -> Target:
    """Resolve a path and, when it lies outside the workspace, ask for `external_directory` first, by its real target.

    `folder`: the path itself is the directory that is asked for, if it is one.
    """
    target = resolve(ctx.workspace, path)
    if target.outside:
        parent = target.real if folder and target.real.is_dir() else target.real.parent
        patterns = (str(parent / "*"),)
        metadata = {"filepath": str(target.real), "parentDir": str(parent)}
        await ctx.ask(Need(permission="external_directory", patterns=patterns, always=patterns, metadata=metadata))
    return target


def shown(workspace: Workspace, target: Target) -> str:
    """Give the path that a permission names: of the real target, relative to the worktree; "." for its top."""
    return workspace.relative(target.real) or "."


def is_repository_data(pattern: str) -> bool:
    """Tell whether a path is, or lies in, a `.git`."""
    return ".git" in {part.lower() for part in Path(pattern).parts}


PLAIN = (Rule(permission="read", pattern="*", action="allow"), *SECRETS)
"""The rules of reading, without a person's own."""


def is_secret(path: str) -> bool:
    """Tell whether reading a file is asked about before anybody has said anything: `.env` and the like."""
    return decide(Need(permission="read", patterns=(path,)), PLAIN).action != "allow"


async def ask_edit(ctx: ToolContext, targets: Sequence[Target], metadata: JSON) -> None:
    """Ask for leave to change the files; for what lies under `.git` by a question of its own."""
    patterns = tuple(dict.fromkeys(shown(ctx.workspace, target) for target in targets))
    guarded = tuple(pattern for pattern in patterns if is_repository_data(pattern))
    plain = tuple(pattern for pattern in patterns if pattern not in guarded)
    if guarded:
        await ctx.ask(Need(permission="edit", patterns=guarded, always=(), metadata=metadata))
    if plain:
        await ctx.ask(Need(permission="edit", patterns=plain, always=("*",), metadata=metadata))


def load_text(real: Path) -> tuple[Loaded, Text] | None:
    """Read a file as text, None when there is none. Raises FileRefused or NotText, OSError."""
    loaded = load_if_there(real)
    return None if loaded is None else (loaded, decode(loaded.data))


def check_known(ctx: ToolContext, real: Path, loaded: Loaded, *, must_be_read: bool) -> None:
    """Raise ToolFailure when the session read the file and it changed since, or when it had to be read and was not."""
    seen = ctx.workspace.files.seen(ctx.session_id, real)
    if seen is None and must_be_read:
        raise ToolFailure(f"{real} was not read in this session; read it first, so that nothing in it is lost unseen")
    if seen is not None and not seen.same(loaded.stamp):
        raise ToolFailure(f"{real} changed since it was read; read it again, then repeat the change on what it holds")


async def hold(ctx: ToolContext, stack: AsyncExitStack, targets: Sequence[Target]) -> None:
    """Take the locks of the files, in one order for everybody, until the stack is left."""
    for real in sorted({target.real for target in targets}):
        await stack.enter_async_context(ctx.workspace.files.lock(real))


def filediff(target: Target, diff: Diff) -> JSON:
    """Give the wire's summary of a change of one file."""
    return {"file": str(target.path), "patch": diff.patch, "additions": diff.additions, "deletions": diff.deletions}


def diff_of(change: Change) -> Diff:
    """Give the diff of a change, named by the path as the model named it, without the shared indentation."""
    diff = unified(str(change.target.path), readable(change.text_before), readable(change.text_after))
    return Diff(trim_indent(diff.patch), diff.additions, diff.deletions)


def readable(text: str) -> str:
    """Give a text that any client can be sent: bytes that are no characters become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


async def make(ctx: ToolContext, change: Change) -> JSON:
    """Ask for leave with the diff, make the change if the file is still what it was, and note it as read.

    Gives the metadata `diff`, `filediff`, `diagnostics`. The caller holds the file's lock.
    """
    diff = diff_of(change)
    target = change.target
    metadata = {"diff": diff.patch, "filediff": filediff(target, diff), "diagnostics": {}}
    ctx.report(title=ctx.workspace.relative(target.path), metadata=metadata)
    await ask_edit(ctx, [target], {"filepath": str(target.path), "diff": diff.patch})
    with failures(str(target.path)):
        commit(ctx, [change])
    return metadata


def commit(ctx: ToolContext, changes: Sequence[Change]) -> None:
    """Make agreed changes, all or none; note each file's new state as known to the session, and tell the clients."""
    wanted = [Replacement(c.target.real, c.before, c.after, c.mode) for c in changes]
    stamps = replace_all(wanted, ctx.workspace.notes)
    for change, stamp in zip(changes, stamps, strict=True):
        edited = FileEdited(properties=FilePath(file=str(change.target.path)))
        ctx.store.whisper(edited, str(ctx.workspace.directory))
        if stamp is None:
            ctx.workspace.files.forget(ctx.session_id, change.target.real)
        else:
            ctx.workspace.files.record(ctx.session_id, change.target.real, stamp)
