//! The example `sample` as a program: its rows, files of numpy, text, and what it refuses.

#[path = "common/program.rs"]
mod program;

use half::f16;
use std::io::Write;
use std::process::Stdio;

/// What the program prints for these arguments and this input, and whether it succeeds.
fn sample(arguments: &[&str], input: impl AsRef<[u8]>) -> (bool, String) {
    let mut program = program::example("sample");
    let mut child = program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    let output = child.wait_with_output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// How many tokens each row kept, and the tokens chosen.
fn rows(arguments: &[&str], input: impl AsRef<[u8]>) -> Vec<(usize, Vec<usize>)> {
    let (success, text) = sample(arguments, input);
    assert!(success, "{text}");
    let line = |line: &str| {
        let (kept, chosen) = line.split_once(": ").unwrap().1.split_once(" kept, chosen ").unwrap();
        let kept = kept.split(' ').next().unwrap().parse().unwrap();
        (kept, chosen.split(' ').map(|token| token.parse().unwrap()).collect())
    };
    text.lines().map(line).collect()
}

/// The rows that the program carries: the last 3 * 512 halves of the file.
fn carried() -> Vec<Vec<f64>> {
    let file = include_bytes!("../assets/logits.npy");
    let numbers: Vec<f64> =
        file[file.len() - 3 * 512 * 2..].as_chunks().0.iter().map(|&x| f16::from_le_bytes(x).to_f64()).collect();
    numbers.chunks(512).map(<[f64]>::to_vec).collect()
}

/// How many of the largest it takes to reach p, by sums of f64.
fn nucleus(row: &[f64], p: f64) -> usize {
    let mut e: Vec<f64> = row.iter().map(|x| x.exp()).collect();
    e.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = e.iter().sum();
    let before = e.iter().scan(0.0, |sum, x| Some(std::mem::replace(sum, *sum + x)));
    before.take_while(|&before| before < p * all).count()
}

#[test]
fn carried_rows() {
    let logits = carried();
    let all = rows(&[], "");
    assert_eq!(all.iter().map(|row| row.0).collect::<Vec<_>>(), [512, 512, 256]);
    for (p, arguments) in [(0.9, ["--top-p", "0.9", "--count", "20"]), (0.5, ["--top-p", "0.5", "--count", "20"])] {
        for ((kept, chosen), row) in rows(&arguments, "").iter().zip(&logits) {
            assert_eq!((*kept, chosen.len()), (nucleus(row, p), 20));
            let better = |token: usize| row.iter().filter(|&&x| x > row[token]).count();
            assert!(chosen.iter().all(|&token| better(token) < *kept));
        }
    }
    for ((kept, chosen), row) in rows(&["--temperature", "0", "--top-k", "7"], "").iter().zip(&logits) {
        assert_eq!((*kept, row[chosen[0]]), (7, row.iter().copied().fold(f64::MIN, f64::max)));
    }
    // A tenth of the best: within ln 10 of it.
    let near = logits[0].iter().filter(|&&x| x >= 9.0 - 10f64.ln()).count();
    assert_eq!(rows(&["--min-p", "0.1"], "")[0].0, near);
    // Twice the temperature, twice the distance.
    let near = logits[0].iter().filter(|&&x| x >= 9.0 - 2.0 * 10f64.ln()).count();
    assert_eq!(rows(&["--min-p", "0.1", "--temperature", "2"], "")[0].0, near);
}

/// Quotients beyond f32 are not equal: what is far below the best is nothing.
#[test]
fn small_temperatures_take_the_best() {
    for (text, temperature, best) in [("1 2 3", "1e-39", 2), ("1e30 3e30 2e30", "1e-9", 1), ("-2 -1 -3", "1e-39", 1)] {
        assert_eq!(rows(&["-", "--temperature", temperature, "--count", "8"], text)[0].1, [best; 8], "{text} by {temperature}");
    }
}

#[cfg(unix)]
#[test]
fn a_name_need_not_be_a_text_and_nobody_need_read() {
    use std::os::unix::ffi::OsStrExt;
    let output = program::example("sample").arg(std::ffi::OsStr::from_bytes(b"none\xFF.npy")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("sample: none\u{FFFD}.npy: "));
    let mut program = program::example("sample");
    program.args([std::ffi::OsStr::new("--top-k"), std::ffi::OsStr::from_bytes(b"\xFF")]);
    assert_eq!(program.output().unwrap().stderr, b"sample: the value of --top-k is not UTF-8\n");
    // More than a pipe holds, into one that is closed.
    let mut child =
        program::example("sample").args(["--count", "20000"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn draws_follow_the_seed() {
    let draw = |seed| rows(&["--count", "50", "--seed", seed], "");
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
    // A row's seed is the seed and its number.
    let text = "1 2 3 4\n1 2 3 4\n";
    let (first, second) =
        (rows(&["-", "--count", "40", "--seed", "5"], text), rows(&["-", "--count", "40", "--seed", "6"], text));
    assert_eq!(first[1], second[0]);
}

#[test]
fn text() {
    assert_eq!(rows(&["-", "--temperature", "0"], "0.5, 2 1\n\n-inf\t3 3\n"), [(3, vec![1]), (2, vec![1])]);
    assert_eq!(rows(&["-"], ", ,\n5\n \n"), [(1, vec![0])]);
    let (success, why) = sample(&["-"], "1 2\n3\n");
    assert_eq!((success, why.as_str()), (false, "sample: standard input: row 1 has 1 numbers, the rows before 2\n"));
    for (text, why) in [("", "there are no logits"), ("1 two", "\"two\" is no number")] {
        assert_eq!(sample(&["-"], text), (false, format!("sample: standard input: {why}\n")));
    }
    // A file of numpy's may come that way too.
    assert_eq!(rows(&["-", "--count", "9"], include_bytes!("../assets/logits.npy")), rows(&["--count", "9"], ""));
    assert_eq!(sample(&["-"], b"\x93NUMP"), (false, "sample: standard input: neither a .npy file nor text in UTF-8\n".into()));
}

/// A file of that version.
fn npy(version: u8, descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.bytes());
    file.extend(data);
    file
}

#[test]
fn files() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows.npy");
    let name = path.to_str().unwrap();
    let of = |file: Vec<u8>| {
        std::fs::write(&path, file).unwrap();
        sample(&[name, "--temperature", "0"], "")
    };
    let floats: Vec<u8> = [1.0f32, 5.0, 2.0, 7.0, 0.0, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let halves: Vec<u8> = [1.0f32, 5.0, 2.0].iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
    let two = "row 0: 3 of 3 kept, chosen 1\nrow 1: 3 of 3 kept, chosen 0\n";
    for version in 1..=3 {
        assert_eq!(of(npy(version, "<f4", "False", "(2, 3)", &floats)), (true, two.into()));
    }
    assert_eq!(of(npy(1, "<f2", "False", "(3,)", &halves)), (true, "row 0: 3 of 3 kept, chosen 1\n".into()));
    let refusals = [
        (b"\x93NUMPX".to_vec(), "this is no .npy file"),
        (npy(4, "<f4", "False", "(2, 3)", &floats), "version 4 of the format is not known"),
        (npy(1, "<f8", "False", "(2, 3)", &floats), "little-endian float32 or float16 is expected, not <f8"),
        (npy(1, "<f4", "True", "(2, 3)", &floats), "C order is expected, not Fortran's"),
        (npy(1, "<f4", "Falsehood", "(2, 3)", &floats), "C order is expected, not Fortran's"),
        (npy(1, "<f4", "False", "(1, 2, 3)", &floats), "a rank of 1 or 2 is expected, not 3"),
        (npy(1, "<f4", "False", "(2, 4)", &floats), "the file ends too early"),
        (npy(1, "<f4", "False", "(0, 4)", &floats), "there are no logits"),
        (npy(1, "<f4", "False", "(2, 3)", &floats)[..20].to_vec(), "the file ends too early"),
    ];
    for (file, why) in refusals {
        assert_eq!(of(file), (false, format!("sample: {name}: {why}\n")));
    }
}

#[test]
fn arguments() {
    let refused = |arguments: &[&str]| {
        let (success, why) = sample(arguments, "");
        assert!(!success && why.starts_with("sample: "), "{why}");
        why
    };
    assert!(refused(&["--top-k", "1025"]).contains("--top-k expects a number from 0 to 1024"));
    assert!(refused(&["--top-p", "x"]).contains("--top-p expects a number"));
    assert!(refused(&["--temperature", "-1"]).contains("--temperature expects a number of at least 0"));
    assert!(refused(&["--count", "0"]).contains("--count expects"));
    assert!(refused(&["--nothing", "1"]).contains("there is no flag --nothing"));
    assert!(refused(&["--seed"]).contains("--seed needs a value"));
    assert!(refused(&["no-such-file.npy"]).contains("no-such-file.npy: "));
    let (success, help) = sample(&["--help"], "");
    assert!(success && help.contains("Usage: sample"));
}
