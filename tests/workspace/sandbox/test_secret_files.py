"""Keys, what browsers know, and sockets of others: nothing of it is read or reached by a command,
wherever it lies.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from codeloop.kit.guarded_paths import SECRET_FOLDERS, SECRET_NAMES, is_secret
from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import ShellCommand
from codeloop.workspace.sandbox.paths.restricted_paths import SOCKET_VARIABLES
from codeloop.workspace.sandbox.paths.secret_files import holds_token
from codeloop.workspace.sandbox.policy import PolicyInput
from tests.workspace.sandbox.conftest import SECRET, Attacked

IN_HOME = (
    *(
        ".aws/credentials",
        ".config/gcloud/credentials.db",
        ".kube/config",
        ".azure/msal_token_cache.json",
        ".netrc",
    ),
    *(
        ".config/gh/hosts.yml",
        ".pypirc",
        ".docker/config.json",
        ".gnupg/private-keys-v1.d/key",
        ".git-credentials",
    ),
    *(
        ".password-store/mail.gpg",
        ".local/share/keyrings/login.keyring",
        ".mozilla/firefox/p/logins.json",
        ".pgpass",
    ),
    *(
        ".config/google-chrome/Default/Cookies",
        ".ssh/id_rsa",
        ".bash_history",
        ".vault-token",
        ".Xauthority",
        ".env",
    ),
    *(
        ".cargo/credentials.toml",
        "service-account.json",
        "snap/firefox/common/logins.json",
        ".oci/oci_api_key.pem",
    ),
)
SEARCH = f"grep -rsaoh {SECRET[:14]}.* . {{home}} | head -3"
PLACES = (
    *(
        "{home}/.docker/run/docker.sock",
        "{home}/.gnupg/S.gpg-agent",
        "{home}/.1password/agent.sock",
    ),
    *(
        "{home}/.ssh/agent/s",
        "{home}/.emacs.d/server/server",
        "{home}/anywhere/else.sock",
        "{home}/.screen/1.tty",
    ),
    *(
        "/run/{name}/docker.sock",
        "/run/{name}/podman/podman.sock",
        "/run/{name}/containerd/containerd.sock",
    ),
    *("/run/{name}/user/bus", "/run/{name}/user/wayland-0", "/run/{name}/user/gnupg/S.gpg-agent"),
    *("/tmp/{name}/tmux-0/default", "/tmp/{name}/.X11-unix/X7", "/tmp/{name}/ssh-agent/agent.1"),
    *("/opt/{name}/service.sock", "\0{name}/dbus", "\0{name}/.X11-unix/X7"),
)
CONNECT = """
import os, socket, sys
for number, place in enumerate(sys.stdin.read().split("\\n")):
    place = place.replace("@", "\\0", 1) if place.startswith("@") else place
    try:
        if not place.startswith("\\0"):
            os.chdir(os.path.dirname(place))
            place = os.path.basename(place)
        socket.socket(socket.AF_UNIX).connect(place)
        print(number, "reached", repr(place))
    except OSError:
        print(number, "kept")
"""


def test_one_list_says_what_is_secret() -> None:
    assert all(is_secret(f"/home/a/{name}") for name in SECRET_FOLDERS)
    assert all(is_secret(f"/home/a/{name.replace('*', 'x')}") for name in SECRET_NAMES)
    assert all(is_secret(f"/home/a/{name}") for name in IN_HOME)


async def test_no_key_in_the_home_is_read(it: Attacked) -> None:
    for name in IN_HOME:
        path = it.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    (it.home / ".npmrc").write_text(f"//registry.npmjs.org/:_authToken={SECRET}")
    (it.home / ".gitconfig").write_text("plain")
    it.shells._work_trees._policy_makers.clear()
    outcome = await it.run(
        f"{SEARCH}; cat {{home}}/.gitconfig {{home}}/.npmrc".format(home=it.home)
    )
    assert SECRET not in outcome.output
    assert "plain" in outcome.output


PLACED = (
    *(
        (name, SECRET, True)
        for name in (".env", ".env.local", "sub/.env", "credentials.json", ".pypirc")
    ),
    *(
        (name, SECRET, True)
        for name in ("id_ed25519", "my-service-account.json", "release.jks", ".netrc", ".ENV")
    ),
    ("server.key", f"-----BEGIN PRIVATE KEY-----{SECRET}", True),
    (".npmrc", f"//registry.npmjs.org/:_authToken={SECRET}", True),
    ("a/.npmrc", f"//registry.npmjs.org/:_authToken=${{TOKEN}}\n# {SECRET}", False),
    ("b/.npmrc", f"registry=https://packages.example.com/{SECRET}", False),
    (".env.example", SECRET, False),
    ("tests/data/server.key", f"-----BEGIN PRIVATE KEY-----{SECRET}", False),
    ("src/test/resources/server.jks", SECRET, False),
    ("public.pem", f"-----BEGIN CERTIFICATE-----{SECRET}", False),
    ("id_rsa.pub", SECRET, False),
)
"""Files of a project, their contents, and whether a command finds them hidden."""


async def test_a_secret_of_a_project_is_hidden_and_what_its_tools_need_is_not(it: Attacked) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock can't hide a file in a project, and says so")
    for name, text, _ in PLACED:
        path = it.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    outcome = await it.run(
        "; ".join(f"printf '\\n@@ {name}\\n'; cat {name} 2>&1" for name, *_ in PLACED)
    )
    shown = dict(each.split("\n", 1) for each in outcome.output.split("\n@@ ")[1:])
    assert {name: SECRET not in shown[name] for name, *_ in PLACED} == {
        name: hidden for name, _, hidden in PLACED
    }


@pytest.fixture
def short(it: Attacked) -> Iterator[Attacked]:
    """The same with a home whose path is short enough for the names of sockets."""
    home = Path(tempfile.mkdtemp())
    environment = {**it.place.environment, "HOME": str(home)}
    place = PolicyInput(it.root, it.root, it.place.scratch, environment, it.place.own_folders)
    it.shells._work_trees._policy_makers.clear()
    yield it._replace(home=home, place=place, context=replace(it.context, environment=environment))
    shutil.rmtree(home)


@pytest.fixture
def served(short: Attacked) -> Iterator[list[str]]:
    """Serve at each place where sockets of others lie, as far as this machine lets us;
    yield where.
    """
    name = f"codeloop-test-{os.getpid()}"
    places: list[str] = []
    with ExitStack() as stack:
        for folder in (f"/run/{name}", f"/tmp/{name}", f"/opt/{name}"):
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for each in PLACES:
            place = each.format(home=short.home, name=name)
            with suppress(OSError):
                if not place.startswith("\0"):
                    Path(place).parent.mkdir(parents=True, exist_ok=True)
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(place)
                listener.listen()
                places.append(place)
        yield places


async def test_no_socket_of_others_is_reached(short: Attacked, served: list[str]) -> None:
    assert len(served) > 8
    (short.root / "connect.py").write_text(CONNECT)
    (short.root / "places").write_text("\n".join(place.replace("\0", "@", 1) for place in served))
    plain = ShellCommand("python3 connect.py < places", 120)
    assert (await short.shells.run(short.context, plain, lambda _: None)).output.count(
        "reached"
    ) == len(served)
    outcome = await short.run("python3 connect.py < places")
    assert outcome.output.splitlines() == [f"{number} kept" for number in range(len(served))]


async def test_a_socket_that_is_made_or_made_again_is_kept_from_the_next_command(
    short: Attacked,
) -> None:
    if short.backend == "landlock":
        pytest.skip("Landlock lets no command open sockets")
    place = short.home / ".local/lib/tool/run/service.sock"
    place.parent.mkdir(parents=True)
    (short.root / "connect.py").write_text(CONNECT)
    (short.root / "places").write_text(str(place))
    for _ in range(2):
        assert "kept" in (await short.run("python3 connect.py < places")).output
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
            listener.listen()
            assert (await short.run("python3 connect.py < places")).output.splitlines() == [
                "0 kept"
            ]
        place.unlink()


async def test_no_variable_leads_to_a_socket(short: Attacked) -> None:
    given = {name: f"/tmp/{name}" for name in SOCKET_VARIABLES}
    context = replace(short.context, environment={**short.context.environment, **given})
    policy = short.shells.make_policy(short.place, SandboxConfig(network="off"))
    outcome = await short.shells.run(
        context, ShellCommand("env", 120, None, policy), lambda _: None
    )
    assert not given.keys() & {line.partition("=")[0] for line in outcome.output.splitlines()}


async def test_without_a_network_programs_do_not_wait_to_try_again(short: Attacked) -> None:
    mine = {**short.context.environment, "PIP_RETRIES": "3"}
    context = replace(short.context, environment=mine)
    for config, retries in ((SandboxConfig(network="off"), "0"), (SandboxConfig(network="on"), "")):
        policy = short.shells.make_policy(short.place, config)
        shown = ShellCommand('echo "$PIP_RETRIES $npm_config_fetch_retries"', 120, None, policy)
        outcome = await short.shells.run(context, shown, lambda _: None)
        assert outcome.output == f"3 {retries}\n"


async def test_a_secret_stays_out_of_sight_whatever_is_done_to_the_folders_around_it(
    it: Attacked,
) -> None:
    if it.backend == "landlock":
        pytest.skip("commands are asked about there, since it can't hide what is in the project")
    for name in ("sub/.env", "keys/deploy.pem", "cfg/.aws/credentials", "deep/a/b/.env"):
        (it.root / name).parent.mkdir(parents=True, exist_ok=True)
        (it.root / name).write_text(f"PRIVATE KEY {SECRET}")
    await it.run(
        "mv sub venv; mkdir -p tests target; mv keys tests; mv cfg/.aws cfg/aws; mv cfg target; mkdir $(seq 1000)"
    )
    outcome = await it.run(f"grep -rsho {SECRET} .; ls 1000 > /dev/null && echo done")
    assert outcome.output == "done\n"


def test_a_token_in_a_subfolder_of_settings_counts(tmp_path: Path) -> None:
    below = tmp_path / "git/config.d"
    below.mkdir(parents=True)
    (below / "work").write_text("[user]\n\tname = a\n")
    assert not holds_token(tmp_path / "git")
    (below / "work").write_text("password = hunter2\n")
    assert holds_token(tmp_path / "git")
