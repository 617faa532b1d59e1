//! Expert weights as ACL describes them, described anew as the host takes them: blocks as five dimensions (four for one expert of a
//! list), two int4 to a byte.

use crate::descriptor::contiguous;
use crate::failure::Failure;
use crate::operand::Operand;
use tilekern_acl::*;

/// Whose word the format is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The descriptor's.
    Plain,
    /// The function's: blocks, whatever the descriptor says.
    Blocks,
}

/// What a weight was found to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub four: bool,
    pub blocks: bool,
}

/// Of the weight before it is described anew.
pub(crate) fn kind(weight: &Operand, entry: Entry) -> Kind {
    let spec = &weight.spec;
    let four = spec.dtype != ACL_INT8;
    Kind { four, blocks: !four || entry == Entry::Blocks || spec.format == ACL_FORMAT_FRACTAL_NZ || spec.dims.len() > 3 }
}

/// Describes a weight anew. `experts` says whether the first dimension counts them.
pub(crate) fn describe(weight: &mut Operand, entry: Entry, experts: bool) -> Result<(), Failure> {
    let lead = usize::from(experts);
    let Kind { four, blocks } = kind(weight, entry);
    let rank = weight.spec.dims.len();
    if rank != 2 + lead && rank != 4 + lead {
        return Err(weight.wrong(&format!("a rank of {} or {}", 2 + lead, 4 + lead), &weight.spec.dims));
    }
    if weight.spec.dims.iter().any(|&n| n <= 0) {
        return Err(weight.wrong("no dimension of 0", &weight.spec.dims));
    }
    if weight.spec.dtype == ACL_INT32 {
        unpack_carrier(weight)?;
    }
    if !blocks {
        return halve(weight);
    }
    if entry == Entry::Blocks && weight.spec.storage.len() != 4 + lead {
        return Err(weight.wrong(&format!("a storage shape of rank {}", 4 + lead), &weight.spec.storage));
    }
    if entry == Entry::Plain && weight.spec.format != ACL_FORMAT_FRACTAL_NZ {
        return Err(weight.wrong("the format FRACTAL_NZ", weight.spec.format.0));
    }
    let width = if four { 64 } else { 32 };
    if contiguous(&weight.spec.dims) != weight.spec.strides {
        return Err(weight.wrong("contiguous blocks", &weight.spec.strides));
    }
    if rank == 2 + lead {
        let (head, [k, n]) = (weight.spec.dims[..lead].to_vec(), [weight.spec.dims[lead], weight.spec.dims[lead + 1]]);
        if k % 16 != 0 || n % width != 0 {
            return Err(weight.wrong(&format!("multiples of 16 rows and {width} columns"), &weight.spec.dims));
        }
        weight.spec.dims = [&head[..], &[n / width, k / 16, 16, width]].concat();
    }
    if weight.spec.dims[2 + lead..] != [16, width] {
        return Err(weight.wrong(&format!("blocks of 16 by {width}"), &weight.spec.dims));
    }
    let product = |dims: &[i64]| dims.iter().try_fold(1i64, |n, &dim| n.checked_mul(dim));
    let (storage, whole) = (&weight.spec.storage, &weight.spec.dims);
    // A carrier's storage counts eight to an element, if it was not relabelled.
    let fits = |held: Option<i64>, whole: Option<i64>| held == whole || four && held.and_then(|n| n.checked_mul(8)) == whole;
    let last = whole.len() - 1;
    let same = match storage.len() == whole.len() {
        true => storage[..last] == whole[..last] && fits(Some(storage[last]), Some(whole[last])),
        false => fits(product(storage), product(whole)),
    };
    if !same {
        return Err(weight.wrong(&format!("the storage shape {whole:?}"), storage));
    }
    weight.spec.strides = contiguous(&weight.spec.dims);
    weight.spec.format = ACL_FORMAT_ND;
    if four { halve(weight) } else { Ok(()) }
}

/// Eight int4 in an int32: the last dimension counts eight times as many.
fn unpack_carrier(weight: &mut Operand) -> Result<(), Failure> {
    let large = weight.wrong("a size that fits in memory", &weight.spec.dims);
    scale_outer(weight, |stride| stride.checked_mul(8))?;
    let spec = &mut weight.spec;
    let last = spec.dims.len() - 1;
    spec.dims[last] = spec.dims[last].checked_mul(8).ok_or(large)?;
    spec.dtype = ACL_INT4;
    Ok(())
}

/// Two int4 in a byte: the last dimension counts half as many.
fn halve(weight: &mut Operand) -> Result<(), Failure> {
    let last = weight.spec.dims.len() - 1;
    if weight.spec.dims[last] % 2 != 0 {
        return Err(weight.wrong("an even number of columns", &weight.spec.dims));
    }
    scale_outer(weight, |stride| (stride % 2 == 0).then_some(stride / 2))?;
    weight.spec.dims[last] /= 2;
    weight.spec.dtype = ACL_UINT8;
    Ok(())
}

/// Counts all strides but the last, which is 1, and the offset in other units.
fn scale_outer(weight: &mut Operand, scale: impl Fn(i64) -> Option<i64>) -> Result<(), Failure> {
    let wrong = weight.wrong("neighbouring columns, and strides of whole bytes", &weight.spec.strides);
    let last = weight.spec.dims.len() - 1;
    let spec = &mut weight.spec;
    let scaled = spec.strides[..last].iter().chain([&spec.offset]).map(|&n| scale(n)).collect::<Option<Vec<i64>>>();
    let (Some(mut scaled), true) = (scaled, spec.strides[last] == 1) else { return Err(wrong) };
    spec.offset = scaled.pop().unwrap_or(0);
    scaled.push(1);
    spec.strides = scaled;
    Ok(())
}
