"""Checks before an edit: whether the session has read the file, whether it changed since, and what stands for text.

A line like `// ... rest of the code` in a new text is refused the first time.
"""

import os
import re

from codeloop.kit.guarded_paths import is_secret
from codeloop.tool.after_edit import FileChange
from codeloop.tool.file_access import format_path, permission_path
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.safe_open import LoadedFile
from codeloop.workspace.workspace import ResolvedPath

UNQUOTED = ("the text was not found, or more than once.", "Read the file, which is asked about, to see what it holds.")
"""The error, and the advice to the model, for a failed edit of a file that may not be quoted."""

_WORDS = r"(?:the[ \t]+)?(?:rest|remain(?:der|ing)|existing|unchanged|previous|same|other|keep)"
_COMMENT = r"(?:\#|//|--|;|%|/\*|<!--|\{/\*|\(\*)"
_DOTS = r"(?:\.\.\.|\u2026)"
_MORE = r"[^=;{}\n]{0,80}"
_END = r"[ \t]*(?:\*/\}?|-->|\*\))?[ \t\r]*$"
_LINE = re.compile(
    rf"^[ \t]*{_COMMENT}[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_WORDS}\b{_MORE}{_END}"
    rf"|^[ \t]*{_COMMENT}[ \t]*[\[(<]?{_WORDS}\b{_MORE}{_DOTS}[\])>]?{_END}"
    rf"|^[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_WORDS}[ \t]+\w{_MORE}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A comment with dots before or after such words, or dots and two words at least: `...rest` alone is a spread.

No part of it goes past the end of a line: with one that matches newlines, a text of many blank lines took minutes.
"""


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
    stamp = log.last_stamp(ctx.session_id, target.real)
    return stamp is not None and (log.is_unseen(ctx.session_id, target.real) or not stamp.same(loaded.stamp))


def check_known(ctx: ToolContext, target: ResolvedPath, loaded: LoadedFile, *, must_be_read: bool = True) -> None:
    """Raise ToolFailure when the session read the file and it changed since, or when it had to be read and was not."""
    stamp, name = (
        ctx.workspace.read_log.last_stamp(ctx.session_id, target.real),
        format_path(ctx.workspace, target.path),
    )
    if stamp is None and must_be_read:
        raise ToolFailure(
            f"{name} was not read in this session.", advice="Read it first, so that you overwrite nothing unseen."
        )
    if has_changed(ctx, target, loaded):
        raise ToolFailure(
            f"{name} changed since it was read.",
            advice="Read it again, then make the change on its current content.",
        )


def check_elision(ctx: ToolContext, change: FileChange) -> None:
    """Raise ToolFailure for a new line that stands for omitted lines, the first time that it comes."""
    first_places: dict[str, int] = {}
    for match in _LINE.finditer(change.text_after):
        first_places.setdefault(match[0].strip(), match.start())
    for line, start in first_places.items():
        key = ctx.session_id, line
        if line not in change.text_before and key not in ctx.services.asked_elisions:
            ctx.services.asked_elisions.add(key)
            number = change.text_after.count("\n", 0, start) + 1
            raise ToolFailure(
                f"Line {number} of {format_path(ctx.workspace, change.target.path)} would be `{line}`: nothing is put "
                "in its place, and nothing was changed.",
                advice="Give the whole text, or edit only the part that changes. If the line is meant, call again.",
            )
