"""Searches: for sessions by their texts, and within a session."""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.limits import SESSION_SEARCH_TEXT
from codeloop.schema.message import Session
from codeloop.schema.operation import Operation
from codeloop.schema.wire import Count, Wire


class SearchSessions(Wire):
    """Searches this project's titles, prompts and answers for a text, ignoring case.

    Outside of repositories, a directory is its own project.
    """

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]
    limit: Count = 20


class Excerpt(Wire):
    """Where a text was found, with some words around it; `created` in ms since the epoch."""

    message_id: str
    part_id: str
    role: Literal["user", "assistant"]
    created: int
    text: str


class SessionHit(Wire):
    """A session in which a text was found: in its title, in its messages, or both."""

    session: Session
    in_title: bool
    excerpts: list[Excerpt]


class SearchResult(Wire):
    """Hits, newest change first. Not `complete`: there are more."""

    hits: list[SessionHit]
    complete: bool


TextKind = Literal["prompt", "answer", "reasoning", "tool", "summary"]


class FindInSession(Wire):
    """Searches everything in a session for a text, output of tools included.

    Case counts only if the text has a capital letter (smart case);
    a blank matches any blanks and line ends.
    """

    session_id: str
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]


class TextMatch(Wire):
    """One occurrence: its part, and its number within that part, from 0.

    `tool`: the tool whose call it is in, "" for none. `text`: some words around it.
    `created`: ms since the epoch.
    """

    message_id: str
    part_id: str
    ordinal: int
    kind: TextKind
    created: int
    text: str
    tool: str = ""


class TextMatches(Wire):
    """The occurrences, oldest first. `complete`: the search did not stop early."""

    found: list[TextMatch]
    complete: bool


SESSION_SEARCH = Operation(
    "session.search",
    "GET",
    "/session/search",
    SearchSessions,
    SearchResult,
    "session.search:search_sessions",
)
SESSION_FIND = Operation(
    "session.find",
    "GET",
    "/session/{sessionID}/find",
    FindInSession,
    TextMatches,
    "session.search:find_in_session",
)
