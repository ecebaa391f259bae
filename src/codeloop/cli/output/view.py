"""`View`, the interface of objects that show a turn while it runs, and `make_view`,
which makes that of a format.
"""

from typing import Protocol

from codeloop.cli.output.result import Outcome
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.questions.prompter import Prompter
from codeloop.schema.event import Event, PartUpdated
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError


class View(Protocol):
    """Shows the events of one session; `finish` is called at the end of each turn,
    by `run` also without one.
    """

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
        """Redraw the progress; called every REDRAW_INTERVAL while `is_live`."""
        ...

    def note(self, text: str) -> None:
        """Show the user a line that is not part of the answer."""
        ...

    def finish(self, outcome: Outcome) -> None:
        """Show how the turn ended."""
        ...


class ViewAbovePrompt:
    """A view that writes above the prompt or the question of a prompter.

    While a question waits for its answer, results of calls, notes and outcomes are shown,
    other events after it.
    """

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
        self._prompter.write_above(
            lambda: self._view.show_subagent(event, title), is_urgent=_is_call_result(event)
        )

    def tick(self) -> None:
        """Redraw the progress, unless the user types or is asked."""
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
    **text_options: bool,
) -> View:
    """Make the view of an output format.

    `form`: a value of `Options.format`. `prompt_id`: the prompt to answer.
    `text_options`: the options of `TextView`.
    """
    # A run needs one of the views, so only that one is loaded.
    if form == "json":
        from codeloop.cli.output.json_view import JsonView

        return JsonView(stdout, stderr, session_id)
    if form in {"stream-json", "result"}:
        from codeloop.cli.output.stream_json.stream_json_view import StreamJsonView

        return StreamJsonView(stdout, stderr, session_id, is_result_only=form == "result")
    from codeloop.cli.output.text_view import TextView

    return TextView(stdout, stderr, prompt_id=prompt_id, **text_options)


def _is_call_result(event: Event) -> bool:
    part = event.properties.part if isinstance(event, PartUpdated) else None
    return isinstance(part, ToolPart) and isinstance(
        part.state, ToolStateCompleted | ToolStateError
    )
