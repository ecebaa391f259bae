"""The built-in tools, in the order in which models are told of them."""

from codeloop.tool.builtin.bash import bash
from codeloop.tool.builtin.bash_kill import bash_kill
from codeloop.tool.builtin.bash_output import bash_output
from codeloop.tool.builtin.edit import edit
from codeloop.tool.builtin.glob import glob
from codeloop.tool.builtin.grep import grep
from codeloop.tool.builtin.list_ import list_
from codeloop.tool.builtin.multiedit import multiedit
from codeloop.tool.builtin.read import read
from codeloop.tool.builtin.todoread import todoread
from codeloop.tool.builtin.todowrite import todowrite
from codeloop.tool.builtin.write import write
from codeloop.tool.toolbox import Toolbox

TOOLBOX = Toolbox((bash, bash_output, bash_kill, read, write, edit, multiedit, glob, grep, list_, todowrite, todoread))
