"""Limits of the programs that inspect a project for us."""

from codeloop.kit.limit import Limit

PROGRAM_MEMORY = Limit("program.memory", 4 * 1024**3, "bytes", "memory of one ripgrep or git of ours; then it fails")
