"""What is published of a job is what regular files hold: neither the checkout nor
the agent leads it elsewhere.
"""

import os
from pathlib import Path

import pytest

from codeloop.schema.errors import CodeloopError
from codeloop_automation.ci.output_files import remove_links, write_output


def test_links_and_what_is_no_file_are_not_published(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token")
    output = tmp_path / "work" / "codeloop-ci"
    (output / "shots").mkdir(parents=True)
    (output / "shots" / "page.png").write_bytes(b"png")
    (output / "environ").symlink_to("/proc/self/environ")
    (output / "link").symlink_to(secret)
    (output / "folder").symlink_to(tmp_path)
    (output / "second").hardlink_to(secret)
    os.mkfifo(output / "pipe")
    remove_links(output)
    assert [
        path.relative_to(output).as_posix() for path in output.rglob("*") if not path.is_dir()
    ] == ["shots/page.png"]
    assert (output / "shots" / "page.png").read_bytes() == b"png"
    assert secret.read_text() == "token"
    assert list(output.parent.iterdir()) == [output]


def test_a_link_in_the_place_of_the_folder_becomes_an_empty_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "key").write_text("secret")
    output = tmp_path / "codeloop-ci"
    output.symlink_to(elsewhere)
    remove_links(output)
    assert (output.is_symlink(), list(output.iterdir()), (elsewhere / "key").read_text()) == (
        False,
        [],
        "secret",
    )


def test_without_a_folder_none_is_made(tmp_path: Path) -> None:
    remove_links(tmp_path / "codeloop-ci")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_in_the_place_of_a_link_and_below_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    output = tmp_path / "codeloop-ci"
    output.mkdir()
    (output / "result.md").symlink_to(precious)
    write_output(output, "result.md", "done")
    assert ((output / "result.md").read_text(), precious.read_text()) == ("done", "mine")
    (tmp_path / "above").symlink_to(output)
    with pytest.raises(CodeloopError, match="link"):
        write_output(tmp_path / "above" / "inner", "result.md", "done")
