"""Words the question whether to trust a project, with what has changed in it since it was trusted."""

from collections.abc import Sequence

from codeloop.app.settings import ProjectSettings
from codeloop.cli.output.style import Look, paint
from codeloop.config.trust.changes import list_trust_changes
from codeloop.config.trust.state import TrustChange
from codeloop.kit.terminal_text import escape_controls, one_line

_LOOKS: dict[str, Look] = {"+": "green", "-": "red", "@": "cyan"}
_MOST = 400


def changes_text(changes: Sequence[TrustChange], *, colour: bool) -> str:
    """Return each changed file with its patch; beyond 400 lines, how many more there are."""
    lines: list[str] = []
    for change in changes:
        lines.append(paint(f"{change.what}: {escape_controls(change.path)}", "bold", colour=colour))
        patch = (
            escape_controls(change.patch).rstrip("\n").split("\n")[2:] if change.patch else ["(its text is not shown)"]
        )
        lines += [paint(line, _LOOKS[line[0]], colour=colour) if line[:1] in _LOOKS else line for line in patch]
    omitted_lines = len(lines) - _MOST
    return "\n".join(lines[:_MOST]) + (
        f"\n({omitted_lines} more lines: read the files before you say yes)" if omitted_lines > 0 else ""
    )


def trust_question(settings: ProjectSettings, *, colour: bool) -> str:
    """Word the question of trust: what a project has that needs it, how that changed, what a yes means."""
    root, ignored_keys = one_line(str(settings.project_root.root), 4_096), settings.loaded.ignored
    about = f"{root} has its own configuration: {one_line(', '.join(ignored_keys), 2_000)}\n"
    if settings.distrust is not None:
        changes = list_trust_changes(settings.paths, settings.project_root.root, settings.project_root.directory)
        about = f"{changes_text(changes, colour=colour)}\n{escape_controls(settings.distrust)}.\n"
    return f"{about}It can run programs and choose where your prompts and keys go.\n"
