"""`GET /api/event`: the events of every directory in the form of version 2, `{id, type, data}` with their location."""

import msgspec

from codeloop.schema.wire import JSON

_DATA = b"data: "


def translate_frames(frames: bytes) -> bytes:
    """Return complete frames of `/global/event` with their data in the form of version 2; ids stay as they are."""
    return b"\n".join(_translate_line(line) if line.startswith(_DATA) else line for line in frames.split(b"\n"))


def _translate_line(line: bytes) -> bytes:
    data: JSON = msgspec.json.decode(line.removeprefix(_DATA))
    payload: JSON = data["payload"]
    event: JSON = {"id": payload["id"], "type": payload["type"], "data": payload["properties"]}
    if "directory" in data:
        event["location"] = {"directory": data["directory"]}
    return _DATA + msgspec.json.encode(event)
