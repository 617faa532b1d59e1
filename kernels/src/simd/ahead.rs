//! What a block of a product asks for while it computes.

use core::ops::Range;

/// Weights that come next, which blocks ask for while they multiply, each its share. They are parted into places of equal length, which
/// are asked for at once: memory is read the faster the more pages are. Where blocks are many there are fewer, so that each still has
/// something to ask for in every step.
///
/// ```
/// use tilekern_kernels::simd::Ahead;
///
/// let lines = [[0; 64]; 64];
/// let ahead = Ahead::share(&lines, 1, 2);
/// assert_eq!((ahead.places(), ahead.lines()), (8, 4..8));
/// assert_eq!(Ahead::share(&lines, 1, 16).places(), 2);
/// assert_eq!(Ahead::NONE.lines(), 0..0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    all: &'a [[i8; 64]],
    places: usize,
    from: usize,
    to: usize,
}

impl<'a> Ahead<'a> {
    /// Nothing comes.
    pub const NONE: Ahead<'static> = Ahead { all: &[], places: 2, from: 0, to: 0 };

    /// The share of block `i` of `blocks` in all these lines.
    ///
    /// # Panics
    ///
    /// If `i` is none of them.
    #[inline(always)]
    pub fn share(all: &'a [[i8; 64]], i: usize, blocks: usize) -> Ahead<'a> {
        assert!(i < blocks, "a block of {blocks}");
        let places = match blocks {
            ..=4 => 8,
            5..=8 => 4,
            _ => 2,
        };
        let place = all.len() / places;
        Ahead { all, places, from: place * i / blocks, to: place * (i + 1) / blocks }
    }

    /// Two, four or eight.
    #[inline(always)]
    pub fn places(&self) -> usize {
        self.places
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
        (&self.all[self.lines()], size_of_val(&self.all[..self.all.len() / self.places]))
    }
}

#[cfg(test)]
mod tests {
    use super::Ahead;

    #[test]
    fn blocks_share_each_place() {
        let all = [[0; 64]; 8 * 13 + 1];
        for blocks in 1..=20 {
            let (mut asked, place) = (0, [13, 26, 52][(blocks > 4) as usize + (blocks > 8) as usize]);
            for i in 0..blocks {
                let share = Ahead::share(&all, i, blocks);
                assert_eq!(share.lines().start, asked, "{i} of {blocks}");
                asked = share.lines().end;
                assert_eq!(share.places() * place, 8 * 13);
                assert!(!share.is_nothing());
                assert_eq!(share.first_place(), (&all[share.lines()], place * 64));
            }
            assert_eq!(asked, place, "{blocks}");
        }
        assert!(Ahead::NONE.is_nothing());
        assert_eq!(Ahead::NONE.first_place(), (&[][..], 0));
    }
}
