//! The probe names every kernel of `tilekern-kernels` and every operation of the host.

use std::fs;
use std::path::{Path, PathBuf};

/// All but tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("tests.rs"));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The identifiers that follow `marker` on a line that begins an implementation.
fn implemented(directory: &str, marker: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let text: String = sources(&root).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let headers = text.lines().filter(|line| line.starts_with("impl"));
    let names = headers
        .filter_map(|line| line.split_once(marker))
        .map(|(_, rest)| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>());
    names.collect()
}

fn all_named(names: &[String], probe: &str) {
    assert!(!names.is_empty());
    for name in names {
        assert!(probe.contains(&format!("::{name}")), "instantiate {name} in tests/no_std_probe");
    }
}

#[test]
fn every_kernel() {
    all_named(&implemented("kernels/src", " Kernel for "), include_str!("../src/kernels.rs"));
}

#[test]
fn every_operation() {
    all_named(&implemented("src/host", " Run<"), include_str!("../src/ops.rs"));
}
