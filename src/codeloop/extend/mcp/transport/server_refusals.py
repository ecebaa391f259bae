"""What the sandbox of a local server may do, and what it has refused to the server."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.extend.mcp.definition import LocalDefinition, ServerDefinition
from codeloop.extend.mcp.transport.server_launch import (
    ServerLaunch,
    make_project_launch,
    make_user_launch,
)
from codeloop.extend.mcp.transport.transports import ServerDependencies
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.program_refusals import Said, find_program_refusals
from codeloop.workspace.process.program_sandboxes import PrivatePlaces, ProgramSandbox
from codeloop.workspace.sandbox.helper_refusals import (
    HelperRefusal,
    abbreviate,
    describe_refusals,
    forget_refusals,
    read_refusals,
)
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any, keep_outermost

_SYSTEM_FOLDERS = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc"))
)


class ServerAccess(Struct, frozen=True):
    """What a server may do in its sandbox. `readable`, `writable`: paths beyond the usual, as text;
    `places`: named paths that it may only read, which it may want to write, by what they are
    shown as.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    places: dict[str, Path] = {}
    network: str = "on"
    refused: tuple[HelperRefusal, ...] = ()

    def describe(self) -> str:
        """Return what it may do beyond the usual, as the end of a sentence."""
        parts = [
            f"may {verb} {', '.join(paths)}"
            for verb, paths in (("read", self.readable), ("write", self.writable))
            if paths
        ]
        if self.network != "on":
            parts.append(f"has the network mode {self.network}")
        return "; ".join(parts) or "may do the usual"


def find_server_refusals(
    definition: ServerDefinition,
    dependencies: ServerDependencies,
    text: str,
    given: Sequence[str] = (),
) -> list[HelperRefusal]:
    """Return the refusals of a server's sandbox, by what the server says. Reads the disk.
    `given`: the texts of the call that it answers.
    """
    server = _make_launch(definition, dependencies)
    if server is None or server.profile is None:
        return []
    return find_program_refusals(
        dependencies.program_sandboxes,
        server.launch,
        ProgramSandbox(server.profile),
        Said(text, server.named.places, given),
    )


def explain_server_refusals(
    definition: ServerDefinition,
    dependencies: ServerDependencies,
    text: str,
    given: Sequence[str] = (),
) -> str:
    """Return one line that names what the sandbox refused to a server,
    and the command that allows it; "": it refused nothing. `given`: the texts of the call.
    """
    refusals: list[HelperRefusal] = []
    # What it says is worth more than why: this must not turn an answer into an error.
    with suppress(OSError):
        refusals = find_server_refusals(definition, dependencies, text, given)
    if not refusals:
        return ""
    home = Path(dependencies.environment.get("HOME") or "/nonexistent")
    return describe_refusals(refusals, make_allow_command(definition.name), home)


def find_server_places(
    definition: ServerDefinition, dependencies: ServerDependencies
) -> tuple[Path, PrivatePlaces] | None:
    """Return the folder that a running server started in, and what only it sees;
    None: it has no sandbox.
    """
    server = _make_launch(definition, dependencies)
    if server is None or server.profile is None:
        return None
    places = dependencies.program_sandboxes.find_private_folders(server.profile)
    return None if places is None else (Path(server.launch.directory), places)


def make_allow_command(name: str) -> str:
    """Return the start of the command that allows a server more."""
    return f"codeloop mcp allow {name}"


def describe_access(
    definition: ServerDefinition, dependencies: ServerDependencies
) -> ServerAccess | None:
    """Return the access of a server; None: it runs without a sandbox, or can't be started.
    Reads the disk.
    """
    server = _make_launch(definition, dependencies)
    if server is None or server.profile is None:
        return None
    profile = server.profile
    home = Path(dependencies.environment.get("HOME") or "/nonexistent")
    # What any program sees is no news.
    readable = [
        each
        for each in keep_outermost((*profile.readable, *profile.named))
        if not is_below_any(each, _SYSTEM_FOLDERS)
    ]
    places = [each for each in server.named.places if not is_below_any(each, profile.writable)]
    return ServerAccess(
        _abbreviate((each for each in readable if each != profile.data_folder), home),
        _abbreviate(profile.writable, home),
        {abbreviate(str(each), home): each for each in places},
        profile.network,
        tuple(read_refusals(profile.data_folder)),
    )


def forget_server_refusals(definition: ServerDefinition, dependencies: ServerDependencies) -> None:
    """Remove the record of what a server was refused: its sandbox has changed."""
    forget_refusals(dependencies.get_server_folder(definition))


def _make_launch(
    definition: ServerDefinition, dependencies: ServerDependencies
) -> ServerLaunch | None:
    config = definition.config
    if not isinstance(config, LocalDefinition) or not dependencies.program_sandboxes.is_sandboxed(
        config.effective_sandbox
    ):
        return None
    make_launch = make_project_launch if definition.scope else make_user_launch
    try:
        return make_launch(
            config,
            dependencies.project,
            dependencies.environment,
            dependencies.get_server_folder(definition),
        )
    except (CodeloopError, OSError):
        return None


def _abbreviate(paths: Iterable[Path], home: Path) -> tuple[str, ...]:
    return tuple(abbreviate(str(path), home) for path in dict.fromkeys(paths))
