//! What phase one refuses, and with which code. Nothing here has memory: the first phase looks at descriptions alone.

mod grouped;
mod random;
mod sampling;

use crate::common::{acl, message};
use crate::device::{Tensor, View, phase_one};
use core::ptr::null_mut;
use tilekern_acl::*;

/// Named descriptions; without one the parameter is null.
#[derive(Clone)]
struct Parameters(Vec<(&'static str, Option<View>)>);

/// Their handles.
struct Handles(Vec<(&'static str, Option<Tensor>)>);

impl Parameters {
    fn new(all: &[(&'static str, &[i64], aclDataType)]) -> Parameters {
        Parameters(all.iter().map(|&(name, shape, dtype)| (name, Some(View::contiguous(shape, dtype)))).collect())
    }

    /// The same with another description; a name that is new is one more.
    fn with(&self, name: &'static str, view: Option<View>) -> Parameters {
        let mut changed = self.clone();
        changed.0.retain(|(known, _)| *known != name);
        changed.0.push((name, view));
        changed
    }

    fn shaped(&self, name: &'static str, shape: &[i64]) -> Parameters {
        let dtype = self.view(name).dtype;
        self.with(name, Some(View::contiguous(shape, dtype)))
    }

    fn typed(&self, name: &'static str, dtype: aclDataType) -> Parameters {
        let view = View { dtype, ..self.view(name) };
        self.with(name, Some(view))
    }

    fn without(&self, name: &'static str) -> Parameters {
        self.with(name, None)
    }

    fn view(&self, name: &str) -> View {
        self.0.iter().find(|(known, _)| *known == name).unwrap().1.clone().unwrap()
    }

    fn describe(&self) -> Handles {
        Handles(self.0.iter().map(|(name, view)| (*name, view.as_ref().map(|view| view.describe(null_mut())))).collect())
    }
}

impl Handles {
    /// Null for a parameter that is not there.
    fn get(&self, name: &str) -> *mut aclTensor {
        let found = self.0.iter().find(|(known, _)| *known == name).and_then(|(_, tensor)| tensor.as_ref());
        found.map_or(null_mut(), |tensor| tensor.0)
    }
}

/// The status of phase one; an executor that it made is destroyed.
fn status(call: impl FnOnce(*mut u64, *mut *mut aclOpExecutor) -> i32) -> i32 {
    match phase_one(call) {
        Ok(call) => acl!(meta::aclDestroyAclOpExecutor(call.executor)),
        Err(status) => {
            assert!(message().ends_with(&format!("({status} {})", codes::name(status))));
            status
        }
    }
}

/// Each case, and the code it is refused with.
fn table(begin: impl Fn(&Parameters) -> i32, cases: Vec<(&str, Parameters, i32)>) {
    for (what, parameters, expected) in cases {
        assert_eq!(begin(&parameters), expected, "{what}");
    }
}
