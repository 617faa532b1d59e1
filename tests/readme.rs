//! The C in the README compiles against the header.

use std::process::{Command, Stdio};
use std::{fs, io::Write};

#[test]
fn c_program() {
    let readme = include_str!("../README.md");
    let (_, rest) = readme.split_once("```c\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/ffi/include");
    assert!(fs::exists(include).unwrap());
    let flags = ["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I", include, "-xc", "-"];
    let mut cc = Command::new("cc").args(flags).stdin(Stdio::piped()).spawn().unwrap();
    cc.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    assert!(cc.wait().unwrap().success());
}
