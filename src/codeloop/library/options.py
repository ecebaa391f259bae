"""The options of projects and sessions: limits of turns, the questions to callbacks,
and the callbacks' answers.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypedDict, TypeVar, cast

from msgspec import Struct

from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.library.budget import Budget
from codeloop.library.events import EMPTY_MAPPING
from codeloop.schema.permission import ProfileName

Rules = Mapping[str, "Action | Mapping[str, Action]"]
"""Permission rules as in the configuration: `{"bash": {"*": "ask", "npm test *": "allow"},
"edit": "allow"}`.
"""
Action = Literal["allow", "ask", "deny"]
"""The action of a rule."""


class TurnLimits(Struct, frozen=True, kw_only=True):
    """The limits of each turn; None: no limit. A turn that exceeds one raises `LimitReached`."""

    steps: int | None = None
    """The number of requests to the model."""
    cost: float | None = None
    """The cost in dollars, subagents included."""
    tokens: int | None = None
    """The number of tokens, subagents included."""
    seconds: float | None = None
    """The duration in seconds."""


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """A permission that a tool call asks for, because the rules do not decide it.
    The call waits for the answer.
    """

    permission: str
    """The kind of permission: `bash`, `edit`, `external_directory`, or the name of a tool."""
    patterns: tuple[str, ...]
    """The commands, paths or addresses that the permission is for."""
    always: tuple[str, ...] = ()
    """The patterns that `Allow(always=True)` would allow from now on;
    empty: it can't be allowed always.
    """
    tool: str = ""
    """The tool that asks."""
    session_id: str = ""
    """The id of the session that asks: your session, or that of a subagent."""
    details: Mapping[str, object] = EMPTY_MAPPING
    """Data that a user interface would show, such as the command or the diff."""

    def __str__(self) -> str:
        """Return the question in one line."""
        return f"{self.permission}: {', '.join(self.patterns)}"


class Allow(Struct, frozen=True):
    """Allows the call. `always`: also allow, from now on in this directory,
    the patterns in the question's `always`.

    `session`: allow them until the session is deleted, in it and its subagents, and not beyond.
    """

    always: bool = False
    session: bool = False


class Deny(Struct, frozen=True):
    """Refuses the call. The model reads the reason and goes on; with `stop`, the turn ends."""

    reason: str = "The program that runs this session refused it. Find another way, or say what you could not do."
    stop: bool = False


PermissionReply = Allow | Deny | bool
"""The answer to a `PermissionQuestion`. True means `Allow()`, False means `Deny()`."""
OnPermission = Callable[[PermissionQuestion], "PermissionReply | Awaitable[PermissionReply]"]
"""A callback that answers a `PermissionQuestion`. One that is not async runs in a thread,
so it may wait for a user.
"""


class Choice(Struct, frozen=True):
    """One of the answers that the model offers to choose from."""

    label: str
    description: str = ""


class ModelQuestion(Struct, frozen=True, kw_only=True):
    """A question that the model asks you."""

    question: str
    header: str = ""
    """A title of one or two words."""
    choices: tuple[Choice, ...] = ()
    """The answers that the model offers to choose from."""
    multiple: bool = False
    """Whether several answers may be given."""
    custom: bool = True
    """Whether an answer in other words may be given."""
    session_id: str = ""


QuestionReply = str | Sequence[str] | None
"""One answer or several: labels of choices, or your own words.
None: no answer, which the model is informed of.
"""
OnQuestion = Callable[[ModelQuestion], "QuestionReply | Awaitable[QuestionReply]"]


class SessionOptions(TypedDict, total=False):
    """The options of sessions. Those given to `open` or `connect` are the defaults of
    all sessions of the project.
    """

    model: str
    """The model, as `provider/model` (see `codeloop models`); by default the configured one."""
    variant: str
    """How much the model thinks: `low`, `high`, ...; by default as the session did."""
    agent: str
    """The agent: `build`, `plan`, or one that you defined."""
    profile: ProfileName
    """The permission profile: what needs no question.
    `ask`, `auto` (the default), `read-only`, `yolo`.
    """
    permission: Rules
    """Rules that are added after those of the configuration: `{"bash": {"*": "ask",
    "npm test *": "allow"}}`.
    """
    tools: Sequence[Callable[..., object]]
    """Functions that the model may call. Name and docstring describe a function,
    annotations its parameters.
    """
    on_permission: OnPermission
    """Answers a `PermissionQuestion` with `Allow`, `Deny` or a bool;
    without it, every question is refused.
    """
    on_question: OnQuestion
    """Answers a `ModelQuestion` with a text, several texts, or None;
    without it, the model can't ask questions.
    """
    limits: TurnLimits
    """The limits of each turn."""
    system: str
    """A text that is added to the system prompt."""


class OpenOptions(SessionOptions, total=False):
    """The options of a project in this process."""

    budget: Budget
    """The dollars that the project's sessions may spend,
    together with all others that have the same budget.
    """
    trust: bool
    """Whether to treat the directory as trusted this time;
    untrusted, its configuration can only restrict yours.
    """
    config: "str | os.PathLike[str]"
    """A configuration file that takes precedence over your other ones."""
    settings: Mapping[str, object]
    """A configuration as an object, which takes precedence over all files."""
    record: "str | os.PathLike[str]"
    """A new file to which the answers of the models are written."""
    replay: "str | os.PathLike[str]"
    """A file written with `record`, whose answers are used instead of a model: no key is needed,
    the tools are real.
    """
    environment: Mapping[str, str]
    """The environment variables to use instead of `os.environ`."""


class ConnectOptions(SessionOptions, total=False):
    """The options of a project on a server."""

    budget: Budget
    """The dollars that the project's sessions may spend,
    with all others on that server that have the same budget.
    """
    directory: "str | os.PathLike[str]"
    """The project's directory on the server; by default the one that the server was started in."""
    username: str
    """The user name of the credential; rarely needed."""
    password: str
    """The password of the credential; not needed for a server that you run on this machine,
    where it is found.
    """


OptionsType = TypeVar("OptionsType", bound=SessionOptions)


def check_options(options: OptionsType, kind: type[SessionOptions]) -> OptionsType:
    """Return the options that are not None. Raises TypeError, as Python does,
    for an unknown option.
    """
    optional_keys = kind.__optional_keys__
    for name in options:
        if name not in optional_keys:
            raise TypeError(
                f"There is no option {name!r}.{format_suggestion(find_similar(name, optional_keys))} "
                f"There are: {', '.join(sorted(optional_keys))}."
            )
    return cast(
        "OptionsType", {name: value for name, value in options.items() if value is not None}
    )
