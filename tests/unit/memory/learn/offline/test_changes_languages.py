"""How people take something back in German, Spanish, French and Japanese."""

from __future__ import annotations

import pytest

from memory.learn.offline.changes import changes, to_forget
from tests.kit.tables import each_row


@each_row(
    ("text", "what"),
    [
        ("Bitte vergiss, dass ich einen Papagei habe.", "Papagei"),
        ("Kannst du das mit dem Tauchkurs löschen?", "Tauchkurs"),
        ("Lösch alles, was du über mich weißt", "all"),
        ("Por favor, borra lo de la mudanza", "mudanza"),
        ("Olvida que tengo un loro", "loro"),
        ("Oublie que j'ai un perroquet, s'il te plaît", "perroquet"),
        ("Tu peux supprimer mon adresse ?", "adresse"),
        ("引っ越しの話は忘れてください", "引っ越し"),
        ("全部消して", "all"),
    ],
)
def test_a_request_to_forget_names_what_is_meant(text: str, what: str) -> None:
    """Its words are searched for, so they must be the bare ones."""
    assert to_forget(text) == what


@each_row("text", [
        "Ich vergesse ständig meinen Schirm", "Se me olvidó el paraguas", "J'oublie toujours mon parapluie", "傘を忘れた",
        "Vergiss bitte nicht, den Müll rauszubringen", "Ich habe schon wieder meinen Schirm vergessen",
        "Diesen Sommer werde ich nie vergessen", "Vergiss es, lass uns von was anderem reden", "Der Film war zum Vergessen",
        "No te olvides del pan", "no olvides que mañana hay clase", "Olvídalo, cambiemos de tema",
        "N'oublie pas le pain", "J'ai encore oublié mon parapluie", "Laisse tomber, on parle d'autre chose",
    ])  # fmt: skip
def test_to_be_forgetful_is_no_request(text: str) -> None:
    """People talk about forgetting."""
    assert to_forget(text) is None


@each_row(
    ("text", "what"),
    [
        ("Ich bin keine Vegetarierin mehr", "Vegetarierin"),
        ("Svenja und ich haben uns getrennt", "Svenja"),
        ("Ya no soy vegetariana", "vegetariana"),
        ("Vendí la furgoneta", "furgoneta"),
        ("Je ne suis plus infirmier", "infirmier"),
        ("J'ai vendu le scooter", "scooter"),
        ("翔太とは別れました", "翔太"),
        ("もうベジタリアンじゃないです", "ベジタリアン"),
        ("Seit der Trennung von Svenja schlafe ich schlecht", "Svenja"),
        ("Desde la ruptura con Pablo duermo mal", "Pablo"),
        ("Tuvimos que sacrificar a Luna ayer", "Luna"),
        ("Depuis ma rupture avec Karim, je dors mal", "Karim"),
        ("On a dû faire piquer notre Minou", "Minou"),
    ],
)
def test_what_is_over_is_named(text: str, what: str) -> None:
    """The fact that holds these words ends."""
    assert [ended.what for ended in changes(text).ended] == [what]


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        ("Nein, ich heiße nicht Silke, sondern Silja", "Silke", "Silja"),
        ("No me llamo Elena, me llamo Helena", "Elena", "Helena"),
        ("Non, je ne m'appelle pas Anna mais Hanna", "Anna", "Hanna"),
        ("健二じゃなくて健司です", "健二", "健司"),
    ],
)
def test_a_correction_tells_what_was_wrong_and_what_is_right(text: str, wrong: str, right: str) -> None:
    """Both are needed to put the fact right."""
    read = changes(text)
    assert read.corrects
    assert [(denied.what, denied.new) for denied in read.denied] == [(wrong, right)]


@each_row(
    ("text", "what"),
    [
        ("Das mit dem Kredit war dumm von mir. Streich das.", "Kredit"),
        ("Vergiss meine letzte Nachricht!", "last"),
        ("lo del divorcio haz como que no te lo dije", "divorcio"),
        ("給料の件ですが、お忘れ願います", "給料"),
        ("工资的事别再记着了", "工资"),
    ],
)
def test_a_request_to_forget_is_read_by_its_parts(text: str, what: str) -> None:
    assert to_forget(text) == what


@pytest.mark.parametrize(
    "text", ["手術をすることになりまして、入院は5日間です", "パスワードを忘れてしまった", "今天把他微信删了"]
)
def test_a_statement_with_words_for_forgetting_is_no_request(text: str) -> None:
    assert to_forget(text) is None
