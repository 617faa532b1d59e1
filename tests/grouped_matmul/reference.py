"""Compares answers with those of the numpy reference of the operator.

usage: reference.py FOLDER FILE, where FOLDER holds ref_gmm.py and FILE is what reference.rs writes. Bytes may differ by one, and scales by one
part in a million: exponentials may differ in their last bit. Prints how many rows did.
"""
import sys
import numpy as np

sys.path.insert(0, sys.argv[1])
import ref_gmm as ref

data, at = open(sys.argv[2], "rb").read(), 0


def take(dtype, *shape):
    global at
    n = int(np.prod(shape))
    at += n * np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype, n, at - n * np.dtype(dtype).itemsize).reshape(shape)


UNTOUCHED = np.int8(85), np.float32(-7.5)
calls = rows = apart = 0
while at < len(data):
    m, k, n, e, length, groups, arithmetic, counts, fp16, asymmetric, integers, floats, offset = take(np.int32, 13).tolist()
    groups_of = take(np.int64, length)
    w_scale = take(np.float32, e, groups, n) if groups else take(np.float32, e, n)
    x_scale = take(np.float32, m)
    bias = take(np.int32, e, n) if integers else take(np.float32, e, n) if floats else None
    offset = take(np.float32, e, n) if offset else None
    scale, zero = take(np.float32, m), take(np.float32, m)
    x, w, q = take(np.int8, m, k), take(np.int8, e, k, n), take(np.int8, m, n // 2)
    out = [np.full((m, n // 2), UNTOUCHED[0]), np.full(m, UNTOUCHED[1]), np.full(m, UNTOUCHED[1])]
    with np.errstate(all="ignore"):
        if groups:
            bits = w_scale.view(np.uint32).astype(np.uint64)
            bits = bits[:, 0] if groups == 1 else bits
            ref.gmm_swiglu_quant_a8w4(x, w, bits, bias, x_scale, groups_of, out[0], out[1], counts, False, bool(fp16))
        else:
            ref.gmm_swiglu_quant(x, w, w_scale, x_scale, groups_of, out[0], out[1], counts, arithmetic, bias=bias, offset=offset,
                                 asymmetric=bool(asymmetric), out_offset=out[2], fp16=bool(fp16))
        near = np.abs(scale - out[1]) <= 1e-6 * np.abs(out[1])
    assert (near | (scale == out[1]) | (np.isnan(scale) & np.isnan(out[1]))).all(), (calls, scale, out[1])
    assert (np.abs(zero - out[2]) <= 1).all(), (calls, zero, out[2])
    difference = np.abs(q.astype(int) - out[0])
    assert (difference <= 1).all(), (calls, difference.max())
    calls, rows, apart = calls + 1, rows + m, apart + int((difference > 0).any(1).sum())
print(f"{calls} calls with {rows} rows, of which {apart} hold a byte that differs, by one")
