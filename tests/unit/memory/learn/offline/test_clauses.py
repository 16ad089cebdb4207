"""Tests which facts people tell of themselves in German, Spanish, French and Japanese."""

from __future__ import annotations

from datetime import date

import pytest

from languages import LANGUAGES, Language
from memory.learn.offline.patterns import extract
from memory.learn.offline.statements import CarriedSubject, statements
from tests.kit.tables import each_row


def told(text: str) -> str:
    return "; ".join(f"{fact.key}={fact.value}" for fact in extract(text, today=date(2026, 11, 21)))


@each_row(("text", "facts"), [
        ("Ich heiße Jorinde und wohne seit Mai in Husum.", "name=Jorinde; home=Husum"),
        ("Übrigens, mein Geburtstag ist am 4. März.", "birthday=4. März"),
        ("Ich arbeite als Gärtnerin bei der Stadt.", "occupation=Gärtnerin; employer=Stadt"),
        ("Je travaille comme comptable chez Renault.", "occupation=comptable; employer=Renault"),
        ("Ich vertrage keine Milch und mag keinen Spinat.", "allergy=Milch; dislikes=Spinat"),
        ("Sabine ist meine Frau und mag keinen Spinat.", "wife=Sabine"),
        ("Wir haben eine Tochter, Lena.", "daughter=Lena"),
        ("Wir haben zwei Söhne, Jan und Nils.", "son=Jan; son=Nils"),
        ("Mis hermanas se llaman Eva y Luz.", "sister=Eva; sister=Luz"),
        ("J'ai deux fils, Hugo et Léo.", "son=Hugo; son=Léo"),
        ("Ich hab Bluthochdruck und nehme Ramipril.", "condition=Bluthochdruck"),
        ("Tengo diabetes tipo 2.", "condition=diabetes tipo 2"),
        ("J'ai de l'asthme.", "condition=asthme"),
        ("Ich bin jetzt in Rente.", "occupation=in Rente"),
        ("Letzte Woche bin ich nach Wien umgezogen.", "home=Wien"),
        ("Me mudé a Bilbao ayer.", "home=Bilbao"),
        ("昨日大阪に引っ越した。", "home=大阪"),
        ("Wir haben eine Katze, die heißt Mokka.", "pet=Katze Mokka"),
        ("Meine Schwester Ute wohnt in Kiel.", "sister=Ute"),
        ("Ich bin allergisch gegen Pollen und Hausstaub.", "allergy=Pollen; allergy=Hausstaub"),
        ("Ich kann Rosenkohl nicht ausstehen.", "dislikes=Rosenkohl"),
        ("Me llamo Itziar y vivo en Getxo.", "name=Itziar; home=Getxo"),
        ("Tengo una gata que se llama Nube.", "pet=gata Nube"),
        ("Mi hermano Unai vive en Bilbao.", "brother=Unai"),
        ("No soporto el brócoli.", "dislikes=brócoli"),
        ("Je m'appelle Maëlle et j'habite à Quimper.", "name=Maëlle; home=Quimper"),
        ("Je travaille comme libraire à Metz.", "occupation=libraire"),
        ("On a un chat qui s'appelle Pacha.", "pet=chat Pacha"),
        ("Mon frère Loïc habite à Vannes.", "brother=Loïc"),
        ("Je suis allergique aux crevettes.", "allergy=crevettes"),
        ("仙台に住んでいます。", "home=仙台"),
        ("私の名前は航平です。", "name=航平"),
        ("うちの犬の名前はモカです。", "pet=犬 モカ"),
        ("エビアレルギーです。", "allergy=エビ"),
        ("納豆が苦手です。", "dislikes=納豆"),
    ])  # fmt: skip
def test_what_people_tell_of_themselves_is_read(text: str, facts: str) -> None:
    """Each in the language it is told in, whatever the agent's."""
    assert told(text) == facts


@each_row("text", [
        "Heiße ich Jorinde?", "Ich heiße nicht Jorinde.", "Wenn ich in Husum wohne, fahre ich Rad.",
        "Er sagt, ich wohne in Husum.", "Bitte vergiss, dass ich in Husum wohne.", "Er wohnt in Husum.",
        "¿Vivo en Getxo?", "No vivo en Getxo.", "Si vivo en Getxo, será por ti.", "Ella vive en Getxo.",
        "J'habite à Quimper ?", "Je n'habite pas à Quimper.", "Il habite à Quimper.", "Oublie que j'habite à Quimper.",
        "仙台に住んでいますか？", "仙台には住んでいません。", "前は仙台に住んでいた。",
    ])  # fmt: skip
def test_questions_denials_conditions_and_others_words_tell_nothing(text: str) -> None:
    """A wrong memory costs more than a missing one."""
    assert told(text) == ""


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I was born in Berlin and my son is a nurse", "hometown=Berlin; son=nurse"),
        ("I am in die-hard fan mode, so what", ""),
        ("We met on the Plaza Mayor", ""),
    ],
)
def test_english_is_not_read_by_the_patterns_of_other_languages(text: str, facts: str) -> None:
    """Short words mean other things there."""
    assert told(text) == facts


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_sentence_that_never_ends_is_left_alone(code: Language) -> None:
    """Time stays bounded whatever is pasted."""
    assert statements("ich wohne in " + "a " * 5_000, code, date(2026, 11, 21), CarriedSubject()) == []


@each_row(
    ("text", "facts"),
    [
        ("Ich bin allergisch gegen Pollen und mein Hund heißt Bodo.", "allergy=Pollen; pet=Hund Bodo"),
        ("Ich mag Jazz, Rock und mein Bruder mag Metal.", "likes=Jazz; likes=Rock"),
        ("Me gusta el té y mi perro se llama Rufo.", "likes=té; pet=perro Rufo"),
        ("Soy alérgica al polen y mi hermana vive en Lugo.", "allergy=polen"),
        ("J'aime le jazz et mon chien s'appelle Nino.", "likes=le jazz; pet=chien Nino"),
        ("Je suis allergique aux noix et ma sœur habite à Lille.", "allergy=noix"),
    ],
)
def test_a_list_ends_where_another_clause_begins(text: str, facts: str) -> None:
    """Nobody is allergic to a dog's name."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("Ich habe morgen um 10 einen Zahnarzttermin.", "plan=morgen (2026-11-22) um 10 einen Zahnarzttermin"),
        ("Am Freitag hab ich meine Fahrprüfung.", "plan=Am Freitag (2026-11-27) meine Fahrprüfung"),
        ("Tengo una entrevista el viernes a las 9.", "plan=una entrevista el viernes (2026-11-27) a las 9"),
        ("Mañana tengo cita con el dentista.", "plan=Mañana (2026-11-22) cita con el dentista"),
        (
            "J'ai rendez-vous chez le dentiste jeudi à 15h.",
            "plan=rendez-vous chez le dentiste jeudi (2026-11-26) à 15h",
        ),
        ("Demain j'ai un entretien d'embauche.", "plan=Demain (2026-11-22) un entretien d'embauche"),
    ],
)
def test_an_appointment_is_a_plan_with_its_time(text: str, facts: str) -> None:
    assert told(text) == facts
