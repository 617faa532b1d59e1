//! A LLaMA forward pass in `f32` with float weights, one number at a time: what the int8 model is measured against.

#![allow(dead_code)]

use crate::models::Weights;

/// The model of a llama2.c checkpoint of version 0.
pub fn read_version_0(file: &[u8]) -> Weights {
    let header: Vec<i32> = file[..28].chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
    let [dim, hidden, layers, heads, kv_heads, vocab, context] = header.try_into().unwrap();
    let (dim, hidden, layers, heads) = (dim as usize, hidden as usize, layers as usize, heads as usize);
    let (kv_heads, context, shared) = (kv_heads as usize, context as usize, vocab > 0);
    let vocab = vocab.unsigned_abs() as usize;
    let mut rest = file[28..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    let mut take = |n: usize| -> Vec<f32> { rest.by_ref().take(n).collect() };
    let kv_dim = dim / heads * kv_heads;
    let embedding = take(vocab * dim);
    let sizes = [dim, dim * dim, kv_dim * dim, kv_dim * dim, dim * dim, dim, hidden * dim, dim * hidden, hidden * dim];
    let parts = sizes.map(|n| take(layers * n));
    let final_norm = take(dim);
    take(context * dim / heads);
    let classifier = (!shared).then(|| take(vocab * dim));
    let layers = (0..layers).map(|layer| {
        let mut kind = 0;
        let mut next = || {
            let n = sizes[kind];
            kind += 1;
            parts[kind - 1][layer * n..(layer + 1) * n].to_vec()
        };
        crate::models::LayerWeights {
            attention_norm: next(),
            wq: next(),
            wk: next(),
            wv: next(),
            wo: next(),
            ffn_norm: next(),
            w1: next(),
            w2: next(),
            w3: next(),
        }
    });
    let layers = layers.collect();
    Weights { dim, hidden, heads, kv_heads, vocab, context, embedding, layers, final_norm, classifier }
}

fn product(weight: &[f32], x: &[f32]) -> Vec<f32> {
    weight.chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
}

fn norm(x: &[f32], gamma: &[f32]) -> Vec<f32> {
    let r = 1.0 / (x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32 + 1e-5).sqrt();
    x.iter().zip(gamma).map(|(x, g)| g * (r * x)).collect()
}

fn turn(v: &mut [f32], width: usize, position: usize) {
    for (i, pair) in v.chunks_exact_mut(2).enumerate() {
        let exponent = -((2 * i % width) as f64) / width as f64;
        let (sin, cos) = (position as f64 * 10_000f64.powf(exponent)).sin_cos();
        let (a, b) = (f64::from(pair[0]), f64::from(pair[1]));
        (pair[0], pair[1]) = ((a * cos - b * sin) as f32, (a * sin + b * cos) as f32);
    }
}

/// A sequence that grows token by token.
pub struct Forward<'w> {
    weights: &'w Weights,
    /// For each layer, position by position.
    keys: Vec<Vec<Vec<f32>>>,
    values: Vec<Vec<Vec<f32>>>,
}

impl<'w> Forward<'w> {
    pub fn new(weights: &'w Weights) -> Self {
        let empty = vec![Vec::new(); weights.layers.len()];
        Forward { weights, keys: empty.clone(), values: empty }
    }

    /// The logits after one more token.
    pub fn push(&mut self, token: i32) -> Vec<f32> {
        let w = self.weights;
        let (dim, width, position) = (w.dim, w.dim / w.heads, self.keys[0].len());
        let mut x = w.embedding[token as usize * dim..][..dim].to_vec();
        let add = |x: &mut [f32], y: Vec<f32>| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        for (l, layer) in w.layers.iter().enumerate() {
            let h = norm(&x, &layer.attention_norm);
            let (mut q, mut k, v) = (product(&layer.wq, &h), product(&layer.wk, &h), product(&layer.wv, &h));
            turn(&mut q, width, position);
            turn(&mut k, width, position);
            self.keys[l].push(k);
            self.values[l].push(v);
            let mut o = vec![0.0; dim];
            for head in 0..w.heads {
                let kv = head / (w.heads / w.kv_heads) * width;
                let q = &q[head * width..][..width];
                let dot = |k: &Vec<f32>| q.iter().zip(&k[kv..]).map(|(q, k)| q * k).sum::<f32>() / (width as f32).sqrt();
                let scores: Vec<f32> = self.keys[l].iter().map(dot).collect();
                let top = scores.iter().copied().fold(f32::MIN, f32::max);
                let scores: Vec<f32> = scores.iter().map(|s| (s - top).exp()).collect();
                let sum: f32 = scores.iter().sum();
                for (p, v) in scores.iter().zip(&self.values[l]) {
                    o[head * width..][..width].iter_mut().zip(&v[kv..]).for_each(|(o, v)| *o += p / sum * v);
                }
            }
            add(&mut x, product(&layer.wo, &o));
            let h = norm(&x, &layer.ffn_norm);
            let (a, b) = (product(&layer.w1, &h), product(&layer.w3, &h));
            let y: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
            add(&mut x, product(&layer.w2, &y));
        }
        product(w.classifier.as_ref().unwrap_or(&w.embedding), &norm(&x, &w.final_norm))
    }
}

/// The first largest.
pub fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}

/// Of the angle between two rows of logits.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
