"""One session's tab: conversation, search bar, request panel and prompt."""

import asyncio
from collections.abc import Callable
from time import monotonic

from textual import on
from textual.app import ComposeResult

from codeloop.client.questions.requester import MAX_LABEL, Requester
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.live_events import Retry
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.part import ToolPart
from codeloop.tui.keys.early_keys import TypingRhythm
from codeloop.tui.render.canvas import Canvas
from codeloop.tui.state.conversation_items import Item, NoticeItem
from codeloop.tui.state.session_view import Request, SessionView
from codeloop.tui.state.subagent_states import format_session_title
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.base_widgets import EmptyWidget, get_app
from codeloop.tui.widgets.find_bar import FindBar
from codeloop.tui.widgets.prompt.history.draft_keeper import NEW_SESSION
from codeloop.tui.widgets.prompt.prompt import PromptInput
from codeloop.tui.widgets.prompt.prompt_entry import PromptEntry
from codeloop.tui.widgets.prompt.prompt_messages import PromptEmptied
from codeloop.tui.widgets.request_panel.request_panel import RequestPanel
from codeloop.tui.widgets.transcript.transcript import Greeting, Transcript

_ANSWER_KEYS = "ysanr123456789"
"""Keys that answer a question: a draft of one of them was meant for a question of a series."""
NOTICES = "notices"
"""The key of the program's notices, below the last message."""


class SessionTab(EmptyWidget):
    """The tab of a session. `view` is None while it has none: the first
    prompt creates the session.
    """

    DEFAULT_CSS = """
    SessionTab { layout: vertical; height: 1fr; }
    """

    def __init__(
        self,
        canvas: Canvas,
        get_styles: Callable[[], Styles],
        prompt: PromptInput,
        greeting: Greeting,
        rhythm: TypingRhythm,
    ) -> None:
        super().__init__()
        self.view: SessionView | None = None
        self.transcript = Transcript(canvas, greeting)
        self.prompt = prompt
        self.find_bar = FindBar(get_styles)
        self.unsent: dict[str, PromptEntry] = {}
        """The prompts that are being sent, by the id of their message."""
        self._rhythm = rhythm
        self._is_command_typed = False
        """Whether a command is being typed although a question is shown;
        the question gets the focus back after it.
        """
        self.panel = RequestPanel(get_styles, self._compute_required_pause)
        self.panel.diff_view = canvas.diff
        self._chosen_agent: str | None = None
        self._agent_changes = 0
        """How often the session had changed its agent when the user chose one."""
        self.model: ModelRef | None = None
        """The model of the next prompts; None: that of the session's last one."""
        self.profile = ""
        """The permission profile of the session that the first prompt creates;
        "": the configured one.
        """
        self.creation_lock = asyncio.Lock()
        """Locked while the session of the first prompt is created."""
        self._notices: list[NoticeItem] = []

    def compose(self) -> ComposeResult:
        """Yield the parts, top to bottom."""
        yield self.transcript
        yield self.find_bar
        yield self.panel
        yield self.prompt

    @property
    def session(self) -> Session | None:
        """The session as last seen."""
        return self.view.session if self.view is not None else None

    @property
    def title(self) -> str:
        """The title of the tab: the session's."""
        return format_session_title(self.session) if self.session is not None else "New session"

    @property
    def agent(self) -> str | None:
        """The agent that the user chose for the next prompts; None: they go to the session's.

        A choice ends when the session goes on with another agent: after the first prompt to the
        chosen one, and when a plan was approved, for instance.
        """
        changes = self.view.agent_changes if self.view is not None else 0
        return self._chosen_agent if changes == self._agent_changes else None

    @agent.setter
    def agent(self, name: str | None) -> None:
        self._chosen_agent = name
        self._agent_changes = self.view.agent_changes if self.view is not None else 0

    def show(self, view: SessionView) -> None:
        """Show a session."""
        agent = self.agent
        self.view = view
        self.agent = agent
        self.sync(everything=True)

    def detach_session(self) -> None:
        """Show a new session, which the next prompt creates, in place of the current one."""
        agent = self.agent
        self.view = None
        self.agent = agent
        self.profile = ""
        self._notices.clear()
        self.prompt.draft_keeper.switch_session(NEW_SESSION)
        self.panel.hide()
        self.sync()

    def restyle(self, canvas: Canvas) -> None:
        """Redraw everything for another canvas."""
        self.transcript.restyle(canvas)
        self.panel.diff_view = canvas.diff
        self.panel.draw()

    def take_focus(self) -> None:
        """Focus the request panel if it asks, else the prompt."""
        if self.panel.request is not None:
            self.panel.focus()
        else:
            self.prompt.focus()

    def say(self, notice: NoticeItem) -> None:
        """Show a notice until the next prompt; a repeated one is shown once."""
        self._notices = [
            each for each in self._notices if (each.text, each.kind) != (notice.text, notice.kind)
        ]
        self._notices.append(notice)
        self.sync()

    def clear_notices(self) -> None:
        """Remove the notices."""
        self._notices.clear()

    def sync(self, *, everything: bool = False) -> bool:
        """Draw what has changed, or with `everything` all messages;
        return whether the conversation has scrolled.
        """
        ids, changed_ids = list[str](), set[str]()
        if self.view is not None:
            ids = self.view.log.ids
            changed_ids = (
                set(ids) | self.view.take_changes() if everything else self.view.take_changes()
            )
        # Notices are not tracked as changes, so they are compared each time.
        has_scrolled = self.transcript.sync(
            [*ids, NOTICES], {*changed_ids, NOTICES}, self._list_items
        )
        self._show_request()
        return has_scrolled

    @on(Transcript.Selected)
    def _copy_selection(self, event: Transcript.Selected) -> None:
        get_app(self).copy_to_clipboard(event.text)
        self.notify("Copied.", timeout=2)

    @on(RequestPanel.InputForPrompt)
    def _forward_input(self, event: RequestPanel.InputForPrompt) -> None:
        event.stop()
        if event.is_command:
            self._is_command_typed = True
            self.prompt.focus()
        # Posted, so that the keys of a burst reach the editor in their order,
        # after the focus has moved.
        self.prompt.editor.post_message(event.event)

    @on(PromptEmptied)
    def _return_to_question(self, event: PromptEmptied) -> None:
        """Focus the question again after a command that was typed meanwhile
        was sent or cancelled.
        """
        event.stop()
        is_command_typed, self._is_command_typed = self._is_command_typed, False
        if is_command_typed and self.panel.request is not None and self.prompt.editor.has_focus:
            self.panel.focus()

    def _list_items(self, message_id: str) -> list[Item]:
        if message_id != NOTICES and self.view is not None:
            return self.view.list_items(message_id)
        status = self.view.status if self.view is not None else None
        retry = (
            [NoticeItem("retry", status.message, "warning")] if isinstance(status, Retry) else []
        )
        return [*retry, *self._notices]

    def _show_request(self) -> None:
        """Show the oldest request that waits for the user, or none."""
        waiting = list(self.view.requests.values()) if self.view is not None else []
        current_request = self.panel.request
        # Answered elsewhere, such as by another client, or withdrawn with its turn.
        if current_request is not None and all(
            request.id != current_request.id for request in waiting
        ):
            self.panel.withdraw(current_request.id)
            self.prompt.focus()
        if waiting:
            draft, early_text = self.prompt.editor.buffer.text, ""
            is_series = self.panel.request is None and self.panel.is_in_series
            if is_series and len(set(draft)) == 1 and draft[0] in _ANSWER_KEYS:
                draft, early_text = "", draft
                self.prompt.clear()
            self.panel.show(
                waiting[0],
                self._find_requester(waiting[0]),
                len(waiting),
                has_draft=bool(draft),
                early_text=early_text,
            )

    def show_unsent(self, *, is_lost: bool) -> None:
        """Show the prompts that wait for a lost server, if it is lost, above the editor."""
        known = self.view.log.messages if self.view is not None else {}
        unsent = [entry for key, entry in self.unsent.items() if key not in known]
        self.prompt.queue.show_unsent(unsent if is_lost else [])

    def _compute_required_pause(self) -> float:
        return self._rhythm.compute_required_pause(
            monotonic(), has_draft=bool(self.prompt.editor.buffer.text)
        )

    def _find_requester(self, request: Request) -> Requester:
        """Return the tool and the subagent that a request comes from, as far as the log knows."""
        view, call = self.view, request.tool
        child = view.children.sessions.get(request.session_id) if view is not None else None
        tool = subagent = ""
        if child is not None:
            subagent = (
                f"subagent {child.agent or ''} “{one_line(format_session_title(child), MAX_LABEL)}”"
            )
        if (
            view is not None
            and call is not None
            and (message := view.log.messages.get(call.message_id)) is not None
        ):
            tool_parts = (part for part in message.parts.values() if isinstance(part, ToolPart))
            tool = next((part.tool for part in tool_parts if part.call_id == call.call_id), "")
        return Requester(one_line(tool, MAX_LABEL), subagent)
