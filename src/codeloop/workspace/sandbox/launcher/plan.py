"""The plan of a sandbox, received over a socket as rows of a name and a value."""

from codeloop.workspace.sandbox.launcher.usage import Bounds


class Plan:
    """What the sandbox's processes may do. Each path is absolute, without links, and there.

    `writable`: folders and files that may be written; `protected`: those below them that may not; `hidden`: unreadable.
    `replaced`: folders of which nothing is there but what else is named, `visible`: read-only, and `links`, with where
    they lead. `home`: the one of them that `private` holds a folder for, with the layers of `layered`: their names
    there, and the caches. `temporary`: the folder that stands for `/tmp`. `network`: whether that of the machine may be
    used; `replica`: the folder that is mounted at the first of the writable ones; `bounds`: what one command may use.
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
    found: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(" ")
        found.setdefault(name, []).append(value)
    one = {name: values[0] for name, values in found.items()}
    plan = Plan()
    plan.kind = one["kind"]
    plan.writable = tuple(found.get("writable", ()))
    plan.protected = tuple(found.get("protected", ()))
    plan.visible = tuple(found.get("visible", ()))
    plan.hidden = tuple(found.get("hidden", ()))
    plan.layered = tuple((row.partition(" ")[0], row.partition(" ")[2]) for row in found.get("layered", ()))
    plan.replaced = tuple(found.get("replaced", ()))
    plan.links = tuple(zip(found.get("link", ()), found.get("target", ()), strict=True))
    plan.home = one.get("home", "")
    plan.private = one.get("private", "")
    plan.temporary = one.get("temporary", "")
    plan.replica = one.get("replica", "")
    plan.network = one.get("network") == "on"
    plan.bounds = Bounds(int(one.get("processes", "0")), int(one.get("memory", "0")))
    return plan
