"""Other agents' names for our parameters and values, and commands of their editor tools: models are
trained on many agents and use their names. Those for our tools: `schema/tool_names.py`.

Theirs are in lower case and without underscores.
"""

PARAMETER_ALIASES: dict[str, str] = {
    "filePath": "path file filename targetfile absolutepath relativepath",
    "edits": "changes replacements",
    "ignore": "exclude excludes ignoreglobs ignorepatterns",
    "path": "directory dir folder directorypath dirpath folderpath searchpath root cwd filepath file targetdirectory",
    "oldString": "oldstr oldtext old search find",
    "newString": "newstr newtext new replace replacement",
    "replaceAll": "all",
    "content": "text contents filetext filecontent data code body",
    "patchText": "patch input diff",
    "pattern": "query regex regexp search searchterm globpattern",
    "include": "glob fileglob includepattern filepattern includes",
    "ignoreCase": "i caseinsensitive",
    "context": "c contextlines",
    "before": "b linesbefore",
    "after": "a linesafter",
    "mode": "outputmode",
    "command": "cmd script commandline code",
    "workdir": "cwd workingdirectory dir directory",
    "run_in_background": "background isbackground",
    "offset": "startline start from",
    "limit": "maxlines numlines count",
    "block": "enclosing enclosingblock wholefunction showfunction functioncontext",
    "id": "bashid shellid jobid taskid processid",
    "wait": "timeout waitms",
    "task_id": "id taskid sessionid agentid resume",
    "subagent_type": "agent subagent agenttype agentname type",
    "prompt": "instructions task message query",
    "description": "title",
    "query": "q queries searchterm searchquery keywords search",
    "numResults": "maxresults count limit topk num",
    "tokens": "tokensnum maxtokens limit",
    "url": "uri urls link address",
    "tool_calls": "calls invocations tooluses tools",
    "tool": "name toolname recipientname",
    "parameters": "arguments args input params",
    "todos": "items list tasks plan steps",
    "status": "state",
    "multiple": "multiselect allowmultiple",
    "label": "value text name",
    "operation": "action method",
    "line": "linenumber row",
    "symbol": "name identifier query function class method definition symbolname",
    "newName": "newsymbol to",
}
"""Other agents' names for our parameters; each of ours has the list of theirs."""

VALUE_ALIASES = {
    "fileswithmatches": "files",
    "filesonly": "files",
    "done": "completed",
    "complete": "completed",
    "finished": "completed",
    "todo": "pending",
    "open": "pending",
    "notstarted": "pending",
    "doing": "in_progress",
    "active": "in_progress",
    "started": "in_progress",
    "canceled": "cancelled",
    "skipped": "cancelled",
    "normal": "medium",
    "urgent": "high",
    "critical": "high",
    "md": "markdown",
    "plain": "text",
    "json": "text",
    "raw": "html",
    "gotodefinition": "definition",
    "gotoimplementation": "implementation",
    "findreferences": "references",
    "documentsymbol": "documentSymbols",
    "outline": "documentSymbols",
    "workspacesymbol": "workspaceSymbols",
    "preparecallhierarchy": "incomingCalls",
    "callers": "incomingCalls",
    "callees": "outgoingCalls",
}
"""Other agents' names for our values."""
LINE_RANGE_ALIASES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("offset", "startline", "linestart", "start", "from"), ("first",)),
    **dict.fromkeys(("endline", "lineend", "end", "to"), ("last",)),
    **dict.fromkeys(("viewrange", "linerange", "lines", "range"), ("first", "last")),
}
"""Other agents' names for the lines to read, each with the bounds that it sets."""
EDITOR_COMMANDS = {"view": "read", "create": "write", "strreplace": "edit"}
"""The commands of these tools, each with our tool for it."""
