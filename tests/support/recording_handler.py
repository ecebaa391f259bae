"""A project whose hooks are answered by functions of a test, and recorded."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codeloop.extend.hooks.hooks import Hooks
from codeloop.model.chat import ChatModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.wire import JSON
from tests.support.scripted_project import ScriptedProject, open_scripted_project

HookFunction = Callable[[JSON, JSON], JSON]
UNUSED_HOOKS: dict[str, Any] = {
    "PreCompact": [{"matcher": "never", "hooks": [{"type": "command", "command": "true"}]}]
}
"""The configuration of hooks that never run; with it, a project has a runner of hooks."""


class RecordingHandler:
    """A handler that answers each hook with the result of a function, and records the calls."""

    label = "the extension under test"
    is_project = False
    may_allow = True
    seconds: float | None = None

    def __init__(
        self, answers: dict[str, HookFunction], policy: frozenset[str] = frozenset()
    ) -> None:
        self.names = frozenset(answers)
        self.policy = policy
        self.asked: list[tuple[str, JSON, JSON]] = []
        self._answers = answers

    async def call(self, name: str, given: JSON, output: JSON, /) -> JSON:
        self.asked.append((name, given, output))
        return self._answers[name](given, output)

    def given(self, name: str) -> list[JSON]:
        """Return the inputs of the calls of a hook."""
        return [given for asked, given, _ in self.asked if asked == name]

    @property
    def counts(self) -> Counter[str]:
        """How often each hook was called."""
        return Counter(name for name, _, _ in self.asked)


def change_nothing(_given: JSON, output: JSON) -> JSON:
    """Change nothing."""
    return output


@asynccontextmanager
async def open_hooked_project(
    tmp_path: Path,
    answers: Sequence[ScriptedAnswer] | ChatModel,
    handler: RecordingHandler,
    **settings: Any,
) -> AsyncGenerator[ScriptedProject]:
    """Open a project as `rig` does, with a handler."""
    async with open_scripted_project(tmp_path, answers, hooks=UNUSED_HOOKS, **settings) as it:
        hooks = it.project.engine.hooks.runner
        assert isinstance(hooks, Hooks)
        hooks.set_handlers([handler])
        yield it
