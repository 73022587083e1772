"""phoneme_ids.py: phonemes of ARPAbet as the characters that a voice's table of ids knows, as speech/phones.c writes them."""
import numpy as np

LETTERS = dict(zip(
    "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split(),
    "ɑæʌɔWIbʧdðɛɝAfɡhɪiʤklmnŋOYpɹsʃtθʊuvwjzʒ"))
WITHOUT_STRESS = {"AH0": "ə", "ER0": "ɚ"}
STRESS = {"1": "ˈ", "2": "ˌ"}
MARKS = ".,?!:;"
PAD, BEGIN, END = "_^$"
TABLE = [PAD, BEGIN, END, " ", *MARKS, *STRESS.values(), *LETTERS.values(), *WITHOUT_STRESS.values()]
ID = {character: k for k, character in enumerate(TABLE)}


def characters(symbol):
    """Those of one symbol: "AE1" is "ˈæ"."""
    if symbol == "|" or symbol in MARKS:
        return " " if symbol == "|" else symbol
    if symbol in WITHOUT_STRESS:
        return WITHOUT_STRESS[symbol]
    name, stress = (symbol[:-1], symbol[-1]) if symbol[-1].isdigit() else (symbol, "0")
    return STRESS.get(stress, "") + LETTERS[name]


def ids_and_frames(symbols, ends):
    """What a line of voice_data.py's list says: ids of the sentence with its begin and end [T], and the frame at which each
    ends, where `ends` counts frames [T]."""
    ids, last = [ID[BEGIN]], [ends[0]]
    for k, symbol in enumerate(symbols, 1):
        sounds = characters(symbol)
        for mark in sounds[:-1]:
            ids.append(ID[mark])
            last.append(last[-1])
        ids.append(ID[sounds[-1]])
        last.append(ends[k])
    return np.array([*ids, ID[END]]), np.array([*last, ends[-1]])
