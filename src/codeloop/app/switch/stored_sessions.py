"""The sessions in the homes of other agents, each read when it is needed: a home may hold more
than fits into memory.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from codeloop.app.switch.foreign_home import UNREADABLE, Program
from codeloop.app.switch.sessions.foreign_session import ForeignSession, make_document
from codeloop.schema.wire import JSON

ReadDocument = Callable[[], JSON]
"""Returns a session as a document of `codeloop export`. Raises one of UNREADABLE."""


def find_sessions(
    program: Program, home: Path, directory: Path, problems: list[str]
) -> dict[str, list[ReadDocument]]:
    """Return what reads each session that has messages, by the directory that it worked in ("":
    unknown), subagents' after those that started them.

    `home`: absolute. `directory`: one that sessions may have worked in. A line is added
    to `problems` for each session that can't be read.
    """
    found: dict[str, list[ReadDocument]] = {}
    try:
        readers = _list_readers(program, home, directory)
    except UNREADABLE as error:
        problems.append(f"Its sessions can't be read: {error}")
        return found
    for name, read in readers:
        try:
            document = read()
            place = str(document["info"].get("directory") or "")
            has_messages = bool(document["messages"])
        except UNREADABLE as error:
            problems.append(f"The session {name} is left out, since it can't be read: {error}")
            continue
        if has_messages:
            found.setdefault(place, []).append(read)
    return found


def _list_readers(program: Program, home: Path, directory: Path) -> list[tuple[str, ReadDocument]]:
    """Return the name of each session, and what reads it."""
    # Imported late, each for its program alone.
    match program:
        case "opencode":
            from codeloop.app.switch.sessions import opencode_sessions

            names = opencode_sessions.list_names(home)
            return [(name, partial(opencode_sessions.read_document, home, name)) for name in names]
        case "claude":
            from codeloop.app.switch.sessions import claude_sessions

            files, read = claude_sessions.list_files(home), claude_sessions.read_session
        case "codex":
            from codeloop.app.switch.sessions import codex_sessions

            files, read = codex_sessions.list_files(home), codex_sessions.read_session
        case "pi":
            from codeloop.app.switch.sessions import pi_sessions

            files, read = pi_sessions.list_files(home), pi_sessions.read_session
        case "gemini":
            from codeloop.app.switch.sessions import gemini_sessions

            files = gemini_sessions.list_files(home)
            read = partial(gemini_sessions.read_session, directories=(directory,))
    return [(str(file), partial(_read_document, read, file)) for file in files]


def _read_document(read: Callable[[Path], ForeignSession], file: Path) -> JSON:
    session = read(file)
    return make_document(session, int(time.time() * 1_000))
