"""The interface `View`, which shows a turn while it runs, and the choice of the view for an output format."""

from typing import Protocol

from codeloop.cli.output.result import Outcome
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.questions.prompter import Prompter
from codeloop.schema.event import Event, PartUpdated
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError


class View(Protocol):
    """Shows the events of one session; `finish` is called once, always."""

    @property
    def is_live(self) -> bool:
        """Whether `tick` shows something."""
        ...

    def show(self, event: Event) -> None:
        """Show an event of the session."""
        ...

    def show_subagent(self, event: Event, title: str) -> None:
        """Show an event of a subagent's session; `title`: its task."""
        ...

    def tick(self) -> None:
        """Show what is going on at this moment."""
        ...

    def note(self, text: str) -> None:
        """Show the user something that is not part of the answer."""
        ...

    def finish(self, outcome: Outcome) -> None:
        """Show how the turn ended."""
        ...


class ViewAbovePrompt:
    """A view above the line on which a user types or is asked; a call's result is shown even while a question waits."""

    def __init__(self, view: View, prompter: Prompter) -> None:
        self._view = view
        self._prompter = prompter

    @property
    def is_live(self) -> bool:
        """Whether `tick` shows something."""
        return self._view.is_live

    def show(self, event: Event) -> None:
        """Show an event of the session."""
        self._prompter.write_above(lambda: self._view.show(event), is_urgent=_is_call_result(event))

    def show_subagent(self, event: Event, title: str) -> None:
        """Show an event of a subagent's session."""
        self._prompter.write_above(lambda: self._view.show_subagent(event, title), is_urgent=_is_call_result(event))

    def tick(self) -> None:
        """Show what is going on."""
        self._prompter.write_if_idle(self._view.tick)

    def note(self, text: str) -> None:
        """Show a note."""
        self._prompter.write_above(lambda: self._view.note(text))

    def finish(self, outcome: Outcome) -> None:
        """Show how the turn ended."""
        self._prompter.write_above(lambda: self._view.finish(outcome))


def make_view(
    form: str,
    stdout: OutputStream,
    stderr: OutputStream,
    session_id: str,
    *,
    prompt_id: str | None = None,
    **more: bool,
) -> View:
    """Return the view of a format, as in `Options`; `prompt_id`: the message to answer; `more`: how text is shown."""
    if form == "json":
        from codeloop.cli.output.json_lines import JsonView

        return JsonView(stdout, stderr, session_id)
    if form in {"stream-json", "result"}:
        from codeloop.cli.output.stream_json import StreamJsonView

        return StreamJsonView(stdout, stderr, session_id, is_result_only=form == "result")
    from codeloop.cli.output.text_view import TextView

    return TextView(stdout, stderr, prompt_id=prompt_id, **more)


def _is_call_result(event: Event) -> bool:
    part = event.properties.part if isinstance(event, PartUpdated) else None
    return isinstance(part, ToolPart) and isinstance(part.state, ToolStateCompleted | ToolStateError)
