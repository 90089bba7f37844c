"""JSON Web Tokens: good ones, and every trick against them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.web.serving import Served, served
from windlass import ConfigError, Windlass
from windlass.config import load
from windlass.core.access import Role
from windlass.web.errors import BadToken
from windlass.web.web_tokens import WebTokens

SECRET = "j" * 32
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED = ed25519.Ed25519PrivateKey.generate()
EC = ec.generate_private_key(ec.SECP256R1())
NOW = int(time.time())


def claims(**extra: Any) -> dict[str, Any]:
    return {"sub": "ann", "exp": NOW + 3600, **extra}


def signed(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **extra: Any) -> str:
    return jwt.encode(claims(**extra), key, algorithm=algorithm, headers=headers)


def b64(data: bytes | str | dict[str, Any]) -> str:
    raw = json.dumps(data).encode() if isinstance(data, dict) else data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header: str | dict[str, Any], payload: str | dict[str, Any], key: bytes = SECRET.encode()) -> str:
    """Sign with HMAC whatever the parts say."""
    text = f"{b64(header)}.{b64(payload)}"
    return f"{text}.{b64(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


def pem(key: Any) -> bytes:
    return bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


HS = {"alg": "HS256", "typ": "JWT"}
GOOD = by_hand(HS, claims(role="admin"))
HEAD, BODY, MARK = GOOD.split(".")

HOSTILE: dict[str, str] = {
    "alg none": f"{b64({'alg': 'none'})}.{b64(claims(role='admin'))}.",
    "alg none with a mark": f"{b64({'alg': 'none'})}.{b64(claims(role='admin'))}.{MARK}",
    "alg None": by_hand({"alg": "None"}, claims()),
    "alg NONE": by_hand({"alg": "NONE"}, claims()),
    "alg nOnE": by_hand({"alg": "nOnE"}, claims()),
    "alg none, space": by_hand({"alg": "none "}, claims()),
    "alg empty": by_hand({"alg": ""}, claims()),
    "alg null": by_hand({"alg": None}, claims()),
    "alg list": by_hand({"alg": ["HS256"]}, claims()),
    "alg number": by_hand({"alg": 256}, claims()),
    "no alg": by_hand({"typ": "JWT"}, claims()),
    "alg hs256 in small letters": by_hand({"alg": "hs256"}, claims()),
    "alg HS384 with our secret": signed(SECRET * 2, "HS384", role="admin"),
    "alg HS512 with our secret": signed(SECRET * 2, "HS512", role="admin"),
    "RS256 with nobody's key": signed(RSA, "RS256", role="admin"),
    "EdDSA with nobody's key": signed(ED, "EdDSA", role="admin"),
    "ES256": signed(EC, "ES256", role="admin"),
    "PS256": signed(RSA, "PS256", role="admin"),
    "another secret": signed("k" * 32, role="admin"),
    "empty secret": by_hand(HS, claims(role="admin"), b""),
    "the secret with a newline": by_hand(HS, claims(role="admin"), SECRET.encode() + b"\n"),
    "expired": signed(exp=NOW - 60),
    "expired long ago": signed(exp=1),
    "exp zero": signed(exp=0),
    "no exp": by_hand(HS, {"sub": "ann", "role": "admin"}),
    "exp null": by_hand(HS, claims(exp=None)),
    "exp as text": by_hand(HS, claims(exp=str(NOW + 3600))),
    "exp as words": by_hand(HS, claims(exp="tomorrow")),
    "exp huge": by_hand(HS, claims(exp=10**20)),
    "exp a huge float": by_hand(HS, claims(exp=1e300)),
    "exp negative": by_hand(HS, claims(exp=-1)),
    "exp true": by_hand(HS, claims(exp=True)),
    "exp list": by_hand(HS, claims(exp=[NOW + 3600])),
    "exp infinity": by_hand(HS, '{"sub":"ann","exp":Infinity}'),
    "exp NaN": by_hand(HS, '{"sub":"ann","exp":NaN}'),
    "nbf in future": signed(nbf=NOW + 600),
    "nbf as text": by_hand(HS, claims(nbf="0")),
    "iat in future": signed(iat=NOW + 600),
    "sub is a number": by_hand(HS, claims(sub=7)),
    "huge": signed(pad="x" * 10_000),
    "two parts": f"{HEAD}.{BODY}",
    "four parts": f"{GOOD}.{MARK}",
    "five parts, as if encrypted": f"{HEAD}..{BODY}.{MARK}.{MARK}",
    "many parts": ".".join("a" * 200),
    "only dots": "..",
    "empty mark": f"{HEAD}.{BODY}.",
    "empty payload": f"{HEAD}..{MARK}",
    "empty header": f".{BODY}.{MARK}",
    "bad base64": f"{HEAD}.{BODY}!.{MARK}",
    "padded base64": f"{HEAD}.{BODY}==.{MARK}",
    "base64 with slashes": GOOD.replace("-", "+").replace("_", "/") + "/",
    "a line break inside": f"{HEAD}.{BODY}\n.{MARK}",
    "cut mark": GOOD[:-4],
    "another mark": f"{HEAD}.{BODY}.{b64(b'x' * 32)}",
    "swapped payload": f"{HEAD}.{b64(claims(role='admin', sub='eve'))}.{MARK}",
    "header is no JSON": by_hand("alg=HS256", claims()),
    "header is an array": by_hand('["HS256"]', claims()),
    "payload is no JSON": by_hand(HS, "admin"),
    "payload is an array": by_hand(HS, "[1]"),
    "payload is not UTF-8": f"{HEAD}.{b64(bytes([0xFF, 0xFE]))}.{MARK}",
    "key twice in the header": by_hand('{"alg":"none","alg":"HS256"}', claims()),
    "key twice in the payload": by_hand(HS, f'{{"sub":"a","exp":1,"exp":{NOW + 3600},"role":"admin"}}'),
    "crit": by_hand({**HS, "crit": ["exp"]}, claims()),
    "crit b64": by_hand({**HS, "crit": ["b64"], "b64": False}, claims()),
    "b64 false": by_hand({**HS, "b64": False}, claims()),
    "embedded jwk": by_hand({**HS, "jwk": {"kty": "oct", "k": b64("k" * 32)}}, claims(), b"k" * 32),
    "embedded jwk, our key": by_hand({**HS, "jwk": {"kty": "oct"}}, claims()),
    "jku": by_hand({**HS, "jku": "https://evil.example/keys"}, claims()),
    "x5u": by_hand({**HS, "x5u": "https://evil.example/cert"}, claims()),
    "x5c": by_hand({**HS, "x5c": ["MIIB"]}, claims()),
    "zip": by_hand({**HS, "zip": "DEF"}, claims()),
    "kid is a number": by_hand({**HS, "kid": 1}, claims()),
    "kid is a list": by_hand({**HS, "kid": ["a"]}, claims()),
    "deep header": by_hand('{"alg":"HS256","x":' + "[" * 500 + "]" * 500 + "}", claims()),
    "deep payload": by_hand(HS, '{"exp":9999999999,"x":' + "[" * 500 + "]" * 500 + "}"),
}


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_no_hostile_token_lets_anybody_in(web: Served) -> None:
    let_in = {}
    for number, (name, token) in enumerate(HOSTILE.items()):
        # Another address each time: the limit of failures is not what is tested here.
        scope_client = (f"10.0.{number // 250}.{number % 250}", 1)
        status = await status_of(web, token, scope_client)
        if status != 401:
            let_in[name] = status
    assert let_in == {}


async def status_of(web: Served, token: str, client: tuple[str, int]) -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/lanes",
        "raw_path": b"/api/v1/lanes",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())],
        "client": client,
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "http_version": "1.1",
    }
    await web.server(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ({"role": "admin"}, 200),
        ({"role": "viewer"}, 200),
        ({"roles": ["x", "operator"]}, 200),
        ({"roles": "viewer"}, 200),
        ({"scope": "openid viewer email"}, 200),
        ({"role": "viewer", "aud": "somebody"}, 200),
        ({"role": "worker"}, 403),
        ({"role": "root"}, 403),
        ({"role": ["admin"]}, 403),
        ({"roles": {"admin": True}}, 403),
        ({"scope": "administrator viewers"}, 403),
        ({}, 403),
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_role_is_what_the_claims_say(web: Served, extra: dict[str, Any], status: int) -> None:
    answer = await web.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {signed(**extra)}"})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_token_without_a_role_has_the_default_one(url: str) -> None:
    async with served(Windlass(url, jwt_secret=SECRET, jwt_default_role="viewer")) as web:
        cases: list[tuple[dict[str, Any], int]] = [({}, 200), ({"role": "root"}, 200), ({"role": "worker"}, 403)]
        for extra, status in cases:
            answer = await web.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {signed(**extra)}"})
            assert answer.status_code == status


def test_clocks_may_be_a_few_seconds_apart(tmp_path: Path) -> None:
    tokens, now = web_tokens(tmp_path, jwt_secret=SECRET), int(time.time())
    assert tokens.principal_of(signed(exp=now - 4, nbf=now + 8))[0].name == "jwt:ann"


def web_tokens(tmp_path: Path, **settings: Any) -> WebTokens:
    return WebTokens.from_settings(load(settings, environ={}, file=tmp_path / "absent.toml"))


def jwks(tmp_path: Path, *keys: tuple[str, Any, str]) -> str:
    kinds: dict[str, Any] = {"RS256": jwt.algorithms.RSAAlgorithm, "EdDSA": jwt.algorithms.OKPAlgorithm}
    entries = [{**kinds[alg].to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": alg} for kid, key, alg in keys]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": entries}))
    return str(path)


def test_a_public_key_takes_only_its_own_algorithm(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(pem(RSA))
    tokens = web_tokens(tmp_path, jwt_public_key=str(path))
    principal, until = tokens.principal_of(signed(RSA, "RS256", role="operator"))
    assert (principal.name, principal.role, until) == ("jwt:ann", Role.OPERATOR, NOW + 3600)
    confused = by_hand(HS, claims(role="admin"), pem(RSA))
    for token in (
        confused,
        by_hand(HS, claims(role="admin"), pem(RSA).strip()),
        by_hand({"alg": "RS256"}, claims(role="admin"), pem(RSA)),
        signed(OTHER_RSA, "RS256"),
        signed(RSA, "RS384"),
        signed(RSA, "PS256"),
        signed(ED, "EdDSA"),
        signed(SECRET),
    ):
        with pytest.raises(BadToken):
            tokens.principal_of(token)


def test_an_ed25519_key_takes_only_eddsa(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(pem(ED))
    tokens = web_tokens(tmp_path, jwt_public_key=str(path))
    assert tokens.principal_of(signed(ED, "EdDSA", role="viewer"))[0].role is Role.VIEWER
    raw = ED.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    for token in (
        signed(RSA, "RS256"),
        by_hand(HS, claims(), pem(ED)),
        by_hand(HS, claims(), raw),
        by_hand({"alg": "EdDSA"}, claims(), raw),
    ):
        with pytest.raises(BadToken):
            tokens.principal_of(token)


def test_a_key_set_is_asked_by_name(tmp_path: Path) -> None:
    tokens = web_tokens(tmp_path, jwt_jwks=jwks(tmp_path, ("a", RSA, "RS256"), ("b", OTHER_RSA, "RS256"), ("c", ED, "EdDSA")))
    assert tokens.principal_of(signed(RSA, "RS256", {"kid": "a"}))[0].name == "jwt:ann"
    assert tokens.principal_of(signed(OTHER_RSA, "RS256", {"kid": "b"}))[0].name == "jwt:ann"
    assert tokens.principal_of(signed(ED, "EdDSA"))[0].name == "jwt:ann"
    for token in (
        signed(RSA, "RS256", {"kid": "b"}),
        signed(RSA, "RS256", {"kid": "z"}),
        signed(RSA, "RS256", {"kid": "../../dev/null"}),
        signed(RSA, "RS256"),
        signed(RSA, "RS256", {"kid": "c"}),
        signed(ED, "EdDSA", {"kid": "a"}),
        by_hand({"alg": "HS256", "kid": "a"}, claims(), pem(RSA)),
    ):
        with pytest.raises(BadToken):
            tokens.principal_of(token)


def test_audience_and_issuer_are_asked_for_where_they_are_set(tmp_path: Path) -> None:
    tokens = web_tokens(tmp_path, jwt_secret=SECRET, jwt_audience="windlass", jwt_issuer="https://id.example")
    good: dict[str, Any] = {"aud": ["x", "windlass"], "iss": "https://id.example"}
    assert tokens.principal_of(signed(**good))[0].name == "jwt:ann"
    for bad in (
        {},
        {"aud": "windlass"},
        {"iss": "https://id.example"},
        {**good, "aud": "other"},
        {**good, "aud": []},
        {**good, "iss": "x"},
    ):
        with pytest.raises(BadToken):
            tokens.principal_of(signed(**bad))


def test_a_worker_may_be_limited_to_lanes(tmp_path: Path) -> None:
    tokens = web_tokens(tmp_path, jwt_secret=SECRET)
    assert tokens.principal_of(signed(role="worker", lanes=["pull"]))[0].lanes == ("pull",)
    assert tokens.principal_of(signed(role="worker", lanes="pull"))[0].lanes == ()
    assert tokens.principal_of(signed(role="worker"))[0].lanes is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("jwt_public_key", b"nothing"),
        ("jwt_public_key", pem(EC)),
        ("jwt_jwks", b"{}"),
        ("jwt_jwks", b'{"keys": []}'),
        ("jwt_jwks", b"x"),
    ],
)
def test_a_key_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"^{name}: "):
        web_tokens(tmp_path, **{name: str(path)})


def test_short_secrets_and_small_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="32 bytes"):
        web_tokens(tmp_path, jwt_secret="long-but-not-32-bytes")
    path = tmp_path / "key.pem"
    path.write_bytes(pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)))
    with pytest.raises(ConfigError, match="2048 bits"):
        web_tokens(tmp_path, jwt_public_key=str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        web_tokens(tmp_path, jwt_public_key=str(tmp_path / "absent"))


def public_jwk(key: Any, kind: Any, **more: Any) -> dict[str, Any]:
    return {**kind.to_jwk(key.public_key(), as_dict=True), **more}


RSA_JWK = public_jwk(RSA, jwt.algorithms.RSAAlgorithm, alg="RS256", kid="rsa", use="sig")
EC_JWK = public_jwk(EC, jwt.algorithms.ECAlgorithm, alg="ES256", kid="ec", use="sig")


def key_file(tmp_path: Path, *entries: Any) -> str:
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps({"keys": entries}))
    return str(path)


async def test_a_server_starts_with_a_mixed_key_set_and_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    unusable = [
        EC_JWK,
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": "LWE", "kid": "later"},
        public_jwk(OTHER_RSA, jwt.algorithms.RSAAlgorithm, alg="RSA-OAEP", kid="enc", use="enc"),
        public_jwk(OTHER_RSA, jwt.algorithms.RSAAlgorithm, alg="RSA-OAEP", kid="oaep"),
        public_jwk(OTHER_RSA, jwt.algorithms.RSAAlgorithm, alg="PS256", kid="pss"),
        public_jwk(OTHER_RSA, jwt.algorithms.RSAAlgorithm, alg="RS256", kid="ops", key_ops=["sign"]),
        {"kty": "RSA", "kid": "short", "n": "AQAB", "e": "AQAB"},
        {"kid": "untyped"},
        "text",
    ]
    path = key_file(tmp_path, *unusable, RSA_JWK)
    async with served(Windlass(f"sqlite:///{tmp_path / 'w.db'}", jwt_jwks=path)) as web:
        good = signed(RSA, "RS256", {"kid": "rsa"}, role="viewer")
        answer = await web.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {good}"})
        assert answer.status_code == 200, answer.text
        for token in (
            signed(EC, "ES256", {"kid": "ec"}, role="viewer"),
            signed(OTHER_RSA, "RS256", {"kid": "ops"}, role="viewer"),
        ):
            answer = await web.client.get("/api/v1/lanes", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == 401
    [warning] = [record.getMessage() for record in caplog.records if "jwt_jwks" in record.getMessage()]
    for name in ("'ec'", "'shared'", "'later'", "'enc'", "'oaep'", "'pss'", "'ops'", "'short'", "'untyped'", "key 10"):
        assert name in warning


def test_a_key_whose_operations_have_verify_is_used(tmp_path: Path) -> None:
    tokens = web_tokens(tmp_path, jwt_jwks=key_file(tmp_path, RSA_JWK | {"key_ops": ["verify"]}))
    assert tokens.principal_of(signed(RSA, "RS256", {"kid": "rsa"}))[0].name == "jwt:ann"


def test_a_repeated_kid_and_a_set_without_a_usable_key_are_errors(tmp_path: Path) -> None:
    other = public_jwk(OTHER_RSA, jwt.algorithms.RSAAlgorithm, alg="RS256", kid="rsa")
    with pytest.raises(ConfigError, match="more than one key with kid 'rsa'"):
        web_tokens(tmp_path, jwt_jwks=key_file(tmp_path, RSA_JWK, other))
    with pytest.raises(ConfigError, match="no key for signatures: key 'ec' is neither"):
        web_tokens(tmp_path, jwt_jwks=key_file(tmp_path, EC_JWK))
