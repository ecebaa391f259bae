"""The budgets of the design, as data: what is measured, in which unit, and how much of it is allowed."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["ms", "MB", "times", "bytes", "share", "count", "part"]


@dataclass(frozen=True, slots=True)
class Budget:
    """One row. `at_most` is None where a figure is printed for comparison only; `share` rows want at least 1."""

    name: str
    """What `--only` takes."""
    number: int | None
    """Its number among the design's budgets; None: a tool's own."""
    what: str
    unit: Unit
    at_most: float | None = None


_TRAJECTORIES = (
    ("fix", "bug fix of 6 steps"),
    ("refactor", "refactoring of 40 steps"),
    ("logs", "session with 200 KB of logs"),
    ("resumed", "session resumed after an hour"),
    ("long", "session of 72 steps, priced"),
)


def _economy(name: str, what: str) -> tuple[Budget, ...]:
    return (
        Budget(f"economy-{name}", None, f"{what}: sent in all", "bytes"),
        Budget(f"economy-{name}-requests", None, "  the same: requests", "count"),
        Budget(f"economy-{name}-new", None, "  the same: what no request before began with", "part"),
    )


def _adapter(name: str, what: str) -> tuple[Budget, ...]:
    whole = "  the same: one answer, CPU of the whole process against chat completions"
    answer = () if name == "chat" else (Budget(f"adapter-{name}-answer", None, whole, "times", 1.1),)
    return (
        Budget(f"adapter-{name}", None, f"{what}: CPU of 1,000 deltas", "ms", 12),
        Budget(f"adapter-{name}-import", None, "  the same: its import", "ms", 30),
        Budget(f"adapter-{name}-memory", None, "  the same: memory of its import", "MB", 5),
        *answer,
    )


BUDGETS = (
    Budget("version", 1, "codeloop --version, whole process", "ms", 80),
    Budget("answer", 2, "run, scripted model, one text answer", "ms", 300),
    Budget("answer-cpu", 2, "  the same: CPU of the process and its children", "ms"),
    Budget("answer-memory", 2, "  the same: peak memory", "MB", 45),
    Budget("answer-python", 2, "  the same: CPU against that of `python -c pass`", "times"),
    Budget("answer-modules", 2, "  the same: modules imported", "count", 425),
    Budget("http", 2, "run, model over HTTP, one text answer", "ms"),
    Budget("http-cpu", 2, "  the same: CPU of the process and its children", "ms"),
    Budget("http-memory", 2, "  the same: peak memory", "MB"),
    Budget("step", 3, "one more step with one trivial bash call", "ms", 8),
    Budget("step-cpu", 3, "  the same: CPU of the process and its children", "ms", 8),
    Budget("step-cpu-pi", 3, "  the same: against that of pi, which has no sandbox", "times", 0.8),
    Budget("deltas", 4, "20,000 streamed deltas, over the one-answer run", "ms", 350),
    Budget("deltas-cpu", 4, "  the same: CPU of the process and its children", "ms"),
    Budget("deltas-memory", 4, "  the same: peak memory", "MB"),
    Budget("drip", 4, "  the same, each delta sent by itself", "ms"),
    Budget("drip-cpu", 4, "  the same, each delta sent by itself: CPU", "ms", 350),
    Budget("late-step", 6, "step 1,000 against step 10 of one session", "times", 1.2),
    Budget("overhead", 7, "request overhead: system prompt and all tools", "bytes", 9 * 1024),
    Budget("prefix", 8, "requests that continue the one before byte for byte", "share"),
    *(row for name, what in _TRAJECTORIES for row in _economy(name, what)),
    Budget("economy-long-billed", None, "  the same: billed input, as bytes at its price", "bytes"),
    *_adapter("chat", "chat completions"),
    *_adapter("responses", "Responses"),
    *_adapter("anthropic", "Anthropic's messages"),
    *_adapter("google", "generateContent"),
    *_adapter("interactions", "Interactions"),
    *_adapter("bedrock", "Converse"),
    Budget("facts", None, "facts of a project with 50,000 files at its top", "ms", 5),
    Budget("permission", None, "deciding a usual shell line under a few rules", "ms", 1),
    Budget("sandbox", None, "a command in the sandbox, over one without", "ms", 15),
    Budget("sandbox-start", None, "  the same: the first of a project, which makes it", "ms"),
    Budget("sandbox-landlock", None, "  the same where only Landlock can be had", "ms", 3),
    Budget("sandbox-landlock-start", None, "  the same: the first of a project", "ms"),
    Budget("edit-large", None, "edit tool, file of 100,000 lines", "ms", 300),
    Budget("edit-ty", None, "an edit of 1,200 lines that ty looks at: more than without", "ms", 60),
    Budget("edit-ruff", None, "  the same with ruff", "ms", 60),
    Budget("edit-basedpyright", None, "  the same with basedpyright, after the first", "ms", 400),
    Budget("edit-typescript", None, "  the same with TypeScript's, after the first", "ms", 400),
    Budget("edit-formatted", None, "an edit of 1,200 lines that ruff formats: more than without", "ms", 60),
    Budget("edit-formatted-first", None, "  the same: the first, which makes the sandbox", "ms"),
    Budget("watch-large-cpu", None, "watching 200,000 files: CPU until all are", "ms", 3_000),
    Budget("watch-large-stall", None, "  the same: the longest in which nothing else goes on", "ms", 100),
    Budget("watch-idle", None, "  the same: CPU of a second in which nothing changes", "ms", 2),
    Budget("task-servers", None, "a renaming with ty: all its requests", "bytes"),
    Budget("task-servers-requests", None, "  the same: how many", "count"),
    Budget("task-no-servers", None, "  the same without language servers: all its requests", "bytes"),
    Budget("task-no-servers-requests", None, "  the same: how many", "count"),
    Budget("languages-idle", None, "our CPU of a second while ten language servers wait", "ms", 5),
    Budget("grep-large", None, "grep tool, 50,000 files, against plain rg", "times", 1.3),
    Budget("glob-large", None, "glob tool, 50,000 files, against rg --files --sortr modified", "times", 1.3),
    Budget("bash-memory", None, "bash tool, 1 GB of output: memory over a small one", "MB", 50),
    Budget("snapshot-first", None, "first snapshot of 100,000 files", "ms", 2_000),
    Budget("snapshot-next", None, "the next snapshot, 10 of them changed", "ms", 100),
    Budget("snapshot-step", None, "recording a step that changes 1 of 50 files", "ms", 15),
    Budget("snapshot-idle", None, "recording a step that changes none of 50 files", "ms", 15),
    Budget("stream-latency", None, "event stream: from append to the client's socket", "ms", 5),
    Budget("stream-clients", None, "event stream: 20 clients, 20,000 deltas, until all have all", "ms"),
    Budget("stream-clients-cpu", None, "  the same: CPU of 1,000 deliveries", "ms", 4),
    Budget("stream-kept", None, "  the same: deltas that came", "share"),
    Budget("stream-memory", None, "event stream: memory taken after 100,000 more deltas", "MB", 2),
    Budget("mcp-ten", None, "run with ten remembered MCP servers, over one without", "ms", 15),
    Budget("mcp-ten-cpu", None, "  the same: CPU", "ms"),
    Budget("mcp-ten-memory", None, "  the same: peak memory", "MB", 2),
    Budget("mcp-call", None, "a call of a server's tool, over the bare client library", "ms", 3),
    Budget("mcp-first", None, "the first call of a session, over the server's own start", "ms", 500),
    Budget("extension-known", None, "run with a known Python tool, over one without", "ms", 15),
    Budget("extension-known-memory", None, "  the same: peak memory", "MB", 3),
    Budget("extension-ten", None, "run with ten known plugins, three of them asked, over none", "ms", 400),
    Budget("extension-call", None, "a call of a Python tool: to its host and back", "ms", 1),
    Budget("extension-events", None, "1,000 deltas with a hook on every event, over none", "ms", 100),
    Budget("library-import", None, "import codeloop, over an empty process", "ms", 40),
    Budget("library-names", None, "  the same with its names, over a process that imports asyncio", "ms", 40),
    Budget("library-turn", None, "library: a session, one call of a function, the answer", "ms", 15),
    Budget("render-messages", None, "terminal UI: 100 messages drawn, 100 columns", "ms", 50),
    Budget("render-live", None, "terminal UI: 20 more characters of a 100 KB answer", "ms", 1),
    Budget("render-live-slow", None, "  the same: the 99th of a hundred", "ms", 3),
    Budget("tui-paint", None, "terminal UI: from the start until the prompt takes a key", "ms", 350),
    Budget("tui-memory", None, "  the same: peak memory", "MB", 60),
    Budget("tui-thousand-memory", None, "terminal UI: peak memory with 1,000 messages, all of them read", "MB", 90),
    Budget("tui-long", None, "terminal UI: opening a session of 10,000 messages, over that", "ms", 150),
    Budget("tui-key", None, "terminal UI: a key to the screen while 2,000 deltas a second stream", "ms", 16),
    Budget("tui-key-slow", None, "  the same: the 99th of a hundred", "ms", 50),
    Budget("tui-stream", None, "terminal UI: CPU of such a stream against that of `run`", "times", 1.5),
    Budget("tui-idle", None, "terminal UI: CPU of an idle second", "ms", 3),
    Budget("worktree", None, "a work tree of a repository of 100,000 files", "ms"),
    Budget("worktree-sparse", None, "  the same with a twentieth of the files", "ms", 1_000),
    Budget("status-thousand", None, "how 1,000 sessions stand", "ms", 100),
    Budget("twenty-server-cpu", None, "20 sessions stream at once in one server: CPU", "ms"),
    Budget("twenty-server-memory", None, "  the same: most memory", "MB"),
    Budget("twenty-programs-cpu", None, "  the same as 20 programs: CPU", "ms"),
    Budget("twenty-programs-memory", None, "  the same: most memory of all", "MB", 20 * 35),
    Budget("fleet-xargs", None, "a fleet of 12 jobs, two at once, against xargs", "times", 1.25),
    Budget("fleet-job", None, "  the same: time of a job", "ms"),
    Budget("long-show", None, "session show, 10,000 messages, whole process", "ms", 1_000),
    Budget("long-export", None, "export, 10,000 messages, whole process", "ms", 1_000),
    Budget("long-fork", None, "session fork, 10,000 messages, whole process", "ms", 1_000),
    Budget("serve-ready", 9, "serve, from the start to the first answer", "ms", 250),
    Budget("acp-first-update", None, "acp, from the start to the first update in the editor", "ms", 150),
    Budget("acp-first-text", None, "  the same: to the first text of an answer", "ms"),
    Budget("serve-list", None, "GET /session, median over one connection", "ms", 3),
    Budget("serve-idle-memory", 9, "an idle server that has had one session", "MB", 50),
    Budget("serve-idle-cpu", 9, "  the same: CPU of a second", "ms", 5),
    Budget("fifty", None, "50 sessions prompted at once, 2,000 deltas each", "ms"),
    Budget("fifty-growth", None, "  the same with 20,000 deltas each: memory more", "MB", 50),
    Budget("long-step", None, "a step after 10,000 messages against one in a new session", "times", 1.2),
    Budget("web-first-load", None, "the browser UI: what a first visit loads, compressed", "bytes", 150_000),
    Budget("web-open", None, "  10,000 messages are opened: longest task, CPU", "ms", 50),
    Budget("web-older", None, "  the same: back to the first", "ms", 50),
    Budget("web-scroll", None, "  the same: scrolled", "ms", 50),
    Budget("web-frame", None, "  the same: median frame while scrolling", "ms", 17),
    Budget("web-rewrite", None, "  a change of 6,000 rewritten lines", "ms", 50),
    Budget("web-stream", None, "  2,000 deltas a second", "ms", 50),
    Budget("web-memory", None, "  heap after an hour at 50 deltas a second", "MB", 64),
    Budget("web-paint", None, "  first contentful paint, nothing cached", "ms"),
    Budget("web-paint-reference", None, "  the same: the reference's web app", "ms"),
    Budget("web-paint-share", None, "  the same: ours against it", "times", 0.334),
    Budget("web-cold-open", None, "  10,000 messages as the first page: longest task, CPU", "ms", 50),
    Budget("web-cold-open-reference", None, "  the same: the reference's web app", "ms"),
    Budget("web-cold-scroll", None, "  the same: scrolled by the wheel", "ms", 50),
    Budget("web-cold-scroll-reference", None, "  the same: the reference's web app", "ms"),
)
