"""Says what the sandbox of this machine can't do: to users, to the model and in reports."""

from collections.abc import Collection
from pathlib import Path

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.sandbox.sandbox import Sandbox

NO_SANDBOX_NOTICE = (
    "No sandbox can be had on this machine, so commands run without one, and the profile auto asks about those that "
    "are not proved to change nothing. `codeloop debug sandbox` says why."
)
_WHOLE_SYSTEM = Path("/")
WHOLE_SYSTEM_REASON = (
    "a sandbox can't be made around /, the whole file system; start codeloop in a project's folder"
)
_WHOLE_SYSTEM_NOTICE = (
    "Commands run without a sandbox here, and the profile auto asks about those that are not proved to change nothing: "
    f"{WHOLE_SYSTEM_REASON}."
)
_REQUIRED_NOTICE = (
    "No sandbox can be had on this machine, and the configuration requires one (sandbox), so no command can be run. "
    "`codeloop debug sandbox` says why."
)
_LANDLOCK_NOTICE = "Only Landlock can be had on this machine, a weaker sandbox: {}. `codeloop debug sandbox` says why."
_NO_NETWORK = "commands have no network, not even localhost"
_NO_LOCALHOST = "commands can't use localhost either"
_NETWORK_ADVICE = (
    f'{_NO_NETWORK}, unless you give them all of it with "sandbox": '
    f'{{"network": "on"}} in your configuration'
)
_NO_SECRETS = (
    "secrets of a project (.env and the like) can't be hidden: where there are any, auto asks"
)
_NO_LAYERS = "the caches of your tools are not seen: what commands download is kept for each project by itself"
_LANDLOCK_REST = (
    "hooks and settings of git are put back after a command instead of kept from it",
    "your home is not replaced: tools that can't be pointed to another cache fail to write theirs",
    "commands can't open terminals or sockets with a path",
)


def list_shortcomings(backend: str, network: str, lacks: Collection[str]) -> list[str]:
    """Return the shortcomings of a backend in a network mode, in clauses.
    `lacks`: as of `Confinement`.
    """
    clauses: list[str] = []
    if backend == "landlock":
        clauses += [*_list_landlock_network(network), _NO_SECRETS, *_LANDLOCK_REST]
        clauses += ["commands can end your other programs"] if "scope" in lacks else []
    elif "scope" in lacks and network == "on":
        clauses.append("commands reach those sockets of your other programs that have no path")
    return [*clauses, _NO_LAYERS] if "layers" in lacks else clauses


def is_whole_system(root: Path) -> bool:
    """Return whether a project is the whole file system: nothing would be left
    for a sandbox to protect.
    """
    return root == _WHOLE_SYSTEM


def describe_for_user(sandbox: Sandbox | None, config: SandboxConfig, root: Path) -> str:
    """Return a notice on what the sandbox (None: there is none) can't do that users will meet;
    "": it is a full one.

    `root`: the top of the project.
    """
    if sandbox is None and config.mode != "required" and is_whole_system(root):
        return _WHOLE_SYSTEM_NOTICE
    if sandbox is None:
        return _REQUIRED_NOTICE if config.mode == "required" else NO_SANDBOX_NOTICE
    if sandbox.backend == "landlock":
        network = (
            [_NETWORK_ADVICE]
            if config.network == "hosts"
            else _list_landlock_network(config.network)
        )
        return _LANDLOCK_NOTICE.format("; ".join([*network, _NO_SECRETS]))
    if sandbox.backend == "namespaces" and "layers" in sandbox.lacks:
        return f"The sandbox of this machine has no overlays: {_NO_LAYERS}."
    return ""


def describe_for_model(sandbox: Sandbox | None, config: SandboxConfig) -> str:
    """Return a sentence for the model; "": nothing that it would have to know."""
    if sandbox is None:
        return "Sandbox: none on this machine; the user is asked about commands that may change something."
    if sandbox.backend == "landlock" and config.network != "on":
        return f"Sandbox: {_NO_NETWORK}; what needs one can only run with `outside`."
    return ""


def _list_landlock_network(network: str) -> list[str]:
    return {"hosts": [_NO_NETWORK], "off": [_NO_LOCALHOST]}.get(network, [])
