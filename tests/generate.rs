//! The example `generate` as a program: flags, errors, text and JSON.

mod common;
#[path = "common/models.rs"]
mod models;
#[path = "common/program.rs"]
mod program;
use models::{Weights, tokenizer};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    program::example("generate")
}

fn generate(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one sentence of a refusal.
fn refusal(arguments: &[&str]) -> String {
    let output = generate(arguments);
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {sentence}");
    assert!(output.stdout.is_empty());
    assert!(sentence.starts_with("generate: ") && sentence.trim_end().lines().count() == 1, "{sentence}");
    sentence
}

/// A file that is removed with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("tilekern-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What stands behind a key in the JSON object, up to the end of its value.
fn value<'j>(json: &'j str, key: &str) -> &'j str {
    let start = json.find(&format!("\"{key}\": ")).unwrap_or_else(|| panic!("{key} in {json}")) + key.len() + 4;
    let (mut depth, mut text, mut escaped) = (0, false, false);
    for (i, c) in json[start..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if text => escaped = true,
            '"' => text = !text,
            '[' if !text => depth += 1,
            ']' if !text => depth -= 1,
            ',' | '}' if !text && depth == 0 => return &json[start..start + i],
            _ => {}
        }
    }
    panic!("{json}")
}

fn number(json: &str, key: &str) -> f64 {
    value(json, key).parse().unwrap()
}

fn list(json: &str, key: &str) -> Vec<String> {
    let list = value(json, key).strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap();
    list.split("], [").map(|row| row.trim_matches(['[', ']']).to_string()).collect()
}

#[test]
fn help_is_printed() {
    let help = out(&generate(&["--help"]));
    for flag in
        ["checkpoint", "tokenizer", "prompt", "steps", "temperature", "top-k", "top-p", "min-p", "seed", "isa", "threads", "json"]
    {
        assert!(help.contains(&format!("--{flag} ")), "{flag}");
    }
}

#[test]
fn the_default_model_continues_a_prompt() {
    let output = generate(&["--prompt", "In the beginning", "--steps", "20", "--temperature", "0"]);
    let text = out(&output);
    assert!(text.starts_with("In the beginning") && text.len() > "In the beginning".len() + 10, "{text}");
    let errors = String::from_utf8(output.stderr).unwrap();
    let last = errors.lines().last().unwrap();
    assert!(last.contains("prefill") && last.contains("decode") && last.matches("tokens/s").count() == 2, "{last}");
}

#[test]
fn json_says_what_was_generated() {
    let arguments = ["--prompt", "And God said", "--steps", "30", "--seed", "3"];
    let json = out(&generate(&[&arguments[..], &["--json"]].concat()));
    assert!(json.starts_with('{') && json.ends_with("}\n") && json.lines().count() == 1, "{json}");
    assert!((1..=30).contains(&value(&json, "tokens").split(',').count()));
    assert!(value(&json, "text").starts_with("[\"") && value(&json, "text").ends_with("\"]"));
    assert!(!value(&json, "text").contains("And God said"));
    for key in ["prefill_s", "decode_s", "prefill_tokens_per_s", "decode_tokens_per_s", "workspace_bytes"] {
        assert!(number(&json, key) > 0.0, "{key} in {json}");
    }
    assert_eq!(value(&json, "isa"), format!("\"{}\"", tilekern::Isa::detect().name()));
    assert_eq!(value(&json, "threads"), "1");
    // The same text without JSON.
    let text = out(&generate(&arguments));
    let generated = value(&json, "text").trim_matches(['[', ']', '"']).replace("\\n", "\n").replace("\\\"", "\"");
    assert_eq!(text, format!("And God said{generated}\n"));
}

#[test]
fn neither_threads_nor_instruction_sets_change_the_tokens() {
    let run = |more: &[&str]| {
        let json = out(&generate(&[&["--prompt=And", "--prompt=The Lord", "--steps=25", "--json"], more].concat()));
        value(&json, "tokens").to_string()
    };
    let expected = run(&[]);
    assert_eq!(run(&["--threads", "2"]), expected);
    assert_eq!(run(&["--isa", "portable"]), expected);
    assert_ne!(run(&["--seed", "1"]), expected);
}

#[test]
fn a_batch_is_its_rows() {
    let prompts = ["And", "The Lord", ""];
    let flags: Vec<&str> = prompts.iter().flat_map(|p| ["--prompt", p]).chain(["--steps", "40"]).collect();
    let text = out(&generate(&flags));
    let json = out(&generate(&[&flags[..], &["--json"]].concat()));
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    assert_eq!(lines.len(), 3);
    let rows = list(&json, "tokens");
    for (i, prompt) in prompts.iter().enumerate() {
        let alone = ["--prompt", prompt, "--steps", "40"];
        let single = out(&generate(&alone));
        assert_eq!(lines[i], format!("[{i}] {}", single.trim_end_matches('\n').replace('\n', "\\n")));
        let single = out(&generate(&[&alone[..], &["--json"]].concat()));
        assert_eq!(list(&single, "tokens"), [rows[i].clone()]);
    }
}

#[test]
fn nothing_is_generated_in_no_steps() {
    assert_eq!(out(&generate(&["--prompt", "And", "--steps", "0"])), "And\n");
    let json = out(&generate(&["--prompt", "And", "--steps", "0", "--json"]));
    assert_eq!((value(&json, "tokens"), value(&json, "text")), ("[[]]", "[\"\"]"));
}

#[test]
fn a_row_stops_with_the_context() {
    let (checkpoint, tokens) =
        (File::new("context.bin", &Weights::tiny(2, true).version_0()), File::new("context.tok", &tokenizer(300)));
    let files = ["--checkpoint", checkpoint.path(), "--tokenizer", tokens.path()];
    let most = u64::MAX.to_string();
    let json = out(&generate(&[&files[..], &["--steps", &most, "--seed", "5", "--json"]].concat()));
    assert!(value(&json, "tokens").split(',').count() <= 48, "{json}");
    let long = "é".repeat(60);
    assert!(refusal(&[&files[..], &["--prompt", &long]].concat()).contains("context"));
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters() {
    let (checkpoint, tokens) =
        (File::new("bytes.bin", &Weights::tiny(3, false).version_1()), File::new("bytes.tok", &tokenizer(300)));
    let files = ["--checkpoint", checkpoint.path(), "--tokenizer", tokens.path(), "--temperature", "3"];
    let json = out(&generate(&[&files[..], &["--json"]].concat()));
    assert!(value(&json, "text").contains('\u{FFFD}'), "{json}");
    out(&generate(&files));
}

#[test]
fn wrong_flags_are_refused() {
    for (arguments, part) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["text"], "text"),
        (&["--json=false"], "--json takes no value"),
        (&["--help=x"], "--help takes no value"),
        (&["--steps"], "value"),
        (&["--steps", "-1"], "--steps"),
        (&["--steps", "many"], "many"),
        (&["--temperature", "-0.5"], "--temperature"),
        (&["--temperature", "nan"], "--temperature"),
        (&["--top-k", "1.5"], "--top-k"),
        (&["--top-p", "inf"], "--top-p"),
        (&["--min-p", ""], "--min-p"),
        (&["--seed", "-1"], "--seed"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "100000"], "--threads"),
        (&["--isa", "sse9"], "sse9"),
        (&["--isa", if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" }], "isa"),
        (&["--checkpoint", "/no/such/file"], "/no/such/file"),
        (&["--checkpoint", "/"], "not a file"),
        (&["--tokenizer", "/no/such/file"], "/no/such/file"),
    ] {
        let sentence = refusal(arguments);
        assert!(sentence.contains(part), "{arguments:?}: {sentence}");
    }
}

#[test]
fn bad_files_are_refused() {
    let weights = Weights::tiny(4, true);
    let tokens = File::new("files.tok", &tokenizer(300));
    let whole = weights.version_0();
    let mut grouped = weights.version_1();
    grouped[4] = 2;
    let mut absurd = whole.clone();
    absurd[8..12].copy_from_slice(&i32::MAX.to_le_bytes());
    let mut damaged = weights.tkm(&tokenizer(300));
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    for (name, file, part) in [
        ("truncated.bin", &whole[..whole.len() - 5], "file_bytes"),
        ("empty.bin", &[], "file_bytes"),
        ("magic.bin", b"PK\x03\x04 and so on, for a while", "magic"),
        ("version2.bin", &grouped, "version 2"),
        ("absurd.bin", &absurd, "file_bytes"),
        ("damaged.tkm", &damaged, "checksum"),
    ] {
        let file = File::new(name, file);
        let sentence = refusal(&["--checkpoint", file.path(), "--tokenizer", tokens.path()]);
        assert!(sentence.contains(part) && sentence.contains(file.path()), "{sentence}");
    }
    let file = File::new("whole.bin", &whole);
    assert!(refusal(&["--checkpoint", file.path()]).contains("--tokenizer"));
    let other = File::new("other.tok", &tokenizer(299));
    assert!(refusal(&["--checkpoint", file.path(), "--tokenizer", other.path()]).contains("tokenizer"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = program()
        .args(["--steps", "400", "--prompt", "a", "--prompt", "b"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!errors.contains("panicked"), "{errors}");
}
