"""A language server that does as it is told: each word `bad` in a file is an error,
and it can misbehave by order.

Its first argument is the folder of its traces;
the others are orders, see `ORDERS` in the code below.
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
ROOT: list[Path] = []
LOCK = threading.Lock()
REFUSED: set[str] = set()
INDEXED = threading.Event()
ASKED: list[tuple[str, int, str]] = []
"""Texts that were taken up and wait for what was asked of an editor."""
HELD: list[dict[str, Any]] = []
"""What is only said when the order comes: the notification `scripted/speak`."""


def note(line: str) -> None:
    with (TRACES / "trace").open("a") as file:
        file.write(line + "\n")


def send(*messages: dict[str, Any]) -> None:
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    with LOCK:
        sys.stdout.buffer.write(
            b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)
        )
        sys.stdout.buffer.flush()


def errors(text: str) -> list[dict[str, Any]]:
    return [
        {
            "range": {
                "start": {"line": number, "character": found.start()},
                "end": {"line": number, "character": found.end()},
            },
            "severity": 2 if found[0].startswith("meh") else 1,
            "code": "B1",
            "source": "scripted",
            "message": f"{found[0]} is not good",
        }
        for number, line in enumerate(text.split("\n"))
        for found in re.finditer(r"(?:bad|meh)\w*", line)
    ]


def said(uri: str, version: int, text: str) -> dict[str, Any]:
    named = {} if "versionless" in ORDERS else {"version": version}
    found = errors(text) if "uses" not in ORDERS else misused(text)
    return {
        "method": "textDocument/publishDiagnostics",
        "params": {"uri": uri, "diagnostics": found, **named},
    }


def publish(uri: str, version: int, text: str) -> None:
    send(said(uri, version, text))


def misused(text: str) -> list[dict[str, Any]]:
    """Return an error for each word `a.NAME` when the text of `a.x` has no NAME."""
    own = next((known for uri, (_, known) in TEXTS.items() if uri.endswith("/a.x")), "")
    wrong = re.sub(
        r"a\.(\w+)", lambda found: found[1] if found[1] in own else f"bad_{found[1]}", text
    )
    return errors(wrong)


def index(uri: str) -> None:
    """Look at the project for a while, and then say what was wrong all the time: of
    the text at the end of that.
    """
    time.sleep(seconds_of("begins"))
    send(
        {
            "method": "$/progress",
            "params": {"token": "i", "value": {"kind": "begin", "title": "indexing"}},
        }
    )
    time.sleep(seconds_of("indexes"))
    version, text = TEXTS[uri]
    # Before it says so: the next question may be there at once.
    INDEXED.set()
    send({"method": "$/progress", "params": {"token": "i", "value": {"kind": "end"}}})
    time.sleep(seconds_of("rereads") or 0.05)
    publish(uri, version, text)


def seconds_of(order: str) -> float:
    return next(
        (float(each.partition("=")[2]) for each in ORDERS if each.startswith(f"{order}=")), 0.0
    )


def changed(uri: str, version: int, text: str, before: str = "") -> None:
    if "crash" in ORDERS and "boom" in text:
        os._exit(7)
    if "lost at first" in ORDERS and not (TRACES / "lost").exists():
        (TRACES / "lost").touch()
        os._exit(0)
    if "hang" in ORDERS and "boom" in text:
        time.sleep(600)
    if "stale" in ORDERS and before:
        # What it had been computing when the change came.
        send(said(uri, version - 1, before), said(uri, version, text))
        return
    if "flood" in ORDERS and "boom" in text:
        row = errors("bad")[0]
        many = {"uri": uri, "version": version, "diagnostics": [row] * 20_000}
        message = {"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": many}
        body = json.dumps(message).encode()
        for _ in range(10):
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    if "huge" in ORDERS and "boom" in text:
        sys.stdout.buffer.write(b"Content-Length: 99999999999\r\n\r\n")
        sys.stdout.buffer.flush()
    if "garbage" in ORDERS and "boom" in text:
        sys.stdout.buffer.write(b"lorem ipsum " * 10_000)
        sys.stdout.buffer.flush()
    if "pull" in ORDERS or "pulls later" in ORDERS or ("silent" in ORDERS and "bad" not in text):
        return
    if "held" in ORDERS and before:
        others = [
            said(each, *known) for each, known in TEXTS.items() if each != uri and "uses" in ORDERS
        ]
        HELD.extend([*others, said(uri, version, text)])
        return
    if "uses" in ORDERS:
        for each, (number, known) in TEXTS.items():
            publish(each, number, text if each == uri else known)
        return
    if seconds_of("indexes") and not INDEXED.is_set():
        if not before:
            threading.Thread(target=index, args=(uri,), daemon=True).start()
        publish(uri, version, "")
        return
    if "twice" in ORDERS:
        publish(uri, version, "")
        HELD.append(said(uri, version, text))
        return
    if "asks" in ORDERS:
        send({"method": "tsserver/request", "params": [[len(ASKED) + 1, "_vue:projectInfo", {}]]})
        ASKED.append((uri, version, text))
        return
    delay = seconds_of("delay")
    if delay and (before or "always" in ORDERS):
        threading.Timer(delay, publish, (uri, version, text)).start()
    else:
        publish(uri, version, text)


def apply(text: str, change: dict[str, Any]) -> str:
    if "range" not in change:
        return change["text"]
    lines = [*re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text), ""]

    def offset(place: dict[str, int]) -> int:
        units = lines[min(place["line"], len(lines) - 1)].encode("utf-16-le")[
            : 2 * place["character"]
        ]
        return sum(len(line) for line in lines[: place["line"]]) + len(units.decode("utf-16-le"))

    span = change["range"]
    return text[: offset(span["start"])] + change["text"] + text[offset(span["end"]) :]


KNOWN = (
    *(
        "definitionProvider",
        "referencesProvider",
        "implementationProvider",
        "hoverProvider",
        "renameProvider",
    ),
    *(
        "documentSymbolProvider",
        "workspaceSymbolProvider",
        "callHierarchyProvider",
        "typeHierarchyProvider",
    ),
)


def places(word: str, before: str = "") -> list[dict[str, Any]]:
    """Return where a word stands in the files of the project."""
    found: list[dict[str, Any]] = []
    for file in sorted(ROOT[0].glob("*.x")):
        for number, line in enumerate(file.read_text().splitlines()):
            for at in re.finditer(
                rf"(?<={before})\b{re.escape(word)}\b" if before else rf"\b{re.escape(word)}\b",
                line,
            ):
                ends = [{"line": number, "character": column} for column in at.span()]
                found.append({"uri": file.as_uri(), "range": {"start": ends[0], "end": ends[1]}})
    return found


def symbols(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines):
        if found := re.match(r"def (\w+)", line):
            end = (
                next(
                    (at for at in range(number + 1, len(lines)) if not lines[at].startswith(" ")),
                    len(lines),
                )
                - 1
            )
            name = {
                "start": {"line": number, "character": 4},
                "end": {"line": number, "character": found.end(1)},
            }
            whole = {
                "start": {"line": number, "character": 0},
                "end": {"line": end, "character": 99},
            }
            rows.append({"name": found[1], "kind": 12, "range": whole, "selectionRange": name})
    return rows


def known(method: str, params: dict[str, Any]) -> Any:
    if method == "workspace/symbol":
        defined = {
            re.findall(r"def (\w+)", file.read_text())[0]
            for file in ROOT[0].glob("*.x")
            if "def " in file.read_text()
        }
        return [
            {"name": name, "kind": 12, "location": place}
            for name in sorted(defined)
            if params["query"] in name
            for place in places(name, "def ")
        ]
    if method.startswith(("callHierarchy/", "typeHierarchy/")):
        item = params["item"]
        found = [
            place for place in places(item["name"]) if place["range"] != item["selectionRange"]
        ]
        if method.startswith("type"):
            return [item]
        key = "from" if "incoming" in method else "to"
        return [
            {key: {**item, "uri": place["uri"]}, "fromRanges": [place["range"]]} for place in found
        ]
    uri = params["textDocument"]["uri"]
    if uri not in TEXTS:
        raise LookupError(f"{method} of an unopened document")
    text = TEXTS[uri][1]
    if seconds_of("indexes") and not INDEXED.is_set():
        return []
    if method == "textDocument/documentSymbol":
        return symbols(text)
    at = params["position"]
    line = text.splitlines()[at["line"]]
    word = next(found[0] for found in re.finditer(r"\w+", line) if found.end() > at["character"])
    if method == "textDocument/hover":
        return {"contents": {"kind": "plaintext", "value": f"(function) {word}"}}
    if method == "textDocument/rename":
        changes: dict[str, list[Any]] = {}
        for place in places(word):
            changes.setdefault(place["uri"], []).append(
                {"range": place["range"], "newText": params["newName"]}
            )
        return {"changes": changes}
    if "prepare" in method:
        (place,) = places(word, "def ")
        return [
            {
                "name": word,
                "kind": 12,
                "uri": place["uri"],
                "range": place["range"],
                "selectionRange": place["range"],
            }
        ]
    return places(word) if method.endswith("references") else places(word, "def ")


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        time.sleep(seconds_of("starts"))
        ROOT.append(Path(params["rootPath"]))
        (TRACES / "initialize.json").write_text(json.dumps(params))
        can: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 2, "save": True}}
        if "knows" in ORDERS:
            can |= dict.fromkeys(KNOWN, True)
        if "pull" in ORDERS:
            can["diagnosticProvider"] = {
                "interFileDependencies": True,
                "workspaceDiagnostics": False,
            }
        return {"capabilities": can}
    if method == "textDocument/diagnostic":
        time.sleep(seconds_of("slow"))
        return {"kind": "full", "items": errors(TEXTS[params["textDocument"]["uri"]][1])}
    if method == "shutdown":
        return None
    if "outdated" in ORDERS and method not in REFUSED:
        REFUSED.add(method)
        raise InterruptedError(method)
    if "knows" in ORDERS and not method.startswith("codeloop/"):
        return known(method, params)
    raise LookupError(method)


def heard(method: str, params: Any) -> None:
    document = params.get("textDocument") or {} if isinstance(params, dict) else {}
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
    elif method == "initialized" and "watch" in ORDERS:
        options = {"watchers": [{"globPattern": "**/*.x"}]}
        rows = [
            {"id": "1", "method": "workspace/didChangeWatchedFiles", "registerOptions": options}
        ]
        send(
            {
                "id": "watch",
                "method": "client/registerCapability",
                "params": {"registrations": rows},
            }
        )
    elif method == "initialized" and "pulls later" in ORDERS:
        row = {
            "id": "2",
            "method": "textDocument/diagnostic",
            "registerOptions": {"interFileDependencies": True},
        }
        later = {
            "id": "pull",
            "method": "client/registerCapability",
            "params": {"registrations": [row]},
        }
        threading.Timer(0.2, send, (later,)).start()
    elif method == "workspace/didChangeWatchedFiles":
        note("; ".join(f"{Path(each['uri']).name} {each['type']}" for each in params["changes"]))
    elif method == "workspace/didChangeWorkspaceFolders":
        note("added " + " ".join(each["name"] for each in params["event"]["added"]))
    elif method == "tsserver/response":
        ((number, result),) = params
        assert result is None
        publish(*ASKED[number - 1])
    elif method == "scripted/speak":
        for _ in range(params.get("count", len(HELD))):
            send(HELD.pop(0))
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
            except InterruptedError:
                send(
                    {"id": message["id"], "error": {"code": -32801, "message": "content modified"}}
                )
            except LookupError:
                send(
                    {
                        "id": message["id"],
                        "error": {"code": -32601, "message": f"unknown: {method}"},
                    }
                )


main()
