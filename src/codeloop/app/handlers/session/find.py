"""Handler that finds a text in one session: in prompts, answers, reasoning, and inputs and outputs of tools."""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.kit.jsonc import iterate_texts
from codeloop.kit.wildcard import compile_word_search
from codeloop.schema import operation
from codeloop.schema.api.session_reports import FindInSession, TextKind, TextMatch, TextMatches
from codeloop.schema.bounds.session import SESSION_TEXT_MATCHES
from codeloop.schema.errors import OperationError, SessionNotFound
from codeloop.schema.limits import SESSION_SEARCH
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
from codeloop.store.queries import open_queries

CONTEXT_CHARACTERS = 40
"""How much is shown before and after a match."""
_WORD = re.compile(r"[A-Za-z0-9]+")


@handles(operation.SESSION_FIND)
async def find(project: Project, args: FindInSession) -> TextMatches:
    """Find a text. Raises OperationError: an unknown session, or no text."""
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    if not args.query.strip():
        raise OperationError("BadRequest", "Name the text to find.")
    return await asyncio.to_thread(_find, project.store.path, session, args.query)


def _find(path: Path, session: Session, query: str) -> TextMatches:
    """Search the stored parts until SESSION_SEARCH is over or enough matches are found. Blocks."""
    pattern, end = compile_word_search(query), time.monotonic() + SESSION_SEARCH.seconds
    undone = session.revert.message_id if session.revert is not None else ""
    text_matches: list[TextMatch] = []
    with closing(open_queries(path)) as queries:
        for info, part in queries.search_parts(session.id, max(_WORD.findall(query), key=len, default="")):
            if undone and info.id >= undone and isinstance(info, AssistantMessage):  # not shown any more
                continue
            text_matches += _match_part(pattern, info, part)
            if len(text_matches) >= SESSION_TEXT_MATCHES.value or time.monotonic() > end:
                return TextMatches(found=text_matches[: SESSION_TEXT_MATCHES.value], complete=False)
    return TextMatches(found=text_matches, complete=True)


def _match_part(pattern: re.Pattern[str], info: Message, part: Part) -> Iterator[TextMatch]:
    """Yield the matches in a part's text, as users see it."""
    text, kind = _get_text(part), _find_kind(info, part)
    for ordinal, at in enumerate(pattern.finditer(text)):
        start, stop = max(at.start() - CONTEXT_CHARACTERS, 0), at.end() + CONTEXT_CHARACTERS
        yield TextMatch(
            message_id=info.id,
            part_id=part.id,
            ordinal=ordinal,
            kind=kind,
            created=info.time.created,
            text=("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else ""),
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
            result = remove_model_notes(output, state.metadata) if isinstance(output, str) else state.for_user
            return "\n".join([*iterate_texts(state.input), result])
        case ToolPart(state=ToolStateError() as state):
            return "\n".join([*iterate_texts(state.input), state.error])
        case ToolPart(state=state):
            return "\n".join(iterate_texts(state.input))
        case _:
            return ""
