"""Other agents' names for our tools: models call them, and users write rules by them.

Theirs are in lower case and without underscores.
"""

import re

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
    "bash": "containerexec unifiedexec writestdin runinterminal developershell",
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
    """Return our tools that have a name, or are called by it by other agents, in any spelling;
    empty: there are none.
    """
    plain = fold_name(name)
    if plain in EDITOR_TOOL_NAMES:
        return ["edit"]
    return [
        tool
        for tool in TOOL_ALIASES | _MORE_NAMES
        if plain == fold_name(tool)
        or plain in f"{TOOL_ALIASES.get(tool, '')} {_MORE_NAMES.get(tool, '')}".split()
    ]
