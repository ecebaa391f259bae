"""The command that shows what runs beside the turns: background commands, subagents,
calls that take long.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.segment import Segment

from codeloop.client.background_run import (
    BACKGROUND_FOLDER,
    describe_background,
    start_background_run,
)
from codeloop.client.slash.jobs import NOTHING_RUNS, describe_job, parse_ended_job
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.jobs import JOB_END, JOB_LIST, JOB_OUTPUT, JobId, JobInfo
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import UsageProblem
from codeloop.schema.jobs import count_running_jobs
from codeloop.schema.operation import NoArguments
from codeloop.tui.actions.show_dialog import show_dialog
from codeloop.tui.dialogs.parts.confirm import Confirm
from codeloop.tui.dialogs.parts.pick import Pick, PickAction, PickSource
from codeloop.tui.dialogs.parts.reading_screen import ReadingScreen
from codeloop.tui.dialogs.picker import Picker
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import wrap_line
from codeloop.tui.ui import Ui

GO_ON_PROMPT = "Go on where you were interrupted: the turn goes on in the background."
_MAX_LINE = 100
_GROUPS = {"command": "Commands", "subagent": "Subagents", "call": "Calls"}
_GROUP_ORDER = list(_GROUPS)


async def show_jobs(ui: Ui, words: str) -> None:
    """List what runs, with its output; a key ends one. `words`: `end ID` ends it at once."""
    if job_id := parse_ended_job(words):
        await ui.client.call(JOB_END, JobId(job_id=job_id))
        ui.notify(f"{job_id} was ended.")
        return
    client = ui.client

    async def load() -> Sequence[Pick[str]]:
        jobs = await client.call(JOB_LIST, NoArguments())
        return [
            _make_pick(job) for job in sorted(jobs, key=lambda each: _GROUP_ORDER.index(each.kind))
        ]

    async def end(job_id: str | None) -> bool:
        return job_id is not None and await client.call(JOB_END, JobId(job_id=job_id))

    async def draw_output(job_id: str, width: int) -> Sequence[Row]:
        return _wrap(ui, (await client.call(JOB_OUTPUT, JobId(job_id=job_id))).output, width)

    source = PickSource(
        title="What runs in the background",
        load=load,
        actions=(PickAction("ctrl+d", "end", end),),
        preview=draw_output,
        empty_message=NOTHING_RUNS,
        choose_label="show its output",
    )
    chosen = await show_dialog(ui, Picker(source, lambda: ui.appearance.styles))
    if chosen is not None:
        output = (
            await client.call(JOB_OUTPUT, JobId(job_id=chosen))
        ).output or "It has printed nothing yet."
        await show_dialog(
            ui,
            ReadingScreen(
                chosen, lambda width: _wrap(ui, output, width), lambda: ui.appearance.styles
            ),
        )


async def send_to_background(ui: Ui, _words: str) -> None:
    """Have the running turn go on in a process of its own, and leave."""
    view = ui.tab.view
    if view is None or not view.is_busy:
        raise UsageProblem(
            "No turn runs here. `codeloop run --background PROMPT` begins one in the background."
        )
    session = view.session
    if ui.launch.server:
        ui.exit(0, message=f"{session.id} goes on at {ui.launch.server}.")
        return
    if count := count_running_jobs((tab.session for tab in ui.tabs), on_server=False):
        text = f"What runs in the background ({count}) is ended; this turn goes on."
        question = Confirm("Leave this terminal?", text, "leave", lambda: ui.appearance.styles)
        if not await show_dialog(ui, question):
            return
    # What is at work is broken off here, and begun again there.
    if not await ui.client.call(ABORT, SessionId(session_id=session.id)):
        raise UsageProblem(
            "Another process works on the session: leave with ctrl+c, and it goes on."
        )
    arguments = ["--session", session.id, "--", GO_ON_PROMPT]
    folder = ui.launch.state_folder / BACKGROUND_FOLDER
    run = await start_background_run(arguments, folder, Path(session.directory))
    if run.exit_code:
        raise UsageProblem(f"It did not go on in the background: {run.message}")
    ui.exit(0, message=describe_background(session.id))


def _make_pick(job: JobInfo) -> Pick[str]:
    return Pick(
        job.id,
        one_line(describe_job(job), _MAX_LINE),
        hint=job.id if job.kind == "command" else "",
        group=_GROUPS[job.kind],
        note=job.last_line,
    )


def _wrap(ui: Ui, text: str, width: int) -> list[Row]:
    style = ui.appearance.styles.of("text")
    return [
        row
        for line in escape_controls(text.expandtabs()).split("\n")
        for row in wrap_line([Segment(line, style)], width)
    ]
