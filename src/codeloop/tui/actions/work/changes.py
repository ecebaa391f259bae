"""`/diff`: shows the files that a session has changed, each with its diff."""

from collections.abc import Sequence

from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_undo import SESSION_DIFF, SessionDiffQuery
from codeloop.schema.message import SnapshotFileDiff
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.parts.dialog_rows import draw_text
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.parts.reading_screen import ReadingScreen
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.diff.quoted_diff import draw_quoted_diff
from codeloop.tui.ui import Ui


async def show_changes(ui: Ui, words: str) -> None:
    """List the changed files; Enter shows the diff of one over the whole screen.
    `words`: the file to show at once.
    """
    client, session_id = ui.client, ui.session.id
    diffs_by_name: dict[str, SnapshotFileDiff] = {}

    async def list_files() -> Sequence[Pick[str]]:
        diffs = await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session_id, whole=True))
        diffs_by_name.update({diff.file or "": diff for diff in diffs})
        return [
            Pick(name, name, hint=f"+{diff.additions} -{diff.deletions}")
            for name, diff in diffs_by_name.items()
        ]

    def draw_diff(name: str, width: int) -> Sequence[Row]:
        styles, patch = ui.appearance.styles, diffs_by_name[name].patch or ""
        plain = escape_controls(patch) or "This file is not text, or too large to be shown."
        return draw_quoted_diff(patch, Canvas(width, styles, diff=ui.appearance.diff)) or draw_text(
            plain, styles, width
        )

    async def preview(name: str, width: int) -> Sequence[Row]:
        return draw_diff(name, width)

    source = PickSource(
        title="Changed files",
        load=list_files,
        preview=preview,
        empty_message="No file was changed.",
        choose_label="show",
    )
    # Without the dialog, nothing else loads the diffs.
    if words:
        await list_files()
    file = (
        words
        if words in diffs_by_name
        else await show_dialog(ui, Picker(source, lambda: ui.appearance.styles))
    )
    if file is not None:
        title = one_line(file, 200)
        await show_dialog(
            ui,
            ReadingScreen(
                title, lambda width: draw_diff(file, width), lambda: ui.appearance.styles
            ),
        )
