//! Which instruction set runs: [`Isa`] is a name, [`Level`] a checked one, [`Kernel`] what can run on any.
//!
//! Detection happens once per process and is kept in one atomic: in a virtual machine a `cpuid` costs microseconds. It needs no
//! `std`: `cpuid` and `xgetbv` on x86-64, `ID_AA64ISAR0_EL1` on aarch64, where Linux lets programs read it.

use crate::simd::{Dot, Portable, Simd};
use core::sync::atomic::{AtomicU32, Ordering};

/// The name of an instruction set: what tests, benches and users pass around.
///
/// ```
/// use tilekern_kernels::dispatch::Isa;
///
/// assert_eq!(Isa::from_name("avx2"), Some(Isa::Avx2));
/// assert_eq!(Isa::Avx2.name(), "avx2");
/// assert!(Isa::Portable.is_available());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// The `wide` crate, on whatever the build allows.
    Portable,
    /// AVX2 with what came with it: FMA, F16C, POPCNT, LZCNT, BMI1 and BMI2.
    Avx2,
    /// The same and AVX-512 F, BW, DQ, VL.
    Avx512,
    /// AVX-512 with VNNI.
    Avx512Vnni,
    /// ARMv8 NEON.
    Neon,
    /// NEON with the dot-product extension.
    NeonDot,
    /// AVX-512 VNNI with int8 tiles on AMX.
    Avx512Amx,
}

impl Isa {
    /// All names, the portable one first.
    pub const ALL: [Isa; 7] = [Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Avx512Vnni, Isa::Neon, Isa::NeonDot, Isa::Avx512Amx];

    /// The name in command lines, bench ids and the C API.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Avx512Vnni => "avx512vnni",
            Isa::Neon => "neon",
            Isa::NeonDot => "neondot",
            Isa::Avx512Amx => "avx512amx",
        }
    }

    /// The instruction set of that [`Isa::name`].
    pub fn from_name(name: &str) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| isa.name() == name)
    }

    /// Whether this processor, and this version of the library, can run it.
    #[inline]
    pub fn is_available(self) -> bool {
        available() & self.bit() != 0
    }

    /// The best instruction set of this processor.
    #[inline]
    pub fn detect() -> Isa {
        Level::detect().isa()
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// An instruction set that this processor has: running a kernel on it cannot fail.
///
/// ```
/// use tilekern_kernels::dispatch::{Isa, Level};
///
/// let best = Level::detect();
/// assert!(best.isa().is_available());
/// assert!(Level::new(Isa::Portable).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Level {
    /// The portable token.
    Portable(Portable),
    /// AVX2.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx2(crate::simd::Avx2),
    /// AVX-512.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512(crate::simd::Avx512),
    /// AVX-512 VNNI.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512Vnni(crate::simd::Avx512Vnni),
    /// AVX-512 VNNI with tiles on AMX.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512Amx(crate::simd::Avx512Amx),
    /// NEON.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon(crate::simd::Neon),
    /// NEON with dot product.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    NeonDot(crate::simd::NeonDot),
}

impl Level {
    /// That instruction set, or `None` where the processor lacks it.
    #[inline]
    pub fn new(isa: Isa) -> Option<Level> {
        match isa {
            Isa::Portable => Some(Level::Portable(Portable::new())),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx2 => crate::simd::Avx2::new().map(Level::Avx2),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512 => crate::simd::Avx512::new().map(Level::Avx512),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512Vnni => crate::simd::Avx512Vnni::new().map(Level::Avx512Vnni),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512Amx => crate::simd::Avx512Amx::new().map(Level::Avx512Amx),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Isa::Neon => crate::simd::Neon::new().map(Level::Neon),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Isa::NeonDot => crate::simd::NeonDot::new().map(Level::NeonDot),
            _ => None,
        }
    }

    /// The best level of this processor.
    #[inline]
    pub fn detect() -> Level {
        const BEST_FIRST: [Isa; 6] = [Isa::Avx512Amx, Isa::Avx512Vnni, Isa::Avx512, Isa::Avx2, Isa::NeonDot, Isa::Neon];
        BEST_FIRST.into_iter().find_map(Level::new).unwrap_or(Level::Portable(Portable::new()))
    }

    /// The name of this level.
    pub fn isa(self) -> Isa {
        struct Name;
        impl Kernel for Name {
            type Output = Isa;
            #[inline(always)]
            fn run<S: Dot>(self, _: S) -> Isa {
                S::ISA
            }
        }
        self.run(Name)
    }

    /// Runs the kernel, compiled for this instruction set.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.on(self)
    }

    /// Compiles the kernel here for every instruction set, and runs it.
    #[inline]
    pub(crate) fn run_here<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Level::Portable(s) => s.vectorize(
                #[inline(always)]
                || kernel.run(s),
            ),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Level::Avx2(s) => s.vectorize(
                #[inline(always)]
                || kernel.run(s),
            ),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Level::Avx512(s) => s.vectorize(
                #[inline(always)]
                || kernel.run(s),
            ),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Level::Avx512Vnni(s) => match K::DOT {
                true => s.vectorize(
                    #[inline(always)]
                    || kernel.run(s),
                ),
                false => Level::Avx512(s.without_dot()).run_here(kernel),
            },
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Level::Avx512Amx(s) => match K::DOT {
                true => s.vectorize(
                    #[inline(always)]
                    || kernel.run(s),
                ),
                false => Level::Avx512(s.without_dot()).run_here(kernel),
            },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Level::Neon(s) => s.vectorize(
                #[inline(always)]
                || kernel.run(s),
            ),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Level::NeonDot(s) => match K::DOT {
                true => s.vectorize(
                    #[inline(always)]
                    || kernel.run(s),
                ),
                false => Level::Neon(s.without_dot()).run_here(kernel),
            },
        }
    }
}

/// One body for every instruction set.
///
/// `run`, and every function between it and an intrinsic, must be `#[inline(always)]`: the body is compiled once per
/// instruction set, inside a function that has its features; what is left out of line loses them.
pub trait Kernel {
    /// What the kernel returns.
    type Output;
    /// Whether the body multiplies bytes. One that does not is compiled once for instruction sets that differ in nothing else.
    const DOT: bool = true;
    /// The body.
    fn run<S: Dot>(self, s: S) -> Self::Output;

    /// Runs on a level. A kernel without a type parameter is compiled where it is defined if it says so; else, by default, wherever it
    /// is called, which is in every program and every test again.
    #[inline]
    fn on(self, level: Level) -> Self::Output
    where
        Self: Sized,
    {
        level.run_here(self)
    }
}

/// In the `impl` of a [`Kernel`] without type parameters: it is compiled once, in this crate.
macro_rules! compiled_here {
    () => {
        fn on(self, level: $crate::dispatch::Level) -> Self::Output {
            level.run_here(self)
        }
    };
}
pub(crate) use compiled_here;

/// Set once the other bits are known.
const DETECTED: u32 = 1 << 31;
/// Set where the first data cache is known to be smaller than 48 KiB.
const SMALL_FIRST_CACHE: u32 = 1 << 30;
/// Set where the second cache is known to be smaller than 1 MiB.
const SMALL_SECOND_CACHE: u32 = 1 << 29;
/// From this bit on the MiB of the largest cache that count, 0 where they are not known.
const LARGEST_CACHE: u32 = 16;
/// The most that the bits up to those three hold.
const MOST_MIB: u32 = (1 << 13) - 1;

static AVAILABLE: AtomicU32 = AtomicU32::new(0);

/// The instruction sets of this processor, one bit each, and what its caches are. Two threads that race here store the same value.
#[inline]
fn available() -> u32 {
    match AVAILABLE.load(Ordering::Relaxed) {
        0 => look(),
        known => known,
    }
}

/// Looks what there is, once.
#[cold]
fn look() -> u32 {
    let found = DETECTED | Isa::Portable.bit() | detect();
    AVAILABLE.store(found, Ordering::Relaxed);
    found
}

/// Whether a slice of 32 KiB of weights is too much for the first cache.
pub(crate) fn has_small_first_cache() -> bool {
    available() & SMALL_FIRST_CACHE != 0
}

/// Whether two pairs of panels and the rows that they meet are too much for the second cache.
pub(crate) fn has_small_second_cache() -> bool {
    available() & SMALL_SECOND_CACHE != 0
}

/// Whether so many bytes, in whole MiB, are as many as count of the largest cache, or more; never where that is not known.
pub(crate) fn outgrow_caches(bytes: usize) -> bool {
    // Elsewhere never: what would ask is not compiled there.
    let mib = if cfg!(target_arch = "x86_64") { available() >> LARGEST_CACHE & MOST_MIB } else { 0 };
    mib > 0 && bytes >> 20 >= mib as usize
}

/// Bytes of the first data cache, of the second cache and of the largest, 0 where the processor does not tell. Intel and AMD tell the same
/// in different places.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
fn caches() -> [u32; 3] {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    const TOPOLOGY: u32 = 22;
    let amd = __cpuid(0x8000_0000).eax >= 0x8000_001D && __cpuid(0x8000_0001).ecx >> TOPOLOGY & 1 == 1;
    let leaf = match amd {
        true => 0x8000_001D,
        false if __cpuid(0).eax >= 4 => 4,
        false => return [0; 3],
    };
    const NONE: u32 = 0;
    const INSTRUCTIONS: u32 = 2;
    let (mut levels, mut largest) = ([0; 8], 0);
    for index in 0..8 {
        let cache = __cpuid_count(leaf, index);
        match cache.eax & 31 {
            NONE => break,
            INSTRUCTIONS => continue,
            _ => {}
        }
        let (ways, parts, line) = ((cache.ebx >> 22) + 1, (cache.ebx >> 12 & 1023) + 1, (cache.ebx & 4095) + 1);
        let bytes = cache.ecx.saturating_add(1).saturating_mul(ways * parts).saturating_mul(line);
        levels[cache.eax as usize >> 5 & 7] = bytes;
        largest = bytes.max(largest);
    }
    [levels[1], levels[2], largest]
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
fn detect() -> u32 {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    let has = |word: u32, bits: &[u32]| bits.iter().all(|&bit| word >> bit & 1 == 1);
    if __cpuid(0).eax < 7 {
        return 0;
    }
    let one = __cpuid(1).ecx;
    let seven = __cpuid_count(7, 0);
    let extended = if __cpuid(0x8000_0000).eax > 0x8000_0000 { __cpuid(0x8000_0001).ecx } else { 0 };
    const OSXSAVE: u32 = 27;
    if !has(one, &[OSXSAVE]) {
        return 0;
    }
    let enabled: u32;
    // SAFETY: OSXSAVE says that the operating system enabled `xgetbv`; it writes eax and edx and nothing else.
    unsafe {
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    // 1.ECX: FMA 12, POPCNT 23, AVX 28, F16C 29; 8000_0001.ECX: LZCNT 5; 7.EBX: BMI1 3, AVX2 5, BMI2 8; XCR0: XMM 1, YMM 2.
    let avx2 = has(one, &[12, 23, 28, 29]) && has(extended, &[5]) && has(seven.ebx, &[3, 5, 8]) && has(enabled, &[1, 2]);
    // 7.EBX: AVX512F 16, DQ 17, BW 30, VL 31; XCR0: opmask 5, ZMM_Hi256 6, Hi16_ZMM 7. 7.ECX: VNNI 11.
    let avx512 = avx2 && has(seven.ebx, &[16, 17, 30, 31]) && has(enabled, &[5, 6, 7]);
    let vnni = avx512 && has(seven.ecx, &[11]);
    // 7.EDX: AMX-TILE 24, AMX-INT8 25; XCR0: configuration 17, tiles 18. The operating system is asked last, and only then.
    let tiles = vnni && has(seven.edx, &[24, 25]) && has(enabled, &[17, 18]) && crate::simd::permitted();
    // A build of the tests for tests/amx/emulator.c takes the unit for present.
    let amx = tiles || vnni && cfg!(amx_emulated);
    let [first, second, largest] = caches();
    let small = |bytes, least, bit| if (1..least).contains(&bytes) { bit } else { 0 };
    let small = small(first, 48 << 10, SMALL_FIRST_CACHE) | small(second, 1 << 20, SMALL_SECOND_CACHE);
    // With AMX a larger cache is a server's, shared by many cores, and reads from it come from afar.
    let most = if amx { 64 } else { MOST_MIB };
    let largest = (largest >> 20).min(most) << LARGEST_CACHE;
    [(avx2, Isa::Avx2), (avx512, Isa::Avx512), (vnni, Isa::Avx512Vnni), (amx, Isa::Avx512Amx)]
        .into_iter()
        .fold(small | largest, |found, (has, isa)| if has { found | isa.bit() } else { found })
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", not(miri)))]
fn detect() -> u32 {
    Isa::Neon.bit() | if crate::simd::has_dot_product() { Isa::NeonDot.bit() } else { 0 }
}

#[cfg(any(
    miri,
    not(any(all(target_arch = "x86_64", target_feature = "sse2"), all(target_arch = "aarch64", target_feature = "neon")))
))]
fn detect() -> u32 {
    0
}

#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod tests;
