"""The tools of a project, in the order in which models are told of them."""

from collections.abc import Iterable

from codeloop.extend.agents import naming_subagents
from codeloop.schema.agent import Agent
from codeloop.tool.builtin.apply_patch import apply_patch
from codeloop.tool.builtin.bash import bash
from codeloop.tool.builtin.bash_kill import bash_kill
from codeloop.tool.builtin.bash_output import bash_output
from codeloop.tool.builtin.batch import batch_tool
from codeloop.tool.builtin.edit import edit
from codeloop.tool.builtin.glob import glob
from codeloop.tool.builtin.grep import grep
from codeloop.tool.builtin.list_ import list_
from codeloop.tool.builtin.multiedit import multiedit
from codeloop.tool.builtin.plan_exit import plan_exit
from codeloop.tool.builtin.question import question
from codeloop.tool.builtin.read import read
from codeloop.tool.builtin.task import task
from codeloop.tool.builtin.task_output import task_output
from codeloop.tool.builtin.todoread import todoread
from codeloop.tool.builtin.todowrite import todowrite
from codeloop.tool.builtin.webfetch import webfetch
from codeloop.tool.builtin.write import write
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
    """Give the built-in tools and those of the project; `task` names the subagents, `batch` runs any tool."""
    known = agents or {}
    tools = (*(naming_subagents(each, known) if each is task and known else each for each in BUILTIN), *more)
    return Toolbox((*tools, batch_tool(Toolbox(tools))))
