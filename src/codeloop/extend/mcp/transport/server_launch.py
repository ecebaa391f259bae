"""How the program of a local server is launched: its words, folder, environment and sandbox,
by whose server it is.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.extend.mcp.definition import LocalDefinition
from codeloop.extend.mcp.transport.agreed_places import read_answers
from codeloop.kit.child_process import Launch
from codeloop.kit.paths import expand_user_path
from codeloop.kit.programs import find_program
from codeloop.kit.small_files import create_private_folder, read_start
from codeloop.schema.config import SandboxConfig
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_FILE
from codeloop.schema.wire import replace
from codeloop.workspace.process.program_environment import make_program_environment
from codeloop.workspace.sandbox.named_paths import NamedPaths, expand_home, find_named_paths
from codeloop.workspace.sandbox.program_profile import ProgramProfile, widen_profile

# A folder that exists everywhere, and holds nothing of a project.
_ROOT_FOLDER = Path("/")
_DOT_FOLDERS = (".", "..")
_ASSIGNMENT = r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=(.*)$"
"""A line of a file of variables."""


class ServerProject(Struct, frozen=True):
    """The project that servers are started for: its directory and its top, both resolved,
    and whether it is trusted.

    `sandbox`: the configuration of its commands' sandbox.
    """

    directory: Path
    root: Path
    is_trusted: bool
    sandbox: SandboxConfig


class ServerLaunch(NamedTuple):
    """The launch of a server's program. `profile`: of its sandbox; None: it has none.
    `named`: the paths that it names.
    """

    launch: Launch
    profile: ProgramProfile | None
    named: NamedPaths = NamedPaths()


def make_user_launch(
    config: LocalDefinition,
    project: ServerProject,
    environment: Mapping[str, str],
    own_folder: Path,
) -> ServerLaunch:
    """Return the launch of a user's server, in `own_folder`.

    Interpreters and package runners take options and code from the folder that they start in, and
    from those above it. So that is a folder of the project only if the definition says so and the
    project is trusted. Raises CodeloopError.
    """
    project_folders = (project.directory, project.root)
    file_variables = _read_file_variables(config, project, is_users=True)
    folder = _find_folder(config, project.directory)
    if folder is None or (not project.is_trusted and _is_inside(folder, project_folders)):
        create_private_folder(own_folder)
        # The server's own folder lies inside the project when the user's data folder does.
        folder = _ROOT_FOLDER if _is_inside(own_folder, project_folders) else own_folder
    words = config.command
    if project.is_trusted:
        # A word that leads to something from a folder that the entry names means that.
        words = [
            word
            if config.cwd and (folder / word).exists()
            else _resolve_word(word, project.directory)
            for word in words
        ]
    configured = {**file_variables, **config.environment}
    variables = make_program_environment(environment, configured, project_folders)
    program = _find_program(words[0], folder, variables)
    profile = ProgramProfile(own_folder, network="on")
    command = program, *words[1:]
    return _make_launch(command, folder, variables, configured, config, project, profile)


def make_project_launch(
    config: LocalDefinition,
    project: ServerProject,
    environment: Mapping[str, str],
    own_folder: Path,
) -> ServerLaunch:
    """Return the launch of a trusted project's server, in the project's directory.
    Raises CodeloopError.

    It loads files that the model edits, so in a sandbox it reaches what commands reach,
    whatever its definition says.
    """
    file_variables = _read_file_variables(config, project, is_users=False)
    folder = _find_folder(config, project.directory) or project.directory
    configured = {**file_variables, **config.environment}
    variables = make_program_environment(environment, configured)
    program = _find_program(config.command[0], folder, variables)
    commands = project.sandbox
    profile = ProgramProfile(own_folder, network=commands.network, hosts=tuple(commands.hosts))
    command = program, *config.command[1:]
    made = _make_launch(command, folder, variables, configured, config, project, profile)
    if made.profile is None:
        return made
    return ServerLaunch(
        made.launch, replace(made.profile, network=profile.network, hosts=profile.hosts)
    )


def _make_launch(
    words: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    configured: Mapping[str, str],
    config: LocalDefinition,
    project: ServerProject,
    profile: ProgramProfile,
) -> ServerLaunch:
    """Return a launch. `configured`: the variables of the definition and of its `envFile`;
    `profile`: that of the sandbox, before what the command and the definition add.
    """
    if (
        project.directory in folder.parents
        or project.directory == folder
        or words[1:] != tuple(config.command[1:])
    ):
        # It may run code of the project (words that differ from the configured ones are paths
        # there): keep Python from leaving .pyc files in it.
        environment = {"PYTHONDONTWRITEBYTECODE": "1", **environment}
    home = Path(environment.get("HOME") or "/nonexistent")
    # No shell expands these, though READMEs write them.
    words = (words[0], *(_expand_word(each, home) for each in words[1:]))
    expanded = {name: _expand_word(each, home) for name, each in configured.items()}
    environment = {**environment, **expanded}
    named = find_named_paths(
        words,
        # The user has agreed to these alone: a file of variables may change at any time.
        [expanded[name] for name in config.environment],
        home,
        folder=folder,
        roots=(project.directory, project.root),
    )
    answers = read_answers(profile.data_folder)
    writable = tuple(each for each in named.places if answers.get(str(each)))
    sandbox_profile = widen_profile(
        replace(profile, readable=(folder,), named=named.readable, writable=writable),
        config.effective_sandbox,
        project.root,
    )
    launch = Launch(words, folder, environment, named_variables=frozenset(configured))
    return ServerLaunch(launch, sandbox_profile, named)


def _read_file_variables(
    config: LocalDefinition, project: ServerProject, *, is_users: bool
) -> dict[str, str]:
    """Return the variables of a definition's `envFile`.
    Raises CodeloopError if the file can't be read.
    """
    if not config.env_file:
        return {}
    file = project.directory / expand_user_path(config.env_file)
    is_inside = _is_inside(file, (project.directory, project.root))
    # A user's server takes nothing of a project that is not trusted;
    # a project's takes no file of the user's.
    if is_users and is_inside and not project.is_trusted:
        return {}
    if not is_users and not is_inside:
        raise CodeloopError(f"its envFile {file} is not in the project")
    try:
        text = read_start(file, MCP_FILE.value).decode(errors="replace")
    except OSError as error:
        raise CodeloopError(f"its envFile {file} can't be read: {error.strerror}") from error
    return {
        match[1]: match[2].strip().strip("\"'")
        for match in re.finditer(_ASSIGNMENT, text, re.MULTILINE)
    }


def _expand_word(word: str, home: Path) -> str:
    """Return a word with `~/` and `$HOME` replaced, unless it is a line of shell."""
    return word if re.search(r"\s", word) else expand_home(word, home)


def _find_folder(config: LocalDefinition, directory: Path) -> Path | None:
    """Return the folder that a definition names. Raises CodeloopError when it is not there."""
    if not config.cwd:
        return None
    folder = directory / expand_user_path(config.cwd)
    if not folder.is_dir():
        raise CodeloopError(f"its directory {folder} does not exist")
    return folder


def _is_inside(folder: Path, project_folders: Sequence[Path]) -> bool:
    real_folder = Path(os.path.realpath(folder))
    return any(real_folder.is_relative_to(os.path.realpath(each)) for each in project_folders)


def _resolve_word(word: str, directory: Path) -> str:
    """Return a word of a command; a relative path starting with a dot becomes absolute."""
    is_dot_path = word in _DOT_FOLDERS or word.startswith(("./", "../"))
    return os.path.normpath(directory / word) if is_dot_path else word


def _find_program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the absolute path of a program. Raises CodeloopError when it is not on the PATH."""
    if "/" in name:
        return os.path.normpath(folder / expand_user_path(name))
    path = find_program(name, environment.get("PATH"))
    if path is None:
        raise CodeloopError(
            f"There is no program {name!r} on the PATH. Install it, or give its path as `command`."
        )
    return path
