"""Which program runs by a bare name, and where another one could stand in for it."""

from pathlib import Path

import pytest

from codeloop.workspace.process.search_path import SearchPath, find_loading_variable


def test_a_system_program_is_certain() -> None:
    found = SearchPath({"PATH": "/no/such/folder:/usr/bin:/bin"}, ["/project"]).find("sh")
    assert found.doubt == ""
    assert found.path.endswith("/sh")


def test_what_is_not_installed_is_not_certain() -> None:
    assert (
        SearchPath({"PATH": "/usr/bin"}, []).find("no-such-program").doubt
        == "`no-such-program` is not installed"
    )
    assert SearchPath({}, []).find("sh").doubt


@pytest.mark.parametrize("first", ["", ".", "bin", "/tmp", "{open}", "{open}/below"])
def test_no_folder_before_it_may_be_one_that_a_command_can_fill(tmp_path: Path, first: str) -> None:
    free = tmp_path / "open"
    (free / "below").mkdir(parents=True)
    free.chmod(0o777)
    path = first.format(open=free)
    assert SearchPath({"PATH": f"{path}:/usr/bin:/bin"}, ["/project"]).find("sh").doubt
    assert SearchPath({"PATH": f"/usr/bin:/bin:{path}"}, ["/project"]).find("sh").doubt == ""


@pytest.mark.parametrize("first", ["{root}/bin", "{root}", "{link}", "{root}/absent"])
def test_a_folder_of_the_project_before_it_counts_for_the_names_that_are_there(
    tmp_path: Path, first: str
) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    (root / "bin").mkdir(parents=True)
    link.symlink_to(root / "bin")
    folder = Path(first.format(root=root, link=link))
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    found = SearchPath(environment, [str(root)]).find("sh")
    assert (found.doubt, found.is_shadowable) == ("", True)
    assert not SearchPath({"PATH": f"/usr/bin:/bin:{folder}"}, [str(root)]).find("sh").is_shadowable
    folder.mkdir(exist_ok=True)
    (folder / "sh").symlink_to("/no/such/file")
    assert SearchPath(environment, [str(root)]).find("sh").doubt


def test_a_program_named_by_its_path_may_lie_in_the_project_too() -> None:
    assert SearchPath({}, ["/project"]).find("/usr/bin/env").doubt == ""
    assert SearchPath({}, ["/usr"]).find("/usr/bin/env").doubt


@pytest.mark.parametrize(
    ("name", "variable"),
    [("rg", "RIPGREP_CONFIG_PATH"), ("git", "GIT_CONFIG_GLOBAL"), ("pip", "PYTHONPATH")],
)
@pytest.mark.parametrize("value", ["/project/.rc", "rc", "/etc:/project"])
def test_a_variable_that_has_a_program_load_from_the_project_makes_it_uncertain(
    name: str, variable: str, value: str
) -> None:
    environment = {"PATH": "/usr/bin:/bin", variable: value}
    assert variable in SearchPath(environment, ["/project"]).find(name).doubt
    assert SearchPath(environment, ["/project"]).find("sh").doubt == ""
    assert (
        variable not in SearchPath({**environment, variable: "/etc"}, ["/project"]).find(name).doubt
    )


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
def test_libraries_of_the_project_make_every_program_uncertain(
    value: str, is_loading: bool
) -> None:
    assert (
        bool(find_loading_variable({"LD_LIBRARY_PATH": value, "PATH": "."}, ["/project"]))
        == is_loading
    )
