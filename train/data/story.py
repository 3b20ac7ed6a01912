"""Short stories and plain descriptions of Saltmere, from one grammar."""

from .names import COLORS
from .world import DAYS, PEOPLE, PLACES, SEASONS, TOWN

FINDS = ("a small key", "an old map", "a silver coin", "a lost kitten",
         "a green bottle with a letter",
         "a broken lantern", "a wooden box", "a torn sail", "a shiny shell", "a little bell")
ENDS = {"a small key": "The key opened an old chest full of letters.",
        "an old map": "The map showed a quiet bay with white sand.",
        "a silver coin": "They bought warm bread with the coin and shared it.",
        "a lost kitten": "The kitten went home with a child from the school.",
        "a green bottle with a letter":
            "The letter came from a sailor who sent greetings to the town.",
        "a broken lantern": "They repaired the lantern and hung it at the harbour.",
        "a wooden box": "The box was full of sweet apples.",
        "a torn sail": "They mended the sail and a boat could go out again.",
        "a shiny shell": "In the shell they could hear the sea.",
        "a little bell": "The bell now hangs at the school and rings every morning."}
TROUBLES = ("it began to rain", "a strong wind came up", "thick fog came from the sea",
            "it got dark", "the path was covered with snow", "the tide came in")
HELPS = ("brought a lamp", "knew a short way", "had a strong rope", "came with a warm coat",
         "called the others", "had a good idea")
FEELINGS = ("happy", "tired but glad", "proud", "thankful")


class Story:
    """One story: who, where, what was found, who helped, how it ended."""

    def __init__(self, rng):
        people = rng.sample(list(PEOPLE.values()), 2)
        self.rng = rng
        self.hero, self.other = people
        self.season = rng.choice(list(SEASONS))
        self.place = rng.choice(list(PLACES))
        self.find = rng.choice(FINDS)
        self.trouble, self.help = rng.choice(TROUBLES), rng.choice(HELPS)
        self.feeling, self.day = rng.choice(FEELINGS), rng.choice(list(DAYS))

    def text(self):
        r, h, o = self.rng, self.hero, self.other
        pick = r.choice
        s = [pick((f"One day in {self.season}, {h.name} went to the {self.place}.",
                   f"It was a {self.day} in {self.season}. {h.name} walked to the {self.place}.",
                   f"Once, in {self.season}, {h.name} was on the way to the {self.place}.")),
             pick((f"On the way {h.subject} found {self.find}.",
                   f"There {h.subject} saw {self.find}.",
                   f"Near the {self.place} {h.subject} found {self.find}."))]
        if r.random() < 0.6:
            s.append(pick((f'"What a surprise!" said {h.name}.', f'"I must show this to {o.name}," '
                           f"{h.subject} thought.", f'"Who has lost this?" asked {h.name}.')))
        s.append(f"Then {self.trouble}.")
        s.append(pick((f"Luckily {o.name} {self.help}.", f"But {o.name} {self.help}.",
                       f"Then {o.name} came and {self.help}.".replace("came and came", "came"))))
        s.append(ENDS[self.find])
        s.append(pick((f"In the end both were {self.feeling}.",
                       f"{h.name} and {o.name} were {self.feeling}.",
                       f"That evening {h.name} was {self.feeling}.")))
        return " ".join(s)

    def questions(self):
        """(phrasings, last held out; answer) about this story."""
        h, o = self.hero.name, self.other.name
        return ((("What was found in the story?", f"What did {h} find?",
                  "What did the story say about a find?"), f"{h} found {self.find}."),
                (("Who helped in the story?", f"Who helped {h}?", "Which person helped?"),
                 f"{o} helped {h}."),
                (("Where did the story happen?", f"Where did {h} go?",
                  "At which place was the story?"), f"{h} went to the {self.place}."),
                (("When did the story happen?", "In which season was the story?",
                  "What time of the year was it in the story?"),
                 f"The story happened in {self.season}."))


def portrait(rng):
    """A plain paragraph about one person, facts in varying order."""
    p = rng.choice(list(PEOPLE.values()))
    facts = [f"lives in {p.street}", f"works at {p.work}", f"has {p.pet} called {p.pet_name}",
             f"likes {p.food}", p.hobby,
             f"lives in {'an' if p.house[0] in 'aeiou' else 'a'} {p.house} house",
             f"is a good friend of {p.friend}"]
    rng.shuffle(facts)
    out = [f"{p.name} is {p.job} of {TOWN}."]
    subject = p.subject.capitalize()
    for i in range(0, rng.choice((4, 6)), 2):
        out.append(f"{rng.choice((p.name, subject))} {facts[i]} and {facts[i + 1]}.")
    return " ".join(out)


def place_text(rng):
    p = rng.choice(list(PLACES.values()))
    out = [f"The {p.name} is {p.where}.", f"It is open from {p.opens} to {p.closes}.",
           f"It is known for {p.known}."]
    if p.person:
        out.append(f"{p.person} works there.")
    return " ".join(out)


def season_text(rng):
    n = rng.choice(list(SEASONS))
    weather, event, festival, month, work = SEASONS[n]
    return (f"In {n} it is {weather} in {TOWN}. Then {event}. In {month} the people celebrate "
            f"{festival}. In {n} the people {work}.")


def diary(rng):
    """A few lines of a day, about known people."""
    d = rng.choice(list(DAYS))
    p, q = rng.sample(list(PEOPLE.values()), 2)
    colour = rng.choice(COLORS)
    lines = [f"Today is {d}. On {d} {DAYS[d]}.",
             f"In the morning I met {p.name} at {p.work}.",
             f"{p.name} gave me {p.food} and we talked about {q.name}.",
             f"Later I saw a {colour} boat in the harbour.",
             f"In the evening {q.name} {q.hobby}, as always.",
             f"{q.name}'s {q.pet.split(' ')[1]} {q.pet_name} slept near the door."]
    keep = sorted(rng.sample(range(1, 6), rng.randint(2, 5)))
    return " ".join([lines[0], *(lines[i] for i in keep)])


def prose(rng):
    """One paragraph of any kind."""
    k = rng.random()
    if k < 0.4:
        return Story(rng).text()
    return rng.choice((portrait, portrait, place_text, season_text, diary, diary))(rng)
