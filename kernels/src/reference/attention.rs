//! Attention of one query, one number at a time.

use super::{fma, math::exp, row_sum, tree_add};
use crate::element::Element;

/// The 16-lane fused dot product and its tree.
pub fn dot<T: Element>(a: &[f32], b: &[T]) -> f32 {
    let mut lanes = [0.0; 16];
    for i in 0..a.len() {
        lanes[i % 16] = fma(a[i], b[i].as_(), lanes[i % 16]);
    }
    tree_add(lanes)
}

/// `output = softmax(scale * query keys^T + mask) values`; `scores.len()` is the number of positions.
pub fn attention<T: Element>(
    query: &[f32],
    keys: &[T],
    values: &[T],
    scale: f32,
    mask: Option<&[f32]>,
    scores: &mut [f32],
    output: &mut [f32],
) {
    let width = query.len();
    let mut top = f32::NEG_INFINITY;
    for j in 0..scores.len() {
        let score = dot(query, &keys[j * width..(j + 1) * width]) * scale;
        scores[j] = mask.map_or(score, |mask| score + mask[j]);
        if scores[j] > top {
            top = scores[j];
        }
    }
    if top == f32::NEG_INFINITY {
        output.fill(if scores.iter().any(|score| score.is_nan()) { f32::NAN } else { 0.0 });
        return;
    }
    for score in scores.iter_mut() {
        *score = exp(*score - top);
    }
    let sum = row_sum(scores.len(), |j| scores[j]) as f32;
    for d in 0..width {
        let mut chains = [0.0; 4];
        for j in 0..scores.len() {
            chains[j % 4] = fma(scores[j], values[j * width + d].as_(), chains[j % 4]);
        }
        output[d] = ((chains[0] + chains[1]) + (chains[2] + chains[3])) / sum;
    }
}
