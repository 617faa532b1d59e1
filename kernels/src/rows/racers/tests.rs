//! Who waits, and in which order.

use super::Near;
use crate::dispatch::{Isa, Kernel, Level};
use crate::simd::Dot;

/// Pushes two vectors and takes one.
struct Pushed {
    words: [i32; 16],
    least: i32,
    len: usize,
}

impl Kernel for Pushed {
    type Output = ([i32; 16], [i32; 16], usize, usize);
    const DOT: bool = false;

    fn run<S: Dot>(self, s: S) -> Self::Output {
        let mut near = Near { indices: [0; 32], words: [0; 32], n: 0 };
        let indices = core::array::from_fn(|i| 100 + i as i32);
        for _ in 0..2 {
            near.push(s, s.load_i32(&indices), s.load_i32(&self.words), self.least, self.len);
        }
        let (indices, words, n) = near.take();
        (indices, words, n, near.n)
    }
}

/// The least word of all reaches itself; lanes behind the last do not count; what does not fit the first vector stays.
#[test]
fn words_that_reach_the_least_wait_in_their_order() {
    for level in Isa::ALL.into_iter().filter_map(Level::new) {
        let found = level.run(Pushed { words: [i32::MIN; 16], least: i32::MIN, len: 10 });
        let mut expected = [0; 16];
        for (i, to) in expected.iter_mut().enumerate() {
            *to = 100 + i as i32 % 10;
        }
        assert_eq!(found, (expected, [i32::MIN; 16], 16, 4));
        let words = core::array::from_fn(|i| i as i32 - 8);
        let (indices, words, n, left) = level.run(Pushed { words, least: 5, len: 16 });
        assert_eq!((&indices[..6], &words[..6]), (&[113, 114, 115, 113, 114, 115][..], &[5, 6, 7, 5, 6, 7][..]));
        assert_eq!((n, left), (6, 0));
    }
}
