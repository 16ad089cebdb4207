"""A fact as a short clause said to the person it is about: "you live in Lisbon", 你住在里斯本.

Invariants: pure; the value is never changed, only set into a phrase; a key without a phrase of its own still reads as
"key: value". Values may be in another language than the phrase, so no phrase bends them: where grammar would have to
know the value (an article, a plural), the phrase ends in a colon instead.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from memory.service import Context, Memory, Message

Language: TypeAlias = Literal["en", "zh"]


def say(key: str, value: str, *, language: Language) -> str:
    """The fact `key` = `value` to the person in `language`, without a capital letter or a full stop.

    `key` is normalised, as facts are stored.
    """
    place = 0 if language == "en" else 1
    phrases = _PHRASES.get(key)
    if phrases:
        return phrases[place].replace(_VALUE, value, 1)
    if key in _RELATIONS:
        return f"your {_spoken(key)}: {value}" if language == "en" else f"你的{_RELATIONS[key]}：{value}"
    thing = key.removeprefix("favourite-")
    if thing and thing != key:
        if language == "en":
            return f"your favourite {_spoken(thing)} is {value}"
        return f"你最喜欢的{_THINGS.get(thing, _spoken(thing))}是{value}"
    return f"{key}: {value}"


def tell(memory: Memory, context: Context, *, language: Language) -> str:
    """A memory to the one who asks: "you …" where it is about them, else under the name of whom it is about."""
    if memory.subject_id is None or memory.subject_id in (context.speaker.id, *context.scope.selves):
        return say(memory.key, memory.value, language=language)
    return f"{memory.subject_name}: {memory.key}: {memory.value}"


def quote(message: Message, context: Context, words: str, *, language: Language) -> str:
    """What somebody said, word for word, to the one who asks."""
    if message.role == "assistant":
        said = "I said" if language == "en" else "我说过"
    elif message.author_id in (context.speaker.id, *context.scope.selves):
        said = "you said" if language == "en" else "你说过"
    else:
        said = f"{message.author_name} said" if language == "en" else f"{message.author_name}说过"
    return f"{said}: “{words}”" if language == "en" else f"{said}：“{words}”"


def _spoken(key: str) -> str:
    return key if key.endswith("-in-law") else key.replace("-", " ")


_VALUE: Final = "{}"
#: Key → the phrase in English and in Chinese; `_VALUE` stands for the value.
_PHRASES: Final[dict[str, tuple[str, str]]] = {
    "name": ("your name is {}", "你的名字是{}"),
    "called": ("you want to be called {}", "你想让人叫你{}"),
    "birthday": ("your birthday is {}", "你的生日是{}"),
    "age": ("you are {} years old", "你{}岁"),
    "nationality": ("your nationality: {}", "你的国籍：{}"),
    "native-language": ("your native language is {}", "你的母语是{}"),
    "language": ("your language is {}", "你用的语言是{}"),
    "speaks": ("you speak {}", "你会说{}"),
    "timezone": ("your time zone is {}", "你的时区是{}"),
    "home": ("you live in {}", "你住在{}"),
    "hometown": ("you are from {}", "你来自{}"),
    "occupation": ("your occupation: {}", "你的职业是{}"),
    "employer": ("you work at {}", "你在{}工作"),
    "studies": ("your studies: {}", "你在读{}"),
    "pet": ("your pet: {}", "你的宠物：{}"),
    "likes": ("you like {}", "你喜欢{}"),
    "dislikes": ("you don't like {}", "你不喜欢{}"),
    "interest": ("you are interested in {}", "你对{}感兴趣"),
    "hobby": ("your hobby: {}", "你的爱好：{}"),
    "allergy": ("you are allergic to {}", "你对{}过敏"),
    "diet": ("your diet: {}", "你的饮食：{}"),
    "condition": ("your health: {}", "你的身体情况：{}"),
    "goal": ("your goal: {}", "你的目标：{}"),
    "plan": ("your plan: {}", "你的计划：{}"),
    "owns": ("you have: {}", "你有{}"),
    "note": ("to remember: {}", "要记住：{}"),
    "instruction": ("you asked: {}", "你的要求：{}"),
    "boundary": ("not to be brought up with you: {}", "不跟你谈：{}"),
}

#: Relation keys → the Chinese word, which must do without knowing who is older.
_RELATIONS: Final[dict[str, str]] = {
    "partner": "伴侣",
    "wife": "妻子",
    "husband": "丈夫",
    "fiance": "未婚夫或未婚妻",
    "girlfriend": "女朋友",
    "boyfriend": "男朋友",
    "mother": "母亲",
    "father": "父亲",
    "sibling": "兄弟姐妹",
    "sister": "姐妹",
    "brother": "兄弟",
    "twin": "双胞胎",
    "son": "儿子",
    "daughter": "女儿",
    "child": "孩子",
    "grandmother": "祖母或外婆",
    "grandfather": "祖父或外公",
    "grandson": "孙子",
    "granddaughter": "孙女",
    "aunt": "姑姨",
    "uncle": "叔伯舅",
    "cousin": "表亲或堂亲",
    "niece": "侄女或外甥女",
    "nephew": "侄子或外甥",
    "mother-in-law": "岳母或婆婆",
    "father-in-law": "岳父或公公",
    "sister-in-law": "嫂子或弟媳",
    "brother-in-law": "姐夫或妹夫",
    "stepmother": "继母",
    "stepfather": "继父",
    "stepson": "继子",
    "stepdaughter": "继女",
    "friend": "朋友",
    "roommate": "室友",
    "neighbour": "邻居",
    "boss": "上司",
    "manager": "经理",
    "supervisor": "主管",
    "colleague": "同事",
    "teacher": "老师",
    "mentor": "导师",
    "doctor": "医生",
    "dentist": "牙医",
    "therapist": "心理医生",
}

#: Things a person has a favourite of; the same words the extractor turns into English keys.
_THINGS: Final[dict[str, str]] = {
    "color": "颜色",
    "food": "食物",
    "dish": "菜",
    "movie": "电影",
    "film": "电影",
    "song": "歌",
    "music": "音乐",
    "book": "书",
    "novel": "小说",
    "sport": "运动",
    "city": "城市",
    "country": "国家",
    "singer": "歌手",
    "band": "乐队",
    "season": "季节",
    "animal": "动物",
    "fruit": "水果",
    "vegetable": "蔬菜",
    "actor": "演员",
    "author": "作家",
    "game": "游戏",
    "anime": "动漫",
    "show": "电视剧",
    "drink": "饮料",
    "dessert": "甜点",
    "flower": "花",
    "number": "数字",
    "team": "球队",
    "player": "球星",
    "subject": "科目",
    "restaurant": "餐厅",
}
