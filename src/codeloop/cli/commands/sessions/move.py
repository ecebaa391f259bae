"""Carries out `codeloop session move`: packs a session and its work tree's files into one file,
and unpacks it.
"""

import asyncio
import os
import time
import zipfile
import zlib
from pathlib import Path

import click
import msgspec

from codeloop.app.project import open_project
from codeloop.app.settings import Startup
from codeloop.cli.commands.sessions.export import export_json
from codeloop.cli.target.run_with_client import run_with_session
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.kit import fault_injection
from codeloop.kit.new_file import open_new_file
from codeloop.kit.remove_tree import temporary_folder
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_reports import SESSION_OVERVIEW, SessionOverviewQuery
from codeloop.schema.api.session_requests import (
    SESSION_IMPORT,
    SESSION_UPDATE,
    ArchiveTime,
    ImportSession,
    SessionId,
    UpdateSession,
)
from codeloop.schema.api.worktrees import WORKTREE_CREATE, CreateWorktree
from codeloop.schema.bounds.session import MOVE_STEP_TIME, STOP_POLL
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import IMPORT_BYTES
from codeloop.schema.message import MOVED_KEY, Session, describe_relocation
from codeloop.schema.wire import JSON, encode_json
from codeloop.workspace.git.bundle import PackedWork, import_bundle, pack_work, unpack_files
from codeloop.workspace.git.repository import Git

# The entries of the file, which is a zip archive.
WORK_ENTRY, SESSION_ENTRY, BUNDLE_ENTRY = "work.json", "session.json", "work.bundle"


def pack_session(name: str | None, output: Path) -> None:
    """Write a session and its files to `output`, and archive it here. Raises CodeloopError."""
    session, was_running = run_with_session(
        name, lambda client, session: _pack_session(client, session, output)
    )
    note = "Stopped its turn. " if was_running else ""
    click.echo(
        f"{note}Wrote {escape_controls(str(output))}; {session.id} doesn't go on here any more."
    )
    click.echo("Go on in a clone of the repository: codeloop session move --import FILE")


def cancel_move(name: str | None) -> None:
    """Undo a move, so that the session goes on here. Raises CodeloopError."""
    session = run_with_session(name, _cancel_move)
    click.echo(f"{session.id} goes on here. Don't import its file anywhere: it would go on twice.")


def import_session(source: Path) -> None:
    """Unpack a session from a file, into a new work tree of the current repository.
    Raises CodeloopError.
    """
    asyncio.run(_import_session(source.absolute()))


async def _pack_session(client: Client, session: Session, output: Path) -> tuple[Session, bool]:
    """Mark a session as moved, and write its file;
    return the session, and whether a turn of it was stopped.
    """
    project_root = find_project_root(Path(session.directory), find_paths(os.environ), os.environ)
    if project_root.vcs is None:
        raise UsageProblem(
            f"{session.directory} is in no git repository: use `codeloop export`, and copy the files."
        )
    if session.parent_id is not None:
        raise UsageProblem(
            f"{session.id} is a subagent's session. Move the one that it belongs to, {session.parent_id}."
        )
    was_moved = bool(describe_relocation(session))
    destination = {"to": str(output.absolute()), "at": now_ms()}
    # The mark is stored before anything is written, and the file gets its name at the end. So if
    # this process is killed, the session goes on nowhere, instead of in two places, until it is
    # moved again or `--cancel` is given.
    session = await _store_destination(client, session, destination)
    try:
        await fault_injection.pass_point_async("move.stored")
        was_running = await _wait_until_idle(client, session)
        await fault_injection.pass_point_async("move.stopped")
        consequence = "The session goes on here."
        if was_moved:
            consequence = f"The session stays moved. To go on here: codeloop session move {session.id} --cancel"
        await _write_archive(
            client, session, Git(project_root.root, os.environ), output, consequence
        )
    except CodeloopError:
        # Undo the mark, unless an earlier move set it: its file may have been imported elsewhere.
        if not was_moved:
            await _store_destination(client, session, None)
        raise
    update = UpdateSession(session_id=session.id, time=ArchiveTime(archived=now_ms()))
    return await client.call(SESSION_UPDATE, update), was_running


async def _cancel_move(client: Client, session: Session) -> Session:
    if not describe_relocation(session):
        raise UsageProblem(f"{session.id} was not moved.")
    session = await _store_destination(client, session, None)
    return await client.call(
        SESSION_UPDATE, UpdateSession(session_id=session.id, time=ArchiveTime(archived=None))
    )


async def _store_destination(client: Client, session: Session, destination: JSON | None) -> Session:
    """Store the file that a session is moved to, and the time; None: the session is not moved."""
    metadata = {**(session.metadata or {}), MOVED_KEY: destination}
    return await client.call(
        SESSION_UPDATE, UpdateSession(session_id=session.id, metadata=metadata)
    )


async def _wait_until_idle(client: Client, session: Session) -> bool:
    """Wait until no turn of a session runs, and return whether one ran.
    Raises UsageProblem if it can't be stopped.

    A turn ends by itself after its step, because the session is marked as moved. One whose step
    waits for the user, or takes longer than MOVE_STEP_TIME, is aborted.
    """
    deadline = time.monotonic() + MOVE_STEP_TIME.seconds
    was_running = False
    # The turn may run in another process, so its state is read from the store again and again.
    while state := await _find_activity(client, session):
        if not was_running:
            click.echo("codeloop: A turn runs; it is stopped after its step.", err=True)
        was_running = True
        if (state == "waits" or time.monotonic() > deadline) and not await client.call(
            ABORT, SessionId(session_id=session.id)
        ):
            raise UsageProblem(
                f"The turn of {session.id} can't be stopped from here. Stop it, then move the session."
            )
        await asyncio.sleep(STOP_POLL.seconds)
    return was_running


async def _find_activity(client: Client, session: Session) -> str:
    """Return whether a turn of a session is `running` or `waits` for the user;
    "": it does neither.
    """
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    return next(
        (row.state for row in rows if row.id == session.id and row.state in {"running", "waits"}),
        "",
    )


async def _write_archive(
    client: Client, session: Session, git: Git, output: Path, consequence: str
) -> None:
    """Write the file of a session under its name when it is complete, or not at all.

    Raises CodeloopError; where the file can't be written, its message ends with the `consequence`.
    """
    with temporary_folder("codeloop-move-") as folder:
        bundle = folder / BUNDLE_ENTRY
        work = await pack_work(git, bundle)
        document = await export_json(client, session)
        try:
            # The session goes on nowhere but from this file, so it has to survive a power failure.
            with open_new_file(output, sync=True) as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr(WORK_ENTRY, encode_json(work))
                    archive.writestr(SESSION_ENTRY, document)
                    # git has compressed the bundle.
                    archive.write(bundle, BUNDLE_ENTRY, zipfile.ZIP_STORED)
                await fault_injection.pass_point_async("move.written")
        except OSError as error:
            raise CodeloopError(
                f"{output} can't be written: {error.strerror}. {consequence}"
            ) from error
    await fault_injection.pass_point_async("move.named")


async def _import_session(source: Path) -> None:
    """Create the work tree with its files, then import the session into it.
    Raises CodeloopError.
    """
    with temporary_folder("codeloop-move-") as folder:
        bundle = folder / BUNDLE_ENTRY
        work, document = _read_archive(source, bundle)
        project = await open_project(Startup(directory=Path.cwd()))
        try:
            project_root = project.settings.project_root
            if project_root.vcs is None:
                raise UsageProblem(
                    f"{project_root.root} is in no git repository. Go to a clone of the one it comes from."
                )
            _check_new(project.store.find_session(str(_get_info(document).get("id"))))
            git = Git(project_root.root, project.workspace.environment)
            await import_bundle(git, bundle, work)
            name = one_line(str(_get_info(document).get("slug") or "moved"), 40)
            tree = await LocalClient(project).call(
                WORKTREE_CREATE, CreateWorktree(name=name, base=work.head)
            )
            await unpack_files(Git(Path(tree.directory), git.environment), work)
        finally:
            await project.close()
    await fault_injection.pass_point_async("move.unpacked")
    # The session belongs to the new work tree, which is a directory of its own.
    worktree_project = await open_project(Startup(directory=Path(tree.directory)))
    try:
        request = ImportSession(info=document.get("info"), messages=document.get("messages"))
        imported = await LocalClient(worktree_project).call(SESSION_IMPORT, request)
    finally:
        await worktree_project.close()
    for note in (*tree.notes, *imported.notes):
        click.echo(f"codeloop: {escape_controls(note)}", err=True)
    click.echo(f"Took over {imported.session.id}, in {escape_controls(tree.directory)}")
    prompt = " continue" if _is_unfinished(document) else ""
    click.echo(
        f"Go on with: codeloop --worktree {tree.name} --session {imported.session.id}{prompt}"
    )


def _check_new(session: Session | None) -> None:
    """Raise UsageProblem if a session goes on here already.
    One that was moved away may come back, as a copy.
    """
    if session is not None and not describe_relocation(session):
        raise UsageProblem(
            f"{session.id} is here already, in {session.directory}. Go on there: --session {session.id}"
        )


def _get_info(document: JSON) -> JSON:
    """Return the `info` of a session or of a message; {} if there is none."""
    info = document.get("info")
    return msgspec.convert(info, JSON) if isinstance(info, dict) else {}


def _is_unfinished(document: JSON) -> bool:
    """Return whether the turn was stopped before the model had answered."""
    messages = msgspec.convert(document.get("messages"), list[JSON])
    return bool(messages) and _get_info(messages[-1]).get("finish") != "stop"


def _read_archive(source: Path, bundle: Path) -> tuple[PackedWork, JSON]:
    """Read a file of `session move`, and extract its bundle to `bundle`.
    Raises CodeloopError for other files.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            for name in (WORK_ENTRY, SESSION_ENTRY):
                # The uncompressed size: `read` below unpacks into memory.
                if archive.getinfo(name).file_size > IMPORT_BYTES.value:
                    raise CodeloopError(
                        f"{source}: {name} is larger than {IMPORT_BYTES.value} bytes."
                    )
            work = msgspec.json.decode(archive.read(WORK_ENTRY), type=PackedWork)
            document = msgspec.json.decode(archive.read(SESSION_ENTRY), type=JSON)
            bundle_entry = archive.getinfo(BUNDLE_ENTRY)
            if (
                bundle_entry.compress_type != zipfile.ZIP_STORED
                or bundle_entry.file_size > source.stat().st_size
            ):
                # A compressed entry could be a zip bomb that fills the disk.
                raise zipfile.BadZipFile(f"{BUNDLE_ENTRY} is compressed")
            archive.extract(bundle_entry, bundle.parent)
    # RuntimeError: the archive is encrypted, compressed by an unknown method,
    # or its JSON is nested too deeply.
    except (
        OSError,
        KeyError,
        EOFError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        msgspec.DecodeError,
    ) as error:
        raise CodeloopError(
            f"{source} is not a file that `codeloop session move` wrote: {error}"
        ) from error
    return work, document
