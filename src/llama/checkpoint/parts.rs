//! The sizes of a model, its tensors, and the orders in which files have them.

use crate::error::Error;
use crate::ops::MAX_K;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Width of the residual stream.
    pub dim: usize,
    /// Inner width of the feed-forward block.
    pub hidden: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads.
    pub kv_heads: usize,
    /// Number of tokens.
    pub vocab: usize,
    /// The longest sequence.
    pub context: usize,
}

impl Shape {
    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.dim / self.heads
    }

    /// Width of the keys and of the values of a token.
    pub fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim()
    }

    /// The weights of one layer's products.
    pub(in crate::llama) fn products(&self) -> usize {
        self.dim.saturating_mul(2 * (self.dim + self.kv_dim()) + 3 * self.hidden)
    }

    /// From the seven numbers in the order in which every format has them.
    pub(super) fn new(numbers: [i64; 7]) -> Result<Shape, Error> {
        const NAMES: [&str; 7] = ["dim", "hidden", "layers", "heads", "kv_heads", "vocab", "context"];
        let mut sizes = [0; 7];
        for (i, &n) in numbers.iter().enumerate() {
            let size = i32::try_from(n).ok().filter(|&n| n >= 1).and_then(|n| usize::try_from(n).ok());
            sizes[i] = size.ok_or_else(|| Error::invalid(NAMES[i], "a size from 1 to 2^31 - 1", n))?;
        }
        let [dim, hidden, layers, heads, kv_heads, vocab, context] = sizes;
        for (name, k) in [("dim", dim), ("hidden", hidden)] {
            if k > MAX_K {
                return Err(Error::invalid(name, "at most 65536, for exact int8 products", k));
            }
        }
        if dim % heads != 0 {
            return Err(Error::invalid("heads", "a divisor of dim", heads));
        }
        if dim / heads % 2 != 0 {
            return Err(Error::invalid("heads", "an even head size", dim / heads));
        }
        if heads % kv_heads != 0 {
            return Err(Error::invalid("kv_heads", "a divisor of heads", kv_heads));
        }
        Ok(Shape { dim, hidden, layers, heads, kv_heads, vocab, context })
    }
}

/// A tensor of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Embedding,
    AttentionNorm,
    Wq,
    Wk,
    Wv,
    Wo,
    FfnNorm,
    W1,
    W2,
    W3,
    FinalNorm,
    /// The rotary table that version 0 stores and nobody reads.
    Frequencies,
    Classifier,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Embedding => "embedding",
            Part::AttentionNorm => "attention_norm",
            Part::Wq => "wq",
            Part::Wk => "wk",
            Part::Wv => "wv",
            Part::Wo => "wo",
            Part::FfnNorm => "ffn_norm",
            Part::W1 => "w1",
            Part::W2 => "w2",
            Part::W3 => "w3",
            Part::FinalNorm => "final_norm",
            Part::Frequencies => "frequencies",
            Part::Classifier => "classifier",
        }
    }

    /// Whether each layer has one.
    pub(super) fn in_layers(self) -> bool {
        use Part::*;
        matches!(self, AttentionNorm | Wq | Wk | Wv | Wo | FfnNorm | W1 | W2 | W3)
    }

    pub(super) fn is_vector(self) -> bool {
        matches!(self, Part::AttentionNorm | Part::FfnNorm | Part::FinalNorm | Part::Frequencies)
    }

    /// Outputs and inputs of a matrix; rows and columns of the vectors of one kind.
    pub fn sizes(self, s: &Shape) -> (usize, usize) {
        match self {
            Part::Embedding | Part::Classifier => (s.vocab, s.dim),
            Part::AttentionNorm | Part::FfnNorm | Part::FinalNorm => (1, s.dim),
            Part::Wq | Part::Wo => (s.dim, s.dim),
            Part::Wk | Part::Wv => (s.kv_dim(), s.dim),
            Part::W1 | Part::W3 => (s.hidden, s.dim),
            Part::W2 => (s.dim, s.hidden),
            Part::Frequencies => (s.context, s.head_dim()),
        }
    }

    pub(super) fn bytes(self, s: &Shape, int8: bool) -> Option<usize> {
        let (outputs, inputs) = self.sizes(s);
        let count = outputs.checked_mul(inputs)?;
        match int8 && !self.is_vector() {
            true => outputs.checked_mul(4)?.checked_add(count)?.checked_next_multiple_of(4),
            false => count.checked_mul(4),
        }
    }
}

/// What follows a header: groups of tensors. The tensors of layers come once for each layer, a group of them together.
pub(super) type Order = &'static [&'static [Part]];

pub(super) const VERSION_0: Order = {
    use Part::*;
    &[
        &[Embedding],
        &[AttentionNorm],
        &[Wq],
        &[Wk],
        &[Wv],
        &[Wo],
        &[FfnNorm],
        &[W1],
        &[W2],
        &[W3],
        &[FinalNorm],
        &[Frequencies],
        &[Classifier],
    ]
};
pub(super) const VERSION_1: Order = {
    use Part::*;
    &[&[AttentionNorm], &[FfnNorm], &[FinalNorm], &[Embedding], &[Wq], &[Wk], &[Wv], &[Wo], &[W1], &[W2], &[W3], &[Classifier]]
};
pub(super) const TKM: Order = {
    use Part::*;
    &[&[Embedding], &[AttentionNorm, Wq, Wk, Wv, Wo, FfnNorm, W1, W2, W3], &[FinalNorm], &[Classifier]]
};
