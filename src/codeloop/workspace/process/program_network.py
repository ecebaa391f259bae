"""The network of a program in a sandbox: what leads to it, and what its proxy refused."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from codeloop.kit.child_process import Launch
from codeloop.workspace.sandbox.sandbox import Sandbox
from codeloop.workspace.sandbox.sandboxes import Sandboxes


class ProgramNetwork(NamedTuple):
    """A program's environment, with what leads to its network;
    `list_refused`: as of SandboxedProcess.
    """

    environment: Mapping[str, str]
    list_refused: Callable[[], list[str]]


async def connect_program(
    sandboxes: Sandboxes, sandbox: Sandbox, launch: Launch, client: str
) -> ProgramNetwork:
    """Return the network of a program in a sandbox. `client`: its name at the proxy;
    "": it has no network.
    """
    if not client:
        offline = sandboxes.make_offline_environment(
            sandbox, launch.environment, launch.named_variables
        )
        return ProgramNetwork(offline.variables, list)
    environment = await sandboxes.make_environment(
        sandbox, client, launch.environment, launch.named_variables
    )
    proxy = sandboxes.find_proxy(sandbox)
    seen = proxy.refused_count if proxy is not None else 0

    def list_refused() -> list[str]:
        nonlocal seen
        if proxy is None:
            return []
        before, seen = seen, proxy.refused_count
        return proxy.list_refused(client, before)

    return ProgramNetwork(environment.variables, list_refused)
