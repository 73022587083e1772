"""picture.py OUT.png A.wav B.wav: their spectrograms, one above the other, 0 to 8 kHz upwards, higher ones raised by 6 dB an octave,
50 dB from white to black in 8 shades."""
import struct
import sys
import zlib

import numpy as np
from features import read

SIZE, HOP, ROWS, RANGE, SHADES = 512, 128, 85, 50, 8


def spectrogram(path):
    """[ROWS, time], 0 to 15, the highest frequency first."""
    x = np.diff(read(path), prepend=0)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, SIZE // 2), SIZE)[::HOP] * np.hanning(SIZE)
    power = (np.abs(np.fft.rfft(frames))**2)[:, :3 * ROWS].reshape(len(frames), ROWS, 3).mean(2)
    db = 10 * np.log10(power / np.percentile(power, 99) + 1e-12)
    shade = np.clip(-db * SHADES / RANGE, 0, SHADES - 1).astype(np.uint8)
    return (shade * 15 // (SHADES - 1)).T[::-1]


def png(shades):
    """A picture of 4 bits a pixel, its width even."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + ((row[::2] << 4) | row[1::2]).tobytes() for row in shades)
    head = struct.pack(">IIBBBBB", shades.shape[1], shades.shape[0], 4, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def main():
    parts = [spectrogram(path) for path in sys.argv[2:]]
    width = max(p.shape[1] for p in parts) + 1 & ~1
    padded = [np.pad(p, ((0, 6), (0, width - p.shape[1])), constant_values=15) for p in parts]
    with open(sys.argv[1], "wb") as f:
        f.write(png(np.vstack(padded)))


main()
