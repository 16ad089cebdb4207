"""A year of a chat bot with memory, planted: 300 facts that 20 invented people mention, what later became of 60 of
them, and a question for each.

Written by hand and before any tuning: no sentence comes from a template, and nothing here was fitted to the search.
Thirteen people speak English, seven Chinese; a fact, its value and its question are in the speaker's language. A fact
is said in the speaker's private chat or in one of five groups. Day 1 is 1 January; nothing is said after day 350.

Invariants: ids and values are unique; a question never contains its value; updates lie more than 20 days apart, each
makes the value before it wrong, and the last one is the right answer. A private question is the speaker's own; one
about a fact from a group speaks of its author by name, so that any member can ask it. `reordered` means that words
which question and value share stand in the question in another order, whichever update is current; elsewhere they
keep their order. Values speak of the speaker without a subject unless `about` or the wording names somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What the same person says later, which makes the value before it wrong."""

    day: int
    text: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One planted fact: how it is said, what an extractor would keep of it, and how it is asked for later."""

    id: str
    person: str
    #: "private", or the group it is said in.
    place: str
    #: Day of the year on which it is first said.
    day: int
    text: str
    category: str
    key: str
    value: str
    question: str
    #: The project or theme it belongs to.
    topic: str = ""
    #: "self", or whom or what it is about.
    about: str = "self"
    #: The words that question and value share stand in another order in the question.
    reordered: bool = False
    #: None or two, in the order of their days.
    updates: tuple[Update, ...] = ()

    @property
    def answer(self) -> str:
        """What holds at the end of the year."""
        return self.updates[-1].value if self.updates else self.value


#: Everybody, by id.
PEOPLE: Final[dict[str, str]] = {
    "p01": "Maren Holt",
    "p02": "Dougal Reyes",
    "p03": "Priya Nandakumar",
    "p04": "Tobias Lindqvist",
    "p05": "Ama Boateng",
    "p06": "Callum Hargreave",
    "p07": "Ines Valadares",
    "p08": "Oskar Wieland",
    "p09": "Ruth Abernathy",
    "p10": "Jonah Feldstein",
    "p11": "Leila Haddadin",
    "p12": "Gwen Prothero",
    "p13": "Mateus Corrado",
    "p14": "沈若溪",
    "p15": "顾远航",
    "p16": "唐小满",
    "p17": "罗建国",
    "p18": "叶知秋",
    "p19": "韩冬",
    "p20": "马依然",
}

#: The language each of them writes.
LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {person: "zh" if person >= "p14" else "en" for person in PEOPLE},
)

#: The groups: an allotment, a software project, friends; neighbours, a hiking club.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "g1": ("p02", "p04", "p09", "p11", "p12", "p13"),
    "g2": ("p03", "p05", "p07", "p08", "p10"),
    "g3": ("p01", "p02", "p06", "p07", "p10", "p11", "p13"),
    "g4": ("p14", "p17", "p18", "p20"),
    "g5": ("p14", "p15", "p16", "p19", "p20"),
}

#: Private chats first, then the groups.
_ENGLISH: Final[tuple[Fact, ...]] = (
    Fact(
        id="f001",
        person="p01",
        place="private",
        day=135,
        text=(
            "Finally unpacked the last box! So that's settled, I live in Bergen now, up on the hill by the funicular."
        ),
        category="place",
        key="home",
        value="lives in Bergen",
        question="Which city am I based in these days?",
        updates=(
            Update(
                day=203,
                text=(
                    "Well, the lease ran out and I've left the hill behind. I live in Stavanger now, harbour side, "
                    "gulls included."
                ),
                value="lives in Stavanger",
            ),
            Update(
                day=247,
                text=(
                    "Got the keys this morning and slept on the floor: I live in Trondheim from today. Third town "
                    "this year, I know."
                ),
                value="lives in Trondheim",
            ),
        ),
    ),
    Fact(
        id="f002",
        person="p01",
        place="private",
        day=215,
        text=(
            "Long call with my sister Signe last night. She's a midwife in Tromsø and hasn't had a weekend off for "
            "ages."
        ),
        category="relation",
        topic="family",
        key="sister",
        about="Signe",
        value="sister Signe is a midwife in Tromsø",
        question="Up in Tromsø, what does Signe do for a living?",
        reordered=True,
    ),
    Fact(
        id="f003",
        person="p01",
        place="private",
        day=197,
        text=(
            "Liv, my younger sister, talked me into trying her wall again. She runs a climbing gym in Oslo and I "
            "still can't do an overhang."
        ),
        category="relation",
        topic="family",
        key="sister",
        about="Liv",
        value="younger sister Liv runs a climbing gym in Oslo",
        question="What kind of gym is it, the one of Liv's?",
        reordered=True,
    ),
    Fact(
        id="f004",
        person="p01",
        place="private",
        day=267,
        text=(
            "Dentist today. I had to remind them again that I'm allergic to latex, the gloves make my face swell up."
        ),
        category="health",
        key="allergy",
        value="allergic to latex",
        question="Which of the things that dentists wear am I allergic to?",
    ),
    Fact(
        id="f005",
        person="p01",
        place="private",
        day=76,
        text=(
            "The contract came! Illustrations for The Heron's Umbrella are due on 20 May, thirty-two pages plus "
            "endpapers."
        ),
        category="project",
        topic="The Heron's Umbrella",
        key="deadline",
        value="illustrations for The Heron's Umbrella are due on 20 May",
        question="When's the due date for the heron pictures?",
        reordered=True,
        updates=(
            Update(
                day=128,
                text=(
                    "Phew. The publisher gave me more time, so The Heron's Umbrella illustrations are now due on "
                    "30 June instead."
                ),
                value="illustrations for The Heron's Umbrella are due on 30 June",
            ),
            Update(
                day=169,
                text=(
                    "They've shifted the whole spring list, so the Heron's Umbrella illustrations are due on 15 "
                    "September. I can breathe."
                ),
                value="illustrations for The Heron's Umbrella are due on 15 September",
            ),
        ),
    ),
    Fact(
        id="f006",
        person="p01",
        place="private",
        day=33,
        text=(
            "Tried six samples this week and it isn't even close. My favourite paper is the heavy cold-pressed "
            "cotton from the mill in Fabriano."
        ),
        category="preference",
        topic="painting",
        key="favourite-paper",
        value="favourite paper is the heavy cold-pressed cotton from Fabriano",
        question="Which paper do I like painting on best?",
    ),
    Fact(
        id="f007",
        person="p01",
        place="private",
        day=177,
        text=(
            "Took me an hour, but the drawing tablet behaves now: pressure curve at 0.7 and tilt switched off. "
            "Noting it in case the driver forgets."
        ),
        category="config",
        topic="drawing tablet",
        key="pressure curve",
        value="drawing tablet is set to pressure curve 0.7 with tilt off",
        question="Which curve did I end up with on the tablet?",
        reordered=True,
    ),
    Fact(
        id="f008",
        person="p01",
        place="private",
        day=65,
        text="One thing before we go on. Please don't bring up my divorce from Anders, not even as a joke.",
        category="boundary",
        key="boundary",
        value="does not want the divorce from Anders brought up",
        question="Which part of my past is off limits for you?",
    ),
    Fact(
        id="f009",
        person="p01",
        place="private",
        day=68,
        text=(
            "Did the invoices. My agent Philippa Crane takes 15 percent commission, which hurts a bit on the small "
            "jobs."
        ),
        category="work",
        key="agent",
        about="Philippa Crane",
        value="agent Philippa Crane takes 15 percent commission",
        question="How much commission goes to Philippa?",
        reordered=True,
    ),
    Fact(
        id="f010",
        person="p01",
        place="private",
        day=260,
        text=(
            "Tidied the studio at last! The poster prints with lighthouses and birds are in the bottom drawer of "
            "the blue cabinet."
        ),
        category="artifact",
        topic="lighthouse posters",
        key="storage place",
        value="poster prints with lighthouses and birds are in the bottom drawer of the blue cabinet",
        question="Where did I put the bird ones among my prints?",
        reordered=True,
    ),
    Fact(
        id="f011",
        person="p01",
        place="private",
        day=266,
        text=(
            "Another \"it will be great exposure\" mail. I've made up my mind, I'm not doing unpaid test drawings "
            "for anyone any more."
        ),
        category="decision",
        key="unpaid work",
        value="will not do unpaid test drawings any more",
        question="What did I resolve about clients who want free samples first?",
    ),
    Fact(
        id="f012",
        person="p01",
        place="private",
        day=287,
        text=(
            "The vet says the wound is clean. Kaptein, my one-eyed tomcat, is already back on the windowsill "
            "insulting seagulls."
        ),
        category="relation",
        key="pet",
        about="Kaptein",
        value="has a one-eyed tomcat called Kaptein",
        question="What's my animal's name?",
    ),
    Fact(
        id="f013",
        person="p02",
        place="private",
        day=117,
        text=(
            "New badge, new locker. I work for St Brannoc's Hospital as of today and already got lost twice on the "
            "way to the canteen."
        ),
        category="work",
        key="employer",
        value="works for St Brannoc's Hospital",
        question="Who do I work for at the moment?",
        updates=(
            Update(
                day=199,
                text=(
                    "Handed in the old lanyard on Friday. I'm with the Kelvinside Clinic now, I work for them full "
                    "time."
                ),
                value="works for the Kelvinside Clinic",
            ),
            Update(
                day=245,
                text=(
                    "So the clinic didn't suit me. I work for the Harbour Hospice since this week, smaller team, "
                    "kinder hours."
                ),
                value="works for the Harbour Hospice",
            ),
        ),
    ),
    Fact(
        id="f014",
        person="p02",
        place="private",
        day=84,
        text="Rota is out: from now on my shifts are nights, Sunday to Wednesday. Coffee will have to do the rest.",
        category="work",
        topic="shifts",
        key="shift pattern",
        value="shifts are nights from Sunday to Wednesday",
        question="Which days or nights of the week do I have shifts?",
        reordered=True,
        updates=(
            Update(
                day=141,
                text=(
                    "Matron listened! My shifts have changed to days, Monday to Thursday, so I can see nights as "
                    "they're meant to be seen."
                ),
                value="shifts are days from Monday to Thursday, no nights",
            ),
            Update(
                day=185,
                text=(
                    "Change of plan on the ward, my shifts are now three long days, Friday to Sunday, and no nights."
                ),
                value="shifts are long days from Friday to Sunday, no nights",
            ),
        ),
    ),
    Fact(
        id="f015",
        person="p02",
        place="private",
        day=286,
        text=(
            "Sugar was all over the place after that curry. Type 1 diabetes since I was nine and I still misjudge rice."
        ),
        category="health",
        key="condition",
        value="has had type 1 diabetes since the age of nine",
        question="What illness have I carried with me since childhood?",
    ),
    Fact(
        id="f016",
        person="p02",
        place="private",
        day=63,
        text="Quick note on the gear. My insulin comes from a Medaline pump on the left hip.",
        category="health",
        topic="diabetes",
        key="insulin device",
        value="insulin comes from a Medaline pump worn on the left hip",
        question="Which device, pen or pump, gives me my insulin?",
        reordered=True,
        updates=(
            Update(
                day=98,
                text=(
                    "The pump kept alarming, so the nurse took it back. My insulin now comes from the Corvo pen "
                    "before meals, no pump at all."
                ),
                value="insulin comes from a Corvo pen before meals instead of a pump",
            ),
            Update(
                day=130,
                text=(
                    "Third time lucky: my insulin comes from a Tessaly patch pump on the arm since Tuesday, and "
                    "it's tiny."
                ),
                value="insulin comes from a Tessaly patch pump worn on the arm",
            ),
        ),
    ),
    Fact(
        id="f017",
        person="p02",
        place="private",
        day=202,
        text=(
            "Dinner's on Hamish tonight. My husband teaches geography at a secondary school and has marked maps "
            "all week."
        ),
        category="relation",
        topic="family",
        key="husband",
        about="Hamish",
        value="husband Hamish teaches geography at a secondary school",
        question="What does he teach, my Hamish?",
        reordered=True,
    ),
    Fact(
        id="f018",
        person="p02",
        place="private",
        day=282,
        text=(
            "Our older girl Elsie scored her first goal! She plays in goal usually, for the under-elevens in "
            "Oswestry, so it was a surprise to all."
        ),
        category="relation",
        topic="family",
        key="daughter",
        about="Elsie",
        value="daughter Elsie is goalkeeper of the under-elevens in Oswestry",
        question="What position does Elsie have on her football team?",
    ),
    Fact(
        id="f019",
        person="p02",
        place="private",
        day=273,
        text="And the little one, Nell, has started trombone lessons on Saturdays. The neighbours have been saintly.",
        category="relation",
        topic="family",
        key="daughter",
        about="Nell",
        value="younger daughter Nell takes trombone lessons on Saturdays",
        question="On Saturdays, what is Nell busy with?",
        reordered=True,
    ),
    Fact(
        id="f020",
        person="p02",
        place="private",
        day=9,
        text=(
            "Did ten miles before breakfast. There's nothing I like better than running along the canal in the "
            "rain, honestly."
        ),
        category="preference",
        topic="running",
        key="likes",
        value="likes running along the canal in the rain",
        question="Where do I like to jog in bad weather?",
    ),
    Fact(
        id="f021",
        person="p02",
        place="private",
        day=145,
        text=(
            "If I come here after work, please never ask me about patients who died. I talk about that with Moira "
            "and nobody else."
        ),
        category="boundary",
        key="boundary",
        value="does not want to be asked about patients who died",
        question="Which sad topic from the ward should stay untouched?",
    ),
    Fact(
        id="f022",
        person="p02",
        place="private",
        day=112,
        text=(
            "Sorted! The squeal of the disc brakes on my bike went away after I baked the pads in the oven for "
            "half an hour."
        ),
        category="solution",
        topic="bike",
        key="brake squeal",
        value="squeal of the bike's disc brakes was cured by baking the pads in the oven",
        question="How did I get rid of the brakes' awful squeal?",
        reordered=True,
    ),
    Fact(
        id="f023",
        person="p02",
        place="private",
        day=1,
        text=(
            "We've booked it: two weeks in a cottage on Islay with the girls, in the school break. I want to read "
            "and sleep."
        ),
        category="plan",
        topic="holiday",
        key="plan",
        value="plans two weeks in a cottage on Islay with the girls",
        question="Where are we taking the girls on vacation?",
    ),
    Fact(
        id="f024",
        person="p03",
        place="private",
        day=141,
        text='Made it official with the new contract: I\'m a data engineer now. My mother still says "computers".',
        category="work",
        key="occupation",
        value="works as a data engineer",
        question="What would I write under profession on a form?",
        updates=(
            Update(
                day=166,
                text=(
                    "I got it!! As of this week I'm an analytics manager, with a team of four and far too many "
                    "meetings."
                ),
                value="works as an analytics manager",
            ),
            Update(
                day=230,
                text=(
                    "I've stepped out of management on purpose. I'm a freelance data consultant now and own my "
                    "mornings again."
                ),
                value="works as a freelance data consultant",
            ),
        ),
    ),
    Fact(
        id="f025",
        person="p03",
        place="private",
        day=211,
        text="Training log week one. I want to run the Lisbon marathon in under four hours, that's the target.",
        category="plan",
        topic="running",
        key="goal",
        value="wants to run the Lisbon marathon in under four hours",
        question="What do I want to achieve as a runner?",
        updates=(
            Update(
                day=254,
                text="Knee says no to the full distance. New goal: a half marathon in Porto in under two hours.",
                value="wants to run the half marathon in Porto in under two hours",
            ),
            Update(
                day=318,
                text=(
                    "Physio and I agreed on something gentler. My goal is simply to finish the ten kilometre race "
                    "in Braga, no clock."
                ),
                value="wants to finish the ten kilometre race in Braga without a target time",
            ),
        ),
    ),
    Fact(
        id="f026",
        person="p03",
        place="private",
        day=104,
        text=(
            "I'm writing this from Café Mimosa. It's my favourite café by far, they let you sit for hours with one "
            "chai."
        ),
        category="preference",
        key="favourite-cafe",
        value="favourite café is Mimosa",
        question="At which café do I love to sit?",
        updates=(
            Update(
                day=169,
                text=(
                    "Mimosa put up a no-laptops sign, the traitors. My favourite café is now The Brass Monkey, "
                    "round the corner."
                ),
                value="favourite café is The Brass Monkey",
            ),
            Update(
                day=195,
                text=(
                    "New discovery: Duas Irmãs. Old ladies, card games, perfect cake. That's my favourite café "
                    "from now on."
                ),
                value="favourite café is Duas Irmãs",
            ),
        ),
    ),
    Fact(
        id="f027",
        person="p03",
        place="private",
        day=96,
        text=(
            "My brother Arjun flies cargo planes out of Dubai, so family calls happen at odd hours. Tonight it was "
            "3 am his time."
        ),
        category="relation",
        topic="family",
        key="brother",
        about="Arjun",
        value="brother Arjun flies cargo planes out of Dubai",
        question="What sort of planes are Arjun's?",
        reordered=True,
    ),
    Fact(
        id="f028",
        person="p03",
        place="private",
        day=244,
        text="Cousin Deepak opened a dosa stall in Dubai, of all places. He sends pictures of every single customer.",
        category="relation",
        topic="family",
        key="cousin",
        about="Deepak",
        value="cousin Deepak has a dosa stall in Dubai",
        question="What's sold at the stall that belongs to Deepak?",
        reordered=True,
    ),
    Fact(
        id="f029",
        person="p03",
        place="private",
        day=134,
        text="Got homesick over mango season. I grew up in Kochi, ten minutes from the fishing nets.",
        category="place",
        key="hometown",
        value="grew up in Kochi",
        question="Where did I spend my childhood?",
    ),
    Fact(
        id="f030",
        person="p03",
        place="private",
        day=330,
        text=(
            "The team lunch was a disaster again. I'm vegetarian and don't eat eggs either, and the only option "
            "was quiche."
        ),
        category="health",
        key="diet",
        value="vegetarian who does not eat eggs either",
        question="Besides being vegetarian, what do I leave on the plate?",
    ),
    Fact(
        id="f031",
        person="p03",
        place="private",
        day=17,
        text=(
            "After three days of benchmarks: we store the event tables as Parquet and not as Avro. Decision's "
            "made, no going back."
        ),
        category="decision",
        topic="warehouse",
        key="storage format",
        value="event tables are stored as Parquet and not as Avro",
        question="Did Avro win in the end as the format for event data?",
        reordered=True,
    ),
    Fact(
        id="f032",
        person="p03",
        place="private",
        day=216,
        text=(
            "Found the culprit at midnight. The nightly load timed out because of a missing index on the customer "
            "key; with the index it takes four minutes."
        ),
        category="solution",
        topic="warehouse",
        key="nightly load",
        value="nightly load timed out because of a missing index on the customer key",
        question="What was missing when that load kept failing after midnight?",
        reordered=True,
    ),
    Fact(
        id="f033",
        person="p03",
        place="private",
        day=155,
        text="Small request for the future: when I ask about SQL, show me the query first and explain afterwards.",
        category="instruction",
        key="instruction",
        value="wants the query first and the explanation afterwards when asking about SQL",
        question="In which order do I like database answers to come?",
    ),
    Fact(
        id="f034",
        person="p03",
        place="private",
        day=241,
        text=(
            "New laptop set up. I changed the keyboard layout to Colemak and swapped caps lock with escape, my "
            "fingers are confused."
        ),
        category="config",
        topic="laptop",
        key="keyboard layout",
        value="laptop has the Colemak keyboard layout with caps lock and escape swapped",
        question="Which layout did I put on the laptop?",
        reordered=True,
    ),
    Fact(
        id="f035",
        person="p03",
        place="private",
        day=89,
        text=(
            "It arrived! I own a 1962 Singer sewing machine now, in the original wooden case. It weighs more than "
            "my suitcase."
        ),
        category="artifact",
        key="owns",
        value="owns a 1962 Singer sewing machine in its wooden case",
        question="Which antique sewing gadget did I buy?",
    ),
    Fact(
        id="f036",
        person="p04",
        place="private",
        day=205,
        text="My son Emil has found a room at last. He lives in Uppsala now, with two medical students and a parrot.",
        category="place",
        topic="family",
        key="home",
        about="Emil",
        value="son Emil lives in Uppsala",
        question="Where's Emil staying nowadays?",
        updates=(
            Update(
                day=241,
                text=(
                    "Emil quit the parrot household. He lives in Gothenburg now, near the tram depot, and sounds "
                    "much happier."
                ),
                value="son Emil lives in Gothenburg",
            ),
            Update(
                day=271,
                text="Drove the trailer all day for my son. Emil lives in Malmö now and I can't feel my back.",
                value="son Emil lives in Malmö",
            ),
        ),
    ),
    Fact(
        id="f037",
        person="p04",
        place="private",
        day=100,
        text="Landlord came by for coffee and the bad news. The workshop rent is 420 pounds a month from now on.",
        category="work",
        topic="workshop",
        key="rent",
        value="workshop rent is 420 pounds a month",
        question="How many pounds does the rent come to?",
        reordered=True,
        updates=(
            Update(
                day=178,
                text=(
                    "He's done it again, the rent for the workshop is 490 pounds a month. I nearly spilled the varnish."
                ),
                value="workshop rent is 490 pounds a month",
            ),
            Update(
                day=217,
                text=(
                    "I haggled for once! New deal on the workshop, the rent is 450 pounds a month if I fix his stairs."
                ),
                value="workshop rent is 450 pounds a month",
            ),
        ),
    ),
    Fact(
        id="f038",
        person="p04",
        place="private",
        day=278,
        text=(
            "Saga passed her exam! My daughter is training as a pilot on ferries between Ystad and Bornholm, "
            "proper ship's pilot."
        ),
        category="relation",
        topic="family",
        key="daughter",
        about="Saga",
        value="daughter Saga is training as a ship's pilot on the Bornholm ferries",
        question="On which ferries will Saga be at work?",
        reordered=True,
    ),
    Fact(
        id="f039",
        person="p04",
        place="private",
        day=268,
        text=(
            "Started milling today. The big walnut table with twelve seats is for Mrs Bellamy, who owns the "
            "bookshop on the square."
        ),
        category="project",
        topic="walnut table",
        key="customer",
        about="Mrs Bellamy",
        value="walnut table with twelve seats is for Mrs Bellamy of the bookshop",
        question="Who's getting the table I make from walnut?",
        reordered=True,
    ),
    Fact(
        id="f040",
        person="p04",
        place="private",
        day=42,
        text=(
            "And between the big jobs I'm carving a cradle in oak for the Pugh family, they want swallows on both ends."
        ),
        category="project",
        topic="oak cradle",
        key="ornament",
        about="Pugh family",
        value="oak cradle for the Pugh family gets carved swallows on both ends",
        question="Which motif will the ends of the cradle carry?",
        reordered=True,
    ),
    Fact(
        id="f041",
        person="p04",
        place="private",
        day=337,
        text=(
            "Doctor's letter today. It's tinnitus in the left ear, from the planer most likely, and it isn't going "
            "away."
        ),
        category="health",
        key="condition",
        value="has tinnitus in the left ear",
        question="What's the matter with my hearing?",
    ),
    Fact(
        id="f042",
        person="p04",
        place="private",
        day=106,
        text=(
            "Someone asked for teak again. I can't stand working with it, the dust makes everything bitter, even "
            "my sandwiches."
        ),
        category="preference",
        topic="wood",
        key="dislikes",
        value="dislikes working with teak because of its bitter dust",
        question="Which timber do I hate having on the bench?",
    ),
    Fact(
        id="f043",
        person="p04",
        place="private",
        day=279,
        text=(
            "For the record: pine went blotchy with stain until I brushed on a thin coat of shellac first. "
            "Beautiful now."
        ),
        category="solution",
        topic="finish",
        key="blotchy stain",
        value="a thin coat of shellac before the stain keeps pine from going blotchy",
        question="What did I put on pine ahead of the stain?",
        reordered=True,
    ),
    Fact(
        id="f044",
        person="p04",
        place="private",
        day=40,
        text=(
            "Slept on it for a week. I'm not taking on an apprentice this year, the order book is too thin to be "
            "fair to anyone."
        ),
        category="decision",
        topic="workshop",
        key="apprentice",
        value="will not take on an apprentice this year",
        question="What have I concluded about training a young person in the shop?",
    ),
    Fact(
        id="f045",
        person="p04",
        place="private",
        day=296,
        text=(
            "Thursday means pea soup with mustard and pancakes after. It's been my favourite soup since military "
            "service."
        ),
        category="preference",
        topic="food",
        key="favourite-soup",
        value="favourite soup is pea soup with mustard",
        question="Which soup do I look forward to most?",
    ),
    Fact(
        id="f046",
        person="p04",
        place="private",
        day=210,
        text=(
            "What a morning. Somebody broke into the workshop in the night and stole my two Japanese saws, nothing "
            "else."
        ),
        category="happening",
        topic="workshop",
        key="break-in",
        value="workshop was broken into and two Japanese saws were stolen",
        question="Which saws were taken from the workshop by thieves?",
        reordered=True,
    ),
    Fact(
        id="f047",
        person="p05",
        place="private",
        day=146,
        text=(
            "First proper meeting with Professor Okonjo-Hale today. She's my thesis supervisor and she reads "
            "everything twice."
        ),
        category="relation",
        topic="thesis",
        key="supervisor",
        value="thesis supervisor is Professor Okonjo-Hale",
        question="Which professor is in charge of my thesis?",
        reordered=True,
        updates=(
            Update(
                day=172,
                text=(
                    "Okonjo-Hale is leaving for a deanship, sigh. From now on Professor Brandvold is my supervisor "
                    "for the thesis."
                ),
                value="thesis supervisor is Professor Brandvold",
            ),
            Update(
                day=215,
                text=(
                    "The faculty shuffled us again, Brandvold is on leave. Professor Quartey took me over, so "
                    "she's my thesis supervisor now."
                ),
                value="thesis supervisor is Professor Quartey",
            ),
        ),
    ),
    Fact(
        id="f048",
        person="p05",
        place="private",
        day=217,
        text=(
            "Landed at the field station, please use Azores time for me from now on. Everything smells of sulphur "
            "and fish."
        ),
        category="identity",
        topic="fieldwork",
        key="timezone",
        value="timezone is that of the Azores",
        question="By which clock should you reckon for me?",
        updates=(
            Update(
                day=258,
                text="Back from the islands, I'm on Accra time for the next while. Mum's cooking, finally.",
                value="timezone is that of Accra",
            ),
            Update(
                day=349,
                text=(
                    "Arrived at the partner lab and I'm already jet-lagged. I'm on Hobart time now, so no messages "
                    "at my 3 am please."
                ),
                value="timezone is that of Hobart",
            ),
        ),
    ),
    Fact(
        id="f049",
        person="p05",
        place="private",
        day=5,
        text=(
            "Tank B is alive! My octopus study is about how the common octopus learns mazes, twelve animals, all "
            "female."
        ),
        category="project",
        topic="octopus study",
        key="study animal",
        value="octopus study looks at how twelve female octopuses learn mazes",
        question="How many females take part in the octopus experiment?",
        reordered=True,
    ),
    Fact(
        id="f050",
        person="p05",
        place="private",
        day=129,
        text=(
            "Besides the tanks I count eelgrass twice a month, in the shallow bay behind the old cannery. Cold, "
            "muddy, lovely."
        ),
        category="project",
        topic="eelgrass survey",
        key="survey site",
        value="eelgrass survey takes place in the shallow bay behind the old cannery",
        question="Whereabouts do I wade around for the eelgrass?",
    ),
    Fact(
        id="f051",
        person="p05",
        place="private",
        day=288,
        text=(
            "Nana Efua turned ninety. My grandmother still sells smoked fish on the beach in Elmina and won't hear "
            "of stopping."
        ),
        category="relation",
        topic="family",
        key="grandmother",
        about="Nana Efua",
        value="grandmother Nana Efua sells smoked fish on the beach in Elmina",
        question="On the beach, what does my grandmother trade in?",
        reordered=True,
    ),
    Fact(
        id="f052",
        person="p05",
        place="private",
        day=190,
        text=(
            "Auntie Adwoa lets me use her car whenever I'm home. She's an eye surgeon in Kumasi and drives like "
            "one on the run."
        ),
        category="relation",
        topic="family",
        key="aunt",
        about="Auntie Adwoa",
        value="aunt Adwoa is an eye surgeon in Kumasi",
        question="What sort of surgeon is Adwoa?",
        reordered=True,
    ),
    Fact(
        id="f053",
        person="p05",
        place="private",
        day=264,
        text=(
            "Bad news from the dive doctor, I have a perforated eardrum and can't go below three metres until it heals."
        ),
        category="health",
        topic="diving",
        key="condition",
        value="has a perforated eardrum and may not dive below three metres",
        question="Why am I not allowed deep under water?",
    ),
    Fact(
        id="f054",
        person="p05",
        place="private",
        day=344,
        text=(
            "Finally made the figures readable. All plots use the viridis palette at 300 dpi, it's in the lab "
            "style file."
        ),
        category="config",
        topic="lab computer",
        key="plot colours",
        value="plots in the lab style use the viridis palette at 300 dpi",
        question="Which palette have I settled on for plots?",
        reordered=True,
    ),
    Fact(
        id="f055",
        person="p05",
        place="private",
        day=97,
        text="Writing to highlife today. The Palm Wine Committee is my favourite band, I've seen them five times.",
        category="preference",
        topic="music",
        key="favourite-band",
        value="favourite band is The Palm Wine Committee",
        question="Which band's concerts do I never miss?",
    ),
    Fact(
        id="f056",
        person="p05",
        place="private",
        day=183,
        text=(
            "No more escapes! Artificial turf around the rim keeps the octopuses in the tank, they can't get "
            "suction on it."
        ),
        category="solution",
        topic="octopus study",
        key="escape",
        value="artificial turf around the rim keeps octopuses from escaping the tank",
        question="How did I stop the animals leaving the tank over its rim?",
        reordered=True,
    ),
    Fact(
        id="f057",
        person="p05",
        place="private",
        day=118,
        text=(
            "Abstract accepted!!! I'm going to give a talk at the cephalopod meeting in Naples in the autumn, "
            "twenty minutes."
        ),
        category="plan",
        topic="conference",
        key="plan",
        value="will give a talk at the cephalopod meeting in Naples in the autumn",
        question="At which event am I supposed to present?",
    ),
    Fact(
        id="f058",
        person="p06",
        place="private",
        day=3,
        text="First service done, feet dead. I work for the Copper Ladle now, back on sauces like a teenager.",
        category="work",
        key="employer",
        value="works for the Copper Ladle",
        question="In whose kitchen am I cooking currently?",
        updates=(
            Update(
                day=62,
                text=(
                    "Left after the row about the walk-in. I've started at Hotel Marchmont, I work for them from "
                    "this week."
                ),
                value="works for Hotel Marchmont",
            ),
            Update(
                day=130,
                text=(
                    "I'm out of hotels, thank God. I work for a catering firm called Salt Wagon now, weddings mostly."
                ),
                value="works for the catering firm Salt Wagon",
            ),
        ),
    ),
    Fact(
        id="f059",
        person="p06",
        place="private",
        day=92,
        text="Callum is what my bank calls me. Everyone calls me Cal, please do the same.",
        category="identity",
        key="called",
        value="is called Cal",
        question="What should you address me as?",
        updates=(
            Update(
                day=137,
                text=(
                    "My goddaughter has renamed me and it stuck. Call me Biscuit from now on, the whole kitchen does."
                ),
                value="is called Biscuit",
            ),
            Update(
                day=221,
                text="Right, joke's over. Call me Hargreave please, surname only, like on the pass.",
                value="is called Hargreave",
            ),
        ),
    ),
    Fact(
        id="f060",
        person="p06",
        place="private",
        day=7,
        text="The critics came back for it, so it's official: my signature dish is the smoked eel with beetroot.",
        category="work",
        topic="menu",
        key="signature dish",
        value="signature dish is smoked eel with beetroot",
        question="What dish is my signature?",
        reordered=True,
        updates=(
            Update(
                day=98,
                text=(
                    "Took the eel off, can't get it any more with a clean conscience. My signature dish is the "
                    "lamb neck with barley now."
                ),
                value="signature dish is lamb neck with barley",
            ),
            Update(
                day=173,
                text=(
                    "Funny how it goes, people only order one thing. My signature dish is burnt honey tart these days."
                ),
                value="signature dish is burnt honey tart",
            ),
        ),
    ),
    Fact(
        id="f061",
        person="p06",
        place="private",
        day=41,
        text="Mum's hip is mended. Sheila is seventy-four, breeds whippets in Whitby and refuses to sit down.",
        category="relation",
        topic="family",
        key="mother",
        about="Sheila",
        value="mother Sheila breeds whippets in Whitby",
        question="What keeps my mother Sheila busy?",
    ),
    Fact(
        id="f062",
        person="p06",
        place="private",
        day=265,
        text=(
            "The mother-in-law stayed all weekend. Bernadette judges brass band contests in Durham and has "
            "opinions on my trumpet."
        ),
        category="relation",
        topic="family",
        key="mother-in-law",
        about="Bernadette",
        value="mother-in-law Bernadette judges brass band contests in Durham",
        question="Which contests is Bernadette on the jury of?",
        reordered=True,
    ),
    Fact(
        id="f063",
        person="p06",
        place="private",
        day=247,
        text=(
            "Before you suggest any more recipes, I'm a chef with a mustard allergy. Yes, really. One spoon and "
            "I'm in an ambulance."
        ),
        category="health",
        key="allergy",
        value="allergic to mustard",
        question="Which condiment could put me in hospital?",
    ),
    Fact(
        id="f064",
        person="p06",
        place="private",
        day=56,
        text=(
            "Rescued a gallon of hollandaise tonight: a split hollandaise comes back with an ice cube whisked in "
            "at the edge of the pan. Old Gaston's trick."
        ),
        category="solution",
        topic="hollandaise",
        key="split sauce",
        value="a split hollandaise comes back with an ice cube whisked in at the edge",
        question="What do I whisk in when the sauce has split?",
        reordered=True,
    ),
    Fact(
        id="f065",
        person="p06",
        place="private",
        day=299,
        text="Sharpened the lot before bed. My favourite knife is still the little carbon-steel petty from Sakai.",
        category="preference",
        topic="knives",
        key="favourite-knife",
        value="favourite knife is the carbon-steel petty from Sakai",
        question="Which knife do I reach for first?",
    ),
    Fact(
        id="f066",
        person="p06",
        place="private",
        day=327,
        text=(
            "Wrote the first chapter of my cookbook. The working title is Things on Toast, and it's only half a joke."
        ),
        category="project",
        topic="cookbook",
        key="working title",
        value="working title of the cookbook is Things on Toast",
        question="My cookbook has what title so far?",
        reordered=True,
    ),
    Fact(
        id="f067",
        person="p06",
        place="private",
        day=225,
        text=(
            "I've been sober for six years. Don't suggest recipes or drinks with alcohol to me, ever, not even in "
            "a sauce."
        ),
        category="boundary",
        key="boundary",
        value="does not want recipes or drinks with alcohol suggested",
        question="What must your cooking tips leave out for the sake of my sobriety?",
    ),
    Fact(
        id="f068",
        person="p06",
        place="private",
        day=167,
        text=(
            "Typing with one hand. I burnt my right forearm on the fryer on Friday and they've wrapped it like a mummy."
        ),
        category="happening",
        key="accident",
        value="burnt the right forearm on the fryer",
        question="On what did I get my forearm burnt?",
        reordered=True,
    ),
    Fact(
        id="f069",
        person="p07",
        place="private",
        day=170,
        text="The boxes came off the van dry, a miracle. I live in Ghent now, above a bicycle shop.",
        category="place",
        key="home",
        value="lives in Ghent",
        question="Where do I live at present?",
        updates=(
            Update(
                day=255,
                text=(
                    "The bike shop closed and so did my lease. I live in Antwerp now, fourth floor, no lift, great "
                    "light."
                ),
                value="lives in Antwerp",
            ),
            Update(
                day=311,
                text=(
                    "It's done, we crossed the language border. I live in Namur as of this weekend and everyone "
                    "says septante."
                ),
                value="lives in Namur",
            ),
        ),
    ),
    Fact(
        id="f070",
        person="p07",
        place="private",
        day=61,
        text="Updated my website tonight. For literary work my rate is 11 cents per word, take it or leave it.",
        category="work",
        topic="rates",
        key="word rate",
        value="rate for literary work is 11 cents per word",
        question="How many cents do I charge for literary texts?",
        reordered=True,
        updates=(
            Update(
                day=153,
                text=(
                    "Three clients said yes without blinking, so my rate for literary work goes up to 13 cents per "
                    "word."
                ),
                value="rate for literary work is 13 cents per word",
            ),
            Update(
                day=211,
                text=(
                    "Settled with the union's advice sheet: my literary work rate is 15 cents per word now, no "
                    "exceptions."
                ),
                value="rate for literary work is 15 cents per word",
            ),
        ),
    ),
    Fact(
        id="f071",
        person="p07",
        place="private",
        day=156,
        text="People always guess Spanish. My native language is Portuguese, the soft kind from the Alentejo.",
        category="identity",
        key="native-language",
        value="native language is Portuguese",
        question="In what tongue did I say my first words?",
    ),
    Fact(
        id="f072",
        person="p07",
        place="private",
        day=302,
        text="On top of the usual ones I speak fluent Finnish, thanks to two winters in Oulu. Nobody ever needs it.",
        category="identity",
        key="speaks",
        value="speaks fluent Finnish after two winters in Oulu",
        question="After those winters in the north, what do I speak?",
        reordered=True,
    ),
    Fact(
        id="f073",
        person="p07",
        place="private",
        day=306,
        text=(
            "New contract: I'm translating the novel The Salt Clerk from Dutch for a tiny press. Four hundred "
            "pages of canal fog."
        ),
        category="project",
        topic="The Salt Clerk",
        key="source",
        value="is translating the novel The Salt Clerk from Dutch",
        question="Which Dutch novel am I working on?",
        reordered=True,
    ),
    Fact(
        id="f074",
        person="p07",
        place="private",
        day=342,
        text=(
            "The museum wants its audio guide done as well, ninety stops for the maritime wing. Short sentences, "
            "endless ships."
        ),
        category="project",
        topic="museum guide",
        key="length",
        value="museum audio guide for the maritime wing has ninety stops",
        question="How long is that audio tour about boats I'm working on?",
    ),
    Fact(
        id="f075",
        person="p07",
        place="private",
        day=334,
        text=(
            "Rui called from the vineyard. My twin makes orange wine near Évora and thinks my job is reading in bed."
        ),
        category="relation",
        topic="family",
        key="twin",
        about="Rui",
        value="twin brother Rui makes orange wine near Évora",
        question="What sort of wine comes from Rui?",
        reordered=True,
    ),
    Fact(
        id="f076",
        person="p07",
        place="private",
        day=34,
        text=(
            "I'm squinting again. The optician says I have an astigmatism in both eyes and ought to stop working "
            "by candle."
        ),
        category="health",
        key="condition",
        value="has an astigmatism in both eyes",
        question="Why do I need special lenses?",
    ),
    Fact(
        id="f077",
        person="p07",
        place="private",
        day=2,
        text='By the way, when you correct my English, keep to British spelling. I lose clients over "color".',
        category="instruction",
        key="instruction",
        value="wants English corrections in British spelling",
        question="Which orthography did I ask you to stick to?",
    ),
    Fact(
        id="f078",
        person="p07",
        place="private",
        day=122,
        text=(
            "I've thought about it long and hard: I'm refusing post-editing of machine translation. I'd rather fix "
            "shoes."
        ),
        category="decision",
        topic="work",
        key="machine translation",
        value="refuses post-editing of machine translation",
        question="What's my stance on translation done by machine?",
        reordered=True,
    ),
    Fact(
        id="f079",
        person="p07",
        place="private",
        day=348,
        text="They served coriander on everything at the reception. I can't bear it, it tastes of soap to me.",
        category="preference",
        topic="food",
        key="dislikes",
        value="dislikes coriander because it tastes of soap",
        question="Which herb spoils a plate for me?",
    ),
    Fact(
        id="f080",
        person="p08",
        place="private",
        day=59,
        text="Signed it. I work for Brückner Logistics from Monday, keeping three warehouses online.",
        category="work",
        key="employer",
        value="works for Brückner Logistics",
        question="Which firm am I on the payroll of?",
        updates=(
            Update(
                day=156,
                text=(
                    "Brückner got bought and half of us walked. I work for the city library of Kassel now, far "
                    "nicer people."
                ),
                value="works for the city library of Kassel",
            ),
            Update(
                day=200,
                text=(
                    "Budget cuts hit the books first, so I moved on. I work for a wind farm operator called "
                    "Nordhaube now."
                ),
                value="works for the wind farm operator Nordhaube",
            ),
        ),
    ),
    Fact(
        id="f081",
        person="p08",
        place="private",
        day=127,
        text=(
            "Cleaned up the homelab. Backups of the NAS go to a box in my mother's cellar every night, over the tunnel."
        ),
        category="config",
        topic="homelab",
        key="backup target",
        value="backups of the NAS go to a box in the mother's cellar",
        question="To which place does the NAS send its backups?",
        reordered=True,
        updates=(
            Update(
                day=182,
                text=(
                    "The cellar flooded, of course. Backups of the NAS go to a rented server in Falkenstein from "
                    "tonight on."
                ),
                value="backups of the NAS go to a rented server in Falkenstein",
            ),
            Update(
                day=209,
                text=(
                    "The rented box was too slow, cancelled it. NAS backups go to two rotating disks in the office "
                    "drawer now."
                ),
                value="backups of the NAS go to two rotating disks in the office drawer",
            ),
        ),
    ),
    Fact(
        id="f082",
        person="p08",
        place="private",
        day=69,
        text="The little media box is up again. I run Debian on it, boring and perfect.",
        category="config",
        topic="homelab",
        key="operating system",
        value="media box runs Debian",
        question="What OS is on the media box?",
        updates=(
            Update(
                day=128,
                text="Got curious, wiped it. The media box runs NixOS now and my evenings are gone.",
                value="media box runs NixOS",
            ),
            Update(
                day=218,
                text="Enough adventures. The media box runs Alpine from today, forty megabytes and silence.",
                value="media box runs Alpine",
            ),
        ),
    ),
    Fact(
        id="f083",
        person="p08",
        place="private",
        day=23,
        text="Too many knocks in the log, so SSH on the bastion host listens on port 2207 now. Keys only, obviously.",
        category="config",
        topic="homelab",
        key="ssh port",
        value="SSH on the bastion host listens on port 2207",
        question="What port did I choose for SSH?",
        reordered=True,
    ),
    Fact(
        id="f084",
        person="p08",
        place="private",
        day=220,
        text=(
            "Three evenings lost, but the wireless in the attic stays up now. The dropouts came from the "
            "neighbour's baby monitor, so I moved to channel 11."
        ),
        category="solution",
        topic="homelab",
        key="wifi dropouts",
        value="wireless dropouts in the attic came from the neighbour's baby monitor, moving to channel 11 helped",
        question="What had disturbed the wifi under our roof?",
    ),
    Fact(
        id="f085",
        person="p08",
        place="private",
        day=162,
        text=(
            "The office printer jams only on humid days. Keeping the paper in a box with silica gel ended the "
            "jams, ask me how long that took."
        ),
        category="solution",
        topic="printer",
        key="paper jam",
        value="printer jams ended by keeping the paper in a box with silica gel",
        question="Where must the paper lie so that the printer behaves?",
        reordered=True,
    ),
    Fact(
        id="f086",
        person="p08",
        place="private",
        day=329,
        text=(
            "My brother Henning is a beekeeper in the Harz, forty hives. He pays me in honey for looking after his "
            "website."
        ),
        category="relation",
        topic="family",
        key="brother",
        about="Henning",
        value="brother Henning is a beekeeper in the Harz",
        question="What's Henning's line of work?",
    ),
    Fact(
        id="f087",
        person="p08",
        place="private",
        day=90,
        text="My nephew Lasse is repeating eighth grade because of Latin. I told him I did too and look at me.",
        category="relation",
        topic="family",
        key="nephew",
        about="Lasse",
        value="nephew Lasse is repeating eighth grade because of Latin",
        question="Why is he repeating a year, our Lasse?",
        reordered=True,
    ),
    Fact(
        id="f088",
        person="p08",
        place="private",
        day=153,
        text=(
            "New board on the desk. I stand by it, my favourite switches are tactile browns, everything clicky "
            "goes to colleagues I dislike."
        ),
        category="preference",
        topic="keyboards",
        key="favourite-switch",
        value="favourite keyboard switches are tactile browns",
        question="Which switches do I want under my keycaps?",
    ),
    Fact(
        id="f089",
        person="p08",
        place="private",
        day=248,
        text="And please, shell commands for me always in fish syntax. I paste them and bash ones break.",
        category="instruction",
        key="instruction",
        value="wants shell commands in fish syntax",
        question="Which dialect should terminal snippets for me be written in?",
    ),
    Fact(
        id="f090",
        person="p08",
        place="private",
        day=295,
        text="Migraine day. They come with flickering light, that's why the office lamps have to go when I'm in.",
        category="health",
        key="condition",
        value="gets migraines from flickering light",
        question="What kind of light gives me migraines?",
        reordered=True,
    ),
    Fact(
        id="f091",
        person="p08",
        place="private",
        day=255,
        text="I've decided the family photos stay on our own disks. No cloud for photos, whatever the salesman says.",
        category="decision",
        topic="homelab",
        key="cloud",
        value="family photos stay on own disks and not in any cloud",
        question="Did I allow a cloud for the family pictures?",
        reordered=True,
    ),
    Fact(
        id="f092",
        person="p09",
        place="private",
        day=158,
        text=(
            "You should smell the terrace this morning. My favourite rose is Souvenir du Docteur Jamain, a moody "
            "old thing."
        ),
        category="preference",
        topic="garden",
        key="favourite-rose",
        value="favourite rose is Souvenir du Docteur Jamain",
        question="Which rose do I love above all?",
        updates=(
            Update(
                day=214,
                text=(
                    "Jamain sulked all season with blackspot. I've switched sides, my favourite rose is Madame Hardy."
                ),
                value="favourite rose is Madame Hardy",
            ),
            Update(
                day=262,
                text="I'm fickle, I admit it. After the show my favourite rose is Tuscany Superb, dark as wine.",
                value="favourite rose is Tuscany Superb",
            ),
        ),
    ),
    Fact(
        id="f093",
        person="p09",
        place="private",
        day=105,
        text="Postcard from my grandson Fergus today! He lives in Valparaíso now and teaches English to sailors.",
        category="place",
        topic="family",
        key="home",
        about="Fergus",
        value="grandson Fergus lives in Valparaíso",
        question="What part of the world is Fergus in?",
        updates=(
            Update(
                day=135,
                text="Fergus rang at breakfast. He lives in Lima now, followed a girl, naturally.",
                value="grandson Fergus lives in Lima",
            ),
            Update(
                day=183,
                text=(
                    "The girl is history but the travelling isn't. Fergus lives in Quito now, he likes the thin air."
                ),
                value="grandson Fergus lives in Quito",
            ),
        ),
    ),
    Fact(
        id="f094",
        person="p09",
        place="private",
        day=233,
        text=(
            "Blood pressure check went fine. Doctor Pettigrew looks after my heart pills, every six weeks at the "
            "surgery."
        ),
        category="relation",
        key="doctor",
        value="Doctor Pettigrew looks after the heart pills",
        question="For the pills that I take, which doctor is in charge?",
        reordered=True,
        updates=(
            Update(
                day=277,
                text=(
                    "Pettigrew has retired to Spain. Doctor Malhotra looks after my heart pills now, terribly young."
                ),
                value="Doctor Malhotra looks after the heart pills",
            ),
            Update(
                day=319,
                text="They've split the practice, so it's Doctor Okafor who looks after the heart pills from now on.",
                value="Doctor Okafor looks after the heart pills",
            ),
        ),
    ),
    Fact(
        id="f095",
        person="p09",
        place="private",
        day=147,
        text="Isla, my granddaughter, came in second at the county chess tournament. Eleven years old and merciless.",
        category="relation",
        topic="family",
        key="granddaughter",
        about="Isla",
        value="granddaughter Isla came second in the county chess tournament",
        question="How did the chess go for Isla?",
        reordered=True,
    ),
    Fact(
        id="f096",
        person="p09",
        place="private",
        day=15,
        text=(
            "I bumped into a former pupil at the chemist. Thirty-four years I taught chemistry at Larkhill School, "
            "they still remember the explosions."
        ),
        category="work",
        key="past job",
        value="taught chemistry at Larkhill School for thirty-four years",
        question="At which school was I before retirement, and for which subject?",
    ),
    Fact(
        id="f097",
        person="p09",
        place="private",
        day=275,
        text=(
            "Finished another one by torchlight. I do like detective stories from the thirties, the ones with "
            "railway timetables."
        ),
        category="preference",
        topic="books",
        key="likes",
        value="likes detective stories from the thirties with railway timetables",
        question="What sort of reading do I pick for bedtime?",
    ),
    Fact(
        id="f098",
        person="p09",
        place="private",
        day=165,
        text=(
            "My hostas are whole for once! Copper tape round the pots keeps the slugs off hostas, no pellets needed."
        ),
        category="solution",
        topic="garden",
        key="slugs",
        value="copper tape round the pots keeps slugs off the hostas",
        question="How did I save my hostas from the slugs?",
        reordered=True,
    ),
    Fact(
        id="f099",
        person="p09",
        place="private",
        day=229,
        text=(
            "Wasps about again. I carry the pen everywhere because a sting from one of those could finish me, I'm "
            "allergic."
        ),
        category="health",
        key="allergy",
        value="allergic to wasp stings and carries an adrenaline pen",
        question="Which insects are dangerous to me?",
    ),
    Fact(
        id="f100",
        person="p09",
        place="private",
        day=234,
        text="I'd rather you didn't speak of my late husband as \"passed away\". Say Walter died, plainly, please.",
        category="boundary",
        key="boundary",
        value="wants it said plainly that Walter died, not that he passed away",
        question="How do I wish my late spouse to be mentioned?",
    ),
    Fact(
        id="f101",
        person="p09",
        place="private",
        day=280,
        text=(
            "I'm having the piano tuned. It's a Broadwood upright that belonged to my aunt Cecily, older than the "
            "house."
        ),
        category="artifact",
        key="owns",
        value="owns a Broadwood upright piano that belonged to aunt Cecily",
        question="What make is the piano that I own?",
        reordered=True,
    ),
    Fact(
        id="f102",
        person="p09",
        place="private",
        day=253,
        text=(
            "I've put my name down for the beginners' Welsh course at the library. One is never too old to "
            "mispronounce things."
        ),
        category="plan",
        key="plan",
        value="plans to take the beginners' Welsh course at the library",
        question="What am I about to start learning?",
    ),
    Fact(
        id="f103",
        person="p10",
        place="private",
        day=24,
        text="Drum roll: the startup is called Pebblewise. Domain bought, logo terrible.",
        category="project",
        topic="startup",
        key="company name",
        value="startup is called Pebblewise",
        question="What did I call my startup?",
        reordered=True,
        updates=(
            Update(
                day=84,
                text="Lawyers found a Pebblewise in Ohio. The startup is called Nudgeberry as of today.",
                value="startup is called Nudgeberry",
            ),
            Update(
                day=140,
                text=(
                    "Investors hated Nudgeberry, and honestly so did I. The startup is called Quillet now, final "
                    "answer."
                ),
                value="startup is called Quillet",
            ),
        ),
    ),
    Fact(
        id="f104",
        person="p10",
        place="private",
        day=49,
        text=(
            "I can see the river from the desk. I live in Pittsburgh now, in a flat that used to be a pickle warehouse."
        ),
        category="place",
        key="home",
        value="lives in Pittsburgh",
        question="Which place do I call my own address nowadays?",
        updates=(
            Update(
                day=110,
                text="So much for pickles, I live in Baltimore since Saturday. Rent is half and the crabs are free.",
                value="lives in Baltimore",
            ),
            Update(
                day=168,
                text="Packed the car again, drove eleven hours. I live in Asheville now, mountains on three sides.",
                value="lives in Asheville",
            ),
        ),
    ),
    Fact(
        id="f105",
        person="p10",
        place="private",
        day=307,
        text="Wren Okabe said yes! She's my cofounder and takes care of hardware, ex toy industry.",
        category="relation",
        topic="startup",
        key="cofounder",
        about="Wren Okabe",
        value="cofounder Wren Okabe takes care of the hardware",
        question="Which part of the company is in the care of Wren?",
        reordered=True,
    ),
    Fact(
        id="f106",
        person="p10",
        place="private",
        day=83,
        text=(
            "Our first cheque is from Lucille Band, the dental chain lady. She wants a call on the first of each month."
        ),
        category="relation",
        topic="startup",
        key="investor",
        about="Lucille Band",
        value="investor Lucille Band wants a call on the first of each month",
        question="Once a month I ring somebody up, which investor is it?",
        reordered=True,
    ),
    Fact(
        id="f107",
        person="p10",
        place="private",
        day=320,
        text="Recorded the pilot in the closet. My podcast about failed inventions is called Patent Pending Forever.",
        category="project",
        topic="podcast",
        key="podcast name",
        value="podcast about failed inventions is called Patent Pending Forever",
        question="What's the title of my podcast on gadgets that flopped?",
    ),
    Fact(
        id="f108",
        person="p10",
        place="private",
        day=349,
        text=(
            "Dad's 70th was a riot. Saul used to be a court stenographer in Cleveland, he types faster than I think."
        ),
        category="relation",
        topic="family",
        key="father",
        about="Saul",
        value="father Saul was a court stenographer in Cleveland",
        question="What was the job at the court that my father had?",
        reordered=True,
    ),
    Fact(
        id="f109",
        person="p10",
        place="private",
        day=261,
        text="Uncle Mort sends me his chess problems by post. He's a locksmith in Cleveland and trusts no email.",
        category="relation",
        topic="family",
        key="uncle",
        about="Mort",
        value="uncle Mort is a locksmith in Cleveland and sends chess problems by post",
        question="What arrives by post from Mort?",
        reordered=True,
    ),
    Fact(
        id="f110",
        person="p10",
        place="private",
        day=191,
        text=(
            "Slept with the mask for the first time. It's sleep apnoea, the moderate sort, which explains the yawning."
        ),
        category="health",
        key="condition",
        value="has moderate sleep apnoea",
        question="What was the diagnosis that made sense of my tiredness?",
    ),
    Fact(
        id="f111",
        person="p10",
        place="private",
        day=350,
        text="Whiteboard is clean and so is my head: the hobby tier stays free, and teams pay 9 dollars per seat.",
        category="decision",
        topic="startup",
        key="pricing",
        value="hobby tier stays free and teams pay 9 dollars per seat",
        question="What do we charge per seat in the upper tier?",
        reordered=True,
    ),
    Fact(
        id="f112",
        person="p10",
        place="private",
        day=310,
        text="New rule for us two: if I pitch you an idea, give me the strongest objection first, compliments later.",
        category="instruction",
        key="instruction",
        value="wants the strongest objection first when pitching an idea",
        question="How have I told you to react to my brainwaves?",
    ),
    Fact(
        id="f113",
        person="p10",
        place="private",
        day=259,
        text=(
            "After last week's fiasco deploys are frozen from Thursday noon until Monday. It's in the pipeline "
            "settings now."
        ),
        category="config",
        topic="startup",
        key="deploy window",
        value="deploys are frozen from Thursday noon until Monday in the pipeline settings",
        question="Until when does the pipeline keep deploys locked?",
        reordered=True,
    ),
    Fact(
        id="f114",
        person="p11",
        place="private",
        day=14,
        text="My desk is by the model room! I work for Studio Karasu since Monday, thirty people and one plotter.",
        category="work",
        key="employer",
        value="works for Studio Karasu",
        question="Which office do I belong to professionally?",
        updates=(
            Update(
                day=74,
                text=(
                    "I left before the next all-nighter. I work for Ashgrove and Pell now, they actually go home "
                    "at six."
                ),
                value="works for Ashgrove and Pell",
            ),
            Update(
                day=109,
                text="Bit of a jump: I work for the county heritage board now. Fewer towers, more barns.",
                value="works for the county heritage board",
            ),
        ),
    ),
    Fact(
        id="f115",
        person="p11",
        place="private",
        day=20,
        text=(
            "Kick-off done. The tender drawings for the library extension are due on 3 March, so no weekends for me."
        ),
        category="project",
        topic="library extension",
        key="deadline",
        value="tender drawings for the library extension are due on 3 March",
        question="When's the due date for the library job?",
        reordered=True,
        updates=(
            Update(
                day=55,
                text="The council moved it. Library extension tender drawings are due on 24 April now, hallelujah.",
                value="tender drawings for the library extension are due on 24 April",
            ),
            Update(
                day=107,
                text=(
                    "The fire consultant wants changes, so the tender drawings for the library extension are due "
                    "on 12 June."
                ),
                value="tender drawings for the library extension are due on 12 June",
            ),
        ),
    ),
    Fact(
        id="f116",
        person="p11",
        place="private",
        day=46,
        text="The client loved it. The bathhouse gets walls of rammed earth, from the clay we dig out for the pool.",
        category="project",
        topic="bathhouse",
        key="material",
        value="bathhouse gets walls of rammed earth",
        question="What will the walls be made of in the bathhouse?",
        reordered=True,
    ),
    Fact(
        id="f117",
        person="p11",
        place="private",
        day=139,
        text="Idris is in the shed again. My partner restores old slot machines and our hall sounds like Vegas.",
        category="relation",
        topic="family",
        key="partner",
        about="Idris",
        value="partner Idris restores old slot machines",
        question="What kind of machines does Idris repair?",
        reordered=True,
    ),
    Fact(
        id="f118",
        person="p11",
        place="private",
        day=27,
        text="My stepson Kareem got into the fire service academy! We're proud and slightly terrified.",
        category="relation",
        topic="family",
        key="stepson",
        about="Kareem",
        value="stepson Kareem was admitted to the fire service academy",
        question="What career is Kareem heading for?",
    ),
    Fact(
        id="f119",
        person="p11",
        place="private",
        day=250,
        text=(
            "Queued four hours at the consulate. I have Jordanian and Irish citizenship, and both clerks doubted "
            "the other."
        ),
        category="identity",
        key="nationality",
        value="has Jordanian and Irish citizenship",
        question="Which passports do I hold?",
    ),
    Fact(
        id="f120",
        person="p11",
        place="private",
        day=136,
        text="Stomach's calm at last. I don't eat gluten any more, it's coeliac disease and not a fashion.",
        category="health",
        key="diet",
        value="eats no gluten because of coeliac disease",
        question="Why do I have to skip bread?",
    ),
    Fact(
        id="f121",
        person="p11",
        place="private",
        day=331,
        text=(
            "Template's fixed. Detail sheets print at a scale of 1 to 20 on A1 paper, anything else comes out blurry."
        ),
        category="config",
        topic="office",
        key="drawing scale",
        value="detail sheets print on A1 paper at a scale of 1 to 20",
        question="What scale have I set for the sheets?",
        reordered=True,
    ),
    Fact(
        id="f122",
        person="p11",
        place="private",
        day=85,
        text="I'll say it once: I dislike glass balustrades. They're greasy by noon and birds hate them too.",
        category="preference",
        topic="design",
        key="dislikes",
        value="dislikes glass balustrades",
        question="Which balustrades do I dislike?",
        reordered=True,
    ),
    Fact(
        id="f123",
        person="p11",
        place="private",
        day=115,
        text=(
            "Sold the car to a student this morning. We're going without one from now on, train and cargo bike only."
        ),
        category="decision",
        key="car",
        value="gave up the car for train and cargo bike",
        question="How do we get around since our choice of this year?",
    ),
    Fact(
        id="f124",
        person="p11",
        place="private",
        day=311,
        text=(
            "I'm still shaking. The bathhouse won the regional timber and clay prize last night, first time my "
            "name's on the plaque."
        ),
        category="happening",
        topic="bathhouse",
        key="award",
        value="bathhouse won the regional timber and clay prize",
        question="Which prize did my bathhouse get?",
        reordered=True,
    ),
    Fact(
        id="f125",
        person="p12",
        place="private",
        day=182,
        text="Our Carys has qualified! My daughter is a paramedic now, out on the coast road in all weathers.",
        category="work",
        topic="family",
        key="occupation",
        about="Carys",
        value="daughter Carys works as a paramedic",
        question="What does Carys do for a living?",
        updates=(
            Update(
                day=210,
                text="Carys couldn't take the nights any longer. She's a school bus driver now and sings to them.",
                value="daughter Carys works as a school bus driver",
            ),
            Update(
                day=267,
                text=(
                    "She's done it, she sat the exam in secret. Carys is a police dispatcher now, my clever daughter."
                ),
                value="daughter Carys works as a police dispatcher",
            ),
        ),
    ),
    Fact(
        id="f126",
        person="p12",
        place="private",
        day=120,
        text=(
            "Back from the sale with a sore wallet. The breeding ram for our flock is Goliath, a Lleyn with a face "
            "like a bishop."
        ),
        category="project",
        topic="flock",
        key="breeding ram",
        value="breeding ram of the flock is Goliath",
        question="What's the name of our flock's ram?",
        reordered=True,
        updates=(
            Update(
                day=217,
                text=(
                    "Goliath broke his leg in the ditch, poor beast. The flock's breeding ram is Merlin now, "
                    "borrowed from Dai."
                ),
                value="breeding ram of the flock is Merlin",
            ),
            Update(
                day=280,
                text=(
                    "Dai wanted his back. The breeding ram of the flock is Osian from today, homebred and full of "
                    "himself."
                ),
                value="breeding ram of the flock is Osian",
            ),
        ),
    ),
    Fact(
        id="f127",
        person="p12",
        place="private",
        day=237,
        text=(
            "Batch nine is a winner. The hard cheese ripens for five months on larch boards, washed in cider every "
            "week."
        ),
        category="project",
        topic="cheese",
        key="recipe",
        value="hard cheese ripens for five months on larch boards and is washed in cider",
        question="How many months does it lie there, our firm cheese?",
        reordered=True,
    ),
    Fact(
        id="f128",
        person="p12",
        place="private",
        day=166,
        text="And the soft one, Gwenllian, sells only through the deli in Machynlleth. They take thirty a week.",
        category="project",
        topic="soft cheese",
        key="stockist",
        value="soft cheese Gwenllian is sold only through the deli in Machynlleth",
        question="Where is it sold, the soft stuff of ours?",
        reordered=True,
    ),
    Fact(
        id="f129",
        person="p12",
        place="private",
        day=176,
        text="Dai Bevan next door cut our hay before the rain. I pay the man in lamb, always have.",
        category="relation",
        topic="farm",
        key="neighbour",
        about="Dai Bevan",
        value="neighbour Dai Bevan cuts the hay and is paid in lamb",
        question="What is he paid in, our Dai?",
        reordered=True,
    ),
    Fact(
        id="f130",
        person="p12",
        place="private",
        day=317,
        text="You'd have laughed. Fflach, my sheepdog, is deaf in one ear and turns left whatever I whistle.",
        category="relation",
        topic="farm",
        key="pet",
        about="Fflach",
        value="sheepdog Fflach is deaf in one ear",
        question="What's wrong with our sheepdog?",
    ),
    Fact(
        id="f131",
        person="p12",
        place="private",
        day=333,
        text="Hands like claws this morning. It's the arthritis in my fingers, milking in the cold doesn't help.",
        category="health",
        key="condition",
        value="has arthritis in the fingers",
        question="Why is handiwork hurting me?",
    ),
    Fact(
        id="f132",
        person="p12",
        place="private",
        day=236,
        text="The blue mould in the store is gone for good. I wash the shelves with whey and salt before each batch.",
        category="solution",
        topic="dairy",
        key="mould",
        value="washing shelves with whey and salt keeps blue mould out of the store",
        question="How do I fight mould on the shelves?",
        reordered=True,
    ),
    Fact(
        id="f133",
        person="p12",
        place="private",
        day=35,
        text="Done painting. The old shepherd's hut by the ford is a holiday let now, two beds and no signal.",
        category="place",
        topic="farm",
        key="holiday cottage",
        value="shepherd's hut by the ford is a holiday let with two beds",
        question="Which building of ours can guests rent?",
    ),
    Fact(
        id="f134",
        person="p12",
        place="private",
        day=70,
        text="Choir was grand tonight. I sing second alto in the chapel choir at Abergynolwyn, best hour of my week.",
        category="preference",
        key="hobby",
        value="sings second alto in the chapel choir at Abergynolwyn",
        question="In the choir, which part do I sing?",
        reordered=True,
    ),
    Fact(
        id="f135",
        person="p12",
        place="private",
        day=316,
        text="Sixty candles, can you believe it? My birthday is on 11 November, always in the mud season.",
        category="identity",
        key="birthday",
        value="birthday is on 11 November",
        question="On which date is my birthday?",
    ),
    Fact(
        id="f136",
        person="p12",
        place="private",
        day=163,
        text="No more pigs for us after this lot. They've dug up the orchard and my patience with it.",
        category="decision",
        topic="farm",
        key="pigs",
        value="will keep no more pigs after they dug up the orchard",
        question="What happened in the orchard that made me give up on pigs?",
        reordered=True,
    ),
    Fact(
        id="f137",
        person="p13",
        place="private",
        day=91,
        text="There's a baker downstairs, I'm doomed. I live in Chester now, under the old arcades.",
        category="place",
        key="home",
        value="lives in Chester",
        question="What city is my flat in?",
        updates=(
            Update(
                day=134,
                text=(
                    "The college had a room for less. I live in Shrewsbury now, the cello has better acoustics than me."
                ),
                value="lives in Shrewsbury",
            ),
            Update(
                day=209,
                text=(
                    "Followed the orchestra job to the sea. I live in Aberystwyth since last night and the wind "
                    "has taken my hat."
                ),
                value="lives in Aberystwyth",
            ),
        ),
    ),
    Fact(
        id="f138",
        person="p13",
        place="private",
        day=31,
        text="Rehearsed till midnight. Bianca Tosi is my partner in the duo now, piano, terrific left hand.",
        category="project",
        topic="duo",
        key="duo partner",
        value="partner in the duo is Bianca Tosi",
        question="Who's in the duo with me as partner?",
        reordered=True,
        updates=(
            Update(
                day=124,
                text=(
                    "Bianca took a post in Vienna. My partner in the duo is Florin Dima from now on, also piano "
                    "but louder."
                ),
                value="partner in the duo is Florin Dima",
            ),
            Update(
                day=218,
                text=(
                    "Florin and I argued about Brahms one time too many. Odette Lam is my duo partner now, accordion!"
                ),
                value="partner in the duo is Odette Lam",
            ),
        ),
    ),
    Fact(
        id="f139",
        person="p13",
        place="private",
        day=126,
        text=(
            "Played it for the pupils with the windows open. My favourite piece is the Kodály solo sonata, always was."
        ),
        category="preference",
        topic="music",
        key="favourite-piece",
        value="favourite piece is the Kodály solo sonata",
        question="Which piece of music means the most to me?",
        updates=(
            Update(
                day=151,
                text=(
                    "Something shifted at the concert. My favourite piece is Schubert's string quintet now, the "
                    "slow movement undid me."
                ),
                value="favourite piece is Schubert's string quintet",
            ),
            Update(
                day=222,
                text=(
                    "I must correct myself once more, my favourite piece is the Fauré elegy. Simple, brief, unbearable."
                ),
                value="favourite piece is the Fauré elegy",
            ),
        ),
    ),
    Fact(
        id="f140",
        person="p13",
        place="private",
        day=107,
        text="Little Tomaso brought me a drawing. He's seven, my youngest pupil, and insists on playing with gloves.",
        category="relation",
        topic="pupils",
        key="pupil",
        about="Tomaso",
        value="Tomaso, the youngest pupil, is seven and plays with gloves",
        question="Which of the kids I teach wears something on his hands?",
    ),
    Fact(
        id="f141",
        person="p13",
        place="private",
        day=77,
        text=(
            "Ginevra, my most gifted pupil, has her entrance audition in Manchester coming up. I'm more nervous "
            "than she is."
        ),
        category="relation",
        topic="pupils",
        key="pupil",
        about="Ginevra",
        value="Ginevra, the most gifted pupil, has an audition in Manchester",
        question="Where's the audition of Ginevra?",
        reordered=True,
    ),
    Fact(
        id="f142",
        person="p13",
        place="private",
        day=230,
        text="The luthier confirmed it. My cello was built by Aurelio Sassi in 1911, the scroll isn't original.",
        category="artifact",
        topic="cello",
        key="owns",
        value="owns a cello built by Aurelio Sassi in 1911",
        question="Who built my cello, and when?",
        reordered=True,
    ),
    Fact(
        id="f143",
        person="p13",
        place="private",
        day=82,
        text="No practice today. I've got tendonitis in the left wrist, doctor says two hours a day at most.",
        category="health",
        key="condition",
        value="has tendonitis in the left wrist and may practise two hours a day at most",
        question="How long am I permitted to play per day, and why?",
    ),
    Fact(
        id="f144",
        person="p13",
        place="private",
        day=193,
        text=(
            "Rode up the Long Mynd before the heat, twice. Climbing hills on an old steel bicycle is how I clear "
            "my head."
        ),
        category="preference",
        topic="cycling",
        key="hobby",
        value="climbs hills on an old steel bicycle to clear the head",
        question="What's my way of relaxing?",
    ),
    Fact(
        id="f145",
        person="p13",
        place="private",
        day=269,
        text="The wolf on the F sharp is tamed! A small brass tube on the G string below the bridge did the job.",
        category="solution",
        topic="cello",
        key="wolf tone",
        value="a brass tube on the G string below the bridge tamed the wolf tone",
        question="How was the wolf cured, what sits on the string?",
        reordered=True,
    ),
    Fact(
        id="f146",
        person="p13",
        place="private",
        day=113,
        text="Please give me temperatures in Celsius and distances in kilometres, the other ones mean nothing to me.",
        category="instruction",
        key="instruction",
        value="wants temperatures in Celsius and distances in kilometres",
        question="Which units do I expect from you?",
    ),
    Fact(
        id="f147",
        person="p13",
        place="private",
        day=180,
        text="A thing I need you to respect: no jokes about my stammer. I've had enough of those at school.",
        category="boundary",
        key="boundary",
        value="wants no jokes about the stammer",
        question="How should you handle my stammer when making jokes?",
        reordered=True,
    ),
    Fact(
        id="f148",
        person="p02",
        place="g1",
        day=171,
        text="Picked the first bowl before the shift. Broad beans are my favourite vegetable, eaten raw on the path.",
        category="preference",
        topic="allotment",
        key="favourite-vegetable",
        value="favourite vegetable is broad beans",
        question="Which vegetable does Dougal like best?",
        updates=(
            Update(
                day=218,
                text="I've had a conversion, folks. My favourite vegetable is the purple kohlrabi now, sorry beans.",
                value="favourite vegetable is purple kohlrabi",
            ),
            Update(
                day=291,
                text="Ruth's leeks did it. Leeks are my favourite vegetable from this day on, I've no more to say.",
                value="favourite vegetable is leeks",
            ),
        ),
    ),
    Fact(
        id="f149",
        person="p09",
        place="g1",
        day=159,
        text="So we don't all stand in the rain again: Tobias keeps the spare key to the shed.",
        category="decision",
        topic="allotment",
        key="shed key",
        about="allotment",
        value="Tobias keeps the spare key to the shed",
        question="The shed is locked, who can lend me a key?",
        reordered=True,
        updates=(
            Update(
                day=212,
                text="Tobias is away on a fair for weeks, so the spare key to the shed is kept by Gwen from now on.",
                value="Gwen keeps the spare key to the shed",
            ),
            Update(
                day=283,
                text="Key news! Leila keeps the spare key to the shed now, she lives two doors from the gate.",
                value="Leila keeps the spare key to the shed",
            ),
        ),
    ),
    Fact(
        id="f150",
        person="p12",
        place="g1",
        day=314,
        text=(
            "Morning all. The next work day is on the first Saturday of the month, bring a fork and something to eat."
        ),
        category="plan",
        topic="allotment",
        key="work day",
        about="allotment",
        value="work day is the first Saturday of the month",
        question="On what day does everybody come to work on the plots?",
        reordered=True,
    ),
    Fact(
        id="f151",
        person="p04",
        place="g1",
        day=328,
        text=(
            "Dropped something off for you lot. The new bench by the pond is made of oak from the old pier, sit on "
            "it gently for a week."
        ),
        category="artifact",
        topic="allotment",
        key="bench",
        about="allotment",
        value="bench by the pond is made of oak from the old pier",
        question="Which pier did the wood of the bench come from?",
        reordered=True,
    ),
    Fact(
        id="f152",
        person="p04",
        place="g1",
        day=181,
        text=(
            "Could we keep the beehives on the far side? I react badly to stings since childhood, allergic to "
            "bees, the whole programme."
        ),
        category="health",
        key="allergy",
        value="allergic to bee stings since childhood",
        question="What makes Tobias want the hives at the other end?",
    ),
    Fact(
        id="f153",
        person="p04",
        place="g1",
        day=161,
        text="Measured it twice. The polytunnel frame will be six metres by three, I'm bending the hoops at home.",
        category="project",
        topic="polytunnel",
        key="size",
        about="polytunnel",
        value="polytunnel frame will be six metres by three",
        question="How big is the polytunnel Tobias builds?",
    ),
    Fact(
        id="f154",
        person="p09",
        place="g1",
        day=222,
        text=(
            "Harvest report: not one maggot. Spring onions sown between the carrots fooled the carrot fly completely."
        ),
        category="solution",
        topic="allotment",
        key="carrot fly",
        about="allotment",
        value="spring onions sown between the rows fooled the carrot fly",
        question="The fly stayed off the roots because Ruth had sown what beside them?",
        reordered=True,
    ),
    Fact(
        id="f155",
        person="p09",
        place="g1",
        day=175,
        text=(
            "My goddaughter Beatrix is visiting on the weekend. She designs hats for the opera, so mind your "
            "wellingtons."
        ),
        category="relation",
        topic="family",
        key="goddaughter",
        about="Beatrix",
        value="goddaughter Beatrix designs hats for the opera",
        question="What's the profession of Ruth's goddaughter?",
    ),
    Fact(
        id="f156",
        person="p09",
        place="g1",
        day=321,
        text=(
            "I'm happy to share anything on my plot but nobody picks my sweet peas without asking, please. They're "
            "for the cemetery."
        ),
        category="boundary",
        topic="allotment",
        key="boundary",
        value="nobody may pick the sweet peas on Ruth's plot without asking",
        question="Which flowers of Ruth's are we to leave alone?",
    ),
    Fact(
        id="f157",
        person="p12",
        place="g1",
        day=339,
        text=(
            "Our heap was cold because it was too wet. Shredded cardboard, one layer per barrow of grass, got the "
            "heap to sixty degrees."
        ),
        category="solution",
        topic="compost",
        key="heap",
        about="compost",
        value="one layer of shredded cardboard per barrow of grass got the heap to sixty degrees",
        question="All those degrees, how did Gwen get them in her heap?",
        reordered=True,
    ),
    Fact(
        id="f158",
        person="p12",
        place="g1",
        day=21,
        text="Not for me, thanks. Rhubarb I can't abide in any shape, not pie, not jam, not gin.",
        category="preference",
        key="dislikes",
        value="dislikes rhubarb in any form",
        question="What should nobody bake for Gwen?",
    ),
    Fact(
        id="f159",
        person="p02",
        place="g1",
        day=144,
        text="I've programmed the timer on the tap: the drip hoses run at five in the morning for twenty minutes.",
        category="config",
        topic="allotment",
        key="water timer",
        about="allotment",
        value="timer on the tap runs the drip hoses at five in the morning for twenty minutes",
        question="When do the hoses go on by timer?",
        reordered=True,
    ),
    Fact(
        id="f160",
        person="p02",
        place="g1",
        day=245,
        text=(
            "If a man in a kilt turns up on Saturday, that's my friend Fenwick. He repairs rotavators for fun, so "
            "let him in."
        ),
        category="relation",
        key="friend",
        about="Fenwick",
        value="friend Fenwick repairs rotavators for fun",
        question="Which friend of Dougal's could mend our broken digging engine?",
    ),
    Fact(
        id="f161",
        person="p11",
        place="g1",
        day=189,
        text="Drew up the section for the pond. It'll be ninety centimetres deep in the middle, or the newts freeze.",
        category="project",
        topic="pond",
        key="depth",
        about="pond",
        value="pond will be ninety centimetres deep in the middle for the newts",
        question="For the sake of the newts, what must our pond be like?",
        reordered=True,
    ),
    Fact(
        id="f162",
        person="p11",
        place="g1",
        day=114,
        text=(
            "Minutes of yesterday: we voted seven to one that weedkiller stays banned on all plots, glyphosate "
            "included."
        ),
        category="decision",
        topic="allotment",
        key="chemicals",
        about="allotment",
        value="weedkiller stays banned on all plots after a vote of seven to one",
        question="Are we allowed to spray against dandelions, what was the outcome of the ballot?",
    ),
    Fact(
        id="f163",
        person="p11",
        place="g1",
        day=238,
        text="I can't water on Tuesdays. I teach a drawing class for prisoners on Tuesdays at the county jail.",
        category="work",
        key="evening class",
        value="teaches a drawing class for prisoners on Tuesdays",
        question="On Tuesdays, whom does Leila teach?",
        reordered=True,
    ),
    Fact(
        id="f164",
        person="p13",
        place="g1",
        day=276,
        text=(
            "Confession time. The scarecrow with the bow tie lost its head in the storm and I found it in the canal."
        ),
        category="happening",
        topic="allotment",
        key="scarecrow",
        about="allotment",
        value="scarecrow lost its head in the storm and it was found in the canal",
        question="What turned up in the canal after the storm?",
        reordered=True,
    ),
    Fact(
        id="f165",
        person="p13",
        place="g1",
        day=284,
        text=(
            "My niece Chiara will help with the pumpkins. She's fifteen, speaks only in song lyrics and lifts more "
            "than I do."
        ),
        category="relation",
        topic="family",
        key="niece",
        about="Chiara",
        value="niece Chiara is fifteen and will help with the pumpkins",
        question="Which teenager did Mateus promise as a helper with the gourds?",
    ),
    Fact(
        id="f166",
        person="p10",
        place="g2",
        day=62,
        text="Putting it in writing so it's real: Lanternfish 1.0 is released on 2 May, no feature after Easter.",
        category="project",
        topic="Lanternfish",
        key="release date",
        about="Lanternfish",
        value="Lanternfish 1.0 release is on 2 May",
        question="What date is the release of Lanternfish?",
        reordered=True,
        updates=(
            Update(
                day=115,
                text="Sorry team, the sync bugs won. The Lanternfish 1.0 release is on 20 June instead.",
                value="Lanternfish 1.0 release is on 20 June",
            ),
            Update(
                day=164,
                text=(
                    "Store review rejected the build. New and hopefully last date: the Lanternfish 1.0 release is "
                    "on 8 August."
                ),
                value="Lanternfish 1.0 release is on 8 August",
            ),
        ),
    ),
    Fact(
        id="f167",
        person="p08",
        place="g2",
        day=203,
        text=(
            "Staging is up again. The staging server of Lanternfish stands in my hallway on an old ThinkCentre, "
            "please don't laugh."
        ),
        category="config",
        topic="Lanternfish",
        key="staging server",
        about="Lanternfish",
        value="staging server of Lanternfish is an old ThinkCentre in Oskar's hallway",
        question="Where's the Lanternfish box for staging?",
        reordered=True,
        updates=(
            Update(
                day=253,
                text=(
                    "The hallway got too loud for my wife. Lanternfish's staging server is a virtual machine in "
                    "Helsinki now."
                ),
                value="staging server of Lanternfish is a virtual machine in Helsinki",
            ),
            Update(
                day=334,
                text=(
                    "Helsinki billed us for traffic, goodbye. The Lanternfish staging server is a container on the "
                    "university cluster now."
                ),
                value="staging server of Lanternfish is a container on the university cluster",
            ),
        ),
    ),
    Fact(
        id="f168",
        person="p08",
        place="g2",
        day=57,
        text="I'll be slow this week, boxes everywhere. I live in Kassel now, right by the hill park.",
        category="place",
        key="home",
        value="lives in Kassel",
        question="Where does Oskar have his household?",
        updates=(
            Update(
                day=134,
                text="New doorbell, same me: I live in Göttingen now, if somebody wants to send stickers.",
                value="lives in Göttingen",
            ),
            Update(
                day=241,
                text="Third flat, and this time with a balcony. I live in Erfurt now, the post office knows already.",
                value="lives in Erfurt",
            ),
        ),
    ),
    Fact(
        id="f169",
        person="p03",
        place="g2",
        day=142,
        text=(
            "I compared the three candidates. We go with DuckDB for the analytics in Lanternfish, Postgres stays "
            "for accounts."
        ),
        category="decision",
        topic="Lanternfish",
        key="database",
        about="Lanternfish",
        value="Lanternfish uses DuckDB for analytics and Postgres for accounts",
        question="For analytics, which engine did Priya choose in Lanternfish?",
        reordered=True,
    ),
    Fact(
        id="f170",
        person="p03",
        place="g2",
        day=140,
        text=(
            "The catch reports carry the species code as text, not as a number, because the ministries keep "
            "inventing letters."
        ),
        category="project",
        topic="Lanternfish",
        key="data model",
        about="Lanternfish",
        value="catch reports carry the species code as text because ministries keep inventing letters",
        question="Why aren't animal identifiers stored as integers in our app?",
    ),
    Fact(
        id="f171",
        person="p03",
        place="g2",
        day=232,
        text=(
            "One wish: don't call me after seven in the evening, unless something is on fire. Evenings belong to "
            "my parents."
        ),
        category="boundary",
        key="boundary",
        value="does not want calls after seven in the evening unless it is an emergency",
        question="Until what hour does Priya take calls?",
    ),
    Fact(
        id="f172",
        person="p03",
        place="g2",
        day=168,
        text=(
            "Map's fast again! It was the clustering: drawing only the points inside the view made the map twenty "
            "times faster."
        ),
        category="solution",
        topic="Lanternfish",
        key="slow map",
        about="Lanternfish",
        value="drawing only the points inside the view made the map twenty times faster",
        question="How did Priya get the map to draw so quickly?",
        reordered=True,
    ),
    Fact(
        id="f173",
        person="p08",
        place="g2",
        day=336,
        text=(
            "Got the flaky login test. It failed whenever the clock passed midnight in UTC, I've frozen the time "
            "in the fixture."
        ),
        category="solution",
        topic="Lanternfish",
        key="flaky test",
        about="Lanternfish",
        value="login test failed around midnight UTC until the time was frozen in the fixture",
        question="What had caused the login check to break now and then?",
    ),
    Fact(
        id="f174",
        person="p08",
        place="g2",
        day=262,
        text=(
            "I'm closing the old Slack tonight. From here on decisions about code go into the issue tracker and "
            "not into chat."
        ),
        category="decision",
        topic="Lanternfish",
        key="chat tool",
        about="Lanternfish",
        value="decisions about code go into the issue tracker and not into chat",
        question="Where, if not in chat, do our decisions belong?",
        reordered=True,
    ),
    Fact(
        id="f175",
        person="p10",
        place="g2",
        day=246,
        text="Great lunch yesterday. The Marlow Trust pays for our first two hundred sensors, they love whales.",
        category="relation",
        topic="Lanternfish",
        key="sponsor",
        about="Marlow Trust",
        value="the Marlow Trust pays for the first two hundred sensors",
        question="Which sponsor covers the cost of our initial hardware?",
    ),
    Fact(
        id="f176",
        person="p10",
        place="g2",
        day=300,
        text="Meet Bettina Krol, she does our bookkeeping as of now, two afternoons a week. Receipts to her, not me.",
        category="work",
        topic="Lanternfish",
        key="role",
        about="Bettina Krol",
        value="Bettina Krol does the bookkeeping two afternoons a week",
        question="How many afternoons does Bettina work for us?",
        reordered=True,
    ),
    Fact(
        id="f177",
        person="p10",
        place="g2",
        day=51,
        text=(
            "If anybody is shopping for the hack night: salted liquorice, that's my favourite snack and I won't share."
        ),
        category="preference",
        key="favourite-snack",
        value="favourite snack is salted liquorice",
        question="What treat should we put on the table for Jonah?",
    ),
    Fact(
        id="f178",
        person="p05",
        place="g2",
        day=323,
        text="The harbour master agreed over tea. Our field test runs in the harbour of Tema with nine canoes.",
        category="project",
        topic="Lanternfish",
        key="test harbour",
        about="Lanternfish",
        value="field test runs in the harbour of Tema with nine canoes",
        question="How many canoes are there in our test?",
        reordered=True,
    ),
    Fact(
        id="f179",
        person="p05",
        place="g2",
        day=184,
        text="For acoustics ask Kwabena Osei. He knows every fish by its grunt and answers voice messages only.",
        category="work",
        topic="Lanternfish",
        key="specialist",
        about="Kwabena Osei",
        value="Kwabena Osei is the one to ask about acoustics and answers voice messages only",
        question="Which expert on underwater sounds did Ama recommend, and how do we contact him?",
    ),
    Fact(
        id="f180",
        person="p05",
        place="g2",
        day=149,
        text=(
            "The prototype is on the bookshelf in my lab, bottom left, the yellow case with the shark sticker. "
            "Borrow it whenever."
        ),
        category="artifact",
        topic="Lanternfish",
        key="sensor case",
        about="Lanternfish",
        value="prototype lies in a yellow case on the bookshelf in Ama's lab",
        question="Where would I find the case with the prototype?",
        reordered=True,
    ),
    Fact(
        id="f181",
        person="p07",
        place="g2",
        day=185,
        text=(
            "Strings are frozen on my side. The app comes in French, Portuguese and Twi first, English is the fallback."
        ),
        category="project",
        topic="Lanternfish",
        key="languages",
        about="Lanternfish",
        value="the app comes in French, Portuguese and Twi first",
        question="Which languages are first in line for the app?",
        reordered=True,
    ),
    Fact(
        id="f182",
        person="p07",
        place="g2",
        day=198,
        text=('Please, everyone: in all texts we say "fisher", never "fisherman". It\'s in the glossary since today.'),
        category="instruction",
        topic="Lanternfish",
        key="glossary",
        about="Lanternfish",
        value="all texts say fisher and never fisherman",
        question="Which gender-neutral word has Ines asked us to write?",
    ),
    Fact(
        id="f183",
        person="p07",
        place="g2",
        day=240,
        text=(
            "If I'm off on Wednesdays, blame Joost. My husband is learning to be a clockmaker in Mechelen and I "
            "drive him."
        ),
        category="relation",
        topic="family",
        key="husband",
        about="Joost",
        value="husband Joost is learning to be a clockmaker in Mechelen",
        question="What craft does Joost train in?",
    ),
    Fact(
        id="f184",
        person="p06",
        place="g3",
        day=8,
        text="New flat, who dares bring plants? I live in Whitby now, up the hundred and ninety-nine steps.",
        category="place",
        key="home",
        value="lives in Whitby",
        question="In which town does Callum live?",
        updates=(
            Update(
                day=60,
                text="The steps have beaten me. I live in Scarborough now, flat as a pancake round here.",
                value="lives in Scarborough",
            ),
            Update(
                day=88,
                text="I'm a Yorkshireman no more: I live in Durham now, ten minutes from the in-laws, pray for me.",
                value="lives in Durham",
            ),
        ),
    ),
    Fact(
        id="f185",
        person="p01",
        place="g3",
        day=38,
        text=(
            "After counting the votes, our summer trip goes to the Lofoten islands, with tents. No whining about "
            "the wind."
        ),
        category="plan",
        topic="summer trip",
        key="destination",
        about="summer trip",
        value="summer trip goes to the Lofoten islands",
        question="Where do we go on the trip in summer?",
        reordered=True,
        updates=(
            Update(
                day=83,
                text="Ferries are fully booked, so the summer trip goes to the Harz mountains instead, with huts.",
                value="summer trip goes to the Harz mountains",
            ),
            Update(
                day=137,
                text="New vote, new luck. The summer trip goes to Lake Ohrid, and the house there has a rowing boat.",
                value="summer trip goes to Lake Ohrid",
            ),
        ),
    ),
    Fact(
        id="f186",
        person="p01",
        place="g3",
        day=58,
        text="About the game night: it's on Fridays at Leila's, because her table seats eight.",
        category="decision",
        topic="game night",
        key="host",
        about="game night",
        value="game night is on Fridays at Leila's",
        question="Which night, and at whose place, do we meet for a game?",
        reordered=True,
        updates=(
            Update(
                day=107,
                text=(
                    "Leila's flat is being painted until who knows when. Game night is on Wednesdays at Dougal's now."
                ),
                value="game night is on Wednesdays at Dougal's",
            ),
            Update(
                day=138,
                text="Dougal's girls need sleep, fair enough. Game night is on Thursdays, back at Leila's.",
                value="game night is on Thursdays, back at Leila's",
            ),
        ),
    ),
    Fact(
        id="f187",
        person="p01",
        place="g3",
        day=110,
        text=(
            "For the cooking list: I eat no meat from four-legged animals, fish and birds are fine. Don't ask why, "
            "I draw them."
        ),
        category="health",
        key="diet",
        value="eats fish and birds but no meat from four-legged animals",
        question="What kinds of meat may we serve Maren?",
    ),
    Fact(
        id="f188",
        person="p01",
        place="g3",
        day=223,
        text="Please not Monopoly again. I dislike any game in which people get thrown out before the end.",
        category="preference",
        topic="games",
        key="dislikes",
        value="dislikes games in which people get thrown out before the end",
        question="What kind of board entertainment puts Maren in a bad mood?",
    ),
    Fact(
        id="f189",
        person="p06",
        place="g3",
        day=71,
        text="Hattie can't come on the 12th, my wife is refereeing a wheelchair rugby match in Leeds.",
        category="relation",
        topic="family",
        key="wife",
        about="Hattie",
        value="wife Hattie is a referee of wheelchair rugby in Leeds",
        question="What's the link between rugby and Hattie?",
        reordered=True,
    ),
    Fact(
        id="f190",
        person="p06",
        place="g3",
        day=196,
        text=(
            "I've got the thing that solves lunch: a pizza oven on a trailer, holds two at a time, goes wherever "
            "my van goes."
        ),
        category="artifact",
        topic="picnic",
        key="owns",
        value="owns a pizza oven on a trailer",
        question="Which piece of cooking equipment could Callum tow along?",
    ),
    Fact(
        id="f191",
        person="p13",
        place="g3",
        day=341,
        text="So, you hear it first: Paola and I got married on Monday at the town hall, two witnesses and a dog.",
        category="happening",
        key="wedding",
        value="Mateus and Paola got married at the town hall with two witnesses",
        question="How many witnesses were there when Mateus wed?",
        reordered=True,
    ),
    Fact(
        id="f192",
        person="p13",
        place="g3",
        day=73,
        text="I can order for all of us in Ljubljana, I speak Slovene from my grandfather. Badly but with feeling.",
        category="identity",
        key="speaks",
        value="speaks some Slovene learnt from a grandfather",
        question="Which Slavic tongue does Mateus know a bit of?",
    ),
    Fact(
        id="f193",
        person="p13",
        place="g3",
        day=99,
        text=(
            "Packing trick, tested on tour: a cello case full of sleeping bags counts as an instrument and flies "
            "for free."
        ),
        category="solution",
        topic="summer trip",
        key="luggage",
        about="summer trip",
        value="a cello case full of sleeping bags flies for free as an instrument",
        question="According to Mateus, what can fly for nothing in a case?",
        reordered=True,
    ),
    Fact(
        id="f194",
        person="p07",
        place="g3",
        day=174,
        text="We could all sleep at my aunt's! Graça has an empty convent in Beja, thirty beds and one shower.",
        category="relation",
        topic="family",
        key="aunt",
        about="Graça",
        value="aunt Graça has an empty convent in Beja with thirty beds",
        question="Which of Ines's relatives could put the whole gang up?",
    ),
    Fact(
        id="f195",
        person="p07",
        place="g3",
        day=343,
        text=(
            "No contest at all. My favourite game is the one with the trains across Portugal, I've worn out two boxes."
        ),
        category="preference",
        topic="games",
        key="favourite-game",
        value="favourite game is the one with trains across Portugal",
        question="What game is Ines's favourite of all?",
        reordered=True,
    ),
    Fact(
        id="f196",
        person="p02",
        place="g3",
        day=87,
        text="Funny you should mention Orkney. I was born in Stromness and left at sixteen with one suitcase.",
        category="place",
        key="hometown",
        value="was born in Stromness",
        question="Where does Dougal come from originally?",
    ),
    Fact(
        id="f197",
        person="p02",
        place="g3",
        day=47,
        text="Right, money. Everyone pays 40 pounds a month into the trip kitty and I keep the list.",
        category="decision",
        topic="summer trip",
        key="money",
        about="summer trip",
        value="everyone pays 40 pounds a month into the trip kitty",
        question="How much goes into the kitty, how many pounds?",
        reordered=True,
    ),
    Fact(
        id="f198",
        person="p10",
        place="g3",
        day=257,
        text="She said yes on the ferris wheel! Noemi, my fiancée, sells antique maps, so I'll never get lost again.",
        category="relation",
        topic="family",
        key="fiancee",
        about="Noemi",
        value="fiancée Noemi sells antique maps",
        question="What does Noemi trade in?",
    ),
    Fact(
        id="f199",
        person="p10",
        place="g3",
        day=132,
        text=(
            "I'll take the train round, thanks. Heights are fine but bridges aren't, I have a real phobia of long "
            "bridges."
        ),
        category="health",
        key="condition",
        value="has a phobia of long bridges",
        question="Which bridges set off Jonah's phobia?",
        reordered=True,
    ),
    Fact(
        id="f200",
        person="p11",
        place="g3",
        day=315,
        text="On Sundays you'll find me at the flea market, I sell doorknobs there, mostly brass. Come and haggle.",
        category="work",
        key="side job",
        value="sells doorknobs at the flea market on Sundays",
        question="On Sundays, what does Leila sell at her stall?",
        reordered=True,
    ),
)

_CHINESE: Final[tuple[Fact, ...]] = (
    Fact(
        id="f201",
        person="p14",
        place="private",
        day=44,
        text="折腾了一整天总算搬完了，我现在住在桃花坞，楼下就是一条小河，晚上能听见摇橹的声音。",
        category="place",
        key="home",
        value="住在桃花坞",
        question="我目前把家安在哪一片？",
        updates=(
            Update(
                day=105,
                text="房东要卖房，我只好走人。从这周起我住在葑门，离菜场走路两分钟。",
                value="住在葑门",
            ),
            Update(
                day=207,
                text="又搬了，别笑我。我住在木渎了，羊肉汤管够。",
                value="住在木渎",
            ),
        ),
    ),
    Fact(
        id="f202",
        person="p14",
        place="private",
        day=55,
        text="新学期分班出来了，我带的是小班海豚班，二十二个娃，第一天哭了十九个。",
        category="work",
        topic="幼儿园",
        key="带班",
        value="带的班是小班海豚班",
        question="我如今管的是哪一群小朋友？",
        updates=(
            Update(
                day=126,
                text="园长调整了一下，我带的班换成中班松鼠班了，总算不用天天擦鼻涕。",
                value="带的班是中班松鼠班",
            ),
            Update(
                day=152,
                text="大班的老师休产假去了，所以我带的班现在是大班长颈鹿班，压力山大。",
                value="带的班是大班长颈鹿班",
            ),
        ),
    ),
    Fact(
        id="f203",
        person="p14",
        place="private",
        day=294,
        text="我姐沈若岚昨天寄来一箱石榴。她在敦煌修壁画，一年回不了两次家。",
        category="relation",
        topic="家人",
        key="sister",
        about="沈若岚",
        value="姐姐沈若岚在敦煌修壁画",
        question="在敦煌，若岚做的是什么工作？",
        reordered=True,
    ),
    Fact(
        id="f204",
        person="p14",
        place="private",
        day=231,
        text="小妹沈若水又换发色了，这次是蓝的。她在长沙开一家剧本杀店，生意居然不错。",
        category="relation",
        topic="家人",
        key="sister",
        about="沈若水",
        value="妹妹沈若水在长沙开剧本杀店",
        question="若水靠什么谋生？",
    ),
    Fact(
        id="f205",
        person="p14",
        place="private",
        day=102,
        text="春天真是我的劫数，我对柳絮过敏，一出门眼睛就肿得像桃子。",
        category="health",
        key="allergy",
        value="对柳絮过敏",
        question="我对什么东西过敏？",
    ),
    Fact(
        id="f206",
        person="p14",
        place="private",
        day=103,
        text="周末我一般哪儿也不去，就在阳台上用羊毛毡做小动物，昨天戳了一只水獭。",
        category="preference",
        key="hobby",
        value="周末爱用羊毛毡做小动物",
        question="我做小动物用的是什么材料，周末常弄的那种？",
        reordered=True,
    ),
    Fact(
        id="f207",
        person="p14",
        place="private",
        day=125,
        text="跟你说个事，以后别问我什么时候结婚，家里催得我头都大了。",
        category="boundary",
        key="boundary",
        value="不想被问什么时候结婚",
        question="关于终身大事，你该注意什么？",
    ),
    Fact(
        id="f208",
        person="p14",
        place="private",
        day=324,
        text="总算找到诀窍了！午睡前放一段雨声，再讲半个故事，孩子们十分钟全睡着。",
        category="solution",
        topic="幼儿园",
        key="午睡",
        value="午睡前放雨声再讲半个故事，孩子们十分钟就睡着",
        question="孩子们不肯睡的时候，我午睡前该放什么？",
        reordered=True,
    ),
    Fact(
        id="f209",
        person="p14",
        place="private",
        day=178,
        text="皮影戏的道具我收在教室后面的红皮箱里了，下学期还要用，先记一笔。",
        category="artifact",
        topic="幼儿园",
        key="道具",
        value="皮影戏道具收在教室后面的红皮箱里",
        question="教室里哪个箱子放着皮影戏的东西？",
        reordered=True,
    ),
    Fact(
        id="f210",
        person="p14",
        place="private",
        day=271,
        text="想了半个月，我决定不考研了，把时间拿来考蒙台梭利的证书。",
        category="decision",
        key="考研",
        value="决定不考研，改考蒙台梭利证书",
        question="进修这件事我最后怎么打算的？",
    ),
    Fact(
        id="f211",
        person="p15",
        place="private",
        day=72,
        text="今天领了工牌，我在云帆科技上班了，工位对着一棵假发财树。",
        category="work",
        key="employer",
        value="在云帆科技上班",
        question="我现在在哪里上班？",
        updates=(
            Update(
                day=118,
                text="部门整个被裁，我也不例外。好在很快找到下家，我现在在青桔物流上班。",
                value="在青桔物流上班",
            ),
            Update(
                day=205,
                text="通勤两小时实在撑不住，跳了。我现在在城南的晨曦医疗上班，走路就能到。",
                value="在晨曦医疗上班",
            ),
        ),
    ),
    Fact(
        id="f212",
        person="p15",
        place="private",
        day=30,
        text="灯塔项目立项了，老板拍板说灯塔的上线日期是4月8日，我看够呛。",
        category="project",
        topic="灯塔",
        key="deadline",
        value="灯塔项目的上线日期是4月8日",
        question="上线定在哪天，灯塔那个项目？",
        reordered=True,
        updates=(
            Update(
                day=88,
                text="果然不行，测试环境还没影呢。灯塔项目上线日期改到5月27日了。",
                value="灯塔项目的上线日期是5月27日",
            ),
            Update(
                day=140,
                text="客户又加需求，灯塔的上线日期推到7月15日，这回写进合同了。",
                value="灯塔项目的上线日期是7月15日",
            ),
        ),
    ),
    Fact(
        id="f213",
        person="p15",
        place="private",
        day=94,
        text="业余时间我在写一个记账小程序，叫贝壳集，后端用的是Rust，前端随便糊的。",
        category="project",
        topic="贝壳集",
        key="技术选型",
        value="业余做的记账小程序贝壳集后端用Rust",
        question="我自己捣鼓的记账小程序，服务器端是拿什么语言写的？",
    ),
    Fact(
        id="f214",
        person="p15",
        place="private",
        day=258,
        text="记一下，开发机的容器镜像走公司内部的镜像仓库，拉取超时我设成了九十秒。",
        category="config",
        topic="开发机",
        key="代理",
        value="开发机拉取容器镜像的超时设为九十秒",
        question="超时我设了多少秒，开发机拉镜像那个？",
        reordered=True,
    ),
    Fact(
        id="f215",
        person="p15",
        place="private",
        day=281,
        text="熬了两夜，灯塔的内存泄漏查出来了，是定时任务里的连接没有关闭，补上就好了。",
        category="solution",
        topic="灯塔",
        key="内存泄漏",
        value="灯塔的内存泄漏是定时任务里的连接没有关闭造成的",
        question="连接出了什么岔子，才有了那次内存泄漏？",
        reordered=True,
    ),
    Fact(
        id="f216",
        person="p15",
        place="private",
        day=48,
        text="体检报告到手，尿酸高，医生说是痛风早期，啤酒小龙虾全得戒。",
        category="health",
        key="condition",
        value="有早期痛风",
        question="我的身体查出了什么毛病？",
    ),
    Fact(
        id="f217",
        person="p15",
        place="private",
        day=219,
        text="我爸顾伯成退下来以后在老家养信鸽，四十多只，天天跟我汇报名次。",
        category="relation",
        topic="家人",
        key="father",
        about="顾伯成",
        value="父亲顾伯成在老家养信鸽",
        question="信鸽养在哪儿，顾伯成那些？",
        reordered=True,
    ),
    Fact(
        id="f218",
        person="p15",
        place="private",
        day=160,
        text="岳父是打更鼓的，景德镇戏班里的老师傅，每次见面都要敲两段给我听。",
        category="relation",
        topic="家人",
        key="father-in-law",
        about="岳父",
        value="岳父在景德镇戏班里打鼓",
        question="岳父有什么拿手本事？",
    ),
    Fact(
        id="f219",
        person="p15",
        place="private",
        day=195,
        text="以后给我贴代码的时候，注释一律用中文写，英文的我懒得看。",
        category="instruction",
        key="instruction",
        value="代码注释一律用中文写",
        question="示例程序里的注释我要求是哪种语言？",
    ),
    Fact(
        id="f220",
        person="p15",
        place="private",
        day=173,
        text="评审会吵完了，灯塔的消息队列选NATS，不用Kafka，运维只有一个人，伺候不起。",
        category="decision",
        topic="灯塔",
        key="消息队列",
        value="灯塔的消息队列选NATS而不用Kafka",
        question="Kafka和别的相比，我们的消息队列挑了哪个？",
        reordered=True,
    ),
    Fact(
        id="f221",
        person="p15",
        place="private",
        day=194,
        text="团建又去KTV，我真的很讨厌在包厢里唱歌，宁可回去修bug。",
        category="preference",
        key="dislikes",
        value="讨厌在包厢里唱歌",
        question="唱歌这件事，什么样的场合我讨厌？",
        reordered=True,
    ),
    Fact(
        id="f222",
        person="p16",
        place="private",
        day=86,
        text="大名叫唐小满，不过大家都喊我小满子，你也这么叫我吧。",
        category="identity",
        key="called",
        value="大家叫我小满子",
        question="你该怎么称呼我？",
        updates=(
            Update(
                day=163,
                text="考完执业资格啦，室友给我起了新外号，以后请叫我唐大夫！",
                value="请叫我唐大夫",
            ),
            Update(
                day=198,
                text="唐大夫听着太老气了，还是叫我满满吧，我奶奶就这么叫。",
                value="请叫我满满",
            ),
        ),
    ),
    Fact(
        id="f223",
        person="p16",
        place="private",
        day=26,
        text="开题会开完了，我的毕业论文导师是秦教授，研究奶牛蹄病的，人特别和气。",
        category="work",
        topic="毕业论文",
        key="导师",
        value="毕业论文的导师是秦教授",
        question="导师是哪位，带我写毕业论文的？",
        reordered=True,
        updates=(
            Update(
                day=115,
                text="秦教授出国访学，毕业论文的导师换成邱老师了，她专攻猫的肾病。",
                value="毕业论文的导师是邱老师",
            ),
            Update(
                day=211,
                text="一波三折，邱老师调去别的校区，现在我毕业论文的导师是贺教授。",
                value="毕业论文的导师是贺教授",
            ),
        ),
    ),
    Fact(
        id="f224",
        person="p16",
        place="private",
        day=285,
        text="我读的是动物医学，五年制，解剖课上得我三天没吃肉。",
        category="work",
        key="studies",
        value="读五年制的动物医学",
        question="我在大学里学什么专业？",
    ),
    Fact(
        id="f225",
        person="p16",
        place="private",
        day=138,
        text="宿舍偷偷养了一只仓鼠，叫馒头，跑轮跑得半夜全楼都听得见。",
        category="relation",
        key="pet",
        about="馒头",
        value="养了一只叫馒头的仓鼠",
        question="我那只仓鼠名字是什么？",
    ),
    Fact(
        id="f226",
        person="p16",
        place="private",
        day=119,
        text="室友阿依努尔从喀什带了两大包杏干回来，她是校马术队的队长，帅得很。",
        category="relation",
        key="roommate",
        about="阿依努尔",
        value="室友阿依努尔是校马术队的队长",
        question="校马术队里阿依努尔担任什么？",
        reordered=True,
    ),
    Fact(
        id="f227",
        person="p16",
        place="private",
        day=325,
        text="今天吃了整整一个榴莲，熏跑了所有人。榴莲就是我最喜欢的水果，不接受反驳。",
        category="preference",
        key="favourite-fruit",
        value="最喜欢的水果是榴莲",
        question="买哪种水果能让我最开心？",
    ),
    Fact(
        id="f228",
        person="p16",
        place="private",
        day=150,
        text="实习第一天就出糗了，我一看见针头扎进血管就晕，医生说是血管迷走性晕厥。",
        category="health",
        key="condition",
        value="看见针头扎进血管就会晕",
        question="我会晕倒，是因为看见了什么？",
        reordered=True,
    ),
    Fact(
        id="f229",
        person="p16",
        place="private",
        day=301,
        text="带教老师教了一招：给猫喂药之前先把药片裹上一层黄油，猫自己就咽下去了。",
        category="solution",
        topic="实习",
        key="喂药",
        value="给猫喂药先把药片裹一层黄油",
        question="药片要怎么处理，才好给猫吃下去？",
        reordered=True,
    ),
    Fact(
        id="f230",
        person="p16",
        place="private",
        day=148,
        text="暑假安排好了，我要去内蒙古的牧场待六周，跟着兽医站给羊打疫苗。",
        category="plan",
        topic="实习",
        key="plan",
        value="暑假要去内蒙古牧场六周给羊打疫苗",
        question="放长假的时候我准备上哪儿干什么？",
    ),
    Fact(
        id="f231",
        person="p16",
        place="private",
        day=224,
        text="气死我了，科目二又挂了，倒车入库压线，这是第三次考驾照栽在同一个地方。",
        category="happening",
        key="驾照",
        value="考驾照科目二第三次挂在倒车入库",
        question="倒车入库让我在科目二挂了几次？",
        reordered=True,
    ),
    Fact(
        id="f232",
        person="p17",
        place="private",
        day=131,
        text="老伙计从武夷山捎来的，喝了一下午。我最喜欢的茶还是大红袍，有股子岩石味。",
        category="preference",
        key="favourite-tea",
        value="最喜欢的茶是大红袍",
        question="给我泡一杯什么我最乐意？",
        updates=(
            Update(
                day=226,
                text="人老了胃受不住，岩茶太冲。现在我最喜欢的茶是熟普，温和。",
                value="最喜欢的茶是熟普",
            ),
            Update(
                day=310,
                text="闺女带回来一罐福鼎白茶，一喝就放不下了。我最喜欢的茶现在就是它，福鼎白茶。",
                value="最喜欢的茶是福鼎白茶",
            ),
        ),
    ),
    Fact(
        id="f233",
        person="p17",
        place="private",
        day=53,
        text="孙子罗一鸣开学了，在育红小学念书，书包比他人还大。",
        category="relation",
        topic="家人",
        key="上学",
        about="罗一鸣",
        value="孙子罗一鸣在育红小学念书",
        question="念书是在哪一所，我家一鸣？",
        reordered=True,
        updates=(
            Update(
                day=83,
                text="儿子他们换了学区房，一鸣转到实验二小念书去了，得坐四站公交。",
                value="孙子罗一鸣在实验二小念书",
            ),
            Update(
                day=122,
                text="公交太折腾孩子，一鸣又转学，如今在河畔小学念书，出小区就是。",
                value="孙子罗一鸣在河畔小学念书",
            ),
        ),
    ),
    Fact(
        id="f234",
        person="p17",
        place="private",
        day=303,
        text="翻老照片呢。我年轻时在铁路局修桥，修了三十一年，成昆线上好几座我都量过。",
        category="work",
        key="旧职",
        value="在铁路局修桥三十一年",
        question="退休前我在铁路上干的是哪一行？",
    ),
    Fact(
        id="f235",
        person="p17",
        place="private",
        day=335,
        text="药又得按时吃了，血压一百六，老毛病高血压，早晚各一片。",
        category="health",
        key="condition",
        value="有高血压，早晚各吃一片药",
        question="我每天得吃药是为了治什么？",
    ),
    Fact(
        id="f236",
        person="p17",
        place="private",
        day=187,
        text="女儿罗晓棠打电话来，说在青岛的水族馆给企鹅当饲养员，冻得直哆嗦。",
        category="relation",
        topic="家人",
        key="daughter",
        about="罗晓棠",
        value="女儿罗晓棠在青岛水族馆养企鹅",
        question="在水族馆里，晓棠照看的是什么？",
        reordered=True,
    ),
    Fact(
        id="f237",
        person="p17",
        place="private",
        day=218,
        text="儿子罗晓松的活儿我看不懂，说是给游戏配音效，拿芹菜掰出骨头断的声音。",
        category="relation",
        topic="家人",
        key="son",
        about="罗晓松",
        value="儿子罗晓松给游戏配音效",
        question="配音效这一行，晓松是给什么东西做的？",
        reordered=True,
    ),
    Fact(
        id="f238",
        person="p17",
        place="private",
        day=124,
        text="公园里又赢了三盘。我就好下象棋，尤其爱走仙人指路。",
        category="preference",
        key="hobby",
        value="爱下象棋，喜欢走仙人指路",
        question="我平日里跟老头们玩什么消遣？",
    ),
    Fact(
        id="f239",
        person="p17",
        place="private",
        day=133,
        text="听见广播里的花鼓戏就想家，我是湖南益阳人，十八岁出来的。",
        category="place",
        key="hometown",
        value="老家在湖南益阳",
        question="我祖籍是什么地方？",
    ),
    Fact(
        id="f240",
        person="p17",
        place="private",
        day=204,
        text="阳台的辣椒总算没虫了，我用烟丝泡水喷了三回，蚜虫全掉下来。",
        category="solution",
        topic="阳台",
        key="蚜虫",
        value="用烟丝泡水喷三回治好了辣椒上的蚜虫",
        question="辣椒长蚜虫的时候我是用什么泡水的？",
        reordered=True,
    ),
    Fact(
        id="f241",
        person="p17",
        place="private",
        day=64,
        text="我书柜里有一盏一九五八年的信号灯，是老师傅留给我的，铜的，现在还能点亮。",
        category="artifact",
        key="owns",
        value="有一盏老师傅留下的一九五八年的铜信号灯",
        question="铜信号灯是哪年的，老师傅给我的那盏？",
        reordered=True,
    ),
    Fact(
        id="f242",
        person="p17",
        place="private",
        day=272,
        text="小同志，你回我的话写短一点，字一多我眼睛就花。",
        category="instruction",
        key="instruction",
        value="回复要写得短",
        question="你跟我说话篇幅上要留意什么？",
    ),
    Fact(
        id="f243",
        person="p18",
        place="private",
        day=121,
        text="新家第一晚，虫子叫得像开会。我现在住在平江路，院子里有两棵梅树。",
        category="place",
        key="home",
        value="住在平江路",
        question="如今我的居所在何处？",
        updates=(
            Update(
                day=186,
                text="梅雨太潮，书都长毛了。我搬到山塘街住了，二楼，干爽些。",
                value="住在山塘街",
            ),
            Update(
                day=267,
                text="游客太吵，一咬牙搬来盘门住了，巷口就是卖豆腐花的。",
                value="住在盘门",
            ),
        ),
    ),
    Fact(
        id="f244",
        person="p18",
        place="private",
        day=154,
        text="新合同签了，给《晚潮》写专栏的稿费是千字三百，不多，但准时。",
        category="work",
        topic="约稿",
        key="稿费",
        value="给《晚潮》写专栏的稿费是千字三百",
        question="稿费千字多少，《晚潮》那边？",
        reordered=True,
        updates=(
            Update(
                day=229,
                text="编辑部主动涨价，稀奇。《晚潮》的专栏稿费是千字四百了。",
                value="给《晚潮》写专栏的稿费是千字四百",
            ),
            Update(
                day=311,
                text="杂志改成双月刊，顺带又谈了一次，《晚潮》专栏的稿费现在是千字五百五。",
                value="给《晚潮》写专栏的稿费是千字五百五",
            ),
        ),
    ),
    Fact(
        id="f245",
        person="p18",
        place="private",
        day=212,
        text="白天编别人的书，夜里写自己的。《渡口志》是写长江轮渡工人的，打算写十二章。",
        category="project",
        topic="渡口志",
        key="进度",
        value="《渡口志》写长江轮渡工人，计划十二章",
        question="我那部《渡口志》有多长的篇幅？",
    ),
    Fact(
        id="f246",
        person="p18",
        place="private",
        day=251,
        text="手上在编的诗集叫《盐与雪》，作者丹增是一位藏族邮递员，来稿都写在包裹单背面。",
        category="project",
        topic="盐与雪",
        key="作者",
        about="丹增",
        value="诗集《盐与雪》的作者丹增是藏族邮递员",
        question="藏族诗人丹增的那本诗集，书名叫什么？",
        reordered=True,
    ),
    Fact(
        id="f247",
        person="p18",
        place="private",
        day=274,
        text="老迟来住了三天，我这位朋友专门给二胡蒙蟒皮，手上全是口子。",
        category="relation",
        key="friend",
        about="老迟",
        value="朋友老迟专门给二胡蒙蟒皮",
        question="老迟靠的是什么手艺？",
    ),
    Fact(
        id="f248",
        person="p18",
        place="private",
        day=338,
        text="去看了蓝先生，我入行的师父，八十四岁了，还在用钢笔校对县志。",
        category="relation",
        key="mentor",
        about="蓝先生",
        value="师父蓝先生还在用钢笔校对县志",
        question="县志那边，蓝先生用什么笔校对？",
        reordered=True,
    ),
    Fact(
        id="f249",
        person="p18",
        place="private",
        day=322,
        text="又失眠到四点。医生说是甲亢闹的，心跳快，手也抖。",
        category="health",
        key="condition",
        value="有甲亢，引起失眠",
        question="我夜里睡不着的病根是什么？",
    ),
    Fact(
        id="f250",
        person="p18",
        place="private",
        day=208,
        text="朋友圈又在晒精装书腰封，我最烦腰封，买来第一件事就是扯掉。",
        category="preference",
        key="dislikes",
        value="最烦书上的腰封",
        question="书上我最烦的东西是什么？",
        reordered=True,
    ),
    Fact(
        id="f251",
        person="p18",
        place="private",
        day=75,
        text="有一件事请记得：别跟我谈我弟弟的案子，我不想在这里碰它。",
        category="boundary",
        key="boundary",
        value="不想谈弟弟的案子",
        question="家里的哪桩官司你不能提？",
    ),
    Fact(
        id="f252",
        person="p18",
        place="private",
        day=304,
        text="今天把微博注销了。以后新书消息只发在邮件通讯里，每月一封。",
        category="decision",
        key="社交媒体",
        value="注销了微博，新书消息只发在每月的邮件通讯里",
        question="邮件通讯里发什么，自从没了微博？",
        reordered=True,
    ),
    Fact(
        id="f253",
        person="p19",
        place="private",
        day=111,
        text="证到手了，我现在是健身教练，第一个学员就是我舅。",
        category="work",
        key="occupation",
        value="职业是健身教练",
        question="我的职业是哪一行？",
        updates=(
            Update(
                day=145,
                text="腰伤了以后带不动大重量课，我转行当了康复治疗师，教人慢慢动。",
                value="职业是康复治疗师",
            ),
            Update(
                day=239,
                text="说出来你别惊，我现在是攀岩定线员，天天在墙上拧岩点。",
                value="职业是攀岩定线员",
            ),
        ),
    ),
    Fact(
        id="f254",
        person="p19",
        place="private",
        day=13,
        text="我跟人合伙的铁塔健身房开张了，会员费每月二百六，头一个月送毛巾。",
        category="project",
        topic="铁塔健身房",
        key="会员费",
        value="铁塔健身房的会员费是每月二百六",
        question="每月会员费多少钱，铁塔那边？",
        reordered=True,
        updates=(
            Update(
                day=48,
                text="空调电费吓死人，铁塔健身房的会员费涨到每月三百二了，老会员不变脸才怪。",
                value="铁塔健身房的会员费是每月三百二",
            ),
            Update(
                day=74,
                text="对面新开了一家，只好跟着降，铁塔健身房会员费现在每月二百一。",
                value="铁塔健身房的会员费是每月二百一",
            ),
        ),
    ),
    Fact(
        id="f255",
        person="p19",
        place="private",
        day=345,
        text="合伙人卓一凡负责管账，他以前是入殓师，心细，话少。",
        category="relation",
        topic="健身房",
        key="合伙人",
        about="卓一凡",
        value="合伙人卓一凡负责管账，以前是入殓师",
        question="管账的卓一凡，从前做什么的？",
        reordered=True,
    ),
    Fact(
        id="f256",
        person="p19",
        place="private",
        day=66,
        text="拍了片子，腰椎间盘突出，四五节之间，医生让我半年别碰硬拉。",
        category="health",
        key="condition",
        value="腰椎间盘突出，半年不能硬拉",
        question="我为什么要停掉那个练背的动作？",
    ),
    Fact(
        id="f257",
        person="p19",
        place="private",
        day=297,
        text="这阵子我不吃晚饭，下午四点之后只喝水，体脂掉得挺快。",
        category="health",
        key="diet",
        value="下午四点之后只喝水，不吃晚饭",
        question="一天里我几点以后就不再进食？",
    ),
    Fact(
        id="f258",
        person="p19",
        place="private",
        day=309,
        text="我哥韩夏是跑远洋的海员，一出去大半年，昨天信号是从毛里求斯来的。",
        category="relation",
        topic="家人",
        key="brother",
        about="韩夏",
        value="哥哥韩夏是远洋海员",
        question="我哥哥靠什么吃饭？",
    ),
    Fact(
        id="f259",
        person="p19",
        place="private",
        day=22,
        text="外婆今年八十八，一个人在山上种天麻，还嫌我深蹲蹲得浅。",
        category="relation",
        topic="家人",
        key="grandmother",
        about="外婆",
        value="外婆一个人在山上种天麻",
        question="种天麻的时候，外婆有人陪吗？",
        reordered=True,
    ),
    Fact(
        id="f260",
        person="p19",
        place="private",
        day=19,
        text="下雪就兴奋。我特别喜欢夜里一个人滑野雪，头灯一开，全世界就剩我。",
        category="preference",
        key="likes",
        value="喜欢夜里一个人滑野雪",
        question="冬天最让我来劲的运动是哪样？",
    ),
    Fact(
        id="f261",
        person="p19",
        place="private",
        day=308,
        text="地胶翘边的事解决了，用热风枪吹软再压两袋沙子过夜，平得跟镜子似的。",
        category="solution",
        topic="健身房",
        key="地胶",
        value="地胶翘边用热风枪吹软再压沙子过夜解决",
        question="用热风枪之后还要怎么弄，地胶才平？",
        reordered=True,
    ),
    Fact(
        id="f262",
        person="p19",
        place="private",
        day=36,
        text="淘到宝了，我买了一辆七十年代的挎斗摩托，军绿色，发动机还能响。",
        category="artifact",
        key="owns",
        value="有一辆七十年代的军绿色挎斗摩托",
        question="我收了一台什么样的老车？",
    ),
    Fact(
        id="f263",
        person="p20",
        place="private",
        day=93,
        text="入职手续办完啦，我现在在小鹿教育上班，做题库那一块。",
        category="work",
        key="employer",
        value="在小鹿教育上班",
        question="我给哪家单位打工？",
        updates=(
            Update(
                day=128,
                text="教育这行你懂的，说没就没。我换到半山咖啡的总部上班了，管会员系统。",
                value="在半山咖啡总部上班",
            ),
            Update(
                day=224,
                text="为了接孩子方便，我又换了，现在在区档案馆上班，五点准时走人。",
                value="在区档案馆上班",
            ),
        ),
    ),
    Fact(
        id="f264",
        person="p20",
        place="private",
        day=209,
        text="弟弟马依山总算落脚了，他现在住在兰州，天天给我发牛肉面照片。",
        category="place",
        topic="家人",
        key="home",
        about="马依山",
        value="弟弟马依山住在兰州",
        question="我弟弟如今在哪座城市过日子？",
        updates=(
            Update(
                day=250,
                text="依山嫌工地苦，走了。他现在住在银川，说是去种葡萄。",
                value="弟弟马依山住在银川",
            ),
            Update(
                day=331,
                text="葡萄没种成，我弟依山现在住在西宁，在高原上学做银器。",
                value="弟弟马依山住在西宁",
            ),
        ),
    ),
    Fact(
        id="f265",
        person="p20",
        place="private",
        day=79,
        text="儿子豆苗今天在幼儿园演了一棵树，他对恐龙痴迷得很，树上非要挂只翼龙。",
        category="relation",
        topic="家人",
        key="son",
        about="豆苗",
        value="儿子豆苗痴迷恐龙",
        question="让他痴迷的是什么，我家豆苗？",
        reordered=True,
    ),
    Fact(
        id="f266",
        person="p20",
        place="private",
        day=98,
        text="大女儿豆蔻进了校击剑队，练花剑，回来胳膊上青一块紫一块还笑。",
        category="relation",
        topic="家人",
        key="daughter",
        about="豆蔻",
        value="女儿豆蔻在校击剑队练花剑",
        question="校击剑队里练的是哪一种，我家豆蔻？",
        reordered=True,
    ),
    Fact(
        id="f267",
        person="p20",
        place="private",
        day=169,
        text="医院跑了一夜。确诊了，豆苗对芒果过敏，嘴唇肿成香肠。",
        category="health",
        topic="家人",
        key="allergy",
        about="豆苗",
        value="豆苗对芒果过敏",
        question="豆苗碰不得哪种水果？",
    ),
    Fact(
        id="f268",
        person="p20",
        place="private",
        day=227,
        text="先说好，别拿我是单亲妈妈来安慰我，我过得挺好，用不着同情。",
        category="boundary",
        key="boundary",
        value="不想因为是单亲妈妈而被同情",
        question="对于我一个人带娃这件事，什么态度我不接受？",
    ),
    Fact(
        id="f269",
        person="p20",
        place="private",
        day=289,
        text="加班回来煮了一碗，活过来了。我最爱的菜是外婆做的臭鳜鱼，没有之一。",
        category="preference",
        key="favourite-dish",
        value="最爱的菜是臭鳜鱼",
        question="哪道菜是我的最爱？",
        reordered=True,
    ),
    Fact(
        id="f270",
        person="p20",
        place="private",
        day=6,
        text="家里智能音箱的闹钟设好了，工作日六点四十放鸟叫，周末静音，省得豆苗发脾气。",
        category="config",
        topic="家里",
        key="闹钟",
        value="智能音箱的闹钟工作日六点四十放鸟叫",
        question="工作日是几点响，音箱的闹钟？",
        reordered=True,
    ),
    Fact(
        id="f271",
        person="p20",
        place="private",
        day=11,
        text="立个目标：今年要攒够八万块，给三个人换一辆带天窗的房车。",
        category="plan",
        key="goal",
        value="今年要攒八万块换一辆房车",
        question="我存钱是为了什么，要存多少？",
    ),
    Fact(
        id="f272",
        person="p20",
        place="private",
        day=16,
        text="跟豆蔻谈妥了，她的钢琴课停掉，只留一个兴趣班，不然谁都喘不过气。",
        category="decision",
        topic="家人",
        key="兴趣班",
        about="豆蔻",
        value="豆蔻停掉钢琴课，只留一个兴趣班",
        question="兴趣班留几个，谁的钢琴课停了？",
        reordered=True,
    ),
    Fact(
        id="f273",
        person="p20",
        place="private",
        day=254,
        text="白沙发救回来了！红酒渍撒上小苏打敷一晚，再拿醋轻轻按，一点印子没有。",
        category="solution",
        topic="家里",
        key="红酒渍",
        value="沙发上的红酒渍用小苏打敷一晚再用醋按掉",
        question="沙发被酒弄脏了，我上次怎么清干净的？",
    ),
    Fact(
        id="f274",
        person="p17",
        place="g4",
        day=29,
        text="各位邻居，业主小组以后开会就在三号楼的活动室，别再站楼道里吵了。",
        category="decision",
        topic="小区",
        key="开会地点",
        about="小区",
        value="业主小组开会的地点是三号楼活动室",
        question="地点在哪儿，业主小组下回碰头开会？",
        reordered=True,
        updates=(
            Update(
                day=108,
                text="活动室漏水了，业主小组开会的地点改在物业二楼，楼梯有点陡。",
                value="业主小组开会的地点是物业二楼",
            ),
            Update(
                day=181,
                text="物业嫌咱们嗓门大。往后业主小组开会的地点是叶知秋家院子，自带板凳。",
                value="业主小组开会的地点是叶知秋家的院子",
            ),
        ),
    ),
    Fact(
        id="f275",
        person="p18",
        place="g4",
        day=80,
        text="读书会接龙结束，这一期共读的书是《看不见的河》，一百多页，不许说没空。",
        category="plan",
        topic="读书会",
        key="书目",
        about="读书会",
        value="读书会这一期共读的书是《看不见的河》",
        question="这一期要读哪本，咱们读书会的书？",
        reordered=True,
        updates=(
            Update(
                day=138,
                text="《看不见的河》大家读完了，读书会这一期共读的书换成《灶台与星空》。",
                value="读书会这一期共读的书是《灶台与星空》",
            ),
            Update(
                day=166,
                text="新一轮投票出炉，读书会这一期共读的书是《山羊的算术》，去社区图书角领。",
                value="读书会这一期共读的书是《山羊的算术》",
            ),
        ),
    ),
    Fact(
        id="f276",
        person="p20",
        place="g4",
        day=108,
        text="谁家阳台剪枝记得叫我一声，我最喜欢的花是栀子，一朵能香一屋子。",
        category="preference",
        key="favourite-flower",
        value="最喜欢的花是栀子",
        question="依然最喜欢哪种植物？",
        updates=(
            Update(
                day=151,
                text="栀子养死三盆了，伤心。我现在最喜欢的花是蓝雪花，皮实。",
                value="最喜欢的花是蓝雪花",
            ),
            Update(
                day=254,
                text="被若溪种草了，我最喜欢的花变成重瓣芍药啦，别再送我蓝色的了。",
                value="最喜欢的花是重瓣芍药",
            ),
        ),
    ),
    Fact(
        id="f277",
        person="p17",
        place="g4",
        day=152,
        text="单元门关不严的毛病找着了，闭门器缺油，我拧了半圈又滴了缝纫机油，好使了。",
        category="solution",
        topic="小区",
        key="门禁",
        about="小区",
        value="单元门关不严，给闭门器滴缝纫机油修好了",
        question="闭门器是怎么修的，单元门那个？",
        reordered=True,
    ),
    Fact(
        id="f278",
        person="p17",
        place="g4",
        day=318,
        text="你们喊我要是没应，别见怪，我右耳听不见，年轻时放炮震的，走我左边说。",
        category="health",
        key="听力",
        value="右耳听不见，要在左边跟他说话",
        question="跟罗叔聊天该站他哪一侧？",
    ),
    Fact(
        id="f279",
        person="p17",
        place="g4",
        day=252,
        text="修水管不用找外头的，我老战友老佟免费帮忙，他年轻时给潜艇焊过管子。",
        category="relation",
        key="战友",
        about="老佟",
        value="老战友老佟免费帮忙修水管",
        question="修水管要是叫老佟来，得付钱吗？",
        reordered=True,
    ),
    Fact(
        id="f280",
        person="p18",
        place="g4",
        day=213,
        text="跟大家商量一下，上午十二点以前请别敲我门，我都是天亮才睡。",
        category="boundary",
        key="boundary",
        value="上午十二点以前不希望被敲门",
        question="找知秋要避开一天里的哪段时间？",
    ),
    Fact(
        id="f281",
        person="p18",
        place="g4",
        day=201,
        text="楼道那个胡桃木书架是我放的，随便拿随便还，最下面一层是给孩子的绘本。",
        category="artifact",
        topic="读书会",
        key="书架",
        about="读书会",
        value="楼道胡桃木书架最下面一层是绘本",
        question="绘本在哪儿，书架的哪一层？",
        reordered=True,
    ),
    Fact(
        id="f282",
        person="p18",
        place="g4",
        day=313,
        text="下周我表妹叶知微来讲座，她是考古队画文物线图的，不许问她盗墓的事。",
        category="relation",
        key="cousin",
        about="叶知微",
        value="表妹叶知微在考古队画文物线图",
        question="知秋的表妹是什么来头？",
    ),
    Fact(
        id="f283",
        person="p14",
        place="g4",
        day=226,
        text="我周六上午在社区中心教小朋友剪纸，免费的，家长可以去喝茶。",
        category="work",
        topic="小区",
        key="周末班",
        value="周六上午在社区中心教小朋友剪纸",
        question="小朋友能跟若溪学什么，周六的时候？",
        reordered=True,
    ),
    Fact(
        id="f284",
        person="p14",
        place="g4",
        day=43,
        text="有去看戏的叫上我！我超喜欢越剧，尤其是尹派，能从头哼到尾。",
        category="preference",
        key="likes",
        value="喜欢越剧，尤其是尹派",
        question="若溪迷的是哪一种舞台艺术？",
    ),
    Fact(
        id="f285",
        person="p20",
        place="g4",
        day=78,
        text="快递柜的规则我跟客服改好了，存放时间从十二小时延长到三十六小时，超时才收费。",
        category="config",
        topic="小区",
        key="快递柜",
        about="小区",
        value="快递柜存放时间延长到三十六小时才收费",
        question="存放多久才收费，咱楼下的快递柜？",
        reordered=True,
    ),
    Fact(
        id="f286",
        person="p20",
        place="g4",
        day=50,
        text="推荐一下帮我带娃的庞姐，她以前是杂技团走钢丝的，孩子们服服帖帖。",
        category="relation",
        key="保姆",
        about="庞姐",
        value="保姆庞姐以前在杂技团走钢丝",
        question="庞姐过去有什么不寻常的经历？",
    ),
    Fact(
        id="f287",
        person="p14",
        place="g4",
        day=346,
        text="三花妈妈昨晚在地下车库生了五只小猫，我垫了旧毛衣，大家停车慢一点。",
        category="happening",
        topic="小区",
        key="流浪猫",
        about="小区",
        value="三花猫在地下车库生了五只小猫",
        question="地下车库里的三花，一共生了几只？",
        reordered=True,
    ),
    Fact(
        id="f288",
        person="p19",
        place="g5",
        day=188,
        text="徒步队本季规矩：集合时间是周日早上六点，地铁口见，迟到的背公用锅。",
        category="project",
        topic="徒步队",
        key="集合时间",
        about="徒步队",
        value="徒步队的集合时间是周日早上六点",
        question="几点是集合时间，咱们徒步队的？",
        reordered=True,
        updates=(
            Update(
                day=251,
                text="投诉太多，我认。徒步队的集合时间改成周日早上七点半。",
                value="徒步队的集合时间是周日早上七点半",
            ),
            Update(
                day=326,
                text="入冬天亮得晚，徒步队的集合时间挪到周六上午九点，这下没人有借口了吧。",
                value="徒步队的集合时间是周六上午九点",
            ),
        ),
    ),
    Fact(
        id="f289",
        person="p15",
        place="g5",
        day=37,
        text="流浪动物地图这个小程序要有人盯数据，分工定了，数据审核由小满负责。",
        category="project",
        topic="流浪动物地图",
        key="负责人",
        about="流浪动物地图",
        value="流浪动物地图的数据审核由唐小满负责",
        question="动物地图里的数据是谁在把关？",
        updates=(
            Update(
                day=72,
                text="小满要实习顾不上，流浪动物地图的数据审核改由依然负责，感谢她。",
                value="流浪动物地图的数据审核由马依然负责",
            ),
            Update(
                day=164,
                text="依然家里忙，跟她换了，流浪动物地图的数据审核现在由若溪负责。",
                value="流浪动物地图的数据审核由沈若溪负责",
            ),
        ),
    ),
    Fact(
        id="f290",
        person="p16",
        place="g5",
        day=28,
        text="报告一个好消息，我去芭蕉宠物医院上班了，实习期管饭！",
        category="work",
        topic="实习",
        key="employer",
        value="在芭蕉宠物医院上班",
        question="小满如今在哪个单位上班？",
        updates=(
            Update(
                day=103,
                text="芭蕉那边老加班，我换到郊区的野生动物救助站上班了，天天喂猫头鹰。",
                value="在野生动物救助站上班",
            ),
            Update(
                day=176,
                text="救助站经费断了，唉。我现在在海关的检疫犬基地上班，认识了四十条狗。",
                value="在海关检疫犬基地上班",
            ),
        ),
    ),
    Fact(
        id="f291",
        person="p19",
        place="g5",
        day=128,
        text="谁带干粮都行，就是别给我夹花生酱的，我花生过敏，吃一口得叫救护车。",
        category="health",
        topic="徒步队",
        key="allergy",
        value="对花生过敏",
        question="给韩冬准备路上吃的要避开什么？",
    ),
    Fact(
        id="f292",
        person="p19",
        place="g5",
        day=199,
        text="进山没信号，对讲机统一调到十七频道，领队和收尾各一台。",
        category="config",
        topic="徒步队",
        key="对讲机",
        about="徒步队",
        value="徒步队对讲机统一调到十七频道",
        question="频道统一是哪个，徒步队进山用的？",
        reordered=True,
    ),
    Fact(
        id="f293",
        person="p15",
        place="g5",
        day=239,
        text="商量过了，流浪动物地图的代码开源，许可证用MPL，图标不放出去。",
        category="decision",
        topic="流浪动物地图",
        key="开源",
        about="流浪动物地图",
        value="流浪动物地图的代码用MPL许可证开源",
        question="开源用什么许可证，那个动物地图？",
        reordered=True,
    ),
    Fact(
        id="f294",
        person="p15",
        place="g5",
        day=290,
        text="定位漂移搞定了，原来安卓给的坐标系不一样，转成国测局坐标就准了。",
        category="solution",
        topic="流浪动物地图",
        key="定位漂移",
        about="流浪动物地图",
        value="定位漂移靠把安卓坐标转成国测局坐标解决",
        question="坐标后来转成了什么，才没了定位漂移？",
        reordered=True,
    ),
    Fact(
        id="f295",
        person="p15",
        place="g5",
        day=292,
        text="下次徒步我老婆苏禾也来，她是声学工程师，一路都在录鸟叫，别跟她抢话。",
        category="relation",
        topic="家人",
        key="wife",
        about="苏禾",
        value="妻子苏禾是声学工程师",
        question="苏禾从事什么职业？",
    ),
    Fact(
        id="f296",
        person="p16",
        place="g5",
        day=12,
        text="露营别分给我上铺吊床，我讨厌悬空睡觉，一晃就想吐。",
        category="preference",
        key="dislikes",
        value="讨厌悬空睡吊床",
        question="过夜的时候小满不肯睡在什么上面？",
    ),
    Fact(
        id="f297",
        person="p16",
        place="g5",
        day=206,
        text="立个规矩好不好：徒步的时候每人至少捡一袋垃圾下山，垃圾袋我来发。",
        category="instruction",
        topic="徒步队",
        key="捡垃圾",
        about="徒步队",
        value="徒步每人至少捡一袋垃圾下山",
        question="下山的时候，每人要带什么？",
        reordered=True,
    ),
    Fact(
        id="f298",
        person="p20",
        place="g5",
        day=243,
        text="跟大家说定啦，国庆我们去走徽杭古道，两天一夜，住农家乐，娃也去。",
        category="plan",
        topic="徒步队",
        key="plan",
        about="徒步队",
        value="国庆去走徽杭古道，两天一夜",
        question="两天一夜的那次，国庆咱们走哪条线？",
        reordered=True,
    ),
    Fact(
        id="f299",
        person="p20",
        place="g5",
        day=54,
        text="要搭我车的看过来，我每天早上从滨江路开车出发，车上还有两个空位。",
        category="place",
        key="通勤",
        value="每天早上从滨江路开车出发，有两个空位",
        question="空位还有吗，依然早上是从哪儿出发的？",
        reordered=True,
    ),
    Fact(
        id="f300",
        person="p14",
        place="g5",
        day=293,
        text="来报个平安，上次下坡我左脚踝扭伤了，打了石膏，要歇四周。",
        category="happening",
        topic="徒步队",
        key="扭伤",
        value="下坡时左脚踝扭伤，打石膏要歇四周",
        question="石膏要打多久，若溪扭伤以后？",
        reordered=True,
    ),
)

FACTS: Final[tuple[Fact, ...]] = _ENGLISH + _CHINESE
