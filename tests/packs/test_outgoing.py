"""The guard: what a pack sends stays bounded and goes to nobody's inner network."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.local_site import Seen, Write, reply, serve
from windlass import Windlass
from windlass.errors import InvalidInput
from windlass.packs.outgoing import (
    AddressRefused,
    BodyTooLarge,
    Limits,
    Outgoing,
    OutgoingError,
    TooManyRedirects,
    Unreachable,
    UrlRefused,
    Wanted,
    outgoing,
    parse_url,
)
from windlass.packs.outgoing.addresses import refusal

METADATA = "http://169.254.169.254/latest/meta-data/"
QUICK = Limits(connect_s=2.0, total_s=0.3)


def names(**known: Sequence[str]) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """Look names up in a table; `a__b` stands for a.b."""
    table = {name.replace("__", "."): addresses for name, addresses in known.items()}

    async def resolve(host: str, _port: int) -> Sequence[str]:
        if host not in table:
            raise OSError("no such name")
        return table[host]

    return resolve


REFUSED = [
    "https://a.example/\ud800",
    "https://a.example/?q=\udfff",
    "https://\ud800.example/",
    # loopback and what stands for it
    "http://127.0.0.1/",
    "http://127.0.0.1./",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0X7F.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.0x1/",
    "http://127.0.0.01/",
    "http://00000000127.0.0.1/",
    "http://127.0.0.1.%00/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0x/",
    "http://１２７.０.０.１/",  # noqa: RUF001 - full-width digits
    "http://127。0。0。1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::80ff:fffe]/",
    # private, shared, link-local and other special addresses
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.127.255.254/",
    "http://169.254.0.1/",
    "http://192.0.0.170/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://239.255.255.250:1900/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[fec0::1]/",
    "http://[100::1]/",
    # metadata services
    METADATA,
    "http://2852039166/latest/",
    "http://0xA9FEA9FE/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    # names that lead there
    "http://inner.example/",
    "http://INNER.example./",
    "http://half.example/",
    "http://six.example/",
    "http://mapped.example/",
    "http://metadata.example/",
    "http://scoped.example/",
    # readers that disagree
    "http://good.example@127.0.0.1/",
    "http://good.example:80@127.0.0.1/",
    "http://127.0.0.1@good.example/",
    "http://good.example\\@127.0.0.1/",
    "http://127.0.0.1\\@good.example/",
    "http://good.example%2f@127.0.0.1/",
    "http:\\\\127.0.0.1/",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "http://good.example%00.inner/",
    "http://%31%32%37.0.0.1/",
    "http://good.example\t.inner/",
    "http://good.example\r\nHost: inner/",
    " http://127.0.0.1/",
    "http://[::1/",
    "http://[::1]evil/",
    "http://::1/",
    "http://good..example/",
    "http://-good.example/",
    "http://.example/",
    "http:///etc/passwd",
    "http://",
    "http://good.example:0/",
    "http://good.example:65536/",
    "http://good.example:-1/",
    "http://good.example:８０/",  # noqa: RUF001 - full-width digits
    "http://good.example:80:80/",
    "http://good.example:25/",
    "http://good.example:6667/",
    # other protocols
    "file:///etc/passwd",
    "ftp://good.example/",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "jar:http://127.0.0.1!/",
    "unix:/var/run/docker.sock",
    "//127.0.0.1/",
    "127.0.0.1",
    "",
]


@pytest.mark.parametrize("url", REFUSED, ids=count())
async def test_what_leads_inside_is_refused_before_anything_is_sent(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_connection(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("anyio.connect_tcp", no_connection)
    sender = Outgoing(
        resolve=names(
            good__example=["93.184.215.14"],
            inner__example=["10.1.2.3"],
            half__example=["93.184.215.14", "127.0.0.1"],
            six__example=["::1"],
            mapped__example=["::ffff:10.0.0.1"],
            metadata__example=["169.254.169.254"],
            scoped__example=["fe80::1%eth0"],
        )
    )
    with pytest.raises((UrlRefused, AddressRefused)):
        await sender.send("GET", url)


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("8.8.8.8", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("10.0.0.1", False),
        ("fd12::1", False),
        ("100.64.0.1", False),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("64:ff9b::7f00:1", False),
    ],
)
def test_private_networks_open_only_when_allowed(address: str, *, inside: bool) -> None:
    assert (refusal(ip_address(address), allow_private=False) is None) is inside
    assert refusal(ip_address(address), allow_private=True) is None


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "ff02::1",
    ],
)
def test_metadata_and_special_addresses_are_never_open(address: str) -> None:
    assert refusal(ip_address(address), allow_private=True) is not None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org.:8080/ä?q=ü&p=%20", "http://example.org:8080/%C3%A4?q=%C3%BC&p=%20"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("http://my_host.example/", "http://my_host.example/"),
    ],
)
def test_an_address_has_one_form(given: str, read: str) -> None:
    assert str(parse_url(given)) == read


def test_errors_show_no_password_and_no_query() -> None:
    with pytest.raises(UrlRefused) as with_user:
        parse_url("http://me:hunter2@example.org/")
    with pytest.raises(UrlRefused) as with_query:
        parse_url("gopher://example.org/?key=hunter2")
    assert "hunter2" not in str(with_user.value)
    assert "hunter2" not in str(with_query.value)


async def hello(seen: Seen, write: Write) -> None:
    await write(reply(body=b"hello", content_type="text/plain", x_host=seen.headers["host"]))


async def test_a_local_server_is_reached_only_when_private_addresses_are_allowed() -> None:
    async with serve(hello) as site:
        with pytest.raises(AddressRefused, match="WINDLASS_ALLOW_PRIVATE_ADDRESSES"):
            await Outgoing().send("GET", site.url())
        assert site.seen == []
        answer = await Outgoing(allow_private=True).send("GET", site.url("/a?b=c"))
        assert (answer.status, answer.url, answer.body) == (200, site.url("/a?b=c"), b"hello")
        assert answer.headers["content-type"] == "text/plain"
        assert answer.headers["x-host"] == f"127.0.0.1:{site.port}"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "local\u00adhost"])
async def test_the_names_of_this_machine_are_refused_by_their_address(host: str) -> None:
    async with serve(hello) as site:
        with pytest.raises(AddressRefused, match="loopback"):
            await Outgoing().send("GET", site.url(host=host))
        assert site.seen == []


async def test_the_setting_of_an_application_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(hello) as site:
        with pytest.raises(AddressRefused):
            await outgoing(Windlass()).send("GET", site.url())
        monkeypatch.setenv("WINDLASS_ALLOW_PRIVATE_ADDRESSES", "on")
        assert (await outgoing(Windlass()).send("GET", site.url())).status == 200


async def test_a_name_is_looked_up_once_so_an_answer_that_changes_does_not_help() -> None:
    """Rebinding: the second look would lead inside, and the server that was checked must be the one that is asked."""
    asked: list[str] = []
    async with serve(hello) as right, serve(hello, host="127.0.0.2") as wrong:

        async def resolve(host: str, _port: int) -> Sequence[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

        answer = await Outgoing(allow_private=True, resolve=resolve).send("GET", right.url(host="rebinds.example"))
        assert asked == ["rebinds.example"]
        assert (len(right.seen), len(wrong.seen)) == (1, 0)
        assert answer.headers["x-host"] == f"rebinds.example:{right.port}"


async def test_a_name_that_turns_inward_between_two_redirects_is_refused() -> None:
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def again(_seen: Seen, write: Write) -> None:
        await write(reply(302, location="/again"))

    async with serve(again) as site:
        with pytest.raises(AddressRefused):
            await Outgoing(allow_private=True, resolve=resolve).send("GET", site.url(host="rebinds.example"))
        assert len(site.seen) == 1


@pytest.mark.parametrize(
    "location",
    [
        METADATA,
        "//169.254.169.254/latest",
        "http://2852039166/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "http://metadata.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "http:\\\\169.254.169.254/",
        "http://x@169.254.169.254/",
        "http://127.0.0.1:25/",
        "http://[",
    ],
)
async def test_a_redirect_is_checked_like_an_address_that_was_given(location: str) -> None:
    async def away(_seen: Seen, write: Write) -> None:
        await write(reply(302, location=location))

    async with serve(away) as site:
        sender = Outgoing(allow_private=True, resolve=names(metadata__example=["169.254.169.254"]))
        with pytest.raises((UrlRefused, AddressRefused)):
            await sender.send("GET", site.url())
        assert len(site.seen) == 1


async def test_redirects_that_never_end_do() -> None:
    async def on(seen: Seen, write: Write) -> None:
        await write(reply(302, location=f"{seen.target}x"))

    async with serve(on) as site:
        with pytest.raises(TooManyRedirects):
            await Outgoing(allow_private=True).send("GET", site.url(), limits=Limits(max_redirects=3))
        assert [seen.target for seen in site.seen] == ["/", "/x", "/xx", "/xxx"]
        answer = await Outgoing(allow_private=True).send("GET", site.url(), follow=False)
        assert (answer.status, answer.headers["location"]) == (302, "/x")


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (302, "PUT", "PUT"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (308, "GET", "GET"),
    ],
)
async def test_a_redirect_keeps_or_drops_the_method_as_browsers_do(status: int, method: str, becomes: str) -> None:
    async def move(seen: Seen, write: Write) -> None:
        await write(reply(200) if seen.target == "/new" else reply(status, location="new"))

    async with serve(move) as site:
        body = b"{}" if method in {"POST", "PUT"} else None
        headers = {"Content-Type": "application/json"} if body else {}
        await Outgoing(allow_private=True).send(method, site.url("/old"), headers=headers, body=body)
        last = site.seen[-1]
        assert (last.target, last.method) == ("/new", becomes)
        kept = becomes == method and body is not None
        assert (last.body, "content-type" in last.headers) == (body if kept else b"", kept)


async def test_credentials_stay_with_the_host_they_were_meant_for() -> None:
    secret = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/html"}

    async def move(seen: Seen, write: Write) -> None:
        places = {"/same": "/end", "/other": f"http://other.example:{site.port}/end"}
        where = places.get(seen.target)
        await write(reply(307, location=where) if where else reply())

    async with serve(move) as site:
        sender = Outgoing(allow_private=True, resolve=names(one__example=["127.0.0.1"], other__example=["127.0.0.1"]))
        await sender.send("GET", site.url("/same", host="one.example"), headers=secret)
        assert {name.lower() for name in secret} <= site.seen[-1].headers.keys()
        await sender.send("GET", site.url("/other", host="one.example"), headers=secret)
        last = site.seen[-1].headers
        assert last["host"] == f"other.example:{site.port}"
        assert last["accept"] == "text/html"
        assert not {"authorization", "cookie", "x-api-key"} & last.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "inner"),
        ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("X-A", "b\r\nHost: inner"),
        ("X A", "b"),
        ("X-A", "ü€"),
    ],
)
async def test_headers_that_would_change_the_request_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="headers"):
        await Outgoing().send("GET", "http://example.org/", headers={name: value})


async def test_methods_that_open_tunnels_are_refused() -> None:
    for method in ("CONNECT", "TRACE", "GET / HTTP/1.1\r\nX:"):
        with pytest.raises(InvalidInput, match="method"):
            await Outgoing().send(method, "http://example.org/")


async def drip(_seen: Seen, write: Write) -> None:
    await write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(1000):
        await write(b"x")
        await asyncio.sleep(0.02)


async def drip_headers(_seen: Seen, write: Write) -> None:
    await write(b"HTTP/1.1 200 OK\r\n")
    for place in range(1000):
        await write(f"x-{place}: y\r\n".encode())
        await asyncio.sleep(0.02)


async def silence(_seen: Seen, _write: Write) -> None:
    await asyncio.sleep(60)


async def drip_hints(_seen: Seen, write: Write) -> None:
    for _ in range(1000):
        await write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("slow", [drip, drip_headers, drip_hints, silence])
async def test_a_server_that_is_slow_or_drips_is_left_in_time(slow: Callable[[Seen, Write], Awaitable[None]]) -> None:
    async with serve(slow) as site:
        with pytest.raises(Unreachable, match=r"within 0\.3 s"):
            await Outgoing(allow_private=True).send("GET", site.url(), limits=QUICK)


async def test_a_name_server_that_hangs_is_left_in_time() -> None:
    async def hang(_host: str, _port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    with pytest.raises(Unreachable, match="name was not found within"):
        await Outgoing(resolve=hang).send("GET", "http://slow.example/", limits=Limits(connect_s=0.05))


async def test_names_without_an_address_may_be_tried_again() -> None:
    sender = Outgoing(resolve=names(none__example=[]))
    for host in ("none.example", "unknown.example"):
        with pytest.raises(Unreachable):
            await sender.send("GET", f"http://{host}/")


async def test_the_second_address_is_tried_when_the_first_does_not_answer() -> None:
    async with serve(hello) as site:
        sender = Outgoing(allow_private=True, resolve=names(two__example=["127.0.0.3", "127.0.0.1"]))
        assert (await sender.send("GET", site.url(host="two.example"))).body == b"hello"


def packed(times: int, pack: Callable[[bytes], bytes], size: int) -> bytes:
    body = bytes(size)
    for _ in range(times):
        body = pack(body)
    return body


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", bytes(200_001)),
        ("gzip", packed(1, gzip.compress, 5_000_000)),
        ("gzip, gzip", packed(2, gzip.compress, 5_000_000)),
        ("deflate", packed(1, zlib.compress, 5_000_000)),
        ("deflate", packed(1, bare_deflate, 5_000_000)),
        ("gzip", gzip.compress(bytes(150_000)) * 2),
    ],
    ids=count(),
)
async def test_an_answer_larger_than_the_limit_is_refused_packed_or_not(encoding: str, body: bytes) -> None:
    async def big(_seen: Seen, write: Write) -> None:
        # Without a length, so that it is found out while reading.
        await write(b"HTTP/1.1 200 OK\r\ncontent-encoding: " + encoding.encode() + b"\r\n\r\n" + body)

    async with serve(big) as site:
        with pytest.raises(BodyTooLarge):
            await Outgoing(allow_private=True).send("GET", site.url(), limits=Limits(max_bytes=200_000))


async def test_an_answer_that_says_it_is_too_large_is_not_read() -> None:
    async def announce(_seen: Seen, write: Write) -> None:
        await write(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
        await asyncio.sleep(60)

    async with serve(announce) as site:
        with pytest.raises(BodyTooLarge):
            await Outgoing(allow_private=True).send("GET", site.url())
        assert (await Outgoing(allow_private=True).send("HEAD", site.url())).body == b""


async def test_an_answer_without_a_body_may_tell_the_length_of_one() -> None:
    async def unchanged(_seen: Seen, write: Write) -> None:
        await write(reply(304, content_length="99999999", content_encoding="gzip"))

    async with serve(unchanged) as site:
        answer = await Outgoing(allow_private=True).send("GET", site.url(), headers={"If-None-Match": '"x"'})
        assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("x-gzip", gzip.compress(b"hel") + gzip.compress(b"lo") + bytes(8)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", bare_deflate(b"hello")),
        ("deflate, gzip", gzip.compress(zlib.compress(b"hello"))),
    ],
    ids=count(),
)
async def test_a_packed_answer_is_unpacked(encoding: str, body: bytes) -> None:
    async def small(_seen: Seen, write: Write) -> None:
        await write(reply(body=body, content_encoding=encoding))

    async with serve(small) as site:
        assert (await Outgoing(allow_private=True).send("GET", site.url())).body == b"hello"


@pytest.mark.parametrize(
    "answer",
    [
        reply(body=gzip.compress(b"hello" * 99)[:-9], content_encoding="gzip"),
        reply(body=b"no gzip", content_encoding="gzip"),
        reply(body=b"?", content_encoding="br"),
        reply(body=gzip.compress(b"") * 200, content_encoding="gzip"),
        reply(body=b"x", content_encoding="gzip, gzip, gzip"),
        reply(body=b"short", content_length="100"),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n" + b"x-a: " + bytes(99) * 2_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 30_000 + b"\r\n",
    ],
    ids=count(),
)
async def test_an_answer_that_cannot_be_read_may_be_tried_again(answer: bytes) -> None:
    async def broken(_seen: Seen, write: Write) -> None:
        await write(answer)

    async with serve(broken) as site:
        with pytest.raises(Unreachable):
            await Outgoing(allow_private=True).send("GET", site.url())


async def test_a_closed_port_may_be_tried_again() -> None:
    async with serve(hello) as site:
        url = site.url()
    with pytest.raises(Unreachable):
        await Outgoing(allow_private=True).send("GET", url)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(hello) as site, serve(hello) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url())
        await Outgoing(allow_private=True).send("GET", site.url())
        assert (len(site.seen), proxy.seen) == (1, [])


def certified(folder: Path, *hosts: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a server's side with a certificate it signed itself, and a client's side that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(secret + made.public_bytes(Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=file)


async def test_a_certificate_must_be_trusted_and_of_the_name_that_was_asked_for(tmp_path: Path) -> None:
    server, trusting = certified(tmp_path, "shop.example")
    asked_names: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: asked_names.append(name)
    known = names(shop__example=["127.0.0.1"], other__example=["127.0.0.1"])
    async with serve(hello, tls=server) as site:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await Outgoing(allow_private=True, resolve=known).send("GET", site.url(host="shop.example"))
        sender = Outgoing(allow_private=True, resolve=known, tls=trusting)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await sender.send("GET", site.url(host="other.example"))
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await sender.send("GET", site.url(host="127.0.0.1"))
        assert site.seen == []
        assert (await sender.send("GET", site.url(host="shop.example"))).body == b"hello"
        assert asked_names == ["shop.example", "other.example", None, "shop.example"]


async def test_a_handshake_that_is_cut_off_closes_its_connection() -> None:
    connected, closed = asyncio.Event(), asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        # Ends when the other side has closed.
        await reader.read()
        closed.set()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        sending = asyncio.ensure_future(Outgoing(allow_private=True).send("GET", f"https://127.0.0.1:{port}/"))
        await asyncio.wait_for(connected.wait(), 20)
        sending.cancel()
        await asyncio.wait_for(closed.wait(), 20)
        with pytest.raises(asyncio.CancelledError):
            await sending


def test_one_sender_serves_several_event_loops() -> None:
    sender = Outgoing(allow_private=True)

    async def once() -> bytes:
        async with serve(hello) as site:
            return (await sender.send("GET", site.url(host="localhost"))).body

    assert [asyncio.run(once()), asyncio.run(once())] == [b"hello", b"hello"]
    asyncio.run(sender.aclose())


def test_every_error_of_the_guard_is_an_outgoing_error() -> None:
    assert all(
        issubclass(kind, OutgoingError) for kind in (UrlRefused, AddressRefused, BodyTooLarge, TooManyRedirects, Unreachable)
    )


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [(bytes, "identity"), (gzip.compress, "gzip"), (zlib.compress, "deflate")],
    ids=["plain", "gzip", "deflate"],
)
async def test_the_beginning_of_a_body_is_had_however_long_it_is(pack: Callable[[bytes], bytes], encoding: str) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000)).encode()

    async def answer(_seen: Seen, write: Write) -> None:
        await write(reply(200, pack(text), content_encoding=encoding))

    async with serve(answer) as site:
        sender = Outgoing(allow_private=True)
        for limit in (1_000, 100_000, 1_000_000):
            found = await sender.send("GET", site.url(), limits=Limits(max_bytes=limit), wanted=Wanted.BEGINNING)
            assert found.body
            assert text.startswith(found.body)
            assert len(found.body) == min(limit, len(text)) or (encoding != "identity" and limit == 1_000)
        await sender.aclose()


async def test_the_status_of_an_answer_that_never_ends_is_told() -> None:
    async def answer(_seen: Seen, write: Write) -> None:
        await write(reply(201, b"x", content_length="10"))
        await asyncio.Event().wait()

    async with serve(answer) as site:
        sender = Outgoing(allow_private=True)
        found = await sender.send("POST", site.url(), limits=QUICK, wanted=Wanted.IF_READABLE)
        assert (found.status, found.body, found.fault) == (201, b"", "the answer did not end in time")
        assert (await sender.send("POST", site.url(), limits=QUICK, wanted=Wanted.NOTHING)).status == 201
        with pytest.raises(Unreachable):
            await sender.send("POST", site.url(), limits=QUICK)
        await sender.aclose()
