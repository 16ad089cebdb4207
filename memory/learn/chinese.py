"""Chinese clauses: how a sentence falls apart, what refuses it, and the rules that read it.

Invariants: pure; matched in simplified characters without spaces, kept as written; a question, a doubt, a condition or
somebody else's words silence their clause and what hangs on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from memory.dates import anchor, mentions, number_zh
from memory.keys import RELATIONS, normalise_key
from memory.learn.clauses import (
    HAN,
    KIN,
    LONGEST_CLAUSE,
    Context,
    Pair,
    Phrase,
    Read,
    Rule,
    apply,
    by_word,
    longest_first,
    still_nameless,
    strip_signs,
    tell,
    with_name,
)
from memory.learn.english import NOT_NAMES


def pairs(sentence: str, context: Context) -> Iterator[Pair]:
    """As `pairs`; a Chinese question is known by its words, so each clause is judged by itself."""
    text = sentence.replace("\u3000", " ").strip()
    asked = "?" in text[-6:] or "？" in text[-6:]
    text = _TOLD_TO.sub(r"\1：", text.strip(" .!?！？。；;…~～\n"))
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
        doubtful = _QUESTION.search(clause.simple) is not None or _DOUBT.search(clause.simple) is not None
        refused = poisoned or poison is not None or doubtful or number >= asked_from
        poisoned = poisoned or poison is not None
        if number >= asked_from and _POLITE.search(clause.simple):
            yield from _requests(clause.after(_OPENING), context)
        if refused:
            context.carried = False
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
        simple = "".join(written[i] for i in kept).translate(_SIMPLIFIED)
        return cls(simple=simple, written=written, origin=tuple(kept))

    def without_particles(self) -> _Clause:
        """The clause without the particles that only colour its end."""
        return self.piece(0, len(self.simple.rstrip("哦啊呀啦哟喔噢耶嘛哈")))

    def piece(self, start: int, end: int | None = None) -> _Clause:
        end = len(self.simple) if end is None else end
        return _Clause(simple=self.simple[start:end], written=self.written, origin=self.origin[start:end])

    def text(self, start: int, end: int) -> str:
        """The characters `start` to `end` of `simple` as they were written."""
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
        """The clause with the 我 that was left out."""
        return _Clause(
            simple=f"我{self.simple}", written=f"我{self.written}", origin=(0, *(i + 1 for i in self.origin))
        )

    def parts(self) -> Iterator[_Clause]:
        """Cut where a new statement begins without a comma."""
        start = 0
        for match in _RUN_ON.finditer(self.simple):
            if match.start() > start:
                yield self.piece(start, match.start())
                start = match.start()
        yield self.piece(start)


def _clause(clause: _Clause, context: Context, *, leftovers: int = 8) -> Iterator[Pair]:
    """What one clause says, and at most `leftovers` statements that follow in it without a comma."""
    simple = clause.simple
    if not simple:
        return
    named = _NAMED.match(simple)
    if named and (context.nameless or context.stranger):
        nameless, context.nameless = context.nameless, None
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
    unsaid = (
        context.carried
        or (context.carried is None and _ALONE.match(simple))
        or (context.kin and (_KIN.match(simple) or _ANOTHER.match(simple)))
    )
    forms = [clause, clause.by_speaker()] if unsaid and not _SUBJECT.match(simple) else [clause]
    context.kin = False
    for form in forms:
        applied = apply(_RULES, form.simple, context.today, form.text)
        if applied:
            pairs, end = applied
            context.kin = pairs[0].key in RELATIONS
            context.carried = bool(_SELF.match(simple)) or not (context.kin or pairs[0].key == "pet")
            yield from tell(pairs, context)
            rest = form.piece(end).after(_OPENING)
            if len(rest.simple) > 1 and leftovers:
                yield from _clause(rest, context, leftovers=leftovers - 1)
            return
    if _SELF.match(simple):
        context.carried = True
    elif _OTHER.match(simple):
        context.carried = False
    _look_around(simple, context)


def _look_around(simple: str, context: Context) -> None:
    """Whether a clause without a fact speaks of somebody, whose name may come next: 我妹妹特别可爱，她叫…."""
    others = list(_SOMEBODY.finditer(simple))
    context.stranger = bool(others)
    if len(others) == 1 and (relation := others[0]["r"]):
        context.nameless = Pair(_RELATIONS[relation], "", unnamed=True)


def _requests(clause: _Clause, context: Context) -> Iterator[Pair]:
    """As `_requests`."""
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


_RELATIONS = by_word(
    {
        "wife": "老婆 妻子 太太 媳妇", "partner": "爱人 对象 伴侣 另一半", "husband": "老公 丈夫 先生",
        "girlfriend": "女朋友 女友", "boyfriend": "男朋友 男友", "fiance": "未婚妻 未婚夫",
        "mother": "妈妈 妈 母亲 老妈", "father": "爸爸 爸 父亲 老爸", "sister": "姐姐 姐 妹妹 妹",
        "brother": "哥哥 哥 弟弟 弟", "son": "儿子 大儿子 小儿子", "daughter": "女儿 大女儿 小女儿 闺女",
        "child": "孩子 宝宝 娃", "grandmother": "奶奶 外婆 姥姥", "grandfather": "爷爷 外公 姥爷",
        "grandson": "孙子", "granddaughter": "孙女", "uncle": "叔叔 舅舅 伯伯", "aunt": "姑姑 阿姨 姨妈 小姨",
        "cousin": "表哥 表姐 表弟 表妹 堂哥 堂姐 堂弟 堂妹", "nephew": "侄子 外甥", "niece": "侄女 外甥女",
        "friend": "朋友 好朋友 最好的朋友 闺蜜 好友 死党 哥们 兄弟", "roommate": "室友 舍友", "neighbour": "邻居",
        "boss": "老板 上司 领导", "colleague": "同事", "teacher": "老师 班主任", "mentor": "导师",
        "doctor": "主治医生", "mother-in-law": "岳母 婆婆", "father-in-law": "岳父 公公", "sister-in-law": "嫂子",
    }
)  # fmt: skip
_SIMPLIFIED = str.maketrans(
    "係歡討厭過對來歲養隻貓媽兒師員醫護學會說講語務現愛記別點請從開後時區長東車買輛臺個們幾麼嗎誰為這還沒無與種間電"
    "話飯雞魚蝦職業專讀書導經夢標劃準備戀裡裏於樂聽顏動藍綠紅簡單體應該網華國廣灣龍陳劉張趙吳黃鄭謝許楊葉蘇蕭鐘羅賴"
    "週號禮習慣歷陽陰農結訴認識錯實際稱聯絡題論問關邊給讓幫總離設計銀館廠紀門戶畫畢級雙臉寫詞僅產資訊軟碼碩錢賣攝廚"
    "劇編輯釋喫麵嚴癥狀憂鬱慮氣壓談惡價運鋼機腦筆視腳爺婦鄰閨兩條鳥龜馬煩樣興較湯圓義韓貫鄉縣鎮處內蘭歐亞寧濟慶豐連"
    "遼瀋絲麗舉烏喬虧雲親倉優偉倫僱衆眾傾黨馮決減剛創劑勵盧廳廈髮發呂囉園圖聖場壞塊堅壇聲夠頭誇奧嬌孫寶寵審宮賓爾塵"
    "盡層屬崗島嶽帶彎彈強當錄憶懷懼戲戰揚擔擁擇撿換據數斷舊暱暈暫術極構櫃棧棟橋檢檳樓漢淚潔濕測漁溫遊滿濱潰濰煉熱燒"
    "煙獨獄獵豬環療瘡癡癮癬癲監盤著睏礙確穩窩竇築類糾約純納紐線練細終紹繞絕統維綿綜緬縫聰肅腸勝臟臘藝節莊薦葷藥蓮蘿"
    "營薩蔥蔣雖蠶蠻蟎補規覺訓議諱證評診譯試詩誕詢詳誤調謊譚財貨質貧購貴賀賊賈轉輕輔輩達遠遲選遞鄧鄒採鑰鐵銷錫閉閒閩"
    "閱闆閻隊陣陸陝險隨難靜項順須顧頓領額風飛飲駕罵驗騎騙魯鮮鳴鴨鴿鵡鸚麥齊齡龔粵妳姊牠唸爲鹹鹽髒傢將進",
    "是欢讨厌过对来岁养只猫妈儿师员医护学会说讲语务现爱记别点请从开后时区长东车买辆台个们几么吗谁为这还没无与种间电"
    "话饭鸡鱼虾职业专读书导经梦标划准备恋里里于乐听颜动蓝绿红简单体应该网华国广湾龙陈刘张赵吴黄郑谢许杨叶苏萧钟罗赖"
    "周号礼习惯历阳阴农结诉认识错实际称联络题论问关边给让帮总离设计银馆厂纪门户画毕级双脸写词仅产资讯软码硕钱卖摄厨"
    "剧编辑释吃面严症状忧郁虑气压谈恶价运钢机脑笔视脚爷妇邻闺两条鸟龟马烦样兴较汤圆义韩贯乡县镇处内兰欧亚宁济庆丰连"
    "辽沈丝丽举乌乔亏云亲仓优伟伦雇众众倾党冯决减刚创剂励卢厅厦发发吕啰园图圣场坏块坚坛声够头夸奥娇孙宝宠审宫宾尔尘"
    "尽层属岗岛岳带弯弹强当录忆怀惧戏战扬担拥择捡换据数断旧昵晕暂术极构柜栈栋桥检槟楼汉泪洁湿测渔温游满滨溃潍炼热烧"
    "烟独狱猎猪环疗疮痴瘾癣癫监盘着困碍确稳窝窦筑类纠约纯纳纽线练细终绍绕绝统维绵综缅缝聪肃肠胜脏腊艺节庄荐荤药莲萝"
    "营萨葱蒋虽蚕蛮螨补规觉训议讳证评诊译试诗诞询详误调谎谭财货质贫购贵贺贼贾转轻辅辈达远迟选递邓邹采钥铁销锡闭闲闽"
    "阅板阎队阵陆陕险随难静项顺须顾顿领额风飞饮驾骂验骑骗鲁鲜鸣鸭鸽鹉鹦麦齐龄龚粤你姐它念为咸盐脏家将进",
)
_SEGMENT = Phrase(
    r"[，,、]?\s*(?:——|[()（）\[\]【】|])\s*|\s*[，,]\s*|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])"
    r"|(?<=[\u3400-\u9fff])[~～]+|(?:哈哈|呵呵|嘿嘿|hh)+\s*",
    re.IGNORECASE,
)
_TOLD_TO = Phrase(r"((?:[记記](?:一下|住|下[来來]?|得|着|著|好|牢)|牢[记記]|(?:[别別]|不要)忘[记記]?了?))\s*[，,]\s*")
_RUN_ON = Phrase(
    r"(?<=.)(?:(?<![叫让说得是和对跟给为像以帮被问夸骂告诉记住提聊谈讲催起到于：:])(?<!告诉)我(?=叫|是|住|在|有|对"
    r"|今年|喜欢|讨厌|爱|不喜欢|不吃|来自|会说|养|家|的|老[婆公家]|妈|爸|男朋友|女朋友|从|目前|现在)"
    r"|(?<![我且都儿子女妹弟哥姐妈爸婆公友])(?<!我的)(?<!目前)(?<!现在)(?:今年)(?=\d|[一二三四五六七八九十])"
    r"|(?<![我在且都前居直])(?<!目前)(?<!现在)(?<!一直)(?<!我家)(?<!家)住在|(?<![我自])(?<!我是)来自|(?<!我)目前"
    r"|(?<!我)(?<!的.)(?<!的..)(?<!的...)(?<!的....)现在(?=住|在|是)"
    r"|还有(?=一?[个位只条])|但是?|不过|所以|因为|而且|然后|并且|另外)"
)
_OPENING = Phrase(
    r"(?:你好|您好|嗨|哈喽|哈啰|hello|hi|hey|大家好|早上好|晚上好|下午好|早安|晚安|早|那个|其实|对了|话说"
    r"|顺便(?:说一下|说一句|提一下|说|告诉你|一提)?|(?:我)?(?:先|来|简单)*(?:自我)?介绍一下(?:自己)?|自我介绍"
    r"|跟你(?:说|讲)(?:一下|个事|一声|哦|啊|说)?|和你说(?:一下)?|告诉你(?:一下|哦|个事|一件事)?|我(?:想)?(?:跟|和"
    r"|告诉|同)你(?:说|讲|提)?(?:一下|过|一声|哦)?|我(?:之前|上次|刚才|已经)?(?:说|提|讲)过(?:了)?|因为|因|由于"
    r"|所以|但是|但|不过|而且|并且|还有(?!一?[个位只条]|俩|两)|另外|然后|同时|此外|以及|嗯+|哦+|啊+|呃+|额+|诶|哎|唉|好的?|好吧|行|可以"
    r"|是的|没错|对(?=我|$)|谢谢(?:你|啦|了)?|多谢|不好意思|抱歉|说实话|老实说|坦白说|实话实说|讲真|真的|补充一下"
    r"|补充|更正一下|更正|纠正一下|备注|注意|提醒一下|提醒你|你知道吗|要知道|你要知道|你得知道|众所周知|反正|总之"
    r"|首先|其次|最后|第一|第二|虽然|尽管|既然|毕竟|就是|那|哈+|嘿+|哎呀|哇|喂|是这样|是这样的|事情是这样的|其实呢"
    r"|目前(?=我)|现在(?=我)|最近(?=我)|平时(?=我)|今年(?=我)|如你所知|一般来说|个人来说|对我来说|至于我|至于"
    r"|关于我|你记一下|remora)[，,：:！!。~～、\s]*",
    re.IGNORECASE,
)
_QUESTION = Phrase(
    r"吗|么$|呢$|什么|啥|谁|哪|怎么|怎样|为什么|为啥|多少|几(?![只条个位年次种])|是不是|有没有|能不能|会不会"
    r"|要不要|可不可以|好不好|对不对|是否|行不行|该不该|如何|知不知道|知道我|记得我(?=叫|是谁)|猜猜|猜我|咋|何时"
    r"|多大$|不是我|还记得"
)
_POISON = Phrase(
    r"如果|要是|假如|假设|倘若|万一|若是|即使|哪怕|希望我|但愿|幻想|想象|梦见|梦到|梦里|做梦|恨不得|要不是"
    r"|[说讲](?:我|过我|自己|他|她|[^一]{0,3}[:：])|(?<!我)(?<!我想)(?<!跟你)(?<!和你)(?<!会)(?<!能)(?<!不)"
    r"(?<!母语)(?<!只)(?<!都)(?<!老实)(?<!实话)(?<!坦白)(?<!英语)(?<!顺便)说(?=[:：，]|$)|觉得我|以为|认为我"
    r"|觉得自己|当成|误会|好像我|假装|装作|扮演|据说|听说|(?<!别)(?<!不要)(?<!再)问我|叫做我|告诉他|告诉她|告诉我"
    r"|歌词|唱|台词|写道|书里|小说里|电影里|游戏里|剧里|才怪|开玩笑|算命|以前|曾经|曾|小时候(?!在|就)|从前|过去"
    r"|那时候?|当时|当年|原来我|不再|已经不|早就不|上辈子|下辈子|前世|长大后|将来|等我"
    r"|(?<!回复我)(?<!回答我)(?<!聊天)(?<!说话)的时候|谎|骗"
)
_TURN = Phrase(r"但|不过|其实|现在|而我|事实上|实际上")
_DOUBT = Phrase(
    r"可能|也许|大概(?!率)|或许|好像|似乎|不确定|应该是|差点|似的|怀疑|快要|怕是|没准|说不定|我猜|我想我是|像个"
    r"|就像|仿佛|不一定|算是半个|恐怕|估计"
)
_POLITE = Phrase(r"(?:能不能|可不可以|可以|能|麻烦|请|以后)")
_SUBJECT = Phrase(r"我|俺|本人|咱|他|她|它|你|您|大家|谁|这|那|有人|别人|人家|自己|请|别|不要|以后|记住|叫我|其他")
_SELF = Phrase(r"(?:我(?!们的|的?(?:朋友|同学|同事|邻居|室友|妈|爸|老公|老婆|姐|妹|哥|弟|儿子|女儿|男|女))|俺|本人|咱)")
_OTHER = Phrase(r"他|她|它|你|您|大家|有人|别人|我|这|那|谁")
_KIN = Phrase(longest_first(_RELATIONS))
#: 还有个妹妹: one more of those just told of.
_ANOTHER = Phrase(r"还有(?:一|两|俩)?[个位只条]?")
#: Somebody with a name or a role of their own: 主角叫…, 李雷|今年28岁.
_STRANGER = Phrase(r"[^我俺咱]{1,6}(?:叫|是|住|在|有|今年|喜欢|对|来自|说)|(?![我俺咱本])[\u3400-\u9fff]{2,4}$")
#: Clauses that speak of the speaker even when they open the message without 我.
_ALONE = Phrase(r"(?:对[^，]{1,12}过敏|最喜欢的|最爱的|坐标|常驻|人在|目前在|今年\d|本人|住在|来自)")
_NAMED = Phrase(
    r"(?:他|她|它|名字|名|分别|它的名字|他的名字|她的名字|小名)*(?:叫做?|是叫|名叫"
    r"|名字是)(?P<v>[^我你他她的]{1,16}$)"
)
_ONE_OFF = Phrase(
    r"这次|这一次|这回|今天就|这封|这段|这篇|这句|下面|以下|上面|这个|这道|这些|现在就|一会|待会|等下|等会"
)
_REMEMBER = Phrase(
    r"(?:请|麻烦|你)?(?:要|一定|务必|一定要|得)?(?:帮我|给我|替我)?(?:记住|记得|记一下|记下来?|牢记|别忘记?了?"
    r"|不要忘记?了?|记[着好牢]|备忘)(?:一下|了|哦|啊|这点|这件事|一点)?[：:,，]?(?=.)(?!了|明天|后天|今晚|今天|到时|待会"
    r"|下周|给|来|按时|吃药|带|去|要|提醒|多|早点|早|买|叫我起|回|打|关|把)"
)
#: What may stand beside the date of a plan and plans nothing.
_WHEN = Phrase(r"(?:打算|计划|准备|决定|要|会|得|将|已经|就|在|到|[以之]?[前后]|[内里底初中末的]|开始|时候?|左右)*")
#: Words to somebody one shares a task with: 记得结尾那句我来写.
_OFFER = Phrase(r"我来(?:写|做|说|弄|定|选|挑|买|付|办|搞|处理|负责|安排|准备|收尾|就行|就好|$)")
_STANDING = Phrase(
    r"(?:从(?:现在|今天|今|此|这刻)(?:开始|起|往后|以后|以后开始)?|从今以后|从今往后|今后|往后|以后(?=每|请|都|就"
    r"|你|别|不要|不许|不准|用|回|跟|和|叫|给|说|尽量|每次|只|多|少|一律|要|麻烦|对|称|讲|全|统一|能|可|聊|提|答"
    r"|我问|我说|记得|咱|直接|所有)|之后(?=请|都|别|不要|用|回|叫)|以后[,，])(?:开始)?(?:请|你|您|就|都|麻烦|记得"
    r"|能不能|可以|可不可以|能|，|,)*"
)
_PLEASE = Phrase(
    r"(?:请|麻烦|拜托|希望|我希望|我想让|我想要|我要|你可以|可以|你能不能|能不能|能|你能|可不可以|最好|你要|你|您"
    r"|咱们?|我们|(?:回复|回答|和我聊天|跟我聊天|跟我说话)我?的?时候?|那你|那就|就|以后|之后|我想|都"
    r"|跟我聊天的?时候?|和我聊天的?时候?|回答(?:我|问题)?的?时候|聊天的?时候?)"
)
_ALWAYS = Phrase(
    r"(?:请|你)?(?:每次(?:都)?|总是|始终|一直(?!以来)|永远|都|一律|务必|一定要?|统一|尽量|全程)(?:都|请|要|用(?=$))?"
    r"|(?:我(?:问|说)[^，]{1,12}(?:时|的时候)[，,]?)"
)
_ORDER = Phrase(
    r"(?:请|都|每天|每周|每次|早上|晚上|睡前|要|就|只|多|少|尽量|直接|先|再|也|全部?|一律|必须|可以){0,4}(?:用(?![不完过得了])"
    r"|使用|别|不要|不用|不许|不准|回答|回复|回|答|说|讲|叫|称|给|跟|对|和|写|聊|提醒|解释|保持|加|带|发|简|短"
    r"|详细|说话|语气|称呼|以|把|按|避免|停止|控制|举|列|推荐|问|夸|鼓励|管)"
)
_VL = r"(?P<v>.{1,80}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后|并且|尤其|特别是|我(?!$))"
_TAIL = Phrase(
    r"(?:[啦呀啊哦喔哟呢哈嘛吧呗噢耶咯]|的哦|了哦|就好了?|就行了?|就可以了?|就是了|来着|而已|的说|好吗|好不好"
    r"|可以吗|行吗|谢谢你?|多谢|拜托了?|吗|～|~|等等?|什么的|之类的?)+$"
)
_PLACE_WORDS = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|郑州|青岛|大连|厦门|福州|宁波|无锡|合肥|济南|"
    "沈阳|哈尔滨|长春|昆明|贵阳|南宁|海口|三亚|兰州|银川|西宁|拉萨|乌鲁木齐|呼和浩特|太原|石家庄|南昌|珠海|东莞|佛"
    "山|惠州|中山|温州|嘉兴|绍兴|金华|台州|常州|南通|扬州|徐州|镇江|泉州|漳州|烟台|潍坊|洛阳|开封|桂林|丽江|大理|宜"
    "昌|襄阳|株洲|湘潭|绵阳|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|广西|海南|"
    "四川|贵州|云南|陕西|甘肃|青海|宁夏|新疆|西藏|内蒙古?|东北|江南|台湾|香港|澳门|台北|高雄|台中|台南|新竹|桃园|九"
    "龙|新北|嘉义|花莲|魔都|帝都|纽约|洛杉矶|旧金山|湾区|西雅图|波士顿|芝加哥|伦敦|巴黎|柏林|慕尼黑|东京|大阪|京都|"
    "首尔|釜山|曼谷|新加坡|悉尼|墨尔本|多伦多|温哥华|里斯本|波尔图|马德里|罗马|米兰|阿姆斯特丹|苏黎世|维也纳|莫斯科"
    "|迪拜|吉隆坡|槟城|马尼拉|雅加达|河内"
)
_COUNTRIES = (
    "中国|日本|韩国|朝鲜|美国|英国|法国|德国|意大利|西班牙|葡萄牙|俄罗斯|加拿大|澳大利亚|澳洲|新加坡|马来西亚|泰国|"
    "越南|印度尼西亚|印尼|印度|菲律宾|巴西|墨西哥|荷兰|比利时|瑞士|瑞典|挪威|丹麦|芬兰|波兰|希腊|土耳其|埃及|乌克兰"
    "|新西兰|阿根廷|爱尔兰|蒙古|缅甸|柬埔寨|老挝|南非|奥地利|匈牙利|捷克|以色列|伊朗"
)
_LANGUAGES = (
    "普通话|国语|中文|汉语|华语|粤语|广东话|闽南语|闽南话|台语|客家话|上海话|四川话|潮汕话|温州话|英语|英文|日语|日"
    "文|韩语|韩文|法语|法文|德语|德文|西班牙语|西语|葡萄牙语|葡语|意大利语|俄语|俄文|阿拉伯语|泰语|越南语|印尼语|马"
    "来语|印地语|荷兰语|瑞典语|波兰语|土耳其语|拉丁语|世界语|手语|藏语|维语|蒙语"
)
_JOBS = (
    "医生|护士|护士长|牙医|兽医|药剂师|中医|医师|教师|老师|教授|讲师|助教|辅导员|校长|程序员|程式员|码农|程序猿|工"
    "程师|设计师|架构师|分析师|会计师?|出纳|审计师?|律师|法官|检察官|警察|民警|消防员|军人|士兵|公务员|记者|编辑|作"
    "家|作者|诗人|写手|翻译|画家|画师|插画师|漫画家|摄影师|导演|编剧|演员|歌手|音乐人|钢琴家|模特|主播|博主|up主|自"
    "媒体|厨师|面包师|烘焙师|咖啡师|调酒师|服务员|店员|收银员|店长|店主|老板|个体户|创业者|创始人|合伙人|经理|总监|"
    "主管|助理|秘书|文员|前台|行政|人事|hr|HR|财务|销售|客服|运营|产品经理|产品|项目经理|测试|前端|后端|全栈|运维|"
    "算法|数据分析师|(?:前端|后端|软件|游戏|安卓|全栈|web|java|Java)?开发|研究员|科学家|科研人员|博士后|学生|大学生"
    "|研究生|硕士生|博士生|本科生|高中生|初中生|小学生|留学生|实习生|医学生|大[一二三四]学生|高[一二三]学生|大[一二"
    "三四](?:学生)?|研[一二三](?:学生)?|高[一二三](?:学生)?|司机|飞行员|空姐|空乘|快递员|快递小哥|外卖员|外卖小哥|"
    "外卖骑手|骑手|保安|保洁|保姆|月嫂|阿姨|工人|电工|焊工|木工|水管工|技工|技术员|农民|渔民|理发师|美容师|美甲师|"
    "化妆师|裁缝|健身教练|教练|瑜伽老师|导游|心理咨询师|咨询师|顾问|社工|建筑师|规划师|房产中介|中介|经纪人|保险代"
    "理|银行职员|柜员|职员|上班族|白领|自由职业者?|全职妈妈|全职太太|家庭主妇|全职爸爸|退休教师|退休工人|退休|运动"
    "员|舞者|舞蹈老师|配音演员|声优|图书管理员|馆员|飞机师|船员|海员|药师|营养师|康复师|兽医师|文案|策划|站长|采购|"
    "物流|交易员|基金经理|投行|精算师|法务|公关|市场|猎头|培训师|剪辑师|动画师|游戏策划|花艺师|宠物美容师|木匠"
)
_CONDITIONS = (
    "糖尿病|[12一二]型糖尿病|高血压|低血压|低血糖|高血脂|哮喘|气喘|抑郁症?|忧郁症|焦虑症|躁郁症|双相"
    "(?:情感障碍)?|强迫症|多动症|adhd|ADHD|自闭症|癫痫|失眠症?|偏头痛|鼻炎|过敏性鼻炎|鼻窦炎|胃炎|慢性胃炎|胃病|胃"
    "溃疡|肠炎|肠易激综合[征症]|关节炎|类风湿(?:性?关节炎)?|痛风|湿疹|荨麻疹|银屑病|牛皮癣|甲亢|甲减|桥本|贫血|地中"
    "海贫血|蚕豆病|心脏病|冠心病|先天性心脏病|心律不齐|肾病|肝炎|乙肝|脂肪肝|癌症|肺癌|乳腺癌|白血病|多囊"
    "(?:卵巢综合征)?|颈椎病|腰椎间盘突出|腰突|骨质疏松|色盲|色弱|近视|散光|耳鸣|青光眼|白内障|帕金森|红斑狼疮|克罗"
    "恩病|乳糖不耐受?(?:症)?|麸质不耐受|社恐|拖延症|选择困难症|晕车|晕血|幽闭恐惧症|恐高症?|睡眠呼吸暂停|阅读障碍"
)
_ANIMALS = (
    "猫咪|猫猫|猫|狗狗|狗|犬|兔子|兔|仓鼠|金鱼|热带鱼|鱼|乌龟|龟|鹦鹉|鸟|蜥蜴|守宫|蛇|刺猬|龙猫|荷兰猪|豚鼠|鸡|鸭子"
    "?|鸽子|马|羊|猪|牛|柯基|金毛|拉布拉多|哈士奇|二哈|柴犬|泰迪|贵宾|比熊|博美|边牧|萨摩耶|法斗|吉娃娃|雪纳瑞|布偶"
    "|英短|美短|暹罗|橘猫|狸花|缅因|蓝猫|加菲|德牧|阿拉斯加|斗牛|腊肠|蜜袋鼯|角蛙|变色龙|蜘蛛"
)
#: Somebody a clause may be about: 我妹妹, 有个同事, 一个人; group r when it is a relative of the speaker.
_SOMEBODY = Phrase(
    rf"(?:我们?家?的?|(?<=^)|有(?:一|两)?[个位])(?P<r>{longest_first(_RELATIONS)})(?!的|们|节)"
    rf"|(?<!我是)(?:[个位名只条]|[一那这]个)[^，是]{{0,4}}(?:人|女孩|男孩|女生|男生|姑娘|小伙|同学|{_ANIMALS})"
    rf"|(?:我|他|她|你)的?{longest_first(_RELATIONS)}的|我们?家的?(?:{_ANIMALS})"
)
_RELATION = longest_first(_RELATIONS)
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
#: What is eaten or drunk is a thing to have a favourite of, though it is not named.
_TAKEN = {"吃": "吃的", "喝": "饮料"}
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏"
    "钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文欧阳司马"
)


def _simple(text: str) -> str:
    return text.translate(_SIMPLIFIED)


def _order(clause: _Clause) -> Pair:
    text = _whole(_REASON.sub("", clause.text(0, len(clause.simple))))
    return Pair("instruction", text.removesuffix("了") if clause.simple[0] in "别不" else text)


def _trim(text: str) -> str:
    """A value without closing particles, signs and the 的 that ended its clause."""
    text = _whole(text)
    return text[:-1] if len(text) > 2 and text.endswith("的") and not text.endswith("目的") else text


def _whole(text: str) -> str:
    """What is kept word for word (notes, requests), without closing particles and signs."""
    text = strip_signs(text)
    if HAN.search(text):
        text = strip_signs(_TAIL.sub("", text)) or text
    return text


def _listed(text: str) -> list[str]:
    parts = re.split(r"\s*(?:、|,|，|/|以及|还有|(?<=[^，、])(?:和|与|及|&|跟)(?=[^平，、]))\s*", text)
    if (
        any(len(part) == 0 for part in parts)
        or text.startswith(("和", "与", "跟"))
        or re.search(r"[和跟与](?:我|你|他|她|朋友|家人|孩子|小孩|老婆|老公|人|同事|狗狗|别人|大家)", text)
    ):
        parts = [text] if not re.search("[、]", text) else re.split("、", text)
    return [trimmed for part in parts if (trimmed := _trim(part))]


def _single(key: str, *, most: int = 20, refuse: str = r"(?!)") -> Read:
    refused = Phrase(refuse)

    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = _trim(groups["v"])
        return [] if len(value) > most or refused.search(_simple(value)) or not value else [Pair(key, value)]

    return read


_EMPTY = Phrase(
    r"^(?:就|你|您|他|她|它|这|那|自己|上了|上|过|一切|所有|什么|的|了|人|我|大家|它们|不|哪|被|一个人$"
    r"|一个[^，]{0,4}人$|看你|和你|跟你|死|听你|逗|把|让|叫|吃亏|生气|迟到|东西|某个|过你|问|说|做你|做自己)|你"
    r"|的人|的话|这个|那个|这首|这样|那样|着$|^.$(?<![猫狗茶酒书花猪辣甜酸咸鱼虾蛇雨雪海山歌画])"
)


def _several(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        values = [value.removesuffix("了") for value in _listed(groups["v"])]
        if any(_EMPTY.search(_simple(value)) or len(value) > 24 for value in values):
            return []
        return [Pair(key, value) for value in values]

    return read


#: Why something is asked for, which is no part of it.
_REASON = Phrase(
    r"[，,\s]*(?:因为|因為|由于|由於|不然|否则|否則|免得|省得|以便|方便我|毕竟|畢竟|这样我|這樣我|我(?:在|正在|想)[练練学學]).*$"
)


def _allergy(groups: dict[str, str], today: date) -> list[Pair]:
    """As `_several`; one thing in the list that nobody can be allergic to makes it a joke."""
    items = [
        Pair("allergy", _BEFORE_ALLERGEN.sub("", item.value) or item.value)
        for item in _several("allergy")(groups, today)
    ]
    return [] if any(_NO_ALLERGEN.search(_simple(item.value)) for item in items) else items


#: What a careless match leaves before the thing itself, 对 above all.
_BEFORE_ALLERGEN = Phrase(r"^(?:是|有|也|会|會|就|都|这人|這人|一吃|对|對)+(?=.)")
_NO_ALLERGEN = Phrase(
    r"班$|[上下加值]班|工作|上学|学习|学校|读书|开会|会议|[周星期礼拜][一二三四五六日天末]|早[起上晨八]|起床|运动|健身|跑步|作业"
    r"|考试|数学|英语$|物理|化学$|语文|论文|人类?$|男[人生的]|女[人生的]|渣|前[任男女]|老[板公婆师]|领导|同事|客户|甲方|亲戚|相亲|爱情|恋爱"
    r"|感情|婚|社交|聚会|聚餐|应酬|努力|加油|鸡汤|谎|[傻蠢笨]|废话|道理|穷|钱|家务|做饭|洗碗|打扫|生活|世界|现实|快乐|幸福|孤独"
    r"|生日|节$|春节|过年|减肥|熬夜|早睡|责任|承诺|成功|内卷|政治|代码|需求|bug|ppt|电话|微信|学生|小孩|孩子|朋友|[你他她它]|这|那"
    r"|自己|什么|一切|就$|day|work|deadline|meeting|ddl|话$|声音|态度|行为|字$|事$",
    re.IGNORECASE,
)
_NOT_PLACE = Phrase(
    r"院$|学校|宿舍|酒店|宾馆|楼$|层$|家里|这里|那里|这儿|那儿|附近|附近$|隔壁|一起|过去|梦|心里|云端|医院|公司"
    r"|单位|爸妈|父母|朋友家|别人|你|他|她|我|天堂|地狱|月球|火星|附近的|哪|一个人|外面|出租屋|房子|公寓|别墅|的人"
    r"|的是|很|贵|方便|回忆|的地方|城堡|山洞|童话|海底|的$|一样|已经|忙|路上|车上|床上|这边|那边|同一|独居|单人"
)


def _place(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = re.sub(
            r"(?:市区|那边|这边|这里|附近|了|一带|工作|生活|上班|读书|上学|定居|居住)$",
            "",
            _trim(groups["v"]),
        )
        return [Pair(key, value)] if 1 < len(value) <= 14 and not _NOT_PLACE.search(_simple(value)) else []

    return read


def _name(key: str) -> Read:
    refused = Phrase(
        r"^(?:妈|爸|老公|老婆|儿子|女儿|朋友|了|他|她|你|您|它|不|个|车|外卖|醒|人|什么|啥|过|着|来|去|一|大家|我"
        r"|起|滴|快递|救护|代驾|的|名字|板|停|好|苦|喊|他们)|你|您|我|外卖|的$|[吃喝]|点了|一声|起床|早点|别人"
        r"|服务员(?!.)"
    )

    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = re.sub(
            r"(?:就好了?|就行了?|就可以了?|就成|好了|吧|即可|也行|都行|也可以|都可以|啦|哦|呀|哈|喔)+$",
            "",
            _trim(groups["v"]),
        )
        limit = 24 if value.isascii() else 8
        return (
            [Pair(key, value)]
            if value and len(value) <= limit and not refused.search(_simple(value)) and not value.isdigit()
            else []
        )

    return read


def _is_name(groups: dict[str, str], _today: date) -> list[Pair]:
    """我是小王, 我是陈静: only shapes that can hardly be anything but a name."""
    value = _simple(groups["v"])
    if re.search(
        r"[人生员师的手子痴男女党家者长工农民货粉控迷包友妈爸哥姐弟妹儿孩白板气时业科兵星座迷型后前]$|学|时候"
        r"|^小[时学众气心白三偷]|^老[师板实家婆公年外]|^高[中手三二一兴]|^白[领痴]|^金|^万|^常|^方|^文|^易|^于|^任"
        r"|^马上|^何",
        value,
    ):
        return []
    return [Pair("name", groups["v"])]


def _age(groups: dict[str, str], _today: date) -> list[Pair]:
    try:
        years = number_zh(_simple(groups["v"]))
    except ValueError:
        return []
    return [Pair("age", str(years))] if 3 <= years <= 119 else []


def _birthday(groups: dict[str, str], today: date) -> list[Pair]:
    said = _simple(groups["v"])
    if said in {"今天", "明天", "后天"}:
        day = next(mentions(said, today)).first
        return [Pair("birthday", f"{day.month}月{day.day}日")]
    numbers = _DATE.fullmatch(said)
    if not numbers or numbers["lunar"]:
        return [Pair("birthday", groups["v"])] if numbers else []
    try:
        month, day_of_month = number_zh(numbers["m"]), number_zh(numbers["d"])
    except ValueError:
        return []
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
    value = re.sub(r"^[了过][^，]{0,3}年多?的?", "", _trim(groups["v"]))
    simple = _simple(value)
    if len(value) <= 14 and not re.search(
        r"好学生|坏学生|的学生|差生|你|他|她|好老师|好妈妈|好司机|天生|伟大|合格|女生|男生", simple
    ):
        yield Pair("occupation", value)
        if groups.get("e"):
            yield from _employer({"v": groups["e"]}, today)


def _employer(groups: dict[str, str], _today: date) -> list[Pair]:
    value = _trim(groups["v"])
    simple = re.sub(rf"^(?:{_PLACE_WORDS}|{_COUNTRIES})市?的?(?=.)", "", _simple(value))
    simple = re.sub(r"^(?:一家|一间|一个|一所|某家?|家|当地的?一?[家所]?)(?=..)", "", simple)
    value = value[len(value) - len(simple) :]
    place = re.fullmatch(rf"(?:{_PLACE_WORDS}|{_COUNTRIES})(?:市|省|区|那边|这边)?", simple)
    bad = re.search(
        r"^(?:家|公司|这里|那里|这|那|外面|外地|国外|国内|努力|认真|好好|一起|忙|哪|里面|单位|本地|老家|异地|海外"
        r"|[^，]*找|县城|市区|城里|一线城市|附近|加班|线上|远程|现在|这边|那边|办公室|同一家公司)$|努力|认真|每天"
        r"|晚上|早上|周末|拼命|你|他|她|省$|市$|区$",
        simple,
    )
    return [Pair("employer", value)] if value and not place and not bad and len(value) <= 20 else []


def _studies(groups: dict[str, str], _today: date) -> list[Pair]:
    found = []
    school = groups.get("s")
    if (
        school
        and not re.search(r"^(?:家|学校|这|那|大学|外地|国外|哪|图书馆|教室)", _simple(school))
        and not re.fullmatch(rf"(?:{_PLACE_WORDS}|{_COUNTRIES})(?:这边|那边|这里)?", _simple(school))
    ):
        found.append(Pair("studies", _trim(school)))
    subject = groups.get("v")
    if subject:
        found += [
            Pair("studies", value)
            for value in _listed(subject)
            if len(value) <= 14
            and not re.search(
                r"^(?:[高初大研][一二三四]|高中|初中|大学|小学|中学|博士|硕士|研究生|本科|习|会(?!计)|到|着|了|校"
                r"|不|得|你|他|她|一下|过|以|点|书$|坏|好)|你|怎么|如何|一点|东西|做人",
                _simple(value),
            )
        ]
    return found


def _languages(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        simple = _simple(groups["v"])
        return (
            [Pair(key, groups["v"][m.start() : m.end()]) for m in re.finditer(_LANGUAGES, simple)]
            if len(simple) == len(groups["v"])
            else []
        )

    return read


def _relative(groups: dict[str, str], _today: date) -> list[Pair]:
    key = _RELATIONS[_simple(groups["r"])]
    refused = Phrase(r"^(?:我|你|他|她|不|了|什么|过|着|一|个)|我|你|起床|外卖|吃饭|回家")
    return [
        Pair(key, name)
        for name in _listed(groups["v"])
        if len(name) <= (24 if name.isascii() else 6) and not refused.search(_simple(name))
    ]


def _relative_is(groups: dict[str, str], _today: date) -> list[Pair]:
    return [Pair(_RELATIONS[_simple(groups["r"])], _trim(groups["v"]))]


def _kin_does(groups: dict[str, str], today: date) -> list[Pair]:
    return _relative_is(groups, today) if _RELATIONS[_simple(groups["r"])] in KIN else []


def _pet(groups: dict[str, str], _today: date) -> list[Pair]:
    animal = re.sub(r"^(?:小|大|可爱的?|胖|老|的|很|超|可爱|漂亮的?|调皮的?|乖)+(?=[^熊])", "", _simple(groups["a"]))
    animal = {"猫咪": "猫", "猫猫": "猫", "狗狗": "狗", "小狗": "狗", "小猫": "猫"}.get(animal, animal)
    written = (
        groups["a"][len(groups["a"]) - len(animal) :]
        if len(animal) <= len(groups["a"]) and _simple(groups["a"]).endswith(animal)
        else animal
    )
    names = [name for name in _listed(groups.get("v", "")) if len(name) <= 12]
    if names:
        return [Pair("pet", f"{written} {name}") for name in names]
    count = _simple(groups.get("n", ""))
    return [
        Pair(
            "pet",
            f"{groups['n']}{written}" if count and count[0] in "两二三四五六七八九十23456789" else written,
            unnamed=True,
        )
    ]


def _favourite(groups: dict[str, str], _today: date) -> list[Pair]:
    # 最喜欢吃的就是… names no thing; what is done with it may tell.
    thing = _simple(groups.get("k", "")) or _TAKEN.get(groups.get("e", ""), "")
    value = _trim(groups["v"])
    if (
        not thing
        or re.search(r"人|事|东西|地方|你", thing)
        or re.search(r"^(?:你|他|她|这|那|什么)|你", _simple(value))
        or len(value) > 24
    ):
        return []
    return [Pair(f"favourite-{_FAVOURITES.get(thing, normalise_key(thing))}", value)]


def _owns(groups: dict[str, str], _today: date) -> list[Pair]:
    value = re.sub(r"^的", "", _trim(groups["v"]))
    bad = re.search(
        r"问题|建议|意见|想法|电影|电视剧|小说|剧|书$|菜|药|题|钥匙|眼泪|话|时间|朋友|事|你|作业|考试|面试|会$"
        r"|好奇|火|年纪|饭|歌|机票|票",
        _simple(value),
    )
    return [Pair("owns", value)] if value and not bad and len(value) <= 16 else []


def _goal(groups: dict[str, str], today: date) -> list[Pair]:
    value = _trim(groups["v"])
    bad = re.search(r"你|这个|那个|什么|一下|怎么", _simple(value))
    return [Pair("goal", anchor(value, today, ahead=True))] if not bad and 1 < len(value) <= 30 else []


def _plan(groups: dict[str, str], today: date) -> list[Pair]:
    said = groups["v"]
    ahead = [mention for mention in mentions(said, today, ahead=True) if mention.last > today]
    months = re.finditer(
        r"(?:今年|明年|后年)|\d{1,2}月|(?:过年|春节|国庆|暑假|寒假|五一|元旦|圣诞|中秋|端午|年底|月底|夏天|冬天"
        r"|春天|秋天|毕业后|[一二三四五六七八九十]月)",
        _simple(said),
    )
    spans = [(mention.start, mention.end) for mention in ahead] + [month.span() for month in months]
    value = re.sub(r"(?:就要|就|会|将要?|打算|计划|准备|得|决定)(?=[^，]{2})", "", _trim(said), count=1)
    if (
        not spans
        or _WHEN.fullmatch("".join(_without(_simple(said), spans)))
        or len(value) > 40
        or len(value) < 4
        or re.search("你|昨|上周|上个月|去年|再[来说聊问看见]|上班$|回来$|联系|休息", _simple(value))
    ):
        return []
    return [Pair("plan", anchor(value, today, ahead=True))]


def _without(said: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The characters of `said` outside `spans`: in a plan, what is said beside its dates."""
    return (c for i, c in enumerate(said) if not any(start <= i < end for start, end in spans))


def _boundary(groups: dict[str, str], _today: date) -> list[Pair]:
    value = re.sub(
        r"^(?:关于|有关|我?的|我(?=..))(?=.)|(?:的?(?:话题|事情?|问题|内容|笑话|玩笑|方面的事?))$|(?:了|好吗|行吗)$",
        "",
        _trim(groups["v"]),
    )
    value = re.sub(r"(?:的?(?:话题|事情?|问题|内容|笑话|玩笑))$", "", value)
    values = [item for part in re.split(r"或者?|、|和", value) if (item := _trim(part))]
    return [
        Pair("boundary", item)
        for item in values
        if len(item) <= 16
        and not re.search(r"^(?:这|那|它|了|这个|那个|他|她|什么|别的|其他|些|起|话)|你$|废话", _simple(item))
    ]


_ADV = (
    r"(?:(?:特|也|还|都|就|真的|其实|平时|一直|从小就?|特别|非常|最|很|超级?|挺|蛮|比较|尤其|可|好|十分|相当|巨|贼"
    r"|更|最近|有点|有些|确实|一向|向来|平常|本来就|老|总|经常|周末|没事就?|现在|目前|通常|永远|只|闲的时候|空闲时"
    r"|有空就?|的确|其实也|偏|实在|真心|是真的|天生|主要|个人|严重|轻度|轻微|重度|极度|极其|稍微|完全|绝对|一般"
    r"|也是|偶尔|太|并|怎么|一点也|一点都|从来|根本|都很|不太会?)){0,4}"
)
_QI = r"(?:(?P<n>(?:一|两|二|三|四|五|六|[1-9])?(?:只|条|个|匹|头|窝|对)))"


def _surname(groups: dict[str, str], _today: date) -> list[Pair]:
    """我姓林, 我姓林叫美玲, 我姓林叫林美玲."""
    surname, name = groups["v"], groups.get("w", "")
    return [Pair("name", name if name.startswith(surname) else surname + name)]


def _school(groups: dict[str, str], today: date) -> list[Pair]:
    """我是北大法律系的研究生."""
    subject = re.sub("(?:专业|系)的?$", "", groups.get("w", ""))
    return _studies({"s": groups["s"], **({"v": subject} if subject != groups.get("w", "") else {})}, today)


def _rule(pattern: str, read: Read) -> Rule:
    return Rule(Phrase(pattern), read)


# fmt: off
_RULES: tuple[Rule, ...] = (
    # who they are
    _rule(r"(?:我|本人|俺)(?:的)?(?:名字|全名|大名|本名|真名|姓名)(?:叫做?|是|：|:)(?P<v>[^，我]{1,20}?)(?=$|[（(]"
          r"|今年|来自|住|，)", _name("name")),
    _rule(r"(?:我|本人|俺)(?:就|全名|大名|本名|真名)?叫做?(?P<v>[^，我]{1,20}?)(?=$|[（(]|今年|来自|住在|是个|是一"
          r"|是名|\d|，|，|现在|目前|在)", _name("name")),
    _rule(r"(?:我|本人|俺)姓(?P<v>[\u3400-\u9fff]{1,2})(?=$|叫|名|，)(?:名?叫?(?P<w>[\u3400-\u9fff]{1,3}))?",
          _surname),
    _rule(rf"(?:我|本人|俺)(?:就)?是(?P<v>(?:[小老阿][\u3400-\u9fff]{{1,2}}|[{_SURNAMES}][\u3400-\u9fff]{{1,2}}))$",
          _is_name),
    _rule(r"(?:我|俺)(?:是|就是)(?P<v>[A-Z][a-z]{1,15})$",
          lambda g, _: [] if NOT_NAMES.fullmatch(g["v"]) else [Pair("name", g["v"])]),
    _rule(r"(?:(?:大家|(?:我的?)?(?:朋友|同学|同事|家人|爸妈)们?|别人|同事们?|同学们?|家里?人|人家|他们"
          r"|身边的?人)(?:们)?(?:一般|平时|平常|通常)?(?:都|也|就)?(?:喜欢|习惯)?(?:叫|喊|称呼?)我(?:的?(?:外号"
          r"|绰号|昵称))?(?:叫|为|作|做)?|我的?(?:昵称|外号|绰号|小名|网名|英文名)(?:叫做?|是))(?P<v>[^，]{1,16})",
          _name("called")),
    _rule(r"(?:我|本人|俺)(?:今年|都|已经|刚满|刚过|现在|刚|马上)?(?<!马上)(?:都|已经|刚满|刚过|刚好|才"
          r"|满)?(?P<v>\d{1,3}|[一二两三四五六七八九]?十[一二三四五六七八九]?)(?:周?岁)(?!的时候|时|那年|以|之|就"
          r"|前|开始|之前|半|大|生日)", _age),
    _rule(r"(?:我|本人|俺)(?:今年|已经|刚满|刚过|都)(?:已经|都|刚|刚满|才)?(?P<v>\d{1,2}"
          r"|[一二两三四五六七八九]?十[一二三四五六七八九]?)(?=$|了|，|啦)", _age),
    _rule(r"(?:我|本人|俺)(?P<v>[二三四五六七八九]?十[一二三四五六七八九]?|[1-9]\d)了$", _age),
    _rule(r"(?:我|本人|俺)的?年龄是?(?P<v>\d{1,3})", _age),
    _rule(r"(?:我|本人|俺)?的?(?:生日|出生日期)(?:就?是|在|：|:)?(?:在)?(?P<v>(?:\d{2,4}年)?(?:农历|阴历|阳历"
          r"|公历)?[\d一二三四五六七八九十]{1,3}月初?[\d一二三四五六七八九十廿]{1,3}[日号]?"
          r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|今天|明天|后天)", _birthday),
    _rule(r"(?:我|本人|俺)(?:是|出生于|生于|出生在)?(?:在)?(?P<v>(?:\d{2,4}年)?(?:农历|阴历"
          r"|阳历)?[\d一二三四五六七八九十]{1,3}月初?[\d一二三四五六七八九十廿]{1,3}[日号]?)(?:出生|生日|生的|生人"
          r"|过生日|的生日|生$|$)", _birthday),
    _rule(r"(?:我|本人|俺)(?:出生于|生于)(?P<v>\d{4}年\d{1,2}月\d{1,2}[日号])", _birthday),
    _rule(rf"(?:我|本人|俺)(?:也|其实|是|就)*(?:是)(?:一个|个|地道的?"
          rf"|土生土长的?)?(?P<v>(?:{_COUNTRIES})(?:籍)?(?:华人|人)|华裔|[\u3400-\u9fff]{{1,3}}籍华人"
          rf"|[\u3400-\u9fff]裔[\u3400-\u9fff]{{1,3}}人)(?=$|，|但|不过|现在|在)",
          _single("nationality")),
    _rule(rf"(?:我|本人)的?国籍是(?P<v>(?:{_COUNTRIES})人?)", _single("nationality")),
    _rule(rf"(?:我|本人|俺)的?(?:母语|第一语言)(?:是|：)(?P<v>(?:{_LANGUAGES})[^，]{{0,10}})",
          _languages("native-language")),
    _rule(rf"(?P<v>{_LANGUAGES})(?:才)?是我的?母语", _languages("native-language")),
    _rule(rf"(?:我|本人|俺){_ADV}(?:会|能|可以|懂)(?:一点点?|一些|点|说|讲|流利地?|流利的|用|简单的?|基本的?|些"
          rf"|几句|一口){{0,3}}(?P<v>(?:{_LANGUAGES})(?:(?:、|和|与|以及|还有|跟|同|，)?(?:一点点?|一些|点|说"
          rf"|讲|流利的|会|简单的)?(?:{_LANGUAGES})){{0,5}})",
          _languages("speaks")),
    _rule(rf"(?:我|本人|俺)(?:平时|在家|日常|一般|家里|只|都)?(?:说|讲)(?P<v>(?:{_LANGUAGES})(?:(?:、|和|与"
          rf"|以及|还有|跟)(?:{_LANGUAGES})){{0,4}})", _languages("speaks")),
    _rule(rf"(?:我|本人)的?(?P<v>{_LANGUAGES})(?:说得|讲得)?(?:很|挺|非常|比较)?(?:流利|好|不错)",
          _languages("speaks")),
    _rule(r"(?:我|本人)(?:的|这边的?|所在的?|这里的?)?时区(?:是|为|：|:)(?P<v>[^，]{2,24}?)(?=$|，|所以|,)",
          _single("timezone")),
    _rule(r"我(?:这边|这里)?(?:在|是|用)(?P<v>(?:东|西)[一二三四五六七八九十\d]{1,2}区|[A-Z]{2,4}[+-]\d{1,2}"
          r"|(?:美国)?(?:北京|东京|太平洋|美东|美西|东部|西部|欧洲|中欧|格林威治|纽约|伦敦)时间)(?:时区)?",
          _single("timezone")),
    # where
    _rule(r"(?:我|我家|本人|俺|我们|咱|我们家|我和[^，]{1,6})(?:现在|目前|一直|平时|如今|一个人|自己|常年|就|人"
          r"|和[^，]{1,6}一起|跟[^，]{1,6}一起|也|还|都|暂时){0,3}(?:居?住|定居|常住|家住|居住)(?:在|于)?(?!院|校"
          r"|宿舍|了|过|着|得|嘴|手)(?P<v>[^，]{1,20}?)(?=$|，|了|已经|快|有|这边|，|\d年"
          r"|[一二三四五六七八九十两]年|和|跟|上班|工作|养|做|当|附近)",
          _place("home")),
    _rule(r"(?:我|本人|俺|我们)(?:现在|目前|一直|常年|如今|人)?(?:在)(?P<v>[^，]{1,14}?)(?:生活|定居|居住|安家"
          r"|长住)(?!过)", _place("home")),
    _rule(r"(?:我们一家|我们全家|我|我们|我家)(?:刚刚?|最近|上周|上个月|去年|前年|今年|已经|终于|现在|前几天"
          r"|\d{4}年|昨天|前阵子|不久前)*(?:搬家?到|搬来|搬去|移居到?|移民到?|定居到?)了?(?P<v>[^，]{2,12}?)(?:来"
          r"|去)?(?=$|，|了|住|生活|工作|这边|已经)",
          _place("home")),
    _rule(rf"我家(?:就)?在(?P<v>(?:{_PLACE_WORDS}|{_COUNTRIES})[^，]{{0,6}}?)的?(?=$|，)",
          _place("home")),
    _rule(r"(?:我)?(?:坐标|现居|base|常住地|居住地|所在城市|现住|常驻地)(?:是|在|：|:)?(?P<v>[^，]{2,12})$",
          _place("home")),
    _rule(rf"我(?:现在|目前|人|常驻|常年|长期|这边|平时|基本|base){{1,2}}(?:就|都)?(?:在|于|是)?"
          rf"(?P<v>(?:{_PLACE_WORDS}|{_COUNTRIES})(?:{_PLACE_WORDS}|[\u3400-\u9fff]{{1,3}}[市区县])?)(?:市|这边|这里|这儿)?$",
          _place("home")),
    _rule(rf"我(?:现在|目前|一直|人|就|平时){{0,2}}在(?P<v>(?:{_PLACE_WORDS}|{_COUNTRIES}|[\u3400-\u9fff]{{1,3}}[市县])"
          r"(?:[\u3400-\u9fff]{1,3}[市区县])?)(?:这边|这里|这儿)$", _place("home")),
    _rule(r"(?:我|俺|本人|我们|我们家)(?:是|也是|其实是|老家是|就是)?(?:个)?(?:来自"
          r"|从(?=[^，]{1,10}来的))(?P<v>[^，]{2,14}?)(?:来的|的)?(?=$|，|，|今年|现在|目前|在|住)",
          _place("hometown")),
    _rule(r"(?:我|俺|本人|我们)(?:的)?(?:老家|家乡|籍贯|故乡|祖籍)(?:就?是|在|：|:)(?:在)?(?P<v>[^，]{2,14}?)"
          r"(?:的)?(?=$|，|现在|目前|但)", _place("hometown")),
    _rule(r"(?:我|俺|本人)(?:是|从小|一直|出生|生|土生土长|小时候|就|是从小)*(?:在|于)(?P<v>[^，]{2,12}?)(?:出生"
          r"|长大|土生土长)(?:的|并长大|和长大|、长大)?",
          _place("hometown")),
    _rule(r"(?:我|俺|本人)(?:出生|生)(?:在|于)(?!\d)(?P<v>[^，]{2,12}?)(?=$|，|长大|，|的)",
          _place("hometown")),
    _rule(rf"(?:我|俺|本人)(?:也|就|其实)?是(?P<v>{_PLACE_WORDS})(?:那边)?的$", _place("hometown")),
    _rule(rf"(?:我|俺|本人)(?:也|就|其实)?是(?:个|一个|地道的?|土生土长的?|正宗的?)?(?P<v>(?:{_PLACE_WORDS})(?:省"
          rf"|市)?(?:{_PLACE_WORDS})?(?:市)?|[\u3400-\u9fff]{{1,4}}[省市县区镇])人(?=$|，|现在|目前|在|但|不过)",
          _place("hometown")),
    # health
    _rule(rf"(?:我|俺|本人)(?:这个?人|的?身体|的?皮肤)?{_ADV}(?:是|有|会)?对(?P<v>[^，]{{1,24}}?){_ADV}(?:会|有)?{_ADV}过敏",
          _allergy),
    _rule(rf"(?:我|俺|本人){_ADV}有(?:严重的?|很严重的|轻微的?|点)?(?P<v>[^，性]{{1,12}}?)过敏(?:症)?(?!性)",
          _allergy),
    _rule(rf"(?:我|俺|本人){_ADV}一?吃(?P<v>[^，]{{1,12}}?)(?:就|会|都会|就会|容易){{0,2}}(?:严重)?过敏",
          _allergy),
    _rule(r"(?:我|俺|本人)(?P<v>(?:花生|海鲜|牛奶|鸡蛋|坚果|花粉|尘螨|青霉素|头孢|芒果|虾|螃蟹|酒精|小麦|大豆|猫毛"
          r"|狗毛|紫外线|乳糖|麸质|桃子|菠萝|[^，]{1,4}))(?:严重|重度|会)?过敏$",
          _allergy),
    _rule(r"(?:我|俺|本人)的?过敏原是对?(?P<v>[^，]{1,24})", _allergy),
    _rule(rf"(?:我|俺|本人|我们){_ADV}(?:是|吃|在吃|坚持|开始|改|转|当|做|奉行|保持|属于|算){{0,3}}(?:个|一个"
          rf"|一名|位)?(?:长期)?(?:吃)?(?P<v>纯素食?|全?素食?|蛋奶素|鱼素|清真|生酮|低碳|无麸质|低糖|弹性素食"
          rf"|奶素)(?:主义)?(?:者|饮食|食物|食品|的|餐|了\d+年|很久了|好几年了|的人)?(?=$|，|了|所以|，|好|快|已经"
          rf"|\d|[一二三四五六七八九十两])",
          lambda g, _: [Pair("diet", {"素": "素食", "纯素食": "纯素"}.get(g["v"], g["v"]))]),
    _rule(r"(?:我|俺|本人)(?:从来|从小|平时|一直|都|是|也|真的)*不(?:能)?吃(?P<v>牛肉|猪肉|羊肉|鸡肉|肉|红肉|海鲜"
          r"|鱼|辣|辣的|辣椒|鸡蛋|奶制品|麸质|甜食|糖|内脏|葱|蒜|姜|香菜|牛羊肉|生冷|坚果|面食|油炸的?|荤)(?:的"
          r"|食物)?(?=$|，|了|，|所以|和|、)",
          lambda g, _: [Pair("diet", f"不吃{_trim(g['v'])}")]),
    _rule(rf"(?:我|俺|本人){_ADV}(?:患有|患了|得了|有|确诊了?|被确诊为?|被诊断(?:为|出|出了|有|出有)|查出了?"
          rf"|查出有|得过|检查出|天生|先天|是|刚|刚刚|最近|去年|刚被){{1,3}}(?:轻微的?|轻度的?|严重的?|重度的?"
          rf"|中度的?|点|很严重的|一点|慢性的?|家族性)?(?P<v>{_CONDITIONS})(?:患者"
          rf"|人)?(?:和(?P<w>{_CONDITIONS}))?",
          lambda g, _: [Pair("condition", v) for v in (g["v"], g.get("w", "")) if v]),
    _rule(rf"(?:我|俺|本人){_ADV}(?P<v>{_CONDITIONS}|失聪|失明)(?:\d+度)?(?=$|，|了|的)",
          _single("condition")),
    # work
    _rule(rf"(?:我|俺|本人)(?:现在|目前|如今|主业|平时|也|其实|就|还){{0,3}}(?:是|在?当|做|担任"
          rf"|干)(?:的是)?(?:[做干搞])?(?:一名|一个|一位|个|名|位|在读|普通|一枚|枚|苦逼)*(?P<v>[^，的我]{{0,8}}?"
          rf"(?:{_JOBS}))(?:的)?(?=$|，|了|，|在|\d|已经|今年|住|和|兼|工作|[（(]|来自|现在|目前|喜欢)", _job),
    _rule(rf"(?:我|俺|本人)(?:现在|目前|平时)?在(?P<e>[^，]{{2,20}}?)(?:当|做|担任|是|任)(?:一名|一个|个|名|一位"
          rf"|着)?(?P<v>[^，的]{{0,8}}?(?:{_JOBS}))(?:的)?(?=$|，|了|工作)",
          _job),
    _rule(r"(?:我|俺|本人)的?(?:工作|职业|本职|主业|本职工作|岗位)(?:就?是|：|:)(?:一名|一个|个|名|做"
          r"|当)?(?P<v>[^，]{2,14}?)(?:的|工作)?(?=$|，|，)",
          _single("occupation", refuse=
        r"很|忙|累|无聊|枯燥|简单|难|你|轻松|辛苦|稳定|什么|远程")),
    _rule(r"(?:我|俺|本人)(?:现在|目前|是|一直|主要)*(?:从事|做|搞|干)(?P<v>(?!梦|饭|菜|净|活|嘛|啥|坏|着|笑|什么|爱|完|了|到|好|不|事|错|过|爱"
          r"|人|个|运动|什么|作业|家务|题|这|那|实验|噩梦|核酸|手术|志愿|决定|ppt|PPT|得"
          r"|一)[^，我你]{1,10}?)(?:这一?行|行业|工作|方面的?|相关的?|领域|开发的|的)(?=$|，|的|工作)",
          _single("occupation", refuse=r"错|梦|你")),
    _rule(r"(?:我|俺|本人)(?:已经|现在|都)?(?P<v>退休)(?:了|在家)?(?=$|，|好|很|\d|[一二三四五六七八九十])",
          _single("occupation")),
    _rule(r"(?:我|俺|本人|我们)(?:现在|目前|一直|平时|刚|刚刚|就|也)?在(?P<v>[^，]{1,20}?)(?:上班|工作|任职|就职"
          r"|打工|实习|供职)(?!的时候|时|过)", _employer),
    _rule(r"(?:我|俺|本人)(?:现在|目前|刚|刚刚|上个月|上周|去年|已经|最近)?(?:就职于|任职于|供职于|入职了?|加入了?"
          r"|跳槽到了?|受雇于|效力于)(?P<v>[^，]{2,20}?)(?:工作)?(?=$|，|了|，|做|当|公司$)", _employer),
    _rule(r"(?:我|我们)的?(?:公司|单位|东家|雇主)(?:名字)?(?:是|叫做?)(?P<v>[^，]{2,16})", _employer),
    _rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?(?:就读于|在读|考上了?|毕业于|读的是)(?P<s>[^，]{2,20}?(?:大学|学院"
          r"|中学|高中|一中|附中|学校|大))(?:的)?(?P<v>[^，，]{2,10}?)?(?:专业|系)?(?=$|，)", _studies),
    _rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?在(?P<s>[^，]{2,16}?(?:大学|学院|中学|高中|一中|附中|大"
          r"|学校)?)(?:读书|上学|念书|读大学|读研|读博|留学|读本科|上大学|学习|念大学|就读|读|学|念)(?P<v>(?!书"
          r"|大学|习|研|博|院)[^，]{2,10}?)?(?:专业|系)?(?:的)?(?=$|，)",
          _studies),
    _rule(r"(?:我|俺|本人)(?:现在|目前|还|正)?是(?P<s>[^，]{2,14}(?:大学|学院)|清华|北大|复旦|交大|浙大|南大|人大"
          r"|中大|武大|同济|港大|台大|中科大)(?:的)?(?P<w>[^，]{0,8})(?:学生|研究生|博士生|本科生"
          r"|大[一二三四](?:学生)?)(?=$|，|，)",
          _school),
    _rule(r"(?:我|俺|本人)的?专业(?:就?是|：|:)(?P<v>[^，]{2,14})", _studies),
    _rule(r"(?:我|俺|本人)(?:是|大学|本科|研究生|现在|目前|最近|正|在|硕士|博士|一直|自|也|还|大学里){0,4}(?:主修"
          r"|攻读|学习|在学|学的是|读的是|念的是|学(?=[^，]{2,8}(?:的|专业)$)|自学|在读|读(?=[^，]{2,8}(?:专业|系"
          r"|的)))(?P<v>[^，]{2,12}?)(?:专业|系)?(?:的)?(?=$|，|，|中|呢)", _studies),
    _rule(r"(?:我|俺|本人)(?:是|就是|读)(?P<v>[^，的]{2,10}?)(?:专业|系)(?:的|毕业的?|的学生|学生|出身)?(?=$|，)",
          _studies),
    _rule(rf"(?:我|俺|本人)(?:最近|正|现在|目前|在)+(?:在)?学(?P<v>(?:{_LANGUAGES}|钢琴|吉他|编程|画画|游泳"
          rf"|法律|医|python|Python|Java|开车|书法|小提琴|跳舞|摄影|烘焙|心理学|设计|会计)[^，]{{0,6}})$",
          _studies),
    # pets and relations
    _rule(rf"(?:我|我家|我们家?|俺|家里|本人|我们)(?:里)?(?:现在|最近|刚|刚刚|还|也|目前|新|一共|前几天|上个月"
          rf"|去年|今年|最近刚|里){{0,3}}(?:养了|养着|养|有|领养了|收养了|捡了|买了|多了|来了){_QI}(?P<a>(?!人"
          rf"|朋友|问题)[^，叫。]{{0,8}}?(?:{_ANIMALS}))(?:(?:，|,)?(?:它)?(?:名字|名)?(?:叫做?"
          rf"|是)(?P<v>[^，]{{1,16}}))?(?=$|，|，|了|，|和|，|一|、|还)", _pet),
    _rule(rf"(?:我|我家|我们家|俺|本人)(?:里)?(?:养|养了|有养|也养|养着)(?P<a>(?:{_ANIMALS}))(?=$|，|的|了)",
          _pet),
    _rule(rf"(?:我家?|我们家?|俺家?|我家里)的?(?:那只|那条|这只|一只|狗子)?(?P<a>[^，我你他她有叫养喜欢爱]{{0,4}}?"
          rf"(?:{_ANIMALS}))(?:的)?(?:名字|小名)?(?:叫做?|名叫|是叫|是(?<=名字是))(?P<v>[^，]{{1,12}}?)(?=$|，"
          rf"|今年|，)", _pet),
    _rule(rf"(?:我|俺|我们|咱)(?:家)?的?(?:大|小|二|亲|双胞胎|未来|前任"
          rf"|现任)?(?P<r>{_RELATION})(?:的)?(?:的名字)?(?:也)?(?:名字|小名|大名|名)?(?:叫做?|名叫|名字叫"
          rf"|是叫)(?P<v>[^，]{{1,20}}?)(?=$|，|今年|在|是|住|，|\d)", _relative),
    _rule(rf"(?:我|俺|我们)(?:家)?的?(?P<r>{_RELATION})(?:的)?名字?是(?P<v>[^，]{{1,12}})",
          _relative),
    _rule(rf"(?:我|俺|我们)(?:家)?的?(?P<r>{_RELATION})是(?P<v>(?:[小老阿][\u3400-\u9fff]{{1,2}}"
          rf"|[{_SURNAMES}][\u3400-\u9fff]{{1,2}}|[A-Z][a-z]+))$",
          lambda g, t: [] if re.search(rf"[人生员师的手子]$|(?:{_JOBS})", _simple(g["v"])) else _relative(g, t)),
    _rule(rf"(?:我|俺|我们|我家|家里)(?:还|也|家|们)?有(?:一|两|二|三|1|2|3|俩)?(?:个|位|对)?(?:可爱的|很好的"
          rf"|双胞胎|小|大|亲|\d{{1,2}}岁的|[一二三四五六七八九十]{{1,2}}岁的|刚出生的)?(?P<r>{_RELATION})(?:，"
          rf"|,)?(?:分别|名字|名|她|他)?(?:叫做?|名叫)(?P<v>[^，]{{1,20}}?)(?=$|，|今年)", _relative),
    _rule(rf"(?:我|俺|我们|我家)(?:还|也|家)?有(?:一|两|二|三|1|2|3|俩)?(?:个|位|对)(?:可爱的|双胞胎|小|大"
          rf"|亲)?(?P<r>{_RELATION})(?=$|，)",
          lambda g, _: [Pair(_RELATIONS[_simple(g["r"])], "", unnamed=True)]),
    _rule(rf"(?:我|俺)(?:家)?的?(?P<r>{_RELATION})(?:也|现在|目前)?(?:是|做|当)(?:一名|一个|一位|个|名|位"
          rf"|做)?(?P<v>[^，我你]{{0,8}}?(?:{_JOBS}))(?:的)?$", _relative_is),
    _rule(rf"(?:我|俺)(?:家)?的?(?P<r>{_RELATION})(?:现在|目前|也|今年)?(?P<v>(?:住在"
          rf"|在)[^，你我]{{2,12}}(?:工作|上班|读书|上学|留学)?|对[^，]{{1,10}}过敏|(?:今年)?(?:\d{{1,2}}"
          rf"|[一二三四五六七八九十]{{1,3}})岁|有(?:{_CONDITIONS}))(?:了)?$",
          lambda g, t: _kin_does(g, t) if not re.search(
        r"^在(?!.*(?:工作|上班|读书|上学|留学)$)|家$|医院$|这里$|旁边$|路上$",
        _simple(g["v"])) else []),
    # tastes
    _rule(r"(?:我|俺|本人)(?:个人)?(?:现在|目前|如今|最近)?最(?:喜欢|爱|喜爱|中意|钟爱)(?P<e>吃|看|听|读|喝|玩)?的"
          r"(?P<k>[^，是]{0,6}?)(?:一直|永远|还|就|当然|肯定|应该|现在|目前|如今)*(?:是|：|:|有)(?P<v>[^，]{1,30})",
          _favourite),
    _rule(r"(?P<v>[^，我你]{1,14})(?:永远|一直|绝对|当然)?是我(?:个人)?最(?:喜欢|爱|喜爱)(?:吃|看|听|读|喝"
          r"|玩)?的(?P<k>[^，]{1,6}?)(?:之一)?(?=$|，)", _favourite),
    _rule(rf"(?:我|俺|本人)(?:{_ADV})(?:不|没那么|没有?很?|不怎么|不太|不是很|不大|一点也不|一点都不|从来不"
          rf"|最不|完全不|并不|实在不)(?:喜欢|爱|喜爱|待见|感冒)(?P<w>吃|喝|看|听)?{_VL}",
          lambda g, t: _several("dislikes")({"v": g.get("w", "") + g["v"]}, t)),
    _rule(rf"(?:我|俺|本人){_ADV}(?:讨厌|厌恶|恨|受不了|不能忍受|忍受不了|反感|烦(?=别人|开会|下雨|吵|人多|加班"
          rf"|[^，]{{2}}))(?:被)?{_VL}", _several("dislikes")),
    _rule(rf"(?:我|俺|本人){_ADV}对(?P<v>[^，]{{1,16}}?){_ADV}(?:感兴趣|有兴趣|着迷|上瘾|情有独钟)",
          _several("likes")),
    _rule(r"(?:我|俺|本人|我们)(?:的|平时的?|最大的?|业余)*(?:爱好|兴趣爱好|兴趣|业余爱好|嗜好)(?:就?是|有|包括|："
          r"|:)(?P<v>[^，]{1,50})", _several("likes")),
    _rule(r"(?:我|俺|本人)(?:是|也是|可是|就是)(?:一个|个|一枚|资深|铁杆|忠实|超级|狂热|骨灰级|重度|老"
          r"|的)*(?P<v>[^，]{1,12}?)(?:的)?(?:粉丝|爱好者|发烧友|球迷|迷|控|铁粉|粉|党)(?=$|，)",
          lambda g, t: _several("likes")({"v": re.sub("的?(?:铁杆|忠实|超级|资深)$", "", g["v"])}, t)),
    _rule(rf"(?:我|俺|本人|我们){_ADV}(?:喜欢|喜爱|热爱|钟爱|酷爱|偏爱|迷上了?|爱上了?|沉迷于?|痴迷于?|中意"
          rf"|好(?=这口))(?P<v>(?!(?:吃|看|听|读|喝|玩)?的(?:人|东西|事"
          rf"|[一直永远还就当然肯定应该现在目前如今]{{0,4}}是)).{{1,80}}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后"
          rf"|并且|尤其|特别是|我|胜过|多过|超过)",
          _several("likes")),
    _rule(rf"(?:我|俺|本人|我们){_ADV}爱(?P<v>(?!你|他|她|它|我|上|的|过|人|谁|国|着|情|心|因为|这|那|家人|心"
          rf"|理|搭理|干|信不信|咋咋地|去不去).{{1,60}}?)(?=$|[。！!（(]|但是?|不过|所以|因为|而且|然后|并且|尤其"
          rf"|我)", _several("likes")),
    _rule(rf"(?:比起[^，]{{1,12}}?，?)?(?:我|俺|本人){_ADV}更?(?:喜欢|偏好|倾向于?){_VL}",
          _several("likes")),
    # what they have and what they are after
    _rule(r"(?:我|俺|本人|我们|我家)(?:刚|刚刚|最近|上个月|去年|今年|还|也|自己|家|终于|前几天|现在){0,3}(?:有"
          r"|买了|入手了?|拥有|开着?|骑着?|换了|新买了|入了|新入了)(?:一|两|三|1|2|3)?(?:辆|台|部|架|套|把|艘|块"
          r"|支|栋|间|双)(?P<v>[^，我你]{1,16}?)(?=$|，|了|，|叫|\d年)", _owns),
    _rule(r"(?:我|俺|本人)(?:开的|骑的|的车|用的手机|的手机|的电脑|用的电脑|用的相机|用的)是(?:一)?(?:辆|台"
          r"|部)?(?P<v>[^，我你]{2,16})$", _owns),
    _rule(r"(?:我|俺|本人)(?:今年|现在|最大|人生|长期|短期|近期|目前|新年|明年|这辈子|的|一直以来|最近|终极"
          r"|唯一){0,4}(?:的)?(?:目标|梦想|愿望|理想|心愿|志向)(?:就?是|：|:)(?:能|能够|想|希望"
          r"|要)?(?P<v>[^，]{2,30})", _goal),
    _rule(r"(?:我|俺|本人)(?:今年|明年|一直|真的|很|以后|将来|特别|非常|也|还|最近|下半年|未来|总有一天|有朝一日"
          r"|长大|毕业后|退休后|正在?|现在|目前|在){0,4}(?:想要?|希望能?|打算|计划|准备|立志要?|争取|努力|梦想着?"
          r"|决定|立志|决心|要|备战|备考)(?:能|去|在[^，]{2,8}前|今年(?:内|底前)?|三年内|\d年内|年底前|有一天|早日"
          r"|尽快){0,2}(?P<v>(?:学(?:会|好|习)?(?!你|一下|着)[^，]{2,12}|减肥|减重|减到\d|瘦[^，]{1,8}|考(?!虑|察"
          r"|试)[^，]{1,10}|成为[^，]{2,14}|当(?:上)?(?:一名|个|一个)?[^，天时]{2,10}|写(?:一)?(?:本"
          r"|部)[^，]{1,10}|跑(?:完)?(?:一次|一个|个|全程|半程|全|半)?(?:马拉松|半马|全马|马)|攒[^，]{2,12}"
          r"|存[^，]{1,12}|买(?:一?(?:套|辆|栋)|房|车)[^，]{0,10}|戒(?:烟|酒|糖|奶茶)|环游[^，]{1,6}|创业"
          r"|开(?:一)?(?:家|间|个)[^，]{2,10}|移民[^，]{0,6}|出国[^，]{0,6}|留学|拿到[^，]{2,12}|读(?:完)?\d+本书"
          r"|读研|读博|健身|练出[^，]{1,8}|练[^，]{2,8}|转行[^，]{0,8}|升职[^，]{0,6}|早睡[^，]{0,4}"
          r"|提高[^，]{2,10}|雅思[^，]{0,8}|托福[^，]{0,8}|公务员|教资|考研|每天[^，]{2,12}|去[^，]{2,6}(?:留学"
          r"|旅行|定居|看极光)|存够[^，]{2,10}|通过[^，]{2,10}))(?:的)?(?=$|，|了|，|所以)", _goal),
    _rule(r"(?:我|俺|我们|本人|咱)(?P<v>(?:打算|计划|准备|要|会|得|将|和[^，]{1,5}|跟[^，]{1,5}|已经"
          r"|就){0,3}(?:明天|后天|大后天|下下?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]?"
          r"|下个?月(?:\d{1,2}[号日])?|明年(?:\d{1,2}月|春天|夏天|秋天|冬天|[一二三四五六七八九十]{1,2}月)?"
          r"|这周[一二三四五六日末]|周[一二三四五六日末]|今年(?:暑假|寒假|夏天|冬天|秋天|春节|国庆|年底)|年底|月底"
          r"|暑假|寒假|国庆|春节|过年|\d{1,2}月(?:\d{1,2}[号日])?|[一二三四五六七八九十\d]{1,2}(?:天|周|个月"
          r"|年)(?:以)?后)(?:的?时候)?(?:早上|上午|下午|晚上|中午)?[^，]{2,30})", _plan),
    _rule(r"(?P<v>(?:明天|后天|大后天|下下?(?:个)?(?:周|星期|礼拜)[一二三四五六日天末]?|下个?月(?:\d{1,2}[号日])?"
          r"|明年(?:\d{1,2}月)?|这周[一二三四五六日末]|周[一二三四五六日末]|年底|月底|暑假|寒假|国庆|春节|过年"
          r"|\d{1,2}月\d{1,2}[号日]|[一二两三四五六七八九十\d]{1,2}(?:天|周|个星期|个月|年)(?:以)?后)(?:早上|上午"
          r"|下午|晚上|中午)?我(?:们)?(?:打算|计划|准备|要|会|得|将|就要|和|跟|有(?:个|一个|一场))[^，]{2,30})",
          lambda g, t: _plan({"v": g["v"].replace("我们", "", 1).replace("我", "", 1)}, t)),
    _rule(r"(?:我|俺|我们|本人)(?P<v>(?:打算|计划|准备|决定)(?!给你|跟你|睡|吃|洗|出门|休息)[^，]{3,30})", _plan),
)
# fmt: on
# fmt: off
_REQUESTS: tuple[Rule, ...] = (
    _rule(r"(?:请|你|您|大家|直接|就|都|可以|以后|还是|平时|也可以|不如|改){0,4}(?:叫|喊|称呼|称)我(?:为|作|做"
          r"|一声|的英文名|的小名)?(?P<v>(?!起床|的时候|吃|一下|回|怎么|名字|全名)[^，]{1,16})", _name("called")),
    _rule(r"(?:请|拜托|求你|你|您|千万|都|再|也|麻烦){0,3}(?:别|不要|不许|不准|禁止|不用|勿|莫|少|避免)(?:再|老是"
          r"|总是|随便|轻易|动不动就?){0,2}(?:跟我|和我|对我|给我|向我|同我|在我面前|当着我的?面?|与我|问我"
          r"|拿我的?|推荐我)?(?:再)?(?:谈论?|聊到?|提起?到?及?|说起|讨论|问起?|讲|开(?=.{1,8}玩笑)|涉及|推荐|八卦"
          r"|催(?=我?婚|我?结婚|生)|评价|评论)(?:我)?(?:任何)?(?:关于|有关|到|起|和|跟)?(?!话|一下|这么|那么|得|太"
          r"|废|客气|多余|表情|脏话|英[语文]|中文|方言|网络|长|大道理|敬语)(?P<v>[^，]{1,20})", _boundary),
    _rule(r"我(?:真的|实在|现在|一点也?|一点都)?(?:不想|不愿意?|不希望|不喜欢|拒绝|不想再)(?:再)?(?:跟你|和你"
          r"|跟任何人|和别人|被)?(?:谈论?|聊到?|提起?到?|讨论|说起|问起?|讲)(?:到|起|关于|有关)?(?!话"
          r"|一下)(?P<v>[^，]{1,20})", _boundary),
    _rule(r"(?P<v>[^，我你]{2,12})(?:的话题|的事情?|这个话题|这种话题)(?:请)?(?:别|不要|不许|不准)(?:再)?(?:提|聊"
          r"|谈|说|问)", _boundary),
    _rule(r"(?P<v>[^，我你]{2,12})(?:的话题)?(?:是我的?(?:雷区|禁区|底线|忌讳|禁忌)|对我来说是(?:敏感|禁忌)话题)",
          _boundary),
)
# fmt: on
_STYLE = Phrase(
    rf"(?:请|都|要|就|只|多|尽量|直接|统一|一律|最好|麻烦你?){{0,3}}(?:(?:用|说|讲|使用|换成|切换成?|改用"
    rf"|全用)(?:(?:{_LANGUAGES})(?=$|[吧哦啊就]|回|答|跟|和|与|聊|交流|对话|沟通|说话|来[回聊])|繁体|简体"
    rf"|大白话|通俗|简单|简短|简洁|口语|敬语|轻松|幽默|专业|正式|温柔|书面|文言文|摄氏|公制|公里|列表|markdown"
    rf"|24小时|表格|一句话|短句|英式|美式)|(?:回答|回复|说话|答案|讲话|解释|语气|说|讲|回|答)(?:我|问题|时|的时候"
    rf"|得|内容)?(?:都|要|请|可以|能|尽量|一定要?|务必|得)*(?:再|更|稍微)?(?:用(?:{_LANGUAGES}|[^，]{{2,6}})"
    rf"|简短|简洁|简单|精简|短|直接|详细|通俗|温柔|正式|随意|轻松|幽默|具体|口语|专业|干脆|精炼|友好|随和|客气"
    rf"|不要|别|不用|控制在|言简意赅|慢|温和|严肃)"
    r"|(?:别|不要|不用|不许|少|停止|请勿|禁止)(?:再|给我|总是|老是|老|总|跟我){0,2}(?:(?:用|使用|发|加|带|讲"
    r"|写|说(?=[^，]{0,8}(?:话|语|文|词|言|字|句|理|教|梗|腔|对不起|抱歉|谢谢)))(?!了|$|话$|谎)|那么|这么|太|叫我|称呼我|喊我|敷衍|啰嗦|重复|道歉|说教|客套|绕弯子|废话|打官腔|卖萌|夸"
    r"|鸡汤|撒娇|中英)|(?:简短|简洁|简单|直接|精简|言简意赅|详细|具体|温柔|幽默|正式|随意)(?:一?点|一些|些|明了"
    r"|扼要)(?:$|的?回[答复]|就行|就好|吧|哦|啊)|长话短说)"
)
