//! Whether the processor has the dot product.

/// The register that tells. Linux from 4.11 on reads it for programs; before, the instruction is an illegal one.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "none"))]
pub(crate) fn has_dot_product() -> bool {
    if !is_readable() {
        return cfg!(target_feature = "dotprod");
    }
    let features: u64;
    // SAFETY: it was asked whether this reads the register; nothing is written but `features`.
    unsafe { core::arch::asm!("mrs {}, ID_AA64ISAR0_EL1", out(reg) features, options(nomem, nostack, preserves_flags)) };
    const DOT_PRODUCT: u32 = 44;
    features >> DOT_PRODUCT & 0xF != 0
}

/// Elsewhere a program may not read the register, and the build says what the machine has: on an Apple one the dot product.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "none")))]
pub(crate) fn has_dot_product() -> bool {
    cfg!(target_feature = "dotprod")
}

/// On bare metal it is the register itself.
#[cfg(target_os = "none")]
fn is_readable() -> bool {
    true
}

/// Asks Linux for its release.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_readable() -> bool {
    const UNAME: usize = 160;
    const FIELD: usize = 65;
    let mut fields = [[0u8; FIELD]; 6];
    let status: isize;
    // SAFETY: the call writes six fields of 65 bytes, and x0.
    unsafe {
        core::arch::asm!("svc 0", in("x8") UNAME, inlateout("x0") fields.as_mut_ptr() => status, options(nostack));
    }
    status == 0 && reads_registers(&fields[2])
}

/// Whether a release, "4.9.140" or "6.1.0-tegra", is 4.11 or later.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reads_registers(release: &[u8]) -> bool {
    let number =
        |digits: &[u8]| digits.iter().fold(0u32, |n, digit| n.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    let mut numbers = release.split(|byte| !byte.is_ascii_digit()).map(number);
    (numbers.next(), numbers.next()) >= (Some(4), Some(11))
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::reads_registers;

    #[test]
    fn releases() {
        for (release, reads) in [
            ("3.18.71", false),
            ("4.1", false),
            ("4.9.140-tegra", false),
            ("4.10.17", false),
            ("4.11.0", true),
            ("4.11-rc1", true),
            ("4.19.0-gvisor", true),
            ("5.4.0-1", true),
            ("10.0.0", true),
            ("6.1\0\0", true),
            ("", false),
            ("\0\0", false),
        ] {
            assert_eq!(reads_registers(release.as_bytes()), reads, "{release:?}");
        }
    }
}
