"""A set of names finds what its wildcards match, as a regular expression would."""

import re
from fnmatch import translate

import pytest

from codeloop.kit.guarded_paths import HARMLESS_NAMES, SECRET_NAMES
from codeloop.kit.wildcard import NameSet

_NAMES = """
.env .ENV .env. .env.local my.env env .envrc .envrc.d id_rsa id_rsa.pub id_rs key.pem .pem pem a.PEM.txt x.asc.key
secring.gpg secring my-service-account-1.json service-account.json service-account.jso a.service_account.json.bak
client_secret.json client_secret_2.json client_secret client_secretjson credentials credentials.yml.enc credentials.enc
"""
NAMES = (*_NAMES.split(), "", "abc", "aXbXc", "ab", "x", "\n.env")


@pytest.mark.parametrize("wildcards", [SECRET_NAMES, HARMLESS_NAMES, ("a*b*c", "*x*", "", "*")])
def test_a_name_is_in_it_if_one_of_the_wildcards_matches(wildcards: tuple[str, ...]) -> None:
    pattern = re.compile("|".join(map(translate, wildcards)), re.IGNORECASE)
    names = NameSet(wildcards)
    assert [each for each in NAMES if each in names] == [
        each for each in NAMES if pattern.fullmatch(each)
    ]


def test_a_wildcard_needs_as_many_characters_as_it_names() -> None:
    assert "aba" not in NameSet(["ab*ba"])
    assert "abba" in NameSet(["ab*ba"])
