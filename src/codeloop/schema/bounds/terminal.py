"""Limits of clients' terminals."""

from codeloop.kit.limit import Limit

PTY_COUNT = Limit("pty.count", 32, "count", "terminals of one project; one more is refused")
PTY_WATCHERS = Limit("pty.watchers", 32, "count", "clients of one terminal; one more is refused")
PTY_TITLE = Limit("pty.title", 200, "characters", "a longer title of a terminal is refused")
PTY_KEPT = Limit(
    "pty.kept", 2 * 1024 * 1024, "characters", "a terminal's newest output, for clients that connect later or lag"
)
PTY_AHEAD = Limit("pty.ahead", 1024 * 1024, "characters", "a program is ahead of its quickest client; then it waits")
PTY_PATIENCE = Limit("pty.patience", 2_000, "ms", "a program waits for clients that read nothing, then drops them")
PTY_BURST = Limit("pty.burst", 256 * 1024, "bytes", "read of one terminal at a time, then there is a pause")
PTY_PAUSE = Limit("pty.pause", 10, "ms", "the pause after a burst of output, so that a flood leaves time for others")
PTY_FRAME = Limit("pty.frame", 64 * 1024, "characters", "output of a terminal in one message; more goes in several")
PTY_INPUT = Limit("pty.input", 4 * 1024 * 1024, "bytes", "typed that a program has not read; then its clients wait")
PTY_STALL = Limit(
    "pty.stall", 20_000, "ms", "a client takes no output, or a program no input; then the connection is ended"
)
PTY_TICKET = Limit("pty.ticket", 60_000, "ms", "a ticket for a terminal can be used, once")
PTY_TICKETS = Limit("pty.tickets", 64, "count", "unused tickets of one project; the oldest makes place for one more")
