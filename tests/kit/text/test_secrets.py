"""What is hidden in a text that others will read, and what is not."""

import json
import signal
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from codeloop.kit.text.secrets import REPLACEMENT, SecretHider
from tests.support.planted_keys import draw_keys
from tests.support.programs import ROOT

AROUND = (
    *("{}", "export X={}", 'key = "{}"', "-{}", "+    '{}',", "see {}."),
    *("\x1b[32m{}\x1b[0m", "a\\n{}\\nb", "<b>{}</b>", "url?x=%20{}"),
)


@pytest.mark.parametrize("around", AROUND)
def test_keys_of_known_forms_are_hidden_whatever_is_around_them(around: str) -> None:
    hider = SecretHider()
    for text, secret in draw_keys(120):
        assert secret not in hider.hide(around.format(text)), text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (
            '{"auths": {"ghcr.io": {"auth": "dXNlcjpwYXNzd29yZDEyMw=="}}}',
            "dXNlcjpwYXNzd29yZDEyMw==",
        ),
        ("machine api.example.com login me password hunter2hunter", "hunter2hunter"),
        ("mysql -u root -pS3cretPass db", "S3cretPass"),
        ("mongodb+srv://me:passw0rd@host/db", "passw0rd"),
    ],
)
def test_what_programs_keep_or_take_as_a_password_is_hidden(text: str, secret: str) -> None:
    assert secret not in SecretHider().hide(text)


@pytest.mark.parametrize(
    "text", ['"auth": "required"', "mysql -p -u root", "mysql --port 3306", "login me to it"]
)
def test_what_only_looks_like_a_password_of_a_program_stays(text: str) -> None:
    assert SecretHider().hide(text) == text


def test_a_private_key_is_hidden_also_where_it_was_cut_off() -> None:
    body = "MIIEpAIBAAKCAQEA7\nabcdef\n"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----"
    assert SecretHider().hide(f"a {key} b") == f"a {REPLACEMENT} b"
    assert body not in SecretHider().hide(f"------BEGIN OPENSSH PRIVATE KEY-----\n{body}")


def test_a_secret_that_is_known_is_hidden_though_it_has_no_form() -> None:
    hider = SecretHider(["correct horse battery", "short"])
    assert hider.hide("a correct horse battery, short") == f"a {REPLACEMENT}, short"
    assert hider.count == 1


def test_a_member_that_is_a_secret_by_its_name_is_hidden() -> None:
    value = {
        "apiKey": "abcd1234efgh",
        "rows": [{"password": "geheim!"}],
        "path": "/a/b1c2",
        "count": 3,
    }
    assert SecretHider().hide_in_json(value) == {
        "apiKey": REPLACEMENT,
        "rows": [{"password": REPLACEMENT}],
        "path": "/a/b1c2",
        "count": 3,
    }


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token(request)",
        "password: str | None = None",
        "api_key = os.environ['API_KEY']",
        "secret: $SECRET_NAME",
        'headers = {"Authorization": f"Bearer {token}"}',
        "max_tokens=128000, tokens: 12345678",
        "a risk-adjusted-return-of-a-task-force-one-desk",
        "hf_transfer_enabled_by_default_here pa_something_long_and_lower",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "msg_01JD8X4Q7Z3W5V9N2M6K8H0F1G prt_1f88ee7d6003abcdefghijklmn",
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "https://example.com/a/b?page=2&sort=name#part",
        "password=********",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    hider = SecretHider()
    assert hider.hide(text) == text
    assert hider.count == 0


@pytest.mark.slow
def test_ordinary_documents_are_hardly_touched() -> None:
    hider = SecretHider()
    changed: list[str] = []
    for path in (ROOT / "docs").glob("*.md"):
        text = path.read_text()
        changed += [
            a
            for a, b in zip(text.splitlines(), hider.hide(text).splitlines(), strict=True)
            if a != b
        ]
    # Placeholders of passwords look as passwords do.
    assert [line for line in changed if "PASSWORD" not in line and "password" not in line] == []
    assert json.loads(hider.hide(json.dumps({"name": "x", "list": [1, 2]}))) == {
        "name": "x",
        "list": [1, 2],
    }


@contextmanager
def fail_after_cpu_seconds(seconds: float) -> Generator[None]:
    """Fail once this process has computed for that long, however long it waited for a core."""

    def fail(*_: object) -> None:
        raise AssertionError(f"it still computes after {seconds:g} s of a core")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.slow
def test_long_texts_take_time_that_grows_with_their_length() -> None:
    for text in (
        "a" * 300_000,
        "eyJ" * 100_000,
        "://a:" * 60_000,
        "?key" * 75_000,
        "-----BEGIN PRIVATE KEY-----\n" * 5_000,
    ):
        with fail_after_cpu_seconds(30):
            assert len(SecretHider().hide(text)) <= len(text)
