"""`codeloop demo`: it ends with success and leaves nothing, whatever tools the user has."""

from pathlib import Path

from tests.cli.program import Desk


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    # The caches that a sandbox lays its overlays over.
    for name in (".cache/uv", ".cache/pip", ".npm", ".cargo/registry"):
        (tmp_path / name).mkdir(parents=True)
    (temporary := tmp_path / "temporary").mkdir()
    ended = desk.run("demo", TMPDIR=str(temporary))
    assert ended.returncode == 0, ended
    assert "all 5 tests pass" in ended.stderr + ended.stdout
    assert list(temporary.iterdir()) == []
