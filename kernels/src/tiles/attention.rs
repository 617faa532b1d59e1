//! Attention of one query over the keys and values of its head: all scores first, one maximum, one pass of exp, then P V.
//!
//! Nothing is rescaled on the way, so KV_TILE cannot move a bit. A score is the fused dot product in 16 lanes and the fixed tree,
//! 16 keys at a time so that their trees run side by side. P V adds key j into chain j mod 4 and the chains at the end as
//! `(0 + 1) + (2 + 3)`: with a head of 8 or 16 elements one chain would wait for its own latency at every key. KV_TILE keys are taken
//! at a time, so that their values stay in the first cache while the vectors of a long head pass over them.

use crate::dispatch::Kernel;
use crate::element::Element;
use crate::math::exp_below_overflow;
use crate::per_element::per_element;
use crate::rows::{row_sum, vectors};
use crate::simd::{Dot, Simd};

/// Positions whose values stay in the first cache: 16 KiB at a head of 128.
const KV_TILE: usize = 32;

/// Rows of a cache, a position each.
#[derive(Clone, Copy)]
struct Positions<'a, T> {
    data: &'a [T],
    stride: usize,
    width: usize,
    count: usize,
}

impl<'a, T> Positions<'a, T> {
    #[inline(always)]
    fn new(data: &'a [T], stride: usize, width: usize, count: usize) -> Self {
        let end = count.checked_sub(1).and_then(|last| last.checked_mul(stride)).and_then(|start| start.checked_add(width));
        assert!(end.is_some_and(|end| end <= data.len()));
        Positions { data, stride, width, count }
    }

    /// The row of position `j`, with one test where slicing would take two.
    #[inline(always)]
    fn row(&self, j: usize) -> &'a [T] {
        assert!(j < self.count);
        // SAFETY: `new` found `data` to hold `width` elements from `stride * (count - 1)` on.
        unsafe { core::slice::from_raw_parts(self.data.as_ptr().add(j * self.stride), self.width) }
    }
}

/// `output = softmax(scale * query keys^T + mask) values`. A query whose every score is -inf gets zeros.
pub struct Attention<'a, T> {
    /// One head of one query.
    pub query: &'a [f32],
    /// The keys from position 0 on.
    pub keys: &'a [T],
    /// The values, likewise.
    pub values: &'a [T],
    /// Elements from position to position, of the keys and of the values.
    pub strides: [usize; 2],
    /// Positions that the query sees.
    pub positions: usize,
    /// Multiplies every dot product.
    pub scale: f32,
    /// Added to the score of each position.
    pub mask: Option<&'a [f32]>,
    /// `positions` numbers of workspace.
    pub scores: &'a mut [f32],
    /// Four times the length of the query of workspace: the chains between two tiles.
    pub chains: &'a mut [f32],
    /// As long as the query.
    pub output: &'a mut [f32],
}

impl<T: Element> Kernel for Attention<'_, T> {
    type Output = ();
    const DOT: bool = false;
    per_element!(run_attention);

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        self.attend::<S, KV_TILE>(s);
    }
}

/// [`Attention`] with KV_TILE keys at a time.
pub struct KvTiled<'a, T, const KV_TILE: usize>(pub Attention<'a, T>);

impl<T: Element, const KV_TILE: usize> Kernel for KvTiled<'_, T, KV_TILE> {
    type Output = ();
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        self.0.attend::<S, KV_TILE>(s);
    }
}

impl<T: Element> Attention<'_, T> {
    #[inline(always)]
    fn attend<S: Simd, const KV_TILE: usize>(mut self, s: S) {
        const { assert!(KV_TILE >= 4 && KV_TILE % 4 == 0) };
        let top = self.score(s);
        let scores = &mut self.scores[..self.positions];
        if top == f32::NEG_INFINITY {
            let nan = scores.iter().any(|score| score.is_nan());
            self.output.fill(if nan { f32::NAN } else { 0.0 });
            return;
        }
        let top = s.splat(top);
        vectors(
            scores.len(),
            #[inline(always)]
            |span| {
                let e = exp_below_overflow(s, s.sub(span.load(s, scores, f32::NEG_INFINITY), top));
                span.store(s, e, scores);
            },
        );
        let sum = row_sum(
            s,
            scores.len(),
            #[inline(always)]
            |span| span.load(s, scores, 0.0),
        );
        self.weigh::<S, KV_TILE>(s, s.splat(sum as f32));
    }

    /// Fills the scores and returns their maximum; a NaN is passed over.
    #[inline(always)]
    fn score<S: Simd>(&mut self, s: S) -> f32 {
        let (query, mask, count) = (self.query, self.mask, self.positions);
        let keys = Positions::new(self.keys, self.strides[0], query.len(), count);
        let scale = s.splat(self.scale);
        let mut top = s.splat(f32::NEG_INFINITY);
        let scores = &mut self.scores[..count];
        vectors(
            count,
            #[inline(always)]
            |at| {
                let mut dots = [s.splat(0.0); 16];
                vectors(
                    query.len(),
                    #[inline(always)]
                    |span| {
                        let q = span.load(s, query, 0.0);
                        for j in 0..at.len {
                            dots[j] = s.fma(q, span.load(s, keys.row(at.at + j), T::default()), dots[j]);
                        }
                    },
                );
                let mut score = s.mul(s.reduce_add_each(dots), scale);
                if let Some(mask) = mask {
                    score = s.add(score, at.load(s, mask, 0.0));
                }
                at.store(s, score, scores);
                top = s.max(at.load(s, scores, f32::NEG_INFINITY), top);
            },
        );
        let mut lanes = [0.0; 16];
        s.store(top, &mut lanes);
        lanes.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
    }

    /// `output = sum over j of scores[j] * values[j] / sum`
    #[inline(always)]
    fn weigh<S: Simd, const KV_TILE: usize>(self, s: S, sum: S::F32) {
        let width = self.query.len();
        let scores = &self.scores[..self.positions];
        let values = Positions::new(self.values, self.strides[1], width, scores.len());
        let (parked, output) = (self.chains, self.output);
        for from in (0..scores.len()).step_by(KV_TILE) {
            let to = scores.len().min(from + KV_TILE);
            vectors(
                width,
                #[inline(always)]
                |span| {
                    let mut chains = [s.splat(0.0); 4];
                    for c in 0..4 {
                        if from > 0 {
                            chains[c] = span.load(s, &parked[c * width..(c + 1) * width], 0.0);
                        }
                    }
                    let (fours, rest) = scores[from..to].as_chunks::<4>();
                    for (i, four) in fours.iter().enumerate() {
                        for c in 0..4 {
                            let value = span.load(s, values.row(from + 4 * i + c), T::default());
                            chains[c] = s.fma(s.splat(four[c]), value, chains[c]);
                        }
                    }
                    for (c, score) in rest.iter().enumerate() {
                        let value = span.load(s, values.row(to - rest.len() + c), T::default());
                        chains[c] = s.fma(s.splat(*score), value, chains[c]);
                    }
                    if to == scores.len() {
                        let total = s.add(s.add(chains[0], chains[1]), s.add(chains[2], chains[3]));
                        span.store(s, s.div(total, sum), output);
                    } else {
                        for c in 0..4 {
                            span.store(s, chains[c], &mut parked[c * width..(c + 1) * width]);
                        }
                    }
                },
            );
        }
    }
}
