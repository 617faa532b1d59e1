//! What `cpuid` says of the caches, against what Linux says.

use super::{caches, has_small_first_cache, outgrow_caches};
use std::path::Path;
use std::{eprintln, fs, string::String, vec::Vec};

/// Bytes of the first data cache and of the largest cache of a processor.
fn known_to_linux(processor: &Path) -> Option<(u32, u32)> {
    let (mut first, mut largest) = (0, 0);
    for cache in fs::read_dir(processor.join("cache")).ok()?.flatten() {
        let read = |name: &str| -> Option<String> { Some(fs::read_to_string(cache.path().join(name)).ok()?.trim().into()) };
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else { continue };
        if kind == "Instruction" {
            continue;
        }
        let bytes = 1024 * size.strip_suffix('K')?.parse::<u32>().ok()?;
        largest = bytes.max(largest);
        if level == "1" {
            first = bytes;
        }
    }
    Some((first, largest))
}

#[test]
fn caches_are_those_that_linux_knows() {
    // Processors of one machine may differ, and a thread goes from one to another.
    let all = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let known: Vec<_> = all.filter_map(|processor| known_to_linux(&processor.path())).collect();
    if known.is_empty() {
        eprintln!("not tested: nothing in /sys tells of the caches");
        return;
    }
    assert!(known.contains(&caches()), "{:?} is none of {known:?}", caches());
}

#[test]
fn sizes_are_compared_with_the_caches_that_were_found() {
    let (first, largest) = caches();
    assert_eq!(has_small_first_cache(), first != 0 && first < 48 << 10);
    assert!(!outgrow_caches(0));
    let (mib, is_known) = (largest as usize >> 20, largest >> 20 > 0);
    for (bytes, outgrow) in
        [(mib << 20, true), ((mib + 1) << 20, true), ((mib << 20).saturating_sub(1), false), (usize::MAX, true)]
    {
        assert_eq!(outgrow_caches(bytes), is_known && outgrow, "{bytes} of {largest}");
    }
}
