"""A real ToolContext for tests: a real store and workspace in a temporary directory; questions are recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeloop.kit.wildcard import matches
from codeloop.permission.gate import Denied
from codeloop.permission.rules import Verdict
from codeloop.schema.event import session_created
from codeloop.schema.ids import new_id
from codeloop.schema.message import Session, SessionTime
from codeloop.schema.permission import Need, PermissionRule, QuestionTool
from codeloop.store.store import Store
from codeloop.tool.call_session import CallSession
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure
from codeloop.workspace.workspace import Workspace


@dataclass
class TestContext:
    """Satisfies ToolContext. `deny` holds permission names or `permission:pattern` wildcards that are refused."""

    __test__ = False

    session_id: str
    message_id: str
    call_id: str
    workspace: Workspace
    store: Store
    deny: tuple[str, ...] = ()
    asked: list[Need] = field(default_factory=list[Need])
    reports: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    session: CallSession = field(init=False)

    def __post_init__(self) -> None:
        call = QuestionTool(message_id=self.message_id, call_id=self.call_id)
        self.session = CallSession(self.store, self.session_id, call)

    async def ask(self, need: Need) -> None:
        self.asked.append(need)
        for entry in self.deny:
            permission, _, pattern = entry.partition(":")
            hit = tuple(p for p in need.patterns if not pattern or matches(p, pattern))
            if matches(need.permission, permission) and hit:
                rule = PermissionRule(permission=permission, pattern=pattern or "*", action="deny")
                raise Denied(need, Verdict("deny", hit, rule))

    def report(self, *, title: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        self.reports.append({"title": title, "metadata": metadata})

    async def spawn(self, task: Subtask) -> SubtaskResult:
        raise ToolFailure(f"this test's context launches no subagents ({task.agent})")


def make_context(
    tmp_path: Path, *, deny: Sequence[str] = (), root: Path | None = None, directory: Path | None = None
) -> TestContext:
    """Make a context over `root` (default: a new folder `work` in `tmp_path`); store and scratch lie beside it."""
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
    store.append(session_created(session))
    return TestContext(session.id, new_id("msg"), "call_1", workspace, store, tuple(deny))
