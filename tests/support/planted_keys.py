"""Random keys in the published forms of services, from a fixed seed; none of them is real."""

import random
import string

_WORD_CHARACTERS = string.ascii_letters + string.digits
_CHARACTER_SETS = {
    "hex": "0123456789abcdef",
    "word": _WORD_CHARACTERS,
    "letters": string.ascii_letters,
    "upper": string.ascii_uppercase + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "url": _WORD_CHARACTERS + "-_",
    "base64": _WORD_CHARACTERS + "+/",
}
_KEY_FORMS = """
sk-|word|48|
sk-proj-|url|124|
sk-svcacct-|url|60|
sk-ant-api03-|url|93|AA
sk-ant-oat01-|url|86|AA
sk-or-v1-|hex|64|
sk-lf-|hex|36|
gsk_|word|52|
xai-|word|80|
hf_|letters|34|
r8_|word|37|
csk-|lower|48|
tvly-|word|32|
pplx-|word|48|
nvapi-|url|64|
pcsk_|word|60|
lsv2_pt_|hex|32|_0123abcdef
AIza|url|35|
dapi|hex|32|
fw_|word|22|
ghp_|word|36|
gho_|word|36|
ghu_|word|36|
ghs_|word|36|
ghr_|word|36|
github_pat_|word|22|_Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1
glpat-|url|20|
gldt-|url|20|
glrt-|url|20|
glcbt-|url|20|
glptt-|hex|40|
ATATT3xFfGF0|url|170|=0A1B2C3D
ATBB|word|32|
npm_|word|36|
pypi-AgEIcHlwaS5vcmc|url|100|
rubygems_|hex|48|
dckr_pat_|url|27|
cio|word|32|
oy2|lower|43|
AKIA|upper|16|
ASIA|upper|16|
ya29.|url|120|
GOCSPX-|url|28|
1//0|url|60|
AccountKey=|base64|86|==
abc8Q~|url|34|
dop_v1_|hex|64|
doo_v1_|hex|64|
dor_v1_|hex|64|
HRKU-|url|60|
FlyV1 fm2_|base64|120|=
nfp_|word|36|
sbp_|hex|40|
sb_secret_|url|31|
napi_|lower|64|
pscale_tkn_|url|43|
pscale_pw_|url|43|
hvs.|url|90|
hvb.|url|140|
pul-|hex|40|
Ab1Cd2Ef3Gh4Ij.atlasv1.|url|67|
dp.pt.|word|43|
LTAI5t|word|18|
AKID|word|32|
glsa_|word|32|_1a2b3c4d
glc_eyJ|word|80|=
NRAK-|upper|27|
sntrys_eyJ|word|100|=
phx_|word|43|
xoxb-123456789012-|word|36|
xoxp-123456789012-|hex|60|
xapp-1-A0123-|hex|64|
https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/|word|24|
https://discord.com/api/webhooks/123456789012345678/|url|68|
MTA1MzQ1Njc4OTAxMjM0NTY3.Gabcde.|url|38|
1234567890:AA|url|33|
SG.abcdefghij0123456789AB.|url|43|
key-|hex|32|
SK|hex|32|
xkeysib-|hex|64|-Ab1Cd2Ef3Gh4Ij5K
re_AbCd1234_|word|24|
secret_|word|43|
ntn_|word|46|
lin_api_|word|40|
patAbCdEf01234567.|hex|64|
figd_|url|40|
PMAK-0a0a0a0a0a0a0a0a0a0a0a0a-|hex|34|
shpat_|hex|32|
shpss_|hex|32|
sk_live_|word|99|
rk_live_|word|99|
whsec_|word|32|
EAAAE|url|59|
sq0csp-|url|43|
sl.|url|135|
EZAK|word|54|
ops_eyJ|url|200|
AGE-SECRET-KEY-1|upper|58|
eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.|url|43|
glft-|url|20|
jina_|word|60|
"""
"""Forms of keys: the start, the kind of signs of the rest, how many, and the end."""
_NAMED_SECRETS = """
AWS_SECRET_ACCESS_KEY=|base64|40|
DB_PASSWORD=|word|14|
"client_secret": "|word|40|"
api-key: |hex|32|
x-api-key: |word|40|
authToken='|word|24|'
Authorization: Bearer |url|40|
Authorization: Basic |word|32|==
https://me:|word|20|@example.com/
https://example.com/?access_token=|word|32|&page=2
curl --user me:|word|16| https://example.com
tool --api-key |word|24|
"""
"""Texts around a secret that has no form of its own: as in `_FORMS`."""


def draw_keys(count: int) -> list[tuple[str, str]]:
    """Return texts, each with the secret in it that must be masked."""
    chance = random.Random(20)
    drawn: list[tuple[str, str]] = []
    rows = [
        (row.split("|"), is_named)
        for table, is_named in ((_KEY_FORMS, False), (_NAMED_SECRETS, True))
        for row in table.split("\n")
    ]
    while len(drawn) < count:
        for (start, signs, length, end), is_named in (row for row in rows if len(row[0]) == 4):
            body = (
                "".join(chance.choice(_CHARACTER_SETS[signs]) for _ in range(int(length) - 1)) + "7"
            )
            drawn.append((start + body + end, body if is_named else start + body + end))
    return drawn[:count]
