"""Moves a session with those of its subagents to the store of another project or folder:
its paths, snapshots and permissions go along.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from codeloop.app.handlers.session.session_copies import make_events
from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.schema.event import (
    StoredEvent,
    Todos,
    TodoUpdated,
    make_message_updated,
    make_part_updated,
    make_session_deleted,
    make_session_updated,
)
from codeloop.schema.message import AssistantMessage, Message, MessagePath, Session
from codeloop.schema.part import Part, PatchPart, SnapshotPart, StepFinishPart, StepStartPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry
from codeloop.store.store import Store
from codeloop.workspace.snapshot.moved_store import make_tree_mapping
from codeloop.workspace.snapshot.object_store import ObjectStore
from codeloop.workspace.snapshot.snapshots import get_store_folder


class Destination(msgspec.Struct, frozen=True):
    """The folder that sessions are taken over to, and the store of its project."""

    paths: Paths
    project_root: ProjectRoot
    store: Store

    @property
    def root(self) -> str:
        """The top of its work tree."""
        return str(self.project_root.root)


class MovedGround(msgspec.Struct, frozen=True):
    """Where sessions are taken from (`source`), and where they go to.
    `old`: the folder before it was moved there.
    """

    to: Destination
    source: Store
    old: str

    @property
    def target(self) -> Store:
        """The store that they go to; it may be the source."""
        return self.to.store

    def map_path(self, path: str) -> str:
        """Return a path in the old folder as one in the new one; others stay."""
        return self.to.root + path[len(self.old) :] if is_within(path, self.old) else path


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def move_family(ground: MovedGround, family: list[Session]) -> None:
    """Store a session and those of its subagents in the target, then delete them in the source.

    Killed in between, it is called again: what is in the target already stays as it is.
    """
    project_root = ground.to.project_root
    objects = ObjectStore(get_snapshots(ground.target, project_root.root))
    events: list[StoredEvent] = []
    for session in family:
        if (
            ground.source is not ground.target
            and ground.target.find_session(session.id) is not None
        ):
            continue
        map_tree = make_tree_mapping(objects, ground.map_path(session.root), str(project_root.root))
        entries = [
            _map_entry(ground, each, map_tree)
            for each in ground.source.read_conversation(session.id).entries
        ]
        moved = _map_session(ground, session, map_tree)
        if ground.source is ground.target:
            events.append(make_session_updated(moved))
            for entry in entries:
                events += (make_message_updated(entry.info), *map(make_part_updated, entry.parts))
        else:
            events += make_events(moved, entries)
        if todos := ground.source.list_todos(session.id):
            events.append(TodoUpdated(properties=Todos(session_id=session.id, todos=todos)))
    ground.target.append(*events)
    if ground.source is ground.target:
        return
    if ground.old == ground.to.root:
        for session in family:
            if (facts := ground.source.facts.find(session.id)) is not None:
                ground.target.facts.add(session.id, facts)
        ground.target.permissions.add_grants(
            ground.source.permissions.list_session_grants(family[0].id)
        )
    ground.source.append(*(make_session_deleted(each) for each in reversed(family)))


def _map_session(ground: MovedGround, session: Session, map_tree: Callable[[str], str]) -> Session:
    project_root = ground.to.project_root
    directory = ground.map_path(session.directory)
    path = os.path.relpath(directory, project_root.root)
    revert = session.revert
    if revert is not None and revert.snapshot is not None:
        revert = replace(revert, snapshot=map_tree(revert.snapshot))
    return replace(
        session,
        project_id=project_root.project_id,
        directory=directory,
        path="" if path == "." else path,
        revert=revert,
    )


def _map_entry(ground: MovedGround, entry: Entry, map_tree: Callable[[str], str]) -> Entry:
    info: Message = entry.info
    if isinstance(info, AssistantMessage):
        cwd = ground.map_path(info.path.cwd)
        info = replace(info, path=MessagePath(cwd=cwd, root=str(ground.to.project_root.root)))
    return Entry(info, tuple(_map_part(ground, part, map_tree) for part in entry.parts))


def _map_part(ground: MovedGround, part: Part, map_tree: Callable[[str], str]) -> Part:
    match part:
        case PatchPart():
            return replace(
                part, hash=map_tree(part.hash), files=[ground.map_path(file) for file in part.files]
            )
        case (
            StepStartPart(snapshot=str(tree))
            | StepFinishPart(snapshot=str(tree))
            | SnapshotPart(snapshot=tree)
        ):
            return replace(part, snapshot=map_tree(tree))
        case _:
            return part


def get_snapshots(store: Store, root: Path | str) -> Path:
    """Return the folder with the snapshots of a folder `root`, next to a store."""
    return get_store_folder(store.path.with_name("snapshot"), Path(root))
