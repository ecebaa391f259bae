"""Permissions as data: rules, tools' needs, and the questions to the user."""

from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from codeloop.schema.wire import JSON, Wire

Action = Literal["allow", "ask", "deny"]
Reply = Literal["once", "always", "reject"]
Profile = Literal["ask", "auto", "plan", "yolo"]
"""The sets of default rules, which come before the user's own: see `permission.defaults`."""
PROFILES: tuple[Profile, ...] = get_args(Profile)
PROFILE_DESCRIPTIONS: dict[Profile, str] = {
    "ask": "reads without asking; asks before it edits or runs anything",
    "auto": "edits in the project, runs in the sandbox; asks beyond both",
    "plan": "reads and plans; changes nothing",
    "yolo": "does everything without asking",
}
"""The description of each profile, for user interfaces."""
PROFILE_KEY = "profile"
"""The metadata key of the profile that was chosen for a session."""
Trait = Literal["read-only", "sandboxed"]
"""`read-only`: it is proved to change nothing; `sandboxed`: it will run inside a sandbox."""
TRAIT_PATTERNS: dict[str, Trait] = {f"<{trait}>": trait for trait in get_args(Trait)}
"""The patterns by which rules refer to a trait."""
REMOTE_PATTERN = "<remote>"
"""The pattern of rules about commands that change something on another machine or service."""


def is_named(pattern: str) -> bool:
    """Return whether a rule's pattern names a trait or a kind of file (`<secret>`) and is no wildcard."""
    return pattern.startswith("<") and pattern.endswith(">") and pattern[1:-1].replace("-", "").isalpha()


class PermissionRule(Wire):
    """`permission` and `pattern` are wildcards (`*` any run, `?` one character); the last rule that matches counts.

    The patterns `<read-only>` and `<sandboxed>` match whatever has that trait.
    """

    permission: str
    pattern: str
    action: Action


NOBODY_MESSAGE = "Nobody is there to answer, so this was refused."
"""The message of a rejection that was not the user's."""
Ruleset = tuple[PermissionRule, ...]


class Writes(Struct, frozen=True):
    """What a call may change in the work tree, so that undo can save it first.

    `files`: these alone (resolved paths); None: anything, as a shell command may. `ignored`: perhaps files that git
    ignores, too.
    """

    files: tuple[Path, ...] | None = None
    ignored: bool = False


class Need(Wire):
    """What a tool wants to do now (`patterns`), and what an "always" would allow later (`always`).

    `metadata` is for the user's screen: a diff, the command, the path. `possible`: what may happen as well but is
    known only in part, as texts with the marks of `kit.wildcard` in them; it may keep a need from being allowed, and
    never allows one. `writes`: what the call changes once this is allowed; None: nothing. `traits`: what is sure of it,
    which rules for `<read-only>` and `<sandboxed>` are about. `unproven`: why the meaning of a shell line is not
    certain, so that no rule for particular commands allows it; "": it is certain. `spellings`: for a pattern, what else
    rules that deny or ask for particular commands may know it by. `once`: a user who allows it where a rule for a
    kind of file asks is not asked again in the session. `hooked`: what an extension said of the call: what would be
    asked is allowed, or what would be allowed is asked; what is denied stays denied. `remote`: which of `patterns` and
    `possible` change something on another machine or service; rules for `<remote>` are about these.
    """

    permission: str
    patterns: tuple[str, ...]
    always: tuple[str, ...] = ()
    metadata: JSON = {}
    possible: tuple[str, ...] = ()
    writes: Writes | None = None
    traits: tuple[Trait, ...] = ()
    unproven: str = ""
    spellings: dict[str, tuple[str, ...]] = {}
    once: bool = False
    hooked: Literal["ask", "allow"] | None = None
    remote: tuple[str, ...] = ()


class QuestionTool(Wire):
    """The call that a question belongs to."""

    message_id: str
    call_id: str


class PermissionRequest(Wire):
    """A question for permission that waits for the user's answer, as clients see it."""

    id: str
    session_id: str
    permission: str
    patterns: list[str]
    metadata: JSON
    always: list[str]
    tool: QuestionTool | None = None


AUTO_MESSAGE = "Approved by --auto."
"""The message of a permission that the flag gave, not the user."""


class Grant(Wire):
    """An "always" that is remembered: what it allows, in which directory ("": in its session alone), since when (ms).

    `id` is that of the question; `place` is where commands have to run for it, "" for the directory itself.
    """

    id: str
    session_id: str
    directory: str
    time: int
    permission: str
    patterns: list[str]
    place: str = ""


class Decision(Wire):
    """What was decided about a need, and why.

    `rule` decided, and `origin` says where it is written. `by`: who answered where the rule asks (`person`, `--auto`,
    `profile yolo`, `nobody`), or `rule`, or `grant` with the id of an earlier "always". `time` in ms since the epoch.
    """

    session_id: str
    time: int
    action: Literal["allow", "deny"]
    permission: str
    patterns: list[str]
    by: str
    origin: str
    rule: PermissionRule | None = None
    traits: list[Trait] = []
    unproven: str = ""
    call: QuestionTool | None = None
