"""Here-documents, loops, `time` and printed variables are proved where they mean
exactly something plain.
"""

import subprocess
from pathlib import Path

import pytest

from codeloop.shell.analysis import analyse
from codeloop.shell.plain_forms import write_plainly

MESSAGE = "\"$(cat <<'END'\nit's (done)\n\n  $HOME `x`\n\nEND\n)\""
READ_ONLY = (
    "cat <<'EOF'\nhello $HOME\nEOF",
    "cat <<EOF\nplain\nEOF",
    "cat <<'A' && wc -l <<'B'\none\nA\ntwo\nB\nls",
    'for f in a b; do grep x "$f"; done',
    "for f in a.txt b.txt\ndo\n  cat $f\n  wc -l ${f}\ndone",
    "for i in 1 2 3; do echo $i; done",
    "time ls",
    "time -p ls | wc -l && time grep x a",
    "echo $HOME $PWD ${USER}",
    'echo "home: $HOME"',
)
PROVED = (
    f"git commit -m {MESSAGE}",
    "git commit -F - <<'END'\nmessage\nEND",
    "cat > b.txt <<'EOF'\nhi\nEOF",
)
UNPROVED = (
    "bash <<'E'\nrm x\nE",
    "cat <<'E' | sh\nrm x\nE",
    "xargs rm <<'E'\nx\nE",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n`rm x`\nE",
    "cat <<-'E'\nx\n\tE\nrm y",
    "cat <<'E'\nx\nE y",
    "cat <<'E'\nx",
    "cat <<'A' \"$(cat <<'B'\nx\nB\n)\"\ny\nA",
    "for PATH in /tmp; do ls; done",
    "for http_proxy in x; do ls; done",
    "for f in *; do cat $f; done",
    "for f in $(ls); do cat $f; done",
    "for f in a; do f=/etc/x; cat $f; done",
    "for f in a; do read f; cat $f; done",
    "for f in a; do printf -v f x; cat $f; done",
    "for f in -rf; do rm $f; done",
    "for f in a; do for g in b; do cat $f; done; done",
    "for f in a; do cat '$f'; done",
    "time (ls)",
    "time { ls; }",
    "echo $SECRET_KEY",
    "echo $HOME > $HOME/x",
    'rm "x; echo $HOME; y"',
)


@pytest.mark.parametrize("line", READ_ONLY)
def test_forms_that_only_read_are_proved_to(line: str) -> None:
    assert analyse(line).is_read_only


@pytest.mark.parametrize("line", PROVED)
def test_a_constant_here_document_is_proved(line: str) -> None:
    assert analyse(line).proof.unproven == ""


@pytest.mark.parametrize("line", UNPROVED)
def test_what_is_not_exactly_such_a_form_is_not_proved(line: str) -> None:
    assert analyse(line).proof.unproven


def test_rules_see_each_round_of_a_loop() -> None:
    analysis = analyse('for f in a .env; do cat "$f"; done')
    assert analysis.commands == ("cat a", "cat .env")
    assert ".env" in analysis.reads


@pytest.mark.parametrize(
    "line", [each for each in READ_ONLY if "$HOME" not in each and not each.startswith("time")]
)
def test_bash_does_the_same(tmp_path: Path, line: str) -> None:
    for name in ("a", "b", "a.txt", "b.txt"):
        (tmp_path / name).write_text(f"x {name}\n")
    written = write_plainly(line)
    assert written != line
    outputs = [
        subprocess.run(
            ["bash", "-c", each], cwd=tmp_path, input=b"", capture_output=True, check=False
        )
        for each in (line, written)
    ]
    # What a here-document had is no longer in it: only the commands are compared there.
    if "<<" not in line:
        assert outputs[0].stdout == outputs[1].stdout


def test_a_message_is_the_same_text(tmp_path: Path) -> None:
    outputs = [
        subprocess.run(["bash", "-c", each], cwd=tmp_path, capture_output=True, check=True).stdout
        for each in (f"printf %s {MESSAGE}", write_plainly(f"printf %s {MESSAGE}"))
    ]
    assert outputs[0] == outputs[1] == b"it's (done)\n\n  $HOME `x`"
