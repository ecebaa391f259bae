"""Reports on sessions: text matches, context, cost, permissions, states."""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.limits import SESSION_SEARCH_TEXT
from codeloop.schema.message import Session, Tokens
from codeloop.schema.permission import Action, Decision, Grant, Profile
from codeloop.schema.wire import Count, Wire

TextKind = Literal["prompt", "answer", "reasoning", "tool", "summary"]


class FindInSession(Wire):
    """Searches everything in a session for a text, output of tools included.

    Case counts only if the text has a capital letter (smart case); a blank matches any blanks and line ends.
    """

    session_id: str
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]


class TextMatch(Wire):
    """One occurrence: its part, and its number within that part, from 0.

    `tool`: the tool whose call it is in, "" for none. `text`: some words around it. `created`: ms since the epoch.
    """

    message_id: str
    part_id: str
    ordinal: int
    kind: TextKind
    created: int
    text: str
    tool: str = ""


class TextMatches(Wire):
    """The occurrences, oldest first. `complete`: the search did not stop early."""

    found: list[TextMatch]
    complete: bool


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
    """The use of a session including its subagents: in all, by model, and by subagent."""

    tokens: Tokens
    cost: float
    models: list[ModelUse]
    subagents: list[SubagentUse]


class SharedSession(Wire):
    """A session with what a reader sees of it, oldest message first."""

    info: Session
    messages: list[MessageWithParts]


class ShareableSession(Wire):
    """A session and its subagents' sessions, the session first, as they may be shown to others.

    What was for the model alone is left out, as is what was undone. `[hidden]` stands for each secret (`hidden`: how
    many there are), `~` for the home directory.
    """

    sessions: list[SharedSession]
    hidden: int


ContextGroup = Literal["system prompt", "instructions", "tools", "MCP", "conversation"]


class ContextPart(Wire):
    """A part of the context window that is in use; `tokens` are estimated from the text."""

    group: ContextGroup
    name: str
    tokens: int


class SessionContext(Wire):
    """The contents of a session's next request, by part.

    `window`: tokens that the model takes, 0: unknown. `used`: of the last request with its answer; `is_counted`: as the
    service counted them, to which the parts are scaled. `compacts_at`: tokens from which on a summary takes the place
    of the conversation, 0: unknown. `prunable`: tokens of old output that would be left out first.
    """

    model: str
    window: int
    used: int
    is_counted: bool
    compacts_at: int
    prunable: int
    parts: list[ContextPart]


class PermissionQuery(Wire):
    """Asks for the permissions in force in a session; without one, in a new session of an agent."""

    session_id: str | None = None
    agent: str | None = None


class RuleInForce(Wire):
    """A rule, and where it is written. `list`: rules of one list are applied together; each list must allow a call."""

    permission: str
    pattern: str
    action: Action
    origin: str
    list: int = 0


class PermissionsInForce(Wire):
    """The rules in force (the last that matches decides), the "always" grants, and the latest decisions."""

    profile: Profile
    agent: str
    rules: list[RuleInForce]
    grants: list[Grant]
    decisions: list[Decision]


SessionStanding = Literal["waits", "running", "failed", "interrupted", "finished", "new"]
"""The state of a session: it waits for the user, a turn runs, or how its last turn ended."""


class SessionOverviewQuery(Wire):
    """Asks for the states of the sessions of all projects on this machine; `limit`: for each project."""

    limit: Count = 1000


class SessionOverview(Wire):
    """A session and its state. `detail`: what it asks, or why it failed. `updated` in ms since the epoch."""

    id: str
    title: str
    directory: str
    project_id: str
    state: SessionStanding
    updated: int
    cost: float
    detail: str = ""


class StoppedSession(Wire):
    """A session whose turn was running."""

    id: str
    title: str
    directory: str


class StoppedSessions(Wire):
    """The sessions that have stopped, and those (`left`) whose turns still ran some seconds later."""

    stopped: list[StoppedSession]
    left: list[StoppedSession]


class RevokeGrant(Wire):
    """Revokes an "always" grant, by its id."""

    grant_id: str
