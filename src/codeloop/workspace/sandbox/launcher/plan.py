"""What a sandbox is made of, as it comes over a socket: rows of a name and a value."""

from typing import NamedTuple

from codeloop.workspace.sandbox.launcher.usage import Bounds


class Plan(NamedTuple):
    """What the sandbox's processes may do. Each path is absolute, without links, and there.

    `writable`: folders and files that may be written; `protected`: those below them that may not; `visible`: what must
    be seen although it lies in a folder that is replaced; `hidden`: unreadable. `temporary`: the folder that stands for
    `/tmp`. `network`: whether that of the machine may be used; `bounds`: what one command may use.
    """

    kind: str
    writable: tuple[str, ...]
    protected: tuple[str, ...]
    visible: tuple[str, ...]
    hidden: tuple[str, ...]
    temporary: str
    network: bool
    is_nested: bool
    bounds: Bounds


def read_plan(rows: list[str]) -> Plan:
    """Return the plan of rows `name value`."""
    found: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(" ")
        found.setdefault(name, []).append(value)
    one = {name: values[0] for name, values in found.items()}
    return Plan(
        kind=one["kind"],
        writable=tuple(found.get("writable", ())),
        protected=tuple(found.get("protected", ())),
        visible=tuple(found.get("visible", ())),
        hidden=tuple(found.get("hidden", ())),
        temporary=one.get("temporary", ""),
        network=one.get("network") == "on",
        is_nested="nested" in one,
        bounds=Bounds(int(one.get("processes", "0")), int(one.get("memory", "0"))),
    )
