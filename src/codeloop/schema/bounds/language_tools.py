"""Limits of formatters (`FORMAT_*`) and of language servers (`LSP_*`)."""

from codeloop.kit.limit import Limit

FORMAT_TIME = Limit(
    "format.time",
    5_000,
    "ms",
    "formatters working on the files of one edit; then these stay as written",
)
FORMAT_FILE = Limit("format.file", 4 * 1024 * 1024, "bytes", "a larger file is not formatted")
LSP_START = Limit(
    "lsp.start",
    30_000,
    "ms",
    "a language server starting and answering `initialize`; longer counts as a crash",
)
LSP_DIAGNOSTICS_TIME = Limit(
    "lsp.diagnostics_time",
    900,
    "ms",
    "an edit waiting for diagnostics; what comes later is in the next result",
)
LSP_FIRST_DIAGNOSTICS_TIME = Limit(
    "lsp.first_diagnostics_time",
    15_000,
    "ms",
    "as lsp.diagnostics_time, if the server has to start or to open the file",
)
LSP_LATE_DIAGNOSTICS_TIME = Limit(
    "lsp.late_diagnostics_time",
    30_000,
    "ms",
    "a language server working on an edit; longer counts as a crash",
)
LSP_OTHER_FILES_TIME = Limit(
    "lsp.other_files_time",
    150,
    "ms",
    "an edit waiting for errors in other files, after its own file's are there",
)
LSP_REQUEST = Limit(
    "lsp.request", 10_000, "ms", "a language server answering the tool, then an error"
)
LSP_TRIAL = Limit(
    "lsp.trial",
    15_000,
    "ms",
    "a language server starting for `lsp list`, then it is reported as not answering",
)
LSP_STOP = Limit(
    "lsp.stop", 500, "ms", "a language server ending when it is told to, then it is killed"
)
LSP_IDLE = Limit("lsp.idle", 600_000, "ms", "a language server that nobody uses, then it ends")
LSP_MEMORY = Limit(
    "lsp.memory",
    2_000_000_000,
    "bytes",
    "memory that a language server may use, then it is given up",
)
LSP_MEMORY_POLL = Limit(
    "lsp.memory_poll", 5_000, "ms", "how often the memory of language servers is looked at"
)
LSP_CRASHES = Limit(
    "lsp.crashes", 3, "count", "times that a language server fails, then it is given up"
)
LSP_SEARCHED_FOLDERS = Limit(
    "lsp.searched_folders",
    300,
    "count",
    "folders of a project looked at for files that a server serves",
)
LSP_PROCESSES_PER_SERVER = Limit(
    "lsp.processes_per_server",
    5,
    "count",
    "processes of one server, one for each root; then the oldest ends",
)
LSP_MESSAGE = Limit(
    "lsp.message", 32 * 1024 * 1024, "bytes", "a longer message ends a language server"
)
LSP_GARBAGE = Limit(
    "lsp.garbage",
    64 * 1024,
    "bytes",
    "output of a language server that is not a message; with more it is ended",
)
LSP_UNREAD = Limit(
    "lsp.unread",
    32 * 1024 * 1024,
    "bytes",
    "input that a language server has not read; with more it is ended",
)
LSP_MESSAGE_RATE = Limit(
    "lsp.message_rate", 2_000, "count", "messages of a language server in one second; others wait"
)
LSP_FILE_BYTES = Limit(
    "lsp.file_bytes", 2 * 1024 * 1024, "bytes", "a larger file is not shown to language servers"
)
LSP_OPEN_FILES = Limit(
    "lsp.open_files",
    50,
    "count",
    "files open in a language server; those used longest ago are closed",
)
LSP_READ_FILES = Limit(
    "lsp.read_files", 20, "count", "files that were read, checked for errors that an edit caused"
)
LSP_DEPENDENT_FILES = Limit(
    "lsp.dependent_files",
    20,
    "count",
    "files that use an edited one, checked for errors that the edit caused",
)
LSP_DEPENDENT_FILES_TIME = Limit(
    "lsp.dependent_files_time",
    300,
    "ms",
    "looking for files that use an edited one, then none are known",
)
LSP_DIAGNOSTICS_PER_FILE = Limit(
    "lsp.diagnostics_per_file",
    500,
    "count",
    "diagnostics kept of one file; further ones are counted",
)
LSP_DIAGNOSED_FILES = Limit(
    "lsp.diagnosed_files", 2_000, "count", "files of which a language server's diagnostics are kept"
)
LSP_DIAGNOSTICS_SHOWN = Limit(
    "lsp.diagnostics_shown",
    20,
    "count",
    "diagnostics in the result of an edit; further ones are counted",
)
LSP_LOCATIONS_SHOWN = Limit(
    "lsp.locations_shown",
    100,
    "count",
    "places in the result of the tool `lsp`; further ones are counted",
)
LSP_DEFINITION_LINES = Limit(
    "lsp.definition_lines", 40, "lines", "of a definition that the tool `lsp` shows"
)
LSP_OUTLINE_LINES = Limit("lsp.outline_lines", 150, "lines", "of the outline of a file")
LSP_INSTALL = Limit(
    "lsp.install", 900_000, "ms", "installing a language server, then it is given up"
)
