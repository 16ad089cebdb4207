"""People say who they are in passing, half asleep and without commas; these are sentences of that kind.

The tables were written beside the patterns and are a record of what they can do, not a measurement; that is made on
lines the patterns have never seen.
"""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.keys import CATEGORIES, VALUE_LIMIT, normalise_key
from memory.learn.offline.patterns import MOST_FACTS, WINDOW, extract
from tests.kit.tables import each_row

TODAY = date(2026, 11, 21)


def told(text: str) -> str:
    return "; ".join(f"{fact.key}={fact.value}" for fact in extract(text, today=TODAY))


ENGLISH: list[tuple[str, str]] = [
    ("hi im marta, 29, from porto but living in berlin since 2019", "name=marta; age=29; hometown=porto; home=berlin"),
    ("My name is Daniel and I work as a nurse at St. Mary's Hospital", "name=Daniel"),
    ("btw I'm lactose intolerant so no dairy recs pls", "condition=lactose intolerant"),
    ("i live in lisbon, work as a graphic designer and have two cats", "home=lisbon; occupation=graphic designer; pet=two cats"),
    ("just so you know i'm allergic to peanuts and shellfish", "allergy=peanuts; allergy=shellfish"),
    ("I have a dog called Rex", "pet=dog Rex"),
    ("we have a cat, her name is Luna", "pet=cat Luna"),
    ("my wife Eva is a teacher", "wife=Eva"),
    ("my sister's name is Joana", "sister=Joana"),
    ("I've got two kids, Leo and Mia", "child=Leo; child=Mia"),
    ("My brother Tom lives in Canada", "brother=Tom"),
    ("my birthday is on March 3rd", "birthday=March 3rd"),
    ("i was born on 12 July 1988", "birthday=12 July 1988"),
    ("I'm 34 years old and I'm from Glasgow", "age=34; hometown=Glasgow"),
    ("I'm vegetarian, what can I cook tonight?", "diet=vegetarian"),
    ("I love black coffee and hiking", "likes=black coffee; likes=hiking"),
    ("i hate cilantro lol", "dislikes=cilantro"),
    ("I don't really like horror movies", "dislikes=horror movies"),
    ("my favourite color is blue", "favourite-color=blue"),
    ("My favorite food is sushi btw", "favourite-food=sushi"),
    ("I speak Portuguese, English and a bit of German", "speaks=Portuguese; speaks=English; speaks=German"),
    ("Portuguese is my native language", "native-language=Portuguese"),
    ("my timezone is CET", "timezone=CET"),
    ("I'm a software engineer at Airbus", "occupation=software engineer; employer=Airbus"),
    ("i study biology at the University of Coimbra", "studies=biology; studies=University of Coimbra"),
    ("I'm studying law", "studies=law"),
    ("I'm diabetic so careful with sugar", "condition=diabetic"),
    ("I have type 2 diabetes", "condition=type 2 diabetes"),
    ("I was diagnosed with ADHD last year", "condition=ADHD"),
    ("my goal is to run a marathon next year", "goal=run a marathon next year (2027)"),
    ("I moved to Bilbao yesterday", "home=Bilbao"),
    ("I own a red bicycle", "owns=red bicycle"),
    ("I'm moving to Berlin next month", "plan=moving to Berlin next month (2026-12)"),
    ("i have a dentist appointment next friday", "plan=dentist appointment next friday (2026-11-27)"),
    ("remember that my locker code is 4411", "note=my locker code is 4411"),
    ("please remember I'm vegan", "diet=vegan"),
    ("From now on, please answer in Chinese", "instruction=answer in Chinese"),
    ("keep your answers short please", "instruction=keep your answers short"),
    ("please always use metric units", "instruction=always use metric units"),
    ("never use emojis with me", "instruction=never use emojis with me"),
    ("call me Al", "called=Al"),
    ("everyone calls me Teddy, so please do too", "called=Teddy"),
    ("don't talk about politics please", "boundary=politics"),
    ("please don't mention my ex", "boundary=ex"),
    ("I don't want to talk about my divorce", "boundary=divorce"),
    ("I'm Portuguese but I live in Madrid", "nationality=Portuguese; home=Madrid"),
    ("hello! i am João, i'm a chef and i live in Faro with my girlfriend Rita and our dog Bolt", "name=João; occupation=chef; home=Faro; pet=dog Bolt"),
    ("ok so a bit about me: I'm Priya, I'm a data scientist, I moved to Toronto two years ago", "name=Priya; occupation=data scientist; home=Toronto"),
    ("thanks! also i can't stand loud chewing", "dislikes=loud chewing"),
    ("im really into board games and sci-fi novels", "likes=board games; likes=sci-fi novels"),
    ("My partner's name is Alex", "partner=Alex"),
    ("my boss is called Ingrid", "boss=Ingrid"),
    ("i work for Siemens", "employer=Siemens"),
    ("I'm married to Sofia", "partner=Sofia"),
    ("I have asthma and a peanut allergy", "condition=asthma; allergy=peanut"),
    ("could you please call me Mo?", "called=Mo"),
    ("You can call me Bea", "called=Bea"),
    ("My hometown is Split", "hometown=Split"),
    ("I drive a Toyota Yaris", "owns=Toyota Yaris"),
    ("I turned 40 last week", "age=40"),
    ("im 22", "age=22"),
    ("I don't eat pork", "diet=don't eat pork"),
    ("i dont like olives or anchovies", "dislikes=olives; dislikes=anchovies"),
    ("My best friend Hannah is visiting", "friend=Hannah"),
    ("my name's Kofi, I'm Ghanaian and I speak Twi and English", "name=Kofi; nationality=Ghanaian; speaks=Twi; speaks=English"),
    ("I'm flying to Tokyo on Friday", "plan=flying to Tokyo on Friday (2026-11-27)"),
    ("dentist on 3/21 at 2pm", "plan=dentist on 3/21 at 2pm (2027-03-21)"),
    ("I fly to Rome on Friday", "plan=fly to Rome on Friday (2026-11-27)"),
    ("We move to Bonn next week", "plan=move to Bonn next week (week of 2026-11-23)"),
    ("Hey Remora, I'm Bruno from Recife. I'm 41 and work at Petrobras.", "name=Bruno; hometown=Recife; age=41; employer=Petrobras"),
    ("I'm in the Eastern time zone", "timezone=Eastern"),
    ("my daughter Mia has soccer on Saturdays", "daughter=Mia"),
    ("thx! my fav movie is Spirited Away", "favourite-movie=Spirited Away"),
    ("Blue is my favourite colour", "favourite-color=Blue"),
    ("I have a 6 year old son named Oskar and he loves dinosaurs", "son=Oskar"),
    ("i'm allergic to penicillin, please keep that in mind", "allergy=penicillin"),
    ("so my girlfriend's name is Noor and she's a dentist", "girlfriend=Noor"),
    ("My birthday's the 5th of November", "birthday=5th of November"),
    ("birthday: 1992-08-14", "birthday=1992-08-14"),
    ("I'm Irish, living in Melbourne", "nationality=Irish; home=Melbourne"),
    ("english isn't my first language, my mother tongue is Tagalog", "native-language=Tagalog"),
    ("I can speak French fluently and I'm learning Arabic", "speaks=French"),
    ("I'm on UTC+2", "timezone=UTC+2"),
    ("my husband Mark hates flying", "husband=Mark"),
    ("My dad is called Erik and he lives in Malmö", "father=Erik"),
    ("i have an older brother named Sam", "brother=Sam"),
    ("my favourite season is autumn", "favourite-season=autumn"),
    ("my fav colour is dark green", "favourite-color=dark green"),
    ("remember: trash day is tuesday", "note=trash day is tuesday"),
    ("Please note that my sister is visiting in May", "note=my sister is visiting in May"),
    ("keep in mind I'm on a tight budget", "note=I'm on a tight budget"),
    ("my flatmate Jonas plays the drums", "roommate=Jonas"),
    ("My manager is Deepa", "manager=Deepa"),
    ("my fav food is ramen bc my grandma made it", "favourite-food=ramen"),
    ("what a day. my daughter Ella turned 7 and we had cake", "daughter=Ella"),
    ("my husband's called Pedro and we live in Braga with our two kids", "husband=Pedro; home=Braga"),
    ("I'm half Korean, half German", "nationality=half Korean, half German"),
    ("My native tongue is Polish but I speak decent English too", "native-language=Polish; speaks=English"),
    ("my bf Luca is italian", "boyfriend=Luca"),
    ("My colleague Anika keeps stealing my lunch", "colleague=Anika"),
    ("my favourite book is The Name of the Wind", "favourite-book=Name of the Wind"),
    ("My sister Ana and I are allergic to cats", "sister=Ana"),
    ("my mums name is Carol", "mother=Carol"),
    ("my brothers are Ali, Omar and Zaid", "brother=Ali; brother=Omar; brother=Zaid"),
    ("My goal is to finish my thesis by June", "goal=finish my thesis by June"),
    ("so next month I'm moving to Ghent", "plan=moving to Ghent next month (2026-12)"),
]  # fmt: skip

CHINESE: list[tuple[str, str]] = [
    ("你好，我叫小明，今年28岁，住在上海，是一名程序员", "name=小明; age=28; home=上海; occupation=程序员"),
    ("我叫李雷，在腾讯上班", "name=李雷; employer=腾讯"),
    ("我对花生过敏，这个可以吃吗？", "allergy=花生"),
    ("我海鲜过敏", "allergy=海鲜"),
    ("我对花生和虾过敏", "allergy=花生; allergy=虾"),
    ("我养了一只猫，叫小白", "pet=猫 小白"),
    ("我家狗叫旺财", "pet=狗 旺财"),
    ("我有一只柯基", "pet=一只柯基"),
    ("我老婆叫王芳", "wife=王芳"),
    ("我妹妹叫小红，在北京读书", "sister=小红"),
    ("我有两个儿子，叫大宝和小宝", "son=大宝; son=小宝"),
    ("我生日是3月3日", "birthday=3月3日"),
    ("我是1990年3月3号出生的", "birthday=1990年3月3号"),
    ("我生日农历八月十五", "birthday=农历八月十五"),
    ("我吃素", "diet=吃素"),
    ("我是素食主义者，有什么推荐的餐厅吗", "diet=素食主义者"),
    ("我喜欢喝咖啡和爬山", "likes=喝咖啡; likes=爬山"),
    ("我不喜欢香菜", "dislikes=香菜"),
    ("我讨厌下雨天", "dislikes=下雨天"),
    ("我最喜欢的颜色是蓝色", "favourite-color=蓝色"),
    ("我最喜欢的书是《三体》", "favourite-book=三体"),
    ("我会说英语、日语和一点法语", "speaks=英语; speaks=日语; speaks=法语"),
    ("我的母语是粤语", "native-language=粤语"),
    ("我的时区是UTC+8", "timezone=UTC+8"),
    ("我在东八区", "timezone=东八区"),
    ("我是护士", "occupation=护士"),
    ("我是做设计的", "occupation=设计"),
    ("我在复旦大学读书", "studies=复旦大学"),
    ("我是学法律的", "studies=法律"),
    ("我的专业是计算机", "studies=计算机"),
    ("我有糖尿病", "condition=糖尿病"),
    ("我被确诊为抑郁症", "condition=抑郁症"),
    ("我有一辆红色自行车", "owns=红色自行车"),
    ("我下个月要去日本出差", "plan=下个月 (2026-12)要去日本出差"),
    ("我下周五有个面试", "plan=下周五 (2026-11-27)有个面试"),
    ("记住我的车位是B203", "note=我的车位是B203"),
    ("以后请用中文回答", "instruction=用中文回答"),
    ("回答简短一点", "instruction=回答简短一点"),
    ("从现在开始叫我老王", "called=老王"),
    ("叫我小李就行", "called=小李"),
    ("别跟我聊政治", "boundary=政治"),
    ("我不想谈工作的事", "boundary=工作"),
    ("我是四川人，现在住在成都", "hometown=四川; home=成都"),
    ("我来自台湾，目前在東京工作", "hometown=台湾"),
    ("我是中国人", "nationality=中国人"),
    ("我老家在湖南长沙", "hometown=湖南长沙"),
    ("我從小在香港長大，母語是廣東話", "hometown=香港; native-language=廣東話"),
    ("我叫陳美玲，住在高雄，是國小老師", "name=陳美玲; home=高雄; occupation=國小老師"),
    ("我喜歡貓，討厭蟑螂", "likes=貓; dislikes=蟑螂"),
    ("請用繁體中文回答我", "instruction=用繁體中文回答我"),
    ("以後都叫我阿傑就好", "called=阿傑"),
    ("我男朋友叫阿杰，我们养了一条狗叫豆豆", "boyfriend=阿杰; pet=狗 豆豆"),
    ("本人30岁，坐标深圳，单身", "age=30; home=深圳"),
    ("我在 Google 上班", "employer=Google"),
    ("我特别喜欢周杰伦的歌", "likes=周杰伦的歌"),
    ("我不吃香菜", "diet=不吃香菜"),
    ("我不吃牛肉", "diet=不吃牛肉"),
    ("我高血压，饮食要清淡", "condition=高血压"),
    ("我有点社恐", "condition=社恐"),
    ("以后别用表情包了", "instruction=别用表情包了"),
    ("我住北京朝阳区，在一家银行上班", "home=北京朝阳区; employer=银行"),
    ("我最喜欢吃的水果是芒果", "favourite-fruit=芒果"),
    ("我明天要去医院复查", "plan=明天 (2026-11-22)要去医院复查"),
    ("我三十五了，还单身", "age=三十五"),
    ("我开一辆特斯拉", "owns=特斯拉"),
    ("我朋友都叫我胖子", "called=胖子"),
    ("我室友叫阿强", "roommate=阿强"),
    ("帮我记一下，我家门锁密码改成了生日", "note=我家门锁密码改成了生日"),
    ("我受不了烟味", "dislikes=烟味"),
    ("本人女，26岁，坐标成都，做会计的", "age=26; home=成都; occupation=会计"),
    ("我是马来西亚华人", "nationality=马来西亚华人"),
    ("我今年大三，学的是英语专业", "studies=英语"),
    ("我儿子叫乐乐，今年上小学", "son=乐乐"),
    ("我有个姐姐叫李娜", "sister=李娜"),
    ("我女朋友叫小雯，她喜欢看电影", "girlfriend=小雯"),
    ("我爸叫王建国", "father=王建国"),
    ("我闺蜜叫婷婷", "friend=婷婷"),
    ("我最喜欢的歌手是林俊杰", "favourite-singer=林俊杰"),
    ("我最喜欢的运动是游泳", "favourite-sport=游泳"),
    ("我最爱的食物是螺蛳粉", "favourite-food=螺蛳粉"),
    ("我打算明年去日本留学", "plan=明年 (2027)去日本留学"),
    ("我买了辆二手本田", "owns=本田"),
    ("请记住我每周三晚上有课", "note=我每周三晚上有课"),
    ("帮我记住：车停在B2层", "note=车停在B2层"),
    ("我生日是1995年7月12日", "birthday=1995年7月12日"),
    ("我母语是普通话，会说一点日语", "native-language=普通话; speaks=日语"),
    ("我在美国东部时间", "timezone=美国东部时间"),
    ("我太太叫美惠", "wife=美惠"),
    ("我女儿叫Emma，三岁", "daughter=Emma"),
    ("我最喜欢的城市是京都", "favourite-city=京都"),
    ("我最喜欢的季节是秋天啦", "favourite-season=秋天"),
    ("我常驻深圳", "home=深圳"),
    ("我是做销售的", "occupation=销售"),
    ("我是干装修的", "occupation=装修"),
    ("我姐叫小敏，还有个弟弟叫小刚", "sister=小敏; brother=小刚"),
    ("記住，我住在台南", "home=台南"),
    ("记住，车停在三楼", "note=车停在三楼"),
    ("以后都用中文回答", "instruction=都用中文回答"),
    ("上个月刚搬到苏州，还没找到好吃的早饭", "home=苏州"),
    ("虾和螃蟹我都过敏", "allergy=虾; allergy=螃蟹"),
    ("香菜我真受不了，闻着就想跑", "dislikes=香菜"),
    ("我是臺灣人，養了一隻龜叫鬱鬱", "hometown=臺灣; pet=龜 鬱鬱"),
]  # fmt: skip

NOTHING_ENGLISH = [
    "I've got a lot of work to do", "Please stop", "summarize this article and keep it short",
    "Use Python for this script", "'I live in Rome' is a sentence", "I love you",
    "if I lived in Rome I would eat pizza every day", "Someone I met is from Porto", "I'm such a nerd",
    "I have no idea", "the character says: I'm from Mars", "reply to this email: Hi, I'm Bob from Sales", "Always?",
    'The song "I live for you"', "I'm cooking dinner tonight", "I would love to live in Japan", "i have to go now",
    "Can you pretend to be from Italy?", "I'm number 1", "be careful", "if i'm allergic to nuts what should i avoid",
    "I love it!", "maybe I'm allergic to cats", "pretend that I'm a doctor", "i live to eat", "i'm hungry af",
    "I'm not a doctor but that looks bad", "don't mention it", "don't be sad", "im so tired rn",
    "I'm watching a show", "I have a dream", '`my_name = "Ada"`', "how would you feel if I called you Bob",
    "I'm no longer vegan", "I wish I had a dog", "i like your answer", "I'd love a coffee right now",
    "Is my sister Ana older than me?", "I don't want to talk about it", "I want you to help me",
    "Act as if I'm your boss", "I'm about to leave", "It says I'm allergic to pollen", "Remember me?",
    "Give me a name for my dog", "If you're vegan, I'm a carnivore", "I'm waiting for my sister",
    "I'm a little late", "hi there", "I don't want to go to work", "She has a cat called Milo",
    "I'm in Lisbon for the weekend", "I'm not from here", "We are the champions, my friend",
    "Someone who is allergic to nuts", "Would I like Lisbon?", "never mind", "I hate this", "Someday I'll be rich",
    "I'm not sure I'm allergic", "im at work", "my friend thinks I'm a nurse", "I live in hope", "Act as a nurse",
    "I was vegetarian for years", "I'm 5 minutes away", "I'm out of milk", "i'm good, you?", "my head hurts",
    "I'm no expert", "My teacher lives in Leeds", "Their favourite color is green",
    'translate "my name is Ada" to French', "People say I'm funny",
    "Suppose I live in Berlin. How much tax do I pay?", "do you remember my dog Rex?", "Don't forget to smile",
    "Let me guess, I'm from Mars?", "i'm dead 💀", "Ana said I'm allergic to work lol",
    "write a short bio: I'm Ada, I live in Lisbon", "I'm fine thanks", "I like to think about it",
    "Please translate: my dog is called Rex", "I'm leaving now", "i moved to the next level",
    "I'm trying to find my keys", "my sister is annoying me", "my cat just knocked over a vase", "I get it now",
    "let's play a game: I'm a wizard and you are a dragon", "I'm on my way to Lisbon", "I'm going home",
    "Is it true that I'm a Leo if I was born on August 3?", "You and I are from different worlds",
    "Been a rough year", "Anna's mum's name is Carol", "My friend's name is on the list", "Tomorrow I'll be fine",
]  # fmt: skip

NOTHING_CHINESE = [
    "用一句话解释什么是黑洞", "假装我是海盗", "医生问我对什么过敏", "我在公司加班", "我是觉得可以", "我是来问问题的", "翻译：我叫小明", "帮我翻译“我对花生过敏”", "用英文写一首诗",
    "我没养宠物", "我今年运气不好", "把我当成小学生来解释", "我在努力工作", "我没事", "如果我是你，我会搬到北京", "我对什么过敏？", "别走", "歌词里写着我来自远方", "我饿了",
    "有人说我是天才", "我想静静", "老师说我很聪明", "我不喜欢你的语气", "以后我想当医生", "小王喜欢喝茶", "请翻译成英文：我是护士", "要是我会说日语就好了", "我开车去的", "我老板是个混蛋",
    "叫我起床", "我的生日过得很开心", "我在考虑养狗", "我不会说法语", "朋友的猫叫豆豆", "我在学校", "我想当医生吗", "我讨厌这样", "角色扮演：我是一个骑士，我叫亚瑟", "我曾经在腾讯上班",
    "我想养一只猫", "有个人叫王伟", "把“我住在上海”翻译成英语", "我今天生日吗？", "我爱你", "不要紧", "我听不懂", "我喜欢你推荐的电影", "我明天再来", "我是被逼的",
    "万一我对虾过敏怎么办", "别跟我开玩笑", "别忘了带伞", "记住了", "回答简短一点：什么是AI", "我是不会放弃的", "我在忙", "他跟我说他是医生", "我名字怎么写好看", "我要去洗澡",
    "我喜欢上了一个人", "我住在哪里", "我感觉我像个机器人", "我是新手", "小李对海鲜过敏", "下班以后我去接孩子", "她住在北京", "我表姐的同事对花生过敏", "你叫小冰吗", "用中文怎么说hello",
    "我要是有辆车就好了", "我叫他别来", "我在车站", "我有女朋友的话就好了", "我要是住在海边该多好", "我不知道我喜欢什么", "我在哪里", "你是护士吗", "如果有一天我搬到北京", "我奶奶以前是老师",
    "你住在上海对吧", "歌里唱的我爱北京天安门", "我家楼下有一只猫", "不要停", "我有一部电影推荐给你", "我在吃饭", "明天有雨", "我家猫把花瓶打翻了", "我妹妹烦死了", "好想當有錢人喔",
    "我是想问", "我是谁", "我老板住在别墅里", "以后怎么办", "我有朋友在谷歌上班", "我在公司这边", "人在江湖", "我是干净的", "以后都用不上了", "还有个问题",
]  # fmt: skip


@each_row(("text", "facts"), ENGLISH)
def test_english_disclosures_are_understood(text: str, facts: str) -> None:
    """Without a model these are all that is remembered, so ordinary talk must be enough."""
    assert told(text) == facts


@each_row(("text", "facts"), CHINESE)
def test_chinese_disclosures_are_understood(text: str, facts: str) -> None:
    """Simplified and traditional writing, with and without spaces, are one language to the person."""
    assert told(text) == facts


@each_row("text", NOTHING_ENGLISH + NOTHING_CHINESE)
def test_what_is_no_disclosure_is_left_alone(text: str) -> None:
    """A false memory is repeated to the person for months; silence costs nothing."""
    assert told(text) == ""


def test_one_message_may_hold_facts_in_both_languages() -> None:
    """Bilingual people switch in the middle of a message."""
    assert told("我叫小雨，住在上海。I'm allergic to peanuts.") == "name=小雨; home=上海; allergy=peanuts"


@each_row(
    ("text", "facts"),
    [
        ("He told me 'I live in Rome'. I live in Oslo.", "home=Oslo"),
        ("> I live in Rome\nI live in Oslo", "home=Oslo"),
        ("`I live in Rome` is the string, I'm a nurse", "occupation=nurse"),
        ("我最喜欢的歌是「晴天」", "favourite-song=晴天"),
        ("她说“我住在罗马”。我住在北京。", "home=北京"),
    ],
)
def test_quotes_lose_their_sentences_but_keep_their_names(text: str, facts: str) -> None:
    """The words of somebody else are not the speaker's, yet a quoted title is part of what they say."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("I live in Oslo if that helps", "home=Oslo"),
        ("Do you like Oslo? I live in Oslo", "home=Oslo"),
        ("I'm vegan, what can I eat in Rome?", "diet=vegan"),
        ("I'm vegan, right?", ""), ("They live in Rome and work at Bosch", ""), ("他住在罗马，喜欢猫", ""), ("李雷今年28岁，住在上海", ""),
    ],
)  # fmt: skip
def test_a_refusal_reaches_no_further_than_its_clause(text: str, facts: str) -> None:
    """One conditional or question must not silence the rest of what a person says, nor let its own part through."""
    assert told(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "my password is [secret: password], remember that my key is [secret: openai key]",
        "I live in [secret: token]",
        "My name is [secret: password]",
        "记住我的密码是[secret: password]",
    ],
)
def test_masked_secrets_are_not_learned(text: str) -> None:
    """A mask as a value would say "you told me your password" and look like a leak."""
    assert told(text) == ""


@each_row(
    ("text", "facts"),
    [
        ("Write a poem about tea and keep it short", ""),
        ("Keep it short", "instruction=Keep it short"), ("Answer in French: what is love", ""),
        ("From now on answer in French", "instruction=answer in French"),
        ("answer in French this time", ""), ("用英文回答这个问题", ""), ("以后用英文回答", "instruction=用英文回答"), ("帮我写封信，简短一点", ""),
    ],
)  # fmt: skip
def test_a_wish_for_one_answer_is_not_a_standing_one(text: str, facts: str) -> None:
    """Remembering the style of one task would bend every later answer."""
    assert told(text) == facts


@each_row(
    "text",
    [
        "*walks in* My name is Sir Galahad", "[waves hand] my name is Zorg and I'm from Jupiter",
        "(in a deep voice) I'm Batman from Gotham. I live in a cave",
        "My name is Galahad. *draws his sword* I come from Camelot.",
        "（走进来）我叫玄霜，今年三百岁", "*推门而入* 我叫夜风，我住在长安", "【拔剑】我叫叶孤城",
    ],
)  # fmt: skip
def test_a_message_with_stage_directions_is_a_play(text: str) -> None:
    """The words of a character would be believed of the person for months."""
    assert told(text) == ""


@each_row(
    ("text", "facts"),
    [
        ("(btw I'm vegan) what should I cook?", "diet=vegan"),
        ("(28) I live in Oslo", "home=Oslo"),
        ("(sorry for the late reply) I live in Oslo", "home=Oslo"),
        ("I live in *beautiful* Oslo", "home=beautiful Oslo"),
        ("（补充一下）我住在苏州", "home=苏州"),
        ("(28岁，程序员) 我住在上海", "home=上海"),
    ],
)
def test_an_aside_in_brackets_is_no_play(text: str, facts: str) -> None:
    """People put their own remarks into brackets far more often than a character's steps."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("I'm allergic to Mondays", ""), ("I'm allergic to work. lol", ""), ("i'm allergic to gluten 😂", ""),
        ("I have a Monday allergy", ""), ("I'm allergic to waking up early", ""),
        ("I'm allergic to peanuts and Mondays", ""),
        ("haha thanks! I'm allergic to nuts", "allergy=nuts"),
        ("我对上班过敏", ""), ("我对開會嚴重過敏", ""), ("我一早起就过敏", ""), ("我对花生过敏哈哈", ""), ("我的过敏原是对尘螨", "allergy=尘螨"),
    ],
)  # fmt: skip
def test_an_allergy_is_to_something_one_can_touch(text: str, facts: str) -> None:
    """An allergy outweighs everything else in an answer about food; a joke must not become one."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("I hate olives, way too salty", "dislikes=olives"),
        ("I can't stand jazz, sounds like noise to me", "dislikes=jazz"),
        ("I hate onions, garlic", "dislikes=onions; dislikes=garlic"),
        ("never use emojis at all please", "instruction=never use emojis at all"),
        ("always explain things like I'm five", "instruction=always explain things like I'm five"),
        ("我最喜欢的颜色是绿色的", "favourite-color=绿色"),
        ("记住门牌是红色的", "note=门牌是红色的"),
        ("our dogs name is Rex", "pet=dog Rex"),
    ],
)
def test_a_value_ends_where_the_remark_begins(text: str, facts: str) -> None:
    """The value is shown back to the person; half a sentence behind it looks broken."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("My neighbour has a dog, his name is Rex", ""),
        ("My sister married somebody, his name is Bob", ""),
        ("I have a friend in Rome, name is Bob", ""),
        ("我最近认识了一个人，叫小林", ""),
        ("我家猫很胖，叫煤球", ""),
    ],
)
def test_a_name_after_somebody_else_is_not_the_speakers(text: str, facts: str) -> None:
    """Calling a person by their sister's name is the worst mistake a memory can make."""
    assert told(text) == facts


@each_row(
    ("text", "facts"),
    [
        ("Where do I live? Guess.", ""),
        ("Where do I live? You tell me.", ""),
        ("What's my name? Bob?", ""),
        ("Allergies? None.", ""),
    ],
)
def test_a_question_may_be_answered_by_who_asked_it(text: str, facts: str) -> None:
    """People interview themselves when they introduce themselves; a real question is still only a question."""
    assert told(text) == facts


def test_names_in_lower_case_need_a_greeting() -> None:
    """ "im marta" after a hello is a name; "im knackered" without one must not become one."""
    assert told("hi im marta") == "name=marta"
    assert told("im marta") == ""


def test_only_the_edges_of_a_long_text_are_read() -> None:
    """A pasted book costs no more than a page; what is said before and after it still counts."""
    filler = "and so on. " * (4 * WINDOW // 10)
    assert told(f"I live in Oslo. {filler}") == "home=Oslo"
    assert told(f"{filler} I live in Oslo.") == "home=Oslo"
    assert told(f"{filler} I live in Oslo. {filler}") == ""


def test_a_list_pasted_in_is_cut_off() -> None:
    """Hundreds of facts from one message are a file, not a person talking."""
    text = ". ".join(f"I'm allergic to stuff{number}" for number in range(200))
    assert len(extract(text, today=TODAY)) == MOST_FACTS


def test_candidates_are_ready_to_be_written() -> None:
    """The writer adds nothing: category and weight come with the fact."""
    (fact,) = extract("我对花生过敏", today=TODAY)
    assert (fact.category, fact.key, fact.value, fact.importance) == ("health", "allergy", "花生", 9)
    (remembered,) = extract("remember that the key is under the pot", today=TODAY)
    assert remembered.category == "decision"


def test_the_same_fact_is_given_once() -> None:
    """People repeat themselves within a message; that is one fact, reinforced by nobody."""
    assert told("I live in Oslo. Yes, I live in OSLO!") == "home=Oslo"


SPOKEN = st.sampled_from(
    [
        "I'm", "I", "my", "name is", "live in", "Lisbon", "and", ",", ".", "?", "don't", "like", "tea", "a",
        "nurse", "sister", "Ana", "from now on", "answer in", '"', "'", "call me", "if", "not", "我", "叫", "住在",
        "北京", "，", "。", "喜欢", "猫", "对", "过敏", "以后", "请", "别", "吗", "的", "是", "今年", "28", "岁", "[secret: x]",
        "remember that", "tomorrow", "明天", "\n", "because",
    ]
)  # fmt: skip


@given(words=st.lists(SPOKEN, max_size=30), spaced=st.booleans())
def test_any_jumble_of_words_gives_well_formed_facts(words: list[str], spaced: bool) -> None:
    """Chat is full of fragments; whatever comes out must be storable as it is."""
    text = (" " if spaced else "").join(words)
    facts = extract(text, today=TODAY)
    for fact in facts:
        assert fact.category in CATEGORIES
        assert fact.key == normalise_key(fact.key)
        assert 0 < len(fact.value) <= VALUE_LIMIT
        assert fact.value == fact.value.strip()
        assert "[secret" not in fact.value
        assert "\ufffc" not in fact.value
        assert 1 <= fact.importance <= 10
        assert 0 < fact.confidence <= 1


@given(st.text(max_size=400))
def test_no_text_breaks_the_extractor(text: str) -> None:
    """A message that can't be read for facts must still be answered."""
    extract(text, today=TODAY)


@each_row(
    "unit",
    [
        "a", " ", ",", '"', "'", "(", "《", "I ", "I like ", "my Aa ", "I'm a ", "I really ", "我", "我喜欢", "今年", "我喜欢a和",
        "记住", "[secret:", "*", "*a", "**a ", "(a", "（走", "my Aa and ", "next week I ", "as a ", "lol", "还有",
    ],
)  # fmt: skip
def test_hostile_repetition_comes_to_an_end(unit: str) -> None:
    """One message must not hold up everybody else; a pattern that backtracks without bound would hang here."""
    extract(unit * (2 * WINDOW), today=TODAY)


@each_row(
    ("text", "expected"),
    [
        ("I'm a huge fan.", []),
        ("I'm a huge tennis fan", [("likes", "tennis")]),
        ("Looky here, what a day", []),
        ("I just joined Airbus", [("employer", "Airbus")]),
        ("I joined a group of globetrotters", []),
        ("I love creating a safe and inviting place", []),
        ("I love the sea and mountains", [("likes", "sea"), ("likes", "mountains")]),
    ],
)
def test_talkative_sentences_are_read_as_meant(text: str, expected: list[tuple[str, str]]) -> None:
    """Chats among friends hold more of these than of introductions."""
    assert [(found.key, found.value) for found in extract(text, today=TODAY)] == expected


@each_row(
    ("text", "expected"),
    [
        # 别说 before a verb is "let alone"; before a way of talking it is a request.
        ("本来满怀期待，别说欣赏风景了，根本走不动", []),
        ("连觉都没睡，不用说吃饭了", []),
        ("别说脏话", [("instruction", "别说脏话")]),
        ("以后别说英文", [("instruction", "别说英文")]),
        ("谢谢你一直以来的指导！", []),
        ("请一直用中文回答", [("instruction", "一直用中文回答")]),
        ("我最喜欢吃的就是火锅", [("favourite-food", "火锅")]),
        ("我最喜欢吃的是火锅", [("favourite-food", "火锅")]),
        ("我最喜欢喝的就是柠檬茶", [("favourite-drink", "柠檬茶")]),
        ("我最喜欢的就是火锅", []),
        ("我最喜欢的还是火锅", []),
        ("我最喜欢的菜就是火锅", [("favourite-food", "火锅")]),
        ("好。记得结尾那句我来写：灯塔，让船找到岸。", []),
        ("我计划下周五前", []),
        ("我们打算在下周五之前", []),
        ("我打算明年夏天之前", []),
        ("我打算下周五前交报告", [("plan", "下周五 (2026-11-27)前交报告")]),
        ("Add a product rule: when a strong word appears, memory is turned off by default.", []),
        ("Please note: from now on answer in French", [("instruction", "answer in French")]),
    ],
)
def test_turns_of_speech_are_not_taken_for_facts(text: str, expected: list[tuple[str, str]]) -> None:
    """Each was found wrongly in real talk; beside it stands what must still be found."""
    assert [(found.key, found.value) for found in extract(text, today=TODAY)] == expected


def test_what_follows_a_relative_without_a_subject_is_not_the_speakers() -> None:
    """女儿……对虾过敏 is the daughter's allergy."""
    assert extract("女儿今年上小学，对虾过敏", today=date(2026, 9, 1)) == []
    assert [one.value for one in extract("我女儿叫小满，我对虾过敏", today=date(2026, 9, 1))] == ["小满", "虾"]


@each_row(("text", "facts"), [
        ("My brother is called Will", "brother=Will"),
        ("My brother's name is Will.", "brother=Will"),
        ("My brother is called Will and lives in Rome", "brother=Will"),
        ("I have a sister called May", "sister=May"),
        ("My name is Will Smith", "name=Will Smith"),
        ("My dog is called Will", "pet=dog Will"),
        ("my brother is called will", ""),
        ("My brother is called Will you know", "brother=Will"),
        ("My brother is Will", ""),
    ])  # fmt: skip
def test_a_name_that_is_also_a_word_is_one_after_is_called(text: str, facts: str) -> None:
    assert told(text) == facts


def test_a_german_name_that_is_also_a_word_is_one_after_heisst() -> None:
    names = [extract(text, today=TODAY) for text in ("Mein Bruder heißt Will", "Ich heiße Sie Willkommen")]
    assert [[fact.value for fact in facts] for facts in names] == [["Will"], []]
