"""Sessions of OpenCode: its database, or the files of its versions before that."""

from collections.abc import Iterator
from pathlib import Path

from codeloop.app.switch.sessions.foreign_session import parse_json
from codeloop.kit.jsonc import is_object
from codeloop.schema.wire import JSON
from codeloop.store.opencode_database import read_opencode_sessions

DATABASE = "opencode.db"


def read_documents(data: Path) -> Iterator[JSON]:
    """Yield the sessions of a data folder as documents of `opencode export`, subagents' after
    those that started them. Raises OSError, StoreError.
    """
    if (data / DATABASE).is_file():
        yield from read_opencode_sessions(data / DATABASE)
        return
    storage = data / "storage"
    infos = [_read_file(file) for file in sorted((storage / "session").glob("*/ses_*.json"))]
    for info in sorted(infos, key=lambda each: bool(each.get("parentID"))):
        messages = [
            {
                "info": message,
                "parts": [
                    _read_file(part)
                    for part in sorted((storage / "part" / file.stem).glob("prt_*.json"))
                ],
            }
            for file in sorted((storage / "message" / str(info.get("id"))).glob("msg_*.json"))
            if (message := _read_file(file))
        ]
        yield {"info": info, "messages": messages}


def _read_file(file: Path) -> JSON:
    value = parse_json(file.read_bytes())
    return value if is_object(value) else {}
