//! What TopKTopPSample makes of the survivors of a row: the filtered copy, the middle result and the choice.

use super::key::{index_of, key, value_of};
use super::race::{Noise, race, race_row};
use super::ranks::race_sorted;
use super::sample::{Middle, Sample, first_of};
use super::select::List;
use super::share::{index_by_share, place_by_share, sorted_by_share};
use super::softmax::Weights;
use super::survivors::{Above, pieces};
use crate::element::Element;
use crate::simd::Simd;

/// The place that is chosen from a list of probabilities; `None` stands for the first maximum.
#[inline(always)]
fn choose<S: Simd>(s: S, probabilities: &[f32], noise: &Noise<'_>) -> Option<usize> {
    match *noise {
        Noise::None => None,
        Noise::Share(number) => place_by_share(s, probabilities, number),
        noise => Some(race(s, probabilities, &noise).0),
    }
}

impl<T: Element> Sample<'_, T> {
    /// The value of tokens that are not kept.
    #[inline(always)]
    pub(super) fn fill(&self) -> f32 {
        if self.stages.is_logits { f32::NEG_INFINITY } else { 0.0 }
    }

    /// Outputs of a list; `filled` says that the filtered copy has its fill.
    #[inline(always)]
    pub(super) fn finish_list_outputs<S: Simd>(&mut self, s: S, n: usize, filled: bool) {
        let fill = self.fill();
        let List { values, indices } = &self.work.list;
        let (values, indices) = (&values[..n], &indices[..n]);
        if let Some(filtered) = &mut self.filtered {
            if !filled {
                s.vectorize(
                    #[inline(always)]
                    || filtered.fill(fill),
                );
            }
            for &index in indices {
                filtered[index as usize] = self.row[index as usize].as_();
            }
        }
        if let Some(Middle { tokens, probabilities }) = &mut self.middle {
            for (token, &index) in tokens.iter_mut().zip(indices) {
                *token = index.into();
            }
            tokens[n..].fill(0);
            probabilities[..n].copy_from_slice(values);
            probabilities[n..].fill(0.0);
        }
    }

    /// Outputs and choice of a list; `None` stands for the first maximum.
    #[inline(always)]
    pub(super) fn finish_list<S: Simd>(&mut self, s: S, n: usize, filled: bool) -> Option<usize> {
        self.finish_list_outputs(s, n, filled);
        let List { values, indices } = &self.work.list;
        let place = choose(s, &values[..n], &self.noise)?;
        Some(indices[place] as usize)
    }

    /// Outputs and choice of survivors in index order.
    #[inline(always)]
    pub(super) fn finish_row<S: Simd>(&mut self, s: S, above: Above, weights: &Weights) -> Option<usize> {
        let fill = self.fill();
        if let Some(filtered) = &mut self.filtered {
            above.copy(s, self.row, fill, filtered);
        }
        if let (Noise::Share(number), None) = (self.noise, &self.middle) {
            return index_by_share(s, self.row, above, weights, number, &mut self.work.list);
        }
        if above.value == f32::NEG_INFINITY && self.middle.is_none() {
            return match self.noise {
                Noise::None => None,
                noise => Some(race_row(s, self.row, weights, &noise).0),
            };
        }
        let mut places = 0;
        let (mut token, mut best) = (None, f32::NEG_INFINITY);
        let (noise, middle) = (self.noise, &mut self.middle);
        pieces(
            s,
            self.row,
            above,
            &mut self.work.list,
            #[inline(always)]
            |list, n| {
                let (values, indices) = (&mut list.values[..n], &list.indices[..n]);
                weights.apply(s, values);
                if let Some(Middle { tokens, probabilities }) = middle {
                    for (token, &index) in tokens[places..].iter_mut().zip(indices) {
                        *token = index.into();
                    }
                    probabilities[places..places + n].copy_from_slice(values);
                }
                if !matches!(noise, Noise::None | Noise::Share(_)) {
                    let (place, score) = race(s, values, &noise.from(places));
                    if token.is_none() || score > best {
                        (token, best) = (Some(indices[place] as usize), score);
                    }
                }
                places += n;
            },
        );
        if let Some(Middle { tokens, probabilities }) = middle {
            tokens[places..].fill(0);
            probabilities[places..].fill(0.0);
            if let Noise::Share(number) = noise {
                return place_by_share(s, &probabilities[..places], number).map(|place| tokens[place] as usize);
            }
        }
        token
    }

    /// Outputs and choice of sorted survivors. Where they are asked for, they are sorted in the memory of the output.
    #[inline(always)]
    pub(super) fn finish_sorted<S: Simd, const BLOCK: usize>(
        &mut self,
        s: S,
        max: f32,
        above: Above,
        weights: Weights,
    ) -> Option<usize> {
        s.apart(
            #[inline(always)]
            move || {
                let fill = self.fill();
                if let Some(filtered) = &mut self.filtered {
                    above.copy(s, self.row, fill, filtered);
                }
                if let Some(Middle { tokens, probabilities }) = &mut self.middle {
                    let keys: &mut [u64] = bytemuck::cast_slice_mut(tokens);
                    let mut n = 0;
                    pieces(
                        s,
                        self.row,
                        above,
                        &mut self.work.list,
                        #[inline(always)]
                        |list, found| {
                            for i in 0..found {
                                keys[n + i] = key(list.values[i], list.indices[i] as usize);
                            }
                            n += found;
                        },
                    );
                    keys[..n].sort_unstable();
                    for (pr, key) in probabilities.iter_mut().zip(&mut keys[..n]) {
                        *pr = value_of(*key);
                        *key = index_of(*key) as u64;
                    }
                    weights.apply(s, &mut probabilities[..n]);
                    keys[n..].fill(0);
                    probabilities[n..].fill(0.0);
                    let place = choose(s, &probabilities[..n], &self.noise)?;
                    return Some(tokens[place] as usize);
                }
                match self.noise {
                    Noise::None => return None,
                    Noise::Share(number) => {
                        return sorted_by_share(s, self.row, (above, max), &weights, number, &mut self.work.list);
                    }
                    _ => {}
                }
                let token = first_of::<S, T, BLOCK>(s, self.row, self.work.maxima, max);
                Some(race_sorted(s, self.row, weights, self.noise, above, (token, max), &mut self.work.list))
            },
        )
    }

    /// The outputs of an empty row.
    #[inline(always)]
    pub(super) fn write_nothing(&mut self) {
        let fill = self.fill();
        if let Some(filtered) = &mut self.filtered {
            filtered.fill(fill);
        }
        if let Some(Middle { tokens, probabilities }) = &mut self.middle {
            tokens.fill(0);
            probabilities.fill(0.0);
        }
    }
}
