"""Sandbox policies, composed of the settings, the rows of `restricted_paths`, and the project's files."""

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.planted.layout import (
    GIT_FOLDER_ENTRIES,
    REPLACEABLE_FILES,
    find_git_folders,
    list_foreign_files,
)
from codeloop.workspace.sandbox.restricted_paths import OWN_NAMES, VCS_NAMES
from codeloop.workspace.sandbox.secret_files import ProjectSecrets
from codeloop.workspace.sandbox.surroundings import (
    Surroundings,
    SurroundingsInput,
    find_surroundings,
    is_below_any,
    keep_outermost,
    list_watched_paths,
    read_change_times,
    resolve_links,
)

_SURROUNDINGS_SECONDS = 10.0
"""How long the surroundings are used without looking for new sockets, which no change time shows."""
_MAX_NEIGHBOURS = 500
"""Files beside a granted one that are protected one by one."""


class SandboxPolicy(Struct, frozen=True):
    """What commands in one sandbox may do. Every path is absolute, resolved, and exists, but for those in `absent`.

    - `writable`: folders and files, the project's root first; `protected`: paths below these that are read-only
    - `hidden`: paths that can't be read, wherever they are
    - `absent`: paths that may not be created, unless they are in `granted`
    - `layered`: caches of the user, whose changes go to a layer of the project's own
    - `replaced`: folders that look empty (like `/tmp`), but for the `visible` paths in them, which are read-only, and
      the `links`, each with its target
    - `home`: the replaced folder that a private one stands for; `private`: our folder with that one and the layers
    - `holds_home`: whether the project is the home, or contains it
    - `network`: that of the machine, none, or only `hosts`, through the proxy
    - `foreign`: what other work trees have in the git directory: read-only where mounts can do that, but never
      restored, since those work trees change it at any time
    - `git_lists`: files that git replaces in any work tree, put back when git can't read what a command left there
    - `replica`: a folder that is mounted in place of the project's root, where mounts are available. What is visible
      below the root is mounted into it, and changes of that stay apart as well
    """

    writable: tuple[Path, ...]
    protected: tuple[Path, ...]
    visible: tuple[Path, ...]
    hidden: tuple[Path, ...]
    absent: tuple[Path, ...]
    network: Literal["off", "on", "hosts"]
    hosts: tuple[str, ...]
    granted: tuple[Path, ...] = ()
    layered: tuple[Path, ...] = ()
    replaced: tuple[Path, ...] = ()
    links: tuple[tuple[Path, str], ...] = ()
    home: Path | None = None
    private: Path | None = None
    holds_home: bool = False
    foreign: tuple[Path, ...] = ()
    git_lists: tuple[Path, ...] = ()
    replica: Path | None = None

    @property
    def has_secrets(self) -> bool:
        """Return whether something is hidden in what may be written: not every kind of sandbox can do that."""
        return any(path.is_relative_to(folder) for path in self.hidden for folder in self.writable)

    def shows(self, path: Path) -> bool:
        """Return whether a command may read what a resolved path leads to, if the file itself lets it."""
        if path in self.visible or path in self.writable:
            return True
        if is_below_any(path, self.hidden):
            return False
        paths = (*self.writable, *self.visible, *self.layered)
        return not is_below_any(path, self.replaced) or is_below_any(path, paths)


class SandboxGrants(Struct, frozen=True):
    """What the user or a rule allowed and denied for one command. All paths are resolved.

    `writable`: paths that it may write; `readable`: secrets that it may read; `kept`: paths that rules deny to write,
    in the project too; `unseen`: paths that rules deny to read.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    unseen: tuple[Path, ...] = ()


NO_GRANTS = SandboxGrants()


class PolicyInput(Struct, frozen=True):
    """What policies of a work tree are made from. `own`: codeloop's folders, of which only `scratch` may be read."""

    root: Path
    directory: Path
    scratch: Path
    environment: Mapping[str, str]
    own: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environment.get("HOME") or "/nonexistent")

    @property
    def private(self) -> Path:
        """The folder for what commands of this work tree write to the home and to caches."""
        return self.scratch.with_name(f"{self.scratch.name}.sandbox")


class _LastPolicy(NamedTuple):
    """The policy of the last command without grants. `states`: of the paths that it was made from."""

    made_from: tuple[Surroundings, frozenset[Path], SandboxGrants, tuple[Path, ...]]
    states: PathStates
    policy: SandboxPolicy


class PolicyMaker:
    """Makes the policies of one work tree. Paths outside the project are read again when they change."""

    def __init__(self, policy_input: PolicyInput, config: SandboxConfig) -> None:
        self._source = policy_input
        self.config = config
        self._roots = tuple(dict.fromkeys(resolve_links(path) for path in (policy_input.root, policy_input.directory)))
        self._secrets = [ProjectSecrets(root) for root in self._roots]
        self._surroundings_input = self._make_surroundings_input()
        self._watched_paths = list_watched_paths(self._surroundings_input)
        self._around: Surroundings | None = None
        self._times: tuple[int, ...] = ()
        self._looked_at = 0.0
        self._last_policy: _LastPolicy | None = None

    def make_policy(self, grants: SandboxGrants = NO_GRANTS, more: Sequence[Path] = ()) -> SandboxPolicy:
        """Return the policy of one command. Looks at the disk, and makes granted files that are absent.

        `more`: further protected paths, which may not be created if they are absent. Without grants, the last policy is
        returned while nothing has changed that it was made from: that takes a tenth of the time.
        """
        around, secrets, last_policy = self.surroundings(), self._find_secrets(), self._last_policy
        is_usual = not grants.writable and not grants.readable
        made_from = (around, secrets, grants, tuple(more))
        if (
            is_usual
            and last_policy is not None
            and last_policy.made_from == made_from
            and last_policy.states.are_unchanged()
        ):
            return last_policy.policy
        git = [resolve_links(path) for path in find_git_folders(self._source.root)]
        guarded = [folder / name for folder in git for name in GIT_FOLDER_ENTRIES]
        guarded += [root / name for root in self._roots for name in (*OWN_NAMES, *VCS_NAMES)]
        guarded += [root / ".git" for root in self._roots if (root / ".git").is_file()]
        guarded = list(dict.fromkeys([*guarded, *more, *grants.kept]))
        folders = {parent for path in guarded for parent in path.parents if is_below_any(parent, (*self._roots, *git))}
        watched = [folder / name for folder in git for name in ("modules", "worktrees", "objects/pack")]
        foreign = list_foreign_files(self._source.root)
        states = PathStates(map(str, {*self._roots, *git, *watched, *folders, *guarded, *foreign}))
        writable_git = [folder for folder in git if not is_below_any(folder, foreign)]
        policy = replace(
            self._make(grants, guarded, writable_git, around, secrets.union(grants.unseen)),
            foreign=tuple(_keep_existing(foreign)),
            git_lists=tuple(folder / name for folder in writable_git[1:] for name in REPLACEABLE_FILES)
            if foreign
            else (),
        )
        if is_usual:
            self._last_policy = _LastPolicy(made_from, states, policy)
        return policy

    def _make(
        self,
        grants: SandboxGrants,
        guarded: Sequence[Path],
        git: Sequence[Path],
        around: Surroundings,
        secrets: frozenset[Path],
    ) -> SandboxPolicy:
        """Make a policy. `guarded`: what may not change or appear; `git`: the project's git directories."""
        policy_input, roots = self._source, self._roots
        # What has become a link since it was allowed would lead to somewhere else.
        granted = [path for path in grants.writable if resolve_links(path) == path]
        granted_paths, neighbours = _open_paths(
            granted, guarded, (*roots, *git, *around.writable), resolve_links(policy_input.home)
        )
        paths = [path for path in map(_resolve_parents, guarded) if not is_below_any(path, granted)]
        free = {*granted, *(path for path in grants.readable if resolve_links(path) == path)}
        writable = _keep_existing((*roots, *git, *around.writable, *granted_paths))
        layered = [path for path in around.layered if not is_below_any(path, writable)]
        visible = [path for path in around.visible if not is_below_any(path, (*writable, *layered))]
        shown = (*writable, *layered, *visible)
        hidden = [
            path
            for path in keep_outermost(_keep_existing((around.hidden | secrets) - free))
            if not is_below_any(path, around.replaced) or is_below_any(path, shown)
        ]
        # What is in a writable folder is visible anyway.
        unseen = (path for path in free if is_below_any(path, around.replaced) and not is_below_any(path, writable))
        visible += [*unseen, *(path for path in free if is_below_any(path, hidden))]
        visible += [
            path for path in (resolve_links(policy_input.scratch), *around.visible) if is_below_any(path, hidden)
        ]
        return SandboxPolicy(
            writable=tuple(writable),
            protected=tuple(_keep_existing((*paths, *neighbours))),
            visible=tuple(_keep_existing(visible)),
            hidden=tuple(hidden),
            absent=tuple(path for path in guarded if not os.path.lexists(path)),
            granted=tuple(granted),
            network=self.config.network,
            hosts=tuple(self.config.hosts),
            layered=tuple(layered),
            replaced=around.replaced,
            links=tuple(link for link in around.links if not is_below_any(link[0], shown)),
            home=around.home,
            private=policy_input.private,
            holds_home=around.holds_home,
        )

    @property
    def is_prepared(self) -> bool:
        """Whether `prepare` was called."""
        return self._around is not None

    def prepare(self) -> None:
        """Scan the project and its surroundings for the first time: a second for 300,000 files."""
        self._find_secrets()
        self.surroundings()

    def surroundings(self) -> Surroundings:
        """Find what commands see outside the project; again after a change, and regularly for new sockets."""
        times, now, around = read_change_times(self._watched_paths), time.monotonic(), self._around
        if around is None or times != self._times or now - self._looked_at > _SURROUNDINGS_SECONDS:
            current = find_surroundings(self._surroundings_input)
            if around is None or around != current:
                around = current
            self._around, self._times, self._looked_at = around, times, now
        return around

    def _find_secrets(self) -> frozenset[Path]:
        return frozenset[Path]().union(*(each.find() for each in self._secrets))

    def _make_surroundings_input(self) -> SurroundingsInput:
        policy_input, config = self._source, self.config
        return SurroundingsInput(
            roots=self._roots,
            home=resolve_links(policy_input.home),
            environment=policy_input.environment,
            own=policy_input.own,
            scratch=policy_input.scratch,
            writable=tuple(_expand_path(path, policy_input) for path in config.writable),
            readable=tuple(_expand_path(path, policy_input) for path in config.readable),
            hidden=tuple(_expand_path(path, policy_input) for path in config.hidden),
        )


def _open_paths(
    granted: Iterable[Path], guarded: Sequence[Path], writable: Sequence[Path], home: Path
) -> tuple[list[Path], list[Path]]:
    """Return the paths that a grant makes writable, and those among them that stay protected.

    An absent one in a plain folder below the home opens that folder, so that folders and links can be made there, too;
    what is in it already is protected. Elsewhere an empty file is made for it.
    """
    writable_paths: dict[Path, None] = {}
    neighbours: dict[Path, None] = {}
    granted = list(granted)
    for path in granted:
        guard = next((each for each in guarded if path.is_relative_to(each)), None)
        if guard is not None:
            if path == guard or not os.path.lexists(guard):
                continue  # it lies in the project, and is no longer protected since it is granted
        elif any(path.is_relative_to(each) for each in writable):
            continue
        if not os.path.lexists(path):
            above = next(folder for folder in path.parents if folder.is_dir())
            if _is_plain(above, home):
                writable_paths[above] = None
                neighbours |= dict.fromkeys(_list_neighbours(above))
                continue
            try:
                path.touch()
            except OSError:
                continue
        writable_paths[path] = None
    free = [*granted, *writable]
    return list(writable_paths), [each for each in neighbours if not _touches(each, free)]


def _touches(path: Path, free: Iterable[Path]) -> bool:
    """Return whether a path is one of those that may be written, lies below one, or is a link."""
    return path.is_symlink() or any(path.is_relative_to(each) for each in free)


def _is_plain(folder: Path, home: Path) -> bool:
    """Return whether a folder is one for the user's work: below the home, and below no folder with a dot."""
    if folder == home or not folder.is_relative_to(home):
        return False
    return not any(part.startswith(".") for part in folder.relative_to(home).parts)


def _list_neighbours(folder: Path) -> list[Path]:
    """Return the entries of a folder, as far as they can be protected one by one."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in itertools.islice(entries, _MAX_NEIGHBOURS)]
    except OSError:
        return []


def _resolve_parents(path: Path) -> Path:
    """Return a path with links in its parents resolved. A link at its end is resolved, too."""
    return resolve_links(path.parent) / path.name if not path.is_symlink() else resolve_links(path)


def _keep_existing(paths: Iterable[Path]) -> list[Path]:
    """Return those that exist, each once, in their order."""
    return [path for path in dict.fromkeys(paths) if os.access(path, os.F_OK)]


def _expand_path(path: str, policy_input: PolicyInput) -> Path:
    """Return a path of the configuration: absolute, from the home with `~`, or else from the project's root."""
    return policy_input.home / path[2:] if path.startswith("~/") else policy_input.root / path
