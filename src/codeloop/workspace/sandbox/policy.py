"""Sandbox policies: which paths and hosts a command may use,
made from the configuration and the project's files.

`PolicyMaker` makes the policies of one work tree; `sandboxes.py` makes a sandbox for each policy.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.kit.small_files import create_private_folder
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.planted.layout import GIT_FOLDER_ENTRIES, find_git_folders, list_entries
from codeloop.workspace.sandbox.granted_paths import expand_grants
from codeloop.workspace.sandbox.paths.linked_paths import (
    is_below_any,
    keep_outermost,
    resolve_links,
)
from codeloop.workspace.sandbox.paths.restricted_paths import TOP_NAMES
from codeloop.workspace.sandbox.paths.secret_files import ProjectSecrets
from codeloop.workspace.sandbox.paths.surroundings import (
    Surroundings,
    SurroundingsInput,
    find_surroundings,
    list_watched_paths,
    read_modification_times,
    read_socket_paths,
)

# The surroundings are searched again after this time, whatever modification times say.
_SURROUNDINGS_SECONDS = 10.0
# The end of the name of a work tree's folder for what commands write to the home and to caches.
PRIVATE_SUFFIX = ".sandbox"
HOME_NAME = "home"
"""The folder in a private folder that replaces the home directory."""


class SandboxPolicy(Struct, frozen=True):
    """The rules of one sandbox. Every path is absolute;
    but for `links`, those that exist are resolved.

    All exist except those in `absent`, and perhaps those in `granted`, and `private_folder`.

    - `writable`: folders and files, the project's root first;
      `protected`: paths below these that are read-only
    - `hidden`: paths that can't be read, wherever they are
    - `absent`: paths that may not be created, unless they are in `granted`,
      which this command may write
    - `layered`: caches of the user, whose changes go to a layer of the project
    - `replaced`: folders that look empty (like `/tmp`), except for the `visible` paths in them,
      which are read-only, and the `links`, each with its target
    - `home`: the home, if a private folder is mounted there;
      `private_folder`: ours with that one and the layers;
      `home_name`: the name of that one
    - `holds_home`: whether the project is the home, or contains it
    - `variables`: names (or patterns) of variables that its programs get although
      they look like secrets
    - `network`: the machine's ("on"), none ("off"), or only `hosts`, through the proxy
    - `git_folders`: git directories in the place of which commands see private ones,
      where folders can be mounted
    - `replica`: a folder that is mounted at the project's root, where mounts are available. Visible
      paths below the root are mounted into it, with layers that keep the changes
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
    private_folder: Path | None = None
    holds_home: bool = False
    git_folders: tuple[Path, ...] = ()
    replica: Path | None = None
    variables: tuple[str, ...] = ()
    home_name: str = HOME_NAME

    @property
    def has_secrets(self) -> bool:
        """Whether a hidden path lies in a writable folder,
        which not every kind of sandbox can enforce.
        """
        return any(path.is_relative_to(folder) for path in self.hidden for folder in self.writable)

    def shows(self, path: Path) -> bool:
        """Return whether the policy lets a command read a resolved path."""
        if path in self.visible or path in self.writable:
            return True
        if is_below_any(path, self.hidden):
            return False
        paths = (*self.writable, *self.visible, *self.layered)
        return not is_below_any(path, self.replaced) or is_below_any(path, paths)


class SandboxGrants(Struct, frozen=True):
    """Exceptions from the policy for one command, by the user or by rules. All paths are resolved.

    `writable`: paths that it may write; `readable`: hidden paths that it may read; `unwritable`,
    `unreadable`: paths that rules deny to write or read, in the project too. `home_name`: its
    private home, if it does not see that of other commands.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    unwritable: tuple[Path, ...] = ()
    unreadable: tuple[Path, ...] = ()
    home_name: str = HOME_NAME


NO_GRANTS = SandboxGrants()


class PolicyInput(Struct, frozen=True):
    """The input for policies of a work tree. `root`, `directory`, `scratch`: as in Workspace.

    `own_folders`: codeloop's folders; of these only `scratch` may be read.
    """

    root: Path
    directory: Path
    scratch: Path
    environment: Mapping[str, str]
    own_folders: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environment.get("HOME") or "/nonexistent")

    @property
    def private_folder(self) -> Path:
        """The folder for files that commands of this work tree write to the home and to caches."""
        return self.scratch.with_name(self.scratch.name + PRIVATE_SUFFIX)


class _PolicySource(NamedTuple):
    """What a policy is made from, besides the paths on the disk; equal ones make equal policies.

    `further_paths`, `nested`: see `PolicyMaker.make_policy`.
    """

    surroundings: Surroundings
    secrets: frozenset[Path]
    grants: SandboxGrants
    further_paths: tuple[Path, ...]
    nested: tuple[Path, ...]


class _LastPolicy(NamedTuple):
    """The last policy that was made without grants to read or write more.

    `states`: those of the paths on the disk that it depends on.
    """

    source: _PolicySource
    states: PathStates
    policy: SandboxPolicy


class PolicyMaker:
    """Makes the policies of one work tree. Paths outside the project are not
    searched for each command.

    They are searched again after a change of a watched path or of the machine's sockets,
    and after a while.
    """

    def __init__(self, policy_input: PolicyInput, config: SandboxConfig) -> None:
        self._input = policy_input
        self.config = config
        self._roots = tuple(
            dict.fromkeys(
                resolve_links(path) for path in (policy_input.root, policy_input.directory)
            )
        )
        self._secrets = [ProjectSecrets(root) for root in self._roots]
        self._surroundings_input = self._make_surroundings_input()
        self._watched_paths = list_watched_paths(self._surroundings_input)
        self._surroundings: Surroundings | None = None
        self._times: tuple[int, ...] = ()
        self._sockets: frozenset[bytes] = frozenset()
        self._surroundings_time = 0.0
        self._last_policy: _LastPolicy | None = None

    def make_policy(
        self,
        grants: SandboxGrants = NO_GRANTS,
        further_paths: Sequence[Path] = (),
        nested: Sequence[Path] = (),
    ) -> SandboxPolicy:
        """Return the policy of one command. Reads the disk,
        and makes granted files that are absent.

        `further_paths`: further protected paths, which may not be created if they are absent;
        `nested`: the git directories of other repositories below the project.
        """
        source = _PolicySource(
            self._refresh_surroundings(),
            self._find_secrets(),
            grants,
            tuple(further_paths),
            tuple(nested),
        )
        # Without grants of more, the last policy is used again while its input is unchanged:
        # in a tenth of the time.
        is_reusable = not grants.writable and not grants.readable
        last = self._last_policy
        if (
            is_reusable
            and last is not None
            and last.source == source
            and last.states.are_unchanged()
        ):
            return last.policy
        git_folders = [resolve_links(path) for path in find_git_folders(self._input.root)]
        git_folders += [path for path in nested if path not in git_folders]
        guarded = [folder / name for folder in git_folders for name in GIT_FOLDER_ENTRIES]
        guarded += [root / name for root in self._roots for name in TOP_NAMES]
        guarded += [
            path
            for root in self._roots
            for path in list_entries(root)
            if path.name.endswith(".code-workspace")
        ]
        guarded += [root / ".git" for root in self._roots if (root / ".git").is_file()]
        guarded = list(dict.fromkeys([*guarded, *further_paths, *grants.unwritable]))
        tops = (*self._roots, *git_folders)
        parents = {
            parent for path in guarded for parent in path.parents if is_below_any(parent, tops)
        }
        watched = [folder / name for folder in git_folders for name in ("modules", "worktrees")]
        # What is missing shows in the folder above it when it is made.
        present = [path for path in {*watched, *parents, *guarded} if os.path.lexists(path)]
        states = PathStates(map(str, {*tops, *present}))
        policy = self._compose_policy(source, guarded, git_folders)
        if is_reusable:
            self._last_policy = _LastPolicy(source, states, policy)
        return policy

    def _compose_policy(
        self, source: _PolicySource, guarded: Sequence[Path], git_folders: Sequence[Path]
    ) -> SandboxPolicy:
        """Make a policy. `guarded`: paths that may not change or appear;
        `git_folders`: git directories to write to.
        """
        policy_input, roots = self._input, self._roots
        surroundings, grants = source.surroundings, source.grants
        secrets = source.secrets.union(grants.unreadable)
        # A path that has become a link since it was allowed would lead to somewhere else.
        granted = [path for path in grants.writable if resolve_links(path) == path]
        granted_paths, neighbours = expand_grants(
            granted,
            guarded,
            (*roots, *git_folders, *surroundings.writable),
            resolve_links(policy_input.home),
        )
        protected = [
            path for path in map(_resolve_parents, guarded) if not is_below_any(path, granted)
        ]
        readable = {*granted, *(path for path in grants.readable if resolve_links(path) == path)}
        writable = _keep_existing((*roots, *git_folders, *surroundings.writable, *granted_paths))
        layered = [path for path in surroundings.layered if not is_below_any(path, writable)]
        visible = [
            path for path in surroundings.visible if not is_below_any(path, (*writable, *layered))
        ]
        shown = (*writable, *layered, *visible)
        hidden = [
            path
            for path in keep_outermost(_keep_existing((surroundings.hidden | secrets) - readable))
            if not is_below_any(path, surroundings.replaced) or is_below_any(path, shown)
        ]
        # A path in a writable folder is visible anyway.
        visible += [
            path
            for path in readable
            if is_below_any(path, surroundings.replaced) and not is_below_any(path, writable)
        ]
        shown_inside = (*readable, resolve_links(policy_input.scratch), *surroundings.visible)
        visible += [path for path in shown_inside if is_below_any(path, hidden)]
        return SandboxPolicy(
            writable=tuple(writable),
            protected=tuple(_keep_existing((*protected, *neighbours))),
            visible=tuple(_keep_existing(visible)),
            hidden=tuple(hidden),
            absent=tuple(path for path in guarded if not os.path.lexists(path)),
            granted=tuple(granted),
            network=self.config.network,
            hosts=tuple(self.config.hosts),
            variables=tuple(self.config.variables),
            layered=tuple(layered),
            replaced=surroundings.replaced,
            links=tuple(link for link in surroundings.links if not is_below_any(link[0], shown)),
            home=surroundings.home,
            git_folders=tuple(keep_outermost(git_folders)),
            private_folder=policy_input.private_folder,
            holds_home=surroundings.holds_home,
            home_name=grants.home_name,
        )

    @property
    def is_prepared(self) -> bool:
        """Whether the surroundings are known: `prepare` or `make_policy` was called."""
        return self._surroundings is not None

    def prepare(self) -> None:
        """Scan the project and its surroundings for the first time: a second for 300,000 files."""
        self._find_secrets()
        self._refresh_surroundings()

    def _refresh_surroundings(self) -> Surroundings:
        """Return the surroundings, searched again after a change, of sockets too,
        and after a while.
        """
        times, now, surroundings = (
            read_modification_times(self._watched_paths),
            time.monotonic(),
            self._surroundings,
        )
        sockets = read_socket_paths()
        is_old = now - self._surroundings_time > _SURROUNDINGS_SECONDS
        if surroundings is None or is_old or (times, sockets) != (self._times, self._sockets):
            # Only what exists is shown: outputs that are saved later have to be readable, too.
            with suppress(OSError):
                create_private_folder(self._input.scratch)
            current = find_surroundings(self._surroundings_input)
            # An equal result keeps its identity, which makes the comparison with the
            # last policy's input fast.
            if surroundings is None or surroundings != current:
                surroundings = current
            self._surroundings, self._times, self._surroundings_time = surroundings, times, now
            self._sockets = sockets
        return surroundings

    def _find_secrets(self) -> frozenset[Path]:
        return frozenset[Path]().union(*(each.find_secrets() for each in self._secrets))

    def _make_surroundings_input(self) -> SurroundingsInput:
        policy_input, config = self._input, self.config
        return SurroundingsInput(
            roots=self._roots,
            home=resolve_links(policy_input.home),
            environment=policy_input.environment,
            own_folders=policy_input.own_folders,
            scratch=policy_input.scratch,
            writable=tuple(_expand_path(path, policy_input) for path in config.writable),
            readable=tuple(_expand_path(path, policy_input) for path in config.readable),
            hidden=tuple(_expand_path(path, policy_input) for path in config.hidden),
        )


def _resolve_parents(path: Path) -> Path:
    """Return a path with links in its parents resolved. A link at its end is resolved, too."""
    return resolve_links(path.parent) / path.name if not path.is_symlink() else resolve_links(path)


def _keep_existing(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that exist, each once, in their order."""
    return [path for path in dict.fromkeys(paths) if os.access(path, os.F_OK)]


def _expand_path(path: str, policy_input: PolicyInput) -> Path:
    """Return a path of the configuration: absolute, from the home with `~`,
    or else from the project's root.
    """
    return policy_input.home / path[2:] if path.startswith("~/") else policy_input.root / path
