"""`codeloop session move`: a session with its work tree as one file, for another machine."""

import asyncio
import os
import tempfile
import zipfile
from pathlib import Path

import click
import msgspec

from codeloop.app.project import open_project
from codeloop.app.settings import Startup
from codeloop.cli.commands.sessions.export import export_json
from codeloop.cli.target.selection import with_session
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.kit.terminal_text import inert, one_line
from codeloop.schema.api.session_reports import SessionOverviewQuery
from codeloop.schema.api.session_requests import ArchiveTime, ImportSession, UpdateSession
from codeloop.schema.api.worktrees import CreateWorktree
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import IMPORT_BYTES
from codeloop.schema.message import Session
from codeloop.schema.operation import SESSION_IMPORT, SESSION_OVERVIEW, SESSION_UPDATE
from codeloop.schema.server_operation import WORKTREE_CREATE
from codeloop.schema.wire import JSON
from codeloop.workspace.git.bundle import PackedWork, pack_work, take_bundle, unpack_files
from codeloop.workspace.git.repository import Git

WORK, SESSION, BUNDLE = "work.json", "session.json", "work.bundle"
"""The entries of the file, which is a zip archive."""


def pack(name: str | None, output: Path) -> None:
    """Write a session and its files to a file, and archive it here. Raises CodeloopError."""
    file = output.absolute()
    found = with_session(name, lambda client, session: _pack(client, session, file))
    click.echo(f"Wrote {inert(str(output))}, and archived {found.id} here. There: codeloop session move --import FILE")


def take_over(source: Path) -> None:
    """Take the session of a file over, into a new work tree of the current repository. Raises CodeloopError."""
    asyncio.run(_take_over(source.absolute()))


async def _pack(client: Client, session: Session, output: Path) -> Session:
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    if any(row.id == session.id and row.state in {"running", "waits"} for row in rows):
        raise UsageProblem(f"A turn runs in {session.id}. Stop it first, so that nothing changes meanwhile.")
    place = find_project_root(Path(session.directory), find_paths(os.environ), os.environ)
    if place.vcs is None:
        raise UsageProblem(f"{session.directory} is in no git repository: use `codeloop export`, and copy the files.")
    with tempfile.TemporaryDirectory(prefix="codeloop-move-") as folder:
        bundle = Path(folder, BUNDLE)
        work = await pack_work(Git(place.root, os.environ), bundle)
        try:
            with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(WORK, msgspec.json.encode(work))
                archive.writestr(SESSION, await export_json(client, session))
                archive.write(bundle, BUNDLE, zipfile.ZIP_STORED)
        except OSError as error:
            raise CodeloopError(f"{output} can't be written: {error.strerror}. The session is as it was.") from error
    archived = UpdateSession(session_id=session.id, time=ArchiveTime(archived=now_ms()))
    return await client.call(SESSION_UPDATE, archived)


async def _take_over(source: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="codeloop-move-") as folder:
        bundle = Path(folder, BUNDLE)
        work, document = _read_archive(source, bundle)
        project = await open_project(Startup(directory=Path.cwd()))
        try:
            place = project.settings.place
            if place.vcs is None:
                raise UsageProblem(f"{place.root} is in no git repository. Go to a clone of the one it comes from.")
            git = Git(place.root, project.workspace.environment)
            await take_bundle(git, bundle, work)
            name = one_line(str(document.get("info", {}).get("slug") or "moved"), 40)
            tree = await LocalClient(project).call(WORKTREE_CREATE, CreateWorktree(name=name, base=work.head))
            await unpack_files(Git(Path(tree.directory), git.environment), work)
        finally:
            await project.close()
    there = await open_project(Startup(directory=Path(tree.directory)))
    try:
        given = ImportSession(info=document.get("info"), messages=document.get("messages"))
        done = await LocalClient(there).call(SESSION_IMPORT, given)
    finally:
        await there.close()
    for note in (*tree.notes, *done.notes):
        click.echo(f"codeloop: {inert(note)}", err=True)
    click.echo(f"Took over {done.session.id}, in {inert(tree.directory)}")
    click.echo(f"Go on with: codeloop --worktree {tree.name} --session {done.session.id}")


def _read_archive(source: Path, bundle: Path) -> tuple[PackedWork, JSON]:
    """Read what `session move` wrote, and put the bundle at a path. Raises CodeloopError when it is something else."""
    try:
        with zipfile.ZipFile(source) as archive:
            for name in (WORK, SESSION):
                if archive.getinfo(name).file_size > IMPORT_BYTES.value:
                    raise CodeloopError(f"{source}: {name} is larger than {IMPORT_BYTES.value} bytes.")
            work = msgspec.json.decode(archive.read(WORK), type=PackedWork)
            document = msgspec.json.decode(archive.read(SESSION), type=JSON)
            archive.extract(BUNDLE, bundle.parent)
    except (OSError, KeyError, zipfile.BadZipFile, msgspec.DecodeError, RecursionError) as error:
        raise CodeloopError(f"{source} is no file that `codeloop session move` wrote: {error}") from error
    return work, document
