#!/usr/bin/env python3
"""make_audio.py OUT.wav [LINNET [FRAME.wav]]: sentences spoken by Linnet's own voice (by the program LINNET, else the one along PATH),
with pauses between them and noise over all, at the 16 kHz that the model takes. The same file every time: the noise is seeded.
FRAME.wav: as many samples of the first sentence as the model takes at once."""
import array
import io
import random
import subprocess
import sys
import wave

SENTENCES = [  # (seconds of silence before it, how loud, text)
    (0.9, 1, "Good morning. This is the station announcement."),
    (1.4, 0.7, "The train to the coast leaves from platform four, in eleven minutes."),
    (0.7, 0.9, "Please keep your luggage with you."),
    (2.2, 0.5, "Thank you for traveling with us, and mind the gap."),
]
TAIL = 1.1
RATE = 16000
FRAME = 576
NOISE = 110  # peak, of 32767


def speak(linnet, volume, text):
    """Samples of one sentence."""
    wav = subprocess.run([linnet, "say", "--volume", str(volume), "-f", "-", text], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(wav)) as w:
        assert w.getframerate() == RATE
        return array.array("h", w.readframes(w.getnframes()))


def write(path, samples):
    with wave.open(path, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(samples.tobytes())


def main():
    linnet = sys.argv[2] if len(sys.argv) > 2 else "linnet"
    samples = array.array("h")
    for pause, volume, text in SENTENCES:
        samples.extend([0] * int(pause * RATE))
        samples.extend(speak(linnet, volume, text))
    samples.extend([0] * int(TAIL * RATE))
    rng = random.Random(1)
    noisy = array.array("h", (max(-32768, min(32767, s // 2 + rng.randint(-NOISE, NOISE))) for s in samples))
    write(sys.argv[1], noisy)
    if len(sys.argv) > 3:
        start = 3 * RATE // 2
        write(sys.argv[3], noisy[start : start + FRAME])


main()
