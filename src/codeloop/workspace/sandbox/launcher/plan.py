"""The plan of a sandbox, received over a socket as rows of a name and a value.

Modules of the launcher import little, since it has to start fast and stay small: no `msgspec`, `typing` or `pathlib`.
"""

from codeloop.workspace.sandbox.launcher.usage import Bounds


class Plan:
    """What the sandbox's processes may do. Each path is absolute, resolved, and exists. See `SandboxPolicy`.

    - `writable`: folders and files that may be written; `protected`: paths below these that may not
    - `hidden`: paths that can't be read
    - `replaced`: folders that look empty but for `visible` (read-only) and `links` (each with its target)
    - `home`: the replaced folder that `private` holds a folder for; `layered`: names of layers there, and their caches
    - `temporary`: the folder that stands for `/tmp`; `network`: whether that of the machine may be used
    - `replica`: the folder that is mounted at the first of the writable ones; `bounds`: what one command may use
    """

    kind: str
    writable: tuple[str, ...]
    protected: tuple[str, ...]
    visible: tuple[str, ...]
    hidden: tuple[str, ...]
    layered: tuple[tuple[str, str], ...]
    replaced: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    home: str
    private: str
    temporary: str
    network: bool
    replica: str
    bounds: Bounds


def read_plan(rows: list[str]) -> Plan:
    """Read the plan of rows `name value`; a layer is a name, a blank and a path, a link two rows."""
    values_by_name: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(" ")
        values_by_name.setdefault(name, []).append(value)
    one = {name: values[0] for name, values in values_by_name.items()}
    plan = Plan()
    plan.kind = one["kind"]
    plan.writable = tuple(values_by_name.get("writable", ()))
    plan.protected = tuple(values_by_name.get("protected", ()))
    plan.visible = tuple(values_by_name.get("visible", ()))
    plan.hidden = tuple(values_by_name.get("hidden", ()))
    plan.layered = tuple((row.partition(" ")[0], row.partition(" ")[2]) for row in values_by_name.get("layered", ()))
    plan.replaced = tuple(values_by_name.get("replaced", ()))
    plan.links = tuple(zip(values_by_name.get("link", ()), values_by_name.get("target", ()), strict=True))
    plan.home = one.get("home", "")
    plan.private = one.get("private", "")
    plan.temporary = one.get("temporary", "")
    plan.replica = one.get("replica", "")
    plan.network = one.get("network") == "on"
    plan.bounds = Bounds(int(one.get("processes", "0")), int(one.get("memory", "0")))
    return plan
