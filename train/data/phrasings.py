"""More training phrasings of the questions in talk.py and world.py, keyed by their first phrasing.

A tiny model understands a new wording only if it has met the words, and several wordings around
it. Nothing here may equal a held-out phrasing; tests/test_data.py checks that.
"""

MORE = {
    # people
    "What does {n} do?": (
        "What is the profession of {n}?", "What kind of work does {n} do?",
        "How does {n} earn money?",
        "Can you tell me what {n} does?", "What job has {n}?", "Which work does {n} have?"),
    "What does {s} do?": (
        "And what does {s} do?", "How does {s} earn money?", "What kind of job does {s} have?",
        "Which work does {s} have?", "What job has {s}?"),
    "Where does {n} work?": (
        "At which place does {n} work?", "In what place does {n} work?",
        "Where is {n} during the day?",
        "Can you tell me where {n} works?", "In which building does {n} work?"),
    "Where does {s} work?": (
        "At which place does {s} work?", "In what place does {s} work?",
        "Where is {s} during the day?"),
    "Where does {n} live?": (
        "On which street does {n} live?", "Where can I find the house of {n}?",
        "Where is {n} at home?",
        "Can you tell me where {n} lives?", "What is {n}'s address?",
        "Where can I visit {n} at home?"),
    "Where does {s} live?": (
        "On which street does {s} live?", "What is {p} address?", "What street does {s} live in?"),
    "Does {n} have a pet?": (
        "What animal lives with {n}?", "Does {n} own an animal?",
        "Is there an animal in {n}'s house?",
        "What kind of pet does {n} have?", "Which animal belongs to {n}?"),
    "Does {s} have a pet?": (
        "Which animal lives with {o}?", "What animal belongs to {o}?",
        "What kind of pet does {s} have?",
        "And {p} animal?"),
    "What is the name of {n}'s pet?": (
        "Do you know the name of {n}'s pet?", "What name does {n}'s pet have?",
        "What does {n} call the pet?", "Which name did {n} give the pet?"),
    "What is {p} pet called?": (
        "What name does {p} pet have?", "How is {p} pet called?", "Do you know {p} pet's name?"),
    "What does {n} like to eat?": (
        "What does {n} love to eat?", "What is the favourite dish of {n}?",
        "What meal does {n} like?",
        "Which food does {n} love?", "What would {n} like for dinner?"),
    "What does {s} like to eat?": (
        "What does {s} love to eat?", "Which food does {s} love?", "What food does {s} like?",
        "And what does {s} eat?"),
    "What does {n} do in the free time?": (
        "How does {n} spend the free time?", "What does {n} like to do after work?",
        "What hobby does {n} have?", "What does {n} do in the evening?"),
    "What does {s} do for fun?": (
        "What hobby does {s} have?", "How does {s} spend the free time?",
        "What does {s} do after work?"),
    "Who is {n}'s best friend?": (
        "Who is the best friend of {n}?", "Whom does {n} like best?",
        "With whom does {n} spend time?",
        "Who are {n}'s friends?", "Is {n} friends with someone?"),
    "Who is {p} best friend?": (
        "Whom does {s} like best?", "Who is a friend of {o}?", "Is {s} friends with someone?"),
    "What colour is {n}'s house?": (
        "What is the colour of {n}'s house?", "How does {n}'s house look?",
        "Can you describe {n}'s house?", "In what kind of house does {n} live?"),
    "What colour is {p} house?": (
        "What is the colour of {p} house?", "How does {p} house look?",
        "Can you describe {p} house?"),
    # from a fact to the person
    "Who is {job}?": (
        "What is {job} called?", "How do people call {job}?", "Which person is {job}?",
        "What name does {job} have?", "Who is {job} here?"),
    "Who works at {work}?": (
        "Which people work at {work}?", "Who is at {work} all day?", "What person works at {work}?",
        "Which person can I meet at {work}?"),
    "Who has {pet} called {pet_name}?": (
        "Who owns {pet_name}?", "To which person does {pet_name} belong?",
        "Whose animal is {pet_name}?",
        "Does {pet_name} belong to someone?", "With whom does {pet_name} live?"),
    "Who likes {food}?": (
        "Who eats {food}?", "Which person likes {food}?", "Who would be happy about {food}?",
        "Who likes {food} best?", "Who loves to eat {food}?"),
    "Who {hobby}?": ("Do you know who {hobby}?", "Can you tell me who {hobby}?",
                     "Who often {hobby}?"),
    "Tell me about {n}.": (
        "What can you say about {n}?", "Tell me something about {n}.",
        "What kind of person is {n}?",
        "Can you describe {n}?", "I want to know more about {n}."),
    # places
    "Where is the {n}?": (
        "In which street is the {n}?", "At which place is the {n}?", "Where do I find the {n}?",
        "What is the way to the {n}?", "In what place is the {n}?",
        "Where must I go to see the {n}?"),
    "Where is it?": ("In what place is it?", "At which place is it?", "How do I get there?",
                     "In which street is it?"),
    "When does the {n} open?": (
        "From when is the {n} open?", "What are the opening hours of the {n}?",
        "Since what time is the {n} open?", "At what time can I go to the {n}?",
        "What time does the {n} open?"),
    "When does it open?": ("From when is it open?", "What time does it open?",
                           "What are the opening hours?", "From which time is it open?"),
    "When does the {n} close?": (
        "What time does the {n} close?", "Until what time is the {n} open?",
        "When is the {n} closed?",
        "Until which hour is the {n} open?", "When does the {n} shut?",
        "Until when can I visit the {n}?"),
    "When does it close?": ("What time does it close?", "Until what time is it open?",
                            "Until when can I visit it?", "When does it shut?"),
    "What is special about the {n}?": (
        "What is the {n} famous for?", "For what is the {n} famous?", "Why do people know the {n}?",
        "Why is the {n} special?", "Why should I visit the {n}?", "Why do people visit the {n}?",
        "Is the {n} famous?"),
    "What is special about it?": ("What is it famous for?", "Why is it special?", "Is it famous?",
                                  "Why should I visit it?", "Why do people know it?"),
    "Who works there?": ("What person works there?", "Whom can I meet there?",
                         "Which people work there?"),
    # seasons, days, the town
    "What is the weather like in {n}?": (
        "What weather is there in {n}?", "Is it warm in {n}?", "Which weather does {n} bring?",
        "How does {n} feel here?", "What kind of weather do we have in {n}?"),
    "What happens in {n}?": (
        "What changes in {n}?", "Tell me about {n}.", "What do we see in {n}?",
        "What goes on here in {n}?"),
    "Which festival is in {n}?": (
        "What feast do people celebrate in {n}?", "Is there a feast in {n}?",
        "Which feast do you celebrate in {n}?", "What is the festival of {n}?",
        "Which celebration is in {n}?", "When is the festival in {n}?"),
    "What do people do in {n}?": (
        "What are the people doing in {n}?", "What keeps people busy in {n}?",
        "Are people busy in {n}?", "What do the townspeople do in {n}?"),
    "What happens on {d}?": ("What goes on on {d}?", "What is there in town on {d}?",
                             "Does something happen on {d}?", "What happens in town on {d}?"),
    "What is Saltmere?": ("What kind of place is Saltmere?", "How would you describe Saltmere?",
                          "Is Saltmere a town?", "What can you say about Saltmere?"),
    # what the user told
    "What is my name?": ("Can you tell me my name?", "How am I called?",
                         "What did I say my name was?",
                         "Say my name."),
    "Where do I live?": ("Where am I at home?", "What is my home town?", "Where do I come from?",
                         "Can you tell me where my home is?"),
    "What is my pet called?": ("How is my pet called?", "Which name does my pet have?",
                               "What do I call my pet?", "What name did I give my pet?"),
    "What is my favourite colour?": ("What colour do I like?", "Which colour is my favourite?",
                                     "Which colour do I like best?",
                                     "What colour is it that I like?"),
    "What did I talk about that I need?": ("What was the thing I told you about?",
                                           "What thing did I talk about?", "Which thing do I need?",
                                           "What did I say about my things?"),
    # stories
    "Who helped in the story?": ("Which person helped in the story?", "Who came to help?"),
    "Where did the story happen?": ("At which place did the story happen?", "Where was the story?"),
    "When did the story happen?": ("What season was it in the story?",
                                   "What time of the year was it?"),
    "What was found in the story?": ("What was the find in the story?", "Which thing was found?",
                                     "What did somebody find in the story?"),
    # simple facts
    "What happens to ice when it gets warm?": (
        "What becomes of ice in the sun?", "Does ice melt in a warm room?", "When does ice melt?"),
    "What happens to water when it is very cold?": (
        "What becomes of water in winter?", "When does water freeze?",
        "Does water freeze in hard frost?"),
    "What happens when water boils?": (
        "What do you get from boiling water?", "What is steam?",
        "What do we see when water boils?"),
    "Where does the sun rise?": (
        "On which side does the sun come up?", "Which side does the sun rise on?",
        "Does the sun rise in the east?"),
    "Where does the sun set?": (
        "On which side does the sun go down?", "Which side does the sun set on?",
        "Does the sun set in the west?"),
    "How many days are in a week?": ("A week is how many days long?", "Count the days of a week."),
    "How many hours does a day have?": ("A day is how many hours long?",
                                        "Count the hours of a day."),
    "How many months are in a year?": ("A year is how many months long?",
                                       "Count the months of a year."),
    "Why do boats float?": ("Why can a boat float?", "How does a boat float on water?",
                            "How is it that boats float?"),
    "Does iron float?": ("Does iron float on water?", "Can a nail float?", "Does iron sink?",
                         "Can a piece of iron float?"),
    "Does wood float?": ("Does wood float on water?", "Can a log float?", "Does wood sink?",
                         "Can a piece of wood float?"),
    "Where does rain come from?": ("Where does the rain get made?", "How is rain made?",
                                   "Where is the rain before it falls?"),
    "When do we see a rainbow?": ("When does a rainbow come?", "When can I see a rainbow?",
                                  "Why does a rainbow appear?"),
    "What do bees make?": ("What food do bees make?", "Which food comes from bees?",
                           "Where does honey come from?"),
    "What do cows give?": ("What drink do cows give?", "Which drink comes from cows?",
                           "Who gives us milk?"),
    "How many legs does a spider have?": ("A spider has how many feet?",
                                          "Tell me how many legs a spider has.",
                                          "The spider has how many legs?"),
    "How many legs does a dog have?": ("A dog has how many feet?",
                                       "Tell me how many legs a dog has.",
                                       "The dog has how many legs?"),
    "How many legs does a bird have?": ("A bird has how many feet?",
                                        "Tell me how many legs a bird has.",
                                        "The bird has how many legs?"),
    "What colour is the sky?": ("What is the colour of the sky?",
                                "Can you tell me the colour of the sky?"),
    "What colour is grass?": ("What is the colour of grass?",
                              "Can you tell me the colour of grass?"),
    "How often does the tide come in?": (
        "How often is the tide high?", "When is it high tide?", "How often is there a high tide?",
        "How many times a day is high tide?"),
    "What makes the tides?": ("What pulls the sea?", "Does the moon pull the tides?",
                              "Who makes the tides?",
                              "What pulls the water of the sea?"),
    "Is the sea salty?": ("Does the sea taste of salt?", "Is there salt in the sea?",
                          "Can you taste the salt of sea water?", "What taste does the sea have?"),
    "Which season comes after winter?": ("What comes when winter ends?",
                                         "When winter ends, what comes then?",
                                         "Which season follows winter?"),
    "Which season comes after summer?": ("What comes when summer ends?",
                                         "When summer ends, what comes then?",
                                         "Which season follows summer?"),
    "What do plants need?": ("What helps plants to grow?", "What does a plant need?",
                             "What makes a plant grow?"),
    "What is bread made of?": ("What is in bread?", "What goes into a bread?",
                               "What do I need to bake bread?"),
    "What do birds lay?": ("What does a bird lay?", "Does a hen lay eggs?", "Who lays eggs?"),
    "What does a lighthouse do?": ("How does a lighthouse help ships?", "Who needs a lighthouse?",
                                   "What help is a lighthouse?"),
    "What does a compass show?": ("How does a compass help me?", "What help is a compass?",
                                  "Which way does a compass point?"),
    # the model itself
    "Who are you?": ("What kind of thing are you?", "Please say who you are.",
                     "With whom do I talk?",
                     "Who am I talking to?", "Tell me what you are.", "What should I call you?"),
    "What can you do?": ("Which things can you do for me?", "What things do you do well?",
                         "What are you able to do?", "Tell me what you can do.",
                         "What are you for?"),
    "Who made you?": ("Where were you made?", "How were you trained?", "How did they make you?",
                      "Who is your maker?", "Tell me who made you."),
    "How big are you?": ("How large are you?", "Tell me your size.", "Tell me how big you are.",
                         "Are you big?", "Are you small?", "Is this a large model?"),
    "Are you a person?": ("Is there a person behind you?", "Are you a machine?",
                          "Are you a computer?",
                          "Am I talking to a human?", "Is this a real person?"),
    "What do you not know?": ("Do you know much?", "Do you know a lot?", "How much can you know?",
                              "Can you be wrong?", "How sure are you?"),
    "Which languages do you speak?": (
        "Which language do you speak?", "What language is this?", "Which language can you use?",
        "Do you use another language?", "In which language can I write?", "Do you speak English?"),
    "Can you write code?": ("Are you able to write code?", "Can you fix a script?",
                            "Can you help with code?",
                            "Are you able to edit a file?", "Can you repair my script?"),
    "Do you sleep?": ("Are you hungry?", "Are you ever hungry?", "Do you feel something?",
                      "Are you tired sometimes?", "Do you need sleep?"),
    "Can you remember things?": ("Is your memory good?", "How long do you remember things?",
                                 "How much can you remember?", "What do you remember?",
                                 "How does your memory work?"),
}
