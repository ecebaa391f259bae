"""Searches all sessions, newest first, in slices that do not block the loop."""

import asyncio
import time

from codeloop.app.handlers import handles
from codeloop.app.handlers.reports.databases import own_directory
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import Excerpt, SearchResult, SearchSessions, SessionHit
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import SESSION_SEARCH, SESSION_SEARCH_TEXT
from codeloop.schema.message import Message, UserMessage
from codeloop.schema.part import TextPart
from codeloop.store.queries import ALL, SessionFilter

AROUND = 60
"""Characters shown before and after what was found."""
EXCERPTS = 3
"""Places shown of one session."""


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
    for session in queries.sessions(SessionFilter(directory=own_directory(project), limit=ALL)):
        if len(hits) == args.limit or time.monotonic() > end:
            return SearchResult(hits=hits, complete=False)
        in_title = text.casefold() in session.title.casefold()
        excerpts = [_excerpt(info, part, text) for info, part in queries.texts(session.id, text, EXCERPTS)]
        if in_title or excerpts:
            hits.append(SessionHit(session=session, in_title=in_title, excerpts=excerpts))
        await asyncio.sleep(0)
    return SearchResult(hits=hits, complete=True)


def _excerpt(info: Message, part: TextPart, text: str) -> Excerpt:
    start_at = max(part.text.casefold().find(text.casefold()), 0)
    start, end = max(start_at - AROUND, 0), start_at + len(text) + AROUND
    excerpt = ("…" if start else "") + part.text[start:end] + ("…" if end < len(part.text) else "")
    role = "user" if isinstance(info, UserMessage) else "assistant"
    return Excerpt(message_id=info.id, part_id=part.id, role=role, created=info.time.created, text=excerpt)
