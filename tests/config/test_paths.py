"""Our folders: XDG variables, one folder for all, and no home at all."""

from pathlib import Path

import pytest

from codeloop.config.paths import find_paths
from codeloop.schema.errors import CodeloopError


def test_the_usual_folders_lie_in_the_home_directory() -> None:
    paths = find_paths({"HOME": "/home/me"})
    assert (paths.data, paths.config, paths.cache, paths.state) == (
        Path("/home/me/.local/share/codeloop"),
        Path("/home/me/.config/codeloop"),
        Path("/home/me/.cache/codeloop"),
        Path("/home/me/.local/state/codeloop"),
    )
    assert paths.opencode_config == Path("/home/me/.config/opencode")
    assert paths.claude_home == Path("/home/me/.claude")
    assert paths.credentials_file == Path("/home/me/.local/share/codeloop/auth.json")
    assert paths.get_project_folder("abc") == Path("/home/me/.local/share/codeloop/project/abc")


def test_xdg_variables_move_each_folder_and_relative_ones_are_ignored() -> None:
    xdg = {
        "XDG_DATA_HOME": "/d",
        "XDG_CONFIG_HOME": "/c",
        "XDG_CACHE_HOME": "relative",
        "XDG_STATE_HOME": "",
    }
    paths = find_paths({"HOME": "/home/me", **xdg})
    assert (paths.data, paths.config, paths.opencode_config) == (
        Path("/d/codeloop"),
        Path("/c/codeloop"),
        Path("/c/opencode"),
    )
    assert (paths.cache, paths.state) == (
        Path("/home/me/.cache/codeloop"),
        Path("/home/me/.local/state/codeloop"),
    )


def test_one_variable_puts_everything_below_one_folder() -> None:
    paths = find_paths({"HOME": "/home/me", "CODELOOP_HOME": "/top", "XDG_DATA_HOME": "/d"})
    folders = (
        paths.data,
        paths.config,
        paths.cache,
        paths.state,
        paths.opencode_config,
        paths.claude_home,
    )
    assert [str(folder) for folder in folders] == [
        *("/top/data", "/top/config", "/top/cache", "/top/state", "/top/opencode", "/top/.claude")
    ]
    assert paths.home == Path("/home/me")
    assert find_paths({"CODELOOP_HOME": "/top"}).home == Path("/top")


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_no_home_directory_is_an_error_that_says_what_to_set(environment: dict[str, str]) -> None:
    with pytest.raises(CodeloopError, match=r"HOME is not set.*CODELOOP_HOME"):
        find_paths(environment)


def test_a_relative_folder_for_all_is_refused() -> None:
    with pytest.raises(CodeloopError, match=r"CODELOOP_HOME is 'here'.*absolute"):
        find_paths({"HOME": "/home/me", "CODELOOP_HOME": "here"})


def test_home_is_expanded_in_both_spellings() -> None:
    paths = find_paths({"HOME": "/home/me"})
    assert [
        str(paths.expand_home(text)) for text in ("~", "~/x", "$HOME/x/y", "~x", "/x", "x")
    ] == [*("/home/me", "/home/me/x", "/home/me/x/y", "~x", "/x", "x")]
