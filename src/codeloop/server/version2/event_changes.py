"""What has changed, in the words of version 2: in sessions, calls, directories."""

from collections.abc import Iterator

from msgspec import to_builtins

from codeloop.schema import event as stored
from codeloop.schema import live_events as live
from codeloop.schema.message import NO_TOKENS, AssistantMessage, AssistantTime, Session
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStatePending, ToolStateRunning
from codeloop.schema.wire import JSON, encode_json
from codeloop.server.version2.answer_forms import (
    translate_permission,
    translate_question,
    write_answers,
)
from codeloop.server.version2.catalog_forms import translate_project
from codeloop.server.version2.event_state import AnswerSeen, PartSeen
from codeloop.server.version2.names import rename_call
from codeloop.server.version2.session_forms import (
    make_object,
    read_own_rules,
    translate_model_ref,
    translate_output,
    translate_revert,
    translate_rules,
    translate_session,
    translate_tokens,
)

Change = tuple[str, JSON]
"""The type and the data of an event of version 2."""
_CATALOGS = ("config", "agent", "command", "skill", "provider", "model", "integration", "reference")
_COMMANDS = frozenset(
    {
        "session.list",
        "session.new",
        "session.interrupt",
        "session.background",
        "session.compact",
        "session.page.up",
        "session.page.down",
        "session.line.up",
        "session.line.down",
        "session.half.page.up",
        "session.half.page.down",
        "session.first",
        "session.last",
        "prompt.clear",
        "prompt.submit",
        "agent.cycle",
    }
)
"""The commands of a terminal UI that clients may send."""


def find_time(event: stored.Event) -> int | None:
    """Return when what an event stores was done (ms since the epoch); None: it does not say."""
    match event:
        case stored.SessionCreated(properties=p):
            return p.info.time.created
        case stored.SessionUpdated(properties=p):
            return p.info.time.updated
        case stored.MessageUpdated(properties=p):
            time = p.info.time
            return (time.completed if isinstance(time, AssistantTime) else None) or time.created
        case stored.PartUpdated(properties=p):
            return p.time
        case _:
            return None


def name_item(session_id: str, inbox_id: str) -> JSON:
    """Return the ids of an item of the inbox."""
    return {"sessionID": session_id, "inboxID": inbox_id}


def describe_new(info: Session) -> JSON:
    """Return the data of the event of a new session."""
    described = translate_session(info)
    same = ("projectID", "location", "subpath", "parentID", "title", "agent", "model")
    more = ("metadata", "permissions")
    fields = {name: described[name] for name in (*same, *more) if name in described}
    return {"sessionID": info.id, "slug": info.slug, "version": info.version, **fields}


def describe_step(session_id: str, info: AssistantMessage) -> JSON:
    """Return the data of the event of a step that begins."""
    return {
        "sessionID": session_id,
        "assistantMessageID": info.id,
        "agent": info.agent,
        "model": translate_model_ref(info),
        "started": info.time.created,
    }


def compare_sessions(before: Session | None, info: Session) -> Iterator[Change]:
    """Yield the changes of a session; its earlier state is not known at first."""
    ids = {"sessionID": info.id}
    usage = {"cost": info.cost or 0, "tokens": translate_tokens(info.tokens or NO_TOKENS)}
    if before is None:
        yield "session.renamed", {**ids, "title": info.title}
        yield "session.usage.updated", {**ids, **usage}
        return
    if before.title != info.title:
        yield "session.renamed", {**ids, "title": info.title}
    if info.agent is not None and before.agent != info.agent:
        data = make_object(agent=info.agent, previous=before.agent)
        yield "session.agent.selected", {**ids, **data}
    if info.model is not None and before.model != info.model:
        data = make_object(
            model=translate_model_ref(info.model), previous=translate_model_ref(before.model)
        )
        yield "session.model.selected", {**ids, **data}
    if before.directory != info.directory:
        data = make_object(
            location={"directory": info.directory},
            projectID=info.project_id,
            subpath=info.path or None,
        )
        yield "session.moved", {**ids, **data}
    if before.time.archived != info.time.archived:
        kind = "session.unarchived" if info.time.archived is None else "session.archived"
        yield kind, ids
    yield from _compare_metadata(before, info)
    yield from _compare_reverts(before, info)
    if (before.cost, before.tokens) != (info.cost, info.tokens):
        yield "session.usage.updated", {**ids, **usage}


def _compare_metadata(before: Session, info: Session) -> Iterator[Change]:
    old, new = translate_session(before), translate_session(info)
    if old["time"].get("viewed") != new["time"].get("viewed"):
        yield "session.viewed", {"sessionID": info.id, "idle": new["time"].get("viewed") or 0}
    if old.get("metadata") != new.get("metadata"):
        yield (
            "session.metadata.updated",
            {"sessionID": info.id, "metadata": new.get("metadata") or {}},
        )
    rules = read_own_rules(info) or info.permission
    if (read_own_rules(before) or before.permission) != rules:
        yield (
            "session.permissions",
            {"sessionID": info.id, "permissions": translate_rules(rules) or []},
        )


def _compare_reverts(before: Session, info: Session) -> Iterator[Change]:
    ids = {"sessionID": info.id}
    if before.revert == info.revert:
        return
    if info.revert is not None:
        yield "session.revert.staged", {**ids, "revert": translate_revert(info)}
    else:
        yield "session.revert.cleared", ids


def translate_session_event(session_id: str, event: stored.Event) -> Iterator[Change]:
    """Yield the events of what waits for the user, and other events of a session."""
    ids = {"sessionID": session_id}
    match event:
        case stored.PermissionAsked(properties=p):
            yield "permission.asked", translate_permission(p)
        case stored.PermissionReplied(properties=p):
            yield "permission.replied", {**ids, "requestID": p.request_id, "reply": p.reply}
        case stored.QuestionAsked(properties=p):
            yield "form.created", {"form": translate_question(p)}
        case stored.QuestionReplied(properties=p):
            answer = write_answers(p.answers)
            yield "form.replied", {**ids, "id": p.request_id, "answer": answer}
        case stored.QuestionRejected(properties=p):
            yield "form.cancelled", {**ids, "id": p.request_id}
        case live.SessionIdle():
            yield "session.idle", ids
        case live.SessionSelected():
            yield "tui.session.select", ids
        case _:
            pass


def translate_directory_event(event: stored.Event) -> Iterator[Change]:
    """Translate an event of no session."""
    match event:
        case live.FileWatched(properties=p):
            yield "filesystem.changed", to_builtins(p)
        case live.BranchUpdated(properties=p):
            yield "vcs.branch.updated", to_builtins(p)
        case live.ProjectUpdated(properties=p):
            yield "project.updated", translate_project(p)
        case (
            live.PtyCreated(properties=p)
            | live.PtyUpdated(properties=p)
            | live.PtyExited(properties=p)
            | live.PtyDeleted(properties=p)
        ):
            yield str(type(event).__struct_config__.tag), to_builtins(p)
        case live.PromptAppended(properties=p):
            yield "tui.prompt.append", to_builtins(p)
        case live.ToastShown(properties=p):
            yield "tui.toast.show", to_builtins(p)
        case live.CommandSent(properties=p):
            if p.command in _COMMANDS:
                yield "tui.command.execute", {"command": p.command}
        case live.McpToolsChanged(properties=p):
            yield "mcp.status.changed", {"server": p.server}
            yield "mcp.resources.changed", {"server": p.server}
        case live.InstanceDisposed() | live.GlobalDisposed():
            for name in _CATALOGS:
                yield f"{name}.updated", {}
        case _:
            pass


def translate_call(ids: JSON, answer: AnswerSeen, part: ToolPart) -> Iterator[Change]:
    """Yield the changes of a call that clients don't know yet."""
    known = answer.parts.get(part.id)
    state = part.state
    name, arguments = rename_call(part.tool, state.input)
    ids = {**ids, "id": part.call_id}
    if known is None:
        known = answer.parts[part.id] = PartSeen("tool", 0, "pending")
        yield "session.tool.input.started", {**ids, "name": name}
    if isinstance(state, ToolStatePending):
        return
    if known.status == "pending":
        text = encode_json(arguments).decode()
        yield "session.tool.input.ended", {**ids, "text": text}
        yield "session.tool.called", {**ids, "input": arguments, "executed": False}
        known.status = "running"
    elif isinstance(state, ToolStateRunning):
        yield "session.tool.progress", {**ids, "metadata": state.metadata or {}}
    if isinstance(state, ToolStateRunning) or known.status == "ended":
        return
    known.status = "ended"
    more = {"content": translate_output(state), "metadata": state.metadata or {}, "executed": False}
    if isinstance(state, ToolStateCompleted):
        yield "session.tool.success", {**ids, **more}
    else:
        error = {"type": "unknown", "message": state.error}
        yield "session.tool.failed", {**ids, "error": error, **more}
