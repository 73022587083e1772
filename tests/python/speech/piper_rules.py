"""Piper's way from a text to phoneme ids, driven by espeak-ng's library: what `linnet say`, which asks the program espeak-ng,
is held against. The library says how far into the text a clause goes; the last mark of what it has read is the clause's."""

import ctypes
import re
import unicodedata

IPA, UTF8 = 2, 1
# Of marks behind each other the first counts; brackets and quotes may stand behind them.
CLOSING = "()[]{}<>\"'`«»‘’‚‛“”„‟"
MARKS = re.compile(r"(\.{3,}|…|[.?!,:;–—][.?!,:;]*)[" + re.escape(CLOSING) + r"]*$")


class Espeak:
    def __init__(self, voice="en-us"):
        self.library = ctypes.CDLL("libespeak-ng.so.1")
        assert self.library.espeak_Initialize(2, 0, None, 0) > 0  # sound would be returned, not played
        assert self.library.espeak_SetVoiceByName(voice.encode()) == 0
        self.library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self.library.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]

    def clauses(self, text):
        """(phonemes, what was read of the text) of each."""
        raw = ctypes.create_string_buffer(text.encode())
        begin, at = ctypes.addressof(raw), 0
        place = ctypes.c_void_p(begin)
        while place.value:
            phonemes = self.library.espeak_TextToPhonemes(ctypes.byref(place), UTF8, IPA).decode()
            end = place.value - begin if place.value else len(raw.value)
            yield phonemes, raw.value[at:end].decode(errors="ignore")
            at = end


def mark_of(phonemes, read, last):
    """The mark that ended a clause of which `read` was read, and whether it ends the sentence. Unless the text ends there
    the library has looked at a character behind the blank, too."""
    if last:
        found = MARKS.search(read.rstrip())
    else:
        found = MARKS.search(re.sub(r"\s+\S?$", "", read)) or MARKS.search(read.rstrip())
    if not found or not phonemes:
        return "", False
    mark = found[1]
    if mark.startswith("...") or mark == "…":
        return "", False
    mark = {"–": ";", "—": ";"}.get(mark[0], mark[0])
    return mark, mark in ".?!"


def sentences(espeak, text):
    """Lists of symbols."""
    done, now = [], []
    clauses = list(espeak.clauses(text))
    for k, (phonemes, read) in enumerate(clauses):
        mark, ends = mark_of(phonemes, read, k + 1 == len(clauses))
        phonemes = re.sub(r"\([^)]+\)", "", phonemes) + mark + (" " if mark and mark in ",:;" else "")
        now += unicodedata.normalize("NFD", phonemes)
        if ends:
            done.append(now)
            now = []
    return done + ([now] if now else [])


def ids(symbols, id_map):
    known = [i for s in symbols if s in id_map for i in id_map[s] + id_map["_"]]
    return id_map["^"] + id_map["_"] + known + id_map["$"]
