"""A file that a line gives another name counts as written by what the line
writes under that name.
"""

import pytest

from codeloop.shell.analysis import analyse
from codeloop.shell.word_paths import ANYWHERE


@pytest.mark.parametrize(
    "line",
    [
        "ln -s .git/hooks h; echo x > h/pre-commit",
        "ln -sf .git/hooks h && cp a h/pre-commit",
        "ln -s .git/hooks h; cd h; echo x > pre-commit",
        "ln -s .git/hooks h\ntee h/pre-commit < a",
        "ln -s -t d ../.git/hooks; echo x > d/hooks/a",
        "ln -s .git/hooks; echo x > hooks/a",
        "ln --symbolic .git/hooks h; git show HEAD:a > h/a",
        "ln .git/config c; echo x > c",
        "ln .git/config c; sed -i s/a/b/ ./c",
        "ln .git/config c && echo x | tee c",
        "cp -l .git/config c; tee c < a",
        "cp -al .git/hooks h; echo x > h/a",
        "cp -rs $PWD/.git/hooks h; echo x > h/a",
        "cp --symbolic-link .git/config c; echo x >> c",
        "link .git/config c; echo x > c",
        "mount --bind .git/hooks h; echo x > h/a",
        "ln -s .git/hooks h; cp -r src/. .",
        "ln -s .git/hooks h; echo x > h*/a",
        "for i in 1 2; do echo x > h/a; ln -s .git/hooks h; done",
        "sudo ln -s .git/hooks h; sudo tee h/a",
        "ln -s .git/config a; ln -s a b; echo x >> b",
        "ln -s .git a; ln -s a/hooks b; ln -s b c; echo x > c/pre-commit",
        "ln -s a b; ln -s .git/config a; echo x >> b",
    ],
)
def test_what_is_written_by_another_name_is_written(line: str) -> None:
    written = [text.removeprefix("./") for text in analyse(line).writes]
    assert any(text == ".git" or ".git/" in text for text in written), written


@pytest.mark.parametrize(
    "line",
    [
        "ln -s ../x y",
        "rm -f y; ln -s ../x y",
        "ln -s ../x y && cat y",
        "ln -s ../x y; echo a > b",
        "cp -l a b; ls",
        "ln -s ../x y; git status > out",
    ],
)
def test_a_link_that_nothing_is_written_by_changes_nothing_else(line: str) -> None:
    assert not [text for text in analyse(line).writes if "../x" in text or text == "a"]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("git checkout-index --prefix=.git/hooks/ a", ".git/hooks"),
        ("git checkout-index -f --prefix .git/hooks/pre- a", ".git/hooks"),
        ("git push ../other", "../other"),
        ("cargo build --target-dir ../out", "../out"),
        ("npm pack --pack-destination=../out", "../out"),
        ("pip install -t ../site x", "../site"),
        ("pip3 install --target ../site x", "../site"),
        ("sqlite3 a.db '.output ../out' 'select 1'", "../out"),
        ("sqlite3 a.db '.once \"../out\"'", "../out"),
        ("sqlite3 a.db \"attach database '../out' as x\"", "../out"),
        ("sqlite3 a.db \"vacuum into '../out'\"", "../out"),
        ("sqlite3 a.db '.shell rm x'", ANYWHERE),
        ("vim -es -c 'w! .git/hooks/a' -c q b", ANYWHERE),
        ("vi +'w x' b", ANYWHERE),
        ("ed b < script", ANYWHERE),
    ],
)
def test_a_program_that_is_told_where_to_write_writes_there(line: str, path: str) -> None:
    assert path in analyse(line).writes


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("git add -f .env; git diff --cached", ".env"),
        ("git stage --force .env && git show :.env", ".env"),
        ("git add .env", ".env"),
        ("git update-index --add .env", ".env"),
        ("git fetch ../other main", "../other"),
        ("git pull ~/other", "~/other"),
        ("git remote add x ../other; git fetch x", "../other"),
    ],
)
def test_what_git_takes_from_elsewhere_is_read(line: str, path: str) -> None:
    assert path in analyse(line).reads


def test_a_remote_of_a_repository_is_no_folder() -> None:
    assert analyse("git fetch origin main; git push origin main").touches.read_trees == ()
