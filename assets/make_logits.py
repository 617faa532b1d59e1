"""Writes logits.npy, the rows that the example `sample` carries: float16, [3, 512]. Needs numpy; no random numbers of its own.

Row 0 is a language model's, most of the probability on a few tokens; row 1 is flat; row 2 has half of its tokens masked.
"""
import numpy as np

i = np.arange(512)
noise = np.stack([((i * 7919 + row * 104729) % 1009) / 1009 - 0.5 for row in range(3)])
rows = noise * np.array([[2.0], [1.0], [8.0]])
rows[0, [17, 101, 256, 300, 411]] = [9.0, 8.5, 8.0, 7.0, 6.0]
rows[2, 1::2] = -np.inf
np.save("logits.npy", rows.astype(np.float16))
