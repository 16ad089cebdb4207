"""Words that ask for a key or a category: "where do I live" and 我住在哪里 both mean `home`.

A fact is indexed under its key, its value and these cues, so that a question in any language finds it even without a
common word. Keys that are not listed are found by their own words and those of their category.
"""

from __future__ import annotations

from memory import keys

#: The version of the words below, raised with every change: the index is then built anew.
CUES_VERSION = 4

_CUES = {
    "name": "name called who 名字 姓名 叫 谁 heiße name nombre llamo nom appelle 名前",
    "called": "call called nickname name 叫 称呼 名字",
    "home": "live lives living home house city town country address where 住 家 城市 哪里 哪儿 居住"
    " wohne wohnort wohnen wohnte gewohnt gelebt adresse stadt vivo vivía vivido dónde vives domicilio ciudad habite"
    " habites habitais habité vécu ville 住所 住んで 住む",
    "hometown": "from hometown grew born raised where 老家 家乡 来自 出生 长大 哪里人"
    " komme herkunft heimat origen pueblo origine 出身",
    "birthday": "birthday born birth date when 生日 出生日期 哪天"
    " geburtstag geburtsdatum geboren cumpleaños nacimiento fecha nací anniversaire naissance né née 誕生日 生年月日",
    "age": "age old years 年龄 几岁 多大 岁 alter alt jahre edad años âge ans 年齢 何歳",
    "nationality": "nationality citizen country passport 国籍 哪国人 nationalität nacionalidad nationalité 国籍",
    "religion": "religion faith church believe religious 宗教 信仰 信教 religion glaube religión 宗教",
    "native-language": "native mother tongue language speak 母语 语言",
    "speaks": "speak speaks language languages 会说 语言"
    " sprache sprachen spreche idiomas hablo langues parle 言語 話せる",
    "timezone": "timezone time zone clock 时区",
    "occupation": "job work profession occupation do living career 工作 职业 做什么"
    " beruf arbeit job arbeite gearbeitet trabajo trabajaba profesión empleo métier travail boulot"
    " profession 仕事 職業",
    "employer": "work job company employer office where 公司 上班 工作 单位 哪里"
    " arbeitgeber firma arbeit arbeite job stelle trabajo empresa empleo travail boulot entreprise 勤め先 会社 職場",
    "studies": "study studies student school university major college 学习 专业 学校 大学 读"
    " studium studiere lerne estudio carrera estudios études étudie 大学 勉強",
    "pet": "pet pets animal dog cat 宠物 狗 猫 养"
    " haustier hund katze tier mascota perro perra gato gata animal chien chat 犬 猫 ペット",
    "likes": "like likes love enjoy fond prefer interests hobby hobbies 喜欢 爱 爱好 兴趣"
    " mag gern liebe gusta gustan encanta aime 好き",
    "dislikes": "dislike dislikes hate avoid like 讨厌 不喜欢 hasse odio déteste 嫌い 苦手",
    "allergy": "allergy allergies allergic eat food avoid 过敏 忌口 吃"
    " allergie allergisch alergia alérgico alérgica allergique アレルギー",
    "diet": "diet eat eats food vegetarian vegan meat 饮食 吃 素 荤 ernährung esse dieta régime 食生活",
    "condition": "condition illness disease health ill sick medical 病 健康 身体"
    " krankheit gesundheit enfermedad salud maladie santé 病気",
    "goal": "goal goals aim want plan dream 目标 想 打算 梦想",
    "owns": "own owns have car bike possess 有 拥有 买 auto motorrad coche moto voiture 車 バイク",
    "plan": "plan plans planning going when upcoming 计划 打算 安排 什么时候"
    " plan pläne reise urlaub planes viaje projet voyage 予定 旅行",
    "boundary": "boundary avoid topic talk mention 不要 别 谈 话题",
    "instruction": "instruction answer always never style 要求 回答 总是",
    "partner": "partner spouse married 伴侣 对象 爱人 结婚 partner beziehung pareja compagnon relation 恋人 パートナー",
    "wife": "wife spouse partner married 妻子 老婆 太太 结婚 frau ehefrau esposa mujer femme épouse 妻",
    "husband": "husband spouse partner married 丈夫 老公 结婚 mann ehemann marido esposo mari 夫",
    "girlfriend": "girlfriend partner dating 女朋友 女友 对象 freundin novia copine 彼女",
    "boyfriend": "boyfriend partner dating 男朋友 男友 对象 freund novio copain 彼氏",
    "mother": "mother mom mum parents family 妈妈 母亲 父母 家人 mutter mama madre mamá mère maman 母",
    "father": "father dad parents family 爸爸 父亲 父母 家人 vater papa padre papá père 父",
    "sister": "sister sisters sibling family 姐姐 妹妹 姐妹 家人 schwester hermana sœur 姉 妹",
    "brother": "brother brothers sibling family 哥哥 弟弟 兄弟 家人 bruder hermano frère 兄 弟",
    "son": "son sons child children kid kids family 儿子 孩子 家人 sohn kind kinder hijo hijos fils enfants 息子 子供",
    "daughter": "daughter daughters child children kid kids family 女儿 孩子 家人"
    " tochter kind kinder hija hijos fille enfants 娘 子供",
    "friend": "friend friends 朋友 freund freundin amigo amiga ami amie 友達",
    "boss": "boss manager chief 老板 上司 领导 chef chefin jefe jefa patron 上司",
    "colleague": "colleague colleagues coworker 同事 kollege kollegin compañero compañera collègue 同僚",
    "favourite-color": "color colour 颜色",
    "favourite-food": "food dish eat 食物 菜 吃",
    "favourite-movie": "movie film 电影",
    "favourite-song": "song music 歌",
    "favourite-book": "book read 书",
    "favourite-sport": "sport sports 运动",
    "favourite-city": "city 城市",
}


#: The words by which people ask for anything of a kind; rarer words of the question then choose among the hits.
_CATEGORY_CUES = {
    "identity": "who name called address age birthday born language origin 谁 名字 称呼 多大 出生 语言",
    "relation": "family relative kin who 家人 亲戚 谁",
    "boundary": "boundary limits avoid sensitive touchy careful raise mention topic taboo"
    " 避免 忌讳 注意 小心 不能 不要 话题",
    "health": "health ill illness condition allergy doctor medical suffer pain injury harm"
    " 健康 病 医生 过敏 身体 受伤 疼",
    "instruction": "told asked want wish expect respond react reply answer treat rule manner"
    " 要求 希望 回答 说话 对待 注意",
    "preference": "like love favourite enjoy prefer taste hate dislike fun relax pastime hobby"
    " 喜欢 爱 偏好 讨厌 消遣 爱好",
    "place": "where live place city town home house address move from come 哪里 哪儿 地方 城市 住 来自",
    "work": "job work career employer company profession office living earn 工作 职业 公司 上班 单位 做什么",
    "decision": "decide decided decision choice choose chosen conclude concluded settled agreed 决定 选择 选 结论 打算",
    "solution": "solve solved solution fix fixed problem cause cure trick 解决 修好 办法 怎么 原因",
    "config": "set setting setup configured configuration value 设置 配置 设 调",
    "project": "project build 项目 进度",
    "plan": "plan plans planning intend going when upcoming event 计划 打算 安排 什么时候",
    "happening": "happen happened when 发生 什么时候",
    "artifact": "own have keep thing 有 放 东西",
}


#: A question for the name of a sister or a dog asks for that sister or dog.
_NAMED = "name called 名字 叫"


def cues(key: str) -> str:
    found = _CUES.get(key, "")
    if key in keys.RELATIONS or key == "pet":
        found = f"{found} {_NAMED}"
    if key.startswith("favourite-"):
        return f"favorite favourite best like 最喜欢 最爱 {found}"
    return found


def category_cues(category: str) -> str:
    return _CATEGORY_CUES.get(category, "")
