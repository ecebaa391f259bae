"""What runs beside a turn: background commands, subagents, calls of MCP servers that take long."""

from typing import Literal

from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import Wire

JobKind = Literal["command", "subagent", "call"]


class JobInfo(Wire):
    """Something that runs. `id`: of a command, the subagent's session, or the part of a call.

    `title`: the command line, the subagent's title, or the tool. `started`: ms since the epoch.
    `last_line`: the last line of its output. `addresses`: where a browser reaches its ports.
    `is_overdue`: a command that did not end within its timeout.
    """

    id: str
    kind: JobKind
    session_id: str
    title: str
    started: int
    last_line: str = ""
    addresses: list[str] = []
    is_overdue: bool = False


class JobId(Wire):
    """Names something that runs."""

    job_id: str


class JobOutputText(Wire):
    """The end of what a command has printed, or of what a subagent has said."""

    output: str


JOB_LIST = Operation(
    "job.list", "GET", "/job", NoArguments, list[JobInfo], "session.jobs:list_running"
)
JOB_OUTPUT = Operation(
    "job.output", "GET", "/job/{jobID}/output", JobId, JobOutputText, "session.jobs:read_output"
)
JOB_END = Operation("job.end", "POST", "/job/{jobID}/end", JobId, bool, "session.jobs:end_job")
