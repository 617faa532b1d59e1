//! Where the elements of a row stand that reach a bound: the blocks whose maxima do are found first, and then looked through.

use super::key::bits_of_half;
use super::select::List;
use super::{lanes, vectors};
use crate::element::Element;
use crate::simd::Simd;

/// Elements that are compared at once.
const WORD: usize = 64;
/// Places that are written at once, at most.
const ROOM: usize = room(WORD);
/// A block is asked for so many bytes of blocks ahead of the one that is looked through: the row lies in the second cache.
const AHEAD: usize = 2 << 10;

/// Room for the indices of a block, and for what is written behind them.
pub const fn room(block: usize) -> usize {
    (if block < WORD { WORD } else { block }) + 8
}

/// The indices of [`super::select::gather`]. The values behind the first `n` are lost: numbers of blocks stand there. The list has
/// [`room`] for a block behind them.
#[inline(always)]
pub fn find<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    bound: f32,
    mut from: usize,
    list: &mut List<'_>,
    mut n: usize,
) -> (usize, usize) {
    debug_assert!(list.values.len() >= n + room(BLOCK) && list.indices.len() >= n + room(BLOCK));
    s.apart(
        #[inline(always)]
        move || {
            let maxima = &maxima[..row.len().div_ceil(BLOCK)];
            let hits = bytemuck::cast_slice_mut::<f32, i32>(&mut list.values[n..]);
            while from < maxima.len() {
                let next = maxima.len().min(from + (hits.len() - 16));
                let found = locate(s, &maxima[from..next], bound, from, hits);
                let (seen, listed) = look_through::<S, T, BLOCK>(s, row, bound, &hits[..found], &mut list.indices[n..]);
                n += listed;
                if seen < found {
                    return (n, hits[seen] as usize);
                }
                from = next;
            }
            (n, from)
        },
    )
}

/// The indices of all elements that reach `bound`, where they are in no more than `blocks` blocks and no more than `most`; returns how
/// many. The values of the list are lost.
#[inline(always)]
pub fn find_few<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    bound: f32,
    list: &mut List<'_>,
    [blocks, most]: [usize; 2],
) -> Option<usize> {
    let (maxima, hits) = (&maxima[..row.len().div_ceil(BLOCK)], bytemuck::cast_slice_mut(list.values));
    let found = locate_few(s, maxima, bound, hits, blocks)?;
    let (seen, listed) = look_through::<S, T, BLOCK>(s, row, bound, &hits[..found], &mut list.indices[..most + room(BLOCK)]);
    (seen == found && listed <= most).then_some(listed)
}

/// Writes the numbers of the maxima that reach `bound`, if no more than `most` do; returns how many. There is room for `most` and 17.
#[inline(always)]
pub fn locate_few<S: Simd>(s: S, maxima: &[f32], bound: f32, hits: &mut [i32], most: usize) -> Option<usize> {
    debug_assert!(hits.len() > most + 16);
    let (mut found, mut from) = (0, 0);
    while from < maxima.len() {
        let next = maxima.len().min(from + (hits.len() - most - 16));
        found += locate(s, &maxima[from..next], bound, from, &mut hits[found..]);
        if found > most {
            return None;
        }
        from = next;
    }
    Some(found)
}

/// Writes the numbers, from `from` on, of the maxima that reach `bound`; returns how many they are. There is room for all and 16.
#[inline(always)]
fn locate<S: Simd>(s: S, maxima: &[f32], bound: f32, from: usize, hits: &mut [i32]) -> usize {
    s.beside(
        #[inline(always)]
        move || {
            let (bound, mut found) = (s.splat(bound), 0);
            let mut numbers = s.add_i32(lanes(s), s.splat_i32(from as i32));
            let (sixteens, rest) = maxima.as_chunks::<16>();
            for tops in sixteens {
                found += s.compress(s.le(bound, s.load(tops)), numbers, hits[found..].first_chunk_mut().expect("room"));
                numbers = s.add_i32(numbers, s.splat_i32(16));
            }
            let last = s.le(bound, s.load_partial(rest, f32::NAN));
            found + s.compress(last, numbers, hits[found..].first_chunk_mut().expect("room"))
        },
    )
}

/// Writes the indices of the values that reach `bound` in blocks of these numbers, for as long as a whole block has room; returns how
/// many blocks that were, and how many indices.
#[inline(always)]
fn look_through<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    bound: f32,
    blocks: &[i32],
    indices: &mut [i32],
) -> (usize, usize) {
    s.beside(
        #[inline(always)]
        move || {
            let (whole, rest) = row.as_chunks::<BLOCK>();
            let ahead = (AHEAD / size_of::<[T; BLOCK]>()).max(1);
            let bound = Bound::new::<T>(bound);
            let all = indices.len();
            let mut to = &mut *indices;
            for i in 0..blocks.len() {
                if to.len() < room(BLOCK) {
                    return (i, all - to.len());
                }
                if let Some(next) = blocks.get(i + ahead).and_then(|&next| whole.get(next as usize)) {
                    for line in bytemuck::cast_slice(next).as_chunks().0 {
                        s.prefetch(line);
                    }
                }
                let number = blocks[i] as usize;
                let Some(block) = whole.get(number) else {
                    to = list_block(s, rest, number * BLOCK, bound, to);
                    break;
                };
                to = list_block(s, block, number * BLOCK, bound, to);
            }
            (blocks.len(), all - to.len())
        },
    )
}

/// What values have to reach.
#[derive(Clone, Copy)]
struct Bound {
    least: f32,
    /// All bits where everything does: a NaN counts as -inf.
    all: u64,
    /// The first and the last number of 16 bits that does, where these are above 0 and so in the order of their bits.
    halves: Option<[i16; 2]>,
}

impl Bound {
    #[inline(always)]
    fn new<T: Element>(least: f32) -> Bound {
        let halves = (size_of::<T>() == 2 && least > 0.0).then(
            #[inline(always)]
            || {
                let near = T::narrow(least);
                [bits_of_half(near) + i16::from(near.as_() < least), bits_of_half(T::narrow(f32::INFINITY))]
            },
        );
        Bound { least, all: if least == f32::NEG_INFINITY { u64::MAX } else { 0 }, halves }
    }

    /// A bit for each of 64 values that reaches it.
    #[inline(always)]
    fn reached_by_64<S: Simd, T: Element>(self, s: S, values: &[T; WORD]) -> u64 {
        if size_of::<T>() == 2
            && let Some(halves) = self.halves
        {
            let [a, b] = bytemuck::cast::<_, [[i32; 16]; 2]>(*values);
            let [a, b] = [s.halves_within(s.load_i32(&a), halves), s.halves_within(s.load_i32(&b), halves)];
            return u64::from(a) | u64::from(b) << 32;
        }
        let (least, values) = (s.splat(self.least), bytemuck::cast_ref::<[T; WORD], [[T; 16]; 4]>(values));
        let mut m = [s.le(least, least); 4];
        for i in 0..4 {
            m[i] = s.le(least, T::load(s, &values[i]));
        }
        self.all | s.mask_bits_64(m)
    }

    /// The same of fewer values.
    #[inline(always)]
    fn reached_by<S: Simd, T: Element>(self, s: S, values: &[T]) -> u64 {
        if self.all != 0 {
            return self.all >> (WORD - values.len());
        }
        let mut hits = 0;
        vectors(
            values.len(),
            #[inline(always)]
            |span| {
                let v = span.load(s, values, T::NEG_INFINITY);
                hits |= u64::from(s.mask_bits(s.le(s.splat(self.least), v))) << span.at;
            },
        );
        hits
    }
}

/// Writes the indices of the values of a block that reach the bound; returns the room behind them.
#[inline(always)]
fn list_block<'a, S: Simd, T: Element>(s: S, block: &[T], start: usize, bound: Bound, mut to: &'a mut [i32]) -> &'a mut [i32] {
    let (words, rest) = block.as_chunks::<WORD>();
    for (i, word) in words.iter().enumerate() {
        to = list_bits(s, bound.reached_by_64(s, word), start + WORD * i, to);
    }
    if !rest.is_empty() {
        to = list_bits(s, bound.reached_by(s, rest), start + WORD * words.len(), to);
    }
    to
}

/// Writes the numbers of the bits that are set, from `start` on; returns the room behind them.
#[inline(always)]
fn list_bits<S: Simd>(s: S, word: u64, start: usize, to: &mut [i32]) -> &mut [i32] {
    let (count, front) = (word.count_ones() as usize, to.first_chunk_mut::<ROOM>().expect("room"));
    // Mostly one is set, sometimes two.
    if count <= 2 {
        front[0] = start as i32 + word.trailing_zeros() as i32;
        front[1] = start as i32 + (word & word.wrapping_sub(1)).trailing_zeros() as i32;
    } else if word == u64::MAX {
        for (j, to) in front.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            s.store_i32(s.add_i32(lanes(s), s.splat_i32((start + 16 * j) as i32)), to);
        }
    } else {
        positions(word, start, front);
    }
    &mut to[count..]
}

/// Writes the numbers of the bits of `word` that are set, from `base` on, to the front of `to`, and some more of no meaning up to
/// an even number, at least two; returns how many there are. Two at once, so that how often the loop runs is mostly foreseen.
#[inline(always)]
pub fn positions(mut word: u64, base: usize, to: &mut [i32]) -> usize {
    let n = word.count_ones() as usize;
    for to in to.as_chunks_mut::<2>().0 {
        for to in to {
            *to = base as i32 + word.trailing_zeros() as i32;
            word &= word.wrapping_sub(1);
        }
        if word == 0 {
            break;
        }
    }
    n
}
