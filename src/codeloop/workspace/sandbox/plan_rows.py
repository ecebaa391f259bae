"""A sandbox policy as the rows of the launcher's plan,
and which files its paths name at present.
"""

from pathlib import Path
from typing import NamedTuple

from codeloop.schema.wire import replace
from codeloop.workspace.sandbox.git_folders import PreparedGit
from codeloop.workspace.sandbox.launcher.libc import identify_file
from codeloop.workspace.sandbox.launcher.usage_watch import Bounds
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import OWN_CACHES_NAME, make_layer_name
from codeloop.workspace.sandbox.sandbox import Backend


class PlanFolders(NamedTuple):
    """What a plan names besides its policy: the temporary folder, the private one, if any,
    and the git folders.
    """

    temporary: Path
    private: Path | None
    git: PreparedGit


def adapt_policy(backend: Backend, policy: SandboxPolicy, folders: PlanFolders) -> SandboxPolicy:
    """Return a policy as a backend can carry it out."""
    if folders.git.mounts:
        # The real git folders are covered: nothing in them is written or protected.
        writable, protected = (
            tuple(path for path in paths if not is_below_any(path, policy.git_folders))
            for paths in (policy.writable, policy.protected)
        )
        # What stands in place of a file is hidden by that.
        points = {mount.point for mount in folders.git.mounts}
        hidden = tuple(path for path in policy.hidden if str(path) not in points)
        policy = replace(policy, writable=writable, protected=protected, hidden=hidden)
    if backend in {"landlock", "sandbox-exec"} and folders.private is not None:
        # These backends have no overlays: layered folders are read-only,
        # and variables lead tools to other caches.
        own_caches = folders.private / OWN_CACHES_NAME
        policy = replace(
            policy,
            writable=(*policy.writable, own_caches),
            visible=(*policy.visible, *policy.layered),
            layered=(),
        )
    return policy


def list_plan_rows(
    backend: Backend, policy: SandboxPolicy, folders: PlanFolders, bounds: Bounds
) -> list[str]:
    """Return the rows of a plan, as `launcher/plan.py` reads them.
    `policy`: of `adapt_policy`; `bounds`: those of each command.
    """
    rows = [f"kind {backend}", f"temporary {folders.temporary}"]
    rows += [
        f"processes {bounds.processes}",
        f"memory {bounds.memory}",
        *_list_policy_rows(policy),
    ]
    for mount in folders.git.mounts:
        rows += [
            f"bind {'rw' if mount.is_writable else 'ro'}",
            f"source {mount.source}",
            f"point {mount.point}",
        ]
    if folders.private is not None:
        rows += [
            f"private {folders.private}",
            *(f"layered {make_layer_name(path)} {path}" for path in policy.layered),
        ]
    return rows


def _list_policy_rows(policy: SandboxPolicy) -> list[str]:
    rows = [
        f"network {'on' if policy.network == 'on' else 'off'}",
        f"home {policy.home or ''}",
        f"home-name {policy.home_name}",
    ]
    for name in ("writable", "protected", "visible", "hidden", "replaced"):
        rows += [f"{name} {path}" for path in getattr(policy, name)]
    rows += [row for path, target in policy.links for row in (f"link {path}", f"target {target}")]
    rows += [f"replica {policy.replica}"] if policy.replica is not None else []
    return rows


def list_guarded(policy: SandboxPolicy) -> tuple[Path, ...]:
    """Return the paths at which a replaced file would not be mounted or covered."""
    return (*policy.writable, *policy.protected, *policy.hidden)


def identify_files(policy: SandboxPolicy) -> tuple[bytes, ...]:
    """Return the identity of each file that a policy's paths name now."""
    return tuple(map(identify_file, list_guarded(policy)))
