"""Large answers are compressed for clients that take that;
small ones, and those of other clients, are as they are.
"""

from pathlib import Path

from tests.server.support.serving import served

PACKED, PLAIN = {"accept-encoding": "gzip"}, {"accept-encoding": "identity"}


async def test_large_answers_are_compressed_for_who_takes_it(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        for number in range(30):
            await it.post("/session", {"title": f"Session {number}"})
        for path in ("/session/everything", "/session"):
            plain = await it.http.get(path, headers=PLAIN)
            packed = await it.http.get(path, headers=PACKED)
            assert "content-encoding" not in plain.headers
            assert packed.headers["content-encoding"] == "gzip"
            assert "Accept-Encoding" in packed.headers["vary"]
            assert int(packed.headers["content-length"]) * 3 < int(plain.headers["content-length"])
            assert packed.json() == plain.json()
        small = await it.http.get("/session/status", headers=PACKED)
        assert "content-encoding" not in small.headers


async def test_pages_of_messages_are_compressed_and_name_the_next_one(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        session = await it.session()
        for _ in range(3):
            body = {"noReply": True, "parts": [{"type": "text", "text": "long " * 2_000}]}
            await it.post(f"/session/{session}/message", body)
        page = await it.http.get(f"/session/{session}/message", params={"limit": 2}, headers=PACKED)
        assert page.headers["content-encoding"] == "gzip"
        assert page.headers["x-next-cursor"]
        assert len(page.json()) == 2
