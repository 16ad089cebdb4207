"""Crooked sentences of six languages that once became wrong facts, each one of its kind, beside plain ones."""

from __future__ import annotations

from datetime import date

from memory.keys import RELATIONS
from memory.learn.offline.patterns import extract
from tests.kit.tables import each_row


def told(text: str) -> str:
    return "; ".join(f"{fact.key}={fact.value}" for fact in extract(text, today=date(2026, 11, 21)))


@each_row(
    ("text", "facts"),
    [
        ("I live in Paris, no I mean Berlin", "home=Berlin"), ("I live in Paris, no wait, Berlin", "home=Berlin"),
        ("My dog is called Rex, sorry I meant Max", "pet=dog Max"), ("I live in Bath not Bristol", "home=Bath"),
        ("I live in Paris, no wait, I forgot", ""), ("Ich wohne in Wien, nein, ich meine Graz", "home=Graz"),
        ("Ich wohne in Graz nicht in Wien", "home=Graz"), ("J'habite à Lyon, enfin non, à Lille", "home=Lille"),
        ("J'habite à Lyon, non pardon, Lille", "home=Lille"), ("Vivo en Lugo, digo, Vigo", "home=Vigo"),
        ("我住在杭州，不对，苏州", "home=苏州"), ("我住在苏州不是杭州", "home=苏州"), ("東京に住んでます、いや、大阪", "home=大阪"), ("犬が好き、やっぱり猫", "likes=猫"),
        ("I live in Paris, no, Lyon", "home=Lyon"),
        ("I live in Paris, no, Lyon, and I like tea", "home=Lyon; likes=tea"),
        ("My favourite color is red, no, it's raining", ""), ("My favourite color is red, no, his name is Max", ""),
        ("Meine Lieblingsfarbe ist Rot, nein, Grün", "favourite-color=Grün"),
        (
            "Ich fliege am 4. Dezember nach Rom, nein, am 5. Dezember",
            "plan=fliege am 5. Dezember (2026-12-05) nach Rom",
        ),
        ("Ma couleur préférée est le rouge, euh non, le bleu", "favourite-color=bleu"),
        ("Je m'appelle Luc, non, Lucas", "name=Lucas"),
        ("El viernes viajo a Lisboa, no, el sábado", "plan=el sábado (2026-11-28) viajo a Lisboa"),
        ("Mi cumpleaños es el 2 de mayo, digo, el 3 de mayo", "birthday=3 de mayo"), ("我叫李明，不，李民", "name=李民"),
        ("好きな色は赤、いや、青です", "favourite-color=青"),
    ],
)  # fmt: skip
def test_of_a_change_of_mind_the_last_word_counts(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(
    "text",
    [
        "My flight to Berlin is at 7:40, flight SN2283", "I'm 40 minutes away", "I'm at gate 34",
        "it cost me 40 euros", "ich bin um 40 Euro ärmer", "Ich bin 40 Minuten entfernt", "j'ai 40 euros",
        "tengo 40 euros", "我有40块钱", "40分で着きます",
    ],
)  # fmt: skip
def test_a_clock_time_a_price_or_a_flight_is_no_age(text: str) -> None:
    assert "age=" not in told(text)


@each_row(
    "text",
    [
        "my sister works at a bakery and hates onions", "My brother is a nurse, allergic to nuts and lives in Rome",
        "Meine Schwester arbeitet als Bäckerin und mag keine Zwiebeln",
        "Ma sœur est boulangère et déteste les oignons", "Mi hermana es panadera y odia la cebolla",
        "我妹妹是护士，对花生过敏，住在北京", "妹はパン屋で働いていて、玉ねぎが嫌いです", "my dad's boss is called Frank",
        "her husband Tom is allergic to cats", "他老婆叫王芳",
    ],
)  # fmt: skip
def test_a_relatives_job_and_taste_are_not_ones_own(text: str) -> None:
    assert all(fact.key in RELATIONS for fact in extract(text, today=date(2026, 11, 21)))


@each_row(
    ("text", "facts"),
    [
        ("my sister is a nurse", "sister=nurse"), ("my brother works as a plumber", "brother=plumber"),
        ("Meine Mutter ist Ärztin", "mother=Ärztin"), ("Ma sœur est infirmière", "sister=infirmière"),
        ("Mi hermana es enfermera", "sister=enfermera"), ("我妹妹是护士，高血压", "sister=护士"), ("妹は看護師です", "sister=看護師"),
        ("My mum is a saint", ""),
        ("I have a brother named Tom and a sister named Grace", "brother=Tom; sister=Grace"),
        ("I have a sister called Grace, a nurse", "sister=Grace"),
        ("Ich habe einen Bruder namens Tom und eine Schwester namens Grace", "brother=Tom; sister=Grace"),
        ("J'ai un frère qui s'appelle Tom et une sœur qui s'appelle Grace", "brother=Tom; sister=Grace"),
        ("Tengo un hermano que se llama Tom y una hermana que se llama Grace", "brother=Tom; sister=Grace"),
        ("我有一个哥哥叫小明，一个妹妹叫小红", "brother=小明; sister=小红"), ("兄は健太で、妹は由美です", "brother=健太; sister=由美"),
    ],
)  # fmt: skip
def test_a_relative_has_a_job_and_several_have_names(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("Priya here", "name=Priya"), ("hi, Priya here!", "name=Priya"), ("Nothing here", ""),
        ("ich bin Katrin und wohne in Köln", "name=Katrin; home=Köln"), ("ich bin müde", ""), ("ich bin Vater", ""),
        ("je suis Luc", "name=Luc"), ("je suis prêt", ""), ("soy Marta", "name=Marta"),
        ("soy vegetariano", "diet=vegetariano"), ("我是李雷", "name=李雷"), ("我是老师", "occupation=老师"), ("我是王者", ""),
        ("健太です", "name=健太"), ("健太が来ました", ""), ("東京です", ""),
    ],
)  # fmt: skip
def test_a_name_is_read_where_nothing_else_is_meant(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("Ich mag Tee und Krimis, aber keinen Rosenkohl", "likes=Tee; likes=Krimis; dislikes=Rosenkohl"),
        ("I like tea but not coffee", "likes=tea; dislikes=coffee"),
        ("J'aime le thé mais pas le café", "likes=le thé; dislikes=le café"),
        ("Me gusta el té pero no el café", "likes=té; dislikes=café"),
        ("お茶は好きですが、コーヒーは好きじゃないです", "likes=お茶; dislikes=コーヒー"),
        ("I'm flying to Rome on Friday, so excited", "plan=flying to Rome on Friday (2026-11-27)"),
        (
            "Tomorrow I'm flying to Rome, I'm allergic to nuts",
            "plan=flying to Rome tomorrow (2026-11-22); allergy=nuts",
        ),
        ("Vendredi je pars à Rome, trop hâte", "plan=Vendredi (2026-11-27) je pars à Rome"),
        ("周五我飞北京，好期待", "plan=周五 (2026-11-27)我飞北京"),
    ],
)
def test_a_taste_has_its_exception_and_a_plan_an_end(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("弟弟小刚来了", ""), ("我弟弟叫小刚", "brother=小刚"), ("我弟弟小刚要结婚了", ""), ("我住在哪里", ""), ("我叫什么名字", ""),
        ("how do I say 'I am vegetarian' in French", ""),
        ('how do i say "i am a vegetarian" in french', ""),
        ("fwd: Hi, I'm Bob and I live in Leeds", ""), ("my character is a 40-year-old elf named Bob", ""),
        ("If I lived in Rome, I'd be a cook", ""), ("Wenn ich in Rom lebe, bin ich Koch", ""),
        ("si j'habite à Rome, je suis cuisinier", ""), ("si vivo en Roma, soy cocinero", ""), ("如果我住在罗马，我就是厨师", ""),
        ("もし東京に住んだら、猫を飼います", ""), ("I'd love to live in Lisbon", ""), ("Ich würde gern in Rom leben", ""),
        ("J'aimerais vivre à Rome", ""), ("Me gustaría vivir en Roma", ""), ("我想住在海边", ""), ("東京に住みたいです", ""),
        ("I used to live in Hull", ""), ("Ich habe früher in Rom gewohnt", ""), ("antes vivía en Roma", ""),
        ("我以前住在武汉", ""), ("昔は東京に住んでいました", ""), ("I was born in Riga", "hometown=Riga"),
        ("Ich bin in Riga geboren", "hometown=Riga"), ("Je suis née à Riga", "hometown=Riga"),
        ("Nací en Riga", "hometown=Riga"), ("我出生在大连", "hometown=大连"), ("札幌で生まれました", "hometown=札幌"),
        ("誕生日は4月3日です", "birthday=4月3日"), ("4月3日生まれです", "birthday=4月3日"), ("yeah right, I love mondays", ""),
        ("I'm vegan, right?", ""), ("I'm not a nurse", ""), ("Ich bin kein Lehrer", ""), ("Je ne suis pas prof", ""),
        ("No soy profesor", ""), ("我不是老师", ""), ("医者ではありません", ""), ("we're called Gravel Hymn", ""),
        ("把这段翻成英文：我叫陈露，今年45岁", ""), ("übersetz das ins Englische: Ich heiße Max und wohne in Köln", ""),
        ("mets ça en anglais : je m'appelle Luc", ""), ("ponlo en inglés: me llamo Luis y vivo en Cádiz", ""),
        ("これを英語に訳して：私の名前は花子です", ""), ("je n'aime pas le thé", "dislikes=le thé"),
        ("j'habite à Lille pas à Lyon", "home=Lille"), ("Ich bin Lokführer von Beruf.", "occupation=Lokführer"),
        ("Ich bin Koch", "occupation=Koch"), ("Ich bin Bauer Heinrich", ""),
        ("J'ai deux chiens, Rex et Filou", "pet=chien Rex; pet=chien Filou"), ("猫のタマを飼っています", "pet=猫 タマ"),
        ("犬を飼っていて、名前はポチです", "pet=犬 ポチ"), ("I live with my boyfriend Tom in Bristol", "home=Bristol"),
        ("I live with my parents in peace", ""),
    ],
)  # fmt: skip
def test_nothing_is_read_across_or_beside_a_clause(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("I play the oboe", "hobby=oboe"), ("I play guitar", "hobby=guitar"), ("I play the fool", ""),
        ("Je joue du piano", "hobby=piano"), ("Toco el piano", "hobby=piano"),
    ],
)  # fmt: skip
def test_an_instrument_is_a_hobby_with_or_without_its_article(text: str, facts: str) -> None:
    assert told(text) == facts


@each_row(("said", "value"), [
        ("Soy alérgico a las nueces", "nueces"), ("Soy alérgica al polen", "polen"), ("soy alergico a los gatos", "gatos"),
        ("Tengo alergia a la leche", "leche"), ("Tengo alergia a las avispas", "avispas"),
    ])  # fmt: skip
def test_an_article_is_no_part_of_an_allergy(said: str, value: str) -> None:
    assert [one.value for one in extract(said, today=date(2026, 11, 21)) if one.key == "allergy"] == [value]
