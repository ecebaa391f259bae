"""The dialogs of sessions: all sessions of the project, the forks of one, and its subagents."""

import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import NamedTuple

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.answers import PERMISSION_LIST, QUESTION_LIST
from codeloop.schema.api.session_messages import (
    MESSAGE_GET,
    SESSION_MESSAGES,
    ListMessages,
    MessageId,
)
from codeloop.schema.api.session_requests import (
    SESSION_CHILDREN,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_GET,
    SESSION_LIST,
    SESSION_STATUS,
    SESSION_UPDATE,
    ForkSession,
    ListSessions,
    SessionId,
    UpdateSession,
)
from codeloop.schema.api.session_search import SESSION_SEARCH, SearchSessions
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import Idle
from codeloop.schema.message import FORK_KEY, Session
from codeloop.schema.operation import NoArguments
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.dialog import DialogContext
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.session_messages import draw_messages, join_text
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.formats import format_short_time
from codeloop.tui.settings.session_pins import SessionPins
from codeloop.tui.state.subagent_states import format_session_title

_MAX_SESSIONS = 1_000
"""Sessions that are listed; older ones are found by searching."""
_PREVIEW_MESSAGES = 12
PINNED_GROUP = "Pinned"
FOUND_GROUP = "found in what was said"
WAITING_LABEL, WORKING_LABEL = "waits for you", "works"


class SessionPicker(Picker[str]):
    """The sessions of the project, found by title or content;
    closes with the id of the session to open.

    That is the chosen session, or a new fork of it.
    """

    def __init__(self, context: DialogContext, pins: SessionPins, current: str = "") -> None:
        self._dialog_context = context
        self._pins = pins
        self._current = current
        self._sessions: dict[str, Session] = {}
        self._pin_ids: frozenset[str] = frozenset()
        actions = (
            PickAction("ctrl+t", "pin on top", self._pin),
            PickAction("ctrl+r", "rename", self._rename),
            PickAction("ctrl+f", "fork", self._fork),
            PickAction("ctrl+d", "delete", self._delete),
        )
        source = PickSource(
            title="Sessions",
            load=self._load_rows,
            actions=actions,
            search=self._search,
            preview=partial(draw_last_messages, context),
            start=current or None,
            empty_message="No session yet. What you write begins one.",
            choose_label="open",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[str]]:
        sessions, labels = await _read_sessions(self._dialog_context.client)
        self._sessions = {session.id: session for session in sessions}
        shows_directory = len({session.directory for session in sessions}) > 1
        self._pin_ids = frozenset(self._pins.read())
        sessions = sorted(sessions, key=lambda session: session.id not in self._pin_ids)
        return [
            self._make_pick(session, labels.get(session.id, ""), shows_directory=shows_directory)
            for session in sessions
        ]

    def _make_pick(
        self, session: Session, label: str, *, shows_directory: bool, excerpt: str = ""
    ) -> Pick[str]:
        updated_at = datetime.fromtimestamp(session.time.updated / 1000).astimezone()
        if excerpt:
            group = FOUND_GROUP
        elif session.id in self._pin_ids:
            group = PINNED_GROUP
        else:
            group = name_day(updated_at.date())
        directory = session.path or "." if shows_directory else ""
        return Pick(
            session.id,
            session.title,
            detail=excerpt or directory,
            hint=label or f"{updated_at:%H:%M}",
            group=group,
            mark="●" if session.id == self._current else "",
            search_text=f"{session.slug} {session.id}",
        )

    async def _search(self, text: str) -> Sequence[Pick[str]]:
        search_result = await self._dialog_context.client.call(
            SESSION_SEARCH, SearchSessions(query=text)
        )
        picks: list[Pick[str]] = []
        for hit in search_result.hits:
            self._sessions.setdefault(hit.session.id, hit.session)
            # A hit without an excerpt matches by its title, which the filter finds by itself.
            excerpt = one_line(hit.excerpts[0].text, 200) if hit.excerpts else ""
            if excerpt:
                picks.append(
                    self._make_pick(hit.session, "", shows_directory=False, excerpt=excerpt)
                )
        return picks

    async def _pin(self, session_id: str | None) -> bool:
        if session_id is not None:
            self._pins.toggle(session_id)
        return session_id is not None

    async def _rename(self, session_id: str | None) -> bool:
        if session_id is None:
            return False
        title = await self._dialog_context.ask(
            TextInput("Rename session", self.get_styles, self._sessions[session_id].title)
        )
        if not title or not title.strip():
            return False
        await self._dialog_context.client.call(
            SESSION_UPDATE, UpdateSession(session_id=session_id, title=title.strip())
        )
        return True

    async def _fork(self, session_id: str | None) -> bool:
        if session_id is not None:
            session = await self._dialog_context.client.call(
                SESSION_FORK, ForkSession(session_id=session_id)
            )
            self.dismiss(session.id)
        return False

    async def _delete(self, session_id: str | None) -> bool:
        if session_id is None:
            return False
        client = self._dialog_context.client
        children = await client.call(SESSION_CHILDREN, SessionId(session_id=session_id))
        text = describe_deletion(self._sessions[session_id].title, len(children))
        if not await self._dialog_context.ask(
            Confirm("Delete session?", text, "delete", self.get_styles)
        ):
            return False
        return await client.call(SESSION_DELETE, SessionId(session_id=session_id))


async def _read_sessions(client: Client) -> tuple[list[Session], dict[str, str]]:
    """Return the project's sessions, but for those of subagents, and their labels."""
    arguments = ListSessions(scope="project", roots=True, limit=_MAX_SESSIONS)
    return await client.call(SESSION_LIST, arguments), await _read_labels(client)


async def _read_labels(client: Client) -> dict[str, str]:
    """Return a label for each session that works, or waits for an answer to its own
    or a subagent's question.
    """
    none = NoArguments()
    statuses = await client.call(SESSION_STATUS, none)
    labels = {
        session_id: WORKING_LABEL
        for session_id, state in statuses.items()
        if not isinstance(state, Idle)
    }
    for request in [
        *await client.call(PERMISSION_LIST, none),
        *await client.call(QUESTION_LIST, none),
    ]:
        session_id: str | None = request.session_id
        # A subagent's question is answered in the session that the user sees, so its parents wait,
        # too.
        while session_id is not None:
            labels[session_id] = WAITING_LABEL
            session_id = (
                await client.call(SESSION_GET, SessionId(session_id=session_id))
            ).parent_id
    return labels


def describe_deletion(title: str, children: int) -> str:
    """Return the confirmation text for deleting a session and its `children`,
    the number of its subagents' sessions.
    """
    with_them = (
        f" and {children} session{'' if children == 1 else 's'} of its subagents"
        if children
        else ""
    )
    return f"“{one_line(title, 80)}”{with_them} will be deleted, with everything said there."


async def draw_last_messages(context: DialogContext, session_id: str, width: int) -> Sequence[Row]:
    """Return the last messages of a session as rows."""
    query = ListMessages(session_id=session_id, limit=_PREVIEW_MESSAGES)
    return draw_messages(
        await context.client.call(SESSION_MESSAGES, query), context.get_styles(), width
    )


def name_day(day: date) -> str:
    """Return a day's name: Today, Yesterday, or the date."""
    today = datetime.fromtimestamp(time.time()).astimezone().date()
    if day == today:
        return "Today"
    return "Yesterday" if day == today - timedelta(days=1) else f"{day:%A, %d %B %Y}"


class ForkOrigin(NamedTuple):
    """Where a fork was made from; both are "" for a session that is not a fork."""

    session_id: str = ""
    message_id: str = ""
    """The first message that was left out; "": the fork has all of them."""


class ForkPicker(Picker[str]):
    """The tree of forks around a session; closes with the id of one."""

    def __init__(self, context: DialogContext, session: Session) -> None:
        self._dialog_context = context
        self._session = session
        source = PickSource(
            title="Forks",
            load=self._load_rows,
            preview=partial(draw_last_messages, context),
            start=session.id,
            choose_label="open",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[str]]:
        sessions, labels = await _read_sessions(self._dialog_context.client)
        sessions_by_id = {session.id: session for session in sessions} | {
            self._session.id: self._session
        }
        root, family = self._session.id, {self._session.id}
        # Up to the oldest session that still exists. `family` guards against a circle.
        while (
            above := _find_origin(sessions_by_id[root]).session_id
        ) in sessions_by_id and above not in family:
            root = above
            family.add(root)
        picks: list[Pick[str]] = []
        stack = [(root, 0)]
        while stack:
            session_id, depth = stack.pop()
            # Taken out, so that no session is listed twice.
            session = sessions_by_id.pop(session_id)
            forks = [
                each
                for each in sessions_by_id.values()
                if _find_origin(each).session_id == session_id
            ]
            # The newest first onto the stack: the oldest fork is then listed first,
            # right below its session.
            stack += [
                (each.id, depth + 1) for each in sorted(forks, key=lambda each: -each.time.created)
            ]
            title = f"{_draw_branch(depth)}{session.title}"
            if depth:
                detail = await self._describe_fork_point(session)
            else:
                detail = "" if forks else "there is no fork of it yet"
            hint = labels.get(session_id) or format_short_time(session.time.updated)
            mark = "●" if session_id == self._session.id else ""
            picks.append(Pick(session_id, title, detail=detail, hint=hint, mark=mark))
        return picks

    async def _describe_fork_point(self, fork: Session) -> str:
        """Return the prompt before which a fork was made; "": at the end."""
        origin = _find_origin(fork)
        if not origin.message_id:
            return ""
        try:
            query = MessageId(session_id=origin.session_id, message_id=origin.message_id)
            message = await self._dialog_context.client.call(MESSAGE_GET, query)
        # The original session or the message may be deleted.
        except OperationError:
            return ""
        return f"before “{one_line(join_text(message), 60)}”"


def _draw_branch(depth: int) -> str:
    """Return the tree lines before a row at this depth."""
    return f"└{'──' * (depth - 1)} " if depth else ""


def _find_origin(session: Session) -> ForkOrigin:
    match (session.metadata or {}).get(FORK_KEY):
        case {"sessionID": str(session_id), **others}:
            return ForkOrigin(session_id, str(others.get("messageID") or ""))
        case _:
            return ForkOrigin()


class ChildPicker(Picker[str]):
    """The sessions of a session's subagents, and of theirs; closes with the id of one."""

    def __init__(self, context: DialogContext, session_id: str) -> None:
        self._dialog_context = context
        self._session_id = session_id
        source = PickSource(
            title="Subagents",
            load=self._load_rows,
            preview=partial(draw_last_messages, context),
            empty_message="No subagent was started here.",
            choose_label="open",
        )
        super().__init__(source, context.get_styles)

    async def _load_rows(self) -> Sequence[Pick[str]]:
        labels = await _read_labels(self._dialog_context.client)
        picks: list[Pick[str]] = []
        # Not a queue: the subagents that a subagent has started are listed right below it.
        stack = [(child, 0) for child in reversed(await self._list_children(self._session_id))]
        while stack:
            child, depth = stack.pop()
            title = f"{_draw_branch(depth)}{format_session_title(child)}"
            picks.append(
                Pick(child.id, title, detail=child.agent or "", hint=labels.get(child.id, ""))
            )
            stack += [(each, depth + 1) for each in reversed(await self._list_children(child.id))]
        return picks

    async def _list_children(self, session_id: str) -> Sequence[Session]:
        return await self._dialog_context.client.call(
            SESSION_CHILDREN, SessionId(session_id=session_id)
        )
