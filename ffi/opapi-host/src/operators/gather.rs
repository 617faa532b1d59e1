//! Gather: `out[i][j] = self[i][index[i][j]]` for dim 1, and so for any dim of any rank.

use crate::arguments::Arguments;
use crate::executor::{Job, Operator};
use crate::failure::Failure;
use crate::operand::Operand;
use tilekern_acl::{ACL_INT32, ACL_INT64};

/// As many dimensions as aclnn takes.
const MAX_RANK: usize = 8;

/// Its attribute.
pub(crate) struct Gather {
    pub dim: i64,
}

/// A tensor in memory of the device, of any dtype.
struct Place {
    first: usize,
    strides: Vec<usize>,
    bytes: usize,
}

impl Place {
    fn of(operand: &Operand) -> Result<Place, Failure> {
        Ok(Place { first: operand.address()?, strides: operand.sizes()?.1, bytes: operand.element_bytes()? })
    }

    /// Where the element at these coordinates is.
    fn at(&self, coordinates: impl Iterator<Item = usize>) -> usize {
        let elements: usize = coordinates.zip(&self.strides).map(|(i, stride)| i * stride).sum();
        self.first + elements * self.bytes
    }
}

impl Gather {
    /// The sizes of `index`, and the dimension that is gathered from.
    fn check(&self, a: &Arguments) -> Result<(Vec<usize>, usize), Failure> {
        let (from, index, out) = (a.get("self")?, a.get("index")?, a.get("out")?);
        index.dtype(&[ACL_INT32, ACL_INT64])?;
        out.dtype(&[from.spec.dtype])?;
        from.element_bytes()?;
        let rank = from.spec.dims.len();
        if rank > MAX_RANK {
            return Err(from.wrong("a rank of at most 8", rank));
        }
        index.rank(rank)?;
        let (sizes, shape) = (from.sizes()?.0, index.sizes()?.0);
        if out.sizes()?.0 != shape {
            return Err(out.wrong("the shape of index", &out.spec.dims));
        }
        let wrapped = if self.dim < 0 { self.dim + rank as i64 } else { self.dim };
        let wrong = || Failure::invalid(format!("dim: expected one of {rank} dimensions, found {}", self.dim));
        let dim = usize::try_from(wrapped).ok().filter(|&dim| dim < rank).ok_or_else(wrong)?;
        if (0..rank).any(|i| i != dim && shape[i] > sizes[i]) {
            return Err(index.wrong("no size beyond that of self but in dim", &index.spec.dims));
        }
        if out.overlaps_itself()? {
            return Err(out.wrong("elements that do not overlap", &out.spec.strides));
        }
        out.apart_from(&[from, index])?;
        Ok((shape, dim))
    }

    fn run(&self, a: &Arguments, shape: &[usize], dim: usize) -> Result<(), Failure> {
        let (from, index, out) = (Place::of(a.get("self")?)?, Place::of(a.get("index")?)?, Place::of(a.get("out")?)?);
        let limit = a.get("self")?.sizes()?.0[dim];
        let chosen = |coordinates: &[usize]| {
            let address = index.at(coordinates.iter().copied());
            // SAFETY: the coordinates are inside `index`, which the running work claims.
            let value = unsafe {
                match index.bytes {
                    4 => i64::from((address as *const i32).read_unaligned()),
                    _ => (address as *const i64).read_unaligned(),
                }
            };
            let beyond =
                || Failure::invalid(format!("index: expected 0 to {} at {coordinates:?}, found {value}", limit as i64 - 1));
            usize::try_from(value).ok().filter(|&i| i < limit).ok_or_else(beyond)
        };
        // First all of them, so that nothing is written where one is wrong.
        each(shape, |coordinates| chosen(coordinates).map(|_| ()))?;
        each(shape, |coordinates| {
            let i = chosen(coordinates)?;
            let source = from.at(coordinates.iter().enumerate().map(|(d, &c)| if d == dim { i } else { c }));
            let target = out.at(coordinates.iter().copied());
            // SAFETY: both elements are inside tensors that the running work claims, and `out` overlaps none.
            unsafe { core::ptr::copy_nonoverlapping(source as *const u8, target as *mut u8, out.bytes) };
            Ok(())
        })
    }
}

/// Row-major.
fn each(shape: &[usize], mut visit: impl FnMut(&[usize]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut coordinates = vec![0; shape.len()];
    if shape.contains(&0) {
        return Ok(());
    }
    loop {
        visit(&coordinates)?;
        let Some(d) = (0..shape.len()).rev().find(|&d| coordinates[d] + 1 < shape[d]) else { return Ok(()) };
        coordinates[d] += 1;
        coordinates[d + 1..].fill(0);
    }
}

impl Operator for Gather {
    fn answer(&self, a: &Arguments, job: Job<'_>) -> Result<(), Failure> {
        let (shape, dim) = self.check(a)?;
        match job {
            Job::Query(_) => Ok(()),
            Job::Run(_) => self.run(a, &shape, dim),
        }
    }
}
