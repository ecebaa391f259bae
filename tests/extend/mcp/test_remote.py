"""Remote servers over real sockets: streamable HTTP, SSE, headers,
OAuth with a provider that really speaks it.
"""

import asyncio
import gc
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.definition import parse_definition
from codeloop.extend.mcp.sign_in.background_sign_in import BackgroundSignIn
from codeloop.extend.mcp.sign_in.login import sign_in
from codeloop.extend.mcp.sign_in.tokens import ServerSignIn, SignIns, get_sign_ins, sign_out
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.remote import opened, serving
from tests.extend.mcp.world import paths_of, world


@pytest.fixture(scope="module")
def http() -> Generator[str]:
    with serving("http") as url:
        yield url


@pytest.fixture(scope="module")
def oauth(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("oauth")
    with serving("oauth", str(folder)) as url:
        yield url, folder


def remote(url: str, **more: Any) -> dict[str, Any]:
    return {"p": {"type": "remote", "url": url, **more}}


async def test_streamable_http_with_headers_and_progress(tmp_path: Path, http: str) -> None:
    async with world(tmp_path, remote(http, headers={"X-Mine": "yes"})) as it:
        assert (await it.call("add", a=1, b=2)).output == "3"
        assert it.ctx.asked[-1].writes is None
        assert (await it.call("header", name="X-Mine")).output == "yes"
        assert (await it.call("steps")).output == "three steps"
        assert [report["title"] for report in it.ctx.reports] == ["step 1", "step 2", "step 3"]
        listing = it.server().listing
        assert listing is not None
        assert listing.transport == "http"


@pytest.mark.slow
async def test_an_older_server_is_reached_by_sse(tmp_path: Path) -> None:
    with serving("sse") as url:
        async with world(tmp_path, remote(url)) as it:
            assert (await it.call("add", a=1, b=2)).output == "3"
            listing = it.server().listing
            assert listing is not None
            assert listing.transport == "sse"


async def test_a_server_last_reached_by_sse_that_is_down_is_reported_as_unreachable(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, remote("http://127.0.0.1:9/sse")) as it:
        it.table.project.listings.put(
            it.table.definitions["p"].listing_key, Listing(transport="sse")
        )
        with pytest.raises(CodeloopError, match=r"127\.0\.0\.1:9 can't be reached") as caught:
            await it.server().connect()
    assert "streamable HTTP" not in str(caught.value), "it has not answered that"


async def test_a_server_last_reached_by_sse_that_asks_for_a_sign_in_now_waits_for_one(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    async with world(tmp_path, remote(oauth[0])) as it:
        it.table.project.listings.put(
            it.table.definitions["p"].listing_key, Listing(transport="sse")
        )
        with pytest.raises(CodeloopError):
            await it.server().connect()
        assert it.server().status.state == "needs_auth"


async def test_a_server_that_was_started_again_is_reached_again(tmp_path: Path, http: str) -> None:
    async with world(tmp_path, remote(http)) as it:
        await it.call("add", a=1, b=2)
        await it.server().disconnect()
        assert (await it.call("add", a=2, b=2)).output == "4"


@dataclass
class Person:
    """Who signs in at the provider. `provider`: the folder in which that leaves its notes."""

    url: str
    provider: Path
    sign_ins: SignIns

    async def sign_in(self) -> str:
        tasks: list[asyncio.Task[None]] = []

        def show(address: str) -> None:
            tasks.append(asyncio.create_task(asyncio.to_thread(opened, address)))

        said = await sign_in(
            parse_definition("p", remote(self.url)["p"]), self.sign_ins, show, None
        )
        await asyncio.gather(*tasks)
        return said

    @property
    def entry(self) -> ServerSignIn:
        """What is stored of the sign-in."""
        entry = self.sign_ins.get("p", self.url)
        assert entry is not None
        return entry

    def change(self, **fields: Any) -> None:
        """Change what is stored of the sign-in."""
        self.sign_ins.put("p", replace(self.entry, **fields))

    def renewals(self) -> int:
        """Return how often the provider has renewed a token so far."""
        notes = self.provider / "renewed"
        return len(notes.read_text()) if notes.exists() else 0


@pytest.fixture
def person(tmp_path: Path, oauth: tuple[str, Path]) -> Person:
    return Person(*oauth, get_sign_ins(paths_of(tmp_path)))


async def test_a_person_signs_in_and_calls_work_without_a_question(
    tmp_path: Path, person: Person
) -> None:
    async with world(tmp_path, remote(person.url)) as it:
        with pytest.raises(
            CodeloopError,
            match=r"wants the user to sign in\. Ask the user to run `codeloop mcp auth p`",
        ):
            await it.server().connect()
        assert it.server().status.state == "needs_auth"
        assert await person.sign_in() == "Signed in at p."
        await it.server().connect()
        assert (await it.call("add", a=1, b=2)).output == "3"
        assert person.entry.refresh
        assert (tmp_path / "home" / "data" / "mcp-auth.json").stat().st_mode & 0o077 == 0
        before = person.renewals()
        person.change(expires=time.time() - 1)
        assert (await it.call("add", a=2, b=2)).output == "4"
        assert person.renewals() - before == 1


async def test_a_token_is_only_sent_to_the_address_that_it_was_given_for(person: Person) -> None:
    await person.sign_in()
    assert person.sign_ins.get("p", person.url + "/other") is None
    assert person.sign_ins.get("p", person.url) is not None


async def test_of_five_that_renew_at_once_one_does(tmp_path: Path, person: Person) -> None:
    await person.sign_in()
    person.change(expires=time.time() - 1)
    before = person.renewals()

    async def used() -> str:
        async with world(tmp_path, remote(person.url)) as it:
            await it.server().connect()
            return (await it.call("add", a=1, b=2)).output

    assert await asyncio.gather(*(used() for _ in range(5))) == ["3"] * 5
    assert person.renewals() - before == 1


async def test_a_refused_token_ends_with_a_new_sign_in(tmp_path: Path, person: Person) -> None:
    await person.sign_in()
    async with world(tmp_path, remote(person.url)) as it:
        await it.server().connect()
        person.change(access="wrong", refresh="wrong")
        with pytest.raises(
            ToolFailure,
            match=r"wants the user to sign in\. Ask the user to run `codeloop mcp auth p`",
        ):
            await it.call("add", a=1, b=2)
        assert it.server().status.state == "needs_auth"


async def test_while_the_provider_fails_a_person_stays_signed_in(
    tmp_path: Path, person: Person
) -> None:
    await person.sign_in()
    over = replace(person.entry, expires=time.time() - 1)
    down = person.provider / "down"
    async with world(tmp_path, remote(person.url)) as it:
        person.sign_ins.put("p", over)
        down.touch()
        try:
            with pytest.raises(
                CodeloopError,
                match=r"could not be renewed: 127.0.0.1:[0-9]+ answered 503\. Try again",
            ):
                await it.server().connect()
        finally:
            down.unlink()
        assert it.server().status.state == "failed"
        person.sign_ins.put("p", replace(over, token_endpoint="http://127.0.0.1:9/token"))
        with pytest.raises(CodeloopError, match=r"127\.0\.0\.1:9 can't be reached"):
            await it.server().connect()
        person.sign_ins.put("p", over)
        await it.server().connect()


async def test_signing_out_without_the_provider_still_forgets(person: Person) -> None:
    await person.sign_in()
    person.change(revocation_endpoint="http://127.0.0.1:9/revoke")
    definition = parse_definition("p", remote(person.url)["p"])
    done = await sign_out(definition, person.sign_ins)
    assert (done or "").startswith(
        "Signed out at p on this machine. The sign-in could not be ended there: 127.0.0.1:9"
    )
    assert person.sign_ins.get("p", person.url) is None
    assert await sign_out(definition, person.sign_ins) is None


async def test_scopes_that_a_call_lacked_are_asked_for_by_the_next_sign_in(person: Person) -> None:
    await person.sign_in()
    person.change(wanted="read write")
    await person.sign_in()
    assert (person.entry.scope, person.entry.wanted) == ("read write", "")


@pytest.mark.slow
async def test_a_configured_header_that_is_refused_is_named(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    async with world(tmp_path, remote(oauth[0], headers={"Authorization": "Bearer no"})) as it:
        with pytest.raises(
            CodeloopError, match="it answered 401 Unauthorized: check its `headers`"
        ):
            await it.server().connect()
        assert it.server().status.state == "failed"


@pytest.mark.slow
async def test_a_sign_in_that_fails_while_nobody_waits_prints_nothing() -> None:
    printed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: printed.append(context))

    async def run(show: Any, _paste: Any) -> None:
        show("https://x.example/authorize")
        raise CodeloopError("the provider refused it (invalid_scope)")

    sign_in = BackgroundSignIn(run)
    assert await sign_in.wait_for_address() == "https://x.example/authorize"
    while not sign_in.is_over:
        await asyncio.sleep(0)
    del sign_in
    gc.collect()
    assert printed == []
