"""Which program runs by a bare name, and where another one could stand in for it."""

from pathlib import Path

import pytest

from codeloop.workspace.process.programs import SearchPath, loads_from_project


def test_a_system_program_is_certain() -> None:
    found = SearchPath({"PATH": "/no/such/folder:/usr/bin:/bin"}, ["/project"]).find("sh")
    assert found.doubt == ""
    assert found.path.endswith("/sh")


def test_what_is_not_installed_is_not_certain() -> None:
    assert SearchPath({"PATH": "/usr/bin"}, []).find("no-such-program").doubt == "`no-such-program` is not installed"
    assert SearchPath({}, []).find("sh").doubt


@pytest.mark.parametrize("first", ["", ".", "bin", "{root}/bin", "{root}", "{link}", "/tmp", "{open}", "{open}/below"])
def test_no_folder_before_it_may_be_one_that_a_command_can_fill(tmp_path: Path, first: str) -> None:
    root, link, free = tmp_path / "root", tmp_path / "link", tmp_path / "open"
    (root / "bin").mkdir(parents=True)
    link.symlink_to(root / "bin")
    (free / "below").mkdir(parents=True)
    free.chmod(0o777)
    path = first.format(root=root, link=link, open=free)
    assert SearchPath({"PATH": f"{path}:/usr/bin:/bin"}, [str(root)]).find("sh").doubt
    assert SearchPath({"PATH": f"/usr/bin:/bin:{path}"}, [str(root)]).find("sh").doubt == ""


@pytest.mark.parametrize(
    ("value", "is_loading"),
    [
        ("", False),
        ("/usr/lib", False),
        (".", True),
        ("/usr/lib:", True),
        ("/project/lib", True),
        ("/usr/lib x.so", True),
    ],
)
def test_libraries_of_the_project_make_every_program_uncertain(value: str, is_loading: bool) -> None:
    assert bool(loads_from_project({"LD_LIBRARY_PATH": value, "PATH": "."}, ["/project"])) == is_loading
