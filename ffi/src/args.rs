//! Structs that grow: the first field says how much of one the caller was compiled with.

use core::mem::size_of;
use tilekern::{Error, Status};

/// A struct of the header that begins with `struct_size`.
///
/// # Safety
///
/// `repr(C)`, the first field is `struct_size: usize`, the fields of an earlier size are the first ones of this, and the bytes that a
/// C program assigns to them are valid values.
pub(crate) unsafe trait Args: Copy {
    /// The sizes that were ever published.
    const SIZES: &'static [usize] = &[size_of::<Self>()];
    /// What `TK_.._INIT` holds: the defaults of fields that an earlier size lacks.
    const INIT: Self;
}

/// Whether `args` is a struct of a published size; its size.
///
/// # Safety
///
/// `args` is null, or a struct of the size that its first field says.
pub(crate) unsafe fn size<A: Args>(name: &'static str, args: *const A) -> Result<usize, Error> {
    if args.is_null() {
        return Err(Error::new(Status::Null, name, "a struct", "null"));
    }
    // SAFETY: every size that a caller can have begins with the size.
    let size = unsafe { args.cast::<usize>().read_unaligned() };
    if !A::SIZES.contains(&size) {
        return Err(Error::new(Status::Invalid, "struct_size", size_of::<A>(), size));
    }
    Ok(size)
}

/// A copy of `args`, completed with the defaults.
///
/// # Safety
///
/// `args` is null, or a struct of the size that its first field says.
pub(crate) unsafe fn read<A: Args>(name: &'static str, args: *const A) -> Result<A, Error> {
    // SAFETY: as promised by the caller.
    unsafe { lend(name, args, &mut None).copied() }
}

/// `args` where it lies if it has all fields, else a copy in `room`, completed with the defaults: to copy it takes a short call a tenth
/// of its time.
///
/// # Safety
///
/// `args` is null, or a struct of the size that its first field says, which stays as it is for `'a`.
pub(crate) unsafe fn lend<'a, A: Args>(name: &'static str, args: *const A, room: &'a mut Option<A>) -> Result<&'a A, Error> {
    // SAFETY: as promised by the caller.
    let size = unsafe { size(name, args)? };
    if size == size_of::<A>() && args.is_aligned() {
        // SAFETY: a whole struct lies there, and the trait says that its bytes are values.
        return Ok(unsafe { &*args });
    }
    let read = room.insert(A::INIT);
    // SAFETY: the caller's struct has `size` bytes, ours `size_of::<A>()`, and the trait says that the bytes are values.
    unsafe { core::ptr::copy_nonoverlapping(args.cast::<u8>(), (&raw mut *read).cast(), size.min(size_of::<A>())) };
    Ok(read)
}

/// C's `bool`: any byte but 0 is true, where a Rust `bool` of 2 would be undefined.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct CBool(u8);

impl CBool {
    pub(crate) const FALSE: CBool = CBool(0);
    pub(crate) const TRUE: CBool = CBool(1);

    pub(crate) fn get(self) -> bool {
        self.0 != 0
    }
}
