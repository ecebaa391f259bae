"""Reports on sessions: states, costs, the context window, statistics,
and what others may be shown.
"""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.jobs import RunningJob
from codeloop.schema.message import NO_TOKENS, Session, Tokens
from codeloop.schema.operation import Operation
from codeloop.schema.wire import Count, Wire

SessionStanding = Literal["waits", "running", "failed", "interrupted", "finished", "new"]
"""The state of a session: it waits for the user, a turn runs, or how its last turn ended;
`new`: it has had none.
"""


class SessionOverviewQuery(Wire):
    """Asks for the states of the sessions of all projects on this machine;
    `limit`: for each project.
    """

    limit: Count = 1000


class SessionOverview(Wire):
    """A session and its state. `detail`: what it asks, or why it failed.
    `updated` in ms since the epoch.

    `jobs`: its commands that run in the background, with those of its subagents.
    """

    id: str
    title: str
    directory: str
    project_id: str
    state: SessionStanding
    updated: int
    cost: float
    detail: str = ""
    jobs: list[RunningJob] = []


class ModelUse(Wire):
    """The use of one model (`provider/model`) by a session and its subagents; `cost` in dollars.

    `is_priced`: False if the model's price is unknown, so that `cost` means nothing.
    """

    model: str
    steps: int
    tokens: Tokens
    cost: float
    is_priced: bool


class SubagentUse(Wire):
    """The use of one subagent, including its own subagents."""

    session_id: str
    title: str
    agent: str
    tokens: Tokens
    cost: float


class SessionCost(Wire):
    """The use of a session including its subagents: in all, by model, and by subagent.

    It is what was paid for the session: what a fork or an import brought with it was paid
    elsewhere. `discarded`: the dollars in it for what was undone or deleted since. `before`:
    dollars not in it, for what it was copied with.
    """

    tokens: Tokens
    cost: float
    models: list[ModelUse]
    subagents: list[SubagentUse]
    discarded: float = 0.0
    before: float = 0.0


ContextGroup = Literal["system prompt", "instructions", "tools", "MCP", "conversation"]


class ContextPart(Wire):
    """A part of the context window that is in use; `tokens` are estimated from the text."""

    group: ContextGroup
    name: str
    tokens: int


class SessionContext(Wire):
    """The contents of a session's next request, by part.

    All numbers are tokens. `window`: what the model takes, 0: unknown.
    `used`: the last request with its answer;
    `is_counted`: the service counted them, and the parts are scaled to that number. `compacts_at`:
    with more, a summary takes the place of the conversation, 0: unknown. `prunable`: old output
    that would be left out first.
    """

    model: str
    window: int
    used: int
    is_counted: bool
    compacts_at: int
    prunable: int
    parts: list[ContextPart]


class StatsQuery(Wire):
    """Sums over this project, or over `everything` that is stored.
    `days`: so many days, today the last.

    Outside of repositories, a directory is its own project.
    """

    # A hundred years; the handler checks it once more, for callers without a server.
    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    everything: bool = False


class Figures(Wire):
    """Sums. `sessions`: those that asked a model; a session and its subagents count as one.
    `cost` in dollars.
    """

    sessions: int = 0
    steps: int = 0
    tool_calls: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS


class NamedFigures(Wire):
    """Sums of one day (2026-11-20, local time), one model (provider/model) or one
    project (its directory).
    """

    name: str
    figures: Figures


class BudgetUse(Wire):
    """A budget of the configuration: its key below `budget`, its limit, and what was spent,
    in dollars.
    """

    name: str
    limit: float
    spent: float


class Stats(Wire):
    """Sums in all, by day, model and project, and the budgets that are set.

    `skipped`: databases that could not be read, and why. `discarded`: what was undone or deleted
    since; it was paid, so the other sums include it.
    """

    total: Figures
    days: list[NamedFigures]
    models: list[NamedFigures]
    projects: list[NamedFigures]
    skipped: list[str] = []
    budgets: list[BudgetUse] = []
    discarded: Figures = Figures()


class SharedSession(Wire):
    """A session with what a reader sees of it, oldest message first."""

    info: Session
    messages: list[MessageWithParts]


class ShareableSession(Wire):
    """A session and its subagents' sessions, the session first, as they may be shown to others.

    What was for the model alone is left out, as is what was undone. `[hidden]` stands for each
    secret (`hidden`: how many there are), `~` for the home directory.
    """

    sessions: list[SharedSession]
    hidden: int


SESSION_STATS = Operation(
    "session.stats", "GET", "/session/stats", StatsQuery, Stats, "reports.stats:sum_stats"
)
SESSION_OVERVIEW = Operation(
    "session.overview",
    "GET",
    "/session/overview",
    SessionOverviewQuery,
    list[SessionOverview],
    "reports.overview:list_session_states",
)
SESSION_COST = Operation(
    "session.cost",
    "GET",
    "/session/{sessionID}/cost",
    SessionId,
    SessionCost,
    "reports.cost:sum_cost",
)
SESSION_CONTEXT = Operation(
    "session.context",
    "GET",
    "/session/{sessionID}/context",
    SessionId,
    SessionContext,
    "reports.context:measure_context",
)
SESSION_SHAREABLE = Operation(
    "session.shareable",
    "GET",
    "/session/{sessionID}/shareable",
    SessionId,
    ShareableSession,
    "reports.shareable:make_shareable",
)
