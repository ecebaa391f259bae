"""Reads sessions that were exported in the form of version 2, as version 1 imports them. Pure."""

from typing import Any

from codeloop.schema.ids import new_id
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO
from codeloop.schema.wire import JSON
from codeloop.server.version2.names import read_call
from codeloop.server.version2.session_forms import make_object

_NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def read_session(info: JSON) -> JSON:
    """Return a session of version 2 in the form of version 1."""
    rules = [
        {
            "permission": PERMISSIONS_OF_VERSION_TWO.get(rule["action"], rule["action"]),
            "pattern": rule["resource"],
            "action": rule["effect"],
        }
        for rule in info.get("permissions") or ()
    ]
    location: JSON = info.get("location") or {}
    times: JSON = info.get("time") or {}
    same = ("id", "projectID", "agent", "model", "cost", "tokens", "metadata")
    return make_object(
        **{name: info.get(name) for name in same},
        title=info.get("title") or "Imported session",
        slug="imported",
        version="2",
        directory=location.get("directory") or "/",
        path=info.get("subpath"),
        permission=rules or None,
        time=make_object(
            created=times.get("created"),
            updated=times.get("updated"),
            archived=times.get("archived"),
        ),
    )


def read_messages(messages: list[JSON]) -> list[JSON]:
    """Return the messages of version 2 in the form of version 1: each with its parts.
    Those that only tell of a change of agent, model or place are left out.
    """
    found: list[JSON] = []
    prompt_id, agent, model = "", "build", {"providerID": "unknown", "modelID": "unknown"}
    for each in messages:
        match each.get("type"):
            case "user" | "synthetic" | "system" | "skill":
                prompt_id = str(each["id"])
                found.append(_read_prompt(each, agent, model))
            case "assistant":
                agent, model = (
                    str(each.get("agent") or agent),
                    _read_model(each.get("model"), model),
                )
                found.append(_read_answer(each, prompt_id, agent, model))
            case "compaction":
                prompt_id = str(each["id"])
                found += _read_compaction(each, agent, model)
            case "shell":
                found += _read_shell(each, agent, model)
            case _:
                pass
    return found


def _read_model(ref: Any, before: JSON) -> JSON:
    match ref:
        case {"id": model_id, "providerID": provider_id}:
            return make_object(modelID=model_id, providerID=provider_id, variant=ref.get("variant"))
        case _:
            return before


def _make_part(kind: str, **fields: Any) -> JSON:
    return make_object(id=new_id("prt"), type=kind, **fields)


def _make_user(message_id: str, created: Any, agent: str, model: JSON, parts: list[JSON]) -> JSON:
    info = {
        "id": message_id,
        "role": "user",
        "time": {"created": created},
        "agent": agent,
        "model": model,
    }
    return {"info": info, "parts": parts}


def _read_prompt(message: JSON, agent: str, model: JSON) -> JSON:
    is_synthetic = True if message["type"] != "user" else None
    parts = [_make_part("text", text=str(message.get("text") or ""), synthetic=is_synthetic)]
    for each in message.get("files") or ():
        source: JSON = each.get("source") or {}
        url = source.get("uri") or f"data:{each.get('mime')};base64,{each.get('data', '')}"
        parts.append(_make_part("file", mime=each.get("mime"), url=url, filename=each.get("name")))
    parts += [_make_part("agent", name=each["name"]) for each in message.get("agents") or ()]
    return _make_user(message["id"], message["time"]["created"], agent, model, parts)


def _make_assistant(
    message: JSON, message_id: str, parent_id: str, agent: str, model: JSON, parts: list[JSON]
) -> JSON:
    times: JSON = message.get("time") or {}
    error: JSON | None = message.get("error")
    created = times.get("created")
    info = make_object(
        id=message_id,
        role="assistant",
        parentID=parent_id,
        modelID=model["modelID"],
        providerID=model["providerID"],
        variant=model.get("variant"),
        mode=agent,
        agent=agent,
        path={"cwd": "/", "root": "/"},
        cost=message.get("cost") or 0,
        tokens=message.get("tokens") or _NO_TOKENS,
        time=make_object(created=created, completed=times.get("completed", created)),
        finish=message.get("finish"),
        error=None if error is None else {"name": error.get("type"), "data": error},
    )
    return {"info": info, "parts": parts}


def _read_answer(message: JSON, prompt_id: str, agent: str, model: JSON) -> JSON:
    created = message["time"]["created"]
    parts: list[JSON] = []
    for each in message.get("content") or ():
        match each.get("type"):
            case "text":
                parts.append(_make_part("text", text=each["text"]))
            case "reasoning":
                parts.append(_make_part("reasoning", text=each["text"], time={"start": created}))
            case "tool":
                parts.append(_read_call(each, created))
            case _:
                pass
    return _make_assistant(message, message["id"], prompt_id, agent, model, parts)


def _read_call(call: JSON, created: int) -> JSON:
    state: JSON = call["state"]
    times: JSON = call.get("time") or {}
    start = times.get("ran") or times.get("created") or created
    time = {"start": start, "end": times.get("completed") or start}
    given: Any = state.get("input")
    # The arguments of a call that has not ended streaming are a text.
    arguments: JSON = {} if isinstance(given, str) else given or {}
    tool, arguments = read_call(str(call["name"]), arguments)
    texts = [each["text"] for each in state.get("content") or () if each.get("type") == "text"]
    metadata: JSON = state.get("metadata") or {}
    if state["status"] == "completed":
        ended = {"status": "completed", "output": "\n".join(texts), "title": ""}
    else:
        error: JSON = state.get("error") or {}
        ended = {"status": "error", "error": str(error.get("message") or "It was interrupted.")}
    ended |= {"input": arguments, "metadata": metadata, "time": time}
    return _make_part("tool", callID=call["id"], tool=tool, state=ended)


def _read_compaction(message: JSON, agent: str, model: JSON) -> list[JSON]:
    part = _make_part("compaction", auto=message.get("reason") == "auto")
    created = message["time"]["created"]
    request = _make_user(message["id"], created, agent, model, [part])
    if message.get("status") != "completed":
        return [request]
    text = _make_part("text", text=str(message.get("summary") or ""))
    answer = _make_assistant(message, new_id("msg"), message["id"], agent, model, [text])
    answer["info"] |= {"summary": True, "finish": "stop"}
    return [request, answer]


def _read_shell(message: JSON, agent: str, model: JSON) -> list[JSON]:
    from codeloop.schema.turns import COMMAND_NOTE

    created = message["time"]["created"]
    note = _make_part("text", text=COMMAND_NOTE, synthetic=True)
    prompt_id = new_id("msg")
    prompt = _make_user(prompt_id, created, agent, model, [note])
    output: JSON = message.get("output") or {}
    state = {
        "status": "completed",
        "input": {"command": str(message.get("command") or "")},
        "output": str(output.get("output") or ""),
        "title": "",
        "metadata": {"exit": message.get("exit")},
        "time": {"start": created, "end": message["time"].get("completed") or created},
    }
    call = _make_part("tool", callID=new_id("tool"), tool="bash", state=state)
    return [prompt, _make_assistant(message, message["id"], prompt_id, agent, model, [call])]
