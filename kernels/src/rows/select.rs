//! The k largest of a row, sorted, ties cut by index; and all that are at least a bound.
//!
//! Three steps, of which only the first reads the whole row: the maximum of each block of `BLOCK` elements; a bound that at least k
//! block maxima reach, hence at least k elements, so that nothing of the answer lies below it; and the elements that reach the bound,
//! from the few blocks that do. These candidates are cut to k and sorted.
//!
//! Candidates go into a list of a fixed size, in index order. When there are many, since the largest stand close together, the bound is
//! made finer. When ties fill the list, it is cut to the k best, and from then on only larger elements count: an equal one further on
//! loses by its index.

use super::blocks::{block_maxima, maxima_len};
use super::bound::bound;
use super::find::{self, find};
use super::finer::finer_bound;
use super::first_max::Summary;
use super::key::{ascending_to_value, clean, value_to_ascending};
use super::sort::sort;
use super::survivors::Above;
use super::threshold::{count, threshold};
use super::vectors;
use crate::dispatch::Kernel;
use crate::element::Element;
use crate::simd::{Dot, Simd};

/// Entries of a row: cleaned values, and where they stand.
pub struct List<'a> {
    /// As many as the indices, a power of two of at least 16; while elements are gathered perhaps more.
    pub values: &'a mut [f32],
    /// As many as the values.
    pub indices: &'a mut [i32],
}

/// The most entries that a list needs, however long the row.
const LIST: usize = 16_384;

/// Room for the list of a row of `n` elements: all of them and a block, or 16 384.
pub const fn list_len(n: usize) -> usize {
    let all = n.saturating_add(1024);
    if all < LIST { all.next_power_of_two() } else { LIST }
}

impl List<'_> {
    /// The same list, for a time.
    #[inline(always)]
    pub fn reborrow(&mut self) -> List<'_> {
        self.first(self.values.len())
    }

    /// The first `n` places, for a time.
    #[inline(always)]
    pub fn first(&mut self, n: usize) -> List<'_> {
        List { values: &mut self.values[..n], indices: &mut self.indices[..n] }
    }

    /// Appends the lanes where `m` holds to a list of `n`, which has room for 16; returns its new length.
    #[inline(always)]
    pub fn push<S: Simd>(&mut self, s: S, n: usize, m: S::Mask, v: S::F32, indices: S::I32) -> usize {
        let values = self.values[n..].first_chunk_mut::<16>().expect("room");
        s.compress(m, s.bits(v), bytemuck::cast_mut(values));
        n + s.compress(m, indices, self.indices[n..].first_chunk_mut::<16>().expect("room"))
    }

    /// Keeps, of the first `n`, the `k` best, in order. Returns a value that all of them reach and, of the others, only equals of the
    /// last one.
    #[inline(always)]
    pub fn cut<S: Simd>(&mut self, s: S, n: usize, k: usize) -> f32 {
        let (bound, reached) = threshold(s, &self.values[..n], k, 0);
        s.apart(
            #[inline(always)]
            move || {
                let above = if reached > k { count(s, &self.values[..n], next_above(bound)) } else { 0 };
                let mut best = Above { value: bound, ties: if reached > k { k - above } else { usize::MAX } };
                let mut kept = 0;
                for at in (0..n).step_by(16) {
                    let v = s.load(self.values[at..].first_chunk::<16>().expect("room"));
                    let i = s.load_i32(self.indices[at..].first_chunk::<16>().expect("room"));
                    kept = self.push(s, kept, best.mask(s, v, 16.min(n - at)), v, i);
                }
                debug_assert_eq!(kept, k);
            },
        );
        bound
    }

    /// Sorts the first `n`, at most half of the list, which are in index order. What lies behind is lost.
    #[inline(always)]
    pub fn sort<S: Simd>(&mut self, s: S, n: usize) {
        sort(s, self.values, self.indices, n);
    }
}

/// The next larger number, -0 and 0 being one.
#[inline(always)]
pub fn next_above(x: f32) -> f32 {
    ascending_to_value(value_to_ascending(x + 0.0) + 1)
}

/// The next smaller number, -0 and 0 being one.
#[inline(always)]
pub fn next_below(x: f32) -> f32 {
    ascending_to_value(value_to_ascending(-(0.0 - x)) - 1)
}

/// Appends to the first `n` of a list the elements that reach `bound`, in index order, from block `from` on for as long as a whole
/// block has room. Returns the new length and the block it came to, which is their number where all were seen.
#[inline(always)]
pub fn gather<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    bound: f32,
    from: usize,
    list: &mut List<'_>,
    n: usize,
) -> (usize, usize) {
    let (found, at) = find::<S, T, BLOCK>(s, row, maxima, bound, from, list, n);
    look_up_apart(s, row, &list.indices[n..found], &mut list.values[n..found]);
    (found, at)
}

/// Makes a list of all elements that reach `bound`, in index order, if half of it has room for them; returns how many they are. The
/// other half is left for their weights, or what sorting needs.
#[inline(always)]
pub fn gather_all<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    maxima: &[f32],
    bound: f32,
    list: &mut List<'_>,
) -> Option<usize> {
    let half = list.values.len() / 2;
    // Of long blocks not even one may have room.
    if half < find::room(BLOCK) {
        return None;
    }
    let (n, at) = gather::<S, T, BLOCK>(s, row, maxima, bound, 0, &mut list.first(half), 0);
    (at == row.len().div_ceil(BLOCK)).then_some(n)
}

/// The cleaned values at some indices, which ascend; of an index past the row anything.
#[inline(always)]
pub fn look_up<S: Simd, T: Element>(s: S, row: &[T], indices: &[i32], values: &mut [f32]) {
    /// So many are fetched before they are cleaned: a vector cannot be read at once from parts that were just written.
    const PART: usize = 64;
    #[inline(always)]
    fn of<T: Element>(row: &[T], index: i32) -> T {
        row[(index as u32 as usize).min(row.len() - 1)]
    }
    s.beside(
        #[inline(always)]
        move || {
            let (values, indices) = match const { S::IS_WIDE && size_of::<T>() == size_of::<f32>() } {
                true => look_up_wide(s, row, indices, values),
                false => (values, indices),
            };
            for (values, indices) in values.chunks_mut(PART).zip(indices.chunks(PART)) {
                let mut found = [T::NEG_INFINITY; PART];
                for (found, indices) in found.as_chunks_mut::<16>().0.iter_mut().zip(indices.chunks(16)) {
                    match (neighbours(row, indices), indices.first_chunk::<16>()) {
                        (Some(neighbours), _) => *found = *neighbours,
                        (_, Some(indices)) => {
                            for i in 0..16 {
                                found[i] = of(row, indices[i]);
                            }
                        }
                        _ => {
                            for (found, &index) in found.iter_mut().zip(indices) {
                                *found = of(row, index);
                            }
                        }
                    }
                }
                vectors(
                    values.len(),
                    #[inline(always)]
                    |span| span.store(s, clean(s, span.load(s, &found, T::NEG_INFINITY)), values),
                );
            }
        },
    )
}

/// [`look_up`] in a function of its own.
#[inline(always)]
pub fn look_up_apart<S: Simd, T: Element>(s: S, row: &[T], indices: &[i32], values: &mut [f32]) {
    s.apart(
        #[inline(always)]
        move || look_up(s, row, indices, values),
    );
}

/// The elements at 16 indices, which ascend, where they are neighbours.
#[inline(always)]
fn neighbours<'a, T>(row: &'a [T], indices: &[i32]) -> Option<&'a [T; 16]> {
    let found = row.get(indices[0] as usize..)?.first_chunk()?;
    (indices.get(15) == Some(&(indices[0] + 15))).then_some(found)
}

/// [`look_up`] of whole vectors of a row of `f32`, where one is a single register; what is left.
#[inline(always)]
fn look_up_wide<'v, 'i, S: Simd, T: Element>(
    s: S,
    row: &[T],
    indices: &'i [i32],
    values: &'v mut [f32],
) -> (&'v mut [f32], &'i [i32]) {
    let row: &[f32] = bytemuck::cast_slice(row);
    let (whole, rest) = values.split_at_mut(values.len() / 16 * 16);
    let (places, last) = indices.split_at(whole.len());
    for (values, places) in whole.as_chunks_mut::<16>().0.iter_mut().zip(places.as_chunks::<16>().0) {
        let v = match neighbours(row, places) {
            Some(neighbours) => s.load(neighbours),
            None => s.gather(row, places),
        };
        s.store(clean(s, v), values);
    }
    (rest, last)
}

/// A bound that at least k elements of a row reach and not many more, from its block maxima.
#[inline(always)]
pub fn top_k_bound<S: Simd, const BLOCK: usize>(s: S, n: usize, k: usize, maxima: &[f32], list: &mut List<'_>) -> f32 {
    let blocks = n.div_ceil(BLOCK);
    // Fewer blocks tell nothing, though the maxima are padded.
    if blocks < k { f32::NEG_INFINITY } else { bound(s, &maxima[..blocks.next_multiple_of(16)], k, list.values) }
}

/// Makes a list of the k largest elements and perhaps some that come next, sorted; 1 <= k <= `row.len()`, and the list has room for
/// k and a block. The maxima are those of [`block_maxima`]. Returns how many are listed.
#[inline(always)]
pub fn top_k<S: Simd, T: Element, const BLOCK: usize>(s: S, row: &[T], k: usize, maxima: &[f32], list: &mut List<'_>) -> usize {
    let least = top_k_bound::<S, BLOCK>(s, row.len(), k, maxima, list);
    top_k_above::<S, T, BLOCK>(s, row, k, maxima, least, list)
}

/// [`top_k`], given a bound that at least k elements reach.
#[inline(always)]
pub fn top_k_above<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    k: usize,
    maxima: &[f32],
    mut least: f32,
    list: &mut List<'_>,
) -> usize {
    let blocks = row.len().div_ceil(BLOCK);
    // Room for more than the bound lets through, and not for all that is equal.
    let room = (2 * k + 2 * BLOCK).next_power_of_two().max(1024).min(list.values.len());
    let few = room.min(4 * k + find::room(BLOCK));
    // All numbers of blocks at once: what is looked through in a row is asked for ahead.
    let mut front = List { values: &mut *list.values, indices: &mut list.indices[..few] };
    let (mut n, mut at) = gather::<S, T, BLOCK>(s, row, maxima, least, 0, &mut front, 0);
    if at < blocks {
        let finer = finer_bound::<S, T, BLOCK>(s, row, maxima, (k, least), &mut list.values[n..]);
        if finer > least {
            (n, at, least) = (0, 0, finer);
        }
    }
    while at < blocks {
        if n + find::room(BLOCK) > room {
            least = next_above(list.cut(s, n, k));
            n = k;
            // Infinities count for no more than the largest number: those that come later are behind all of the list.
            if least == f32::INFINITY {
                break;
            }
        }
        (n, at) = gather::<S, T, BLOCK>(s, row, maxima, least, at, &mut list.first(room), n);
    }
    first_sorted(s, list, n, k)
}

/// Of the first n of a list, which are in index order, the k best, sorted, or all. Returns how many.
#[inline(always)]
pub fn first_sorted<S: Simd>(s: S, list: &mut List<'_>, mut n: usize, k: usize) -> usize {
    // A few more to sort are less work than a cut, where there is room for their keys.
    let few = k.next_power_of_two().max(256).min(list.values.len() / 2);
    if n.next_power_of_two() > few {
        list.cut(s, n, k);
        n = k;
    }
    list.sort(s, n);
    n
}

/// The k largest elements of a row, sorted: their indices.
pub struct TopK<'a, T, const BLOCK: usize = 64> {
    /// The row.
    pub row: &'a [T],
    /// 1 to the length of the row.
    pub k: usize,
    /// As long as [`maxima_len`] of the row.
    pub maxima: &'a mut [f32],
    /// As long as [`list_len`] of the row, or shorter but with room for twice k as a power of two, for 32, and for k, a block (64,
    /// if that is more) and 8. The first k indices are the answer.
    pub list: List<'a>,
}

impl<T: Element, const BLOCK: usize> Kernel for TopK<'_, T, BLOCK> {
    type Output = Summary;
    const DOT: bool = false;

    #[inline(always)]
    fn run<S: Dot>(mut self, s: S) -> Summary {
        debug_assert!(self.maxima.len() >= maxima_len(self.row.len(), BLOCK));
        debug_assert!(self.list.values.len() >= (2 * self.k.next_power_of_two()).max(32).max(self.k + find::room(BLOCK)));
        let summary = block_maxima::<S, T, BLOCK>(s, self.row, self.maxima, true);
        top_k::<S, T, BLOCK>(s, self.row, self.k, self.maxima, &mut self.list);
        summary
    }
}
