//! C programs as users of CANN write them, against the installation: linked by the vendor's names, or loading them as they run.

use crate::common::{installation, root, scratch, succeed};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, linked to the libraries of the installation.
fn compile(source: &Path, standard: &str, libraries: &[&str]) -> PathBuf {
    compile_with(source, standard, libraries, &["-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"])
}

fn compile_with(source: &Path, standard: &str, libraries: &[&str], options: &[&str]) -> PathBuf {
    let name = source.file_stem().unwrap().to_str().unwrap();
    let program = scratch().join(format!("{name}-{standard}-{}", libraries.len()));
    let mut compiler = Command::new(if standard.starts_with("c++") { "c++" } else { "cc" });
    compiler.arg(format!("-std={standard}")).args(options).args(["-g", "-I"]);
    compiler.arg(installation().join("include")).arg(source).arg("-o").arg(&program);
    compiler.arg("-L").arg(installation().join("lib64")).args(libraries);
    succeed(&mut compiler);
    program
}

/// A program of these tests, linked by the names of CANN.
pub fn compile_test(file: &str) -> PathBuf {
    compile(&root().join("tests/c").join(file), "c99", &CANN)
}

/// The same with other options.
pub fn compile_test_with(file: &str, options: &[&str]) -> PathBuf {
    compile_with(&root().join("tests/c").join(file), "c99", &CANN, options)
}

/// A command that runs it in the environment of `set_env.sh`, and nothing else of ours.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.env_remove("LD_LIBRARY_PATH").args(["-c", ". \"$1/set_env.sh\" && exec \"$0\""]).arg(program).arg(installation());
    command
}

/// The program, which finds its functions in libraries that are loaded as it runs.
fn loaded(source: &Path) -> Command {
    let name = source.file_stem().unwrap().to_str().unwrap();
    let (object, loader) = (scratch().join(format!("{name}.so")), scratch().join("loader"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-shared", "-fPIC", "-I"]).arg(installation().join("include"));
    succeed(compiler.arg(source).arg("-o").arg(&object));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror"]).arg(root().join("tests/c/loader.c"));
    succeed(compiler.arg("-o").arg(loader.with_extension(name)).arg("-ldl"));
    let mut command = command(&loader.with_extension(name));
    command.env("PROGRAM", object);
    command
}

fn example(name: &str) -> PathBuf {
    root().join("../../examples/c").join(name)
}

const CANN: [&str; 3] = ["-lascendcl", "-lnnopbase", "-lopapi"];
const SPLIT: [&str; 5] = ["-lacl_rt", "-lnnopbase", "-lopapi_nn", "-lopapi_math", "-lopapi_transformer"];

fn vectors(name: &str) -> Value {
    let path = root().join("../../tests/data").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
}

/// The answers of two worked examples: the filter, and two draws.
fn sampling_answers() -> String {
    let examples = vectors("sampling_examples.json");
    let find =
        |name: &str| examples.as_array().unwrap().iter().find(|one| one["name"].as_str().unwrap().starts_with(name)).unwrap();
    let kept = find("Apply: k and p")["outputs"]["out"][0].as_array().unwrap();
    let kept: Vec<String> =
        kept.iter().map(|v| v.as_str().map_or_else(|| v.as_f64().unwrap().to_string(), String::from)).collect();
    let mut text = format!("kept: {}\n", kept.join(" "));
    let drawn = &find("npu_top_k_top_p_sample multiNomial")["outputs"];
    for call in ["idx_call1", "idx_call2"] {
        let tokens: Vec<String> = numbers(&drawn[call]).iter().map(i64::to_string).collect();
        text += &format!("tokens: {}\n", tokens.join(" "));
    }
    text
}

#[test]
fn sampling_example() {
    let expected = sampling_answers();
    assert!(expected.starts_with("kept: -inf 2 1 1.5 -inf -inf\ntokens: 1 1 3\n"), "{expected}");
    for (standard, libraries) in [("c99", &CANN[..]), ("c11", &SPLIT[..])] {
        assert_eq!(succeed(&mut command(&compile(&example("aclnn_top_k_top_p.c"), standard, libraries))), expected);
    }
    assert_eq!(succeed(&mut loaded(&example("aclnn_top_k_top_p.c"))), expected);
}

#[test]
fn grouped_example() {
    let v = vectors("gmm_vectors.json");
    let (q, bits) = (numbers(&v["v1_q"]), numbers(&v["v1_scale_bits"]));
    let source = example("aclnn_grouped_matmul.c");
    let linked =
        [("c99", &CANN[..]), ("c11", &SPLIT[..])].map(|(standard, libraries)| command(&compile(&source, standard, libraries)));
    for mut command in linked.into_iter().chain([loaded(&source)]) {
        let output = succeed(&mut command);
        assert_eq!(output.lines().count(), 12);
        for (row, line) in output.lines().enumerate() {
            let (scale, values) = line.split_once(": ").unwrap().1.split_once(" * ").unwrap();
            let values: Vec<i64> = values.split(' ').map(|value| value.parse().unwrap()).collect();
            let scale: f64 = scale.parse().unwrap();
            if row < 9 {
                let expected = f64::from(f32::from_bits(bits[row] as u32));
                assert_eq!(values, q[32 * row..][..32], "row {row}");
                assert!((scale - expected).abs() <= 1e-5 * expected, "row {row}: {scale}, not {expected}");
            } else {
                assert!(scale == 0.0 && values.iter().all(|&value| value == 0), "row {row} belongs to nobody");
            }
        }
    }
}

#[test]
fn examples_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind here");
        return;
    }
    for name in ["aclnn_top_k_top_p.c", "aclnn_grouped_matmul.c"] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        valgrind.args(["--show-leak-kinds=definite"]).env("LD_LIBRARY_PATH", installation().join("lib64"));
        succeed(valgrind.arg(compile(&example(name), "c17", &CANN)));
    }
}
