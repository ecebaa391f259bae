"""Limits of sessions: shared budgets, memory notes, subagents, goals, stopping, moving, searching;
of work trees.
"""

from codeloop.kit.limit import Limit

SESSION_TEXT_MATCHES = Limit(
    "session.text_matches", 10_000, "count", "places of a text in one session; more are left out"
)
SHARED_BUDGETS = Limit(
    "session.budgets",
    1_000,
    "count",
    "shared budgets that a server remembers; the oldest are forgotten",
)
MEMORY_NOTES = Limit(
    "memory.notes", 500, "count", "notes of a project's memory; further ones are left out"
)
MEMORY_NOTE_BYTES = Limit("memory.note", 64 * 1024, "bytes", "of a note; the rest is not read")
MEMORY_NOTES_OFFERED_BYTES = Limit(
    "memory.offered", 2_048, "bytes", "of notes in a conversation that nobody asked for"
)
MEMORY_NOTES_PER_PROMPT = Limit(
    "memory.at_once",
    10,
    "count",
    "notes that one prompt is given; further ones that it is about come later",
)
MEMORY_NOTE_FILES = Limit(
    "memory.files", 20, "count", "files of a note that are compared; further ones are not"
)
MEMORY_NOTE_FILE_BYTES = Limit(
    "memory.file", 4 * 1024 * 1024, "bytes", "of a file that is compared with the commit of a note"
)
LONG_CALL = Limit(
    "session.long_call",
    10_000,
    "ms",
    "a call of an MCP server or an extension is listed by `/jobs` then",
)
STOP_POLL = Limit(
    "session.stop_poll", 200, "ms", "how often a turn looks whether everything is to stop"
)
STOP_ALL_TIME = Limit(
    "session.stop_all",
    5_000,
    "ms",
    "waiting until everything has stopped, then what has not is named",
)
SLOW_CHECKOUT_TIME = Limit(
    "worktree.slow_checkout", 3_000, "ms", "checking out a work tree, then `sparse` is suggested"
)
MOVE_STEP_TIME = Limit(
    "session.move_step",
    20_000,
    "ms",
    "until the step of a session to be moved ends, then it is cut off",
)
FAN_OUT_SETTLE = Limit(
    "session.fan_out_settle",
    300,
    "ms",
    "without a further call of `task`, then all are asked about",
)
FAN_OUT_WAIT = Limit(
    "session.fan_out_wait", 30_000, "ms", "waiting for further calls of `task`, then it is asked"
)
TREE_SUBAGENTS = Limit(
    "session.tree_subagents", 200, "count", "subagents that a session may start, unless configured"
)
GOAL_ROUNDS = Limit(
    "session.goal_rounds", 10, "count", "a model is sent on this often before a goal is not done"
)
GOAL_STUCK = Limit(
    "session.goal_stuck",
    3,
    "count",
    "rounds that change no file and fail alike, then a goal is not done",
)
GOAL_CHECKS = Limit(
    "session.goal_checks", 20, "count", "checks of one goal; with more it is refused"
)
GOAL_OUTPUT = Limit(
    "session.goal_output", 4_000, "characters", "of a check's output that a judge is shown"
)
