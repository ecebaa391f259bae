"""Deadlines, sizes and counts that bound the program;
`bounds/` holds those of parts that are loaded late.
"""

from codeloop.kit.limit import Limit

# === Configuration and trust ===
CONFIG_BYTES = Limit("config.bytes", 1024 * 1024, "bytes", "a larger configuration file is refused")
CONFIG_DEPTH = Limit("config.depth", 128, "count", "configuration nested deeper is refused")
CONFIG_RULES = Limit(
    "config.rules", 200, "count", "more permission rules of an untrusted project are an error"
)
CONFIG_PATTERNS = Limit(
    "config.patterns", 32_000, "characters", "longer rules of an untrusted project are an error"
)
PROJECT_ID_TIME = Limit(
    "config.project_id", 10_000, "ms", "git looking for the root commit, then the path names it"
)
TRUST_LOCK = Limit(
    "config.trust_lock",
    2_000,
    "ms",
    "waiting for another process that changes the trust file, then an error",
)
TRUST_FILES = Limit(
    "config.trust_files",
    5_000,
    "count",
    "files that trust is bound to; with more it holds only once, by --trust",
)
TRUST_BYTES = Limit(
    "config.trust_bytes", 16 * 1024 * 1024, "bytes", "their size; with more it holds only once, too"
)
TRUST_LIST_BYTES = Limit(
    "config.trust_list", 16 * 1024 * 1024, "bytes", "a larger list of trusted folders is refused"
)
INSTRUCTION_BYTES = Limit(
    "config.instruction_bytes",
    64 * 1024,
    "bytes",
    "a longer instruction file is cut, with a warning",
)
INSTRUCTION_FILES = Limit(
    "config.instruction_files",
    50,
    "count",
    "instruction files read; further ones are named and left out",
)
INSTRUCTION_ENTRIES = Limit(
    "config.instruction_entries",
    20_000,
    "count",
    "directory entries looked at for `instructions`, then a warning",
)
# === The database ===
# Renewed three times in this span (`store/lease.py`): one late renewal does not lose the session.
LEASE_TIME = Limit(
    "store.lease",
    30_000,
    "ms",
    "a session's lease, unless it is renewed; then another process may take the session over",
)
# A transaction takes some 25 µs, so whoever waits this long waits for a process that hangs.
STORE_BUSY_TIME = Limit(
    "store.busy", 10_000, "ms", "waiting for another process's transaction, then an error"
)
STORE_POLL = Limit("store.poll", 40, "ms", "how often a follower looks for other processes' events")
STORE_POLL_IDLE = Limit(
    "store.poll_idle", 200, "ms", "the same, once there was no event for ten seconds"
)
STORE_POLL_REST = Limit(
    "store.poll_rest", 2_000, "ms", "the same, once there was no event for a minute"
)
STORE_QUEUE_EVENTS = Limit(
    "store.queue",
    20_000,
    "count",
    "live events that wait for one slow follower; deltas beyond are dropped",
)
STORE_EVENTS = Limit(
    "store.events", 20_000, "count", "stored events kept for replay; older ones are pruned"
)
STORE_DECISIONS = Limit(
    "store.decisions", 10_000, "count", "decisions about permissions kept; older ones are removed"
)
DECISION_PATTERNS = Limit(
    "store.decision_patterns", 20, "count", "patterns kept of one decision about a permission"
)
DECISION_PATTERN = Limit(
    "store.decision_pattern", 500, "characters", "kept of a pattern in a decision; the rest is cut"
)
# === Agents, commands and skills in files ===
EXTEND_FILES = Limit(
    "extend.files", 500, "count", "agents and commands read from files; further ones are left out"
)
EXTEND_ENTRIES = Limit(
    "extend.entries", 5_000, "count", "entries read of one folder of agents or skills"
)
EXTEND_DEPTH = Limit(
    "extend.depth", 6, "count", "folders inside folders of agents, commands or skills"
)
EXTEND_VALUES = Limit(
    "extend.values", 2_000, "count", "values in the head of one markdown file, then it is left out"
)
PAGE_BYTES = Limit(
    "extend.page_bytes",
    256 * 1024,
    "bytes",
    "a larger agent, command or skill is left out or refused",
)
MAX_SKILLS = Limit(
    "extend.skills", 200, "count", "skills that are found; further ones are left out"
)
SKILL_HEAD = Limit(
    "extend.skill_head", 16 * 1024, "bytes", "the head of a skill ends here, or it is left out"
)
SKILL_DESCRIPTION = Limit(
    "extend.skill_description",
    1_024,
    "characters",
    "the part of a skill's description that is shown",
)
SKILL_LISTING = Limit(
    "extend.skill_listing", 6 * 1024, "bytes", "the list of skills for the model; then names only"
)
SUBAGENT_LISTING = Limit(
    "extend.subagent_listing", 4 * 1024, "bytes", "subagents listed for the model; then names"
)
SKILL_FILES = Limit(
    "extend.skill_files", 50, "count", "files of a skill that are listed when it is loaded"
)
COMMAND_SHELLS = Limit(
    "extend.command_shells", 20, "count", "shell pieces of one command; with more it is refused"
)
COMMAND_FILES = Limit(
    "extend.command_files", 50, "count", "files that one command attaches; others stay text"
)
# === MCP servers ===
MCP_START = Limit(
    "mcp.start", 30_000, "ms", "starting a server and greeting it, then it counts as failed"
)
MCP_DOWNLOAD = Limit(
    "mcp.download",
    300_000,
    "ms",
    "starting a server that npx, uvx or docker may have to download, then it counts as failed",
)
MCP_SIGN_IN = Limit(
    "mcp.sign_in", 300_000, "ms", "a user signing in at a server, then the sign-in fails"
)
MCP_LIST = Limit("mcp.list", 15_000, "ms", "a server listing its tools, then it counts as failed")
MCP_LIST_OTHER = Limit(
    "mcp.list_other",
    5_000,
    "ms",
    "a server listing its resources or prompts, then they are left out",
)
MCP_CALL = Limit(
    "mcp.call",
    600_000,
    "ms",
    "a server working on a call without a sign of progress, then an error",
)
MCP_COMPLETE = Limit(
    "mcp.complete", 2_000, "ms", "a server completing an argument, then there are no completions"
)
MCP_STOP = Limit(
    "mcp.stop", 1_000, "ms", "a server ending by itself when its input ends; then it is killed"
)
MCP_RETRY = Limit(
    "mcp.retry",
    1_000,
    "ms",
    "before a server that failed is started again; doubled with each failure",
)
MCP_RETRY_MOST = Limit(
    "mcp.retry_most", 60_000, "ms", "the longest wait before a server that failed is started again"
)
MCP_MESSAGE = Limit(
    "mcp.message", 32 * 1024 * 1024, "bytes", "a longer message of a server ends the connection"
)
MCP_LOG = Limit(
    "mcp.log",
    256 * 1024,
    "bytes",
    "kept of what a server writes to stderr and to its log, twice at most",
)
MCP_PAGES = Limit(
    "mcp.pages", 100, "count", "pages of a server's list; further ones are not asked for"
)
MCP_TOOLS = Limit(
    "mcp.tools",
    1_000,
    "count",
    "tools, resources or prompts of one server; further ones are left out",
)
MCP_DESCRIPTION = Limit(
    "mcp.description", 4_000, "characters", "of a tool's description; the rest is cut"
)
MCP_SHARE = Limit(
    "mcp.share", 10, "percent", "of a model's context window that tools of servers may take"
)
# Below it, sending the tools in each request costs less than a search: docs/decisions/0024.
MCP_DIRECT = Limit(
    "mcp.direct",
    2_000,
    "tokens",
    "what tools of servers may take in a request; with more they are searched for",
)
MCP_INSTRUCTIONS = Limit(
    "mcp.instructions",
    160,
    "characters",
    "the part of a server's instructions that is shown with its tools",
)
MCP_SEARCH_SUMMARY = Limit(
    "mcp.search_summary",
    600,
    "characters",
    "what a search for tools says of all servers; more is left out",
)
MCP_SERVER_NAMES = Limit(
    "mcp.server_names", 400, "characters", "names of servers in a request; further ones are counted"
)
# Ten tools took 18 KB for one query, which is what searching is to save: docs/decisions/0024.
MCP_SEARCH_TOOLS = Limit(
    "mcp.search_tools", 2, "count", "tools that one search gives with parameters"
)
MCP_SEARCH_LINES = Limit(
    "mcp.search_lines", 40, "count", "tools that one search names; further ones are counted"
)
MCP_FILE = Limit(
    "mcp.file", 16 * 1024 * 1024, "bytes", "a larger cache of server listings is made anew"
)
MCP_PROJECT_FILES = Limit(
    "mcp.project_files", 50_000, "count", "in a larger project servers without a sandbox always ask"
)
MCP_KEEP_ALIVE = Limit(
    "mcp.keep_alive", 10_000, "ms", "a call of `mcp serve` without output; then it reports progress"
)
# === The command line ===
OUTPUT_READER_TIME = Limit(
    "cli.output_reader",
    500,
    "ms",
    "after a signal, a reader of our output that takes nothing this long counts as gone",
)
TURN_STOPPING = Limit(
    "cli.turn_stopping", 100, "ms", "a turn that takes longer to end is shown as still stopping"
)
BACKGROUND_START = Limit(
    "cli.background_start", 60_000, "ms", "for the session of a run that begins in the background"
)
BACKGROUND_WAIT = Limit(
    "cli.background_wait",
    1_800_000,
    "ms",
    "`run` waiting for background subagents after the answer, then it ends",
)
REDRAW_INTERVAL = Limit(
    "cli.redraw", 200, "ms", "how often a terminal shows what a run is waiting for"
)
TURN_EVENTS_TIME = Limit(
    "cli.turn_settle", 2_000, "ms", "waiting for the last events of a turn after its answer came"
)
ATTACH_SHOWN = Limit(
    "cli.attach_shown", 20, "count", "messages of a session that are shown when `attach` enters it"
)
ATTACH_LISTED = Limit("cli.attach_listed", 20, "count", "sessions that `/sessions` lists")
COMPLETIONS_SHOWN = Limit(
    "cli.completions",
    200,
    "count",
    "sessions, agents, models or commands that shell completion offers",
)
# === Projects and requests of clients ===
PROJECT_IDLE = Limit(
    "app.project_idle",
    600_000,
    "ms",
    "a directory that nobody asks for is closed, or ends its processes if it is followed; "
    "the next request opens it again",
)
PROJECT_CHECK = Limit(
    "app.project_check", 60_000, "ms", "how often idle directories are looked for"
)
OPEN_PROJECTS = Limit(
    "app.projects", 100, "count", "directories open at once; the longest unused one is closed"
)
CHOSEN_ID = Limit(
    "app.chosen_id", 128, "characters", "a longer id that a client chose for a message is refused"
)
ATTACHED_FILE = Limit(
    "app.attached_file", 5 * 1024 * 1024, "bytes", "a larger text file named in a prompt is refused"
)
ATTACHED_NAMES = Limit(
    "app.attached_names", 200, "count", "of a folder named in a prompt, more names are left out"
)
CLIENT_LOG = Limit(
    "app.client_log", 4_000, "characters", "a client's longer line for the log is cut"
)
SESSION_SEARCH_TIME = Limit(
    "app.session_search", 3_000, "ms", "a search in one session ends with what it has found"
)
SESSION_SEARCH_TEXT = Limit(
    "app.session_search_text", 500, "characters", "a longer text to search for is refused"
)
IMPORT_BYTES = Limit(
    "app.import_bytes", 256 * 1024 * 1024, "bytes", "a larger file of a session is not imported"
)
# === The log of a server ===
SERVER_LOG = Limit(
    "server.log",
    4 * 1024 * 1024,
    "bytes",
    "a longer log replaces the previous one, and a new one begins",
)
SERVER_LOG_LINE = Limit(
    "server.log_line", 16 * 1024, "characters", "a longer entry of the log is cut"
)
# === Clients of a server ===
CLIENT_CONNECT = Limit("client.connect", 5_000, "ms", "connecting to a server, then an error")
CLIENT_RESPONSE_TIME = Limit(
    "client.response_time",
    300_000,
    "ms",
    "waiting for an answer, except to a prompt; then an error",
)
CLIENT_KEEPALIVE = Limit(
    "client.keepalive", 3_000, "ms", "how long an unused connection is kept: servers close at 5 s"
)
CLIENT_ANSWER = Limit(
    "client.answer", 256 * 1024 * 1024, "bytes", "a longer answer of a server is not read"
)
CLIENT_EVENT = Limit(
    "client.event", 256 * 1024 * 1024, "bytes", "one event of a server, then following ends"
)
# Three times `server.heartbeat`: one late heartbeat is not a lost connection.
CLIENT_STREAM_IDLE = Limit(
    "client.stream_idle",
    30_000,
    "ms",
    "an event stream without a byte, three heartbeats long, is opened again",
)
CLIENT_BACKOFF = Limit(
    "client.backoff",
    100,
    "ms",
    "the wait before a lost event stream is opened again; doubled each time",
)
CLIENT_BACKOFF_MOST = Limit("client.backoff_most", 5_000, "ms", "the longest such wait")
CLIENT_HEARTBEAT = Limit(
    "client.heartbeat", 500, "ms", "how often a server is asked to send a heartbeat"
)
# Three times `client.heartbeat` and a bit: one late heartbeat is not silence.
CLIENT_UNRESPONSIVE_TIME = Limit(
    "client.unresponsive_time",
    1_750,
    "ms",
    "without a heartbeat; then the server is shown as silent",
)
CLIENT_GONE_TIME = Limit(
    "client.gone", 60_000, "ms", "a server that cannot be reached for this long is given up"
)
CLIENT_FILE = Limit(
    "client.file", 20 * 1024 * 1024, "bytes", "a larger file is not sent along to a server"
)
# === Models, their services, and credentials ===
MODEL_CONNECT = Limit(
    "model.connect", 15_000, "ms", "connecting to the model's service, then a retry"
)
MODEL_FIRST_BYTE = Limit(
    "model.first_byte", 300_000, "ms", "waiting for the first byte of an answer, then a retry"
)
MODEL_IDLE = Limit("model.idle", 120_000, "ms", "silence in the middle of an answer, then a retry")
MODEL_ATTEMPTS = Limit(
    "model.attempts", 5, "count", "tries of one request in all, then the turn ends with the error"
)
MODEL_FALLBACK_ATTEMPTS = Limit(
    "model.fallback_attempts",
    2,
    "count",
    "tries of one request where another model of `fallback` can take over",
)
MODEL_WAIT = Limit(
    "model.wait",
    60_000,
    "ms",
    "the longest wait before a retry; a service that asks for more ends the turn",
)
MODEL_NO_DEADLINE = Limit(
    "model.no_deadline",
    3_600_000,
    "ms",
    "waiting for a first byte when the configuration turns that deadline off",
)
CATALOG_AGE = Limit(
    "model.catalog_age", 86_400_000, "ms", "the model catalog is fetched again at most this often"
)
CATALOG_DELAY = Limit(
    "model.catalog_delay", 3_000, "ms", "a process must be this old before it fetches the catalog"
)
CATALOG_DEADLINE = Limit(
    "model.catalog_deadline", 20_000, "ms", "fetching the model catalog, then the old one stays"
)
CATALOG_BYTES = Limit(
    "model.catalog_bytes", 32 * 1024 * 1024, "bytes", "a larger catalog is not read"
)
DISCOVER_TIME = Limit(
    "model.discover", 150, "ms", "looking for a local model server, then none is assumed"
)
KEY_HELPER = Limit(
    "model.key_helper", 60_000, "ms", "a program or the keyring giving a key (it may ask the user)"
)
KEY_HELPER_TTL = Limit(
    "model.key_helper_ttl", 300_000, "ms", "a printed key is used again, then it is asked for anew"
)
LOCAL_STATUS_TIME = Limit(
    "model.local_ask",
    2_000,
    "ms",
    "a local server reporting its loaded models, then none is assumed loaded",
)
LOCAL_LOAD_TIME = Limit(
    "model.local_load", 180_000, "ms", "a local server loading a model; then the request goes ahead"
)
DISCOVER_BYTES = Limit(
    "model.discover_bytes",
    1024 * 1024,
    "bytes",
    "a local server's longer list of models is not read",
)
CREDENTIALS_LOCK = Limit(
    "model.credentials_lock",
    2_000,
    "ms",
    "waiting for another process that changes the credentials, then an error",
)
CREDENTIALS_BYTES = Limit(
    "model.credentials_bytes", 1024 * 1024, "bytes", "a larger credentials file is not read"
)
MODEL_BACKOFF = Limit(
    "model.backoff", 2_000, "ms", "the wait before the first retry; each further one is doubled"
)
MODEL_REFUSED_ATTEMPTS = Limit(
    "model.refused",
    4,
    "count",
    "tries while the address refuses connections or is unknown, then the error",
)
MODEL_REFUSED_BACKOFF = Limit(
    "model.refused_backoff",
    400,
    "ms",
    "the wait before the first retry of such a try; doubled with each",
)
MODEL_TAIL_TIME = Limit(
    "model.tail",
    5_000,
    "ms",
    "waiting for token counts after an answer's end, then they are unknown",
)
MODEL_GRACE_TIME = Limit(
    "model.grace", 50, "ms", "waiting for a complete answer's last bytes, then a hang-up"
)
MODEL_KEEPALIVE = Limit("model.keepalive", 60_000, "ms", "how long an unused connection is kept")
# Against an answer of some kilobytes that unpacks to gigabytes.
MODEL_INFLATED = Limit(
    "model.inflated", 16 * 1024 * 1024, "bytes", "what 256 KB of an answer may unpack to"
)
MODEL_ANSWER = Limit(
    "model.answer", 64 * 1024 * 1024, "bytes", "one event of an answer, then the answer is an error"
)
MODEL_ERROR_BODY = Limit(
    "model.error_body", 4_000, "characters", "kept of the text of a service's error"
)
MODEL_OUTPUT_TOKENS = Limit(
    "model.output", 32_000, "tokens", "asked for in one answer where the service wants a number"
)
KEY_LENGTH = Limit(
    "model.key_length",
    16_384,
    "characters",
    "a longer text is not a key but a file, and is refused",
)
# === Calls of tools and their outputs ===
TOOL_OUTPUT_LINES = Limit(
    "tool.output_lines", 2_000, "lines", "longer output is cut, the whole kept in a file"
)
TOOL_OUTPUT_BYTES = Limit(
    "tool.output_bytes", 50 * 1024, "bytes", "longer output is cut, the whole kept in a file"
)
STEP_OUTPUT_BYTES = Limit(
    "tool.step_bytes",
    120 * 1024,
    "bytes",
    "outputs of one step's calls; beyond that each further one is cut to 8 KB",
)
STEP_MIN_BYTES = Limit(
    "tool.step_min_bytes", 8 * 1024, "bytes", "of each output, whatever the others of its step take"
)
SCRATCH_AGE = Limit(
    "tool.scratch_age",
    7 * 86_400_000,
    "ms",
    "the file of a whole output is removed after this time",
)
SCRATCH_SIZE = Limit(
    "tool.scratch_size",
    1024 * 1024 * 1024,
    "bytes",
    "more files of outputs than this: the oldest are removed",
)
SCRATCH_DELAY = Limit(
    "tool.scratch_delay", 1_000, "ms", "a project is open this long before it looks for old files"
)
TOOL_ARGUMENTS = Limit(
    "tool.arguments", 4 * 1024 * 1024, "characters", "a call with longer arguments is refused"
)
TOOL_ITEMS = Limit(
    "tool.items", 2_000, "count", "a call with a longer list in its arguments is refused"
)
TOOL_DEPTH = Limit("tool.depth", 64, "count", "a call whose arguments are nested deeper is refused")
BASH_FILES = Limit(
    "tool.bash_files", 5_000, "count", "files that a word stands for; with more it may be any file"
)
TOOL_FILE = Limit("tool.file", 64 * 1024 * 1024, "bytes", "the file of a whole output ends here")
BATCH_CALLS = Limit("tool.batch_calls", 25, "count", "calls of one batch; more are refused")
# === Reading shell lines for permissions ===
BASH_SIZE = Limit(
    "permission.bash_size",
    64 * 1024,
    "characters",
    "a longer line is not read: it counts as unknown",
)
BASH_COMMANDS = Limit(
    "permission.bash_commands", 50, "count", "simple commands read of one line; the rest is unknown"
)
BASH_NESTING = Limit(
    "permission.bash_nesting", 8, "count", "commands inside commands; what is deeper is unknown"
)
BASH_NODES = Limit(
    "permission.bash_nodes", 8_000, "count", "a line with a larger syntax tree counts as unknown"
)
BASH_PARSE = Limit(
    "permission.bash_parse",
    80,
    "ms",
    "of processor time parsing one line; after that it is unknown",
)
# === Turns, subagents, compaction, titles ===
REPEATED_CALLS = Limit(
    "agent.repeated_calls",
    3,
    "count",
    "identical calls in a row, then the permission doom_loop is asked",
)
LOOPED_CALLS = Limit(
    "agent.looped_calls",
    8,
    "count",
    "equal calls with equal results, with no new edit: the turn ends",
)
REQUEST_IMAGES = Limit(
    "agent.images",
    100,
    "count",
    "images and PDFs of one request; a line stands for each further one",
)
REQUEST_IMAGES_BYTES = Limit(
    "agent.images_data",
    24 * 1024 * 1024,
    "bytes",
    "base64 of all images and PDFs of a request; as agent.images",
)
RUNNING_SUBAGENTS = Limit(
    "agent.subagents", 50, "count", "subagents of a project that work at once; further ones wait"
)
SUBAGENT_STEPS = Limit(
    "agent.subagent_steps", 100, "count", "requests of one task, unless its agent sets `steps`"
)
SUBAGENT_TIME = Limit(
    "agent.subagent_time", 3_600_000, "ms", "one task, then it is ended; questions don't count"
)
SUBAGENT_IDLE = Limit(
    "agent.subagent_idle", 900_000, "ms", "a subagent that shows nothing for this long is ended"
)
SUBAGENT_CHECK = Limit(
    "agent.subagent_check", 1_000, "ms", "how often a subagent's time limit is checked"
)
CHECKPOINT_INTERVAL = Limit(
    "agent.checkpoint", 1_000, "ms", "how often text that streams in is stored"
)
COMPACT_THRESHOLD = Limit(
    "agent.compact_at",
    90,
    "percent",
    "of the context, less the reserve for the answer; then it is compacted",
)
COMPACT_RESERVE = Limit(
    "agent.compact_reserve", 32_000, "tokens", "kept free for the answer, unless configured"
)
COMPACT_TAIL = Limit(
    "agent.compact_tail",
    10_000,
    "tokens",
    "the end of a conversation that a compaction leaves as it is",
)
KEPT_OUTPUTS = Limit(
    "agent.kept_outputs",
    40_000,
    "tokens",
    "the newest tool outputs, which stay when older ones are left out",
)
KEPT_PROMPTS = Limit(
    "agent.kept_prompts",
    16_000,
    "characters",
    "the user's own words that a compaction leaves as they are",
)
KEPT_PROMPT = Limit(
    "agent.kept_prompt", 100, "characters", "a shorter prompt counts as this in agent.kept_prompts"
)
KEPT_PINS = Limit(
    "agent.kept_pins",
    16_000,
    "characters",
    "pinned text that a compaction leaves as it is; the oldest beyond goes",
)
PRUNE_GAIN = Limit(
    "agent.prune_gain",
    20_000,
    "tokens",
    "what leaving old outputs out must save, else it is summarised",
)
SUMMARY_INPUT = Limit(
    "agent.summary_input",
    100_000,
    "tokens",
    "what a summary is made from when the context is unknown",
)
SUMMARY_OUTPUT = Limit("agent.summary_output", 8_000, "tokens", "the longest summary")
PROGRESS_INTERVAL = Limit(
    "agent.progress", 100, "ms", "how often a running tool's progress is shown"
)
FACTS_BYTES = Limit(
    "agent.facts",
    512,
    "bytes",
    "facts about the project in a request; more is left out and counted",
)
TITLE_TIME = Limit(
    "agent.title", 20_000, "ms", "making a title, then the prompt's first line stays the title"
)
TITLE_DELAY = Limit(
    "agent.title.pause",
    500,
    "ms",
    "between a turn and asking its own model for a title; a run that exits asks nothing",
)
TITLE_PROMPTS = Limit(
    "agent.title.prompts", 3, "count", "prompts after which a missing title is tried"
)
TITLE_THINKING = Limit(
    "agent.title.thinking", 2_000, "tokens", "the answer of a reasoning model that makes a title"
)
# === Editing files ===
WRITE_RECORD_BYTES = Limit(
    "file.write_note",
    16 * 1024 * 1024,
    "bytes",
    "the part that is read of the record of an unfinished write",
)
WRITE_RECORD_AGE = Limit(
    "file.write_note_age",
    86_400_000,
    "ms",
    "such a record of another machine is kept this long; those of this one are removed at once",
)
FILE_EDIT = Limit(
    "file.edit",
    64 * 1024 * 1024,
    "bytes",
    "a larger file is not edited or overwritten by file tools",
)
# === Commands and their shells ===
SHELL_TIMEOUT = Limit(
    "shell.timeout", 120_000, "ms", "a command that names no timeout goes on in the background then"
)
SHELL_TIMEOUT_MAX = Limit(
    "shell.timeout_max", 600_000, "ms", "the longest timeout a command may name"
)
SHELL_GRACE = Limit(
    "shell.grace",
    100,
    "ms",
    "processes that a finished command left running may go on this long, then are ended",
)
SHELL_INTERRUPT = Limit(
    "shell.interrupt",
    3_000,
    "ms",
    "an interrupted command reporting its directory, then it is ended",
)
SHELL_TERM_TIME = Limit("shell.term", 200, "ms", "from TERM to KILL when processes are ended")
LAUNCHER_ANSWER = Limit(
    "shell.launcher", 5_000, "ms", "the launcher of commands to end, then it is killed"
)
SHELL_REPORT = Limit(
    "shell.report", 100, "ms", "how often the output of a running command is shown"
)
SHELL_OUTPUT = Limit(
    "shell.output",
    30_000,
    "characters",
    "longer output keeps its head and tail, the whole in a file",
)
SHELL_FILE = Limit("shell.file", 64 * 1024 * 1024, "bytes", "the file of a whole output ends here")
SHELL_STATE = Limit(
    "shell.state", 100_000, "bytes", "an exported environment beyond this is not carried over"
)
SHELL_JOBS = Limit(
    "shell.jobs", 16, "count", "background commands that run at once; one more is refused"
)
SHELL_OVERDUE = Limit(
    "shell.overdue",
    600_000,
    "ms",
    "where nobody is there, a command past its timeout is waited for so long",
)
SHELL_WAIT = Limit(
    "shell.wait", 60_000, "ms", "the longest wait for new output of a background command"
)
# === Sandboxes of commands and their proxy ===
# Why both bounds are watched and not only set in the kernel: docs/decisions/0018.
SANDBOX_PROCESSES = Limit(
    "sandbox.processes",
    4_096,
    "count",
    "processes and threads of a sandboxed command; then it ends",
)
SANDBOX_MEMORY = Limit(
    "sandbox.memory", 75, "percent", "of the memory, for one sandboxed command; with more it ends"
)
SANDBOX_FOLDERS = Limit(
    "sandbox.folders", 400, "count", "folders of a project in which secret files are looked for"
)
SANDBOXES_KEPT = Limit(
    "sandbox.kept", 4, "count", "sandboxes of one project that are kept; idle ones beyond are ended"
)
PROXY_SESSIONS = Limit(
    "sandbox.proxy_sessions",
    64,
    "count",
    "sessions of one project whose commands reach hosts at the same time; "
    "a background command of one used longer ago no longer does",
)
SANDBOX_BLOCKED = Limit(
    "sandbox.blocked", 5, "count", "paths that a note names when a command was kept from them"
)
PROXY_CONNECTIONS = Limit(
    "sandbox.proxy_connections", 128, "count", "of a sandbox's commands at once; more are cut"
)
PROXY_HEAD = Limit(
    "sandbox.proxy_head",
    32 * 1024,
    "bytes",
    "a request from the sandbox with a longer head is refused",
)
PROXY_HEADERS = Limit(
    "sandbox.proxy_headers", 100, "count", "a request from the sandbox with more headers is refused"
)
PROXY_HEAD_TIME = Limit(
    "sandbox.proxy_head_time", 10_000, "ms", "a connection naming its host, then it is cut"
)
PROXY_HELLO = Limit(
    "sandbox.proxy_hello", 16 * 1024, "bytes", "a longer first message of TLS is refused"
)
PROXY_CONNECT = Limit(
    "sandbox.proxy_connect", 15_000, "ms", "finding a host or connecting to it, then an error"
)
PROXY_IDLE = Limit(
    "sandbox.proxy_idle", 600_000, "ms", "a connection of the sandbox that carries nothing is cut"
)
PROXY_LINGER = Limit(
    "sandbox.proxy_linger",
    1_000,
    "ms",
    "a client closing its side after the answer, then the connection is cut",
)
PROXY_REFUSALS = Limit(
    "sandbox.proxy_refusals", 200, "count", "refused connections remembered, the newest ones"
)
# === Searching files ===
SEARCH_TIME = Limit(
    "search.time", 30_000, "ms", "a search is stopped, and its matches so far are shown"
)
SEARCH_LINKS = Limit(
    "search.links",
    20_000,
    "count",
    "entries looked at for symbolic links; links among others are not shown",
)
SEARCH_RESULTS = Limit("search.results", 100, "count", "files or matches shown, newest files first")
SEARCH_MATCHES = Limit(
    "search.matches", 20_000, "count", "matches collected before a search is stopped"
)
SEARCH_FILES = Limit(
    "search.files", 200_000, "count", "file names collected before a search is stopped"
)
SEARCH_PATTERN = Limit(
    "search.pattern", 2_000, "characters", "a longer pattern for file names is refused"
)
SEARCH_COLUMNS = Limit("search.columns", 500, "bytes", "longer lines are cut in search results")
TREE_LIST_LINES = Limit(
    "search.list_lines", 200, "lines", "longer trees show their deeper folders as counts"
)
# === Reading files ===
READ_LINES = Limit(
    "read.lines", 2_000, "lines", "lines of a file shown by one call unless it names a limit"
)
READ_LINE = Limit("read.line", 2_000, "characters", "a longer line is cut and marked")
READ_BYTES = Limit("read.bytes", 50 * 1024, "bytes", "the text of a file shown by one call")
READ_COUNTED_BYTES = Limit(
    "read.counted_bytes", 1024 * 1024 * 1024, "bytes", "how far into a file its lines are counted"
)
# 3,750,000 bytes are 5,000,000 characters of base64.
READ_IMAGE = Limit(
    "read.image",
    3_750_000,
    "bytes",
    "a larger image is encoded again: services take 5 MB of base64",
)
READ_PIXELS = Limit(
    "read.pixels",
    2_000,
    "count",
    "a wider or higher image is scaled down: the most where a request holds many",
)
IMAGE_FILE = Limit(
    "read.image_file", 64 * 1024 * 1024, "bytes", "the file of a larger image is refused"
)
IMAGE_DECODE = Limit(
    "read.image_decode", 50_000_000, "count", "an image of more pixels in all is refused"
)
READ_PDF = Limit(
    "read.pdf", 20 * 1024 * 1024, "bytes", "a larger PDF is refused: services take 32 MB a request"
)
READ_NOTEBOOK = Limit(
    "read.notebook", 32 * 1024 * 1024, "bytes", "a larger notebook is read as plain text"
)
READ_INSTRUCTIONS = Limit(
    "read.instructions", 32 * 1024, "bytes", "the part of a folder's AGENTS.md that is loaded"
)
# === Pages and web searches ===
WEB_TIMEOUT = Limit(
    "web.timeout",
    30_000,
    "ms",
    "fetching a page that names no timeout, then an error; questions don't count",
)
WEB_TIMEOUT_MAX = Limit("web.timeout_max", 120_000, "ms", "the longest timeout of a page")
WEB_CONNECT = Limit(
    "web.connect", 10_000, "ms", "connecting to one address of a host, then the next one is tried"
)
WEB_UPGRADE = Limit(
    "web.upgrade", 5_000, "ms", "trying HTTPS where a URL says HTTP, then HTTP is used"
)
WEB_ADDRESSES = Limit(
    "web.addresses", 4, "count", "addresses of one host that are tried; all of them are checked"
)
WEB_HOPS = Limit("web.hops", 10, "count", "redirects that are followed, then an error")
WEB_BYTES = Limit(
    "web.bytes",
    5 * 1024 * 1024,
    "bytes",
    "read of a page, also after decompression; text is cut there",
)
WEB_ERROR = Limit("web.error", 500, "characters", "shown of a server's text with an error status")
WEB_URL = Limit("web.url", 8_192, "characters", "a longer URL is refused")
HTML_PAGE_TIME = Limit(
    "web.page_time",
    20_000,
    "ms",
    "converting an HTML page, at most what is left of the fetch's time",
)
HTML_PAGE_MEMORY = Limit(
    "web.page_memory", 768 * 1024 * 1024, "bytes", "memory for converting a page, then an error"
)
PDF_TIME = Limit(
    "web.pdf_time", 20_000, "ms", "reading a PDF, then the pages read so far are given"
)
PDF_PAGES = Limit(
    "web.pdf_pages", 200, "count", "pages read of a PDF; the number of the others is noted"
)
PDF_MEMORY = Limit(
    "web.pdf_memory", 1024 * 1024 * 1024, "bytes", "memory for reading a PDF, then an error"
)
PDF_TEXT = Limit(
    "web.pdf_text", 2_000_000, "characters", "text taken from a PDF; what follows is cut"
)
WEBSEARCH_TIME = Limit(
    "web.search_time", 30_000, "ms", "waiting for a search service, then an error"
)
WEBSEARCH_BYTES = Limit(
    "web.search_bytes", 4 * 1024 * 1024, "bytes", "a longer answer of a search service is an error"
)
WEBSEARCH_SNIPPET = Limit(
    "web.search_snippet", 1_500, "characters", "shown of one search result; the rest is cut"
)
WEBSEARCH_QUERY = Limit("web.search_query", 2_000, "characters", "a longer search query is refused")
# === Snapshots of the work tree ===
SNAPSHOT_QUICK_SCAN = Limit(
    "snapshot.quick", 5, "ms", "a scan that took less runs without a thread the next time"
)
SNAPSHOT_STALLED = Limit(
    "snapshot.stalled",
    120,
    "count",
    "seconds in a row without a file read, then the disk counts as stuck",
)
SNAPSHOT_COMPARE = Limit(
    "snapshot.compare", 10_000, "ms", "comparing files for a diff, then it is an error"
)
SNAPSHOT_FILES = Limit(
    "snapshot.files", 1_000_000, "count", "a work tree with more files and folders has no snapshots"
)
SNAPSHOT_FILE = Limit(
    "snapshot.file", 10 * 1024 * 1024, "bytes", "a larger file is not kept, unless git tracks it"
)
SNAPSHOT_TRACKED = Limit(
    "snapshot.tracked", 64 * 1024 * 1024, "bytes", "a larger file is not kept, tracked or not"
)
SNAPSHOT_BYTES = Limit(
    "snapshot.bytes", 512 * 1024 * 1024, "bytes", "read for one snapshot; other files are left out"
)
SNAPSHOT_IGNORED = Limit(
    "snapshot.ignored",
    20_000,
    "count",
    "ignored files kept before a destructive command; further ones are left out",
)
# Smaller work trees are scanned in a few milliseconds: docs/decisions/0007.
SNAPSHOT_WATCH = Limit(
    "snapshot.watch",
    3_000,
    "count",
    "a work tree with more files is watched instead of scanned again",
)
SNAPSHOT_AGE = Limit(
    "snapshot.age", 30 * 86_400_000, "ms", "contents not needed for this long are removed"
)
SNAPSHOT_SIZE = Limit(
    "snapshot.size",
    2 * 1024**3,
    "bytes",
    "the store of snapshots; beyond, the oldest contents are removed",
)
SNAPSHOT_PRUNE = Limit(
    "snapshot.prune", 86_400_000, "ms", "how often old contents are removed, at most"
)
SNAPSHOT_DIFF = Limit(
    "snapshot.diff", 512 * 1024, "bytes", "a larger changed file is shown without its lines"
)
SNAPSHOT_DIFFS = Limit(
    "snapshot.diffs", 500, "count", "changed files of one step shown with their lines"
)
# === Comparing work trees for clients ===
VCS_TIME = Limit("vcs.time", 20_000, "ms", "git comparing a work tree for a client, then an error")
VCS_FILES = Limit(
    "vcs.files", 5_000, "count", "changed files in an answer to a client; with more it is an error"
)
VCS_FILE = Limit(
    "vcs.file", 4 * 1024 * 1024, "bytes", "a larger file counts as binary when git compares it"
)
VCS_PATCH = Limit(
    "vcs.patch", 1024 * 1024, "bytes", "a longer patch of one file is left out; its numbers stay"
)
VCS_PATCHES = Limit(
    "vcs.patches", 16 * 1024 * 1024, "bytes", "patches of one answer; further ones are left out"
)
VCS_CONTEXT = Limit(
    "vcs.context", 10_000, "lines", "lines around a change; a client that asks for more is refused"
)
VCS_INDEX = Limit(
    "vcs.index", 512 * 1024 * 1024, "bytes", "a repository with a larger index is not compared"
)
# === Work trees of the repository ===
WORKTREE_TIME = Limit(
    "worktree.time", 300_000, "ms", "git checking a work tree out, or removing it, then an error"
)
# === Clients' requests for files ===
FILES_ENTRIES = Limit(
    "files.entries", 20_000, "count", "a folder with more entries is not listed for a client"
)
FILES_CONTENT = Limit(
    "files.content", 10 * 1024 * 1024, "bytes", "a larger file is not sent to a client"
)
FILES_LINES = Limit(
    "files.lines", 100, "lines", "matching lines in the answer to one search of a client"
)
FILES_LINE = Limit("files.line", 2_000, "bytes", "shown of a matching line; what follows is cut")
FILES_QUERY = Limit("files.query", 500, "characters", "a longer name to look for is refused")
FILES_NAMES = Limit(
    "files.names", 200, "count", "names in the answer to one search of a client, at most"
)
FILES_AGE = Limit(
    "files.age", 2_000, "ms", "an older list of file names is rebuilt in the background"
)
FILES_STALE = Limit(
    "files.stale", 10_000, "ms", "with an older list of file names a search waits for the new one"
)
