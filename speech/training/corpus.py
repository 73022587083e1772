"""corpus.py: sentences for a voice to learn from: prose, the examples of WordNet's glosses (Princeton University); and prompts of
devices, with numbers and units."""
import random
import re

HELD = 50  # every so-manieth sentence is kept for measuring

PROMPTS = """
In {n} meters, turn {left} onto {street}.
At the roundabout, take the {nth} exit.
The battery is at {n} percent.
The battery is low: {n} % left.
{device} is {on}.
{device} will be ready in {n} minutes.
Please close the {door} before starting the {device_}.
Warning: the {thing} is too {high}.
The {thing} is {x} {unit}.
It is {x} °C outside, and {x} °C in the {room}.
It is {hour}:{minute}.
Your timer for {n} minutes has ended.
{n} new messages. The first is from {person}.
You have an appointment with {person} on {day} at {hour}:{minute}.
Your package will arrive on {day}, between {hour} and {hour} o'clock.
The {nth} of {month} is a {day}.
Today is {day}, {month} {n31}.
{person} is at the door.
Door {open}.
No connection to the {network}.
Update {d}.{d}.{d} is being installed. Do not switch off the {device_}.
Insert the {part}, and press {button}.
Your code is {d} {d} {d} {d}.
You used {x} kWh this {week}, at ${money}.
Set the {room} to {n} degrees.
The next train to {city} leaves from platform {n31}.
Next stop: {city}.
Speed limit {tens}.
Heart rate: {n} beats per minute.
Take {n31} drops of this at {hour} p.m.
Filter {n31} has to be changed in {n31} days.
Call {person}? Say yes to confirm, or no to cancel.
Error {n}: {part} not found.
""".strip().split("\n")

# Of these a voice is measured, and learns none.
UNHEARD = """
The {part} of the {device_} is empty, so please refill it.
I could not find {person} in your contacts.
Your {device_} needs service in {n} hours.
Motion was detected in the {room}.
Keep {left} at the fork, then follow signs for {city}.
Recording stopped. {n} photos were saved.
{device} cannot start because the {door} is open.
Good morning. You slept well, and the {room} is warm.
Hold {button} for {n31} seconds to restore the settings.
There is a traffic jam on {street}; the delay is {n31} minutes.
Say the name of the person you would like to reach.
The {network} has been found, but the password is wrong.
""".strip().split("\n")
UNHEARD_NUMBERS = """
The tank holds {x} liters, and {n} liters are left.
Gate {n31} opens at {hour}:{minute} a.m.
The total is ${money}, of which {n31} % is tax.
Wind from the west at {x} km/h, pressure {n} hPa.
Chapter {n31}, page {n}.
The {nth} flight on {day}, {month} {n31}, leaves at {hour}:{minute}.
Add {n} g of flour and {x} kg of sugar.
The motor draws {x} amps at {tens} volts.
""".strip().split("\n")

WORDS = {
    "left": ["left", "right", "sharp left", "slightly right"],
    "street": ["Main Street", "Oak Avenue", "Park Road", "Station Street", "Mill Lane", "River Drive", "Church Street", "High Street"],
    "nth": ["first", "second", "third", "fourth", "fifth", "sixth", "ninth", "twelfth", "twentieth", "31st"],
    "device": ["The oven", "The washing machine", "The heating", "The alarm", "The printer",
               "The coffee machine", "The camera", "The pump"],
    "device_": ["oven", "engine", "machine", "printer", "washer", "mower", "heater", "robot"],
    "on": ["on", "off", "ready", "busy", "paused", "locked", "open", "out of order"],
    "door": ["front door", "lid", "window", "gate", "hatch", "drawer", "garage", "valve"],
    "thing": ["water temperature", "oil pressure", "tank", "humidity", "voltage", "distance", "flow", "level"],
    "high": ["high", "low", "hot", "cold", "fast", "far away"],
    "unit": ["km", "kg", "liters", "volts", "amps", "Hz", "mm", "hPa", "miles", "percent", "watts", "minutes"],
    "room": ["kitchen", "living room", "bedroom", "bathroom", "hall", "cellar", "garden", "office"],
    "person": ["Anna", "Mr. Brown", "Dr. Lee", "Mrs. Young", "Peter", "your neighbor", "Michael", "Julia", "the plumber"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "month": ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"],
    "open": ["open", "closed", "locked", "ajar", "opening", "closing"],
    "network": ["network", "server", "phone", "internet", "speaker", "sensor"],
    "part": ["card", "cartridge", "disk", "key", "filter", "battery", "cable", "plug"],
    "button": ["start", "okay", "the green button", "enter", "play", "reset"],
    "week": ["week", "month", "morning", "year"],
    "city": ["London", "Chicago", "Berlin", "Boston", "Paris", "Denver", "Oxford", "Vienna", "Houston", "Geneva"],
    "tens": ["30", "50", "70", "80", "100", "120"],
}
NUMBERS = {
    "n": lambda r: str(r.choice([r.randint(2, 99), r.randint(100, 999), r.randint(1, 9) * 100])), "d": lambda r: str(r.randint(0, 9)),
    "n31": lambda r: str(r.randint(1, 31)), "x": lambda r: f"{r.uniform(-9, 90):.1f}", "hour": lambda r: str(r.randint(1, 12)),
    "minute": lambda r: f"{r.randint(0, 59):02}", "money": lambda r: f"{r.uniform(1, 90):.2f}",
}


def prompts(n, forms=tuple(PROMPTS), seed=1):
    rng, made = random.Random(seed), {}
    while len(made) < n:
        form = rng.choice(forms)
        made[re.sub(r"\{(\w+)\}", lambda m: NUMBERS[m[1]](rng) if m[1] in NUMBERS else rng.choice(WORDS[m[1]]), form)] = None
    return list(made)


def prose(folder, n, skip=0, seed=1):
    """Examples of 3 to 20 words, in an order that depends on the seed alone."""
    found = {}
    for part in ("adj", "adv", "noun", "verb"):
        with open(folder / f"data.{part}", encoding="latin-1") as lines:
            for line in lines:
                for example in re.findall(r'"([^"]+)"', line.partition("|")[2]):
                    example = example.strip().rstrip(";,")
                    if re.fullmatch(r"[A-Za-z][A-Za-z' ,;:.?!-]*", example) and 3 <= len(example.split()) <= 20:
                        example = example[0].upper() + example[1:]
                        found[example if example[-1] in ".?!" else example + "."] = None
    found = sorted(found)
    random.Random(seed).shuffle(found)
    return found[skip:skip + n]


def sentences(folder, n):
    """n of them, a fifth prompts."""
    both = prompts(n // 5) + prose(folder, n - n // 5)
    random.Random(2).shuffle(both)
    return both


def unheard(folder, n, learned):
    """{kind: n sentences} that are not among the `learned` ones of sentences()."""
    return {"prose": prose(folder, n, learned), "prompts": prompts(n, UNHEARD, 3), "numbers": prompts(n, UNHEARD_NUMBERS, 3)}
