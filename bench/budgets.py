"""The budgets of the design, as data: what is measured, in which unit,
and how much of it is allowed.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["ms", "MB", "times", "bytes", "share", "count", "part"]
"""`times`: a ratio. `share`: a part of 1 that should be 1. `part`: one that should be small."""


@dataclass(frozen=True, slots=True)
class Budget:
    """One row. `at_most`: None where a figure is printed for comparison only;
    rows in `share` want at least 1.

    `description`: `over` means that the other figure is subtracted, `against` that this one is
    divided by it. `the same` is what the nearest row above without these words is about.
    """

    name: str
    """The name of the row, as `--only` takes it."""
    number: int | None
    """Its number among the budgets of the design; None: it was added later."""
    description: str
    unit: Unit
    at_most: float | None = None


_TRAJECTORIES = (
    ("fix", "bug fix of 6 steps"),
    ("refactor", "refactoring of 40 steps"),
    ("logs", "session with 200 KB of logs"),
    ("resumed", "session resumed after an hour"),
    ("long", "session of 72 steps, priced"),
)


def _list_economy_budgets(name: str, task: str) -> tuple[Budget, ...]:
    return (
        Budget(f"economy-{name}", None, f"{task}: bytes of all requests", "bytes"),
        Budget(f"economy-{name}-requests", None, "  the same: number of requests", "count"),
        Budget(
            f"economy-{name}-new", None, "  the same: part that repeats no earlier request", "part"
        ),
    )


def _list_adapter_budgets(name: str, protocol: str) -> tuple[Budget, ...]:
    budgets = (
        Budget(f"adapter-{name}", None, f"adapter of {protocol}: CPU of 1,000 deltas", "ms", 12),
        Budget(f"adapter-{name}-import", None, "  the same: CPU of its import", "ms", 30),
        Budget(f"adapter-{name}-memory", None, "  the same: memory of its import", "MB", 5),
    )
    # The others are compared with it.
    if name == "chat":
        return budgets
    answer = "  the same: one answer, CPU of the whole process against chat completions"
    return (*budgets, Budget(f"adapter-{name}-answer", None, answer, "times", 1.1))


RATIO_SUBJECTS = {
    "version": "codeloop --version",
    "answer": "run, scripted model, one text answer",
    "first-call": "the first bash call of a process, over one answer",
    "step": "one more step with one trivial bash call",
}
"""What is compared with the loop of plain Python (`ratios.py`), by the end of the row's name."""
COUNT_SUBJECTS = ("version", "answer")
"""Those whose instructions are counted, too."""


def _list_ratio_budgets() -> tuple[Budget, ...]:
    # The stored ratios are their budgets, see `ratios.py`.
    return (
        *(
            Budget(f"ratio-{name}", None, f"{text}: CPU against a loop of plain Python", "times")
            for name, text in RATIO_SUBJECTS.items()
        ),
        *(
            Budget(
                f"count-{name}",
                None,
                f"{RATIO_SUBJECTS[name]}: instructions against those of the loop",
                "times",
            )
            for name in COUNT_SUBJECTS
        ),
    )


BUDGETS = (
    *_list_ratio_budgets(),
    Budget("version", 1, "codeloop --version, whole process", "ms", 80),
    Budget("answer", 2, "run, scripted model, one text answer", "ms", 300),
    Budget("answer-cpu", 2, "  the same: CPU of the process and its children", "ms"),
    Budget("answer-memory", 2, "  the same: peak memory", "MB", 45),
    Budget("answer-python", 2, "  the same: CPU against that of `python -c pass`", "times"),
    Budget("answer-modules", 2, "  the same: modules imported", "count", 408),
    Budget("http", 2, "run, model over HTTP, one text answer", "ms"),
    Budget("http-cpu", 2, "  the same: CPU of the process and its children", "ms"),
    Budget("http-memory", 2, "  the same: peak memory", "MB"),
    Budget("step", 3, "one more step with one trivial bash call", "ms", 8),
    Budget("step-cpu", 3, "  the same: CPU of the process and its children", "ms", 8),
    Budget("step-cpu-pi", 3, "  the same: against that of pi, which has no sandbox", "times", 0.8),
    Budget(
        "steps-cpu-pi",
        3,
        "50 steps, the first one with what it loads: CPU against that of pi",
        "times",
        1.0,
    ),
    Budget("steps-pi", 3, "  the same: time against that of pi", "times", 1.0),
    Budget("answer-cpu-pi", 3, "one text answer over HTTP: CPU against that of pi", "times", 0.6),
    Budget("deltas", 4, "20,000 streamed deltas, over the one-answer run", "ms", 350),
    Budget("deltas-cpu", 4, "  the same: CPU of the process and its children", "ms"),
    Budget("deltas-memory", 4, "  the same: peak memory", "MB"),
    Budget("drip", 4, "  the same, each delta sent by itself", "ms"),
    Budget("drip-cpu", 4, "  the same, each delta sent by itself: CPU", "ms", 350),
    Budget("late-step", 6, "step 1,000 against step 10 of one session", "times", 1.2),
    Budget("overhead", 7, "request overhead: system prompt and all tools", "bytes", 6_656),
    Budget("prefix", 8, "requests that continue the one before byte for byte", "share"),
    Budget(
        "prefix-requests",
        None,
        "session that goes on after pauses, switches and a fork: requests",
        "count",
    ),
    Budget(
        "prefix-resent",
        None,
        "  the same: bytes sent anew that a cache held, causes on stderr",
        "bytes",
    ),
    Budget(
        "prefix-ours", None, "  the same: of these, bytes that nobody has asked for", "bytes", 0
    ),
    *(budget for name, task in _TRAJECTORIES for budget in _list_economy_budgets(name, task)),
    Budget(
        "economy-long-billed",
        None,
        "  the same: input as billed, in bytes at the full price",
        "bytes",
    ),
    *_list_adapter_budgets("chat", "chat completions"),
    *_list_adapter_budgets("responses", "Responses"),
    *_list_adapter_budgets("anthropic", "Anthropic's messages"),
    *_list_adapter_budgets("google", "generateContent"),
    *_list_adapter_budgets("interactions", "Interactions"),
    *_list_adapter_budgets("bedrock", "Converse"),
    Budget("facts", None, "gathering the facts of a project with 50,000 files at its top", "ms", 5),
    Budget("permission", None, "deciding about a typical shell command under a few rules", "ms", 1),
    Budget("sandbox", None, "a command in the sandbox, over one outside", "ms", 15),
    Budget(
        "sandbox-start", None, "  the same: the first command of a project, which sets it up", "ms"
    ),
    Budget("sandbox-landlock", None, "  the same where only Landlock is available", "ms", 3),
    Budget("sandbox-landlock-start", None, "  the same: the first command of a project", "ms"),
    Budget("edit-large", None, "edit tool, file of 100,000 lines", "ms", 300),
    Budget("edit-ty", None, "editing a file of 1,200 lines, checked by ty: the check", "ms", 60),
    Budget("edit-ruff", None, "  the same with ruff", "ms", 60),
    Budget("edit-basedpyright", None, "  the same with basedpyright, after the first", "ms", 400),
    Budget(
        "edit-typescript", None, "  the same with TypeScript's server, after the first", "ms", 400
    ),
    Budget(
        "edit-formatted",
        None,
        "editing a file of 1,200 lines, formatted by ruff: the formatting",
        "ms",
        60,
    ),
    Budget(
        "edit-formatted-first", None, "  the same: the first edit, which sets up the sandbox", "ms"
    ),
    Budget(
        "watch-large-cpu", None, "watching 200,000 files: CPU until all are watched", "ms", 3_000
    ),
    Budget("watch-large-stall", None, "  the same: the longest stall of the event loop", "ms", 100),
    Budget("watch-idle", None, "  the same: CPU of a second in which nothing changes", "ms", 2),
    Budget("task-servers", None, "renaming a method with ty: bytes of all requests", "bytes"),
    Budget("task-servers-requests", None, "  the same: number of requests", "count"),
    Budget(
        "task-no-servers",
        None,
        "renaming a method without language servers: bytes of all requests",
        "bytes",
    ),
    Budget("task-no-servers-requests", None, "  the same: number of requests", "count"),
    Budget(
        "languages-idle",
        None,
        "CPU of a second while ten language servers are idle, without theirs",
        "ms",
        5,
    ),
    Budget("grep-large", None, "grep tool, 50,000 files, against plain rg", "times", 1.3),
    Budget(
        "glob-large",
        None,
        "glob tool, 50,000 files, against rg --files --sortr modified",
        "times",
        1.3,
    ),
    Budget(
        "bash-memory",
        None,
        "bash tool, 1 GB of output: memory over that of a small output",
        "MB",
        50,
    ),
    Budget("snapshot-first", None, "first snapshot of 100,000 files", "ms", 2_000),
    Budget("snapshot-next", None, "the next snapshot, after 10 of them changed", "ms", 100),
    Budget("snapshot-step", None, "recording a step that changes 1 of 50 files", "ms", 15),
    Budget("snapshot-idle", None, "recording a step that changes none of 50 files", "ms", 15),
    Budget("stream-latency", None, "event stream: from append to the client's socket", "ms", 5),
    Budget(
        "stream-clients",
        None,
        "event stream: 20 clients, 20,000 deltas, until every client has all",
        "ms",
    ),
    Budget("stream-clients-cpu", None, "  the same: CPU of 1,000 deliveries", "ms", 4),
    Budget("stream-kept", None, "  the same: deltas that arrived", "share"),
    Budget(
        "stream-memory", None, "event stream: growth of memory over 100,000 more deltas", "MB", 2
    ),
    Budget(
        "mcp-ten",
        None,
        "run with ten MCP servers whose tools are cached, over one without",
        "ms",
        15,
    ),
    Budget("mcp-ten-cpu", None, "  the same: CPU", "ms"),
    Budget("mcp-ten-memory", None, "  the same: peak memory", "MB", 2),
    Budget(
        "mcp-call",
        None,
        "calling an MCP server's tool, over the same by the bare client library",
        "ms",
        3,
    ),
    Budget(
        "mcp-first",
        None,
        "  the same: the first call of a session, over the server's own start",
        "ms",
        500,
    ),
    Budget("extension-known", None, "run with a known Python tool, over one without", "ms", 15),
    Budget("extension-known-memory", None, "  the same: peak memory", "MB", 3),
    Budget(
        "extension-ten",
        None,
        "run with ten known plugins, three of them called, over one without",
        "ms",
        400,
    ),
    Budget("extension-call", None, "calling a Python tool: to its host process and back", "ms", 1),
    Budget(
        "extension-events",
        None,
        "1,000 deltas with a hook on every event, over the same without",
        "ms",
        100,
    ),
    Budget("library-import", None, "import codeloop, over an empty process", "ms", 40),
    Budget(
        "library-names",
        None,
        "  the same with its names, over a process that imports asyncio",
        "ms",
        40,
    ),
    Budget(
        "library-turn", None, "library: a session, one call of a function, the answer", "ms", 15
    ),
    Budget("render-messages", None, "terminal UI: drawing 100 messages, 100 columns", "ms", 50),
    Budget(
        "render-live", None, "terminal UI: drawing 20 more characters of a 100 KB answer", "ms", 1
    ),
    Budget("render-live-slow", None, "  the same: the 99th percentile", "ms", 3),
    Budget(
        "tui-paint", None, "terminal UI: from the start until the prompt takes a key", "ms", 350
    ),
    Budget("tui-memory", None, "  the same: peak memory", "MB", 60),
    Budget(
        "tui-thousand-memory",
        None,
        "terminal UI: peak memory after scrolling through 1,000 messages",
        "MB",
        90,
    ),
    Budget(
        "tui-long",
        None,
        "terminal UI: opening a session of 10,000 messages, over `tui-paint`",
        "ms",
        150,
    ),
    Budget(
        "tui-key",
        None,
        "terminal UI: from a key to the screen during 2,000 deltas a second",
        "ms",
        16,
    ),
    Budget("tui-key-slow", None, "  the same: the 99th percentile", "ms", 50),
    Budget(
        "tui-stream", None, "terminal UI: CPU of such a stream against that of `run`", "times", 1.5
    ),
    Budget("tui-idle", None, "terminal UI: CPU of an idle second", "ms", 3),
    Budget("worktree", None, "making a work tree of a repository of 100,000 files", "ms"),
    Budget("worktree-sparse", None, "  the same with a twentieth of the files", "ms", 1_000),
    Budget("status-thousand", None, "the overview of 1,000 sessions", "ms", 100),
    Budget("twenty-server-cpu", None, "20 sessions that stream at once in one server: CPU", "ms"),
    Budget("twenty-server-memory", None, "  the same: peak memory", "MB"),
    Budget("twenty-programs-cpu", None, "  the same as 20 programs: CPU", "ms"),
    Budget(
        "twenty-programs-memory",
        None,
        "  the same as 20 programs: peak memory of all",
        "MB",
        20 * 35,
    ),
    Budget("fleet-xargs", None, "a fleet of 12 jobs, two at once, against xargs", "times", 1.25),
    Budget("fleet-job", None, "  the same: time per job", "ms"),
    Budget("long-show", None, "session show, 10,000 messages, whole process", "ms", 1_000),
    Budget("long-export", None, "export, 10,000 messages, whole process", "ms", 1_000),
    Budget("long-fork", None, "session fork, 10,000 messages, whole process", "ms", 1_000),
    Budget("serve-ready", 9, "serve, from the start to the first answer", "ms", 250),
    Budget(
        "acp-first-update", None, "acp, from the start to the first update in the editor", "ms", 150
    ),
    Budget("acp-first-text", None, "  the same: to the first text of an answer", "ms"),
    Budget(
        "interrupt",
        None,
        "run: from Ctrl-C to the result, of a turn before its first request",
        "ms",
        200,
    ),
    Budget(
        "interrupt-note",
        None,
        "  the same: to a note, of one whose command ignores signals",
        "ms",
        200,
    ),
    Budget("serve-list", None, "GET /session, median over one connection", "ms", 3),
    Budget("serve-idle-memory", 9, "an idle server that has had one session", "MB", 50),
    Budget("serve-idle-cpu", 9, "  the same: CPU of a second", "ms", 5),
    Budget("fifty", None, "50 sessions prompted at once, 2,000 deltas each", "ms"),
    Budget("fifty-growth", None, "  the same with 20,000 deltas each: more memory", "MB", 50),
    Budget(
        "long-step", None, "a step after 10,000 messages against one in a new session", "times", 1.2
    ),
    Budget(
        "web-first-load",
        None,
        "the browser UI: what a first visit loads, compressed",
        "bytes",
        175_000,
    ),
    Budget("web-open", None, "  opening 10,000 messages: longest task, CPU", "ms", 50),
    Budget("web-older", None, "  the same: going back to the first", "ms", 50),
    Budget("web-scroll", None, "  the same: scrolling", "ms", 50),
    Budget("web-frame", None, "  the same: median frame while scrolling", "ms", 17),
    Budget("web-rewrite", None, "  showing a change of 6,000 rewritten lines", "ms", 50),
    Budget("web-stream", None, "  showing 2,000 deltas a second", "ms", 50),
    Budget("web-memory", None, "  heap after an hour at 50 deltas a second", "MB", 64),
    Budget("web-paint", None, "  first contentful paint, nothing cached", "ms"),
    Budget("web-paint-reference", None, "  the same: the reference's web app", "ms"),
    Budget("web-paint-share", None, "  the same: ours against the reference's", "times", 0.334),
    Budget(
        "web-cold-open",
        None,
        "  opening 10,000 messages as the first page: longest task, CPU",
        "ms",
        50,
    ),
    Budget("web-cold-open-reference", None, "  the same: the reference's web app", "ms"),
    Budget("web-cold-scroll", None, "  the same: scrolling by the wheel", "ms", 50),
    Budget("web-cold-scroll-reference", None, "  the same: the reference's web app", "ms"),
)
