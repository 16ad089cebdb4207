"""The max-loss guard: which facts a merged statement still says, and which answers are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.jobs.loss import Merge, Statement, alike, invents, judge, says, says_the_same
from memory.text import likeness
from tests.kit.tables import each_row


def statement(said: str) -> Statement:
    """ "key: value", or a value alone under one and the same key."""
    key, found, value = said.partition(": ")
    return Statement(key=key, value=value) if found else Statement(key="detail", value=said)


#: A fact, and a merged statement that says it.
KEPT = [
    ("40 mg in the morning, 20 at night", "20 at night, 40 mg in the morning"),
    ("Ada and Ben live in Rome", "Ben and Ada live in Rome with a dog"),
    ("早上40毫克，晚上20毫克", "晚上20毫克，早上40毫克"),
    ("prefers window seats on trains", "prefers window seats on trains, never travels by plane"),
    ("takes 20 mg of cetirizine", "takes 20 mg of cetirizine and 5 mg of folic acid"),
    ("plays badminton on Wednesday evenings", "plays badminton on Wednesday evenings and swims on Sundays"),
    ("does not eat meat", "does not eat meat or shellfish"),
    ("doesn't eat shellfish", "does not eat meat or shellfish"),
    ("has 2 cats", "has 2 cats and 3 hens"),
    ("has 3 hens", "has 2 cats and 3 hens"),
    ("met Nina Simone's daughter in 2019", "met Nina Simone's daughter in 2019 and wrote about it"),
    ("joined Acme in May 2021", "joined Acme in May 2021 as a data engineer"),
    ("dog-name: Rex", "pets: a dog named Rex and a cat named Minka"),
    ("likes: coffee", "likes: coffee, tea and cocoa"),
    ("note: the spare key is under the third pot", "keys: the spare key is under the third pot, the cellar key with Jo"),
    ("deadline is 2026-03-05", "the deadline is 2026-03-05, the review on 2026-02-20"),
    ("the flat has three rooms and a balcony", "the flat has 3 rooms, a balcony and a cellar"),
    ("never drinks coffee after five", "never drinks coffee after five, likes herbal tea"),
    ("runs the Porto marathon every autumn", "every autumn runs the Porto marathon, trains with Ben"),
    ("对花生过敏", "对花生和虾过敏"),
    ("对虾过敏", "对花生和虾过敏"),
    ("每周三晚上打羽毛球", "每周三晚上打羽毛球，周日游泳"),
    ("不吃香菜", "不吃香菜和葱"),
    ("不吃葱", "不吃香菜和葱"),
    ("养了两只猫", "养了2只猫和一条狗"),
    ("在腾讯做产品经理", "2019年起在腾讯做产品经理"),
    ("喜欢喝乌龙茶", "喜欢喝乌龙茶和普洱茶"),
    ("截止日期是2026年3月5日", "报告截止日期是2026年3月5日，评审在2月20日"),
    ("用Python写后端", "用Python写后端，用React写前端"),
    ("goes swimming with the kids every weekend at the lake", "swims with the kids every weekend at the lake, skis in winter"),
    ("is learning to bake sourdough bread from his grandmother's recipe book",
     "bakes sourdough bread and cakes from his grandmother's recipe book"),
    ("周末常和家人去海边散步", "周末和家人去海边散步、骑车"),
]  # fmt: skip
#: A fact, a merged statement that does not say it, and what is wrong.
LOST = [
    ("40 mg in the morning, 20 at night", "20 mg in the morning, 40 at night", "doses exchanged"),
    ("早上40毫克，晚上20毫克", "早上20毫克，晚上40毫克", "doses exchanged"),
    ("Ada taught Ben", "Ben taught Ada", "who did it"),
    ("Ada is 30 and Ben is 40", "Ada is 40 and Ben is 30", "ages exchanged"),
    ("runs 10 km on Mondays and 5 km on Fridays", "runs 5 km on Mondays and 10 km on Fridays", "numbers exchanged"),
    ("used to smoke", "smokes, drinks beer at weekends", "over"),
    ("以前抽烟", "抽烟，周末喝啤酒", "over"),
    ("takes 20 mg of cetirizine", "takes cetirizine and folic acid", "number gone"),
    ("takes 20 mg of cetirizine", "takes 5 mg of cetirizine and 20 drops of vitamin D", "number of another thing"),
    ("has 2 cats", "has 3 cats and 2 hens", "number exchanged"),
    ("plays badminton on Wednesday evenings", "plays badminton in the evenings", "weekday gone"),
    ("joined Acme in May 2021", "joined Acme in 2021 as a data engineer", "month gone"),
    ("deadline is 2026-03-05", "the deadline is in spring", "date gone"),
    ("does not eat meat", "eats meat and fish", "negation gone"),
    ("eats fish", "does not eat meat or fish", "negation come"),
    ("does not eat meat", "does not eat fish, eats meat", "negation of something else"),
    ("never drinks coffee after five", "drinks coffee before five", "negation gone"),
    ("met Nina Simone's daughter in 2019", "met a singer's daughter in 2019", "name gone"),
    ("sister Marta studies law in Coimbra", "sister studies law in Coimbra", "name gone"),
    ("the review is done by Ben", "the review is done by Jo", "name exchanged"),
    ("works at Acme as a data engineer", "works at Acme", "half gone"),
    ("keeps to a low salt diet", "keeps to a low sugar diet", "one word is all the difference"),
    ("low salt diet", "low fat diet", "one word is all the difference"),
    ("likes window seats on night trains", "hates window seats on night trains", "opposite"),
    ("is able to lift heavy things at work", "is unable to lift heavy things at work", "opposite by a prefix"),
    ("calls his mother before breakfast on Sundays", "calls his mother after breakfast on Sundays", "opposite"),
    ("likes: tea", "preferences: coffee and tea", "key with a meaning of its own"),
    ("dislikes: tea", "likes: coffee and tea", "key with the opposite meaning"),
    ("dog-name: Rex", "names: Rex and Minka", "what the key says is gone"),
    ("the flat has three rooms and a balcony", "the flat has a balcony", "number word gone"),
    ("对花生过敏", "对虾过敏", "thing gone"),
    ("不吃香菜", "吃香菜和葱", "negation gone"),
    ("吃鱼", "不吃肉和鱼", "negation come"),
    ("不吃肉", "不吃鱼，吃肉", "negation of something else"),
    ("养了两只猫", "养了3只猫", "number exchanged"),
    ("每周三晚上打羽毛球", "每周晚上打羽毛球", "weekday gone"),
    ("截止日期是2026年3月5日", "截止日期是2026年3月", "day gone"),
    ("低盐饮食", "低糖饮食", "one character is all the difference"),
    ("姐姐在波尔图教书", "姐姐在里斯本教书", "place exchanged"),
    ("用Python写后端", "写后端和前端", "name gone"),
    ("喜欢喝乌龙茶", "喜欢喝普洱茶", "thing gone"),
    ("王医生说少吃盐", "李医生说少吃盐", "surname exchanged"),
    ("饭后吃药", "饭前吃药", "opposite"),
    ("teaches pottery and glass at the community centre", "teaches pottery at the community centre", "a fifth gone"),
    ("plans a trip along the coast with the old van", "plans a trip along the coast", "a third gone"),
    ("books the quiet carriage near the dining car", "books the quiet carriage", "half gone"),
    ("计划去冰岛看极光和鲸鱼", "计划去冰岛看极光", "a fifth gone"),
    # No loss, but a merge that is not made harms nobody.
    ("works at Acme as a data engineer", "data engineer at Acme since May 2021", "in words of its own"),
    ("女儿叫小雨，今年6岁", "女儿小雨今年6岁，儿子小川今年9岁", "in words of its own"),
]  # fmt: skip


@each_row(("fact", "merged"), KEPT)
def test_a_statement_that_says_a_fact_in_other_order_or_company_keeps_it(fact: str, merged: str) -> None:
    """Otherwise nothing could ever be merged."""
    assert says(statement(merged), statement(fact))


@each_row(("fact", "merged", "wrong"), LOST)
def test_a_statement_that_lacks_or_changes_what_matters_loses_the_fact(fact: str, merged: str, wrong: str) -> None:
    """A merged row takes the place of its facts: what it does not say is gone from every prompt."""
    assert not says(statement(merged), statement(fact)), wrong


INVENTED = [
    ("has 3 cats, 1 of them blind", True),
    ("has 2 cats and lives with Marta", True),
    ("has 2 cats that everybody in the whole street knows, feeds and photographs daily", True),
    ("has 2 cats and likes reading", False),
]


@pytest.mark.parametrize(("merged", "invented"), INVENTED)
def test_a_number_a_name_or_half_a_story_of_its_own_is_made_up(merged: str, invented: bool) -> None:
    assert invents(statement(merged), [statement("has 2 cats"), statement("likes reading")]) is invented


def test_the_subject_and_the_topic_may_be_named() -> None:
    facts = [statement("teaches maths"), statement("teaches physics")]
    merged = statement("In Porto her sister Marta teaches maths and physics")
    assert invents(merged, facts)
    assert not invents(merged, facts, about="Marta, sister; porto")


FACTS = {
    1: statement("likes: jazz by Nina Simone"),
    2: statement("likes: fado"),
    3: statement("likes: blues from Memphis"),
    4: statement("likes: chamber music"),
    5: statement("likes: opera in Verona"),
}


def merge(value: str, *ids: int) -> Merge:
    return Merge(ids=ids, statement=Statement(key="likes", value=value))


def test_what_is_lost_up_to_a_quarter_stays_by_itself() -> None:
    """One of four: the other three are merged."""
    verdict = judge(FACTS, [merge("jazz by Nina Simone, fado, blues from Memphis", 1, 2, 3, 4)])
    assert (verdict.named, verdict.lost, verdict.refused) == (4, 1, False)
    assert [one.ids for one in verdict.merges] == [(1, 2, 3)]


def test_an_answer_that_loses_more_than_a_quarter_is_refused_whole() -> None:
    """Two of five; whoever loses so much isn't trusted with the rest."""
    verdict = judge(FACTS, [merge("jazz by Nina Simone and fado", 1, 2), merge("music from Memphis", 3, 4, 5)])
    assert verdict.refused and verdict.merges == ()
    assert (verdict.named, verdict.lost) == (5, 3)


def test_near_duplicates_count_once_and_are_kept_with_each_other() -> None:
    """Five ways to say one thing are one fact, neither five that are lost nor five that are kept."""
    facts = {
        n: statement(f"goes to the jazz festival in Porto {word}".strip())
        for n, word in enumerate(["", "gladly", "gladly again", "gladly again nearby"])
    }
    facts[9] = statement("plays the violin")
    assert sorted(map(len, alike(facts))) == [1, 4]
    verdict = judge(facts, [Merge(ids=(0, 1, 2, 3, 9), statement=facts[0])])
    assert (verdict.named, verdict.lost, verdict.refused) == (2, 1, True)


def test_one_made_up_number_spoils_the_answer() -> None:
    assert judge(
        FACTS, [merge("jazz by Nina Simone, 2 kinds of fado", 1, 2), merge("chamber music, opera in Verona", 4, 5)]
    ).refused


def test_a_fact_named_twice_goes_into_the_first_statement_that_says_it() -> None:
    verdict = judge(
        FACTS, [merge("fado and chamber music", 2, 4), merge("fado, opera in Verona, blues from Memphis", 2, 5, 3)]
    )
    assert [one.ids for one in verdict.merges] == [(2, 4), (5, 3)]
    assert verdict.lost == 0


def test_a_statement_of_one_fact_is_no_merge() -> None:
    assert judge(FACTS, [merge("fado", 2)]).merges == ()


word = st.sampled_from(
    [
        *"3茶不三猫",
        "tea",
        "jazz",
        "fado",
        "Porto",
        "Marta",
        "20",
        "May",
        "not",
        "never",
        "likes",
        "hates",
        "big",
        "small",
    ]
)
values = st.lists(word, min_size=1, max_size=8).map(" ".join)


@given(st.lists(values, min_size=1, max_size=6, unique=True))
def test_joining_values_word_for_word_loses_and_invents_nothing(found: list[str]) -> None:
    """The longest merge there can be: every fact in a clause of its own."""
    facts = [Statement(key="detail", value=value) for value in found]
    joined = Statement(key="detail", value="; ".join(found))
    assert not invents(joined, facts)


@given(values, values)
def test_the_guard_is_total_and_every_statement_says_itself(one: str, other: str) -> None:
    a, b = Statement(key="detail", value=one), Statement(key="detail", value=other)
    assert says(a, a)
    assert isinstance(says(a, b), bool)
    assert judge({1: a, 2: b}, [Merge(ids=(1, 2), statement=b)]).named in (1, 2)


@given(st.dictionaries(st.integers(1, 9), values, min_size=1, max_size=6), st.data())
def test_what_is_not_said_is_never_covered(facts: dict[int, str], data: st.DataObject) -> None:
    """No merge names a fact that neither it nor a near-duplicate of it says, and a refused answer has none."""
    known = {n: Statement(key="detail", value=value) for n, value in facts.items()}
    ids = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, unique=True))
    verdict = judge(known, [Merge(ids=tuple(ids), statement=Statement(key="detail", value=data.draw(values)))])
    assert 0 <= verdict.lost <= verdict.named
    anything = frozenset(item.word for value in facts.values() for item in likeness.said(value))
    for one in verdict.merges:
        assert len(one.ids) > 1 and set(one.ids) <= set(ids)
        for n in one.ids:
            like = [m for m in ids if m == n or says_the_same(known[m], known[n]) or says_the_same(known[n], known[m])]
            assert any(says(one.statement, known[m], denied=anything) for m in like)
