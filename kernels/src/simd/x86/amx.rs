//! The tile unit of AMX: blocks of 32 rows by 2 panels, through `asm!`, since its intrinsics are unstable.
//!
//! A panel of 16 columns, `[k / 4][16][4]`, is a stack of the unit's weight tiles: 16 quads of k are 1 KiB. `tdpbssd` multiplies
//! signed by signed bytes, exactly. Nothing promises that tiles survive between two `asm!` blocks, so the loop over K lies inside
//! one.

use super::avx512::Avx512Amx;
use crate::simd::{Ahead, TileBlock, TileUnit, Tiles};
use core::arch::asm;
use core::marker::PhantomData;
use core::mem::offset_of;

/// Proves AMX-TILE and AMX-INT8, and the permission of the operating system.
#[derive(Clone, Copy, Debug)]
pub struct Amx(());

impl Amx {
    /// The token's detection asked for AMX.
    #[inline(always)]
    pub(super) fn of(_: Avx512Amx) -> Amx {
        Amx(())
    }
}

/// Whether the operating system lets this process use the tiles, asked once in [`crate::dispatch`].
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn permitted() -> bool {
    const ARCH_PRCTL: usize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let status: isize;
    // SAFETY: the call takes two numbers and touches no memory; the kernel overwrites rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => status,
            in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _, out("r11") _, options(nostack)
        );
    }
    status == 0
}

/// Elsewhere nobody is known who could be asked.
#[cfg(not(any(target_os = "linux", miri)))]
pub(crate) fn permitted() -> bool {
    false
}

/// Palette 1: tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights.
#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    column_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Bytes between a request for weights and their use where that is all that is asked for: the processor's own streams run further.
const NEAR: usize = 2048;

/// What the loop over K needs seldom, or has no register for.
struct Rarely {
    /// Behind the last line that is asked for in the first place.
    end: *const i8,
    /// Lines of each place that a step asks for; the last one of a share may go on into the next.
    lines: usize,
    sums: *mut [i32; 16],
    /// Bytes from row to row of the sums.
    pitch: usize,
    steps: usize,
    /// Not 0 for [`Ahead::NEAR`].
    near: usize,
}

/// The loop over K of one or two tiles of rows by one or two panels. Each step asks for its share of what is ahead, into L2, in all
/// its places, until that is done, or for weights that come [`NEAR`] bytes behind these.
macro_rules! multiply {
    ($zero:literal, $load:literal, $body:literal, $store:literal, $block:ident, $($rest:ident),*) => {
        match $block.adds {
            true => multiply!(@ $load, $body, $store, $block, $($rest),*),
            false => multiply!(@ $zero, $body, $store, $block, $($rest),*),
        }
    };
    (@ $start:literal, $body:literal, $store:literal, $block:ident, $w:ident, $ahead:ident, $to:ident, $to_pitch:ident) => {{
        let (x, pitch) = ($block.x.as_ptr().cast::<i8>(), 8 * $block.pitch);
        let (lines, apart) = $ahead.first_place();
        let asked = lines.as_ptr_range();
        // None where there are but four places.
        let fifth = if $ahead.places() > 4 { asked.start.cast::<i8>().wrapping_add(4 * apart) } else { core::ptr::null() };
        let rarely = Rarely {
            end: asked.end.cast(),
            lines: lines.len().div_ceil($block.steps),
            sums: $to.as_mut_ptr(),
            pitch: 64 * $to_pitch,
            steps: $block.steps,
            near: usize::from($ahead.is_near()),
        };
        // SAFETY: `self` proves the unit, set up for the rows of the block, and `multiply` the sizes: 64 bytes of each row and 1 KiB of
        // each panel for every step are read, 16 sums for each row and panel written, or read before, `rarely` is read by the places of its
        // fields. A request for a line touches no memory.
        unsafe {
            asm!(
                "mov {i}, [{rarely} + {sums}]",
                "mov {n}, [{rarely} + {pitch}]",
                $start,
                "mov {n}, [{rarely} + {steps}]",
                "2:",
                $body,
                "cmp {p}, [{rarely} + {end}]",
                "jae 4f",
                "mov {i}, [{rarely} + {lines}]",
                "3:",
                "prefetcht1 [{p}]",
                "prefetcht1 [{p} + {d}]",
                "prefetcht1 [{p} + 2*{d}]",
                "prefetcht1 [{p} + {d3}]",
                "test {q}, {q}",
                "jz 6f",
                "prefetcht1 [{q}]",
                "prefetcht1 [{q} + {d}]",
                "prefetcht1 [{q} + 2*{d}]",
                "prefetcht1 [{q} + {d3}]",
                "add {q}, 64",
                "6:",
                "add {p}, 64",
                "dec {i}",
                "jnz 3b",
                "jmp 5f",
                "4:",
                "cmp qword ptr [{rarely} + {near}], 0",
                "je 5f",
                ".set line, 0",
                ".rept 16",
                "prefetcht0 [{b0} + {NEAR} + line]",
                "prefetcht0 [{b1} + {NEAR} + line]",
                ".set line, line + 64",
                ".endr",
                "5:",
                "add {a0}, 64",
                "add {a1}, 64",
                "add {b0}, 1024",
                "add {b1}, 1024",
                "dec {n}",
                "jnz 2b",
                "mov {i}, [{rarely} + {sums}]",
                "mov {n}, [{rarely} + {pitch}]",
                $store,
                a0 = inout(reg) x => _, a1 = inout(reg) x.wrapping_add(16 * pitch) => _, pa = in(reg) pitch,
                b0 = inout(reg) $w[0].as_ptr() => _, b1 = inout(reg) $w[$w.len() - 1].as_ptr() => _, s = in(reg) 64usize,
                p = inout(reg) asked.start => _, q = inout(reg) fifth => _, d = in(reg) apart, d3 = in(reg) 3 * apart,
                rarely = in(reg) &rarely, i = out(reg) _, n = out(reg) _, NEAR = const NEAR,
                end = const offset_of!(Rarely, end), lines = const offset_of!(Rarely, lines), sums = const offset_of!(Rarely, sums),
                pitch = const offset_of!(Rarely, pitch), steps = const offset_of!(Rarely, steps), near = const offset_of!(Rarely, near),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }};
}

impl TileUnit for Amx {
    type Tiles = Configured;

    #[inline(always)]
    unsafe fn tiles(self) -> Configured {
        Configured { rows: 0, thread: PhantomData }
    }
}

/// The tiles of this thread, set up for blocks of `rows`; 0 where they are not yet.
pub struct Configured {
    rows: usize,
    thread: PhantomData<*mut ()>,
}

impl Configured {
    #[inline(always)]
    fn configure(&mut self, rows: usize) {
        let (upper, lower) = (rows.min(16) as u8, rows.saturating_sub(16).max(1) as u8);
        let mut config = Config { palette: 1, start_row: 0, reserved: [0; 14], column_bytes: [0; 16], rows: [0; 16] };
        config.column_bytes[..8].fill(64);
        config.rows[..8].copy_from_slice(&[upper, upper, lower, lower, upper, lower, 16, 16]);
        // SAFETY: `self` proves the unit; the instruction reads 64 bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly, preserves_flags)) };
        self.rows = rows;
    }
}

impl Drop for Configured {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `self` proves the unit, of which nobody else on this thread has tiles.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

impl Tiles for Configured {
    #[inline(always)]
    fn multiply<const NV: usize>(
        &mut self,
        block: TileBlock<'_>,
        w: [&[[i8; 64]]; NV],
        ahead: Ahead<'_>,
        to: &mut [[i32; 16]],
        pitch: usize,
    ) {
        const { assert!(NV == 1 || NV == 2) };
        let (rows, steps) = (block.rows, block.steps);
        assert!((1..=32).contains(&rows) && steps >= 1 && pitch >= NV);
        assert!(to.len() >= NV && (to.len() - NV) / pitch >= rows - 1);
        // By divisions, which do not overflow: a panel has 16 vectors for each step, a row 8 words.
        for v in 0..NV {
            assert!(w[v].len() / 16 >= steps);
        }
        let last = (rows - 1).checked_mul(block.pitch).and_then(|first| block.x.len().checked_sub(first));
        assert!(last.is_some_and(|words| words / 8 >= steps));
        if self.rows != rows {
            self.configure(rows);
        }
        match (rows > 16, NV) {
            (true, 2) => multiply!(
                "tilezero tmm0; tilezero tmm1; tilezero tmm2; tilezero tmm3",
                "tileloadd tmm0, [{i} + {n}*1]; tileloadd tmm1, [{i} + {n}*1 + 64]; lea {i}, [{i} + 8*{n}]; lea {i}, [{i} + 8*{n}]
                 tileloadd tmm2, [{i} + {n}*1]; tileloadd tmm3, [{i} + {n}*1 + 64]",
                "tileloadd tmm4, [{a0} + {pa}*1]; tileloadd tmm6, [{b0} + {s}*1]; tdpbssd tmm0, tmm4, tmm6
                 tileloadd tmm7, [{b1} + {s}*1]; tdpbssd tmm1, tmm4, tmm7
                 tileloadd tmm5, [{a1} + {pa}*1]; tdpbssd tmm2, tmm5, tmm6; tdpbssd tmm3, tmm5, tmm7",
                "tilestored [{i} + {n}*1], tmm0; tilestored [{i} + {n}*1 + 64], tmm1; lea {i}, [{i} + 8*{n}]; lea {i}, [{i} + 8*{n}]
                 tilestored [{i} + {n}*1], tmm2; tilestored [{i} + {n}*1 + 64], tmm3",
                block,
                w,
                ahead,
                to,
                pitch
            ),
            (true, _) => multiply!(
                "tilezero tmm0; tilezero tmm2",
                "tileloadd tmm0, [{i} + {n}*1]; lea {i}, [{i} + 8*{n}]; lea {i}, [{i} + 8*{n}]; tileloadd tmm2, [{i} + {n}*1]",
                "tileloadd tmm4, [{a0} + {pa}*1]; tileloadd tmm6, [{b0} + {s}*1]; tdpbssd tmm0, tmm4, tmm6
                 tileloadd tmm5, [{a1} + {pa}*1]; tdpbssd tmm2, tmm5, tmm6",
                "tilestored [{i} + {n}*1], tmm0; lea {i}, [{i} + 8*{n}]; lea {i}, [{i} + 8*{n}]; tilestored [{i} + {n}*1], tmm2",
                block,
                w,
                ahead,
                to,
                pitch
            ),
            (false, 2) => multiply!(
                "tilezero tmm0; tilezero tmm1",
                "tileloadd tmm0, [{i} + {n}*1]; tileloadd tmm1, [{i} + {n}*1 + 64]",
                "tileloadd tmm4, [{a0} + {pa}*1]; tileloadd tmm6, [{b0} + {s}*1]; tdpbssd tmm0, tmm4, tmm6
                 tileloadd tmm7, [{b1} + {s}*1]; tdpbssd tmm1, tmm4, tmm7",
                "tilestored [{i} + {n}*1], tmm0; tilestored [{i} + {n}*1 + 64], tmm1",
                block,
                w,
                ahead,
                to,
                pitch
            ),
            (false, _) => multiply!(
                "tilezero tmm0",
                "tileloadd tmm0, [{i} + {n}*1]",
                "tileloadd tmm4, [{a0} + {pa}*1]; tileloadd tmm6, [{b0} + {s}*1]; tdpbssd tmm0, tmm4, tmm6",
                "tilestored [{i} + {n}*1], tmm0",
                block,
                w,
                ahead,
                to,
                pitch
            ),
        }
    }
}
