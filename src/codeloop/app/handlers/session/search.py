"""Handlers that search texts: in all sessions of a project, and in one session."""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from codeloop.app.project import Project
from codeloop.kit.jsonc import iterate_texts
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.kit.text.word_search import compile_word_search
from codeloop.schema.api.session_search import (
    Excerpt,
    FindInSession,
    SearchResult,
    SearchSessions,
    SessionHit,
    TextKind,
    TextMatch,
    TextMatches,
)
from codeloop.schema.bounds.session import SESSION_TEXT_MATCHES
from codeloop.schema.errors import OperationError, SessionNotFound
from codeloop.schema.limits import SESSION_SEARCH_TEXT, SESSION_SEARCH_TIME
from codeloop.schema.message import AssistantMessage, Message, Session, UserMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    SubtaskPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    remove_model_notes,
)
from codeloop.store.queries import SessionFilter, open_queries
from codeloop.store.search_index import SearchIndex

_EXCERPT_CONTEXT_CHARS = 60
"""The characters before and after the match in an excerpt of one of many sessions."""
_MAX_EXCERPTS = 3
"""The excerpts of each session."""
_MATCH_CONTEXT_CHARS = 40
"""The characters before and after a match in one session."""
_WORD = r"[A-Za-z0-9]+"


async def search_sessions(project: Project, args: SearchSessions) -> SearchResult:
    """Find a text in titles, prompts and answers, newest session first, at most `limit` sessions.

    Raises OperationError: an empty or very long text, a limit below 1.
    """
    # As it is stored.
    text = escape_undecodable(args.query.strip())
    if not text or len(text) > SESSION_SEARCH_TEXT.value:
        raise OperationError(
            "BadRequest", f"Search for 1 to {SESSION_SEARCH_TEXT.value} characters."
        )
    if args.limit < 1:
        raise OperationError("BadRequest", f"limit is {args.limit}; it must be at least 1.")
    return await asyncio.to_thread(
        _find_hits,
        project.store.path,
        text,
        SessionFilter(
            directory=project.settings.project_root.directory_filter,
            search=text,
            limit=args.limit + 1,
        ),
    )


def _find_hits(path: Path, text: str, titles: SessionFilter) -> SearchResult:
    """Return the sessions with a text in their titles or messages, one fewer than `titles` allows.
    Blocks.
    """
    excerpts: dict[str, list[Excerpt]] = {}
    full: set[str] = set()
    """The sessions that need no more excerpts."""
    with closing(open_queries(path)) as queries, closing(SearchIndex(path)) as index:
        hits = {session.id: session for session in queries.find_sessions(titles)}
        in_title = set(hits)
        for found in index.find_texts(text, full):
            if found.session_id not in hits:
                session = queries.find_session(found.session_id)
                if session is None or titles.directory not in {None, session.directory}:
                    full.add(found.session_id)
                    continue
                hits[session.id] = session
            of_session = excerpts.setdefault(found.session_id, [])
            of_session.append(_make_excerpt(found.message, found.part, text))
            if len(of_session) == _MAX_EXCERPTS:
                full.add(found.session_id)
            if len(excerpts) == titles.limit:
                break
    newest = sorted(hits.values(), key=lambda session: session.time.updated, reverse=True)
    return SearchResult(
        hits=[
            SessionHit(
                session=session,
                in_title=session.id in in_title,
                excerpts=excerpts.get(session.id, [])[::-1],
            )
            for session in newest[: titles.limit - 1]
        ],
        complete=len(newest) < titles.limit,
    )


def _make_excerpt(info: Message, part: TextPart, text: str) -> Excerpt:
    # Folding may change the length of a text ("ß" becomes "ss"),
    # so the excerpt may be off by some characters.
    match_start = max(part.text.casefold().find(text.casefold()), 0)
    match_end = match_start + len(text)
    excerpt = _cut_out(part.text, match_start, match_end, _EXCERPT_CONTEXT_CHARS)
    role = "user" if isinstance(info, UserMessage) else "assistant"
    return Excerpt(
        message_id=info.id, part_id=part.id, role=role, created=info.time.created, text=excerpt
    )


def _cut_out(text: str, match_start: int, match_end: int, context: int) -> str:
    """Return a match with `context` characters on both sides,
    and an ellipsis where text is left out.
    """
    start, end = max(match_start - context, 0), match_end + context
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


async def find_in_session(project: Project, args: FindInSession) -> TextMatches:
    """Find a text in prompts, answers, reasoning, and the inputs and outputs of tools.

    Raises OperationError: an unknown session, or no text.
    """
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    if not args.query.strip():
        raise OperationError("BadRequest", "Name the text to find.")
    return await asyncio.to_thread(_find_matches, project.store.path, session, args.query)


def _find_matches(path: Path, session: Session, query: str) -> TextMatches:
    """Search the stored parts until SESSION_SEARCH_TIME is over or enough matches are found.
    Blocks.
    """
    pattern, deadline = compile_word_search(query), time.monotonic() + SESSION_SEARCH_TIME.seconds
    # SQLite can only look for plain text, so it preselects parts by the longest word,
    # and the pattern decides.
    longest_word = max(re.findall(_WORD, query), key=len, default="")
    undone = session.revert.message_id if session.revert is not None else ""
    text_matches: list[TextMatch] = []
    with closing(open_queries(path)) as queries:
        for info, part in queries.search_parts(session.id, longest_word):
            # As on the screen: an undone prompt is still shown, so that it can be redone,
            # but its answers are not.
            if undone and info.id >= undone and isinstance(info, AssistantMessage):
                continue
            text_matches += _match_part(pattern, info, part)
            if len(text_matches) >= SESSION_TEXT_MATCHES.value or time.monotonic() > deadline:
                return TextMatches(found=text_matches[: SESSION_TEXT_MATCHES.value], complete=False)
    return TextMatches(found=text_matches, complete=True)


def _match_part(pattern: re.Pattern[str], info: Message, part: Part) -> Iterator[TextMatch]:
    """Yield the matches in a part's text, as users see it."""
    text, kind = _get_text(part), _find_kind(info, part)
    for ordinal, match in enumerate(pattern.finditer(text)):
        yield TextMatch(
            message_id=info.id,
            part_id=part.id,
            ordinal=ordinal,
            kind=kind,
            created=info.time.created,
            text=_cut_out(text, match.start(), match.end(), _MATCH_CONTEXT_CHARS),
            tool=part.tool if isinstance(part, ToolPart) else "",
        )


def _find_kind(info: Message, part: Part) -> TextKind:
    if isinstance(part, ToolPart):
        return "tool"
    if isinstance(part, ReasoningPart):
        return "reasoning"
    if isinstance(info, UserMessage):
        return "prompt"
    return "summary" if info.summary else "answer"


def _get_text(part: Part) -> str:
    """Return the searchable text of a part; "" for a part without text that users see."""
    match part:
        case TextPart(text=text) if not part.synthetic and not part.ignored:
            return text
        case ReasoningPart(text=text):
            return text
        case FilePart(filename=name):
            return name or ""
        case SubtaskPart(description=description, prompt=prompt):
            return f"{description}\n{prompt}"
        case ToolPart(state=ToolStateCompleted() as state):
            output = state.metadata.get("output")
            result = (
                remove_model_notes(output, state.metadata)
                if isinstance(output, str)
                else state.for_user
            )
            return "\n".join([*iterate_texts(state.input), result])
        case ToolPart(state=ToolStateError() as state):
            return "\n".join([*iterate_texts(state.input), state.error])
        case ToolPart(state=state):
            return "\n".join(iterate_texts(state.input))
        case _:
            return ""
