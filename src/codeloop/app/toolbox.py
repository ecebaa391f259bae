"""The tools of a project, in the order in which models are told of them."""

from collections.abc import Iterable

from codeloop.extend.agents import naming_subagents
from codeloop.schema.agent import Agent
from codeloop.tool.builtin.files.apply_patch import apply_patch
from codeloop.tool.builtin.files.edit import edit
from codeloop.tool.builtin.files.multiedit import multiedit
from codeloop.tool.builtin.files.read import read
from codeloop.tool.builtin.files.write import write
from codeloop.tool.builtin.search.glob import glob
from codeloop.tool.builtin.search.grep import grep
from codeloop.tool.builtin.search.list_ import list_
from codeloop.tool.builtin.session.batch import batch_tool
from codeloop.tool.builtin.session.plan_exit import plan_exit
from codeloop.tool.builtin.session.question import question
from codeloop.tool.builtin.session.task import task
from codeloop.tool.builtin.session.task_output import task_output
from codeloop.tool.builtin.session.todoread import todoread
from codeloop.tool.builtin.session.todowrite import todowrite
from codeloop.tool.builtin.shell.bash import bash
from codeloop.tool.builtin.shell.bash_kill import bash_kill
from codeloop.tool.builtin.shell.bash_output import bash_output
from codeloop.tool.builtin.web.webfetch import webfetch
from codeloop.tool.tool import Tool
from codeloop.tool.toolbox import Toolbox

BUILTIN = (
    bash,
    bash_output,
    bash_kill,
    read,
    write,
    edit,
    multiedit,
    apply_patch,
    glob,
    grep,
    list_,
    webfetch,
    todowrite,
    todoread,
    question,
    task,
    task_output,
    plan_exit,
)


def toolbox_of(more: Iterable[Tool] = (), agents: dict[str, Agent] | None = None) -> Toolbox:
    """Return the built-in tools and those of the project; `task` names the subagents, `batch` runs any tool."""
    known = agents or {}
    tools = (*(naming_subagents(each, known) if each is task and known else each for each in BUILTIN), *more)
    return Toolbox((*tools, batch_tool(Toolbox(tools))))
