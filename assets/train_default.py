#!/usr/bin/env python3
"""Train and export the small default model, `default.tkm`.

Everything that ships in this folder is made from one public-domain text, the
King James Bible as packaged by Debian:

    apt-get install bible-kjv-text bible-kjv     # the text and the `bible` reader
    pip install numpy torch                      # any recent CPU build will do
    python3 train_default.py --out default.tkm   # about 20 minutes on one core

The steps, in the order in which they appear below:

  1. TEXT       a selection of passages, one verse per line, no verse numbers
  2. TOKENIZER  byte-pair encoding written out as a llama2.c `tokenizer.bin`
  3. MODEL      LLaMA as in llama2.c, with an int8 quantiser that can be
                switched into the forward pass (quantisation-aware training)
  4. TRAINING   Muon for the matrices, Adam for the rest, all seeded
  5. EXPORT     the `.tkm` file (see docs/model-format.md)
  6. CHECK      an independent numpy decoder that reads the file back and
                computes with int8 weights and int8 activations

`python3 train_default.py --check default.tkm` runs step 6 alone; it needs
`default-words.txt` next to the model and no torch.
"""

import argparse
import math
import os
import re
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict

import numpy as np

# --------------------------------------------------------------------------
# Shape of the model. The whole file must stay within 300 000 bytes.
# --------------------------------------------------------------------------
DIM, HIDDEN, LAYERS, HEADS, KV_HEADS = 96, 160, 3, 6, 2
VOCAB, CONTEXT = 640, 512
EPS, THETA = 1e-5, 10000.0
UNK, BOS, EOS = 0, 1, 2
SIZE_LIMIT = 300_000

# --------------------------------------------------------------------------
# 1. TEXT
# --------------------------------------------------------------------------
# Passages in reading order. The model begins with one of them when the prompt
# is empty; the first is by far the likeliest.
PASSAGES = """
ge1:1-31 ge2:1-25 ge3:1-24 ge6:9-22 ge7:1-24 ge8:1-22
ps1:1-6 ps8:1-9 ps19:1-14 ps23:1-6 ps24:1-10 ps27:1-14 ps46:1-11 ps90:1-17
ps91:1-16 ps95:1-11 ps100:1-5 ps103:1-22 ps104:1-35 ps121:1-8 ps139:1-18
ps147:1-20 ps148:1-14
prov3:1-26 prov8:22-36 ec1:1-18 ec3:1-15 ec11:1-10 ec12:1-14 song2:1-17
is40:1-31 is55:1-13
mt5:1-48 mt6:1-34 mt7:1-29 lk2:1-20 lk15:1-32 jn1:1-18 1cor13:1-13
rev21:1-27 rev22:1-7
""".split()


def read_passage(reference):
    """The verses of one passage, as a list of strings."""
    out = subprocess.run(["bible", "-f", reference], capture_output=True,
                         text=True, check=True).stdout
    verses = []
    for line in out.splitlines():
        if line.strip():
            verse = line.split(" ", 1)[1]              # drop "Ge1:1"
            verse = re.sub(r"\s+", " ", verse).strip()
            verse = verse.replace("`", "'")
            verses.append(verse)
    first, last = reference.split(":")[1].split("-")
    assert len(verses) == int(last) - int(first) + 1, (reference, len(verses))
    return verses


def words_of(text):
    """The words of a text: lower-case maximal runs of letters and apostrophe."""
    return re.findall(r"[a-z']+", text.lower())


# --------------------------------------------------------------------------
# 2. TOKENIZER
# --------------------------------------------------------------------------
# Merges stay inside these chunks: a line end, a word with the blank before
# it, or punctuation.
CHUNK = re.compile(r"\n| ?[A-Za-z']+| ?[^A-Za-z' \n]+| ")


def train_pieces(text, vocab):
    """Byte-pair encoding; returns (pieces, scores) for all token ids."""
    chunks = Counter(CHUNK.findall(text))
    chars = sorted(set(text) | set(" \n"))
    merges_wanted = vocab - 259 - len(chars)
    parts = {c: list(c) for c in chunks}
    merges = []
    while len(merges) < merges_wanted:
        pairs = Counter()
        for c, n in chunks.items():
            p = parts[c]
            for a, b in zip(p, p[1:]):
                pairs[a + b] += n
        best = max(pairs.items(), key=lambda kv: (kv[1], kv[0]))[0]
        merges.append(best)
        for c, p in parts.items():
            i = 0
            while i + 1 < len(p):
                if p[i] + p[i + 1] == best:
                    p[i:i + 2] = [best]
                i += 1
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n"]
    pieces += [b"<0x%02X>" % i for i in range(256)]
    pieces += [m.encode() for m in merges] + [c.encode() for c in chars]
    assert len(pieces) == vocab == len(set(pieces))
    # As in sentencepiece: an earlier merge has the higher score.
    scores = [0.0] * 259 + [-float(i) for i in range(vocab - 259)]
    return pieces, scores


class Tokenizer:
    """The encoding and decoding rules of llama2.c."""

    def __init__(self, pieces, scores):
        self.pieces, self.scores = pieces, scores
        self.ids = {p: i for i, p in enumerate(pieces)}

    def merge(self, text):
        """Ids of a text without the blank that llama2.c puts in front."""
        ids = []
        for ch in text:
            b = ch.encode()
            ids += [self.ids[b]] if b in self.ids else [x + 3 for x in b]
        while True:
            best, at = -1e10, -1
            for i in range(len(ids) - 1):
                k = self.ids.get(self.pieces[ids[i]] + self.pieces[ids[i + 1]])
                if k is not None and self.scores[k] > best:
                    best, at, which = self.scores[k], i, k
            if at < 0:
                return ids
            ids[at:at + 2] = [which]

    def encode(self, text):
        return [BOS] + (self.merge(" " + text) if text else [])

    def decode(self, ids):
        out, prev = b"", BOS
        for t in ids:
            p = self.pieces[t]
            if 3 <= t < 259:
                p = bytes([t - 3])
            elif prev == BOS and p.startswith(b" "):
                p = p[1:]
            out, prev = out + p, t
        return out.decode("utf-8", "replace")

    def to_bytes(self):
        out = struct.pack("<I", max(map(len, self.pieces)))
        for p, s in zip(self.pieces, self.scores):
            out += struct.pack("<fI", s, len(p)) + p
        return out

    @staticmethod
    def from_bytes(data, vocab):
        at, pieces, scores = 4, [], []
        for _ in range(vocab):
            s, n = struct.unpack_from("<fI", data, at)
            pieces.append(data[at + 8:at + 8 + n])
            scores.append(s)
            at += 8 + n
        assert at == len(data)
        return Tokenizer(pieces, scores)


class Corpus:
    """The text as one token stream and the places where a window may start."""

    def __init__(self, passages, tok):
        cache, self.tok = {}, tok

        def enc(s):                     # chunk by chunk: quick, and ...
            ids = []
            for c in CHUNK.findall(s):
                if c not in cache:
                    cache[c] = tok.merge(c)
                ids += cache[c]
            return ids

        stream, verse_at, verse_head = [], [], []
        self.passage_first = []         # index into verse_at
        nl = tok.ids[b"\n"]
        for verses in passages:
            self.passage_first.append(len(verse_at))
            for v in verses:
                ids = enc(v)
                assert ids == tok.merge(v), v   # ... the same as the whole line
                verse_at.append(len(stream) + len(ids))     # its line end
                verse_head.append(enc(" " + v))
                assert verse_head[-1] == tok.encode(v)[1:], v
                stream += ids + [nl]
        self.length = len(stream)
        self.stream = np.array(stream + stream[:CONTEXT + 2], np.int64)  # wraps
        self.verse_at, self.verse_head = verse_at, verse_head
        self.word_at = [i for i, t in enumerate(stream)
                        if tok.pieces[t].startswith(b" ")]

    def window(self, rng, length, p_passage=0.15, p_verse=0.35, p_first=0.5):
        """length + 1 tokens that begin with BOS, and whether the token after
        BOS is to be learned: only passages may follow an empty prompt."""
        u, passage = rng.random(), False
        if u < p_passage + p_verse:
            if u < p_passage:
                passage = True
                k = (0 if rng.random() < p_first
                     else self.passage_first[rng.integers(len(self.passage_first))])
            else:
                k = rng.integers(len(self.verse_at))
            head, at = self.verse_head[k], self.verse_at[k]
            w = np.concatenate([[BOS], head, self.stream[at:at + length]])
        else:
            at = self.word_at[rng.integers(len(self.word_at))]
            w = np.concatenate([[BOS], self.stream[at:at + length]])
        return w[:length + 1], passage

    def batch(self, rng, rows, length):
        ws = [self.window(rng, length) for _ in range(rows)]
        x = np.stack([w[:-1] for w, _ in ws])
        y = np.stack([w[1:] for w, _ in ws])
        for r, (_, passage) in enumerate(ws):
            if not passage:
                y[r, 0] = -100                      # no loss here
        return x, y


# --------------------------------------------------------------------------
# 3. MODEL
# --------------------------------------------------------------------------
def build_model(seed):
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(seed)

    class RowInt8(torch.autograd.Function):
        """Round every row to int8 times a scale; gradients pass unchanged."""

        @staticmethod
        def forward(ctx, x):
            s = x.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 127
            return (x * (1 / s)).round_().clamp_(-127, 127).mul_(s)

        @staticmethod
        def backward(ctx, g):
            return g

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            head = DIM // HEADS
            kv = KV_HEADS * head

            def matrix(out, inp, std):
                return nn.Parameter(torch.randn(out, inp) * std)

            self.embedding = matrix(VOCAB, DIM, 0.05)
            self.layers = nn.ModuleList()
            for _ in range(LAYERS):
                m = nn.Module()
                m.attention_norm = nn.Parameter(torch.ones(DIM))
                m.wq = matrix(DIM, DIM, DIM ** -0.5)
                m.wk = matrix(kv, DIM, DIM ** -0.5)
                m.wv = matrix(kv, DIM, DIM ** -0.5)
                m.wo = matrix(DIM, DIM, 0.2 * DIM ** -0.5)
                m.ffn_norm = nn.Parameter(torch.ones(DIM))
                m.w1 = matrix(HIDDEN, DIM, DIM ** -0.5)
                m.w2 = matrix(DIM, HIDDEN, 0.2 * HIDDEN ** -0.5)
                m.w3 = matrix(HIDDEN, DIM, DIM ** -0.5)
                self.layers.append(m)
            self.final_norm = nn.Parameter(torch.ones(DIM))
            # Rotary embedding: pair (2i, 2i+1) turns by pos * theta^(-2i/head).
            freq = THETA ** (-torch.arange(0, head, 2).double() / head)
            angle = torch.arange(CONTEXT).double()[:, None] * freq
            self.register_buffer("cos", angle.cos().float())
            self.register_buffer("sin", angle.sin().float())
            self.quantised = False

        def q8(self, x):
            return RowInt8.apply(x) if self.quantised else x

        def norm(self, x, g):
            return F.rms_norm(x, (DIM,), g, EPS)

        def rotate(self, x):                        # [B, T, H, D]
            n = x.shape[1]
            c, s = self.cos[:n, None], self.sin[:n, None]
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

        def forward(self, tokens):
            b, n = tokens.shape
            q8 = self.q8
            table = q8(self.embedding)
            x = F.embedding(tokens, table)
            for m in self.layers:
                h = q8(self.norm(x, m.attention_norm))
                q = self.rotate(F.linear(h, q8(m.wq)).view(b, n, HEADS, -1))
                k = self.rotate(F.linear(h, q8(m.wk)).view(b, n, KV_HEADS, -1))
                v = F.linear(h, q8(m.wv)).view(b, n, KV_HEADS, -1)
                k = k.repeat_interleave(HEADS // KV_HEADS, 2)
                v = v.repeat_interleave(HEADS // KV_HEADS, 2)
                a = F.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                    is_causal=True)
                a = a.transpose(1, 2).reshape(b, n, DIM)
                x = x + F.linear(q8(a), q8(m.wo))
                h = q8(self.norm(x, m.ffn_norm))
                f = F.silu(F.linear(h, q8(m.w1))) * F.linear(h, q8(m.w3))
                x = x + F.linear(q8(f), q8(m.w2))
            return F.linear(q8(self.norm(x, self.final_norm)), table)

    return Model()


# --------------------------------------------------------------------------
# 4. TRAINING
# --------------------------------------------------------------------------
def train(args, corpus, log):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(args.threads)
    model = build_model(args.seed)
    rng = np.random.default_rng(args.seed)
    matrices = [p for n, p in model.named_parameters()
                if n.startswith("layers") and p.ndim == 2]
    others = [p for n, p in model.named_parameters()
              if not (n.startswith("layers") and p.ndim == 2)]
    optimisers = [
        torch.optim.Muon(matrices, lr=args.lr, momentum=0.95, weight_decay=0.0,
                         adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    log(f"parameters {sum(p.numel() for p in model.parameters())}, seed {args.seed}, "
        f"steps {args.steps}, tokens per step {args.tokens}, lr {args.lr}")
    quantise_from = int(args.steps * 0.7)
    start, tail, seen = time.time(), [], 0
    for step in range(args.steps):
        if step == quantise_from:
            model.quantised = True
            log(f"step {step}: int8 quantiser on")
        # Warm up, then a straight line to (nearly) zero.
        rate = min((step + 1) / 200, 1.0) * max(1 - step / args.steps, 0.01)
        for o in optimisers:
            for g in o.param_groups:
                g["lr"] = args.lr * rate
        # Mostly short windows (quick), one in five over the whole context.
        length = CONTEXT if step % 5 == 4 else args.window
        x, y = corpus.batch(rng, max(1, args.tokens // length), length)
        logits = model(torch.from_numpy(x))
        loss = F.cross_entropy(logits.view(-1, VOCAB), torch.from_numpy(y).view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for o in optimisers:
            o.step()
            o.zero_grad(set_to_none=True)
        seen += x.size
        tail = (tail + [loss.item()])[-100:]
        if step % args.every == 0 or step + 1 == args.steps:
            log(f"step {step:6d}  loss {np.mean(tail):.4f}  tokens {seen/1e6:.2f} M  "
                f"{time.time() - start:.0f} s")
    return model


def stream_loss(model, corpus):
    """Loss of the quantised model over the whole text, in nats per token, with
    256 tokens of context or more for all but the first."""
    import torch
    import torch.nn.functional as F
    total = count = 0
    model.quantised = True
    with torch.no_grad():
        for at in range(0, corpus.length, CONTEXT // 2):
            w = np.concatenate([[BOS], corpus.stream[at:at + CONTEXT]])
            if len(w) < CONTEXT + 1:
                break
            w = torch.from_numpy(w)
            logits = model(w[None, :-1])[0]
            half = CONTEXT // 2
            total += F.cross_entropy(logits[half:], w[1 + half:], reduction="sum").item()
            count += CONTEXT - half
    return total / count


# --------------------------------------------------------------------------
# 5. EXPORT
# --------------------------------------------------------------------------
def fnv1a64(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = ((h ^ b) * 0x100000001b3) & 0xffffffffffffffff
    return h


def quantise_rows(w):
    """int8 rows and one f32 scale each; round half to even."""
    w = np.asarray(w, np.float32)
    scale = np.abs(w).max(-1) / np.float32(127)
    inv = np.where(scale > 0, np.float32(1) / np.where(scale > 0, scale, 1), 0)
    q = np.clip(np.rint(w * inv[..., None].astype(np.float32)), -127, 127)
    return q.astype(np.int8), scale.astype(np.float32)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def to_tkm(model, tok):
    def vector(p):
        return p.detach().numpy().astype("<f4").tobytes()

    def matrix(p):
        q, s = quantise_rows(p.detach().numpy())
        return padded(s.astype("<f4").tobytes() + q.tobytes())

    tokenizer = tok.to_bytes()
    body = padded(tokenizer) + matrix(model.embedding)
    for m in model.layers:
        body += vector(m.attention_norm)
        body += matrix(m.wq) + matrix(m.wk) + matrix(m.wv) + matrix(m.wo)
        body += vector(m.ffn_norm) + matrix(m.w1) + matrix(m.w2) + matrix(m.w3)
    body += vector(model.final_norm)
    header = struct.pack("<4s9I2f2IQ", b"TKM1", 1, 64, DIM, HIDDEN, LAYERS, HEADS,
                         KV_HEADS, VOCAB, CONTEXT, EPS, THETA, 1, len(tokenizer),
                         fnv1a64(body))
    assert len(header) == 64
    return header + body


def write_atomically(path, data):
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)


# --------------------------------------------------------------------------
# 6. CHECK
# --------------------------------------------------------------------------
class Int8Decoder:
    """Reads a .tkm file and decodes with int8 weights and activations."""

    def __init__(self, data):
        f = struct.unpack_from("<4s9I2f2IQ", data)
        assert f[0] == b"TKM1" and f[1] == 1 and f[2] == 64
        (self.dim, self.hidden, self.n_layers, self.heads, self.kv_heads,
         self.vocab, self.context) = f[3:10]
        self.eps, self.theta, flags, tok_bytes = f[10:14]
        assert f[14] == fnv1a64(data[64:]), "checksum"
        self.tok = Tokenizer.from_bytes(data[64:64 + tok_bytes], self.vocab)
        at = 64 + tok_bytes + (-tok_bytes % 4)

        def vector(n):
            nonlocal at
            v = np.frombuffer(data, "<f4", n, at)
            at += 4 * n
            return v

        def matrix(out, inp):
            nonlocal at
            s = vector(out)
            q = np.frombuffer(data, np.int8, out * inp, at).reshape(out, inp)
            at += out * inp + (-out * inp % 4)
            return q.astype(np.int32), s

        d, h = self.dim, self.hidden
        kv = d // self.heads * self.kv_heads
        self.embedding = matrix(self.vocab, d)
        self.layers = [dict(n1=vector(d), wq=matrix(d, d), wk=matrix(kv, d),
                            wv=matrix(kv, d), wo=matrix(d, d), n2=vector(d),
                            w1=matrix(h, d), w2=matrix(d, h), w3=matrix(h, d))
                       for _ in range(self.n_layers)]
        self.final = vector(d)
        self.classifier = self.embedding if flags & 1 else matrix(self.vocab, d)
        assert at == len(data), "trailing bytes"
        self.reset()

    def reset(self):
        self.pos = 0
        self.cache = [([], []) for _ in range(self.n_layers)]

    def linear(self, x, w):
        q, s = quantise_rows(x)
        return (w[0] @ q.astype(np.int32)).astype(np.float32) * (w[1] * s)

    def norm(self, x, g):
        return g * (x / np.sqrt(np.mean(x * x) + np.float32(self.eps)))

    def rotate(self, x, heads):
        x = x.reshape(heads, -1, 2)
        i = np.arange(x.shape[1])
        angle = self.pos * self.theta ** (-i / x.shape[1])
        c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        a, b = x[..., 0], x[..., 1]
        return np.stack([a * c - b * s, a * s + b * c], -1).reshape(heads, -1)

    def step(self, token):
        """Logits after one more token."""
        q, s = self.embedding
        x = q[token].astype(np.float32) * s[token]
        group = self.heads // self.kv_heads
        for m, (ks, vs) in zip(self.layers, self.cache):
            h = self.norm(x, m["n1"])
            qh = self.rotate(self.linear(h, m["wq"]), self.heads)
            ks.append(self.rotate(self.linear(h, m["wk"]), self.kv_heads))
            vs.append(self.linear(h, m["wv"]).reshape(self.kv_heads, -1))
            k = np.repeat(np.stack(ks), group, 1)       # [T, H, D]
            v = np.repeat(np.stack(vs), group, 1)
            a = np.einsum("hd,thd->ht", qh, k) / math.sqrt(qh.shape[1])
            a = np.exp(a - a.max(1, keepdims=True))
            a /= a.sum(1, keepdims=True)
            x = x + self.linear(np.einsum("ht,thd->hd", a, v).reshape(-1), m["wo"])
            h = self.norm(x, m["n2"])
            g = self.linear(h, m["w1"])
            f = g / (1 + np.exp(-g)) * self.linear(h, m["w3"])
            x = x + self.linear(f, m["w2"])
        self.pos += 1
        return self.linear(self.norm(x, self.final), self.classifier)

    def generate(self, count, prompt="", temperature=0.0, top_p=0.95, seed=0):
        rng = np.random.default_rng(seed)
        self.reset()
        ids = self.tok.encode(prompt)
        out = ids[1:]
        for t in ids:
            logits = self.step(t)
        for _ in range(count):
            if temperature == 0:
                t = int(np.argmax(logits))
            else:
                p = np.exp((logits - logits.max()).astype(np.float64) / temperature)
                p /= p.sum()
                order = np.argsort(-p, kind="stable")
                keep = order[:int(np.searchsorted(np.cumsum(p[order]), top_p)) + 1]
                t = int(rng.choice(keep, p=p[keep] / p[keep].sum()))
            if t in (BOS, EOS):
                break
            out.append(t)
            logits = self.step(t)
        return self.tok.decode(out), len(out)


def check(path, log, prompts=True):
    with open(path, "rb") as f:
        data = f.read()
    words_path = os.path.join(os.path.dirname(os.path.abspath(path)), "default-words.txt")
    with open(words_path) as f:
        known = set(f.read().split())
    d = Int8Decoder(data)
    log(f"{os.path.basename(path)}: {len(data)} bytes")

    def report(title, text, n):
        w = words_of(text)
        good = 100 * sum(x in known for x in w) / max(1, len(w))
        lines = Counter(x for x in text.split("\n") if x)
        log(f"{title}: {n} tokens, {len(w)} words, {good:.2f} % known, most repeated "
            f"line {max(lines.values())} x, lines {len(lines)}")
        strange = sorted({x for x in w if x not in known})
        if strange:
            log("  not in the text: " + " ".join(strange))
        return good if max(lines.values()) < 3 else 0

    text, n = d.generate(400)
    greedy = report("greedy", text, n)
    log(text + "\n")
    ok = len(data) <= SIZE_LIMIT and n == 400 and greedy >= 95
    for seed in range(5):
        text, n = d.generate(400, temperature=0.8, seed=seed)
        ok &= report(f"temperature 0.8, top-p 0.95, seed {seed}", text, n) >= 90 and n == 400
        log(text + "\n" if seed < 2 else "  " + text[:100].replace("\n", " / "))
    if prompts:
        for p in ["The LORD", "Once upon a time", "And God said", "Blessed are", "Hello"]:
            text, n = d.generate(60, prompt=p)
            report(f"greedy after {p!r}", text, n)
            log("  " + text.replace("\n", " / "))
    log("check " + ("passed" if ok else "FAILED"))
    return ok


# --------------------------------------------------------------------------
def main():
    a = argparse.ArgumentParser(description="Train and export the default model.")
    a.add_argument("--out", default="default.tkm", help="the model file to write; "
                   "default-words.txt and default.log go to the same folder")
    a.add_argument("--steps", type=int, default=10000)
    a.add_argument("--tokens", type=int, default=2048, help="tokens per step")
    a.add_argument("--window", type=int, default=192, help="length of the short windows")
    a.add_argument("--lr", type=float, default=0.02)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--every", type=int, default=250, help="steps between log lines")
    a.add_argument("--check", metavar="MODEL", help="only check this model")
    args = a.parse_args()
    if args.check:
        return 0 if check(args.check, print) else 1

    folder = os.path.dirname(os.path.abspath(args.out))
    log_file = open(os.path.join(folder, "default.log.part"), "w")

    def log(line):
        print(line, flush=True)
        log_file.write(line + "\n")
        log_file.flush()

    passages = [read_passage(r) for r in PASSAGES]
    text = "".join(v + "\n" for p in passages for v in p)
    repeats = [v for v, n in Counter(text.splitlines()).items() if n > 2]
    assert not repeats, repeats             # two are Psalm 46, with its refrain
    words = sorted(set(words_of(text)))
    pieces, scores = train_pieces(text, VOCAB)
    tok = Tokenizer(pieces, scores)
    corpus = Corpus(passages, tok)
    log(f"text: {len(passages)} passages, {text.count(chr(10))} verses, {len(text)} bytes, "
        f"{len(words)} distinct words, {corpus.length} tokens "
        f"({len(text) / corpus.length:.2f} bytes per token)")
    log(f"model: dim {DIM}, hidden {HIDDEN}, layers {LAYERS}, heads {HEADS}, "
        f"kv heads {KV_HEADS}, vocab {VOCAB}, context {CONTEXT}")
    write_atomically(os.path.join(folder, "default-words.txt"),
                     ("\n".join(words) + "\n").encode())
    start = time.time()
    model = train(args, corpus, log)
    log(f"training took {time.time() - start:.0f} s")
    log(f"final loss over the text, int8 model: {stream_loss(model, corpus):.4f} nats per token")
    write_atomically(args.out, to_tkm(model, tok))
    ok = check(args.out, log)
    log_file.close()
    os.replace(log_file.name, os.path.join(folder, "default.log"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
