"""The small language of certain lines: what is in it means to bash exactly what we read,
and nothing else is in it.
"""

import os
import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from codeloop.kit.programs import find_program
from codeloop.kit.wildcard import ANY_TEXT
from codeloop.shell.builtin_checks import is_whole_variable
from codeloop.shell.grammar import read_line
from codeloop.shell.proof import MachineFacts, prove
from tests.support.examples import scale_examples


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("git status", ("git status",)),
        ("ls -la | head -3 2>/dev/null", ("ls -la", "head -3 2> /dev/null")),
        ("a; b && c || d\ne\n\n# f\ng # h", ("a", "b", "c", "d", "e", "g")),
        ("echo a \\\n  b", ("echo a b",)),
        (
            "git log HEAD~3 'stash'@{0} --format='%h %s'",
            ("git log HEAD~3 stash@{0} '--format=%h %s'",),
        ),
        ("CI=1 LC_ALL=C TZ=Europe/Paris make -j4", ("make -j4",)),
        ('grep "a \\"b\\" \\$c" < f >> out', ("""grep 'a "b" $c' < f >> out""",)),
        ("find . \\( -name a \\) -exec cat {} \\;", ("find . \\( -name a \\) -exec cat {} \\;",)),
        ("ls src/*.py --include=*.c", ("ls src/*.py --include=*.c",)),
        ('echo -- "$x" "${y}"', ('echo -- "$x" "${y}"',)),
        ("git commit -m 'a\n\nb'", ("git commit -m 'a\n\nb'",)),
        ("echo 'é ü'", ("echo 'é ü'",)),
        ("[ -f a ] && [ ! -d b ]", ("[ -f a ]", "[ '!' -d b ]")),
    ],
)
def test_reads_lines_whose_meaning_is_certain(line: str, texts: tuple[str, ...]) -> None:
    reading = read_line(line)
    assert reading.refusal == ""
    assert tuple(command.text for command in reading.commands) == texts


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("echo a\n\\rm -f x", "a backslash before a plain character"),
        ("echo a\\\nb", "a newline inside a word"),
        ("echo a # b\n\\rm x", "a backslash before a plain character"),
        ("cat < f\n\\rm x", "a backslash before a plain character"),
        ("cat <\\\nf", "a newline inside a word"),
        ("PATH=./evil git status", "it assigns PATH"),
        ("HOME=$PWD/h git status", "it assigns HOME"),
        ("GIT_TRACE2=x git status", "it assigns GIT_TRACE2"),
        ("BASH_CMDS[git]=./evil/git; git status", "it has a bracket pattern"),
        ("LC_ALL=../x ls", "it assigns LC_ALL"),
        ("TZ=/etc/x date", "it assigns TZ"),
        ("PAGER='rm x' git log", "it assigns PAGER"),
        ("CI=1", "it assigns CI"),
        ("CI=1 ; x", "it sets variables"),
        ("CI+=1 ls", "it assigns CI"),
        ("x='a[$(rm -f x)]' y=$((x)) git status", "it assigns x"),
        ("echo $((x))", "it expands `$...` outside of a whole quoted word"),
        ("echo $[x]", "it expands `$...` outside of a whole quoted word"),
        ('echo "${PATH:x}"', "a double-quoted text expands something, or is not closed"),
        ('echo "${z[x]}"', "a double-quoted text expands something, or is not closed"),
        ('echo "a$x"', "a double-quoted text expands something, or is not closed"),
        ("echo $'a\\'; rm -f x\n: \\'b'", "it expands `$...` outside of a whole quoted word"),
        ("echo `x`", "it runs a command substitution"),
        ('echo "`x`"', "a double-quoted text expands something, or is not closed"),
        ("echo $(x)", "it expands `$...` outside of a whole quoted word"),
        ("f() { x; }", "it has parentheses"),
        ("(a)", "it has parentheses"),
        ("{ a; }", "it has braces"),
        ("{rm,-f,x}", "it has braces"),
        ("echo a{b,c}", "it has braces"),
        ("a &", "it starts something in the background"),
        ("a & b", "it starts something in the background"),
        ("a |& b", "it starts something in the background"),
        ("cat <<E\nE", "it has a here-document or another rare redirection"),
        ("cat <<< x", "it has a here-document or another rare redirection"),
        ("a >| f", "it has a rare redirection"),
        ("a <> f", "it has a here-document or another rare redirection"),
        ("a 12> f", "it has a rare redirection"),
        ("a >& f", "it has a rare redirection"),
        ("a >&2f", "it has a rare redirection"),
        ("cat < /dev/tcp/h/1", "it redirects to a device"),
        ("cat > $x", "it expands `$...` outside of a whole quoted word"),
        ('cat > "$x"', "where it redirects to is not known"),
        ("cat > d/*", "where it redirects to is not known"),
        ("> f", "a redirection stands before the command"),
        ("> f rm x", "a redirection stands before the command"),
        ("rm *.py", "a file pattern at the start of a word could expand to an option"),
        ("rm ?", "a file pattern at the start of a word could expand to an option"),
        ("rm -*", "a file pattern at the start of a word could expand to an option"),
        ("rm [a]", "it has a bracket pattern"),
        ("r[m] x", "it has a bracket pattern"),
        ("echo ~root", "it expands `~` otherwise than as `~/`"),
        ("echo ~+/x", "it expands `~` otherwise than as `~/`"),
        ("echo a=~/x", "it expands `~` otherwise than as `~/`"),
        ("echo a:~/x", "it expands `~` otherwise than as `~/`"),
        ("'rm' x", "the name of a command is not plain"),
        ("r''m x", "the name of a command is not plain"),
        ("! rm x", "the name of a command is not plain"),
        ('"$x" y', "the name of a command is not plain"),
        ("time rm x", "`time` is a word of the shell's own"),
        ("if a; then b; fi", "`if` is a word of the shell's own"),
        ("coproc rm x", "`coproc` is a word of the shell's own"),
        ("declare x=y", "`declare` is a word of the shell's own"),
        ("echo é", "it has characters outside of ASCII that are not quoted"),
        ("echo\u00a0x", "it has control characters or invisible ones"),
        ("echo '\u202e'", "it has control characters or invisible ones"),
        ("echo 'a\rb'", "it has control characters or invisible ones"),
        ("ls;\rrm x", "it has control characters or invisible ones"),
        ("\x00rm x", "it has control characters or invisible ones"),
        ("echo '\ue000'", "it has control characters or invisible ones"),
        ("echo '\udc80'", "it has control characters or invisible ones"),
        ("echo 'a", "a quote is not closed"),
        ("a ;; b", "a command is missing before `;`"),
        ("a | | b", "a command is missing before `|`"),
        ("a &&", "a command is missing at its end"),
        ("a |", "it ends too early"),
        ("", "there is no command in it"),
        ("# a", "there is no command in it"),
        (";".join(["true"] * 51), "it has more than 50 commands"),
        ("a" * 70_000, "it is too long to be read"),
    ],
)  # fmt: skip
def test_refuses_everything_else_and_says_why(line: str, why: str) -> None:
    assert read_line(line).refusal == why


_BITS = r"""
a b.c -x --y=z /p/q ./r ../s % + , : @ ^ = ! a#b # #c ~ ~/ ~/d a~1 a^~ x=~/y ~root 'q' 'q#r' 'it'"'"'s' "d" "\"" "\\"
"\$x" "\`" "$v" "${v}" $v "a$v" "$v$v" \; \( \  \" \' \a \# \* * ? d/* -* a?c a*'b'* [ab] {} {a,b} {1..3} x{a,b} @{1}
a@{u} ] ! ; ;; && || | |& & > >> < 2> 1> 12> &> &>> >& 2>&1 >&2 1>&2x >/dev/null <> >| << <<< ( ) ` $( ) $'x' $"y" CI=1
LC_ALL=C x=1 A+=2 [ ] ' " \
"""
_PIECES = [*_BITS.split(), "\t", "\n", "\\\n", "'q r'", '"d e"', "'\n'"]
_GAPS = ["", " ", " ", " ", "  ", "\t", " \\\n", "\n"]
_JOINTS = [" ; ", ";", "\n", " && ", "|", " || "]


def _generated(count: int, seed: int) -> list[str]:
    """Return lines of the pieces of shell words which the grammar reads;
    most others differ from them by a piece.
    """
    draw = random.Random(seed)
    lines: list[str] = []
    while len(lines) < count:
        parts = ["echo"]
        for _ in range(draw.randint(1, 6)):
            parts += [draw.choice(_GAPS), draw.choice(_PIECES)]
            if draw.random() < 0.2:
                parts += [draw.choice(_JOINTS), "echo"]
        line = "".join(parts)
        reading = read_line(line)
        if (
            "|" in line and "\n" in line
        ):  # bash prints line by line: the words of two processes would mix
            continue
        if not reading.refusal and all(
            command.words[0].value == "echo" for command in reading.commands
        ):
            lines.append(line)
    return lines


_SCRIPT = r"""
set -f
echo() { printf '%s\0' "$@" '' end >&9; }
run() { eval "$1"; printf 'line\0' >&9; }
"""


def _in_bash(lines: list[str], folder: Path) -> list[list[list[str]]]:
    """Return for each line the words of each `echo` that bash runs, all in one process."""
    (folder / "work").mkdir()
    calls = "".join("run '" + line.replace("'", "'\\''") + "'\n" for line in lines)
    (folder / "script").write_text(_SCRIPT + calls)
    environment = {"PATH": "/nowhere", "HOME": "/h/o me", "LC_ALL": "C.UTF-8", "v": "val ue"}
    null = subprocess.DEVNULL
    run = ["/bin/sh", "-c", 'exec "$0" --noprofile --norc ../script 9>../out', BASH]
    subprocess.run(
        run, env=environment, cwd=folder / "work", stdin=null, stdout=null, stderr=null, check=False
    )
    shown: list[list[list[str]]] = []
    found: list[list[str]] = []
    words: list[str] = []
    for each in (folder / "out").read_bytes().split(b"\0")[:-1]:
        match each, words:
            case b"line", _:
                shown.append(found)
                found = []
            case b"end", [*before, ""]:
                found.append(before)
                words = []
            case _:
                words.append(os.fsdecode(each))
    return shown


def _expected(line: str) -> list[list[re.Pattern[str]]]:
    """Return what the words of each command have to match;
    a variable holds `val ue`, a file pattern finds nothing.
    """
    proof = prove(line, MachineFacts(home="/h/o me"))
    assert proof.unproven == ""
    return [
        [
            re.compile(
                "val ue" if is_whole_variable(word) else re.escape(text).replace(ANY_TEXT, ".*"),
                re.DOTALL,
            )
            for word, text in zip(proved.command.words[1:], proved.argv[1:], strict=True)
        ]
        for proved in proof.commands
    ]


def _fits(words: list[str], patterns: list[re.Pattern[str]]) -> bool:
    return len(words) == len(patterns) and all(map(re.Pattern.fullmatch, patterns, words))


BASH = find_program("bash", os.environ.get("PATH")) or ""


@pytest.mark.slow
@pytest.mark.skipif(not BASH, reason="there is no bash here to compare with")
@pytest.mark.parametrize("seed", range(5))
def test_words_are_those_that_bash_makes(tmp_path: Path, seed: int) -> None:
    lines = _generated(scale_examples(2_000), seed)
    for line, shown in zip(lines, _in_bash(lines, tmp_path), strict=True):
        expected = _expected(line)
        for words in shown:
            fitting = next((patterns for patterns in expected if _fits(words, patterns)), None)
            assert fitting is not None, (line, words)
            expected.remove(fitting)
        may_fail = "||" in line or "<" in line or ">" in line
        assert may_fail or not expected, (line, expected)


@pytest.mark.parametrize("seed", range(20))
def test_any_text_is_read_or_refused_in_time(seed: int) -> None:
    draw = random.Random(seed)
    text = draw.choice(_PIECES) * 30_000 + "".join(draw.choices(_PIECES, k=2_000))
    started = time.process_time()
    prove(text, MachineFacts())
    assert time.process_time() - started < 2, "what grows with the square of a line takes minutes"
