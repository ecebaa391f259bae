"""Limits of sandboxed commands and the files that they leave."""

from codeloop.kit.limit import Limit

LAUNCHER_TIME = Limit(
    "shell.lost", 10_000, "ms", "a command to start or to end; then all that runs with it is killed"
)
SANDBOX_START = Limit(
    "sandbox.start",
    30_000,
    "ms",
    "a sandbox to start, then it is tried again; the third time its kind is unavailable",
)
SANDBOX_PRIVATE_AGE = Limit(
    "sandbox.private_age",
    2_592_000_000,
    "ms",
    "what a project's commands wrote to caches and the home, unused, stays",
)
SANDBOX_PRIVATE_SIZE = Limit(
    "sandbox.private_size",
    10_000_000_000,
    "bytes",
    "of that; what is larger is removed when nobody has it",
)
GIT_SEARCH_FOLDERS = Limit(
    "sandbox.git_folders", 400_000, "count", "folders of a project in which git is looked for"
)
GIT_SEARCH_NEW_FOLDERS = Limit(
    "sandbox.git_new",
    40_000,
    "count",
    "folders looked through so at a time; others after the next command",
)
GIT_SEARCH_TIME = Limit(
    "sandbox.git_time", 2_000, "ms", "of processor time, looking through older folders at a time"
)
GIT_LINK_SEARCH_FOLDERS = Limit(
    "sandbox.git_links", 5_000, "count", "folders of one git directory that are looked at for links"
)
NESTED_REPOSITORIES = Limit(
    "sandbox.repositories",
    400,
    "count",
    "repositories in a project that the kernel protects; others are looked at",
)
NESTED_PRIVATE = Limit(
    "sandbox.nested_private",
    20,
    "count",
    "repositories in a project of which commands can't take anything away either",
)
DENIED_ENTRIES = Limit(
    "sandbox.denied", 10_000, "count", "entries of a project in which denied files are looked for"
)
FILTERED_OBJECTS = Limit(
    "sandbox.filtered",
    1_000_000_000,
    "bytes",
    "packed objects; of larger repositories commands can read what hidden tracked files held",
)
SANDBOX_STRAYED = Limit(
    "sandbox.strayed",
    2_000,
    "count",
    "entries of the private home that are looked at after a command",
)
SNAPSHOT_COPY = Limit(
    "snapshot.copy", 1024 * 1024, "bytes", "a larger ignored file that a script overwrites is lost"
)
SNAPSHOT_COPIES = Limit(
    "snapshot.copies", 16 * 1024 * 1024, "bytes", "of all such files together; others are lost"
)
