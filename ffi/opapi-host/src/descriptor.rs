//! Descriptors: what C describes by handles of its own. Nothing is validated here; the first phase of an operator does that.

use crate::failure::Failure;
use crate::table::{Table, lock};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tilekern_acl::{aclDataType, aclFormat};

pub(crate) static TENSORS: Table<Tensor> = Table::new();
pub(crate) static SCALARS: Table<Scalar> = Table::new();
/// Of arrays only the lengths: what they hold are hints that change no result.
pub(crate) static INT_ARRAYS: Table<u64> = Table::new();
pub(crate) static FLOAT_ARRAYS: Table<u64> = Table::new();
pub(crate) static BOOL_ARRAYS: Table<u64> = Table::new();
/// The handles of the members.
pub(crate) static TENSOR_LISTS: Table<Vec<usize>> = Table::new();
pub(crate) static SCALAR_LISTS: Table<Vec<usize>> = Table::new();

/// The most dimensions that a description may have; operators take fewer.
pub(crate) const MAX_DIMS: u64 = 64;

/// What a tensor is: view, storage and address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub dims: Vec<i64>,
    pub strides: Vec<i64>,
    /// In elements.
    pub offset: i64,
    pub dtype: aclDataType,
    pub format: aclFormat,
    pub storage: Vec<i64>,
    pub data: usize,
}

impl Spec {
    /// Of what C gave; without strides a contiguous one.
    pub fn new(
        dims: Vec<i64>,
        strides: Option<Vec<i64>>,
        storage: Vec<i64>,
        (dtype, format, offset, data): (aclDataType, aclFormat, i64, usize),
    ) -> Spec {
        let strides = strides.unwrap_or_else(|| contiguous(&dims));
        Spec { dims, strides, offset, dtype, format, storage, data }
    }

    /// Neither too large to count, nor negative.
    pub fn elements(&self) -> Option<usize> {
        self.dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))
    }
}

/// Row-major strides, wrapping: a size that overflows is refused when it is used.
pub(crate) fn contiguous(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i].wrapping_mul(dims[i]);
    }
    strides
}

pub(crate) struct Tensor {
    spec: Mutex<Spec>,
    is_member: AtomicBool,
}

impl Tensor {
    pub fn new(spec: Spec) -> Tensor {
        Tensor { spec: Mutex::new(spec), is_member: AtomicBool::new(false) }
    }

    pub fn of(argument: &str, handle: usize) -> Result<Arc<Tensor>, Failure> {
        live(&TENSORS, argument, handle)
    }

    pub fn spec(&self) -> Spec {
        lock(&self.spec).clone()
    }

    pub fn edit(&self, change: impl FnOnce(&mut Spec)) {
        change(&mut lock(&self.spec));
    }
}

/// A number with a dtype. No operator here takes one, so it holds none.
#[derive(Default)]
pub(crate) struct Scalar {
    is_member: AtomicBool,
}

/// What a list may own.
pub(crate) trait Member {
    fn is_member(&self) -> &AtomicBool;
}

impl Member for Tensor {
    fn is_member(&self) -> &AtomicBool {
        &self.is_member
    }
}

impl Member for Scalar {
    fn is_member(&self) -> &AtomicBool {
        &self.is_member
    }
}

/// The object of a handle.
pub(crate) fn live<T>(table: &Table<T>, argument: &str, handle: usize) -> Result<Arc<T>, Failure> {
    if handle == 0 {
        return Err(Failure::null(argument));
    }
    table.get(handle).ok_or_else(|| dead(argument))
}

fn dead(argument: &str) -> Failure {
    Failure::invalid(format!("{argument}: no live descriptor of that kind: destroyed, or another pointer"))
}

/// The end of a descriptor that no list owns; null is none.
pub(crate) fn destroy<M: Member>(table: &Table<M>, handle: usize) -> Result<(), Failure> {
    let free = |member: &M| match member.is_member().load(Ordering::Relaxed) {
        true => Err(Failure::invalid("a list owns this descriptor, and destroys it")),
        false => Ok(()),
    };
    if handle == 0 || table.remove_if(handle, free)?.is_some() { Ok(()) } else { Err(dead("descriptor")) }
}

/// The end of an array; null is none.
pub(crate) fn destroy_array(table: &Table<u64>, handle: usize) -> Result<(), Failure> {
    if handle == 0 || table.remove(handle).is_some() { Ok(()) } else { Err(dead("array")) }
}

/// A list that owns its members from here on: none of them is in another one.
pub(crate) fn create_list<M: Member>(table: &Table<M>, lists: &Table<Vec<usize>>, handles: Vec<usize>) -> Result<usize, Failure> {
    let mut taken: Vec<Arc<M>> = Vec::new();
    for &handle in &handles {
        let member = live(table, "member", handle);
        match member {
            Ok(member) if !member.is_member().swap(true, Ordering::Relaxed) => taken.push(member),
            found => {
                taken.iter().for_each(|member| member.is_member().store(false, Ordering::Relaxed));
                return Err(found.err().unwrap_or_else(|| Failure::invalid("member: a list owns it already")));
            }
        }
    }
    Ok(lists.insert(handles))
}

/// The end of a list, with its members; null is none.
pub(crate) fn destroy_list<M: Member>(table: &Table<M>, lists: &Table<Vec<usize>>, handle: usize) -> Result<(), Failure> {
    if handle == 0 {
        return Ok(());
    }
    for &member in lists.remove(handle).ok_or_else(|| dead("list"))?.iter() {
        table.remove(member);
    }
    Ok(())
}
