"""Handler that imports a session from a file of `codeloop export` or of OpenCode,
completely or not at all.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec

from codeloop import __version__
from codeloop.agent.calls.call_rules import Ceiling, keep_ceilings, read_ceilings, set_ceilings
from codeloop.app.handlers.session.session_copies import (
    choose_copy_time,
    give_new_ids,
    make_events,
    replace_ids,
    sum_usage,
)
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import ImportedSession, ImportSession
from codeloop.schema.errors import MessageError, OperationError
from codeloop.schema.ids import make_slug, new_id
from codeloop.schema.message import MOVED_KEY, Message, Session, drop_own_keys
from codeloop.schema.part import Part
from codeloop.schema.permission import PROFILE_KEY
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry, make_sort_key

_PART_TYPES: frozenset[str] = frozenset(each.__struct_config__.tag for each in get_args(Part))
_ERROR_NAMES: frozenset[str] = frozenset(
    each.__struct_config__.tag for each in get_args(MessageError)
)
_MAX_TIME_MS = 1 << 47
"""The latest valid time (ms since the epoch), in the year 6429."""
# Ids of another form are replaced by new ones, as are ids that are in use.
_ID_PATTERN = r"(ses|msg|prt)_[0-9A-Za-z]{1,64}"


async def import_session(project: Project, args: ImportSession) -> ImportedSession:
    """Store a session from a file. If one of its ids can't be kept, all are replaced,
    so nothing is overwritten.

    Raises OperationError (BadRequest), and stores nothing, for an invalid file;
    the message has the path in the file.
    """
    notes: list[str] = []
    session = _read_session(project, args.info, notes)
    entries = _read_entries(args.messages, session, notes)
    id_problem = _find_id_problem(project, session, entries)
    if not id_problem:
        entries = [replace_ids(entry, session.id, str, str) for entry in entries]
    else:
        notes.append(f"Some of its ids are {id_problem}: it was stored as a copy, with new ids.")
        old_ids = [entry.info.id for entry in entries]
        session = replace(
            session, id=new_id("ses"), time=replace(session.time, created=choose_copy_time(entries))
        )
        entries = give_new_ids(entries, session.id)
        session = _map_revert(
            session, dict(zip(old_ids, (entry.info.id for entry in entries), strict=True))
        )
    cost, tokens = sum_usage(entries)
    session = replace(session, cost=session.cost or cost, tokens=session.tokens or tokens)
    project.store.append(*make_events(session, entries))
    return ImportedSession(session=session, messages=len(entries), notes=notes)


def _map_revert(session: Session, ids: dict[str, str]) -> Session:
    """Return the session with the message id of its undo replaced by the new one.
    `ids`: old to new message ids.
    """
    if session.revert is None:
        return session
    message_id = ids.get(session.revert.message_id)
    if message_id is None:
        return replace(session, revert=None)
    return replace(session, revert=replace(session.revert, message_id=message_id, part_id=None))


def _read_session(project: Project, info: Any, notes: list[str]) -> Session:
    """Return the session of the file as one of this project.
    `notes`: gets a line for each field that is dropped.

    The file may be anybody's, so fields that widen permissions or name other
    directories are dropped.
    """
    project_root = project.settings.project_root
    fields: JSON = _check_object(info, "$.info")
    defaults = {"slug": make_slug(), "version": __version__, "directory": ""}
    session: Session = _convert(
        {**defaults, **fields, "projectID": project_root.project_id}, Session, "$.info"
    )
    _check_times((session.time.created, session.time.updated), "$.info.time")
    ceilings = keep_ceilings(read_ceilings(session))
    metadata = set_ceilings(drop_own_keys(session.metadata or {}), ceilings)
    session = replace(session, metadata=metadata)
    if session.permission:
        if any(rule.action == "allow" for rule in session.permission):
            notes.append("Rules of the session that allow something were left out.")
        rules = tuple(rule for rule in session.permission if rule.action != "allow")
        # Below a ceiling they restrict; as rules of the session a question would lift
        # a denial of the user's.
        ceilings = (*ceilings, *([Ceiling(permission=rules)] if rules else ()))
        session = replace(session, permission=None, metadata=set_ceilings(metadata, ceilings))
    if PROFILE_KEY in (session.metadata or {}):
        notes.append("The profile of the session was left out.")
        session = replace(session, metadata=_drop_key(session.metadata, PROFILE_KEY))
    if session.parent_id is not None and project.store.find_session(session.parent_id) is None:
        notes.append("It was a subagent's session; the one it belongs to is not here.")
        session = replace(session, parent_id=None)
    # The field says that the session was moved elsewhere; now it continues here.
    if MOVED_KEY in (session.metadata or {}):
        session = replace(session, metadata=_drop_key(session.metadata, MOVED_KEY))
    directory = Path(session.directory)
    if (
        not directory.is_absolute()
        or not directory.is_relative_to(project_root.root)
        or ".." in directory.parts
    ):
        directory = project_root.directory
    path = directory.relative_to(project_root.root)
    return replace(
        session,
        directory=str(directory),
        path="" if path == path.parent else str(path),
        workspace_id=None,
        share=None,
        # No diff at all would say that the undo was cut off.
        revert=replace(session.revert, snapshot=None, diff="") if session.revert else None,
    )


def _drop_key(metadata: JSON | None, key: str) -> JSON | None:
    return {name: value for name, value in (metadata or {}).items() if name != key} or None


def _read_entries(messages: Any, session: Session, notes: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for number, value in enumerate(_check_list(messages, "$.messages")):
        location = f"$.messages[{number}]"
        message = _check_object(value, location)
        info = _read_message(
            _check_object(message.get("info"), f"{location}.info"), session, f"{location}.info"
        )
        entries.append(
            Entry(info, _read_parts(message.get("parts"), info, f"{location}.parts", notes))
        )
    ids = [entry.info.id for entry in entries]
    if len(set(ids)) < len(ids):
        second = next(number for number, each in enumerate(ids) if each in ids[:number])
        raise _make_error(f"$.messages[{second}].info.id", "this id is there twice")
    return sorted(entries, key=lambda entry: make_sort_key(entry.info))


def _read_message(info: JSON, session: Session, location: str) -> Message:
    if info.get("role") == "assistant":
        name = info.get("agent") or info.get("mode") or "build"
        info = {"agent": name, "mode": name, **info}
        if info.get("error") is not None:
            info["error"] = _read_error(_check_object(info["error"], f"{location}.error"))
    message: Message = _convert({**info, "sessionID": session.id}, Message, location)
    _check_times((message.time.created,), f"{location}.time")
    return message


def _read_error(error: JSON) -> JSON:
    """Return an error, renamed to UnknownError if its name is not known; its message is kept."""
    name = error.get("name")
    if isinstance(name, str) and name in _ERROR_NAMES:
        return error
    message = _get_object(error.get("data")).get("message") or name or "unknown"
    return {"name": "UnknownError", "data": {"message": str(message)}}


def _read_parts(parts: Any, info: Message, location: str, notes: list[str]) -> tuple[Part, ...]:
    """Return the parts of a message; those of types that codeloop does not know are left out,
    with a note.
    """
    known_parts: list[Part] = []
    for number, value in enumerate(_check_list(parts, location)):
        part_location = f"{location}[{number}]"
        part = {
            **_check_object(value, part_location),
            "sessionID": info.session_id,
            "messageID": info.id,
        }
        if isinstance(part.get("type"), str) and part["type"] not in _PART_TYPES:
            notes.append(
                f"A part of the unknown type {part['type'][:40]!r} was left out: {part_location}"
            )
            continue
        known_parts.append(_convert(_add_owner(part), Part, part_location))
    return tuple(known_parts)


def _add_owner(part: JSON) -> JSON:
    """Return a tool part with the ids of its message added to attachments,
    which some exports leave out.
    """
    state = _get_object(part.get("state"))
    if not isinstance(state.get("attachments"), list):
        return part
    owner = {"id": part.get("id"), "sessionID": part["sessionID"], "messageID": part["messageID"]}
    files = [{**owner, **_get_object(file)} for file in _check_list(state["attachments"], "")]
    return {**part, "state": {**state, "attachments": files}}


def _find_id_problem(project: Project, session: Session, entries: Sequence[Entry]) -> str:
    """Return why the ids can't be kept, as what some of them are; "": they can."""
    messages = [entry.info.id for entry in entries]
    parts = [part.id for entry in entries for part in entry.parts]
    if not all(re.fullmatch(_ID_PATTERN, each) for each in (session.id, *messages, *parts)):
        return "not valid"
    if not session.id.startswith("ses_") or not all(each.startswith("msg_") for each in messages):
        return "not valid"
    if len(set(parts)) < len(parts):
        return "there twice"
    # Parts are read in the order of their ids.
    if not all(
        first.id < second.id for entry in entries for first, second in pairwise(entry.parts)
    ):
        return "out of order"
    return "in use here" if project.store.queries.has_any_id([session.id], messages) else ""


def _check_type(value: Any, expected_type: Any, location: str) -> Any:
    """Return a value as an object or a list (`expected_type`), without checking its contents.
    Raises OperationError.
    """
    try:
        return msgspec.convert(value, expected_type)
    except msgspec.ValidationError as error:
        raise _make_error(location, str(error)) from error


def _convert(value: Any, struct_type: Any, location: str) -> Any:
    """Convert a value to a struct that can be stored.
    Raises OperationError with the path in the file.
    """
    # Encoded and decoded once: some values, such as lone surrogates,
    # are valid in a struct but can't be stored.
    try:
        return msgspec.json.decode(
            msgspec.json.encode(msgspec.convert(value, struct_type)), type=struct_type
        )
    except msgspec.ValidationError as error:
        what, _, inside = str(error).partition(" - at `$")
        raise _make_error(location + inside.removesuffix("`"), what) from error
    except (OverflowError, RecursionError, UnicodeEncodeError, msgspec.DecodeError) as error:
        raise _make_error(location, f"it can't be stored ({error})") from error


def _check_object(value: Any, location: str) -> JSON:
    return _check_type(value, JSON, location)


def _check_list(value: Any, location: str) -> list[Any]:
    return _check_type(value, list[Any], location)


def _get_object(value: Any) -> JSON:
    """Return `value` if it is an object, else `{}`."""
    return _check_object(value, "") if isinstance(value, dict) else {}


def _check_times(times: Sequence[int], location: str) -> None:
    if not all(0 <= each < _MAX_TIME_MS for each in times):
        raise _make_error(location, "expected times in milliseconds since the epoch")


def _make_error(location: str, what: str) -> OperationError:
    return OperationError(
        "BadRequest", f"This is not a session as `export` writes it: {what}, at {location}."
    )
