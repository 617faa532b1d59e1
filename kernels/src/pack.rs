//! The packed int8 weight: one format for every instruction set, which can be written to disk and moved between machines.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `TKPACKED` |
//! | 8..12 | version, u32, 1 |
//! | 12..16 | source of the weights, u32: 0 i8, 1 i4 (stored as i8) |
//! | 16..40 | experts, K, N, u64 each |
//! | 40..64 | zero |
//!
//! Then, for each expert, panels of 16 columns, `[N16 / 16][K64 / 4][16][4]`, and the column sums, i32 `[N16]`. K64 is K rounded up to
//! 64, N16 is N rounded up to 16, both filled with zeros. A quad of k of one panel is one 64-byte vector, 16 of them one AMX tile.
//! Everything is little-endian; the owner aligns to 64 bytes for speed, and any alignment is accepted.

mod panels;

use crate::dispatch::{Kernel, compiled_here};
use crate::reference::quantize;
use crate::simd::Dot;
use core::fmt;
pub use panels::Panels;

/// Bytes before the first panel.
pub const HEADER: usize = 64;

const MAGIC: [u8; 8] = *b"TKPACKED";
const VERSION: u32 = 1;

/// What the weights were before they were packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// Eight bits.
    I8 = 0,
    /// Four bits, stored as eight.
    I4 = 1,
}

/// Sizes of a packed weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    experts: usize,
    k: usize,
    n: usize,
}

impl Sizes {
    fn quads(self) -> usize {
        self.k.next_multiple_of(64) / 4
    }

    fn panels(self) -> usize {
        self.n.div_ceil(16)
    }

    /// Vectors of 64 bytes of one expert: panels, then sums.
    fn vectors(self) -> usize {
        self.panels() * (self.quads() + 1)
    }

    fn bytes(self) -> Option<usize> {
        let quads = self.k.checked_next_multiple_of(64)? / 4;
        let panels = self.n.checked_next_multiple_of(16)? / 16;
        let vectors = panels.checked_mul(quads.checked_add(1)?)?.checked_mul(self.experts)?;
        vectors.checked_mul(64)?.checked_add(HEADER)
    }
}

/// Bytes of a packed `[experts][k][n]`, or `None` where that overflows.
///
/// ```
/// assert_eq!(tilekern_kernels::pack::packed_bytes(1, 64, 16), Some(64 + 64 * 16 + 64));
/// ```
pub fn packed_bytes(experts: usize, k: usize, n: usize) -> Option<usize> {
    Sizes { experts, k, n }.bytes()
}

/// A packed weight whose header and length were found right; what lies behind the header is not looked at.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    body: &'a [[i8; 64]],
    among: usize,
    sizes: Sizes,
    source: Source,
}

/// Without the weights.
impl fmt::Debug for Packed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packed { sizes, source, .. } = self;
        f.debug_struct("Packed").field("sizes", sizes).field("source", source).finish_non_exhaustive()
    }
}

impl<'a> Packed<'a> {
    /// Reads the header. `None` if it is foreign or damaged, or if the length is not exactly what it says.
    pub fn new(bytes: &'a [i8]) -> Option<Packed<'a>> {
        let (head, body) = bytes.split_first_chunk::<HEADER>()?;
        let head: [u8; HEADER] = bytemuck::cast(*head);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let size = |at: usize| usize::try_from(u64::from(word(at)) | u64::from(word(at + 4)) << 32).ok();
        let source = match word(12) {
            0 => Source::I8,
            1 => Source::I4,
            _ => return None,
        };
        let sizes = Sizes { experts: size(16)?, k: size(24)?, n: size(32)? };
        let whole = head[..8] == MAGIC && word(8) == VERSION && head[40..].iter().all(|&b| b == 0);
        let fits = sizes.experts >= 1 && sizes.k >= 1 && sizes.n >= 1 && sizes.bytes() == Some(bytes.len());
        (whole && fits).then_some(Packed { body: body.as_chunks().0, among: bytes.len(), sizes, source })
    }

    /// The number of experts.
    pub fn experts(&self) -> usize {
        self.sizes.experts
    }

    /// Rows: the length of a dot product.
    pub fn k(&self) -> usize {
        self.sizes.k
    }

    /// Columns.
    pub fn n(&self) -> usize {
        self.sizes.n
    }

    /// What the weights were.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The same, one of several weights that are read in turn, of so many bytes together: where these outgrow what counts of the caches,
    /// products of a few rows read in another order. The default is what these weights have themselves.
    ///
    /// ```
    /// use tilekern_kernels::pack::{Packed, pack_i8, packed_bytes};
    ///
    /// let mut packed = vec![0; packed_bytes(1, 64, 16).unwrap()];
    /// pack_i8(&mut packed, 64, 16, |k, n| (k + n) as i8);
    /// let layers = 32;
    /// let weights = Packed::new(&packed).unwrap().among(layers * packed.len());
    /// assert_eq!(weights.expert(0).n(), 16);
    /// ```
    pub fn among(self, bytes: usize) -> Packed<'a> {
        Packed { among: bytes, ..self }
    }

    /// The weights of one expert.
    pub fn expert(&self, expert: usize) -> Panels<'a> {
        let weights = &self.body[expert * self.sizes.vectors()..];
        let sums = &weights[self.sizes.panels() * self.sizes.quads()..self.sizes.vectors()];
        Panels::new(weights, sums, self.sizes.k, self.sizes.n).before(weights, self.among)
    }
}

/// Packs `[k][n]` of int8 weights of one expert, header included. `out` is exactly [`packed_bytes`] long.
///
/// ```
/// use tilekern_kernels::pack::{Packed, pack_i8, packed_bytes};
///
/// let mut packed = vec![0; packed_bytes(1, 2, 3).unwrap()];
/// pack_i8(&mut packed, 2, 3, |k, n| (10 * k + n) as i8);
/// let packed = Packed::new(&packed).unwrap();
/// assert_eq!((packed.k(), packed.n()), (2, 3));
/// assert_eq!(format!("{packed:?}"), "Packed { sizes: Sizes { experts: 1, k: 2, n: 3 }, source: I8, .. }");
/// assert_eq!(packed.expert(0).sums(0)[..3], [10, 12, 14]);
/// ```
pub fn pack_i8(out: &mut [i8], k: usize, n: usize, weight: impl Fn(usize, usize) -> i8) {
    let sizes = Sizes { experts: 1, k, n };
    write_header(out, sizes, Source::I8);
    let (panels, sums) = out[HEADER..].as_chunks_mut().0.split_at_mut(sizes.panels() * sizes.quads());
    pack_columns(panels, sums, k, n, weight);
}

/// As [`pack_i8`] from floats, each output channel (column) quantised as a row is: its scale goes to `scales[n]`.
///
/// ```
/// use tilekern_kernels::pack::{pack_floats, packed_bytes};
///
/// let (mut packed, mut scales) = (vec![0; packed_bytes(1, 1, 2).unwrap()], [0.0; 2]);
/// pack_floats(&mut packed, 1, 2, |_, n| n as f32 * 127.0, &mut scales);
/// assert_eq!(scales, [0.0, 1.0]);
/// ```
pub fn pack_floats(out: &mut [i8], k: usize, n: usize, weight: impl Fn(usize, usize) -> f32, scales: &mut [f32]) {
    let sizes = Sizes { experts: 1, k, n };
    write_header(out, sizes, Source::I8);
    let (panels, sums) = out[HEADER..].as_chunks_mut().0.split_at_mut(sizes.panels() * sizes.quads());
    quantize_columns(panels, sums, k, n, weight, scales);
}

/// Writes the header of a packed `[experts][k][n]`: the first [`HEADER`] bytes of `out`.
pub fn pack_header(out: &mut [i8], [experts, k, n]: [usize; 3], source: Source) {
    write_header(out, Sizes { experts, k, n }, source);
}

/// Vectors of 64 bytes of a panel of depth `k`, without its sums.
pub const fn panel_vectors(k: usize) -> usize {
    k.div_ceil(64) * 16
}

/// Packs `n` neighbouring columns: `panels` holds [`panel_vectors`] for each 16 of them, `sums` one.
pub fn pack_columns(panels: &mut [[i8; 64]], sums: &mut [[i8; 64]], k: usize, n: usize, weight: impl Fn(usize, usize) -> i8) {
    if k == 0 {
        return sums.fill([0; 64]);
    }
    for (p, (panel, sums)) in panels.chunks_exact_mut(panel_vectors(k)).zip(sums).enumerate() {
        let mut total = [0i32; 16];
        for (q, vector) in panel.iter_mut().enumerate() {
            for (i, byte) in vector.iter_mut().enumerate() {
                let (column, row) = (16 * p + i / 4, 4 * q + i % 4);
                *byte = if column < n && row < k { weight(row, column) } else { 0 };
                total[i / 4] += i32::from(*byte);
            }
        }
        *sums = bytemuck::cast(total);
    }
}

/// As [`pack_columns`] from floats, each column quantised as a row is.
pub fn quantize_columns(
    panels: &mut [[i8; 64]],
    sums: &mut [[i8; 64]],
    k: usize,
    n: usize,
    weight: impl Fn(usize, usize) -> f32,
    scales: &mut [f32],
) {
    // Sixteen columns side by side; the bits of a magnitude order as it does, with a NaN above all.
    for first in (0..n).step_by(16) {
        let mut tops = [0u32; 16];
        let count = (n - first).min(16);
        for row in 0..k {
            for column in 0..count {
                tops[column] = tops[column].max(weight(row, first + column).to_bits() & 0x7FFF_FFFF);
            }
        }
        for column in 0..count {
            scales[first + column] = f32::from_bits(tops[column]) / 127.0;
        }
    }
    let scales = &*scales;
    pack_columns(panels, sums, k, n, |i, column| quantize(weight(i, column), scales[column]));
}

/// Column sums of the first `sums.len()` panels.
pub struct ColumnSums<'a> {
    /// The panels; their own sums are not looked at.
    pub panels: Panels<'a>,
    /// One for each panel.
    pub sums: &'a mut [[i8; 64]],
}

impl Kernel for ColumnSums<'_> {
    type Output = ();
    compiled_here!();

    #[inline(always)]
    fn run<S: Dot>(self, s: S) {
        let one = ones(s);
        for (p, sums) in self.sums.iter_mut().enumerate() {
            *sums = column_sums(s, one, self.panels.panel(p));
        }
    }
}

/// The sums of the columns of a panel, in four chains.
#[inline(always)]
pub(crate) fn column_sums<S: Dot>(s: S, one: S::X, panel: &[[i8; 64]]) -> [i8; 64] {
    let mut chains = [s.splat_i32(0); 4];
    for four in panel.as_chunks::<4>().0 {
        for c in 0..4 {
            chains[c] = s.dot(chains[c], one, s.weights(&four[c]));
        }
    }
    let mut lanes = [0; 16];
    s.store_i32(s.add_i32(s.add_i32(chains[0], chains[1]), s.add_i32(chains[2], chains[3])), &mut lanes);
    bytemuck::cast(lanes)
}

/// Activations that count as 1: a token may add something of its own for each weight, which [`Dot::start`] takes back elsewhere.
#[inline(always)]
pub(crate) fn ones<S: Dot>(s: S) -> S::X {
    let mut lanes = [0; 16];
    s.store_i32(s.start(s.splat_i32(1)), &mut lanes);
    s.splat_quad(&s.pack_quad([(1 + lanes[0]) as i8; 4]))
}

fn write_header(out: &mut [i8], sizes: Sizes, source: Source) {
    let mut head = [0u8; HEADER];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&(source as u32).to_le_bytes());
    for (at, size) in [(16, sizes.experts), (24, sizes.k), (32, sizes.n)] {
        head[at..at + 8].copy_from_slice(&(size as u64).to_le_bytes());
    }
    out[..HEADER].copy_from_slice(bytemuck::cast_slice(&head));
}
