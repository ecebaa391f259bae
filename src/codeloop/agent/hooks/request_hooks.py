"""Applies extensions' changes to a request: conversation, system prompt, tools, parameters,
headers.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from codeloop.agent.request.image_limits import limit_images
from codeloop.agent.request.projection import project_conversation
from codeloop.agent.request.window import make_window
from codeloop.extend.hooks.output_types import TransformedMessage
from codeloop.model.chat import ModelInfo, ModelMessage, ModelRequest, ToolSpec
from codeloop.schema.ids import new_id
from codeloop.schema.message import UserMessage
from codeloop.schema.part import TextPart
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry
from codeloop.store.store import Store
from codeloop.tool.call_session import HookRunner
from codeloop.tool.superseded_outputs import find_superseded

MESSAGES_HOOK = "experimental.chat.messages.transform"
SYSTEM_HOOK = "experimental.chat.system.transform"
DEFINITION_HOOK, PARAMS_HOOK, HEADERS_HOOK = "tool.definition", "chat.params", "chat.headers"


async def apply_request_hooks(
    hooks: HookRunner, store: Store, user: UserMessage, info: ModelInfo, request: ModelRequest
) -> ModelRequest:
    """Return a step's request with all changes of extensions; `user` is the prompt that it answers.

    Raises HookRefused when a deciding extension failed.
    """
    if hooks.has_handler(MESSAGES_HOOK):
        messages = await _transform_messages(hooks, store, user.session_id, info)
        if messages is not None:
            request = replace(request, messages=messages)
    if hooks.has_handler(SYSTEM_HOOK):
        payload = {"sessionID": user.session_id, "model": describe_model(info)}
        output = await hooks.run(SYSTEM_HOOK, payload, {"system": [request.system]})
        request = replace(request, system="\n\n".join(filter(None, output["system"])))
    if hooks.has_handler(DEFINITION_HOOK):
        tool_specs = await asyncio.gather(
            *(_change_definition(hooks, tool, user.agent) for tool in request.tools)
        )
        request = replace(request, tools=tuple(tool_specs))
    return await apply_parameter_hooks(hooks, user, user.agent, info, request)


async def apply_parameter_hooks(
    hooks: HookRunner, user: UserMessage, agent: str, info: ModelInfo, request: ModelRequest
) -> ModelRequest:
    """Return a request with the parameters and headers that extensions set.
    `agent`: the agent that makes it.
    """
    if not (hooks.has_handler(PARAMS_HOOK) or hooks.has_handler(HEADERS_HOOK)):
        return request
    payload: JSON = {
        "sessionID": user.session_id,
        "agent": agent,
        "model": describe_model(info),
        "provider": {
            "source": "custom",
            "info": {"id": info.provider_id, "name": info.provider_id},
            "options": {},
        },
        "message": msgspec.to_builtins(user),
    }
    if hooks.has_handler(PARAMS_HOOK):
        request = await _change_params(hooks, payload, request)
    if hooks.has_handler(HEADERS_HOOK):
        output = await hooks.run(HEADERS_HOOK, payload, {"headers": request.headers})
        request = replace(request, headers=output["headers"])
    return request


async def _change_params(hooks: HookRunner, payload: JSON, request: ModelRequest) -> ModelRequest:
    current: JSON = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "topK": None,
        "maxOutputTokens": request.max_tokens,
        "options": request.options,
    }
    output = await hooks.run(PARAMS_HOOK, payload, current)
    options: JSON = output["options"]
    if output["topK"] is not None:
        options = {**options, "top_k": output["topK"]}
    return replace(
        request,
        temperature=output["temperature"],
        top_p=output["topP"],
        max_tokens=output["maxOutputTokens"],
        options=options,
    )


async def _transform_messages(
    hooks: HookRunner, store: Store, session_id: str, info: ModelInfo
) -> tuple[ModelMessage, ...] | None:
    """Return the messages of the conversation as changed by extensions; None: unchanged."""
    conversation = store.read_context(session_id)
    visible = make_window(conversation.entries)
    entries = await transform_history(hooks, session_id, visible.select(conversation.entries))
    if entries is None:
        return None
    return limit_images(
        (*visible.head, *project_conversation(entries, info, find_superseded(entries)))
    )


async def transform_history(
    hooks: HookRunner, session_id: str, entries: Iterable[Entry]
) -> tuple[Entry, ...] | None:
    """Return messages as changed by extensions; None: unchanged."""
    messages = [
        {"info": msgspec.to_builtins(entry.info), "parts": msgspec.to_builtins(entry.parts)}
        for entry in entries
    ]
    # As an extension would send them back, so that unchanged messages compare equal below.
    messages = msgspec.json.decode(msgspec.json.encode(messages))
    output = await hooks.run(MESSAGES_HOOK, {"sessionID": session_id}, {"messages": messages})
    if output["messages"] == messages:
        return None
    messages_after = msgspec.convert(output["messages"], list[TransformedMessage])
    return tuple(Entry(each.info, tuple(each.parts)) for each in messages_after)


async def transform_prompt(hooks: HookRunner, user: UserMessage, text: str) -> str:
    """Return a prompt's text as changed by extensions, for a request outside the conversation."""
    if not hooks.has_handler(MESSAGES_HOOK):
        return text
    part = TextPart(id=new_id("prt"), session_id=user.session_id, message_id=user.id, text=text)
    entries = await transform_history(hooks, user.session_id, [Entry(user, (part,))])
    parts = [part] if entries is None else [part for entry in entries for part in entry.parts]
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


async def _change_definition(hooks: HookRunner, tool: ToolSpec, agent: str) -> ToolSpec:
    """Return a tool with the extensions' description: the same each time,
    so that requests keep their prefix.
    """
    current: JSON = {"description": tool.description, "parameters": tool.parameters}
    output = await hooks.run_cached(DEFINITION_HOOK, {"toolID": tool.name, "agent": agent}, current)
    return ToolSpec(tool.name, output["description"], output["parameters"], tool.origin)


def describe_model(info: ModelInfo) -> JSON:
    """Describe a model in the form for extensions."""
    return {
        "id": info.id,
        "providerID": info.provider_id,
        "name": info.name,
        "family": info.family,
        "api": {"id": info.api_id or info.id, "npm": info.npm, "url": ""},
        "status": info.status,
        "release_date": info.release_date,
        "capabilities": {
            "temperature": info.temperature,
            "reasoning": info.reasoning,
            "attachment": info.attachment,
            "toolcall": info.tool_call,
            "input": {
                kind: kind in info.input for kind in ("text", "audio", "image", "video", "pdf")
            },
        },
        "cost": {
            "input": info.prices.input,
            "output": info.prices.output,
            "cache": {"read": info.prices.cache_read, "write": info.prices.cache_write},
        },
        "limit": {
            "context": info.limits.context,
            "input": info.limits.input,
            "output": info.limits.output,
        },
        "options": info.options,
    }
