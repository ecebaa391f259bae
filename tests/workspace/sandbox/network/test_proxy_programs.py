"""Programs of every day find the proxy in their environment, over real TLS,
and are told what was refused.
"""

import asyncio
import hashlib
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from codeloop.workspace.sandbox.network.host_list import parse_host_list
from codeloop.workspace.sandbox.network.host_proxy import HostProxy
from codeloop.workspace.sandbox.network.outgoing_connections import OutgoingConnections
from codeloop.workspace.sandbox.network.proxy_variables import make_proxy_environment

BLOCKED = "blocked: connection to evil.example:443, not among the hosts of the sandbox"
HOSTILE = {
    "http_proxy": "http://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "PIP_PROXY": "http://127.0.0.1:1",
}


@dataclass(frozen=True)
class Registry:
    """A server of files for registry.test over TLS. `root`: its files;
    `certificate`: who vouches for it.
    """

    root: Path
    certificate: Path
    port: int


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> "Registry":
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate, root = folder / "key.pem", folder / "cert.pem", folder / "files"
    root.mkdir()
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-subj", "/CN=x", "-addext", "subjectAltName=DNS:registry.test"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    return Registry(root, certificate, server.server_address[1])


@dataclass(frozen=True)
class Command:
    code: int
    output: str
    refused: list[str]


@asynccontextmanager
async def sandboxed(registry: Registry) -> AsyncGenerator[tuple[HostProxy, int]]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    outside = OutgoingConnections({}, resolve, lambda address, port: ("127.0.0.1", registry.port))
    proxy = HostProxy(parse_host_list(["registry.test"]), outside)
    listener = socket.create_server(("127.0.0.1", 0))
    await proxy.serve(listener)
    try:
        yield proxy, listener.getsockname()[1]
    finally:
        await proxy.close()


async def run(registry: Registry, place: Path, *command: str) -> Command:
    """Run a program with the proxy's variables, which replace the user's."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs the program {command[0]}")
    async with sandboxed(registry) as (proxy, port):
        certificates = (
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
            "PIP_CERT",
            "npm_config_cafile",
            "CARGO_HTTP_CAINFO",
            "SSL_CERT_FILE",
        )
        given = (
            {"PATH": os.environ["PATH"], "HOME": str(place)}
            | HOSTILE
            | dict.fromkeys(certificates, str(registry.certificate))
        )
        given |= make_proxy_environment(port, given)
        child = await asyncio.create_subprocess_exec(
            *command,
            cwd=place,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        async with asyncio.timeout(180):
            output, _ = await child.communicate()
        return Command(child.returncode or 0, output.decode(), proxy.list_refused(0, port))


async def test_curl_gets_what_is_allowed_and_is_told_what_is_not(
    registry: Registry, tmp_path: Path
) -> None:
    (registry.root / "hello").write_text("hello over TLS")
    assert await run(registry, tmp_path, "curl", "-sS", "https://registry.test/hello") == Command(
        0, "hello over TLS", []
    )
    refused = await run(registry, tmp_path, "curl", "-sS", "https://evil.example/")
    assert (refused.code != 0, "403" in refused.output, refused.refused) == (True, True, [BLOCKED])
    plain = await run(registry, tmp_path, "curl", "-sS", "http://evil.example/secret")
    line = BLOCKED.replace("443", "80")
    assert plain.output.startswith(f"{line}.\nTo allow a host, ")
    assert plain.refused == [line]


async def test_curl_can_not_ask_an_allowed_host_for_another(
    registry: Registry, tmp_path: Path
) -> None:
    fronted = await run(
        registry,
        tmp_path,
        "curl",
        "-sS",
        "--connect-to",
        "evil.example:443:registry.test:443",
        "https://evil.example/",
    )
    assert fronted.code != 0
    assert fronted.refused == [
        "blocked: connection to registry.test:443, TLS asks for another server: evil.example"
    ]


async def test_git_clones(registry: Registry, tmp_path: Path) -> None:
    bare = registry.root / "made.git"
    for command in (["init", "-q", "--bare", bare], ["-C", bare, "update-server-info"]):
        subprocess.run(["git", *command], check=True)
    cloned = await run(
        registry, tmp_path, "git", "clone", "-q", "https://registry.test/made.git", "here"
    )
    assert (cloned.code, cloned.refused) == (0, [])
    assert (tmp_path / "here/.git/config").is_file()
    refused = await run(
        registry, tmp_path, "git", "clone", "-q", "https://evil.example/made.git", "there"
    )
    assert ("403" in refused.output, refused.refused) == (True, [BLOCKED])


async def test_a_proxy_in_the_users_git_configuration_does_not_count(
    registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").write_text("[http]\n\tproxy = http://127.0.0.1:1\n")
    listed = await run(registry, tmp_path, "git", "ls-remote", "https://registry.test/nothing.git")
    assert "not found" in listed.output


@pytest.mark.slow
async def test_pip_downloads(registry: Registry, tmp_path: Path) -> None:
    index = registry.root / "simple/made"
    index.mkdir(parents=True)
    with zipfile.ZipFile(index / "made-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("made.py", "")
        wheel.writestr(
            "made-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: made\nVersion: 1.0\n"
        )
        wheel.writestr(
            "made-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("made-1.0.dist-info/RECORD", "")
    (index / "index.html").write_text(
        '<a href="made-1.0-py3-none-any.whl">made-1.0-py3-none-any.whl</a>'
    )
    pip = [
        "pip",
        "download",
        "--no-deps",
        "--no-cache-dir",
        "--retries",
        "0",
        "--disable-pip-version-check",
    ]
    got = await run(registry, tmp_path, *pip, "-i", "https://registry.test/simple/", "made")
    assert (got.code, got.refused, (tmp_path / "made-1.0-py3-none-any.whl").is_file()) == (
        0,
        [],
        True,
    )
    refused = await run(registry, tmp_path, *pip, "-i", "https://evil.example/simple/", "made")
    assert (refused.code != 0, refused.refused) == (True, [BLOCKED])


@pytest.mark.slow
async def test_npm_installs(registry: Registry, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        content = b'{"name": "made", "version": "1.0.0"}'
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    (registry.root / "made.tgz").write_bytes(packed.getvalue())
    dist = {
        "tarball": "https://registry.test/made.tgz",
        "shasum": hashlib.sha1(packed.getvalue()).hexdigest(),
    }
    versions = {"1.0.0": {"name": "made", "version": "1.0.0", "dist": dist}}
    document = {"name": "made", "dist-tags": {"latest": "1.0.0"}, "versions": versions}
    (registry.root / "made").write_text(json.dumps(document))
    (tmp_path / ".npmrc").write_text("proxy=http://127.0.0.1:1\nhttps-proxy=http://127.0.0.1:1\n")
    (tmp_path / "package.json").write_text("{}")
    npm = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0"]
    got = await run(registry, tmp_path, *npm, "--registry=https://registry.test/", "made")
    assert (got.code, got.refused) == (0, []), got.output
    assert (tmp_path / "node_modules/made/package.json").is_file()
    refused = await run(registry, tmp_path, *npm, "--registry=https://evil.example/", "other")
    assert (refused.code != 0, refused.refused) == (True, [BLOCKED])


def test_the_users_own_git_settings_and_options_of_java_stay() -> None:
    given = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "c",
        "MAVEN_OPTS": "-Xmx1g",
    }
    found = given | make_proxy_environment(1234, given)
    assert (found["GIT_CONFIG_COUNT"], found["GIT_CONFIG_KEY_0"], found["GIT_CONFIG_KEY_1"]) == (
        "2",
        "a.b",
        "http.proxy",
    )
    assert found["MAVEN_OPTS"].startswith(
        "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=1234 "
    )
    assert make_proxy_environment(1, {"GIT_CONFIG_COUNT": "x"})["GIT_CONFIG_COUNT"] == "1"
