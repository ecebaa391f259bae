"""The subagents of a session: which there are, which work in the background, and waiting for those."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.event import Event, SessionCreated, SessionUpdated, get_session_id
from codeloop.schema.limits import BACKGROUND_WAIT
from codeloop.schema.message import Session
from codeloop.store.subagent_state import STATE_KEY, SubagentState

NoteCallback = Callable[[str], object]
WORKING_STATES = {"queued", "running", "waiting"}


class Subagents:
    """The subagents of one session. `background`: those at work that no call waits for, by session id."""

    def __init__(self, session_id: str) -> None:
        self.background: dict[str, Session] = {}
        self.by_id: dict[str, Session] = {}
        """All of them, as they are now, by id."""
        self.all_idle = asyncio.Event()
        """Set while none works in the background."""
        self.all_idle.set()
        self._session_id = session_id

    def handle_event(self, event: Event) -> str | None:
        """Take in an event; return the title of the subagent that it belongs to, None if it is another session's."""
        if isinstance(event, SessionCreated | SessionUpdated):
            self.add_session(event.properties.info)
        session = self.by_id.get(get_session_id(event) or "")
        return None if session is None else session.title

    def add_session(self, session: Session) -> None:
        """Take in a session as it is now, if it is a subagent's of ours."""
        if session.parent_id == self._session_id or session.parent_id in self.by_id:
            self.by_id[session.id] = session
            if works_in_background(session):
                self.background[session.id] = session
                self.all_idle.clear()
            elif self.background.pop(session.id, None) is not None and not self.background:
                self.all_idle.set()


def read_state(session: Session) -> SubagentState | None:
    """Return the state of a subagent, from its session; None if it has none."""
    try:
        return msgspec.convert((session.metadata or {}).get(STATE_KEY), SubagentState)
    except msgspec.ValidationError:
        return None


def works_in_background(session: Session) -> bool:
    """Return whether a subagent is at work and no call waits for it."""
    state = read_state(session)
    return state is not None and state.background and state.state in WORKING_STATES


class BackgroundPolicy(Struct, frozen=True):
    """Whether to wait for subagents, and whether they go on when this process ends, because they are on a server."""

    waits: bool = True
    on_server: bool = False


async def wait_for_background(
    subagents: Subagents, event: asyncio.Event, note: NoteCallback, background: BackgroundPolicy
) -> bool:
    """Wait until none works any more or `event` is set, noting what happens; return whether the time ran out."""
    working = dict(subagents.background)
    if not working:
        return False
    is_over = False
    if background.waits:
        note(f"Waiting for background work: {_join_names(working.values())}. Ctrl-C stops it; --no-wait never waits.")
        waits = {asyncio.create_task(subagents.all_idle.wait()), asyncio.create_task(event.wait())}
        done, _ = await asyncio.wait(waits, timeout=BACKGROUND_WAIT.seconds, return_when=asyncio.FIRST_COMPLETED)
        is_over = not done
        for wait in waits:
            wait.cancel()
    for session in (subagents.by_id[session_id] for session_id in working if session_id not in subagents.background):
        state = read_state(session)
        how = f"{state.state}{f' ({state.reason})' if state.reason else ''}" if state else "ended"
        note(escape_controls(f"{session.title}: {how}. See: codeloop session show {session.id}"))
    if sessions := list(subagents.background.values()):
        note(f"{'Still working on the server' if background.on_server else 'Stopped'}: {_join_names(sessions)}.")
    return is_over


def _join_names(sessions: Iterable[Session]) -> str:
    return ", ".join(escape_controls(f"{session.title} [{session.id}]") for session in sessions)
