//! What TopKSampling and TopPSampling are tested with alike: prompts, ends and lengths around a choice.

use crate::common::{Buffer, Order, Random};

/// How the elements of a call lie.
pub const ORDERS: [Order; 3] = [Order::Contiguous, Order::Pitched, Order::Transposed];

/// The tensors of a call.
pub struct Case {
    pub shape: [usize; 2],
    pub values: Vec<f32>,
    pub numbers: Vec<f32>,
    pub rows: Buffer<f32>,
    pub random: Buffer<f32>,
    pub tokens: Buffer<i32>,
    pub mask: Buffer<u8>,
    pub cur_pos: i64,
    pub end_id: i32,
    pub ids: Buffer<i32>,
    pub length: Buffer<i32>,
    pub finished: Buffer<u8>,
    forced: Vec<Option<i32>>,
    lengths: Vec<i32>,
    ended: Vec<u8>,
}

/// Columns of the prompts.
pub const P: usize = 5;

/// Rows of `values`, with prompts of 0 to P tokens, some rows finished.
pub fn case(shape: [usize; 2], values: &[f32], cur_pos: usize, order: Order, seed: u64) -> Case {
    let [batch, columns] = shape;
    let mut random = Random(seed);
    let numbers: Vec<f32> = (0..batch)
        .map(|_| match random.below(6) {
            0 => 0.0,
            1 => 1.0f32.next_down(),
            _ => (random.bits() >> 40) as f32 / 16_777_216.0,
        })
        .collect();
    let prompts: Vec<usize> = (0..batch).map(|_| random.below(P + 1)).collect();
    // What the mask leaves out is no token.
    let token = |random: &mut Random, forced| if forced { random.below(columns) as i32 } else { -9 };
    let tokens: Vec<i32> = (0..batch * P).map(|i| token(&mut random, i % P < prompts[i / P])).collect();
    let mask: Vec<u8> = (0..batch * P).map(|i| if i % P < prompts[i / P] { 1 + (i % 3) as u8 } else { 0 }).collect();
    let lengths: Vec<i32> = (0..batch).map(|_| random.below(100) as i32).collect();
    let ended: Vec<u8> = (0..batch).map(|_| [0, 0, 1, 2][random.below(4)]).collect();
    let forced = |b: usize| (cur_pos < prompts[b]).then(|| tokens[b * P + cur_pos]);
    Case {
        shape,
        values: values.to_vec(),
        rows: Buffer::new(&shape, order, values, 0.0),
        random: Buffer::new(&[batch], order, &numbers, 0.0),
        tokens: Buffer::new(&[batch, P], order, &tokens, 0),
        mask: Buffer::new(&[batch, P], order, &mask, 0),
        cur_pos: cur_pos as i64,
        end_id: random.below(columns) as i32,
        ids: Buffer::empty(&[batch], order, -7),
        length: Buffer::new(&[batch], order, &lengths, -7),
        finished: Buffer::new(&[batch], order, &ended, 77),
        forced: (0..batch).map(forced).collect(),
        numbers,
        lengths,
        ended,
    }
}

impl Case {
    /// Checks what was written. `is_choice(row, number, id)` tells of a row that was sampled.
    pub fn check(&self, context: &str, is_choice: impl Fn(&[f32], f32, usize) -> bool) {
        let (ids, lengths, finished) = (self.ids.values(), self.length.values(), self.finished.values());
        for b in 0..self.shape[0] {
            let found = (ids[b], lengths[b], finished[b]);
            let (length, ended) = (self.lengths[b], self.ended[b]);
            match (self.forced[b], ended) {
                (Some(token), _) => assert_eq!(found, (token, length, ended), "{context}, row {b}"),
                (None, 1 | 2) => assert_eq!(found, (self.end_id, length, ended), "{context}, row {b}"),
                _ => {
                    let row = &self.values[b * self.shape[1]..][..self.shape[1]];
                    let id = usize::try_from(ids[b]).unwrap();
                    assert!(is_choice(row, self.numbers[b], id), "{context}, row {b}: {id}");
                    assert_eq!((lengths[b], finished[b]), (length + 1, u8::from(ids[b] == self.end_id)), "{context}, row {b}");
                }
            }
        }
    }
}

/// The order of a row: larger numbers first, a NaN as -inf, of equal ones the lower index.
pub fn order(row: &[f32]) -> Vec<usize> {
    let value = |i: usize| if row[i].is_nan() { f32::NEG_INFINITY } else { row[i].min(f32::MAX) + 0.0 };
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| value(b).partial_cmp(&value(a)).unwrap());
    order
}
