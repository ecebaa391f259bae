"""Sandbox profiles of helper programs (MCP servers, formatters, hooks, extensions),
and their policies.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.kit.paths import expand_user_path
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.config import ProgramSandboxConfig, SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any, leads_out_of_project
from codeloop.workspace.sandbox.policy import (
    NO_GRANTS,
    PolicyInput,
    PolicyMaker,
    SandboxGrants,
    SandboxPolicy,
)

_TOP_MARKERS = (".git", "package.json", "pyproject.toml", "pyvenv.cfg", "Cargo.toml", "go.mod")
"""Entries that mark the top folder of a program's code."""


class ProgramProfile(Struct, frozen=True):
    """The permissions of one program: those of a sandboxed command,
    except that it may only read the project.

    `data_folder`: a writable folder of its own; `writable`, `readable`: further absolute paths.
    `hides_project`: it may not even read the project.
    """

    data_folder: Path
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    network: Literal["off", "on", "hosts"] = "off"
    hosts: tuple[str, ...] = ()
    hides_project: bool = False
    kept: tuple[Path, ...] = ()
    """Paths in writable folders that may not change, nor appear where they are absent."""


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
        data_folder = _make_folder(profile.data_folder)
        writable = [_make_folder(each) for each in profile.writable if not self._leads_out(each)]
        readable = [str(each) for each in profile.readable if not self._leads_out(each)]
        settings = SandboxConfig(
            network=profile.network,
            hosts=list(profile.hosts),
            writable=[str(each) for each in (data_folder, *writable)],
            readable=[*config.readable, *readable],
            hidden=config.hidden,
            variables=config.variables,
        )
        self._writable = (data_folder, *writable)
        readable_paths = (Path(os.path.realpath(each)) for each in readable)
        self._readable_folders = tuple(
            path
            for path in readable_paths
            if not Path(os.path.realpath(policy_input.home)).is_relative_to(path)
        )
        self._hides_project = profile.hides_project
        self._kept = profile.kept
        self._policy_maker = PolicyMaker(replace(policy_input, scratch=data_folder), settings)

    def _leads_out(self, path: Path) -> bool:
        return leads_out_of_project(path, self._roots)

    def make_policy(self, limits: SandboxGrants = NO_GRANTS) -> SandboxPolicy:
        """Return the policy. Reads the disk, outside of the project only after a change.
        `limits`: what rules deny.
        """
        base = self._policy_maker.make_policy(
            replace(limits, readable=self._readable_folders), self._kept
        )
        # A folder that the profile names is readable with the keys in it;
        # secrets of the project are not.
        hidden = [
            path
            for path in base.hidden
            if is_below_any(path, self._roots) or not is_below_any(path, self._readable_folders)
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
        return replace(
            base,
            # The first writable path takes the place of the project's root.
            writable=tuple(dict.fromkeys((self._writable[0], *paths))),
            visible=tuple(dict.fromkeys((*base.visible, *project_paths))),
            hidden=tuple(hidden),
            protected=tuple(path for path in base.protected if is_below_any(path, paths)),
            git_folders=tuple(path for path in base.git_folders if is_below_any(path, paths)),
            absent=tuple(path for path in base.absent if is_below_any(path, paths)),
        )


def find_code_folders(words: Iterable[str], home: Path) -> tuple[Path, ...]:
    """Return the folders of code that a command's words name by absolute paths.

    Below the home, the folder of a whole project; elsewhere,
    a program's own folder or its virtual environment.
    """
    files = [Path(word) for word in words if word.startswith("/")]
    return tuple(dict.fromkeys(_find_top(file, home) for file in files if file.exists()))


def list_named_paths(values: Iterable[str]) -> tuple[Path, ...]:
    """Return the existing files and folders that values of variables name by absolute paths,
    separated by colons.
    """
    paths = [
        Path(each) for value in values for each in value.split(os.pathsep) if each.startswith("/")
    ]
    return tuple(path for path in dict.fromkeys(paths) if os.access(path, os.F_OK))


def _find_top(file: Path, home: Path) -> Path:
    """Return the outermost project folder around a file below the home;
    elsewhere its own folder or environment.
    """
    folder = file if file.is_dir() else file.parent
    tops = [
        each
        for each in (folder, *folder.parents)
        if any((each / name).exists() for name in _TOP_MARKERS)
    ]
    program_folder = folder.parent if (folder.parent / "pyvenv.cfg").exists() else folder
    return next(
        (each for each in reversed(tops) if each != home and each.is_relative_to(home)),
        program_folder,
    )


def _make_folder(folder: Path) -> Path:
    if not folder.exists():
        create_private_folder(folder)
    return Path(os.path.realpath(folder))
