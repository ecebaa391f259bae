"""The question whether to trust a project, and the patches of what has changed
in it since it was trusted.

Asked by every way to open a project with a user present; `codeloop trust` prints the patches alone.
"""

from collections.abc import Sequence

from codeloop.app.settings import ProjectSettings
from codeloop.cli.output.style import paint, paint_patch_line
from codeloop.config.trust.store import TrustChange
from codeloop.kit.text.terminal_text import escape_controls, one_line

# Lines of patches to show; for the rest, the number of lines is given.
_MAX_LINES = 400


def format_trust_changes(changes: Sequence[TrustChange], *, colour: bool) -> str:
    """Return each changed file with its patch, cut to `_MAX_LINES` lines."""
    lines: list[str] = []
    for change in changes:
        lines.append(paint(f"{change.what}: {escape_controls(change.path)}", "bold", colour=colour))
        patch_lines = ["(its text is not shown)"]
        if change.patch:
            # The first two lines name the file, which the line above does already.
            patch_lines = escape_controls(change.patch).rstrip("\n").split("\n")[2:]
        lines += [paint_patch_line(line, colour=colour) for line in patch_lines]
    shown_lines, omitted_count = lines[:_MAX_LINES], len(lines) - _MAX_LINES
    if omitted_count > 0:
        shown_lines.append(f"({omitted_count} more lines: read the files before you say yes)")
    return "\n".join(shown_lines)


def format_trust_question(
    settings: ProjectSettings, changes: Sequence[TrustChange], *, colour: bool
) -> str:
    """Return the text above "Trust it?": what in the project needs trust or has changed,
    and what a yes allows.

    `changes`: of its files since it was trusted.
    """
    root, ignored_keys = one_line(str(settings.project_root.root), 4_096), settings.loaded.ignored
    # A project that was never trusted has no older version to compare with, so its keys are named.
    reason = f"{root} has its own configuration: {one_line(', '.join(ignored_keys), 2_000)}\n"
    if settings.distrust is not None:
        reason = f"{format_trust_changes(changes, colour=colour)}\n{escape_controls(settings.distrust)}.\n"
    return f"{reason}It can run programs and choose where your prompts and keys go.\n"
