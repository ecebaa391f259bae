"""Takes over the sessions of a folder, with their undo,
when its path or the id of its project has changed.

A folder gets another project id by its first commit, by `git init`, or when its repository is gone.
Sessions are stored by project and name their folder, so they have to move along.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from codeloop.app.moved_sessions import (
    Destination,
    MovedGround,
    get_snapshots,
    is_within,
    move_family,
)
from codeloop.config.places import Place, Places, is_in_doubt
from codeloop.config.project_root import GLOBAL_PROJECT_ID
from codeloop.kit.git import find_git_folder
from codeloop.kit.remove_tree import remove_tree
from codeloop.schema.message import Session
from codeloop.schema.part import PatchPart
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import NO_LIMIT, SessionFilter
from codeloop.store.store import Store
from codeloop.workspace.snapshot.moved_store import link_objects


def take_over_at_open(
    destination: Destination, known: Place | None, here: Place
) -> tuple[bool, list[str]]:
    """Take over what belongs to the folder of a project that is opened there for
    the first time with its id.

    Returns whether nothing is left that is in use now, and notices for the user. Raises StoreError.
    """
    places, notices = Places(destination.paths), list[str]()
    old_id = GLOBAL_PROJECT_ID if known is None else known.project_id
    # By the project of what may be here, and the folder that is in use while somebody works on it.
    sources = [(old_id, here.root)] if old_id != here.project_id else []
    others = list(places.list_others(here.root))
    sources += [
        (place.project_id, place.root)
        for place in others
        if is_within(place.root, here.root) or is_within(here.root, place.root)
    ]
    is_complete = True
    for source_id, root in sources:
        with places.claim(root) as is_free:
            taking = _TakeOver(destination, here.root)
            is_complete = (
                taking.take(source_id) if is_free else not taking.find(source_id)
            ) and is_complete
    if not is_complete:
        notices.append(
            "Sessions of this folder are open in another codeloop: they are found here once it has ended."
        )
    for place in others:
        if is_in_doubt(place, here) and place.is_gone:
            notices += _take_over_moved(destination, place, here)
    return is_complete, notices


def _take_over_moved(destination: Destination, place: Place, here: Place) -> list[str]:
    """Take over the sessions of a folder that is gone if it is certainly this one;
    return notices for the user.
    """
    count = count_sessions(destination, place)
    is_linked = place.links_to == here.root
    is_same_folder = is_linked or (place.inode, place.device) == (here.inode, here.device)
    if not count or not is_same_folder:
        # One that only shares the project may be a clone or a work tree that was removed.
        return []
    is_same_project = (
        place.project_id == here.project_id != GLOBAL_PROJECT_ID
        and (Path(here.root) / ".git").is_dir()
    )
    taking = _TakeOver(destination, place.root)
    # A file system gives the number of a removed folder to a new one.
    if not (is_same_project or is_linked) and not taking.finds_changed_file(place.project_id):
        return [describe_doubt(place.root, count)]
    with Places(destination.paths).claim(place.root) as is_free:
        if is_free:
            taking.take(place.project_id)
    found = _count(len(taking.taken))
    return (
        [f"The {found} of {place.root} go on here: it was moved to {here.root}."]
        if taking.taken
        else []
    )


def describe_doubt(root: str, count: int) -> str:
    """Return the words that name the sessions of a folder that is gone,
    and the command that takes them over.
    """
    import shlex

    belong = "belongs" if count == 1 else "belong"
    return (
        f"{_count(count)} {belong} to {root}, which is gone. "
        f"If that folder is this one now: codeloop session adopt {shlex.quote(root)}"
    )


def _count(number: int) -> str:
    return f"{number} session{'' if number == 1 else 's'}"


def count_sessions(destination: Destination, place: Place) -> int:
    """Return the number of sessions of a folder that are not subagents';
    0 if their database can't be read.
    """
    with suppress(StoreError):
        for store in _open_store(destination, place.project_id):
            sessions = store.queries.find_sessions(SessionFilter(only_roots=True, limit=NO_LIMIT))
            return sum(is_within(each.directory, place.root) for each in sessions)
    return 0


def list_moved_folders(destination: Destination) -> list[tuple[Place, int]]:
    """Return the folders that are gone and may be this project's now, the newest first,
    with their sessions' number.
    """
    places, root = Places(destination.paths), destination.root
    here = places.look(destination.project_root, places.read(root))
    gone = (
        place for place in places.list_others(root) if is_in_doubt(place, here) and place.is_gone
    )
    return [(place, count) for place in gone if (count := count_sessions(destination, place))]


def adopt_folder(destination: Destination, root: str) -> list[Session]:
    """Take over the sessions of a folder that is gone, whatever its project,
    because the user says so.
    """
    taking = _TakeOver(destination, root)
    for path in destination.paths.find_databases():
        taking.take(path.parent.name)
    return taking.taken


def _open_store(destination: Destination, project_id: str) -> Iterator[Store]:
    """Yield the store of a project, if it has one."""
    path = destination.paths.get_project_folder(project_id) / "codeloop.db"
    if path == destination.store.path:
        yield destination.store
    elif path.exists():
        # One that is damaged must not keep this folder's project from being opened.
        with suppress(StoreError), closing(Store(path)) as store:
            yield store


class _TakeOver:
    """Takes over the sessions of the folder `old`, which may be the same as that of
    the project of `settings`.
    """

    def __init__(self, destination: Destination, old: str) -> None:
        self.taken: list[Session] = []
        """Those that were taken over and are not subagents'."""
        self._destination = destination
        self._old = old

    def find(self, source_id: str) -> list[Session]:
        """Return the sessions of a project that `take` would take."""
        for source in _open_store(self._destination, source_id):
            return _find_ours(self._make_ground(source))
        return []

    def finds_changed_file(self, source_id: str) -> bool:
        """Return whether a file is there that one of the sessions has changed."""
        for source in _open_store(self._destination, source_id):
            ground = self._make_ground(source)
            for session in _find_ours(ground):
                for _, part in source.queries.search_parts(session.id, '"type":"patch"'):
                    if isinstance(part, PatchPart) and any(
                        map(os.path.isfile, map(ground.map_path, part.files))
                    ):
                        return True
        return False

    def take(self, source_id: str) -> bool:
        """Take sessions from a project; return False if a process works on one of them,
        which stays.
        """
        is_complete = True
        for source in _open_store(self._destination, source_id):
            ground = self._make_ground(source)
            emptied_roots: set[str] = set()
            for session in _find_ours(ground):
                family = source.list_family(session)
                if any(source.leases.is_held(each.id) for each in family):
                    is_complete = False
                    continue
                _link_snapshots(ground, session.root)
                emptied_roots.add(session.root)
                move_family(ground, family)
                self.taken.append(session)
            _remove_unused(ground, emptied_roots)
        return is_complete

    def _make_ground(self, source: Store) -> MovedGround:
        return MovedGround(self._destination, source, self._old)


def _find_ours(ground: MovedGround) -> list[Session]:
    sessions = ground.source.queries.find_sessions(SessionFilter(only_roots=True, limit=NO_LIMIT))
    return [session for session in sessions if _is_ours(ground, session)]


def _is_ours(ground: MovedGround, session: Session) -> bool:
    """Return whether a session's folder belongs to the project that is opened,
    and its record says otherwise.
    """
    if not is_within(session.directory, ground.old):
        return False
    project_root = ground.to.project_root
    directory, root = ground.map_path(session.directory), str(project_root.root)
    if (session.project_id, session.root, session.directory) == (
        project_root.project_id,
        root,
        directory,
    ):
        return False
    if project_root.vcs is None:
        return directory == root
    # A repository of its own, further inside, keeps its sessions.
    folder = Path(directory)
    while str(folder) != root:
        if find_git_folder(folder) is not None:
            return False
        folder = folder.parent
    return True


def _link_snapshots(ground: MovedGround, old_root: str) -> None:
    """Have the snapshots of a folder where those of the new one are looked for,
    and the full outputs of tools.
    """
    old = get_snapshots(ground.source, old_root)
    new = get_snapshots(ground.target, ground.to.project_root.root)
    with suppress(OSError):
        if old != new:
            link_objects(old, new)
    old_scratch = replace(ground.to.project_root, root=Path(old_root)).get_scratch_folder(
        ground.source.path.parent
    )
    new_scratch = ground.to.project_root.get_scratch_folder(ground.target.path.parent)
    with suppress(OSError):
        if old_scratch.is_dir() and not new_scratch.exists():
            new_scratch.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            old_scratch.rename(new_scratch)


def _remove_unused(ground: MovedGround, roots: Iterable[str]) -> None:
    """Remove the snapshots of folders that no session of the source needs any more."""
    used = {
        each.root for each in ground.source.queries.find_sessions(SessionFilter(limit=NO_LIMIT))
    }
    here = get_snapshots(ground.target, ground.to.project_root.root)
    for root in roots:
        folder = get_snapshots(ground.source, root)
        if root not in used and folder != here:
            remove_tree(folder)
