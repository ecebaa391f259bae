"""Handler that reports how a session's context window is filled: the tokens of each
part of the next request.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from codeloop.agent.answer.usage import BYTES_PER_TOKEN, TOKENS_PER_IMAGE
from codeloop.agent.calls.call_rules import list_rulesets
from codeloop.agent.compaction import list_old_outputs
from codeloop.agent.engine import Engine
from codeloop.agent.request.request_cache import RequestCache
from codeloop.agent.request.window import Window, compute_compaction_threshold, make_window
from codeloop.app.project import Project
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.kit.text.truncate import count_bytes
from codeloop.model.chat import ModelInfo, TextPiece, ToolSpec
from codeloop.model.default_model import choose_default
from codeloop.schema.api.agents import Agent
from codeloop.schema.api.session_reports import ContextGroup, ContextPart, SessionContext
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import SessionNotFound
from codeloop.schema.limits import PRUNE_GAIN
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import (
    FilePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.store.conversation import Conversation, Entry


class _PartSize(NamedTuple):
    """The size of a part of a request."""

    group: ContextGroup
    name: str
    size: int
    """In bytes."""


async def measure_context(project: Project, args: SessionId) -> SessionContext:
    """Return the parts of a session's next request, in tokens.
    Raises CodeloopError: no such session, no model.
    """
    session = project.store.find_session(args.session_id)
    if session is None:
        raise SessionNotFound(args.session_id)
    conversation = project.store.read_context(session.id)
    agent = project.engine.get_agent(
        session.agent or project.settings.config.default_agent or "build"
    )
    ref = (
        f"{session.model.provider_id}/{session.model.id}"
        if session.model
        else await choose_default(project.providers)
    )
    info = project.models.open(ref).info
    sizes: dict[tuple[ContextGroup, str], int] = {}
    for part in (
        *_measure_system(project, session, agent, info),
        *_measure_tools(project, session, agent, info),
        *_measure_conversation(conversation),
    ):
        sizes[part.group, part.name] = sizes.get((part.group, part.name), 0) + part.size
    used, is_counted = _find_last_usage(conversation)
    total = sum(sizes.values()) / BYTES_PER_TOKEN
    # The parts are estimated by their bytes; if the service counted the whole request,
    # they are scaled to its count.
    scale = used / total if is_counted and total else 1.0
    parts = [
        ContextPart(group=group, name=name, tokens=round(size * scale / BYTES_PER_TOKEN))
        for (group, name), size in sizes.items()
    ]
    gain = sum(size for size, _ in list_old_outputs(conversation)) // BYTES_PER_TOKEN
    return SessionContext(
        model=ref,
        window=info.limits.input or info.limits.context or 0,
        used=used if is_counted else round(total),
        is_counted=is_counted,
        compacts_at=compute_compaction_threshold(info, project.settings.config.compaction.reserved)
        or 0,
        prunable=gain if gain >= PRUNE_GAIN.value else 0,
        parts=[each for each in parts if each.tokens],
    )


def _measure_system(
    project: Project, session: Session, agent: Agent, info: ModelInfo
) -> Iterator[_PartSize]:
    """Yield the sizes of the system prompt, and of each file of instructions in it."""
    engine = project.engine
    total = count_bytes(RequestCache().get_system_prompt(engine, session, agent, info))
    for path, text in engine.read_instructions():
        size = count_bytes(text)
        total -= size
        yield _PartSize("instructions", str(path), size)
    yield _PartSize("system prompt", f"agent {agent.name}", max(total, 0))


def _measure_tools(
    project: Project, session: Session, agent: Agent, info: ModelInfo
) -> Iterator[_PartSize]:
    """Yield the sizes of the offered tools: built-in ones, those of each MCP server,
    and those of extensions.
    """
    engine: Engine = project.engine
    rulesets, *further_lists = list_rulesets(engine, session.id, agent)
    table = project.services.mcp
    # The tools of a server begin with its name. Longer names first,
    # since one name may be the start of another.
    servers = sorted(table.definitions if table is not None else (), key=len, reverse=True)
    cache = RequestCache()
    needed = cache.find_needed_tools(engine, session.id)
    for spec in cache.get_tools(
        engine.toolbox, info, rulesets, tuple(further_lists), needed=needed
    ):
        prefixes = ((name, re.sub(r"[^A-Za-z0-9_-]", "_", name)) for name in servers)
        server = next((name for name, prefix in prefixes if spec.name.startswith(prefix)), "")
        if spec.name in BUILTIN_TOOLS:
            yield _PartSize("tools", "built-in", _measure_spec(spec))
        elif server:
            yield _PartSize("MCP", server, _measure_spec(spec))
        else:
            yield _PartSize("tools", "extensions", _measure_spec(spec))


def _measure_conversation(conversation: Conversation) -> Iterator[_PartSize]:
    """Yield the sizes of the conversation's parts in the request."""
    visible: Window = make_window(conversation.entries)
    for message in visible.head:
        size = sum(
            count_bytes(each.text) for each in message.content if isinstance(each, TextPiece)
        )
        yield _PartSize("conversation", "summary of what was before", size)
    for entry in visible.select(conversation.entries):
        for part in entry.parts:
            for name, size in _list_text_sizes(entry, part):
                yield _PartSize("conversation", name, size)


def _list_text_sizes(entry: Entry, part: Part) -> Iterator[tuple[str, int]]:
    """Yield the name and size (bytes) of each text in a part."""
    match part:
        case TextPart(text=text) if not part.ignored:
            yield "prompts" if isinstance(entry.info, UserMessage) else "answers", count_bytes(text)
        case ReasoningPart(text=text):
            yield "reasoning", count_bytes(text)
        case FilePart():
            yield "attachments", _measure_file(part)
        case ToolPart(tool=tool, state=state):
            yield "calls", count_bytes(msgspec.json.encode(state.input).decode())
            if isinstance(state, ToolStateCompleted) and state.time.compacted is None:
                yield f"results of {tool}", count_bytes(state.output)
                for each in state.attachments or ():
                    yield "attachments", _measure_file(each)
            elif isinstance(state, ToolStateError):
                yield f"results of {tool}", count_bytes(state.error)
        case _:
            pass


def _measure_file(part: FilePart) -> int:
    is_shown_as_image = part.mime.startswith("image/") or part.mime == "application/pdf"
    return TOKENS_PER_IMAGE * BYTES_PER_TOKEN if is_shown_as_image else count_bytes(part.url)


def _find_last_usage(conversation: Conversation) -> tuple[int, bool]:
    """Return the tokens of the last request with its answer,
    and whether the service counted them.
    """
    for entry in reversed(conversation.entries):
        if isinstance(entry.info, AssistantMessage) and (tokens := entry.info.tokens).all:
            return tokens.all, not tokens.estimated and not entry.info.summary
    return 0, False


def _measure_spec(spec: ToolSpec) -> int:
    return count_bytes(spec.description) + len(msgspec.json.encode(spec.parameters))
