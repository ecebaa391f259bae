"""The rows of the subcommands of git that exchange commits with other repositories."""

from codeloop.shell.program_row import ProgramRow
from codeloop.shell.programs.git_options import REPOSITORY_OPTIONS, WORK_TREE_OPTIONS

# Of `fetch`, `pull`, `push` and `ls-remote` the options are those by which git starts no program.
_FETCH_OPTIONS = """
--all --append -a --atomic --deepen=- --depth=- --dry-run --force -f --jobs=- -j=-
--no-recurse-submodules --no-tags -n --progress --prune -p --prune-tags -P --quiet -q --refetch
--set-upstream --shallow-since=- --tags -t --unshallow --update-shallow --verbose -v -4 -6
"""
# The keys are one subcommand or several, divided by `;`.
EXCHANGE_ROWS = {
    "clone": ProgramRow(
        operands="-:W",
        options="""
--template=r --reference=n --reference-if-able=n --separate-git-dir=w -b=- --branch=- -o=-
--origin=- -c=- --config=- -u=- --upload-pack=- --depth=- -j=- --jobs=- --filter=-
--shallow-since=- --shallow-exclude=- --server-option=- --bundle-uri=- --recurse-submodules?
--revision=-
""",
        runs_by="-u --upload-pack -c --config",
    ),
    "fetch": ProgramRow(
        operands="-", options=_FETCH_OPTIONS, risky=REPOSITORY_OPTIONS, runs_by="--upload-pack"
    ),
    "fetch-pack": ProgramRow(runs_by="--upload-pack --exec"),
    "ls-remote": ProgramRow(
        operands="-",
        options="--branches --exit-code --get-url --heads -h --quiet -q --refs --sort=- --symref --tags -t",
        risky=REPOSITORY_OPTIONS,
        runs_by="--upload-pack --exec",
    ),
    "pull": ProgramRow(
        operands="- +W:/",
        options=f"""
{_FETCH_OPTIONS} --autostash --commit --ff --ff-only --no-autostash --no-commit --no-edit --no-ff
--no-rebase --rebase -r --squash --stat
""",
        risky=WORK_TREE_OPTIONS,
        runs_by="--upload-pack",
    ),
    "push": ProgramRow(
        operands="-",
        options="""
--all --atomic --branches --delete -d --dry-run -n --follow-tags --force -f --force-if-includes
--force-with-lease --mirror --no-atomic --no-progress --no-recurse-submodules --no-verify
--porcelain --progress --prune --push-option=- -o=- --quiet -q --set-upstream -u --tags --verbose
-v -4 -6
""",
        risky=REPOSITORY_OPTIONS,
        runs_by="--receive-pack --exec",
    ),
    "remote": ProgramRow(
        operands="-",
        options="-v --all --push --verbose",
        risky=REPOSITORY_OPTIONS,
        reads="max:0",
        configures="add set-url rename remove rm set-branches",
    ),
    "remote get-url": ProgramRow(operands="-", options="-v --all --push --verbose", reads=""),
    "send-pack": ProgramRow(runs_by="--receive-pack --exec"),
}
