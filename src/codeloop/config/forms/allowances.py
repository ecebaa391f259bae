"""What the user allows a helper program beyond its sandbox, as changes of its entry."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct

from codeloop.kit.paths import expand_user_path
from codeloop.schema.wire import JSON


class Allowance(Struct, frozen=True):
    """What is allowed. `readable`, `writable`: paths; `hosts`: of a limited network;
    `variables`: names, or `NAME=VALUE`; `is_off`: no sandbox at all.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    is_off: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it allows nothing."""
        return self == Allowance()


def widen_entry(entry: JSON, allowance: Allowance) -> JSON:
    """Return the entry of a helper with more allowed. Its `sandbox` and `environment` change."""
    changed = {**entry}
    if (widened := widen_sandbox(entry.get("sandbox"), allowance)) is not None:
        changed["sandbox"] = widened
    if allowance.variables:
        pairs = (each.partition("=") for each in allowance.variables)
        new = {name: value if sign else f"{{env:{name}}}" for name, sign, value in pairs}
        changed["environment"] = {**(entry.get("environment") or {}), **new}
    return changed


def widen_sandbox(
    sandbox: Any, allowance: Allowance, *, network: Literal["on", "off"] = "on"
) -> JSON | bool | None:
    """Return the value of `sandbox` with more allowed, the same if it allows that already;
    False: none.

    `network`: what programs of this kind have where the value names none.
    """
    if allowance.is_off or sandbox is False:
        return False
    value: JSON = {**cast("JSON", sandbox)} if isinstance(sandbox, dict) else {}
    for key, more in (
        ("readable", write_paths(allowance.readable)),
        ("writable", write_paths(allowance.writable)),
    ):
        if more:
            value[key] = list(dict.fromkeys((*value.get(key, ()), *more)))
    # Where the network is not limited, a list of hosts would limit it.
    present = value.get("network") or ("hosts" if value.get("hosts") else network)
    if allowance.hosts and present != "on":
        value["network"] = "hosts"
        value["hosts"] = list(dict.fromkeys((*value.get("hosts", ()), *allowance.hosts)))
    return value or cast("bool | None", sandbox)


def write_paths(paths: Iterable[str]) -> list[str]:
    """Return paths as the configuration has them: absolute, or with `~/`."""
    return [
        path if path.startswith("~/") else str(Path.cwd() / expand_user_path(path))
        for path in paths
    ]
