"""A server of the standard library in one file, copied to where a form of starting one wants it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

# import


def act(given: dict[str, Any]) -> str:
    """Read or write a file, tell a variable, or say that it is here."""
    if path := given.get("read"):
        return Path(path).expanduser().read_text()
    if link := given.get("link"):
        Path(link).symlink_to(given["to"])
    if path := given.get("write"):
        Path(path).expanduser().parent.mkdir(parents=True, exist_ok=True)
        Path(path).expanduser().write_text(given.get("text", "written"))
    return os.environ.get(given["env"], "") if "env" in given else given.get("say", "here")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        about = {"name": "tiny", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}
    try:
        return {"content": [{"type": "text", "text": act(params.get("arguments") or {})}]}
    except OSError as error:
        # `fails`: how it tells of a failure; {} stands for the error.
        words = (params.get("arguments") or {}).get("fails", "{}")
        text = words.replace("{}", f"{type(error).__name__}: {error}")
        return {"content": [{"type": "text", "text": text}], "isError": True}


for line in sys.stdin:
    message = json.loads(line)
    if (message.get("params") or {}).get("arguments", {}).get("rpc"):
        try:
            act(message["params"]["arguments"])
        except OSError as error:
            message |= {"method": "refused", "error": str(error)}
    if message.get("method") in {"initialize", "tools/list", "tools/call"}:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": message.get("error", "unknown")}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
