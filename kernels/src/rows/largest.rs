//! The k largest of a row, sorted, by whichever first pass suits k and the row.

use super::blocks::{block_maxima, block_maxima_and_guess, half_maxima, maxima_len};
use super::find::find_few;
use super::first_max::Summary;
use super::guess::candidates;
use super::key::ascending_to_value;
use super::select::{List, first_sorted, look_up, top_k_above, top_k_bound};
use super::threshold::range;
use crate::element::Element;
use crate::simd::Simd;

/// The block of a top-k that is large for its row.
const SMALL: usize = 16;
/// The block of 16-bit numbers, which are compared 32 at a time.
pub(super) const WIDE: usize = 128;
/// Rows longer than this have blocks enough for every top-k.
const LONG: usize = 1 << 18;

/// How many maxima a row of `n` elements needs, in blocks of 64 or more.
pub const fn workspace_maxima(n: usize) -> usize {
    maxima_len(n, if n > LONG { 64 } else { SMALL })
}

/// What the first pass left.
pub(super) enum First {
    /// Maxima of blocks.
    Blocks,
    /// Maxima of the smallest blocks.
    Small,
    /// Maxima of wide blocks, of what is above 0.
    Half,
    /// The first entries of the list, unsorted.
    Candidates(usize),
}

/// Reads a row and makes a list of its k largest, sorted; k >= 1.
#[inline(always)]
pub(super) fn largest<S: Simd, T: Element, const BLOCK: usize>(
    s: S,
    row: &[T],
    k: usize,
    maxima: &mut [f32],
    list: &mut List<'_>,
) {
    let (mut first, ..) = First::pass::<S, T, BLOCK>(s, row, ([k; 2], 0), maxima, list, false);
    first.largest::<S, T, BLOCK>(s, row, k, maxima, list);
}

/// Whether wide blocks are enough.
fn halves_suit<T>(row: &[T], k: usize) -> bool {
    k <= row.len() / (2 * WIDE)
}

impl First {
    /// Reads the row; k >= 1. Candidates will do if they are `least`. Where there are maxima of blocks and `guessed` > 0, also about the
    /// `guessed`-th largest of them.
    #[inline(always)]
    pub fn pass<S: Simd, T: Element, const BLOCK: usize>(
        s: S,
        row: &[T],
        ([k, least], guessed): ([usize; 2], usize),
        maxima: &mut [f32],
        list: &mut List<'_>,
        nan: bool,
    ) -> (First, Summary, Option<f32>) {
        let guess = |guess: f32| (guessed > 0).then_some(guess.min(f32::MAX));
        // For a list that is bounded by its k-th largest, and that above 0, maxima above 0 will do.
        if halves_suit(row, k)
            && let Some((summary, about)) = half_maxima::<S, T, WIDE>(s, row, maxima, guessed, nan)
        {
            return (First::Half, summary, guess(about));
        }
        // A good part of the blocks would have to be read again.
        let few = k > row.len() / (4 * BLOCK) && row.len() <= LONG;
        if !few {
            let (summary, about) = block_maxima_and_guess::<S, T, BLOCK>(s, row, maxima, guessed, nan);
            return (First::Blocks, summary, guess(about));
        }
        match candidates(s, row, (k, least), maxima, list, nan) {
            Some((summary, n)) => (First::Candidates(n), summary, None),
            None => (First::Small, block_maxima::<S, T, SMALL>(s, row, maxima, nan), None),
        }
    }

    /// Reads the row for a larger k, if what is known of it does not serve.
    #[inline(always)]
    pub fn again<S: Simd, T: Element, const BLOCK: usize>(
        self,
        s: S,
        row: &[T],
        k: usize,
        maxima: &mut [f32],
        list: &mut List<'_>,
    ) -> First {
        match self {
            First::Half if halves_suit(row, k) => self,
            // To look through half of the blocks is less work than to read the row again.
            First::Blocks if k <= row.len() / (2 * BLOCK) => self,
            _ => First::pass::<S, T, BLOCK>(s, row, ([k; 2], 0), maxima, list, false).0,
        }
    }

    /// Makes a list of all that reach some value, in index order, if these are few and there are maxima of blocks; returns how many.
    #[inline(always)]
    pub fn near<S: Simd, T: Element, const BLOCK: usize>(
        &self,
        s: S,
        row: &[T],
        least: f32,
        maxima: &[f32],
        list: &mut List<'_>,
    ) -> Option<usize> {
        /// Blocks, and then elements.
        const FEW: [usize; 2] = [96, 128];
        let n = match self {
            First::Blocks => find_few::<S, T, BLOCK>(s, row, maxima, least, list, FEW)?,
            // The size is a constant: of wider types it never is one, and no code is made for it.
            First::Half if size_of::<T>() == 2 && least > 0.0 => find_few::<S, T, WIDE>(s, row, maxima, least, list, FEW)?,
            _ => return None,
        };
        // Whole vectors: how often a loop turns is then mostly foreseen.
        let padded = n.next_multiple_of(16);
        look_up(s, row, &list.indices[..padded], &mut list.values[..padded]);
        Some(n)
    }

    /// Makes a list of the k largest and perhaps some that come next. Candidates need no bound for that.
    #[inline(always)]
    pub fn largest<S: Simd, T: Element, const BLOCK: usize>(
        &mut self,
        s: S,
        row: &[T],
        k: usize,
        maxima: &mut [f32],
        list: &mut List<'_>,
    ) {
        let least = match self {
            First::Candidates(_) => f32::NEG_INFINITY,
            _ => self.bound::<S, T, BLOCK>(s, row, k, maxima, list),
        };
        self.list::<S, T, BLOCK>(s, row, (k, least), maxima, list);
    }

    /// A value that at least k elements reach, and not many more.
    #[inline(always)]
    pub fn bound<S: Simd, T: Element, const BLOCK: usize>(
        &mut self,
        s: S,
        row: &[T],
        k: usize,
        maxima: &mut [f32],
        list: &mut List<'_>,
    ) -> f32 {
        if let First::Half = self {
            let least = top_k_bound::<S, WIDE>(s, row.len(), k, maxima, list);
            if least > 0.0 {
                return least;
            }
            block_maxima::<S, T, BLOCK>(s, row, maxima, false);
            *self = First::Blocks;
        }
        match *self {
            First::Candidates(n) => ascending_to_value(range(s, &list.values[..n]).0),
            First::Small => top_k_bound::<S, SMALL>(s, row.len(), k, maxima, list),
            _ => top_k_bound::<S, BLOCK>(s, row.len(), k, maxima, list),
        }
    }

    /// Makes a list of the k largest and perhaps some that come next, given the bound; returns how many are listed.
    #[inline(always)]
    pub fn list<S: Simd, T: Element, const BLOCK: usize>(
        &self,
        s: S,
        row: &[T],
        (k, least): (usize, f32),
        maxima: &[f32],
        list: &mut List<'_>,
    ) -> usize {
        match *self {
            First::Candidates(n) => first_sorted(s, list, n, k),
            First::Small => top_k_above::<S, T, SMALL>(s, row, k, maxima, least, list),
            First::Blocks => top_k_above::<S, T, BLOCK>(s, row, k, maxima, least, list),
            First::Half => top_k_above::<S, T, WIDE>(s, row, k, maxima, least, list),
        }
    }
}
