"""What a line reads and writes, by its words: a table of lines,
and a comparison with what programs really did.
"""

import re
import shutil
import subprocess
from pathlib import Path
from posixpath import normpath

import pytest

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS, matches
from codeloop.shell.analysis import analyse
from codeloop.shell.touched_paths import GIT_TOP
from codeloop.shell.word_paths import ANYWHERE

TABLE = Path(__file__).with_name("touched_lines.tsv").read_text().splitlines()


def written(texts: tuple[str, ...]) -> str:
    """Paths as the table has them: `*` for a part of a name, `<any>` for any path."""
    spelled = (
        text.replace(" ", "\\_")
        .replace("\t", "\\t")
        .replace(ANY_TEXT, "*")
        .replace(ANY_WORDS, "<any>")
        for text in texts
    )
    return " ".join(dict.fromkeys(spelled)) or "-"


@pytest.mark.parametrize("row", TABLE)
def test_what_a_line_reads_and_writes(row: str) -> None:
    line, reads, writes = row.split("\t")
    found = analyse(line)
    assert (written(found.reads), written(found.writes)) == (reads, writes)


def test_the_table_is_large() -> None:
    assert len(TABLE) > 600


COPIES = [
    "git worktree add -q wt HEAD && cat wt/key", "git -C . worktree add ../wt", "git checkout-index -a --prefix=out/",
    "git checkout-index --temp key", "GIT_WORK_TREE=x git checkout -q HEAD -- .", "git --work-tree=x checkout -f HEAD",
    "export GIT_WORK_TREE=x; git restore .", "cd x; git --git-dir=../.git checkout -f", "git bundle create b HEAD",
    "cd x && GIT_DIR=../.git git reset --hard", "git read-tree --prefix=zz/ HEAD",
]  # fmt: skip


@pytest.mark.parametrize("line", COPIES)
def test_git_that_writes_tracked_files_elsewhere_reads_them(line: str) -> None:
    assert analyse(line).touches.git_trees == (GIT_TOP,)


@pytest.mark.parametrize(
    "line",
    ["git worktree list", "git checkout main", "git --git-dir=.git status", "git bundle verify b"],
)
def test_other_git_does_not(line: str) -> None:
    assert analyse(line).touches.git_trees == ()


HEAVY = [
    "cat " + "{" * 30_000,
    "cat " + "{a,b}" * 40,
    "cat " + "{a," * 500 + "}" * 500,
    "cat a" * 9_000,
    ("cat " + "[a" * 2_000 + "/] ") * 10,
    *(
        f"{name} '{text * 8_000}'"
        for name in ("awk", "sed")
        for text in ("print ", "s/", 'system("', "s|a", "printf x ")
    ),
    *(f"{name} " + f"{name} touch " * 4_000 for name in ("unshare", "setpriv", "fd -x")),
]


@pytest.mark.parametrize("line", HEAVY)
def test_heavy_words_come_to_an_end(line: str) -> None:
    assert analyse(line).reads


REAL = [
    "sort -o out a", "sort -uoout a", "sort --outp=out a", "tee x y < a", "cp a x", "cp -r d e", "cp -t d a b",
    "mv a x", "mv d e",
    "mv a b d", "ln a x", "ln -s a x", "ln -s d/c", "dd if=a of=x status=none", "install -m 600 a x", "install -d p/q",
    "touch x d/y",
    "truncate -s 0 a b", "sed -i s/a/b/ a", "sed -i.bak s/a/b/ a b", "sed -n 'w x' a", "sed 's/./y/w x' a", "rm a",
    "rm -r d",
    "rmdir empty", "mkdir -p p/q", "mkfifo p", "chmod 600 a", "chmod -R u+x d", "split -b1 a p", "csplit -s -f p a 1",
    "gzip a",
    "gzip -k a", "gzip -c a > x", "tar cf x.tar d", "tar czf x.tgz -C d c", "tar xf t.tar", "tar xf t.tar -C e",
    "tar xOf t.tar",
    "patch -s < p.diff", "find d -fprint x", "find d -name c -delete", "find d -type f -exec cp {} x ;",
    "find . -name a -exec rm {} +",
    "awk '{print > \"x\"}' a", "awk '{print >> \"d/x\"}' a", "awk 1 a > x", "uniq a x", "shuf a -o x", "git init -q r",
    "git clone -q r0 r1",
    "git -C r0 checkout -q -- f", "git -C r0 rm -q f", "git -C r0 mv f g", "git -C r0 diff --output=o",
    "git -C r0 archive -o o.tar HEAD",
    "git -C r0 clean -fdq", "git -C r0 reset -q --hard", "git -C r0 format-patch -q -o o HEAD", "cat a > x",
    "cat a >> b",
    "cat a >| b", "cat a &> x", ": > a", "echo x | tee -a b > /dev/null", "cat <<E > x\nhi\nE",
    "(cd d && rm c); touch z",
    "cd d; cd ..; rm a", "for f in a b; do rm $f; done", "x=a; rm $x", "rm {a,b}", "rm ?", "cp a{,.bak}",
    "xargs rm < list",
    "echo a | xargs -I{} cp {} x", "bash -c 'cat a > x'", "sh script.sh", "env -C d rm c", "timeout 9 cp a x",
    "eval 'rm a'",
    "f() { rm a; }; f", "if rm a; then touch x; fi", "cat > x < a", "{ cat a; cat b; } > x 2>&1",
    "perl -pi -e 's/a/b/' a",
    "diff a b > x", "rename() { mv \"$1\" \"$2\"; }; rename a x", "comm a b | sort -o x", "tr a b < a > x", "unlink a",
    "link a x",
]  # fmt: skip
STRACE = shutil.which("strace")
CALL = re.compile(r"^(?:\[pid +\d+\] )?(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
CHANGES = re.compile(r"creat|unlink|rmdir|rename|mkdir|mknod|link|truncate|chmod|chown")


def works() -> bool:
    """Whether processes can be traced here."""
    return (
        STRACE is not None
        and subprocess.run([STRACE, "-o", "/dev/null", "true"], check=False).returncode == 0
    )


def small_tree(work: Path) -> None:
    for name, text in {
        "a": "a\nb\n",
        "b": "b\n",
        "d/c": "c\n",
        "list": "a\n",
        "script.sh": ":\n",
    }.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    (work / "empty").mkdir()
    (work / "e").mkdir()
    (work / "p.diff").write_text("--- a\n+++ a\n@@ -1,2 +1,2 @@\n-a\n+z\n b\n")
    subprocess.run(["tar", "cf", "t.tar", "d"], cwd=work, check=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", "r0"]
    subprocess.run(["git", "init", "-q", "r0"], cwd=work, check=True)
    (work / "r0/f").write_text("f\n")
    for words in (["add", "f"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=work, check=True)
    (work / "r0/new").write_text("n\n")


def changed(trace: Path, work: Path) -> set[str]:
    """Return the files of the tree that a trace says were opened for writing, made,
    moved or removed.
    """
    found: set[str] = set()
    for line in trace.read_text(errors="replace").splitlines():
        call = CALL.match(line)
        if call is None or call[3].startswith("-"):
            continue
        name, given = call[1], call[2]
        opens = name.startswith("open") and re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", given)
        if not opens and not CHANGES.search(name):
            continue
        paths = re.findall(r"(?:(AT_FDCWD|\d+)<([^>]*)>, )?\"((?:[^\"\\]|\\.)*)\"", given)
        for _, folder, path in paths[1:] if "link" in name and "un" not in name else paths:
            whole = (Path(folder) if folder else work) / path
            if whole.is_relative_to(work):
                found.add(str(whole.relative_to(work)))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not works(), reason="strace can't trace processes here")
@pytest.mark.parametrize("line", REAL)
def test_files_that_are_really_written_are_among_the_writes(tmp_path: Path, line: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    small_tree(work)
    trace = tmp_path / "trace"
    command = [
        str(STRACE),
        "-f",
        "-y",
        "-qq",
        "-e",
        "trace=file",
        "-o",
        str(trace),
        "bash",
        "--noprofile",
        "--norc",
        "-c",
        line,
    ]
    environment = {"PATH": "/usr/bin:/bin"}
    subprocess.run(
        command,
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=environment,
    )
    touches = analyse(line).touches
    if ANYWHERE in (*touches.writes, *touches.filled_folders, *touches.changed_trees):
        return
    texts = [
        text.removeprefix(GIT_TOP) or "r0"
        for text in (*touches.writes, *touches.filled_folders, *touches.changed_trees)
    ]
    files = [normpath(text).replace(ANY_TEXT, "*") for text in texts]
    below = [normpath(text).removeprefix(".") for text in texts]
    for path in map(str, map(Path, changed(trace, work))):
        is_git_data = ".git" in Path(path).parts
        # After a chdir of its own.
        is_there = any(matches(path, file) or file.endswith(f"/{path}") for file in files)
        is_there = is_there or any(file.startswith(f"{path}/") for file in files)  # made on the way
        is_below = any(
            not folder or path == folder or path.startswith(f"{folder}/") for folder in below
        )
        # A temporary name beside the file.
        is_beside = any(Path(path).parent == Path(file).parent for file in files)
        assert is_git_data or is_there or is_below or (is_beside and not (work / path).exists()), (
            path
        )
