"""Checks that the editing tools make before a change: the session has read the file,
and knows its current content.

A new text with a line like `// ... rest of the code`, which stands for omitted text,
is refused the first time.
"""

import os
import re

from codeloop.kit.guarded_paths import is_secret
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.file_access import format_path
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.files.safe_open import LoadedFile
from codeloop.workspace.workspace import ResolvedPath

# The usual error quotes lines of the file that resemble the searched text. These replace it where
# the file may not be quoted, because the session was not allowed to read it.
UNQUOTED_ERROR = "the text was not found, or more than once."
UNQUOTED_ADVICE = "Read the file, which is asked about, to see what it holds."

_ELISION_WORDS = (
    r"(?:the[ \t]+)?(?:rest|remain(?:der|ing)|existing|unchanged|previous|same|other|keep)"
)
_COMMENT_START = r"(?:\#|//|--|;|%|/\*|<!--|\{/\*|\(\*)"
_DOTS = r"(?:\.\.\.|\u2026)"
_OTHER_WORDS = r"[^=;{}\n]{0,80}"
_LINE_END = r"[ \t]*(?:\*/\}?|-->|\*\))?[ \t\r]*$"
_ELISION_LINE = (
    rf"(?im)^[ \t]*{_COMMENT_START}[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_ELISION_WORDS}\b{_OTHER_WORDS}{_LINE_END}"
    rf"|^[ \t]*{_COMMENT_START}[ \t]*[\[(<]?{_ELISION_WORDS}\b{_OTHER_WORDS}{_DOTS}[\])>]?{_LINE_END}"
    rf"|^[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_ELISION_WORDS}[ \t]+\w{_OTHER_WORDS}$"
)
"""Matches a comment with dots before or after such words, or a line of dots and at least two words.

`// ... rest of the code`, `# existing imports ...`, `<!-- ... keep the other rows -->`, `... (the
rest of the file)`. `...rest` alone is a spread in JavaScript. No part of the pattern may match a
line end: with one that did, a text of many blank lines took minutes.
"""


def may_quote(ctx: ToolContext, target: ResolvedPath) -> bool:
    """Return whether an error may quote a file: this session has read it,
    or may read it without a question.
    """
    is_seen = ctx.workspace.read_log.find_last_stamp(ctx.session_id, target.real) is not None
    return is_seen or not ctx.session.judge(
        "read", [make_permission_name(ctx.workspace, target.real)]
    )


def check_may_reveal(ctx: ToolContext, target: ResolvedPath) -> None:
    """Raise ToolFailure for a file with keys, or one that a rule forbids to read,
    unless the session may quote it.

    Otherwise the model could find out the content by trying edits: one that matches succeeds,
    others fail.
    """
    name = make_permission_name(ctx.workspace, target.real)
    is_guarded = is_secret(name) or "deny" in ctx.session.judge("read", [name]).values()
    if is_guarded and os.path.lexists(target.real) and not may_quote(ctx, target):
        shown_name = format_path(ctx.workspace, target.path)
        raise ToolFailure(
            f"{shown_name} was not read in this session, and it is not free to read.",
            advice="Read it first.",
        )


def has_changed_since_read(ctx: ToolContext, target: ResolvedPath, loaded: LoadedFile) -> bool:
    """Return whether a file has changed since the session last read it; False if it never did."""
    log = ctx.workspace.read_log
    stamp = log.find_last_stamp(ctx.session_id, target.real)
    return stamp is not None and (
        log.has_unseen_changes(ctx.session_id, target.real) or not stamp.matches(loaded.stamp)
    )


def check_unchanged_since_read(
    ctx: ToolContext, target: ResolvedPath, loaded: LoadedFile, *, must_be_read: bool = True
) -> None:
    """Raise ToolFailure if a file has changed since the session read it, or, by default,
    if it was never read.
    """
    stamp = ctx.workspace.read_log.find_last_stamp(ctx.session_id, target.real)
    name = format_path(ctx.workspace, target.path)
    if stamp is None and must_be_read:
        raise ToolFailure(
            f"{name} was not read in this session.",
            advice="Read it first, so that you overwrite nothing unseen.",
        )
    if has_changed_since_read(ctx, target, loaded):
        raise ToolFailure(
            f"{name} changed since it was read.",
            advice="Read it again, then make the change on its current content.",
        )


def check_no_elision(ctx: ToolContext, change: FileChange) -> None:
    """Raise ToolFailure if a new line stands for omitted text.
    The same line passes the second time: it is meant.
    """
    first_offsets: dict[str, int] = {}
    for match in re.finditer(_ELISION_LINE, change.text_after):
        first_offsets.setdefault(match[0].strip(), match.start())
    for line, start in first_offsets.items():
        key = ctx.session_id, line
        if line not in change.text_before and key not in ctx.services.asked_elisions:
            ctx.services.asked_elisions.add(key)
            number = change.text_after.count("\n", 0, start) + 1
            raise ToolFailure(
                f"Line {number} of {format_path(ctx.workspace, change.target.path)} would be `{line}`: nothing is put "
                "in its place, and nothing was changed.",
                advice="Give the whole text, or edit only the part that changes. If the line is meant, call again.",
            )
