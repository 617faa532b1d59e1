//! The race of a nucleus that goes on far beyond its first ranks, which hold most of it: mostly one of these wins, wherever it ends.
//!
//! What is heavier than a rank's weight, and that weight itself, add up to no more than all that is not listed: so of most ranks a
//! noise that lets them win would have to be tinier than it is. Of the few that are left a count tells that the element of the rank is
//! too light.

use super::front::sum;
use super::lead::{NEAR, certain_lead};
use super::race::Noise;
use super::select::{List, first_sorted};
use super::shortlist::{COUNTS, largest_below, look};
use super::softmax::Weights;
use super::{each_hit, hits, vectors};
use crate::element::Element;
use crate::philox::Exponential;
use crate::simd::Simd;

/// So many ranks race, at most.
const FIRST: usize = 1024;
/// Ranks that are looked at with one bound.
const PART: usize = 1024;
/// Ranks that are compared at once.
const AT_ONCE: usize = 512;
/// More than all roundings of a bound.
const SLACK: f64 = 1.0 + 1e-5;

/// A row, and how it is raced.
pub struct FirstRanks<'a, T> {
    /// The row.
    pub row: &'a [T],
    /// Of its elements, but for a common factor.
    pub weights: &'a Weights,
    /// By rank.
    pub noise: &'a Noise<'a>,
    /// At least what all elements weigh together.
    pub whole: f64,
    /// Ranks behind this are not in the race.
    pub most: usize,
}

/// Ranks behind the first that could win by their noise.
struct Rivals {
    all: [(usize, f32); COUNTS],
    n: usize,
}

impl Rivals {
    /// Takes, of 16 noises of ranks, those up to a limit.
    #[inline(always)]
    fn meet<S: Simd>(&mut self, s: S, noise: S::F32, first: usize, len: usize, limit: f32) {
        each_hit(
            s,
            hits(s, s.le(noise, s.splat(limit)), len),
            noise,
            #[inline(always)]
            |lane, noise| {
                if let Some(to) = self.all.get_mut(self.n) {
                    *to = (first + lane, noise);
                }
                self.n += 1;
            },
        );
    }
}

impl<T: Element> FirstRanks<'_, T> {
    /// The index of the winner, if it is one of the first `n` of the list and surely wins against all ranks behind. Those are all elements
    /// from some value on, at most half of the list, and stay. The list is lost.
    #[inline(always)]
    pub fn winner<S: Simd>(&self, s: S, n: usize, list: &mut List<'_>) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                let n = first_sorted(s, list, n, n.min(FIRST)).min(FIRST);
                let (values, e) = list.weigh(s, n, self.weights);
                let (place, score) = certain_lead(s, e, self.noise)?;
                let (last, lightest, rest) = (*values.last()?, *e.last()?, self.whole - sum(s, e));
                let token = list.indices[place] as usize;
                let least = score * NEAR;
                let rivals = self.rivals(s, n, [lightest.into(), rest].map(|weight| weight / f64::from(least) * SLACK));
                let (mut too_light, rivals) = ([f32::INFINITY; COUNTS], rivals.all.get(..rivals.n)?);
                for (to, &(_, noise)) in too_light.iter_mut().zip(rivals) {
                    *to = largest_below(s, self.weights, noise, least, (f32::NEG_INFINITY, last))?;
                }
                if rivals.is_empty() {
                    return Some(token);
                }
                let (above, _) = look(s, self.row, too_light, f32::INFINITY, list)?;
                above.iter().zip(rivals).all(|(above, (rank, _))| above <= rank).then_some(token)
            },
        )
    }

    /// The ranks from `first` on whose noise is at most the first limit, and at most the second over their number by then.
    #[inline(always)]
    fn rivals<S: Simd>(&self, s: S, first: usize, [single, shared]: [f64; 2]) -> Rivals {
        let mut rivals = Rivals { all: [(0, 0.0); COUNTS], n: 0 };
        for start in (first..self.most).step_by(PART) {
            let limit = single.min(shared / (start - first + 1) as f64);
            let (n, most) = (PART.min(self.most - start), limit as f32 * SLACK as f32);
            match self.noise.from(start) {
                Noise::Drawn { numbers, first } => numbers.reaching(
                    s,
                    first,
                    n,
                    Exponential::least_word(limit),
                    #[inline(always)]
                    |span, words| {
                        rivals.meet(s, Exponential::of_words(s, words), start + span.at, span.len, most);
                        Exponential::least_word(limit)
                    },
                ),
                noise => meet_part(s, &noise, n, start, most, &mut rivals),
            }
        }
        rivals
    }
}

/// The ranks of a part, which begins at `start`, whose noise is at most the limit.
#[inline(always)]
fn meet_part<S: Simd>(s: S, noise: &Noise<'_>, n: usize, start: usize, limit: f32, rivals: &mut Rivals) {
    for at in (0..n).step_by(AT_ONCE) {
        let len = AT_ONCE.min(n - at);
        if noise.from(at).comes_near(s, len, limit) {
            vectors(
                len,
                #[inline(always)]
                |span| rivals.meet(s, noise.at(s, span.moved(at)), start + at + span.at, span.len, limit),
            );
        }
    }
}
