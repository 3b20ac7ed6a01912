"""General material: code, JSON, copying exercises, and calls of arbitrary tools."""

import functools
import itertools
import json
import pathlib
import sysconfig

from . import recall, story
from .agent import call_message, system_message
from .names import COLORS, NOUNS, SECOND, Names
from .tasks import Step, act, script, Maker


# ---- raw text ---------------------------------------------------------------------------------

@functools.cache
def stdlib_sources():
    """Texts of the pure Python modules at the top of the standard library, sorted by name."""
    folder = pathlib.Path(sysconfig.get_path("stdlib"))
    texts = [p.read_text(errors="replace") for p in sorted(folder.glob("[a-z]*.py"))]
    texts = [t for t in texts if 2000 < len(t) < 120000 and t.isascii()]
    return texts


def stdlib_code(rng, n_char):
    text = rng.choice(stdlib_sources())
    start = rng.randrange(max(1, len(text) - n_char // 2))
    start = text.find("\n", start) + 1
    return text[start:start + n_char]


def small_code(rng, n_char):
    """Small made-up scripts, one after another, as in agent workspaces."""
    maker, out, size = Maker(rng), [], 0
    while size < n_char:
        k = maker.names.identifiers(3)
        a, b = rng.randint(1, 99), rng.randint(1, 99)
        out.append(rng.choice((
            lambda: script(maker)[0],
            lambda: f"def {k[0]}({k[1]}):\n    if {k[1]} > {a}:\n        return {k[1]} - {b}\n"
                    f"    return {k[1]} + {b}\n",
            lambda: f"def {k[0]}(items):\n    {k[1]} = {a}\n    for item in items:\n"
                    f"        {k[1]} = {k[1]} + item\n    return {k[1]}\n",
            lambda: f"class {k[0].title().replace('_', '')}:\n"
                    f"    def __init__(self, {k[1]}, {k[2]}):\n"
                    f"        self.{k[1]} = {k[1]}\n        self.{k[2]} = {k[2]}\n",
            lambda: f"{k[0]} = {{\"{k[1]}\": {a}, \"{k[2]}\": {b}}}\nfor key in {k[0]}:\n"
                    f"    print(key, {k[0]}[key])\n"))())
        size += len(out[-1]) + 1
    return "\n".join(out)


def json_text(rng, n_char):
    """Records of one random schema, so that everything but the values can be predicted."""
    names, out, size = Names(rng), [], 0
    while size < n_char:
        keys = names.identifiers(rng.randint(2, 6))
        kinds = [rng.choice("nnwcbl") for _ in keys]
        make = {"n": names.amount, "w": names.word, "c": lambda: rng.choice(COLORS),
                "b": lambda: rng.random() < 0.5,
                "l": lambda: [rng.randrange(100) for _ in range(rng.randint(1, 4))]}
        rows = [{k: make[t]() for k, t in zip(keys, kinds)} for _ in range(rng.randint(1, 12))]
        value = {rng.choice(NOUNS) + "s": rows} if rng.random() < 0.5 else rows
        out.append(json.dumps(value, indent=rng.choice((None, 2, 2))))
        size += len(out[-1]) + 2
    return "\n\n".join(out)


def prose(rng, n_char):
    out, size = [], 0
    while size < n_char:
        out.append(story.prose(rng))
        size += len(out[-1]) + 2
    return "\n\n".join(out)


def _item(rng, names):
    return rng.choice((names.word, names.word, names.identifier, lambda: str(names.amount()),
                       lambda: rng.choice(NOUNS), lambda: rng.choice(COLORS)))()


def repeats(rng, n_char):
    """Random sequences that come again, whole or in part: plain induction."""
    names, out, size = Names(rng), [], 0
    while size < n_char:
        items = [_item(rng, names) for _ in range(rng.randint(3, 40))]
        gap = rng.choice((" ", ", ", "\n", " - "))
        for _ in range(rng.randint(2, 4)):
            start = rng.randrange(len(items)) if rng.random() < 0.4 else 0
            out.append(gap.join(items[start:] + items[:start]))
            size += len(out[-1]) + 1
        if rng.random() < 0.5:
            back = out[rng.randrange(len(out))]
            out.append(back)
            size += len(back) + 1
    return "\n".join(out)


PAIR_FORMS = ("{n} {v}\n", "{n}: {v}\n", "{n} = {v}\n", "The {t} of the {n} {o} is {v}.\n",
              "The {t} of the {n} {o} is {v}.\n", '"{n}": "{v}",\n')


def pairs(rng, n_char):
    """A table of facts, then the same lines again and again in random order.

    The densest exercise for finding a value by its key at any distance. Segments: only lines
    that came before are predicted.
    """
    names, form = Names(rng), rng.choice(PAIR_FORMS)
    rows, size = [], 0
    table = n_char * rng.choice((0.1, 0.2, 0.4, 0.6))
    words = set()
    while size < table:
        n = names.word()
        if n not in words:
            words.add(n)
            rows.append(form.format(n=n, v=names.value(), t=rng.choice(recall.THINGS),
                                    o=rng.choice(recall.OWNERS)))
            size += len(rows[-1])
    out = [(row, False) for row in rows]
    while size < n_char:
        row = rows[int(rng.random() * len(rows))]
        out.append((row, True))
        size += len(row)
    return out


RAW = {"prose": ((prose, 1),), "code": ((stdlib_code, 2), (small_code, 1)),
       "library": ((stdlib_code, 1),), "script": ((small_code, 1),),
       "json": ((json_text, 1),), "copy": ((repeats, 1),), "pairs": ((pairs, 1),)}


def raw_text(kind, rng, n_char):
    """A text, or a list of segments (text, whether it is to be predicted)."""
    makers = RAW[kind]
    return rng.choices([f for f, _ in makers], [w for _, w in makers])[0](rng, n_char)


# ---- copying and looking up, as a conversation ---------------------------------------------------

def exercise(rng, names):
    """(question, answer) of one small exercise."""
    items = [_item(rng, names) for _ in range(rng.randint(2, 8))]
    words = names.words(rng.randint(2, 5))
    values = [names.value() for _ in words]
    i = rng.randrange(len(words))
    table = "\n".join(f"{w}: {v}" for w, v in zip(words, values))
    a, b = rng.randint(1, 20), rng.randint(1, 20)
    return rng.choice((
        lambda: (f"Repeat after me: {' '.join(items)}", " ".join(items)),
        lambda: (f"Say this again: {', '.join(items)}", ", ".join(items)),
        lambda: (f"Copy this text exactly:\n{table}", table),
        lambda: (f"What is the value of {words[i]}?\n{table}", f"{words[i]}: {values[i]}"),
        lambda: (f"{table}\n\nGive me {words[i]}.", f"{words[i]}: {values[i]}"),
        lambda: (f"Write these words as a list: {', '.join(items)}",
                 "\n".join("- " + x for x in items)),
        lambda: (f"What is the first word of: {' '.join(words)}?", words[0]),
        lambda: (f"What is the last word of: {' '.join(words)}?", words[-1]),
        lambda: (f"What is {a} + {b}?", f"{a} + {b} = {a + b}"),
        lambda: (f"What is {a + b} - {b}?", f"{a + b} - {b} = {a}"),
        lambda: (f"Write {words[0]} as JSON with the value {values[0]}.",
                 json.dumps({words[0]: values[0]})),
        lambda: (f"Write this as JSON:\n{table}", json.dumps(dict(zip(words, values))))))()


def exercises(rng, held_out=False):
    names = Names(rng, held_out)
    while True:
        question, answer = exercise(rng, names)
        yield [{"role": "user", "content": question},
               {"role": "assistant", "content": answer,
                "reasoning_content": "I only have to copy."}]


# ---- tools with arbitrary schemas ----------------------------------------------------------------

KNOWN_TOOLS = ("get_weather", "get_price", "send_message", "add", "set_timer")
WEATHER = ("sunny", "rainy", "cloudy", "windy", "foggy", "snowy")


def schema(name, about, /, **properties):
    return {"type": "function", "function": {
        "name": name, "description": about, "parameters": {
            "type": "object", "properties": {k: {"type": t} for k, t in properties.items()},
            "required": list(properties)}}}


def known_tool(rng, names):
    """A tool with a telling name, and a use of it: (schema, question, call, result, answer)."""
    city, word, n = names.title(), names.word(), names.amount()
    sky, degrees = rng.choice(WEATHER), rng.randint(1, 35)
    text = f"The {word} {rng.choice(NOUNS)} is ready."
    a, b = names.number(2), names.number(2)
    return rng.choice((
        (schema("get_weather", "Current weather of a city.", city="string"),
         rng.choice((f"What is the weather in {city}?", f"How is the weather in {city}?",
                     f"Is it sunny in {city}?", f"Tell me the weather in {city}.")),
         act("I need the weather tool.", "get_weather", city=city),
         json.dumps({"weather": sky, "degrees": degrees}),
         f"It is {sky} and {degrees} degrees in {city}."),
        (schema("get_price", "Price of an item.", item="string"),
         rng.choice((f"What does the {word} cost?", f"What is the price of {word}?",
                     f"How much is the {word}?")),
         act("I need the price tool.", "get_price", item=word), json.dumps({"price": n}),
         f"The price of {word} is {n}."),
        (schema("send_message", "Send a message to a person.", to="string", text="string"),
         rng.choice((f'Send {city} the message "{text}"', f'Tell {city}: {text}',
                     f'Write to {city}: {text}')),
         act("I send the message.", "send_message", to=city, text=text), "sent",
         f"I sent the message to {city}."),
        (schema("add", "Add two numbers.", a="integer", b="integer"),
         rng.choice((f"Add {a} and {b}.", f"What is {a} plus {b}?", f"Use the tool: {a} + {b}")),
         act("I use the add tool.", "add", a=a, b=b), str(a + b), f"{a} + {b} = {a + b}"),
        (schema("set_timer", "Start a timer.", minutes="integer"),
         rng.choice((f"Set a timer for {degrees} minutes.", f"Wake me in {degrees} minutes.")),
         act("I set a timer.", "set_timer", minutes=degrees), "ok",
         f"The timer is set for {degrees} minutes.")))


def random_schema(rng, names):
    """A made-up tool."""
    name = names.identifier()
    return schema(name, f"The {name} function.",
                  **{k: rng.choice(("integer", "string"))
                     for k in rng.sample(SECOND, rng.randint(1, 3))})


def api(rng, held_out=False):
    """Units: a system message with one to four tools, then requests that need one of them."""
    names, ids = Names(rng, held_out), itertools.count(1)
    tools = {}
    for _ in range(rng.randint(1, 4)):
        tool = known_tool(rng, names)[0] if rng.random() < 0.5 else random_schema(rng, names)
        tools[tool["function"]["name"]] = tool
    tools = list(tools.values())
    text = rng.choice(("You are a helpful assistant.", "", "Use the tools.", "Be brief."))
    yield [system_message(text, tools)]
    while True:
        use = _use_of(rng.choice(tools), rng, names)
        message = call_message(use[2], ids)
        yield [{"role": "user", "content": use[1]}, message,
               {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"],
                "content": use[3]},
               {"role": "assistant", "content": use[4],
                "reasoning_content": "The tool answered."}]


def _use_of(tool, rng, names):
    """A new use of a given schema."""
    f = tool["function"]
    if f["name"] in KNOWN_TOOLS:
        while True:
            use = known_tool(rng, names)
            if use[0]["function"]["name"] == f["name"]:
                return use
    name, types = f["name"], f["parameters"]["properties"]
    values = {k: names.amount() if t["type"] == "integer" else names.word()
              for k, t in types.items()}
    given = " and ".join(f"{k} {v}" for k, v in values.items())
    result = str(names.amount()) if rng.random() < 0.6 else names.word()
    question = rng.choice((f"Call {name} with {given}.", f"Use {name} with {given}.",
                           f"Run {name}: {given}", f"Please call {name} with {given}."))
    return (tool, question, Step(f"I call {name}.", calls=[(name, values)]), result,
            f"{name} returned {result}.")
