"""Tells which memories speak of an occasion on a day: a plan that one may ask about, or a birthday.

Invariants: pure. A plan has exactly one day, which was still to come when it was told. What is not sure to happen, only
ends or is due on its day, repeats, or touches illness, death, separation or the law is no plan that is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from memory import keys
from memory.reminders.phrases import read_time
from memory.reminders.readings import Reading
from memory.reminders.tables import LANGUAGES
from memory.store.memories import Memory
from memory.text.language import language_of
from memory.text.words import query_terms

#: The categories of facts that may be plans, that in which only a visit may be one, and that of notes.
_PLANS: Final = frozenset({"plan", "happening"})
_HEALTH: Final = "health"
_NOTES: Final = "decision"
#: The date that was added behind a day, and one that stands by itself.
_ADDED: Final = re.compile(r"\s?\((?:\d{4}-\d\d-\d\d/)?(\d{4}-\d\d-\d\d)\)")
_ADDED_LONGER: Final = re.compile(r"\(\d{4}(?:-\d\d)?\)")
_SPOKEN_YEAR: Final = re.compile(r"[,\s]*(?:\bdel?\s+)?(?<!\d)(?:19|20)\d\d(?:年|(?!\d))")
_ISO_DAY: Final = re.compile(r"(?:\d{4}-|--)(\d\d)-(\d\d)")
#: A day of which nobody can tell the month: 4/9.
_AMBIGUOUS: Final = re.compile(r"\d{1,2}[/.-]\d{1,2}(?:[/.-]\d{2,4})?")


def _any(latin: str, unspaced: str) -> re.Pattern[str]:
    """Returns a pattern for the beginnings of words in Latin script, and for words of Chinese and Japanese."""
    return re.compile(rf"\b(?:{latin})|{unspaced}", re.IGNORECASE)


#: What is unsure, off, repeated, or an end rather than an occasion.
_NO_OCCASION: Final = _any(
    # English
    r"not\b|never\b|no\b|\w+n't\b|cancel|called off|postpon|reschedul|instead|maybe|might|perhaps|probabl|if\b|unless"
    r"|hope|wish|thinking|consider|would\b|could\b|should\b|deadline|due\b|until|till\b|expire|remind|every\b|each\b"
    r"|pay\b|paying|by (?:the|next|this|mon|tues|wednes|thurs|fri|satur|sun|tomorrow|\d|end)"
    # German
    r"|nicht\b|kein|nie\b|niemals|abgesagt|verschob|fällt aus|vielleicht|eventuell|falls\b|wenn\b|statt\b|hoffentlich"
    r"|möchte|würde|könnte|sollte|frist|fällig|bis\b|spätestens|jede[nrsm]?\b|zahl|bezahl|überweis"
    # Spanish
    r"|nunca|jamás|aplaza|pospuest|quizás?\b|tal vez|ojalá|en vez|quisiera|quiero|podría|plazo|vence|hasta\b|cada\b"
    r"|antes de|pag(?:ar|o)\b"
    # French
    r"|ne\b|n'|pas\b|jamais|annul|reporté|peut-être|si\b|s'ils?\b|payer|au lieu|voudrais|pourrais|échéance|avant le"
    r"|jusqu|chaque",
    # Chinese, Japanese
    r"不|没|房租|还款|还贷|缴费|付款|取消|推迟|改期|也许|可能|如果|要是|或者|希望|想|截止|之前|到期|每[天周个月年]"
    r"|ない|ません|中止|キャンセル|延期|かも|もし|たい(?:な|と|です|。|$)|締め?切|まで|毎|たら|れば|支払",
)
#: What makes a plan depend on something, in the message that tells it; what is kept of the plan may not say so.
_CONDITION: Final = _any(
    r"if\b|unless|depend|falls\b|wenn\b|sofern|si\b|s'ils?\b|depende|dépend", r"如果|要是|假如|看情况|たら|れば|次第"
)
#: What people should not be asked about unless they speak of it themselves.
_TENDER: Final = _any(
    r"funeral|burial|memorial|cremat|died|dying|death|dead\b|grave|hospice|diagnos|biops|chemo|radiat|cancer|tumou?r"
    r"|hiv\b|std\b|abortion|miscarr|surger|operation|operate|transplant|scan\b|mri\b|results?\b|therap|psych|rehab|detox"
    r"|divorc|separat|break(?:ing)? ?up|custody|court|trial\b|hearing|lawyer|attorney|prison|jail|lay-?off|laid off"
    r"|fired|evict|bankrupt|ultrasound|gyn[ae]|ivf\b|pregnan|police|vet\b|put (?:him|her|it|them) down"
    r"|beerdig|beisetz|trauer|gestorben|stirbt|tod\b|todes|tot\b|grab\b|hospiz|bestrahl|krebs|abtreib|fehlgeburt"
    r"|operier|op\b|befund|ergebnis|entzug|scheid|trennung|sorgerecht|gericht|anw[aä]lt|gefängnis|kündig|ultraschall"
    r"|schwanger|polizei"
    r"|entierro|velorio|velatorio|muri|muert|tumba|quimio|radiotera|cáncer|abort|operaci|cirug|me operan|resultado"
    r"|terap|psic|psiq|custodia|juicio|juzgado|abogad|cárcel|despid|despedi|embaraz|ecograf"
    r"|enterrement|obsèques|funér|décè|mort|cimetière|chimio|avort|ivg\b|fausse couche|opér|chirurg|résultat|thérap"
    r"|psy|sépar|tribunal|procès|avocat|licenci|enceinte|échograph",
    r"葬|追悼|去世|死|墓|诊断|診断|活检|化疗|放疗|癌|肿瘤|流产|堕胎|手术|手術|开刀|结果|結果|复查|心理|精神|戒|离婚"
    r"|離婚|分手|分居|抚养|开庭|法院|律师|坐牢|裁员|产检|怀孕|通夜|法事|亡|生検|抗がん|がん|腫瘍|流産|中絶|依存|別れ"
    r"|別居|親権|裁判|法廷|弁護士|刑務|解雇|クビ|妊娠|産婦人科",
)
#: The beginning of what somebody else plans.
_OTHERS: Final = re.compile(
    rf"(?:(?:my|our) )?(?:\w+ )?(?:{'|'.join(sorted(keys.RELATIONS - {'dentist', 'doctor'}))}|mom|mum|dad|kids?"
    r"|parents|grandma|grandpa)(?: (?:has|have|is|are|will|gets?|starts?|goes|go|needs?)\b"
    r"|'s (?!(?:\w+ )?(?:wedding|party|birthday|concert|place)))"
    r"|(?:meine?|unsere?) (?:\w+ )?(?:bruder|schwester|mutter|vater|mama|papa|sohn|tochter|freundin|freund|mann|frau"
    r"|chefin|chef|kollegin|kollege|oma|opa|eltern|kinder)\b"
    r"|(?:mi|nuestr[oa]|mis) (?:herman|madre|padre|mamá|papá|hij|novi|amig|jef|abuel|mujer|marido|espos|compañer)"
    r"|(?:mon|ma|mes|notre) (?:frère|sœur|mère|père|fils|fille|copain|copine|ami|chef|mari|femme|grand|parents|enfants)"
    r"|我?(?:妈|爸|姐|妹|哥|弟|儿子|女儿|老公|老婆|男友|女友|男朋友|女朋友|朋友|同事|老板|奶奶|爷爷|外婆|外公)(?!.{0,2}和我)"
    r"|(?:母|父|姉|妹|兄|弟|息子|娘|夫|妻|彼|彼女|友達|同僚|上司|祖母|祖父)(?:さん)?[はがの]",
    re.IGNORECASE,
)
#: Visits that are talked about freely.
_VISIT: Final = _any(
    r"dentist|doctor|check-?up|appointment|optician|physio|zahnarzt|arzt|termin|dentista|médico|cita\b|dentiste|médecin"
    r"|rendez-vous",
    r"牙医|看牙|牙科|医生|看病|体检|歯医者|歯科|医者|病院|健診|健康診断",
)
#: Occasions by which a note is known for a plan.
_EVENT: Final = _any(
    r"meeting|exam|interview|flight|trip|party|wedding|concert|dinner|lunch|match|game|race|marathon|presentation|visit"
    r"|treffen|prüfung|vorstellungsgespräch|flug|reise|feier|hochzeit|konzert|abendessen|spiel|vortrag|besuch"
    r"|reunión|examen|entrevista|vuelo|viaje|fiesta|boda|concierto|cena|partido|visita"
    r"|réunion|entretien|voyage|fête|mariage|dîner|visite",
    r"约会|会议|开会|考试|面试|航班|旅行|聚会|婚礼|演唱会|音乐会|晚饭|比赛|会議|試験|面接|フライト|パーティー|結婚式"
    r"|コンサート|食事|試合",
)
#: Words by which a plan is called off or moved in a message.
_CALLED_OFF: Final = _any(
    r"cancel|called off|call(?:ing)? off|postpon|reschedul|moved?\b|instead|not going|isn't happening|won't|can't make"
    r"|abgesagt|abgeblasen|verschob|verlegt|fällt (?:\w+ )?aus|wird nichts|doch nicht|anul|aplaz|pospu|cambiad|ya no"
    r"|annul|reporté|déplacé|décalé|finalement pas|n'aura pas lieu",
    r"取消|推迟|改期|改到|不去了|不了|黄了|キャンセル|中止|延期|変更|ずれ|なくなった|行かない",
)
#: Words of plans that tell no two of them apart.
_COMMON: Final = frozenset(
    query_terms("going having with the and for to have meet go see appointment plan Termin cita")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An occasion on a `day`. `what` names a plan in the person's own words, without its time; a birthday has none."""

    day: date
    what: str = ""


def is_occasion(text: str) -> bool:
    """Returns whether a text names an occasion such as a visit or an exam, sure to happen, of whoever says it."""
    named = _VISIT.search(text) or _EVENT.search(text)
    return named is not None and not _NO_OCCASION.search(text) and not _OTHERS.search(text)


def plan_of(memory: Memory) -> Occasion | None:
    """Returns the plan that a person's memory tells of; None if it tells of none that is asked about."""
    spoken = _ADDED_LONGER.sub("", _ADDED.sub("", memory.value))
    usual = memory.kind == "event" or memory.category in _PLANS or memory.key == "plan"
    visit = memory.category in (_HEALTH, _NOTES) and _VISIT.search(spoken)
    noted = memory.category == _NOTES and _EVENT.search(spoken)
    if memory.kind not in ("fact", "event") or memory.key == "goal" or not (usual or visit or noted):
        return None
    if memory.unsure or memory.flags or memory.subject or _OTHERS.match(spoken):
        return None
    if _NO_OCCASION.search(spoken) or _TENDER.search(spoken):
        return None
    told = date.fromisoformat(memory.local_date)
    read = _read(spoken, told)
    added = {date.fromisoformat(day) for day in _ADDED.findall(memory.value)}
    if read is None or not read.what or len(added) > 1 or len(query_terms(read.what)) == 0:
        return None
    # The date that was added when the plan was told counts more than another reading of its words.
    day = next(iter(added), read.first.date())
    return Occasion(day=day, what=read.what) if day > told else None


def birthday_of(memory: Memory, year: int) -> date | None:
    """Returns the day of the person's own birthday in a year; None if the memory doesn't tell it surely."""
    if memory.kind != "fact" or memory.key != "birthday" or memory.subject or memory.unsure:
        return None
    value = memory.value.strip()
    if (numbers := _ISO_DAY.fullmatch(value)) is not None:
        return _day(year, int(numbers[1]), int(numbers[2]))
    spoken = _SPOKEN_YEAR.sub("", value)
    if _AMBIGUOUS.fullmatch(spoken.strip(" .")):
        return None
    # In a leap year every day can be read.
    read = _read(spoken, date(2023, 12, 31))
    return None if read is None else _day(year, read.first.month, read.first.day)


def is_conditional(said: str) -> bool:
    """Returns whether a message makes what it tells depend on something."""
    return _CONDITION.search(said) is not None


def is_settled(plan: Occasion, said: str, *, later: bool) -> bool:
    """Returns whether a message takes a plan back or, if it was said when the plan was over, already speaks of it."""
    shared = set(query_terms(plan.what)) - _COMMON or set(query_terms(plan.what))
    return bool(shared & set(query_terms(said))) and (later or _CALLED_OFF.search(said) is not None)


def language(plan: Occasion) -> str | None:
    """Returns the language in which a plan is told; None if it is not clear."""
    return language_of(plan.what)


def _read(text: str, told: date) -> Reading | None:
    """Returns the one time that a text names, on a later day than `told`."""
    now = datetime.combine(told, time(0, 0, 1), UTC)
    for code in _tongues(text):
        read = read_time(text, language=code, now=now)
        if isinstance(read, Reading):
            return read if read.rule is None and read.first.date() > told else None
    return None


def _tongues(text: str) -> Iterator[str]:
    known = language_of(text)
    yield from [known] if known in LANGUAGES else LANGUAGES


def _day(year: int, month: int, day: int) -> date | None:
    if (month, day) == (2, 29) and not _is_leap(year):
        return date(year, 2, 28)
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
