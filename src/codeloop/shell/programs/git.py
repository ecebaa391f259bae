"""The row of git, with those of its subcommands; some are in `git_exchange.py`."""

from codeloop.shell.git_reader import read_git
from codeloop.shell.harmless_checks import check_git
from codeloop.shell.program_row import ProgramRow, list_by_name
from codeloop.shell.programs.git_exchange import EXCHANGE_ROWS
from codeloop.shell.programs.git_options import (
    DIFF_OPTIONS,
    LISTING_OPTIONS,
    LOG_OPTIONS,
    REPOSITORY_OPTIONS,
    REVISION_OPTIONS,
    WORK_TREE_OPTIONS,
)
from codeloop.shell.unwrappers import unwrap_git

# The keys are one subcommand or several, divided by `;`.
_ROWS = {
    """
add; bundle; commit; commit-graph; fsck; gc; help; maintenance; notes; pack-refs; prune; repack;
replace; rerere; stage; update-index; update-ref; var; verify-pack; write-tree
""": ProgramRow(operands="-", options=REPOSITORY_OPTIONS),
    "am": ProgramRow(
        operands="r +X:/",
        options="--directory=- --exclude=- --include=- -p=- -C=- --resolvemsg=- --patch-format=-",
    ),
    """
annotate; cherry; range-diff; show-branch; verify-commit; whatchanged
""": ProgramRow(operands="g", options=REVISION_OPTIONS),
    "apply": ProgramRow(
        operands="r +X:/",
        options="""
--directory=- --exclude=- --include=- -p=- -C=- --build-fake-ancestor=w --stat!see --check!see
--numstat!see --summary!see
""",
    ),
    "archive": ProgramRow(
        operands="-:r",
        options="""
-o=w --output=w --add-file=r --prefix=- --format=- --remote=- --exec=- --add-virtual-file=-
""",
        runs_by="--exec",
    ),
    "checkout-index": ProgramRow(operands="- +W:/", options="--prefix=- --stage=-"),
    "bisect; cherry-pick; merge; mergetool; read-tree; revert": ProgramRow(
        operands="- +W:/", options=WORK_TREE_OPTIONS
    ),
    "blame": ProgramRow(
        operands="g",
        options="""
-b -C? -c -e -f -k -L=g -l -M? -n -p -s -t -w --abbrev? --color-by-age --color-lines --date=-
--first-parent --incremental --line-porcelain --porcelain --progress --root --show-email
--show-name --show-number --show-stats --since=-
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "branch": ProgramRow(
        operands="-",
        options=f"{LISTING_OPTIONS} -a -l -r -v -vv --abbrev --all --list --remotes --show-current --verbose",
        risky=REPOSITORY_OPTIONS,
        reads="",
        configures="-m -M --move -c -C --copy -u --set-upstream-to --unset-upstream --edit-description",
    ),
    "bundle create": ProgramRow(operands="w:-"),
    "bundle unbundle; bundle verify": ProgramRow(operands="r"),
    "cat-file": ProgramRow(
        operands="g",
        options="""
-e -p -s -t --allow-unknown-type --batch --batch-all-objects --batch-check --buffer --unordered
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "check-attr": ProgramRow(
        operands="g", options="-a -z --all --cached --stdin", risky=REVISION_OPTIONS, reads=""
    ),
    "check-ignore": ProgramRow(
        operands="g",
        options="-n -q -v -z --no-index --non-matching --quiet --stdin --verbose",
        risky=REVISION_OPTIONS,
        reads="",
    ),
    "checkout": ProgramRow(
        operands="W",
        options="-b=-!none -B=-!none --orphan=-!none --pathspec-from-file=r --conflict=-",
        destroys="*",
    ),
    "clean": ProgramRow(
        operands="W +W.", options="-e=- --exclude=- -n!see --dry-run!see", destroys="*"
    ),
    "config": ProgramRow(
        operands="-",
        options="""
-l!see -z --bool --default=- --get!see --get-all!see --get-regexp!see --global --int --list!see
--local --name-only!see --null --path --show-origin --show-scope --system --type=- --worktree
""",
        risky="""
-f=b --file=b --blob=- -t=- --comment=- --value=- --url=- --get-urlmatch!see --get-color!see
--get-colorbool!see
""",
        reads="",
        operand_pattern=r"[^.\s]+\.(?s:.*)",
        runs_by="alias. core.pager core.editor core.sshcommand core.hookspath core.fsmonitor",
    ),
    "count-objects": ProgramRow(
        operands="g",
        options="-H -v --human-readable --verbose",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "credential-store": ProgramRow(operands="-", options="--file=b"),
    "describe": ProgramRow(
        operands="g",
        options="""
--abbrev? --all --always --candidates=- --contains --debug --dirty --exact-match --exclude=-
--first-parent --long --match=- --tags
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "diff": ProgramRow(
        operands="g", options=DIFF_OPTIONS, risky=REVISION_OPTIONS, reads="", is_plain=True
    ),
    "diff-files": ProgramRow(
        operands="g", options=f"{DIFF_OPTIONS} -0 -1 -2 -3 -q", risky=REVISION_OPTIONS, reads=""
    ),
    "diff-index": ProgramRow(
        operands="g", options=f"{DIFF_OPTIONS} -m", risky=REVISION_OPTIONS, reads=""
    ),
    "diff-tree": ProgramRow(
        operands="g",
        options=f"{DIFF_OPTIONS} -c -m -v --cc --no-commit-id --root --stdin",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "difftool": ProgramRow(operands="g", options=REVISION_OPTIONS, runs_by="-x --extcmd"),
    "fast-export": ProgramRow(
        operands="-", options="--export-marks=w --import-marks=r --import-marks-if-exists=r"
    ),
    "fast-import": ProgramRow(
        operands="-", options="--export-marks=w --import-marks=r --export-pack-edges=w"
    ),
    "filter-branch": ProgramRow(operands="- +W:/", options=WORK_TREE_OPTIONS, runs_by="*"),
    "for-each-ref": ProgramRow(
        operands="-",
        options="""
--contains=- --count=- --exclude=- --format=- --ignore-case --merged=- --no-contains=-
--no-merged=- --omit-empty --points-at=- --sort=-
""",
        risky=REPOSITORY_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "format-patch": ProgramRow(
        operands="- +W.",
        options="""
-o=W --output-directory=W --output=w --signature-file=r --description-file=r -v=-
--subject-prefix=- --to=- --cc=- --stdout!see --in-reply-to=- --base=- --interdiff=-
--range-diff=-
""",
    ),
    "grep": ProgramRow(
        operands="-:R @R.",
        options="""
-A=- -a -B=- -C=- -c -E -e=-!all -F -G -H -h -I -i -L -l -m=- -n -o -P -p -q -r -v -W -w -z
--after-context=- --all-match --and --basic-regexp --before-context=- --break --cached --color
--column --context=- --count --extended-regexp --files-with-matches --files-without-match
--fixed-strings --full-name --function-context --heading --ignore-case --invert-match
--line-number --max-count=- --max-depth=- --name-only --no-color --not --null --only-matching
--or --perl-regexp --quiet --recursive --show-function --text --threads=- --untracked!deep
--word-regexp
""",
        risky="""
-f=r!all -O? --open-files-in-pager? --no-index!deep --no-exclude-standard!deep
""",
        reads="",
        is_plain=True,
        runs_by="-O --open-files-in-pager",
    ),
    "hash-object": ProgramRow(operands="r", options="-t=- --path=-"),
    "init": ProgramRow(
        operands="w",
        options="""
--template=r --separate-git-dir=w -b=- --initial-branch=- --object-format=- --shared?
--ref-format=-
""",
    ),
    "log; reflog show; show; stash list; stash show": ProgramRow(
        operands="g",
        options=f"{DIFF_OPTIONS} {LOG_OPTIONS}",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "ls-files": ProgramRow(
        operands="g",
        options="""
-c -d -f -i -k -m -o -s -t -u -v -X=r -x=- -z --abbrev? --cached --deduplicate --deleted
--directory --eol --error-unmatch --exclude=- --exclude-from=r --exclude-standard --format=-
--full-name --ignored --killed --modified --no-empty-directory --others --stage --unmerged
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "ls-tree": ProgramRow(
        operands="g",
        options="""
-d -l -r -t -z --abbrev? --format=- --full-name --full-tree --long --name-only --name-status
--object-only
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "merge-base": ProgramRow(
        operands="-",
        options="-a --all --fork-point --independent --is-ancestor --octopus",
        risky=REPOSITORY_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "mv": ProgramRow(operands="M>w"),
    "name-rev": ProgramRow(
        operands="g",
        options="--all --always --exclude=- --name-only --refs=- --tags",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "rebase": ProgramRow(operands="- +W:/", options=WORK_TREE_OPTIONS, runs_by="-x --exec"),
    "reflog": ProgramRow(
        operands="g",
        options=f"{DIFF_OPTIONS} {LOG_OPTIONS}",
        risky=REVISION_OPTIONS,
        reads="max:0",
    ),
    "reset; stash": ProgramRow(operands="- +W:/", options=WORK_TREE_OPTIONS, destroys="*"),
    "restore": ProgramRow(
        operands="W", options="-s=- --source=- --pathspec-from-file=r --conflict=-", destroys="*"
    ),
    "rev-list": ProgramRow(
        operands="g",
        options=f"{LOG_OPTIONS} --disk-usage --objects --objects-edge --quiet --timestamp",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "rev-parse": ProgramRow(
        operands="g",
        options="""
-q --abbrev-ref --absolute-git-dir --all --branches --default=- --disambiguate --git-common-dir
--git-dir --git-path=- --is-bare-repository --is-inside-git-dir --is-inside-work-tree
--is-shallow-repository --quiet --remotes --short --show-cdup --show-object-format --show-prefix
--show-superproject-working-tree --show-toplevel --sq --symbolic --symbolic-full-name --tags
--verify
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "rm": ProgramRow(operands="D", options="--pathspec-from-file=r --cached!none"),
    "shortlog": ProgramRow(
        operands="g",
        options=f"{LOG_OPTIONS} -e -s --email --numbered --summary",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "show-ref": ProgramRow(
        options="-d -q -s --abbrev --branches --dereference --hash --head --heads --quiet --tags --verify",
        reads="",
    ),
    "sparse-checkout": ProgramRow(
        operands="- +W:/", options=WORK_TREE_OPTIONS, configures="init set add reapply disable"
    ),
    "status": ProgramRow(
        operands="g",
        options="""
-b -s -u -uall -uno -unormal -v -vv -z --ahead-behind --branch --column --find-renames
--ignore-submodules --ignored --long --no-ahead-behind --no-column --no-renames --porcelain
--renames --short --show-stash --untracked-files --verbose
""",
        risky=REVISION_OPTIONS,
        reads="",
        is_plain=True,
    ),
    "submodule": ProgramRow(
        operands="-:W",
        options="-b=- --branch=- --reference=n --depth=- --name=-",
        configures="add init sync deinit set-url set-branch --init",
    ),
    "switch": ProgramRow(
        operands="- +W:/",
        options="-c=-!none -C=-!none --create=-!none --force-create=-!none --orphan=-!none --conflict=-",
        destroys="*",
    ),
    "symbolic-ref": ProgramRow(
        operands="-",
        options="-q --no-recurse --quiet --short",
        risky=REPOSITORY_OPTIONS,
        reads="max:1",
    ),
    "tag": ProgramRow(
        operands="-",
        options=f"{LISTING_OPTIONS} -l -n --list",
        risky=REPOSITORY_OPTIONS,
        reads="",
    ),
    "version": ProgramRow(
        operands="-", options="--build-options", risky=REPOSITORY_OPTIONS, reads="max:0"
    ),
    "worktree": ProgramRow(operands="-:W", options="-b=- -B=- --reason=-"),
    "worktree list": ProgramRow(operands="-", options="-v -z --porcelain --verbose", reads=""),
}
PROGRAMS = {
    "git": ProgramRow(
        operands="- ^",
        options="-C=- -P --no-pager --no-optional-locks --literal-pathspecs --version --no-replace-objects",
        risky="""
-c=- --git-dir=- --work-tree=- --namespace=- --config-env=- --exec-path? --super-prefix=- -p
--paginate --bare --help
""",
        read_words=read_git,
        reads="",
        check_harmless=check_git,
        unwrap=unwrap_git,
        runs_after="bisect; submodule",
        groups="bisect config remote stash submodule worktree",
        subcommands=list_by_name(_ROWS | EXCHANGE_ROWS, ";"),
        remote="""
push ! -n --dry-run
send-pack,http-push,imap-send,send-email ! --dry-run
lfs push ! --dry-run
svn dcommit,branch,tag ! -n --dry-run
svn set-tree
p4 submit ! -n --dry-run
cvsexportcommit + -c
subtree push
annex sync,copy,move,push,assist
remote-https,remote-http,remote-ssh
flow ** publish
town sync,ship,propose
review,pr,pull-request
""",
    )
}
