//! The tests that operations are made of. Each names the argument, what was expected and what was found.

use crate::error::{Error, Status, Value};
use crate::tensor::{Describe, Dims, Location};

/// An argument, with the name of its field.
pub(crate) type Arg<'a> = (&'static str, Location<'a>);

/// The sizes of a tensor of rank `R`, none of them 0 but the first.
pub(crate) fn sizes<const R: usize>(name: &'static str, tensor: &(impl Describe + ?Sized)) -> Result<[usize; R], Error> {
    const RANKS: [&str; 6] = ["a rank of 0", "a rank of 1", "a rank of 2", "a rank of 3", "a rank of 4", "a rank of 5"];
    let shape = tensor.dims().shape();
    let sizes: [usize; R] = shape.try_into().map_err(|_| Error::invalid(name, RANKS[R], Value::shape(shape)))?;
    if sizes[1..].contains(&0) {
        return Err(Error::invalid(name, "no dimension of 0", Value::shape(shape)));
    }
    Ok(sizes)
}

/// [`sizes`] of a tensor that has no rows to leave out: no dimension is 0.
pub(crate) fn filled<const R: usize>(name: &'static str, tensor: &(impl Describe + ?Sized)) -> Result<[usize; R], Error> {
    match sizes::<R>(name, tensor)? {
        sizes if sizes[0] > 0 => Ok(sizes),
        sizes => Err(Error::invalid(name, "no dimension of 0", Value::shape(&sizes))),
    }
}

/// Exactly this shape.
#[inline(always)]
pub(crate) fn shape(name: &'static str, tensor: &(impl Describe + ?Sized), expected: &[usize]) -> Result<(), Error> {
    let found = tensor.dims().shape();
    if is_shape(found, expected) { Ok(()) } else { Err(other_shape(name, expected, found)) }
}

/// Size by size, how many being known to the caller: `==` would call a function for one or two numbers, several times in an operation.
#[inline(always)]
pub(crate) fn is_shape(found: &[usize], expected: &[usize]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| found == expected)
}

#[cold]
fn other_shape(name: &'static str, expected: &[usize], found: &[usize]) -> Error {
    Error::invalid(name, Value::shape(expected), Value::shape(found))
}

/// One number for each of `n` rows: `[n]` or `[n,1]`.
#[inline(always)]
pub(crate) fn column(name: &'static str, tensor: &impl Describe, n: usize) -> Result<(), Error> {
    let found = tensor.dims().shape();
    if is_shape(found, &[n]) || is_shape(found, &[n, 1]) { Ok(()) } else { Err(other_shape(name, &[n], found)) }
}

/// The attribute is as it must be.
pub(crate) fn attribute(
    name: &'static str,
    holds: bool,
    expected: impl Into<Value>,
    found: impl Into<Value>,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::invalid(name, expected, found)) }
}

/// What is added to noise, as f32: with an infinity every token would be as good as any.
#[inline]
pub(crate) fn eps(eps: f64) -> Result<(), Error> {
    attribute("eps", eps >= 0.0 && (eps as f32).is_finite(), "a finite f32 of at least 0", eps)
}

/// A vocabulary that the sampling takes, as its documents state.
#[inline]
pub(crate) fn vocabulary(name: &'static str, size: usize) -> Result<(), Error> {
    let too_large = || Error::new(Status::Tiling, name, "a vocabulary of at most 2^20", size);
    if size <= 1 << 20 { Ok(()) } else { Err(too_large()) }
}

/// A token of the vocabulary.
pub(crate) fn id(name: &'static str, id: i32, vocabulary: usize) -> Result<(), Error> {
    within(name, 0, vocabulary as i64 - 1, id.into())
}

/// A number with limits.
pub(crate) fn within(name: &'static str, least: i64, most: i64, found: i64) -> Result<(), Error> {
    attribute(name, (least..=most).contains(&found), Value::Range { least, most }, found)
}

/// An operation of which not every argument is always there.
pub(crate) trait Arguments {
    /// Shows the outputs that a run writes, then the inputs that it validates: at most [`MOST`] of each.
    fn each<'s>(&'s self, see: impl FnMut(Role, Arg<'s>));
}

/// What an operation does with an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Writes it.
    Output,
    /// Reads it.
    Input,
}

/// The most arguments of one role that an operation shows.
const MOST: usize = 8;

/// [`memory`] of the arguments of `op`. One look at each settles most calls: no memory meets the range from the first output to the
/// last, outputs have no gaps, all have data. This is much of what is asked of a call, and keeps nothing.
#[inline(always)]
pub(crate) fn arguments(data: bool, op: &impl Arguments) -> Result<(), Error> {
    let (mut start, mut end, mut in_doubt) = (usize::MAX, 0, false);
    op.each(
        #[inline(always)]
        |role, (_, location)| {
            let bytes = location.bytes();
            in_doubt |= !location.is_aligned() || (data && !location.has_data());
            in_doubt |= start.max(bytes.start) < end.min(bytes.end);
            if role == Role::Output {
                in_doubt |= !location.dims().is_contiguous();
                (start, end) = (start.min(bytes.start), end.max(bytes.end));
            }
        },
    );
    if in_doubt { listed(data, op) } else { Ok(()) }
}

/// [`memory`] of the arguments of `op`, brought together.
#[cold]
fn listed(data: bool, op: &impl Arguments) -> Result<(), Error> {
    // Every place holds something, so that the lists need no allocation; those in use come first.
    const NONE: Arg<'static> = ("", Location::NONE);
    let (mut outputs, mut inputs) = (([NONE; MOST], 0), ([NONE; MOST], 0));
    op.each(|role, argument| {
        let (list, n) = if role == Role::Output { &mut outputs } else { &mut inputs };
        (list[*n], *n) = (argument, *n + 1);
    });
    memory(data, &outputs.0[..outputs.1], &inputs.0[..inputs.1])
}

/// No output overlaps itself, another output, or an input, and every address suits its dtype; with `data`, for a run, all are
/// [`present`].
pub(crate) fn memory(data: bool, outputs: &[Arg<'_>], inputs: &[Arg<'_>]) -> Result<(), Error> {
    let all_have_data = located(outputs, inputs)?;
    if data && !all_have_data {
        present(inputs)?;
        present(outputs)?;
    }
    Ok(())
}

/// Every tensor with elements has data, and its address suits its dtype: asked by a run, not by a query.
pub(crate) fn present(arguments: &[Arg<'_>]) -> Result<(), Error> {
    for &(name, location) in arguments {
        aligned((name, location))?;
        if !location.has_data() && location.dims().elements() > 0 {
            return Err(Error::null(name));
        }
    }
    Ok(())
}

fn aligned((name, location): Arg<'_>) -> Result<(), Error> {
    let wrong = || Error::invalid(name, "an address aligned to its dtype", "a misaligned one");
    if location.is_aligned() { Ok(()) } else { Err(wrong()) }
}

/// What [`memory`] asks of a call, which has an output, and whether all have data. Every tensor is looked at once where there is
/// one output: this is much of what is asked of a call.
fn located(outputs: &[Arg<'_>], inputs: &[Arg<'_>]) -> Result<bool, Error> {
    let mut all_have_data = true;
    for (i, &(name, output)) in outputs.iter().enumerate() {
        aligned((name, output))?;
        all_have_data &= output.has_data();
        let (own, dims) = (output.bytes(), output.dims());
        if !dims.is_contiguous() && overlaps_itself(dims) {
            return Err(Error::invalid(name, "elements that do not overlap", Value::shape(dims.strides())));
        }
        for others in [&outputs[i + 1..], inputs] {
            for &(other, location) in others {
                aligned((other, location))?;
                all_have_data &= location.has_data();
                let bytes = location.bytes();
                let meet = own.start.max(bytes.start) < own.end.min(bytes.end);
                if meet && !are_slices(output, location) && !are_columns(output, location) {
                    return Err(Error::invalid(name, "memory of its own", Value::Text(other)));
                }
            }
        }
    }
    Ok(all_have_data)
}

/// Sorted by stride, each stride must exceed the span of the smaller ones.
#[inline(never)]
fn overlaps_itself(dims: &Dims) -> bool {
    if dims.elements() == 0 {
        return false;
    }
    let mut by_stride = [(0, 0); crate::tensor::MAX_RANK];
    for (slot, pair) in by_stride.iter_mut().zip(dims.strides().iter().zip(dims.shape())) {
        *slot = if *pair.1 > 1 { (*pair.0, *pair.1) } else { (usize::MAX, 1) };
    }
    by_stride[dims.rank()..].fill((usize::MAX, 1));
    by_stride.sort_unstable();
    let mut span = 0;
    for (stride, n) in by_stride.into_iter().filter(|&(_, n)| n > 1) {
        if stride <= span {
            return true;
        }
        span += stride * (n - 1);
    }
    false
}

/// Whether two tensors whose byte ranges meet are slices of one buffer: of rows of one pitch, say, with disjoint columns. There is
/// a pitch that divides every larger one of both, and what they reach within it is disjoint.
#[cold]
fn are_slices(a: Location<'_>, b: Location<'_>) -> bool {
    /// The bytes that a tensor takes of each pitch, if it repeats with it.
    fn reach(t: Location<'_>, pitch: usize) -> Option<usize> {
        let mut end = t.element_bytes();
        for (&n, &stride) in t.dims().shape().iter().zip(t.dims().strides()).filter(|(n, _)| **n > 1) {
            match stride.checked_mul(t.element_bytes())? {
                step if step < pitch => end += (n - 1) * step,
                step if step % pitch == 0 => {}
                _ => return None,
            }
        }
        Some(end)
    }
    let in_rows = |t: Location<'_>| t.dims().last().0 == 1 || t.dims().strides().last() == Some(&1);
    let distance = b.bytes().start.wrapping_sub(a.bytes().start) as isize;
    let apart_in = |pitch: usize| {
        let offset = distance.rem_euclid(pitch as isize) as usize;
        reach(a, pitch).zip(reach(b, pitch)).is_some_and(|(own, other)| offset >= own && offset + other <= pitch)
    };
    let pitches = a.dims().strides().iter().filter_map(|stride| stride.checked_mul(a.element_bytes()));
    in_rows(a) && in_rows(b) && pitches.filter(|&pitch| pitch > 0 && pitch <= isize::MAX as usize).any(apart_in)
}

/// Whether two tensors are columns of one that does not overlap itself: so they may lie where no pitch divides the larger ones.
#[cold]
fn are_columns(a: Location<'_>, b: Location<'_>) -> bool {
    /// The columns of contiguous rows, and how the rows lie.
    fn rows<'t>(t: Location<'t>) -> Option<(usize, (&'t [usize], &'t [usize]))> {
        let ((&columns, sizes), (&step, strides)) = (t.dims().shape().split_last()?, t.dims().strides().split_last()?);
        (step == 1 || columns == 1).then_some((columns, (sizes, strides)))
    }
    let (left, right) = if a.bytes().start <= b.bytes().start { (a, b) } else { (b, a) };
    let (Some((columns, outer)), Some((others, same))) = (rows(left), rows(right)) else { return false };
    let (bytes, distance) = (left.element_bytes(), right.bytes().start - left.bytes().start);
    if outer != same || bytes != right.element_bytes() || distance % bytes != 0 || distance / bytes < columns {
        return false;
    }
    let (mut shape, mut strides) = ([1; crate::tensor::MAX_RANK], [1; crate::tensor::MAX_RANK]);
    let last = outer.0.len();
    shape[..last].copy_from_slice(outer.0);
    strides[..last].copy_from_slice(outer.1);
    shape[last] = distance / bytes + others;
    Dims::strided(&shape[..=last], &strides[..=last]).is_ok_and(|both| !overlaps_itself(&both))
}
