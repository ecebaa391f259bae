"""Sessions and their messages in the form of version 2. Does no I/O."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from codeloop.agent.calls.call_rules import CEILINGS_KEY, read_ceilings
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.errors import APIError, MessageError, get_error_message
from codeloop.schema.message import (
    FORK_KEY,
    NO_TOKENS,
    OWN_PREFIX,
    AssistantMessage,
    ModelRef,
    Session,
    SessionModel,
    Tokens,
    UserMessage,
    drop_own_keys,
)
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
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO, PermissionRule
from codeloop.schema.turns import COMMAND_NOTE
from codeloop.schema.wire import JSON
from codeloop.server.version2.names import rename_call, rename_permission
from codeloop.server.version2.session_arguments import Rule2

VIEWED_KEY = f"{OWN_PREFIX}viewed"
"""The metadata key of when a client has shown the end of a session (ms since the epoch)."""
ENTRIES_KEY = f"{OWN_PREFIX}instructions"
"""The metadata key of the instructions that clients have set for a session, by their keys."""
_FINISHES = {"stop", "length", "tool-calls", "content-filter", "error"}


def make_object(**fields: Any) -> JSON:
    """Return an object of the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def translate_session(session: Session) -> JSON:
    """Return a session in version 2's form."""
    metadata = session.metadata or {}
    shown = {name: each for name, each in drop_own_keys(metadata).items() if name != CEILINGS_KEY}
    times = msgspec.to_builtins(session.time)
    times.pop("compacting", None)
    return make_object(
        id=session.id,
        parentID=session.parent_id,
        fork=_translate_fork(metadata.get(FORK_KEY)),
        projectID=session.project_id,
        agent=session.agent,
        model=translate_model_ref(session.model),
        cost=session.cost or 0,
        tokens=translate_tokens(session.tokens or NO_TOKENS),
        time=make_object(**times, viewed=metadata.get(VIEWED_KEY)),
        title=session.title,
        metadata=shown or None,
        permissions=translate_rules(read_own_rules(session) or session.permission),
        location={"directory": session.directory},
        subpath=session.path or None,
        revert=translate_revert(session),
    )


def read_own_rules(session: Session) -> list[PermissionRule]:
    """Return the rules that a client has set for a session; a ceiling enforces them."""
    ceilings = read_ceilings(session)
    return [rule for each in ceilings if each.is_from_client for rule in each.permission]


def translate_revert(session: Session) -> JSON | None:
    """Return the point that a session was reverted to."""
    return None if session.revert is None else msgspec.to_builtins(session.revert)


def _translate_fork(origin: Any) -> JSON | None:
    """Return the origin of a fork of a part of a session; a copy of all has no boundary."""
    match origin:
        case {"sessionID": session_id, "messageID": message_id}:
            boundary = {"type": "before", "messageID": message_id}
            return {"sessionID": session_id, "boundary": boundary}
        case _:
            return None


def translate_model_ref(model: SessionModel | ModelRef | AssistantMessage | None) -> JSON | None:
    """Return the model of a session or a message."""
    if model is None:
        return None
    model_id = model.id if isinstance(model, SessionModel) else model.model_id
    return make_object(id=model_id, providerID=model.provider_id, variant=model.variant)


def translate_rules(rules: Iterable[PermissionRule] | None) -> list[JSON] | None:
    """Return permission rules in version 2's form, with its names of actions."""
    if rules is None:
        return None
    return [
        {
            "action": rename_permission(each.permission),
            "resource": each.pattern,
            "effect": each.action,
        }
        for each in rules
    ]


def read_rules(rules: Iterable[Rule2] | None) -> list[PermissionRule] | None:
    """Return the rules that a client of version 2 gave: actions, resources and effects."""
    if rules is None:
        return None
    return [
        PermissionRule(
            permission=PERMISSIONS_OF_VERSION_TWO.get(rule.action, rule.action),
            pattern=rule.resource,
            action=rule.effect,
        )
        for rule in rules
    ]


def translate_messages(messages: Sequence[MessageWithParts]) -> list[JSON]:
    """Return messages in version 2's form: the request for a summary and the summary are one
    there, as are a command of the user and its result.
    """
    summaries = {
        each.info.parent_id: each
        for each in messages
        if isinstance(each.info, AssistantMessage) and each.info.summary
    }
    return [
        translate_message(each, summaries.get(each.info.id))
        for each in messages
        if not _is_told_elsewhere(each)
    ]


def _is_told_elsewhere(message: MessageWithParts) -> bool:
    if isinstance(message.info, AssistantMessage):
        return bool(message.info.summary)
    return [part.text for part in message.parts if isinstance(part, TextPart)] == [COMMAND_NOTE]


def translate_message(message: MessageWithParts, summary: MessageWithParts | None = None) -> JSON:
    """Return a message in version 2's form. `summary`: the answer to a request for one."""
    if isinstance(message.info, AssistantMessage):
        command = find_user_command(message.parts)
        if command is not None:
            return _translate_user_command(message.info, command)
        return _translate_answer(message.info, message.parts)
    return _translate_prompt(message.info, message.parts, summary)


def find_user_command(parts: Sequence[Part]) -> ToolPart | None:
    """Return the call of a command that the user ran; None: the message is an answer."""
    match parts:
        # Calls of models have ids of their services.
        case [ToolPart(tool="bash") as part] if part.call_id.startswith("tool_"):
            return part
        case _:
            return None


def _translate_user_command(info: AssistantMessage, part: ToolPart) -> JSON:
    output = get_output(part.state)
    is_done = isinstance(part.state, ToolStateCompleted | ToolStateError)
    metadata = part.state.metadata if not isinstance(part.state, ToolStatePending) else {}
    return make_object(
        id=info.id,
        type="shell",
        shellID=part.call_id,
        command=str(part.state.input.get("command", "")),
        status="exited" if is_done else "running",
        exit=(metadata or {}).get("exit"),
        output=make_output(output) if is_done else None,
        time=make_object(created=info.time.created, completed=info.time.completed),
    )


def make_output(text: str) -> JSON:
    """Return the output of a command: all of it."""
    size = len(text.encode("utf-8", "replace"))
    return {"output": text, "cursor": size, "size": size, "truncated": False}


def get_output(state: ToolState) -> str:
    """Return the result of a call so far, as users read it."""
    match state:
        case ToolStateCompleted():
            return state.for_user
        case ToolStateError():
            return state.error
        case ToolStateRunning():
            return str((state.metadata or {}).get("output", ""))
        case ToolStatePending():
            return ""


def _translate_prompt(
    info: UserMessage, parts: Sequence[Part], summary: MessageWithParts | None
) -> JSON:
    time = {"created": info.time.created}
    for part in parts:
        if isinstance(part, CompactionPart):
            return _translate_compaction(info, part, summary)
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
    return {"id": info.id, "type": "user", "time": time, **translate_prompt_parts(parts)}


def translate_prompt_parts(parts: Sequence[Part]) -> JSON:
    """Return the text, the files and the agents of a prompt."""
    texts = [part.text for part in parts if isinstance(part, TextPart) and not part.synthetic]
    files = [translate_prompt_file(part) for part in parts if isinstance(part, FilePart)]
    agents = [{"name": part.name} for part in parts if isinstance(part, AgentPart)]
    return make_object(text="\n".join(texts), files=files or None, agents=agents or None)


def translate_prompt_file(part: FilePart) -> JSON:
    """Return a file of a prompt: its bytes where the prompt holds them, and its address."""
    is_inline = part.url.startswith("data:")
    source = {"type": "inline"} if is_inline else {"type": "uri", "uri": part.url}
    data = part.url.partition(",")[2] if is_inline else ""
    fields = {"data": data, "mime": part.mime, "source": source, "uri": part.url}
    return make_object(**fields, name=part.filename)


def _translate_compaction(
    info: UserMessage, part: CompactionPart, summary: MessageWithParts | None
) -> JSON:
    message = {
        "id": info.id,
        "type": "compaction",
        "reason": "auto" if part.auto else "manual",
        "summary": "",
        "recent": "",
        "status": "running",
        "time": {"created": info.time.created},
    }
    if summary is None or not isinstance(summary.info, AssistantMessage):
        return message
    if summary.info.error is not None:
        return message | {"status": "failed", "error": translate_error(summary.info.error)}
    texts = [part.text for part in summary.parts if isinstance(part, TextPart)]
    is_done = summary.info.time.completed is not None
    return message | {
        "summary": "\n".join(texts),
        "status": "completed" if is_done else "running",
    }


def translate_error(error: MessageError) -> JSON:
    """Return an error of an answer in version 2's form."""
    status = error.data.status_code if isinstance(error, APIError) else None
    kind = str(type(error).__struct_config__.tag)
    return make_object(type=kind, message=get_error_message(error), status=status)


def translate_finish(finish: str | None) -> str:
    """Return why an answer ended, in version 2's words."""
    return finish if finish in _FINISHES else "unknown"


def _translate_answer(info: AssistantMessage, parts: Sequence[Part]) -> JSON:
    starts = [part.snapshot for part in parts if isinstance(part, StepStartPart) and part.snapshot]
    ends = [part.snapshot for part in parts if isinstance(part, StepFinishPart) and part.snapshot]
    snapshot = make_object(start=starts[0] if starts else None, end=ends[-1] if ends else None)
    return make_object(
        id=info.id,
        type="assistant",
        agent=info.agent,
        model=translate_model_ref(info),
        content=[data for part in parts if (data := _translate_content(part)) is not None],
        snapshot=snapshot or None,
        finish=None if info.finish is None else translate_finish(info.finish),
        cost=info.cost,
        tokens=translate_tokens(info.tokens),
        error=None if info.error is None else translate_error(info.error),
        time=make_object(created=info.time.created, completed=info.time.completed),
    )


def _translate_content(part: Part) -> JSON | None:
    match part:
        case TextPart():
            return {"type": "text", "id": part.id, "text": part.text}
        case ReasoningPart():
            time = make_object(created=part.time.start, completed=part.time.end)
            return {"type": "reasoning", "id": part.id, "text": part.text, "time": time}
        case ToolPart():
            name, _ = rename_call(part.tool, {})
            return {
                "type": "tool",
                "id": part.call_id,
                "name": name,
                "executed": False,
                "state": _translate_state(part.tool, part.state),
                "time": _translate_tool_time(part.state),
            }
        case _:
            return None


def _translate_state(tool: str, state: ToolState) -> JSON:
    _, arguments = rename_call(tool, state.input)
    match state:
        case ToolStatePending():
            return {"status": "streaming", "input": state.raw}
        case ToolStateRunning():
            status: JSON = {"status": "running"}
        case ToolStateCompleted():
            status = {"status": "completed"}
        case ToolStateError():
            status = {"status": "error", "error": {"type": "unknown", "message": state.error}}
    # The preview of version 2 called the metadata `structured`.
    metadata = state.metadata or {}
    content = translate_output(state)
    return {
        **status,
        "input": arguments,
        "content": content,
        "metadata": metadata,
        "structured": metadata,
    }


def translate_output(state: ToolState) -> list[JSON]:
    """Return the result of a call: its text and its files."""
    if not isinstance(state, ToolStateCompleted):
        return []
    files = [
        make_object(type="file", uri=each.url, mime=each.mime, name=each.filename)
        for each in state.attachments or ()
    ]
    return [{"type": "text", "text": state.output}, *files]


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


def translate_tokens(tokens: Tokens) -> JSON:
    """Return counts of tokens in version 2's form."""
    cache = {"read": tokens.cache.read, "write": tokens.cache.write}
    return {
        "input": tokens.input,
        "output": tokens.output,
        "reasoning": tokens.reasoning,
        "cache": cache,
    }


def translate_diffs(diffs: Iterable[Any]) -> list[JSON]:
    """Return changed files in version 2's form; one whose change can't be shown has no patch."""
    return [
        {
            "file": each.file or "",
            "patch": each.patch or "",
            "additions": each.additions,
            "deletions": each.deletions,
            "status": each.status or "modified",
        }
        for each in diffs
    ]
