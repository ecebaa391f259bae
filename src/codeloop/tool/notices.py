"""What a session is told with its next result or prompt: something that it has read is not what it was."""

from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolResult

_MOST = 20
"""Lines that wait for one session; older ones are dropped."""


class Notices:
    """Lines that wait, by session, each once; a part of the work tree."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[str]] = {}

    def add(self, session_id: str, line: str) -> None:
        """Let a line wait for the session's next result or prompt."""
        waiting = self._waiting.setdefault(session_id, [])
        if line not in waiting:
            waiting.append(line)
            del waiting[:-_MOST]

    def take(self, session_id: str) -> str:
        """Return what waits, as one text, and forget it; "": nothing."""
        return "\n".join(self._waiting.pop(session_id, ()))

    def with_result(self, session_id: str, result: ToolResult) -> ToolResult:
        """Return a result with what waits below it."""
        told = self.take(session_id)
        return replace(result, output=f"{result.output}\n\n{told}") if told else result
