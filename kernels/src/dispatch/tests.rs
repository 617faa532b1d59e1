//! What `cpuid` says of the caches, against what Linux says.

use super::{Isa, caches, has_small_first_cache, has_small_second_cache, outgrow_caches};
use std::path::Path;
use std::{eprintln, fs, string::String, vec::Vec};

/// Bytes of the first data cache of a processor, of its second cache and of its largest.
fn known_to_linux(processor: &Path) -> Option<[u32; 3]> {
    let [mut first, mut second, mut largest] = [0; 3];
    for cache in fs::read_dir(processor.join("cache")).ok()?.flatten() {
        let read = |name: &str| -> Option<String> { Some(fs::read_to_string(cache.path().join(name)).ok()?.trim().into()) };
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else { continue };
        if kind == "Instruction" {
            continue;
        }
        let bytes = 1024 * size.strip_suffix('K')?.parse::<u32>().ok()?;
        largest = bytes.max(largest);
        match level.as_str() {
            "1" => first = bytes,
            "2" => second = bytes,
            _ => {}
        }
    }
    Some([first, second, largest])
}

/// Those of all processors: of one machine they may differ, and a thread goes from one to another.
fn all_known_to_linux() -> Vec<[u32; 3]> {
    let all = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    all.filter_map(|processor| known_to_linux(&processor.path())).collect()
}

#[test]
fn caches_are_those_that_linux_knows() {
    let (known, found) = (all_known_to_linux(), caches());
    if known.is_empty() || found == [0; 3] {
        eprintln!("not tested: {found:?} says cpuid, {known:?} Linux");
        return;
    }
    assert!(known.contains(&found), "{found:?} is none of {known:?}");
}

#[test]
fn sizes_are_compared_with_the_caches_that_were_found() {
    if !Isa::Avx2.is_available() {
        eprintln!("not tested: nothing is asked of such a processor");
        return;
    }
    let holds = |[first, second, largest]: [u32; 3]| {
        let most = if Isa::Avx512Amx.is_available() { 64 } else { usize::MAX };
        let (mib, is_known) = (most.min(largest as usize >> 20), largest >> 20 > 0);
        let sizes = [(mib << 20, true), ((mib + 1) << 20, true), ((mib << 20).saturating_sub(1), false), (usize::MAX, true)];
        has_small_first_cache() == (first != 0 && first < 48 << 10)
            && has_small_second_cache() == (second != 0 && second < 1 << 20)
            && sizes.into_iter().all(|(bytes, outgrow)| outgrow_caches(bytes) == (is_known && outgrow))
    };
    // They were found on a processor that need not be this one.
    let mut all = all_known_to_linux();
    all.push(caches());
    assert!(!outgrow_caches(0) && all.iter().copied().any(holds), "{all:?}");
}
