"""The subagents of a session: which there are, and which of them work in the background."""

import asyncio

import msgspec

from codeloop.schema.event import Event, SessionCreated, SessionUpdated, session_of
from codeloop.schema.message import Session
from codeloop.store.subagent_state import KEY, SubagentStanding

WORKING = {"queued", "running", "waiting"}


class Subagents:
    """What is known of the subagents of one session. `background`: those at work that no call waits for, by id."""

    def __init__(self, session_id: str) -> None:
        self.background: dict[str, Session] = {}
        self.known: dict[str, Session] = {}
        """All of them, as they are now."""
        self.at_rest = asyncio.Event()
        """Set while none works in the background."""
        self.at_rest.set()
        self._session_id = session_id

    def take(self, event: Event) -> str | None:
        """Take in an event; gives what the subagent works on that it belongs to, None when it is of another session."""
        if isinstance(event, SessionCreated | SessionUpdated):
            self.learn(event.properties.info)
        known = self.known.get(session_of(event) or "")
        return None if known is None else known.title

    def learn(self, session: Session) -> None:
        """Take in how a session is now; one of somebody else is passed over."""
        if session.parent_id == self._session_id or session.parent_id in self.known:
            self.known[session.id] = session
            if works_in_background(session):
                self.background[session.id] = session
                self.at_rest.clear()
            elif self.background.pop(session.id, None) is not None and not self.background:
                self.at_rest.set()


def standing_of(session: Session) -> SubagentStanding | None:
    """Return how a subagent stands, as its session tells; None when it does not tell."""
    try:
        return msgspec.convert((session.metadata or {}).get(KEY), SubagentStanding)
    except msgspec.ValidationError:
        return None


def works_in_background(session: Session) -> bool:
    """Return whether a subagent is at work, and no call waits for it."""
    standing = standing_of(session)
    return standing is not None and standing.background and standing.state in WORKING
