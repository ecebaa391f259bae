"""A real ToolContext for tests: a real store and workspace in a temporary directory;
questions are recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeloop.kit.wildcard import matches
from codeloop.permission.defaults import make_base_rules, make_guard_rules
from codeloop.permission.gate import Denied, Rejected
from codeloop.permission.rules import (
    RuleLayer,
    Verdict,
    decide,
    find_strictest,
    list_denied_patterns,
)
from codeloop.schema.event import make_session_created
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session, SessionTime
from codeloop.schema.permission import (
    NOBODY_MESSAGE,
    Action,
    Decision,
    Need,
    PermissionRule,
    QuestionTool,
    Ruleset,
)
from codeloop.store.store import Store
from codeloop.tool.call_session import CallSession
from codeloop.tool.services import ToolServices
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure
from codeloop.workspace.workspace import Workspace


@dataclass
class TestContext:
    """Satisfies ToolContext. `deny` holds permission names or `permission:pattern`
    wildcards that are refused.

    With `rules`, needs are decided by the built-in rules and these,
    and what is asked about is refused.
    """

    __test__ = False

    session_id: str
    message_id: str
    call_id: str
    workspace: Workspace
    store: Store
    deny: tuple[str, ...] = ()
    rules: Ruleset | None = None
    asked: list[Need] = field(default_factory=list[Need])
    reports: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    services: ToolServices = field(default_factory=ToolServices)
    decided_by: str = ""
    """Who allows what is asked for, as decisions say it; "": they are not stored."""

    session: CallSession = field(init=False)

    def __post_init__(self) -> None:
        call = QuestionTool(message_id=self.message_id, call_id=self.call_id)
        self.session = CallSession(
            self.store, self.session_id, call, self._judge, list_denials=self._denials
        )

    async def ask(self, *needs: Need) -> bool:
        for need in needs:
            self.asked.append(need)
            for entry in self.deny:
                permission, _, pattern = entry.partition(":")
                hit = tuple(p for p in need.patterns if not pattern or matches(p, pattern))
                if matches(need.permission, permission) and hit:
                    rule = PermissionRule(
                        permission=permission, pattern=pattern or "*", action="deny"
                    )
                    raise Denied(need, Verdict("deny", hit, rule))
        verdicts = [self.verdict(need) for need in needs] if self.rules is not None else []
        for action in ("deny", "ask"):
            for need, verdict in zip(needs, verdicts, strict=False):
                if verdict.action == action:
                    raise (
                        Denied(need, verdict)
                        if action == "deny"
                        else Rejected(need, NOBODY_MESSAGE)
                    )
        for need in needs if self.decided_by else ():
            self.store.permissions.store_decision(
                Decision(
                    session_id=self.session_id,
                    time=0,
                    action="allow",
                    permission=need.permission,
                    patterns=list(need.patterns),
                    by=self.decided_by,
                    origin="",
                    call=QuestionTool(message_id=self.message_id, call_id=self.call_id),
                )
            )
        return False

    def verdict(self, need: Need) -> Verdict:
        """Decide a need by the built-in rules of the profile auto, then `rules`;
        nobody is there to be asked.
        """
        own = self.rules or ()
        return find_strictest(
            [
                decide(need, make_base_rules("auto", self.workspace.scratch), own),
                decide(need, make_guard_rules(own)),
            ]
        )

    def _denials(self, permission: str) -> tuple[str, ...]:
        return list_denied_patterns(permission, [(RuleLayer("test", self.rules or ()),)])

    def _judge(self, permission: str, patterns: Sequence[str]) -> dict[str, Action]:
        actions: dict[str, Action] = {
            each: self.verdict(Need(permission=permission, patterns=(each,))).action
            for each in patterns
        }
        return {each: action for each, action in actions.items() if action != "allow"}

    def report(self, *, title: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        self.reports.append({"title": title, "metadata": metadata})

    async def spawn(self, task: Subtask) -> SubtaskResult:
        raise ToolFailure(f"this test's context launches no subagents ({task.agent})")


def make_context(
    tmp_path: Path,
    *,
    deny: Sequence[str] = (),
    root: Path | None = None,
    directory: Path | None = None,
) -> TestContext:
    """Make a context over `root` (default: a new folder `work` in `tmp_path`);
    store and scratch lie beside it.
    """
    top = root or tmp_path / "work"
    scratch = tmp_path / "scratch"
    top.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(exist_ok=True)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    workspace = Workspace(top, directory or top, scratch, environment)
    store = Store(tmp_path / "codeloop.db")
    session = Session(
        id=new_id("ses"),
        slug="s",
        project_id="p",
        directory=str(workspace.directory),
        title="",
        version="",
        time=SessionTime(created=1, updated=1),
    )
    store.append(make_session_created(session))
    return TestContext(session.id, new_id("msg"), "call_1", workspace, store, tuple(deny))
