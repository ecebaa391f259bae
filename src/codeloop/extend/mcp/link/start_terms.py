"""Where a local server is started, with which words and variables: nothing of a project decides that by lying there."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.extend.mcp.known.definition import LocalDefinition
from codeloop.kit.processes import which
from codeloop.kit.small_files import from_home, make_private
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.program_environment import program_environment
from codeloop.workspace.sandbox.program_profile import ProgramProfile, find_code, find_named, widen

_ANYWHERE = Path("/")
_HERE = (".", "..")


class ProjectPlace(Struct, frozen=True):
    """The project that servers are started for: its directory and its top, both resolved, and whether it is trusted."""

    directory: Path
    root: Path
    is_trusted: bool


class StartTerms(Struct, frozen=True):
    """How a program is started: `words`, of which the first is its path, in a folder, with its whole environment.

    `profile`: what it may do in its sandbox; None: it gets none.
    """

    words: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    profile: ProgramProfile | None


def terms_for_user(
    how: LocalDefinition, project: ProjectPlace, environment: Mapping[str, str], own: Path
) -> StartTerms:
    """Return how a server of the user's own configuration is started: in a folder of its own, `own`.

    Interpreters and package runners take options and code from the folder that they start in, and from those above it.
    A project's is that folder only where the definition says so and the project is trusted. Raises CodeloopError.
    """
    places = (project.directory, project.root)
    folder = _named_folder(how, project.directory)
    if folder is None or (not project.is_trusted and _is_inside(folder, places)):
        make_private(own)
        folder = _ANYWHERE if _is_inside(own, places) else own
    words = how.command
    if project.is_trusted:
        words = [_from_project(word, project.directory) for word in words]
    given = program_environment(environment, how.environment, places)
    return _terms((_program(words[0], folder, given), *words[1:]), folder, given, how, project, own)


def terms_for_project(
    how: LocalDefinition, project: ProjectPlace, environment: Mapping[str, str], own: Path
) -> StartTerms:
    """Return how a server that a trusted project brought is started: in its directory. Raises CodeloopError."""
    folder = _named_folder(how, project.directory) or project.directory
    given = program_environment(environment, how.environment)
    return _terms((_program(how.command[0], folder, given), *how.command[1:]), folder, given, how, project, own)


def _terms(
    words: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    how: LocalDefinition,
    project: ProjectPlace,
    own: Path,
) -> StartTerms:
    if project.directory in folder.parents or project.directory == folder or words[1:] != tuple(how.command[1:]):
        # What Python compiles would be another change of the project's files.
        environment = {"PYTHONDONTWRITEBYTECODE": "1", **environment}
    code = find_code(words, Path(environment.get("HOME") or "/nonexistent"))
    plain = ProgramProfile(own, readable=(*code, *find_named(how.environment.values()), folder), network="on")
    return StartTerms(words, folder, environment, widen(plain, how.is_boxed, project.root))


def _named_folder(how: LocalDefinition, directory: Path) -> Path | None:
    """Return the folder that a definition names. Raises CodeloopError when it is not there."""
    if not how.cwd:
        return None
    folder = directory / from_home(how.cwd)
    if not folder.is_dir():
        raise CodeloopError(f"its directory {folder} does not exist")
    return folder


def _is_inside(folder: Path, places: Sequence[Path]) -> bool:
    real = Path(os.path.realpath(folder))
    return any(real.is_relative_to(os.path.realpath(each)) for each in places)


def _from_project(word: str, directory: Path) -> str:
    """Return a word of a command; one that begins with a dot, as paths of the project do, as an absolute path."""
    return os.path.normpath(directory / word) if word in _HERE or word.startswith(("./", "../")) else word


def _program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    if "/" in name:
        return os.path.normpath(folder / from_home(name))
    found = which(name, environment.get("PATH"))
    if found is None:
        raise CodeloopError(f"There is no program {name!r} on the PATH. Install it, or give its path as `command`.")
    return found
