"""Forms as browsers send them, and forms that nobody's browser sends."""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.page.forms import BadForm, Sent, sent

_URLENCODED = "application/x-www-form-urlencoded"
_TEXT = st.text(st.characters(codec="utf-8"), max_size=50)


def multipart(*parts: bytes, end: bytes = b"--") -> tuple[str, bytes]:
    return "multipart/form-data; boundary=X", b"".join(b"--X\r\n" + part + b"\r\n" for part in parts) + b"--X" + end


async def refused(media_type: str, body: bytes) -> int:
    with pytest.raises(BadForm) as refusal:
        await sent(media_type, body)
    return refusal.value.status


@given(fields=st.dictionaries(_TEXT, _TEXT, max_size=10))
async def test_fields_come_as_they_were_typed(fields: dict[str, str]) -> None:
    assert await sent(f"{_URLENCODED}; charset=UTF-8", urlencode(fields).encode()) == Sent(fields=fields)


@given(value=_TEXT, data=st.binary(min_size=1, max_size=300))
async def test_files_come_byte_by_byte(value: str, data: bytes) -> None:
    """They may hold line ends, dashes, or a form of their own."""
    name = 'a "new" größe.bin'
    request = httpx.Request("POST", "http://x", data={"text": value}, files={"file": (name, data, "image/png")})
    form = await sent(request.headers["Content-Type"], request.read())
    assert form.fields == {"text": value}
    (file,) = form.files
    assert base64.b64decode(file.reference.removeprefix("b64:")) == data
    assert (file.name, file.media_type, file.kind) == (name, "image/png", "image")


async def test_a_file_that_was_not_chosen_is_none() -> None:
    """Browsers send its part all the same."""
    form = await sent(*multipart(b'Content-Disposition: form-data; name="file"; filename=""\r\n\r\n'))
    assert form == Sent(fields={})


@pytest.mark.parametrize(
    ("parameters", "filename"),
    [
        (r'; name="file"; filename="foo\"', "foo\\"),
        (r'; filename="foo\"; name="file"', "foo\\"),
        (r'; name="file"; filename="C:\new\x.png"', r"C:\new\x.png"),
        (r'; name="file"; filename="a \"b\" \\ c"', r'a "b" \ c'),
        ("; name=\"file\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.bin", "größe.bin"),
        ('; name="file"; filename="gr.bin"; filename*=utf-8\'de\'gr%C3%B6%C3%9Fe%22.bin', 'größe".bin'),
        ("; name=file; filename=x.png", "x.png"),
        ('\t;\tNAME="file"\t;\tFileName="x.png"\t', "x.png"),
        ('; name="file"; filename="not closed', "not closed"),
        ('; name="file"; filename=', ""),
        ('; name="file"; about="; filename=x"; filename="y"', "y"),
    ],
)
async def test_files_are_files_however_their_names_are_written(parameters: str, filename: str) -> None:
    """A file must not be taken for a field because some program writes its name in a way of its own."""
    head = f"Content-Disposition: form-data{parameters}\r\n\r\n".encode()
    form = await sent(*multipart(head + b"\xff\x00"))
    assert form.fields == {} and [file.name for file in form.files] == [filename]


async def test_an_empty_line_may_come_first() -> None:
    media_type, body = multipart(b'Content-Disposition: form-data; name="a"\r\n\r\nx')
    assert await sent(media_type, b"\r\n" + body) == Sent(fields={"a": "x"})


@pytest.mark.parametrize(
    ("media_type", "body", "status"),
    [
        ("text/plain", b"a=1", 415),
        ("", b"", 415),
        (_URLENCODED, b"a=%ff", 400),
        (_URLENCODED, b"\xff", 400),
        (_URLENCODED, b"a&" * 60, 413),
        (_URLENCODED, b"a=" + b"x" * 100_001, 413),
        ("multipart/form-data", b"--X--", 400),
        ("multipart/form-data; boundary=", b"--X--", 400),
        ("multipart/form-data; boundary=X", b"", 400),
        ("multipart/form-data; boundary=X", b"noise\r\n--X--", 400),
        (*multipart(b"\r\n\r\n", end=b""), 400),
        (*multipart(b"no end of its head"), 400),
        (*multipart(b"X: " + b"x" * 3_000 + b"\r\n\r\n"), 400),
        (*multipart(b'Content-Disposition: form-data; name="a"\r\n\r\n\xff'), 400),
        (*multipart(b"Content-Disposition: form-data\r\n\r\nx"), 400),
        (*multipart(b'Content-Disposition: form-data; filename="f"\r\n\r\nx'), 400),
        (*multipart(*[b'Content-Disposition: form-data; name="a"\r\n\r\n'] * 60), 413),
        (*multipart(*[b'Content-Disposition: form-data; name="f"; filename="f"\r\n\r\nx'] * 6), 413),
    ],
)
async def test_what_breaks_a_bound_is_refused_as_a_whole(media_type: str, body: bytes, status: int) -> None:
    assert await refused(media_type, body) == status


@given(media_type=st.text(max_size=100), body=st.binary(max_size=300))
async def test_no_form_raises_anything_else(media_type: str, body: bytes) -> None:
    for kind in (media_type, _URLENCODED, "multipart/form-data; boundary=" + media_type):
        with suppress(BadForm):
            await sent(kind, body)


@pytest.mark.parametrize(
    "body",
    [
        b"--X\r\n\r\n\r\n" * 9_000, (b"\r\n--" + b"a" * 69) * 100_000, b"--X\r\n" * 20_000, b"\r\n" * 4_000_000,
        b"\r\n--" * 2_000_000, b"%41" * 33_000,
        (b'--X\r\nContent-Disposition: form-data; name="' + b"\\" * 1_900 + b"\r\n\r\n\r\n") * 55 + b"--X--",
        (b"--X\r\nContent-Disposition: form-data; name=x" + b';a="\\"' * 280 + b"\r\n\r\n\r\n") * 55 + b"--X--",
        (b"--X\r\nContent-Disposition: form-data; name=x" + b";a=\t \t" * 270 + b"\r\n\r\n\r\n") * 55 + b"--X--",
        (b"--X\r\nContent-Disposition: form-data; name=x" + b'";' * 900 + b"\r\n\r\n\r\n") * 55 + b"--X--",
    ],
    ids=[
        "empty parts", "nearly the boundary", "boundaries", "line ends", "dashes", "escapes", "backslashes",
        "escaped marks", "blanks", "marks",
    ],
)  # fmt: skip
async def test_the_work_is_bounded(body: bytes) -> None:
    """Nine thousand parts in 126 kB held up everybody for seconds."""
    for kind in ("multipart/form-data; boundary=X", f"multipart/form-data; boundary={'a' * 69}b", _URLENCODED):
        began = time.process_time()
        with suppress(BadForm):
            await sent(kind, body)
        assert time.process_time() - began < 0.5
