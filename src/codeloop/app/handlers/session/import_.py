"""Imports sessions from files (our export and the reference's): validated, and stored completely or not at all."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec

from codeloop import __version__
from codeloop.app.handlers import handles
from codeloop.app.handlers.session.fork import choose_copy_time, give_new_ids, make_events, replace_ids, sums
from codeloop.app.project import Project
from codeloop.kit.slugs import slug
from codeloop.schema import operation
from codeloop.schema.api.session_requests import ImportedSession, ImportSession
from codeloop.schema.errors import MessageError, OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.message import MOVED, Message, Session
from codeloop.schema.part import Part
from codeloop.schema.permission import PROFILE
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry, sort_key

KINDS: frozenset[str] = frozenset(kind.__struct_config__.tag for kind in get_args(Part))
NAMES: frozenset[str] = frozenset(kind.__struct_config__.tag for kind in get_args(MessageError))
LATEST = 1 << 47
"""A time (ms since the epoch) beyond this, in the year 6429, is not taken for one."""
_ID = re.compile(r"(ses|msg|prt)_[0-9A-Za-z]{1,64}")


@handles(operation.SESSION_IMPORT)
async def import_session(project: Project, args: ImportSession) -> ImportedSession:
    """Store a session from a file. Ids are kept when all of them are free, else all are new: nothing is overwritten.

    Raises OperationError (BadRequest) with the place of the first thing that is wrong; nothing is stored then.
    """
    notes: list[str] = []
    session = _session(project, args.info, notes)
    entries = _entries(args.messages, session, notes)
    if _is_free(project, session, entries):
        entries = [replace_ids(entry, session.id, str, str) for entry in entries]
    else:
        notes.append("Some of its ids are in use here: it was stored as a copy, with new ids.")
        old = [entry.info.id for entry in entries]
        session = replace(session, id=new_id("ses"), time=replace(session.time, created=choose_copy_time(entries)))
        entries = give_new_ids(entries, session.id)
        session = _pointing(session, dict(zip(old, (entry.info.id for entry in entries), strict=True)))
    cost, tokens = sums(entries)
    session = replace(session, cost=session.cost or cost, tokens=session.tokens or tokens)
    project.store.append(*make_events(session, entries))
    return ImportedSession(session=session, messages=len(entries), notes=notes)


def _pointing(session: Session, ids: dict[str, str]) -> Session:
    """Return the session with its point of undo among messages that have new ids."""
    if session.revert is None:
        return session
    now = ids.get(session.revert.message_id)
    return replace(session, revert=replace(session.revert, message_id=now, part_id=None) if now else None)


def _session(project: Project, info: Any, notes: list[str]) -> Session:
    """Read the session as one of this project. What could loosen permissions or point elsewhere is left out."""
    place = project.settings.project_root
    data: JSON = _object(info, "$.info")
    defaults = {"slug": slug(), "version": __version__, "directory": ""}
    session: Session = _read({**defaults, **data, "projectID": place.project_id}, Session, "$.info")
    _check_times((session.time.created, session.time.updated), "$.info.time")
    if session.permission and any(rule.action == "allow" for rule in session.permission):
        notes.append("Rules of the session that allow something were left out.")
        session = replace(session, permission=[rule for rule in session.permission if rule.action != "allow"])
    if PROFILE in (session.metadata or {}):
        notes.append("The profile of the session was left out.")
        metadata = {name: value for name, value in (session.metadata or {}).items() if name != PROFILE}
        session = replace(session, metadata=metadata or None)
    if session.parent_id is not None and project.store.find_session(session.parent_id) is None:
        notes.append("It was a subagent's session; the one it belongs to is not here.")
        session = replace(session, parent_id=None)
    if MOVED in (session.metadata or {}):  # it goes on here
        session = replace(session, metadata={n: v for n, v in (session.metadata or {}).items() if n != MOVED} or None)
    directory = Path(session.directory)
    if not directory.is_absolute() or not directory.is_relative_to(place.root) or ".." in directory.parts:
        directory = place.directory
    path = directory.relative_to(place.root)
    return replace(
        session,
        directory=str(directory),
        path="" if path == path.parent else str(path),
        workspace_id=None,
        share=None,
        revert=replace(session.revert, snapshot=None, diff=None) if session.revert else None,
    )


def _entries(messages: Any, session: Session, notes: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for number, given in enumerate(_list(messages, "$.messages")):
        location = f"$.messages[{number}]"
        message = _object(given, location)
        info = _message(_object(message.get("info"), f"{location}.info"), session, f"{location}.info")
        entries.append(Entry(info, _read_parts(message.get("parts"), info, f"{location}.parts", notes)))
    ids = [entry.info.id for entry in entries]
    if len(set(ids)) < len(ids):
        twice = next(number for number, each in enumerate(ids) if each in ids[:number])
        raise _format_error(f"$.messages[{twice}].info.id", "this id is there twice")
    return sorted(entries, key=lambda entry: sort_key(entry.info))


def _message(info: JSON, session: Session, location: str) -> Message:
    if info.get("role") == "assistant":
        name = info.get("agent") or info.get("mode") or "build"
        info = {"agent": name, "mode": name, **info}
        if info.get("error") is not None:
            info["error"] = _error(_object(info["error"], f"{location}.error"))
    message: Message = _read({**info, "sessionID": session.id}, Message, location)
    _check_times((message.time.created,), f"{location}.time")
    return message


def _error(error: JSON) -> JSON:
    """Return an error with a known name; its message is kept."""
    name = error.get("name")
    if isinstance(name, str) and name in NAMES:
        return error
    message = _object_or_empty(error.get("data")).get("message") or name or "unknown"
    return {"name": "UnknownError", "data": {"message": str(message)}}


def _read_parts(parts: Any, info: Message, location: str, notes: list[str]) -> tuple[Part, ...]:
    result: list[Part] = []
    for number, given in enumerate(_list(parts, location)):
        here = f"{location}[{number}]"
        part = {**_object(given, here), "sessionID": info.session_id, "messageID": info.id}
        if isinstance(part.get("type"), str) and part["type"] not in KINDS:
            notes.append(f"A part of the unknown type {part['type'][:40]!r} was left out: {here}")
            continue
        result.append(_read(_with_owner(part), Part, here))
    return tuple(result)


def _with_owner(part: JSON) -> JSON:
    """Return a tool part whose attachments name their message, as some exports leave that out."""
    state = _object_or_empty(part.get("state"))
    if not isinstance(state.get("attachments"), list):
        return part
    owner = {"id": part.get("id"), "sessionID": part["sessionID"], "messageID": part["messageID"]}
    files = [{**owner, **_object_or_empty(file)} for file in _list(state["attachments"], "")]
    return {**part, "state": {**state, "attachments": files}}


def _is_free(project: Project, session: Session, entries: Sequence[Entry]) -> bool:
    """Return whether all ids can be kept: well made, in their order, and nowhere in use."""
    messages = [entry.info.id for entry in entries]
    parts = [part.id for entry in entries for part in entry.parts]
    if not all(_ID.fullmatch(each) for each in (session.id, *messages, *parts)) or len(set(parts)) < len(parts):
        return False
    if not session.id.startswith("ses_") or not all(each.startswith("msg_") for each in messages):
        return False
    ordered = all(first.id < second.id for entry in entries for first, second in pairwise(entry.parts))
    return ordered and not project.store.queries.are_taken([session.id], messages, parts)


def _check_plain(value: Any, kind: Any, location: str) -> Any:
    """Return an object or a list as such; what it holds is not looked at yet."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _format_error(location, str(error)) from error


def _read(value: Any, kind: Any, location: str) -> Any:
    """Read a value as a struct that can be stored. Raises OperationError that names the place in the file."""
    try:
        return msgspec.json.decode(msgspec.json.encode(msgspec.convert(value, kind)), type=kind)
    except msgspec.ValidationError as error:
        what, _, inside = str(error).partition(" - at `$")
        raise _format_error(location + inside.removesuffix("`"), what) from error
    except (OverflowError, RecursionError, UnicodeEncodeError, msgspec.DecodeError) as error:
        raise _format_error(location, f"it can't be stored ({error})") from error


def _object(value: Any, location: str) -> JSON:
    return _check_plain(value, JSON, location)


def _list(value: Any, location: str) -> list[Any]:
    return _check_plain(value, list[Any], location)


def _object_or_empty(value: Any) -> JSON:
    """Return `value` if it is an object, else `{}`."""
    return _object(value, "") if isinstance(value, dict) else {}


def _check_times(times: Sequence[int], location: str) -> None:
    if not all(0 <= each < LATEST for each in times):
        raise _format_error(location, "expected times in milliseconds since the epoch")


def _format_error(location: str, what: str) -> OperationError:
    return OperationError("BadRequest", f"This is no session as `export` writes it: {what}, at {location}.")
