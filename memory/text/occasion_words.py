"""Words of six languages that show an occasion in a plan or a message, and words that rule one out.

Invariant: only data, and one function that queries it.
"""

from __future__ import annotations

import re
from typing import Final

from memory import keys


def _any(latin: str, unspaced: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{latin})|{unspaced}", re.IGNORECASE)


#: Words for things that are unsure, called off, repeated, or a deadline rather than an occasion.
NO_OCCASION: Final = _any(
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
#: Words that make a plan conditional in the message that tells it; the memory of the plan may lack them.
CONDITION: Final = _any(
    r"if\b|unless|depend|falls\b|wenn\b|sofern|si\b|s'ils?\b|depende|dépend", r"如果|要是|假如|看情况|たら|れば|次第"
)
#: Words for subjects about which people should not be asked unless they speak of them first.
TENDER: Final = _any(
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
#: The beginning of another person's plan.
OTHERS: Final = re.compile(
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
VISIT: Final = _any(
    r"dentist|doctor|check-?up|appointment|optician|physio|zahnarzt|arzt|termin|dentista|médico|cita\b|dentiste|médecin"
    r"|rendez-vous",
    r"牙医|看牙|牙科|医生|看病|体检|歯医者|歯科|医者|病院|健診|健康診断",
)
#: Occasions that mark a note as a plan.
EVENT: Final = _any(
    r"meeting|exam|interview|flight|trip|party|wedding|concert|dinner|lunch|match|game|race|marathon|presentation|visit"
    r"|treffen|prüfung|vorstellungsgespräch|flug|reise|feier|hochzeit|konzert|abendessen|spiel|vortrag|besuch"
    r"|reunión|examen|entrevista|vuelo|viaje|fiesta|boda|concierto|cena|partido|visita"
    r"|réunion|entretien|voyage|fête|mariage|dîner|visite",
    r"约会|会议|开会|考试|面试|航班|旅行|聚会|婚礼|演唱会|音乐会|晚饭|比赛|会議|試験|面接|フライト|パーティー|結婚式"
    r"|コンサート|食事|試合",
)
#: Words that call off or move a plan in a message.
CALLED_OFF: Final = _any(
    r"cancel|called off|call(?:ing)? off|postpon|reschedul|moved?\b|instead|not going|isn't happening|won't|can't make"
    r"|abgesagt|abgeblasen|verschob|verlegt|fällt (?:\w+ )?aus|wird nichts|doch nicht|anul|aplaz|pospu|cambiad|ya no"
    r"|annul|reporté|déplacé|décalé|finalement pas|n'aura pas lieu",
    r"取消|推迟|改期|改到|不去了|不了|黄了|キャンセル|中止|延期|変更|ずれ|なくなった|行かない",
)


def is_occasion(text: str) -> bool:
    """Returns whether a text names a definite occasion of its speaker, such as a visit or an exam."""
    named = VISIT.search(text) or EVENT.search(text)
    return named is not None and not NO_OCCASION.search(text) and not OTHERS.search(text)
