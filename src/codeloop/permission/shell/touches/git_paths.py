"""How git's subcommands use files: those that their words name, and those whose contents they print unnamed."""

import re
from collections.abc import Sequence

from codeloop.permission.shell.touches.arguments import Arguments, Use

_REVISIONS = """g --output=w -O=r -S=- -G=- -L=g -n=- --since=- --until=- --after=- --before=- --author=- --grep=-
--format=- --pretty? --max-count=- --skip=- -U=- --unified=- --diff-filter=- --word-diff? --color? --stat? -M? -C?
-B? -X? -l=- --ignore-revs-file=r --contents=r --committer=- --date=- --inter-hunk-context=- --decorate? --abbrev?
--src-prefix=- --dst-prefix=-"""
_WHOLE_TREE = (
    "- +W:/ -m=- -s=- -X=- -S? -F=r --file=r --strategy=- --strategy-option=- --onto=- -x=- --exec=- -C=- -b=- -c=-"
)

_READERS = """
annotate blame cat-file cherry describe diff diff-files diff-index diff-tree difftool log ls-files ls-tree name-rev
range-diff reflog rev-list rev-parse shortlog show show-branch status verify-commit whatchanged check-ignore
check-attr count-objects
"""
_INTERNAL = """
add branch bundle commit commit-graph fetch for-each-ref fsck gc help ls-remote maintenance merge-base notes pack-refs
prune push remote repack replace rerere tag update-index update-ref var verify-pack version write-tree symbolic-ref
stage
"""
_CHANGERS = """
bisect checkout-index cherry-pick merge pull read-tree rebase reset revert sparse-checkout stash filter-branch
mergetool
"""

GIT = "- ^ -C=- -c=- --git-dir=- --work-tree=- --namespace=- --config-env=- --exec-path? --super-prefix=-"
"""The options before the subcommand."""

GIT_ROWS = {
    **dict.fromkeys(_READERS.split(), _REVISIONS),
    **dict.fromkeys(
        _INTERNAL.split(), "- -F=r --file=r -t=r --template=r --pathspec-from-file=r -m=- -C=- -c=- --author=-"
    ),
    **dict.fromkeys(_CHANGERS.split(), _WHOLE_TREE),
    "am": "r +X:/ --directory=- --exclude=- --include=- -p=- -C=- --resolvemsg=- --patch-format=-",
    "apply": "r +X:/ --directory=- --exclude=- --include=- -p=- -C=- --build-fake-ancestor=w --stat!see --check!see"
    " --numstat!see --summary!see",
    "archive": "-:r -o=w --output=w --add-file=r --prefix=- --format=- --remote=- --exec=- --add-virtual-file=-",
    "bundle create": "w:-",
    "bundle verify": "r",
    "bundle unbundle": "r",
    "checkout": "W -b=-!none -B=-!none --orphan=-!none --pathspec-from-file=r --conflict=-",
    "clean": "W +W. -e=- --exclude=- -n!see --dry-run!see",
    "clone": """-:W --template=r --reference=n --reference-if-able=n --separate-git-dir=w -b=- --branch=- -o=-
--origin=- -c=- --config=- -u=- --upload-pack=- --depth=- -j=- --jobs=- --filter=- --shallow-since=-
--shallow-exclude=- --server-option=- --bundle-uri=- --recurse-submodules? --revision=-""",
    "credential-store": "- --file=b",
    "fast-export": "- --export-marks=w --import-marks=r --import-marks-if-exists=r",
    "fast-import": "- --export-marks=w --import-marks=r --export-pack-edges=w",
    "format-patch": """- +W. -o=W --output-directory=W --output=w --signature-file=r --description-file=r -v=-
--subject-prefix=- --to=- --cc=- --stdout!see --in-reply-to=- --base=- --interdiff=- --range-diff=-""",
    "grep": """-:R @R. -e=-!all -f=r!all -A=- -B=- -C=- -m=- --max-count=- --max-depth=- --threads=- -O?
--open-files-in-pager? --no-index!deep --untracked!deep --no-exclude-standard!deep""",
    "hash-object": "r -t=- --path=-",
    "init": "w --template=r --separate-git-dir=w -b=- --initial-branch=- --object-format=- --shared? --ref-format=-",
    "mv": "M>w",
    "restore": "W -s=- --source=- --pathspec-from-file=r --conflict=-",
    "rm": "D --pathspec-from-file=r --cached!none",
    **dict.fromkeys(("stash list", "stash show"), _REVISIONS),
    "submodule": "-:W -b=- --branch=- --reference=n --depth=- --name=-",
    "switch": "- +W:/ -c=-!none -C=-!none --create=-!none --force-create=-!none --orphan=-!none --conflict=-",
    "worktree": "-:W -b=- -B=- --reason=-",
}

CONFIGURES = {
    "remote": "add set-url rename remove rm set-branches",
    "submodule": "add init sync deinit set-url set-branch --init",
    "branch": "-m -M --move -c -C --copy -u --set-upstream-to --unset-upstream --edit-description",
    "sparse-checkout": "init set add reapply disable",
}
"""Subcommands that write the repository's configuration when one of these words comes with them."""

_LISTS = re.compile(
    r"--(stat|shortstat|numstat|name-only|name-status|no-patch|summary|raw|dirstat|quiet|compact-summary|check)\b.*|-s|-q"
)
_PATCHES = re.compile(
    r"-[pucmLUW].*|--(patch|cc|dd|unified|function-context|binary|word-diff|color-words|remerge-diff|diff-merges)\b.*|--pat?"
)
_DIFFERS = frozenset({"diff", "show", "difftool"})
_LOGS = frozenset({"log", "reflog", "whatchanged", "stash show", "stash list", "diff-tree", "diff-files", "diff-index"})
_PRINTERS = frozenset({"archive", "fast-export", "format-patch", "range-diff"})


def list_printed_files(name: str, words: Sequence[str], arguments: Arguments) -> list[Use]:
    """Return the folders whose tracked files a subcommand prints: role `o` as git has them, `c` where they changed.

    Role `v`: a word that is a folder if there is one of that name, and a revision otherwise.
    """
    options = [word for word in words if word.startswith("-")]
    shows = any(map(_PATCHES.fullmatch, options))
    if name in _DIFFERS:
        shows = shows or not any(map(_LISTS.fullmatch, options))
    elif name == "grep":
        shows = len(arguments.operands) > 1 or "--cached" in options
    elif name == "cat-file":
        shows = any(option.startswith("--batch") and "check" not in option for option in options) or "-p" in options
    elif name not in _LOGS:
        shows = name in _PRINTERS
    texts = arguments.operands[1:] if name == "grep" else arguments.operands
    object_names = [text for text, _ in texts if ":" in text]
    if not shows or "--no-index" in options or (object_names and len(object_names) == len(texts)):
        return []
    role = "c" if name == "diff" and not {"--cached", "--staged", "--merge-base"}.intersection(options) else "o"
    folders: list[Use] = [(role, text) for text, is_ended in texts if is_ended] or [(role, ":/")]
    return [*folders, *(("v", text) for text, is_ended in texts if not is_ended)]
