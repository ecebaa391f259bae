"""Converts values and events of API version 1 to the form of the version 2 preview API.
Does no I/O.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from codeloop.schema.api.agents import Agent, Command
from codeloop.schema.api.files import FileNode
from codeloop.schema.api.providers import KnownProviders, Model, ProviderDetails, UsableProviders
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import get_error_message
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session, Tokens, UserMessage
from codeloop.schema.part import (
    AgentPart,
    CompactionPart,
    FilePart,
    Part,
    ReasoningPart,
    StepFinishPart,
    StepStartPart,
    TextPart,
    ToolPart,
    ToolState,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import JSON, encode_json

# The prefix of a line with data in server-sent events.
_DATA_PREFIX = b"data: "


def translate_session(session: Session) -> JSON:
    """Return a session in version 2's form."""
    time = {
        "created": session.time.created,
        "updated": session.time.updated,
        "archived": session.time.archived,
    }
    return _make_object(
        id=session.id,
        parentID=session.parent_id,
        projectID=session.project_id,
        agent=session.agent,
        model=None if session.model is None else msgspec.to_builtins(session.model),
        cost=session.cost or 0,
        tokens=_translate_tokens(session.tokens or NO_TOKENS),
        time=_make_object(**time),
        title=session.title,
        location={"directory": session.directory},
        subpath=session.path or None,
        revert=None if session.revert is None else msgspec.to_builtins(session.revert),
    )


def translate_message(message: MessageWithParts) -> JSON:
    """Return a message in version 2's form."""
    if isinstance(message.info, AssistantMessage):
        return _translate_answer(message.info, message.parts)
    return _translate_prompt(message.info, message.parts)


def translate_messages(messages: Iterable[MessageWithParts]) -> list[JSON]:
    """Return messages in version 2's form."""
    return [translate_message(message) for message in messages]


def _translate_prompt(info: UserMessage, parts: Iterable[Part]) -> JSON:
    parts = list(parts)
    time = {"created": info.time.created}
    for part in parts:
        if isinstance(part, CompactionPart):
            reason = "auto" if part.auto else "manual"
            return {
                "id": info.id,
                "type": "compaction",
                "reason": reason,
                "summary": "",
                "recent": "",
                "time": time,
            }
    texts = [part for part in parts if isinstance(part, TextPart)]
    visible_texts = [part.text for part in texts if not part.synthetic]
    if not visible_texts and texts:
        text = "\n".join(part.text for part in texts)
        return {
            "id": info.id,
            "type": "synthetic",
            "sessionID": info.session_id,
            "text": text,
            "time": time,
        }
    files = [_translate_file(part) for part in parts if isinstance(part, FilePart)]
    agents = [{"name": part.name} for part in parts if isinstance(part, AgentPart)]
    fields = {"id": info.id, "type": "user", "text": "\n".join(visible_texts), "time": time}
    return _make_object(**fields, files=files or None, agents=agents or None)


def _translate_file(part: FilePart) -> JSON:
    return _make_object(uri=part.url, mime=part.mime, name=part.filename)


def _translate_answer(info: AssistantMessage, parts: Iterable[Part]) -> JSON:
    parts = list(parts)
    starts = [part.snapshot for part in parts if isinstance(part, StepStartPart) and part.snapshot]
    ends = [part.snapshot for part in parts if isinstance(part, StepFinishPart) and part.snapshot]
    snapshot = _make_object(start=starts[0] if starts else None, end=ends[-1] if ends else None)
    error = (
        None
        if info.error is None
        else {"type": "unknown", "message": get_error_message(info.error)}
    )
    return _make_object(
        id=info.id,
        type="assistant",
        agent=info.agent,
        model=_make_object(id=info.model_id, providerID=info.provider_id, variant=info.variant),
        content=[data for part in parts if (data := _translate_content(part)) is not None],
        snapshot=snapshot or None,
        finish=info.finish,
        cost=info.cost,
        tokens=_translate_tokens(info.tokens),
        error=error,
        time=_make_object(created=info.time.created, completed=info.time.completed),
    )


def _translate_content(part: Part) -> JSON | None:
    match part:
        case TextPart():
            return {"type": "text", "id": part.id, "text": part.text}
        case ReasoningPart():
            time = _make_object(created=part.time.start, completed=part.time.end)
            return {"type": "reasoning", "id": part.id, "text": part.text, "time": time}
        case ToolPart():
            return {
                "type": "tool",
                "id": part.call_id,
                "name": part.tool,
                "state": _translate_state(part.state),
                "time": _translate_tool_time(part.state),
            }
        case _:
            return None


def _translate_state(state: ToolState) -> JSON:
    match state:
        case ToolStatePending():
            return {"status": "pending", "input": state.raw}
        case ToolStateRunning():
            return {
                "status": "running",
                "input": state.input,
                "structured": state.metadata or {},
                "content": [],
            }
        case ToolStateCompleted():
            content = [{"type": "text", "text": state.output}]
            fields = {
                "status": "completed",
                "input": state.input,
                "structured": state.metadata,
                "content": content,
            }
            files = [_translate_file(each) for each in state.attachments or ()]
            return _make_object(**fields, attachments=files or None)
        case ToolStateError():
            error = {"type": "unknown", "message": state.error}
            structured = state.metadata or {}
            return {
                "status": "error",
                "input": state.input,
                "structured": structured,
                "content": [],
                "error": error,
            }


def _translate_tool_time(state: ToolState) -> JSON:
    match state:
        case ToolStatePending():
            # Version 1 has no time before a tool starts, and version 2 needs one.
            return {"created": 0}
        case ToolStateRunning():
            return {"created": state.time.start, "ran": state.time.start}
        case ToolStateCompleted() | ToolStateError():
            return {
                "created": state.time.start,
                "ran": state.time.start,
                "completed": state.time.end,
            }


def translate_agent(agent: Agent) -> JSON:
    """Return an agent in version 2's form."""
    model = None
    if agent.model is not None:
        model = _make_object(
            id=agent.model.model_id, providerID=agent.model.provider_id, variant=agent.variant
        )
    rules = [
        {"action": each.permission, "resource": each.pattern, "effect": each.action}
        for each in agent.permission
    ]
    return _make_object(
        id=agent.name,
        model=model,
        request={"headers": {}, "body": agent.options},
        system=agent.prompt,
        description=agent.description,
        mode=agent.mode,
        hidden=bool(agent.hidden),
        color=agent.color,
        steps=agent.steps,
        permissions=rules,
    )


def translate_command(command: Command) -> JSON:
    """Return a command in version 2's form."""
    # Ids of models may have further slashes.
    provider, _, model = (command.model or "").partition("/")
    return _make_object(
        name=command.name,
        template=command.template,
        description=command.description,
        agent=command.agent,
        model=_make_object(id=model, providerID=provider, variant=command.variant)
        if model
        else None,
        subtask=command.subtask,
    )


def translate_model(model: Model) -> JSON:
    """Return a model in version 2's form."""
    capabilities = model.capabilities
    kinds = ("text", "audio", "image", "video", "pdf")
    variants = [
        {"id": name, "headers": {}, "body": body} for name, body in (model.variants or {}).items()
    ]
    return _make_object(
        id=model.id,
        providerID=model.provider_id,
        family=model.family,
        name=model.name,
        api={"id": model.api.id, **_translate_api(model)},
        capabilities={
            "tools": capabilities.toolcall,
            "input": [kind for kind in kinds if getattr(capabilities.input, kind)],
            "output": [kind for kind in kinds if getattr(capabilities.output, kind)],
        },
        request={"headers": {}, "body": model.options},
        variants=variants,
        time={"released": _parse_release(model.release_date)},
        cost=[msgspec.to_builtins(model.cost)],
        status=model.status,
        enabled=True,
        limit=msgspec.to_builtins(model.limit),
    )


def _parse_release(date: str) -> int:
    """Return the ms since the epoch of a date such as 2025-06-17;
    0 for a text that is not a date.
    """
    try:
        return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0


def _translate_api(model: Model) -> JSON:
    return _make_object(type="aisdk", package=model.api.npm, url=model.api.url or None)


def translate_provider(provider: ProviderDetails) -> JSON:
    """Return a provider in version 2's form, without the headers and the body of its
    requests: they may hold keys.
    """
    # Version 1 has the API with each model, version 2 with the provider.
    first = next(iter(provider.models.values()), None)
    api: JSON = {"type": "native", "settings": {}} if first is None else _translate_api(first)
    request: JSON = {"headers": {}, "body": {}}
    return {
        "id": provider.id,
        "integrationID": provider.id,
        "name": provider.name,
        "api": api,
        "request": request,
    }


def translate_models(usable: UsableProviders) -> list[JSON]:
    """Return the models that can be used, the newest first."""
    models = [model for provider in usable.providers for model in provider.models.values()]
    return [
        translate_model(model)
        for model in sorted(models, key=lambda model: model.release_date, reverse=True)
    ]


def translate_providers(usable: UsableProviders) -> list[JSON]:
    """Return the providers that can be used."""
    return [translate_provider(provider) for provider in usable.providers]


def translate_integration(provider: ProviderDetails, connected: list[str]) -> JSON:
    """Return a provider with the ways to sign in.
    `connected`: the ids of those that have a credential.
    """
    methods: list[JSON] = [{"type": "key"}]
    if provider.env:
        methods.append({"type": "env", "names": provider.env})
    credential = {"type": "credential", "id": provider.id, "label": provider.name}
    connections = [credential] if provider.id in connected else []
    return {
        "id": provider.id,
        "name": provider.name,
        "methods": methods,
        "connections": connections,
    }


def translate_integrations(known: KnownProviders) -> list[JSON]:
    """Return the providers with the ways to sign in."""
    return [translate_integration(provider, known.connected) for provider in known.all]


def translate_entries(entries: Iterable[FileNode]) -> list[JSON]:
    """Return the entries of a folder in version 2's form."""
    return [{"path": entry.path, "type": entry.type} for entry in entries]


def translate_permission(request: PermissionRequest) -> JSON:
    """Return a permission request in version 2's form."""
    source = None if request.tool is None else {"type": "tool", **msgspec.to_builtins(request.tool)}
    return _make_object(
        id=request.id,
        sessionID=request.session_id,
        action=request.permission,
        resources=request.patterns,
        save=request.always or None,
        metadata=request.metadata,
        source=source,
    )


def translate_frames(frames: bytes) -> bytes:
    """Translate complete frames of `/global/event` for `/api/event`: the lines with data;
    ids stay as they are.
    """
    return b"\n".join(
        _translate_line(line) if line.startswith(_DATA_PREFIX) else line
        for line in frames.split(b"\n")
    )


def _translate_line(line: bytes) -> bytes:
    """Translate an event, with its directory: version 2 has `{id, type, data, location}`."""
    wrapped_event: JSON = msgspec.json.decode(line.removeprefix(_DATA_PREFIX))
    payload: JSON = wrapped_event["payload"]
    event: JSON = {"id": payload["id"], "type": payload["type"], "data": payload["properties"]}
    if "directory" in wrapped_event:
        event["location"] = {"directory": wrapped_event["directory"]}
    return _DATA_PREFIX + encode_json(event)


def _translate_tokens(tokens: Tokens) -> JSON:
    cache = {"read": tokens.cache.read, "write": tokens.cache.write}
    return {
        "input": tokens.input,
        "output": tokens.output,
        "reasoning": tokens.reasoning,
        "cache": cache,
    }


def _make_object(**fields: Any) -> JSON:
    """Return an object of the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
