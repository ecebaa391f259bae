"""Limits of formatters (`FORMAT_*`), of watching files (`WATCH_*`) and of language servers (`LSP_*`)."""

from codeloop.kit.limit import Limit

FORMAT_TIME = Limit("format.time", 5_000, "ms", "formatters working on the files of one edit; then it stays as written")
FORMAT_FILE = Limit("format.file", 4 * 1024 * 1024, "bytes", "a larger file is not formatted")
WATCH_FOLDERS = Limit("watch.folders", 100_000, "count", "folders that are watched; with more only what was read is")
WATCH_THROTTLE = Limit("watch.gather", 100, "ms", "changes of files are told together, this long after the first")
WATCH_BURST = Limit("watch.burst", 1_000, "count", "changes of files told at once; further ones are left out")
WATCH_POLL = Limit("watch.poll", 2_000, "ms", "how often files are looked at that can't be watched")
WATCH_POLLED_FILES = Limit(
    "watch.polled", 500, "count", "files looked at where watching is not possible; those read last"
)
LSP_START = Limit("lsp.start", 30_000, "ms", "a language server starting and greeting, then it has failed once")
LSP_DIAGNOSTICS_TIME = Limit(
    "lsp.wait", 900, "ms", "an edit waiting for diagnostics; what comes later is in the next result"
)
LSP_FIRST_DIAGNOSTICS_TIME = Limit(
    "lsp.first", 15_000, "ms", "the same where a language server has to start, or to open the file first"
)
LSP_LATE_DIAGNOSTICS_TIME = Limit(
    "lsp.late", 30_000, "ms", "a language server working on an edit, then it has failed once"
)
LSP_OTHER_FILES_TIME = Limit(
    "lsp.others", 150, "ms", "an edit waiting for what it broke elsewhere, once its own file is known"
)
LSP_REQUEST = Limit("lsp.request", 10_000, "ms", "a language server answering the tool, then an error")
LSP_TRIAL = Limit("lsp.trial", 15_000, "ms", "a language server starting for `lsp list`, then it is said to be slow")
LSP_STOP = Limit("lsp.stop", 500, "ms", "a language server ending when it is told to, then it is killed")
LSP_IDLE = Limit("lsp.idle", 600_000, "ms", "a language server that nobody uses, then it ends")
LSP_MEMORY = Limit("lsp.memory", 2_000, "count", "megabytes that a language server may use, then it is given up")
LSP_MEMORY_POLL = Limit("lsp.look", 5_000, "ms", "how often the memory of language servers is looked at")
LSP_CRASHES = Limit("lsp.crashes", 3, "count", "times that a language server fails, then it is given up")
LSP_SEARCHED_FOLDERS = Limit(
    "lsp.folders", 300, "count", "folders of a project looked at for files that a server serves"
)
LSP_PROCESSES_PER_SERVER = Limit(
    "lsp.roots", 5, "count", "processes of a server that serves one root each; then the oldest ends"
)
LSP_MESSAGE = Limit("lsp.message", 32 * 1024 * 1024, "bytes", "a longer message ends a language server")
LSP_GARBAGE = Limit("lsp.garbage", 64 * 1024, "bytes", "what a language server may say that is no message")
LSP_UNREAD = Limit("lsp.unread", 32 * 1024 * 1024, "bytes", "what a language server may leave unread, then it is ended")
LSP_MESSAGE_RATE = Limit("lsp.rate", 2_000, "count", "messages of a language server in one second; others wait")
LSP_FILE_BYTES = Limit("lsp.file", 2 * 1024 * 1024, "bytes", "a larger file is not shown to language servers")
LSP_OPEN_FILES = Limit("lsp.open", 50, "count", "files open in a language server; those used longest ago are closed")
LSP_READ_FILES = Limit("lsp.known", 20, "count", "files that were read, looked at for what an edit broke")
LSP_DEPENDENT_FILES = Limit("lsp.users", 20, "count", "files that use an edited one, looked at for what the edit broke")
LSP_DEPENDENT_FILES_TIME = Limit(
    "lsp.users_time", 300, "ms", "looking for files that use an edited one, then none are known"
)
LSP_DIAGNOSTICS_PER_FILE = Limit("lsp.kept", 500, "count", "diagnostics kept of one file; further ones are counted")
LSP_DIAGNOSED_FILES = Limit("lsp.files", 2_000, "count", "files of which a language server's diagnostics are kept")
LSP_DIAGNOSTICS_SHOWN = Limit(
    "lsp.shown", 20, "count", "diagnostics in the result of an edit; further ones are counted"
)
LSP_LOCATIONS_SHOWN = Limit(
    "lsp.found", 100, "count", "places in the result of the tool `lsp`; further ones are counted"
)
LSP_DEFINITION_LINES = Limit("lsp.lines", 40, "lines", "of a definition that the tool `lsp` shows")
LSP_OUTLINE_LINES = Limit("lsp.outline", 150, "lines", "of the outline of a file")
LSP_INSTALL = Limit("lsp.install", 900_000, "ms", "installing a language server, then it is given up")
