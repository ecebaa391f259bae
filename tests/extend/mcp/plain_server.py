"""A server over stdio without any package: it starts at once,
and does on request what servers should not do.

    python plain_server.py [name of a folder for its traces]

What it does when it starts is decided by files in that folder: `tools.json` are further tools,
`refused.json` the methods that it has no handler for ("missing"),
or answers with nonsense ("broken").
"""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TRACES = Path(sys.argv[1]) if len(sys.argv) > 1 else None
VERSION = sys.argv[2] if len(sys.argv) > 2 else "2025-06-18"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP8z8DAwMDAxAAFDAwMAB0GAQP7P8NVAAAAAElFTkSuQmCC"
STARTED = f"{os.getpid()}\n"


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return a result of one text."""
    return {"content": [{"type": "text", "text": words}], **more}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the client, and wait for its answer."""
    send({"id": "s1", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "s1":
            return message.get("result") or {"error": message["error"]}
    raise SystemExit


def tools() -> list[dict[str, Any]]:
    """Return the tools: each takes what it likes."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "$schema": "x"}
    found: list[dict[str, Any]] = [
        {"name": name, "description": f"Does {name}.", "inputSchema": schema}
        for name in sorted(CALLS)
        if name != "pixel"
    ]
    found.append(
        {
            "name": "pixel",
            "description": "A picture.",
            "inputSchema": schema,
            "annotations": {"readOnlyHint": True},
        }
    )
    more = TRACES / "tools.json" if TRACES else None
    return found + (json.loads(more.read_text()) if more and more.exists() else [])


def slow(given: dict[str, Any], token: Any) -> dict[str, Any]:
    """Work for a while, with progress, until the traces hold a file `enough`."""
    for step in range(int(given.get("steps", 3))):
        if TRACES and (TRACES / "enough").exists():
            break
        if token is not None:
            params = {
                "progressToken": token,
                "progress": step + 1,
                "total": 3,
                "message": f"step {step + 1}",
            }
            send({"method": "notifications/progress", "params": params})
        time.sleep(float(given.get("seconds", 0.01)))
    return text("slow is done")


def child(given: dict[str, Any]) -> dict[str, Any]:
    """Start a process of its own that outlives a careless client."""
    process = subprocess.Popen(["sleep", "300"], start_new_session=bool(given.get("session")))
    return text(str(process.pid))


def flood(_given: dict[str, Any]) -> dict[str, Any]:
    """Write 20 MB to stderr."""
    for _ in range(200):
        sys.stderr.write("x" * 100_000 + "\n")
    sys.stderr.write("the last line\n")
    sys.stderr.flush()
    return text("flooded")


def garbage(_given: dict[str, Any]) -> dict[str, Any]:
    """Write what is not a message to stdout."""
    sys.stdout.write('Hello!\n{"jsonrpc": "2.0", "id"\n\n[]\n\x00\xff\n')
    return text("after garbage")


def new_tool(given: dict[str, Any]) -> dict[str, Any]:
    """Have one more tool from now on, and say so any number of times."""
    CALLS["extra"] = lambda given: text("extra")
    for _ in range(int(given.get("times", 1))):
        send({"method": "notifications/tools/list_changed"})
    return text("one more")


def raw(given: dict[str, Any]) -> None:
    """Answer by a line as it is given, in which `ID` stands for the request's id."""
    line = given["line"].replace("ID", json.dumps(request["id"]))
    data = line.encode().replace(b"BYTE", b"\xff")
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.flush()


request: dict[str, Any] = {}
"""The request that is being answered."""


def die(_given: dict[str, Any]) -> dict[str, Any]:
    """End in the middle of the call."""
    sys.stderr.write("I can't go on\n")
    sys.stderr.flush()
    os._exit(3)


def hang(_given: dict[str, Any]) -> dict[str, Any]:
    """Never answer."""
    time.sleep(300)
    return {}


def closes(_given: dict[str, Any]) -> dict[str, Any]:
    """Close stdout and live on."""
    os.close(1)
    time.sleep(300)
    return {}


BLOCKS = [
    {"type": "text", "text": "one"},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "audio", "data": base64.b64encode(b"RIFFsound").decode(), "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "plain://note", "text": "a note"}},
    {
        "type": "resource",
        "resource": {"uri": "plain://blob.zip", "blob": "UEsDBA==", "mimeType": "application/zip"},
    },
    {
        "type": "resource_link",
        "uri": "plain://other",
        "name": "other",
        "description": "Another one.",
    },
]
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "age": {"type": "integer"},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "green"]},
    },
    "required": ["name"],
}
VISIT = {
    "mode": "url",
    "message": "Sign in there.",
    "url": "https://x.example/a",
    "elicitationId": "e1",
}
SECRET = {"type": "object", "properties": {"api_key": {"type": "string"}}}
CALLS: dict[str, Any] = {
    "echo": lambda given: text(f"echo: {given.get('text')}"),
    "environment": lambda given: text(json.dumps(dict(os.environ))),
    "where": lambda given: text(str(Path.cwd())),
    "slow": slow,
    "child": child,
    "flood": flood,
    "garbage": garbage,
    "new_tool": new_tool,
    "die": die,
    "raw": raw,
    "hang": hang,
    "closes": closes,
    "big": lambda given: text("y" * int(given["size"])),
    "fail": lambda given: text("it is broken", isError=True),
    "blocks": lambda given: {"content": BLOCKS},
    "unheard": lambda given: {"content": [{"type": "hologram"}]},
    "structured": lambda given: {"content": [], "structuredContent": {"sum": 3}},
    "pixel": lambda given: {"content": BLOCKS[1:2]},
    "form": lambda given: text(
        json.dumps(ask("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}))
    ),
    "secret": lambda given: text(
        json.dumps(ask("elicitation/create", {"message": "Your key?", "requestedSchema": SECRET}))
    ),
    "visit": lambda given: text(json.dumps(ask("elicitation/create", VISIT))),
    "sample": lambda given: text(
        json.dumps(
            ask(
                "sampling/createMessage",
                {
                    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi."}}],
                    "maxTokens": 50,
                },
            )
        )
    ),
    "roots": lambda given: text(json.dumps(ask("roots/list", {}))),
    "touch": lambda given: (
        send({"method": "notifications/resources/updated", "params": {"uri": given["uri"]}})
        or text("touched")
    ),
    "log": lambda given: (
        send(
            {
                "method": "notifications/message",
                "params": {"level": "info", "data": "a line for the log"},
            }
        )
        or text("logged")
    ),
}
RESOURCES = [
    {"uri": "plain://note", "name": "note", "description": "A note.", "mimeType": "text/plain"}
]
PROMPTS = [
    {
        "name": "greet",
        "description": "Greets somebody.",
        "arguments": [{"name": "who", "required": True}, {"name": "how"}],
    }
]


def contents(uri: str) -> dict[str, Any]:
    """Return what is in a resource."""
    match uri.removeprefix("plain://"):
        case "none":
            raise KeyError("such resource")
        case "pixel":
            return {"uri": uri, "blob": PNG, "mimeType": "image/png"}
        case "long":
            return {"uri": uri, "text": "".join(f"line {number}\n" for number in range(10_000))}
        case _:
            return {"uri": uri, "text": f"the text of {uri}"}


def completed(params: dict[str, Any]) -> list[str]:
    """Return what an argument can be; one that is to hang gets no answer."""
    argument, given = params["argument"], (params.get("context") or {}).get("arguments", {})
    if argument["value"] == "hang":
        time.sleep(300)
    people = ["Ada", "Alan", "Grace Hopper", 'the "Hopper"', "Gra\u200bce", "G\nH"]
    values = people if argument["name"] == "who" else [f"like {given.get('who')}", "loudly"]
    return [value for value in values if value.startswith(argument["value"])]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None: it is sent already."""
    refused = TRACES / "refused.json" if TRACES else None
    how = json.loads(refused.read_text()).get(method) if refused and refused.exists() else None
    if how == "missing":
        raise KeyError(method)
    if how == "broken":
        return {"resources": 3, "tools": 3, "prompts": 3, "resourceTemplates": 3}
    match method:
        case "initialize":
            able = {
                "tools": {"listChanged": True},
                "resources": {"subscribe": True},
                "prompts": {},
                "logging": {},
                "completions": {},
            }
            about = {"name": "plain", "version": "1"}
            return {"protocolVersion": VERSION, "capabilities": able, "serverInfo": about}
        case "tools/list":
            found, start = tools(), int(params.get("cursor") or 0)  # pages of ten
            if TRACES and not start:
                with (TRACES / "listed").open("a") as file:
                    file.write("x")
            page = {"tools": found[start : start + 10]}
            return page | ({"nextCursor": str(start + 10)} if len(found) > start + 10 else {})
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "plain://{name}", "name": "any"}]}
        case "resources/subscribe" | "logging/setLevel":
            with (TRACES / "asked" if TRACES else Path(os.devnull)).open("a") as file:
                file.write(f"{method} {params.get('uri') or params.get('level')}\n")
            return {}
        case "resources/read":
            return {"contents": [contents(params["uri"])]}
        case "prompts/list":
            return {"prompts": PROMPTS}
        case "prompts/get":
            given = params.get("arguments") or {}
            words = f"Greet {given.get('who')} {given.get('how', 'kindly')}."
            return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
        case "completion/complete":
            return {"completion": {"values": completed(params)}}
        case "tools/call":
            token = (params.get("_meta") or {}).get("progressToken")
            given = params.get("arguments") or {}
            run = CALLS[params["name"]]
            return run(given, token) if params["name"] == "slow" else run(given)
        case "ping":
            return {}
        case _:
            raise KeyError(method)


def main() -> None:
    """Answer until stdin ends."""
    if TRACES:
        with (TRACES / "started").open("a") as file:
            file.write(STARTED)
    for line in sys.stdin:
        message = json.loads(line)
        if TRACES and message.get("method") == "notifications/cancelled":
            (TRACES / "cancelled").touch()
        if "id" not in message or "method" not in message:
            continue
        request.update(message)
        try:
            result = answer(message["method"], message.get("params") or {})
        except KeyError as error:
            send({"id": message["id"], "error": {"code": -32601, "message": f"no {error}"}})
        else:
            if result is not None:
                send({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
