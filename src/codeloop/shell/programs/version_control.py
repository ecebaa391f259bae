"""Rows of version control programs, but for git (`git.py`), and of the clients of forges."""

from codeloop.shell.client_programs import api_changes
from codeloop.shell.program_row import ProgramRow, list_by_name

_ROWS = {
    "arc": ProgramRow(remote="diff,land"),
    "bb": ProgramRow(remote="** create,merge,comment,approve,decline", tasks="*"),
    "bzr": ProgramRow(remote="push"),
    "gh": ProgramRow(
        options="-R=- --repo=-",
        groups="api issue pr release repo run workflow",
        remote="""
pr close,comment,create,edit,lock,merge,ready,reopen,revert,review,unlock,update-branch
issue close,comment,create,delete,develop,edit,lock,pin,reopen,transfer,unlock,unpin
release create,delete,delete-asset,edit,upload
repo archive,create,delete,edit,fork,rename,sync,unarchive
repo deploy-key add,delete
repo autolink create,delete
gist create,delete,edit,rename
workflow disable,enable,run
run cancel,delete,rerun
secret,variable delete,remove,set
label clone,create,delete,edit
ssh-key,gpg-key add,delete
cache delete
codespace create,cp,delete,edit,rebuild,ssh,stop
discussion close,comment,create,delete,edit,lock,reopen
project close,copy,create,delete,edit,field-create,field-delete,item-add,item-archive,item-create,item-delete
project item-edit,link,mark-template,unlink
agent-task create
""",
        changes_remote=api_changes,
    ),
    "git-grep": ProgramRow(runs_by="-O"),
    "glab": ProgramRow(
        groups="",
        remote="""
mr,issue,incident,epic approve,close,create,delete,for,lock,merge,new,note,rebase,reopen,revoke,subscribe,update
release create,delete,upload
repo archive,create,delete,fork,mirror,transfer
ci,pipeline cancel,delete,retry,run,trigger
variable,label,snippet,ssh-key,deploy-key,schedule,milestone,token add,create,delete,revoke,rotate,run,set,update
""",
        changes_remote=api_changes,
    ),
    "gt": ProgramRow(remote="submit,s,ss ! --dry-run"),
    "hg": ProgramRow(groups="", remote="push"),
    "hub": ProgramRow(
        remote="""
push,pull-request,create,delete,fork
issue,pr,release,gist create,delete,edit,labels,merge,transfer,update
"""
    ),
    "jira": ProgramRow(remote="** add,assign,clone,comment,create,delete,edit,move"),
    "jj": ProgramRow(remote="git push ! --dry-run"),
    "repo": ProgramRow(remote="upload ! -n --dry-run"),
    "svn": ProgramRow(
        groups="",
        remote="""
commit,ci,import,mkdir,copy,delete,move,propset,lock,unlock > *://*
commit,ci
""",
    ),
    "tea": ProgramRow(remote="** close,comment,create,delete,edit,merge,reopen"),
}
PROGRAMS = list_by_name(_ROWS)
