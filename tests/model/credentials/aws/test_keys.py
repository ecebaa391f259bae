"""Tests of the sources of Amazon's keys, against local servers that are as strict as Amazon's."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.credentials.aws.chain import AwsSigner, fetch_keys
from codeloop.model.credentials.aws.discovery import (
    describe_credentials,
    find_settings,
    parse_region,
)
from codeloop.model.credentials.aws.files import read_aws_files
from codeloop.model.credentials.aws.signature import AwsKeys, make_signature_headers
from codeloop.model.errors import ModelUnavailable
from tests.support.http_service import Reply, ServiceRequest, run_http_service
from tests.support.models import no_proxies

__all__ = ["no_proxies"]
LATER = "2099-01-01T00:00:00Z"
OFF = {"AWS_EC2_METADATA_DISABLED": "true"}
STS = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA{n}</AccessKeyId><SecretAccessKey>a/b&amp;c</SecretAccessKey><SessionToken>
tok+en==</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
DENIED = """<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>
<Message>User: arn:aws:iam::1:user/me is not authorized</Message></Error></ErrorResponse>"""


def home(folder: Path, config: str = "", credentials: str = "", **more: str) -> dict[str, str]:
    """Return the environment of a user with these files."""
    (folder / ".aws").mkdir(exist_ok=True)
    (folder / ".aws" / "config").write_text(config)
    (folder / ".aws" / "credentials").write_text(credentials)
    return {"HOME": str(folder), "PATH": "/usr/bin:/bin", **OFF, **more}


def check_signature(asked: ServiceRequest, keys: AwsKeys, url: str) -> None:
    """Refuse a request of the token service that another key has signed."""
    header = asked.headers["authorization"]
    names = re.search(r"SignedHeaders=([^,]+)", header)
    assert names is not None
    own = {"authorization", "x-amz-date", "x-amz-security-token"}
    headers = {name: asked.headers[name] for name in names[1].split(";") if name not in own}
    moment = asked.headers["x-amz-date"]
    made = make_signature_headers(
        keys, url, headers, asked.body, region="eu-west-1", service="sts", moment=moment
    )
    assert made["authorization"] == header
    assert asked.headers.get("x-amz-security-token", "") == keys.session_token


async def test_variables_come_before_files(tmp_path: Path) -> None:
    files = home(
        tmp_path, credentials="[default]\naws_access_key_id = F\naws_secret_access_key = f"
    )
    said = {"AWS_ACCESS_KEY_ID": "V", "AWS_SECRET_ACCESS_KEY": "v", "AWS_SESSION_TOKEN": "t"}
    assert await fetch_keys({**files, **said}, "x") == AwsKeys("V", "v", "t")
    assert await fetch_keys(files, "x") == AwsKeys("F", "f")
    assert describe_credentials(files) == "the AWS profile default"


async def test_a_profile_may_have_blanks_in_its_name_and_its_keys_in_either_file(
    tmp_path: Path,
) -> None:
    files = home(
        tmp_path,
        config='[profile "my work"]\nregion = eu-1\n[profile other]\naws_access_key_id=O\naws_secret_access_key=o',
        credentials="[my work]\naws_access_key_id = W\naws_secret_access_key = w%x",
    )
    assert await fetch_keys({**files, "AWS_PROFILE": "my work"}, "x") == AwsKeys("W", "w%x")
    assert await fetch_keys({**files, "AWS_PROFILE": "other"}, "x") == AwsKeys("O", "o")
    assert find_settings({**files, "AWS_PROFILE": "my work"})["AWS_REGION"] == "eu-1"


async def test_a_profile_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"no AWS profile `wrok`.*AWS_PROFILE"):
        await fetch_keys(home(tmp_path, AWS_PROFILE="wrok"), "x")


async def test_temporary_keys_of_a_file_are_read_again_after_a_while(tmp_path: Path) -> None:
    text = "[default]\naws_access_key_id = F\naws_secret_access_key = f\naws_session_token = {}"
    found = await fetch_keys(home(tmp_path, credentials=text.format("t1")), "x")
    assert (found.session_token, 300 < found.expires_at - time.time() < 600) == ("t1", True)


async def test_roles_are_taken_one_after_the_other_with_the_keys_of_the_one_before(
    tmp_path: Path,
) -> None:
    config = """
[profile base]
aws_access_key_id = BASE
aws_secret_access_key = b
role_arn = arn:aws:iam::1:role/never
source_profile = base
[profile middle]
role_arn = arn:aws:iam::1:role/middle
source_profile = base
[profile top]
role_arn = arn:aws:iam::1:role/top
source_profile = middle
external_id = ext+1
duration_seconds = 1800
role_session_name = me
"""
    keys = [AwsKeys("BASE", "b"), AwsKeys("ASIA1", "a/b&c", "tok+en==")]

    def answer(asked: ServiceRequest) -> Reply:
        check_signature(asked, keys[len(server.asked) - 1], f"{server.url}/")
        return 200, STS.replace("{n}", str(len(server.asked))).encode()

    async with run_http_service(answer) as server:
        files = home(tmp_path, config, AWS_PROFILE="top", AWS_ENDPOINT_URL_STS=server.url)
        found = await fetch_keys(files, "eu-west-1")
    assert (found.access_key, found.secret_key, found.session_token) == (
        "ASIA2",
        "a/b&c",
        "tok+en==",
    )
    assert found.expires_at == pytest.approx(4_070_908_800)
    first, last = (asked.form for asked in server.asked)
    assert (first["RoleArn"], last["RoleArn"]) == (
        "arn:aws:iam::1:role/middle",
        "arn:aws:iam::1:role/top",
    )
    assert (last["ExternalId"], last["DurationSeconds"], last["RoleSessionName"]) == (
        "ext+1",
        "1800",
        "me",
    )


async def test_a_profile_that_is_its_own_source_takes_its_role_with_its_keys(
    tmp_path: Path,
) -> None:
    config = "[default]\naws_access_key_id=A\naws_secret_access_key=a\nrole_arn=r\nsource_profile=default"

    def answer(asked: ServiceRequest) -> Reply:
        check_signature(asked, AwsKeys("A", "a"), f"{server.url}/")
        return 200, STS.replace("{n}", "9").encode()

    async with run_http_service(answer) as server:
        found = await fetch_keys(
            home(tmp_path, config, AWS_ENDPOINT_URL_STS=server.url), "eu-west-1"
        )
    assert found.access_key == "ASIA9"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            "[default]\nrole_arn=r\nsource_profile=b\n[profile b]\nrole_arn=r\nsource_profile=default",
            "more than 8",
        ),
        ("[default]\nrole_arn=r\nsource_profile=default", "more than 8"),
        ("[default]\nrole_arn=r", "no source of keys"),
        ("[default]\nrole_arn=r\nsource_profile=gone", "no source of keys"),
        ("[default]\nrole_arn=r\nmfa_serial=m\nsource_profile=default", "second factor"),
        ("[default]\nlogin_session=arn:aws:iam::1:user/me", "aws configure export-credentials"),
        ("[default]\ncredential_process = false", "printed no credentials"),
        ("[default]\ncredential_process = /no/such/program", "can't be run"),
        (
            "[default]\nsso_session=s\n[sso-session s]\nsso_region=x\nsso_start_url=y",
            "aws sso login --profile default",
        ),
        ("broken", "AWS_BEARER_TOKEN_BEDROCK"),
        ("", "AWS_BEARER_TOKEN_BEDROCK"),
    ],
)
async def test_what_does_not_work_says_what_to_do(tmp_path: Path, config: str, says: str) -> None:
    with pytest.raises(ModelUnavailable, match=says):
        await fetch_keys(home(tmp_path, config), "x")


async def test_a_refused_role_is_said_in_the_services_words(tmp_path: Path) -> None:
    config = "[default]\nrole_arn=r\ncredential_source=Environment"
    async with run_http_service(lambda _: (403, DENIED.encode())) as server:
        files = home(tmp_path, config, AWS_ENDPOINT_URL_STS=server.url, AWS_PROFILE="default")
        with pytest.raises(ModelUnavailable, match="user/me is not authorized"):
            await fetch_keys(
                {**files, "AWS_ACCESS_KEY_ID": "V", "AWS_SECRET_ACCESS_KEY": "v"}, "eu-west-1"
            )


async def test_a_web_identity_is_exchanged_unsigned(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("e30.e30.sig\n")

    def answer(asked: ServiceRequest) -> Reply:
        assert "authorization" not in asked.headers
        assert asked.form["Action"] == "AssumeRoleWithWebIdentity"
        assert (asked.form["WebIdentityToken"], asked.form["RoleArn"]) == ("e30.e30.sig", "arn:r")
        return 200, STS.replace("{n}", "7").encode()

    async with run_http_service(answer) as server:
        named = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:r"}
        found = await fetch_keys(
            {**home(tmp_path), **named, "AWS_ENDPOINT_URL_STS": server.url}, "eu-west-1"
        )
        config = f"[default]\nrole_arn = arn:r\nweb_identity_token_file = {tmp_path / 'token'}"
        again = await fetch_keys(
            home(tmp_path, config, AWS_ENDPOINT_URL_STS=server.url), "eu-west-1"
        )
    assert found.access_key == again.access_key == "ASIA7"


async def test_a_token_file_that_is_missing_is_named_with_the_setting_that_names_it(
    tmp_path: Path,
) -> None:
    missing = str(tmp_path / "token")
    named = {"AWS_WEB_IDENTITY_TOKEN_FILE": missing, "AWS_ROLE_ARN": "arn:r"}
    with pytest.raises(
        ModelUnavailable, match=r"token \(AWS_WEB_IDENTITY_TOKEN_FILE\) is empty or can't be read"
    ):
        await fetch_keys({**home(tmp_path), **named}, "x")
    config = f"[profile work]\nrole_arn = arn:r\nweb_identity_token_file = {missing}"
    with pytest.raises(
        ModelUnavailable,
        match=r"token \(web_identity_token_file of the AWS profile work\) is empty",
    ):
        await fetch_keys(home(tmp_path, config, AWS_PROFILE="work"), "x")


async def test_a_program_prints_keys(tmp_path: Path) -> None:
    said = {
        "Version": 1,
        "AccessKeyId": "P",
        "SecretAccessKey": "p",
        "SessionToken": "t",
        "Expiration": LATER,
    }
    (tmp_path / "keys.json").write_text(json.dumps(said))
    files = home(tmp_path, f"[default]\ncredential_process = cat '{tmp_path}/keys.json'")
    assert await fetch_keys(files, "x") == AwsKeys("P", "p", "t", 4_070_908_800.0)


def metadata(asked: ServiceRequest) -> Reply:
    """Answer as the second version of an instance's metadata service does."""
    if asked.path == "/latest/api/token":
        assert asked.method == "PUT"
        assert 1 <= int(asked.headers["x-aws-ec2-metadata-token-ttl-seconds"]) <= 21_600
        return 200, b"instance-token=="
    if asked.headers.get("x-aws-ec2-metadata-token") != "instance-token==":
        return 401, b""
    if asked.path == "/latest/meta-data/iam/security-credentials/":
        return 200, b"my role"
    assert asked.path == "/latest/meta-data/iam/security-credentials/my%20role"
    return 200, {
        "Code": "Success",
        "AccessKeyId": "I",
        "SecretAccessKey": "i",
        "Token": "t",
        "Expiration": LATER,
    }


async def test_an_instance_gives_keys_by_the_second_version_only(tmp_path: Path) -> None:
    async with run_http_service(metadata) as server:
        where = {"HOME": str(tmp_path), "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{server.url}/"}
        assert describe_credentials(where) == "the role of this instance"
        assert await fetch_keys(where, "x") == AwsKeys("I", "i", "t", 4_070_908_800.0)
        source = home(tmp_path, "[default]\nrole_arn=r\ncredential_source=Ec2InstanceMetadata")
        with pytest.raises(ModelUnavailable, match="AWS gives no keys for the role"):
            await fetch_keys({**source, **where, "AWS_ENDPOINT_URL_STS": server.url}, "x")


async def test_an_instance_without_a_role_says_so(tmp_path: Path) -> None:
    async with run_http_service(
        lambda asked: (200, b"t") if asked.method == "PUT" else (404, b"")
    ) as server:
        with pytest.raises(ModelUnavailable, match="no role"):
            await fetch_keys(
                {"HOME": str(tmp_path), "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url}, "x"
            )


async def test_a_container_gives_keys_for_the_token_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("container-token\n")

    def answer(asked: ServiceRequest) -> Reply:
        assert asked.headers.get("authorization") == "container-token"
        return 200, {"AccessKeyId": "C", "SecretAccessKey": "c", "Token": "t", "Expiration": LATER}

    async with run_http_service(answer) as server:
        where = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials"}
        token = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
        files = home(tmp_path)
        assert await fetch_keys({**files, **where, **token}, "x") == AwsKeys(
            "C", "c", "t", 4_070_908_800.0
        )
        with pytest.raises(ModelUnavailable, match="this container"):
            await fetch_keys({**files, **where}, "x")


async def test_a_containers_token_goes_to_no_other_host(tmp_path: Path) -> None:
    where = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/x",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "t",
    }
    with pytest.raises(ModelUnavailable, match=r"evil\.example, which is asked by https only"):
        await fetch_keys({**home(tmp_path), **where}, "x")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.us-west-2.amazonaws.com", "us-west-2"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("vpce-0a1b.bedrock-runtime.eu-central-1.vpce.amazonaws.com", "eu-central-1"),
        ("gateway.example", ""),
        ("bedrock-proxy.example", ""),
        ("127.0.0.1", ""),
    ],
)
def test_the_region_stands_in_the_address(host: str, region: str) -> None:
    assert parse_region(host) == region


async def test_keys_are_fetched_again_shortly_before_they_expire(tmp_path: Path) -> None:
    lives = iter([200, 4_000])

    def answer(_: ServiceRequest) -> Reply:
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + next(lives)))
        return 200, {"AccessKeyId": "C", "SecretAccessKey": "c", "Token": "t", "Expiration": end}

    async with run_http_service(answer) as server:
        where = {**home(tmp_path), "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/"}
        signer = AwsSigner(where, "https://bedrock-runtime.us-west-2.amazonaws.com")
        for _ in range(3):
            signed: dict[str, Any] = await signer.sign("https://x.example/", {}, b"")
            assert "/us-west-2/bedrock/aws4_request" in signed["authorization"]
    assert len(server.asked) == 2


def test_files_in_the_home_of_a_user_who_is_not_there_are_empty() -> None:
    file = "~nobody-has-this-name/config"
    found = read_aws_files({"AWS_CONFIG_FILE": file, "AWS_SHARED_CREDENTIALS_FILE": file})
    assert found == read_aws_files(
        {"AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    )
