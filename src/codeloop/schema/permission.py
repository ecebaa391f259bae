"""Permissions as data: rules, tools' needs, the questions to the user,
and what was decided and is in force.
"""

from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from codeloop.schema.wire import JSON, Wire

Action = Literal["allow", "ask", "deny"]
Reply = Literal["once", "always", "reject"]
AlwaysScope = Literal["directory", "session"]
"""Where an "always" holds until it is revoked: in the directory,
or in the session and its subagents alone.
"""
Profile = Literal["ask", "auto", "read-only", "yolo"]
"""The sets of default rules, which come before the user's own: see `permission.defaults`."""
FORMER_PROFILES: dict[str, Profile] = {"plan": "read-only"}
"""The profiles by names that they had before; `plan` is only an agent now."""
ProfileName = Literal["ask", "auto", "read-only", "yolo", "plan"]
"""A profile as files, stored sessions and other programs name it; `parse_profile` reads it."""
PROFILES: tuple[Profile, ...] = get_args(Profile)
PROFILE_DESCRIPTIONS: dict[Profile, str] = {
    "ask": "reads without asking; asks before it edits or runs anything",
    "auto": "edits in the project, runs in the sandbox; asks beyond both",
    "read-only": "reads and plans; changes nothing",
    "yolo": "does everything without asking",
}
"""The description of each profile, for user interfaces."""
PROFILE_KEY = "profile"
"""The metadata key of the profile that was chosen for a session."""
Trait = Literal["read-only", "sandboxed"]
"""`read-only`: it is proved to change nothing; `sandboxed`: it will run inside a sandbox."""
TRAIT_PATTERNS: dict[str, Trait] = {f"<{trait}>": trait for trait in get_args(Trait)}
"""The patterns by which rules refer to a trait."""
LOSS_PATTERN = "<loss>"
"""The pattern of rules about commands of git that discard work (`permission/git_losses.py`)."""
REMOTE_PATTERN = "<remote>"
"""The pattern of rules about commands that change something on another machine or service."""
PERMISSIONS_OF_VERSION_TWO = {"shell": "bash", "subagent": "task", "write": "edit", "patch": "edit"}
"""The actions in rules of OpenCode 2 that have another name here -> our permission."""
PERMISSION_NAMES = frozenset(
    (
        *(
            "*",
            "read",
            "edit",
            "write",
            "multiedit",
            "apply_patch",
            "patch",
            "glob",
            "grep",
            "list",
            "bash",
            "task",
        ),
        *(
            "skill",
            "lsp",
            "todowrite",
            "todoread",
            "webfetch",
            "webfetch_private",
            "websearch",
            "codesearch",
        ),
        *(
            "external_directory",
            "sandbox",
            "mcp_changed",
            "mcp_resource",
            "mcp_sampling",
            "mcp_write",
            "doom_loop",
            "subagents",
        ),
        *(
            "question",
            "plan_enter",
            "plan_exit",
            "bash_output",
            "bash_kill",
            "batch",
            "task_output",
        ),
        *("shell", "subagent", "view", "ls", "fetch"),
    )
)
"""The names of rules' permissions, in our words and in those of OpenCode."""
OFFER_PATTERN = "<offer>"
"""The pattern of rules about whether a model is offered a tool; they decide about no call."""
NOBODY_MESSAGE = "Nobody is there to answer, so this was refused."
"""The message of a rejection that was not the user's."""
AUTO_MESSAGE = "Approved by --auto."
"""The message of a permission that the flag gave, not the user."""


def parse_profile(name: Any) -> Profile | None:
    """Return the profile of this name, which may be a former one; None: there is none."""
    return next(
        (profile for profile in PROFILES if profile == FORMER_PROFILES.get(str(name), name)), None
    )


def is_category_pattern(pattern: str) -> bool:
    """Return whether a rule's pattern is `<remote>`,
    a trait (`<read-only>`) or a kind of file (`<secret>`).
    """
    return (
        pattern.startswith("<")
        and pattern.endswith(">")
        and pattern[1:-1].replace("-", "").isalpha()
    )


class PermissionRule(Wire):
    """`permission` and `pattern` are wildcards (`*` any run, `?` one character);
    the last rule that matches counts.

    The patterns `<read-only>` and `<sandboxed>` match whatever has that trait.
    """

    permission: str
    pattern: str
    action: Action


Ruleset = tuple[PermissionRule, ...]


class Writes(Struct, frozen=True):
    """What a call may change in the work tree, so that undo can save it first.

    `files`: these alone (resolved paths); None: anything, as a shell command may. `ignored`:
    perhaps files that git ignores, too.
    """

    files: tuple[Path, ...] | None = None
    ignored: bool = False


class Need(Wire):
    """A permission that a tool needs for what it is about to do."""

    permission: str
    patterns: tuple[str, ...]
    """What the call does, as rules match it: commands, paths, URLs."""
    always: tuple[str, ...] = ()
    """The patterns that are allowed from then on if the user answers "always";
    none: that answer is not offered.
    """
    metadata: JSON = {}
    """For the user's screen: a diff, the command, the path."""
    possible: tuple[str, ...] = ()
    """What the call may do besides, known only in part: texts with the marks
    of `kit.wildcard` in them.

    A rule can deny the need or have it asked because of these, but never allows it because of them.
    """
    writes: Writes | None = None
    """What the call changes once this is allowed; None: nothing."""
    traits: tuple[Trait, ...] = ()
    """What is certain about the call; the rules for `<read-only>` and `<sandboxed>` match these."""
    unproven: str = ""
    """Why the meaning of a shell line is not certain,
    so that no rule for particular commands allows it; "": it is.
    """
    spellings: dict[str, tuple[str, ...]] = {}
    """Other spellings of a pattern, which rules that deny or ask about particular
    commands match as well.
    """
    once: bool = False
    """Where a rule for a kind of file asks, a user who has allowed this is not
    asked again in the session.
    """
    preset: Literal["ask", "allow"] | None = None
    """What was decided before the gate, by a hook or by the tool itself;
    a hook's decision replaces the tool's.

    "allow" answers what would be asked, "ask" has the user asked about what would be allowed;
    what is denied stays denied.
    """
    not_by_auto: str = ""
    """Why the flag `--auto` does not answer the question about this; "": it does."""
    remote: tuple[str, ...] = ()
    """Those of `patterns` and `possible` that change another machine or service;
    rules for `<remote>` match these.
    """


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


class Grant(Wire):
    """An "always" that is remembered: what it allows, in which directory ("": in its
    session alone), since when (ms).

    `id` is that of the question; `place` is where commands have to run for it,
    "" for the directory itself.
    """

    id: str
    session_id: str
    directory: str
    time: int
    permission: str
    patterns: list[str]
    place: str = ""


class RevokeGrant(Wire):
    """Revokes an "always" grant of a directory or of a session, by its id."""

    grant_id: str


class Decision(Wire):
    """What was decided about a need, and why.

    `rule` decided, and `origin` says where it is written. `by`: who answered where the rule asks
    (`person`, `--auto`, `profile yolo`, `nobody`), or `rule`, or `grant` with the id of an earlier
    "always". `time` in ms since the epoch.
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


class PermissionQuery(Wire):
    """Asks for the permissions in force in a session; without one, in a new session of an agent."""

    session_id: str | None = None
    agent: str | None = None


class RuleInForce(Wire):
    """A rule, and where it is written. `list`: rules of one list are applied together;
    each list must allow a call.
    """

    permission: str
    pattern: str
    action: Action
    origin: str
    list: int = 0


class PermissionsInForce(Wire):
    """The rules in force (the last that matches in a list decides), the "always" grants,
    and the latest decisions.
    """

    profile: Profile
    agent: str
    rules: list[RuleInForce]
    grants: list[Grant]
    decisions: list[Decision]
