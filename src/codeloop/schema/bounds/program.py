"""Limits of the programs that inspect a project for us, show a notification or send messages,
and of copies of its last commit (`COMMIT_*`).
"""

from codeloop.kit.limit import Limit

PROGRAM_MEMORY = Limit(
    "program.memory", 4 * 1024**3, "bytes", "memory of one ripgrep or git of ours; then it fails"
)
COMMIT_FILES = Limit(
    "commit.files",
    50_000,
    "count",
    "files of the last commit, copied for a command that runs on it",
)
COMMIT_SIZE = Limit(
    "commit.size", 2_000_000_000, "bytes", "of such a copy, which is removed after the command"
)
COMMIT_SHOWN = Limit(
    "commit.shown", 200, "count", "ignored files and folders that are shown in such a copy"
)
COMMIT_LEFT = Limit(
    "commit.left", 3_600_000, "ms", "before a copy that a killed process left is removed"
)
STREAM_WAITING = Limit(
    "stream.waiting",
    1_000,
    "count",
    "messages of stream-json that wait for their turn; then stdin is not read on",
)
SCHEDULE_NOTIFY = Limit("schedule.notify", 5_000, "ms", "for the program that shows a notification")
