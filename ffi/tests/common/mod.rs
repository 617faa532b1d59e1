//! Compiles C and C++ programs against the library that a nested build made, and runs them.
#![allow(dead_code)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `tilekern-ffi`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory for what the tests make.
pub fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The C compiler, and what runs its programs: another where this test itself runs under qemu.
struct Tools {
    cc: &'static str,
    target: Option<&'static str>,
    runner: Vec<String>,
}

fn tools() -> Tools {
    let runner = env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").ok().filter(|_| cfg!(target_arch = "aarch64"));
    match runner {
        Some(runner) => Tools {
            cc: "aarch64-linux-gnu-gcc",
            target: Some("aarch64-unknown-linux-gnu"),
            runner: runner.split_whitespace().map(String::from).collect(),
        },
        None => Tools { cc: "cc", target: None, runner: Vec::new() },
    }
}

/// Whether the programs run on the processor itself.
pub fn is_native() -> bool {
    tools().runner.is_empty()
}

/// The directory of `libtilekern.so` and `libtilekern.a`. `cargo test` builds neither, so they are built here.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("tilekern-ffi", "test"))
}

/// Builds the libraries of a package by a profile; their directory.
pub fn build(package: &str, profile: &str) -> PathBuf {
    let directory = scratch().parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--profile", profile, "-p", package, "--target-dir"]).arg(directory);
    cargo.current_dir(root());
    let target = tools().target;
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    succeed(&mut cargo);
    directory.join(target.unwrap_or("")).join(if profile == "release" { profile } else { "debug" })
}

/// Runs the command; what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

/// What README.md says behind its last `libtilekern.a`.
pub fn static_libraries() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("cc ")?.split_once("libtilekern.a "));
    line.expect("README.md has a static link line").1.split_whitespace().map(String::from).collect()
}

/// How a program is linked.
#[derive(Clone, Copy, PartialEq)]
pub enum Link {
    Shared,
    Static,
}

/// Compiles `tests/c/{file}` by a standard such as `c99` or `c++17`; the program.
pub fn compile(file: &str, standard: &str, link: Link) -> PathBuf {
    let tools = tools();
    let kind = if link == Link::Shared { "shared" } else { "static" };
    let program = scratch().join(format!("{}-{standard}-{kind}", file.replace('.', "-")));
    let mut compiler = Command::new(if standard.starts_with("c++") { "c++" } else { tools.cc });
    compiler.arg(format!("-std={standard}"));
    compiler.args(["-O1", "-g", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"]).arg(root().join("include"));
    compiler.arg(root().join("tests/c").join(file)).arg("-o").arg(&program);
    match link {
        Link::Shared => compiler.arg("-L").arg(library()).args(["-ltilekern", "-lpthread"]),
        Link::Static => compiler.arg(library().join("libtilekern.a")).args(static_libraries()),
    };
    succeed(&mut compiler);
    program
}

/// Compiles `tests/c/{file}` to a shared library.
pub fn compile_library(file: &str, options: &[&str], library: &Path) -> PathBuf {
    let mut compiler = Command::new(tools().cc);
    compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-pedantic", "-Werror", "-shared", "-fPIC"]);
    compiler.args(options).arg(root().join("tests/c").join(file)).arg("-o").arg(library);
    succeed(&mut compiler);
    library.to_path_buf()
}

/// A command that runs the program, with another directory of libraries besides.
pub fn command(program: &Path, libraries: Option<&Path>) -> Command {
    let directories = std::iter::once(library()).chain(libraries);
    let path = directories.map(|directory| directory.display().to_string()).collect::<Vec<_>>().join(":");
    let runner = tools().runner;
    let mut command = match runner.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest);
            command.arg("-E").arg(format!("LD_LIBRARY_PATH={path}")).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env("LD_LIBRARY_PATH", path);
    command
}

/// Compiles by two standards, against both libraries, and runs.
pub fn passes(file: &str, standards: [&str; 2]) {
    passes_with(file, standards, None);
}

/// The same, with an argument for the program.
pub fn passes_with(file: &str, standards: [&str; 2], argument: Option<&Path>) {
    for (standard, link) in standards.into_iter().zip([Link::Shared, Link::Static]) {
        let output = succeed(command(&compile(file, standard, link), None).args(argument));
        print!("{file} {standard}: {output}");
    }
}
