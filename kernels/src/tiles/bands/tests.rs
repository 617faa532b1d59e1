//! Bands that ask in every way.

use super::{BANDED, Bands, Dot, MATMUL_WORDS, Matmul, PackedRows};
use crate::dispatch::{Kernel, Level};
use crate::pack::{Packed, pack_i8, packed_bytes};
use crate::reference::int8_dot;
use crate::tiles::{PackBand, row_words};
use std::{println, vec, vec::Vec};

/// A product whose bands ask in a given way.
struct Asking<'a, const ASK: usize, const ABREAST: bool>(Matmul<'a>);

impl<const ASK: usize, const ABREAST: bool> Kernel for Asking<'_, ASK, ABREAST> {
    type Output = ();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        // Nothing is compiled for the others.
        if const { matches!(S::ISA, BANDED) } {
            let bands = self.0.x.bands().unwrap();
            self.0.groups::<S, ASK, ABREAST>(s, bands);
        }
    }
}

/// Also those of other processors.
#[test]
fn every_way_of_asking_gives_the_sums() {
    let Some(level) = Level::new(BANDED) else { return println!("no {}: bands were not tested", BANDED.name()) };
    for (m, k, n) in [(13, 3, 16), (20, 70, 17), (24, 4100, 40), (40, 300, 33), (70, 20, 130), (130, 64, 50)] {
        let x: Vec<i8> = (0..m * k).map(|i| (i * 37 % 251) as i8).collect();
        let w: Vec<i8> = (0..k * n).map(|i| (i * 91 % 241) as i8).collect();
        let mut packed = vec![0; packed_bytes(1, k, n).unwrap()];
        pack_i8(&mut packed, k, n, |i, j| w[i * n + j]);
        let mut rows = vec![0; m * row_words(k).unwrap()];
        for some in (0..Bands::of(m).count()).map(|band| Bands::of(m).rows(band)) {
            let band: Vec<&[i8]> = some.clone().map(|row| &x[row * k..][..k]).collect();
            level.run(PackBand { rows: &band, words: &mut rows[some.start * row_words(k).unwrap()..] });
        }
        let check = |run: &dyn Fn(Matmul<'_>)| {
            let mut out = vec![i32::MIN; m * n];
            run(Matmul {
                x: PackedRows::new(&rows, k, m).in_bands(true),
                weights: Packed::new(&packed).unwrap().expert(0),
                panels: 0..n.div_ceil(16),
                words: &mut vec![u64::MAX / 3; MATMUL_WORDS],
                sink: &mut |finished| {
                    finished.each(|row, panel, sums| {
                        out[row * n..(row + 1) * n][16 * panel..].iter_mut().zip(sums).for_each(|(to, &sum)| *to = sum)
                    })
                },
            });
            for (at, &found) in out.iter().enumerate() {
                assert_eq!(found, int8_dot(&x[at / n * k..][..k], |i| w[i * n + at % n]), "{m} x {k} x {n} at {at}");
            }
        };
        check(&|product| level.run(Asking::<1, false>(product)));
        check(&|product| level.run(Asking::<2, false>(product)));
        check(&|product| level.run(Asking::<4, false>(product)));
        check(&|product| level.run(Asking::<2, true>(product)));
        check(&|product| level.run(Asking::<4, true>(product)));
    }
}
