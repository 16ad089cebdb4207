"""Chinese clauses: the cutting of a sentence, its refusals, and the rules that read it.

Invariants: pure; matched in simplified characters without spaces, kept as written; a question, a doubt, a condition or
another person's words silence their clause and its dependents.

One rule reads one relation, in slots as in English. People who speak of themselves leave 我 out as often as not, so
every rule begins with it and a clause without a subject is read with 我 before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial

from memory.keys import RELATIONS, normalise_key
from memory.learn.offline.en import NOT_NAMES
from memory.learn.offline.rules import (
    HAN,
    KIN,
    LONGEST_CLAUSE,
    EarlierClauses,
    Pair,
    Phrase,
    Read,
    Rule,
    apply,
    by_word,
    either,
    expand,
    fact,
    longest_first,
    still_nameless,
    strip_signs,
    tell,
    with_name,
)
from memory.text.simplified import simplified
from memory.text.times.calendar import number_zh
from memory.text.times.spans import anchor, dated


def pairs(sentence: str, context: EarlierClauses) -> Iterator[Pair]:
    """Does the same as `pairs` for English; Chinese words show a question, so each clause is judged by itself."""
    text = sentence.replace("\u3000", " ").strip()
    asked = "?" in text[-6:] or "？" in text[-6:]
    text = _DIAGNOSED.sub("", text.strip(" .!?！？。；;…~～\n"))
    text = _SURNAME_FIRST.sub("叫", _WENT_TO.sub(r"\1入职", text))
    text = _TOLD_TO.sub(r"\1：", text)
    segments = [segment for segment in _SEGMENT.split(text) if segment.strip()]
    bare = [_Clause.of(segment[:LONGEST_CLAUSE]).without_particles() for segment in segments]
    asked_from = len(bare) - 1 if asked else len(bare)
    if asked and bare and not _QUESTION.search(bare[-1].simple):
        asked_from = 0
    poisoned = False
    for number, clause in enumerate(bare):
        if _TURN.match(clause.simple):
            poisoned = False
        poison = _POISON.search(clause.simple)
        asking = _QUESTION.search(clause.simple) is not None or number >= asked_from
        doubted = _DOUBT.search(clause.simple) is not None
        refused = poisoned or poison is not None or asking or doubted
        poisoned = poisoned or poison is not None
        if number >= asked_from and _POLITE.search(clause.simple):
            yield from _requests(clause.after(_OPENING), context)
        if refused:
            # An end may be followed by what holds now: 我不在百度了，去了美团.
            context.carried = None if doubted and not poisoned and _SELF.match(clause.after(_OPENING).simple) else False
            continue
        opened = clause.after(_OPENING)
        for part in [opened] if _REMEMBER.match(opened.simple) else opened.parts():
            facts = list(_clause(part.after(_OPENING), context))
            yield from facts
            if not facts and _STRANGER.match(part.simple):
                context.carried = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A Chinese clause as it is matched and as it was written.

    `simple` has no spaces and only simplified characters; its character i is `written[origin[i]]`. So traditional
    writing and the spaces around Latin names need no patterns of their own, and values keep them.
    """

    simple: str
    written: str
    origin: tuple[int, ...]

    @classmethod
    def of(cls, written: str) -> _Clause:
        kept = [
            i
            for i, c in enumerate(written)
            if not c.isspace() or (0 < i < len(written) - 1 and written[i - 1].isascii() and written[i + 1].isascii())
        ]
        simple = simplified("".join(written[i] for i in kept))
        return cls(simple=simple, written=written, origin=tuple(kept))

    def without_particles(self) -> _Clause:
        """Returns the clause without the particles that only colour its end."""
        return self.piece(0, len(self.simple.rstrip("哦啊呀啦哟喔噢耶嘛哈")))

    def piece(self, start: int, end: int | None = None) -> _Clause:
        end = len(self.simple) if end is None else end
        return _Clause(simple=self.simple[start:end], written=self.written, origin=self.origin[start:end])

    def text(self, start: int, end: int) -> str:
        """Returns the characters `start` to `end` of `simple` as they were written."""
        return self.written[self.origin[start] : self.origin[end - 1] + 1] if end > start else ""

    def after(self, opening: Phrase) -> _Clause:
        start = 0
        for _ in range(6):
            match = opening.match(self.simple, start)
            if not match or match.end() == start:
                break
            start = match.end()
        return self.piece(start)

    def by_speaker(self) -> _Clause:
        """Returns the clause with the 我 that was left out."""
        return _Clause(
            simple=f"我{self.simple}", written=f"我{self.written}", origin=(0, *(i + 1 for i in self.origin))
        )

    def parts(self) -> Iterator[_Clause]:
        """Cuts the clause where a new statement begins without a comma."""
        start = 0
        for match in _RUN_ON.finditer(self.simple):
            if match.start() > start:
                yield self.piece(start, match.start())
                start = match.start()
        yield self.piece(start)


def _clause(clause: _Clause, context: EarlierClauses, *, leftovers: int = 8) -> Iterator[Pair]:
    """Reads one clause, and at most `leftovers` statements that follow in it without a comma."""
    simple = clause.simple
    if not simple:
        return
    named = _NAMED.match(simple)
    if named and (context.nameless or context.stranger):
        nameless = context.nameless
        context.nameless = nameless if _ONE_OF_THEM.match(simple) else None
        if nameless:
            for name in _listed(clause.text(*named.span("v"))):
                yield with_name(nameless, name)
        return
    yield from still_nameless(context)
    context.stranger = False
    requests = list(_requests(clause, context))
    if requests:
        yield from requests
        return
    if simple.endswith("吧"):  # "I am probably …"
        return
    unsaid = context.carried is not False or (context.kin and (_KIN.match(simple) or _ANOTHER.match(simple)))
    forms = [clause, clause.by_speaker()] if unsaid and not _SUBJECT.match(simple) else [clause]
    context.kin = False
    for form in forms:
        applied = apply(_RULES, form.simple, context.today, form.text)
        if applied:
            pairs, end = applied
            context.kin = pairs[0].key in RELATIONS
            context.carried = bool(_SELF.match(simple)) or not (context.kin or pairs[0].key == "pet")
            yield from tell(pairs, context)
            yield from _mentions(clause)
            rest = form.piece(end).after(_OPENING)
            if len(rest.simple) > 1 and leftovers:
                yield from _clause(rest, context, leftovers=leftovers - 1)
            return
    mentioned = list(_mentions(clause))
    yield from mentioned
    if _SELF.match(simple):
        context.carried = True
    elif _OTHER.match(simple):
        context.carried = False
    if not mentioned:
        _look_around(simple, context)


def _mentions(clause: _Clause) -> Iterator[Pair]:
    """Yields relatives and pets named in passing, without 叫: 我妹妹糖糖考上了, 跟男朋友阿泰住在一起."""
    for match in _MENTION.finditer(clause.simple):
        name, who = clause.text(*match.span("v")), match["r"] or match["p"]
        if not _NO_MENTION.search(match["v"]):
            yield Pair(_RELATIONS[who], name) if who in _RELATIONS else Pair("pet", f"{who} {name}")


def _look_around(simple: str, context: EarlierClauses) -> None:
    """Returns whether a clause without a fact is about a person whose name may come next: 我妹妹特别可爱，她叫…."""
    others = list(_SOMEBODY.finditer(simple))
    context.stranger = bool(others)
    if others and others[0].start() == 0:
        context.carried = False  # a next clause without a subject is about them: 女儿小名糯米，对花生过敏
    if len(others) == 1 and (relation := others[0]["r"]):
        context.nameless = Pair(_RELATIONS[relation], "", unnamed=True)


def _requests(clause: _Clause, context: EarlierClauses) -> Iterator[Pair]:
    """Does the same as `_requests` for English."""
    simple = clause.simple
    if _ONE_OFF.search(simple):
        return
    remember = _REMEMBER.match(simple)
    if remember:
        told = clause.piece(remember.end()).after(_OPENING)
        facts = list(_clause(told, context)) if told.simple else []
        if facts:
            yield from facts
        elif len(told.simple) > 2 and not _DOUBT.search(told.simple) and not _OFFER.search(told.simple):
            yield Pair("note", anchor(_whole(told.text(0, len(told.simple))), context.today))
        return
    standing = _STANDING.match(simple)
    body = clause.piece(standing.end()) if standing else clause
    body = body.after(_PLEASE)
    applied = apply(_REQUESTS, body.simple, context.today, body.text)
    if applied:
        yield from applied[0]
        return
    always = _ALWAYS.match(body.simple)
    order = _ORDER.match(body.simple, always.end() if always else 0)
    if (order and (standing or always)) or (
        _STYLE.match(body.simple) and not context.tasked and "：" not in simple and ":" not in simple
    ):
        yield _order(body)


# ------------------------------------------------------------------------------------------------ words
_RELATIONS = by_word(
    {
        "wife": "老婆 妻子 太太 媳妇", "partner": "爱人 对象 伴侣 另一半", "husband": "老公 丈夫 先生",
        "girlfriend": "女朋友 女友", "boyfriend": "男朋友 男友", "fiance": "未婚妻 未婚夫",
        "mother": "妈妈 妈 母亲 老妈", "father": "爸爸 爸 父亲 老爸", "sister": "姐姐 姐 妹妹 妹 大姐 二姐",
        "brother": "哥哥 哥 弟弟 弟 大哥 二哥", "son": "儿子 大儿子 小儿子", "daughter": "女儿 大女儿 小女儿 闺女",
        "child": "孩子 宝宝 娃 老大 老二 老三 大宝 二宝",
                 "grandmother": "奶奶 外婆 姥姥",
                                                                         "grandfather": "爷爷 外公 姥爷",
        "grandson": "孙子", "granddaughter": "孙女", "uncle": "叔叔 舅舅 伯伯", "aunt": "姑姑 阿姨 姨妈 小姨",
        "cousin": "表哥 表姐 表弟 表妹 堂哥 堂姐 堂弟 堂妹", "nephew": "侄子 外甥", "niece": "侄女 外甥女",
        "friend": "朋友 好朋友 最好的朋友 闺蜜 好友 死党 哥们 兄弟 发小", "roommate": "室友 舍友", "neighbour": "邻居",
        "boss": "老板 上司 领导", "colleague": "同事", "teacher": "老师 班主任", "mentor": "导师",
        "doctor": "主治医生", "mother-in-law": "岳母 婆婆", "father-in-law": "岳父 公公", "sister-in-law": "嫂子",
    }
)  # fmt: skip
_PLACE_WORDS = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|郑州|青岛|大连|厦门|福州|宁波|无锡|合肥|济南|沈阳"
    "|哈尔滨|长春|昆明|贵阳|南宁|海口|三亚|兰州|银川|西宁|拉萨|乌鲁木齐|呼和浩特|太原|石家庄|南昌|珠海|东莞|佛山|惠州"
    "|中山|温州|嘉兴|绍兴|金华|台州|常州|南通|扬州|徐州|镇江|泉州|漳州|烟台|潍坊|洛阳|开封|桂林|丽江|大理|宜昌|襄阳"
    "|株洲|湘潭|绵阳|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|广西|海南|四川|贵州"
    "|云南|陕西|甘肃|青海|宁夏|新疆|西藏|内蒙古?|东北|江南|台湾|香港|澳门|台北|高雄|台中|台南|新竹|桃园|九龙|新北|嘉义"
    "|花莲|魔都|帝都|纽约|洛杉矶|旧金山|湾区|西雅图|波士顿|芝加哥|伦敦|巴黎|柏林|慕尼黑|东京|大阪|京都|首尔|釜山|曼谷"
    "|新加坡|悉尼|墨尔本|多伦多|温哥华|里斯本|波尔图|马德里|罗马|米兰|阿姆斯特丹|苏黎世|维也纳|莫斯科|迪拜|吉隆坡|槟城"
    "|马尼拉|雅加达|河内"
)
_COUNTRIES = (
    "中国|日本|韩国|朝鲜|美国|英国|法国|德国|意大利|西班牙|葡萄牙|俄罗斯|加拿大|澳大利亚|澳洲|新加坡|马来西亚|泰国|越南"
    "|印度尼西亚|印尼|印度|菲律宾|巴西|墨西哥|荷兰|比利时|瑞士|瑞典|挪威|丹麦|芬兰|波兰|希腊|土耳其|埃及|乌克兰|新西兰"
    "|阿根廷|爱尔兰|蒙古|缅甸|柬埔寨|老挝|南非|奥地利|匈牙利|捷克|以色列|伊朗"
)
_LANGUAGES = (
    "(?:普通|国|中|汉|华|粤|广东|闽南|客家|上海|四川|潮汕|温州|英|日|韩|法|德|西班牙|西|葡萄牙|葡|意大利|俄|阿拉伯|泰"
    "|越南|印尼|马来|印地|荷兰|瑞典|波兰|土耳其|拉丁|世界|维吾尔|维|藏|蒙|壮|彝|手|台)[语文话]"
)
_JOBS = (
    "[^，的我是在]{0,4}(?<!会)(?<!党)(?<!成)(?<!团)(?<!队)(?<!人)员|[^，的我是]{0,4}(?:师傅?|经理|总监|主管|主任|助理"
    "|代理|中介|顾问|经纪人|开发|运营|代表)|医生|护士长?|中医|老师|教授|辅导员|校长|院长|程序猿|码农|会计|出纳|审计"
    "|律师|法官|检察官|警察|民警|军人|士兵|记者|编辑|作家|作者|诗人|写手|翻译|画家|漫画家|导演|编剧|歌手|音乐人|钢琴家"
    "|模特|主播|博主|up主|自媒体|店长|店主|老板|个体户|创业者|创始人|合伙人|秘书|前台|行政|人事|hr|HR|财务|销售|客服"
    "|产品|测试|前端|后端|全栈|运维|算法|科学家|博士后|(?:大|研究|硕士|博士|本科|高中|初中|小|留|实习|医)?学生|(?:研究"
    "|博士|本科|高中|实习|硕士)生|[大研高][一二三四](?:学生)?|司机|空姐|空乘|(?:快递|外卖)?小哥|骑手|保安|保洁|保姆"
    "|月嫂|工人|[电焊木瓦水]工|木匠|裁缝|农民|教练|导游|社工|上班族|白领|自由职业者?|(?:全职|家庭)(?:妈妈|太太|主妇"
    "|爸爸)|文案|策划|站长|采购|物流|投行|法务|公关|市场|猎头|部门经理|组长|外贸"
)
_CONDITIONS = (
    "[12一二]型糖尿病|[高低]血[压糖脂]|哮喘|气喘|(?:[轻中重]度)?(?:抑郁|焦虑|忧郁)症?|双相(?:情感障碍)?|adhd|ADHD|癫痫"
    "|失眠|偏头痛|痛风|湿疹|荨麻疹|甲亢|甲减|桥本|贫血|乙肝|脂肪肝|多囊|腰椎间盘突出|腰突|骨质疏松|色[盲弱]|近视|散光"
    "|耳鸣|青光眼|白内障|帕金森|红斑狼疮|乳糖不耐受?症?|麸质不耐受?|社恐|晕[车血]|恐高|睡眠呼吸暂停|阅读障碍|(?:腰椎?"
    "|颈椎|肠?胃|心脏|肝|肾|膝盖|眼睛|视力)不(?:太)?好|(?!毛病|老毛病|神经病|什么病|个病"
    "|病)[^，我你他她有是的爸妈公婆姐妹哥弟儿女人a-z]{1,6}?(?:病|炎|症|癌|结节|结石|囊肿|息肉|综合征|肌瘤)"
)
_ANIMALS = (
    "猫咪|猫猫|猫|狗狗|狗|犬|兔子|兔|仓鼠|金鱼|热带鱼|鱼|乌龟|龟|鹦鹉|鸟|蜥蜴|守宫|蛇|刺猬|龙猫|荷兰猪|豚鼠|鸡|鸭子?"
    "|鸽子|马|羊|猪|牛|柯基|金毛|拉布拉多|哈士奇|二哈|柴犬|泰迪|贵宾|比熊|博美|边牧|萨摩耶|法斗|吉娃娃|雪纳瑞|布偶|英短"
    "|美短|暹罗|橘猫|狸花|缅因|蓝猫|加菲|德牧|阿拉斯加|斗牛|腊肠|蜜袋鼯|角蛙|变色龙|蜘蛛"
)
_RELATION = longest_first(_RELATIONS)
#: Persons a clause may be about: 我妹妹, 有个同事, 一个人; group r for a relative of the speaker.
_SOMEBODY = Phrase(
    rf"(?:我们?家?的?|(?<=^)|有(?:一|两)?[个位])(?P<r>{_RELATION})(?!的|们|节)|(?<!我是)(?:[个位名只条]"
    rf"|[一那这]个)[^，是]{{0,4}}(?:人|女孩|男孩|女生|男生|姑娘|小伙|同学|{_ANIMALS})|(?:我|他|她|你)的?{_RELATION}的"
    rf"|我们?家的?(?:{_ANIMALS})"
)
_FAVOURITES = by_word(
    {
        "color": "颜色", "food": "食物 菜 美食 吃的", "movie": "电影 片子", "song": "歌 歌曲", "book": "书",
        "novel": "小说", "sport": "运动 体育运动", "city": "城市", "singer": "歌手", "band": "乐队",
        "season": "季节", "animal": "动物", "fruit": "水果", "actor": "演员", "author": "作家", "game": "游戏",
        "anime": "动漫 动画", "show": "电视剧 剧", "drink": "饮料 奶茶", "flower": "花", "number": "数字",
        "team": "球队", "player": "球星", "country": "国家", "dessert": "甜点", "vegetable": "蔬菜",
        "subject": "科目", "director": "导演", "poet": "诗人", "music": "音乐", "restaurant": "餐厅",
    }
)  # fmt: skip
#: The nouns for a favourite that is told by its verb alone: to eat, to drink.
_TAKEN = {"吃": "吃的", "喝": "饮料"}
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪"
    "田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文欧阳司马"
)
#: Characters of adverbs, times and verbs: a word with one of them, after 我妹妹, is not her name.
_NO_NAME = (
    "今昨明前后最近突然特别已经正在常总是一直每刚才又也都还就很太真不好没要会能以应该必须想爱喜欢怕讨厌说叫让给把被跟和"
    "对从到去来有了的得着过吗呢吧啊这那哪什么怎谁几多少大概许病孕婚差班院作饭觉打呼冒烧退休搬考试毕业催喊支持反对同意认"
    "为希望知道属他她它你我姓快慢早晚点年月日天周先再只更比非常连全个住做吃喝看听买卖送带找教学养开家里外上下老师医生公"
    "司聚"
)
_MENTION = Phrase(
    rf"(?:(?:^|[和跟带陪给让])(?:我们?家?的?)?(?:亲|双胞胎)?(?P<r>(?!老大|老二|老三|大宝|二宝){_RELATION})|(?<=家)"
    rf"(?P<p>猫|狗)[子狗猫咪]?)(?P<v>[{_SURNAMES}小大阿][^{_NO_NAME}，a-zA-Z\d]{{1,2}}|(?P<z>[^{_NO_NAME}，a-zA-Z\d])"
    rf"(?P=z)|[^{_NO_NAME}，a-zA-Z\d]{{2}})"
    r"(?=$|[要在又最今昨明下上这那来去说跟和考把也都就还特喜是刚已长做住结天一给对从会能爱有她他生])(?!的|家)"
)
_NO_MENTION = Phrase("天天|常常|妈妈|爸爸|[人情事们节]|咪咪$")
_SLOTS = {
    "ME": "(?:我们?|本人|俺|咱们?)",
    "ADV": "(?:其实|平时|一直以?来?|从小就?|特别|非常|最近?|超级?|比较|尤其|十分|相当|确实|一向|向来|平常|本来就|经常"
    "|周末|没事就?|现在|目前|通常|永远|空闲时|有空就?|的确|实在|真心|真的?|天生|主要|个人|严重|[轻重]度|极其?"
    "|稍微|完全|绝对|一般|偶尔|怎么|一点[也都]|从来|根本|不太会?|暂时|如今|常年|已经|终于|刚刚?|还好|好在|幸好"
    "|这边|去年|前年|今年|上个?月|上周|上半年|下半年|前[阵些几][子年天]|前不久|不久前|昨天|前天|今天|春节后|年初"
    "|[一二三四五六七八九十\\d]{1,2}月份?|\\d{4}年|体检|有点|有些"
    "|[特也还都就很挺蛮可好巨贼更老总只偏并又人再才]){0,5}?",
    "S": "@ME(?:这个?人|自己|一个人|全家|一家|两个|和[^，]{1,6}|跟[^，]{1,6})?@ADV",
    "QI": "(?P<n>(?:一|两|二|三|四|五|六|[1-9])?(?:只|条|个|匹|头|窝|对))",
    "PLACE": f"(?:{_PLACE_WORDS}|{_COUNTRIES})",
    "COUNTRY": f"(?:{_COUNTRIES})",
    "LANGUAGE": _LANGUAGES,
    "JOB": f"(?:{_JOBS})",
    "CONDITION": f"(?:{_CONDITIONS})",
    "ANIMAL": f"(?:{_ANIMALS})",
    "RELATION": _RELATION,
    "A": "(?:一?(?:个|名|位|枚))?",
    "LIST": "(?P<v>.{1,80}?)(?=$|[。！!（(]|尤其|特别是|胜过|多过|超过)",
    "NUMBER": "(?P<v>\\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?)",
    "DAY": "(?:\\d{2,4}年)?(?:农历|阴历|阳历|公历)?[\\d一二三四五六七八九十]{1,3}月初?[\\d一二三四五六七八九十"
    "廿]{1,3}[日号]?",
    "WHEN": "(?:明天|后天|大后天|下下?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]?|下个?月(?:\\d{1,2}[号日]|初|底|中)?"
    "|明年(?:[\\d一二三四五六七八九十]{1,2}月|[春夏秋冬]天)?|[\\d一二三四五六七八九十]{1,2}月(?:份"
    "|[\\d一二三四五六七八九十]{1,3}[号日])?|这周[一二三四五六日末]|周[一二三四五六日末]|今年(?:暑假|寒假|夏天"
    "|冬天|秋天|春节|国庆|年底)|[年月]底|暑假|寒假|国庆|春节|过年|[\\d一二三四五六七八九十]{1,2}月"
    "(?:\\d{1,2}[号日])?|[一二两三四五六七八九十\\d]{1,2}(?:天|周|个星期|个月|年)(?:以)?后)(?:的?时候)?(?:早上"
    "|上午|下午|晚上|中午)?",
}


def _rule(read: Read, pattern: str) -> Rule:
    return Rule(Phrase(pattern, slots=_SLOTS), read)


# ------------------------------------------------------------------------------------------------ sentences
#: A doctor's diagnosis counts as a statement.
_DIAGNOSED = Phrase(r"(?:医生|醫生|大夫)[说說](?=我)")
#: 姓何，叫何亦凡 is one name.
_SURNAME_FIRST = Phrase(
    r"(?:免贵)?姓([\u3400-\u9fff]{1,2})[，,](?:我?叫)?(?=\1[\u3400-\u9fff]{1,2}(?![\u3400-\u9fff]))"
)
#: A person who has just left a job and "went to" some place works there.
_WENT_TO = Phrase(
    r"((?:离职|離職|辞职|辭職|跳槽|[换換]了?工作|被裁|裁了|不在[^，,]{1,8}了)[^，,]{0,4}[，,](?:去年|[^，,去]){0,6}?)"
    r"(?:跳?去了|跳到了?|(?:现在|目前)在(?:(?=在)|一?[家个所间]))(?=[^，,]{2})"
)
_SEGMENT = Phrase(
    r"[，,、]?\s*(?:——|[()（）\[\]【】|])\s*|\s*[，,]\s*|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])|"
    r"(?<=[\u3400-\u9fff])[~～]+|(?:哈哈|呵呵|嘿嘿|hh)+\s*",
    re.IGNORECASE,
)
_TOLD_TO = Phrase(r"((?:[记記](?:一下|住|下[来來]?|得|着|著|好|牢)|牢[记記]|(?:[别別]|不要)忘[记記]?了?))\s*[，,]\s*")
_RUN_ON = Phrase(
    r"(?<=.)(?:(?<![叫让说得是和对跟给为像以帮被问夸骂告诉记住提聊谈讲催起到于：:])(?<!告诉)我(?!(?:是|真的?|实在|完全"
    r"|一点都?|都|也|从来|一口都?){0,3}(?:受不了|不喜欢|不[太怎]|不爱|欣赏不来|不感冒|接受不了|讨厌|过敏|不吃|吃不"
    r"|不能吃)[了下来]?$)(?=叫|是|住|在|有|对|今年|喜欢|讨厌|爱|不喜欢|不吃|来自|会说|养|搬|买|换|学|练|刚|特别|家|的"
    r"|老[婆公家]|妈|爸|男朋友|女朋友|从|目前|现在)|(?<![我且都儿子女妹弟哥姐妈爸婆公友])(?<!我的)(?<!目前)(?<!现在)"
    r"(?:今年)(?=\d|[一二三四五六七八九十])|(?<![我且都前居直])(?<!目前)(?<!现在)(?<!一直)(?<!我家)(?<!家)住在|"
    r"(?<![我自])(?<!我是)来自|(?<!我)目前|(?<!我)(?<!的.)(?<!的..)(?<!的...)(?<!的....)现在(?=住|在|是)|还有"
    r"(?=一?[个位只条])|但是?|不过|所以|因为|而且|然后|并且|另外|(?<=[鸡鸭猫狗兔鱼鸟])[一两三四五六][只条个](?=.))"
)
_OPENING = Phrase(
    r"(?:[你您]好|嗨|哈[喽啰]|hello|hi|hey|大家好|[早晚]上好|下午好|[早晚]安|早|那个|其实|对了|话说|顺便(?:说一?下"
    r"|说一句|提一下|说|告诉你|一提)?|(?:我)?(?:先|来|简单)*(?:自我)?介绍一下(?:自己)?|自我介绍|[跟和]你(?:说|讲)"
    r"(?:一下|个事|一声|哦|啊|说)?|告诉你(?:一下|哦|个事|一件事)?|我(?:想)?(?:跟|和|告诉|同)你(?:说|讲|提)?(?:一下|过"
    r"|一声|哦)?|我(?:之前|上次|刚才|已经)?(?:说|提|讲)过(?:了)?|因为?|由于|所以|但是?|不过|而且|并且|还有"
    r"(?!一?[个位只条]|俩|两)|另外|然后|同时|此外|以及|嗯+|哦+|啊+|呃+|额+|诶|哎呀?|唉|好(?![像想])的?|好吧|行|可以"
    r"|是的|没错|对(?=我|$)|谢谢(?:你|啦|了)?|多谢|不好意思|抱歉|说实话|老实说|坦白说|实话实说|讲真|真的|补充(?:一下)?"
    r"|[更纠]正(?:一下)?|备注|注意|提醒(?:一下|你)|你知道吗|要知道|你要知道|你得知道|众所周知|反正|总之|首先|其次|最后"
    r"|第[一二]|虽然|尽管|既然|毕竟|就是(?!个)|那|哈+|嘿+|哇|喂|是这样的?|事情是这样的|其实呢|(?:目前|现在|最近|平时"
    r"|今年)(?=我)|如你所知|一般来说|个人来说|对我来说|至于我?|关于我|你记一下|remora|[今昨]天|(?:上周|最近|刚)?体检"
    r"(?=查|检))[，,：:！!。~～、\s]*",
    re.IGNORECASE,
)
_QUESTION = Phrase(
    r"吗|么$|呢$|什么|啥|谁|哪|怎么|怎样|为什么|为啥|多少|(?<![这那好])几(?![只条个位年次种岁])|是不是|有没有|能不能"
    r"|会不会|要不要|可不可以|好不好|对不对|是否|行不行|该不该|如何|知不知道|知道我|记得我(?=叫|是谁)|猜猜|猜我|咋|何时"
    r"|多大$|不是我|还记得|要紧不|[^不]不$|适合"
)
_POISON = Phrase(
    r"如果|要是|假如|假设|倘若|万一|若是|即使|哪怕|希望我|但愿|幻想|想象|梦见|梦到|梦里|做梦|恨不得|要不是|像跟|当成"
    r"|误会|好像我|假装|装作|扮演|据说|听说|[说讲](?:我|过我|自己|他|她|[^一]{0,3}[:：])|(?<!我)(?<!我想)(?<!跟你)"
    r"(?<!和你)(?<!会)(?<!能)(?<!不)(?<!母语)(?<!只)(?<!都)(?<!老实)(?<!实话)(?<!坦白)(?<!英语)(?<!顺便)说(?=[:：，]|$)"
    r"|觉得我|以为|认为我|觉得自己|(?<!别)(?<!不要)(?<!再)(?<!次都)问我|叫做我|告诉[他她我]|写着|[里上]写|歌词|唱"
    r"(?![片歌])|台词|写道|角色|(?:书|小说|电影|游戏|剧|跑团|模拟人生)里|才怪|开玩笑|算命|谎|骗|上辈子|下辈子|前世"
    r"|长大后|将来|等我|从前|当年|(?:以前|曾经|过去|当时|那时候?)(?=.*[着了过]|还|我|在|$)|(?<!回复我)(?<!回答我)"
    r"(?<!聊天)(?<!说话)的时候|那会儿"
)
_TURN = Phrase(r"但|不过|其实|现在|目前|而我|事实上|实际上|后来")
#: Words that make one clause too uncertain, or say that it is over.
_DOUBT = Phrase(
    r"可能|也许|大概(?!率)|或许|好像|似乎|不确定|应该是|差点|似的|怀疑|快要|怕是|没准|说不定|我猜|我想我是|像个|就像"
    r"|仿佛|不一定|算是半个|恐怕|估计|以前|曾经|曾|之前|小时候(?!在|就)|过去(?!年)|不再|(?:已经|早就)不"
    r"|不在[^，]{1,8}了|不是|又不|过敏不|原来我|考虑|还没定"
)
_POLITE = Phrase(r"(?:能不能|可不可以|可以|能|麻烦|请|以后)")
_SUBJECT = Phrase(r"我|俺|本人|咱|他|她|它|你|您|大家|谁|这|那|有人|别人|人家|请|别|不要|以后|记住|叫我|其他")
_SELF = Phrase(rf"(?:我(?!们?家?的?{_RELATION}|们的|的?同学|[男女])|俺|本人|咱)")
_OTHER = Phrase(r"他|她|它|你|您|大家|有人|别人|我|这|那|谁")
_KIN = Phrase(_RELATION)
#: 还有个妹妹: one more of those just told of.
_ANOTHER = Phrase(r"还有(?:一|两|俩)?[个位只条]?")
#: Another person with a name or a role of their own: 主角叫…, 李雷|今年28岁.
_STRANGER = Phrase(
    r"[老小阿](?![是说爱时学家])[\u3400-\u9fff]|[^我俺咱]{1,6}(?:叫|是|住|在|有|今年|喜欢|对|来自|说)|"
    r"(?![我俺咱本])[\u3400-\u9fff]{2,4}$"
)
_NAMED = Phrase(
    r"(?:他|她|它|名字|名|分别|它的名字|他的名字|她的名字|小名|取名|大的|小的|[一另]一?[个只])*(?:叫做?|是叫|名叫"
    r"|名字是|(?=[^，的是了]{2,3}[和跟、][^，的是了]{2,3}$))(?P<v>[^我你他她的]{1,16}$)"
)
_ONE_OF_THEM = Phrase(r"大的|小的|[一另]一?[个只]")
_ONE_OFF = Phrase(
    r"这次|这一次|这回|今天就|这封|这段|这篇|这句|下面|以下|上面|这个|这道|这些|现在就|一会|待会|等下|等会"
)
_REMEMBER = Phrase(
    r"(?:请|麻烦|你)?(?:要|一定|务必|一定要|得)?(?:帮我|给我|替我)?(?:记住|记得|记一下|记下来?|牢记|别忘记?了?"
    r"|不要忘记?了?|记[着好牢]|备忘)(?:一下|了|哦|啊|这点|这件事|一点)?[：:,，]?(?=.)(?!了|明天|后天|今晚|今天|到时"
    r"|待会|下周|给|来|按时|吃药|带|去|要|提醒|多|早点|早|买|叫我起|回|打|关|把)"
)
#: Words that may stand beside the date of a plan and plan nothing.
_WHEN = Phrase(
    r"(?:打算|计划|准备|决定|要|会|得|将|已经|就|在|到|[以之]?[前后]|[内里底初中末的]|开始|时候?|左右|我们?|了)*"
)
#: Words to a person with whom the speaker shares a task: 记得结尾那句我来写.
_OFFER = Phrase(r"我来(?:写|做|说|弄|定|选|挑|买|付|办|搞|处理|负责|安排|准备|收尾|就行|就好|$)")
_STANDING = Phrase(
    r"(?:[定立]个规矩[：:]?|从(?:现在|今天|今|此|这刻)(?:开始|起|往后|以后|以后开始)?|从今以后|从今往后|今后|往后|以后"
    r"(?=每|请|都|就|你|别|不要|不许|不准|用|回|跟|和|叫|给|说|尽量|只|多|少|一律|要|麻烦|对|称|讲|全|统一|能|可|聊|提"
    r"|答|我[问说贴发让]|记得|咱|直接|所有)|之后(?=请|都|别|不要|用|回|叫)|以后[,，])(?:开始)?(?:请|你|您|就|都|麻烦"
    r"|记得|能不能|可以|可不可以|能|，|,)*"
)
_PLEASE = Phrase(
    r"(?:请|麻烦|拜托|希望|我希望|我想让|我想要|我要|你可以|可以|你能不能|能不能|能|你能|可不可以|最好|你要|你|您|咱们?"
    r"|我们|那就?|就|以后|之后|我想|都|(?:回复|回答|[和跟]我(?:聊天|说话))我?(?:问题)?的?时候|聊天的?时候?)"
)
_ALWAYS = Phrase(
    r"(?:请|你)?(?:每次(?:都)?|总是|始终|一直(?!以来)|永远|都|一律|务必|一定要?|统一|尽量|全程)(?:都|请|要|用(?=$))?|我"
    r"(?:[问说贴发让](?!起)[^，]{1,12}(?:时|的时候)|贴[^，]{1,8}?)(?:[，,]|(?=你|就|都|只))"
)
_ORDER = Phrase(
    r"(?:[^，]{1,8}(?=一律|都))?(?:请|都|每天|每周|每次|早上|晚上|睡前|要|就|只|多|少|尽量|直接|先|再|也|全部?|一律"
    r"|必须|可以|你|老|总){0,4}(?:用(?![不完过得了])|使用|别|不要|不用|不许|不准|回答|回复|回|答|说|讲|叫|称|给|跟|对"
    r"|和|写|聊|提醒|解释|保持|加|带|发|简|短|详细|说话|语气|称呼|以|把|按|避免|停止|控制|举|列|推荐|问|夸|鼓励|管)"
)
_STYLE = Phrase(
    rf"(?:[跟和](?:我|你)(?:说话|聊天|讲话))?(?:请|都|要|就|只|多|尽量|直接|统一|一律|最好|麻烦你?){{0,3}}(?:(?:用|说"
    rf"|讲|使用|换成|切换成?|改用|全用)(?:{_LANGUAGES}(?=$|[吧哦啊就]|回|答|跟|和|与|聊|交流|对话|沟通|说话|来[回聊])"
    rf"|繁体|简体|大白话|通俗|简单|简短|简洁|口语|敬语|轻松|幽默|专业|正式"
    r"|温柔|书面|文言文|摄氏|公制|公里|列表|markdown|24小时|表格|一句话|短句|英式|美式)|(?:回答|回复|说话|答案|讲话"
    r"|解释|语气|说|讲|回|答)"
    rf"(?:我|问题|时|的时候|得|内容)?(?:都|要|请|可以|能|尽量|一定要?|务必|得)*(?:再|更|稍微)?(?:用(?:{_LANGUAGES}"
    rf"|[^，]{{2,6}})|简短|简洁|简单|精简|短"
    r"|直接|详细|通俗|温柔|正式|随意|轻松|幽默|具体|口语|专业|干脆|精炼|友好|随和|客气|不要|别|不用|控制在|言简意赅|慢"
    r"|温和|严肃|像)|像[^，]{1,8}(?:那样|一样)(?=$|就|吧)|(?:别|不要|不用|不许|少|停止|请勿|禁止)(?:再|给我|总是|老是"
    r"|老|总|跟我|每次都?){0,2}(?:(?:用|使用|发|加|带|讲|写|问我|说(?=[^，]{0,8}(?:话|语|文|词|言|字|句|理|教|梗|腔"
    r"|对不起|抱歉|谢谢)))(?!了|$|话$|谎|成)|那么|这么|太|叫我|称呼我|喊我|敷衍|啰嗦|重复|道歉|说教|客套|绕弯子|废话"
    r"|打官腔|卖萌|夸|鸡汤|撒娇|中英|整得|客气|铺垫)|(?:简短|简洁|简单|直接|精简|言简意赅|详细|具体|温柔|幽默|正式"
    r"|随意)(?:一?点|一些|些|明了|扼要)(?:$|的?回[答复]|就行|就好|吧|哦|啊)|长话短说|[^，]{1,6}句话?(?:以内|之内)$)"
)

# ------------------------------------------------------------------------------------------------ values
_TAIL = Phrase(
    r"(?:[啦呀啊哦喔哟呢哈嘛吧呗噢耶咯]|的哦|了哦|就好了?|就行了?|就可以了?|就是了|来着|而已|的说|好吗|好不好|可以吗"
    r"|行吗|谢谢你?|多谢|拜托了?|吗|～|~|等等?|什么的|之类的?)+$"
)
#: The reason for a request, which is no part of it.
_REASON = Phrase(
    r"[，,\s]*(?:因为|因為|由于|由於|不然|否则|否則|免得|省得|以便|方便我|毕竟|畢竟|这样我|這樣我|我(?:在|正在"
    r"|想)[练練学學]).*$"
)
_EMPTY = Phrase(
    r"^(?:就|你|您|他|她|它|这|那|自己|上了|上|过|一切|所有|什么|的|了|人|我|大家|它们|不|哪|被|一个人$"
    r"|一个[^，]{0,4}人$|看你|和你|跟你|死|听你|逗|把|让|叫|吃亏|生气|迟到$|东西|某个|过你|问|说|做你|做自己|国|着|情"
    r"|心|因为|家人|理|搭理|干|信不信|去不去|得|就$)|你|的人|的话|这个|那个|那首|这首|这样|那样|着$|^.$"
    r"(?<![猫狗茶酒书花猪辣甜酸咸鱼虾蛇雨雪海山歌画])"
)
_NO_ALLERGEN = Phrase(
    r"班$|[上下加值]班|工作|上学|学习|学校|读书|开会|会议|[周星期礼拜][一二三四五六日天末]|早[起上晨八]|起床|运动|健身"
    r"|跑步|作业|考试|数学|英语$|物理|化学$|语文|论文|人类?$|男[人生的]|女[人生的]|渣|前[任男女]|老[板公婆师]|领导|同事"
    r"|客户|甲方|亲戚|相亲|爱情|恋爱|感情|婚|社交|聚会|聚餐|应酬|努力|加油|鸡汤|谎|[傻蠢笨]|废话|道理|穷|钱|家务|做饭"
    r"|洗碗|打扫|生活|世界|现实|快乐|幸福|孤独|生日|节$|春节|过年|减肥|熬夜|早睡|责任|承诺|成功|内卷|政治|代码|需求|bug"
    r"|ppt|电话|微信|学生|小孩|孩子|朋友|[你他她它]|这|那|自己|什么|一切|就$|day|work|deadline|meeting|ddl|话$|^开$"
    r"|声音|态度|行为|字$|事$|汗|不$|没|意见",
    re.IGNORECASE,
)
_NOT_PLACE = Phrase(
    r"院$|学校|宿舍|酒店|宾馆|楼$|层$|家里|[这那]里|[这那]儿|附近|隔壁|一起|过去|梦|心里|云端|医院|公司|单位|爸妈|父母"
    r"|朋友家|别人|你|他|她|我|天堂|地狱|月球|火星|哪|一个人|外面|出租屋|房子|公寓|别墅|的人|的是|很|贵(?![州阳港])|方便|回忆"
    r"|的地方|城堡|山洞|童话|海底|海边|的$|一样|已经|忙|路上|车上|床上|[这那]边|同一|独居|单人|礼拜|酒|[一两三几]|校|嘴"
    r"|手|过$|着|得|地铁|机场|车站|乡下|路"
)
_NO_EMPLOYER = Phrase(
    r"^(?:家|公司|[这那]里?|外面|外地|[国海]外|国内|努力|认真|好好|一起|忙|哪|里面|单位|本地|老家|异地|[^，]*找|县城"
    r"|市区|城里|一线城市|附近|加班|线上|远程|现在|[这那]边|办公室|同一家公司|群|厕所|医院看|图书馆|外|银行卡|[^，]*"
    r"(?:家|房间))$|努力|认真|每天|晚上|早上|周末|拼命|你|他|她|[省市区]$|吃|喝|看|玩|睡|躺|等"
)
_NO_STUDY = Phrase(
    r"^(?:[高初大研][一二三四]|高中|初中|大学|小学|中学|博士|硕士|研究生|本科|习|会(?!计)|到|着|了|校|不|得|你|他|她"
    r"|一下|过|以|点|书$|坏|好|院|家|学校|[这那]|外地|国外|图书馆|教室|生)|你|怎么|如何|一点|东西|做人"
)


def _order(clause: _Clause) -> Pair:
    text = _whole(_REASON.sub("", clause.text(0, len(clause.simple))))
    return Pair("instruction", text.removesuffix("了") if clause.simple[0] in "别不" else text)


def _trim(text: str) -> str:
    """Returns a value without closing particles, signs and the 的 that ended its clause."""
    text = _whole(text)
    return text[:-1] if len(text) > 2 and text.endswith("的") and not text.endswith("目的") else text


def _whole(text: str) -> str:
    """Returns a note or request word for word, without closing particles and signs."""
    text = strip_signs(text)
    if HAN.search(text):
        text = strip_signs(_TAIL.sub("", text)) or text
    return text


def _listed(text: str) -> list[str]:
    parts = re.split(r"\s*(?:、|,|，|/|以及|还有|(?<=[^，、])(?:和|与|及|&|跟)(?=[^平，、]))\s*", text)
    if (
        not all(parts)
        or text.startswith(("和", "与", "跟"))
        or re.search(r"[和跟与](?:我|你|他|她|朋友|家人|孩子|小孩|老婆|老公|人|同事|狗狗|别人|大家)", text)
    ):
        parts = text.split("、")
    return [trimmed.removesuffix("了") for part in parts if (trimmed := _trim(part))]


#: The remains of a careless match at the edges of a value.
_EDGES = Phrase(
    r"^(?:是|有|也|会|會|就|都|这人|這人|一吃|对|對|的|[了过][^，]{0,3}年多?的?)+(?=..)|(?<=..)(?:市区|那边|这边|這邊"
    r"|这里|附近|一带|工作|生活|上班|读书|上学|定居|居住|租房|这儿|了)$"
)


def _values(text: str, many: bool) -> list[str]:
    return _listed(text) if many else [_trim(text)]


_fact = partial(fact, values=_values, size=len, plain=simplified, most=20)


def _within(text: str, many: bool) -> list[str]:
    """Returns the same as `_values`, without the remains of a careless match at the edges."""
    return [_EDGES.sub("", value) for value in _values(text, many)]


_likes = _fact("likes", many=True, most=24, spoil=_EMPTY)
_dislikes = _fact("dislikes", many=True, most=24, spoil=_EMPTY)
_allergy = _fact("allergy", values=_within, many=True, spoil=_NO_ALLERGEN)
_home = _fact("home", values=_within, most=14, refuse=_NOT_PLACE)
_hometown = _fact("hometown", values=_within, most=14, refuse=_NOT_PLACE)
_NO_CONDITION = Phrase(r"^(?:什么|毛病|有病|相思|公主|懒|生|得|治|看|我).*病|病$(?<=^.病)|[在是]")


def _name(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = re.sub(
            r"(?:就好了?|就[行成]了?|就可以了?|好了|即可|也行|都行|[也都]可以|[吧啦哦呀哈喔])+$", "", _trim(groups["v"])
        )
        long = len(value) > (24 if value.isascii() else 8)
        return (
            [] if not value or long or value.isdigit() or _NOT_CALLED.search(simplified(value)) else [Pair(key, value)]
        )

    return read


_NOT_CALLED = Phrase(
    r"^(?:妈|爸|老公|老婆|儿子|女儿|朋友|了|他|她|你|您|它|不|个|车|外卖|醒|人|什么|啥|过|着|来|去|一|大家|我|起|滴"
    r"|快递|救护|代驾|的|名字|板|停|好|苦|喊|他们)|你|您|我|外卖|的$|[吃喝]|点了|一声|起床|早点|别人|服务员(?!.)|立早"
    r"|耳东|弓长|木子|回家"
)


def _is_name(groups: dict[str, str], _today: date) -> list[Pair]:
    """Returns whether a word can hardly be anything but a name, as in 我是小王 and 我是陈静."""
    return [] if _NOT_NAMED.search(simplified(groups["v"])) else [Pair("name", groups["v"])]


_NOT_NAMED = Phrase(
    r"[人生员师的手子痴男女党家者长工农民货粉控迷包友妈爸哥姐弟妹儿孩白板气时业科兵星座型后前]$|学|时候"
    r"|^小[时学众气心白三偷]|^老[师板实家婆公年外]|^高[中手三二一兴]|^[万常方文易于任何金]|^马上|秦始皇|孙悟空|汪汪"
)


def _age(groups: dict[str, str], _today: date) -> list[Pair]:
    years = number_zh(simplified(groups["v"]))
    return [Pair("age", str(years))] if 3 <= years <= 119 else []


def _birthday(groups: dict[str, str], today: date) -> list[Pair]:
    said = simplified(groups["v"])
    numbers = _DATE.fullmatch(said)
    if not numbers:
        day = next(iter(dated(said, today, ahead=True)), None)
        return [Pair("birthday", f"{day.first.month}月{day.first.day}日")] if day and day.first == day.last else []
    if numbers["lunar"] or "初" in said:
        return [Pair("birthday", groups["v"])]
    month, day_of_month = number_zh(numbers["m"]), number_zh(numbers["d"])
    if not (1 <= month <= 12 and 1 <= day_of_month <= 31):
        return []
    if not numbers["y"]:
        return [Pair("birthday", f"{month}月{day_of_month}日")]
    year = int(numbers["y"])
    if year < 100:  # "90年" is the latest such year that is past
        year += 1900 if year > today.year % 100 else 2000
    return [Pair("birthday", f"{year:04}-{month:02}-{day_of_month:02}")]


_DATE = Phrase(
    r"(?:(?P<y>\d{2,4})[-年/.])?(?:(?P<lunar>农历|阴历)|阳历|公历)?(?P<m>[\d一二三四五六七八九十]{1,3})[-月/.]初?"
    r"(?P<d>[\d一二三四五六七八九十]{1,3})[日号]?"
)


def _job(groups: dict[str, str], today: date) -> Iterator[Pair]:
    """Reads an occupation in group v and the employer in e."""
    yield from _fact("occupation", values=_within, most=14, refuse=_NO_JOB)(groups, today)
    yield from _employer({"v": groups.get("e", "")}, today)


_NO_JOB = Phrase(
    r"[好坏]学生|的学生|差生|你|他|她|好老师|好妈妈|好司机|天生|伟大|合格|[女男]生|什么|打工人|错|梦|^(?:饭|菜|爱|好|不"
    r"|事|人|这|那|完)"
)


def _employer(groups: dict[str, str], _today: date) -> list[Pair]:
    value = _trim(groups["v"])
    simple = re.sub(expand("^@PLACE市?的?(?=.)", _SLOTS), "", simplified(value))
    simple = re.sub(r"^(?:一家|一间|一个|一所|某家?|家|当地的?一?[家所]?)(?=..)", "", simple)
    place = re.fullmatch(expand("@PLACE(?:市|省|区|那边|这边)?", _SLOTS), simple)
    wrong = not simple or place or len(simple) > 20 or _NO_EMPLOYER.search(simple)
    return [] if wrong else [Pair("employer", value[len(value) - len(simple) :])]


def _studies(groups: dict[str, str], today: date) -> list[Pair]:
    """Reads a school in group s, and the subject studied there in v."""
    school = simplified(groups.get("s", ""))
    place = re.fullmatch(expand("@PLACE(?:这边|那边|这里)?", _SLOTS), school)
    where = [Pair("studies", groups["s"])] if school and not place and not _NO_STUDY.search(school) else []
    return [*where, *_fact("studies", many=True, most=14, refuse=_NO_STUDY)({"v": groups.get("v", "")}, today)]


def _languages(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        simple = simplified(groups["v"])
        return [Pair(key, groups["v"][m.start() : m.end()]) for m in re.finditer(_LANGUAGES, simple)]

    return read


def _relative(groups: dict[str, str], _today: date) -> list[Pair]:
    key = _RELATIONS[simplified(groups["r"])]
    if "v" not in groups:
        return [Pair(key, "", unnamed=True)]
    names = [name for name in _listed(groups["v"]) if len(name) <= (24 if name.isascii() else 6)]
    return [Pair(key, name) for name in names if not _NOT_CALLED.search(simplified(name))]


def _kin_does(groups: dict[str, str], _today: date) -> list[Pair]:
    key, said = _RELATIONS[simplified(groups["r"])], simplified(groups["v"])
    return [Pair(key, _trim(groups["v"]))] if key in KIN and not _PASSING.search(said) else []


#: Places where a person is only for a moment.
_PASSING = Phrase(r"^在(?!.*(?:工作|上班|读书|上学|留学|种地|务农|开店|做生意|当|念)).*|(?:家|医院|这里|旁边|路上)$")


def _pet(groups: dict[str, str], _today: date) -> list[Pair]:
    animal = re.sub(r"^(?:小|大|可爱的?|胖|老|的|很|超|漂亮的?|调皮的?|乖|流浪)+(?=[^熊])", "", simplified(groups["a"]))
    animal = {"猫咪": "猫", "猫猫": "猫", "狗狗": "狗", "狗子": "狗"}.get(animal, animal)
    written = groups["a"][len(groups["a"]) - len(animal) :] if simplified(groups["a"]).endswith(animal) else animal
    names = [name for name in _listed(groups.get("v", "")) if len(name) <= 12]
    if names:
        return [Pair("pet", f"{written} {name}") for name in names]
    count = groups.get("n", "")
    return [
        Pair(
            "pet", f"{count}{written}" if count[:1] in set("两兩二三四五六七八九十23456789") else written, unnamed=True
        )
    ]


def _favourite(groups: dict[str, str], _today: date) -> list[Pair]:
    # 最喜欢吃的就是… names no thing; its verb may tell the kind.
    thing = simplified(groups.get("k", "")) or {"吃": "吃的", "喝": "饮料"}.get(groups.get("e", ""), "")
    value = _trim(groups["v"])
    unclear = (
        not thing or re.search("人|事|东西|地方|你|一点", thing) or re.search("^[他她这那]|什么|你", simplified(value))
    )
    return (
        [] if unclear or len(value) > 24 else [Pair(f"favourite-{_FAVOURITES.get(thing, normalise_key(thing))}", value)]
    )


def _plan(groups: dict[str, str], today: date) -> list[Pair]:
    said = groups["v"]
    ahead = [span for span in dated(said, today, ahead=True) if span.last > today]
    months = re.finditer(
        r"(?:今年|明年|后年)|[\d一二三四五六七八九十]{1,2}月|(?:过年|春节|国庆|暑假|寒假|五一|元旦|圣诞|中秋|端午"
        r"|[年月]底|[春夏秋冬]天|毕业后)",
        simplified(said),
    )
    timed = [(span.start, span.end) for span in ahead] + [month.span() for month in months]
    value = re.sub(r"我们?|(?:就要|就|会|将要?|打算|计划|准备|得|决定)(?=[^，]{2})", "", _trim(said), count=1)
    beside = "".join(c for i, c in enumerate(simplified(said)) if not any(start <= i < end for start, end in timed))
    wrong = not timed or _WHEN.fullmatch(beside) or not 4 <= len(value) <= 40 or _NO_PLAN.search(simplified(value))
    return [] if wrong else [Pair("plan", anchor(value, today, ahead=True))]


_NO_PLAN = Phrase(
    "[去看买吃做玩]了|你|昨|上周|上个月|去年|再[来说聊问看见]|上班$|回来$|联系|休息|经常|总是|天气|下雨|每"
)
_TOPIC_EDGES = Phrase(
    r"^(?:关于|關於|有关|有關|我?的|我(?=..))(?=.)|(?:的?(?:话题|話題|事情?|问题|問題|内容|內容|笑话|笑話|玩笑)"
    r"|方面的?事?)$"
)


def _topics(text: str, many: bool) -> list[str]:
    return [_TOPIC_EDGES.sub("", value) for value in _values(text, many)]


_NO_TOPIC = Phrase(r"^(?:这|那|它|了|他|她|什么|别的|其他|些|起|话|我$)|你$|废话|^医生|心情|海鲜")
_condition = _fact("condition", refuse=_NO_CONDITION)
_goal = _fact("goal", most=30, refuse=Phrase("你|这个|那个|什么|一下|怎么|^.$"), dated=True)

# ------------------------------------------------------------------------------------------------ rules
# fmt: off
_RULES: tuple[Rule, ...] = (
    # who they are
    _rule(_name("name"), r"@ME的?(?:名字|全名|大名|本名|真名|姓名)(?:叫做?|是|：|:)(?P<v>[^，我]{1,20}?)(?=$|[（(]|今年"
          r"|来自|住)"),
    _rule(_name("name"), r"@S(?:全名|大名|本名|真名)?叫做?(?P<v>[^，我]{1,20}?)(?=$|[（(]|今年|来自|住在|是[个一名]|\d"
          r"|现在|目前|在)"),
    _rule(lambda g, _: [Pair("name", g["w"] if g.get("w", "").startswith(g["v"]) else g["v"] + g.get("w", ""))],
          r"@S(?:免贵)?姓(?P<v>[\u3400-\u9fff]{1,2})(?=$|叫|名)(?:名?叫?(?P<w>[\u3400-\u9fff]{1,3}))?"),
    _rule(_is_name, rf"@ME就?是(?P<v>[小老阿][\u3400-\u9fff]{{1,2}}|[{_SURNAMES}][\u3400-\u9fff]{{1,2}})$"),
    _rule(lambda g, _: [] if NOT_NAMES.fullmatch(g["v"]) else [Pair("name", g["v"])],
          r"@ME就?是(?P<v>[A-Z][a-z]{1,15})$"),
    _rule(_name("called"), r"我?(?:(?:大家|(?:我?的?)?(?:朋友|同学|同事|家人|爸妈)们?|别人|家里?人|人家|他们"
          r"|身边的?人)们?(?:一般|平时|平常|通常)?(?:[都也就])?(?:喜欢|习惯)?(?:叫|喊|称呼?)我(?:的?(?:外号|绰号"
          r"|昵称))?(?:叫|为|作|做)?|@ME的?(?:昵称|外号|绰号|小名|网名|英文名)(?:叫做?|是))(?P<v>[^，]{1,16})"),
    _rule(_age, r"@S(?:满|过)?@NUMBER(?:周?岁(?!的时候|时|那年|以|之|就|前|开始|半|大|生日)|(?<=满..)(?=$|了)|(?<=满.)"
          r"(?=$|了))"),
    _rule(either(_age), r"@ME(?:今年|已经|其实|都|今年都|今年刚)@NUMBER(?=$|了)|@ME"
          r"(?P<w>[二三四五六七八九]?十[一二三四五六七八九]?|[1-9]\d)了$|@ME的?年龄是?(?P<x>\d{1,3})"),
    _rule(either(_birthday), r"@ME的?(?:生日|出生日期)(?:就?是|在|：|:)?在?(?P<v>@DAY|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}"
          r"|今天|明天|后天)|@ME(?:是|出生于|生于|出生在)?在?(?P<w>@DAY)(?:出生|生日|生的|生人|过生日|的生日|生$)|@ME"
          r"(?P<x>@WHEN)(?:是我?|过)(?:的|我)?生日"),
    _rule(_fact("nationality"), r"@S是?(?:一?个|地道的?|土生土长的?)?(?P<v>@COUNTRY籍?(?:华人|人)|华裔"
          r"|[\u3400-\u9fff]{1,3}籍华人|[\u3400-\u9fff]裔[\u3400-\u9fff]{1,3}人)(?=$|在|现)"),
    _rule(_fact("religion"), r"@S(?:是|信)(?P<v>佛教?|基督教?|天主教|伊斯兰教?|道教|东正教|印度教)(?:徒)?的?$"),
    _rule(either(_languages("native-language")), r"@ME的?(?:母语|第一语言)(?:是|：)(?P<v>@LANGUAGE[^，]{0,10})|"
          r"(?P<w>@LANGUAGE)(?:才)?是我的?母语"),
    _rule(either(_languages("speaks")), r"@S(?:(?:会|能|可以|懂|说|讲|看得懂|学过)(?:一?点点?|一?些|说|讲|流利地?的?|用"
          r"|简单的?|基本的?|几句|一口){0,3}(?P<v>@LANGUAGE(?:(?:、|和|与|以及|还有|跟|同)?(?:一?点点?|一?些|说|讲"
          r"|流利的|会|简单的)?@LANGUAGE){0,5})|的?(?P<w>@LANGUAGE)(?:[说讲]得)?(?:过了?)?(?:很|挺|非常|比较|还)?"
          r"(?:流利|好|不错|行|可以|凑合|一般|N\d|n\d|[一二三四五六四六专八]级|[BC][12]|母语水平))"),
    _rule(either(_fact("timezone")), r"@ME(?:的|这边的?|所在的?|这里的?)?(?:时区)?(?:是|为|：|:|在|用|这边是|这里是)"
          r"(?P<v>[东西][一二三四五六七八九十\d]{1,2}区|[A-Z]{2,4}[+-]\d{1,2}|(?:美国)?(?:北京|东京|太平洋|美东|美西"
          r"|东部|西部|欧洲|中欧|格林威治|纽约|伦敦)时间)|@ME的?时区[是为：:](?P<w>[^，]{2,24}?)(?=$|所以)"),
    # where
    _rule(_home, r"@S(?:居?住|定居|常住|家住|居住|落户|安家|漂)(?:在|于)?(?!院)(?P<v>[^，]{1,20}?)(?=$|了|已经|快|有"
          r"|这边|\d年|[一二三四五六七八九十两]年|[和跟]|上班|工作|养|[做当]|附近)"),
    _rule(_home, r"@S人?在(?P<v>[^，]{1,14}?)(?:生活|定居|居住|安家|长住|租房|买了?房|待了|呆了|打拼|住)(?!过)"),
    _rule(_home, r"@S(?:从[^，]{1,10}?)?(?:搬家?(?:到|来|去|回|进)?|移居到?|移民到?|回(?=了?@PLACE))了?"
          r"(?P<v>[^，]{2,12}?)(?:[来去])?(?=$|了|住|生活|工作|这边|已经)"),
    _rule(_home, r"@ME家?(?:就|住)?(?:在|住)(?P<v>@PLACE(?:[省市]|[\u3400-\u9fff]{1,3}[市区县镇])*)(?:的|这边|这里|这儿"
          r"|那边[^，]{0,6})?$"),
    _rule(_home, r"@ME?(?:坐标|现居|base|常住地|居住地|所在城市|现住|常驻地?)(?:是|在|：|:)?(?P<v>[^，]{2,12})$"),
    _rule(_home, r"@ME(?:现在|目前|人|常驻|常年|长期|这边|平时|基本|一直|就){1,2}(?:在|于|是)(?P<v>(?:@PLACE"
          r"|[\u3400-\u9fff]{1,3}[市县])(?:@PLACE|[\u3400-\u9fff]{1,3}[市县区])?)市?(?:这边|这里|这儿)?$"),
    _rule(_hometown, r"@S(?:是|也是)?(?:来自|从(?=[^，]{1,10}来的)|(?:的)?(?:老家|家乡|籍贯|故乡|祖籍)(?:就?是|在|："
          r"|:)?在?|(?:是|从小|一直|出生|生|土生土长|小时候)*[在于](?=[^，]{2,12}(?:出生|长大|土生土长)))(?!\d)"
          r"(?P<v>[^，]{2,14}?)(?:来的|出生|长大|土生土长|的?(?=$|今年|现在|目前|在|住|但|并))"),
    _rule(_hometown, r"@S(?:出生|生)[在于](?!\d)(?P<v>[^，]{2,12}?)(?=$|长大|的)"),
    _rule(either(_hometown), r"@ME[也就]?(?:其实)?是(?:一?个|地道的?|土生土长的?|正宗的?)?(?:(?P<v>@PLACE)(?:那边)?的$|"
          r"(?P<w>@PLACE[省市]?@PLACE?市?|[\u3400-\u9fff]{1,4}[省市县区镇]|内蒙)人(?=$|现在|目前|在|但))"),
    # health
    _rule(either(_allergy), r"@S(?:的?身体|的?皮肤)?(?:是|有|会)?对(?P<v>[^，]{1,24}?)@ADV(?:会|有)?@ADV过敏|@S有"
          r"(?:很?严重的?|轻微的?|点)?(?P<w>[^，性]{1,12}?)过敏(?:症)?(?!性)|@S一?吃(?P<x>[^，]{1,12}?)(?:就|会|都|容易"
          r"|嘴|脸|浑身|全身){0,3}(?:严重)?(?:过敏|肿|起疹子?|起荨麻疹)|@ME的?过敏原是对?(?P<y>[^，]{1,24})"),
    _rule(either(_allergy), r"@ME(?:(?!@RELATION)(?P<v>[^，我不没会是有对]{1,6}?)(?:严重|重度|会)?|"
          r"(?P<w>[^，我你他她]{1,10})我(?:都|也|会|严重)*)过敏$"),
    _rule(lambda g, _: [Pair("diet", {"素": "素食", "纯素食": "纯素"}.get(g["v"], g["v"]))],
          r"@S(?:[是吃当做转改]|在吃|坚持|开始|奉行|保持|属于|算){0,3}(?:一?[个名位])?(?:长期)?吃?(?P<v>纯素食?"
          r"|全?素食?|蛋奶素|鱼素|清真|生酮|低碳|无麸质|低糖|弹性素食|奶素)(?:主义)?(?:者|饮食|食物|食品|的|餐|了\d+年"
          r"|很久了|好几年了?|的人)*(?=$|了|所以|好|快|已经|\d|[一二三四五六七八九十两])"),
    _rule(lambda g, t: [Pair("diet", f"不吃{_trim(next(iter(g.values())))}")], r"@S(?:(?:不(?:能|敢|可以|怎么)?|戒了?)"
          r"(?:吃|碰|沾|喝)|[吃喝碰]不[了得来])(?P<v>[牛猪羊鸡]肉|肉|红肉|海鲜|鱼|虾|辣|辣椒|鸡蛋|奶制品|麸质|甜食|糖"
          r"|内脏|葱|蒜|姜|香菜|牛羊肉|生冷|坚果|花生|核桃|杏仁|腰果|大豆|豆制品|菠萝|芒果|桃子?|草莓|螃蟹|贝类|小麦|面食|油炸的?|荤|大蒜|洋葱"
          r"|牛奶|咖啡|酒|奶茶|茶)的?(?:食物)?(?=$|了"
          r"|所以|[和、])|@ME?(?P<w>[^，我你]{1,6})我(?:是|真的?|都|从来|一口都?|完全|一点都?){0,3}(?:不[能吃]?吃"
          r"|吃不[了下来])"),
    _rule(lambda g, t: [*_condition({"v": g["v"]}, t), *_condition({"v": g.get("w", "")}, t)],
          r"@S(?:患有|患了|得了|有|确诊了?|被确诊为?|被诊断(?:为|出|出了|有|出有)|(?:检查|查)出来?(?:了|有)?|得过|天生"
          r"|先天|是|被查出来?有?){0,2}(?:轻微的?|轻度的?|严重的?|重度的?|中度的?|点|很严重的|一点|慢性的?|家族性)?"
          r"(?P<v>@CONDITION)(?:患者|人|\d+度)?(?:和(?P<w>@CONDITION))?(?:老毛病)?(?:了|的)?(?=$|[，、]|好)"),
    # work and studies
    _rule(_job, r"@S(?:(?:在(?P<e>[^，]{2,20}?))?(?:当|做|干|担任|任|升了?|升任|转行做|转行当)|是)(?:的是)?"
          r"(?:[做干搞])?(?:了|着)?@A(?:在读|普通|苦逼)*(?P<v>[^，的我]{0,8}?@JOB)的?(?=$|了|在|\d|已经|今年|住|和|兼"
          r"|工作|[（(]|来自|现在|目前|喜欢)"),
    _rule(_fact("occupation", refuse=Phrase(r"很|忙|累|无聊|枯燥|简单|难|你|轻松|辛苦|稳定|什么|远程")),
          r"@ME的?(?:工作|职业|本职|主业|岗位)(?:就?是|：|:)@A(?:做|当)?(?P<v>[^，]{2,14}?)(?:的|工作)?$"),
    _rule(either(_fact("occupation", refuse=_NO_JOB)), r"@S(?:是|一直|主要)*@A(?:(?:从事|做|搞|干)(?P<v>(?!净|活|嘛|啥"
          r"|坏|着|笑|爱|完|到|好|不|事|错|过|运动|作业|家务|题|噩梦|核酸|手术|志愿|决定|ppt|PPT|得"
          r"|一)[^，我你]{1,10}?)(?:这一?行|行业|工作|方面的?|相关的?|领域|开发的|的)|(?P<w>(?:开|卖|教|跑|送|修)(?!心"
          r"|玩|会|始)[^，我你不]{1,8}?)(?<![去来过回走到])的)(?=$|工作)"),
    _rule(_fact("occupation"), r"@S(?P<v>(?:在[^，我]{2,8})?教(?:[语数英][文学语]|物理|化学|生物|历史|地理|政治|体育"
          r"|音乐|美术|钢琴|书法|舞蹈|[初高]中|小学|大学|[一二三四五六]年级)[^，]{0,4}|(?:自己)?开(?:了)?(?:一?家|一?个"
          r"|一?间)[^，]{1,8}(?:店|馆|公司|工作室|厂|餐厅|诊所|民宿|吧))(?=$|的)"),
    _rule(_fact("occupation"), r"@S(?:被裁)?(?P<v>退休|失业|待业|自由职业|没工作|在家带娃|全职带娃)(?=$|了|在家|好|很"
          r"|\d|[一二两三四五六七八九十中])"),
    _rule(either(_employer), r"@S(?:在(?P<v>[^，]{1,20}?)(?:上班|工作|任职|就职|打工|实习|供职|干了[^，]{1,4}年)"
          r"(?!的时候|时|过)|(?:就职于|任职于|供职于|入职了?|加入了?|跳槽[到去]了?|跳到了?|受雇于|效力于|进了)"
          r"(?P<w>[^，]{2,20}?)(?:工作|上班)?(?=$|了|[做当]|(?<![小大的])公司$))"),
    _rule(_studies, r"@S(?:还|正)?(?:就读于|在读|考上了?|毕业于|读的是|在(?=[^，]{2,16}?(?:读|上学|念|学)))"
          r"(?P<s>[^，]{2,20}?(?:大学|学院|中学|高中|一中|附中|学校|大)|[^，]{2,8}?(?=读|念|上学))(?:的|读书|上学|念书"
          r"|读大学|读研|读博|留学|读本科|上大学|学习|念大学|就读|读|学|念)*(?P<v>(?!书|大学|习|研|博|院)[^，]{2,10}?)?"
          r"(?:专业|系)?的?$"),
    _rule(_studies, r"@S(?:还|正)?是(?P<s>[^，]{2,14}(?:大学|学院)|清华|北大|复旦|[交浙南人中武港台川厦山]大|同济"
          r"|中科大)的?(?P<v>[^，]{0,8}?)(?:专业|系)?的?(?:(?:学生|研究生|博士生|本科生|大[一二三四])(?:学生)?)?$"),
    _rule(_studies, r"@S(?:是|的|大学|本科|研究生|正|硕士|博士|自|大学里|专业){0,4}(?:主修|攻读|学习|在学|学的是?"
          r"|读的是?|念的?是?|学(?=[^，]{2,8}的$)|学(?=[^，]{2,8}专业$)|在?自学|专业[是：]|读(?=[^，]{2,8}(?:专业|系|的)))"
          r"(?P<v>[^，]{2,12}?)(?:专业|系)?的?(?=$|中)"),
    _rule(_studies, r"@ME(?:是|就是|读)(?P<v>[^，的]{2,10}?)(?:专业|系)(?:的|毕业的?|的学生|学生|出身)?$"),
    _rule(lambda g, t: _pet({**g, "a": g.get("a") or g["b"]}, t), r"(?:@S|我家里?|家里|我们家里?)@ADV(?:养了|养着|养"
          r"|有养?|(?:领养|收养|捡|买|多|来)了?)@QI(?P<a>(?!人|朋友|问题)[^，叫。]{0,8}?@ANIMAL)(?:它?(?:名字|名)?"
          r"(?:叫做?|是)(?P<v>[^，]{1,16}))?(?=$|了|和|一|、|还)|@ME家?养的?(?P<b>@ANIMAL)$"),
    _rule(_pet, r"(?:@ME家?里?|家里)的?(?:那只|那条|这只|一只|养的)?(?P<a>[^，我你他她有叫养喜欢爱的]{0,4}?(?:@ANIMAL"
          r"|狗子))的?(?:(?:名字|小名)?(?:叫做?|名叫|是叫|是(?<=名字是))(?P<v>[^，]{1,12}?)(?=$|今年))"),
    _rule(lambda g, t: _relative({"r": g["r"], "v": g.get("v") or g["w"]}, t), r"@ME家?的?(?:大|小|二|亲|双胞胎|未来"
          r"|现任|现在|目前)?(?P<r>@RELATION)的?(?:的?名字?是(?P<w>[^，]{1,12})|(?:名字|小名|大名|名|现在|也)?(?:叫做?"
          r"|名叫|名字叫|是叫)(?P<v>[^，]{1,20}?)(?=$|今年|在|是|住|\d))"),
    _rule(lambda g, t: _relative({key: v for key, v in zip("rvrv", map(g.get, "rvxy"), strict=True) if v}, t),
          r"(?:@ME|我?家里?)(?:[还也家们]|我?家里)?有?(?:一|两|二|三|1|2|3|俩|仨)(?:[个位对])?(?:可爱的|很好的|双胞胎"
          r"|小|大|亲|[\d一二三四五六七八九十]{1,2}岁的|刚出生的)?(?P<r>@RELATION)(?:分别|名字|名|她|他)?(?:(?:叫做?"
          r"|名叫)(?P<v>[^，]{1,20}?)(?=$|今年)|$)|(?:@ME|我?家里?)[还也家]?有[个位](?:可爱的|很好的|小|大|亲)?"
          r"(?P<x>@RELATION)(?:名字|名|她|他)?(?:(?:叫做?|名叫)(?P<y>[^，]{1,20}?)(?=$|今年)|$)"),
    _rule(_relative, rf"@ME家?的?(?P<r>@RELATION)就?是(?P<v>[{_SURNAMES}][\u3400-\u9fff]{{2}})$"),
    _rule(lambda g, _: [Pair(_RELATIONS[simplified(g["r"])], _trim(g["v"]))], r"@ME家?的?(?P<r>@RELATION)[也]?(?:现在"
          r"|目前)?(?:是|做|当)(?:一名|一个|一位|个|名|位|做)?(?P<v>[^，我你]{0,8}?@JOB|开[^，]{2,6}的)的?$"),
    _rule(_kin_does, r"@ME家?的?(?P<r>@RELATION)(?:现在|目前|也|今年|都)?(?P<v>(?:住在|在)[^，你我]{2,12}"
          r"|对[^，]{1,10}过敏|(?:今年)?(?:\d{1,2}|[一二三四五六七八九十]{1,3})岁半?|有@CONDITION)了?$"),
    # tastes and pastimes
    _rule(_favourite, r"@S(?:个人)?最(?:喜欢|爱|喜爱|中意|钟爱)(?P<e>吃|看|听|读|喝|玩)?的(?P<k>[^，是]{0,6}?)(?:一直"
          r"|永远|还|就|当然|肯定|应该|现在|目前|如今)*(?:是|：|:|有)(?P<v>[^，]{1,30})"),
    _rule(_favourite, r"(?P<v>[^，我你]{1,14})(?:永远|一直|绝对|当然)?是我(?:个人)?最(?:喜欢|爱|喜爱)(?:吃|看|听|读|喝"
          r"|玩)?的(?P<k>[^，]{1,6}?)(?:之一)?$"),
    _rule(_dislikes, r"@S(?:(?:不|没那么|没有?很?|不怎么|不太|不是很|不大|[一]点[也都]不|从来不|最不|完全不|并不"
          r"|实在不)(?:能)?(?:喜欢|爱|喜爱|待见|感冒|接受)|讨厌|厌恶|恨|受不了|不能忍受|忍受不了|反感|烦死|怕"
          r"(?=[^，]{1,3}$)(?!来|迟|死|你|吵架)|烦(?=别人|开会|下雨|吵|人多|加班))(?:被)?@LIST"),
    _rule(_dislikes, r"@ME(?P<v>[^，我你]{1,8}?)我(?:是|真的?|实在|完全|也|一点都?|特别|最|一直|都){0,3}(?:受不了"
          r"|不[太怎]?么?喜欢|不爱|欣赏不来|不感冒|接受不了|讨厌|无感|提不起兴趣|喝不来)"),
    _rule(either(_likes), r"@S(?:对(?P<v>[^，]{1,16}?)@ADV(?:感兴趣|有兴趣|着迷|上瘾|情有独钟)|(?:的|平时的?|最大的?"
          r"|业余)*(?:兴趣)?(?:爱好|兴趣|嗜好)(?:就?是|有|包括|：|:)?(?P<w>[^，是有]{1,50})|(?:是|也是|可是|就是)"
          r"(?:一?个|一枚|资深|铁杆|忠实|超级|狂热|骨灰级|重度|老|的)*(?P<x>[^，]{1,12}?)的?(?:铁杆|忠实|超级|资深)?"
          r"(?:粉丝|爱好者|发烧友|球迷|迷|控|铁粉|粉|党)$)"),
    _rule(_likes, r"@S(?:更?喜欢|喜爱|热爱|钟爱|酷爱|偏爱|迷上了?|爱上了?|沉迷于?|痴迷于?|中意|倾向于?|超爱|爱(?!你|他"
          r"|她|它|我|上|的|过|人|谁|好))@LIST"),
    _rule(_likes, r"(?:比起[^，]{1,12}?，?)@S更?(?:喜欢|偏好|倾向于?|爱)@LIST"),
    _rule(_fact("hobby"), r"@S(?:(?:开始|经常|每周|每天|天天|每个?周[^，]{1,3}|周[一二三四五六日末]{1,3}|晚上|会"
          r"|在)[^，]{0,2})(?P<v>(?:玩|练|打|弹|拉|跳|踢|滑|画|跑|骑|爬|钓|做)(?!算|开|扫|断|工|电话|游戏机|车|饭|手|题"
          r"|作业)[^，我你]{1,6}?)(?=$|了)"),
    _rule(_fact("hobby", before="收集"), r"@S收集(?!好|一下|你)(?P<v>[^，]{2,10}?)的?$"),
    _rule(_fact("hobby"), r"@S每个?[周天月](?:都|去|要|打|练|跑|做)*[一两三四五\d][次回](?P<v>[^，]{2,6})$"),
    # what they have and what they are after
    _rule(_fact("owns", values=_within, most=16, refuse=Phrase(r"问题|建议|意见|想法|电影|电视剧|小说|剧|书$|菜|药|题"
          r"|钥匙|眼泪|话|时间|朋友|事|你|作业|考试|面试|会$|好奇|火|年纪|饭|歌|机票|票")),
          r"@S(?:家)?(?:有|(?:新)?买了?|(?:新)?入手?了?|拥有|开着?|骑着?|换了?)(?:一|两|三|1|2|3)?(?:辆|台|部|架|套|把"
          r"|艘|块|支|栋|间|双)(?P<v>[^，我你]{1,16}?)(?=$|了|叫|\d年)"),
    _rule(_fact("owns", refuse=Phrase("坏|旧|新的|黑|白|什么|多少")), r"@ME(?:开的|骑的|的车|用的?(?:手机|电脑|相机)?"
          r"|的?(?:手机|电脑|笔记本|相机|耳机|车|平板|键盘|显卡))是一?[辆台部]?(?P<v>[^，我你]{2,16})$"),
    _rule(_goal, r"@S(?:最大|人生|长期|短期|近期|新年|明年|这辈子|的|终极|唯一){0,4}的?(?:目标|梦想|愿望|理想|心愿"
          r"|志向)(?:就?是|：|:)(?:能够?|想|希望|要)?(?P<v>[^，]{2,30})"),
    _rule(_goal, r"@S(?:以后|未来|总有一天|有朝一日|毕业后|退休后|正?在?)*(?:(?<![好真])想要?|希望能?|打算|计划|准备"
          r"|立志要?|争取|努力|梦想着?|决定|立志|决心|要|在?(?=备战|备考|攒钱))(?:能|在[^，]{2,8}前|三年内|\d年内"
          r"|有一天|早日|尽快){0,2}(?P<v>(?:今年内?|年底前)?(?:学(?:会|好|习)?(?!你|一下|着)[^，]{2,12}|减肥|减重"
          r"|减到?[\d一二三四五六七八九十]|瘦[^，]{1,8}|考(?!虑|察|试)[^，]{1,10}|成为[^，]{2,14}|当"
          r"(?:上)?@A[^，天时]{2,10}|写一?[本部][^，]{1,10}|跑(?:完)?[^，]{0,3}马(?:拉松)?|[攒存](?!着)[^，]{2,12}|买"
          r"(?:一?[套辆栋]|房|车)[^，]{0,10}|戒(?:烟|酒|糖|奶茶)|环游[^，]{1,6}|创业|开一?[家间个][^，]{2,10}"
          r"|回[^，]{1,6}开[^，]{2,10}|移民[^，]{0,6}|出国[^，]{0,6}|留学|拿到[^，]{2,12}|读(?:完)?\d+本书|读研|读博"
          r"|健身|练[^，]{2,8}|转行[^，]{0,8}|升职[^，]{0,6}|早睡[^，]{0,4}|提高[^，]{2,10}|雅思[^，]{0,8}"
          r"|托福[^，]{0,8}|公务员|教资|备[考战][^，]{1,8}|每天[^，]{2,12}|去[^，]{2,6}(?:留学|旅行|定居|看极光)"
          r"|通过[^，]{2,10}))的?(?=$|了|所以)"),
    _rule(_plan, r"@ME(?P<v>(?:打算|计划|准备|要|会|得|将|[和跟][^，]{1,5}|已经|就){0,3}@WHEN(?:我们?)?(?:(?:打算|计划"
          r"|准备|要|会|得|将|就要?|和|跟|有一?[个场次]|在|去|飞(?!雪|机|鸟)|回|来|出发|体检|考|面试|结婚|搬|手术"
          r"|复查|开学|入职|辞职|出差|旅行|旅游|参加|答辩|比赛|演出|交|见|陪|带|到|离开|开始|毕业|休)[^，]{1,30}|体检"
          r"|结婚了?|开学|面试|手术|辞职|出差|答辩|复查|毕业))"),
    _rule(_plan, r"@ME(?P<v>(?:打算|计划|准备|决定)(?!给你|跟你|睡|吃|洗|出门|休息)[^，]{3,30})"),
)
_REQUESTS: tuple[Rule, ...] = (
    _rule(_name("called"), r"(?:请|你|您|大家|直接|就|都|可以|以后|还是|平时|也可以|不如|改){0,4}(?:叫|喊|称呼|称)我"
          r"(?:为|作|做|一声|的英文名|的小名)?(?P<v>(?!起床|的时候|吃|一下|回|怎么|名字|全名)[^，]{1,16})"),
    _rule(_fact("boundary", values=_topics, many=True, most=16, refuse=_NO_TOPIC),
          r"(?:(?:请|拜托|求你|你|您|千万|都|再|也|麻烦){0,3}(?:别|不要|不许|不准|禁止|不用|勿|莫|少|避免)(?:再|老是"
          r"|总是|随便|轻易|动不动就?){0,2}(?:[跟和对给向同]我|在我面前|当着我的?面?|与我|问我|拿我的?|推荐我)?(?:再)?"
          r"|我(?:真的|实在|现在|一点[也都]?)?(?:不想|不愿意?|不希望|不喜欢|拒绝)再?(?:[跟和]你|跟任何人|和别人|被)?)"
          r"(?:谈论?|聊到?|提起?到?及?|说起|讨论|问起?|讲|开(?=.{1,8}玩笑)|涉及|八卦|催(?=我?婚|我?结婚|生)|评价|评论)"
          r"(?:我)?(?:任何)?(?:关于|有关|到|起|和|跟)?(?!话|一下|这么|那么|得|太|废|客气|多余|表情|脏话|英[语文]|中文"
          r"|方言|网络|长|大道理|敬语|我$|我怎么)(?P<v>[^，]{1,20})"),
    _rule(_fact("boundary", values=_topics, refuse=_NO_TOPIC), r"(?P<v>[^，你]{2,12}?)(?:(?:请|你|就)*(?:别|不要|不许"
          r"|不准)(?:再)?(?:提|聊|谈|说|问)了?$|(?:是我的?(?:雷区|禁区|底线|忌讳|禁忌)|对我来说是(?:敏感|禁忌)话题))"),
)
# fmt: on
