"""`SubagentStates`: the subagents of a session, and their state,
which is shown in the calls that started them.
"""

from collections.abc import Mapping
from typing import cast

from codeloop.schema.event import Event, MessageUpdated, PartUpdated
from codeloop.schema.message import AssistantMessage, Session
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.wire import JSON, replace
from codeloop.tui.state.conversation_items import SubagentSummary
from codeloop.tui.state.message_log import MessageLog

MAX_SHOWN_CALLS = 4
"""Calls of a subagent that are shown, the latest."""
SUBAGENT_STATE_KEY = "task"
"""The key in a session's metadata for the subagent's state."""


class SubagentStates:
    """The subagents of one session, and the subagents of those.
    `sessions`: their sessions by id.
    """

    def __init__(self, session_id: str) -> None:
        self.sessions: dict[str, Session] = {}
        self._session_id = session_id
        self._summaries: dict[str, SubagentSummary] = {}
        self._message_ids: dict[str, str] = {}
        """The id of the message whose call started a subagent,
        by the id of the subagent's session.
        """
        # Events that come while messages are read are applied twice.
        self._counted_ids: set[str] = set()
        """The ids of the subagents' answers that are counted as steps."""

    @property
    def summaries(self) -> Mapping[str, SubagentSummary]:
        """The displayed state of each subagent, by the id of its session."""
        return self._summaries

    def update(self, session: Session) -> bool:
        """Update a subagent from its session; return whether the session is a
        subagent's of this session.
        """
        if session.parent_id != self._session_id and session.parent_id not in self.sessions:
            return False
        self.sessions[session.id] = session
        metadata = (session.metadata or {}).get(SUBAGENT_STATE_KEY)
        state = str(cast("JSON", metadata).get("state", "")) if isinstance(metadata, dict) else ""
        before = self._summaries.get(session.id) or SubagentSummary(session.id, "")
        self._summaries[session.id] = replace(
            before, title=session.title, agent=session.agent or "", state=state
        )
        return True

    def apply_event(self, event: Event, session_id: str) -> bool:
        """Apply an event of a subagent's session;
        return whether the displayed state has changed.
        """
        child = self._summaries[session_id]
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart):
                # The model still writes the arguments, so that there is nothing to show,
                # and many such events come.
                if isinstance(p.part.state, ToolStatePending):
                    return False
                calls = [call for call in child.calls if call.id != p.part.id]
                index = next(
                    (at for at, call in enumerate(child.calls) if call.id == p.part.id), len(calls)
                )
                calls.insert(index, p.part)
                self._summaries[session_id] = replace(child, calls=tuple(calls[-MAX_SHOWN_CALLS:]))
            case MessageUpdated(properties=p) if (
                isinstance(p.info, AssistantMessage) and p.info.time.completed
            ):
                if p.info.id in self._counted_ids:
                    return False
                self._counted_ids.add(p.info.id)
                self._summaries[session_id] = replace(child, steps=child.steps + 1)
            case _:
                return False
        return True

    def find_starting_message(self, session_id: str, log: MessageLog) -> str | None:
        """Return the id of the message of this session whose call started a subagent;
        None: it is not loaded.

        For the subagent of a subagent, the call counts that started the uppermost one.
        """
        while (
            session := self.sessions.get(session_id)
        ) is not None and session.parent_id != self._session_id:
            session_id = session.parent_id or ""
        starter_id = self._message_ids.get(session_id)
        if starter_id is None or starter_id not in log.messages:
            calls = (
                (message_id, part)
                for message_id in reversed(log.ids)
                for part in log.messages[message_id].parts.values()
                if isinstance(part, ToolPart)
            )
            starter_id = next(
                (message_id for message_id, part in calls if find_child_id(part) == session_id),
                None,
            )
            if starter_id is not None:
                self._message_ids[session_id] = starter_id
        return starter_id


def format_session_title(session: Session) -> str:
    """Return a session's title; a subagent's without the agent's name,
    which is shown next to it.
    """
    return session.title.removesuffix(f" (@{session.agent} subagent)")


def find_child_id(part: ToolPart) -> str:
    """Return the id of the session that a call has started; "": it has started none."""
    metadata: JSON | None = (
        None if isinstance(part.state, ToolStatePending) else part.state.metadata
    )
    return str((metadata or {}).get("sessionId", ""))
