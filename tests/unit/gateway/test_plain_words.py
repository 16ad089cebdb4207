"""Plain words that ask for a command are told from words that say something."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.plain import PlainRequest, requested
from memory.learn.offline.changes import to_forget
from tests.kit.tables import each_row

_FORGET = [
    "forget that", "Forget that.", "please forget this", "Forget about that!", "don't remember that",
    "do not save this please", "no, forget what I just said", "Don’t keep that", "forget it all",
    "忘掉这个", "请忘掉那件事", "把这个忘掉", "别记住这个", "不要保存我刚才说的", "忘掉我刚才说的吧", "我刚才说的忘了吧",
    "vergiss das wieder", "Vergiss bitte, was ich eben gesagt habe.", "Kannst du das wieder vergessen?", "merk dir das nicht",
    "oublie ce que je viens de dire", "Oublie ça stp", "ne retiens pas ça", "olvida lo que acabo de decir", "Olvida eso.",
    "no guardes eso", "please forget the last thing I told you",
    "Vergiss das eben Gesagte", "olvida lo último que te dije", "olvídate de lo que te acabo de contar",
    "oublie la dernière chose que je t'ai dite", "oubliez ce que je viens de vous raconter", "さっき言ったことは忘れて", "今言ったことは忘れてください", "それは覚えないで",
]  # fmt: skip
_WRONG = [
    "that's wrong", "That is not true.", "no, that's not right", "this isn't correct", "you got that wrong",
    "You remember wrong", "that was wrong", "那不对", "这是错的", "你记错了", "那错了。", "Das stimmt nicht", "c'est faux",
    "eso no es verdad", "それは違うよ",
]  # fmt: skip
_TALK = [
    "forget it", "Forget that I said Lisbon, I meant Porto", "never mind", "wrong", "that's wrong on so many levels",
    "don't forget that", "I forget that all the time", "what is wrong?", "you are wrong", "that's right", "忘了吧",
    "vergiss es", "olvídalo", "laisse tomber", "vergiss nicht, Milch zu kaufen", "忘れないで", "不对", "delete that", "erase my last message", "删掉那条", "把这条删掉", "can you delete this", "我忘了", "忘掉过去很难", "is that not true of all of them", "delete that file in the cloud for me", "",
]  # fmt: skip


@each_row("text", _FORGET)
def test_a_wish_to_have_something_forgotten_is_understood(text: str) -> None:
    assert requested(text, modelless=False) == PlainRequest("forget")


@each_row("text", _WRONG)
def test_a_word_that_something_is_wrong_is_understood(text: str) -> None:
    assert requested(text, modelless=False) == PlainRequest("wrong")


@each_row("text", _TALK)
def test_what_says_more_or_something_else_is_ordinary_talk(text: str) -> None:
    assert requested(text, modelless=False) is None


@given(st.text(max_size=200))
def test_any_text_is_judged(text: str) -> None:
    simple = (None, PlainRequest("forget"), PlainRequest("wrong"), PlainRequest("unkept"))
    assert requested(text, modelless=True) in simple or to_forget(text)


@each_row(
    "text",
    [
        "my locker code is 3391, dont save that", "Don't keep this: I am moving out",
        "mein Spind hat 3391, bitte nicht speichern", "el pin es 3391, no lo guardes",
        "le code est 3391, ne le garde pas", "我的柜子是3391，别记住", "ロッカーは3391です。覚えないで",
    ],
)  # fmt: skip
def test_a_message_that_asks_not_to_be_kept_is_a_request_without_a_model(text: str) -> None:
    """It says something and takes it back at once; a model answers what it says."""
    assert requested(text, modelless=True) == PlainRequest("unkept")
    assert requested(text, modelless=False) is None


def test_what_is_named_is_a_request_only_without_a_model() -> None:
    """A model has a tool for it, and may be spoken to of forgetting in other ways."""
    assert requested("please forget that I play chess", modelless=True) == PlainRequest("topic", "I play chess")
    assert requested("please forget that I play chess", modelless=False) is None
