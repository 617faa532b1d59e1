"""The rows of reference.rs, answered by the numpy reference of the operator.

usage: reference.py FOLDER CALLS, where FOLDER holds ref_sampling.py. Writes for each row of each call, little endian: i32 chosen,
f32 margin, i32 idx[V], f32 sorted[V]. The margin is how far, relatively, the closest decision of the row was from the other answer.
"""
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import ref_sampling as ref

U = np.uint64
SIZES = [1, 2, 3, 5, 8, 11, 16, 17, 24, 31, 33, 48, 50, 64, 64, 65, 100, 100, 128, 150, 257, 300, 1000, 1100]
ROWS = 4


def stream(call, first, n):
    """Numbers first .. first + n - 1 of the call's part of SplitMix64 from 0."""
    with np.errstate(over="ignore"):
        z = (U(call << 32) + U(first) + np.arange(1, n + 1, dtype=U)) * U(0x9E3779B97F4A7C15)
        z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
        return z ^ (z >> U(31))


def signed(h):
    return int(h) - (1 << 64 if int(h) >> 63 else 0)


def fraction(h, dtype):
    return (int(h) & (0xFFFFFF, 0x3FF, 0xFF)[dtype]) / (2.0**24, 2.0**10, 2.0**8)[dtype]


def logits(call, row, v, dtype, kind, is_logits):
    x = stream(call, 1024 + row * v, v)
    if not is_logits:
        bits = (v - 1).bit_length()
        if kind == 2:
            return np.full(v, 2.0**-bits)
        k = (x & U(7 if kind == 1 else 0xFF)).astype(np.int64)
        k[0] |= 1
        return k * 2.0 ** -(7 + bits)
    mask, half, scale = ((0xFFFFFF, 1 << 23, 2.0**-20), (0xFFF, 1 << 11, 2.0**-8), (0x1FF, 1 << 8, 2.0**-5))[dtype]
    fine = ((x & U(mask)).astype(np.int64) - half) * scale
    if kind == 1:
        return ((x & U(15)).astype(np.int64) - 8) / 2.0
    if kind == 2:
        return np.full(v, 1.5)
    if kind == 3:
        masked = (x >> U(60)) < U(10)
        masked[0] = False
        return np.where(masked, -np.inf, fine)
    return fine * 8 if kind == 4 else fine


def margin(x, k, p, m, ks, is_logits, divisor, order, pr):
    """Closest decision: the cut, the min-p threshold, the race."""
    closest = [np.inf]
    use_k = 1 <= k <= min(ks, len(x))
    listed = ref.stable_desc(x)[: k if use_k else len(x)]
    whole = ref.softmax_f32(x[listed]) if is_logits else x[listed]
    if 0 < p < 1:
        sums = np.concatenate(([0.0], np.cumsum(whole.astype(np.float64))))[:-1]
        closest.append(np.abs(sums - p).min() / p)
    if 0 < m < 1:
        t = float(whole[0]) * m
        closest.append(np.abs(whole - t).min() / t if t > 0 else 0)
    if divisor is not None and len(pr) > 1:
        ratio = np.sort(pr.astype(np.float64) / divisor[: len(pr)])
        closest.append((ratio[-1] - ratio[-2]) / ratio[-1])
    return np.float32(min(closest))


def answer(call):
    h = stream(call, 0, 1024)
    v = 5000 if call % 250 == 0 else SIZES[int(h[0]) % 24]
    dtype, is_logits, kind, post = call % 3, int(h[1]) % 4 != 0, int(h[2]) % 5, int(h[3]) % 4
    has_min = int(h[5]) % 2 == 1
    ks_max = (1024, 1024, 0, 3, 16, 100)[int(h[6]) % 6]
    eps = (1e-8, 1e-3)[int(h[7]) % 2]
    x = np.zeros((ROWS, v), np.float32)
    q = np.zeros((ROWS, v), np.float32)
    ks, ps, ms = [], [], []
    for r in range(ROWS):
        a, b, c = (int(y) for y in h[64 + 8 * r : 67 + 8 * r])
        base = a & 0xFFFFFFFF
        ks.append((0, base % (v + 3) - 1, 1 + base % min(v, 40), 1 + base % min(v, 40))[a >> 62])
        ps.append({0: 0.0, 1: 1.0, 2: -0.5, 3: 1.5}.get(b >> 61, fraction(b, dtype)))
        f = fraction(c, dtype)
        ms.append({0: 0.0, 1: 1.0, 2: -1.0}.get(c >> 61, f / 8 if c >> 61 >= 5 else f))
        x[r] = logits(call, r, v, dtype, kind, is_logits)
        y = stream(call, (1 << 24) + r * v, v)
        q[r] = (y & U(0xFFFFFF)).astype(np.int64) / 2.0**22 * np.where(y >> U(63), -1, 1)
    min_ps = np.array(ms, np.float32) if has_min else None
    # The numbers are exact in their dtype, so f32 serves for all.
    args = (x, np.array(ks, np.int32), np.array(ps, np.float32))
    rest = (min_ps, eps, False, 32, ks_max, is_logits)
    middle = ref.top_k_top_p_sample_v2(*args, None, *rest, True, "fixed")
    idx, pr = middle["logits_idx"], middle["logits_sort_masked"]
    divisors = [None] * ROWS
    if post == 1:
        divisors = np.abs(q) + np.float32(eps)
        chosen = ref.top_k_top_p_sample_v2(*args, q, *rest, False, "fixed")["logits_select_idx"]
    elif post == 0:
        chosen = ref.top_k_top_p_sample_v2(*args, None, *rest, False, "fixed")["logits_select_idx"]
    else:
        lines = 1 + int(h[4]) % ROWS
        pairs = [(signed(h[16 + 2 * i]), int(h[17 + 2 * i]) % 1000) for i in range(lines)]
        if post == 2:
            divisors = ref.exponential_950((ROWS, v), *pairs[0])
        else:
            divisors = np.stack([ref.exponential_950((v,), *pairs[min(r, lines - 1)]) for r in range(ROWS)])
        with np.errstate(divide="ignore"):
            place = np.argmax((pr / divisors).astype(np.float32), axis=1)
        chosen = idx[np.arange(ROWS), place]
    eff = ref.ks_max_effective(ks_max)
    for r in range(ROWS):
        kept = ref._v2_row(x[r], ks[r], np.float32(ps[r]), None if min_ps is None else min_ps[r], eff, is_logits, "fixed")
        near = margin(x[r], ks[r], ps[r], ms[r] if has_min else 0, eff, is_logits, divisors[r], *kept)
        yield np.int32(chosen[r]).tobytes() + near.tobytes() + idx[r].astype("<i4").tobytes() + pr[r].astype("<f4").tobytes()


for number in range(int(sys.argv[2])):
    sys.stdout.buffer.write(b"".join(answer(number)))
