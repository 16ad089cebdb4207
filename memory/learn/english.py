"""English clauses: how a sentence falls apart, what refuses it, and the rules that read it.

Invariants: pure; a question, a doubt, a condition or somebody else's words silence their clause and what hangs on it;
a name is only believed where it is spelled like one or follows a greeting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date

from memory.dates import anchor, mentions
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
    one_of,
    still_nameless,
    strip_signs,
    tell,
    with_name,
)


def _rule(pattern: str, read: Read) -> Rule:
    return Rule(Phrase(pattern, re.IGNORECASE), read)


def pairs(sentence: str, context: Context) -> Iterator[Pair]:
    """What the clauses of a sentence say that are neither asked, doubted, reported nor supposed."""
    asked = "?" in sentence[-6:] or "？" in sentence[-6:]
    text = _SHORT_FORMS.sub(_long_form, sentence.replace("’", "'").strip(" .!?！？。；;…~\n"))
    if text.isupper() and len(text) > 12:
        text = text.lower().replace("i'm", "I'm")  # shouting hides where the names are
    context.greeted = context.greeted or _GREETING.match(text) is not None
    answer, context.answer = context.answer, _answered_as(text) if asked else ""
    if answer and (short := _ANSWER.fullmatch(text)) and not asked and not _NO_ANSWER.search(text):
        yield from _clause(f"{answer} {short['v']}", context)
        return
    reported = _REPORTED.search(text)
    if reported:
        if not asked:  # "my boss Karen thinks I'm lazy"
            yield from _mentions(text[: reported.end()])
        context.carried = False
        return
    text = _straightened(text)
    segments = [segment for segment in _SEGMENT.split(text) if segment.strip()]
    asked_from = _asked_from(segments) if asked else len(segments)
    poisoned = False
    for number, segment in enumerate(segments):
        if _TURN.match(segment):
            poisoned = False
        refused = poisoned or number >= asked_from
        for clause in _RUN_ON.split(segment):
            bare = _bare(clause)
            refused = refused or bool(_QUESTION.match(bare)) or bool(HAN.match(bare))
            said, condition = clause, _CONDITION.search(clause)
            if condition:  # "I live in Porto if that helps"
                said, poisoned = clause[: condition.start()], True
                bare = _bare(said)
            spread = _POISON.search(said) is not None
            refused = refused or spread or _DOUBT.search(said) is not None
            poisoned = poisoned or spread
            if number >= asked_from and (polite := _POLITE.match(bare)):
                yield from _requests(bare[polite.end() :], context)
            elif not refused and bare:
                yield from _clause(bare, context)
            if refused:
                context.carried = False


def _asked_from(segments: list[str]) -> int:
    """ "I'm vegan, what can I eat?" states and asks; "I'm vegan?" and "you know I'm vegan, right?" only ask."""
    return len(segments) - 1 if len(segments) > 1 and _QUESTION.match(_bare(segments[-1])) else 0


def _straightened(text: str) -> str:
    """A sentence without asides, every statement beginning with who does it."""
    text = re.sub(r"\b(I|[Ww]e)'ve (?=(?:an?|one|two|three|four|five|\d) )", r"\1 have ", text)
    text = re.sub(r"\s?\(\d{1,2}\)", "", text)  # "Emma (8) and Noah (5)"
    text = _AS_A.sub(r"I'm \1, ", _OWN_REPORT.sub("", text))
    text = _AND_I.sub(_as_we, text)
    return _DATE_FIRST.sub(lambda match: f"{match[2]} {match[1][0].lower()}{match[1][1:]}", text)


def _as_we(match: re.Match[str]) -> str:
    we = "we're" if match["b"].lower() == "are" else f"we {match['b']}"
    return f"{match['n']}, {we}" if match["n"] else we


def _long_form(match: re.Match[str]) -> str:
    return _LONG_FORMS[match.group().lower()]


def _bare(clause: str) -> str:
    """A clause without its openings: "oh and by the way, I'm …" → "I'm …"."""
    clause = clause.strip(" ,-–—:()")
    for _ in range(8):
        match = _OPENING.match(clause)
        if not match:
            break
        clause = clause[match.end() :].lstrip(" ,-–—:()")
    return clause


def _clause(clause: str, context: Context) -> Iterator[Pair]:
    """What one clause and its continuations say."""
    clause = clause[:LONGEST_CLAUSE]
    whole, leftover = clause, False
    for _ in range(8):
        if not clause or _DOUBT.search(clause):
            break
        named = _NAMED.match(clause)
        if named and (context.nameless or context.stranger):
            yield from _named(named, context)
            return
        if not leftover:
            yield from still_nameless(context)
            context.stranger = False
        requests = list(_requests(clause, context))
        if requests:
            yield from requests
            break
        forms = [clause]
        if (context.carried and not _SUBJECT.match(clause)) or (context.carried is None and _ALONE.match(clause)):
            forms += [f"I {clause}", f"I'm {clause}", f"I have {clause}"]
        for form in forms:
            applied = apply(_RULES, form, context.today)
            if not applied and form is clause:  # a name is only believed where "I'm" was really said
                applied = apply(_GREETED if context.greeted else _INTRODUCED, form, context.today)
            if applied:
                break
        else:
            # "allergic to nuts" may open a message; "live in the moment" must not become a home by itself.
            if not leftover:
                context.carried = bool(_SELF.match(clause))
                _look_around(clause, context)
            break
        pairs, end = applied
        context.carried = bool(_SELF.match(form)) or pairs[0].key not in RELATIONS | {"pet"}
        yield from tell(pairs, context)
        clause, leftover = _bare(form[end:]), True
    yield from _mentions(whole)


def _named(named: re.Match[str], context: Context) -> Iterator[Pair]:
    """The name of whoever the last clause was about; nothing when that can't be told or "his" and "her" don't fit."""
    nameless, context.nameless = context.nameless, None
    if nameless and _SEX.get(nameless.key) in {None, _SEX_OF_PRONOUN.get(named["p"].lower(), _SEX.get(nameless.key))}:
        for name in _names(named["v"]):
            if not context.stranger or name[0].isupper():  # "my sister is loud, her name is mud"
                yield with_name(nameless, name)


def _look_around(clause: str, context: Context) -> None:
    """Whether a clause without a fact speaks of somebody, whose name may come next: "I visited my sister, her …"."""
    others = list(_SOMEBODY.finditer(clause))
    context.stranger = bool(others)
    if len(others) == 1 and (relation := others[0]["r"]):
        context.nameless = Pair(_RELATIONS[relation.lower()], "", unnamed=True)


def _answered_as(question: str) -> str:
    """The beginning of the statement that answers a question about the speaker; empty for any other question."""
    for asked, answer in _ASKED_OF_SELF:
        match = asked.fullmatch(question)
        if match:
            return match.expand(answer)
    return ""


def _mentions(clause: str) -> Iterator[Pair]:
    """Relatives and pets named in passing: "visiting my sister Ana"."""
    for match in _MENTION.finditer(clause):
        if not NOT_NAMES.fullmatch(match["v"]):
            key = _RELATIONS.get(match["r"].lower())
            yield Pair(key, match["v"]) if key else Pair("pet", f"{match['r'].lower()} {match['v']}")


def _requests(clause: str, context: Context) -> Iterator[Pair]:
    """Standing requests: what to call them, what not to speak of, how to answer, what to remember."""
    clause = _PLEASE.sub("", clause).strip(" ,")
    standing = _STANDING.search(clause)
    if standing and ":" in clause[: standing.start()] and _ORDER.match(clause):
        standing = None  # "Add a rule: …, off by default" is a line of a list
    if standing:
        clause = f"{clause[: standing.start()]} {clause[standing.end() :]}".strip(" ,:")
        clause = _PLEASE.sub("", clause).strip(" ,")
        if re.match(r"(?:I|I'm|my|we)\b", clause):
            yield from _clause(clause, context)
            return
    if _ONE_OFF.search(clause):
        return
    remember = _REMEMBER.match(clause)
    if remember:
        told = _bare(clause[remember.end() :])
        facts = list(_clause(told, context)) if told else []
        if any(pair.key != "plan" for pair in facts):
            yield from facts
        elif told:
            yield Pair("note", anchor(told, context.today))
        return
    applied = apply(_REQUESTS, clause, context.today)
    if applied:
        yield from applied[0]
        return
    match = _ORDER.match(clause)
    if match and not _NOT_ORDERS.search(clause):
        polite = _tail_cut(_REASON.sub("", clause), _THANKS)
        if standing or match["always"] or (_STYLE.match(clause) and not context.tasked and ":" not in clause):
            yield Pair("instruction", polite)


def _tail_cut(text: str, pattern: Phrase) -> str:
    return pattern.sub("", text).strip(" ,.!~-:;")


_LONG_FORMS = {
    "i": "I", "im": "I'm", "i'm": "I'm", "i m": "I'm", "i am": "I'm", "ive": "I've", "i've": "I've", "i'd": "I'd",
    "i'll": "I'll", "we are": "we're", "we will": "we'll", "i will": "I'll",
    "i've got": "I have", "ive got": "I have", "i have got": "I have", "we've got": "we have",
    "i'm called": "my name is", "im called": "my name is", "i am called": "my name is", "name's": "name is",
    "dont": "don't", "do not": "don't", "doesnt": "doesn't", "w/": "with", "cant": "can't", "cannot": "can't",
    "isnt": "isn't", "wanna": "want to", "gonna": "going to", "u": "you", "ur": "your", "pls": "please",
    "plz": "please", "tmrw": "tomorrow", "fav": "favourite", "fave": "favourite", "favorite": "favourite",
    "favorit": "favourite", "favourit": "favourite", "favrite": "favourite", "bday": "birthday", "b-day": "birthday",
    "birthday's": "birthday is", "alergic": "allergic", "vegitarian": "vegetarian", "vegeterian": "vegetarian",
}  # fmt: skip
_SHORT_FORMS = Phrase(rf"(?<![\w'])(?:{'|'.join(sorted(_LONG_FORMS, key=len, reverse=True))})(?![\w'])", re.IGNORECASE)
#: Somebody else's words without quotes: "he said I live in Rome", "I live in Rome, says Bob".
_REPORTED = Phrase(
    r"\b(?:he|she|they|you|who|everyone|everybody|people|someone|somebody|nobody|mom|mum|dad|doctor|boss|friends?"
    r"|sister|brother|wife|husband|neighbou?r|[A-Z][a-z]+|guy|girl|man|woman|it|ad|sign|bot|book|song"
    r"|horoscope) (?:just |always |once |also )?(?:said|says|say(?! )|asked|asks|wrote|writes|replied|told|tells"
    r"|thinks?|thought|claims?|claimed|believes?|sings?|sang|goes|texted|swears|keeps saying)\b|, (?:said|says) \w+",
)
_OWN_REPORT = Phrase(
    r"\b(?:(?:just )?(?:like|as) I(?:'ve)? (?:already )?(?:said|mentioned|told you)(?: before| earlier)?|(?:I've "
    r"|I )?(?:already |just )?told you(?: before| already| that)*|I(?:'ve)? (?:already )?mentioned(?: that)?"
    r"|I (?:just )?(?:thought|think|figured) (?:you should know|I'd let you know|I should mention"
    r"|I should tell you)(?: that)?|(?:just )?so you know|just so you're aware|you should know(?: that)?"
    r"|for what it's worth|the thing is|fact is|I (?:should|have to|must|want to|wanted to) (?:say|mention"
    r"|tell you|admit|confess|add)(?: that)?|let me (?:introduce myself|tell you(?: about myself| that)?)"
    r"|I'm happy to say|I can tell you(?: that)?|(?:it|this) (?:might|may) be relevant|(?:it|this) (?:might"
    r"|may) help|not sure if (?:it|this|that) (?:matters|helps|is relevant))(?:,| but)?",
    re.IGNORECASE,
)
_AS_A = Phrase(
    r"(?:^|(?<=, )|(?<=\band )|(?<=\bbut )|(?<=\bso ))as (an? (?!kid|child|student|teen|boy|girl|baby)[\w -]{2,40}?)"
    r"(?:, ?(?=(?:I|I'm|I've|my|live|living|work|working|have|love|hate|allergic|based|from|born)\b)"
    r"| (?=(?:I|I'm|I've) ))",
    re.IGNORECASE,
)
_SEGMENT = Phrase(
    r"\s*[()\[\]|]\s*|\s+[-–—]+\s+|\s*—\s*|\s+(?=but\b|because\b|cuz\b|cause I|since I|so (?:I|my|don't|please"
    r"|no)\b|although\b|though I)|,\s*(?=(?:and |but |so |or |yet |also |plus |because |since |as |then |while "
    r"|though |oh |btw |please |pls )*(?:I|I'm|I've|I'd|my|we|we're|our|you|your|he|she|it|it's|his|her|its|they"
    r"|this|that's|there|please|can|could|would|what|what's|where|how|who|why|when|is|are|am|do|does|did|any|got"
    r"|don't|never|always|call|just call|keep|no|not|right|remember|currently|originally|born|grew up|(?:living"
    r"|live) in|work(?:ing)? (?:as|at|for|in)|based in|from|allergic to|married|both|named|called|so|and|thanks"
    r"|thank|suggest|recommend|help|speak (?:to|in)|answer|reply)\b)|\s+and\s+(?=(?:also |then |now |currently "
    r"|please )*(?:I|I'm|I've|I'd|my|we|he|she|it|it's|his|her|its|they|you|your|that|this|don't|please|never"
    r"|always|call|live in|living in|work (?:as|at|for|in)|working (?:as|at|for|in)|am|have|has|own|drive|speak"
    r"|love|like|hate|enjoy|prefer|can't|want|study|studying|allergic to|from|based in|born|grew up|moved|keep|do"
    r"|what|how|was|got|named|called|would|could|is)\b)",
    re.IGNORECASE,
)  # fmt: skip
#: Where a sentence without commas starts anew; only forms too strong to be part of another clause.
_RUN_ON = Phrase(
    r"(?<=[\w.!)])(?<!you)(?<!\bto)(?<!just)(?<!please)(?<!\bis)(?<!\bare) +(?=(?:I'm (?:allergic|from|a |an |\d"
    r"|vegan|vegetarian|living|based|working)|I (?:live|work|speak|was born|grew up|have an?|prefer) |my (?:name"
    r"|birthday|favourite|timezone|job) |(?:please )?call me |please (?:don't|never|always|answer|keep) ))"
)
_TURN = Phrase(r"\s*(?:but|however|anyway|in reality|in fact|actually|so)\b", re.IGNORECASE)
_OPENING = Phrase(
    r"(?:and|but|so|oh|ah|well|ok|okay|btw|by the way|also|plus|actually|fyi|for the record|for context"
    r"|for your information|for info|yes|yeah|yep|yup|nope|no worries|sure|great|cool|nice"
    r"|thanks?(?: you)?(?: so much| a lot)?|thx|ty|lol|haha+|hehe+|hmm+|um+|uh+|ugh|wow|omg|tbh|to be honest"
    r"|honestly|frankly|personally|basically|literally|then|now|because|cuz|cause|since|as(?= I)|though|although"
    r"|however|anyway|anyways|yo|see|look|listen|you know(?: that)?|know that|that|i mean|like(?= I)|besides"
    r"|unfortunately|sadly|luckily|obviously|fun fact|random fact|quick fact|a bit about me|about me"
    r"|bit about myself|some background|background|context|ps|p\.s|reminder|heads up|just|in fact"
    r"|in case you(?: were)? wonder(?:ing|ed)?|if you(?:'re| are) wondering|in general|generally|as for me"
    r"|same here|nice to meet you|pleased to meet you|good to know|sorry|alright|right|first of all|one more thing"
    r"|another thing|one thing|quick note|correction|update|news|big news|good news|guess what|these days|nowadays"
    r"|currently|at the moment|right now|today|recently|lately|tonight|overall|mostly|usually|in addition"
    r"|apart from that|on top of that|more about me|speaking of which|welp|dude|man|bro|(?:hey|hi|hello|hiya|heya"
    r"|howdy|good (?:morning|evening|afternoon)|greetings)(?: there| all| everyone| everybody| bot| again| remora"
    r"| friend)?|remora|for next time|next time|since last \w+|for (?:\w+ ){1,2}years)(?=[\s,:!.…\-–—]"
    r"|$)[\s,:!.…\-–—]*",
    re.IGNORECASE,
)
#: "Next month I'm visiting …" is read as "I'm visiting … next month".
_DATE_FIRST = Phrase(
    r"(?:^|(?<=[,!] )|(?<=\bso )|(?<=\band )|(?<=\bbut )|(?<=\balso ))(tomorrow|the day after tomorrow|next \w{3,9}"
    r"|this (?:weekend|summer|autumn|fall|winter|spring|coming \w{3,9}|\w{3,6}day)"
    r"|on \w{3,6}day|in (?:an? |about )?\w{1,6}"
    r" (?:days?|weeks?|months?|years?)|in (?:early |mid |late )?(?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december)),? (?=(?:I|I'm|I'll|we|we're|we'll)(?![\w'])[^,\n]{4})"
    r"([^,\n(]{1,200}?)(?=\s+(?:and|but|so|because)\b|[,\n(]|$)",
    re.IGNORECASE,
)
_GREETING = Phrase(
    r"(?:hi|hello|hey|hiya|heya|howdy|yo|good (?:morning|evening|afternoon)|greetings|nice to meet you)\b",
    re.IGNORECASE,
)
_QUESTION = Phrase(
    r"(?:what|where|who|whom|whose|when(?! you (?:answer|reply|respond|talk|write|explain))|why|how|which|what's"
    r"|who's|where's|how's|when's|is|are|am|was|were|do|does|did|can|could|would|should|shall|will|has|may|might"
    r"|have (?:you|I|we|they)|isn't|aren't|don't (?:you|I|we)|didn't|doesn't|won't|wouldn't|couldn't|can't (?:you"
    r"|I|we)|any (?:idea|idea|tips|chance|recommendations?|suggestions?)|anything|got any|wanna|want to"
    r"|remember (?:when|what|where|how|who|my|me|I)|know (?:any|a)|ideas|suggestions|recommendations|recommend"
    r"|suggest|or|ever)\b",
    re.IGNORECASE,
)
_POLITE = Phrase(r"(?:can|could|would|will) you (?:please |kindly |just |maybe )*", re.IGNORECASE)
#: Words after which a sentence is no longer about what is so.
_POISON = Phrase(
    r"(?:^|(?<=[\s,]))(?:if(?! you (?:must|need to|have to|want to) know)|unless|whether|as though|what if"
    r"|assum(?:e|ing)|let's say|lets say|say that I|wish|dreamt|dreamed|dream I|dreaming|thinks?(?: that)? I"
    r"|thought|believes?(?: that)? I|claims? (?:I|that|to)|doubt|until|when I|when I'm|once I|as soon as"
    r"|whenever I|every time I|used to|said|says|saying|tells?|heard|no longer|anymore|any more|not true"
    r"|isn't true|the day I|before I|after I|in case|even though I was|would be|someone who|people who|anyone who"
    r"|the one who|somebody who|a person who|girl who|guy who|accus\w+|mistake\w* me|called me|joke|lie|lied|lying"
    r"|in my (?:last|previous|next) life|in another life|in a parallel|like$)\b",
    re.IGNORECASE,
)
_CONDITION = Phrase(
    r"(?<=\w) (?:if|unless|when I|until|once I|before I|after I|whenever I|as soon as|in case|whether)\b",
    re.IGNORECASE,
)
#: Words that make one clause too uncertain.
_DOUBT = Phrase(
    r"\b(?:maybe|perhaps|probably|possibly|might|may be|could be|not sure|I guess|I suppose|I think|supposedly"
    r"|allegedly|apparently|kind of like|almost|for a (?:day|week|month|few)|not really|hopefully|sort of"
    r"|basically a|practically|feel like a|honorary|metaphor\w*)\b",
    re.IGNORECASE,
)
_SUBJECT = Phrase(
    r"(?:I|I'm|I've|I'd|my|me|we|we're|our|you|your|you're|he|she|he's|she's|it|it's|they|they're|this|that|these"
    r"|those|there|the|his|her|their|its|who|what|don't|please|call|never|always)\b",
    re.IGNORECASE,
)
#: Clauses that speak of the speaker even when they open the message without "I".
_ALONE = Phrase(
    r"(?:(?:severely |also |super )?allergic to|based in|originally from|born and raised|diagnosed with"
    r"|been (?:vegan|vegetarian|working|an? )|got an? |studying |adopted|bought|moved to|turned \d|living in"
    r"|work(?:ing)? (?:as|at) |(?:not (?:a |really a |much of a )?)?(?:big |huge |massive )?fan of|not into"
    r"|\d\d,? )",
    re.IGNORECASE,
)
_SEX_OF_PRONOUN = {"his": "m", "he": "m", "her": "f", "she": "f"}
_SEX = {
    **dict.fromkeys(("wife", "girlfriend", "mother", "sister", "daughter", "grandmother", "aunt", "niece"), "f"),
    **dict.fromkeys(("husband", "boyfriend", "father", "brother", "son", "grandfather", "uncle", "nephew"), "m"),
}
#: Questions people ask of themselves before they answer them, and how the answer becomes a statement.
_ASKED_OF_SELF = (
    (Phrase(r"(?:so )?where (?:do I live|am I(?: living| based| located)?)(?: now)?", re.IGNORECASE), "I live in"),
    (Phrase(r"(?:so )?(?:where am I from|where do I come from|(?:my )?home ?town)", re.IGNORECASE), "I'm from"),
    (Phrase(r"(?:so )?where do I work", re.IGNORECASE), "I work at"),
    (
        Phrase(
            r"(?:so )?(?:what do I do(?: for (?:a living|work))?|(?:my )?(?:job|occupation|profession))", re.IGNORECASE
        ),
        "my job is",
    ),
    (Phrase(r"(?:so )?what(?:'s| is) my name|(?:my |your )?(?<!your )name", re.IGNORECASE), "my name is"),
    (Phrase(r"(?:so )?(?:what(?:'s| is) )?(?:my )?(favou?rite [\w ]{3,24})", re.IGNORECASE), r"my \1 is"),
    (Phrase(r"(?:any |my |food )?allerg(?:y|ies)|what am I allergic to", re.IGNORECASE), "I'm allergic to"),
    (Phrase(r"(?:so )?(?:when(?:'s| is) )?my birthday", re.IGNORECASE), "my birthday is"),
)
_ANSWER = Phrase(
    r"(?:(?:in|from|at|to|near|it's|it is|that's|that would be|definitely|probably|mostly|an?|as an?) ){0,3}"
    r"(?P<v>[\w'+.-]{1,24}(?:(?:,? and |, | )[\w'+.-]{1,24}){0,5})",
    re.IGNORECASE,
)
_NO_ANSWER = Phrase(
    r"\b(?:guess|idea|none|no|nope|nah|nothing|nobody|why|what|who|where|how|when|don't|you|your|dunno|not|never|far|secret"
    r"|tell|telling|idk|easy|hard|well|it|this|that|depends|sure|many|lots|too|everywhere|nowhere|somewhere|anywhere|here|there"
    r"|hm+|unknown|maybe|probably|yes|yeah|he|she|they|is|are|was|has|I|I'm|my|help|call|ask|see|try|go|any|anything|everything|all)\b",
    re.IGNORECASE,
)
_SELF = Phrase(r"(?:I|I'm|I've|we|we're|my name|my birthday)(?![\w'])")
#: A whole list is cut before these words; a single value already before the shorter list that follows.
_STOP = (
    r"but|so|because|bc|cuz|cause|since|though|although|while|when|whenever|if|which|who|where|whereas|unless"
    r"|except|even|as (?:well|I|my)|ever since|and (?:I|I'm|I've|my|we|it|he|she|they|you|that|then|so|would|could"
    r"|can|can't|don't|am|have|live|living|work|working|speak|love|like|hate|prefer|enjoy|also|want|come|study"
    r"|grew|moved|is|was|our|never|always|please|just|now|currently|looking)|I|I'm|I've"
)
#: "I love tea my sister hates it" ends before "my"; "running my own studio" and "trends for my store" go on.
_BEFORE_MY = r"(?<!ing)(?<! for)(?<! of)(?<! with)(?<! in)(?<! to)(?<! on)(?<! at)"
_END_LIST = (
    rf"(?=\s*$|\s*[()\[\]–—:]|,? (?:{_STOP}|at all)(?![\w'])|{_BEFORE_MY} my(?![\w'])"
    r"|, (?:and )?(?:I|I'm|my|please|especially|particularly|mainly|most of all)(?![\w']))"
)
_END_ONE = (
    rf"(?=\s*$|\s*[,()\[\]–—:]|\s+-|\s*/| (?:{_STOP}|my|and|with|for|at|on|near|from|living|based|working|as|now"
    rf"|right now|currently|rn|these days|at the"
    r" moment|atm|too|btw|by the way|lol|haha|already|again|right|here|by|until|till|please|thanks|tbh|actually"
    r"|originally|born|studying|looking|after|in|this|last|next|together|alone|(?:\d+|an?|one|two|three|four|five"
    r"|six|ten|a few|several|a couple of) (?:year|month|week|day)s?)(?![\w']))"
)
#: A goal runs on over "my" and "it": "finish my thesis".
_END_GOAL = (
    r"(?=\s*$|\s*[()\[\]–—:]|,? (?:but|so|because|bc|cuz|cause|since|although|though|while|which|if|and (?:I|I'm|I've"
    r"|we|he|she|they|you|that|then|so|live|work|have|my))(?![\w'])"
    r"|, (?:and )?(?:I|I'm|my|please|hopefully|wish)(?![\w']))"
)
_LIST = r"(?P<v>[^\n]{1,300}?)" + _END_LIST
_ONE = r"(?P<v>[^\n,]{1,80}?)" + _END_ONE
_COUNTRIES = one_of(
    "portugal spain france germany italy england scotland wales ireland uk united_kingdom usa us united_states "
    "canada mexico brazil argentina chile peru colombia netherlands belgium luxembourg switzerland austria poland "
    "czechia czech_republic slovakia hungary romania bulgaria greece turkey croatia serbia slovenia ukraine "
    "russia norway sweden denmark finland iceland estonia latvia lithuania china japan south_korea korea taiwan "
    "india pakistan bangladesh thailand vietnam malaysia singapore indonesia philippines australia new_zealand "
    "egypt morocco tunisia nigeria kenya ghana south_africa israel lebanon iran iraq uae california texas florida "
    "oregon washington ontario quebec bavaria catalonia galicia andalusia ohio michigan virginia colorado arizona "
    "georgia massachusetts"
)
_NATIONS = one_of(
    "portuguese spanish french german italian english british scottish welsh irish american canadian mexican "
    "brazilian argentinian argentine chilean peruvian colombian venezuelan cuban dutch belgian swiss austrian "
    "polish czech slovak hungarian romanian bulgarian greek turkish croatian serbian bosnian slovenian slovene "
    "ukrainian russian belarusian norwegian swedish danish finnish icelandic estonian latvian lithuanian chinese "
    "japanese korean south_korean taiwanese indian pakistani bangladeshi nepali thai vietnamese malaysian "
    "singaporean indonesian filipino filipina australian new_zealander kiwi egyptian moroccan tunisian algerian "
    "nigerian kenyan ghanaian ethiopian south_african israeli lebanese syrian iranian persian iraqi saudi afghan "
    "georgian armenian catalan basque puerto_rican brit scot spaniard dane swede finn pole turk cypriot maltese "
    "albanian"
)
_LANGUAGES = one_of(
    "english spanish french german italian portuguese brazilian_portuguese dutch polish czech slovak hungarian "
    "romanian bulgarian greek turkish croatian serbian slovenian ukrainian russian norwegian swedish danish "
    "finnish icelandic estonian latvian lithuanian mandarin_chinese mandarin cantonese chinese japanese korean "
    "hindi urdu bengali punjabi tamil telugu nepali thai vietnamese malay indonesian tagalog filipino arabic "
    "hebrew persian farsi swahili yoruba igbo amharic afrikaans catalan basque galician irish welsh esperanto "
    "latin hokkien hakka shanghainese sign_language asl georgian armenian albanian"
)
_JOBS = one_of(
    "nurse doctor physician surgeon dentist vet veterinarian paramedic pharmacist midwife physiotherapist physio "
    "therapist psychologist psychiatrist caregiver carer teacher professor lecturer tutor librarian principal "
    "engineer developer programmer coder dev devops sysadmin admin administrator architect designer analyst "
    "scientist researcher physicist chemist biologist mathematician statistician economist historian geologist "
    "astronomer postdoc accountant bookkeeper auditor banker trader broker actuary consultant lawyer attorney "
    "solicitor barrister paralegal judge notary manager director executive ceo cto cfo founder entrepreneur "
    "freelancer owner secretary assistant receptionist clerk cashier salesman saleswoman salesperson recruiter "
    "marketer journalist reporter writer author editor copywriter translator interpreter poet blogger "
    "photographer filmmaker videographer animator illustrator artist painter sculptor musician singer composer "
    "pianist guitarist drummer violinist dj actor actress comedian dancer producer chef cook baker barista "
    "bartender waiter waitress butcher farmer gardener florist fisherman carpenter plumber electrician mechanic "
    "welder builder bricklayer roofer technician operator machinist tailor hairdresser barber beautician driver "
    "trucker pilot flight_attendant sailor captain courier postman mailman firefighter policeman policewoman "
    "police_officer officer soldier detective guard security_guard student undergrad undergraduate apprentice "
    "intern trainee cleaner janitor nanny babysitter housewife homemaker stay-at-home_mom stay-at-home_dad "
    "stay-at-home_mum social_worker priest pastor coach trainer instructor personal_trainer optician optometrist "
    "jeweller tester qa scrum_master product_manager project_manager realtor estate_agent agent surveyor planner "
    "logistician retiree pensioner civil_servant politician diplomat beekeeper winemaker brewer sommelier "
    "shopkeeper streamer youtuber contractor handyman radiologist cardiologist anesthesiologist anaesthetist "
    "paediatrician pediatrician dermatologist neurologist gp radiographer nutritionist dietitian "
    "teaching_assistant data_engineer technologist specialist strategist supervisor conductor tattooist locksmith "
    "curator archaeologist"
)
_NOT_JOB = Phrase(
    r"\b(?:terrible|bad|awful|good|great|horrible|decent|amazing|natural|real|true|fake|wannabe|lousy|nervous|slow"
    r"|fast|careful|safe|fan|bit|control|happy|proud|pet|dog|cat|car|secret|kind of|type|huge|better|worse"
    r"|excellent|mean|passable|heavy|hopeless|not|your|own|my|free|early)\b",
    re.IGNORECASE,
)
_FIELDS = one_of(
    "marketing finance it sales hr human_resources tech healthcare health_care education logistics insurance "
    "advertising construction hospitality retail real_estate accounting consulting banking engineering publishing "
    "manufacturing cybersecurity customer_service customer_support journalism fashion media law agriculture "
    "research biotech pharma public_relations social_work theatre television film radio aviation telecoms "
    "telecommunications software software_development web_development data_science game_development design "
    "graphic_design catering tourism procurement quality_assurance"
)
_CONDITIONS = (
    r"(?:(?:type (?:1|2|one|two|i|ii) )?diabetes|asthma|adhd|add|autism|asperger'?s|epilepsy|dyslexia|dyscalculia"
    r"|dyspraxia|depression|anxiety|an anxiety disorder|social anxiety|ocd|ptsd|bipolar(?: disorder)?|migraines"
    r"|chronic \w+(?: \w+)?|high blood pressure|hypertension|low blood pressure|arthritis|rheumatoid arthritis"
    r"|celiac(?: disease)?|coeliac(?: disease)?|crohn'?s(?: disease)?|ibs|gerd|acid reflux|insomnia|narcolepsy"
    r"|sleep apn(?:o)?ea|tinnitus|eczema|psoriasis|rosacea|hay ?fever|lupus|fibromyalgia|endometriosis|pcos|cancer"
    r"|anemia|anaemia|hypothyroidism|hyperthyroidism|parkinson'?s|multiple sclerosis|ms|scoliosis|osteoporosis"
    r"|gout|glaucoma|vertigo|a heart condition|a pacemaker|lactose intolerance|gluten intolerance|a bad (?:back"
    r"|knee)|bad knees|hiv|hepatitis [abc]|kidney disease|sciatica|tourette'?s|hearing loss|color ?blindness"
    r"|colour ?blindness)"
)
_AILING = {
    "diabetic": "diabetes", "asthmatic": "asthma", "epileptic": "epilepsy", "dyslexic": "dyslexia",
    "autistic": "autism", "bipolar": "bipolar disorder", "celiac": "celiac disease", "coeliac": "coeliac disease",
    "anemic": "anemia", "anaemic": "anaemia", "arthritic": "arthritis",
}  # fmt: skip
_DIETS = (
    r"(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|gluten[- ]free|dairy[- ]free|keto|paleo|halal|kosher"
    r"|lacto[- ]vegetarian|low[- ]carb|sugar[- ]free|plant[- ]based|fruitarian|carnivore|mediterranean"
    r"|low[- ]fodmap)"
)
_ANIMALS = one_of(
    "dog puppy pup doggo cat kitten kitty rabbit bunny hamster guinea_pig parrot budgie parakeet cockatiel bird "
    "fish goldfish turtle tortoise snake lizard gecko horse pony chicken hen rat mouse ferret hedgehog axolotl "
    "canary duck goat pig chinchilla gerbil iguana golden_retriever retriever labrador lab corgi poodle beagle "
    "husky dachshund chihuahua bulldog pug shepherd terrier spaniel collie greyhound tabby siamese maine_coon "
    "ragdoll donkey alpaca cow sheep spider tarantula frog"
)
_THINGS = one_of(
    "car bike bicycle motorbike motorcycle scooter e-bike house flat apartment condo cabin cottage boat sailboat "
    "van campervan camper truck pickup laptop computer pc desktop macbook mac imac ipad iphone phone smartphone "
    "android tablet kindle guitar piano keyboard violin cello drum_kit drums ukulele flute saxophone trumpet "
    "camera drone telescope printer 3d_printer server nas raspberry_pi ps5 ps4 playstation xbox switch "
    "nintendo_switch steam_deck tv television sewing_machine garden greenhouse allotment tesla bmw volvo toyota "
    "honda ford vw volkswagen audi fiat kayak canoe surfboard snowboard skateboard record_player turntable synth "
    "synthesizer monitor espresso_machine coffee_machine air_fryer bakery shop cafe restaurant company farm "
    "vineyard bookshop store watch"
)
_RELATIONS = by_word(
    {
        "wife": "wife", "husband": "husband hubby", "partner": "partner spouse",
        "fiance": "fiance fiancé fiancee fiancée", "girlfriend": "girlfriend gf", "boyfriend": "boyfriend bf",
        "mother": "mother mom mum mama", "father": "father dad papa", "sister": "sister sis sisters",
        "brother": "brother bro brothers", "sibling": "sibling siblings", "son": "son sons",
        "daughter": "daughter daughters",
        "child": "kid kids child children", "grandmother": "grandmother grandma granny nan",
        "grandfather": "grandfather grandpa grandad granddad", "grandson": "grandson",
        "granddaughter": "granddaughter", "aunt": "aunt auntie", "uncle": "uncle", "cousin": "cousin",
        "nephew": "nephew", "niece": "niece", "mother-in-law": "mother-in-law", "father-in-law": "father-in-law",
        "sister-in-law": "sister-in-law", "brother-in-law": "brother-in-law", "stepson": "stepson",
        "stepdaughter": "stepdaughter", "stepfather": "stepfather", "stepmother": "stepmother",
        "friend": "friend friends best_friend bestie bff", "roommate": "roommate flatmate housemate",
        "neighbour": "neighbour neighbor", "boss": "boss", "manager": "manager team_lead", "supervisor": "supervisor",
        "colleague": "colleague coworker co-worker", "teacher": "teacher", "doctor": "doctor",
        "therapist": "therapist", "dentist": "dentist", "mentor": "mentor", "twin": "twin",
    }
)  # fmt: skip
_RELATION = longest_first(_RELATIONS)
_RELATION_MOD = (
    r"(?:(?:older|elder|big|little|small|younger|youngest|oldest|eldest|baby|twin|half|step|late|best|new|only"
    r"|middle|dear|lovely|beloved|line|current|work|closest|\d{1,2}[- ]year[- ]old)[- ])?"
)
_NAME = r"(?-i:[A-ZÀ-Þ])[\w'\-]{1,24}"
_NAMES = r"(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}(?: (?:(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}|de|da|van|von|del|la|bin|al))*"
NOT_NAMES = Phrase(
    r"(?:i|i'm|i've|is|has|was|lives?|and|or|the|a|an|my|me|we|he|she|they|it|you|ok|okay|not|no|yes|yeah|so|in|on"
    r"|at|from|sorry|here|there|back|home|sure|done|good|fine|great|well|sick|tired|bored|happy|sad|angry|mad|late"
    r"|early|busy|free|ready|hungry|thirsty|sleepy|drunk|cold|hot|ill|alive|dead|single|married|divorced|engaged"
    r"|pregnant|gay|straight|bi|trans|male|female|old|young|tall|short|fat|thin|new|lost|stuck|confused|stressed"
    r"|anxious|nervous|scared|afraid|lonely|alone|interested|curious|excited|glad|proud|lazy|broke|rich|poor|out"
    r"|off|up|down|away|just|also|really|very|super|pretty|quite|still|always|never|now|today|tomorrow|going"
    r"|coming|looking|trying|working|having|doing|feeling|thinking|wondering|getting|making|writing|asking"
    r"|learning|living|studying|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march"
    r"|april|june|july|august|september|october|november|december|christian|catholic|muslim|jewish|buddhist|hindu"
    r"|atheist|ceo|cto|cfo|vp|hr|it|ai|bot|human|team|mom|mum|dad|father|mother|sir|dude|bro|man|woman|guy|girl"
    r"|boy|kid|adult|student|vegan|vegetarian|diabetic|allergic|deaf|blind|introvert|extrovert|introverted"
    r"|extroverted|shy|weird|crazy|insane|serious|kidding|joking|right|wrong|true|like|all|too|exhausted"
    r"|overwhelmed|depressed|worried|surprised|shocked|impressed|confident|certain|aware|able|unable|available"
    r"|welcome|grateful|thankful|american|using|called|named|gonna|about|done|over|under|into|for|with|without"
    r"|between|around|near|once|it's|that|this|what|who|why|how|when|where|someone|nobody|something|nothing"
    r"|everything|everyone|better|worse|best|obsessed|retired|unemployed|employed|fluent|native|based|born|raised"
    r"|originally|currently|half|lactose|color|colour|batman|superman|spiderman|groot|spartacus|ishmael|god|jesus"
    r"|santa|asthmatic|dyslexic|autistic|epileptic|left-handed|right-handed|hungover|sober|clueless|speechless"
    r"|jealous|upset|annoyed|frustrated|disappointed|relaxed|secret|unknown|private|required|thinks|says|wants|needs|keeps|ok'd|awake|asleep|online|offline)",
    re.IGNORECASE,
)
_ARTICLE = Phrase(r"^(?:an?|the|my|our|some)\s+", re.IGNORECASE)
_TAIL = Phrase(
    r"(?:[\s,]+(?:at all|rn|too|as well|also|now|btw|by the way|lol|haha\w*|tbh|please|thanks|thank you|thx"
    r"|already|actually|though|anyway|you know|so much|a lot|very much|the most|right now|currently|at the moment"
    r"|these days|nowadays|more than anything|and all|obviously|ok|okay|really|again|xd|:d|lmao|haha|atm|fyi"
    r"|everyone|all|mate|man|bro|originally|instead|or so|most of all|by the way|etc|and so on|and stuff"
    r"|or something|in general|especially|to be honest|of course|cheers|i guess|lately|recently|everybody|there"
    r"|here|yay|all the time|ever|for sure|for now|right|hehe))+$",
    re.IGNORECASE,
)
_ADDRESSED = Phrase(
    r"\b(?:you|your|yours|u|this|that|these|those|here|it|him|her|them|he|she|they|myself|me|us|being here)\b",
    re.IGNORECASE,
)
_EMPTY = Phrase(
    r"(?:how|what|when|where|why|who|if|to (?:know|think|believe|hear|see|say|ask|thank)|the (?:idea|way|fact"
    r"|sound|look|one|ones|new|answer|result|design|part|picture|last|first|second|thought|concept|feeling)"
    r"|everything|nothing|anything|something|everyone|all|both|neither|none|my|our|not|no|any|more|less|better"
    r"|best|nice|good|so|too|very|being alive|everybody|life|people|things|stuff|men|women|girls|boys)\b",
    re.IGNORECASE,
)
#: "My wife and I are …", "Tom and I live …", "me and my sister have …": read as "we", a name being kept aside.
_AND_I = Phrase(
    r"(?:^|(?<=, )|(?<=\band )|(?<=\bbut )|(?<=\bso ))(?:(?:(?P<n>my [\w-]{3,20} (?-i:[A-ZÀ-Þ])[\w'-]{1,20})"
    rf"|my {_RELATION_MOD}{_RELATION}|(?!you |he |she |it |they |me )(?-i:[A-ZÀ-Þ])[\w-]{{1,20}}) and I"
    rf"|(?:me|I) and my {_RELATION_MOD}{_RELATION})"
    r" (?P<b>are|live|both|have|work|speak|love|like|hate|own|were|moved|grew|don't|can't|just|also)(?![\w'])",
    re.IGNORECASE,
)
#: Somebody a clause may be about: "my sister", "a girl", "a puppy"; group r when it is a relative of the speaker.
_SOMEBODY = Phrase(
    rf"(?<![\w'])(?:(?:my|our) (?:\w{{3,9}} )?(?P<r>{_RELATION})(?!['\w-])"
    r"|(?:an?|some|this|my|our|his|her|their|the) (?:[\w-]{{2,12}} )?"
    rf"(?:{_RELATION}|{_ANIMALS}|girl|guy|man|woman|boy|lady|person|baby|dude|character|queen|king|someone)(?![\w-])"
    rf"|someone|somebody)",
    re.IGNORECASE,
)
_PAIRS = Phrase(
    r"\b(rock|mac|fish|gin|salt|bread|black|peanut butter|drum|dungeons|rhythm|arts|cheese|research|bed|friends"
    r"|pride|war|crime|bosnia|trinidad|science|r|d|sweet|hot|pen|cookies|ham|eggs|country|food|hide|ups"
    r"|simon) (?:and|&) (roll|cheese|chips|tonic|vinegar|butter|white|jelly|bass|dragons|blues|crafts|onion"
    r"|development|breakfast|family|prejudice|peace|punishment|herzegovina|tobago|fiction|b|d|sour|spicy|paper"
    r"|cream|eggs|bacon|western|wine|seek|downs|garfunkel)\b",
    re.IGNORECASE,
)


def _trim(text: str) -> str:
    """A value without closing particles, emoji, punctuation and articles."""
    text = re.sub(r"\s+", " ", _TAIL.sub("", strip_signs(text)))
    return _ARTICLE.sub("", strip_signs(text), count=1)


#: "creating a safe and inviting place" is one thing with two adjectives, "a dog and a cat" are two things.
_ONE_THING = Phrase(r"(\w+ing an? [\w-]+) and (?!an? |the |my )(?=[\w-]+ \w)", re.IGNORECASE)


def _listed(text: str) -> list[str]:
    text = _PAIRS.sub(r"\1\0\2", text)
    text = _ONE_THING.sub("\\1\0", text)
    parts = re.split(r"\s*,\s*(?:and\s+|or\s+|also\s+)?|\s+(?:and(?: also)?|or|&|as well as|plus)\s+|\s+\+\s+", text)
    parts = [part.replace("\0", " and ") for part in parts]
    return [trimmed for part in parts if (trimmed := _trim(part))]


def _single(key: str, *, words: int = 6, refuse: str = r"(?!)") -> Read:
    """Group v as one value of at most `words` words that does not match `refuse`."""
    refused = Phrase(refuse, re.IGNORECASE)

    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = _trim(groups["v"])
        return [] if refused.search(value) or len(value.split()) > words else [Pair(key, value)]

    return read


def _several(key: str, *, words: int = 8) -> Read:
    """Group v as a list; an item that points at the talk itself ("this", "you") spoils the list."""

    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        items = _listed(_uncommented(groups["v"]))
        if _EMPTY.match(groups["v"].strip()) or any(_ADDRESSED.search(item) for item in items):
            return []
        return [Pair(key, item) for item in items if len(item.split()) <= words and not _EMPTY.match(item)]

    return read


def _uncommented(text: str) -> str:
    """A list without the remark that follows it: "olives, way too salty" is one item, "olives, figs" are two."""
    parts = text.split(",")
    alone = len(parts) == 2 and not _JOINED.search(parts[1])
    for number, part in enumerate(parts[1:], 1):
        if _REMARK.match(part.strip()) or (alone and len(part.split()) > 2):
            return ",".join(parts[:number])
    return text


_JOINED = Phrase(r"\b(?:and|or|also|plus)\b|&", re.IGNORECASE)
_REMARK = Phrase(
    r"(?:way|too|so|always|never|just|even|sorry|seriously|honestly|really|literally|absolutely|usually|mostly|maybe|very|kinda"
    r"|pretty|no|not|yuck|gross|ew+|ugh|brr+|period|ever|especially|mainly|particularly|since|which|whatever|at|far|much|almost"
    r"|sounds?|tastes?|smells?|gives?|makes?|looks?|feels?|reminds?|drives?|gets?|hurts?|ruins?|causes?|keeps?|takes?|seems?"
    r"|don't|can't|won't|couldn't|didn't|doesn't|disgusting|awful|horrible|terrible|boring|delicious|amazing|best|worst|lol"
    r"|haha\w*|hate|love|true|fair|right|unfortunately|sadly|thank \w+"
    r"|per|for|to|by|with|in|on|of|like|everything|anything"
    r"|nothing|despite|without|hence|though|but|yes|yeah|overrated|super|such|hands down)(?![\w'])",
    re.IGNORECASE,
)


def _allergy(groups: dict[str, str], today: date) -> list[Pair]:
    """As `_several`; one thing in the list that nobody can be allergic to makes it a joke."""
    items = list(_several("allergy")(groups, today))
    return [] if any(_NO_ALLERGEN.search(item.value) for item in items) else items


_NO_ALLERGEN = Phrase(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|weekdays?|mornings?|nights?|early|work(?:days?|outs?|places?)?"
    r"|jobs?|offices?|school|college|uni|class(?:es)?|lectures?|homework|exams?|tests?|deadlines?|meetings?|calls?|zoom|e-?mails?"
    r"|people|humans?|humanity|men|women|boys|girls|guys|kids|children|exes|ex|ex-\w+|boss(?:es)?|managers?|in-laws?|husbands?"
    r"|wives|wife|husband|boyfriends?|girlfriends?|relationships?|dating|marriage|love|feelings?|emotions?|romance|commitment"
    r"|efforts?|exercise|gym|cardio|sports?|maths?|chores|laundry|dishes|responsibilit(?:y|ies)|adult\w*|drama|bullshit|bs"
    r"|nonsense|stupid\w*|idiots?|questions?|jokes?|puns|fun|happiness|joy|failure|money|bills|tax(?:es)?|poverty|politics"
    r"|politicians|news|rules|authority|small talk|talk|silence|liars?|lies|fake\w*|mediocrity|traffic|crowds?|alarms?"
    r"|alarm clocks?|life|reality|truth|change|being|code|bugs? reports?|javascript|java|excel|spreadsheets?"
    r"|powerpoint|\w{3,20}isms?|ai"
    r"|(?!herring|whiting|pudding|dressing|icing|frosting|seasoning|stuffing|piercing|clothing|bedding|filling|coating)\w{2,14}ing"
    r"|my|his|their|your)\b",
    re.IGNORECASE,
)


def _places(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        raw = groups["v"].strip()
        value = _trim(raw)
        vague = re.match(r"(?:an?|my|your|our|his|her|their|this|that|some|one)\b", raw, re.IGNORECASE)
        if vague and not re.match(r"a (?:\w+ )?(?:\w+ )?(?:village|town|city|suburb|island|farm) ", raw, re.IGNORECASE):
            return []
        if _NOT_PLACES.search(value) or len(value.split()) > 6 or value[0:1].isdigit():
            return []
        return [Pair(key, value)]

    return read


_NOT_PLACES = Phrase(
    r"\b(?:is|are|was|were|has|have|had|it|you|me|not|fear|hope|peace|denial|pain|hell|poverty|moment|past|present"
    r"|future|middle|clouds|sky|dark|shadows?|matrix|ocean|dream|fantasy|bubble|harmony|luxury|dorms?|house"
    r"|apartment|flat|hotel|work|school|scratch|home|where|there|here|constant|exile|sin|same|mars|moon|space"
    r"|heaven|now|today|time|world|way|bed|office|train|airport|another|outer|shire|hogwarts|wonderland|neverland"
    r"|narnia|yellow submarine|perfect|over|everywhere|nowhere|anywhere|somewhere|planet|company|team|department"
    r"|site|internet|expensive|great|harvest)\b",
    re.IGNORECASE,
)


def _job(groups: dict[str, str], _today: date) -> Iterator[Pair]:
    job = _trim(groups["v"])
    if not _NOT_JOB.search(job) and len(job.split()) <= 6:
        yield Pair("occupation", job)
        employer = groups.get("e")
        if employer and not re.match(
            r"(?:an?|the|my|our|home|night|heart|work|least|large|hire|day|fun|life|now|over|some|one|\d)\b",
            employer,
            re.IGNORECASE,
        ):
            yield Pair("employer", _trim(employer))
        school = groups.get("s")
        if school:
            yield Pair("studies", _trim(school))


def _names(text: str) -> list[str]:
    names = [strip_signs(name) for name in re.split(r"\s*,\s*|\s+(?:and|&)\s+", text)]
    return [name for name in names if name and not NOT_NAMES.fullmatch(name.split()[0]) and len(name.split()) <= 4]


def _name(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = strip_signs(_TAIL.sub("", groups["v"]))
        first = value.split(" ")[0]
        taken = NOT_NAMES.fullmatch(first) or re.fullmatch(
            f"{_NATIONS}|{_LANGUAGES}|{_JOBS}|{_DIETS}", value, re.IGNORECASE
        )
        if taken or len(value.split()) > 4 or value.isdigit() or re.search(r"(?-i:^[a-z]\w*(?:ing|ed)$)", value):
            return []
        return [Pair(key, value)]

    return read


def _age(groups: dict[str, str], _today: date) -> list[Pair]:
    number = _NUMBER_WORDS.get(groups["v"].lower().replace("-", " "), groups["v"])
    return [Pair("age", str(int(number)))] if number.isdecimal() and 3 <= int(number) <= 119 else []


_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ONES = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_NUMBER_WORDS = {
    word: str(number)
    for word, number in (
        _ONES
        | _TENS
        | {f"{ten} {one}": tens + ones for ten, tens in _TENS.items() for one, ones in _ONES.items() if ones < 10}
    ).items()
}
_AGE = (
    r"(?P<v>\d{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six"
    r"|seven|eight|nine))?|(?:thir|four|fif|six|seven|eigh|nine)teen)"
)
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_DAY = (
    r"(?P<v>(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:[a-z]{3,9})(?:,? \d{4})?"
    r"|[a-z]{3,9}\.? (?:the )?\d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|\d{4}-\d{1,2}-\d{1,2}"
    r"|\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?|today|tomorrow)(?!\w)"
)


def _birthday(groups: dict[str, str], today: date) -> list[Pair]:
    said = groups["v"].strip()
    relative = next(iter(mentions(said, today)), None)
    if relative:
        return [Pair("birthday", f"{_MONTHS[relative.first.month - 1].title()} {relative.first.day}")]
    word = re.search(r"[a-z]{3,9}", re.sub(r"\d+(?:st|nd|rd|th)|\bthe\b|\bof\b", "", said.lower()))
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    if word:
        month = next(
            (
                i
                for i, name in enumerate(_MONTHS, 1)
                if name.startswith(word.group()[:3]) and word.group() in {name, name[:3], name[:4]}
            ),
            0,
        )
        if not month or not 1 <= numbers[0] <= 31:
            return []
        if len(numbers) == 2:
            return [Pair("birthday", f"{numbers[1]:04}-{month:02}-{numbers[0]:02}")]
        return [Pair("birthday", f"{_MONTHS[month - 1].title()} {numbers[0]}")]
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", said):
        return [Pair("birthday", "{:04}-{:02}-{:02}".format(*numbers))]
    return [Pair("birthday", said)]  # "3/4" is March in one country and April in the next


def _speaks(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        # A language nobody listed is believed beside one that is: "Twi and English".
        found = re.findall(rf"\b{_LANGUAGES}\b|\b(?-i:[A-Z][a-z]+)\b", groups["v"], re.IGNORECASE)
        return [Pair(key, language) for language in found] if re.search(_LANGUAGES, groups["v"], re.IGNORECASE) else []

    return read


def _relative(groups: dict[str, str], _today: date) -> list[Pair]:
    """My sister Ana / my sister is called Ana / I have a sister called Ana."""
    key = _RELATIONS[groups["r"].lower()]
    return [Pair(key, name) for name in _names(groups["v"])]


def _relative_is(groups: dict[str, str], _today: date) -> list[Pair]:
    key = _RELATIONS[groups["r"].lower()]
    value = _trim(re.sub(r"^is (?!from )", "", groups["v"]))
    if _NOT_KIN.search(value) or len(value.split()) > 7 or ("allergic" in value and _NO_ALLERGEN.search(value)):
        return []
    return [Pair(key, value)]


def _kin_does(groups: dict[str, str], today: date) -> list[Pair]:
    return _relative_is(groups, today) if _RELATIONS[groups["r"].lower()] in KIN else []


_NOT_KIN = Phrase(
    r"\b(?:bit|lot|idiot|jerk|pain|saint|angel|star|hero|mess|nightmare|asshole|dick|fan|little|problem|you|good"
    r"|great|bad|terrible|big|huge|big|person|man|woman|guy|girl|boy|liar|joke|genius|legend|monster|witch|morning"
    r"|better|delight|darling|sweetheart)\b",
    re.IGNORECASE,
)


def _has_relative(groups: dict[str, str], _today: date) -> list[Pair]:
    return [Pair(_RELATIONS[groups["r"].lower()], "", unnamed=True)]


def _pet(groups: dict[str, str], _today: date) -> list[Pair]:
    animal = f"{groups.get('m', '')}{groups['a']}".lower().strip()
    if re.search(r"\b(?:hot|chicken soup|dead)\b", animal):
        return []
    names = _names(groups.get("v") or "")
    if names:
        animal = _ANIMAL_PLURALS.get(animal, animal)
        singular = animal[:-1] if re.fullmatch(_ANIMALS, animal[:-1].split(" ")[-1]) else animal
        return [Pair("pet", f"{singular} {name}") for name in names]
    count = groups.get("n") or ""
    return [
        Pair(
            "pet",
            f"{count} {animal}" if count.lower() not in {"", "a", "an", "my", "our", "some", "the"} else animal,
            unnamed=True,
        )
    ]


_ANIMAL_PLURALS = {
    "puppies": "puppy",
    "bunnies": "bunny",
    "kitties": "kitty",
    "mice": "mouse",
    "ponies": "pony",
}


def _owns(groups: dict[str, str], _today: date) -> list[Pair]:
    value = _trim(groups["v"])
    bad = re.search(
        r"\b(?:problem|question|issue|trouble|idea|dream|accident|loan|appointment|key|crash|insurance|service"
        r"|repair|rental|rented|you|mistakes?|reservation|time|case)\b",
        value,
        re.I,
    )
    return [] if bad or len(value.split()) > 7 else [Pair("owns", value)]


def _own(groups: dict[str, str], today: date) -> Iterator[Pair]:
    """A list, each item up to where it stands or what it is for: "a house in Porto and a boat"."""
    for item in _listed(groups["v"]):
        thing = re.split(r" (?:in|near|with|for|at|from|by|on|that|called|named)\b", item)[0]
        if not re.match(r"(?:this|that|these|those|nothing|everything|it|my|lots|plenty)\b", thing, re.IGNORECASE):
            yield from _owns({"v": thing}, today)


def _favourite(groups: dict[str, str], _today: date) -> list[Pair]:
    thing = re.sub(r"^(?:all[- ]time|absolute|personal) ", "", groups["k"].lower().strip())
    plural = groups.get("be", "is") == "are"
    if plural and thing.endswith("s") and not thing.endswith("ss"):
        thing = f"{thing[:-3]}y" if thing.endswith("ies") and thing != "movies" else thing[:-1]
    if len(thing.split()) > 3 or re.search(r"\b(?:thing|part|one|person|of|to|about|in|way|ever|time)\b", thing):
        return []
    value = _trim(groups["v"])
    if (
        _ADDRESSED.search(value)
        or _EMPTY.match(value)
        or len(value.split()) > 9
        or re.search(r"\b(?:was|not|changed|when)\b", value)
    ):
        return []
    return [Pair(f"favourite-{normalise_key(thing)}", value)]


def _goal(groups: dict[str, str], today: date) -> list[Pair]:
    value = _trim(re.sub(r"^to ", "", groups["v"]))
    if re.search(r"\b(?:you|your|it|him|her|them)\b", value, re.IGNORECASE) or not 2 <= len(value.split()) <= 14:
        return []
    return [Pair("goal", anchor(value, today, ahead=True))]


def _plan(groups: dict[str, str], today: date) -> list[Pair]:
    """A plan needs a day that is still to come; tonight is not worth keeping. Group g is a "going to"."""
    value = _trim(groups["v"])
    if "g" in groups and (value[:1].isupper() or _ARTICLE.match(groups["v"])):
        value = f"going to {groups['v'].strip()}"  # somewhere, and not merely going to do something
    dates = [mention for mention in mentions(value, today, ahead=True) if mention.last > today]
    dated = dates or re.search(
        r"\b(?:in|on|at) (?:(?:early|mid|late) )?(?:january|february|march|april|may|june|july|august|september"
        r"|october|november|december|spring|summer|autumn|the fall|winter|20\d\d)\b|\b(?:next|this) (?:spring"
        r"|summer|autumn|fall|winter)\b|\bfor christmas\b",
        value,
        re.I,
    )
    if not dated or len(value.split()) > 20 or len(value.split()) < 2:
        return []
    return [Pair("plan", anchor(value, today, ahead=True))]


def _answers(groups: dict[str, str], today: date) -> Iterable[Pair]:
    """A taste in answers is a standing request; any other taste is a like."""
    value = _trim(groups["v"])
    if re.search(
        r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|bullet points|units|metric|celsius)\b",
        value,
        re.IGNORECASE,
    ):
        return [Pair("instruction", value)]
    return _several("likes")(groups, today)


_ADV = (
    r"(?:(?:also|really|just|do|actually|totally|absolutely|genuinely|always|still|honestly|truly|very much"
    r"|especially|personally|mostly|usually|currently|now|already|quite|kinda|particularly|sometimes|simply|only"
    r"|definitely|secretly|both|at all|all|recently|so|fully|currently|deeply|especially|basically) ){0,3}"
)
_BE = rf"(?:I'm|we're) {_ADV}"
_IN = rf"(?P<v>[^\n,]{{2,60}}?(?:, ?(?:{_COUNTRIES}|(?-i:[A-Z]{{2}})|(?-i:[A-Z])\w+(?=$)))?)" + _END_ONE
_ORG = r"(?P<e>[^\n,]{2,50}?)" + _END_ONE


def _employer(groups: dict[str, str], _today: date) -> list[Pair]:
    value = _trim(re.sub(r".* (?:called|named) ", "", groups["e"]))
    if re.match(
        r"(?:home|night|myself|free|fun|money|least|all|him|her|them|you|it|this|that|my|his|their|your|day"
        r"|weekends?|hours?|years?|\d|minimum|peanuts|the moment|work|odd|a living|long|several|many|two|three"
        r"|over|almost|some|living|good|ages)\b",
        value,
        re.IGNORECASE,
    ):
        return []
    return [Pair("employer", value)] if len(value.split()) <= 6 else []


def _studies(groups: dict[str, str], _today: date) -> list[Pair]:
    subjects = [item for item in _listed(groups["v"]) if len(item.split()) <= 4 and not _ADDRESSED.search(item)]
    school = groups.get("s")
    return [Pair("studies", value) for value in (*subjects, *([_trim(school)] if school and subjects else []))]


_FOODS = (
    r"(?:red |any |processed )?(?:meat|pork|beef|fish|seafood|shellfish|dairy|gluten|eggs?|sugar|lamb|chicken|nuts"
    r"|wheat|bread|carbs|animal products|mushrooms|cheese|onions?|garlic|soy|fast food|junk food)"
)


def _no_food(groups: dict[str, str], _today: date) -> list[Pair]:
    items = _listed(groups["v"])
    return [Pair("diet", f"no {item}") for item in items if re.fullmatch(_FOODS, item, re.IGNORECASE)]


# fmt: off
_RULES: tuple[Rule, ...] = (
    # who they are
    _rule(rf"my (?:(?:first|full|real|given) )?name is {_ADV}(?!not\b|on\b|in\b|long\b"
          rf"|hard\b)(?P<v>[^\n,]{{1,50}}?){_END_ONE}", _name("name")),
    _rule(rf"(?:the )?name is (?P<v>{_NAMES}){_END_ONE}", _name("name")),
    _rule(rf"(?!looky\b|lookie\b|look\b)(?P<v>{_NAME}) here$", _name("name")),
    _rule(r"(?:(?:you|u) can |feel free to |just |please )*call me (?:just |only )?(?P<v>(?!sometime|soon|when|if"
          r"|later|back|tomorrow|at|on|a |an |maybe|crazy|old|asap|in |today|tonight|after|before|anytime|by"
          r"|whatever|stupid|out|names|again|your|every|old-fashioned)[^\n,]{1,30}?)" + _END_ONE, _name("called")),
    _rule(r"(?:everyone|everybody|people|(?:most of )?my friends|friends|they|most people|my family|folks) (?:all "
          r"|just |usually |mostly |always )?calls? me (?P<v>[^\n,]{1,30}?)" + _END_ONE,
          _name("called")),
    _rule(r"(?:I go by|my nickname is|I (?:prefer|like) (?:to be|being) called|I'm known as|I'd (?:prefer"
          r"|like) to be called|I'd rather be called|I usually go by) (?:the name )?(?P<v>[^\n,]{1,30}?)" + _END_ONE,
          _name("called")),
    _rule(rf"{_BE}an? {_AGE}[- ]?(?:years?[- ]old|yrs?[- ]old|y/?o)(?: (?:man|woman|guy|girl|boy|male|female"
          rf"|mom|dad)\b)?", _age),
    _rule(rf"{_BE}(?:about |exactly )?{_AGE}(?: ?(?:years? old|yrs? old|years? of age|y/?o|yrs?|years? young"
          rf"|f|m))(?![\w'])", _age),
    _rule(rf"{_BE}{_AGE}(?=\s*$|\s*,|\s*\(| and | but | from | now| btw| live | living |, | this year)", _age),
    _rule(rf"I (?:just |recently |have just )?turned {_AGE}(?!\w)", _age),
    _rule(rf"my age is {_AGE}(?!\w)", _age),
    _rule(rf"(?:my birthday (?:is|falls)|I was born|it's my birthday|I celebrate my birthday|my date of birth is"
          rf"|my dob is|my birth date is|born|I'm born)(?: on)?(?: the)? {_DAY}",
          _birthday),
    _rule(rf"(?:my )?birthday ?[:=] ?{_DAY}", _birthday),
    _rule(rf"{_DAY} is my birthday", _birthday),
    _rule(rf"{_BE}(?:an? )?(?P<v>(?:half[- ])?(?:{_NATIONS})(?:[- ](?:american|canadian|british"
          rf"|australian))?)(?: (?:citizen|guy|girl|woman|man|national|expat|immigrant|person|dude|lady"
          rf"|by birth))?(?=\s*$|\s*[,()–—]| and | but | from | living | based | by | so | who | btw| too| in "
          rf"| working)", _single("nationality")),
    _rule(rf"my nationality is (?P<v>{_NATIONS})", _single("nationality")),
    _rule(rf"I (?:have|hold) (?:an? )?(?P<v>{_NATIONS}) (?:citizenship|nationality|passport)",
          _single("nationality")),
    _rule(r"(?:my (?:native|first|mother) (?:language|tongue) is|my mother[- ]tongue is) (?P<v>[^\n]{2,60})",
          _speaks("native-language")),
    _rule(rf"{_BE}an? native (?P<v>{_LANGUAGES}) speaker", _speaks("native-language")),
    _rule(rf"(?P<v>{_LANGUAGES}) is my (?:native|first|mother)[- ](?:language|tongue)",
          _speaks("native-language")),
    _rule(rf"I (?:natively speak|speak native) (?P<v>{_LANGUAGES})|I speak (?P<w>{_LANGUAGES}) natively",
          lambda g, _: [Pair("native-language", g.get("v") or g["w"])]),
    _rule(rf"(?:I|we) {_ADV}(?:can )?{_ADV}(?:speak|know) (?:(?:fluent|some|a little|a bit of|a little bit of"
          rf"|basic|decent|good|broken|mainly|mostly|only) )*(?P<v>(?:(?-i:[A-Z])\w+(?:, "
          rf"| and )){{0,3}}(?:{_LANGUAGES})\b[^\n]{{0,80}}?){_END_LIST}", _speaks("speaks")),
    _rule(rf"{_BE}(?:fluent in|bilingual in|bilingual[,:]?|conversational in|trilingual in"
          rf"|trilingual[,:]?) (?P<v>[^\n]{{2,80}}?){_END_LIST}", _speaks("speaks")),
    _rule(r"my (?:time ?zone|tz) is (?P<v>[^\n]{2,40}?)(?=\s*$|,| so | but | and | btw|\s*\()",
          _single("timezone", words=4)),
    _rule(rf"{_BE}(?:in|on) (?:the )?(?P<v>(?:(?-i:[A-Z]{{2,5}}|utc|gmt|cet|est|pst|cest|jst"
          rf"|ist)(?: ?[+-]\d{{1,2}}(?::\d\d)?)?|(?:us )?(?:pacific|eastern|central|mountain|european"
          rf"|central european)(?: standard| daylight)?)(?: time(?! ?zone))?)(?: time ?zone|(?<=time)|(?<=\d)"
          rf"|(?<=CET)|(?<=EST)|(?<=PST)|(?<=JST)|(?<=UTC)|(?<=GMT)|(?<=IST)|(?<=cet)|(?<=est)|(?<=pst)|(?<=utc)"
          rf"|(?<=gmt))(?!\w)", _single("timezone")),
    # where
    _rule(rf"(?:I|we) {_ADV}(?:live|reside|stay permanently) {_ADV}(?:with [\w' ]{{2,30}}? |alone "
          rf"|together )?(?:in|near|outside) (?:(?:the city of|downtown|central) )?{_IN}",
          _places("home")),
    _rule(rf"(?:{_BE}|I've been |we've been )(?:living|residing|based|settled) {_ADV}(?:in|near|out of) {_IN}",
          _places("home")),
    _rule(r"(?:I've|we've) lived in (?P<v>[^\n,]{2,60}?)(?= (?:for|since|all my life|my whole life|my entire life"
          r"|forever))", _places("home")),
    _rule(rf"(?:I|we|I've|we've) (?:{_ADV}|have |finally )(?:moved|relocated) (?:(?:back|over|down|up"
          rf"|here) )?to {_IN}", _places("home")),
    _rule(rf"(?:my home is|home is|my home city is|my city is|my current city is"
          rf"|I call) (?:in )?(?!where\b){_IN}", _places("home")),
    _rule(rf"{_BE}(?:a |an )?(?:{_NATIONS} )?(?:expat|person|resident) (?:living )?(?:in|of) {_IN}",
          _places("home")),
    _rule(rf"(?:{_BE}|I )(?:come |originally |originally come |actually |hail |(?:am )?(?:born and raised"
          rf"|originally) )?from (?:originally )?{_IN}", _places("hometown")),
    _rule(rf"(?:I|I was|I'm|we) (?:grew up|born and raised|raised|was raised|was born and raised"
          rf"|was born and grew up|was brought up|brought up|was born) (?:in|near|around) {_IN}",
          _places("hometown")),
    _rule(rf"my home ?town is {_IN}", _places("hometown")),
    # health
    _rule(rf"(?:{_BE}|I )(?:(?:severely|deathly|super|very|highly|mildly|terribly|slightly|badly|extremely"
          rf"|a bit|also|insanely|violently|hella) ){{0,2}}allergic to {_LIST}",
          _allergy),
    _rule(rf"(?:I|we) {_ADV}have (?:an? )?{_ADV}(?:(?:severe|bad|serious|mild|terrible|strong|slight"
          rf"|life-threatening|nasty) )?allerg(?:y|ies) to {_LIST}", _allergy),
    _rule(r"I have (?:an? )?(?:(?:severe|bad|serious|mild|terrible|strong|slight|nasty) )?(?P<v>(?!allerg|seasonal"
          r"|food )(?:(?!and\b|an?\b)[\w-]+ ?){1,3}?) allerg(?:y|ies)\b",
          _allergy),
    _rule(r"my (?:food )?allerg(?:y is|ies are|ies include|ies:|y:) (?:to )?" + _LIST, _allergy),
    _rule(r"(?P<v>[\w ]{2,30}) (?:gives? me hives|makes? my throat (?:close|swell))",
          _allergy),
    _rule(rf"(?:{_BE}|I )(?:(?:been|went|turned|become|became|gone|going|strictly|strict|an?|on|follow"
          rf"|following|eat|only eat|keep|mostly|mainly|eating|lifelong|basically|the"
          rf"|doing) ){{0,4}}(?P<v>{_DIETS})(?: (?:diet|food|only))?(?![\w-])(?! (?:restaurants?|recipes?"
          rf"|curious|options?|cheese|burgers?|cuisine|meals?|dish|when|cookbook|place|and proud of you))",
          _single("diet")),
    _rule(rf"I've been (?:an? |on an? |on the |eating )?(?P<v>{_DIETS})\b", _single("diet")),
    _rule(rf"my diet is (?:mostly |strictly )?(?P<v>{_DIETS})", _single("diet")),
    _rule(r"I (?:really |also |just )?(?:don't|never|can't|do not) eat (?P<v>[^\n]{2,80}?)" + _END_LIST, _no_food),
    _rule(rf"(?:I|we) {_ADV}(?:have|suffer from|live with|struggle with|was diagnosed with|were diagnosed with"
          rf"|got diagnosed with|deal with|'ve been diagnosed with) (?:(?:a )?(?:mild|severe|bad|really bad"
          rf"|terrible|very bad|pretty bad|occasional|frequent) )?(?P<v>{_CONDITIONS})(?=\s*$|\s*[,()]| and "
          rf"| but | so |,| since | which | for | btw| too)(?: and (?P<w>{_CONDITIONS}))?",
          lambda m, _: [Pair("condition", _trim(v)) for v in (m["v"], m.get("w", "")) if v]),
    _rule(r"(?:I|I've|I'm) (?:just |recently |was |got |been |been recently )*(?:diagnosed with|suffering from) "
          + _ONE,
          _single("condition", words=5)),
    _rule(rf"{_BE}(?:a )?(?:type (?:1|2|one|two) )?(?P<v>{'|'.join(_AILING)})(?=\s*$|\s*[,()]| and | but "
          rf"| so | since | I )",
          lambda m, _: [Pair("condition", _AILING[m["v"].lower()])]),
    _rule(rf"{_BE}(?P<v>lactose intolerant|gluten intolerant|colou?r[- ]?blind|deaf|legally blind"
          rf"|visually impaired|hard of hearing|(?:a )?wheelchair user|in a wheelchair|short-?sighted"
          rf"|near-?sighted)(?=\s*$|\s*[,()]| and | but | so | in )",
          _single("condition")),
    # work
    _rule(rf"(?:I|I've) {_ADV}(?:(?:been )?work(?:ing)?|worked) {_ADV}(?:(?!for\b|at\b"
          rf"|in\b)[\w-]+ ){{0,3}}?as (?:an? |the )?(?P<v>[^\n,]{{2,60}}?)(?: (?:at|for|with) {_ORG}|{_END_ONE})",
          _job),
    _rule(rf"{_BE}(?:working|employed|training) as (?:an? |the )?(?P<v>[^\n,]{{2,60}}?)(?: (?:at|for"
          rf"|with) {_ORG}|{_END_ONE})", _job),
    _rule(rf"(?:I|I've) {_ADV}been an? (?P<v>(?:[\w/+&'.-]+ ){{0,4}}?{_JOBS})(?: at {_ORG})?"
          r"(?= (?:for|since|now|all my|going on|almost)\b)", _job),
    _rule(rf"we're {_ADV}(?P<v>(?:[\w-]+ ){{0,2}}?{_JOBS})s{_END_ONE}", _job),
    _rule(rf"{_BE}(?:an? |the |(?=retired))(?P<v>(?:[\w/+&'.-]+ ){{0,4}}?{_JOBS})(?: by (?:trade|profession"
          rf"|training)| in training)?(?: (?:at|for|with) {_ORG}|{_END_ONE})",
          _job),
    _rule(rf"{_BE}(?P<v>(?:(?:senior|junior|software|lead|staff|retired|head|web|full[- ]stack|data|grad"
          rf"|college|university|uni|medical|law|phd|primary|high|school|er|icu|freelance|civil|mechanical"
          rf"|electrical|chemical|graphic|product|project|backend|frontend|mobile|game|ux|ui|yoga|math|maths"
          rf"|english|science|music|art|piano|taxi|truck|bus|part-time) ){{0,3}}{_JOBS})(?: (?:at|for"
          rf"|with) {_ORG}|(?=\s*$|\s*[,()]| and | but | from | in | living | based | working | btw))", _job),
    _rule(rf"my (?:job|occupation|profession|day job|job title|current job|work|job now) (?:is|:) (?:as "
          rf"|being )?(?:an? )?(?P<v>(?:[\w/+&'.-]+ ){{0,4}}?{_JOBS})(?: (?:at|for|with) {_ORG}|{_END_ONE})",
          _job),
    _rule(rf"I {_ADV}work in (?:the )?(?P<v>{_FIELDS})(?: (?:industry|sector|business|field"
          rf"|department))?(?=\s*$|\s*[,()]| and | but | at | for | so | in )(?: (?:at|for) {_ORG})?", _job),
    _rule(r"(?P<v>retired|unemployed) here$|I'm (?P<w>retired)(?=\s*$|\s*,| and | now)",
          lambda m, _: [Pair("occupation", m.get("v") or m["w"])]),
    _rule(rf"(?:I |I'm |I have )?(?:for |because of |to start )(?:a |my )?(?:new )?job (?:at|with) {_ORG}",
          _employer),
    _rule(rf"(?:I|we) {_ADV}(?:work|am employed|got a job|started working|started a (?:new )?job|just started"
          rf"|started|have a job) (?:over |remotely |part[- ]time |full[- ]time )?(?:at|for) {_ORG}", _employer),
    _rule(rf"{_BE}(?:working|employed|interning|an intern|employed) (?:remotely |part[- ]time "
          rf"|full[- ]time )?(?:at|for|by) {_ORG}", _employer),
    _rule(rf"(?:my (?:employer|company) is(?: called)?|I (?:just )?joined(?= (?-i:[A-Z]))|the company I work (?:for"
          rf"|at) is(?: called)?|I've worked (?:at|for)|I(?:'ve)? been (?:at|with|working at"
          rf"|working for)) {_ORG}",
          _employer),
    _rule(rf"(?:I|I'm|we) {_ADV}(?:study|studying|major in|majoring in|doing a degree in|am studying"
          rf"|have a degree in|do a master's in|doing a (?:master'?s?|phd|bachelor'?s?|degree|course) in"
          rf"|learning) (?!how|to|a lot|hard|for|so|at\b|in\b|abroad|about|from|more|together|online|every|right"
          rf"|my|this|that|it\b|something|things)(?P<v>[^\n,]{{2,50}}?)(?:(?: at"
          rf"| in) (?P<s>(?:the )?(?:(?-i:[A-Z])[\w']*|university|uni|college)(?: (?:of|in|(?-i:[A-Z])[\w']*"
          rf"|university|college)){{0,5}})(?=\W|$)|{_END_ONE})", _studies),
    _rule(rf"(?:I|I'm|we) {_ADV}(?:study|studying|go to (?:school|uni|university|college)|enrolled"
          rf"|a student) (?:at|in) (?:the )?(?P<v>(?!home\b|school\b|night\b|the moment|university\b|uni\b"
          rf"|college\b|library)[^\n,]{{2,50}}?){_END_ONE}",
          _single("studies", refuse=
        r"\b(?:morning|evening|night|library|cafe|moment|bed|hours?|days?|\d+)\b")),
    _rule(rf"{_BE}(?:an? )?(?P<v>(?:[\w-]+ ){{0,3}}student) (?:at|in) (?P<s>[^\n,]{{2,50}}?){_END_ONE}", _job),
    _rule(r"my (?:major|degree|course|field of study) is (?:in )?" + _ONE, _single("studies")),
    _rule(r"I go to (?P<v>(?-i:[A-Z])[\w' ]{1,40}(?:University|College|High|School|Academy|Uni))",
          _single("studies")),
    # relations and pets
    _rule(rf"(?:my|our) {_RELATION_MOD}(?P<r>{_RELATION})(?:'s|s'|s)? ?(?:names? (?:is|are)|is named|is called"
          rf"|are called|are named|, called|called|named) (?P<v>[^\n]{{2,60}}?)(?=\s*$|\s*[()]| (?:{_STOP}|my|he"
          rf"|she|who|is|has|lives|works)\b|, (?:he|she|who|and I|I|is|a)\b)", _relative),
    _rule(rf"(?P<r>mum|mom|mother|dad|father|grandma|grandpa|granny|wife|husband|hubby)'?s (?:name is|called)"
          rf" (?P<v>{_NAMES}){_END_ONE}", _relative),
    _rule(rf"(?:my|our) {_RELATION_MOD}(?P<r>{_RELATION}),? (?P<v>(?-i:[A-Z])[\w'-]{{1,20}}(?:(?:, | and "
          rf"|, and )(?-i:[A-Z])[\w'-]{{1,20}}){{0,4}})(?!'s|s' |\w)", _relative),
    _rule(rf"(?:my|our) {_RELATION_MOD}(?P<r>{_RELATION}) (?:is|are) (?P<v>(?-i:[A-Z])[\w'-]{{1,20}}(?:(?: "
          rf"and |, )(?-i:[A-Z])[\w'-]{{1,20}})*)(?=\s*$|\s*[,()]| and )",
          lambda m, t: [] if re.fullmatch(_NATIONS, m["v"], re.I) else _relative(m, t)),
    _rule(rf"(?P<v>{_NAME}) is my {_RELATION_MOD}(?P<r>{_RELATION})(?=\s*$|\s*[,()]| and | who )",
          _relative),
    _rule(rf"(?:I|we) {_ADV}have (?:an?|two|three|four|five|\d|one"
          rf"|twin) {_RELATION_MOD}(?P<r>{_RELATION})(?:,? (?:called|named|whose names? (?:is|are)"
          rf"|who is called|who's called)|,|:| \() ?(?P<v>(?!who|and|but|he|she|so)[^\n]{{2,60}}?)(?=\s*$|\s*[()]"
          rf"| (?:{_STOP}|my|he|she|who|is|has)\b|, (?:he|she|who|and I|I|is|a|one)\b)", _relative),
    _rule(rf"(?:{_BE}|I )(?:married to|dating|engaged to|seeing|in a relationship with"
          rf"|going out with) (?:an? \w+ (?:called|named) )?(?P<v>{_NAME})(?!\w)(?=\s*$|\s*[,()]| and | for "
          rf"| since | from | who | now | but )", _name("partner")),
    _rule(rf"(?:I|we) {_ADV}have (?:an?|two|three|four|one) {_RELATION_MOD}(?P<r>{_RELATION})(?=\s*$|\s*,"
          rf"| and )", _has_relative),
    _rule(rf"my {_RELATION_MOD}(?P<r>{_RELATION}) (?:is|'s|works as|is working as"
          rf"|was) (?P<v>an? [^\n,]{{2,60}}?){_END_ONE}", _relative_is),
    _rule(rf"my {_RELATION_MOD}(?P<r>{_RELATION}) (?P<v>(?:lives|works (?:at|for|in)|studies|is (?:from"
          rf"|allergic to|vegan|vegetarian|diabetic|autistic|deaf|\d{{1,2}}(?: years old)?(?=\s*$|,))|comes from"
          rf"|is studying|is living in|has (?:{_CONDITIONS}))[^\n,]{{0,60}}?){_END_LIST}", _kin_does),
    _rule(rf"(?:I|we) {_ADV}(?:have|own|got|adopted|just got|just adopted|recently adopted|rescued|keep) (?P<n>an?"
          rf"|two|three|four|five|six|\d|some|my) (?:(?:very |really |super )?(?:cute|fat|old|big|small|little"
          rf"|tiny|lovely|sweet|new|rescue|lazy|crazy|beautiful|adorable|young|energetic|grumpy|senior"
          rf"|\d{{1,2}}[- ](?:year|month)[- ]old),? ){{0,3}}(?P<m>(?:(?:black|white|grey|gray|brown|orange|ginger"
          rf"|calico|tabby|golden|german|french|english|border|jack russell|siamese|persian|bernese|shiba"
          rf"|australian|pet|rescue|tuxedo|bearded|leopard|british shorthair|mini|miniature|guide"
          rf"|yorkshire)(?: and white)? ){{0,2}})(?P<a>(?:{_ANIMALS})s?|puppies|bunnies|kitties|mice"
          rf"|ponies)(?![\w-])(?:(?:,? (?:called|named|whose names? (?:is|are)|and (?:his|her|its) name is"
          rf"|and (?:he|she)'s called|names? (?:is|are))|,|:| \() ?(?P<v>{_NAME}(?:(?: and |, | & "
          rf"|, and ){_NAME}){{0,5}}|(?<=called )\w+|(?<=named )\w+))?(?! (?:problem|food|allergy|show|person"
          rf"|lover|soup|sitter|bed|toy|salad|sandwich|phobia|farm))", _pet),
    _rule(rf"(?:my|our) (?:(?:two|three|four|\d) )?(?P<m>(?:(?:black|white|ginger|orange|golden|german"
          rf"|tabby) )?)(?P<a>(?:{_ANIMALS})s?)(?:'s)? ?(?:names? (?:is|are)|is (?:called|named)|are (?:called"
          rf"|named)|is(?= (?-i:[A-Z]))|called|named|,) (?P<v>(?-i:[A-Z])\w+(?:(?: and |, ){_NAME}){{0,5}}"
          rf"|(?<=called )\w+|(?<=named )\w+|(?<=name is )\w+|(?<=names are )\w+ and \w+)", _pet),
    _rule(rf"(?P<v>{_NAME}) is my (?P<a>{_ANIMALS})(?![\w'])", _pet),
    # tastes
    _rule(rf"my (?:all[- ]time |absolute |personal )?favou?rite (?P<k>[\w -]{{2,40}}?)(?: of all time"
          rf"| ever)?(?: (?P<be>is|are|has to be|would be|has always been|will always be|must be|'s)|:| ="
          rf"|'s) (?:definitely |probably |still |obviously |always |actually |currently |the color "
          rf"|the colour )?{_LIST}", _favourite),
    _rule(r"(?P<v>[\w'’ &.-]{2,50}?) (?:is|are|has to be|will always be|has always been) (?:definitely |still "
          r"|also |one of )?my (?:all[- ]time |absolute )?favou?rite (?P<k>[\w -]{2,30}?)(?: of all time| ever)?"
          + _END_ONE,
          _favourite),
    _rule(rf"(?:I|we) {_ADV}(?:like|love|enjoy|adore|am fond of|am into) (?!to (?:know|think|believe|see|hear"
          rf"|be called)\b|it\b){_LIST}", _several("likes")),
    _rule(rf"(?:I|we) {_ADV}prefer (?:to have |having )?(?P<v>[^\n]{{1,120}}?)(?=\s*$| (?:to|over|rather than"
          rf"|instead of|than|more than) | (?:{_STOP}|my)\b|\s*\()", _answers),
    _rule(rf"{_BE}(?:(?:very|super|big|a|huge|massive|such|crazy|lifelong|real|quite|pretty|rather|total|proper"
          rf"|keen|avid|hardcore) ){{0,4}}(?:fond of|into|fan of|obsessed with|interested in|passionate about"
          rf"|keen on|addicted to|crazy about|mad about|lover of|hooked on|in love with) {_LIST}", _several("likes")),
    _rule(rf"(?:I can't live without|my (?:main |favourite |biggest )?(?:hobbies|hobby|interests|passion|passions"
          rf"|guilty pleasure) (?:is|are|include|includes|:)|my hobbies:|my interests:|I have a soft spot for"
          rf"|I have a (?:passion|sweet tooth) for|nothing beats|I'd never say no to) {_LIST}", _several("likes")),
    _rule(rf"{_BE}an? (?:(?:big|huge|massive|hardcore|lifelong|total|real|die-hard"
          rf"|avid) ){{0,2}}(?P<v>(?!(?:big|bigger|biggest|huge|massive|great|major|true|real|total|lifelong|avid)\b)"
          rf"[\w' ]{{2,30}}?) (?:fan|lover|enthusiast|addict|nerd|geek|buff"
          rf"|aficionado)(?=\s*$|\s*[,()]| and | but | so | btw)", _several("likes")),
    _rule(rf"(?:I|we) {_ADV}(?:don't|do not|never|can't|cannot|couldn't) {_ADV}(?:(?:like|enjoy|love|care for"
          rf"|stand|bear|liked|enjoyed)(?: the taste of| the smell of)?|tolerate) {_LIST}", _several("dislikes")),
    _rule(rf"(?:I|we) {_ADV}(?:hate|dislike|detest|despise|loathe|can't stand|am not into"
          rf"|try to avoid) (?:it )?{_LIST}", _several("dislikes")),
    _rule(rf"{_BE}not {_ADV}(?:(?:a|much of a|big|huge|the biggest|exactly a|really a) ){{0,2}}(?:fan of|into"
          rf"|fond of|keen on|crazy about|a fan of) {_LIST}",
          _several("dislikes")),
    _rule(r"(?P<v>[\w' -]{2,40}?) (?:isn't|aren't|is not|are not) (?:really )?(?:my thing|my cup of tea|for me)$",
          _several("dislikes")),
    _rule(r"(?:I|we) (?:really |just |absolutely )?(?:hate|can't stand|dislike) (?:it )?(?P<v>when (?:people"
          r"|someone|somebody|others|kids|men|women) [^\n,]{3,60})", _single("dislikes", words=10)),
    # what they have and what they are after
    _rule(rf"(?:I|we) {_ADV}own (?P<v>(?!up\b|it\b|my\b|nothing)[^\n]{{2,160}}?){_END_LIST}", _own),
    _rule(rf"(?:I|we) {_ADV}(?:drive|ride|play on|fly) (?P<v>an? [^\n,]{{2,40}}?){_END_ONE}", _owns),
    _rule(rf"(?:I|we) {_ADV}(?:have|bought|got|got myself|bought myself|just bought|just got|purchased"
          rf"|ordered myself) (?P<v>(?:an?|two|three|\d) (?:[\w'-]+ ){{0,4}}?{_THINGS}(?: (?:pro|air|max|plus"
          rf"|mini|one|\d{{1,4}}\w?)){{0,3}})(?:{_END_ONE}| that| called| named)", _owns),
    _rule(rf"my (?P<w>car|bike|laptop|phone|computer|guitar|camera|motorbike"
          rf"|motorcycle) is (?P<v>an? [^\n,]{{2,40}}?){_END_ONE}", _owns),
    _rule(rf"(?:(?:my|our) (?:(?:big|main|biggest|ultimate|current|long[- ]term|life|new|only|fitness|personal|career"
          rf"|biggest life) )?(?:goal|dream|aim|ambition|resolution|new year's resolution)(?: (?:this"
          rf"|next) year)?(?: (?:for|of) (?:this year|next year|life|the year|20\d\d))? is|my (?:goals|dreams) are"
          rf"|I dream of|I've always wanted|I aim|I hope|I'm hoping|I'm determined|I'm trying|I'm aiming) (?:to "
          rf"|of )?(?P<v>(?!be (?:back|there)|see you|hear|get (?:this|that|it|some sleep|home)|understand"
          rf"|find out|figure|fix|install|open|make (?:this|it)|say|explain|sleep|decide|remember|help"
          rf"|know)[^\n]{{4,160}}?){_END_GOAL}", _goal),
    _rule(rf"(?:I (?:really |also |just |would really |still |do |eventually |one day |someday |finally )*(?:want"
          rf"|would like|would love|plan|intend|need)|I'd (?:really )?(?:like|love)|(?:one day|someday|this year"
          rf"|next year) I (?:want|'d like|'d love|hope|will|plan)) to (?P<v>(?:eventually |finally |someday "
          rf"|one day |maybe )?(?:(?:learn|become|lose|quit|stop (?:smoking|drinking)|save|run (?:a|my)|complete"
          rf"|travel (?:to|around|the)|visit|move to|start (?:a|my|an|my own)|open (?:a|my|an)|write (?:a"
          rf"|my) (?:book|novel|phd|memoir)|publish|build (?:a|my)|buy (?:a|my|an)|get (?:fit|in shape|a phd"
          rf"|a degree|into|my|better at|promoted)|climb|hike|finish (?:a|my)|master|improve my|gain|retire|study"
          rf"|be able to|be fluent|read \d+|walk the|sail|go back to (?:school|university|uni)|graduate|speak"
          rf"|eat (?:less|more|healthier)|exercise|drink (?:less|more)|sleep (?:more|better)|win|pass"
          rf"|found)\b)[^\n]{{0,140}}?){_END_LIST}", _goal),
    _rule(rf"{_BE}(?P<v>(?:saving(?: up)?|training|preparing|studying) for (?!you|it\b|this"
          rf"|that)[^\n]{{2,100}}?){_END_LIST}", _goal),
    _rule(rf"(?:{_BE}|I {_ADV})(?:(?P<g>going to)|planning to|plan to|planning on|will be|intend to"
          rf"|going) (?P<v>(?!be (?:back|late)|sleep|bed)[^\n]{{4,160}}?){_END_LIST}", _plan),
    _rule(rf"(?:I'll|we'll) be (?P<v>(?!in touch|in bed|at work|at home|at school|waiting|thinking|asking|sleeping"
          rf"|a (?:bit|little|few))"
          rf"(?:\w{{2,14}}ing|in|at|off|away|abroad|on|an?|\d\d)\b[^\n]{{4,160}}?){_END_LIST}", _plan),
    _rule(rf"(?:{_BE}|we're )(?P<v>(?:moving|flying|travelling|traveling|getting|starting|visiting|taking"
          rf"|having|leaving|meeting|running|hosting|quitting|retiring|graduating|heading|driving|planning|giving"
          rf"|doing|attending|celebrating|changing|joining|switching|buying|selling|off|throwing|returning"
          rf"|presenting|competing|playing|seeing|organi[sz]ing|expecting)\b[^\n]{{4,160}}?){_END_LIST}", _plan),
    _rule(rf"(?:I|we) {_ADV}have (?:an? |my |the |our )?(?P<v>(?:[\w'-]+ ){{0,3}}(?:appointment|exam|interview"
          rf"|flight|meeting|trip|wedding|surgery|deadline|party|concert|marathon|race|presentation|vacation"
          rf"|holiday|test|operation|anniversary|conference|date|reservation|visit|checkup|check-up|finals"
          rf"|baby due|call)\b[^\n]{{2,100}}?){_END_LIST}",
          _plan),
    _rule(rf"(?:my|our) (?P<v>(?:[\w'-]+ ){{0,3}}(?:appointment|exam|interview|flight|trip|wedding|surgery"
          rf"|deadline|party|marathon|presentation|vacation|holiday|test|operation|anniversary|finals)\s+(?:is"
          rf"|starts|begins|will be) [^\n]{{2,80}}?){_END_LIST}", _plan),
)
# fmt: on
# fmt: off
_INTRODUCED: tuple[Rule, ...] = (
    _rule(rf"I'm (?P<v>{_NAMES})(?=\s*$|\s*[,()–—]|\s+-| and | but | from | living | based | btw| by the way"
          rf"| 👋)", _name("name")),
    _rule(r"I'm (?P<v>[a-z]{3,12})(?=,? (?:\d{2}\b|from (?!work|home)))", _name("name")),
)
# fmt: on
#: Lower-case names are only believed in somebody who has just said hello.
_GREETED: tuple[Rule, ...] = (
    *_INTRODUCED,
    _rule(r"I'm (?P<v>[a-z]{3,14})(?=\s*$|\s*,| and )", _name("name")),
    _rule(r"this is (?P<v>(?-i:[A-Z])[a-z]{2,15})$", _name("name")),
)
_NAMED = Phrase(
    r"(?:and )?(?P<p>his|her|its|their|he|she|it|they|the|)(?: ?names? (?:is|are)|(?:'s|'re| is| are)? ?(?:called"
    r"|named)) (?P<v>(?:(?:Mrs|Mr|Ms|Dr)\.? )?[\w'-]+(?:(?:, | and )[\w'-]+)*)",
    re.IGNORECASE,
)
_MENTION = Phrase(
    rf"\b(?:[Mm]y|[Oo]ur) {_RELATION_MOD}(?P<r>(?i:{_RELATION}|{_ANIMALS})),? (?P<v>[A-ZÀ-Þ][a-zà-ÿ][\w-]"
    rf"{{0,20}})(?!'s? (?!(?:and|but))|\w)"
)
_PLEASE = Phrase(
    r"^(?:(?:please|kindly|just|also|and|ok|so|hey|oh|(?:can|could|would|will) you(?: please)?|I(?:'d"
    r"| would) (?:like|love|prefer) (?:it if you|you to|for you to|if you)(?: could)?|I (?:want|need) you to"
    r"|I would appreciate if you|try to|you should|you can|you must|make sure (?:to|you)|be sure to|if you could"
    r"|it would be (?:great|nice) if you|would you mind|do me a favou?r and|when(?:ever)? (?:you (?:answer|reply"
    r"|talk to me|respond)|answering|replying|talking to me)(?: me)?,?)[\s,]+)+|,? (?:please|thanks|thank you|thx"
    r"|ok\??|okay|will you|if possible|if you can)$",
    re.IGNORECASE,
)
#: Why something is asked for, which is no part of it.
_REASON = Phrase(
    r"(?:,?\s+(?:because|cause|'cause|cuz|coz|bc|due to|since|otherwise|or else|in order to"
    r"|as (?:I|I'm|I've|my|it|it's|they|that|this|the)|so (?:that )?(?:I|I'm|I've|my|it|we))"
    r"|,\s+(?:I'm|it's|they're|it (?:helps|makes|is)|they (?:annoy|are)))(?![\w']).*$",
    re.IGNORECASE,
)
_THANKS = Phrase(
    r"(?:[\s,]+(?:please|thanks|thank you|thx|ok|okay|at all|would you|will you|if possible|if you can|k|alright|cheers"
    r"|with me|lol|haha|btw|tho|though)){1,3}$",
    re.IGNORECASE,
)
_STANDING = Phrase(
    r"\b(?:from now on(?:wards)?|from (?:here|today|this point) on(?:wards?)?|going forward|moving forward"
    r"|from here on out|in (?:the )?future|for (?:all )?(?:the )?future(?: reference| replies| answers| messages)?"
    r"|by default|permanently|from now|at all times|henceforth)\b,?",
    re.IGNORECASE,
)
_ONE_OFF = Phrase(
    r"\b(?:this time|for this|just once|this once|right now|today|tonight|this (?:answer|message|question|text"
    r"|email|one|essay|code|page|article|document|file)|the (?:following|question|text|email|word|next question)"
    r"|below|above|for a (?:sec|second|minute|moment|while))\b",
    re.IGNORECASE,
)
_REMEMBER = Phrase(
    r"(?:remember|never forget|don't forget|keep in mind|bear in mind|note|make a note|take note|note to self"
    r"|save this|memorize|memorise|store)(?:,| for (?:me|later|the future|next time)|:)*(?: (?:that"
    r"|this)(?! (?:time|day|one|guy|girl|show|movie|song|thing|moment|night|feeling|episode|game|when|is\b)):?,? ?"
    r"|: ?|(?=,? (?:I|I'm|I've|my|our|we)\b(?! (?:said|told|asked))),? ?)",
    re.IGNORECASE,
)


def _boundary(groups: dict[str, str], _today: date) -> list[Pair]:
    values = [
        _trim(part) for part in re.split(r"\s+or\s+|\s*,\s*(?:or |and )?", re.sub(r"^(?:my|the) ", "", groups["v"]))
    ]
    return [
        Pair("boundary", value)
        for value in values
        if value
        and not re.search(r"\b(?:it|this|that|you|them|him|her|something|anything|to anyone|now|me)\b", value, re.I)
        and len(value.split()) <= 7
    ]


# fmt: off
_REQUESTS: tuple[Rule, ...] = (
    _rule(r"(?:just |only )?call me (?:just )?(?P<v>(?!sometime|soon|when|if|later|back|tomorrow|at|on|a |an "
          r"|maybe|crazy|old|asap|in |today|tonight|after|before|anytime|by |whatever|stupid|out|names|again|your"
          r"|every)[^\n,]{1,30}?)" + _END_ONE, _name("called")),
    _rule(r"(?:address|refer to) me (?:as|by) (?:my nickname,? )?" + _ONE, _name("called")),
    _rule(r"(?:don't|never|stop|avoid|quit|no|let's not|let's never|I don't (?:want|like"
          r"|wish) (?:you )?to(?: ever)?|I'd rather (?:not|you didn't)|I'd prefer (?:not to|you didn't"
          r"|if we didn't)|I refuse to|you (?:shouldn't|can't|mustn't)|I'd appreciate if you didn't"
          r"|I hate (?:talking|when you (?:talk|ask|joke))|I'm not comfortable|I feel uncomfortable"
          r"|I don't feel comfortable) (?:ever |please |again |even |to )?(?:talk(?:ing)? (?:to me "
          r"|with me )?(?:about|of)|mention(?:ing)?|bring(?:ing)? up|discuss(?:ing)?|ask(?:ing)? (?:me )?(?:about"
          r"|anything about|questions about)|joke about|joking about|jokes about|mak(?:e|ing) (?:any )?(?:jokes"
          r"|fun) (?:about|of)|speak(?:ing)? (?:to me )?(?:about|of)|start(?:ing)? (?:on )?about"
          r"|remind(?:ing)? me (?:of|about)|giv(?:e|ing) me (?:any )?(?:advice|tips) (?:on|about)"
          r"|comment(?:ing)? on|tell(?:ing)? me (?:about|anything about)|recommend(?:ing)? (?:me )?"
          r"|suggest(?:ing)? (?:me )?|touch(?:ing)? on|talk(?:ing)?)(?<!talk)(?<!talking) (?:anything (?:about"
          r"|related to) |the topic of |the subject of )?(?P<v>[^\n]{2,80}?)(?: (?:to me|with me|anymore|any more"
          r"|again|ever|ever again|around me|at all|in front of me))*" + _END_LIST, _boundary),
    _rule(r"(?P<v>[\w' ]{2,40}?) (?:is|are) (?:strictly |totally |completely )?(?:off[- ]limits|a (?:taboo"
          r"|sensitive|no-go|touchy|sore) (?:topic|subject|point)|a no-go|taboo|a trigger(?: for me)?"
          r"|something I don't (?:want to )?(?:talk about|discuss))",
          _boundary),
    _rule(r"no (?:more )?(?P<v>spoilers?|politics|religion)$", _boundary),
    _rule(r"no (?P<v>[\w' ]{2,30}?) (?:talk|topics|jokes|spoilers)(?: please)?$",
          _boundary),
    _rule(r"(?:avoid|stay away from|steer clear of|keep away from) (?:the |any )?(?:(?:topic|topics|subject"
          r"|subjects|mention|mentions) (?:of|like|about) |talk(?:ing)? about |discussing |mentioning "
          r"|bringing up )(?P<v>[^\n]{2,60}?)" + _END_LIST, _boundary),
)
# fmt: on
_ORDER = Phrase(
    r"(?P<always>(?:always|never|every time|each time|no matter what|whenever I \w+(?: \w+){0,3},?"
    r"|when I \w+(?: \w+){0,4},) )?(?:please )?(?:do not |don't (?:ever )?|stop |avoid |quit "
    r"|no (?:more )?(?=emojis?|emoticons|exclamation|slang|jargon|small talk|swearing|jokes|bullet|markdown|long"
    r"|lists|fluff|filler|disclaimers|apologies|spoilers|need))?(?:just |only )?(?:answer|reply|respond|write"
    r"|speak|talk|text|chat|use|using|explain|explaining|give|giving|include|including|keep|start|starting|end"
    r"|ending|begin|finish|greet|greeting|sign|add|adding|send|sending|show|ask|asking|remind|summari[sz]e|format"
    r"|put|say|saying|convert|cite|skip|stick to|switch to|be|being|calling|address|treat|assume|apologi[sz]e"
    r"|apologi[sz]ing|repeat|repeating|lecture|lecturing|swear|swearing|spell|list|provide|suggest|recommend|check"
    r"|tell|double[- ]check|address|call me by|wake|quote|mix|emojis?|emoticons|exclamation|slang|jargon"
    r"|small talk|jokes|bullet|markdown|long|lists|fluff|filler|disclaimers|apologies|spoilers)\b",
    re.IGNORECASE,
)
_NOT_ORDERS = Phrase(
    r"\b(?:be (?:yourself|there|kind to|happy|careful|back|good|strong|safe|afraid|sad|silly|so sure|right"
    r"|like that|okay|ok|mad|scared|a stranger|my|with)|say never|give up|give you|start over|keep (?:going|calm"
    r"|in touch|up|it up|trying|the change)|use protection|talk to strangers|tell anyone|end up|speak too soon"
    r"|check out|put off|be worried|tell me (?:the|a|about|why|what|how)|ask me (?:why|how|what))\b",
    re.IGNORECASE,
)
_STYLE = Phrase(
    rf"(?:(?:answer|reply|respond|write|speak|talk|text|chat)(?:ing)?(?: to me| me| back| with me)?(?: only"
    rf"| always| just)? (?:in|using|with) (?:{_LANGUAGES}|bullets?|bullet points|short|simple|plain|full|one|a"
    rf"|british|american|lower ?case|fewer|less|more|metric|prose|haiku|rhymes?|english)|(?:speak|talk"
    rf"|write) to me (?:like|as)|(?:speak|talk|use|write|switch to"
    rf"|stick to) (?:only )?(?:{_LANGUAGES})\b(?! (?:word|for)s?)|keep (?:it|things|your (?:answers?|replies"
    rf"|responses|messages|explanations)|answers|replies|responses|messages|explanations"
    rf"|everything) (?:\w+ )?(?:short|brief|simple|concise|casual|formal|light|to the point|under|below"
    rf"|professional|clear|friendly|minimal|sweet)"
    r"|be (?:more |less |very |a bit |a little |really |super |brutally |as )*(?:brief|concise|short|honest|direct"
    r"|polite|formal|informal|casual|friendly|blunt|precise|specific|clear|to the point|gentle|patient|funny"
    r"|straightforward|sarcastic|critical|detailed|verbose|wordy|chatty|serious)\b|(?:don't|do not|stop|avoid|quit"
    r"|no|no more) (?:ever )?(?:(?:use|using|send|sending|add|adding|write|writing|put|include"
    r"|including) )?(?:any |so many |too many |more )?(?:emojis?|emoticons|exclamation (?:marks|points)|slang"
    r"|jargon|small talk|swearing|swear words|bullet points|bullets|markdown|long (?:answers|replies|messages"
    r"|texts|explanations)|lists|tables|fluff|filler|disclaimers|apologies|abbreviations|all caps|caps)|(?:don't"
    r"|do not|stop|quit) (?:be|being|calling me|call me|apologi[sz]e|apologi[sz]ing|repeat|repeating|lecture"
    r"|lecturing|swear|swearing|ask|asking|explain|explaining|say|saying|start|starting|end|ending|sugarcoat"
    r"|sugar-coat|give|giving|remind|use|using)\b|use (?:only |more |fewer |less |the )?(?:metric|imperial|celsius"
    r"|fahrenheit|kilomet|kg|km|24|simple|plain|short|informal|formal|british|american|uk|us|emojis|bullet"
    r"|first name|my (?:first |nick)?name|they|he|she|markdown|simpler|lower|everyday|polite)\b|(?:address|greet"
    r"|treat) me\b|explain (?:things|everything|stuff) |give (?:me )?(?:short|brief|concise|detailed|direct"
    r"|examples|shorter|honest)|skip the (?:intro|small talk|pleasantries|disclaimers|fluff)|short answers)",
    re.IGNORECASE,
)
