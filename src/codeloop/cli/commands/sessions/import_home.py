"""`codeloop import --from PROGRAM`: takes over what a user has in another agent's home."""

import os
from pathlib import Path

import click
from msgspec import Struct

from codeloop.app.switch.foreign_home import (
    NAMES,
    UNREADABLE,
    ForeignKey,
    HomeReader,
    Item,
    Program,
    find_home,
)
from codeloop.app.switch.stored_sessions import ReadDocument, find_sessions
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
    """A home's contents. `sessions`: what reads each, by the directories they worked in."""

    items: list[Item]
    keys: list[ForeignKey]
    sessions: dict[str, list[ReadDocument]]
    problems: list[str]


def import_home(program: Program, home: Path | None, *, is_dry: bool, is_sure: bool) -> None:
    """Show what there is, ask, and take it over; say what was taken, what not, and why.

    Raises UsageProblem: there is no such home.
    """
    settings, providers = load_providers()
    # Absolute: it is written to the configuration. Links in it stay as they are.
    folder = Path(os.path.normpath((home or find_home(program, settings.paths)).absolute()))
    if not folder.is_dir():
        raise UsageProblem(
            f"There is no home of {NAMES[program]} at {folder}. Another place: --home FOLDER"
        )
    file = choose_entry_file(settings.paths, None)
    reader = HomeReader(program, folder, settings, file)
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
            except UNREADABLE as error:
                problems.append(f"{item.kind} {item.name}: {error}")
            else:
                counts[item.kind] = counts.get(item.kind, 0) + 1
    _store_keys(providers, found.keys, counts, problems)
    _import_sessions(found.sessions, counts, problems)
    taken = ", ".join(_format_count(count, kind) for kind, count in counts.items())
    click.echo(f"Taken: {taken or 'nothing'}.")
    for line in problems[:_SHOWN_PROBLEMS]:
        click.echo(f"Not taken: {escape_controls(line)}")
    if len(problems) > _SHOWN_PROBLEMS:
        click.echo(f"Not taken: {len(problems) - _SHOWN_PROBLEMS} more")


def _read_home(reader: HomeReader, directory: Path) -> _Found:
    keys, sign_ins = reader.list_keys()
    items = [*reader.list_items(), *sign_ins]
    sessions = find_sessions(reader.program, reader.home, directory, reader.problems)
    return _Found(items, keys, sessions, reader.problems)


def _show_plan(reader: HomeReader, found: _Found) -> None:
    click.echo(f"{NAMES[reader.program]}, {reader.home}:")
    rows = [(item.kind, item.name, item.note or "is taken") for item in found.items]
    rows += [("key", f"{key.provider} {mask_key(key.key)}", "is taken") for key in found.keys]
    for place, sessions in sorted(found.sessions.items()):
        count = _format_count(len(sessions), "session")
        rows.append((count, place or "of an unknown folder", _explain_place(place) or "is taken"))
    for kind, name, note in rows:
        click.echo(f"  {escape_controls(kind)}  {escape_controls(name)}  {escape_controls(note)}")
    for line in found.problems:
        click.echo(f"  {escape_controls(line)}")
    if not rows:
        click.echo("  nothing")


def _format_count(count: int, kind: str) -> str:
    """Return a number of things of a kind; kinds that are plural already are one thing each."""
    return kind if kind.endswith("s") else f"{count} {kind}{'s' * (count > 1)}"


def _explain_place(place: str) -> str:
    """Return why sessions of a directory can't be taken; "" if they can."""
    if not place:
        return "not taken: go to its folder and run this there"
    try:
        is_there = Path(place).is_dir()
    except OSError as error:
        return f"not taken: the folder can't be read: {error.strerror}"
    return "" if is_there else "not taken: the folder is gone"


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
    sessions: dict[str, list[ReadDocument]], counts: dict[str, int], problems: list[str]
) -> None:
    for place, of_place in sessions.items():
        if reason := _explain_place(place):
            count = _format_count(len(of_place), "session")
            problems.append(
                f"{count} of {place or 'an unknown folder'}: {reason.partition(': ')[2]}"
            )
            continue

        async def take(client: LocalClient, of_place: list[ReadDocument] = of_place) -> None:
            for read in of_place:
                try:
                    await _import_session(client, read(), counts, problems)
                except UNREADABLE as error:
                    problems.append(f"a session: {error}")

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
