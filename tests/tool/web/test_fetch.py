"""The guarded client against real servers: what is asked, where it connects,
what it never sends on.
"""

import asyncio
import gzip
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codeloop.permission.gate import Denied
from codeloop.permission.rules import Verdict
from codeloop.schema.limits import WEB_BYTES, WEB_CONNECT, WEB_UPGRADE
from codeloop.schema.permission import Need
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web import fetch
from codeloop.tool.web.fetch import FetchRequest, FetchResponse, Network, fetch_url
from tests.tool.web.test_url import SPELLINGS
from tests.tool.web_server import Request, Server, answer, redirect, serving

PUBLIC, OTHER = "93.184.216.34", "151.101.1.69"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer to connect to a server of the same process
    than other hosts are given.
    """
    monkeypatch.setattr(fetch, "WEB_CONNECT", replace(WEB_CONNECT, value=60_000))
    monkeypatch.setattr(fetch, "WEB_UPGRADE", replace(WEB_UPGRADE, value=60_000))


@dataclass
class Internet:
    """Names with their addresses, and which of our own ports stands for an address and port."""

    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    ports: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: ssl.SSLContext | None = None
    looked_up: list[str] = field(default_factory=list[str])
    dialled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if host not in self.names:
            raise OSError(-2, "Name or service not known")
        return self.names[host]

    def dial(self, address: str, port: int) -> tuple[str, int]:
        self.dialled.append((address, port))
        return "127.0.0.1", self.ports.get((address, port), 1)

    @property
    def network(self) -> Network:
        trusted = self.tls or ssl.create_default_context()
        return Network(self.environment, self.resolve, lambda: trusted, self.dial)


@dataclass
class Person:
    """Answers questions; `refuses` holds permission names."""

    refuses: tuple[str, ...] = ()
    asked: list[Need] = field(default_factory=list[Need])
    questions: int = 0

    async def ask(self, *needs: Need) -> None:
        self.asked += needs
        self.questions += 1
        for need in needs:
            if need.permission in self.refuses:
                raise Denied(need, Verdict("deny", need.patterns))

    def patterns(self, permission: str) -> list[tuple[str, ...]]:
        return [need.patterns for need in self.asked if need.permission == permission]


async def get(
    url: str, internet: Internet | None = None, person: Person | None = None, *, seconds: float = 60
) -> FetchResponse:
    network = internet.network if internet is not None else Network()
    return await fetch_url(
        FetchRequest(url, "*/*", seconds, {"url": url}), (person or Person()).ask, network
    )


@pytest.mark.parametrize(("url", "address"), SPELLINGS)
async def test_no_spelling_of_a_local_address_is_connected_to_without_leave(
    url: str, address: str
) -> None:
    person, internet = Person(refuses=("webfetch_private",)), Internet()
    with pytest.raises(Denied):
        await get(url, internet, person)
    need = person.asked[0]
    assert (person.questions, len(person.asked)) == (1, 2), (
        "no second question is about the same page"
    )
    shown = f"[{address}]:80" if ":" in address else f"{address}:80"
    assert (need.patterns, need.always) == ((shown,), (shown,))
    assert address in need.metadata["address"]
    assert internet.dialled == []


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.5"],
        ["::1"],
        ["fd00::1", PUBLIC],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
    ],
)
async def test_a_name_with_any_address_that_is_not_public_is_asked_about(
    addresses: list[str],
) -> None:
    person, internet = Person(refuses=("webfetch_private",)), Internet({"rebind.test": addresses})
    with pytest.raises(Denied):
        await get("https://rebind.test/x", internet, person)
    assert person.asked[-1].patterns == ("rebind.test:443",)
    assert person.asked[-1].metadata["url"] == "https://rebind.test/x"
    assert internet.dialled == []


@pytest.mark.parametrize("host", ["wiki", "wiki.internal", "wiki.lan", "app.example.com"])
async def test_a_name_that_no_server_of_others_is_asked_for_is_one_question_with_its_address(
    host: str, tmp_path: Path
) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n10.0.0.5\tother App.example.com # mine\n")
    person, internet = Person(), Internet({host: ["10.0.0.5"]})
    network = Network(
        {}, internet.resolve, ssl.create_default_context, internet.dial, tmp_path / "hosts"
    )
    with pytest.raises(ToolFailure, match="can't be reached"):
        await fetch_url(FetchRequest(f"http://{host}/", "*/*", 60, {}), person.ask, network)
    assert (person.questions, [need.permission for need in person.asked]) == (
        1,
        ["webfetch_private", "webfetch"],
    )
    assert "10.0.0.5" in person.asked[0].metadata["address"]
    assert "agreed" not in person.asked[0].metadata


async def test_a_page_at_a_name_that_is_not_there_is_asked_for_before_that_is_told() -> None:
    refusing = Person(refuses=("webfetch",))
    with pytest.raises(Denied):
        await get("http://nowhere.internal/", Internet(), refusing)
    with pytest.raises(ToolFailure, match="can't be resolved"):
        await get("http://nowhere.internal/", Internet(), Person())


async def test_a_public_name_is_not_looked_up_before_the_page_is_allowed() -> None:
    refusing, internet = Person(refuses=("webfetch",)), Internet({"wiki.example.com": ["10.0.0.5"]})
    with pytest.raises(Denied):
        await get("https://wiki.example.com/", internet, refusing)
    assert internet.looked_up == []
    person = Person()
    with pytest.raises(ToolFailure, match="can't be reached"):
        await get("https://wiki.example.com/", internet, person)
    assert [need.permission for need in person.asked] == ["webfetch", "webfetch_private"]
    assert person.asked[1].metadata["agreed"]


async def test_the_checked_address_is_dialled_whatever_a_second_look_up_would_say() -> None:
    async with serving({"/": answer("public")}) as server:
        internet = Internet(ports={(PUBLIC, 8080): server.port})
        answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])

        async def rebinding(host: str, port: int) -> Sequence[str]:
            internet.looked_up.append(host)
            return next(answers)

        network = Network({}, rebinding, ssl.create_default_context, internet.dial)
        person = Person()
        fetched = await fetch_url(
            FetchRequest("http://rebind.test:8080/", "*/*", 60, {}), person.ask, network
        )
    assert fetched.data == b"public"
    assert (internet.looked_up, internet.dialled) == (["rebind.test"], [(PUBLIC, 8080)])
    assert server.requests[0].headers["host"] == "rebind.test:8080"
    assert person.patterns("webfetch_private") == []


async def test_a_name_that_was_allowed_with_one_private_address_is_asked_about_again_with_another() -> (
    None
):
    async with serving({"/": redirect("/next")}) as server:
        internet = Internet(ports={("10.0.0.5", 8080): server.port})
        answers = iter([["10.0.0.5"], ["169.254.169.254"]])

        async def rebinding(host: str, port: int) -> Sequence[str]:
            return next(answers)

        network = Network({}, rebinding, ssl.create_default_context, internet.dial)
        person = Person()
        with pytest.raises(ToolFailure):
            await fetch_url(
                FetchRequest("http://rebind.test:8080/", "*/*", 60, {}), person.ask, network
            )
    shown = [
        need.metadata["address"] for need in person.asked if need.permission == "webfetch_private"
    ]
    assert shown == ["10.0.0.5 (private)", "169.254.169.254 (a cloud's metadata service)"]


@pytest.mark.parametrize(
    ("location", "pattern"),
    [
        ("http://127.0.0.1:9/", "127.0.0.1:9"),
        ("http://0x7f.1:9/", "127.0.0.1:9"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254:80"),
        ("http://[::ffff:10.0.0.1]/", "[::ffff:a00:1]:80"),
        ("//inside.test/", "inside.test:8080"),
        ("http://inside.test:9/", "inside.test:9"),
    ],
)
async def test_a_redirect_to_a_place_that_is_not_public_is_asked_about(
    location: str, pattern: str
) -> None:
    location = location.replace("//inside.test/", "//inside.test:8080/")
    async with serving({"/": redirect(location)}) as server:
        names = {"out.test": [PUBLIC], "inside.test": ["10.1.1.1"]}
        person, internet = (
            Person(refuses=("webfetch_private",)),
            Internet(names, {(PUBLIC, 8080): server.port}),
        )
        with pytest.raises(Denied):
            await get("http://out.test:8080/", internet, person)
    assert person.patterns("webfetch_private") == [(pattern,)]
    assert internet.dialled == [(PUBLIC, 8080)]


async def test_every_hop_is_asked_for_as_a_url_too() -> None:
    async with serving({"/a": redirect("/b?x=1"), "/b": answer("end")}) as server:
        person = Person()
        fetched = await get(f"{server.url}/a", person=person)
    assert fetched.url == f"{server.url}/b?x=1"
    assert person.patterns("webfetch") == [(f"{server.url}/a",), (f"{server.url}/b?x=1",)]
    assert person.patterns("webfetch_private") == [(f"127.0.0.1:{server.port}",)]


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://x.test/", "http://u:p@x.test/", "gopher://x/"]
)
async def test_a_redirect_to_anything_but_plain_http_is_refused(location: str) -> None:
    async with serving({"/": redirect(location)}) as server:
        with pytest.raises(ToolFailure, match="can't be fetched"):
            await get(f"{server.url}/")


async def test_ten_redirects_are_followed_and_eleven_are_not() -> None:
    hops = {f"/{number}": redirect(f"/{number + 1}") for number in range(11)}
    async with serving({**hops, "/11": answer("end")}) as server:
        assert (await get(f"{server.url}/1")).data == b"end"
        with pytest.raises(ToolFailure, match="redirects more than 10 times"):
            await get(f"{server.url}/0")


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"]
)
async def test_every_kind_of_redirect_is_followed_by_get(status: str) -> None:
    async with serving({"/": redirect("/end", status), "/end": answer("end")}) as server:
        assert (await get(f"{server.url}/")).data == b"end"
    assert [request.method for request in server.requests] == ["GET", "GET"]


async def test_nothing_of_the_person_is_sent_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    cookie = answer("", status="302 Found", location="/b", set_cookie="id=1; Path=/")
    async with serving({"/a": cookie, "/b": answer("end")}) as server:
        await get(f"{server.url}/a#secret")
    for request in server.requests:
        assert request.headers.keys() == {
            *("host", "user-agent", "accept", "accept-language", "accept-encoding", "connection")
        }
        assert "#" not in request.target
        assert "codeloop" in request.headers["user-agent"]


async def endless(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10000000000\r\n\r\n"
    )
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def test_of_ten_gigabytes_five_megabytes_are_read() -> None:
    async with serving({"/": endless}) as server:
        fetched = await get(f"{server.url}/")
    assert (len(fetched.data), fetched.is_cut) == (WEB_BYTES.value, True)


async def test_a_bomb_is_cut_at_five_megabytes() -> None:
    bomb = answer(gzip.compress(bytes(100_000_000), 1), content_encoding="gzip")
    async with serving({"/": bomb}) as server:
        fetched = await get(f"{server.url}/")
    assert (len(fetched.data), fetched.is_cut) == (WEB_BYTES.value, True)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Endless: ",
        b"HTTP/1.1 302 ",
    ],
)
async def test_a_server_that_drips_is_left_at_the_deadline(head: bytes) -> None:
    async def drip(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving({"/": drip}) as server:
        with pytest.raises(ToolFailure, match=r"within 0.2 s"):
            await get(f"{server.url}/", seconds=0.2)


async def test_the_deadline_holds_over_all_hops_but_not_while_a_person_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, thought = time.monotonic, 0.0

    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.08)
        writer.write(redirect(request.target + "x"))

    class Thinking(Person):
        async def ask(self, *needs: Need) -> None:
            nonlocal thought
            thought += 1_000
            await super().ask(*needs)

    async with serving(slow) as server:
        with pytest.raises(ToolFailure, match="within"):
            await get(f"{server.url}/", seconds=0.2)
    monkeypatch.setattr(time, "monotonic", lambda: clock() + thought)
    person = Thinking()
    async with serving({"/": redirect("/end"), "/end": answer("ok")}) as server:
        assert (await get(f"{server.url}/", person=person)).data == b"ok"
    assert person.questions == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
        b"HTTP/9 999999\r\n\r\n",
    ],
)
async def test_a_broken_answer_is_a_clear_failure(raw: bytes) -> None:
    async with serving({"/": raw}) as server:
        with pytest.raises(ToolFailure, match=re.escape(server.url)):
            await get(f"{server.url}/")


async def test_a_port_where_nobody_listens_and_a_name_that_nobody_has_are_clear_failures() -> None:
    async with serving({}) as server:
        pass
    with pytest.raises(ToolFailure, match="can't be reached"):
        await get(f"{server.url}/")
    with pytest.raises(ToolFailure, match=r"nowhere\.test can't be resolved"):
        await get("https://nowhere.test/", Internet())


async def test_the_next_address_is_tried_when_one_can_not_be_reached() -> None:
    async with serving({"/": answer("ok")}) as server:
        internet = Internet({"two.test": [OTHER, PUBLIC]}, {(PUBLIC, 8080): server.port})
        assert (await get("http://two.test:8080/", internet)).data == b"ok"
    assert internet.dialled == [(OTHER, 8080), (PUBLIC, 8080)]


@dataclass(frozen=True)
class Certificate:
    serving: ssl.SSLContext
    trusting: ssl.SSLContext


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
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
    command += [
        "-subj",
        "/CN=x",
        "-addext",
        "subjectAltName=DNS:secure.test",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return Certificate(context, ssl.create_default_context(cafile=str(cert)))


async def test_tls_names_and_verifies_the_host_though_the_address_is_dialled(
    certificate: Certificate,
) -> None:
    async with serving({"/": answer("safe")}, certificate.serving) as server:
        names = {"secure.test": [PUBLIC], "wrong.test": [PUBLIC]}
        internet = Internet(names, {(PUBLIC, 443): server.port}, tls=certificate.trusting)
        fetched = await get("https://secure.test/", internet)
        assert (fetched.url, fetched.data) == ("https://secure.test/", b"safe")
        assert (server.requests[0].headers["host"], server.requests[0].sni) == (
            "secure.test",
            "secure.test",
        )
        with pytest.raises(ToolFailure, match="certificate verify failed"):
            await get("https://wrong.test/", internet)


async def test_http_becomes_https_for_a_public_host(certificate: Certificate) -> None:
    async with serving({"/x": answer("safe")}, certificate.serving) as secure, serving({}) as plain:
        ports = {(PUBLIC, 443): secure.port, (PUBLIC, 80): plain.port}
        person, internet = (
            Person(),
            Internet({"secure.test": [PUBLIC]}, ports, tls=certificate.trusting),
        )
        fetched = await get("http://secure.test/x", internet, person)
    assert (fetched.url, fetched.data) == ("https://secure.test/x", b"safe")
    assert plain.connections == 0
    assert person.patterns("webfetch") == [("http://secure.test/x", "https://secure.test/x")]


@pytest.mark.parametrize("has_tls", [True, False])
async def test_http_is_used_when_https_can_not_be_reached(
    certificate: Certificate, *, has_tls: bool
) -> None:
    async with serving({"/x": answer("plain")}) as plain, serving({}, certificate.serving) as wrong:
        ports = {(PUBLIC, 80): plain.port} | ({(PUBLIC, 443): wrong.port} if has_tls else {})
        internet = Internet({"other.test": [PUBLIC]}, ports, tls=certificate.trusting)
        fetched = await get("http://other.test/x", internet)
    assert (fetched.url, fetched.data) == ("http://other.test/x", b"plain")
    assert internet.dialled == [(PUBLIC, 443), (PUBLIC, 80)]


async def test_a_site_that_leads_from_https_to_http_is_followed_and_it_is_said(
    certificate: Certificate,
) -> None:
    back: dict[str, bytes] = {"/x": redirect("http://secure.test/x")}
    async with (
        serving(back, certificate.serving) as secure,
        serving({"/x": answer("plain")}) as plain,
    ):
        ports = {(PUBLIC, 443): secure.port, (PUBLIC, 80): plain.port}
        fetched = await get(
            "https://secure.test/x",
            Internet({"secure.test": [PUBLIC]}, ports, tls=certificate.trusting),
        )
    assert fetched.data == b"plain"
    assert fetched.notes == (
        "https://secure.test/x redirected from HTTPS to plain HTTP: http://secure.test/x",
    )


async def test_private_hosts_and_named_ports_are_not_upgraded() -> None:
    async with serving({"/": answer("ok")}) as server:
        ports = {
            ("10.0.0.1", 80): server.port,
            (PUBLIC, 8080): server.port,
            (PUBLIC, 80): server.port,
        }
        internet = Internet({"inside.test": ["10.0.0.1"], "out.test": [PUBLIC]}, ports)
        for url in (
            "http://inside.test/",
            "http://out.test:8080/",
            "http://out.test:80/",
            f"http://{PUBLIC}/",
        ):
            assert (await get(url, internet)).data == b"ok"
    assert 443 not in {port for _, port in internet.dialled}


async def test_a_proxy_of_the_environment_is_used_after_the_name_was_checked() -> None:
    async with serving({"http://out.test:8080/x": answer("by proxy")}) as proxy:
        environment = {"http_proxy": proxy.url, "no_proxy": "inside.test"}
        internet = Internet(
            {"out.test": [PUBLIC], "local.test": ["10.0.0.1"]}, environment=environment
        )
        person = Person()
        assert (await get("http://out.test:8080/x", internet, person)).data == b"by proxy"
        assert internet.looked_up == ["out.test"]
        assert person.patterns("webfetch_private") == []
        with pytest.raises(Denied):
            await get("http://local.test:8080/", internet, Person(refuses=("webfetch_private",)))
    assert proxy.requests[0].headers["host"] == "out.test:8080"


async def test_a_name_that_only_the_proxy_knows_is_asked_about() -> None:
    person = Person(refuses=("webfetch_private",))
    with pytest.raises(Denied):
        await get(
            "https://hidden.test/", Internet(environment={"ALL_PROXY": "127.0.0.1:1"}), person
        )
    assert person.asked[-1].metadata["address"] == "unknown (only the proxy can look the name up)"


async def test_a_proxy_that_is_not_there_is_named_as_the_reason() -> None:
    internet = Internet({"out.test": [PUBLIC]}, environment={"https_proxy": "http://127.0.0.1:1"})
    with pytest.raises(ToolFailure, match="proxy"):
        await get("https://out.test/", internet)


async def test_a_cancelled_fetch_leaves_its_connection() -> None:
    gone = asyncio.Event()

    async def hang(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
        await writer.drain()
        while not writer.is_closing():
            writer.write(b"x")
            try:
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0.01)
        gone.set()

    async def started(server: Server) -> None:
        while not server.requests:
            await asyncio.sleep(0.01)

    async with serving({"/": hang}) as server:
        task = asyncio.create_task(get(f"{server.url}/"))
        await started(server)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(30):
            await gone.wait()
