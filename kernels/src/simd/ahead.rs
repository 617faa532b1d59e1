//! What a block of a product asks for while it computes.

use core::ops::Range;

/// Weights that come next, which blocks ask for while they multiply: in all of [`Ahead::PLACES`] at once, for memory is read the faster
/// the more pages are, and each block its share of every place.
///
/// ```
/// use tilekern_kernels::simd::Ahead;
///
/// let lines = [[0; 64]; 64];
/// assert_eq!(Ahead::share(&lines, 1, 2).lines(), 4..8);
/// assert_eq!(Ahead::NONE.lines(), 0..0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    all: &'a [[i8; 64]],
    from: usize,
    to: usize,
}

impl<'a> Ahead<'a> {
    /// Equal parts of the lines, one behind the other.
    pub const PLACES: usize = 8;

    /// Nothing comes.
    pub const NONE: Ahead<'static> = Ahead { all: &[], from: 0, to: 0 };

    /// The share of block `i` of `blocks` in all these lines.
    ///
    /// # Panics
    ///
    /// If `i` is none of them.
    #[inline(always)]
    pub fn share(all: &'a [[i8; 64]], i: usize, blocks: usize) -> Ahead<'a> {
        assert!(i < blocks, "a block of {blocks}");
        let place = all.len() / Self::PLACES;
        Ahead { all, from: place * i / blocks, to: place * (i + 1) / blocks }
    }

    /// Which lines of each place are asked for.
    #[inline(always)]
    pub fn lines(&self) -> Range<usize> {
        self.from..self.to
    }

    /// Whether nothing comes.
    #[inline(always)]
    pub(super) fn is_nothing(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of the first place, and bytes from a place to the next.
    #[inline(always)]
    pub(super) fn first_place(&self) -> (&'a [[i8; 64]], usize) {
        (&self.all[self.lines()], size_of_val(&self.all[..self.all.len() / Self::PLACES]))
    }
}

#[cfg(test)]
mod tests {
    use super::Ahead;

    #[test]
    fn blocks_share_each_place() {
        let all = [[0; 64]; 8 * 13 + 5];
        for blocks in 1..=20 {
            let mut asked = 0;
            for i in 0..blocks {
                let share = Ahead::share(&all, i, blocks);
                assert_eq!(share.lines().start, asked, "{i} of {blocks}");
                asked = share.lines().end;
                assert!(!share.is_nothing());
                assert_eq!(share.first_place(), (&all[share.lines()], 13 * 64));
            }
            assert_eq!(asked, 13, "{blocks}");
        }
        assert!(Ahead::NONE.is_nothing());
        assert_eq!(Ahead::NONE.first_place(), (&[][..], 0));
    }
}
