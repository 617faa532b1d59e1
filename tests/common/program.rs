//! The examples as programs. `cargo test` builds them beside the test; where only the test was asked for, they are built here.

use std::process::Command;
use std::sync::Mutex;

/// An example of the package, to be given arguments.
#[allow(dead_code)]
pub fn example(name: &str) -> Command {
    example_with(name, "default")
}

/// One that needs these features.
pub fn example_with(name: &str, features: &str) -> Command {
    static BUILDING: Mutex<()> = Mutex::new(());
    const EMULATED: &str = "aarch64-unknown-linux-gnu";
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let path = profile.join("examples").join(name);
    let building = BUILDING.lock();
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-q", "-p", "tilekern", "--features", features, "--example", name, "--profile"]);
        build.arg(if profile.ends_with("release") { "release" } else { "test" });
        let mut target = profile.parent().unwrap();
        if target.ends_with(EMULATED) {
            build.args(["--target", EMULATED]);
            target = target.parent().unwrap();
        }
        assert!(build.arg("--target-dir").arg(target).status().unwrap().success());
    }
    drop(building);
    let runner = match cfg!(target_arch = "aarch64") {
        true => std::env::var("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER").unwrap_or_default(),
        false => String::new(),
    };
    let mut words = runner.split_whitespace();
    match words.next() {
        None => Command::new(path),
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(path);
            command
        }
    }
}
