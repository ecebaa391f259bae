"""Reports on sessions: found texts, context, cost, permissions, states."""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.limits import SESSION_SEARCH_TEXT
from codeloop.schema.message import Session, Tokens
from codeloop.schema.permission import Action, Decision, Grant, Profile
from codeloop.schema.wire import Count, Wire

TextKind = Literal["prompt", "answer", "reasoning", "tool", "summary"]


class FindInSession(Wire):
    """Looks for a text in everything that a session holds, output of tools included.

    Case counts only where the text has a capital letter (smart case); blanks stand for any blanks and line ends.
    """

    session_id: str
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]


class TextMatch(Wire):
    """One occurrence: the part that holds it, and the how-manieth of that part it is, from 0.

    `tool`: whose call it stands in, "" for none. `text`: some words around it. `created`: ms since the epoch.
    """

    message_id: str
    part_id: str
    ordinal: int
    kind: TextKind
    created: int
    text: str
    tool: str = ""


class TextMatches(Wire):
    """The occurrences, oldest first. `complete`: nothing was left out to be quick."""

    found: list[TextMatch]
    complete: bool


class ModelUse(Wire):
    """What a session and its subagents have used of one model (`provider/model`); `cost` in dollars.

    `is_priced`: False where no price of the model is known, so that `cost` says nothing.
    """

    model: str
    steps: int
    tokens: Tokens
    cost: float
    is_priced: bool


class SubagentUse(Wire):
    """What one subagent has used, with those below it."""

    session_id: str
    title: str
    agent: str
    tokens: Tokens
    cost: float


class SessionCost(Wire):
    """What a session has used, its subagents with it: in all, by model, and each subagent."""

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
    """What takes room in the window of a model, about; `tokens` are estimated from the text."""

    group: ContextGroup
    name: str
    tokens: int


class SessionContext(Wire):
    """What the next request of a session holds, by part.

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
    """Asks for what counts in a session; without one, in a new session of an agent."""

    session_id: str | None = None
    agent: str | None = None


class RuleInForce(Wire):
    """A rule, and where it is written. `list`: the rules of a list are read as one, and each list must allow a call."""

    permission: str
    pattern: str
    action: Action
    origin: str
    list: int = 0


class PermissionsInForce(Wire):
    """The rules that count, of which the last that matches decides; what was always allowed; the latest decisions."""

    profile: Profile
    agent: str
    rules: list[RuleInForce]
    grants: list[Grant]
    decisions: list[Decision]


SessionStanding = Literal["waits", "running", "failed", "interrupted", "finished", "new"]
"""How a session stands: it waits for the user, a turn runs, or how its last turn ended."""


class SessionOverviewQuery(Wire):
    """Asks how the sessions of all projects on this machine stand; `limit`: at most so many of each project."""

    limit: Count = 1000


class SessionOverview(Wire):
    """A session, and how it stands. `detail`: what it asks, or why it failed. `updated` in ms since 1970."""

    id: str
    title: str
    directory: str
    project_id: str
    state: SessionStanding
    updated: int
    cost: float
    detail: str = ""


class StoppedSession(Wire):
    """A session that was worked on."""

    id: str
    title: str
    directory: str


class StoppedSessions(Wire):
    """What has stopped, and what was still being worked on some seconds later."""

    stopped: list[StoppedSession]
    left: list[StoppedSession]


class RevokeGrant(Wire):
    """Takes an answer "always" back, by its id."""

    grant_id: str
