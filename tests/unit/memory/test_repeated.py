"""A secret that the model repeats is masked by its value, however it is dressed up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.secrets.redact import redact
from memory.text.secrets.repeated import masking
from tests.kit.tables import each_row

KEY = "-----BEGIN PRIVATE KEY-----\n" + "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + str(n) * 32 for n in range(4))
SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@each_row(
    "said",
    [
        "Your password is Sunfl0wer!92.", "s u n f l 0 w e r ! 9 2", "S-u-n-f-l-0-w-e-r-!-9-2",
        "S, u, n, f, l, 0, w, e, r, !, 9, 2", '"Sunfl0wer!92"', "`Sunfl0wer!92`", "```\nSunfl0wer!92\n```",
        "**Sunfl0wer!92**", "SUNFL0WER!92", "Sunfl0wer\\!92", "Ｓｕｎｆｌ０ｗｅｒ！９２", "Ｓｕｎ－ｆｌ０．ｗｅｒ！９２", "Sun\u200bfl0wer!92",
        "`S` `u` `n` `f` `l` `0` `w` `e` `r` `!` `9` `2`", "Sunfl0wer\n!92", "xSunfl0wer!92x",
    ],
)  # fmt: skip
def test_a_password_is_masked_in_any_dress(said: str) -> None:
    mask = masking(["my wifi password: Sunfl0wer!92"])
    assert "[secret" in mask(said)
    assert "fl0wer" not in mask(said).lower().replace(" ", "")
    assert "[secret" not in masking([])(said.removeprefix("Your password is "))


@pytest.mark.parametrize(
    ("told", "repeated"),
    [
        ("my pin: 4821", ["It is 4821.", "4 8 2 1", "(4821)", "PIN=4821"]),
        (f"seed phrase: {SEED}", [SEED, SEED.replace(" ", ", "), "1. legal 2. winner 3. thank", "useful legal winner"]),
        (f"my key:\n{KEY}", [KEY.splitlines()[2], "the second line is " + KEY.splitlines()[2].lower()]),
    ],
)
def test_other_secrets_are_masked_whole_and_in_parts(told: str, repeated: list[str]) -> None:
    mask = masking([told])
    for text in repeated:
        assert "[secret" in mask(text), text


def test_what_is_no_secret_stays() -> None:
    mask = masking(["my pin: 4821, my password: Sunfl0wer!92"])
    for text in ("In 1482 and 48210 there were 4820 sunflowers.", "a flower, 92 of them", "4 and 8 are even, 2 and 1"):
        assert mask(text) == text


def test_every_one_of_many_secrets_is_masked() -> None:
    values = [f"aB{nth:04}!xyz" for nth in range(1_000)]
    mask = masking(["\n".join(f"pw: {value}" for value in values)])
    assert mask(", then ".join(values)) == ", then ".join(["[secret: repeated]"] * 1_000)


def test_letters_that_stand_far_apart_are_no_secret() -> None:
    """A disguise has a few signs between two letters, not a line of them."""
    mask = masking(["my password: Sunfl0wer!92"])
    assert "[secret" in mask("Sunfl0" + "-" * 9 + "wer!92")
    apart = "Sunfl0" + "-" * 10 + "wer!92"
    assert mask(apart) == apart


@given(st.text(max_size=60))
def test_what_redact_masks_is_masked(text: str) -> None:
    assert masking([])(text) == redact(text)


@given(st.text(alphabet="abcXYZ019!.- ", min_size=8, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_any_password_is_masked_by_its_value(value: str, before: str, after: str) -> None:
    told = f"my password: {value}"
    masked = redact(told)
    if masked == told or not all(part in told for part in masked.split("[secret: password]")):
        return
    kept = masking([told])(f"{before} {value.strip()} {after}")
    letters = [letter for letter in value if letter.isalnum()]
    if len(letters) >= 8 and " " not in value.strip():
        assert value.strip() not in kept


@given(st.lists(st.text(alphabet="abX019!", min_size=1, max_size=6), min_size=2, max_size=4), st.integers(0, 12))
def test_of_values_that_begin_alike_each_is_masked_wherever_the_text_ends(pieces: list[str], cut: int) -> None:
    """The new password is often the old one with something behind it."""
    values = ["hunter22" + "".join(pieces[:nth]) for nth in range(len(pieces) + 1)]
    mask = masking([f"password: {value}" for value in values])
    for value in values:
        text = f"It is {value}"
        assert "hunter22" not in mask(text), text
        mask(text[: len(text) - cut])
