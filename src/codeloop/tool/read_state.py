"""Checks before an edit: whether the session has read the file, and whether it changed since."""

import os

from codeloop.kit.guarded_paths import is_secret
from codeloop.tool.file_access import format_path, permission_path
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.safe_open import LoadedFile
from codeloop.workspace.workspace import ResolvedPath

UNQUOTED = ("the text was not found, or more than once.", "Read the file, which is asked about, to see what it holds.")
"""The error, and the advice to the model, for a failed edit of a file that may not be quoted."""


def may_quote(ctx: ToolContext, target: ResolvedPath) -> bool:
    """Return whether a failure may quote a file: it was read in this session, or is free to read."""
    is_seen = ctx.workspace.read_log.last_stamp(ctx.session_id, target.real) is not None
    return is_seen or not ctx.session.judge("read", [permission_path(ctx.workspace, target)])


def check_shown(ctx: ToolContext, target: ResolvedPath) -> None:
    """Raise ToolFailure when the file was not read in this session and must not be read, or holds keys.

    Otherwise a failed match would reveal its content.
    """
    name = permission_path(ctx.workspace, target)
    is_guarded = is_secret(name) or "deny" in ctx.session.judge("read", [name]).values()
    if is_guarded and os.path.lexists(target.real) and not may_quote(ctx, target):
        shown_name = format_path(ctx.workspace, target.path)
        raise ToolFailure(
            f"{shown_name} was not read in this session, and it is not free to read.", advice="Read it first."
        )


def has_changed(ctx: ToolContext, target: ResolvedPath, loaded: LoadedFile) -> bool:
    """Return whether the file differs from what the session read, or holds changes that it never saw."""
    log = ctx.workspace.read_log
    seen = log.last_stamp(ctx.session_id, target.real)
    return seen is not None and (log.is_unseen(ctx.session_id, target.real) or not seen.same(loaded.stamp))


def check_known(ctx: ToolContext, target: ResolvedPath, loaded: LoadedFile, *, must_be_read: bool = True) -> None:
    """Raise ToolFailure when the session read the file and it changed since, or when it had to be read and was not."""
    seen, name = ctx.workspace.read_log.last_stamp(ctx.session_id, target.real), format_path(ctx.workspace, target.path)
    if seen is None and must_be_read:
        raise ToolFailure(
            f"{name} was not read in this session.", advice="Read it first, so that you overwrite nothing unseen."
        )
    if has_changed(ctx, target, loaded):
        raise ToolFailure(
            f"{name} changed since it was read.",
            advice="Read it again, then make the change on its current content.",
        )
