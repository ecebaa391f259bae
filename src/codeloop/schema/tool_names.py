"""Other agents' names for our tools: models call them, and users write rules by them.

Theirs are in lower case and without underscores.
"""

import re

from codeloop.kit.wildcard import matches
from codeloop.schema.permission import PERMISSION_NAMES

TOOL_ALIASES: dict[str, str] = {
    "read": "readfile view viewfile openfile cat fileread",
    "edit": "strreplace stredit editfile replaceinfile searchreplace replacestring",
    "multiedit": "multieditfile",
    "write": "writefile createfile savefile filewrite writetofile",
    "apply_patch": "patch applydiff",
    "grep": "search searchfiles rg ripgrep grepsearch searchfilecontent searchtext",
    "glob": "find findfiles globfiles filesearch findfile",
    "list": "ls listfiles listdir listdirectory dir",
    "bash": "shell sh terminal exec execcommand runcommand runterminalcmd runshellcommand executecommand localshell",
    "bash_output": "shelloutput readoutput getbashoutput getterminaloutput",
    "bash_kill": "killshell killbash killprocess stopbash taskstop",
    "webfetch": "fetch fetchurl readurl",
    "websearch": "searchweb googlewebsearch googlesearch",
    "codesearch": "searchcode getcodecontext getcodecontextexa docssearch",
    "todoread": "todos gettodos listtodos readtodos gettodolist readplan",
    "batch": "parallel multitooluse runparallel",
    "todowrite": "writetodos todo updatetodos updateplan",
    "task": "agent subagent dispatchagent",
    "task_output": "taskresult gettaskoutput taskstatus agentoutput agentoutputtool",
    "question": "askuser askuserquestion askquestion",
    "plan_exit": "exitplanmode exitplan",
    "lsp": "languageserver codeintelligence",
}
"""Other agents' names for our tools; each of ours has the list of theirs."""

_MORE_NAMES: dict[str, str] = {
    "read": "notebookread readmanyfiles readmediafile viewimage",
    "edit": "notebookedit deletefile replace strreplacefile editfiles inserteditintofile",
    "bash": "containerexec unifiedexec writestdin runinterminal developershell shellcommand powershell pwsh",
    "grep": "codebasesearch semanticsearch",
    "codesearch": "sourcegraph",
    "webfetch": "fetchwebpage download",
    "websearch": "bravesearch",
    "todowrite": "settodolist managetodolist",
    "task": "delegate newtask",
    "plan_enter": "enterplanmode",
}
"""Further names, which only rules have: their calls take other parameters than ours."""
EDITOR_TOOL_NAMES = frozenset(
    {"strreplaceeditor", "strreplacebasededittool", "texteditor", "editor", "fileeditor"}
)
"""Other agents' tools that read and change files by several commands."""


def fold_name(name: str) -> str:
    """Return a name in the spelling of the aliases: lower-case letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_tools_by_alias(name: str) -> list[str]:
    """Return our tools and permissions that have a name, or are called by it by other agents, in
    any spelling (`Bash`, `BashTool`), or the wildcard for them that it is (`Web*`);
    empty: there are none.
    """
    wildcard = name.lower()
    if re.search(r"[*?]", name) and any(matches(each, wildcard) for each in PERMISSION_NAMES):
        return [wildcard]
    plain = fold_name(name)
    if plain in EDITOR_TOOL_NAMES:
        return ["edit"]
    for each in (plain, plain.removesuffix("tool")):
        own = [tool for tool in PERMISSION_NAMES if each and each == fold_name(tool)]
        found = own or [
            tool
            for tool in TOOL_ALIASES | _MORE_NAMES
            if each in f"{TOOL_ALIASES.get(tool, '')} {_MORE_NAMES.get(tool, '')}".split()
        ]
        if found:
            return found
    return []
