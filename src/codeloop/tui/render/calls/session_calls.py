"""Renders calls of tools for the session: todos, questions, plans, skills, subagents, batches,
invalid calls.
"""

from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from codeloop.client.formatting import describe_command_end, format_duration
from codeloop.kit.text.readable_json import format_arguments
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError
from codeloop.tui.render.calls.tool_call import CallBody, ToolCall, as_list, as_mapping
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_line, prefix_rows, wrap_line

_TODO_BOXES = {
    "completed": ("[x]", "text_muted", "strike"),
    "in_progress": ("[>]", "primary", "bold"),
    "cancelled": ("[-]", "text_muted", "strike"),
    "pending": ("[ ]", "text", ""),
}
"""The box of a todo by its status, and the colour and attributes of its text."""
_FOLDED_REPORT_ROWS = 4
"""Rows of a subagent's report that are shown while the call is folded."""
_MAX_SUBAGENT_CALLS = 3
"""Calls of a subagent, the latest, that are shown while it works."""
# The inputs that best describe a call within another call, the best first. Not as in `find_subject`
# (`client/formatting.py`): of a search, the pattern says more than the path.
_SUBJECT_INPUTS = ("command", "filePath", "pattern", "path", "url", "query", "description", "name")


def render_todos(call: ToolCall) -> CallBody:
    """Render the todo list, with a box for each todo;
    if it is shown elsewhere, only how far it is.
    """
    rows: list[Row] = []
    todos = call.read_objects("todos")
    for todo in todos:
        box, colour, attributes = _TODO_BOXES.get(str(todo.get("status")), _TODO_BOXES["pending"])
        text = [
            Segment(
                escape_controls(" ".join(str(todo.get("content", "")).split())),
                call.style(colour, attributes),
            )
        ]
        rows += prefix_rows(
            wrap_line(text, max(call.room - 4, 4)),
            Segment(f"{box} ", call.style(colour)),
            Segment("    "),
        )
    done_count = sum(todo.get("status") == "completed" for todo in todos)
    subject = f"{done_count} of {len(todos)} done" if todos else ""
    is_elsewhere = call.item.is_outdated or call.canvas.has_tasks_beside
    if not is_elsewhere or call.is_open or not call.canvas.details:
        return CallBody(subject, rows=call.fold_rows(rows, 30), name="todos")
    current = next(
        (str(todo.get("content", "")) for todo in todos if todo.get("status") == "in_progress"), ""
    )
    return CallBody(f"{subject}, now: {current}" if current else subject, name="todos")


def render_task(call: ToolCall) -> CallBody:
    """Render a subagent: its latest calls while it works, afterwards its report."""
    child = call.item.child
    session_id = child.session_id if child is not None else _read_session_id(call)
    rows: list[Row] = []
    if child is not None and call.status in {"running", "asking"}:
        rows = [
            _draw_inner_call(
                call, part.tool, _describe_subject(part.state.input), _choose_mark(part)
            )
            for part in child.calls[-_MAX_SUBAGENT_CALLS:]
        ]
    rows += _draw_report(call)
    if session_id:
        rows.append(_draw_session_link(call, session_id))
    subject = call.get_input("description") or call.title
    return CallBody(subject, _list_task_notes(call), rows, link=session_id)


def _list_task_notes(call: ToolCall) -> list[str]:
    """Return the subagent's name, its state if that is worth a note, its number of steps,
    and the duration.
    """
    child = call.item.child
    agent = call.get_input("subagent_type") or (child.agent if child is not None else "")
    notes = [agent] if agent else []
    if child is not None and child.state and child.state not in {"running", "completed"}:
        notes.append(child.state)
    if child is not None and child.steps:
        notes.append(f"{child.steps} step{'' if child.steps == 1 else 's'}")
    # Of a running subagent, the duration is shown from the start.
    if call.status == "running":
        return [*notes, format_duration(call.elapsed_ms or 0)]
    return [*notes, *call.list_duration_notes()]


def _read_session_id(call: ToolCall) -> str:
    """Return the id of a subagent's session; "": it has none yet."""
    session_id = call.metadata.get("sessionId")
    return session_id if isinstance(session_id, str) else ""


def _draw_session_link(call: ToolCall, session_id: str) -> Row:
    """Return the row that opens a subagent's session when it is clicked;
    with the key for it, if there is room.
    """
    link_style = call.style("text_muted", "underline") + Style(meta={"open": session_id})
    link = Segment("open the subagent's session", link_style)
    key = Segment(f"  {call.canvas.child_key}".rstrip(), call.style("text_muted"))
    return (
        [link, key] if cell_len(link.text + key.text) <= call.room else cut_line([link], call.room)
    )


def render_task_output(call: ToolCall) -> CallBody:
    """Render the state of a background subagent."""
    state = call.metadata.get("state")
    notes = [str(state)] if state else []
    subject = call.title or call.get_input("task_id")
    return CallBody(subject, notes, _draw_report(call), link=_read_session_id(call))


def _draw_report(call: ToolCall) -> list[Row]:
    """Return the rows of a subagent's report; none in sessions stored by versions
    that did not store reports.
    """
    report = call.metadata.get("report")
    if not isinstance(report, str) or not report.strip():
        return []
    return call.fold_rows(call.draw_text(report.strip("\n")), _FOLDED_REPORT_ROWS)


def render_question(call: ToolCall) -> CallBody:
    """Render the questions with the user's answers."""
    # For each question the labels of the chosen options, or the user's own words.
    answers = [as_list(labels) for labels in as_list(call.metadata.get("answers"))]
    questions = [fields for fields in call.read_objects("questions") if fields.get("question")]
    rows: list[Row] = []
    for number, fields in enumerate(questions):
        question = escape_controls(" ".join(str(fields["question"]).split()))
        rows += wrap_line([Segment(question, call.style("text_muted"))], call.room)
        if number < len(answers):
            labels = ", ".join(str(label) for label in answers[number]) or "no answer"
            answer = wrap_line(
                [Segment(escape_controls(" ".join(labels.split())), call.style("text"))],
                max(call.room - 2, 4),
            )
            rows += prefix_rows(answer, Segment("→ ", call.style("primary")), Segment("  "))
    count = f"{len(questions)} question{'' if len(questions) == 1 else 's'}" if questions else ""
    return CallBody(count, rows=call.fold_rows(rows, 20))


def render_skill(call: ToolCall) -> CallBody:
    """Render the loading of a skill: its name; an open call shows its text."""
    return CallBody(call.get_input("name"), rows=call.draw_output_if_open())


def render_plan_exit(call: ToolCall) -> CallBody:
    """Render the question whether a plan is carried out,
    and the user's comments on it with the model's answers.
    """
    rows: list[Row] = []
    threads = [as_mapping(each) for each in as_list(call.metadata.get("threads"))]
    for thread in threads:
        answer, line = str(thread.get("answer") or ""), thread.get("line")
        where = f"line {line}: " if line else ""
        mark = (
            Segment("✓ ", call.style("success")) if answer else Segment("○ ", call.style("warning"))
        )
        text = [Segment(escape_controls(f"{where}{thread.get('text')}"), call.style("text"))]
        rows += prefix_rows(wrap_line(text, max(call.room - 2, 4)), mark, Segment("  "))
        answer_text = [Segment(escape_controls(answer or "open"), call.style("text_muted"))]
        rows += prefix_rows(
            wrap_line(answer_text, max(call.room - 4, 4)), Segment("  → "), Segment("    ")
        )
    notes: list[str] = []
    if threads:
        # Open: the model has not answered it yet.
        open_count = sum(not thread.get("answer") for thread in threads)
        notes = [
            f"{open_count} of {len(threads)} comments open"
            if open_count
            else f"{len(threads)} comments answered"
        ]
    title = "the plan is approved" if call.status == "done" else "carry out the plan?"
    return CallBody(title, notes, call.fold_rows(rows, 30), name="plan")


def render_batch(call: ToolCall) -> CallBody:
    """Render a batch: a row for each of its calls, with a mark for success or failure."""
    details = call.read_objects("details")
    rows: list[Row] = []
    for number, inner_call in enumerate(call.read_objects("tool_calls", "toolCalls") or details):
        result = details[number] if number < len(details) else {}
        mark = ""
        if result:
            mark = "✓" if result.get("ok") else "✗"
        subject = str(result.get("title") or "") or _describe_subject(
            as_mapping(inner_call.get("parameters"))
        )
        rows.append(_draw_inner_call(call, str(inner_call.get("tool", "")), subject, mark))
    return CallBody(
        subject=call.title or f"{len(rows)} calls",
        notes=call.list_duration_notes(),
        rows=[*call.fold_rows(rows, 12), *call.draw_output_if_open()],
    )


def render_invalid(call: ToolCall) -> CallBody:
    """Render a call of an unknown tool, or with invalid arguments."""
    return CallBody(
        call.get_input("tool"), rows=call.draw_output("error", max_rows=4), is_failed=True
    )


def _draw_inner_call(call: ToolCall, tool: str, subject: str, mark: str) -> Row:
    """Return the row of a call within another call;
    `mark`: shows its state, or "" if that is unknown.
    """
    mark_segments = (
        [Segment(f"{mark} ", call.style("error" if mark == "✗" else "text_muted"))] if mark else []
    )
    name = Segment(f"{one_line(tool, 30)} ", call.style("text_muted", "bold"))
    return cut_line(
        [*mark_segments, name, Segment(one_line(subject, 300), call.style("text_muted"))], call.room
    )


def _choose_mark(part: ToolPart) -> str:
    """Return the mark for the state of a subagent's call."""
    match part.state:
        case ToolStateCompleted(metadata=metadata):
            # A command that failed is still a completed call.
            return "✗" if part.tool == "bash" and describe_command_end(metadata) else "✓"
        case ToolStateError():
            return "✗"
        case _:
            return "●"


def _describe_subject(inputs: dict[str, Any]) -> str:
    """Return the input that best describes a call, or all of its inputs."""
    return next(
        (str(inputs[key]) for key in _SUBJECT_INPUTS if inputs.get(key)), ""
    ) or format_arguments(inputs)
