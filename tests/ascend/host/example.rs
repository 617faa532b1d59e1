//! `examples/ascend.rs` as a program.

use super::library;
use crate::program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `examples/ascend.rs` prints, and whether it succeeds, where only that directory has libraries.
fn example(libraries: &Path) -> (bool, String) {
    // Away from cargo's directories, which may have the library, too.
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("example-ascend");
    std::fs::copy(program::example_with("ascend", "ascend").get_program(), &program).unwrap();
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", libraries).env("HOME", "/nowhere");
    for name in ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_example_says_where_it_runs() {
    if Path::new("/usr/local/Ascend").exists() {
        println!("skipped: there may be a CANN here");
        return;
    }
    let (succeeded, text) = example(library().parent().unwrap());
    assert!(succeeded, "{text}");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "on this processor, by libtilekern_opapi.so");
    // Of its last row one token is left, and a list of 20 around the peak ends ten places from it.
    assert_eq!((lines.len(), lines[4].ends_with(", 0 from the peak")), (5, true), "{text}");
    let distance: usize = lines[3].split(' ').nth(4).unwrap().parse().unwrap();
    assert!(distance <= 10, "{text}");
    let (succeeded, text) = example(Path::new("/nowhere"));
    assert!(!succeeded && text.contains("no CANN here: looked in LD_LIBRARY_PATH, "), "{text}");
}
