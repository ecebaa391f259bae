"""One session that is prompted through `codeloop mcp serve`: its state, its open questions,
and its report.
"""

import asyncio

from codeloop.client.formatting import find_subject
from codeloop.client.mcp_server.tools import Report
from codeloop.client.questions.forms import Request
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.event import Event, PartUpdated
from codeloop.schema.message import Session
from codeloop.schema.part import PatchPart, StepStartPart, ToolPart, ToolStateRunning
from codeloop.schema.wire import replace

_MAX_LINE = 120
"""Characters of a line about a call."""


class ServedSession:
    """A session that was prompted through this server. `lines`: its steps and calls, one line each.

    `pending_requests`: permission requests and questions without an answer, by id, oldest first.
    `asked_id`: the id of the request that the user is being asked; empty: none. `can_ask`: the
    client that sent the last prompt shows forms. `report`: what events and ended prompts have told;
    `ServedSessions.report` completes it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lines: list[str] = []
        self.pending_requests: dict[str, Request] = {}
        self.asked_id = ""
        self.can_ask = False
        self.report = Report(session_id=session.id)
        self.tasks: set[asyncio.Task[MessageWithParts]] = set()
        """One task for each prompt without an answer."""
        self.change = asyncio.Event()
        """Set at the next change, then replaced by a new event."""

    @property
    def is_working(self) -> bool:
        """Whether a prompt has no answer yet."""
        return bool(self.tasks)

    def announce_change(self) -> None:
        """Wake the tasks that wait for a change."""
        # A new event for the next change: tasks that wake late still see the old one set.
        self.change.set()
        self.change = asyncio.Event()

    def handle(self, event: Event) -> None:
        """Update the report and the lines by an event of this session."""
        match event:
            case PartUpdated(properties=p) if isinstance(p.part, StepStartPart):
                self.report = replace(self.report, steps=self.report.steps + 1)
                self.lines.append("asks the model")
            case PartUpdated(properties=p) if isinstance(p.part, PatchPart):
                files = list(dict.fromkeys((*self.report.changed, *p.part.files)))
                self.report = replace(self.report, changed=files)
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart):
                line = _describe_call(p.part)
                if not isinstance(p.part.state, ToolStateRunning) or line in self.lines[-1:]:
                    return
                self.lines.append(line)
            case _:
                return
        self.announce_change()


def _describe_call(part: ToolPart) -> str:
    """Return one line with the tool and the subject of a call."""
    return one_line(f"{part.tool} {find_subject(part.state.input)}", _MAX_LINE)
