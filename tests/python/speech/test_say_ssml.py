"""Pauses, rate and volume within a text: what they make of the sound, and what is refused."""

import numpy as np
import pytest

from harness import linnet
from test_say import OK, samples

RATE = 16000


@pytest.fixture
def sound(tmp_path):
    def spoken(text, *args):
        done = linnet("say", text, *args, "-f", tmp_path / "x.wav")
        assert done.returncode == OK and not done.stderr, done.stderr
        return samples(tmp_path / "x.wav")
    return spoken


def phonemes(text):
    return linnet("say", text, "--print", "phonemes").stdout.split()


def test_a_break_is_silence(sound):
    first, second = sound("Wait.", "--seed", 0), sound("Now go on.", "--seed", 1)
    for time, seconds in (("500ms", 0.5), ("1.25s", 1.25), ("0s", 0)):
        both = sound(f"<speak>Wait.<break time='{time}'/> Now go on.</speak>")
        assert np.array_equal(both, np.concatenate([first, np.zeros(int(seconds * RATE)), second]))
    assert len(sound("<speak><break time=\"2s\"/></speak>")) == 2 * RATE
    assert len(sound("<speak>Wait.<break/></speak>")) > len(first) + RATE // 4


def test_without_tags_it_is_the_text(sound):
    text = "It is 12 °C. Q&amp;A: is 1 &lt; 2?"
    plain = text.replace("&amp;", "&").replace("&lt;", "<")
    assert np.array_equal(sound(f"<speak version='1.1'>{text}</speak>"), sound(plain))
    assert "".join(phonemes(f"\n <speak>{text}</speak>"))


def test_silence_between_sentences_stays(sound):
    for marked in ("<speak><prosody rate='100%'>Wait.</prosody> Now.</speak>", "<speak>Wait. <prosody rate='100%'>Now.</prosody></speak>"):
        assert np.array_equal(sound(marked, "--sentence_silence", 0.5), sound("Wait. Now.", "--sentence_silence", 0.5))


def test_rate_and_volume_multiply(sound):
    text = "The door is open."
    usual, slow = sound(text), sound(f"<speak><prosody rate='50%'>{text}</prosody></speak>")
    assert 1.9 < len(slow) / len(usual) < 2.1
    assert np.array_equal(slow, sound(text, "--speed", 0.5))
    nested = sound(f"<speak><prosody rate='200%' volume='50%'><prosody rate='50%' volume='-6.0206dB'>{text}</prosody></prosody></speak>")
    assert len(nested) == len(usual) and np.abs(nested - usual / 4).max() <= 2
    parts = sound(f"<speak>{text}<prosody volume='silent'>{text}</prosody>{text}</speak>")
    assert not parts[len(usual) + 200:2 * len(usual) - 200].any() and np.array_equal(parts[:len(usual)], usual)


def test_pitch(sound):
    text = "The door is open."
    high = sound(text, "--pitch", 1.5)
    for pitch in ("150%", "+50%", "x-high", "+7.0195500086539st"):
        assert np.array_equal(sound(f"<speak><prosody pitch='{pitch}'>{text}</prosody></speak>"), high)
    assert np.array_equal(sound(f"<speak><prosody pitch='75%'>{text}</prosody></speak>", "--pitch", 2), high)
    assert np.array_equal(sound(f"<speak><prosody pitch='default'>{text}</prosody></speak>"), sound(text))
    done = linnet("say", "<speak><prosody pitch='200%'><prosody pitch='200%'><prosody pitch='+1%'>x</prosody></prosody></prosody></speak>",
                  "--print", "times")
    assert done.returncode == 2 and "not 4.04 times" in done.stderr


def test_elsewhere_a_bracket_is_text(sound):
    assert phonemes("1 <speak> 2") and len(sound("<speaker> is a word")) > 5000


@pytest.mark.parametrize("markup, why", [
    ("<speak>no <emphasis>such</emphasis> element</speak>", "<emphasis>"),
    ("<speak><break strength='weak'/></speak>", "strength"),
    ("<speak><break time='soon'/></speak>", "soon"),
    ("<speak><break time='1e9s'/></speak>", "1e9s"),
    ("<speak><break time='nans'/></speak>", "nans"),
    ("<speak><break time='1s'>text</break></speak>", "<break"),
    ("<speak><prosody pitch='200Hz'>x</prosody></speak>", "200Hz"),
    ("<speak><prosody pitch='+13st'>x</prosody></speak>", "+13st"),
    ("<speak><prosody rate='0%'>x</prosody></speak>", "rate"),
    ("<speak><prosody volume='loudest'>x</prosody></speak>", "loudest"),
    ("<speak>it does not end", "<speak> does not end"),
    ("<speak>wrong</prosody></speak>", "</prosody>"),
    ("<speak", "<speak"),
    ("<speak>a <", "name of an element"),
    ("<speak>a < b</speak>", "name of an element"),
    ("<speak><break time=3s/></speak>", "quotes"),
    ("<speak><break time='3s/></speak>", "does not end"),
    ("<speak><break " + "a" * 500 + "='1s'/></speak>", "too long"),
    ("<speak>" + "<prosody>" * 100, "elements within each other"),
])
def test_what_is_wrong_is_named(markup, why, tmp_path):
    done = linnet("say", markup, "-f", tmp_path / "x.wav")
    if markup == "<speak":  # no markup yet
        assert done.returncode == OK
        return
    assert done.returncode not in (OK, None) and why in done.stderr and "SSML" in done.stderr, done.stderr
    assert not (tmp_path / "x.wav").exists()


def test_a_pack_keeps_none(tmp_path):
    (tmp_path / "p.txt").write_text("door|<speak>The door<break time='1s'/> is open.</speak>\n")
    done = linnet("say", "--pack", tmp_path / "p.txt", "-o", tmp_path / "p.lpk")
    assert done.returncode != OK and "door" in done.stderr and not (tmp_path / "p.lpk").exists()
