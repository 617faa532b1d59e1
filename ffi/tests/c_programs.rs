//! C and C++ programs against the shared and the static library, without a warning.

mod common;

use common::{Link, compile, is_native, passes, passes_with, succeed};
use std::process::Command;

const C: [&str; 2] = ["c99", "c11"];
const CPP: [&str; 2] = ["c++17", "c++17"];

#[test]
fn conventions() {
    passes("conventions.c", C);
}

#[test]
fn environment() {
    passes("environment.c", C);
}

#[test]
fn threads() {
    passes("threads.c", C);
}

#[test]
fn stack() {
    passes("stack.c", C);
}

#[test]
fn allocation() {
    passes("allocation.c", C);
}

#[test]
fn cost() {
    passes("cost.c", C);
}

#[test]
fn decoder() {
    passes("decoder.c", C);
}

#[test]
fn grouped_matmul() {
    passes("grouped.c", C);
}

#[test]
fn int4() {
    passes("int4.c", C);
}

#[test]
fn layer() {
    passes("layer.c", C);
}

#[test]
fn next_token() {
    passes("next_token.c", C);
}

#[test]
fn sampling() {
    passes("sampling.c", C);
}

#[test]
fn sampling_strides() {
    passes("sampling_strides.c", C);
}

#[test]
fn drawing() {
    passes("drawing.c", C);
}

#[test]
fn filters() {
    passes("filters.c", C);
}

#[test]
fn sampling_v1() {
    passes("sampling_v1.c", C);
}

#[test]
fn decoding() {
    passes_with("decoding.c", C, Some(&common::root().join("../assets/default.tkm")));
}

#[test]
fn cplusplus() {
    if !is_native() {
        println!("skipped: C only where the programs are for another processor");
        return;
    }
    passes("header.cpp", CPP);
}

#[test]
fn valgrind() {
    if !is_native() || Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind here");
        return;
    }
    for file in ["conventions.c", "sampling.c", "drawing.c", "filters.c", "sampling_v1.c"] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9"]).arg(compile(file, "c17", Link::Static));
        succeed(&mut valgrind);
    }
}

/// The lines of README.md, with the library of the tests in place of the release build.
#[test]
fn readme() {
    if !is_native() {
        println!("skipped: the lines are for this processor");
        return;
    }
    let readme = std::fs::read_to_string(common::root().join("README.md")).unwrap();
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("cc ") || line.starts_with("c++ ")).collect();
    assert_eq!(lines.len(), 5);
    let workspace = common::root().join("..");
    let mut outputs = Vec::new();
    for line in lines {
        let name = if line.contains("-o generate") { "generate" } else { "sample" };
        let program = common::scratch().join(name);
        let line = line.replace(&format!("-o {name}"), &format!("-Wall -Wextra -Werror -o {}", program.display()));
        let line = line.replace("target/release", &common::library().display().to_string());
        succeed(Command::new("sh").args(["-c", &line]).current_dir(&workspace));
        // cargo's own library path would come before the one that the line links in.
        let mut run = Command::new(&program);
        run.env_remove("LD_LIBRARY_PATH").current_dir(&workspace);
        if name == "generate" {
            run.args(["assets/default.tkm", "In the beginning", "20"]);
        }
        outputs.push(succeed(&mut run));
    }
    let text = outputs.pop().unwrap();
    assert_eq!(text, "In the beginning God created the heaven and the earth.\nAnd the earth was without form\n");
    assert!(outputs[0].starts_with("0: token 1000\n1: token "), "{}", outputs[0]);
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}");
}
