//! What a block of a product asks for while it computes.

use core::ops::Range;

/// Weights that come next, which blocks ask for while they multiply, each its share. They are parted into places of equal length: the
/// more pages are asked for at once, the faster memory is read. Many blocks take fewer places, so that the share of each is not too
/// short.
///
/// ```
/// use tilekern_kernels::simd::Ahead;
///
/// let lines = [[0; 64]; 64];
/// let ahead = Ahead::share(&lines, 1, 2);
/// assert_eq!((ahead.places(), ahead.lines()), (8, 4..8));
/// assert_eq!(Ahead::share(&lines, 1, 8).places(), 4);
/// assert!(Ahead::NEAR.is_near());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    all: &'a [[i8; 64]],
    places: usize,
    from: usize,
    to: usize,
    near: bool,
}

impl<'a> Ahead<'a> {
    /// What lies right behind the weights of a block, of which no more is known.
    pub const NEAR: Ahead<'static> = Ahead { all: &[], places: 4, from: 0, to: 0, near: true };

    /// The share of block `i` of `blocks` in all these lines, but for a rest of fewer than there are places.
    ///
    /// # Panics
    ///
    /// If `i` is none of them.
    #[inline(always)]
    pub fn share(all: &'a [[i8; 64]], i: usize, blocks: usize) -> Ahead<'a> {
        assert!(i < blocks, "a block of {blocks}");
        let places = if blocks > 4 { 4 } else { 8 };
        let place = all.len() / places;
        Ahead { all, places, from: place * i / blocks, to: place * (i + 1) / blocks, near: false }
    }

    /// Four or eight.
    #[inline(always)]
    pub fn places(&self) -> usize {
        self.places
    }

    /// Which lines of each place are asked for.
    #[inline(always)]
    pub fn lines(&self) -> Range<usize> {
        self.from..self.to
    }

    /// Whether this is [`Ahead::NEAR`].
    #[inline(always)]
    pub fn is_near(&self) -> bool {
        self.near
    }

    /// The lines that are asked for of the first place, and bytes from a place to the next.
    #[inline(always)]
    pub fn first_place(&self) -> (&'a [[i8; 64]], usize) {
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
            let (mut asked, place) = (0, if blocks > 4 { 26 } else { 13 });
            for i in 0..blocks {
                let share = Ahead::share(&all, i, blocks);
                assert_eq!(share.lines().start, asked, "{i} of {blocks}");
                asked = share.lines().end;
                assert_eq!(share.places() * place, 8 * 13);
                assert!(!share.is_near());
                assert_eq!(share.first_place(), (&all[share.lines()], place * 64));
            }
            assert_eq!(asked, place, "{blocks}");
        }
        assert_eq!(Ahead::NEAR.first_place(), (&[][..], 0));
    }
}
