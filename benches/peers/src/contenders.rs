//! Who does what.

use crate::baseline::Sorting;
use crate::ours::{Floor, Ours, Stages};
use crate::peers::Candle;
use crate::rows::Kind;
use candle_transformers::generation::Sampling;
use tilekern::ops::PostSample;
use tilekern::{bf16, f16};

/// Somebody who chooses a token.
pub trait Contender {
    /// Takes the next row, before the clock starts.
    fn prepare(&mut self, row: &[f32]);
    /// Chooses.
    fn choose(&mut self) -> usize;
}

/// A contender, and how it appears in the table.
pub struct Entry {
    pub work: &'static str,
    pub by: &'static str,
    /// The floor, and the peer, that it is compared with.
    pub floor: &'static str,
    pub peer: Option<&'static str>,
    /// How many of the largest logits the choice must be among; the number of tokens for any.
    pub among: usize,
    pub contender: Box<dyn Contender>,
}

/// All for a kind of row. The first entries are the floors.
pub fn contenders(kind: Kind, v: usize) -> Vec<Entry> {
    let usual = matches!(kind, Kind::Normal | Kind::Peaked);
    let mut entries = Vec::new();
    let mut add = |work, by, floor, peer, among, contender| {
        entries.push(Entry { work, by, floor, peer, among, contender });
    };
    const F32: &str = "maximum of the row";
    add(F32, "floor", F32, None, 1, Box::new(Floor::<f32>::new(v)));
    let ours = |k, p, min_p, post| -> Box<dyn Contender> { Box::new(Ours::<f32>::new(v, Stages { k, p, min_p }, post)) };
    let candle = |sampling| -> Box<dyn Contender> { Box::new(Candle::new(sampling)) };
    let temperature = 1.0;
    let (q, multinomial) = (PostSample::QSample, PostSample::MultiNomial);
    add("argmax", "tilekern", F32, Some("argmax"), 1, ours(0, 1.0, 0.0, PostSample::None));
    add("top-k 50", "tilekern", F32, Some("top-k 50"), 50, ours(50, 1.0, 0.0, q));
    let both = "top-k 50, top-p 0.9";
    add("top-k 50, top-p 0.9, min-p 0.05", "tilekern", F32, Some(both), 50, ours(50, 0.9, 0.05, q));
    add("min-p 0.05", "tilekern", F32, None, v, ours(0, 1.0, 0.05, q));
    add("top-p 0.9", "tilekern", F32, Some("top-p 0.9"), v, ours(0, 0.9, 0.0, q));
    if usual {
        add("top-k 200", "tilekern", F32, None, 200, ours(200, 1.0, 0.0, q));
        add("top-k 1024", "tilekern", F32, None, 1024, ours(1024, 1.0, 0.0, q));
        add("noise given, no filter", "tilekern", F32, None, v, ours(0, 1.0, 0.0, q));
        add("noise drawn, no filter", "tilekern", F32, None, v, ours(0, 1.0, 0.0, multinomial));
    }
    if kind == Kind::Normal {
        const HALF: &str = "maximum of the row, bf16";
        add(HALF, "floor", HALF, None, v, Box::new(Floor::<bf16>::new(v)));
        const HALF_16: &str = "maximum of the row, f16";
        add(HALF_16, "floor", HALF_16, None, v, Box::new(Floor::<f16>::new(v)));
        let stages = Stages { k: 50, p: 1.0, min_p: 0.0 };
        // Ties of half precision reach beyond the 50 largest.
        add("top-k 50, bf16", "tilekern", HALF, None, v, Box::new(Ours::<bf16>::new(v, stages, q)));
        add("top-k 50, f16", "tilekern", HALF_16, None, v, Box::new(Ours::<f16>::new(v, stages, q)));
    }
    add("argmax", "candle", F32, None, 1, candle(Sampling::ArgMax));
    add("top-k 50", "candle", F32, None, 50, candle(Sampling::TopK { k: 50, temperature }));
    add(both, "candle", F32, None, 50, candle(Sampling::TopKThenTopP { k: 50, p: 0.9, temperature }));
    add("top-p 0.9", "candle", F32, None, v, candle(Sampling::TopP { p: 0.9, temperature }));
    if usual {
        add("top-p 0.9", "sorting", F32, None, v, Box::new(Sorting::new(v, 0.9)));
    }
    entries
}
