"""Limits of the HTTP server, of browsers that sign in at it,
and of the terminals (`pty.*`) that its clients open.
"""

from codeloop.kit.limit import Limit

SERVER_BODY = Limit(
    "server.body", 64 * 1024 * 1024, "bytes", "a request with a larger body is refused"
)
SERVER_STREAMS = Limit(
    "server.streams", 256, "count", "event streams at once; one more is told to come back later"
)
# A client that resumes reads stored events again, so that it loses nothing but live ones.
SERVER_STREAM_EVENTS = Limit(
    "server.stream_events",
    10_000,
    "count",
    "events that wait for one client; beyond, its stream ends and it resumes",
)
SERVER_STREAM_BYTES = Limit(
    "server.stream_bytes",
    32 * 1024 * 1024,
    "bytes",
    "of events that wait for one client; as server.stream_events",
)
SERVER_STREAM_WRITE = Limit(
    "server.stream_write",
    60_000,
    "ms",
    "a client that takes nothing for this long has its stream ended",
)
SERVER_STREAM_END = Limit(
    "server.stream_end", 200, "ms", "ending a stream in order, then its connection is cut"
)
SERVER_STREAM_CHUNK = Limit(
    "server.stream_chunk", 256 * 1024, "bytes", "of events written to a client at once"
)
# One write for the events of this interval, in place of one for each.
SERVER_STREAM_PACE = Limit(
    "server.stream_pace", 4, "ms", "events that follow one another faster are written together"
)
SERVER_TURN_ANSWER = Limit(
    "server.turn_answer",
    10,
    "ms",
    "a turn's answer is held back this long: some clients stop reading events when it comes",
)
SERVER_HEARTBEAT = Limit(
    "server.heartbeat", 10_000, "ms", "how often a stream shows that it is still open"
)
SERVER_HEARTBEAT_LEAST = Limit(
    "server.heartbeat_least", 250, "ms", "a client can't ask for it more often than this"
)
SERVER_POSITION = Limit(
    "server.position",
    200,
    "count",
    "projects that the position of a stream names; with more it starts from now",
)
SERVER_SESSIONS = Limit(
    "server.sessions", 10_000, "count", "sessions whose directory the streams remember"
)
SERVER_BODY_IDLE = Limit(
    "server.body_idle", 60_000, "ms", "silence in the middle of a body, then a hang-up"
)
SERVER_URL = Limit("server.url", 32 * 1024, "bytes", "a request with a longer URL is refused")
SERVER_HEADER = Limit(
    "server.header", 64 * 1024, "bytes", "a request with longer headers is refused"
)
SERVER_HEADERS = Limit("server.headers", 100, "count", "a request with more headers is refused")
SERVER_HEADER_TIME = Limit(
    "server.header_time",
    10_000,
    "ms",
    "from a connection or its next request to its last header, then a hang-up",
)
SERVER_KEEP_ALIVE = Limit(
    "server.keep_alive", 15_000, "ms", "a connection without a request is kept this long"
)
SERVER_CONNECTIONS = Limit(
    "server.connections",
    500,
    "count",
    "open connections; beyond, the oldest stranger's is cut, or the new one refused",
)
SERVER_BACKLOG = Limit(
    "server.backlog", 128, "count", "connections taken at once; further ones wait their turn"
)
SERVER_WRITE = Limit(
    "server.write",
    60_000,
    "ms",
    "a client takes nothing of its answer for this long; then a hang-up",
)
SERVER_FRAME = Limit(
    "server.frame", 1024 * 1024, "bytes", "a longer message on a WebSocket ends it"
)
SERVER_PING = Limit(
    "server.ping", 20_000, "ms", "how often a WebSocket is pinged, and how long it has to answer"
)
SERVER_DELAY = Limit(
    "server.delay",
    2_000,
    "ms",
    "the longest wait after wrong passwords from one address; the first is a twentieth",
)
SERVER_MAX_DELAYED = Limit(
    "server.delayed", 4, "count", "wrong passwords of one address that wait; one more gets a 429"
)
SERVER_FORGET = Limit(
    "server.forget", 60_000, "ms", "an address without a wrong password for this long starts afresh"
)
SERVER_ADDRESSES = Limit(
    "server.addresses",
    1_000,
    "count",
    "addresses with wrong passwords that are remembered; the oldest are forgotten",
)
SERVER_GRACE = Limit(
    "server.grace",
    2_000,
    "ms",
    "what is left for running answers when a server stops, then they are cut off",
)
# A wrapper such as `uv run` passes on the Ctrl-C that the terminal has sent
# to this process already.
SERVER_SIGNAL = Limit(
    "server.signal", 100, "ms", "a second signal that comes sooner is the first one, passed on"
)
BROWSER_LINK = Limit(
    "browser.link", 600_000, "ms", "a one-time link that was not opened; then it leads nowhere"
)
BROWSER_LINKS = Limit(
    "browser.links", 20, "count", "one-time links at once; one more takes the place of the oldest"
)
BROWSER_SESSION = Limit(
    "browser.session", 30 * 24 * 3_600_000, "ms", "a browser stays signed in, then it needs a link"
)
PTY_COUNT = Limit("pty.count", 32, "count", "terminals of one project; one more is refused")
PTY_WATCHERS = Limit("pty.watchers", 32, "count", "clients of one terminal; one more is refused")
PTY_TITLE = Limit("pty.title", 200, "characters", "a longer title of a terminal is refused")
PTY_KEPT = Limit(
    "pty.kept",
    2 * 1024 * 1024,
    "characters",
    "a terminal's newest output, for clients that connect later or lag",
)
PTY_AHEAD = Limit(
    "pty.ahead",
    1024 * 1024,
    "characters",
    "a program is ahead of its quickest client; then it waits",
)
PTY_CLIENT_WAIT = Limit(
    "pty.client_wait",
    2_000,
    "ms",
    "output waits for a client that reads nothing, then it is dropped",
)
# All terminals and all requests share one thread, which one noisy program must not keep busy.
PTY_BURST = Limit(
    "pty.burst", 256 * 1024, "bytes", "read of one terminal at a time, then there is a pause"
)
PTY_PAUSE = Limit(
    "pty.pause",
    10,
    "ms",
    "the pause after a burst of output, so that a flood leaves time for others",
)
PTY_FRAME = Limit(
    "pty.frame",
    64 * 1024,
    "characters",
    "output of a terminal in one message; more goes in several",
)
PTY_INPUT = Limit(
    "pty.input",
    4 * 1024 * 1024,
    "bytes",
    "typed that a program has not read; then its clients wait",
)
PTY_STALL = Limit(
    "pty.stall",
    20_000,
    "ms",
    "a client takes no output, or a program no input; then the connection is ended",
)
# Browsers can't send a header with a WebSocket, so a ticket in the URL stands for the credential.
# URLs get into logs.
PTY_TICKET = Limit("pty.ticket", 60_000, "ms", "a ticket for a terminal can be used, once")
PTY_TICKETS = Limit(
    "pty.tickets", 64, "count", "unused tickets of one project; the oldest makes place for one more"
)
