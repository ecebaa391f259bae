"""Handler that searches the sessions of a project, newest first, giving other tasks a turn after each session."""

import asyncio
import time

from codeloop.app.handlers import handles
from codeloop.app.handlers.reports.databases import find_own_directory
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import Excerpt, SearchResult, SearchSessions, SessionHit
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import SESSION_SEARCH, SESSION_SEARCH_TEXT
from codeloop.schema.message import Message, UserMessage
from codeloop.schema.part import TextPart
from codeloop.store.queries import NO_LIMIT, SessionFilter

CONTEXT_CHARACTERS = 60
"""How much is shown before and after a match."""
MAX_EXCERPTS = 3
"""Excerpts shown of one session."""


@handles(operation.SESSION_SEARCH)
async def search(project: Project, args: SearchSessions) -> SearchResult:
    """Find a text in titles, prompts and answers; bounded by `limit` sessions and by time.

    Raises OperationError: an empty or very long text, a limit below 1.
    """
    text = args.query.strip()
    if not text or len(text) > SESSION_SEARCH_TEXT.value:
        raise OperationError("BadRequest", f"Search for 1 to {SESSION_SEARCH_TEXT.value} characters.")
    if args.limit < 1:
        raise OperationError("BadRequest", f"limit is {args.limit}; it must be at least 1.")
    end = time.monotonic() + SESSION_SEARCH.seconds
    queries = project.store.queries
    hits: list[SessionHit] = []
    for session in queries.find_sessions(SessionFilter(directory=find_own_directory(project), limit=NO_LIMIT)):
        if len(hits) == args.limit or time.monotonic() > end:
            return SearchResult(hits=hits, complete=False)
        in_title = text.casefold() in session.title.casefold()
        excerpts = [
            _make_excerpt(info, part, text) for info, part in queries.search_texts(session.id, text, MAX_EXCERPTS)
        ]
        if in_title or excerpts:
            hits.append(SessionHit(session=session, in_title=in_title, excerpts=excerpts))
        await asyncio.sleep(0)
    return SearchResult(hits=hits, complete=True)


def _make_excerpt(info: Message, part: TextPart, text: str) -> Excerpt:
    start_at = max(part.text.casefold().find(text.casefold()), 0)
    start, end = max(start_at - CONTEXT_CHARACTERS, 0), start_at + len(text) + CONTEXT_CHARACTERS
    excerpt = ("…" if start else "") + part.text[start:end] + ("…" if end < len(part.text) else "")
    role = "user" if isinstance(info, UserMessage) else "assistant"
    return Excerpt(message_id=info.id, part_id=part.id, role=role, created=info.time.created, text=excerpt)
