"""What the model is told of protected files that a command has changed."""

from pathlib import Path

from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessStarter
from codeloop.workspace.sandbox.protected_files import ProtectedFiles
from codeloop.workspace.sandbox.sandbox import Sandbox


def protect(root: Path, *paths: Path, absent: tuple[Path, ...] = ()) -> ProtectedFiles:
    """Return the state of files that no kernel protects."""
    policy = SandboxPolicy(
        writable=(root,),
        protected=paths,
        visible=(),
        hidden=(),
        absent=absent,
        network="off",
        hosts=(),
    )
    return ProtectedFiles(
        Sandbox("landlock", policy, ProcessStarter(""), ()), root.parent / "set-aside", None
    )


def test_a_changed_file_is_as_it_was_before(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    file = root / "codeloop.json"
    file.write_text("{}")
    protected = protect(root, file)
    file.write_text("changed")
    (note,) = protected.restore()
    assert note == f"blocked: change of {file}, which is protected; it is as it was before."
    assert file.read_text() == "{}"


def test_a_file_that_can_not_be_put_back_is_not_said_to_be_as_before(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    settings, other = root / ".git/config", root / "codeloop.json"
    settings.write_text("[core]")
    other.write_text("{}")
    protected = protect(root, settings, other)
    other.write_text("changed")
    (root / ".git").rename(root / "moved")
    (root / ".git").symlink_to("moved")
    settings.write_text("[alias]")
    blocked, failed = protected.restore()
    assert blocked == f"blocked: change of {other}, which is protected; it is as it was before."
    assert failed.startswith(f"{settings} could not be put back")


def test_a_new_file_is_moved_away_beside_itself_where_the_set_aside_folder_can_not_be_made(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "set-aside").write_text("no folder")
    planted = root / "codeloop.json"
    protected = protect(root, absent=(planted,))
    planted.write_text("{}")
    assert protected.restore() == []
    (moved,) = protected.moved_files
    assert moved.path == planted
    assert moved.moved.parent == root
    assert not planted.exists()


def test_a_new_file_that_can_not_be_moved_away_is_told(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "lib").mkdir(parents=True)
    planted = root / "lib/codeloop.json"
    protected = protect(root, absent=(planted,))
    (root / "lib").rename(root / "moved")
    (root / "lib").symlink_to("moved")
    planted.write_text("{}")
    (note,) = protected.restore()
    assert note.startswith(f"{planted} could not be put back")
    assert not protected.moved_files


def test_a_folder_without_files_stays_until_the_end_and_one_with_a_link_does_not(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    planted = root / ".codeloop"
    protected = protect(root, absent=(planted,))
    (planted / "agents").mkdir(parents=True)
    protected.move_new_files()
    assert (planted / "agents").is_dir()
    (planted / "plugins").symlink_to(tmp_path)
    protected.move_new_files()
    assert not planted.exists()
    (planted / "agents").mkdir(parents=True)
    assert protected.restore() == []
    assert not planted.exists()
    assert len(protected.moved_files) == 2
