"""Read-only subcommands of git with their harmless options, and the check of a git command against them."""

import re
from collections.abc import Sequence

from codeloop.shell.leading_options import LeadingOptions
from codeloop.shell.read_only.read_only_row import (
    ANY_NUMBER,
    Harmful,
    ParsedWords,
    ReadOnlyRow,
    check_words,
    make_row,
)
from codeloop.shell.word import Word

HARMLESS_GIT_OPTIONS = LeadingOptions(
    "-C", "-P --no-pager --no-optional-locks --literal-pathspecs --version --no-replace-objects"
)
"""Options of git itself that neither choose another repository nor set anything; `-C` is followed."""

_DIFF_FLAGS = """
-a -B -b -D -M -p -R -r -s -t -u -W -w -z --abbrev --binary --cached --check --color
--color-moved --color-words --combined-all-paths --compact-summary --cumulative --dirstat
--exit-code --find-copies --find-copies-harder --find-renames --full-index --function-context
--histogram --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol
--ignore-space-change --ignore-submodules --indent-heuristic --merge-base --minimal
--name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames --no-textconv
--numstat --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet
--raw --relative --shortstat --staged --stat --submodule --summary --text
--word-diff
"""
_DIFF_WITH_VALUE = """
-G -l -S -U --unified --anchored --diff-algorithm --diff-filter --dst-prefix --inter-hunk-context --src-prefix
--word-diff-regex
"""
_LOG_FLAGS = """
-E -F -P -g -i -c -m --abbrev-commit --all --all-match --ancestry-path --author-date-order
--basic-regexp --bisect --boundary --branches --cc --cherry --cherry-mark --cherry-pick --children
--clear-decorations --count --date-order --decorate --dense --do-walk --extended-regexp
--first-parent --fixed-strings --follow --format --full-diff --full-history --graph
--ignore-missing --invert-grep --left-only --left-right --log-size --max-parents --merge --merges
--min-parents --no-abbrev-commit --no-decorate --no-merges --no-notes --no-walk --not --notes --oneline
--parents --perl-regexp --pretty --regexp-ignore-case --relative-date --remotes --remove-empty --reverse
--right-only --show-pulls --simplify-by-decoration --simplify-merges --source --sparse --tags
--topo-order --walk-reflogs --expand-tabs
"""
_LOG_WITH_VALUE = """
-L -n --after --author --before --committer --date --grep --max-age --max-count --min-age --since --skip
--until --decorate-refs --decorate-refs-exclude --encoding --exclude --glob
"""
_LISTING_FLAGS = """
-i --column --color --no-color --ignore-case --no-column --omit-empty
"""
_LISTING_WITH_VALUE = "--contains --format --merged --no-contains --no-merged --points-at --sort"
_HISTORY_ROW = make_row(_DIFF_FLAGS + _LOG_FLAGS, _DIFF_WITH_VALUE + _LOG_WITH_VALUE)

READ_ONLY_GIT_ROWS: dict[str, ReadOnlyRow] = {
    "blame": make_row(
        """-b -c -C -e -f -k -l -M -n -p -s -t -w --abbrev --color-by-age --color-lines --first-parent
        --incremental --line-porcelain --porcelain --progress --root --show-email --show-name --show-number
        --show-stats""",
        "-L --date --since",
    ),
    "branch": make_row(
        "-a -l -r -v -vv --all --list --remotes --show-current --verbose --abbrev" + _LISTING_FLAGS, _LISTING_WITH_VALUE
    ),
    "cat-file": make_row(
        "-e -p -s -t --batch --batch-check --batch-all-objects --buffer --unordered --allow-unknown-type"
    ),
    "check-attr": make_row("-a -z --all --cached --stdin"),
    "check-ignore": make_row("-n -q -v -z --no-index --non-matching --quiet --stdin --verbose"),
    "config": make_row(
        """-l -z --bool --get --get-all --get-regexp --global --int --list --local --name-only --null
        --path --show-origin --show-scope --system --worktree""",
        "--default --type",
        operand_pattern=r"[^.\s]+\.(?s:.*)",
    ),
    "count-objects": make_row("-H -v --human-readable --verbose"),
    "describe": make_row(
        "--abbrev --all --always --contains --debug --dirty --exact-match --first-parent --long --tags",
        "--candidates --exclude --match",
    ),
    "diff": make_row(_DIFF_FLAGS, _DIFF_WITH_VALUE),
    "diff-files": make_row(_DIFF_FLAGS + " -0 -1 -2 -3 -q", _DIFF_WITH_VALUE),
    "diff-index": make_row(_DIFF_FLAGS + " -m", _DIFF_WITH_VALUE),
    "diff-tree": make_row(_DIFF_FLAGS + " -c -m -v --cc --no-commit-id --root --stdin", _DIFF_WITH_VALUE),
    "for-each-ref": make_row("--ignore-case --omit-empty", "--count --exclude " + _LISTING_WITH_VALUE),
    "grep": make_row(
        """-a -c -E -F -G -H -h -I -i -L -l -n -o -P -p -q -r -v -W -w -z --all-match --and --basic-regexp --break
        --cached --color --column --count --extended-regexp --files-with-matches --files-without-match
        --fixed-strings --full-name --function-context --heading --ignore-case --invert-match --line-number
        --name-only --no-color --not --null --or --only-matching --perl-regexp --quiet --recursive
        --show-function --text --untracked --word-regexp""",
        "-A -B -C -e -m --after-context --before-context --context --max-count --max-depth --threads",
    ),
    "log": _HISTORY_ROW,
    "ls-files": make_row(
        """-c -d -f -i -k -m -o -s -t -u -v -z --abbrev --cached --deduplicate --deleted --directory --eol
        --error-unmatch --exclude-standard --full-name --ignored --killed --modified
        --no-empty-directory --others --stage --unmerged""",
        "-x -X --exclude --exclude-from --format",
    ),
    "ls-tree": make_row(
        "-d -l -r -t -z --abbrev --full-name --full-tree --long --name-only --name-status --object-only",
        "--format",
    ),
    "merge-base": make_row("-a --all --fork-point --independent --is-ancestor --octopus"),
    "name-rev": make_row("--all --always --name-only --tags", "--exclude --refs"),
    "reflog": _HISTORY_ROW,
    "remote": make_row("-v --all --push --verbose"),
    "rev-list": make_row(_LOG_FLAGS + " --objects --objects-edge --quiet --disk-usage --timestamp", _LOG_WITH_VALUE),
    "rev-parse": make_row(
        """-q --abbrev-ref --absolute-git-dir --all --branches --disambiguate --git-common-dir --git-dir
        --is-bare-repository --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --quiet --remotes
        --short --show-cdup --show-object-format --show-prefix --show-superproject-working-tree --show-toplevel
        --sq --symbolic --symbolic-full-name --tags --verify""",
        "--git-path --default",
    ),
    "shortlog": make_row("-c -e -n -s --email --numbered --summary " + _LOG_FLAGS, _LOG_WITH_VALUE),
    "show": _HISTORY_ROW,
    "show-ref": make_row("-d -q -s --abbrev --branches --dereference --hash --head --heads --quiet --tags --verify"),
    "stash": _HISTORY_ROW,
    "status": make_row(
        """-b -s -u -uall -uno -unormal -v -vv -z --ahead-behind --branch --column --find-renames
        --ignore-submodules --ignored --long --no-ahead-behind --no-column --no-renames --porcelain --renames
        --short --show-stash --untracked-files --verbose"""
    ),
    "symbolic-ref": make_row("-q --quiet --short --no-recurse", max_operands=1),
    "tag": make_row("-l -n --list" + _LISTING_FLAGS, _LISTING_WITH_VALUE),
    "version": make_row("--build-options", max_operands=0),
    "worktree": make_row("-v -z --porcelain --verbose"),
}
# By subcommand that has subcommands of its own (`git stash list`): those that only read.
_READ_ONLY_FIRST_WORDS = {
    "reflog": {"show"},
    "remote": {"get-url"},
    "stash": {"list", "show"},
    "worktree": {"list"},
}
# `git log --format=%G?` and `--show-signature` run gpg, or the program that the configuration names.
_SIGNATURE_FORMAT = re.compile(r"%[-+ ]?G|signature")
# Subcommands that list something when they are given nothing.
_READ_ONLY_WITHOUT_OPERANDS = frozenset({"reflog", "remote"})
# Patterns of a listing. An unquoted file pattern counts as ANY_NUMBER of operands, so it is above this.
_MAX_LISTING_PATTERNS = 100
_GET_OPTIONS = frozenset({"--get", "--get-all", "--get-regexp"})


def check_git(words: Sequence[Word]) -> None:
    """Check the words after git's own options against the rows. Raises Harmful."""
    if not words:
        return
    subcommand = words[0].value
    row = READ_ONLY_GIT_ROWS.get(subcommand)
    if row is None:
        raise Harmful(f"`git {subcommand}` is not known to only read")
    if any(_SIGNATURE_FORMAT.search(word.value) for word in words[1:]):
        raise Harmful("it may run the program that checks signatures")
    parsed = check_words(words[1:], row)
    first_word = words[1].value if len(words) > 1 else ""
    is_listing = subcommand in _READ_ONLY_WITHOUT_OPERANDS and not parsed.operands
    read_only_words = _READ_ONLY_FIRST_WORDS.get(subcommand)
    if read_only_words is not None and first_word not in read_only_words and not is_listing:
        raise Harmful(f"`git {subcommand} {first_word}` is not known to only read")
    if _count_allowed_operands(subcommand, parsed) < parsed.highest_operand_count:
        raise Harmful(f"`git {subcommand}` with these words may change something")


def _count_allowed_operands(subcommand: str, parsed: ParsedWords) -> int:
    """Return the number of operands with which a subcommand still only reads: `git branch NAME` makes a branch."""
    options = set(parsed.options)
    match subcommand:
        case "branch":
            return _MAX_LISTING_PATTERNS if "--list" in options else 0
        case "tag":
            return _MAX_LISTING_PATTERNS if options & {"-l", "--list"} else 0
        case "config":
            if options & _GET_OPTIONS:
                return 2
            # `git config NAME` prints a value, `git config NAME VALUE` sets it.
            return 0 if options & {"-l", "--list"} else 1
        case _:
            return ANY_NUMBER
