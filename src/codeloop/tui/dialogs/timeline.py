"""The dialog of a session's prompts: scroll to one, copy it, fork the session before it,
or undo from it on.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgspec import Struct
from rich.segment import Segment

from codeloop.client.undo_redo import UNDO_WORDS, list_conflict_lines, list_done_lines
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import SESSION_FORK, ForkSession
from codeloop.schema.api.session_undo import (
    SESSION_DIFF,
    SESSION_REVERT,
    FileDone,
    FilesOutcome,
    RevertSession,
    SessionDiffQuery,
)
from codeloop.schema.message import UserMessage
from codeloop.schema.wire import replace
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.session_messages import draw_messages, join_text, read_messages
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import justify_row
from codeloop.tui.render.formats import format_short_time

_MAX_LISTED_FILES = 12


class TimelineStep(Struct, frozen=True):
    """The chosen prompt and action: show it (`jump`), `copy` its text, `fork` before it,
    or `undo` from it on.

    `text`: the prompt's text, which can be edited and sent again.
    `session_id`: the session to show, such as the fork.
    """

    action: Literal["jump", "copy", "fork", "undo"]
    message_id: str
    text: str = ""
    session_id: str = ""


class Timeline(Picker[TimelineStep]):
    """The prompts of a session, the latest first. Closes with the choice;
    a fork or an undo is done before it closes.

    `goes_back`: Enter undoes from the prompt on, instead of scrolling to it.
    """

    def __init__(self, context: DialogContext, session_id: str, *, goes_back: bool = False) -> None:
        self._dialog_context = context
        self._session_id = session_id
        self._goes_back = goes_back
        self._messages: list[MessageWithParts] = []
        undo = PickAction("ctrl+u", "undo from here", self._undo)
        actions = (
            PickAction("ctrl+y", "copy", self._copy),
            PickAction("ctrl+f", "fork before it", self._fork),
            *(() if goes_back else (undo,)),
        )
        source = PickSource(
            title="Go back to a prompt" if goes_back else "Timeline",
            load=self._load_rows,
            actions=actions,
            preview=self._draw_turn,
            empty_message="Nothing was said yet.",
            choose_label="go back to before it" if goes_back else "go there",
        )
        super().__init__(source, context.get_styles)

    def choose(self, value: TimelineStep) -> None:
        """Close with the prompt to show, or undo from it on."""
        if self._goes_back:
            self.perform(partial(self._undo, value))
        else:
            super().choose(value)

    async def _load_rows(self) -> Sequence[Pick[TimelineStep]]:
        self._messages = await read_messages(self._dialog_context.client, self._session_id)
        picks: list[Pick[TimelineStep]] = []
        for message in self._messages:
            text = join_text(message)
            if isinstance(message.info, UserMessage) and text:
                step = TimelineStep("jump", message.info.id, text, self._session_id)
                picks.append(Pick(step, text, hint=format_short_time(message.info.time.created)))
        return picks[::-1]

    async def _draw_turn(self, step: TimelineStep, width: int) -> Sequence[Row]:
        """Return the rows of the preview: the prompt, its answers,
        and the files that its turn changed.
        """
        ids = [message.info.id for message in self._messages]
        start = ids.index(step.message_id)
        later_prompts = (
            at
            for at in range(start + 1, len(ids))
            if isinstance(self._messages[at].info, UserMessage)
        )
        turn = self._messages[start : next(later_prompts, len(ids))]
        styles = self.get_styles()
        rows = draw_messages(turn, styles, width)
        query = SessionDiffQuery(session_id=self._session_id, message_id=step.message_id)
        for number, diff in enumerate(await self._dialog_context.client.call(SESSION_DIFF, query)):
            # An empty row separates the files from the answers.
            rows += [[]] if number == 0 else []
            name = Segment(
                f"  {one_line(diff.file or '', max(width - 16, 8))}", styles.of("text_muted")
            )
            additions = Segment(f"+{diff.additions} ", styles.of("diff_added"))
            rows.append(
                justify_row(
                    [name],
                    [additions, Segment(f"-{diff.deletions}", styles.of("diff_removed"))],
                    width,
                )
            )
        return rows

    async def _copy(self, step: TimelineStep | None) -> bool:
        if step is not None:
            self.dismiss(TimelineStep("copy", step.message_id, step.text, self._session_id))
        return False

    async def _fork(self, step: TimelineStep | None) -> bool:
        if step is not None:
            before = ForkSession(session_id=self._session_id, message_id=step.message_id)
            session = await self._dialog_context.client.call(SESSION_FORK, before)
            # The text goes into the new session's prompt, to be changed and sent there.
            self.dismiss(TimelineStep("fork", step.message_id, step.text, session.id))
        return False

    async def _undo(self, step: TimelineStep | None) -> bool:
        """Show the file changes of an undo, and undo if the user confirms."""
        if step is None:
            return False
        client = self._dialog_context.client
        request = RevertSession(session_id=self._session_id, message_id=step.message_id)
        # A dry run tells which files would change, before the user decides.
        outcome = (await client.call(SESSION_REVERT, replace(request, dry_run=True))).outcome
        text = describe_outcome(outcome) if outcome is not None else "No file changes."
        ask = Confirm(
            "Undo this prompt and what follows?",
            text,
            "undo (/redo brings it back)",
            self.get_styles,
        )
        if await self._dialog_context.ask(ask):
            await client.call(SESSION_REVERT, request)
            self.dismiss(TimelineStep("undo", step.message_id, step.text, self._session_id))
        return False


def describe_outcome(outcome: FilesOutcome) -> str:
    """Return which files an undo would restore, and which it would leave alone."""
    # Without `done`, only the paths are known.
    done = outcome.done or [FileDone(path=path, what="content") for path in outcome.restored]
    lines = [*list_done_lines(done[:_MAX_LISTED_FILES], UNDO_WORDS, _shorten)]
    if len(done) > _MAX_LISTED_FILES:
        lines.append(f"and {len(done) - _MAX_LISTED_FILES} more")
    lines += list_conflict_lines(outcome.conflicts[:_MAX_LISTED_FILES], _shorten)
    return "\n".join(lines) if lines else "No file changes."


def _shorten(text: str) -> str:
    return one_line(text, 200)
