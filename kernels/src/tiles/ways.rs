//! Which way a product takes: that hangs on the instruction set, on the rows, on how the weights lie, and on the caches.

use super::bands::BANDED;
use super::cut::{STRIP, banded_strip};
use super::rows::Bands;
use super::slabs::{SLAB_ROWS, slab_strip};
use super::straight::{STRAIGHT_ROWS, straight_strip};
use super::woven::{MOST, woven_strip};
use crate::dispatch::{Isa, has_small_first_cache, has_small_second_cache, outgrow_caches};

/// How weights lie that products read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Packed, or to be packed, in panels of 16 columns.
    Panels,
    /// Row by row in stripes of 32 columns.
    Stripes,
    /// Row by row.
    Rows,
}

/// Whether a processor reads best in one stream what comes from memory: where the first cache is not small, but not with AMX.
pub(super) fn reads_best_in_one_stream() -> bool {
    !has_small_first_cache() && !Isa::Avx512Amx.is_available()
}

/// Whether a few rows should ask for weights, as they lie, before they are read, of so many bytes that are read in turn: where the first
/// cache is not small. A processor with AMX sees enough ahead of what a cache delivers.
pub(super) fn should_ask(among: usize) -> bool {
    !has_small_first_cache() && (!Isa::Avx512Amx.is_available() || outgrow_caches(among))
}

/// Whether so many rows that meet weights of this [`Lie`] should be packed in bands: where caches are large enough for two pairs of panels.
/// Without AMX stripes are met by bands only where more rows meet them than are woven, and whole rows of weights never.
///
/// ```
/// use tilekern_kernels::dispatch::Isa;
/// use tilekern_kernels::tiles::{Lie, suit_bands};
///
/// assert!(!suit_bands(Isa::Avx2, 64, Lie::Panels) && !suit_bands(Isa::Avx512Vnni, 12, Lie::Panels));
/// ```
pub fn suit_bands(isa: Isa, rows: usize, lie: Lie) -> bool {
    if isa != BANDED {
        return false;
    }
    let from = match lie {
        _ if Isa::Avx512Amx.is_available() => Bands::FROM,
        _ if has_small_first_cache() || has_small_second_cache() => return false,
        Lie::Panels => Bands::FROM,
        Lie::Stripes => few_rows(isa, lie) + 1,
        Lie::Rows => return false,
    };
    rows >= from
}

/// Of more rows stripes are packed whole on AVX2, which meets whole panels without widening them once, where the first cache is small:
/// where it is not, slices are faster.
const WHOLE_ROWS: usize = 32;

/// Columns that a [`MatmulRows`](super::MatmulRows) of so many rows takes at a time, of weights that lie so: what a task should have.
/// `None` where whole panels are or should be packed for a [`Matmul`](super::Matmul), as on a unit for tiles for more than a few rows of
/// stripes, or many of others, and on AVX2 for stripes that meet many.
///
/// ```
/// use tilekern_kernels::dispatch::Isa;
/// use tilekern_kernels::tiles::{Lie, strip_columns};
///
/// assert_eq!(strip_columns(Isa::Avx2, 64, Lie::Rows), Some(512));
/// assert_eq!(strip_columns(Isa::Avx512Amx, 64, Lie::Stripes), None);
/// assert!(strip_columns(Isa::Avx512Amx, 1, Lie::Stripes).is_some_and(|columns| columns > 512));
/// ```
pub fn strip_columns(isa: Isa, rows: usize, lie: Lie) -> Option<usize> {
    let stripes = lie == Lie::Stripes;
    let panels = match isa {
        _ if lie == Lie::Panels => return None,
        Isa::Avx512Vnni | Isa::Avx512Amx if rows <= few_rows(isa, lie) => woven_strip(rows),
        _ if rows <= few_rows(isa, lie) => straight_strip(rows),
        Isa::Avx512Amx if stripes || rows > SLAB_ROWS => return None,
        Isa::Avx2 if stripes && rows > WHOLE_ROWS && has_small_first_cache() => return None,
        Isa::Avx512Amx => slab_strip(rows),
        isa if suit_bands(isa, rows, lie) => banded_strip(rows),
        _ => STRIP,
    };
    Some(16 * panels)
}

/// The most rows that meet weights packed in registers; for more of them weights are packed once, and panels are already. A dozen where
/// they are woven on processors with AMX, which have bands and tiles for more.
///
/// ```
/// use tilekern_kernels::dispatch::Isa;
/// use tilekern_kernels::tiles::{Lie, few_rows};
///
/// assert_eq!(few_rows(Isa::Avx2, Lie::Stripes), 4);
/// assert!(few_rows(Isa::Avx512Vnni, Lie::Stripes) >= few_rows(Isa::Avx512Vnni, Lie::Rows));
/// ```
pub fn few_rows(isa: Isa, lie: Lie) -> usize {
    match (isa, lie) {
        (_, Lie::Panels) => 0,
        (Isa::Avx512Amx, _) => WOVEN_BESIDE_AMX,
        (Isa::Avx512Vnni, _) if Isa::Avx512Amx.is_available() => WOVEN_BESIDE_AMX,
        (Isa::Avx512Vnni, _) => woven_rows(lie),
        _ => STRAIGHT_ROWS,
    }
}

/// The most rows that meet woven weights on processors with AMX, by either instruction set.
const WOVEN_BESIDE_AMX: usize = 12;
const _: () = assert!(WOVEN_BESIDE_AMX < Bands::FROM);

/// The most rows that gain without AMX: more by whole rows of weights, each of which is a page, are served better by slices packed once.
/// Where the first cache is small, fewer by stripes.
fn woven_rows(lie: Lie) -> usize {
    match lie {
        Lie::Stripes if !has_small_first_cache() => MOST,
        Lie::Stripes => 32,
        _ => 20,
    }
}
