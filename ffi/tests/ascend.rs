//! C programs that call to an NPU: where there is no CANN, where one is played by `c/cann.c`, and on the host's aclnn.

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

/// A directory in which that library has all the names of CANN.
fn installed(name: &str, library: &Path) -> PathBuf {
    let directory = common::scratch().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["libascendcl.so", "libnnopbase.so", "libopapi.so"] {
        let link = directory.join(name);
        _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(library, link).unwrap();
    }
    directory
}

/// The library of a package that `vendors/config.ini` lists, behind one that is not there; the directory of packages is that of
/// CANN.
fn package(cann: &Path) -> PathBuf {
    let vendors = cann.join("opp/vendors");
    let directory = vendors.join("second/op_api/lib");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(vendors.join("config.ini"), "load_priority=first,second\n").unwrap();
    compile_library("cann.c", &["-DPACKAGE"], &directory.join("libcust_opapi.so"))
}

#[test]
fn calls_to_an_npu() {
    let cann = installed("cann", &compile_library("cann.c", &[], &common::scratch().join("libcann.so")));
    let package = package(&cann);
    let newer = common::scratch().join("newer");
    std::fs::create_dir_all(newer.join("lib64")).unwrap();
    compile_library("cann.c", &[], &newer.join("lib64/libacl_rt.so"));
    for link in [Link::Shared, Link::Static] {
        let program = compile("ascend.c", "c11", link);
        let mut with_cann = ascend(&program, Some(&cann));
        with_cann.env("ASCEND_OPP_PATH", cann.join("opp")).arg("cann").arg(&package);
        print!("{}", succeed(&mut with_cann));
        // A newer runtime of another installation is not mixed in.
        succeed(with_cann.env("ASCEND_HOME_PATH", &newer));
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

#[test]
fn on_the_hosts_aclnn() {
    if !common::is_native() {
        println!("skipped: the host's aclnn is this processor's");
        return;
    }
    let aclnn = installed("aclnn", &common::build("tilekern-opapi-host", "test").join("libtilekern_opapi.so"));
    succeed(&mut ascend(&compile("npu.c", "c11", Link::Shared), Some(&aclnn)));
}
