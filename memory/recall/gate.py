"""Decides whether a message is worth a search in memory.

Invariants: Pure, linear in the length of the text. In doubt the answer is yes, because a needless search costs
milliseconds and a missed one an answer. So only two kinds of message are turned away: those that are known small talk
throughout, and those too short by their shape to ask for anything in any language. No list of question words has to be
complete. Profile and known facts are in the prompt in any case.
"""

from __future__ import annotations

import re
import unicodedata

#: A longer text (in characters, without its fenced code) has substance, unless it is all code.
_SHORT = 60


def should_search(text: str) -> bool:
    """Returns whether memory should be searched for `text`.

    No: texts of only emoji, punctuation or code; acknowledgements, thanks, greetings and laughter ("ok thanks!", 好的,
    哈哈, obrigado); a bare syllable. Yes: everything else, above all texts with a question mark beside a word, and
    questions and words of memory however short ("why", "again", 谁, 记得).
    """
    # An unclosed fence runs to the end, as platforms show it.
    said = _INLINE_CODE.sub(" ", " ".join(text.split("```")[::2])).strip()
    if len(said) > _SHORT:
        return any(map(_is_spoken, said)) and not _is_code(said)
    said = unicodedata.normalize("NFKC", said).casefold()
    unquoted = said.replace("'", "").replace("’", "")
    words = "".join(char if _is_spoken(char) else " " for char in unquoted).split()
    if not words:
        return False
    if _QUESTION_MARK.search(said) or _SHORTEST_QUESTIONS.search(" ".join(words)):
        return True
    return not (_is_chatter(words) or _is_tiny(words) or _is_code(said))


_INLINE_CODE = re.compile(r"`[^`\n]{1,400}`")
#: Latin, full-width (folded to it), Arabic, Armenian, Ethiopic; the Greek one can't be told from a semicolon.
_QUESTION_MARK = re.compile("[?؟՞፧]")
#: Questions and words of memory that `_is_tiny` would take for a bare syllable.
_SHORTEST_QUESTIONS = re.compile(r"[谁誰何哪啥吗嗎忘记記왜뭐]|か$|\b(?:où|wo|му|کی)\b")
_REPEATED = re.compile(r"(.)\1{2,}", re.DOTALL)
_LAUGHTER = re.compile("a?(?:ha|he|hi|ja|je|ka|rs|ха|хе|хи|ах|هه){2,30}[ahх]?|lo{1,2}l|lmf?ao|rofl|xd")
#: Han, kana, Hangul, Thai: small talk there is a chain of phrases without spaces.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_HIRAGANA = re.compile("[\u3041-\u309f]{1,3}")
_CODE_LINE = re.compile(
    r"import [\w.]+|from [\w.]+ import .*|(?:def|class|func|fn|function) \w+.*[:({]"
    r"|(?:const|let|var) \w+ ?=.*|return\b.*[;)\]\d]|else:|try:|#include.*|//.*|@\w+|>>> .*|\$ .*"
    r"|</?\w+[^>]{0,200}>.*|[\w.\[\]\"']{1,80} ?[-+*/]?= ?\S.*|[\w.]{1,80}\(.*\)|.*(?:[;{}]|\):)"
)

# Words that are small talk by themselves, and words that are small talk only beside one of them.
_ACKNOWLEDGEMENTS = """
got sense ok okay okey oki k kk okie yes yeah yea yep yup ya no nope nah sure fine cool nice great good
perfect awesome amazing wow thanks thank thx tnx ty cheers welcome np hi hello hey yo bye goodbye cya gn gm hm
hmm mm mhm uh huh oh ah aha alright right gotcha understood noted done exactly indeed agreed please sorry
congrats morning night obrigado obrigada valeu beleza sim não tá certo legal olá oi tchau claro
gracias vale sí hola adiós bueno genial perfecto merci oui non daccord salut bonjour bonsoir
danke ja nein super hallo bitte tschüss grazie ciao prego bene dank bedankt dzięki tak nie
teşekkürler tamam evet hayır merhaba спасибо да нет ок окей привет хорошо ладно понял поняла понятно пока
круто ага угу ясно شكرا نعم لا مرحبا حسنا تمام اوكي धन्यवाद शुक्रिया हाँ नहीं ठीक नमस्ते
"""
_BESIDE = """
so very much a lot you u all that thats it its for the i see sounds looks makes bro man dude too again then
now day evening afternoon
muito bom boa noite dia tarde de nada muchas buenas buenos noches días bien beaucoup bonne nuit très
vielen schön guten tag morgen gut alles klar va tutto большое тебе вам очень доброе утро добрый день вечер
спокойной ночи جزيلا لك السلام عليكم है बहुत
"""
_UNSPACED_ACKNOWLEDGEMENTS = """
    好 好的 好吧 好啊 好呀 好滴 好哒 嗯 嗯嗯 哦 噢 喔 行 可以 谢谢 谢谢你 谢谢您 謝謝 谢啦 多谢 感谢 哈 哈哈
    嘿 嘿嘿 呵呵 嘻嘻 知道 明白 了解 收到 没事 没关系 没问题 辛苦 晚安 早安 早 早上好 晚上好 你好 您好 大家好
    嗨 再见 拜拜 是 是的 对 对的 不 不是 不用 不用谢 不客气 太好 太棒 真棒 真好 厉害 牛 赞 不错 真的 懂 嘿 哇
    唉 额 呃 はい うん ええ いいえ いや ありがとう どうも 了解 承知 なるほど そう そうですね おはよう
    こんにちは こんばんは おやすみ おやすみなさい お疲れ様 お疲れさま すごい やった 笑 草 わかった
    わかりました すみません ごめん ごめんなさい よろしく よろしくお願いします オッケー 네 넵 응 예 아니 아니요
    고마워 고맙습니다 감사합니다 감사 안녕 안녕하세요 ㅋ ㅋㅋ ㅎ ㅎㅎ 좋아 알겠어 알겠습니다 그래 ขอบคุณ โอเค
    ได้ ใช่ สวัสดี
"""
_UNSPACED_BESIDE = "啊 呀 哦 啦 了 吧 呢 的 哟 嘛 哈 们 你 您 です ね よ ございます ました 요 ครับ ค่ะ คะ นะ มาก"


def _longest_first(phrases: str) -> re.Pattern[str]:
    listed = sorted(set(unicodedata.normalize("NFKC", phrases).split()), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, listed)))


_ACKNOWLEDGING_WORDS = frozenset(unicodedata.normalize("NFKC", _ACKNOWLEDGEMENTS).split())
_WORDS_BESIDE = frozenset(unicodedata.normalize("NFKC", _BESIDE).split())
_UNSPACED_CHATTER = _longest_first(_UNSPACED_ACKNOWLEDGEMENTS)
_UNSPACED_LEFT = _longest_first(_UNSPACED_BESIDE)


def _is_spoken(char: str) -> bool:
    """Returns whether `char` is a letter, a digit, or a mark that is half of a letter; emoji selectors are not."""
    category = unicodedata.category(char)
    return category[0] in "LN" or (category in {"Mn", "Mc"} and not "\ufe00" <= char <= "\ufe0f")


def _is_chatter(words: list[str]) -> bool:
    acknowledged = False
    for word in words:
        said = _REPEATED.sub(r"\1", word)
        if _UNSPACED.search(said):
            left = _UNSPACED_CHATTER.sub("", said)
            if _UNSPACED_LEFT.sub("", left):
                return False
            acknowledged |= left != said
        elif said in _ACKNOWLEDGING_WORDS or word in _ACKNOWLEDGING_WORDS or _LAUGHTER.fullmatch(word):
            acknowledged = True
        elif said not in _WORDS_BESIDE:
            return False
    return acknowledged


def _is_tiny(words: list[str]) -> bool:
    """Returns True for one or two letters, one character of an unspaced script, or up to three hiragana."""
    whole = "".join(words)
    if _UNSPACED.search(whole):
        return len(whole) == 1 or _HIRAGANA.fullmatch(whole) is not None
    return len(whole) <= 2


def _is_code(said: str) -> bool:
    """Returns whether every line looks like code; one line of prose is enough to search."""
    lines = [line.strip()[:300] for line in said.splitlines() if any(map(_is_spoken, line))]
    return bool(lines) and all(_CODE_LINE.fullmatch(line) for line in lines)
