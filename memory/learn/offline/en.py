"""English clauses: the cutting of a sentence, its refusals, and the rules that read it.

Invariants: pure; a question, a doubt, a condition or another person's words silence their clause and its dependents;
a name is only believed if it is spelled like one, follows a greeting, or stands beside the person who bears it.

One rule reads one relation. Its pattern is made of slots (`@I`, `@END`), which define once the beginning of a subject
with its adverbs, the end of a value, and the form of a place or a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import partial

from memory.keys import RELATIONS, normalise_key
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
    fact,
    longest_first,
    one_of,
    still_nameless,
    strip_signs,
    tell,
    with_name,
)
from memory.text.times.spans import anchor, dated


def pairs(sentence: str, context: EarlierClauses) -> Iterator[Pair]:
    """Reads the clauses of a sentence that are neither asked, doubted, reported nor supposed."""
    asked = ("?" in sentence[-6:] or "？" in sentence[-6:]) and not sentence.endswith((" ok?", " okay?", " k?"))
    text = _SHORT_FORMS.sub(_long_form, sentence.replace("’", "'").strip(" .!?！？。；;…~\n"))
    if text.isupper() and len(text) > 12:
        text = text.lower().replace("i'm", "I'm")  # capitals throughout hide the names
    context.greeted = context.greeted or _GREETING.match(text) is not None
    answer, context.answer = context.answer, _answered_as(text) if asked else ""
    if not asked and answer and (short := _ANSWER.fullmatch(text)):
        yield from _clause(f"{answer} {short['v']}", context)
    elif not asked and (wish := _WHENEVER.match(_bare(text))):
        yield Pair("instruction", _polite(_STANDING.sub("", wish["v"])))
    elif not _SAID_AFTER.search(text):  # "I live in Rome, says Bob"
        yield from _stated(_straightened(text), context, asked=asked)


def _stated(text: str, context: EarlierClauses, *, asked: bool) -> Iterator[Pair]:
    """Reads the clauses of a straightened sentence."""
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
            reported = _REPORTED.search(said)
            if reported and not poisoned and not asked:  # "my boss Karen thinks I'm lazy"
                yield from _mentions(said[: reported.end()])
            spread = reported is not None or _POISON.search(said) is not None
            doubted = _DOUBT.search(said) is not None
            refused, poisoned = refused or spread or doubted, poisoned or spread
            if number >= asked_from and (polite := _POLITE.match(bare)):
                yield from _requests(bare[polite.end() :], context)
            elif not refused and bare:
                yield from _clause(bare, context)
            elif doubted and not poisoned and number < asked_from:
                yield from _mentions(said)  # "my son Rui is almost 7"
            if refused:
                # A denial may be followed by what holds: "not in Leeds any more, moved to York".
                context.carried = None if doubted and not spread else False


def _asked_from(segments: list[str]) -> int:
    """Returns the place from which segments only ask: "I'm vegan, what can I eat?" states first."""
    return len(segments) - 1 if len(segments) > 1 and _QUESTION.match(_bare(segments[-1])) else 0


def _straightened(text: str) -> str:
    """Returns a sentence without asides, in which every statement begins with its subject."""
    for pattern, by in _REWRITES:
        text = pattern.sub(by, text)
    if _OF_WORK.search(text):
        text = _AT_WORK.sub("I work ", text)
    return _DATE_FIRST.sub(lambda match: f"{match[2]} {match[1][0].lower()}{match[1][1:]}", text)


def _long_form(match: re.Match[str]) -> str:
    return _LONG_FORMS[match.group().lower()]


def _bare(clause: str) -> str:
    """Returns a clause without its openings: "oh and by the way, I'm …" → "I'm …"."""
    clause = clause.strip(" ,-–—:()")
    for _ in range(8):
        match = _OPENING.match(clause)
        if not match:
            break
        clause = clause[match.end() :].lstrip(" ,-–—:()")
    return clause


def _clause(clause: str, context: EarlierClauses) -> Iterator[Pair]:
    """Reads one clause and its continuations."""
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
        if not _SUBJECT.match(clause) and (context.carried or (context.carried is None and _ALONE.match(clause))):
            forms += [f"I {clause}", f"I'm {clause}", f"I have {clause}"]
        for form in forms:
            applied = apply(_RULES, form, context.today)
            if not applied and form is clause:  # a name is only believed if "I'm" was really said
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


def _named(named: re.Match[str], context: EarlierClauses) -> Iterator[Pair]:
    """Yields the name of the last clause's subject; nothing if that is unclear or "his" and "her" don't fit."""
    nameless, context.nameless = context.nameless, None
    if nameless and _SEX.get(nameless.key) in {None, _SEX_OF_PRONOUN.get(named["p"].lower(), _SEX.get(nameless.key))}:
        for name in _names(named["v"]):
            if not context.stranger or name[0].isupper():  # "my sister is loud, her name is mud"
                yield with_name(nameless, name)


def _look_around(clause: str, context: EarlierClauses) -> None:
    """Returns whether a clause without facts may be followed by a name: "I visited my sister, her …"."""
    others = list(_SOMEBODY.finditer(clause))
    context.stranger = bool(others)
    if len(others) == 1 and (relation := others[0]["r"]):
        context.nameless = Pair(_RELATIONS[relation.lower()], "", unnamed=True)


def _answered_as(question: str) -> str:
    """Returns the beginning of the statement that answers "favourite colour?"; empty for any other question."""
    match = _ASKED_OF_SELF.fullmatch(question)
    return f"my {match['k']} is" if match else ""


def _mentions(clause: str) -> Iterator[Pair]:
    """Yields relatives and pets named in passing: "visiting my sister Ana"; in small letters only if likely names."""
    for match in _MENTION.finditer(clause):
        who = match["r"].lower()
        key = _RELATIONS.get(who)
        if match["v"] or who in _CLOSE or not key:
            for name in _names(match["v"] or match["w"]):
                yield Pair(key, name) if key else Pair("pet", f"{who} {name}")


def _requests(clause: str, context: EarlierClauses) -> Iterator[Pair]:
    """Yields standing requests: names to use, topics to avoid, manners of answering, things to remember."""
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
    order = _ORDER.match(clause)
    if order and not _NOT_ORDERS.search(clause):
        always = standing or order["always"] or (order["no"] and _FOR_EVER.search(clause))
        if always or (_STYLE.match(clause) and not context.tasked and ":" not in clause):
            yield Pair("instruction", _polite(clause))


def _polite(request: str) -> str:
    """Returns a request without its reason and its thanks."""
    return _THANKS.sub("", _REASON.sub("", request.strip(" ,"))).strip(" ,.!~-:;")


# ------------------------------------------------------------------------------------------------ words
_TONGUES = (
    "portuguese spanish french german italian english welsh irish dutch polish czech slovak hungarian romanian "
    "bulgarian greek turkish croatian serbian bosnian slovenian ukrainian russian norwegian swedish danish finnish "
    "icelandic estonian latvian lithuanian chinese japanese korean nepali thai vietnamese indonesian filipino persian "
    "catalan basque galician georgian armenian albanian"
)
_LANGUAGES = one_of(
    f"brazilian_portuguese {_TONGUES} mandarin_chinese mandarin cantonese hindi urdu bengali punjabi tamil telugu "
    f"malay "
    "tagalog arabic hebrew farsi swahili yoruba igbo twi amharic afrikaans gaelic esperanto latin hokkien hakka "
    "sign_language asl bsl"
)
_NATIONS = one_of(
    f"{_TONGUES} british scottish american canadian mexican brazilian argentinian argentine chilean peruvian colombian "
    "venezuelan cuban belgian swiss austrian slovene belarusian south_korean taiwanese indian pakistani bangladeshi "
    "malaysian singaporean filipina australian new_zealander kiwi aussie egyptian moroccan tunisian algerian nigerian "
    "kenyan ghanaian ethiopian south_african israeli lebanese syrian iranian iraqi saudi afghan puerto_rican brit scot "
    "spaniard dane swede finn pole turk cypriot maltese"
)
#: Jobs that are not known by their ending, as most are; the words below end like a job and are none.
_IRREGULAR_JOBS = one_of(
    "nurse surgeon vet physio gp midwife principal professor_of_\\w+ dev devops sysadmin admin scientist analyst "
    "consultant accountant assistant attendant ceo cto cfo clerk chef cook dj freelance_\\w+ [\\w-]+man [\\w-]+woman "
    "police_officer pilot judge agent actress waitress nanny secretary civil_servant social_worker priest architect "
    "coach mechanic paramedic apprentice intern trainee au_pair student undergrad undergraduate postdoc homemaker "
    "housewife stay-at-home_(?:mom|dad|mum) babysitter coder qa realtor diplomat sommelier youtuber handyman "
    "technologist specialist strategist guide guard detective captain retiree pensioner auditor actuary notary "
    "hygienist tradie sparky mason barista dietitian tailor critic"
)
_NOT_WORKERS = (
    r"(?:begin|believ|los|lov|win|gam|hat|foreign|strang|newcom|lon|sinn|dream|think|overthink|read|listen|learn|talk"
    r"|eat|drink|smok|sleep|ris|walk|runn|hik|swimm|play|us|custom|memb|outsid|insid|numb|suck|moth|fath|broth|prison"
    r"|teenag|own|support|follow|subscrib|travell?|backpack|keep|quitt|hoard|lurk|worri|complain|struggl|fight|adopt"
    r"|leav|bett|wint|summ|disast|hamst|danc|corn|bor|oth|rath|nev|ev|aft|lat|und|ov|collect|procrastinat|surviv|min"
    r"|juni|seni|bachel|vict|err|col|be|de|care|volunte|pe|que|canc|york|london)n?(?:er|or)|sister|daughter|liar"
    r"|christian|\w+tarian|(?:optim|pessim|femin|perfection|minimal|real|rac|commun|athe|social|capital|national|buddh"
    r"|tao|tour|narciss|ego|activ|extrem|guitar|pian|cycl)ist|parisian"
)
_JOB = (
    rf"(?:{_IRREGULAR_JOBS}|(?!{_NOT_WORKERS}\b)(?!{_NATIONS}\b)[a-z-]{{2,18}}(?:er|or|ist|ian|smith|wright))(?![\w-])"
)
_NOT_JOB = Phrase(
    r"\b(?:terrible|bad|awful|good|great|horrible|decent|amazing|natural|real|true|fake|wannabe|lousy|nervous|slow|fast"
    r"|careful|safe|fan|bit|little|control|happy|proud|pet|dog|cat|car|secret|kind of|type|huge|better|worse|former|ex"
    r"|excellent|mean|passable|heavy|hopeless|not|your|own|my|free|early|late|light|morning|picky|big|total|super|lot"
    r"|first-time|complete|right|nervous|disaster|further|no|than|frequent)\b",
    re.IGNORECASE,
)
_FIELDS = one_of(
    "marketing finance it sales hr human_resources tech health_?care education logistics insurance advertising "
    "construction hospitality retail real_estate accounting consulting banking engineering publishing manufacturing "
    "cybersecurity customer_(?:service|support|care) journalism fashion media law agriculture research biotech pharma "
    "public_relations social_work theatre television film radio aviation telecoms software(?:_development)? "
    "web_development data_science game_development (?:\\w+_)?design catering tourism procurement childcare admin "
    "security"
)
_CONDITIONS = (
    r"(?:(?:type (?:1|2|one|two|i|ii) )?diabetes|asthma|adhd|add|autism|asperger'?s|epilepsy|dys(?:lexia|calculia"
    r"|praxia)|depression|(?:social )?anxiety|an anxiety disorder|ocd|ptsd|bipolar(?: disorder)?|migraines?|chronic \w+"
    r"(?: \w+)?|(?:high|low) blood (?:pressure|sugar)|high cholesterol|hypertension|crohn'?s|ibs|gerd|acid reflux"
    r"|insomnia|sleep apn(?:o)?ea|tinnitus|eczema|psoriasis|rosacea|hay ?fever|lupus|pcos|cancer|an(?:a)?emia"
    r"|parkinson'?s|ms|gout|glaucoma|vertigo|a heart condition|a pacemaker|hiv|hepatitis [abc]|sciatica|tourette'?s"
    r"|hearing loss|colou?r ?blindness|a (?:bad|weak|dodgy|slipped) (?:back|knee|hip|heart|shoulder|disc)|bad knees"
    r"|coeliac|celiac|(?!this\b|that\b|it\b)(?:[\w']+ ){1,2}(?:disease|syndrome|disorder|intolerance|deficiency|apnea"
    r"|murmur)|\w{3,}(?:itis|osis|algia|emia|pathy|phobia|thyroidism|lepsy))"
)
_AILING = {
    "diabetic": "diabetes", "asthmatic": "asthma", "epileptic": "epilepsy", "dyslexic": "dyslexia",
    "autistic": "autism", "bipolar": "bipolar disorder", "celiac": "celiac disease", "coeliac": "coeliac disease",
    "anemic": "anemia", "anaemic": "anaemia", "arthritic": "arthritis",
}  # fmt: skip
_DIETS = (
    r"(?:vegetarian|veggie|vegan|pesc[ae]tarian|flexitarian|gluten[- ]free|dairy[- ]free|keto|paleo|halal|kosher"
    r"|low[- ]carb|sugar[- ]free|plant[- ]based|fruitarian|carnivore|low[- ]fodmap|teetotal)"
)
_ANIMALS = one_of(
    "dog puppy pup doggo cat kitten kitty rabbit bunny hamster guinea_pig parrot budgie parakeet cockatiel bird fish "
    "goldfish turtle tortoise snake lizard gecko horse pony chicken hen rat mouse ferret hedgehog axolotl canary duck "
    "goat pig chinchilla gerbil iguana retriever labrador lab corgi poodle beagle husky dachshund chihuahua bulldog "
    "pug shepherd terrier spaniel collie greyhound tabby siamese maine_coon ragdoll donkey alpaca cow sheep tarantula "
    "frog"
)
_THINGS = one_of(
    "car bike bicycle motorbike motorcycle scooter e-bike house flat apartment condo cabin cottage boat sailboat van "
    "camper_?van truck laptop computer pc macbook imac ipad iphone smartphone android tablet kindle guitar piano "
    "keyboard violin cello drum_kit ukulele flute saxophone camera drone telescope (?:3d_)?printer server nas "
    "raspberry_pi ps\\d playstation xbox (?:nintendo_)?switch steam_deck tv sewing_machine greenhouse allotment tesla "
    "bmw volvo toyota honda ford vw volkswagen audi fiat skoda thinkpad pixel canon nikon kayak canoe surfboard "
    "snowboard skateboard turntable synth monitor (?:espresso|coffee)_machine air_fryer bakery shop restaurant farm "
    "vineyard watch"
)
_PASTIMES = one_of(
    "aikido karate judo yoga pilates boxing kickboxing ballet gymnastics crossfit jiu-?jitsu taekwondo parkour archery "
    "pottery ceramics woodworking calligraphy origami stand-?up improv theatre triathlons bouldering climbing "
    "(?:[a-z]+)?(?:running|cycling|swimming|hiking|surfing|skiing|sailing|fishing|rowing|diving|dancing|birding)"
)
_RELATIONS = by_word(
    {
        "wife": "wife",
                "husband": "husband hubby",
                                   "partner": "partner spouse",
                                                               "fiance": "fiance fiancé fiancee fiancée",
        "girlfriend": "girlfriend gf", "boyfriend": "boyfriend bf", "mother": "mother mom mum mama",
        "father": "father dad papa", "sister": "sister sis sisters", "brother": "brother bro brothers",
        "sibling": "sibling siblings", "son": "son sons", "daughter": "daughter daughters",
        "child": "kid kids child children toddler baby little_one", "grandmother": "grandmother grandma granny nan",
        "grandfather": "grandfather grandpa grandad granddad", "grandson": "grandson",
        "granddaughter": "granddaughter", "aunt": "aunt auntie", "uncle": "uncle", "cousin": "cousin",
        "nephew": "nephew", "niece": "niece", "mother-in-law": "mother-in-law", "father-in-law": "father-in-law",
        "sister-in-law": "sister-in-law", "brother-in-law": "brother-in-law", "stepson": "stepson",
        "stepdaughter": "stepdaughter", "stepfather": "stepfather stepdad", "stepmother": "stepmother stepmum stepmom",
        "friend": "friend friends mate pal buddy bestie bff", "roommate": "roommate flatmate housemate",
        "neighbour": "neighbour neighbor", "boss": "boss", "manager": "manager team_lead", "supervisor": "supervisor",
        "colleague": "colleague coworker co-worker", "teacher": "teacher", "doctor": "doctor",
        "therapist": "therapist", "dentist": "dentist", "mentor": "mentor", "twin": "twin",
    }
)  # fmt: skip
#: Relatives whose name may be written small: a word in small letters after "my boss" or "my doctor" is rarely a name.
_CLOSE = frozenset(
    {
        "wife", "husband", "hubby", "girlfriend", "gf", "boyfriend", "bf", "fiance", "fiancee", "sister", "brother",
        "son", "daughter", "nephew", "niece", "cousin", "roommate", "flatmate", "mate", "bestie",
    }
)  # fmt: skip
NOT_NAMES = Phrase(
    r"(?:i|i'm|is|has|was|and|or|the|an?|my|me|we|he|she|they|it|you|ok|okay|not|no|yes|yeah|so|in|on|at|from|sorry"
    r"|here|there|back|home|sure|done|good|fine|great|well|sick|tired|happy|sad|angry|late|free|ready|hungry|single"
    r"|married|divorced|engaged|pregnant|gay|straight|bi|trans|male|female|old|young|new|lost|just|also|very|never|now"
    r"|today|tomorrow|\w+day|january|february|march|july|august|september|october|november|december|christian|catholic"
    r"|muslim|jewish|buddhist|hindu|sikh|atheist|ceo|cto|cfo|vp|hr|ai|bot|human|team|mom|mum|dad|father|mother|sir|dude"
    r"|bro|man|woman|guy|girl|boy|kid|adult|vegan|diabetic|allergic|deaf|blind|like|all|too|that|this|what|who|why|how"
    r"|when|where|retired|unemployed|native|half|batman|superman|spiderman|groot|spartacus|ishmael|god|jesus|santa"
    r"|using|about|\w+verts?|both|please|dr)",
    re.IGNORECASE,
)
#: Words in small letters that stand where a name might: "hi im stuck", "my sister just left".
_NO_SMALL_NAME = Phrase(
    r"(?:h?ere|ill|mad|down|cold|hot|alive|dead|tall|short|fat|thin|stuck|afraid|alone|anxious|nervous|glad|proud|broke"
    r"|rich|poor|out|off|up|away|super|quite|still|always|then|tonight|weird|insane|serious|wrong|right|true|confident"
    r"|certain|aware|a?live|able|unable|welcome|gonna|over|under|into|for|with|without|near|once|some\w+|no\w*body"
    r"|every\w+|any\w+|\w+thing|better|worse|best|fluent|born|lactose|colou?r|sober|jealous|upset|secret|unknown"
    r"|private|awake|asleep|online|offline|again|does|did|had|can|will|would|could|might|may|should|must|if|as|but"
    r"|because|only|even|really|ever|soon|ago|left|got|lol|haha\w*|x+|bc|tho|rn|atm|made|said|went|came|gave|took|told"
    r"|ate|threw|won|beat|sent|by|of|to|since|until|around|together|zone|request|group|house|party|circle|food|bed"
    r"|toys?|litter|walker|sitter|tree|breeder|park|hair|person|people|curious|full|busy|sleepy|thirsty|lonely|lazy"
    r"|crazy|angry|sorry|silly|[a-z]{3,}(?:ing|ed|ly|ful|less|ous|ish|ible|able|ant)|[a-z]{4,}s)"
)

# ------------------------------------------------------------------------------------------------ slots
_STOP = (
    r"but|so|because|bc|cuz|cause|coz|since|though|although|while|when|whenever|if|which|who|where|whereas|unless"
    r"|except|even|as (?:well|I|my)|ever since|and (?:I|I'm|I've|my|we|it|he|she|they|you|that|then|so|would|could|can"
    r"|can't|don't|am|have|live|living|work|working|speak|love|like|hate|prefer|enjoy|also|want|come|study|grew|moved"
    r"|is|was|our|never|always|please|just|now|currently|looking)|I|I'm|I've"
)
_SLOTS = {
    "STOP": _STOP,
    "ADV": r"(?:(?:also|really|just|do|actually|totally|absolutely|genuinely|always|still|honestly|truly|very much"
    r"|especially|personally|mostly|usually|currently|now|already|quite|kinda|particularly|sometimes|simply|only"
    r"|finally|definitely|secretly|both|at all|all|recently|so|fully|deeply|basically|often|regularly|originally"
    r"|have|been) ){0,3}",
    "I": r"(?:I|we) @ADV",
    "BE": r"(?:I'm|we're) @ADV",
    "NOT": r"(?:don't|do not|never|can't|cannot|couldn't|didn't|not)",
    "DEGREE": r"(?:(?:severe|deadly|bad|serious|mild|terrible|strong|slight|nasty|life-threatening|chronic|really"
    r"|pretty|very|occasional|frequent|constant|deathly|super|highly|mildly|severely|terribly|slightly|badly"
    r"|extremely|a bit|also|insanely|violently|hella|awful|regular|a) ){0,3}",
    # "I love tea my sister hates it" ends before "my"; "running my own studio" and "trends for my store" go on.
    "ENDS": rf"(?=\s*$|\s*[()\[\]–—:]|,? (?:{_STOP}|at all|after all)(?![\w'])|(?<!ing)(?<! for)(?<! of)(?<! with)(?<! "
    rf"in)(?<! to)"
    r"(?<! on)(?<! at) my(?![\w'])|, (?:and )?(?:I|I'm|my|please|especially|particularly|mainly|most of all)(?![\w']))",
    "END": rf"(?=\s*$|\s*[,()\[\]–—:]|\s+-|\s*/| (?:{_STOP}|my|and|with|for|at|on|off|near|from|living|based|working|as"
    r"|now|right now|currently|rn|these days|at the moment|atm|too|btw|by the way|lol|haha|already|again|right|here|by"
    r"|until|till|please|thanks|tbh|actually|originally|born|studying|looking|after|in|this|last|next|together|alone"
    r"|doing|like|all|back|about|nearly|almost|just|out|(?:\d+|an?|one|two|three|four|five|six|ten|a few|several|a "
    r"couple of) (?:year|yr|month|week|day)s?)(?![\w']))",
    # A goal runs on over "my" and "it": "finish my thesis".
    "GOAL": r"(?=\s*$|\s*[()\[\]–—:]|,? (?:but|so|because|bc|cuz|cause|since|although|though|while|which|if|and (?:I"
    r"|I'm|I've|we|he|she|they|you|that|then|so|live|work|have|my))(?![\w'])|, (?:and )?(?:I|I'm|my|please"
    r"|hopefully|wish|any|the|there|so)(?![\w']))",
    "LIST": r"(?P<v>[^\n]{1,300}?)@ENDS",
    "ONE": r"(?P<v>[^\n,]{1,80}?)@END",
    "ORG": r"(?P<e>[^\n,]{2,50}?)@END",
    # "A chef with an allergy" works for nobody by that name.
    # A person who works "in Bremen" has an employer there, one "in a bank" has that employer.
    "AT": r"(?: (?:at|for|in(?= (?:an?|the|our|my)\b)|with(?! an? (?!(?:[\w-]+ ){0,2}"
    r"(?:startup|company|firm|agency|bank|charity)\b))) @ORG"
    r"| in (?!an?\b|the\b|our\b|my\b)[\w' -]{2,40}?@END|@END)",
    "IN": r"(?!(?:my|your|our|his|her|their|this|that|some|one)\b)(?P<v>(?:an? (?:\w+ ){0,3}(?:village|town|city|suburb"
    r"|island|farm) (?:near|outside|in|of|on) |(?!an? ))[^\n,]{2,60}?(?:, ?(?:(?-i:[A-Z]{2})|(?-i:[A-Z])\w+"
    r"(?=$)))?)@END",
    "NAMES": r"(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}(?: (?:(?-i:[A-ZÀ-Þ])[\w'.\-]{0,24}|de|da|van|von|del|la|bin|al))*",
    "NAME": r"(?-i:[A-ZÀ-Þ])[\w'\-]{1,24}(?: (?-i:[A-ZÀ-Þ])[\w'\-]{1,24})?",
    "LANGUAGE": _LANGUAGES,
    "NATION": _NATIONS,
    "JOB": _JOB,
    "CONDITION": _CONDITIONS,
    "DIET": _DIETS,
    "ANIMAL": _ANIMALS,
    "THING": _THINGS,
    "MOD": r"(?:(?:older|elder|big|little|small|younger|youngest|oldest|eldest|baby|twin|half|step|late|best|new|only"
    r"|middle|dear|lovely|beloved|line|current|work|closest|good|\d{1,2}[- ]year[- ]old)[- ])?",
    "RELATION": longest_first(_RELATIONS),
    "AGE": r"(?P<v>\d{1,3}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five"
    r"|six|seven|eight|nine))?|(?:thir|four|fif|six|seven|eigh|nine)teen)",
    "DAY": r"(?P<v>(?:the )?\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:[a-z]{3,9})(?:,? \d{4})?|[a-z]{3,9}\.? (?:the )?\d{1,2}"
    r"(?:st|nd|rd|th)?(?:,? \d{4})?|\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?|today|tomorrow)"
    r"(?!\w)",
}


def _phrase(pattern: str) -> Phrase:
    return Phrase(pattern, re.IGNORECASE, _SLOTS)


def _rule(read: Read, pattern: str) -> Rule:
    return Rule(_phrase(pattern), read)


# ------------------------------------------------------------------------------------------------ sentences
_LONG_FORMS = {
    "i": "I", "im": "I'm", "i'm": "I'm", "i m": "I'm", "i am": "I'm", "iam": "I'm", "ive": "I've", "i've": "I've",
    "i have": "I have", "i'd": "I'd", "i'll": "I'll", "we are": "we're", "we will": "we'll", "i will": "I'll",
    "hes": "he's", "shes": "she's", "its": "it's", "names": "names", "i've got": "I have", "ive got": "I have",
    "i have got": "I have", "we've got": "we have", "weve got": "we have", "i'm called": "my name is",
    "im called": "my name is", "i am called": "my name is", "name's": "name is", "dont": "don't", "do not": "don't",
    "doesnt": "doesn't", "havent": "haven't", "w/": "with", "cant": "can't", "cannot": "can't", "isnt": "isn't",
    "arent": "aren't", "wanna": "want to", "gonna": "going to", "u": "you", "ur": "your", "pls": "please",
    "plz": "please", "tmrw": "tomorrow", "n": "and", "fav": "favourite", "fave": "favourite", "favs": "favourite",
    "favorite": "favourite", "favorit": "favourite", "favourit": "favourite", "favrite": "favourite",
    "bday": "birthday", "b-day": "birthday", "birthday's": "birthday is", "birthdays": "birthday is",
    "birtday": "birthday", "alergic": "allergic", "allergick": "allergic", "alergy": "allergy",
    "vegitarian": "vegetarian", "vegeterian": "vegetarian", "intollerant": "intolerant", "actualy": "actually",
    "originaly": "originally", "curently": "currently", "freind": "friend", "girlfreind": "girlfriend",
    "sophmore": "sophomore", "definately": "definitely", "realy": "really", "beleive": "believe",
    "any more": "anymore", "no more": "no more", "a fan": "a fan",
}  # fmt: skip
_SHORT_FORMS = Phrase(rf"(?<![\w']){longest_first(_LONG_FORMS)}(?![\w'])", re.IGNORECASE)
#: Another person's words without quotes: "he said I live in Rome".
_REPORTED = Phrase(
    r"\b(?:he|she|they|you|who|everyone|everybody|people|someone|somebody|nobody|mom|mum|dad|boss|friends?|sister"
    r"|doctor|brother|wife|husband|neighbou?r|teacher|(?!I\b)[A-Z][a-z]+|guy|girl|man|woman|kid|it|ad|sign|bot|book"
    r"|song|horoscope) (?:just |always |once |also |then )?(?:said|says|say(?! )|asked|asks|wrote|writes|replied|told"
    r"|tells|thinks?|thought|claims?|claimed|believes?|sings?|sang|goes(?! to\b)|texted|swears|keeps saying)\b"
)
_SAID_AFTER = Phrase(r", (?:said|says) \w+")
#: Wrappings that are taken off a statement, and forms that are changed into those the rules know.
_REWRITES: tuple[tuple[Phrase, str], ...] = (
    (Phrase(r"\b(I|[Ww]e)'ve (?=(?:an?|one|two|three|four|five|\d) )"), r"\1 have "),
    (Phrase(r"\b(I|[Ww]e)'ve (?:been )?liv(?:ed|ing)(?= .*\b(?:for|since|all my|\d+ y)\b)"), r"\1 live"),
    (Phrase(r"\b(I|[Ww]e)'ve (?:been )?work(?:ed|ing)(?= .*\b(?:for|since|all my|\d+ y)\b)"), r"\1 work"),
    (Phrase(r"\bI've been (?=(?:\w+ ){0,3}?(?:\w+ing|based|diagnosed|vegan|vegetarian|obsessed|allergic)\b)"), "I'm "),
    (Phrase(r"\b(I|[Ww]e)'ve (?=(?:just |recently |finally |already |now |always |never )*(?!been)\w+)"), r"\1 "),
    (Phrase(r"\s?\(\d{1,2}\)|, \d{1,2} and \d{1,2}$"), ""),  # "Emma (8) and Noah (5)"
    # A doctor's diagnosis counts as a statement.
    (Phrase(r"(?i)(?:\b(?:the|my) )?\b(?:doc|doctor|gp|dr|dermatologist|neurologist)s? (?:says?|said|told me|thinks)"
            r"(?: that)? (?=I have |I'm )"), ""),
    (Phrase(
        r"(?i)\b(?:(?:just )?(?:like|as) I(?:'ve)? (?:already )?(?:said|mentioned|told you)(?: before| earlier)?|"
        r"(?:I've |I )?(?:already |just )?told you(?: before| already| that)*|I(?:'ve)? (?:already )?mentioned(?: "
        r"that)?|I (?:just )?(?:thought|think|figured) (?:you should know|I'd let you know|I should (?:mention|tell "
        r"you))(?: that)?|(?:just )?so you know|just so you're aware|you should know(?: that)?|for what it's worth|the "
        r"thing is|fact is|I (?:should|have to|must|want to|wanted to) (?:say|mention|tell you|admit|confess|add)(?: "
        r"that)?|let me (?:introduce myself|tell you(?: about myself| that)?)|I'm happy to say|I can tell you(?: that)?"
        r"|(?:it|this) (?:might|may) (?:be relevant|help)|not (?:sure if (?:it|this|that) (?:matters|helps|is relevant)"
        r"|going to lie|gonna lie)|turns out(?: that)?)(?:,| but)?"
    ), ""),
    # "As a nurse I work nights" names the job as "I'm a nurse" does.
    (Phrase(
        r"(?i)(?:^|(?<=, )|(?<=\band )|(?<=\bbut )|(?<=\bso ))as (an? (?!kid|child|student|teen|boy|girl"
        r"|baby)[\w -]{2,40}?)(?:, ?(?=(?:I|I'm|I've|I'd|my|live|living|work|working|have|love|hate|allergic|based|from"
        r"|born)\b)| (?=(?:I|I'm|I've|I'd) ))"
    ), r"I'm \1, "),
    # "Nuts are a no go, I'm allergic", "can't do anything with cashews, I'm allergic to them"
    (Phrase(
        r"(?i)^.{0,30}?(?:\b(?:with|eat|have|touch|near|do|no) )?([\w]+(?: and \w+)?)(?: (?:is|are) [^,]{2,30})?, "
        r"(?:because |since |as )?I'm (?:\w+ )?allergic(?: to (?:it|them|those))?(?=$|[,.])"
    ), r"I'm allergic to \1"),
    # "My wife Ana and I are …", "me and my sister have …"
    (_phrase(r"(?:^|(?<=, )|(?<=\band )|(?<=\bbut )|(?<=\bso ))(?:(my @MOD@RELATION(?: (?-i:[A-Z])\w+)?) and I|(?:me"
             r"|I) and (my @MOD@RELATION(?: (?-i:[A-Z])\w+)?)) (?=\w)"), r"\1\2, we "),
    (Phrase(r"\bwe are\b(?: both)?"), "we're"),
    # "Dmitri, my oldest friend, is staying"
    (_phrase(r"\b((?-i:[A-Z])\w+), (my @MOD@RELATION)(?=,| is| and|$)"), r"\2 \1"),
    (_phrase(r"\b(my @MOD@RELATION) \(((?-i:[A-Z])\w+)\)"), r"\1 \2"),
    # "Green is my favourite colour"
    (_phrase(r"(?:^|(?<=, )|(?<=and ))(?!what |my |it |he |she |this |that )([\w'’ &.-]{2,50}?) (?:is|are|has to be"
             r"|will always be|has always been) (?:definitely |still |also |one of )?my ((?:all[- ]time |absolute "
             r")?favourite [\w ]{2,30}?|birthday|home ?town|(?:native|first|mother)[- ](?:language|tongue)"
             r"|@MOD@RELATION|@ANIMAL)(?=$|[,(]| and | but | of all time)"),
     r"my \2 is \1"),
)  # fmt: skip
#: A person who speaks of a job means an employer by "I'm at …".
_OF_WORK = Phrase(r"\b(?:work|job|laid off|fired|quit|startup|company|firm|employer|promoted|hired)\b", re.IGNORECASE)
_AT_WORK = Phrase(r"\bI'm (?:now )?(?=(?:at|with) (?:an? (?:\w+ ){0,2}(?:startup|company|firm|agency)|(?-i:[A-Z])))")
_SEGMENT = Phrase(
    r"\s*[()\[\]|]\s*|\s+[-–—]+\s+|\s*—\s*|\s+(?=but\b|because\b|cuz\b|cause I|since I|so (?:I|my|don't|please|no)\b"
    r"|although\b|though I)|,\s*(?=(?:and |but |so |or |yet |also |plus |because |since |as |then |while |though |oh "
    r"|btw |please |pls |now )*(?:I|I'm|I've|I'd|my|we|we're|our|you|your|he|she|it|it's|his|her|its|they|this|that's"
    r"|there|please|can|could|would|should|shall|what|what's|where|how|who|why|when|is|are|am|do|does|did|any|got|get"
    r"|don't|never|always|call|just call|keep|no|not|right|remember|currently|originally|born|grew up|(?:living|live) "
    r"in|work(?:ing)? (?:as|at|for|in)|based in|from|allergic to|married|both|named|called|so|and|thanks|thank|suggest"
    r"|recommend|help|speak (?:to|in)|answer|reply|moved|majoring|studying|training|learning|since \w+ I|everyone"
    r"|everybody|help|wish me|which|tips|need|allergy|been)\b)|\s+and\s+(?=(?:also |then |now |currently |please )*(?:I"
    r"|I'm|I've|I'd|my|we|he|she|it|it's|his|her|its|they|you|your|that|this|don't|please|never|everyone|everybody"
    r"|people|always|call|mum|mom|dad|live in|living in|work (?:as|at|for|in)|working (?:as|at|for|in)|am|have|has|own"
    r"|drive|speak|love|like|hate|enjoy|prefer|can't|want|study|studying|since I|allergic to|from|based in|born|grew up"
    r"|moved|keep|do|what|how|was|got|named|called|would|could|is)\b)",
    re.IGNORECASE,
)
#: The new beginnings in a sentence without commas; only forms too strong to be part of another clause.
_RUN_ON = Phrase(
    r"(?<=[\w.!)])(?<!you)(?<!\bto)(?<!just)(?<!please)(?<!\bis)(?<!\bare)(?<!\band)(?<!who) +(?=(?:I'm (?:allergic"
    r"|from|a |an |\d|vegan|vegetarian|living|based|working|obsessed)|I (?:live|work|speak|was born|grew up|have an?"
    r"|prefer) |my (?:name|birthday|favourite|timezone|job) |(?:please )?call me |please (?:don't|never|always|answer"
    r"|keep) ))"
)
_TURN = Phrase(r"\s*(?:but|however|anyway|in reality|in fact|actually|so)\b", re.IGNORECASE)
_OPENING = Phrase(
    r"(?:and|but|so+|oh|ah|aw+|well|ok|okay|btw|by the way|also|plus|actually|fyi|for the record|for context|for your "
    r"information|for info|yes|yeah|yep|yup|nah|nope|no(?=[ ,]+(?:thanks|worries|I'm|we))|worries|sure|great|cool|nice"
    r"|thanks?(?: you)?(?: so much| a lot)?|thx|ty|lol|ha(?:ha)*|hehe+|hmm+|um+|uh+|ugh+|wow|omg|tbh|to be honest|argh"
    r"|honestly|frankly|personally|basically|literally|then|now|because|cuz|cause|since(?: last)? \w+|since|as(?= I)"
    r"|though|although|however|anyways?|yo|see|look|listen|you know(?: that)?|know that|that|i mean|like(?= I)|besides"
    r"|but yeah|unfortunately|sadly|luckily|obviously|(?:fun|random|quick) fact|(?:a )?bit about (?:me|myself)|about me"
    r"|some background|background|context|ps|p\.s|reminder|heads up|just|in fact|in case you(?: were)? wonder(?:ing"
    r"|ed)?|if you(?:'re| are) wondering|in general|generally|as for me|same here|nice to meet you|pleased to meet you"
    r"|good to know|sorry|alright|right|first of all|(?:one more|another|one) thing|quick note|correction|update|"
    r"(?:big |good |great |sad )?news|guess what|these days|nowadays|currently|at the moment|right now|today|recently"
    r"|lately|tonight|overall|mostly|usually|in addition|apart from that|on top of that|more about me|speaking of "
    r"(?:which|\w+)|welp|dude|man|bro|mate|remora|long story(?: short)?|(?:hey+|hi+|hello|hiya|heya|howdy|good "
    r"(?:morning|evening|afternoon)|greetings)(?: there| all| everyone| everybody| bot| again| remora| friend| guys)?"
    r"|for next time|next time|new rule|one rule|for (?:\w+ ){1,2}years|after (?:\w+ ){1,3}years|as of (?:now|\w+))"
    r"(?=[\s,:!.…\-–—]|$)[\s,:!.…\-–—]*",
    re.IGNORECASE,
)
#: "Next month I'm visiting …" is read as "I'm visiting … next month".
_DATE_FIRST = Phrase(
    r"(?:^|(?<=[,!] )|(?<=\bso )|(?<=\band )|(?<=\bbut )|(?<=\balso ))(tomorrow|the day after tomorrow|next \w{3,9}"
    r"|this (?:weekend|summer|autumn|fall|winter|spring|coming \w{3,9}|\w{3,6}day)|on \w{3,6}day|in (?:an? |about "
    r")?\w{1,6} (?:days?|weeks?|months?|years?)|in (?:early |mid |late )?(?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december)),? (?=(?:I|I'm|I'll|we|we're|we'll)(?![\w'])[^,\n]{4})"
    r"([^,\n(]{1,200}?)(?=\s+(?:and|but|so|because)\b|[,\n(]|$)",
    re.IGNORECASE,
)
_GREETING = Phrase(
    r"(?:hi+|hello|hey+|hiya|heya|howdy|yo|good (?:morning|evening|afternoon)|greetings|nice to meet you)\b",
    re.IGNORECASE,
)
_QUESTION = Phrase(
    r"(?:what|where|who|whom|whose|when(?! you (?:answer|reply|respond|talk|write|explain))|why|how|which|what's|who's"
    r"|where's|how's|when's|is|are|am|was|were|do(?! yoga)|does|did|can(?!'t)|could|would|should|shall|will|has|may"
    r"|might|have (?:you|I|we|they)|isn't|aren't|don't (?:you|I|we)|didn't|doesn't|won't|wouldn't|couldn't|can't (?:you"
    r"|I|we)|any (?:ideas?|tips|chance|rec\w*|suggestions?|advice)|(?:\w+ ){0,2}(?:ideas|tips|recs|thoughts|advice)$"
    r"|anything|got any|want to|remember (?:when|what|where|how|who|me|(?:my|I)\b.*\?)|know (?:any|a)|suggestions"
    r"|recommendations|recommend|suggest|or|ever)\b",
    re.IGNORECASE,
)
_POLITE = Phrase(r"(?:can|could|would|will) you (?:please |kindly |just |maybe )*", re.IGNORECASE)
#: Words after which a sentence no longer states facts.
_POISON = Phrase(
    r"(?:^|(?<=[\s,]))(?:if(?! you (?:must|need to|have to|want to) know)|unless|whether|as though|what if|imagine"
    r"|assum(?:e|ing)|let's say|lets say|say(?: that)? I|wish(?! me)|dreamt|dreamed|dream I|dreaming|thinks?(?: that)? "
    r"I|thought|believes?(?: that)? I|claims? (?:I|that|to)|doubt|until|when I|when I'm|once I|as soon as|whenever I"
    r"|every time I|said|says|saying|tells?|heard|not true|isn't true|the day I|before I|after I|in case|as if|even "
    r"though I was|would be|someone who|people who|anyone who|the one who|somebody who|a person who|girl who|guy who"
    r"|accus\w+|mistake\w* me|called me|joke|lie|lied|lying|back when|playing the sims|my (?:\w+ )?character|in my "
    r"(?:last|previous|next) life|in another life|in a parallel|like$)\b",
    re.IGNORECASE,
)
_CONDITION = Phrase(
    r"(?<=\w) (?:if|unless|when I|until|once I|before I|after I|whenever I|as soon as|in case|whether)\b", re.IGNORECASE
)
#: Words that make one clause too uncertain, or say that it is over.
_DOUBT = Phrase(
    r"\b(?:maybe|perhaps|probably|possibly|might|may be|could be|not sure|I guess|I suppose|I think|supposedly"
    r"|allegedly|apparently|kind of like|almost|for a (?:day|week|month|few)|not really|hopefully|sort of|basically a"
    r"|practically|feel like a|honorary|metaphor\w*|used to|no longer|anymore|any longer|not yet|inside$|years old "
    r"inside|so-called)\b",
    re.IGNORECASE,
)
_SUBJECT = Phrase(
    r"(?:I|I'm|I've|I'd|my|me|we|we're|our|you|your|you're|he|she|he's|she's|it|it's|they|they're|this|that|these|those"
    r"|there|the|his|her|their|its|who|what|don't|please|call|never|always)\b",
    re.IGNORECASE,
)
#: Clauses that speak of the speaker even when they open the message without "I".
_ALONE = Phrase(
    r"(?:(?:just |finally |recently |also |super |severely |still |currently |huge |massive |big |not (?:a |really a "
    r"|much of a )?)*(?:allergic to|based (?:in|out)|originally from|born|(?:was )?diagnosed|been (?:vegan|vegetarian"
    r"|working|an? |learning)|got|get|studying|majoring|adopted|bought|moved|relocated|turned|turning|living in|work"
    r"(?:ing)? (?:as|at)|started (?:at|as|in|work)|joined|fan of|[\w ]{2,20} (?:fan|nerd|addict|enthusiast) here|into"
    r"|obsessed|can't stand|haven't|hate|flying|going to|off to|travel\w*|visiting|getting|having|expecting|moving"
    r"|leaving|starting|meeting|learning|training|saving|trying to|doing (?:a|my) |writing my|promoted|(?:sophomore"
    r"|freshman|junior|senior) at|in my \w+ year|retired|engaged|dating|seeing|exam|wedding|surgery|have|doctor's "
    r"appointment|appointment|dentist|interview)|\d\d,? )",
    re.IGNORECASE,
)
_SEX_OF_PRONOUN = {"his": "m", "he": "m", "her": "f", "she": "f"}
_SEX = {
    **dict.fromkeys(("wife", "girlfriend", "mother", "sister", "daughter", "grandmother", "aunt", "niece"), "f"),
    **dict.fromkeys(("husband", "boyfriend", "father", "brother", "son", "grandfather", "uncle", "nephew"), "m"),
}
#: "Favourite colour? Green.": people interview themselves when they introduce themselves.
_ASKED_OF_SELF = Phrase(
    r"(?:so )?(?:what(?:'s| is) )?(?:my |any |food )?(?P<k>favourite [\w ]{3,24}|(?<!your )name|job|home ?town|birthday"
    r"|allerg(?:y|ies))",
    re.IGNORECASE,
)
_ANSWER = Phrase(
    r"(?!.*\b(?:none|no|nope|nah|nothing|why|what|who|where|how|when|you|your|idk|idea|guess|not|hard|easy|depends|many"
    r"|it|this|that|too|sure|don't|can't|I|he|she|they|is|are|was|has|maybe|probably|yes|yeah|help|any\w*|every\w*)\b)"
    r"(?:(?:definitely|mostly|an?|as an?) )*(?P<v>[\w'+.-]{1,24}(?:(?:,? and |, | )[\w'+.-]{1,24}){0,5})",
    re.IGNORECASE,
)
_SELF = Phrase(r"(?:I|I'm|I've|we|we're|my name|my birthday)(?![\w'])")
#: Persons and pets a clause may be about: "my sister", "a girl", "a puppy"; group r for a relative of the speaker.
_SOMEBODY = _phrase(
    r"(?<![\w'])(?:(?:my|our) (?:\w{3,9} )?(?P<r>@RELATION)(?:(?!['\w-])|(?='s (?:\w+ )?(?:birthday|graduation"
    r"|wedding)))|(?:an?|some|this|my|our|his|her|their|the) (?:[\w-]{2,12} )?(?:@RELATION|@ANIMAL|girl|guy|man|woman"
    r"|boy|lady|person|baby|dude|character|queen|king|someone)(?![\w-])|someone|somebody)"
)
_NAMED = Phrase(
    r"(?:and )?(?P<p>his|her|its|it's|their|he|she|it|they|the|)(?: ?names? (?:is|are)|(?:'s|'re| is| are)? ?(?:called"
    r"|named)) (?P<v>(?:(?:Mrs|Mr|Ms|Dr)\.? )?[\w'-]+(?:(?:, | and )[\w'-]+)*)",
    re.IGNORECASE,
)
_MENTION = _phrase(
    r"\b(?:my|our) @MOD(?P<r>@RELATION|@ANIMAL),? (?:(?P<v>(?-i:[A-ZÀ-Þ][a-zà-ÿ])[\w-]{0,20}(?: "
    r"(?-i:[A-ZÀ-Þ][a-zà-ÿ]\w+))?(?:(?:,? and |, )(?-i:[A-ZÀ-Þ][a-zà-ÿ])[\w-]{1,20}(?! (?:is|has|am) my)){0,4})(?!'s? "
    r"(?!(?:and|but))|\w)|(?P<w>(?-i:[a-z]{3,12}))(?=\s*$|,| (?:is|was|has|just|keeps|loves|hates|makes|wants|who|and I"
    r"|threw|ate|gets|had)\b))"
)


# ------------------------------------------------------------------------------------------------ values
_ARTICLE = Phrase(r"^(?:an?|the|my|our|some)\s+", re.IGNORECASE)
_TAIL = Phrase(
    r"(?:[\s,]+(?:at all|rn|too|as well|also|now|btw|by the way|lol|haha\w*|hehe|tbh|please|thanks|thank you|thx"
    r"|already|actually|though|tho|anyway|you know|so much|a lot|very much|the most|right now|currently|at the moment"
    r"|these days|nowadays|and all|obviously|ok|okay|really|again|xd|:d|lmao|atm|fyi|everyone|all|mate|man|bro"
    r"|originally|instead|or so|most of all|etc|and so on|and stuff|or something|in general|especially|to be honest|of "
    r"course|cheers|i guess|lately|recently|everybody|there|here|yay|all the time|ever|for sure|for now|right|lots|tons"
    r"|more than anything))+$",
    re.IGNORECASE,
)
#: Words that point at the talk itself, or say nothing by themselves.
_VAGUE = Phrase(
    r"\b(?:you|your|yours|u|this|that|these|those|here|it|him|her|them|he|she|they|myself|me|us|today|tonight)\b|^"
    r"(?:how|what|when(?! people)|where|why|who|if|to (?:know|think|believe|hear|see|say|ask|thank)|the (?:idea|way"
    r"|fact|sound|look|ones?|new|answer|result|design|part|picture|last|first|second|thought|concept|feeling)|(?:every"
    r"|no|any|some)(?:thing|one|body)|all|both|neither|none|my|our|not|no|any|more|less|better|best|nice|good|so|too"
    r"|very|being alive|life|people|things|stuff|men|women|girls|boys|trouble|bed)\b",
    re.IGNORECASE,
)
_PAIRS = Phrase(
    r"\b(rock|mac|fish|gin|salt|bread|black|peanut butter|drum|dungeons|rhythm|arts|cheese|research|bed|pride|war|crime"
    r"|science|r|d|sweet|hot|pen|ham|country|hide) (?:and|&) (roll|cheese|chips|tonic|vinegar|butter|white|jelly|bass"
    r"|dragons|blues|crafts|onion|development|breakfast|prejudice|peace|punishment|fiction|b|d|sour|spicy|paper|eggs"
    r"|western|seek)\b",
    re.IGNORECASE,
)
#: "creating a safe and inviting place" is one thing with two adjectives, "a dog and a cat" are two things.
_ONE_THING = Phrase(r"(\w+ing an? [\w-]+) and (?!an? |the |my )(?=[\w-]+ \w)", re.IGNORECASE)


def _trim(text: str) -> str:
    """Returns a value without closing particles, emoji, punctuation and articles."""
    text = re.sub(r"\s+", " ", _TAIL.sub("", strip_signs(text)))
    return _ARTICLE.sub("", strip_signs(text), count=1)


def _listed(text: str) -> list[str]:
    text = _ONE_THING.sub("\\1\0", _PAIRS.sub(r"\1\0\2", text))
    parts = re.split(r"\s*,\s*(?:and\s+|or\s+|also\s+)?|\s+(?:and(?: also)?|or|&|as well as|plus)\s+|\s+\+\s+", text)
    return [trimmed for part in parts if (trimmed := _trim(part.replace("\0", " and ")))]


def _uncommented(text: str) -> str:
    """Returns a list without the remark after it: "olives, way too salty" is one item, "olives, figs" are two."""
    parts = text.split(",")
    alone = len(parts) == 2 and not _JOINED.search(parts[1])
    for number, part in enumerate(parts[1:], 1):
        if _REMARK.match(part.strip()) or (alone and len(part.split()) > 2):
            return ",".join(parts[:number])
    return text


_JOINED = Phrase(r"\b(?:and|or|also|plus)\b|&", re.IGNORECASE)
_REMARK = Phrase(
    r"(?:way|too|so|always|never|just|even|sorry|\w+ly|maybe|very|kinda|pretty|no|not|yuck|gross|ew+|ugh|brr+|period"
    r"|ever|since|which|whatever|at|far|much|almost|(?:sound|taste|smell|give|make|look|feel|remind|drive|get|hurt|ruin"
    r"|cause|keep|take|seem)s?|\w+n't|disgusting|awful|horrible|terrible|boring|delicious|amazing|best|worst|lol"
    r"|haha\w*|hate|love|true|fair|right|thank \w+|per|for|to|by|with|in|on|of|like|everything|anything|nothing|despite"
    r"|without|hence|though|but|yes|yeah|overrated|super|such|hands down|argh|any|got|whats?|how)(?![\w'])",
    re.IGNORECASE,
)


def _values(text: str, many: bool) -> list[str]:
    return _listed(_uncommented(text)) if many else [_trim(text)]


_fact = partial(fact, values=_values, size=lambda value: len(value.split()), most=6)


#: One thing in the list that nobody can be allergic to makes it a joke.
_NO_ALLERGEN = Phrase(
    r"\b(?:\w+days?|weekends?|weekdays?|mornings?|nights?|early|(?:home|team|paper|house)?work\w*|jobs?|offices?|school"
    r"|college|uni|class(?:es)?|lectures?|exams?|tests?|deadlines?|meetings?|calls?|zoom|e-?mails?|people|humans?"
    r"|humanity|men|women|boys|girls|guys|kids|children|exes|ex|ex-\w+|boss(?:es)?|managers?|in-laws?|husbands?|wives"
    r"|wife|husband|boyfriends?|girlfriends?|\w+ships?|dating|marriage|love|feelings?|emotions?|romance|commitment"
    r"|efforts?|exercise|gym|cardio|sports?|maths?|chores|laundry|dishes|responsibilit(?:y|ies)|adult\w*|drama|bullshit"
    r"|bs|nonsense|stupid\w*|idiots?|questions?|answers?|jokes?|puns|fun|\w+ness|joy|failure|money|bills|tax(?:es)?"
    r"|poverty|politics|politicians|news|rules|authority|small talk|talk|silence|liars?|lies|fake\w*|mediocrity|traffic"
    r"|crowds?|alarms?|alarm clocks?|life|reality|truth|change|code|bugs? reports?|javascript|java|excel|spreadsheets?"
    r"|powerpoint|\w{3,20}isms?|ai|my|his|their|your|everything|them|it|this|that|you|(?!herring|whiting|pudding"
    r"|dressing|icing|frosting|seasoning|stuffing|piercing|clothing|bedding|filling|coating)\w{2,14}ing)\b",
    re.IGNORECASE,
)
_NOT_PLACES = Phrase(
    r"^(?:\d|the$)|\b(?:is|are|was|were|has|have|had|it|you|me|not|fear|hope|peace|denial|pain|hell|poverty|moment|past|present"
    r"|future|middle|clouds|sky|dark|shadows?|matrix|ocean|dream|fantasy|bubble|harmony|luxury|dorms?|house|apartment"
    r"|flat|hotel|work|school|scratch|home|where|there|here|constant|exile|sin|same|mars|moon|space|heaven|now|today"
    r"|time|world|way|bed|office|train|airport|another|outer|shire|hogwarts|wonderland|neverland|narnia|submarine"
    r"|perfect|over|planet|\w+where|company|team|department|site|internet|expensive|great|harvest|level|page|times|stage|desk|phone|laptop"
    r"|next|meeting|cold)\b",
    re.IGNORECASE,
)
_NO_EMPLOYER = Phrase(
    r"^(?:home|night|myself|free|fun|money|least|all|him|her|them|you|it|this|that|my|his|their|your|our|day|weekends?"
    r"|\d|minimum|peanuts|moment|work|odd|living|long|several|many|two|three|over|almost|some|good|ages|heart|large"
    r"|hire|life|now|once|first|last|school|uni|college|scratch|page|level|\w+ing|ease|peace|team|evening|morning|shifts)\b|\b"
    r"(?:week|month|year|minute|hour|age|shape|fitness)s?\b",
    re.IGNORECASE,
)

_NO_FOOD = Phrase(
    r"^(?!(?:red |any |processed )?(?:meat|pork|beef|fish|seafood|shellfish|dairy|gluten|eggs?|sugar|lamb|chicken|nuts"
    r"|wheat|bread|carbs|animal products|mushrooms|cheese|onions?|garlic|soy|fast food|junk food|alcohol|caffeine)$)",
    re.IGNORECASE,
)
_NOT_OWNED = Phrase(
    r"^(?:this|that|these|those|nothing|everything|it|my|lots?|plenty|bit)\b|\b(?:problem|question|issue|trouble|idea|dream"
    r"|accident|loan|delivery|bus|taxi|cab|tram|lorry|forklift|appointment|key|crash|insurance|service|repair|rental"
    r"|rented|you|mistakes?|reservation|time|case|few|shares?|stocks?|tickets?|cold|bug)\b",
    re.IGNORECASE,
)
_NO_GOAL = Phrase(
    r"\b(?:you|your|it|him|her|them)\b|^(?:find|be (?:back|there)|hear|get (?:home|some)|understand|find out|figure|fix"
    r"|install|say|explain|sleep|decide|remember|help|know)\b",
    re.IGNORECASE,
)


def _job(groups: dict[str, str], today: date) -> Iterator[Pair]:
    """Reads an occupation in group v and the employer in e or w."""
    job = _trim(groups.get("v", ""))
    if not _NOT_JOB.search(job) and len(job.split()) <= 6:
        yield Pair("occupation", job)
        employer = groups.get("e") or groups.get("w")
        yield from _fact("employer", refuse=_NO_EMPLOYER)({"v": employer or ""}, today)


def _activity(groups: dict[str, str], today: date) -> Iterator[Pair]:
    """Reads an occupation in group v that is told by a verb: "teach maths" is kept as "teaching maths"."""
    for job in _fact("occupation", most=8)(groups, today):
        verb, _, rest = job.value.partition(" ")
        stem = verb + "n" if verb == "run" else verb.removesuffix("e")
        yield job._replace(value=f"{stem}ing {rest}")


def _employer(groups: dict[str, str], today: date) -> Iterator[Pair]:
    """Reads an employer in group v, and the job there in w."""
    yield from _fact("employer", refuse=_NO_EMPLOYER)(groups, today)
    yield from _fact("occupation", refuse=_NOT_JOB)({"v": groups.get("w", "")}, today)


def _studies(groups: dict[str, str], today: date) -> list[Pair]:
    """Reads subjects in group v, and the school where they are studied in s."""
    subjects = list(_fact("studies", many=True, refuse=_VAGUE)(groups, today))
    return [*subjects, Pair("studies", _trim(groups["s"]))] if subjects and groups.get("s") else subjects


def _names(text: str) -> list[str]:
    names = [strip_signs(name) for name in re.split(r"\s*,\s*(?:and )?|\s+(?:and|&)\s+", text)]
    return [name for name in names if len(name.split()) <= 4 and _is_name(name)]


def _is_name(name: str) -> bool:
    """Returns whether the first word of `name` can be a name; in small letters it must be no common word there."""
    first = (_DOCTOR.sub("", name).split() or ["0"])[0]
    if first[0].isdigit() or "'s " in name or NOT_NAMES.fullmatch(first) or _FROM_SOMEWHERE.fullmatch(name):
        return False
    return not (first.islower() and (_NO_SMALL_NAME.fullmatch(first) or _WORD_FOR_SOMEBODY.fullmatch(name)))


_DOCTOR = _phrase(r"^dr\.? (?=(?-i:[A-ZÀ-Þ]))")
_FROM_SOMEWHERE = _phrase(r"@NATION|@LANGUAGE")
_WORD_FOR_SOMEBODY = _phrase(r"@JOB|@DIET|@ANIMAL|@CONDITION")


def _name(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        value = strip_signs(_TAIL.sub("", groups["v"]))
        return [Pair(key, value)] if _is_name(value) and len(value.split()) <= 4 else []

    return read


_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "thirteen": 13,
    "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip


def _age(groups: dict[str, str], _today: date) -> list[Pair]:
    words = groups["v"].lower().replace("-", " ").split()
    years = sum(int(word) if word.isdecimal() else _NUMBERS[word] for word in words)
    return [Pair("age", str(years))] if 3 <= years <= 119 else []


_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


def _birthday(groups: dict[str, str], today: date) -> list[Pair]:
    said = groups["v"].strip()
    relative = next(iter(dated(said, today)), None)
    if relative:
        return [Pair("birthday", f"{_MONTHS[relative.first.month - 1].title()} {relative.first.day}")]
    word = re.search(r"[a-z]{3,9}", re.sub(r"\d+(?:st|nd|rd|th)|\bthe\b|\bof\b", "", said.lower()))
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    if not word:  # "3/4" is March in one country and April in the next
        iso = re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", said)
        return [Pair("birthday", "{:04}-{:02}-{:02}".format(*numbers) if iso else said)]
    month = next((i for i, name in enumerate(_MONTHS, 1) if word.group() in {name, name[:3], name[:4]}), 0)
    if not month or not 1 <= numbers[0] <= 31:
        return []
    if len(numbers) == 2:
        return [Pair("birthday", f"{numbers[1]:04}-{month:02}-{numbers[0]:02}")]
    return [Pair("birthday", f"{_MONTHS[month - 1].title()} {numbers[0]}")]


def _speaks(key: str) -> Read:
    def read(groups: dict[str, str], _today: date) -> list[Pair]:
        # An unlisted language is believed beside a listed one: "Twi and English".
        found = re.findall(rf"\b{_LANGUAGES}\b|\b(?-i:[A-Z][a-z]+)\b", groups["v"], re.IGNORECASE)
        return [Pair(key, language) for language in found] if re.search(_LANGUAGES, groups["v"], re.IGNORECASE) else []

    return read


def _relative(groups: dict[str, str], _today: date) -> list[Pair]:
    """Reads "my sister is called Ana" and "I have a sister called Ana"; a missing name may come next."""
    key = _RELATIONS[groups["r"].lower()]
    return [Pair(key, name) for name in _names(groups["v"])] if "v" in groups else [Pair(key, "", unnamed=True)]


def _kin_does(groups: dict[str, str], _today: date) -> list[Pair]:
    """Reads facts about a relative: the job of any relative, other facts only of close ones."""
    key = _RELATIONS[groups["r"].lower()]
    value = _trim(re.sub(r"^is (?!from )", "", groups["v"]))
    if _NOT_KIN.search(value) or len(value.split()) > 7 or ("allergic" in value and _NO_ALLERGEN.search(value)):
        return []
    return [Pair(key, value)] if key in KIN or re.match(r"(?:is )?an? ", groups["v"]) else []


_NOT_KIN = Phrase(
    r"\b(?:bit|lot|idiot|jerk|pain|saint|angel|star|hero|mess|nightmare|asshole|dick|fan|little|problem|you|good|great"
    r"|bad|terrible|big|huge|person|man|woman|guy|girl|boy|liar|joke|genius|legend|monster|witch|morning|better|delight"
    r"|darling|sweetheart)\b",
    re.IGNORECASE,
)


def _pet(groups: dict[str, str], _today: date) -> list[Pair]:
    kind = _PLAIN.sub("", groups.get("m", "").lower())
    animal = f"{kind}{groups['a']}".lower()
    said = groups.get("v", "")
    # In small letters a name is read only after "called": there any word is a name.
    names = _names(said) or ([said] if said.isalpha() and not NOT_NAMES.fullmatch(said) else [])
    if names:
        animal = _ANIMAL_PLURALS.get(animal, animal)
        singular = animal[:-1] if re.fullmatch(_ANIMALS, animal[:-1].split(" ")[-1]) else animal
        return [Pair("pet", f"{singular} {name}") for name in names]
    count = groups.get("n", "").lower()
    counted = "" if count in {"", "a", "an", "my", "our", "some", "the"} else f"{count} "
    return [] if _NO_PET.search(animal) else [Pair("pet", f"{counted}{animal}", unnamed=True)]


_ANIMAL_PLURALS = {"puppies": "puppy", "bunnies": "bunny", "kitties": "kitty", "mice": "mouse", "ponies": "pony"}
_PLAIN = Phrase(
    r"\b(?:very|really|super|cute|fat|old|big|small|little|tiny|lovely|sweet|new|rescue|lazy|crazy|beautiful|adorable"
    r"|young|grumpy|senior|pet|\d+[- ](?:year|month)[- ]old),? "
)
_NO_PET = Phrase(r"\b(?:hot|dead|bit of|question|cold|photo|picture|of|in|for|about|to|with)\b")


def _favourite(groups: dict[str, str], _today: date) -> list[Pair]:
    thing = groups["k"].lower().strip()
    if groups.get("be") == "are" and thing.endswith("s") and not thing.endswith("ss"):
        thing = f"{thing[:-3]}y" if thing.endswith("ies") and thing != "movies" else thing[:-1]
    value = _trim(_uncommented(groups["v"]))
    unclear = re.search(r"\b(?:thing|part|one|person|of|to|about|in|way|ever|time)\b", thing) or _VAGUE.search(value)
    if unclear or len(thing.split()) > 3 or len(value.split()) > 9 or re.search(r"\b(?:was|not|changed|when)\b", value):
        return []
    return [Pair(f"favourite-{normalise_key(thing)}", value)]


def _plan(groups: dict[str, str], today: date) -> list[Pair]:
    """Reads a plan, which needs a day still to come; tonight is not worth keeping. Group g is a "going to"."""
    value = _trim(groups["v"])
    if "g" in groups and (value[:1].isupper() or _ARTICLE.match(groups["v"])):
        value = f"going to {groups['v'].strip()}"  # somewhere, and not merely going to do something
    is_dated = _SOME_DAY.search(value) or any(span.last > today for span in dated(value, today, ahead=True))
    return [Pair("plan", anchor(value, today, ahead=True))] if is_dated and 2 <= len(value.split()) <= 20 else []


_SOME_DAY = Phrase(
    rf"\b(?:in|on|at|next|this|early|mid|late|by) (?:(?:early|mid|late) )?(?:{'|'.join(_MONTHS)}|spring|summer|autumn"
    rf"|the fall"
    r"|fall|winter|20\d\d)\b|\b(?:for|over|after) (?:christmas|easter|new year)|\b(?:on|by) the \d{1,2}(?:st|nd|rd"
    r"|th)\b|\b(?:at|by) the end of (?:the|this|next) (?:month|year|week|summer)",
    re.IGNORECASE,
)

# ------------------------------------------------------------------------------------------------ rules
# fmt: off
_RULES: tuple[Rule, ...] = (
    # who they are
    _rule(_name("name"), r"(?:(?:my|the) )?(?:(?:first|full|real|given) )?name is (?:spell?e?[dt] |pronounced )?@ADV"
          r"(?!not\b|on\b|in\b|long\b|hard\b)(?P<v>[^\n,]{1,50}?)@END"),
    _rule(lambda g, t: _name("name")({"v": g.get("v") or g["w"]}, t), r"(?:it's|I'm) (?P<v>@NAMES) with an? \w\b|"
          r"(?!looky?\b|lookie\b)(?P<w>@NAME) here$"),
    _rule(_name("called"), r"(?:(?:everyone|everybody|people|(?:most of )?my friends|friends|they|most people|my family"
          r"|folks)(?: all| just| usually| mostly| always)? calls? me|I (?:usually )?go by|my nickname is|I (?:prefer"
          r"|like) (?:to be|being) called|I'm known as|I'd (?:prefer|like|rather)(?: to)? be called) (?:the name |just "
          r")?(?P<v>[^\n,]{1,30}?)@END"),
    _rule(_age, r"@BE(?:an? |about |exactly )?@AGE(?:[- ]?(?:years?[- ]old|yrs?[- ]old|y/?o|years? of age|yrs?|years? "
          r"young|[fm])(?![\w'])|(?=\s*$|\s*[,(]| and | but | from | now| btw| live | living | this year| in \w+day))"),
    _rule(_age, r"(?:I @ADV(?:recently |just )*turned|my age is) @AGE(?!\w)"),
    _rule(_birthday, r"(?:(?:my )?(?:birthday|date of birth|dob|birth date) ?(?:is|falls|:|=)|I was born|it's my "
          r"birthday|born|I'm born|I celebrate my birthday)(?: on)?(?: the)? @DAY"),
    _rule(_fact("nationality"), r"@BE(?:an? )?(?P<v>(?:half[- ])?@NATION(?:[- ](?:american|canadian|british"
          r"|australian))?)(?: (?:citizen|guy|girl|woman|man|national|expat|immigrant|person|dude|lady|by birth))?"
          r"(?=\s*$|\s*[,()–—]| and | but | from | living | based | by | so | who | btw| too| in | working)"),
    _rule(_fact("religion"), r"@BE(?:an? )?(?:(?:practi[sc]ing|devout|lapsed|observant) )?(?P<v>buddhist|muslim"
          r"|catholic|jewish|hindu|sikh|protestant|christian|orthodox(?: jewish| christian)?|lutheran|anglican"
          r"|methodist|baptist|mormon|quaker|jain|bah[aá]'?[ií]|atheist|agnostic|pagan)(?=\s*$|\s*[,()]| and | but | "
          r"so | btw)"),
    _rule(_fact("instruction", before="pronouns "), r"my pronouns are (?P<v>\w+(?:/\w+)+)"),
    _rule(either(_speaks("native-language")), r"my (?:(?:native|first|mother) (?:language|tongue)|mother[- ]tongue) is "
          r"(?P<v>[^\n]{2,60})|@BEan? native (?P<w>@LANGUAGE) speaker|I speak (?P<z>@LANGUAGE) natively"),
    _rule(_speaks("speaks"), r"(?:@I(?:can )?@ADV(?:speak|know|understand|read)|@BE(?:fluent|(?:bi|tri)lingual"
          r"|conversational)(?: in|[,:])?) (?:(?:fluent|some|a little|a bit of|a little bit of|basic|decent|good|broken"
          r"|mainly|mostly|only) )*(?P<v>(?:(?-i:[A-Z])\w+(?:, | and )){0,3}@LANGUAGE\b[^\n]{0,80}?)@ENDS"),
    _rule(_fact("timezone", most=4), r"my (?:time ?zone|tz) is (?P<v>[^\n]{2,40}?)(?=\s*$|,| so | but | and | btw"
          r"|\s*\()"),
    _rule(_fact("timezone"), r"@BE(?:in|on) (?:the )?(?P<v>(?:(?:utc|gmt)(?: ?[+-]\d{1,2}(?::\d\d)?)?|(?:cet|est|pst"
          r"|cest|jst|ist)\b|(?:us )?(?:pacific|eastern|central|mountain|european|central european)(?: standard| "
          r"daylight)?(?= time))(?: time(?! ?zone))?)(?!\w)"),
    # where they live and come from
    _rule(_fact("home", refuse=_NOT_PLACES), r"(?:@I(?:live|reside)|@BE(?:living|residing|settled|based)) @ADV(?:with "
          r"[\w' ]{2,30}? |alone |together |back |over |up |down )?(?:in|near|outside(?: of)?|out of) (?:(?:the city of"
          r"|downtown|central) )?@IN"),
    _rule(_fact("home", refuse=_NOT_PLACES), r"(?:@I(?:moved|relocated) @ADV(?:(?:back|over|down|up|out|here) )?to|@I"
          r"(?:rent|have|bought|share|own) (?:an? |my )(?:\w+ ){0,2}(?:flat|studio|apartment|house|room|place|condo) "
          r"(?:in|near)) @IN"),
    _rule(_fact("hometown", refuse=_NOT_PLACES), r"(?:(?:@BE|I )(?:come |hail )?@ADV(?:from|born (?:and|n) (?:raised"
          r"|bred) in)|@I(?:was |were )?(?:grew up|born(?: and (?:raised|grew up))?|raised|brought up) (?:in|near"
          r"|around|on)|my home ?town is) @ADV@IN"),
    # health
    _rule(_fact("allergy", many=True, most=5, spoil=_NO_ALLERGEN), r"(?:(?:@BE|I )@DEGREEallergic to|@Ihave "
          r"@DEGREEallerg(?:y|ies) to|my (?:food )?allerg(?:y|ies)(?: is| are| include|:)(?: to)?) @LIST"),
    _rule(_fact("allergy", spoil=_NO_ALLERGEN), r"I have @DEGREE(?:an? )?(?P<v>(?!allerg|seasonal|food )(?:(?!and\b"
          r"|an?\b)[\w-]+ ?){1,3}?) allerg(?:y|ies)\b"),
    _rule(_fact("diet"), r"(?:@BE|I |my diet )(?:(?:been|went|turned|become|became|gone|going|strictly|strict|an?|on"
          r"|follow|following|eat|only eat|keep|mostly|mainly|eating|lifelong|basically|the|doing|switched to|started"
          r"|trying|is) ){0,4}(?P<v>@DIET)(?: (?:diet|food|only))?(?![\w-])(?! (?:restaurants?|recipes?|curious"
          r"|options?|cheese|burgers?|cuisine|meals?|dish|when|cookbook|place|for years|and proud of you))"),
    _rule(_fact("diet", many=True, before="no ", refuse=_NO_FOOD), r"@I(?:(?:@NOT |avoid |haven't )(?:eaten|eat|drink"
          r"|have|touch)|avoid|gave up|cut out) (?:any )?(?P<v>[^\n]{2,80}?)(?: (?:for|since)\b|@ENDS)"),
    _rule(lambda g, _: [Pair("condition", _trim(v)) for v in (g["v"], g.get("w", "")) if v],
          r"@I(?:have|get|got|suffer from|live with|struggle with|deal with|(?:was |were |got )?diagnosed (?:with|as)) "
          r"@DEGREE(?P<v>@CONDITION)(?=\s*$|\s*[,()]| (?:and|but|so|since|which|for|btw|too|like|in|last|I|a few|every"
          r"|now|at|when|sometimes)\b)(?: and (?P<w>@CONDITION))?"),
    _rule(lambda g, _: [Pair("condition", f"takes {_trim(g['v'])}")],
          r"(?:@I(?:have to )?take|@BE(?:on|taking|prescribed)) (?P<v>\d+(?:\.\d+)? ?(?:mg|mcg|µg|ml|units?|tablets?"
          r"|pills?|puffs?|drops?)\b[^\n]{0,60}?)@END"),
    _rule(_fact("condition", most=5), r"(?:I|I'm) (?:@ADV(?:was |got |been )*)(?:diagnosed (?:with|as)|suffering from) "
          r"@ONE"),
    _rule(lambda g, _: [Pair("condition", _AILING[g["v"].lower()])], rf"@BE(?:an? )?(?:type (?:1|2|one|two) )?"
          rf"(?P<v>{'|'.join(_AILING)})(?=\s*$|\s*[,()]| and | but | so | since | I | btw| now)"),
    _rule(_fact("condition"), r"@BE(?P<v>lactose intolerant|gluten intolerant|colou?r[- ]?blind|(?:partially )?deaf(?: "
          r"in (?:my|one) \w+(?: ear)?)?|(?:legally |partially )?blind(?: in (?:my|one) \w+(?: eye)?)?|visually "
          r"impaired|hard of hearing|an? wheelchair user|in a wheelchair|(?:short|near)-?sighted|in recovery|pregnant"
          r"|\d+ (?:weeks|months) pregnant)(?=\s*$|\s*[,()]| and | but | so | in | with )"),
    # work and studies
    _rule(_job, r"(?:(?:@I(?:been )?(?:work|freelanc)(?:e|ing)?|@BE(?:working|freelancing|employed|training)) @ADV(?:"
          r"(?!for\b|at\b|in\b)[\w-]+ ){0,3}?(?:(?:at|for|in) (?P<w>[^\n,]{2,40}?) )?as|my (?:(?:day |current )?job(?: "
          r"title| now)?|occupation|profession) (?:is|:)) (?:an? |the )?(?P<v>[^\n,]{2,60}?)@AT"),
    _rule(_job, r"(?:I|I've) @ADVbeen an? (?P<v>(?:[\w/+&'.-]+ ){0,4}?@JOB)(?: at @ORG)?(?= (?:for|since|now|all my"
          r"|going on|almost|\d)\b)"),
    _rule(_job, r"@BE(?:an? |the |(?=retired|unemployed|head|director|chief|vp|senior|junior|software|lead|staff|full"
          r"|web|freelance))(?P<v>(?:[\w/+&'.-]+ ){0,4}?(?:@JOB|(?:head|director|vp|chief|deputy) (?:of "
          r")?[\w ]{2,30}?))(?: by (?:trade|profession|training)| in training)?@AT"),
    _rule(_job, rf"@I(?:work|do)(?: remotely)? (?:in (?:the )?)?(?P<v>{_FIELDS})(?: (?:industry|sector|business|field"
          rf"|department|for a"
          r" living))?(?: (?:at|for) @ORG|(?=\s*$|\s*[,()]| and | but | so | in ))"),
    _rule(_job, r"@I(?:got |was |been )*(?:promoted to|made|became|qualified as) (?:an? |the )?(?P<v>(?:[\w-]+ ){0,3}?"
          r"(?:@JOB|(?:head|director|vp|chief) of [\w ]{2,30}?|manager|team lead|partner))@AT"),
    _rule(_activity, r"@I(?P<v>teach (?!you|them|him|her|myself|it|this|my)[^\n,]{2,40}?|run (?:an? "
          r"|my own )(?:\w+ ){0,3}?(?:bakery|shop|store|cafe|café|restaurant|company|business|studio|agency|salon|bar"
          r"|farm|hotel|b&b|pub|gym|clinic|practice|school|startup|garage)|drive an? (?:\w+ )?(?:bus|taxi|cab|tram"
          r"|lorry|forklift|delivery van)|(?:drive|sell|build|repair|fix|manage|make|design|clean|write) [^\n,]{2,40}? "
          r"for a living)@END"),
    _rule(_fact("occupation"), r"(?:@BE|I )(?:got |was |been |just )*(?P<v>retired|unemployed|between jobs|out of work"
          r"|a stay-at-home \w+)(?=\s*$|\s*,| and | now| right now| here| since| from| last| in | at )"),
    _rule(_employer, r"(?:(?:@I|@BE)(?:been )?(?:work(?:ing)?|employed|(?:got |have |started |for |to start |because "
          r"of )*(?:a |my )?(?:new )?job|start(?:ed|ing)(?: working)?|interning|an intern)(?: (?:over|remotely"
          r"|part[- ]time|full[- ]time|nights|days))? (?:at|for|with|by)|my (?:employer|company) is(?: called)?"
          r"|@Ijoined(?= (?-i:[A-Z]))|the company I work (?:for|at) is(?: called)?|I've been (?:at|with)|I switched "
          r"(?:jobs )?to(?= (?-i:[A-Z]))) (?:[\w ]{2,30} (?:called|named) )?(?P<v>[^\n,]{2,50}?)@END(?: as (?:an? )?"
          r"(?P<w>[^\n,]{2,60}?)@END)?"),
    _rule(_studies, r"(?:@I|@BE)(?:stud(?:y|ying|ied)|major(?:ing)? in|learn(?:ing)?(?: to speak)?|(?:doing|do|have"
          r"|finishing|writing|starting) (?:an?|my) (?:degree|course|masters?|master's|phd|bachelors?|bachelor's|thesis"
          r"|dissertation|diploma|apprenticeship) (?:in|on|about)|(?:doing |in )?(?:my |the )?(?:1st|2nd|3rd|4th|first"
          r"|second|third|fourth|final|last) year of(?: an?)?|my (?:major|degree|field of study) is(?: in)?) (?!how|to"
          r"|a lot|hard|for|so|at\b|in\b|abroad|about|from|more|together|online|every|right|my|this|that|it\b|something"
          r"|things)(?P<v>[^\n,]{2,50}?)(?:(?: at| in) (?P<s>(?:the )?(?:(?-i:[A-Z])[\w']*|university|uni|college)(?: "
          r"(?:of|in|(?-i:[A-Z])[\w']*|university|college)){0,5})(?=\W|$)|@END)"),
    _rule(_fact("studies", refuse=_NOT_PLACES), r"(?:@I|@BE)(?:study|studying|go to (?:school|uni|university|college)"
          r"|enrolled|(?:an? )?(?:(?:[\w-]+ ){0,3}student|sophomore|freshman|fresher|undergrad)) (?:at|in) (?:the )?"
          r"(?P<v>(?!home\b|school\b|night\b|university\b|uni\b|college\b)[^\n,]{2,50}?)@END"),
    # family, friends and pets
    _rule(_relative, r"(?:my |our )?@MOD(?P<r>@RELATION)(?:'s|s'|s)? ?(?:names? (?:is|are)|(?:is|are) (?:called|named|"
          r"(?=(?-i:[A-Z])))|,? (?:called|named)) ?(?P<v>[^\n]{2,60}?)(?=\s*$|\s*[()]| (?:@STOP|my|he|she|who|is|has"
          r"|lives|works|at|from|in)\b|, (?:he|she|who|and I|I|is|a)\b)"),
    _rule(_relative, r"@Ihave (?:an?|two|three|four|five|\d|one|twin) @MOD(?P<r>@RELATION)(?:(?:,? (?:called|named"
          r"|whose names? (?:is|are)|who(?: is|'s) called)|,|:| \() ?(?P<v>(?!who|and|but|he|she|so)[^\n]{2,60}?)"
          r"(?=\s*$|\s*[()]|, \d| (?:@STOP|my|he|she|who|is|has)\b|, (?:he|she|who|and I|I|is|a|one)\b)|(?=\s*$|\s*,| "
          r"and ))"),
    _rule(lambda g, t: _name("partner")(g, t) if "v" in g else [Pair("partner", "", unnamed=True)],
          r"(?:@BE|I )(?:married to|dating|engaged to|seeing|in a relationship with|going out with)(?: (?:an? \w+"
          r"|someone|somebody)(?: new)?(?: called| named)?)?(?: (?P<v>@NAME)(?!\w))?(?=\s*$|\s*[,()]| and | for | "
          r"since | from | who | now | but )"),
    _rule(_kin_does, r"my @MOD(?P<r>@RELATION) (?:(?:is|'s|works as|is working as|was) (?=an? ))?(?P<v>(?:an? "
          r"[^\n,]{2,60}?@END|(?:lives|works (?:at|for|in)|studies|is (?:from|allergic to|vegan|vegetarian|diabetic"
          r"|autistic|deaf|\d{1,2}(?: years old)?(?=\s*$|,))|comes from|is (?:studying|living in)|(?:just )?(?:started"
          r"|moved to)|(?:has|was diagnosed with) (?:@CONDITION))[^\n,]{0,60}?@ENDS))"),
    _rule(_pet, r"@I(?:have|own|got|adopted|rescued|keep|bought)(?: myself)? (?P<n>an?|two|three|four|five|six|\d|some"
          r"|my) (?P<m>(?:[\w-]+,? ){0,4}?)(?P<a>@ANIMALs?|puppies|bunnies|kitties|mice|ponies)(?:(?:,? (?:called|named"
          r"|whose names? (?:is|are)|and (?:his|her|its) name is|and (?:he|she)'s called|names? (?:is|are))|,|:| \() ?"
          r"(?P<v>@NAME(?:(?: and |, | & |, and )@NAME){0,5}|(?<=called )\w+|(?<=named )\w+)|(?![\w-])(?! (?:problem"
          r"|food|allergy|show|person|lover|soup|sitter|bed|toy|salad|sandwich|phobia|farm|in my throat)))"),
    _rule(_pet, r"(?:(?:my|our) (?:(?:two|three|four|\d) )?|the (?=[\w ]+ (?:I|we) ))(?P<m>(?:(?:pet|black|white|ginger"
          r"|orange|golden|german|tabby) )?)(?P<a>@ANIMALs?)(?: (?:I|we) (?:own|have|got|ride))?(?:'s)? ?(?:names? "
          r"(?:is|are)|(?:is|are) (?:called|named)|is(?= (?-i:[A-Z]))|called|named|,) (?P<v>@NAME(?:(?: and |, "
          r")@NAME){0,5}|(?<=called )\w+|(?<=named )\w+|(?<=name is )\w+|(?<=names are )\w+ and \w+)"),
    # tastes and pastimes
    _rule(_favourite, r"(?:my )?(?:all[- ]time |absolute |personal )*favou?rite (?P<k>[\w -]{2,40}?)(?: of all time| "
          r"ever)?(?: (?P<be>is|are|has to be|would be|has always been|will always be|must be|'s)|:| =|'s) "
          r"(?:definitely |probably |obviously |always |the colou?r )?@ADV@LIST"),
    _rule(_fact("instruction"), r"@I(?:prefer|like|want) (?P<v>(?:[\w-]+ ){1,3}(?:answers|replies|responses"
          r"|explanations|units))@END"),
    _rule(_fact("likes", many=True, most=8, spoil=_VAGUE), r"@I(?:like|love|enjoy|adore|am into) (?!to (?:know|think"
          r"|believe|see|hear|be called)\b|it\b|to say)@LIST"),
    _rule(_fact("likes", many=True, most=8, spoil=_VAGUE), r"@Iprefer (?:to have |having )?(?P<v>[^\n]{1,120}?)(?=\s*$"
          r"| (?:to|over|rather than|instead of|than|more than) | (?:@STOP|my)\b|\s*\()"),
    _rule(_fact("likes", many=True, most=8, spoil=_VAGUE), r"(?:@BE(?:(?:very|super|big|a|huge|massive|such|crazy"
          r"|lifelong|real|quite|pretty|rather|total|proper|keen|avid|hardcore|getting|got|totally|absolutely) ){0,4}"
          r"(?:fond of|into|fan of|obsessed with|interested in|passionate about|keen on|addicted to|crazy about|mad "
          r"about|lover of|hooked on|in love with)|I can't (?:live without|get enough of)|my (?:main |favourite "
          r"|biggest )?(?:hobby|hobbies|interests|passions?|guilty pleasure)(?: is| are| includes?|:)|I have (?:a soft "
          r"spot|a passion|a sweet tooth) for|nothing beats|I'd never refuse|@I(?:taken up|took up|got into)) @LIST"),
    _rule(_fact("likes", many=True, spoil=_VAGUE), r"(?:@BE(?:an? )?)?(?:(?:a )?(?:big|huge|massive|hardcore|lifelong"
          r"|total|real|die-hard|avid) ){0,2}(?P<v>(?!(?:big|bigger|biggest|huge|massive|great|major|true|real|total"
          r"|lifelong|avid|such|an?|not|I|I'm|he|she|they)\b)[\w' ]{2,30}?) (?:fan|lover|enthusiast|addict|nerd|geek"
          r"|buff|aficionado)(?: here)?(?=\s*$|\s*[,()]| and | but | so | btw)"),
    _rule(_fact("dislikes", many=True, most=8, spoil=_VAGUE), r"(?:@I(?:@NOT @ADV(?:(?:like|enjoy|love|care for|stand"
          r"|bear|deal with|liked|enjoyed)(?: the taste of| the smell of)?|tolerate)|hate|dislike|detest|despise|loathe"
          r"|try to avoid)(?: it)?|@BEnot @ADV(?:(?:a|much of a|big|huge|the biggest|exactly a|really a) ){0,2}(?:fan "
          r"of|into|fond of|keen on|crazy about)) @LIST"),
    _rule(_fact("hobby", before="playing "), r"(?:@I(?:play|(?:been )?playing)|@BEplaying) (?P<v>(?:the (?:\w+ )?"
          r"(?:cello|piano|guitar|violin|drums|bass|flute|sax\w*|trumpet|ukulele|harp|clarinet|organ|banjo|viola|oboe"
          r"|accordion)|piano|guitar|bass|drums|football|soccer|tennis|basketball|volleyball|rugby|hockey|badminton"
          r"|chess|golf|cricket|handball|squash|padel|table tennis|d&d))(?![\w-])"),
    _rule(_fact("hobby"), rf"@I(?:do|go|practi[sc]e|started|train)(?: doing)? (?P<v>(?:[\w-]+ )?{_PASTIMES})(?![\w-])"),
    _rule(_fact("hobby", before="collecting "), r"@Icollect (?!you\b|my\b|it\b|the\b|data\b)@ONE"),
    # what they have and what they are after
    _rule(either(_fact("owns", many=True, most=7, refuse=_NOT_OWNED)), r"@I(?:own (?P<v>(?!up\b|it\b|my\b"
          r"|nothing)[^\n]{2,160}?)@ENDS|(?:drive|ride|play on|fly) (?P<w>an? [^\n,]{2,40}?)@END|(?:have|bought|got"
          r"|purchased|ordered|picked up)(?: myself)? (?P<x>(?:an?|two|three|\d) (?:(?:[\w'-]+ ){0,4}?@THING(?: (?:pro"
          r"|air|max|plus|mini|one|\d{1,4}\w?|(?-i:[A-Z])\w+)){0,3}|(?:19|20)\d\d \w+(?: \w+)?))(?:@END| that| called| "
          r"named| off))"),
    _rule(_fact("owns", refuse=_NOT_OWNED), r"my (?:car|bike|laptop|phone|computer|guitar|camera|motorbike|motorcycle)"
          r"(?: is|'s) (?P<v>an? [^\n,]{2,40}?)@END"),
    _rule(_fact("goal", most=14, refuse=_NO_GOAL, dated=True), r"(?:(?:my|our) (?:(?:big|main|biggest|ultimate|current"
          r"|long[- ]term|life|new|only|fitness|personal|career) )*(?:goals?|dreams?|aim|ambition|resolution|new "
          r"year's resolution)(?: (?:this|next) year)?(?: (?:for|of) (?:this year|next year|life|the year|20\d\d))? "
          r"(?:is|are)|I dream of|I've always wanted|I aim|I hope|I'm hoping|I'm determined|I'm trying|I'm aiming) "
          r"(?:to |of )?(?P<v>(?!to |of )[^\n ]+ [^\n]{2,160}?)@GOAL"),
    _rule(_fact("goal", most=14, refuse=_NO_GOAL, dated=True), r"(?:I (?:really |also |just |would really |still |do "
          r"|eventually |one day |someday |finally )*(?:want|would like|would love|plan|intend)|I'd (?:really )?"
          r"(?:like|love)|(?:one day|someday|this year|next year) I (?:want|'d like|'d love|hope|will|plan)) to (?P<v>"
          r"(?:eventually |finally |someday |one day |maybe )?(?:learn|become|lose|quit|stop (?:smoking|drinking)|save"
          r"|run (?:a|my)|complete|travel (?:to|around|the)|visit|move to|(?:start|open|write|build|buy|finish|get) "
          r"(?:a|an|my)|publish|get (?:fit|in shape|into|better at|promoted)|climb|hike|master|improve my|gain|retire"
          r"|study|be (?:able to|fluent)|read \d+|walk the|sail|go back to (?:school|university|uni)|graduate|speak"
          r"|eat (?:less|more|healthier)|exercise|drink (?:less|more)|sleep (?:more|better)|win|pass|found)\b "
          r"[^\n]{1,140}?)@ENDS"),
    _rule(_fact("goal", most=14, refuse=_NO_GOAL, dated=True), r"@BE(?P<v>(?:saving(?: up)?|training|preparing"
          r"|studying) for (?!you|it\b|this|that)[^\n]{2,100}?)@ENDS"),
    _rule(_plan, r"(?:@BE|@I)(?:(?P<g>going to)|planning (?:to|on)|plan to|will be|intend to|going) (?P<v>(?!be (?:back"
          r"|late)|sleep|bed)[^\n]{4,160}?)@GOAL"),
    _rule(_plan, r"(?:@BE|(?:I'll|we'll) be )(?P<v>(?:moving|flying|travell?ing|getting|starting|visiting|taking|having"
          r"|leaving|meeting|running|hosting|quitting|retiring|graduating|heading|driving|planning|giving|doing"
          r"|attending|celebrating|changing|joining|switching|buying|selling|off|throwing|returning|presenting"
          r"|competing|playing|seeing|organi[sz]ing|expecting|turning|(?<=be )in|(?<=be )away)\b[^\n]{4,160}?)@GOAL"),
    _rule(_plan, r"@I(?P<v>(?:fly\b|travel\b|return\b|move\b|drive (?!to work)|head (?!to bed)|go (?:back |over )?to "
          r"(?!bed\b|sleep\b|work\b)|leave for (?!work\b)|(?:start|begin) (?:my (?!day\b)|a |the |school|uni"
          r"|college|work\b)|retire\b|graduate\b|get married\b)[^\n]{4,160}?)@GOAL"),
    _rule(_plan, r"(?:@Ihave (?:an? |my |the |our )?|(?:my|our) )(?P<v>(?:[\w'-]+ ){0,3}(?:appointment|exams?|interview"
          r"|flight|meeting|trip|wedding|surgery|deadline|party|concert|marathon|race|presentation|vacation|holiday"
          r"|test|operation|anniversary|conference|date|reservation|visit|check-?up|finals|baby due"
          r"|call)\b[^\n]{2,100}?)@GOAL"),
)
_INTRODUCED: tuple[Rule, ...] = (
    _rule(_name("name"), r"I'm (?P<v>@NAMES)(?=\s*$|\s*[,()–—]|\s+-| and | but | from | living | based | btw| by the "
          r"way| 👋)"),
    _rule(_name("name"), r"I'm (?P<v>[a-z]{3,12})(?=,? (?:\d{2}\b|from (?!work|home)))"),
)
#: Lower-case names are only believed right after a greeting.
_GREETED: tuple[Rule, ...] = (
    *_INTRODUCED,
    _rule(_name("name"), r"(?:I'm|it's|this is) (?P<v>[a-z]{3,14})(?=\s*$|\s*,| and | here)"),
)
# fmt: on

# ------------------------------------------------------------------------------------------------ requests
_PLEASE = Phrase(
    r"^(?:(?:please|kindly|just|also|and|ok|so|hey|oh|(?:can|could|would|will) you(?: please)?|I(?:'d| would) (?:like"
    r"|love|prefer) (?:it if you|you to|for you to|if you)(?: could)?|I (?:want|need) you to|I would appreciate if you"
    r"|try to|you should|you can|you must|make sure (?:to|you)|be sure to|if you could|it would be (?:great|nice) if "
    r"you|would you mind|do me a favou?r and|when(?:ever)? (?:you (?:answer|reply|talk to me|respond)|answering"
    r"|replying|talking to me)(?: me)?,?)[\s,]+)+|,? (?:please|thanks|thank you|thx|ok\??|okay|will you|if possible|if "
    r"you can)$",
    re.IGNORECASE,
)
#: The reason for a request, which is no part of it.
_REASON = Phrase(
    r"(?:,?\s+(?:because|cause|'cause|cuz|coz|bc|due to|since|otherwise|or else|in order to|as (?:I|I'm|I've|my|it|it's"
    r"|they|that|this|the)|so (?:that )?(?:I|I'm|I've|my|it|we))|,\s+(?:I'm|it's|they're|it (?:helps|makes|is)|they "
    r"(?:annoy|are)))(?![\w']).*$",
    re.IGNORECASE,
)
_THANKS = Phrase(
    r"(?:[\s,]+(?:please|thanks|thank you|thx|ok|okay|at all|would you|will you|if possible|if you can|k|alright|cheers"
    r"|with me|lol|haha|btw|tho|though)){1,3}$",
    re.IGNORECASE,
)
_STANDING = Phrase(
    r"\b(?:from (?:now|here|today|this point) on(?:wards?)?|(?:going|moving) forward|from here on out|in (?:the "
    r")?future|for (?:all )?(?:the )?future(?: reference| replies| answers| messages)?|by default|permanently|from now"
    r"|at all times|henceforth)\b,?",
    re.IGNORECASE,
)
_FOR_EVER = Phrase(r"\b(?:ever|again|anymore|every time|each time|all the time|so much)\b", re.IGNORECASE)
_ONE_OFF = Phrase(
    r"\b(?:this time|for this|just once|this once|right now|today|tonight|this (?:answer|message|question|text|email"
    r"|one|essay|code|page|article|document|file)|the (?:following|question|text|email|word|next question)|below|above"
    r"|for a (?:sec|second|minute|moment|while))\b",
    re.IGNORECASE,
)
_REMEMBER = Phrase(
    r"(?:remember|never forget|don't forget|keep in mind|bear in mind|note|make a note|take note|note to self|save this"
    r"|memori[sz]e|store)(?:,| for (?:me|later|the future|next time)|:)*(?: (?:that|this)(?! (?:time|day|one|guy|girl"
    r"|show|movie|song|thing|moment|night|feeling|episode|game|when|is\b)):?,? ?|: ?|(?=,? (?:I|I'm|I've|my|our|we)\b"
    r"(?! (?:said|told|asked))),? ?)",
    re.IGNORECASE,
)
_VERB = one_of(
    "answer reply respond write speak talk text chat use explain give include keep start begin end finish greet sign "
    "add send show ask remind summari[sz]e format put say convert cite skip stick_to switch_to be address treat assume "
    "apologi[sz]e repeat lecture swear spell list provide suggest recommend check tell double[-_]check call_me quote "
    "mix wake sugar-?coat"
)
_MANNERS = one_of(
    "emojis? emoticons exclamation slang jargon small_talk swearing swear_words jokes bullets? bullet_points markdown "
    "long_\\w+ lists tables fluff filler disclaimers apologies spoilers abbreviations all_caps essays lectures"
)
_NICE = (
    r"(?:brief|concise|short|honest|direct|polite|(?:in)?formal|casual|friendly|blunt|precise|specific|clear|to the "
    r"point|gentle|patient|funny|straightforward|sarcastic|critical|detailed|verbose|wordy|chatty|serious|simple|light"
    r"|under|below|professional|minimal|sweet)"
)
#: "When I paste code, only show me the changes": a rule for a kind of occasion.
_WHENEVER = Phrase(
    rf"(?P<v>(?:when|whenever|every time|each time|if) I (?:paste|ask|send|say|share|post|write|type|give|tell|mention"
    rf"|talk|upload|request|show)\b[^,\n]{{0,60}}?(?:,|(?= (?:just|only|always|never|don't|you should)\b)) ?(?:"
    rf"(?:please|just|only|always|never|don't|you should|you can) )*{_VERB}\b.*)",
    re.IGNORECASE,
)
_ORDER = Phrase(
    rf"(?P<always>(?:always|never|every time|each time|no matter what|when(?:ever)? I \w+(?: \w+){{0,4}},?) )?"
    rf"(?:please )?(?P<no>(?:do not|don't|no need to)(?: ever)? |stop |avoid |quit |(?:no|less|fewer|no more) "
    rf"(?={_MANNERS}))?(?:just |only )?(?:{_VERB}|{_MANNERS}|(?<=stop )\w+ing|(?<=quit )\w+ing|(?<=avoid )\w+ing)\b",
    re.IGNORECASE,
)
_NOT_ORDERS = Phrase(
    r"\b(?:be (?:yourself|there|kind to|happy|careful|back|good|strong|safe|afraid|sad|silly|so sure|right|like that"
    r"|okay|ok|mad|scared|a stranger|my|with)|say never|give up|give you|start over|keep (?:going|calm|in touch|up|it "
    r"up|trying|the change)|use protection|talk to strangers|tell anyone|end up|speak too soon|check out|put off|be "
    r"worried|tell me (?:the|a|about|why|what|how)|ask me (?:why|how|what)|worrying|crying)\b",
    re.IGNORECASE,
)
_STYLE = Phrase(
    rf"(?:(?:answer|reply|respond|write|speak|talk|text|chat)(?:ing)?(?: to me| me| back| with me)?(?: only| always| "
    rf"just)? (?:in|using|with) (?:{_LANGUAGES}|bullets?|bullet points|short|simple|plain|full|one|a|british|american"
    rf"|lower ?case|fewer|less|more|metric|prose|haiku|rhymes?)|(?:speak|talk|write) to me (?:like|as|in)|(?:speak|talk"
    rf"|use|write|switch to|stick to) (?:only )?(?:{_LANGUAGES})\b(?! (?:word|for)s?)|keep (?:it|things|everything|"
    rf"(?:your )?(?:answers?|replies|responses|messages|explanations)) (?:\w+ )?{_NICE}|be (?:more |less |very |a bit "
    rf"|a little |really |super |brutally |as )*{_NICE}\b|(?:don't|stop|avoid|quit|no|no more|less|fewer) (?:ever )?(?:"
    rf"(?:us|send|add|writ|put|includ)(?:e|ing)? )?(?:any |so many |too many |more )?{_MANNERS}|(?:don't|stop|quit) "
    rf"(?:be|being|calling me|call me|apologi[sz]e|apologi[sz]ing|repeat\w*|lectur\w+|swear\w*|ask(?:ing)? me"
    rf"|explain\w*|say|saying|start|starting|ending?|sugar-?coat\w*|giv(?:e|ing) me|remind\w*|use|using|suggest\w*"
    rf"|recommend\w*)\b|use (?:only |more |fewer |less |the )?(?:metric|imperial|celsius|fahrenheit|kilomet|kg|km|24"
    rf"|simple|plain|short|informal|formal|british|american|uk|us|emojis|bullet|first name|my (?:first |nick)?name|they"
    rf"|he|she|markdown|simpler|lower|everyday|polite)\b|(?:address|greet|treat) me\b|explain (?:things|everything"
    rf"|stuff) |give (?:me )?(?:short|brief|concise|detailed|direct|examples|shorter|honest) (?:answers|replies"
    rf"|responses)|skip the (?:intro|small talk|pleasantries|disclaimers|fluff)|short answers)",
    re.IGNORECASE,
)
_NO_TOPIC = Phrase(r"\b(?:it|this|that|you|them|him|her|something|anything|to anyone|now|me)\b", re.IGNORECASE)

# fmt: off
_REQUESTS: tuple[Rule, ...] = (
    _rule(_name("called"), r"(?:you can |feel free to )?(?:just |only )?(?:call me|(?:address|refer to) me (?:as|by)) "
          r"(?:just )?(?P<v>(?!sometime|soon|when|if|later|back|tomorrow|at|on|a |an |maybe|crazy|old|asap|in |today"
          r"|tonight|after|before|anytime|by |whatever|stupid|out|names|again|your|every)[^\n,]{1,30}?)@END"),
    _rule(_fact("boundary", many=True, most=7, refuse=_NO_TOPIC), r"(?:(?:don't|never|stop|avoid|quit|no|let's (?:not"
          r"|never)|I don't (?:want|like|wish) (?:you )?to(?: ever)?|I'd rather (?:not|you didn't)|I'd prefer (?:not to"
          r"|you didn't|if we didn't)|I refuse to|you (?:shouldn't|can't|mustn't)|I'd appreciate if you didn't|I hate "
          r"(?:talking|when you (?:talk|ask|joke))|I'm not comfortable|I (?:feel un|don't feel )comfortable) (?:ever "
          r"|please |again |even |to )?(?:talk(?:ing)? (?:to me |with me )?(?:about|of)|mention(?:ing)?|br(?:ing"
          r"|inging) up|discuss(?:ing)?|ask(?:ing)? (?:me )?(?:(?:anything |questions )?about)|jok(?:e|ing) about"
          r"|jokes about|mak(?:e|ing) (?:any )?(?:jokes|fun) (?:about|of)|speak(?:ing)? (?:to me )?(?:about|of)|remind"
          r"(?:ing)? me (?:of|about)|giv(?:e|ing) me (?:any )?(?:advice|tips) (?:on|about)|comment(?:ing)? on|tell"
          r"(?:ing)? me (?:anything )?about|touch(?:ing)? on)|(?:avoid|stay away from|steer clear of) (?:the |any )?"
          r"(?:topics?|subjects?|mentions?) (?:of|like|about)) (?:anything (?:about|related to) |the (?:topic|subject) "
          r"of )?(?P<v>[^\n]{2,80}?)(?: (?:to me|with me|anymore|again|ever|ever again|around me|at all|in front of "
          r"me))*@ENDS"),
    _rule(_fact("boundary", many=True, refuse=_NO_TOPIC), r"(?P<v>[\w' ]{2,40}?) (?:is|are) (?:strictly |totally "
          r"|completely )?(?:off[- ]limits|an? (?:taboo|sensitive|no-go|touchy|sore) (?:topic|subject|point)|taboo|a "
          r"trigger(?: for me)?|something I don't (?:want to )?(?:talk about|discuss))"),
    _rule(_fact("boundary"), r"no (?:more )?(?P<v>spoilers?|politics|religion)(?: talk)?$"),
)
# fmt: on
