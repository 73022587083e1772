#!/usr/bin/env python3
"""make_audio.py OUT.wav: sentences spoken by espeak-ng, with pauses between them and noise over all, at the 16 kHz that
the model takes. The same file every time: the noise is seeded."""
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
    (2.2, "en-gb+m5", "Thank you for traveling with us, and mind the gap."),
]
TAIL = 1.1
RATE = 16000
NOISE = 110  # peak, of 32767


def speak(voice, text):
    """Samples of one sentence, on lines between those that were spoken."""
    wav = subprocess.run(["espeak-ng", "-v", voice, "-s", "155", "--stdout", text], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(wav)) as w:
        rate, spoken = w.getframerate(), array.array("h", w.readframes(w.getnframes()))
    places = (i * rate / RATE for i in range((len(spoken) - 1) * RATE // rate))
    return array.array("h", (round(spoken[k] + (x - k) * (spoken[k + 1] - spoken[k])) for x in places for k in [int(x)]))


def main():
    samples = array.array("h")
    for pause, voice, text in SENTENCES:
        samples.extend([0] * int(pause * RATE))
        samples.extend(speak(voice, text))
    samples.extend([0] * int(TAIL * RATE))
    rng = random.Random(1)
    noisy = array.array("h", (max(-32768, min(32767, s // 2 + rng.randint(-NOISE, NOISE))) for s in samples))
    with wave.open(sys.argv[1], "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(noisy.tobytes())


main()
