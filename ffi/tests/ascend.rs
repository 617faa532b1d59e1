//! C programs that call to an NPU: where there is no CANN, and where one is played by `c/cann.c`.

mod common;

use common::{Link, command, compile, compile_library, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program, where no variable leads to a CANN but the given directory of libraries.
fn ascend(program: &Path, libraries: Option<&Path>) -> Command {
    let mut command = command(program, libraries);
    for name in ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_OPP_PATH"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nowhere");
    command
}

/// A directory in which the library of `c/cann.c` has all the names of CANN.
fn cann() -> PathBuf {
    let directory = common::scratch().join("cann");
    std::fs::create_dir_all(&directory).unwrap();
    let library = compile_library("cann.c", &directory.join("libascendcl.so"));
    for name in ["libnnopbase.so", "libopapi.so"] {
        let link = directory.join(name);
        _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, link).unwrap();
    }
    directory
}

#[test]
fn calls_to_an_npu() {
    let cann = cann();
    for link in [Link::Shared, Link::Static] {
        let program = compile("ascend.c", "c11", link);
        print!("{}", succeed(ascend(&program, Some(&cann)).arg("cann")));
        if Path::new("/usr/local/Ascend").exists() {
            println!("skipped: there may be a CANN here");
            continue;
        }
        let output = ascend(&program, None).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // Nothing is printed, by whoever.
        assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    }
}
