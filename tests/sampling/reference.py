"""Compares answers with those of the numpy reference of the operators.

usage: reference.py FOLDER CALLS ANSWERS, where FOLDER holds ref_sampling.py and the files are those that reference.rs writes. Prints how
many rows were compared, and fails where one differs by more than roundings explain: where the closest decision of the row was further
than 1e-6, relatively, from the other answer.
"""
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import ref_sampling as ref

F32 = np.float32
ROWS = 4
NEAR = 1e-6


class Words:
    def __init__(self, path):
        self.words, self.at = np.fromfile(path, np.uint32), 0

    def take(self, n, dtype=np.uint32):
        self.at += n
        return self.words[self.at - n : self.at].view(dtype)

    def matrix(self, columns, dtype=F32):
        return self.take(ROWS * columns, dtype).reshape(ROWS, columns)


def near(a, b):
    """Whether all of these are so close, relatively, that a decision between them may differ."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return (np.abs(a - b) <= NEAR * np.maximum(np.abs(a), np.abs(b))).all()


def between(a, b):
    """The decisions that two counts differ in."""
    return slice(min(a, b), max(a, b))


def same_bits(a, b):
    return (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))


def apply(v, numbers, calls, answers):
    has_p, has_k = numbers[:2]
    x = calls.matrix(v)
    p = calls.take(ROWS, F32) if has_p else None
    k = calls.take(ROWS, np.int32) if has_k else None
    expected, found = ref.apply_top_k_top_p(x, p=p, k=k), answers.matrix(v)
    for r in range(ROWS):
        if same_bits(found[r], expected[r]).all():
            yield True
            continue
        s = np.sort(x[r].astype(np.float64))
        if has_k and 0 < k[r] < v:
            s = s[s >= s[v - k[r]]]
        c = np.cumsum(ref.softmax_f32(s.astype(F32)).astype(np.float64))
        dropped = [len(s) - np.isfinite(row[r]).sum() for row in (found, expected)]
        assert has_p and dropped[0] != dropped[1] and near(c[between(*dropped)], float(F32(1) - p[r])), (r, dropped)
        yield False


def min_p(v, numbers, calls, answers):
    x, k, p = calls.matrix(v), calls.take(ROWS, np.int32), calls.take(ROWS, F32)
    m = calls.take(ROWS, F32) if numbers[0] else None
    expected = ref.apply_top_k_top_p_min_p(x, k, p, m)
    found = answers.matrix(v)
    # Sums of f64 in one order: nothing may differ.
    assert same_bits(found, expected).all()
    yield from [True] * ROWS


def first_version(v, numbers, calls, answers):
    x, k, p = calls.matrix(v), calls.take(ROWS, np.int32), calls.take(ROWS, F32)
    q = calls.matrix(v) if numbers[0] else None
    chosen, select = answers.take(ROWS), answers.matrix(v)
    expected = ref.top_k_top_p_sample_v1(x, k, p, q, is_need_logits=True, cum="fixed")
    token, kept = expected["logits_select_idx"], expected["logits_top_kp_select"]
    for r in range(ROWS):
        if chosen[r] == token[r] and same_bits(select[r], kept[r]).all():
            yield True
            continue
        use_k, use_p = 1 <= k[r] <= min(1024, v), 0 < p[r] < 1
        order = ref.stable_desc(x[r])[: k[r] if use_k else v]
        s = ref.softmax_f32(x[r][order])
        sums = np.concatenate(([0.0], np.cumsum(s.astype(np.float64))[:-1]))
        counts = [(row[r] > -np.inf).sum() for row in (select, kept)]
        if counts[0] != counts[1]:
            assert use_p and near(sums[between(*counts)], float(p[r])), (r, k[r], p[r], counts)
        else:
            assert q is not None, (r, k[r], p[r], chosen[r], token[r])
            n = ref.top_p_count(s, p[r], "fixed", True) if use_p else len(s)
            if not use_k and not use_p:
                order = np.arange(v)
            w = s[:n] if use_p and not use_k else x[r][order[:n]]
            ratio = dict(zip(order[:n], ref.softmax_f32(w) / (np.abs(q[r, :n]) + F32(1e-8))))
            assert near(ratio[chosen[r]], ratio[token[r]]), (r, k[r], p[r])
        yield False


def multinomial(v, numbers, calls, answers):
    samples, replacement, low, high, offset = (int(n) for n in numbers)
    w, seed = calls.matrix(v), high << 32 | low
    found = answers.take(ROWS * samples).reshape(ROWS, samples)
    expected = ref.multinomial_950(w, samples, bool(replacement), seed, offset)
    race = samples == 1 or not replacement
    e = ref.exponential_950((ROWS, v), seed, offset)
    for r in range(ROWS):
        if (found[r] == expected[r]).all():
            yield True
            continue
        differ = found[r] != expected[r]
        a, b = found[r][differ].astype(int), expected[r][differ].astype(int)
        if race:
            ratio = (w[r] / e[r]).astype(np.float64)
            assert near(ratio[a], ratio[b]), (r, samples, replacement)
        else:
            line = (samples + 127) // 128 * 128
            words = ref.philox_vec(np.full(samples, (offset + 3) // 4, np.uint64), r * line + np.arange(samples), seed)
            u = ref.uniform_from_u32(words[:, 0]).astype(np.float64)[differ]
            cdf = np.cumsum(w[r].astype(np.float64)) / w[r].astype(np.float64).sum()
            assert all(near(cdf[between(a, b)], u) for a, b, u in zip(a, b, u)), (r, samples)
        yield False


def exponential(v, numbers, calls, answers, dtype):
    rate, _, low, high, offset = (int(n) for n in numbers)
    rate = float(np.uint32(rate).view(F32))
    found = answers.matrix(v)
    expected = ref.exponential_950((ROWS, v), high << 32 | low, offset, rate)
    # Of the logarithm; of a half a step more.
    tolerance = (4e-7, 2.0**-10, 2.0**-7)[dtype]
    assert (np.abs(found - expected) <= tolerance * expected + 2.0**-24 * (dtype > 0)).all()
    yield from [True] * ROWS


calls, answers = Words(sys.argv[2]), Words(sys.argv[3])
# Of rows up to so long, and of longer ones.
LONG = 4097
rows, differing = np.zeros((2, 5), int), np.zeros((2, 5), int)
with np.errstate(all="ignore"):
    while calls.at < len(calls.words):
        operator, dtype, v = (int(n) for n in calls.take(3))
        numbers = calls.take(5).copy()
        of = (apply, min_p, first_version, multinomial, exponential)[operator]
        compared = of(v, numbers, calls, answers, *([dtype] if operator == 4 else []))
        for same in compared:
            rows[int(v > LONG), operator] += 1
            differing[int(v > LONG), operator] += not same
assert answers.at == len(answers.words)
names = ("ApplyTopKTopP", "ApplyTopKTopPMinP", "TopKTopPSampleV1", "Multinomial", "Exponential")
print(f"compared {rows.sum()} rows with the numpy reference; decisions that differ, all within {NEAR}:")
for which, name in enumerate((f"V up to {LONG}", "longer rows")):
    print(f"  {name}:", ", ".join(f"{name} {d} of {n}" for name, d, n in zip(names, differing[which], rows[which])))
