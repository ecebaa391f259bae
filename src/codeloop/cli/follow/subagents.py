"""Keeps the subagents of a session, and waits for those that work in the background.

A subagent has a session of its own, below the session whose call started it.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.event import Event, SessionCreated, SessionUpdated, get_session_id
from codeloop.schema.limits import BACKGROUND_WAIT
from codeloop.schema.message import Session
from codeloop.store.subagents import STATE_KEY, SubagentState

NoteCallback = Callable[[str], object]
# The states of a subagent that has not ended.
WORKING_STATES = {"queued", "running", "waiting"}


class SessionSubagents:
    """The subagents of one session and their subagents.
    `background`: those that work while no call waits for them.
    """

    def __init__(self, session_id: str) -> None:
        self.background: dict[str, Session] = {}
        self.by_id: dict[str, Session] = {}
        """The sessions of all subagents as last seen, by id."""
        self.all_idle = asyncio.Event()
        """Set while no subagent works in the background."""
        self.all_idle.set()
        self._session_id = session_id

    def handle_event(self, event: Event) -> str | None:
        """Take in an event; return the title of the subagent's session that it belongs to,
        None for other sessions.
        """
        if isinstance(event, SessionCreated | SessionUpdated):
            self.add_session(event.properties.info)
        session = self.by_id.get(get_session_id(event) or "")
        return None if session is None else session.title

    def add_session(self, session: Session) -> None:
        """Add a session, or its newer state, if it belongs to a subagent."""
        # Parents are created before their children, so a known parent is enough.
        if session.parent_id == self._session_id or session.parent_id in self.by_id:
            self.by_id[session.id] = session
            if works_in_background(session):
                self.background[session.id] = session
                self.all_idle.clear()
            elif self.background.pop(session.id, None) is not None and not self.background:
                self.all_idle.set()


def read_state(session: Session) -> SubagentState | None:
    """Return the state of a subagent, which its session's metadata hold; None if they hold none."""
    try:
        return msgspec.convert((session.metadata or {}).get(STATE_KEY), SubagentState)
    except msgspec.ValidationError:
        return None


def works_in_background(session: Session) -> bool:
    """Return whether a subagent works while no call waits for it."""
    state = read_state(session)
    return state is not None and state.background and state.state in WORKING_STATES


class BackgroundPolicy(Struct, frozen=True):
    """What to do about subagents in the background at the end of a turn.

    `waits`: wait for them. `on_server`: they run on a server, so they go on when this process ends.
    """

    waits: bool = True
    on_server: bool = False


async def wait_for_background(
    subagents: SessionSubagents,
    end_event: asyncio.Event,
    note: NoteCallback,
    policy: BackgroundPolicy,
) -> bool:
    """Wait until no subagent works in the background, or `end_event` is set;
    return whether the time ran out.

    `note`: called with lines for the user. The time is BACKGROUND_WAIT.
    """
    sessions_at_start = dict(subagents.background)
    if not sessions_at_start:
        return False
    has_timed_out = False
    if policy.waits:
        names = _join_names(sessions_at_start.values())
        note(f"Waiting for background work: {names}. Ctrl-C stops it; --no-wait never waits.")
        tasks = {
            asyncio.create_task(subagents.all_idle.wait()),
            asyncio.create_task(end_event.wait()),
        }
        done, _ = await asyncio.wait(
            tasks, timeout=BACKGROUND_WAIT.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        has_timed_out = not done
        for task in tasks:
            task.cancel()
    for session_id in sessions_at_start:
        if session_id in subagents.background:
            continue
        session = subagents.by_id[session_id]
        state = read_state(session)
        ending = state.state if state is not None else "ended"
        if state is not None and state.reason:
            ending += f" ({state.reason})"
        note(escape_controls(f"{session.title}: {ending}. See: codeloop session show {session.id}"))
    if sessions := list(subagents.background.values()):
        note(
            f"{'Still working on the server' if policy.on_server else 'Stopped'}: {_join_names(sessions)}."
        )
    return has_timed_out


def _join_names(sessions: Iterable[Session]) -> str:
    return ", ".join(escape_controls(f"{session.title} [{session.id}]") for session in sessions)
