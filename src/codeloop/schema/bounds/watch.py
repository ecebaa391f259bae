"""Limits of watching the files of a project."""

from codeloop.kit.limit import Limit

WATCH_FOLDERS = Limit(
    "watch.folders",
    100_000,
    "count",
    "watched folders; with more, only files that were read are polled",
)
WATCH_THROTTLE = Limit(
    "watch.throttle", 100, "ms", "changes of files are reported together, this long after the first"
)
WATCH_BURST = Limit(
    "watch.burst", 1_000, "count", "changes of files reported at once; further ones are left out"
)
WATCH_POLL = Limit("watch.poll", 2_000, "ms", "how often files are polled that can't be watched")
WATCH_POLLED_FILES = Limit(
    "watch.polled_files",
    500,
    "count",
    "files polled where watching is not possible; those read last",
)
