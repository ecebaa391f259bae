"""The plan of a sandbox: what `sandboxes.py` sends to the launcher over a socket,
as rows of a name and a value.
"""

from codeloop.workspace.sandbox.launcher.usage_watch import Bounds


class Plan:
    """The rules of one sandbox, made from a `SandboxPolicy`. Each path is absolute;
    all but links are resolved.

    - `kind`: a backend of `sandboxes.py`; or `base` or `network`: only the
      namespaces that sandboxes share
    - `writable`: folders and files that may be written; `protected`: paths below these that may not
    - `hidden`: paths that can't be read
    - `replaced`: folders that look empty except for `visible` (read-only) and `links`
      (pairs of a path and its target)
    - `private`: our folder with the private home, of the name `home_name`, which is mounted at
      `home`, and with the layers of caches
    - `layered`: pairs of a layer's name and the cache that it covers
    - `temporary`: the folder that is mounted as `/tmp`;
      `network`: whether the machine's network may be used
    - `binds`: triples of a file or folder, the path at which it is mounted,
      and whether it may be written there
    - `replica`: a folder that is mounted at the first of the writable ones;
      `bounds`: the limits of each command
    """

    kind: str
    writable: tuple[str, ...]
    protected: tuple[str, ...]
    visible: tuple[str, ...]
    hidden: tuple[str, ...]
    layered: tuple[tuple[str, str], ...]
    replaced: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    binds: tuple[tuple[str, str, bool], ...]
    home: str
    home_name: str
    private: str
    temporary: str
    network: bool
    replica: str
    bounds: Bounds


def read_plan(rows: list[str]) -> Plan:
    """Parse rows of the form `name value`. A layer's value is a name, a blank and a path;
    a link has two rows.
    """
    values_by_name: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(" ")
        values_by_name.setdefault(name, []).append(value)
    # For the names that have one row.
    single_values = {name: values[0] for name, values in values_by_name.items()}
    plan = Plan()
    plan.kind = single_values["kind"]
    plan.writable = tuple(values_by_name.get("writable", ()))
    plan.protected = tuple(values_by_name.get("protected", ()))
    plan.visible = tuple(values_by_name.get("visible", ()))
    plan.hidden = tuple(values_by_name.get("hidden", ()))
    plan.layered = tuple(
        (row.partition(" ")[0], row.partition(" ")[2]) for row in values_by_name.get("layered", ())
    )
    plan.replaced = tuple(values_by_name.get("replaced", ()))
    plan.links = tuple(
        zip(values_by_name.get("link", ()), values_by_name.get("target", ()), strict=True)
    )
    kinds, sources, points = (values_by_name.get(name, ()) for name in ("bind", "source", "point"))
    plan.binds = tuple(
        (source, point, kind == "rw")
        for kind, source, point in zip(kinds, sources, points, strict=True)
    )
    plan.home = single_values.get("home", "")
    plan.home_name = single_values.get("home-name", "home")
    plan.private = single_values.get("private", "")
    plan.temporary = single_values.get("temporary", "")
    plan.replica = single_values.get("replica", "")
    plan.network = single_values.get("network") == "on"
    plan.bounds = Bounds(
        int(single_values.get("processes", "0")), int(single_values.get("memory", "0"))
    )
    return plan
