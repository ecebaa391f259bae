"""Rows of programs that list, copy, change and pack files,
and of those that tell about the system.
"""

from codeloop.shell.harmless_checks import check_find, check_ps
from codeloop.shell.program_readers import (
    find_archives,
    find_copies,
    find_link,
    find_unpacked_members,
    find_unzip_archive,
    find_zip_archive,
    make_archiver_reader,
    read_7z,
    read_cpio,
    read_dd,
    read_find,
    read_tar,
)
from codeloop.shell.program_row import ProgramRow, list_by_name
from codeloop.shell.script_files import find_sqlite_files
from codeloop.shell.unwrappers import unwrap_fd, unwrap_find, unwrap_tar

_LN_OPTIONS = "-t=t!last --target-directory=t!last -S=- --suffix=- --backup?"

_ROWS = {
    "7z 7za 7zr": ProgramRow(read_words=read_7z),
    "ar": ProgramRow(operands="-:w", find_more_uses=find_unpacked_members),
    "basename": ProgramRow(
        operands="n", options="-a -s=- -z --multiple --suffix=- --zero", reads="any", is_plain=True
    ),
    "bsdcpio cpio": ProgramRow(read_words=read_cpio),
    "bsdtar gtar tar": ProgramRow(
        operands="A",
        options="""
-f=f --file=f -C=C --directory=C -T=r --files-from=r -X=r --exclude-from=r -I=- -g=b
--listed-incremental=b --use-compress-program=- --index-file=w -b=- -K=- -N=- -V=- -L=- -F=-
-H=- --exclude=- --transform=- --xform=- --strip-components=- --owner=- --group=- --mode=-
--mtime=- --newer=- --format=- --volno-file=b --one-top-level?X --to-command=- --sort=-
--checkpoint-action=- --rsh-command=- --suffix=- --starting-file=- --label=- --record-size=-
--remove-files!deep
""",
        read_words=read_tar,
        unwrap=unwrap_tar,
        runs_by="""
-I -F --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command
--to-command --use-compress-program
""",
    ),
    """
bunzip2 bzip2 compress gunzip gzip lz4 lzma pigz uncompress unlzma unxz unzstd xz zstd
""": ProgramRow(
        operands="b",
        options="""
-c!see --stdout!see --to-stdout!see -l!see --list!see -t!see --test!see -S=- --suffix=- -o=w
-T=- -D=r -b=- -r!deep -N!sent --name!sent
""",
        find_more_uses=find_archives,
    ),
    "cabextract": ProgramRow(operands="r +X.", options="-d=X --directory=X -F=- -l!see -t!see"),
    "chattr": ProgramRow(operands="-:w", options="-v=- -p=- -R!deep"),
    "chgrp": ProgramRow(operands="-:w", options="--reference=r!all -R!deep --recursive!deep"),
    "chmod": ProgramRow(
        operands="-:w", options="--reference=r!all -R!deep --recursive!deep", is_plain=True
    ),
    "chown": ProgramRow(
        operands="-:w", options="--reference=r!all --from=- -R!deep --recursive!deep"
    ),
    "clear printenv tput whereis yes": ProgramRow(operands="-"),
    "cp gcp": ProgramRow(
        operands="r>u",
        options="""
-t=t!last --target-directory=t!last -S=- --suffix=- -r!deep -R!deep -a!deep --archive!deep
--recursive!deep --backup? --sparse=- --reflink? --context? --preserve? --no-preserve=-
-l!link --link!link -s!link --symbolic-link!link
""",
        find_more_uses=find_copies,
    ),
    "dd": ProgramRow(read_words=read_dd, destroys="*"),
    "df": ProgramRow(
        operands="n",
        options="""
-a -B=- -H -h -i -k -l -m -P -T -t=- -x=- --all --block-size=- --exclude-type=- --human-readable
--inodes --local --portability --print-type --si --total --type=-
""",
        reads="any",
    ),
    "dir exa eza lsof mountpoint namei pathchk vdir": ProgramRow(operands="n"),
    "dirname": ProgramRow(operands="n", options="-z --zero", reads="any", is_plain=True),
    "dpkg": ProgramRow(
        read_words=make_archiver_reader(
            r".*(-[xX]\b|--extract|--vextract|-R\b|--raw-extract)", names_folder=True
        )
    ),
    "dpkg-deb": ProgramRow(
        read_words=make_archiver_reader(
            r".*(-[xXR]\b|--extract|--vextract|--raw-extract)", names_folder=True
        )
    ),
    "du": ProgramRow(
        operands="n",
        options="""
-0 -a -B=- -b -c -D -d=- -H -h -k -L -l -m -P -S -s -t=- -x --all --apparent-size --block-size=-
--bytes --exclude=- --human-readable --inodes --max-depth=- --null --one-file-system
--separate-dirs --si --summarize --threshold=- --time --total
""",
        risky="--files0-from=r -X=r --exclude-from=r",
        reads="any",
        is_plain=True,
    ),
    "fd fdfind": ProgramRow(
        options="""
-0 -1 -a -c=- -d=- -E=- -e=- -F -g -H -I -i -j=- -L -p -q -S=- -s -t=- -u --absolute-path
--and=- --case-sensitive --changed-before=- --changed-within=- --color=- --exact-depth=-
--exclude=- --extension=- --fixed-strings --follow --full-path --glob --hidden --ignore-case
--max-depth=- --max-results=- --min-depth=- --no-ignore --no-ignore-vcs --print0 --prune --quiet
--regex --size=- --threads=- --type=- --unrestricted
""",
        reads="",
        unwrap=unwrap_fd,
    ),
    "file": ProgramRow(
        operands="r",
        options="""
-0 -b -h -I -i -k -L -N --brief --dereference --mime --mime-encoding --mime-type
--no-dereference
""",
        risky="""
-f=r --files-from=r -m=r --magic-file=r -F=- --separator=- -P=- --parameter=- -e=- --exclude=-
""",
        reads="",
        is_plain=True,
    ),
    "find": ProgramRow(
        read_words=read_find,
        reads="",
        check_harmless=check_find,
        destroys="-delete -exec",
        unwrap=unwrap_find,
    ),
    "free": ProgramRow(
        options="-b -g -h -k -m -t -w --bytes --gibi --human --kibi --mebi --total --wide",
        reads="any",
    ),
    "groups": ProgramRow(reads="any"),
    "hostname": ProgramRow(operands="-", options="-d -f -I -i -s", reads="max:0"),
    "id": ProgramRow(
        operands="-",
        options="-G -g -n -r -u -z --group --groups --name --real --user --zero",
        reads="any",
    ),
    "install": ProgramRow(
        operands="r>u",
        options="""
-t=t!last --target-directory=t!last -S=- --suffix=- -r!deep -R!deep -a!deep --archive!deep
--recursive!deep --backup? --sparse=- --reflink? --context? --preserve? --no-preserve=- -d!last
--directory!last -m=- -o=- -g=- --mode=- --owner=- --group=- --strip-program=-
""",
        find_more_uses=find_copies,
    ),
    "jar": ProgramRow(read_words=make_archiver_reader(r"-?\w*x|.*--extract")),
    "link": ProgramRow(operands="r>w", find_more_uses=find_link),
    "ln": ProgramRow(operands="r>w", options=_LN_OPTIONS, find_more_uses=find_link),
    "ls": ProgramRow(
        operands="n",
        options="""
-1 -A -a -B -C -c -d -F -f -G -g -H -h -I=- -i -k -L -l -m -N -n -o -p -Q -q -R -r -S -s -t -U
-u -v -w=- -X -x -Z --all --almost-all --author --block-size=- --classify --color --dereference
--directory --escape --file-type --format --full-time --group-directories-first --hide
--human-readable --ignore=- --ignore-backups --indicator-style --inode --literal --no-group
--numeric-uid-gid --quote-name --quoting-style=- --recursive --reverse --si --size --sort --time
--time-style --width=-
""",
        reads="any",
        is_plain=True,
    ),
    "lscpu": ProgramRow(options="-a -b -c -e -J -p -x --all --extended --json --parse", reads=""),
    "mkdir": ProgramRow(operands="w", options="-m=- --mode=- -Z? --context?", is_plain=True),
    "mkfifo": ProgramRow(operands="w", options="-m=- --mode=-"),
    "mknod": ProgramRow(operands="w:-", options="-m=- --mode=-"),
    "mktemp": ProgramRow(operands="w", options="-p=W --tmpdir?W --suffix=-"),
    "mount": ProgramRow(
        operands="r>w",
        options="-t=- -o=- --types=- --options=- --source=l --target=w",
        find_more_uses=find_link,
    ),
    "mv": ProgramRow(operands="M>w", options=_LN_OPTIONS, find_more_uses=find_copies),
    "nm objdump readelf size": ProgramRow(operands="r"),
    "nproc": ProgramRow(options="--all --ignore", reads="any"),
    "pax": ProgramRow(read_words=make_archiver_reader(r"(.* )?-\w*r")),
    "ps": ProgramRow(
        operands="-",
        options="""
-A -a -aux -auxw -auxww -C=- -e -F -f -G=- -g=- -H -j -l -N -O=- -o=- -p=- -T -t=- -U=- -u=- -w
-x --forest --format=- --headers --no-headers --pid=- --ppid=- --sort --user=-
""",
        reads="apart",
        operand_pattern="[aflujwx]+|[0-9]+",
        check_harmless=check_ps,
    ),
    "readlink": ProgramRow(
        operands="n",
        options="-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --no-newline",
        reads="any",
    ),
    "realpath": ProgramRow(
        operands="n",
        options="""
-e -L -m -P -q -s -z --canonicalize-existing --canonicalize-missing --logical --no-symlinks
--relative-base=- --relative-to=- --strip
""",
        reads="any",
    ),
    "rename": ProgramRow(operands="-:w", options="-e=-!all -E=-!all"),
    "rm": ProgramRow(
        operands="w",
        options="-r!deep -R!deep --recursive!deep --interactive? --preserve-root?",
        is_plain=True,
        destroys="*",
    ),
    "rmdir": ProgramRow(operands="w", is_plain=True, destroys="*"),
    "shred": ProgramRow(
        operands="w", options="-n=- --iterations=- -s=- --size=- --random-source=r", destroys="*"
    ),
    "sleep": ProgramRow(
        operands="-", reads="max:1", operand_pattern="[0-9.]+[smh]?", is_plain=True
    ),
    "sqlite3": ProgramRow(
        operands="b:-",
        options="""
-init=r -cmd=- -separator=- -newline=- -nullvalue=- -vfs=- -mmap=- -maxsize=- -A=- -heap=-
-lookaside=-- -pagecache=--
""",
        find_more_uses=find_sqlite_files,
    ),
    "stat": ProgramRow(
        operands="n",
        options="""
-c=- -F=- -f -L -l -n -q -r -s -t -x --dereference --file-system --format=- --printf=- --terse
""",
        reads="any",
        is_plain=True,
    ),
    "touch": ProgramRow(
        operands="w", options="-r=r --reference=r -t=- -d=- --date=- --time=-", is_plain=True
    ),
    "tree": ProgramRow(
        operands="n",
        options="""
-A -a -C -c -D -d -F -f -g -h -I=- -i -J -L=- -N -n -P=- -p -q -r -S -s -t -U -u -v -X
--charset=- --device --dirsfirst --du --filelimit=- --filesfirst --gitignore --inodes --noreport
--prune --si --sort=- --timefmt=-
""",
        risky="-o=w -H=- -T=- --fromfile!all",
        reads="apart",
    ),
    "truncate": ProgramRow(operands="w", options="-s=- --size=- -r=r --reference=r", destroys="*"),
    "tty": ProgramRow(options="-s", reads=""),
    "uname": ProgramRow(
        operands="-",
        options="""
-a -i -m -n -o -p -r -s -v --all --kernel-name --kernel-release --machine --operating-system
""",
        reads="",
    ),
    "unar": ProgramRow(operands="r +X.", options="-o=X -output-directory=X -p=- -e=- -E=-"),
    "unlink": ProgramRow(operands="w"),
    "unrar": ProgramRow(operands="-:r +X."),
    "unzip": ProgramRow(
        operands="r:- +X.",
        options="-d=X -x=- -P=- -O=- -I=- -l!see -p!see -t!see -v!see -z!see -Z!see",
        find_more_uses=find_unzip_archive,
    ),
    "uptime": ProgramRow(options="-p -s --pretty --since", reads=""),
    "which": ProgramRow(operands="-", options="-a -s", reads="any"),
    "whoami": ProgramRow(operands="-", reads=""),
    "zip": ProgramRow(
        operands="w:R",
        options="-x=- -i=- -n=- -t=- -tt=- -b=W -P=- -O=w --out=w -@!none --exclude=- --include=-",
        find_more_uses=find_zip_archive,
        runs_by="-TT --unzip-command",
    ),
}
PROGRAMS = list_by_name(_ROWS)
