#!/usr/bin/env python3
"""make_audio.py OUT.wav: sentences spoken by espeak-ng, with pauses between them and noise over all. The same file
every time: the noise is seeded."""
import array
import io
import random
import subprocess
import sys
import wave

SENTENCES = [  # (seconds of silence before it, voice, text)
    (0.9, "en-us", "Good morning. This is the station announcement."),
    (1.4, "en-gb", "The train to the coast leaves from platform four in eleven minutes."),
    (0.7, "en-us+f3", "Please keep your luggage with you."),
    (2.2, "en-gb+m5", "Thank you for travelling with us, and mind the gap."),
]
TAIL = 1.1
NOISE = 110  # peak, of 32767


def speak(voice, text):
    """(rate, samples) of one sentence."""
    wav = subprocess.run(["espeak-ng", "-v", voice, "-s", "155", "--stdout", text], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(wav)) as w:
        return w.getframerate(), array.array("h", w.readframes(w.getnframes()))


def main():
    samples, rate = array.array("h"), 22050
    for pause, voice, text in SENTENCES:
        rate, spoken = speak(voice, text)
        samples.extend([0] * int(pause * rate))
        samples.extend(spoken)
    samples.extend([0] * int(TAIL * rate))
    rng = random.Random(1)
    noisy = array.array("h", (max(-32768, min(32767, s // 2 + rng.randint(-NOISE, NOISE))) for s in samples))
    with wave.open(sys.argv[1], "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(rate)
        w.writeframes(noisy.tobytes())


main()
