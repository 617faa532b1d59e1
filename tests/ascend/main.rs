//! Dispatch to aclnn: what is called, in which order, with which descriptions, and that nothing is left behind whatever fails.
// ACL's errors carry the library's message.
#![allow(clippy::result_large_err)]

mod balance;
mod host;
mod recorder;
mod refusals;
mod runtime;
mod sequences;

#[path = "../common/program.rs"]
mod program;

use tilekern::acl::{Device, Stream, Table};

/// A stream of the recorder, whose phase one asks for that much workspace. Behind it nothing lives.
fn on_stream(workspace: u64, test: impl FnOnce(&Stream<'_>)) {
    open(&recorder::table(), workspace, test);
}

/// The same with other functions.
fn open(table: &Table, workspace: u64, test: impl FnOnce(&Stream<'_>)) {
    recorder::reset(workspace);
    let device = Device::open(table, 0).unwrap();
    let stream = Stream::new(&device).unwrap();
    test(&stream);
    drop(stream);
    drop(device);
    assert_eq!(recorder::live(), Default::default());
}
