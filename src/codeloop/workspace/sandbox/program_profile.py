"""Sandbox profiles of helper programs (MCP servers, formatters, hooks, extensions),
and their policies.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.config import ProgramSandboxConfig, SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.paths.linked_paths import (
    exists,
    is_below_any,
    is_folder,
    leads_out_of_project,
)
from codeloop.workspace.sandbox.paths.secret_files import find_home_secrets
from codeloop.workspace.sandbox.policy import (
    NO_GRANTS,
    PolicyInput,
    PolicyMaker,
    SandboxGrants,
    SandboxPolicy,
)

_MAX_NEIGHBOURS = 64
"""The most files beside a writable one that are kept from changes one by one."""
_SHARED_FOLDERS = {".config": 1, ".cache": 1, ".local": 2, ".claude": 99}
"""Folders of the home in which programs look for files of each other, and how many levels do."""


class ProgramProfile(Struct, frozen=True):
    """The permissions of one program: those of a sandboxed command,
    except that it may only read the project.

    `data_folder`: a writable folder of its own; `writable`, `readable`: further absolute paths.
    `named`: paths that its start names (`named_paths.py`), which it may read except for the keys.
    `hides_project`: it may not even read the project.
    """

    data_folder: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    named: tuple[Path, ...] = ()
    network: Literal["off", "on", "hosts"] = "off"
    hosts: tuple[str, ...] = ()
    hides_project: bool = False


def widen_profile(
    profile: ProgramProfile, entry: bool | ProgramSandboxConfig, root: Path
) -> ProgramProfile | None:
    """Return a profile with the grants of a configuration entry;
    None: it runs without a sandbox.
    """
    if isinstance(entry, bool):
        return profile if entry else None
    writable, readable = (
        tuple(root / expand_user_path(each) for each in paths)
        for paths in (entry.writable, entry.readable)
    )
    return replace(
        profile,
        writable=(*profile.writable, *writable),
        readable=(*profile.readable, *readable),
        network=entry.network or ("hosts" if entry.hosts else profile.network),
        hosts=(*profile.hosts, *entry.hosts),
    )


class ProfilePolicyMaker:
    """Makes the policies of one profile, and its writable folders if they are absent.
    Raises OSError.

    `config`: that of commands; paths that it hides are hidden from programs, too. A program has its
    own layers over the home and caches, so that no command and no other program can put a
    file there that it would run.
    """

    def __init__(
        self, profile: ProgramProfile, policy_input: PolicyInput, config: SandboxConfig
    ) -> None:
        self._roots = tuple(
            Path(os.path.realpath(each)) for each in (policy_input.root, policy_input.directory)
        )
        home = policy_input.home
        data_folder = _make_folder(profile.data_folder)
        places = [
            prepare_place(each, home) for each in profile.writable if not self._leads_out(each)
        ]
        writable = [each.path for each in places]
        self._neighbours = tuple(path for each in places for path in each.protected)
        # What nobody may read by naming it: a folder of keys, and ours.
        self._keys = tuple(
            Path(os.path.realpath(each))
            for each in (*find_home_secrets(home), *policy_input.own_folders)
        )
        readable = [each for each in profile.readable if not self._leads_out(each)]
        named = [
            each
            for each in profile.named
            if not self._leads_out(each)
            and not (is_folder(each) and is_below_any(Path(os.path.realpath(each)), self._keys))
        ]
        settings = SandboxConfig(
            network=profile.network,
            hosts=list(profile.hosts),
            writable=[str(each) for each in (data_folder, *writable)],
            readable=[*config.readable, *map(str, (*readable, *named))],
            hidden=config.hidden,
            variables=config.variables,
        )
        self._writable = (data_folder, *writable)
        real_home = Path(os.path.realpath(home))
        self._granted_folders, self._readable_folders = (
            tuple(
                path
                for path in (Path(os.path.realpath(each)) for each in paths)
                if not real_home.is_relative_to(path)
            )
            for paths in (readable, [*readable, *named])
        )
        self._hides_project = profile.hides_project
        self._last_policy: SandboxPolicy | None = None
        self._policy_maker = PolicyMaker(replace(policy_input, scratch=data_folder), settings)

    def _leads_out(self, path: Path) -> bool:
        return leads_out_of_project(path, self._roots)

    @property
    def last_policy(self) -> SandboxPolicy:
        """The policy that its program was last started with; before that, one without limits."""
        return self._last_policy or self.make_policy()

    def make_policy(self, limits: SandboxGrants = NO_GRANTS) -> SandboxPolicy:
        """Return the policy. Reads the disk, outside of the project only after a change.
        `limits`: what rules deny.
        """
        base = self._policy_maker.make_policy(replace(limits, readable=self._readable_folders))
        # A folder that the profile names is readable with the keys in it;
        # secrets of the project are not.
        hidden = [
            path
            for path in base.hidden
            if is_below_any(path, self._roots)
            or not is_below_any(path, self._readable_folders)
            or (
                is_below_any(path, self._keys)
                and path not in self._readable_folders
                and not is_below_any(path, self._granted_folders)
            )
        ]
        # The project's folders and its git directories elsewhere are read-only,
        # unless the profile makes them writable.
        paths = [path for path in base.writable if is_below_any(path, self._writable)]
        project_paths = [path for path in base.writable if path not in paths]
        if self._hides_project:
            # What lies in them is covered with them.
            hidden = [
                *(path for path in hidden if not is_below_any(path, project_paths)),
                *project_paths,
            ]
            project_paths = []
        self._last_policy = replace(
            base,
            # The first writable path takes the place of the project's root.
            writable=tuple(dict.fromkeys((self._writable[0], *paths))),
            visible=tuple(dict.fromkeys((*base.visible, *project_paths))),
            hidden=tuple(hidden),
            protected=(
                *(path for path in base.protected if is_below_any(path, paths)),
                *self._neighbours,
            ),
            git_folders=tuple(path for path in base.git_folders if is_below_any(path, paths)),
            absent=tuple(path for path in base.absent if is_below_any(path, paths)),
        )
        return self._last_policy


class WritablePlace(NamedTuple):
    """What is made writable for a place that may be written: a folder, or a file;
    `protected`: what in the folder stays as it is.
    """

    path: Path
    protected: tuple[Path, ...] = ()


def prepare_place(path: Path, home: Path) -> WritablePlace:
    """Return what to make writable so that a path is really written; makes what has to be there.

    For a file that is its folder: a database has further files beside it, many programs replace
    a file by a new one, and one that is absent must be seen to be absent. In a folder that
    programs share it is the file alone.
    """
    real = Path(os.path.realpath(path))
    if is_folder(real) or (not exists(real) and not real.suffix):
        return WritablePlace(_make_folder(real))
    folder = real.parent
    is_shared = any(_is_shared(each, home) for each in (Path(path).parent, folder))
    beside = None if is_shared else _list_beside(real)
    if beside is None:
        # Whatever else is there must not be changed, so the file alone is writable.
        with suppress(OSError):
            real.touch(mode=0o600)
        return WritablePlace(real)
    return WritablePlace(_make_folder(folder), tuple(beside))


def _is_shared(folder: Path, home: Path) -> bool:
    """Return whether programs other than one look for files in a folder: a broad one, one of
    settings in the home, or one that holds folders of keys.
    """
    # Imported late: most programs are given no place to write.
    from codeloop.workspace.sandbox.named_paths import is_broad

    if is_broad(folder, home):
        return True
    for each in (home, Path(os.path.realpath(home))):
        if folder.is_relative_to(each):
            parts = folder.relative_to(each).parts
            if parts[0] in _SHARED_FOLDERS and len(parts) <= _SHARED_FOLDERS[parts[0]]:
                return True
    return any(
        folder in Path(os.path.realpath(key)).parents or folder in key.parents
        for key in find_home_secrets(home)
    )


def _list_beside(file: Path) -> list[Path] | None:
    """Return the entries of a file's folder, without the file and those that belong to it;
    None: they are too many to be kept, or one is a link, which a mount would follow.
    """
    with suppress(OSError), os.scandir(file.parent) as entries:
        beside = [each for each in entries if not each.name.startswith(file.name)]
        if len(beside) > _MAX_NEIGHBOURS or any(each.is_symlink() for each in beside):
            return None
        return [Path(each.path) for each in beside]
    return []


def _make_folder(folder: Path) -> Path:
    if not exists(folder):
        create_private_folder(folder)
    return Path(os.path.realpath(folder))
