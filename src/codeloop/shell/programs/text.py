"""Rows of programs that read, compare, edit and convert text."""

from codeloop.shell.harmless_checks import check_jq, check_sed
from codeloop.shell.program_readers import (
    find_csplit_pieces,
    find_jq_modules,
    find_secret_globs,
    find_split_pieces,
)
from codeloop.shell.program_row import ProgramRow, list_by_name
from codeloop.shell.script_files import (
    find_awk_files,
    find_editor_files,
    find_line_editor_files,
    find_sed_files,
)
from codeloop.shell.unwrappers import unwrap_awk, unwrap_sed

_RG_OPTIONS = """
-0 -A=- -a -B=- -C=- -c -d=- -E=- -e=-!all -F -f=r!all -g=- -H -I -i -j=- -L -l -M=- -m=- -N -n
-o -P -p -q -r=- -S -s -T=- -t=- -U -u!deep -v -w -x --after-context=- --before-context=-
--case-sensitive --color=- --colors=- --column --context=- --context-separator=- --count
--count-matches --crlf --debug --encoding=- --file=r!all --files!all --files-with-matches
--files-without-match --fixed-strings --follow --glob=- --heading --hidden!deep --iglob=-
--ignore-case --invert-match --json --line-number --line-regexp --max-columns=- --max-count=-
--max-depth=- --max-filesize=- --multiline --multiline-dotall --no-config --no-filename
--no-heading --no-ignore --no-ignore-vcs --no-line-number --no-messages --no-mmap --null
--one-file-system --only-matching --passthru --pcre2 --pretty --quiet --regexp=-!all --replace=-
--smart-case --sort=- --sortr=- --stats --text --threads=- --trim --type=- --type-list!all
--type-not=- --unrestricted!deep --version --vimgrep --with-filename --word-regexp
"""
_RG_RISKY = """
-.!deep --ignore-file=r --pre=- --type-add=- --engine=- --path-separator=-
--field-match-separator=- --dfa-size-limit=-
"""
_GREP_OPTIONS = """
-A=- -a -B=- -b -C=- -c -D=- -d=-!deep -E -e=-!all -F -f=r!all -G -H -h -I -i -L -l -m=- -n -o
-P -q -R!deep -r!deep -s -T -U -v -w -x -y -Z -z --after-context=- --basic-regexp
--before-context=- --binary-files=- --byte-offset --color? --colour --context=- --count
--dereference-recursive!deep --exclude=- --exclude-dir=- --exclude-from=r --extended-regexp
--file=r!all --files-with-matches --files-without-match --fixed-strings --ignore-case
--include=- --initial-tab --invert-match --line-buffered --line-number --line-regexp
--max-count=- --no-filename --no-ignore-case --no-messages --null --null-data --only-matching
--perl-regexp --quiet --recursive!deep --regexp=-!all --silent --text --with-filename
--word-regexp
"""
_SED_OPTIONS = """
-E -e=-!all -n -r -s -u -z --expression=-!all --null-data --quiet --regexp-extended --separate
--silent
"""
_SED_RISKY = "-f=r!all --file=r!all -i?!edit --in-place?!edit -l=- --line-length=-"
_LESS_OPTIONS = "-o=w -O=w --log-file=w --LOG-FILE=w -p=- -x=- -j=- -h=- -y=- -z=- -t=- -k=r"

_ROWS = {
    "ack": ProgramRow(operands="-:V @V.", options=_RG_OPTIONS, risky=_RG_RISKY),
    "ag": ProgramRow(operands="-:V @V.", options=_RG_OPTIONS, risky=_RG_RISKY, runs_by="--pager"),
    "awk gawk mawk nawk": ProgramRow(
        operands="-:r",
        options="""
-f=r!all --file=r!all -E=r!all --exec=r!all -e=-!all --source=-!all -v=- --assign=- -F=-
--field-separator=- -i=r --include=r -l=- --load=- -o?w --pretty-print?w -p?w --profile?w -d?w
--dump-variables?w -D?r
""",
        find_more_uses=find_awk_files,
        unwrap=unwrap_awk,
    ),
    "b2sum": ProgramRow(
        operands="r",
        options="""
-b -c -l=- -t -w -z --binary --check --ignore-missing --length=- --quiet --status --strict --tag
--text --warn --zero
""",
        reads="any",
    ),
    "base32": ProgramRow(
        operands="r", options="-o=w --output=w -i=r --input=r -w=- --wrap=- -b=- --break=-"
    ),
    "base64": ProgramRow(
        operands="r",
        options="-D -d -i?r -w=- --decode --ignore-garbage --wrap=-",
        risky="-o=w --output=w --input=r -b=- --break=-",
        reads="",
    ),
    "bat": ProgramRow(operands="r", runs_by="--pager"),
    "bzcat colrm fmt hd hexdump join more pr xzcat zcat zmore zstdcat": ProgramRow(operands="r"),
    "cal": ProgramRow(options="-1 -3 -j -m -s -y", reads=""),
    "cat": ProgramRow(
        operands="r",
        options="""
-A -b -E -e -n -s -T -t -u -v --number --number-nonblank --show-all --show-ends --squeeze-blank
""",
        reads="any",
        is_plain=True,
    ),
    "cksum": ProgramRow(
        operands="r", options="-a=- -c --algorithm=- --check --tag --untagged", reads="any"
    ),
    "cmp": ProgramRow(
        operands="r",
        options="-b -i=- -l -n=- -s --bytes=- --print-bytes --quiet --silent --verbose",
        reads="any",
        is_plain=True,
    ),
    "column": ProgramRow(
        operands="r",
        options="""
-c=- -e -H=- -J -L -N=- -n -o=- -R=- -s=- -t -x --fillrows --json --output-separator=-
--separator=- --table
""",
        reads="",
    ),
    "comm": ProgramRow(
        operands="r",
        options="-1 -2 -3 -i -z --check-order --nocheck-order --output-delimiter --total",
        reads="any",
    ),
    "csplit": ProgramRow(
        operands="r:-",
        options="-f=- --prefix=- -b=- --suffix-format=- -n=- --digits=-",
        find_more_uses=find_csplit_pieces,
    ),
    "cut": ProgramRow(
        operands="r",
        options="""
-b=- -c=- -d=- -f=- -n -s -w -z --bytes=- --characters=- --complement --delimiter=- --fields=-
--only-delimited --output-delimiter=- --zero-terminated
""",
        reads="any",
        is_plain=True,
    ),
    "date": ProgramRow(
        operands="-",
        options="-d=- -I -R -r=n -u --date=- --iso-8601 --rfc-3339 --rfc-email --universal --utc",
        risky="-f=r --file=r --reference=n -s=- --set=-",
        reads="",
        operand_pattern=r"\+(?s:.*)",
    ),
    "diff": ProgramRow(
        operands="r",
        options="""
-a -B -b -C=- -d -E -e -I=- -i -L=- -N -n -p -q -r!deep -s -T -t -U=- -u -W=- -w -X=- -x=- -y -Z
--brief --color? --context? --exclude=- --exclude-from=r --expand-tabs --ignore-all-space
--ignore-blank-lines --ignore-case --ignore-matching-lines=- --ignore-space-change
--ignore-tab-expansion --ignore-trailing-space --label=- --left-column --minimal --new-file
--no-dereference --normal --recursive!deep --report-identical-files --show-c-function
--side-by-side --strip-trailing-cr --suppress-common-lines --text --unified? --width=-
""",
        risky="--from-file=r --to-file=r -F=- -D=- --output=w --ifdef=- --horizon-lines=- --palette=-",
        reads="",
        is_plain=True,
    ),
    "diff3": ProgramRow(operands="r", options="--label=- -L=- --diff-program=-"),
    "ed ex": ProgramRow(operands="w", find_more_uses=find_line_editor_files),
    "emacs nano": ProgramRow(operands="w"),
    "nvim vi view vim": ProgramRow(
        operands="w",
        options="""
-c=-!script --cmd=-!script -S=r!script -e!script -E!script -s=r!script -es!script -Es!script
-u=r -i=b -T=- -w=w -W=w
""",
        find_more_uses=find_editor_files,
    ),
    "egrep fgrep": ProgramRow(
        operands="-:r",
        options=_GREP_OPTIONS,
        risky="--directories=-!deep --label=- --devices=-",
        reads="any",
    ),
    "expand": ProgramRow(operands="r", options="-i -t=- --initial --tabs=-", reads="any"),
    "expr": ProgramRow(operands="-", reads="any"),
    "fold": ProgramRow(operands="r", options="-b -s -w=- --bytes --spaces --width=-", reads="any"),
    "grep": ProgramRow(
        operands="-:r",
        options=_GREP_OPTIONS,
        risky="--directories=-!deep --label=- --devices=-",
        reads="any",
        is_plain=True,
    ),
    "gsed": ProgramRow(
        operands="-:r",
        options=_SED_OPTIONS,
        risky=_SED_RISKY,
        find_more_uses=find_sed_files,
        unwrap=unwrap_sed,
    ),
    "head": ProgramRow(
        operands="r",
        options="-c=- -n=- -q -v -z --bytes=- --lines=- --quiet --silent --verbose --zero-terminated",
        reads="any",
        is_plain=True,
    ),
    "iconv": ProgramRow(
        operands="r", options="-f=- -t=- --from-code=- --to-code=- -o=w --output=w"
    ),
    "jq": ProgramRow(
        operands="-:r",
        options="""
-a -C -c -e -j -M -n -R -r -S -s --arg=-- --argjson=-- --args --ascii-output --color-output
--compact-output --exit-status --indent=- --join-output --jsonargs --monochrome-output
--null-input --raw-input --raw-output --slurp --sort-keys --stream --tab
""",
        risky="""
-f=r!all --from-file=r!all --slurpfile=-r --rawfile=-r -L=n --seq -i!edit --in-place!edit
""",
        find_more_uses=find_jq_modules,
        reads="",
        check_harmless=check_jq,
    ),
    "less": ProgramRow(
        operands="r", options=_LESS_OPTIONS, runs_by="+! -k --lesskey-file --lesskey-src"
    ),
    "man": ProgramRow(runs_by="-P -H --pager --html --preprocessor"),
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum": ProgramRow(
        operands="r",
        options="""
-b -c -t -w -z --binary --check --ignore-missing --quiet --status --strict --tag --text --warn
--zero
""",
        reads="any",
    ),
    "nl": ProgramRow(
        operands="r",
        options="""
-b=- -d=- -f=- -h=- -i=- -l=- -n=- -p -s=- -v=- -w=- --body-numbering=- --number-format=-
--number-width=-
""",
        reads="any",
        is_plain=True,
    ),
    "od": ProgramRow(
        operands="r",
        options="-A=- -a -b -c -d -f -i -j=- -l -N=- -o -S=- -s -t=- -v -w? -x",
        reads="any",
    ),
    "paste": ProgramRow(
        operands="r", options="-d=- -s -z --delimiters=- --serial --zero-terminated", reads="any"
    ),
    "patch": ProgramRow(
        operands="b:r +X.",
        options="""
-i=r --input=r -o=w --output=w -d=X --directory=X -r=w --reject-file=w -p=- --strip=- -F=-
--fuzz=- -D=- -B=- -V=- -Y=- -z=- -g=- --prefix=- --suffix=- --ifdef=- --dry-run!see
""",
    ),
    "rev": ProgramRow(operands="r", reads="any"),
    "rg": ProgramRow(
        operands="-:V @V.",
        options=_RG_OPTIONS,
        risky=_RG_RISKY,
        find_more_uses=find_secret_globs,
        reads="",
        runs_by="--pre --hostname-bin",
    ),
    "sdiff": ProgramRow(
        operands="r", options="-o=w --output=w -w=- --width=- -I=- --diff-program=-"
    ),
    "sed": ProgramRow(
        operands="-:r",
        options=_SED_OPTIONS,
        risky=_SED_RISKY,
        find_more_uses=find_sed_files,
        reads="",
        check_harmless=check_sed,
        unwrap=unwrap_sed,
    ),
    "seq": ProgramRow(
        operands="-", options="-f=- -s=- -w --equal-width --format=- --separator=-", reads="any"
    ),
    "shuf": ProgramRow(
        operands="r",
        options="-o=w --output=w -n=- -i=- --head-count=- --random-source=r -e!none --echo!none",
    ),
    "sort": ProgramRow(
        operands="r",
        options="""
-b -C -c -d -f -g -h -i -k=- -M -m -n -R -r -S=- -s -t=- -u -V -z --buffer-size=- --check?
--dictionary-order --field-separator=- --general-numeric-sort --human-numeric-sort --ignore-case
--ignore-leading-blanks --ignore-nonprinting --key=- --merge --month-sort --numeric-sort
--parallel=- --random-sort --reverse --sort=- --stable --unique --version-sort --zero-terminated
""",
        risky="""
-o=w --output=w -T=W --temporary-directory=W --batch-size=- --files0-from=r --random-source=r
--compress-program=-
""",
        reads="",
        is_plain=True,
        runs_by="--compress-program",
    ),
    "split": ProgramRow(
        operands="r:-",
        options="""
-b=- --bytes=- -l=- --lines=- -n=- --number=- -a=- --suffix-length=- -C=- --line-bytes=-
--filter=- --additional-suffix=- --separator=- -t=-
""",
        find_more_uses=find_split_pieces,
        runs_by="--filter",
    ),
    "strings": ProgramRow(
        operands="r",
        options="-a -e=- -f -n=- -t=- -w --all --bytes=- --encoding=- --print-file-name --radix=-",
        reads="",
    ),
    "sum": ProgramRow(operands="r", options="-r -s", reads="any"),
    "tac": ProgramRow(
        operands="r", options="-b -r -s=- --before --regex --separator=-", reads="any"
    ),
    "tail": ProgramRow(
        operands="r",
        options="""
-b=- -c=- -F -f -n=- -q -r -s=- -v -z --bytes=- --follow --lines=- --pid=- --quiet --retry
--silent --sleep-interval=- --verbose --zero-terminated
""",
        risky="--max-unchanged-stats=-",
        reads="any",
        is_plain=True,
    ),
    "tee": ProgramRow(operands="w", options="--output-error?", is_plain=True),
    "tr": ProgramRow(
        operands="-",
        options="-C -c -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        reads="any",
        is_plain=True,
    ),
    "ts": ProgramRow(operands="-"),
    "unexpand": ProgramRow(
        operands="r", options="-a -t=- --all --first-only --tabs=-", reads="any"
    ),
    "uniq": ProgramRow(
        operands="r:w",
        options="""
-c -D -d -f=- -i -s=- -u -w=- -z --all-repeated? --check-chars=- --count --group? --ignore-case
--repeated --skip-chars=- --skip-fields=- --unique --zero-terminated
""",
        reads="max:1",
        is_plain=True,
    ),
    "uudecode": ProgramRow(operands="r +X.", options="-o=w --output-file=w"),
    "wc": ProgramRow(
        operands="r",
        options="-c -L -l -m -w --bytes --chars --lines --max-line-length --words",
        risky="--files0-from=r",
        reads="any",
        is_plain=True,
    ),
    "xxd": ProgramRow(
        operands="r:w",
        options="-a -b -c=- -E -e -g=- -i -l=- -o=- -p -s=- -u",
        risky="-n=- -R=-",
        reads="apart max:1",
    ),
    "yq": ProgramRow(
        operands="-:r",
        options="""
-i!edit --inplace!edit --in-place!edit -f=- -o=- -p=- --from-file=r!all --output-format=-
--input-format=-
""",
    ),
    "zgrep": ProgramRow(
        operands="-:r", options=_GREP_OPTIONS, risky="--directories=-!deep --label=- --devices=-"
    ),
    "zless": ProgramRow(operands="r", options=_LESS_OPTIONS),
}
PROGRAMS = list_by_name(_ROWS)
