"""The options that several subcommands of git have, as rows of programs write them."""

DIFF_OPTIONS = """
-a -B? -b -D -G=- -l=- -M? -p -R -r -S=- -s -t -U=- -u -W -w -z --abbrev? --anchored=- --binary
--cached --check --color? --color-moved --color-words --combined-all-paths --compact-summary
--cumulative --diff-algorithm=- --diff-filter=- --dirstat --dst-prefix=- --exit-code
--find-copies --find-copies-harder --find-renames --full-index --function-context --histogram
--ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol
--ignore-space-change --ignore-submodules --indent-heuristic --inter-hunk-context=- --merge-base
--minimal --name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames
--no-textconv --numstat --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all
--pickaxe-regex --quiet --raw --relative --shortstat --src-prefix=- --staged --stat? --submodule
--summary --text --unified=- --word-diff? --word-diff-regex=-
"""
LOG_OPTIONS = """
-c -E -F -g -i -L=g -m -n=- -P --abbrev-commit --after=- --all --all-match --ancestry-path
--author=- --author-date-order --basic-regexp --before=- --bisect --boundary --branches --cc
--cherry --cherry-mark --cherry-pick --children --clear-decorations --committer=- --count
--date=- --date-order --decorate? --decorate-refs=- --decorate-refs-exclude=- --dense --do-walk
--encoding=- --exclude=- --expand-tabs --extended-regexp --first-parent --fixed-strings --follow
--format? --full-diff --full-history --glob=- --graph --grep=- --ignore-missing --invert-grep
--left-only --left-right --log-size --max-age=- --max-count=- --max-parents --merge --merges
--min-age=- --min-parents --no-abbrev-commit --no-decorate --no-merges --no-notes --no-walk
--not --notes --oneline --parents --perl-regexp --pretty? --regexp-ignore-case --relative-date
--remotes --remove-empty --reverse --right-only --show-pulls --simplify-by-decoration
--simplify-merges --since=- --skip=- --source --sparse --tags --topo-order --until=-
--walk-reflogs
"""
LISTING_OPTIONS = """
-i --color --column --contains=- --format=- --ignore-case --merged=- --no-color --no-column
--no-contains=- --no-merged=- --omit-empty --points-at=- --sort=-
"""
REVISION_OPTIONS = """
--output=w -O=r -S=- -G=- -L=g -n=- --since=- --until=- --after=- --before=- --author=- --grep=-
--format=- --pretty? --max-count=- --skip=- -U=- --unified=- --diff-filter=- --word-diff?
--color? --stat? -M? -C? -B? -X? -l=- --ignore-revs-file=r --contents=r --committer=- --date=-
--inter-hunk-context=- --decorate? --abbrev? --src-prefix=- --dst-prefix=-
"""
REPOSITORY_OPTIONS = (
    "-F=r --file=r -t=r --template=r --pathspec-from-file=r -m=- -C=- -c=- --author=-"
)
WORK_TREE_OPTIONS = """
-m=- -s=- -X=- -S? -F=r --file=r --strategy=- --strategy-option=- --onto=- -x=- --exec=- -C=-
-b=- -c=-
"""
