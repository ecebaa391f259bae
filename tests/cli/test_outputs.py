"""What commands write for the user: links that a project planted lead it nowhere else,
and it is the user's alone.
"""

import stat
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A project with a session, in which the user's file is linked to under every
    name that could be guessed.
    """
    desk = Desk(tmp_path)
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First"]):
        desk.git(*arguments)
    with serving(steps(Answer(text="Hello"))) as model:
        desk.use(model)
        assert desk.run("run", "hello").returncode == 0
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    for name in ("out", "out.part", ".out.part", "out.tmp"):
        (desk.work / name).symlink_to(tmp_path / "precious")
    (desk.work / "folder").symlink_to(tmp_path / "elsewhere")
    return desk


def is_untouched(desk: Desk) -> bool:
    return (desk.folder / "precious").read_text() == "mine" and not any(
        (desk.folder / "elsewhere").iterdir()
    )


WRITERS = pytest.mark.parametrize(
    "words",
    [
        ("export", "--output"),
        ("export", "--format", "html", "--output"),
        ("share", "--file"),
        ("session", "move", "-o"),
    ],
    ids=" ".join,
)


@pytest.mark.slow
@WRITERS
def test_a_link_at_the_name_is_replaced_and_one_on_the_way_refused(
    desk: Desk, words: tuple[str, ...]
) -> None:
    refused = desk.run(*words, "folder/out")
    assert refused.returncode != 0
    assert "link" in refused.stderr
    done = desk.run(*words, "out")
    assert done.returncode == 0, done.stderr
    assert is_untouched(desk)
    written = desk.work / "out"
    assert (written.is_symlink(), stat.S_IMODE(written.stat().st_mode)) == (False, 0o600)
    assert not [
        path.name
        for path in desk.work.iterdir()
        if path.name.startswith(".out.") and not path.is_symlink()
    ]


@pytest.mark.slow
def test_a_recording_is_not_written_through_a_link(desk: Desk) -> None:
    (desk.work / "tape.part").symlink_to(desk.folder / "precious")
    for name in ("out", "tape", "folder/tape"):
        done = desk.run("run", "--record", name, "--force", "hello")
        assert done.returncode in {1, 2}, done.stderr
        assert "recording" in done.stderr
    assert is_untouched(desk)
