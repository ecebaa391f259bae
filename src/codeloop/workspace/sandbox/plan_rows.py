"""A sandbox policy as the rows of the launcher's plan,
and which files its paths name at present.
"""

from pathlib import Path

from codeloop.workspace.sandbox.launcher.libc import identify_file
from codeloop.workspace.sandbox.policy import SandboxPolicy


def list_plan_rows(policy: SandboxPolicy) -> list[str]:
    """Return a policy as rows of a plan, as `launcher/plan.py` reads them."""
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
