"""`codeloop import --from PROGRAM`: takes over what a user has in another agent's home."""

import time
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import Struct

from codeloop.app.switch.foreign_home import (
    NAMES,
    ForeignKey,
    HomeReader,
    Item,
    Program,
    find_home,
)
from codeloop.cli.commands.access.auth import find_provider_url
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.project import load_providers, run_in_directory
from codeloop.client.local import LocalClient
from codeloop.config.file_entries import choose_entry_file
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.model.credentials.store import mask_key
from codeloop.model.providers import Providers
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_IMPORT,
    ImportSession,
    SessionId,
)
from codeloop.schema.errors import CodeloopError, OperationError, UsageProblem
from codeloop.schema.wire import JSON

_SHOWN_PROBLEMS = 20


class _Found(Struct):
    """A home's contents. `documents`: its sessions, by the directories they worked in."""

    items: list[Item]
    keys: list[ForeignKey]
    documents: dict[str, list[JSON]]
    problems: list[str]


def import_home(program: Program, home: Path | None, *, is_dry: bool, is_sure: bool) -> None:
    """Show what there is, ask, and take it over; say what was taken, what not, and why.

    Raises UsageProblem: there is no such home.
    """
    settings, providers = load_providers()
    folder = home or find_home(program, settings.paths)
    if not folder.is_dir():
        raise UsageProblem(
            f"There is no home of {NAMES[program]} at {folder}. Another place: --home FOLDER"
        )
    file = choose_entry_file(settings.paths, None)
    root = settings.project_root.root
    reader = HomeReader(program, folder, settings.paths, settings.loaded, file, root)
    found = _read_home(reader, settings.project_root.directory)
    _show_plan(reader, found)
    if is_dry:
        return
    if not is_sure and not (can_ask_user() and click.confirm("Take this over?", default=True)):
        click.echo("Nothing was taken. --yes takes it without asking.")
        return
    problems: list[str] = []
    counts: dict[str, int] = {}
    for item in found.items:
        if item.apply is not None:
            try:
                item.apply()
            except (CodeloopError, OSError, ValueError) as error:
                problems.append(f"{item.kind} {item.name}: {error}")
            else:
                counts[item.kind] = counts.get(item.kind, 0) + 1
    _store_keys(providers, found.keys, counts, problems)
    _import_sessions(found.documents, counts, problems)
    taken = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
    click.echo(f"Taken: {taken or 'nothing'}.")
    for line in problems[:_SHOWN_PROBLEMS]:
        click.echo(f"Not taken: {escape_controls(line)}")
    if len(problems) > _SHOWN_PROBLEMS:
        click.echo(f"Not taken: {len(problems) - _SHOWN_PROBLEMS} more")


def _read_home(reader: HomeReader, directory: Path) -> _Found:
    keys, sign_ins = reader.list_keys()
    items = [*reader.list_items(), *sign_ins]
    documents: dict[str, list[JSON]] = {}
    try:
        for document in _read_documents(reader, directory):
            place = str(document["info"].get("directory") or "")
            documents.setdefault(place, []).append(document)
    except (OSError, CodeloopError) as error:
        reader.problems.append(f"Its sessions can't be read: {error}")
    return _Found(items, keys, documents, reader.problems)


def _read_documents(reader: HomeReader, directory: Path) -> Iterator[JSON]:
    """Yield the sessions of a home that have messages, as documents of `codeloop export`."""
    # Imported late, each for its program alone.
    from codeloop.app.switch.sessions.foreign_session import make_document

    home = reader.home
    match reader.program:
        case "opencode":
            from codeloop.app.switch.sessions.opencode_sessions import read_documents

            yield from (each for each in read_documents(home) if each["messages"])
            return
        case "claude":
            from codeloop.app.switch.sessions.claude_sessions import read_sessions

            sessions = read_sessions(home)
        case "codex":
            from codeloop.app.switch.sessions.codex_sessions import read_sessions

            sessions = read_sessions(home)
        case "pi":
            from codeloop.app.switch.sessions.pi_sessions import read_sessions

            sessions = read_sessions(home)
        case "gemini":
            from codeloop.app.switch.sessions import gemini_sessions

            sessions = gemini_sessions.read_sessions(home, (directory,))
    now = int(time.time() * 1_000)
    for session in sessions:
        if session.messages:
            yield make_document(session, now)


def _show_plan(reader: HomeReader, found: _Found) -> None:
    click.echo(f"{NAMES[reader.program]}, {reader.home}:")
    rows = [(item.kind, item.name, item.note or "is taken") for item in found.items]
    rows += [("key", f"{key.provider} {mask_key(key.key)}", "is taken") for key in found.keys]
    for place, documents in sorted(found.documents.items()):
        count = f"{len(documents)} session{'s' * (len(documents) > 1)}"
        rows.append((count, place or "of an unknown folder", _explain_place(place) or "is taken"))
    for kind, name, note in rows:
        click.echo(f"  {escape_controls(kind)}  {escape_controls(name)}  {escape_controls(note)}")
    for line in found.problems:
        click.echo(f"  {escape_controls(line)}")
    if not rows:
        click.echo("  nothing")


def _explain_place(place: str) -> str:
    """Return why sessions of a directory can't be taken; "" if they can."""
    if not place:
        return "not taken: go to its folder and run this there"
    return "" if Path(place).is_dir() else "not taken: the folder is gone"


def _store_keys(
    providers: Providers, keys: list[ForeignKey], counts: dict[str, int], problems: list[str]
) -> None:
    for key in keys:
        try:
            if key.provider in providers.credentials.read_entries():
                raise CodeloopError("there is one already")
            url = find_provider_url(providers, key.provider)
            providers.credentials.store_key(key.provider, key.key, url)
        except CodeloopError as error:
            problems.append(f"key of {key.provider}: {error}")
        else:
            counts["key"] = counts.get("key", 0) + 1


def _import_sessions(
    documents: dict[str, list[JSON]], counts: dict[str, int], problems: list[str]
) -> None:
    for place, of_place in documents.items():
        if reason := _explain_place(place):
            problems.append(f"{len(of_place)} sessions of {place}: {reason.partition(': ')[2]}")
            continue

        async def take(client: LocalClient, of_place: list[JSON] = of_place) -> None:
            for document in of_place:
                await _import_session(client, document, counts, problems)

        try:
            run_in_directory(Path(place), take)
        except CodeloopError as error:
            problems.append(f"sessions of {place}: {error}")


async def _import_session(
    client: LocalClient, document: JSON, counts: dict[str, int], problems: list[str]
) -> None:
    info = document["info"]
    title = str(info.get("title") or info.get("id"))
    try:
        await client.call(SESSION_GET, SessionId(session_id=str(info.get("id"))))
    except OperationError:
        pass
    else:
        problems.append(f"session {title}: it is here already")
        return
    try:
        await client.call(SESSION_IMPORT, ImportSession(info=info, messages=document["messages"]))
    except CodeloopError as error:
        problems.append(f"session {title}: {error}")
    else:
        counts["session"] = counts.get("session", 0) + 1
