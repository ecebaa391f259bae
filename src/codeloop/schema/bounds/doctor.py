"""Limits of `codeloop doctor`."""

from codeloop.kit.limit import Limit

DOCTOR_PROGRAM = Limit(
    "doctor.program", 2_000, "ms", "a program says its version, else it counts as missing"
)
DOCTOR_ONLINE = Limit(
    "doctor.online", 30_000, "ms", "a model or an MCP server answers, else that is a problem"
)
DOCTOR_PROXY = Limit(
    "doctor.proxy", 2_000, "ms", "a proxy takes a connection, else it counts as unreachable"
)
DOCTOR_SPACE = Limit("doctor.space", 1024**3, "bytes", "less room on the disk is a warning")
DOCTOR_SPACE_LEAST = Limit(
    "doctor.space_least", 100 * 1024**2, "bytes", "less room on the disk is a problem"
)
