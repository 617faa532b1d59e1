//! Models of some size.

/// A llama2.c file of version 0: its sizes, then numbers.
pub fn llama2c([dim, hidden, layers, vocab]: [usize; 4]) -> Vec<u8> {
    let (heads, context) = (dim / 64, 256);
    let layer = 2 * dim + 4 * dim * dim + 3 * dim * hidden;
    let count = vocab * dim + layers * layer + dim + context * dim / heads;
    let sizes = [dim, hidden, layers, heads, heads, vocab, context].map(|size| (size as i32).to_le_bytes());
    let numbers = (0..count).map(|i: usize| ((i.wrapping_mul(2_654_435_761) >> 7) % 2001) as f32 * 1e-4 - 0.1);
    sizes.into_iter().chain(numbers.map(f32::to_le_bytes)).flatten().collect()
}
