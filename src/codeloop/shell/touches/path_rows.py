"""Rows of data: by program, how it uses the files that its words name. `arguments.py` reads a command by its row.

A row is text. It begins with the roles of the operands: `r` is the role of all; `-:r` the roles of the first one and of
the others; `r>w` the roles of all but the last one, and of the last one. Then come the options, each with the roles of
its values: `-o=w` takes one value, `--arg=--` two, and `-i?` one only when it is attached. Options that are not listed
are flags. After `!` stands how an option changes the operands:

- `all`: the first one has the role of the others; `last`: the last one has the role of those before it
- `deep`: everything below a folder counts too, and without an operand that is the current one; `edit`: they are
  written in place
- `see`: they are only read; `none`: they are not paths; `sent`: the input decides the names of the files written;
  `remote`: a download is named after its URL

`@R.` is the operand when no other one names a path. `+W.` is one more operand, unless an option has a value with its
role. `^`: the options end at the first operand.

Roles of a path:

- `r` read, `R` read with all below it, `V` read with all below it but hidden files
- `w` written, `W` a folder below which something may be written, `X` the same, where the input decides the names
- `D` changed or removed with all below it, `u` written, with `deep` as `W`, `t` a folder that is written into
- `M` read and written with all below it, `b` read and written, `n` only looked up, `@` read if it begins with `@`
- `g` a file or a git revision, `f` a URL that may be a file's, `-` not a path
- `p` read if there is such a file (no row has it, only readers of words)
- `o` and `c` tracked files that git prints, as they are or where they changed; `v` a word that may limit this to a path
"""

_READING_PROGRAMS = """
bat b2sum cat cksum cmp colrm column comm cut expand fmt fold hd hexdump join md5sum
more nl od paste pr rev sha1sum sha224sum sha256sum sha384sum sha512sum source strings sum tac unexpand xzcat zcat
zmore bzcat zstdcat readelf nm objdump size
"""
_LOOKUP_PROGRAMS = "basename chroot df dirname exa eza ls lsof mountpoint namei pathchk readlink realpath stat vdir dir"
_PROGRAMS_WITHOUT_PATHS = """
: [ alias bg break caller clear coproc continue declare dirs echo enable exit expr export false fg
getopts hash hostname id jobs kill let local logout printenv printf ps pwd read readonly return seq set shift shopt
sleep test times tput true trap type typeset ulimit umask unalias uname unset wait whereis which whoami yes
"""
_RUNNER_PROGRAMS = """
builtin busybox command doas eval exec fakeroot ionice linux32 linux64 nice noglob nohup prlimit setsid stdbuf sudo
systemd-run taskset timeout toybox unbuffer xvfb-run chrt
"""
_GREP_ROW = """-:r -r!deep -R!deep --recursive!deep --dereference-recursive!deep -d=-!deep --directories=-!deep -e=-!all
--regexp=-!all -f=r!all --file=r!all -A=- -B=- -C=- -m=- -D=- --after-context=- --before-context=- --context=-
--max-count=- --color? --include=- --exclude=- --exclude-dir=- --exclude-from=r --label=- --binary-files=-
--devices=-"""
_RG_ROW = """-:V @V. -e=-!all --regexp=-!all -f=r!all --file=r!all --files!all --type-list!all -g=- --glob=- --iglob=-
--hidden!deep -.!deep -u!deep --unrestricted!deep
-t=- -T=- --type=- --type-not=- -A=- -B=- -C=- -m=- --max-count=- -M=- -d=- --max-depth=- -j=- -r=- --replace=- -E=-
--sort=- --color=- --ignore-file=r --pre=- --type-add=- --engine=- --max-filesize=- --threads=- --context=-
--after-context=- --before-context=- --colors=- --path-separator=- --encoding=- --sortr=- --field-match-separator=-
--context-separator=- --dfa-size-limit=-"""
_SED_ROW = "-:r -e=-!all --expression=-!all -f=r!all --file=r!all -i?!edit --in-place?!edit -l=- --line-length=-"
_AWK_ROW = """-:r -f=r!all --file=r!all -E=r!all --exec=r!all -e=-!all --source=-!all -v=- --assign=- -F=-
--field-separator=- -i=r --include=r -l=- --load=- -o?w --pretty-print?w -p?w --profile?w -d?w --dump-variables?w
-D?r"""
_COPY_ROW = """r>u -t=t!last --target-directory=t!last -S=- --suffix=- -r!deep -R!deep -a!deep --archive!deep
--recursive!deep --backup? --sparse=- --reflink? --context? --preserve? --no-preserve=-"""
_COMPILER_ROW = """r -o=w -MF=w -MT=- -MQ=- -I=n -L=n -isystem=n -include=r -D=- -U=- -l=- -x=- -std? -T=r -Xlinker=-
-z=- -e=- -u=- -B=n -A=- --param=-"""
_COMPRESSOR_ROW = """b -c!see --stdout!see --to-stdout!see -l!see --list!see -t!see --test!see -S=- --suffix=- -o=w -T=-
-D=r -b=- -r!deep -N!sent --name!sent"""

PATH_ROWS = {
    **dict.fromkeys(_READING_PROGRAMS.split(), "r"),
    **dict.fromkeys(_LOOKUP_PROGRAMS.split(), "n"),
    **dict.fromkeys(_PROGRAMS_WITHOUT_PATHS.split(), "-"),
    **dict.fromkeys(_RUNNER_PROGRAMS.split(), "- ^"),
    **dict.fromkeys(("bzip2", "compress", "gunzip", "gzip", "lz4", "lzma", "pigz", "unxz", "xz"), _COMPRESSOR_ROW),
    **dict.fromkeys(("zstd", "bunzip2", "uncompress", "unzstd", "unlzma"), _COMPRESSOR_ROW),
    **dict.fromkeys(("egrep", "fgrep", "grep", "zgrep"), _GREP_ROW),
    **dict.fromkeys(("rg", "ag", "ack"), _RG_ROW),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK_ROW),
    **dict.fromkeys(("sed", "gsed"), _SED_ROW),
    **dict.fromkeys(("cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "as", "rustc", "gfortran"), _COMPILER_ROW),
    **dict.fromkeys(("bash", "sh", "dash", "zsh", "ksh"), "r:- ^ -c=-!none -o=- -O=- --rcfile=r --init-file=r"),
    **dict.fromkeys(("base32", "base64"), "r -o=w --output=w -i=r --input=r -w=- --wrap=- -b=- --break=-"),
    **dict.fromkeys(("less", "zless"), "r -o=w -O=w --log-file=w --LOG-FILE=w -p=- -x=- -j=- -h=- -y=- -z=- -t=- -k=r"),
    ".": "r:-",
    "cd": "n",
    "date": "- -f=r --file=r -r=n --reference=n -d=- --date=- -s=- --set=-",
    "du": """n --files0-from=r -X=r --exclude-from=r --exclude=- -d=- --max-depth=- -t=- --threshold=- -B=-
--block-size=-""",
    "file": "r -f=r --files-from=r -m=r --magic-file=r -F=- --separator=- -P=- --parameter=- -e=- --exclude=-",
    "iconv": "r -f=- -t=- --from-code=- --to-code=- -o=w --output=w",
    "wc": "r --files0-from=r",
    "pushd": "n",
    "ar": "-:w",
    "chgrp": "-:w --reference=r!all -R!deep --recursive!deep",
    "chmod": "-:w --reference=r!all -R!deep --recursive!deep",
    "chown": "-:w --reference=r!all --from=- -R!deep --recursive!deep",
    "chattr": "-:w -v=- -p=- -R!deep",
    "cp": _COPY_ROW,
    "gcp": _COPY_ROW,
    "install": _COPY_ROW + " -d!last --directory!last -m=- -o=- -g=- --mode=- --owner=- --group=- --strip-program=-",
    "csplit": "r:- -f=- --prefix=- -b=- --suffix-format=- -n=- --digits=-",
    "curl": """f -O!remote --remote-name!remote --remote-name-all!remote -J!sent
--remote-header-name!sent -o=w --output=w --output-dir=W
-D=w --dump-header=w -c=w --cookie-jar=w --trace=w --trace-ascii=w --stderr=w -K=r --config=r -T=r --upload-file=r
-b=r --cookie=r -E=r --cert=r --key=r --cacert=r --capath=n --netrc-file=r --libcurl=w --etag-save=w
--etag-compare=r --hsts=b --alt-svc=b -d=@ --data=@ --data-ascii=@ --data-binary=@ --data-urlencode=@ --json=@ -F=@
--form=@ -H=@ --header=@ -w=@ --write-out=@ --url-query=@ --variable=@ --proxy-header=@ -X=- --request=- -A=- -e=-
-u=- -m=- -x=- --proxy=- -U=- --url=f --max-time=- --retry=- --connect-timeout=- --resolve=- --user=- --user-agent=-
--referer=- -r=- --range=- -C=- -y=- -Y=- -z=r -P=- -Q=- -t=- --form-string=- --data-raw=- --connect-to=-
--limit-rate=- --unix-socket=n --abstract-unix-socket=- --interface=- --crlfile=r --pinnedpubkey=r --pubkey=r
--dns-servers=- --ciphers=- --cert-type=- --pass=- --proto=- --noproxy=- --retry-delay=- --retry-max-time=-
--max-redirs=- --max-filesize=- --oauth2-bearer=-""",
    "diff": """r -r!deep --recursive!deep --from-file=r --to-file=r -X=- --exclude-from=r -x=- --exclude=- -I=- -F=-
-L=- --label=- -U=- -C=- -W=- -D=- --color? --unified? --context? --output=w --width=- --ifdef=- --horizon-lines=-
--palette=-""",
    "diff3": "r --label=- -L=- --diff-program=-",
    "sdiff": "r -o=w --output=w -w=- --width=- -I=- --diff-program=-",
    "env": "- ^ -C=n --chdir=n -u=- --unset=- -S=-",
    "flock": "b:- ^ -w=- -E=- --timeout=-",
    "head": "r -n=- --lines=- -c=- --bytes=-",
    "history": "- -w=w -a=w -r=r -n=r",
    "jq": """-:r -f=r!all --from-file=r!all --slurpfile=-r --rawfile=-r --arg=-- --argjson=-- --args --jsonargs -L=n
--indent=- --seq -i!edit --in-place!edit""",
    "yq": """-:r -i!edit --inplace!edit --in-place!edit -f=- -o=- -p=- --from-file=r!all --output-format=-
--input-format=-""",
    "link": "r>w",
    "ln": "r>w -t=t!last --target-directory=t!last -S=- --suffix=- --backup?",
    "make": "n -C=n --directory=n -f=r --file=r --makefile=r -I=n --include-dir=n -o=- -W=- -j? -l? --jobs? --eval=-",
    "mkdir": "w -m=- --mode=- -Z? --context?",
    "mkfifo": "w -m=- --mode=-",
    "mknod": "w:- -m=- --mode=-",
    "mktemp": "w -p=W --tmpdir?W --suffix=-",
    "mv": "M>w -t=t!last --target-directory=t!last -S=- --suffix=- --backup?",
    "nano": "w", "vi": "w", "vim": "w", "ed": "w", "ex": "w", "emacs": "w",
    "openssl": """- -in=r -out=w -keyout=w -key=r -CAfile=r -inkey=r -certfile=r -config=r -passin=- -passout=-
-CA=r -CAkey=r""",
    "patch": """b:r +X. -i=r --input=r -o=w --output=w -d=X --directory=X -r=w --reject-file=w -p=- --strip=- -F=-
--fuzz=- -D=- -B=- -V=- -Y=- -z=- -g=- --prefix=- --suffix=- --ifdef=- --dry-run!see""",
    "perl": "r -e=- -E=- -i?!edit -l? -0? -F=- -M=- -m=- -I=n -x? -C? -D?",
    "ruby": "r -e=- -i?!edit -l? -0? -F=- -I=n -r=- -C=n -x? -K? -W? -E=-",
    "rename": "-:w -e=-!all -E=-!all",
    "rm": "w -r!deep -R!deep --recursive!deep --interactive? --preserve-root?",
    "rmdir": "w",
    "rsync": """R>W -e=- --rsh=- --exclude=- --include=- -f=- --filter=- --exclude-from=r --include-from=r
--files-from=r --log-file=w --backup-dir=W --partial-dir=W -T=W --temp-dir=W --password-file=r --link-dest=n
--compare-dest=n --copy-dest=n --write-batch=w --only-write-batch=w --read-batch=r --chmod=- --chown=- --bwlimit=-
--timeout=- --port=- --rsync-path=- --max-size=- --min-size=- --info=- --debug=- --out-format=- --suffix=- -B=- -M=-
--usermap=- --groupmap=- --backup --partial""",
    "scp": "R>W -i=r -F=r -P=- -l=- -o=- -S=- -J=- -c=- -D=-",
    "script": """w -c=- --command=- -I=w -O=w -B=w -T=w -t? --log-in=w --log-out=w --log-io=w --log-timing=w -o=-
-E=- -m=-""",
    "shred": "w -n=- --iterations=- -s=- --size=- --random-source=r",
    "shuf": "r -o=w --output=w -n=- -i=- --head-count=- --random-source=r -e!none --echo!none",
    "sort": """r -o=w --output=w -T=W --temporary-directory=W -k=- --key=- -t=- --field-separator=- -S=-
--buffer-size=- --parallel=- --batch-size=- --files0-from=r --random-source=r --compress-program=- --sort=- --check?""",
    "sqlite3": """b:- -init=r -cmd=- -separator=- -newline=- -nullvalue=- -vfs=- -mmap=- -maxsize=- -A=- -heap=-
-lookaside=-- -pagecache=--""",
    "split": "r:- -b=- --bytes=- -l=- --lines=- -n=- --number=- -a=- --suffix-length=- -C=- --line-bytes=- --filter=-"
    " --additional-suffix=- --separator=- -t=-",
    "ssh-keygen": "- -f=w -t=- -b=- -C=- -N=- -P=- -s=r -O=- -m=-",
    "strace": "- ^ -o=w --output=w -e=- -p=- -s=- -u=- -a=- -b=- -E=- -I=- -O=- -P=n -S=- -X=-",
    "tail": "r -n=- --lines=- -c=- --bytes=- -s=- --pid=- --sleep-interval=- --max-unchanged-stats=-",
    "tee": "w --output-error?",
    "time": "- ^ -o=w --output=w -f=- --format=-",
    "touch": "w -r=r --reference=r -t=- -d=- --date=- --time=-",
    "tr": "-",
    "tree": "n -o=w -L=- -P=- -I=- --filelimit=- --charset=- -H=- -T=- --sort=- --fromfile!all",
    "uudecode": "r +X. -o=w --output-file=w",
    "unrar": "-:r +X.",
    "unar": "r +X. -o=X -output-directory=X -p=- -e=- -E=-",
    "cabextract": "r +X. -d=X --directory=X -F=- -l!see -t!see",
    "truncate": "w -s=- --size=- -r=r --reference=r",
    "ts": "-",
    "uniq": "r:w -f=- --skip-fields=- -s=- --skip-chars=- -w=- --check-chars=- --group? --all-repeated?",
    "unlink": "w",
    "unzip": "r:- +X. -d=X -x=- -P=- -O=- -I=- -l!see -p!see -t!see -v!see -z!see -Z!see",
    "watch": "- ^ -n=- --interval=-",
    "wget": """- -O=w --output-document=w -P=W --directory-prefix=W -o=w --output-file=w -a=w --append-output=w -i=r
--input-file=r --post-file=r --body-file=r --load-cookies=r --save-cookies=w --certificate=r --private-key=r
--ca-certificate=r --config=r --warc-file=w --rejected-log=w --hsts-file=b -U=- -t=- -T=- -l=- -A=- -R=- -D=- -e=-
-I=- -X=- -w=- -Q=- -B=- --header=- --post-data=- --user=- --password=- --method=- --body-data=- --tries=-
--recursive!sent -r!sent -m!sent --mirror!sent -p!sent --page-requisites!sent -x!sent --force-directories!sent
--content-disposition!sent --trust-server-names!sent --timeout=- --wait=- --user-agent=- --cut-dirs=-
--default-page=- --bind-address=- --limit-rate=- --referer=-
--level=- --accept=- --reject=- --domains=- --execute=-""",
    "xargs": """- ^ -a=r --arg-file=r -I=- -n=- -P=- -L=- -d=- -E=- -s=- --max-args=- --max-procs=- --max-lines=-
--delimiter=- -i? -e? -l? --replace? --eof? --max-chars=- --process-slot-var=-""",
    "xxd": "r:w -c=- -g=- -l=- -o=- -s=- -n=- -R=-",
    "zip": "w:R -x=- -i=- -n=- -t=- -tt=- -b=W -P=- -O=w --out=w -@!none --exclude=- --include=-",
}  # fmt: skip
