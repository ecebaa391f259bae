"""What a project and its sessions are opened with: options, limits, and the answers of callbacks."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypedDict, TypeVar, cast

from msgspec import Struct

from codeloop.kit.suggest import find_similar, suggest_names
from codeloop.library.budget import Budget
from codeloop.library.events import NOTHING
from codeloop.schema.permission import Profile

Rules = Mapping[str, "Action | Mapping[str, Action]"]
"""Permission rules as in the configuration: `{"bash": {"*": "ask", "npm test *": "allow"}, "edit": "allow"}`."""
Action = Literal["allow", "ask", "deny"]
"""What a rule says."""


class TurnLimits(Struct, frozen=True, kw_only=True):
    """What bounds each turn; None: nothing. Beyond one of them `LimitReached` is raised."""

    steps: int | None = None
    """Requests to the model."""
    cost: float | None = None
    """Dollars, subagents included."""
    tokens: int | None = None
    """Tokens, subagents included."""
    seconds: float | None = None
    """Time."""


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """Something that the rules leave to you: a call waits for the answer."""

    permission: str
    """What kind it is: `bash`, `edit`, `external_directory`, or the name of a tool."""
    patterns: tuple[str, ...]
    """What it is about: commands, paths, addresses."""
    always: tuple[str, ...] = ()
    """What `Allow(always=True)` would allow from then on; empty: it can't be allowed always."""
    tool: str = ""
    """The tool that asks."""
    session_id: str = ""
    """The session that asks: yours, or that of a subagent."""
    details: Mapping[str, object] = NOTHING
    """What a screen would show: the command, the diff."""

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.permission}: {', '.join(self.patterns)}"


class Allow(Struct, frozen=True):
    """Yes. `always`: and do not ask again for what the question lists under `always`, in this directory."""

    always: bool = False


class Deny(Struct, frozen=True):
    """No. The model reads the reason and goes on; with `stop` the turn ends."""

    reason: str = "The program that runs this session refused it. Find another way, or say what you could not do."
    stop: bool = False


PermissionReply = Allow | Deny | bool
"""True is `Allow()`, False is `Deny()`."""
OnPermission = Callable[[PermissionQuestion], "PermissionReply | Awaitable[PermissionReply]"]
"""Answers a question; a plain function runs in a thread, so it may wait for a user."""


class Choice(Struct, frozen=True):
    """One of the answers that the model offers."""

    label: str
    description: str = ""


class ModelQuestion(Struct, frozen=True, kw_only=True):
    """Something that the model wants to know from you."""

    question: str
    header: str = ""
    """A word or two."""
    choices: tuple[Choice, ...] = ()
    """Answers that the model offers."""
    multiple: bool = False
    """Several answers are welcome."""
    custom: bool = True
    """An answer in other words is welcome."""
    session_id: str = ""


QuestionReply = str | Sequence[str] | None
"""One answer or several: labels of choices, or your own words. None: no answer; the model is told so."""
OnQuestion = Callable[[ModelQuestion], "QuestionReply | Awaitable[QuestionReply]"]


class SessionOptions(TypedDict, total=False):
    """Options of sessions. Those given to `open` or `connect` hold for each session that gives none itself."""

    model: str
    """`provider/model`, as `codeloop models` lists them; else the configured one."""
    agent: str
    """The agent: `build`, `plan`, or one of yours."""
    profile: Profile
    """What needs no question: `ask`, `auto` (the default), `plan`, `yolo`."""
    permission: Rules
    """Rules as in the configuration, after all others: `{"bash": {"*": "ask", "npm test *": "allow"}}`."""
    tools: Sequence[Callable[..., object]]
    """Functions that the model may call: name and docstring describe them, annotations their parameters."""
    on_permission: OnPermission
    """Answers a `PermissionQuestion` by `Allow`, `Deny` or a bool; without it each is refused."""
    on_question: OnQuestion
    """Answers a `ModelQuestion` by a text, several, or None; without it the model is not offered to ask."""
    limits: TurnLimits
    """What bounds each turn."""
    system: str
    """Text that is added to the system prompt."""


class OpenOptions(SessionOptions, total=False):
    """Options of a project in this process."""

    budget: Budget
    """What the project's sessions may spend, together with all others that have the same budget."""
    trust: bool
    """Treat the directory as trusted this once: else its own configuration can only tighten yours."""
    config: "str | os.PathLike[str]"
    """A configuration file that comes on top of the others."""
    settings: Mapping[str, object]
    """Configuration as an object, which comes on top of all files."""
    record: "str | os.PathLike[str]"
    """Write what the models answer to this new file."""
    replay: "str | os.PathLike[str]"
    """Play the answers of such a file in place of asking a model: no key is needed, the tools are real."""
    environment: Mapping[str, str]
    """What stands in for `os.environ`."""


class ConnectOptions(SessionOptions, total=False):
    """Options of a project on a server."""

    budget: Budget
    """What the project's sessions may spend, together with all others on that server that have the same budget."""
    directory: "str | os.PathLike[str]"
    """The project's directory on the server; else the server's own."""
    username: str
    """Of the credential; rarely needed."""
    password: str
    """Of the credential; that of a server that runs as you on this machine is found by itself."""


OptionsType = TypeVar("OptionsType", bound=SessionOptions)


def check_options(options: OptionsType, kind: type[SessionOptions]) -> OptionsType:
    """Return the options that are not None. Raises TypeError, as Python does, for one that there is not."""
    optional_keys = kind.__optional_keys__
    for name in options:
        if name not in optional_keys:
            raise TypeError(
                f"There is no option {name!r}.{suggest_names(find_similar(name, optional_keys))} "
                f"There are: {', '.join(sorted(optional_keys))}."
            )
    return cast("OptionsType", {name: value for name, value in options.items() if value is not None})
