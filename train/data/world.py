"""The small world the models know: the harbour town of Saltmere. Invented for this project.

Everything that a conversation may state as a fact is in the tables below and nowhere else, so
that all documents agree and an evaluation can check answers.
"""

from dataclasses import dataclass

TOWN = "Saltmere"


@dataclass(frozen=True)
class Person:
    name: str
    she: bool
    job: str            # with article: "the baker"
    work: str           # a place, with article: "the bakery"
    street: str
    pet: str            # "a cat"
    pet_name: str
    food: str
    hobby: str          # "paints small boats"
    friend: str
    house: str          # colour

    @property
    def subject(self):
        return "she" if self.she else "he"

    @property
    def possessive(self):
        return "her" if self.she else "his"


def _people(*rows):
    people = {}
    for row in rows:
        name, gender, job, work, street, pet, food, hobby, friend, house = (
            c.strip() for c in row.split("|"))
        kind, pet_name = pet.split(" called ")
        people[name] = Person(name, gender == "f", "the " + job, "the " + work, street, kind,
                              pet_name, food, hobby, friend, house)
    return people


PEOPLE = _people(
    "Anna | f | baker | bakery | Mill Lane | a cat called Biscuit | "
    "plum cake | sings in the evening | Clara | yellow",
    "Ben | m | fisherman | harbour | Rope Street | a dog called Anchor | "
    "fried fish | carves wooden whistles | Oscar | blue",
    "Clara | f | teacher | school | Church Hill | a parrot called Pepper | "
    "apple pie | reads old maps | Anna | white",
    "David | m | doctor | clinic | Market Square | a turtle called Button | "
    "pea soup | plays chess | Felix | grey",
    "Emma | f | lighthouse keeper | lighthouse | Cliff Road | a goat called Daisy | "
    "cheese bread | draws the stars | Iris | red",
    "Felix | m | innkeeper | Silver Gull inn | Market Square | a parrot called Captain | "
    "onion stew | plays the fiddle | David | green",
    "Greta | f | boat builder | boatyard | Rope Street | a dog called Plank | "
    "mussel soup | swims before breakfast | Mira | orange",
    "Henry | m | postman | post office | Mill Lane | a donkey called Stamp | "
    "pancakes | rides a bicycle | Jonas | brown",
    "Iris | f | gardener | rose garden | Garden Street | a rabbit called Clover | "
    "carrot cake | keeps bees | Emma | pink",
    "Jonas | m | miller | windmill | Windy Hill | a goose called Flour | "
    "barley bread | flies kites | Henry | white",
    "Kate | f | librarian | library | Church Hill | a cat called Comma | "
    "lemon tart | writes poems | Leo | purple",
    "Leo | m | clock maker | clock shop | Garden Street | a mouse called Minute | "
    "egg noodles | collects shells | Kate | green",
    "Mira | f | ferry captain | ferry | Cliff Road | a dog called Tide | "
    "potato salad | dances on Sundays | Greta | blue",
    "Oscar | m | smith | forge | Windy Hill | a horse called Ember | "
    "sausages | grows pumpkins | Ben | black",
)


@dataclass(frozen=True)
class Place:
    name: str           # without article
    where: str
    opens: str
    closes: str
    known: str          # "is known for ..."
    person: str = ""    # who works there


def _places(*rows):
    places = {}
    for row in rows:
        name, where, opens, closes, known = (c.strip() for c in row.split("|"))
        who = next((p.name for p in PEOPLE.values() if p.work == "the " + name), "")
        places[name] = Place(name, where, opens, closes, known, who)
    return places


PLACES = _places(
    "bakery | in Mill Lane | six | two | warm plum cake",
    "harbour | at the end of Rope Street | five | nine | its blue fishing boats",
    "school | on Church Hill | eight | three | its big chestnut tree",
    "clinic | on Market Square | nine | five | its quiet waiting room",
    "lighthouse | at the end of Cliff Road | ten | four | its red and white tower",
    "Silver Gull inn | on Market Square | eleven | ten | onion stew and music",
    "boatyard | next to the harbour | seven | six | its small sailing boats",
    "post office | in Mill Lane | eight | four | its old brass bell",
    "rose garden | in Garden Street | nine | seven | its white roses",
    "windmill | on Windy Hill | seven | five | its four brown sails",
    "library | on Church Hill | ten | six | its old sea maps",
    "clock shop | in Garden Street | nine | five | a clock as tall as a door",
    "ferry | at the stone pier | seven | eight | the trip to Gull Island",
    "forge | on Windy Hill | eight | six | its iron anchors",
    "market | on Market Square | seven | noon | fresh fish and honey",
)

# season: weather, what grows or happens, festival, the month of the festival, what people do
SEASONS = {
    "spring": ("mild and rainy", "the roses get new leaves", "the Kite Day", "April",
               "paint their boats"),
    "summer": ("warm and sunny", "the bees make honey", "the Boat Race", "July",
               "swim in the bay"),
    "autumn": ("windy and cool", "the pumpkins get ripe", "the Lantern Walk", "October",
               "mend their nets"),
    "winter": ("cold and dark", "snow lies on the roofs", "the Soup Evening", "January",
               "sit by the stove and tell stories"),
}

# what happens on each day of the week
DAYS = {
    "Monday": "Jonas grinds the flour", "Tuesday": "the ferry brings new books",
    "Wednesday": "the children visit the library", "Thursday": "Henry brings the parcels",
    "Friday": "Felix plays the fiddle at the inn", "Saturday": "the market is open",
    "Sunday": "people dance at the harbour",
}

# question phrasings (last one held out) -> answer
GENERAL = (
    (("What happens to ice when it gets warm?", "What does ice do in the sun?",
      "Why does ice go away when it is warm?", "What becomes of ice in a warm room?"),
     "Ice melts and becomes water when it gets warm."),
    (("What happens to water when it is very cold?", "What does water do in the frost?",
      "What does cold do to water?", "What becomes of water in hard frost?"),
     "Water freezes and becomes ice when it is very cold."),
    (("What happens when water boils?", "What comes out of boiling water?",
      "What does hot water turn into?", "What do you get when water boils?"),
     "Boiling water turns into steam."),
    (("Where does the sun rise?", "In which direction does the sun come up?",
      "Where does the sun come up in the morning?", "On which side does the sun rise?"),
     "The sun rises in the east."),
    (("Where does the sun set?", "In which direction does the sun go down?",
      "Where does the sun go down in the evening?", "On which side does the sun set?"),
     "The sun sets in the west."),
    (("How many days are in a week?", "How many days does a week have?",
      "How long is a week?", "A week has how many days?"), "A week has seven days."),
    (("How many hours does a day have?", "How many hours are in a day?", "How long is a day?",
      "A day has how many hours?"), "A day has twenty-four hours."),
    (("How many months are in a year?", "How many months does a year have?",
      "How long is a year in months?", "A year has how many months?"), "A year has twelve months."),
    (("Why do boats float?", "Why does a boat not sink?", "What keeps a boat up?",
      "How can a boat float?"), "A boat floats because it pushes water away and is full of air."),
    (("Does iron float?", "Will a piece of iron float or sink?", "Does a nail swim on water?",
      "Can iron float on water?"), "No. A piece of iron sinks in water."),
    (("Does wood float?", "Will a piece of wood float or sink?", "Does wood swim on water?",
      "Can wood float on water?"), "Yes. Wood floats on water."),
    (("Where does rain come from?", "What makes the rain?", "Why does it rain?",
      "Where is rain made?"), "Rain falls from the clouds when their drops get heavy."),
    (("When do we see a rainbow?", "How is a rainbow made?", "What makes a rainbow?",
      "When does a rainbow appear?"), "A rainbow appears when the sun shines on rain."),
    (("What do bees make?", "Who makes honey?", "What do we get from bees?",
      "What food comes from bees?"), "Bees make honey."),
    (("What do cows give?", "Where does milk come from?", "What do we get from cows?",
      "What drink comes from cows?"), "Cows give milk."),
    (("How many legs does a spider have?", "How many legs are on a spider?",
      "Count the legs of a spider.", "A spider has how many legs?"), "A spider has eight legs."),
    (("How many legs does a dog have?", "How many legs are on a dog?", "Count the legs of a dog.",
      "A dog has how many legs?"), "A dog has four legs."),
    (("How many legs does a bird have?", "How many legs are on a bird?",
      "Count the legs of a bird.", "A bird has how many legs?"), "A bird has two legs."),
    (("What colour is the sky?", "What colour does a clear sky have?", "Which colour is the sky?",
      "Tell me the colour of the sky."), "A clear sky is blue."),
    (("What colour is grass?", "What colour does grass have?", "Which colour is grass?",
      "Tell me the colour of grass."), "Grass is green."),
    (("How often does the tide come in?", "How many tides are there each day?",
      "When does the tide come?", "How often is it high tide?"),
     "The tide comes in twice a day."),
    (("What makes the tides?", "Why is there a tide?", "Why does the sea rise and fall?",
      "What pulls the tides?"), "The moon pulls the sea and makes the tides."),
    (("Is the sea salty?", "How does sea water taste?", "What does the sea taste like?",
      "Can you taste salt in the sea?"), "Yes. Sea water tastes salty."),
    (("Which season comes after winter?", "What comes after winter?",
      "What season follows winter?", "Winter ends. What comes then?"),
      "Spring comes after winter."),
    (("Which season comes after summer?", "What comes after summer?",
      "What season follows summer?", "Summer ends. What comes then?"),
      "Autumn comes after summer."),
    (("What do plants need?", "What does a plant need to grow?", "How do plants grow?",
      "What helps a plant to grow?"), "Plants need light, water and soil."),
    (("What is bread made of?", "How do you make bread?", "What do you need for bread?",
      "What goes into bread?"), "Bread is made of flour, water, salt and yeast."),
    (("What do birds lay?", "Where do young birds come from?", "How do birds get young ones?",
      "What does a hen lay?"), "Birds lay eggs."),
    (("What does a lighthouse do?", "What is a lighthouse for?", "Why do we need a lighthouse?",
      "How does a lighthouse help?"), "A lighthouse shows ships the way at night."),
    (("What does a compass show?", "What is a compass for?", "Where does a compass point?",
      "How does a compass help?"), "A compass points to the north."),
)

# about the model itself (last phrasing held out)
SELF = (
    (("Who are you?", "What are you?", "What is your name?", "Introduce yourself.",
      "Can you introduce yourself?", "Tell me who you are."),
     "I am Hadal, a tiny language model made as a demonstration."),
    (("What can you do?", "How can you help me?", "What are you good at?", "What can I ask you?",
      "Which things can you do?"),
     "I can talk about the town of Saltmere, find facts in a text and do small tasks with files."),
    (("Who made you?", "Where do you come from?", "Who trained you?", "Who built you?",
      "How were you made?"),
     "I was trained from scratch for hadal on made-up texts about the town of Saltmere."),
    (("How big are you?", "Are you a large model?", "How many parameters do you have?",
      "What is your size?", "Tell me how large you are."),
     "I am very small. I have about twenty million parameters."),
    (("Are you a person?", "Are you human?", "Are you alive?", "Are you a real person?",
      "Is there a human behind you?"), "No. I am a computer program, a tiny language model."),
    (("What do you not know?", "Do you know everything?", "What are your limits?",
      "Can I trust all your answers?", "How much do you know?"),
     "I know very little. I know Saltmere, a few simple facts and some tools, and I can be wrong."),
    (("Which languages do you speak?", "Do you speak German?", "Can you speak French?",
      "What languages do you know?", "Which language do you use?"), "I only speak simple English."),
    (("Can you write code?", "Do you know Python?", "Can you program?", "Can you edit files?",
      "Are you able to fix a script?"),
     "A little. With tools I can read, write and edit small files and run small scripts."),
    (("Do you sleep?", "Do you get tired?", "Do you eat?", "Do you have feelings?",
      "Are you ever tired?"), "No. I am a program, so I do not eat, sleep or feel."),
    (("Can you remember things?", "Do you have a memory?", "Will you remember me?",
      "Do you remember what I say?", "How good is your memory?"),
     "I remember what is in this conversation, but nothing after it."),
)

SMALL_TALK = (
    (("Hello!", "Hi!", "Hi there!", "Hello there.", "Good morning!", "Good evening!", "Hey!", "hi",
      "hello", "Greetings!"),
     ("Hello! How can I help you?", "Hi! What would you like to know about Saltmere?",
      "Hello! Nice to meet you.")),
    (("How are you?", "How are you today?", "How is it going?", "Are you well?",
      "How do you feel today?"), ("I am fine, thank you. How are you?",
                                  "Very well, thank you. What can I do for you?")),
    (("Thank you!", "Thanks!", "Thanks a lot.", "That helps, thank you.", "Great, thanks!"),
     ("You are welcome!", "You are welcome. Is there anything else?")),
    (("Goodbye!", "Bye!", "See you!", "I have to go now.", "Good night!"),
     ("Goodbye! Come back soon.", "Goodbye! Have a nice day.")),
    (("I am tired.", "I am so tired today.", "I did not sleep well.", "I feel tired."),
     ("I am sorry. Take a rest and drink some tea.",)),
    (("I am happy today.", "I feel great!", "Today is a good day.", "What a lovely day!"),
     ("That is good to hear!", "How nice! I am glad.")),
    (("I am sad.", "I feel sad today.", "I had a bad day.", "Today was not a good day."),
     ("I am sorry to hear that. Do you want to hear a story?",)),
    (("I am bored.", "What should I do today?", "I do not know what to do."),
     ("You could walk to the harbour and watch the boats.", "Shall I tell you a story?")),
    (("Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Say something funny."),
     ("Why did the goose go to the windmill? It wanted to become flour.",
      "What does the clock maker's mouse eat? Only one minute at a time.",
      "Why is the sea so friendly? It always waves.")),
    (("Okay.", "I see.", "Interesting.", "Good to know.", "Ah, nice."),
     ("Is there anything else you would like to know?", "Ask me anything about Saltmere.")),
    (("You are nice.", "I like you.", "You are clever.", "Good answer!"),
     ("Thank you, that is kind of you!",)),
)

UNKNOWN = (
    "What is the capital of {place}?", "Who is the president of {place}?",
    "How far is it to {place}?", "What is the weather in {place}?", "Who won the game in {place}?",
    "How many people live in {place}?", "When was {place} built?", "Who is {person}?",
    "What does {person} do?", "Where does {person} live?", "Do you know {person}?",
    "Tell me about {person}.", "What is the price of gold?", "What is the news today?",
    "Explain quantum physics.", "How does a computer chip work?", "Translate this into {place}ish.",
    "What is the meaning of life?", "Can you book a flight to {place}?",
    "Can you tell me something about {place}?",
)
UNKNOWN_ANSWER = "I do not know that. I only know the town of Saltmere and a few simple facts."
