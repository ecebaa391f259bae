"""Sessions of OpenCode: its database, or the files of its versions before that."""

from pathlib import Path

from codeloop.app.switch.sessions.foreign_session import parse_json
from codeloop.kit.jsonc import is_object
from codeloop.schema.wire import JSON
from codeloop.store.opencode_database import list_opencode_sessions, read_opencode_session

DATABASE = "opencode.db"


def list_names(data: Path) -> list[str]:
    """Return what names each session of a data folder to `read_document`, subagents' after those
    that started them. Raises OSError, StoreError.
    """
    if (data / DATABASE).is_file():
        return list_opencode_sessions(data / DATABASE)
    files = sorted((data / "storage" / "session").glob("*/ses_*.json"))
    return [str(file) for file in sorted(files, key=_has_parent)]


def read_document(data: Path, name: str) -> JSON:
    """Return a session as a document of `opencode export`. Raises OSError, StoreError."""
    if (data / DATABASE).is_file():
        return read_opencode_session(data / DATABASE, name)
    info, storage = _read_file(Path(name)), data / "storage"
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
    return {"info": info, "messages": messages}


def _has_parent(file: Path) -> bool:
    try:
        return bool(_read_file(file).get("parentID"))
    except OSError:
        # Named when it is read.
        return False


def _read_file(file: Path) -> JSON:
    value = parse_json(file.read_bytes())
    return value if is_object(value) else {}
