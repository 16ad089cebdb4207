"""Tests of how the bytes of a text file are read, from systems of any age and country."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.reading.plain_text import decoded
from tests.kit.tables import each_row

ZH = "今天天气很好，我们去公园散步。明天下午三点要开会，请记得带上合同和护照。"
TRADITIONAL = "今天天氣很好，我們去公園散步，然後一起吃飯。明天下午三點要開會，請記得帶上護照。"
JA = "私は猫が好きです。日本語の文章を書きます。明日の午後三時に会議があります。"
KO = "안녕하세요. 오늘은 날씨가 좋아서 공원에 갑니다. 내일 오후에 회의가 있습니다."
DE = "Ein schöner Tag für Grüße aus Köln. Morgen um drei ist eine Besprechung – über 100 € gespart!"
FR = "Voilà l’été à Genève : déjà vingt-huit degrés ! Ma sœur préfère le thé vert au café. Ça coûte 12 €."
ES = "Mañana a las tres hay una reunión. ¿Cómo estás? El año pasado fuimos a España."
RU = "Привет, как дела? Сегодня хорошая погода. Завтра в три часа будет встреча."
EL = "γειά σου κόσμε, τι κάνεις σήμερα; Αύριο στις τρεις έχουμε συνάντηση."
HE = "שלום עולם מה שלומך היום. מחר בשלוש יש פגישה, אל תשכח את הדרכון."
AR = "مرحبا، كيف حالك اليوم؟ الطقس جميل جدا ونحن ذاهبون إلى الحديقة."
TH = "สวัสดีครับ วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนสาธารณะกันเถอะ"
PL = "Jutro jest spotkanie, proszę nie zapomnieć paszportu. Siostra woli zieloną herbatę. Źródło: gazeta."
CS = "Příliš žluťoučký kůň úpěl ďábelské ódy. Zítra máme schůzku ve tři hodiny."
TR = "Yarın saat üçte toplantı var, lütfen sözleşmeyi unutmayın. Dün hava çok güzeldi."
IS = "Halló, hvað segir þú gott? Það er fundur á morgun klukkan þrjú."
OLD = [
    (ZH, "gb18030"), (ZH, "gbk"), (TRADITIONAL, "big5"), (TRADITIONAL, "gb18030"), (JA, "cp932"), (JA, "euc_jp"), (KO, "cp949"),
    (KO, "euc_kr"), (DE, "cp1252"), (FR, "cp1252"), (ES, "cp1252"), (ES, "latin-1"), (IS, "cp1252"), (RU, "cp1251"),
    (RU, "koi8_r"), (RU.upper(), "cp1251"), (EL, "cp1253"), (HE, "cp1255"), (AR, "cp1256"), (TH, "cp874"), (PL, "cp1250"), (CS, "cp1250"),
    (TR, "cp1254"), ("Temp: 21°C, “fine”, he’d said – 5 €", "cp1252"), ("café", "cp1252"), ("你好", "gbk"), ("カタカナ データ", "cp932"),
]  # fmt: skip
WIDE = [ZH, JA, KO, DE, RU, "Hello\nworld\n", "你好\n世界\n一二三"]


@each_row(("text", "encoding"), OLD)
def test_a_text_in_an_older_encoding_is_read_as_what_it_is(text: str, encoding: str) -> None:
    for whole in (text, f"{text}\r\n" * 50, f"name,city\r\nAda,Lisbon\r\n{text}\r\n12,34\r\n"):
        assert decoded(whole.encode(encoding), chars=10_000) == whole


NAMES = [
    ("张伟,李娜,王芳,刘洋,陈静,杨柳,赵磊,黄蓉,周杰,吴刚", "gbk"),
    ("姓名\r\n王秀英\r\n李桂兰\r\n张淑珍\r\n刘德华\r\n陈奕迅\r\n徐峥\r\n孙俪\r\n胡歌\r\n马伊琍\r\n郭富城\r\n", "gbk"),
    ("欧阳娜娜 13800000000\n司马懿 13900000000\n诸葛亮 13700000000\n许褚\n张郃\n徐晃\n", "gb18030"),
    ("Name;Tel\nZhang,张梓涵,138\nLi,李昊轩,139\nWang,王雨桐,137\nXu,徐诗琪\nYang,杨浩宇\n", "gbk"),
    ("北京 上海 广州 深圳 杭州 苏州 武汉 南京 西安 郑州 徐州 扬州", "gbk"),
    ("枸杞 3 kg\n当归 2 kg\n黄芪 1 kg\n川芎\n茯苓\n陈皮\n白术\n薄荷\n杏仁\n", "gbk"),
    ("田中太郎,佐藤花子,鈴木一郎,高橋健,渡辺和子,伊藤誠,山本洋介,中村良子,小林麗", "euc_jp"),
    ("東京 大阪 横浜 名古屋 札幌 福岡 神戸 京都 広島 仙台 和歌山 盛岡 留萌", "euc_jp"),
]


@each_row(("text", "encoding"), NAMES)
def test_a_list_of_names_is_read_though_it_holds_no_common_words(text: str, encoding: str) -> None:
    """People, places, herbs: few of their characters are among the commonest of the language."""
    assert decoded(text.encode(encoding), chars=10_000) == text


@each_row(
    ("text", "encoding"),
    [
        ("김철수,이영희,박민수,최지우,정우성,강동원,조인성,윤은혜,장동건,임윤아", "cp949"),
        ("ΠΑΠΑΔΟΠΟΥΛΟΣ ΓΕΩΡΓΙΟΣ\nΝΙΚΟΛΑΟΥ ΜΑΡΙΑ\n" * 3, "cp1253"),
        ("ИВАНОВ ПЁТР ФЁДОРОВИЧ\nЮЩУК ШУРА\n" * 3, "cp866"),
        ("田中太郎,佐藤花子,鈴木一郎,高橋健,渡辺和子", "cp932"),
    ],
)
def test_names_in_another_encoding_are_not_read_as_chinese(text: str, encoding: str) -> None:
    """Their bytes make Chinese characters as well."""
    read = decoded(text.encode(encoding), chars=10_000)
    assert read is None or not any("\u4e00" <= char <= "\u9fff" for char in read)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", WIDE, ids=range(len(WIDE)))
def test_utf_16_is_read_with_and_without_its_mark(text: str, encoding: str) -> None:
    """Windows' editor writes the mark, other programs don't."""
    assert decoded(text.encode(encoding), chars=10_000) == text
    assert decoded(f"\ufeff{text}".encode(encoding), chars=10_000) == text


@each_row(
    ("text", "encoding"),
    [
        ("会議", "cp932"),  # two characters may be anything
        ("ｱｲｳｴｵ", "cp932"),
        ("Grüße aus Köln", "cp437"),
        ("Grüße aus Köln", "cp850"),
    ],
)
def test_an_encoding_that_would_be_guessed_wrong_is_not_read(text: str, encoding: str) -> None:
    """Nonsense told as somebody's text is worse than none."""
    assert decoded(text.encode(encoding), chars=100) is None


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0>\0\x01\0\0\0" * 20, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0",
     b"{\\rtf1 hello}", b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(range(200, 256)) * 9],
)  # fmt: skip
def test_what_is_no_text_is_not_read(data: bytes) -> None:
    """A program's bytes hold zeros too, as UTF-16 does."""
    assert decoded(data, chars=10_000) is None


def test_a_damaged_character_does_not_make_a_text_unreadable() -> None:
    data = (ZH * 9).encode()
    assert decoded(data[:300] + b"\xff" + data[300:], chars=10_000) == f"{(ZH * 9)[:100]}\ufffd{(ZH * 9)[100:]}"


def test_the_first_letters_above_ascii_decide_for_a_long_text() -> None:
    """Names may come late in a table. No mark of an encoding is left in the text."""
    table = "id;name\r\n" * 20_000
    for text in (table + RU * 1_000, RU * 2_000 + table):
        for encoding in ("cp1251", "utf-8"):
            assert decoded(text.encode(encoding), chars=10**6) == text
    assert decoded(b"\xef\xbb\xbfa;b", chars=100) == "a;b"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    """Whatever people send, and what is taken for text can be stored as UTF-8."""
    text = decoded(data, chars=100)
    if text is not None:
        assert "\x00" not in text
        text.encode()


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1), st.integers(1, 50))
def test_utf_8_is_read_as_such(text: str, times: int) -> None:
    assert decoded((text * times).encode(), chars=10_000) == (text * times).removeprefix("\ufeff")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "gb18030"])
def test_the_beginning_of_a_text_ends_with_a_whole_character(encoding: str) -> None:
    text = "我们今天去公园散步，天气是很好的。" * 100
    shown = decoded(text.encode(encoding), chars=101)
    assert shown is not None and 101 <= len(shown) < 300 and text.startswith(shown)
