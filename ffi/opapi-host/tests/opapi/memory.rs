//! Memory, copies and fills: sizes, bounds and directions.

use crate::common::{acl, message};
use crate::device::{Buffer, Open};
use core::ffi::c_void;
use core::ptr::null_mut;
use tilekern_acl::*;

fn copy(to: *mut c_void, max: usize, from: *const c_void, count: usize, kind: aclrtMemcpyKind) -> i32 {
    acl!(runtime::aclrtMemcpy(to, max, from, count, kind))
}

#[test]
fn allocations() {
    let _open = Open::new();
    let mut place = null_mut();
    let malloc = |place: *mut *mut c_void, size, policy| acl!(runtime::aclrtMalloc(place, size, policy));
    assert_eq!(malloc(&mut place, 0, ACL_MEM_MALLOC_HUGE_FIRST), 100000);
    assert_eq!(malloc(null_mut(), 64, ACL_MEM_MALLOC_HUGE_FIRST), 100000);
    assert_eq!(malloc(&mut place, 64, aclrtMemMallocPolicy(9)), 100000);
    assert_eq!(malloc(&mut place, usize::MAX, ACL_MEM_MALLOC_HUGE_FIRST), 207001);
    assert_eq!(malloc(&mut place, isize::MAX as usize - 4096, ACL_MEM_MALLOC_HUGE_FIRST), 207001);
    assert!(place.is_null(), "a call that fails writes no answer");
    for policy in [0, 1, 2, 3, 4, 5, 6, 7, 0x0100, 0x1002, 0x10_0000] {
        assert_eq!(malloc(&mut place, 1, aclrtMemMallocPolicy(policy)), 0);
        assert_eq!(acl!(runtime::aclrtFree(place)), 0);
        assert_eq!(acl!(runtime::aclrtFree(place)), 107000);
        assert!(message().contains("freed before"));
    }
    assert_eq!(acl!(runtime::aclrtMallocAlign32(&mut place, 100, ACL_MEM_MALLOC_NORMAL_ONLY)), 0);
    assert_eq!(acl!(runtime::aclrtFree(place.wrapping_byte_add(32))), 107000, "not its beginning");
    assert_eq!(acl!(runtime::aclrtFreeHost(place)), 107000, "of the other kind");
    assert_eq!(acl!(runtime::aclrtFree(place)), 0);
    assert_eq!(acl!(runtime::aclrtFree(null_mut())), 100000);
    assert_eq!(acl!(runtime::aclrtMallocHost(&mut place, 100)), 0);
    assert_eq!(acl!(runtime::aclrtFree(place)), 107000);
    assert_eq!(acl!(runtime::aclrtFreeHost(place)), 0);
    let (mut free, mut total) = (0, 0);
    assert_eq!(acl!(runtime::aclrtGetMemInfo(ACL_HBM_MEM, &mut free, &mut total)), 0);
    assert!(0 < free && free <= total);
    for kind in [-1, 12, 99] {
        assert_eq!(acl!(runtime::aclrtGetMemInfo(aclrtMemAttr(kind), &mut free, &mut total)), 107000);
    }
}

#[test]
fn copies() {
    let _open = Open::new();
    let buffer = Buffer::empty(100);
    let (mut own, at) = ([7u8; 100], buffer.address);
    let from = own.as_mut_ptr().cast::<c_void>();
    let (up, down) = (ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST);
    assert_eq!(copy(at, 100, from, 100, up), 0);
    assert_eq!(buffer.read::<u8>(100), [7; 100]);
    assert_eq!(copy(at, 99, from, 100, up), 107000, "more than destMax");
    assert!(message().contains("destMax: expected at least 100, found 99"));
    assert_eq!(copy(at, 101, from, 101, up), 107000, "beyond the buffer");
    assert_eq!(copy(at.wrapping_byte_add(50), 51, from, 51, up), 107000);
    assert_eq!(copy(at.wrapping_byte_add(50), 50, from, 50, up), 0);
    assert_eq!(copy(from, 100, at, 101, down), 107000);
    assert_eq!(copy(at, 100, from, 100, down), 107000, "the source is no memory of the device");
    assert_eq!(copy(from, 100, at, 100, up), 107000, "the target is none");
    assert_eq!(copy(at, 100, from, 10, aclrtMemcpyKind(8)), 107000);
    assert_eq!(copy(null_mut(), 100, from, 10, up), 100000);
    assert_eq!(copy(at, 100, null_mut(), 10, up), 100000);
    assert_eq!(copy(at, 100, from, 0, up), 107000);
    // Where the addresses say the direction.
    assert_eq!(copy(at, 100, [1u8].as_ptr().cast(), 1, ACL_MEMCPY_DEFAULT), 0);
    assert_eq!(buffer.read::<u8>(2), [1, 7]);
    let other = Buffer::of(&[5u8; 64]);
    for kind in [ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE] {
        assert_eq!(copy(at, 100, other.address, 64, kind), 0);
        assert_eq!(copy(at, 100, from, 64, kind), 107000);
    }
    assert_eq!(buffer.read::<u8>(65)[63..], [5, 7]);
    // Rows of a pitch.
    let rows: Vec<u8> = (0..20).collect();
    let (width, height) = (3, 4);
    let copy_rows = |pitch, height| acl!(runtime::aclrtMemcpy2d(at, 10, rows.as_ptr().cast(), pitch, width, height, up));
    assert_eq!(copy_rows(5, height), 0);
    let found = buffer.read::<u8>(40);
    assert!((0..4).all(|row| found[10 * row..][..3] == rows[5 * row..][..3] && found[10 * row + 3] == 5));
    assert_eq!(copy_rows(2, height), 107000, "a pitch below the width");
    assert_eq!(copy_rows(5, 11), 107000, "more rows than the buffer has");
    assert_eq!(copy_rows(5, 0), 107000);
}

#[test]
fn fills() {
    let open = Open::new();
    let buffer = Buffer::of(&[1u8; 50]);
    let fill = |max, value, count| acl!(runtime::aclrtMemset(buffer.address, max, value, count));
    assert_eq!(fill(50, 0x1FF, 10), 0);
    assert_eq!(buffer.read::<u8>(11), [[255; 10].as_slice(), &[1]].concat());
    assert_eq!(fill(9, 0, 10), 107000);
    assert_eq!(fill(51, 0, 51), 107000);
    assert_eq!(acl!(runtime::aclrtMemset(null_mut(), 10, 0, 10)), 100000);
    let own = [0u8; 10];
    assert_eq!(acl!(runtime::aclrtMemset(own.as_ptr().cast_mut().cast(), 10, 0, 10)), 107000, "not its own to fill");
    assert_eq!(acl!(runtime::aclrtMemsetAsync(buffer.address, 50, 4, 50, open.stream)), 0);
    assert_eq!(fill(50, 0, 1), 107000, "the stream may be at it");
    assert_eq!(open.synchronise(), 0);
    assert_eq!(buffer.read::<u8>(50), [4; 50]);
}

#[test]
fn copies_in_a_stream() {
    let open = Open::new();
    let (first, second) = (Buffer::of(&[1u8; 1000]), Buffer::of(&[2u8; 1000]));
    let mut pinned = null_mut();
    assert_eq!(acl!(runtime::aclrtMallocHost(&mut pinned, 1000)), 0);
    let copy = |to, from, count, kind| acl!(runtime::aclrtMemcpyAsync(to, 1000, from, count, kind, open.stream));
    // In order: 1 to the second, the second to the host.
    assert_eq!(copy(second.address, first.address, 1000, ACL_MEMCPY_DEVICE_TO_DEVICE), 0);
    assert_eq!(copy(pinned, second.address, 1000, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    assert_eq!(acl!(runtime::aclrtFreeHost(pinned)), 207002, "in use");
    assert_eq!(open.synchronise(), 0);
    // SAFETY: a thousand bytes, which nobody writes.
    assert_eq!(unsafe { core::slice::from_raw_parts(pinned.cast::<u8>(), 1000) }, [1; 1000]);
    assert_eq!(acl!(runtime::aclrtFreeHost(pinned)), 0);
    // Of the program's own memory the copy is done when the call returns: it may go away.
    let status = {
        let gone = [9u8; 1000];
        copy(first.address, gone.as_ptr().cast(), 1000, ACL_MEMCPY_HOST_TO_DEVICE)
    };
    assert_eq!(status, 0);
    assert_eq!(copy(first.address, second.address, 1001, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
    assert_eq!(open.synchronise(), 0);
    assert_eq!(first.read::<u8>(1000), [9; 1000]);
}
