"""Limits of a program that a test starts: those that end a wait are long,
since a busy machine is slower than a user's.

A test of such a limit sets it itself.
"""

from collections.abc import Mapping

from codeloop.kit.limit import Limit

LONG_LIMIT = Limit("test", 60_000, "ms", "for a test")
"""In place of one that is not the subject of a test."""
PATIENT_LIMITS = {
    "limits.DISCOVER_TIME": 20_000,
    "limits.SNAPSHOT_COMPARE": 60_000,
    "cloud.CLOUD_METADATA": 60_000,
    "doctor.DOCTOR_PROGRAM": 60_000,
    "doctor.DOCTOR_PROXY": 60_000,
    "extension.HOOK_ANSWER_TIME": 60_000,
    "extension.HOST_START": 60_000,
    "extension.HOST_WAIT": 60_000,
    "extension.PROGRAM_SCHEMA": 60_000,
    "language_tools.FORMAT_TIME": 60_000,
    "sandbox.SANDBOX_START": 60_000,
}
"""By module and name, with values in ms."""


def make_limit_code(values: Mapping[str, int]) -> str:
    """Return code that sets limits, to be run before the modules that use them are imported.

    `values`: by the names in `schema/limits.py`,
    or as `MODULE.NAME` of a module in `schema/bounds/`, or `automation.NAME`.
    """
    rows = [(name if "." in name else f"limits.{name}", value) for name, value in values.items()]
    modules = sorted({name.partition(".")[0] for name, _ in rows} - {"limits"})
    return "".join(
        (
            "from codeloop.schema import limits; ",
            *(
                "from codeloop_automation import bounds as automation; "
                if module == "automation"
                else f"from codeloop.schema.bounds import {module}; "
                for module in modules
            ),
            "from codeloop.schema.wire import replace; ",
            *(f"{name} = replace({name}, value={value}); " for name, value in rows),
        )
    )
