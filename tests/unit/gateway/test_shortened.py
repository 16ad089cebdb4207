"""A text that is too long to be kept is shortened, and no half of a secret stays at the cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.reception.intake import as_kept
from memory.text.guard import clean
from memory.text.secrets.redact import redact

KEY = "-----BEGIN PRIVATE KEY-----\n" + "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2 for _ in range(98))


@given(st.text(max_size=300), st.integers(300, 1_000))
def test_a_text_within_the_bound_is_kept_whole(text: str, most: int) -> None:
    assert as_kept(text, most, clean=clean, redact=redact) == (redact(clean(text)), clean(text), 0)


@pytest.mark.parametrize("most", [200, 1_000, 32_000])
@pytest.mark.parametrize("times", [2, 50])
def test_of_a_longer_one_beginning_and_end_are_kept_with_a_note(most: int, times: int) -> None:
    """The note says how much is missing, so that nobody takes the two parts for one."""
    text = "first " + "and so on " * (most * times // 10) + "last"
    masked, original, length = as_kept(text, most, clean=clean, redact=redact)
    assert masked == original and len(masked) <= most
    assert masked.startswith("first ") and masked.endswith("last")
    [note] = re.findall(r"\n\[… \d+ characters left out …\]\n", masked)
    assert length == len(text) == len(masked) - len(note) + int(re.sub(r"\D", "", note))


@pytest.mark.parametrize("before", range(8_000, 15_200, 200))
def test_no_half_of_a_secret_stays_at_the_cut(before: int) -> None:
    """A key without its end is none that a mask would know."""
    words = ("word " * 3_000)[:before]
    text = f"{words}{KEY}\n-----END PRIVATE KEY-----{'after ' * 5_000}"
    for said in (text, text[::-1].replace(KEY[::-1], KEY)):
        masked, original, _ = as_kept(said, 32_000, clean=clean, redact=redact)
        assert "BgkqhkiG9w0BAQEFAASC" not in masked
        assert original == masked and len(masked) <= 32_000
