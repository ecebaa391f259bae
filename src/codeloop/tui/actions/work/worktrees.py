"""`/worktree` and `/compare`: open sessions in work trees, manage work trees, compare models."""

import re
from collections.abc import Sequence

from rich.segment import Segment

from codeloop.client.client import Client
from codeloop.client.slash.compare import Comparison, format_comparison, run_comparison
from codeloop.client.worktree_texts import describe_opened_worktree
from codeloop.client.worktrees import is_worktree_verb, open_named_worktree, run_worktree_command
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import UsageProblem
from codeloop.schema.message import Session
from codeloop.schema.resources import Worktree
from codeloop.tui.actions.send import send_prompt
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.parts.dialog_rows import draw_text
from codeloop.tui.dialogs.parts.reading_screen import ReadingScreen
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import wrap_line
from codeloop.tui.render.diff.quoted_diff import draw_quoted_diff
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry

# A value in quotes may hold blanks. Not `shlex`: the prompt after the options
# stays as it was typed.
_OPTION = r"""(-m|--model|--check)[ =]+("[^"]*"|'[^']*'|\S+)\s*"""
_MAX_NOTICE_LINES = 6
"""Lines of an answer that is shown below the conversation;
a longer one gets a screen of its own.
"""


async def open_worktree(ui: Ui, words: str) -> None:
    """Open a session in a work tree, or carry out a verb such as `list`.
    Words after a name are the first prompt.
    """
    if ui.sessions is None:
        raise UsageProblem("The project is still being opened.")
    if is_worktree_verb(words):
        lines = await run_worktree_command(ui.client, words)
        await _show_result(ui, words or "list", lines)
        return
    tree, is_new, prompt = await open_named_worktree(ui.client, words)
    session = await ui.launch.create_session(
        ui.sessions.target.get_directory_client(tree.directory)
    )
    tab = await ui.open_tab(session)
    ui.say(escape_controls("\n".join(describe_opened_worktree(tree, is_new=is_new))))
    if prompt:
        await send_prompt(ui, tab, PromptEntry(prompt), "steer")


async def compare_models(ui: Ui, words: str) -> None:
    """Send a prompt to several models, each in a tab and a work tree of its own;
    then show what each did.
    """
    if ui.sessions is None:
        raise UsageProblem("The project is still being opened.")
    comparison = _parse_comparison(words)

    async def begin(client: Client, tree: Worktree) -> Session:
        del tree
        session = await ui.launch.create_session(client)
        await ui.open_tab(session)
        return session

    rows = await run_comparison(ui.sessions.target, comparison, begin)
    await _show_result(
        ui, "compared", format_comparison(rows, is_checked=comparison.check is not None)
    )


def _parse_comparison(words: str) -> Comparison:
    """Read `-m A -m B [--check COMMAND] PROMPT`. Raises UsageProblem."""
    usage = 'Usage: /compare -m PROVIDER/MODEL -m PROVIDER/MODEL [--check "COMMAND"] PROMPT'
    models: list[str] = []
    check, prompt = None, words.strip()
    while match := re.match(_OPTION, prompt):
        prompt = prompt[match.end() :]
        value = match[2].strip("\"'")
        if match[1] == "--check":
            check = value
        else:
            models.append(value)
    if not prompt:
        raise UsageProblem(usage)
    return Comparison(prompt=prompt, models=tuple(models), check=check)


async def _show_result(ui: Ui, words: str, lines: Sequence[str]) -> None:
    """Show a short answer as a notice, a long one on a screen of its own, a patch as a diff."""
    text = escape_controls("\n".join(lines))
    if len(lines) <= _MAX_NOTICE_LINES:
        ui.say(text)
        return

    def draw(width: int) -> Sequence[Row]:
        styles = ui.appearance.styles
        if words.startswith("diff"):
            canvas = Canvas(width, styles, diff=ui.appearance.diff)
            return draw_quoted_diff(text, canvas, names_one=True) or draw_text(text, styles, width)
        return [
            row
            for line in text.split("\n")
            for row in wrap_line([Segment(line, styles.of("text"))], width)
        ]

    await show_dialog(ui, ReadingScreen(f"Work trees: {words}", draw, lambda: ui.appearance.styles))
