//! A struct of an earlier size is completed with the defaults; one of no published size is refused.
#![allow(dead_code)]

#[path = "../src/args.rs"]
mod args;

use args::{Args, read};
use tilekern::Status;

#[derive(Clone, Copy)]
#[repr(C)]
struct First {
    struct_size: usize,
    eps: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Second {
    struct_size: usize,
    eps: f64,
    scale: f64,
}

// SAFETY: the fields of the first size come first, and all are numbers.
unsafe impl Args for Second {
    const SIZES: &'static [usize] = &[size_of::<First>(), size_of::<Second>()];
    const INIT: Second = Second { struct_size: size_of::<Second>(), eps: 1e-5, scale: 3.0 };
}

#[test]
fn an_earlier_size_gets_the_defaults() {
    let first = First { struct_size: size_of::<First>(), eps: 0.5 };
    // SAFETY: a struct of the first size, as it says.
    let both = unsafe { read("args", (&raw const first).cast::<Second>()) }.unwrap();
    assert_eq!((both.eps, both.scale), (0.5, 3.0));
}

#[test]
fn this_size_is_copied() {
    let second = Second { struct_size: size_of::<Second>(), eps: 0.5, scale: 2.0 };
    // SAFETY: a struct of its size.
    assert_eq!(unsafe { read("args", &second) }.unwrap(), second);
}

#[test]
fn others_are_refused() {
    for size in [0, size_of::<First>() - 1, size_of::<First>() + 1, size_of::<Second>() + 8, usize::MAX] {
        let second = Second { struct_size: size, eps: 0.5, scale: 2.0 };
        // SAFETY: nothing behind the size is read.
        assert_eq!(unsafe { read("args", &second) }.unwrap_err().status(), Status::Invalid);
    }
    // SAFETY: null is refused.
    assert_eq!(unsafe { read("args", core::ptr::null::<Second>()) }.unwrap_err().status(), Status::Null);
}
