"""A language server that does as it is told: each word `bad` in a file is an error, and it can misbehave by order.

Its first argument is the folder of its traces; the others are orders, see `ORDERS` in the code below.
"""

import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

TRACES, *ORDERS = Path(sys.argv[1]), *sys.argv[2:]
TEXTS: dict[str, tuple[int, str]] = {}
LOCK = threading.Lock()


def note(line: str) -> None:
    with (TRACES / "trace").open("a") as file:
        file.write(line + "\n")


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with LOCK:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def errors(text: str) -> list[dict[str, Any]]:
    return [
        {
            "range": {
                "start": {"line": number, "character": found.start()},
                "end": {"line": number, "character": found.end()},
            },
            "severity": 1,
            "code": "B1",
            "source": "scripted",
            "message": f"{found[0]} is not good",
        }
        for number, line in enumerate(text.split("\n"))
        for found in re.finditer(r"bad\w*", line)
    ]


def publish(uri: str, version: int, text: str) -> None:
    named = {} if "versionless" in ORDERS else {"version": version}
    send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": errors(text), **named}})


def changed(uri: str, version: int, text: str, before: str = "") -> None:
    if "crash" in ORDERS and "boom" in text:
        os._exit(7)
    if "hang" in ORDERS and "boom" in text:
        time.sleep(600)
    if "stale" in ORDERS and before:
        publish(uri, version - 1, before)  # what it had been computing when the change came
    if "flood" in ORDERS and "boom" in text:
        row = errors("bad")[0]
        many = {"uri": uri, "version": version, "diagnostics": [row] * 20_000}
        for _ in range(50):
            send({"method": "textDocument/publishDiagnostics", "params": many})
    if "huge" in ORDERS and "boom" in text:
        sys.stdout.buffer.write(b"Content-Length: 99999999999\r\n\r\n")
        sys.stdout.buffer.flush()
    if "garbage" in ORDERS and "boom" in text:
        sys.stdout.buffer.write(b"lorem ipsum " * 10_000)
        sys.stdout.buffer.flush()
    if "pull" in ORDERS or ("silent" in ORDERS and "bad" not in text):
        return
    delay = next((float(each.partition("=")[2]) for each in ORDERS if each.startswith("delay=")), 0.0)
    if delay and before:
        threading.Timer(delay, publish, (uri, version, text)).start()
    else:
        publish(uri, version, text)


def apply(text: str, change: dict[str, Any]) -> str:
    if "range" not in change:
        return change["text"]
    lines = [*re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text), ""]

    def offset(place: dict[str, int]) -> int:
        units = lines[min(place["line"], len(lines) - 1)].encode("utf-16-le")[: 2 * place["character"]]
        return sum(len(line) for line in lines[: place["line"]]) + len(units.decode("utf-16-le"))

    span = change["range"]
    return text[: offset(span["start"])] + change["text"] + text[offset(span["end"]) :]


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        (TRACES / "initialize.json").write_text(json.dumps(params))
        can: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 2, "save": True}}
        if "pull" in ORDERS:
            can["diagnosticProvider"] = {"interFileDependencies": True, "workspaceDiagnostics": False}
        return {"capabilities": can}
    if method == "textDocument/diagnostic":
        return {"kind": "full", "items": errors(TEXTS[params["textDocument"]["uri"]][1])}
    if method == "shutdown":
        return None
    raise LookupError(method)


def heard(method: str, params: dict[str, Any]) -> None:
    document = params.get("textDocument") or {}
    uri = document.get("uri", "")
    if method == "textDocument/didOpen":
        TEXTS[uri] = (document["version"], document["text"])
        changed(uri, *TEXTS[uri])
    elif method == "textDocument/didChange":
        before = TEXTS[uri][1]
        text = before
        for change in params["contentChanges"]:
            text = apply(text, change)
        TEXTS[uri] = (document["version"], text)
        changed(uri, document["version"], text, before)
    elif method == "textDocument/didClose":
        TEXTS.pop(uri, None)
    elif method == "exit":
        sys.exit(0)


def main() -> None:
    note(f"started {os.getpid()}")
    if "mute" in ORDERS:
        time.sleep(600)
    if "greeting" in ORDERS:
        print("Welcome to this server!", flush=True)
    stream = sys.stdin.buffer
    while header := stream.readline():
        length = int(header.split(b":")[1])
        while stream.readline().strip():
            pass
        message = json.loads(stream.read(length))
        method, params = message.get("method", ""), message.get("params") or {}
        note(method)
        if "id" not in message:
            heard(method, params)
        elif method:
            try:
                send({"id": message["id"], "result": answer(method, params)})
            except LookupError:
                send({"id": message["id"], "error": {"code": -32601, "message": f"unknown: {method}"}})


main()
