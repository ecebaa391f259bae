"""Limits of extensions and their processes, of hooks, of calls that go on for long,
and of clients' tools.
"""

from codeloop.kit.limit import Limit

HOST_START = Limit(
    "host.start", 10_000, "ms", "a host of extensions starting and greeting, then it has failed"
)
HOST_LOAD = Limit("host.load", 30_000, "ms", "an extension being imported, then it has failed")
HOST_CALL = Limit(
    "host.call",
    600_000,
    "ms",
    "an extension's tool working, then the call is cancelled and has failed",
)
HOST_VERSION = Limit(
    "host.version", 10_000, "ms", "node saying its version to the doctor, then it counts as broken"
)
HOST_SIGN_IN = Limit(
    "host.sign_in", 600_000, "ms", "a sign-in with a plugin being waited for, then it has failed"
)
HOST_STOP = Limit(
    "host.stop",
    2_000,
    "ms",
    "a cancelled call, or the last events once loaded: then the host is ended",
)
HOST_SLOW_ANSWER = Limit(
    "host.slow_answer", 100, "ms", "an extension answering; what takes longer is noted in its log"
)
HOST_WAIT = Limit(
    "host.wait",
    5_000,
    "ms",
    "the first request, or the last events, waiting for extensions to load",
)
HOST_BACK_OFF = Limit(
    "host.back_off", 500, "ms", "before a host that failed is started again; doubles each time"
)
HOST_BACK_OFF_MOST = Limit("host.back_off_most", 60_000, "ms", "the longest of these pauses")
HOST_RESTART_WAIT = Limit(
    "host.restart_wait", 1_000, "ms", "a call waits for a shorter pause, or else fails"
)
HOST_MESSAGE_BYTES = Limit(
    "host.message_bytes",
    50_000_000,
    "bytes",
    "a longer message of a host ends it; of its results, they fail",
)
HOST_METADATA = Limit(
    "host.metadata", 256 * 1024, "bytes", "more metadata of a result is left out, which is said"
)
HOST_EVENTS = Limit(
    "host.events", 1_000, "count", "events that a host has not dealt with; then it misses deltas"
)
HOST_EVENTS_MOST = Limit(
    "host.events_most", 10_000, "count", "the same of other events; then it misses those, too"
)
HOST_ENTRIES = Limit(
    "host.entries", 200, "count", "extensions of a project; further files are named and left out"
)
HOST_WATCHED_FILES = Limit(
    "host.watched_files", 1_000, "count", "files beside an extension whose change loads it again"
)
HOST_FILE = Limit("host.file", 4 * 1024 * 1024, "bytes", "of a file that is looked at for changes")
PROGRAM_SCHEMA = Limit(
    "program.schema", 10_000, "ms", "a program in tool/ answering --schema, then it is not a tool"
)
PROGRAM_OUTPUT = Limit(
    "program.output",
    10_000_000,
    "bytes",
    "what a program in tool/ prints; with more the call fails",
)
HOOK_STOPS = Limit(
    "hooks.stops", 5, "count", "times that hooks send the model on in one turn, then it ends"
)
HOOK_ANSWERS = Limit(
    "hooks.answers", 2_000, "count", "answers about tools that are kept, so that each is asked once"
)
HOOK_COMMAND = Limit(
    "hooks.command", 60_000, "ms", "a command of `hooks`, unless it has a timeout; then it is ended"
)
HOOK_OUTPUT = Limit(
    "hooks.output",
    1024 * 1024,
    "bytes",
    "what a command of `hooks` prints; with more it has failed",
)
HOOK_PROMPT = Limit(
    "hooks.prompt", 30_000, "ms", "a model judging for `hooks`, unless the row has a timeout"
)
HOOK_AGENT = Limit(
    "hooks.agent", 60_000, "ms", "a subagent judging for `hooks`, unless the row has a timeout"
)
MCP_CALL_LONGEST = Limit(
    "mcp.call_longest",
    3_600_000,
    "ms",
    "a call with signs of progress, unless its timeout is longer",
)
MCP_HANDED_FILE = Limit(
    "mcp.handed_file",
    100 * 1024 * 1024,
    "bytes",
    "a file that a server names in a result and that only the server sees; a larger one is not copied",
)
MCP_CHANGES = Limit(
    "mcp.changes",
    200,
    "ms",
    "changes of a server's lists are taken up together, this long after one",
)
HOOK_VERDICTS = Limit(
    "hooks.verdicts",
    2,
    "count",
    "tries of a model to judge in the form asked for, then it has failed",
)
HOOK_PROMPT_TEXT = Limit(
    "hooks.prompt_text",
    100_000,
    "characters",
    "of a longer text for a judging model, the middle is left out",
)
HOOK_TRANSCRIPT = Limit(
    "hooks.transcript",
    8 * 1024 * 1024,
    "bytes",
    "a session as hooks read it; its oldest are left out",
)
HOOK_TRANSCRIPTS = Limit(
    "hooks.transcripts", 200, "count", "sessions of a project that are kept for hooks to read"
)
HOOK_MEDIAN_SAMPLES = Limit(
    "hooks.median_samples",
    200,
    "count",
    "times of a handler at a hook that are kept for its median",
)
HOOK_TIMINGS = Limit(
    "hooks.timings", 500, "count", "handlers and hooks of a project whose calls are counted"
)
HOOK_TIMINGS_EVERY = Limit(
    "hooks.timings_every", 5_000, "ms", "between two times that the counts are written to the disk"
)
HOOK_TIMINGS_LOCK = Limit(
    "hooks.timings_lock", 200, "ms", "other processes writing theirs, then these counts are lost"
)
HOOK_ANSWER_TIME = Limit(
    "hooks.answer_time",
    5_000,
    "ms",
    "an extension answering at a hook, then it is named and passed over",
)
CLIENT_TOOLS = Limit(
    "client.tools",
    15_000,
    "ms",
    "a client's tools, unless it offers them again; then they are gone",
)
CLIENT_TOOL_CALL = Limit(
    "client.tool_call",
    3_600_000,
    "ms",
    "a client at work on a call, without a report; then an error",
)
CLIENT_OFFERS = Limit(
    "client.offers", 16, "count", "clients that offer tools to a session; a further one is refused"
)
PLUGIN_INSTALL = Limit("plugin.install", 900_000, "ms", "installing a plugin, then it is given up")
