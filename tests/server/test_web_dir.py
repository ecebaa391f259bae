"""A web app that the user names is served at `/`: its files only, to whoever may ask."""

import base64
from hashlib import sha256
from pathlib import Path

import pytest

from codeloop.server.server import ListenOptions
from tests.server.support.raw import ask, basic, request
from tests.server.support.serving import PASSWORD, served

PAGE = "<!doctype html><script>let a = 1</script><script src=/app.js></script><div id=root></div>"
OPENED = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def app_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "assets" / "index-B3xk9_Qa.js").write_text("let b = 2")
    (folder / "app.js").write_text("let c = 3")
    (folder / "font.woff2").write_bytes(b"\0")
    (tmp_path / "secret.txt").write_text("hidden words")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "in.js").symlink_to(folder / "app.js")
    return folder


def listening(folder: Path) -> ListenOptions:
    return ListenOptions(password=PASSWORD, web_dir=folder)


async def test_files_have_their_kind_and_say_how_long_they_hold(
    tmp_path: Path, app_dir: Path
) -> None:
    async with served(tmp_path, listening=listening(app_dir)) as it:
        page = await it.http.get("/", headers=OPENED)
        assert (page.text, page.headers["content-type"]) == (PAGE, "text/html; charset=utf-8")
        assert page.headers["cache-control"] == "no-cache"
        again = await it.http.get("/", headers=OPENED | {"if-none-match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        script = await it.http.get("/assets/index-B3xk9_Qa.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        assert script.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert (await it.http.get("/app.js")).headers["cache-control"] == "no-cache"
        assert (await it.http.get("/in.js")).text == "let c = 3"
        assert (await it.http.get("/font.woff2")).headers["content-type"] == "font/woff2"
        assert (await it.http.head("/app.js")).headers["content-length"] == "9"


async def test_the_page_runs_its_own_scripts_and_no_others(tmp_path: Path, app_dir: Path) -> None:
    async with served(tmp_path, listening=listening(app_dir)) as it:
        policies = (await it.http.get("/", headers=OPENED)).headers.get_list(
            "content-security-policy"
        )
        digest = base64.b64encode(sha256(b"let a = 1").digest()).decode()
        assert len(policies) == 1
        assert f"script-src 'self' 'wasm-unsafe-eval' blob: 'sha256-{digest}';" in policies[0]
        answers = await it.http.get("/session")
        assert answers.headers.get_list("content-security-policy") == [
            "default-src 'none'; frame-ancestors 'none'"
        ]


async def test_a_path_that_a_browser_opens_is_the_page_and_other_requests_are_told_the_truth(
    tmp_path: Path, app_dir: Path
) -> None:
    async with served(tmp_path, listening=listening(app_dir)) as it:
        assert (await it.http.get("/L3RtcA/session/ses_1", headers=OPENED)).text == PAGE
        assert (await it.http.get("/L3RtcA/session/ses_1")).json()["name"] == "NotFoundError"
        assert (await it.http.get("/assets/gone.js", headers={"accept": "*/*"})).status_code == 404
        assert (await it.http.get("/api/nothing", headers=OPENED)).status_code == 404
        assert (await it.http.post("/anything", json={})).status_code == 404
        assert (await it.http.get("/session", headers=OPENED)).json() == []


async def test_nothing_outside_the_folder_is_served(tmp_path: Path, app_dir: Path) -> None:
    async with served(tmp_path, listening=listening(app_dir)) as it:
        for path in (
            "/../secret.txt",
            "/%2e%2e/secret.txt",
            "/assets/..%2f..%2fsecret.txt",
            "/out.txt",
            "/up/secret.txt",
            "//etc/passwd",
            "/%00",
            "/..%5csecret.txt",
            "/" + "x" * 5_000,
        ):
            answer = await ask(it.url, request(it.url, "GET", path, basic()))
            assert (answer.status, b"hidden" in answer.body) == (404, False), path


async def test_whoever_has_no_password_gets_nothing(tmp_path: Path, app_dir: Path) -> None:
    async with served(tmp_path, listening=listening(app_dir)) as it:
        for path in ("/", "/app.js", "/anywhere"):
            answer = await it.anonymous.get(path, headers=OPENED)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (
                401,
                'Basic realm="Secure Area"',
            )
