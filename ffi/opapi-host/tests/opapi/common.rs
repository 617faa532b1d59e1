//! The library, built and loaded; what CANN's programs need of it; and the installation.

use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `tilekern-opapi-host`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory for what the tests make.
pub fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the command; what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

/// The directory of `libtilekern_opapi.so`. `cargo test` builds no such library, so it is built here.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let directory = scratch().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "--profile", "test", "-p", "tilekern-opapi-host", "--target-dir"]).arg(directory);
        succeed(cargo.current_dir(root()));
        directory.join("debug")
    })
}

/// The symbol, which has the prototype of the type of its name.
pub fn symbol<T: Copy>(name: &str) -> T {
    static LOADED: OnceLock<Library> = OnceLock::new();
    let load = || {
        // SAFETY: loading it runs no code of its own.
        unsafe { Library::new(library().join("libtilekern_opapi.so")) }.unwrap()
    };
    // SAFETY: `acl!` asks for the type of the symbol's name, which the library is checked against when it is compiled.
    *unsafe { LOADED.get_or_init(load).get::<T>(name) }.unwrap()
}

/// Calls a symbol of the runtime, of the descriptors or of the operators.
macro_rules! acl {
    ($module:ident::$name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the pointers of these tests are null, handles, or what they point to.
        unsafe { $crate::common::symbol::<tilekern_acl::$module::$name>(stringify!($name))($($argument),*) }
    };
}
pub(crate) use acl;

/// The last sentence on this thread.
pub fn message() -> String {
    let text = acl!(runtime::aclGetRecentErrMsg());
    // SAFETY: the function answers with a string.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// An installation, as `install.sh` lays it out: its CANN's directory.
pub fn installation() -> &'static Path {
    static INSTALLATION: OnceLock<PathBuf> = OnceLock::new();
    INSTALLATION.get_or_init(|| {
        let prefix = scratch().join("prefix");
        let _ = std::fs::remove_dir_all(&prefix);
        let mut install = Command::new("sh");
        install.arg(root().join("install.sh")).arg(&prefix).env("TILEKERN_OPAPI_LIBRARY", library().join("libtilekern_opapi.so"));
        succeed(&mut install);
        prefix.join("lib/tilekern-cann")
    })
}

/// The version whose headers are compared with.
const TORCH_NPU: &str = "torch-npu==2.14.0";

/// The include directory of ACL's public headers, out of the package torch-npu; kept beside the other things that the tests make.
pub fn acl_headers() -> Option<PathBuf> {
    let directory = scratch().join("torch-npu");
    let include = directory.join("torch_npu/include/third_party/acl/inc");
    if !include.join("acl/acl.h").exists() {
        std::fs::create_dir_all(&directory).ok()?;
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "-q",
            "--disable-pip-version-check",
            "--no-input",
            "--retries",
            "0",
            "--timeout",
            "20",
        ]);
        pip.args(["--no-deps", "--only-binary=:all:", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "-d"]);
        pip.arg(&directory).arg(TORCH_NPU);
        let extract = "import glob, os, sys, zipfile\n\
            for wheel in glob.glob('*.whl'):\n    \
                archive = zipfile.ZipFile(wheel)\n    \
                [archive.extract(name) for name in archive.namelist() if '/acl/inc/acl/' in name and name.endswith('.h')]\n    \
                os.remove(wheel)\n";
        let had = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        if !had(&mut pip) || !had(Command::new("python3").args(["-c", extract]).current_dir(&directory)) {
            return None;
        }
    }
    include.join("acl/acl.h").exists().then_some(include)
}
