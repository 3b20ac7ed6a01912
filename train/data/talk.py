"""Conversations about Saltmere: questions with follow-ups, small talk, stories, user facts.

A conversation is an endless generator of units, each [user message, assistant message]. It keeps
a topic, so that "Where does she live?" and "What about Ben?" refer to earlier turns. In every
tuple of question phrasings the LAST one never occurs in training; `ask` picks it when held out.
"""

from . import story
from .names import COLORS, NOUNS, Names
from .phrasings import MORE
from .world import (DAYS, GENERAL, PEOPLE, PLACES, SEASONS, SELF, SMALL_TALK, TOWN, UNKNOWN,
                    UNKNOWN_ANSWER)

# attribute: (phrasings with a name, phrasings with a pronoun, "what about" noun, answer)
# {n} name, {s} she/he, {p} her/his
PERSON = {
    "job": (("What does {n} do?", "What is {n}'s job?", "What does {n} do for a living?",
             "Tell me {n}'s job.", "What work does {n} do?", "Do you know what {n} does?",
             "Which job does {n} have?"),
            ("What does {s} do?", "What is {p} job?", "What work does {s} do?",
             "Which job does {s} have?"), "job", "{n} is {job} of {town}."),
    "work": (("Where does {n} work?", "What is {n}'s place of work?",
              "Where can I find {n} at work?",
              "Do you know where {n} works?", "Tell me where {n} works.",
              "In which place does {n} work?"),
             ("Where does {s} work?", "And where does {s} work?", "What is {p} place of work?",
              "In which place does {s} work?"), "work", "{n} works at {work}."),
    "street": (("Where does {n} live?", "Where is {n}'s home?", "In which street does {n} live?",
                "Do you know where {n} lives?", "Tell me where {n} lives.",
                "What street does {n} live in?", "Where can I find {n}'s home?"),
               ("Where does {s} live?", "And where does {s} live?", "Where is {p} home?",
                "In which street does {s} live?"), "home", "{n} lives in {street}."),
    "pet": (("Does {n} have a pet?", "What pet does {n} have?", "Which animal does {n} have?",
             "Tell me about {n}'s pet.", "What is {n}'s pet?", "Do you know {n}'s pet?",
             "Which pet lives with {n}?"),
            ("Does {s} have a pet?", "What pet does {s} have?", "What is {p} pet?",
             "Which pet lives with {o}?"), "pet", "{n} has {pet} called {pet_name}."),
    "pet_name": (("What is the name of {n}'s pet?", "What is {n}'s pet called?",
                  "How is {n}'s pet called?", "Tell me the name of {n}'s pet.",
                  "Which name does {n}'s pet have?"),
                 ("What is {p} pet called?", "What is the name of {p} pet?",
                  "Which name does {p} pet have?"), "pet's name",
                 "{n}'s pet is {pet} called {pet_name}."),
    "food": (("What does {n} like to eat?", "What is {n}'s favourite food?",
              "Which food does {n} like best?", "What should I cook for {n}?",
              "Tell me {n}'s favourite food.", "What food does {n} love?"),
             ("What does {s} like to eat?", "What is {p} favourite food?",
              "Which food does {s} like best?", "What food does {s} love?"), "favourite food",
             "{n} likes {food}."),
    "hobby": (("What does {n} do in the free time?", "What is {n}'s hobby?",
               "Does {n} have a hobby?", "What does {n} do for fun?", "Tell me {n}'s hobby.",
               "Which hobby does {n} have?"),
              ("What does {s} do for fun?", "What is {p} hobby?", "Does {s} have a hobby?",
               "Which hobby does {s} have?"), "hobby", "{n} {hobby}."),
    "friend": (("Who is {n}'s best friend?", "Who is {n}'s friend?", "Does {n} have a friend?",
                "Tell me {n}'s best friend.", "With whom is {n} friends?"),
               ("Who is {p} best friend?", "Who is {p} friend?", "Does {s} have a friend?",
                "With whom is {s} friends?"), "best friend", "{n}'s best friend is {friend}."),
    "house": (("What colour is {n}'s house?", "Which colour does {n}'s house have?",
               "How can I recognise {n}'s house?", "Tell me the colour of {n}'s house.",
               "What does {n}'s house look like?"),
              ("What colour is {p} house?", "Which colour does {p} house have?",
               "What does {p} house look like?"), "house", "{n} lives in {house} house."),
}
WHO = {     # from a fact back to the person
    "job": (("Who is {job}?", "Who is {job} of {town}?", "What is the name of {job}?",
             "Do you know {job}?", "Tell me who {job} is.", "How is {job} called?"),
            "{n} is {job} of {town}."),
    "work": (("Who works at {work}?", "Whom do I meet at {work}?", "Who can I find at {work}?",
              "Tell me who works at {work}.", "Which person works at {work}?"),
             "{n} works at {work}."),
    "pet_name": (("Who has {pet} called {pet_name}?", "Whose pet is {pet_name}?",
                  "Who is {pet_name}?", "Do you know {pet_name}?",
                  "To whom does {pet_name} belong?"),
                 "{pet_name} is {n}'s pet, {pet}."),
    "food": (("Who likes {food}?", "Who loves {food}?", "Whose favourite food is {food}?",
              "Who likes to eat {food}?"), "{n} likes {food}."),
    "hobby": (("Who {hobby}?", "Which person {hobby}?", "Tell me who {hobby}."), "{n} {hobby}."),
}
PLACE = {
    "where": (("Where is the {n}?", "How do I get to the {n}?", "Where can I find the {n}?",
               "Tell me where the {n} is.", "Do you know where the {n} is?",
               "In which place is the {n}?"),
              ("Where is it?", "And where is it?", "Where can I find it?",
               "In which place is it?"), "The {n} is {where}."),
    "opens": (("When does the {n} open?", "At what time does the {n} open?",
               "When is the {n} open?", "Tell me when the {n} opens.",
               "From what time is the {n} open?"),
              ("When does it open?", "At what time does it open?", "When is it open?",
               "From what time is it open?"),
              "The {n} is open from {opens} to {closes}."),
    "closes": (("When does the {n} close?", "At what time does the {n} close?",
                "How long is the {n} open?", "Until when is the {n} open?"),
               ("When does it close?", "And when does it close?", "Until when is it open?"),
               "The {n} closes at {closes}."),
    "known": (("What is special about the {n}?", "What is the {n} known for?",
               "Tell me about the {n}.", "What can I see at the {n}?", "Why is the {n} famous?"),
              ("What is special about it?", "What is it known for?", "Why is it famous?"),
              "The {n} is known for {known}."),
}
SEASON = (
    (("What is the weather like in {n}?", "How is the weather in {n}?", "Is it cold in {n}?",
      "Tell me about the weather in {n}.", "What weather do you have in {n}?"),
     "In {n} it is {0} in {town}."),
    (("What happens in {n}?", "What can I see in {n}?", "What is {n} like?",
      "What goes on in {n}?"), "In {n} {1}."),
    (("Which festival is in {n}?", "Is there a festival in {n}?",
      "What do people celebrate in {n}?",
      "Tell me about the festival in {n}.", "Which feast is in {n}?"),
     "In {n} there is {2}. It is in {3}."),
    (("What do people do in {n}?", "How do people spend {n}?", "What do the people of Saltmere do "
      "in {n}?", "What are people busy with in {n}?"), "In {n} the people of {town} {4}."),
)
OPENERS = ("", "", "", "", "", "", "Please tell me: ", "Hello! ", "Hi, ", "One question: ",
           "I would like to know: ", "Now something else. ", "By the way, ", "Okay. ", "Thanks. ")


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


class Conversation:
    def __init__(self, rng, held_out=False):
        self.rng, self.held_out = rng, held_out
        self.names = Names(rng, held_out)
        self.person = None          # topics that pronouns may refer to
        self.place = None
        self.attribute = None
        self.user = {}              # what the user said about himself
        self.story = None
        self.last = None            # "person" or "place": what "it" and "about" refer to

    # ---- phrasing ----

    def ask(self, phrasings, **values):
        """One phrasing, filled in: the last one if held out, else any other."""
        text = phrasings[-1]
        if not self.held_out:
            text = self.rng.choice(phrasings[:-1] + MORE.get(phrasings[0], ()))
        return text.format(town=TOWN, **values)

    def vary(self, text):
        r = self.rng
        opener = r.choice(OPENERS)
        if opener.endswith((": ", ", ")):
            first = text.split(" ")[0].rstrip("?.,!")
            if first not in PEOPLE and not first.startswith("I"):
                text = text[0].lower() + text[1:]
        text = opener + text
        k = r.random()
        if k < 0.06:
            return text.lower().rstrip("?.")
        return text.rstrip("?") if k < 0.09 else text

    @staticmethod
    def unit(question, answer, thought):
        return [{"role": "user", "content": question},
                {"role": "assistant", "content": answer, "reasoning_content": thought}]

    # ---- kinds of turns: each returns (question, answer, thought) ----

    def facts(self, p):
        return {**vars(p), "n": p.name, "s": p.subject, "p": p.possessive,
                "o": "her" if p.she else "him", "house": article(p.house)}

    def about_person(self):
        r = self.rng
        follow = self.person and self.last == "person" and r.random() < 0.65
        k = r.random()
        if follow and k < 0.15 and self.attribute in PERSON:      # same question, other person
            p = r.choice(list(PEOPLE.values()))
            question = r.choice((f"What about {p.name}?", f"And {p.name}?"))
        elif follow and k < 0.3:                                  # same person, by noun
            p = self.person
            self.attribute = r.choice(list(PERSON))
            noun = PERSON[self.attribute][2]
            question = r.choice((f"And {p.possessive} {noun}?",
                                 f"What about {p.possessive} {noun}?"))
        elif follow:
            p = self.person
            self.attribute = r.choice(list(PERSON))
            question = self.ask(PERSON[self.attribute][1], **self.facts(p))
        else:
            p = r.choice(list(PEOPLE.values()))
            self.attribute = r.choice(list(PERSON))
            question = self.ask(PERSON[self.attribute][0], **self.facts(p))
        self.person, self.last = p, "person"
        answer = PERSON[self.attribute][3].format(town=TOWN, **self.facts(p))
        return question, answer, f"The question is about {p.name}. {answer}"

    def who(self):
        p = self.rng.choice(list(PEOPLE.values()))
        phrasings, answer = WHO[self.rng.choice(list(WHO))]
        self.person, self.last, self.attribute = p, "person", None
        answer = answer.format(town=TOWN, **self.facts(p))
        return self.ask(phrasings, **self.facts(p)), answer, f"I look for a person. {answer}"

    def portrait(self):
        p = self.rng.choice(list(PEOPLE.values()))
        keys = self.rng.sample([k for k in PERSON if k not in ("job", "pet_name")], 2)
        self.person, self.last, self.attribute = p, "person", None
        parts = [PERSON[k][3].format(town=TOWN, **self.facts(p)) for k in ("job", *keys)]
        question = self.ask(("Tell me about {n}.", "Who is {n}?", "What do you know about {n}?",
                             "Describe {n}.", "Can you tell me something about {n}?"), n=p.name)
        return question, " ".join(parts), f"I say a few things about {p.name}."

    def yes_no(self):
        p = self.rng.choice(list(PEOPLE.values()))
        q = p if self.rng.random() < 0.5 else self.rng.choice(list(PEOPLE.values()))
        key, ask, say = self.rng.choice((
            ("job", "Is {n} {job}?", "{n} is {job}."),
            ("street", "Does {n} live in {street}?", "{n} lives in {street}."),
            ("work", "Does {n} work at {work}?", "{n} works at {work}."),
            ("food", "Does {n} like {food}?", "{n} likes {food}."),
            ("pet", "Does {n} have {pet}?", "{n} has {pet}.")))
        self.person, self.last, self.attribute = p, "person", key
        right = getattr(p, key) == getattr(q, key)
        question = ask.format(**{**self.facts(p), key: getattr(q, key)})
        fact = say.format(**self.facts(p))
        return question, ("Yes. " if right else "No. ") + fact, f"I compare. {fact}"

    def about_place(self):
        r = self.rng
        key = r.choice(list(PLACE))
        if self.place and self.last == "place" and r.random() < 0.6:
            place, phrasings = self.place, PLACE[key][1]
        else:
            place, phrasings = r.choice(list(PLACES.values())), PLACE[key][0]
        self.place, self.last = place, "place"
        values = {**vars(place), "n": place.name}
        answer = PLACE[key][2].format(**values)
        if place.person and r.random() < 0.15:
            self.person = PEOPLE[place.person]
        thought = f"The question is about the {place.name}. {answer}"
        return self.ask(phrasings, **values), answer, thought

    def place_person(self):
        place = self.place if self.place and self.last == "place" else None
        if place is None or not place.person:
            return self.who()
        question = self.ask(("Who works there?", "And who works there?", "Who can I find there?",
                             "Which person works there?"))
        p = self.person = PEOPLE[place.person]
        self.last, self.attribute = "person", "work"
        answer = f"{p.name} works at the {place.name}."
        return question, answer, f"The question is about the {place.name}. {answer}"

    def season(self):
        n = self.rng.choice(list(SEASONS))
        phrasings, answer = self.rng.choice(SEASON)
        answer = answer.format(*SEASONS[n], n=n, town=TOWN)
        self.last = None
        return self.ask(phrasings, n=n), answer, f"The question is about {n}. {answer}"

    def day(self):
        d = self.rng.choice(list(DAYS))
        question = self.ask(("What happens on {d}?", "What can I do on {d}?", "What is on {d}?",
                             "Is there something on {d}?", "What goes on in town on {d}?"), d=d)
        self.last = None
        return question, f"On {d} {DAYS[d]}.", f"The question is about {d}."

    def town(self):
        self.last = None
        return self.ask(("What is Saltmere?", "Tell me about Saltmere.", "Where is Saltmere?",
                         "Describe the town.", "What kind of town is Saltmere?")), \
            "Saltmere is a small harbour town by the sea. It has a market, a lighthouse and a " \
            "windmill.", "The question is about the town."

    def table(self, rows):
        phrasings, answer = self.rng.choice(rows)
        if isinstance(answer, tuple):
            return self.rng.choice(phrasings), self.rng.choice(answer), "This is small talk."
        self.last = None
        return self.ask(phrasings), answer, f"I know this. {answer}"

    def unknown(self):
        question = self.ask(UNKNOWN, place=self.names.title(), person=self.names.title())
        self.last = None
        return question, UNKNOWN_ANSWER, "This is not about Saltmere. I do not know it."

    # ---- things the user tells ----

    def tell(self):
        r, n = self.rng, self.names
        key = r.choice(("name", "city", "pet", "colour", "thing"))
        value = {"name": n.title, "city": n.title, "pet": n.title,
                 "colour": lambda: r.choice(COLORS), "thing": lambda: r.choice(NOUNS)}[key]()
        question, answer = r.choice({
            "name": ((f"My name is {value}.", f"Nice to meet you, {value}!"),
                     (f"I am {value}.", f"Nice to meet you, {value}!"),
                     (f"Hello, I am {value}.", f"Hello {value}! Nice to meet you."),
                     (f"Call me {value}.", f"Nice to meet you, {value}!")),
            "city": ((f"I live in {value}.", f"{value} sounds like a nice place."),
                     (f"I come from {value}.", f"{value} sounds like a nice place.")),
            "pet": ((f"My pet is called {value}.", f"{value} is a lovely name for a pet."),
                    (f"I have a pet called {value}.", f"{value} is a lovely name for a pet.")),
            "colour": ((f"My favourite colour is {value}.",
                        f"{value.capitalize()} is a nice colour."),
                       (f"I like {value} best of all colours.",
                        f"{value.capitalize()} is a nice colour.")),
            "thing": ((f"I lost my {value}.", f"I am sorry about your {value}."),
                      (f"I need a new {value}.", f"I hope you find a good {value}."))}[key])
        self.user[key] = value
        self.last = None
        return question, answer, "The user tells me something. I will remember it."

    def ask_back(self):
        if not self.user:
            return self.tell()
        key = self.rng.choice(list(self.user))
        value = self.user[key]
        phrasings, answer = {
            "name": (("What is my name?", "Do you remember my name?", "Who am I?",
                      "Can you say my name?"), f"Your name is {value}."),
            "city": (("Where do I live?", "Do you remember where I live?", "Which place am I from?",
                      "Where is my home?"), f"You live in {value}."),
            "pet": (("What is my pet called?", "What is the name of my pet?",
                     "Do you remember the name of my pet?", "How did I call my pet?"),
                    f"Your pet is called {value}."),
            "colour": (("What is my favourite colour?", "Which colour do I like?",
                        "Do you remember my favourite colour?", "What colour do I like best?"),
                       f"Your favourite colour is {value}."),
            "thing": (("What did I talk about that I need?", "Which thing was I looking for?",
                       "What did I lose?", "Which thing did I tell you about?"),
                      f"You told me about your {value}.")}[key]
        self.last = None
        return self.ask(phrasings), answer, f"The user told me before. {answer}"

    # ---- stories ----

    def tell_story(self):
        self.story = story.Story(self.rng)
        who = self.story.hero.name
        question = self.rng.choice(("Tell me a story.", f"Tell me a story about {who}.",
                                    "Do you know a story?", "Can you tell me a short story?",
                                    "Another story, please.", f"I want a story with {who}.",
                                    f"Tell me a story about {who} and {self.story.other.name}.",
                                    f"Tell me a story that happens in {self.story.season}."))
        self.person, self.last, self.attribute = self.story.hero, "person", None
        return question, self.story.text(), f"I tell a story about {who}."

    def ask_story(self):
        if not self.story:
            return self.tell_story()
        phrasings, answer = self.rng.choice(self.story.questions())
        return self.ask(phrasings), answer, f"It is in the story. {answer}"

    def turn(self):
        kinds = (("about_person", 30), ("who", 12), ("portrait", 4), ("yes_no", 8),
                 ("about_place", 14), ("place_person", 3), ("season", 5), ("day", 3), ("town", 1),
                 ("general", 9), ("self", 7), ("small", 9), ("unknown", 4), ("tell", 5),
                 ("ask_back", 8), ("tell_story", 4), ("ask_story", 5))
        kind = self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        if kind in ("general", "self", "small"):
            made = self.table({"general": GENERAL, "self": SELF, "small": SMALL_TALK}[kind])
            question = made[0] if kind == "small" else self.vary(made[0])
        else:
            made = getattr(self, kind)()
            question = made[0] if kind == "tell" else self.vary(made[0])
        unit = self.unit(question, *made[1:])
        unit[1]["kind"] = kind
        return unit


def conversation(rng, held_out=False):
    """Endless units of one conversation."""
    c = Conversation(rng, held_out)
    if rng.random() < 0.3:
        hello = c.unit(*c.table(SMALL_TALK[:2]))
        hello[1]["kind"] = "small"
        yield hello
    while True:
        yield c.turn()
