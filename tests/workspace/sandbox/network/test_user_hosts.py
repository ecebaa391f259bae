"""The hosts of the user's own tools are allowed; what lies in the project names none."""

from pathlib import Path

import pytest

from codeloop.workspace.sandbox.network.user_hosts import find_user_hosts

ROWS = [
    (".config/pip/pip.conf", "[global]\nindex-url: https://u:pw@pip.corp/simple\n", ["pip.corp"]),
    (
        ".pip/pip.conf",
        (
            "[global]\nextra-index-url:\n    https://a.corp/simple\n    "
            "https://b.corp:8443/simple\nproxy = http://proxy.corp:1\n"
        ),
        ["a.corp", "b.corp:8443"],
    ),
    (
        ".config/pip/pip.conf",
        "[global]\n# index-url: https://old.corp/\ntrusted-host = https://x.corp\n",
        [],
    ),
    (
        ".config/uv/uv.toml",
        '[[index]]\nurl = "https://uv.corp/simple"\npublish-url = "https://up.corp"\n',
        ["uv.corp"],
    ),
    (
        ".config/uv/uv.toml",
        'extra-index-url: [\n  "https://a.corp",\n  "https://b.corp"\n]\n',
        ["a.corp", "b.corp"],
    ),
    (
        ".npmrc",
        (
            "registry=https://npm.corp/\n@mine:registry = "
            "https://mine.corp:4873/\n//npm.corp/:_authToken=x\nproxy=http://p.corp:1\n"
        ),
        ["npm.corp", "mine.corp:4873"],
    ),
    (
        ".yarnrc",
        'registry "https://yarn.corp/"\n"@mine:registry" "https://mine.corp/"\n',
        ["yarn.corp", "mine.corp"],
    ),
    (
        ".yarnrc.yml",
        (
            'npmRegistryServer: "https://yarn.corp"\nhttpProxy: "http://p.corp"\na:\n    '
            'npmRegistryServer: "https://b.corp"\n'
        ),
        ["yarn.corp", "b.corp"],
    ),
    (
        ".cargo/config.toml",
        'index = "sparse+https://crates.corp/index/"\nproxy = "http://p.corp:1"\nregistry = "https://git.corp/index"\n',
        ["crates.corp", "git.corp"],
    ),
    (
        ".config/go/env",
        "GOPROXY=https://go.corp,https://proxy.golang.org|direct\n",
        ["go.corp", "proxy.golang.org"],
    ),
    (
        ".gemrc",
        "---\n:sources:\n- https://gems.corp/\n- https://rubygems.org\nhttp_proxy: http://p.corp\n",
        ["gems.corp", "rubygems.org"],
    ),
    (
        ".m2/settings.xml",
        "<proxies><proxy><host>p.corp</host></proxy></proxies>\n<mirror>\n  <url>https://maven.corp/x</url>\n</mirror>",
        ["maven.corp"],
    ),
    (
        ".nuget/NuGet/NuGet.Config",
        '<add key="corp" value="https://nuget.corp/index.json" />\n<add key="http_proxy" value="http://p.corp:1" />\n',
        ["nuget.corp"],
    ),
    (".npmrc", "registry=http://localhost:4873/\n", ["localhost:4873"]),
    (".npmrc", "registry=http://10.0.0.5:4873/\n", ["10.0.0.5:4873"]),
    (
        ".npmrc",
        "registry=http://127.1/\nregistry=https://a%2eb/\nregistry=https://[x/\nregistry=https://:99999/\n",
        [],
    ),
    (".npmrc", "registry=https://one.corp/\nregistry=https://one.corp/other\n", ["one.corp"]),
]


@pytest.mark.parametrize(("name", "text", "hosts"), ROWS)
def test_the_users_files_name_hosts_and_their_proxies_do_not(
    name: str, text: str, hosts: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "home" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    own = [
        host
        for host in find_user_hosts(tmp_path / "home", {}, tmp_path / "project")
        if host not in system(tmp_path)
    ]
    assert own == hosts


def system(tmp_path: Path) -> list[str]:
    """Return what this machine's own /etc names."""
    return find_user_hosts(tmp_path / "nobody", {}, tmp_path / "project")


def test_variables_name_hosts(tmp_path: Path) -> None:
    environment = {
        "PIP_INDEX_URL": "https://me:pw@pip.corp/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.corp https://b.corp",
        "UV_INDEX": "mine=https://uv.corp/simple",
        "npm_config_registry": "https://npm.corp",
        "CARGO_REGISTRIES_MINE_INDEX": "sparse+https://crates.corp/",
        "GOPROXY": "https://go.corp,direct",
        "HTTPS_PROXY": "http://proxy.corp:8080",
        "HOMEPAGE": "https://evil.example",
    }
    hosts = find_user_hosts(tmp_path, environment, tmp_path / "project")
    assert [host for host in hosts if host not in system(tmp_path)] == [
        *("pip.corp", "a.corp", "b.corp", "uv.corp", "npm.corp", "crates.corp", "go.corp")
    ]


def test_a_file_that_a_variable_names_counts_for_the_usual_one(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("registry=https://usual.corp")
    (tmp_path / "other").write_text("registry=https://other.corp")
    hosts = find_user_hosts(
        tmp_path, {"NPM_CONFIG_USERCONFIG": str(tmp_path / "other")}, tmp_path / "project"
    )
    assert ("other.corp" in hosts, "usual.corp" in hosts) == (True, False)


def test_a_file_in_the_project_names_no_host_by_whatever_way_it_is_found(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    hostile = project / ".npmrc"
    hostile.write_text("registry=https://evil.example/")
    (home / ".npmrc").symlink_to(hostile)
    (tmp_path / "link").symlink_to(project)
    for environment in (
        {},
        {"NPM_CONFIG_USERCONFIG": str(hostile)},
        {"NPM_CONFIG_USERCONFIG": f"{tmp_path}/link/.npmrc"},
    ):
        assert "evil.example" not in find_user_hosts(home, environment, project)
    assert "evil.example" not in find_user_hosts(project, {}, project)
    assert "evil.example" not in find_user_hosts(project, {}, tmp_path / "link")


def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_passed_over(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / ".npmrc")
    (tmp_path / ".yarnrc").mkdir()
    assert find_user_hosts(tmp_path, {}, tmp_path / "project") == system(tmp_path)
