"""The host of JavaScript extensions: the contract of hosts, and what it is run with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from codeloop.extend.host.javascript.runtime import NoRuntime, check_runtime
from tests.support.host_contract import CONTRACT, Extensions, Host
from tests.support.javascript_extensions import find_host_command, write_extensions


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Host, Extensions], None], tmp_path: Path) -> None:
    with Host(find_host_command(), tmp_path) as host:
        check(host, write_extensions(tmp_path))


def program(folder: Path, name: str, says: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho {says}\n")
    (folder / name).chmod(0o755)


def test_bun_comes_first_and_fetches_nothing_then_node(tmp_path: Path) -> None:
    program(tmp_path, "node", "v22.0.0")
    assert check_runtime(str(tmp_path))[0] == str(tmp_path / "node")
    program(tmp_path, "bun", "1.2.0")
    assert check_runtime(str(tmp_path))[:2] == (str(tmp_path / "bun"), "--no-install")


@pytest.mark.parametrize(
    ("says", "named"),
    [(None, "neither is on the PATH"), ("v20.20.2", "v20.20.2"), ("oops", "oops")],
)
def test_without_them_one_line_says_what_is_needed(
    says: str | None, named: str, tmp_path: Path
) -> None:
    if says is not None:
        program(tmp_path, "node", says)
    with pytest.raises(NoRuntime, match=r"need node 22 or newer, or bun") as error:
        check_runtime(str(tmp_path))
    assert named in str(error.value)
    assert "\n" not in str(error.value)
