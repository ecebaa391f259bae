"""What bounds formatters, watching and language servers: rows of the table in `limits.py`, printed with them."""

from codeloop.kit.limit import Limit

FORMAT_TIME = Limit("format.time", 5_000, "ms", "formatters working on the files of one edit; then it stays as written")
FORMAT_FILE = Limit("format.file", 4 * 1024 * 1024, "bytes", "a larger file is not formatted")
WATCH_FOLDERS = Limit("watch.folders", 100_000, "count", "folders that are watched; with more only what was read is")
WATCH_GATHER = Limit("watch.gather", 100, "ms", "changes of files are told together, this long after the first")
WATCH_BURST = Limit("watch.burst", 1_000, "count", "changes of files told at once; further ones are left out")
WATCH_POLL = Limit("watch.poll", 2_000, "ms", "how often files are looked at that can't be watched")
WATCH_POLLED = Limit("watch.polled", 500, "count", "files looked at where watching is not possible; those read last")
LSP_START = Limit("lsp.start", 30_000, "ms", "a language server starting and greeting, then it has failed once")
LSP_WAIT = Limit("lsp.wait", 900, "ms", "an edit waiting for diagnostics; what comes later is in the next result")
LSP_LATE = Limit("lsp.late", 30_000, "ms", "a language server working on an edit, then it has failed once")
LSP_OTHERS = Limit("lsp.others", 150, "ms", "an edit waiting for what it broke elsewhere, once its own file is known")
LSP_REQUEST = Limit("lsp.request", 10_000, "ms", "a language server answering the tool, then an error")
LSP_OUTLINE_WAIT = Limit("lsp.outline_wait", 300, "ms", "a read waiting for an outline, then it goes without")
LSP_STOP = Limit("lsp.stop", 500, "ms", "a language server ending when it is told to, then it is killed")
LSP_IDLE = Limit("lsp.idle", 600_000, "ms", "a language server that nobody uses, then it ends")
LSP_MEMORY = Limit("lsp.memory", 2_000, "count", "megabytes that a language server may use, then it is given up")
LSP_LOOK = Limit("lsp.look", 5_000, "ms", "how often the memory of language servers is looked at")
LSP_CRASHES = Limit("lsp.crashes", 3, "count", "times that a language server fails, then it is given up")
LSP_ROOTS = Limit("lsp.roots", 5, "count", "processes of a server that serves one root each; then the oldest ends")
LSP_MESSAGE = Limit("lsp.message", 32 * 1024 * 1024, "bytes", "a longer message ends a language server")
LSP_GARBAGE = Limit("lsp.garbage", 64 * 1024, "bytes", "what a language server may say that is no message")
LSP_UNREAD = Limit("lsp.unread", 32 * 1024 * 1024, "bytes", "what a language server may leave unread, then it is ended")
LSP_RATE = Limit("lsp.rate", 2_000, "count", "messages of a language server in one second; others wait")
LSP_FILE = Limit("lsp.file", 2 * 1024 * 1024, "bytes", "a larger file is not shown to language servers")
LSP_OPEN = Limit("lsp.open", 50, "count", "files open in a language server; those used longest ago are closed")
LSP_KNOWN = Limit("lsp.known", 20, "count", "files that were read, looked at for what an edit broke")
LSP_USERS = Limit("lsp.users", 20, "count", "files that use an edited one, looked at for what the edit broke")
LSP_USERS_TIME = Limit("lsp.users_time", 300, "ms", "looking for files that use an edited one, then none are known")
LSP_KEPT = Limit("lsp.kept", 500, "count", "diagnostics kept of one file; further ones are counted")
LSP_FILES = Limit("lsp.files", 2_000, "count", "files of which a language server's diagnostics are kept")
LSP_SHOWN = Limit("lsp.shown", 20, "count", "diagnostics in the result of an edit; further ones are counted")
LSP_FOUND = Limit("lsp.found", 100, "count", "places in the result of the tool `lsp`; further ones are counted")
LSP_LINES = Limit("lsp.lines", 40, "lines", "of a definition that the tool `lsp` shows")
LSP_OUTLINE = Limit("lsp.outline", 150, "lines", "of the outline that follows the start of a long file")
LSP_INSTALL = Limit("lsp.install", 900_000, "ms", "installing a language server, then it is given up")


def rows() -> dict[str, object]:
    """Return the rows of this module, by name."""
    return globals()
