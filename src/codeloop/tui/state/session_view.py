"""`SessionView`: the state of a session in a tab,
made from its stored messages and kept up to date by events.
"""

import math
import re
import time
from collections.abc import Iterable

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.event import (
    Event,
    MessageUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionCreated,
    SessionUpdated,
    TodoUpdated,
    get_session_id,
)
from codeloop.schema.live_events import (
    Busy,
    Idle,
    PartDelta,
    Retry,
    SessionIdle,
    Status,
    StatusChanged,
)
from codeloop.schema.message import AssistantMessage, Session, Todo
from codeloop.schema.part import ReasoningPart, ToolPart, ToolStateError
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.tui.state.call_folds import INTERMEDIATE_FINISHES, CallFolds
from codeloop.tui.state.conversation_items import Item
from codeloop.tui.state.message_items import TODO_TOOL, DisplayState, make_items
from codeloop.tui.state.message_log import MessageLog
from codeloop.tui.state.subagent_states import SubagentStates

_FILE_LINE = r"(?m)^Index: (.+)$"
"""Matches the line of a diff that names a file: `Index: src/main.py`."""
Request = PermissionRequest | QuestionRequest
"""A question to the user, of a tool or of the model."""


class SessionView:
    """The state of a session. `apply_event` applies an event;
    `take_changes` lists the messages to redraw.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.agent_changes = 0
        """How often the session went on with another agent since it is shown."""
        self.log = MessageLog()
        self.children = SubagentStates(session.id)
        self.status: Status = Idle()
        self.status_changed_at = -math.inf
        """When this process saw the running turn start, or the last one end (monotonic seconds)."""
        self.todos: list[Todo] = []
        self.requests: dict[str, Request] = {}
        """Requests waiting for the user, of this session and its subagents, oldest first."""
        self._toggled_keys: set[str] = set()
        """The keys of items that the user has opened, or closed where everything is open."""
        self._is_all_open = False
        self._folds = CallFolds()
        self._todo_call: ToolPart | None = None
        """The call that wrote the list of tasks last."""
        self.resume_times: dict[str, int] = {}
        """When calls resumed after the user's answer, by the call's id (ms since the epoch)."""
        self.cursor: str | None = None
        """The cursor of the next page of older messages; None: there are none."""
        self._queued_ids: frozenset[str] = frozenset()
        self._undone_files = _list_undone_files(session)

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return isinstance(self.status, Busy | Retry)

    @property
    def is_interrupted(self) -> bool:
        """Whether the last answer is incomplete, and no turn is running."""
        last = self.log.last_answer
        return last is not None and last.time.completed is None and not self.is_busy

    @property
    def display_state(self) -> DisplayState:
        """The state that the items of a message depend on, besides the message."""
        return DisplayState(
            is_open=self.is_open,
            queued_ids=self._queued_ids,
            undone_from=self.session.revert.message_id if self.session.revert else "",
            undone_files=self._undone_files,
            asking=self._asking,
            resume_times=self.resume_times,
            children=self.children.summaries,
            folds=self._folds.by_part,
            todo_id=self._todo_call.id if self._todo_call is not None else "",
        )

    @property
    def _asking(self) -> set[str]:
        """The ids of calls that wait for the user."""
        return {
            request.tool.call_id for request in self.requests.values() if request.tool is not None
        }

    def is_open(self, key: str) -> bool:
        """Return whether all of an item is shown."""
        return (key in self._toggled_keys) != self._is_all_open

    def list_items(self, message_id: str) -> list[Item]:
        """Return the items of a message."""
        return make_items(self.log, message_id, self.display_state)

    def load(
        self, page: list[MessageWithParts], cursor: str | None, since: Iterable[Event] = ()
    ) -> None:
        """Load the page of the newest messages. `cursor`: of the page before it;
        `since`: events while it was read.
        """
        # Where older messages stay, the next page is still the one before them.
        if not self.log.replace_newest(page, is_all=cursor is None):
            self.cursor = cursor
        ids = {message.info.id for message in page}
        for event in since:
            # The page already contains the deltas of its messages;
            # applied again, their text would be doubled.
            if not isinstance(event, PartDelta) or event.properties.message_id not in ids:
                self.apply_event(event)
        self._update_queue()

    def load_older(self, page: list[MessageWithParts], cursor: str | None) -> None:
        """Load the page of messages before the oldest loaded one.
        `cursor`: of the page before that.
        """
        self.log.add(page)
        self.cursor = cursor
        self._update_queue()

    def add_requests(self, requests: Iterable[Request]) -> None:
        """Add those of the requests that this session, or a subagent of it, makes."""
        for request in requests:
            if self.owns(request.session_id):
                self._add_request(request)

    def owns(self, session_id: str | None) -> bool:
        """Return whether a session is this one, or that of a subagent of it."""
        return session_id == self.session.id or (session_id or "") in self.children.sessions

    def apply_event(self, event: Event) -> bool:
        """Apply an event; return whether it belongs to this session or a subagent of it."""
        if isinstance(event, SessionCreated | SessionUpdated):
            self.update_session(event.properties.info)
        session_id = get_session_id(event)
        if not self.owns(session_id):
            return False
        match event:
            case PermissionAsked(properties=request) | QuestionAsked(properties=request):
                self._add_request(request)
            case (
                PermissionReplied(properties=p)
                | QuestionReplied(properties=p)
                | QuestionRejected(properties=p)
            ):
                self._remove_request(p.request_id)
            case _ if session_id != self.session.id:
                self._apply_child_event(event, session_id or "")
            case StatusChanged(properties=p):
                self.set_status(p.status)
            case SessionIdle():
                self.set_status(Idle())
            case TodoUpdated(properties=p):
                self.todos = p.todos
            case _:
                self.log.apply_event(event)
                if isinstance(event, MessageUpdated):
                    self._update_queue()
        return True

    def take_changes(self) -> set[str]:
        """Return the ids of the messages whose items may have changed since the last call."""
        self.log.apply_deltas()
        changed_ids, self.log.changed_ids = self.log.changed_ids, set()
        changed_ids |= self._find_todo_call(changed_ids)
        asking = self._asking

        def must_stand_alone(part: ToolPart | ReasoningPart) -> bool:
            return self.is_open(part.id) or (isinstance(part, ToolPart) and part.call_id in asking)

        return changed_ids | self._folds.update(self.log, changed_ids, must_stand_alone)

    def toggle(self, key: str, message_id: str) -> None:
        """Open or close an item."""
        self._toggled_keys ^= {key}
        self.log.changed_ids.add(message_id)
        for fold in self._folds.by_part.values():
            if fold.key == key:
                self.log.changed_ids.update(fold.message_ids)

    def toggle_all(self) -> bool:
        """Open everything, or close it again; return whether it is open now."""
        self._is_all_open = not self._is_all_open
        self._toggled_keys.clear()
        self.log.changed_ids.update(self.log.messages)
        return self._is_all_open

    def update_session(self, info: Session) -> None:
        """Update this session, or a subagent of it, from its stored data;
        other sessions are ignored.
        """
        if info.id == self.session.id:
            # An undo or redo changes how every message is shown.
            if info.revert != self.session.revert:
                self.log.changed_ids.update(self.log.messages)
                self._undone_files = _list_undone_files(info)
            self.agent_changes += info.agent != self.session.agent
            self.session = info
        elif self.children.update(info):
            self._mark_child_changed(info.id)

    def set_status(self, status: Status) -> None:
        """Set the status: whether a turn runs, or waits to retry."""
        was_busy, self.status = self.is_busy, status
        if was_busy != self.is_busy:
            self.status_changed_at = time.monotonic()
        self._update_queue()

    def _find_todo_call(self, changed_ids: set[str]) -> set[str]:
        """Find the latest call that wrote the list of tasks;
        return the ids of the messages that show another list.
        """
        before, messages = self._todo_call, self.log.messages
        if before is not None and before.message_id not in messages:
            self._todo_call, changed_ids = None, set(messages)
        for message in (messages[each] for each in changed_ids if each in messages):
            for part in message.parts.values():
                # Ids sort by time.
                if (
                    isinstance(part, ToolPart)
                    and part.tool == TODO_TOOL
                    and not isinstance(part.state, ToolStateError)
                    and (self._todo_call is None or part.id >= self._todo_call.id)
                ):
                    self._todo_call = part
        after = self._todo_call
        if before is None or (after is not None and before.id == after.id):
            return set()
        return {before.message_id, *([after.message_id] if after is not None else [])}

    def _apply_child_event(self, event: Event, session_id: str) -> None:
        if self.children.apply_event(event, session_id):
            self._mark_child_changed(session_id)

    def _mark_child_changed(self, session_id: str) -> None:
        if (message_id := self.children.find_starting_message(session_id, self.log)) is not None:
            self.log.changed_ids.add(message_id)

    def _add_request(self, request: Request) -> None:
        self.requests[request.id] = request
        self._mark_request_changed(request)

    def _remove_request(self, request_id: str) -> None:
        if (request := self.requests.pop(request_id, None)) is not None:
            if request.tool is not None:
                self.resume_times[request.tool.call_id] = round(time.time() * 1000)
            self._mark_request_changed(request)

    def _mark_request_changed(self, request: Request) -> None:
        if request.tool is not None and request.tool.message_id in self.log.messages:
            self.log.changed_ids.add(request.tool.message_id)

    def _update_queue(self) -> None:
        """Find the queued prompts: those newer than the one that the running turn answers."""
        last = self.log.last_answer
        queued_ids: frozenset[str] = frozenset()
        if self.is_busy and last is not None:
            current = self.log.messages.get(last.parent_id)
            begun_at = current.info.time.created if current else 0
            queued_ids = frozenset(
                prompt.id
                for prompt in self.log.list_prompts()
                if prompt.time.created > begun_at
                and prompt.id != last.parent_id
                and not self.log.list_answers(prompt.id)
            )
            # The oldest prompt (ids sort by time) is no longer queued: its turn begins now.
            if _ends_turn(last) and queued_ids:
                queued_ids -= {min(queued_ids)}
        self.log.changed_ids.update(queued_ids ^ self._queued_ids)
        self._queued_ids = queued_ids


def _ends_turn(answer: AssistantMessage) -> bool:
    """Return whether an answer is complete, and has a finish reason after which
    no other step follows.
    """
    return answer.time.completed is not None and answer.finish not in INTERMEDIATE_FINISHES


def _list_undone_files(session: Session) -> list[str] | None:
    """Return the files that were restored when a part of a session was undone;
    None: they are being restored.
    """
    if session.revert is None:
        return []
    diff = session.revert.diff
    return None if diff is None else [one_line(name, 200) for name in re.findall(_FILE_LINE, diff)]
