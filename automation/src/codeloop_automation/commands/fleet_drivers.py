"""Makes the drivers of a fleet, which say where its jobs run, from the options of
`codeloop fleet run`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codeloop.schema.errors import UsageProblem
from codeloop_automation.fleet.driver import Driver
from codeloop_automation.fleet.local_driver import LocalDriver
from codeloop_automation.fleet.remote.ray_driver import RayDriver
from codeloop_automation.fleet.remote.ssh_driver import SshDriver, SshSettings


def make_drivers(
    driver_names: Sequence[str], flags: dict[str, object], secret_variables: Sequence[str]
) -> list[Driver]:
    """Make a driver for each value of `--on`, and remove the options that are
    for drivers from `flags`.

    `secret_variables`: environment variables that agents on this machine must not inherit.
    Raises UsageProblem.
    """
    names = msgspec.convert(flags.pop("variables"), tuple[str, ...])
    if missing := [name for name in names if name not in os.environ]:
        raise UsageProblem(f"{missing[0]} is not set. Set it, or leave out `--env {missing[0]}`.")
    environment = {name: os.environ[name] for name in names}
    settings = SshSettings(str(flags.pop("program")), str(flags.pop("remote")), environment)
    drivers: list[Driver] = []
    # A repeated value counts once.
    for driver_name in dict.fromkeys(driver_names):
        kind, _, address = driver_name.partition(":")
        if driver_name == "here":
            drivers.append(LocalDriver(secret_variables))
        elif kind == "ssh":
            drivers.append(SshDriver(address, settings))
        elif kind == "ray":
            drivers.append(RayDriver(address or "auto", settings.codeloop, environment))
        else:
            raise UsageProblem(
                f"`--on {driver_name}` is not a valid place. Write `here`, `ssh:[USER@]HOST[:PORT]` or `ray:ADDRESS`."
            )
    return drivers


def make_pod_driver(file: Path, identity: str, flags: dict[str, object]) -> Driver:
    """Make the driver for the pods that `file` describes. `identity`: that of the fleet's table.

    Raises UsageProblem.
    """
    from codeloop_automation.fleet.kubernetes.cluster_access import find_access
    from codeloop_automation.fleet.kubernetes.driver import KubernetesDriver
    from codeloop_automation.fleet.kubernetes.manifest import read_pod_settings

    settings = read_pod_settings(file)
    access = find_access(os.environ, settings.context, settings.namespace)
    seconds = flags.get("timeout")
    return KubernetesDriver(
        access, identity, settings, seconds if isinstance(seconds, float) else None
    )
