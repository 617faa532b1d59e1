//! Devices, streams, events and memory.

use super::*;
use std::alloc::Layout;
use std::ffi::{c_char, c_void};
use tilekern::acl::table::Runtime;
use tilekern::acl::*;

unsafe extern "C" fn init(_: *const c_char) -> i32 {
    simple("aclInit")
}

unsafe extern "C" fn message() -> *const c_char {
    c"EZ9999: said the library".as_ptr()
}

/// As the library of the host says it.
unsafe extern "C" fn soc_name() -> *const c_char {
    c"Ascend910B_tilekern".as_ptr()
}

/// That of a device.
const CONTEXT: usize = 7;

unsafe extern "C" fn set_device(device: i32) -> i32 {
    let code = simple("aclrtSetDevice");
    if code == 0 {
        with(|r| {
            r.context = CONTEXT + device as usize;
            r.handle("device");
        });
    }
    code
}

unsafe extern "C" fn reset_device(_: i32) -> i32 {
    with(|r| {
        r.say(|_| "aclrtResetDevice".into());
        let device = r.live.iter().find(|(_, (kind, _))| *kind == "device").map(|(handle, _)| *handle);
        r.end("device", device.expect("a device"));
    });
    0
}

unsafe extern "C" fn get_count(count: *mut u32) -> i32 {
    answer(count, 3);
    simple("aclrtGetDeviceCount")
}

unsafe extern "C" fn get_context(context: *mut aclrtContext) -> i32 {
    answer(context, std::ptr::without_provenance_mut(with(|r| r.context)));
    simple("aclrtGetCurrentContext")
}

unsafe extern "C" fn set_context(context: aclrtContext) -> i32 {
    assert!(context.addr() >= CONTEXT);
    with(|r| {
        let code = r.failure("aclrtSetCurrentContext").unwrap_or(0);
        if code == 0 {
            r.context = context.addr();
        }
        code
    })
}

unsafe extern "C" fn create_stream(stream: *mut aclrtStream) -> i32 {
    let code = simple("aclrtCreateStream");
    if code == 0 {
        let handle = with(|r| {
            let handle = r.handle("stream");
            r.homes.insert(handle, r.context);
            handle
        });
        answer(stream, std::ptr::without_provenance_mut(handle));
    }
    code
}

unsafe extern "C" fn destroy_stream(stream: aclrtStream) -> i32 {
    with(|r| {
        r.expect_stream(stream.addr());
        r.end("stream", stream.addr());
    });
    simple("aclrtDestroyStream")
}

unsafe extern "C" fn synchronize_stream(stream: aclrtStream) -> i32 {
    with(|r| r.expect_stream(stream.addr()));
    simple("aclrtSynchronizeStream")
}

unsafe extern "C" fn synchronize_device() -> i32 {
    simple("aclrtSynchronizeDevice")
}

unsafe extern "C" fn create_event(event: *mut aclrtEvent) -> i32 {
    let code = simple("aclrtCreateEvent");
    if code == 0 {
        answer(event, std::ptr::without_provenance_mut(with(|r| r.handle("event"))));
    }
    code
}

unsafe extern "C" fn destroy_event(event: aclrtEvent) -> i32 {
    with(|r| r.end("event", event.addr()));
    simple("aclrtDestroyEvent")
}

unsafe extern "C" fn record_event(event: aclrtEvent, stream: aclrtStream) -> i32 {
    with(|r| {
        r.expect("event", event.addr());
        r.expect_stream(stream.addr());
    });
    simple("aclrtRecordEvent")
}

unsafe extern "C" fn wait_event(stream: aclrtStream, event: aclrtEvent) -> i32 {
    with(|r| {
        r.expect("event", event.addr());
        r.expect_stream(stream.addr());
    });
    simple("aclrtStreamWaitEvent")
}

unsafe extern "C" fn synchronize_event(event: aclrtEvent) -> i32 {
    with(|r| r.expect("event", event.addr()));
    simple("aclrtSynchronizeEvent")
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 64).unwrap()
}

unsafe extern "C" fn malloc(device: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> i32 {
    assert!(size > 0 && policy == ACL_MEM_MALLOC_HUGE_FIRST);
    with(|r| {
        r.say(|_| format!("aclrtMalloc {size}"));
        if let Some(code) = r.failure("aclrtMalloc").or((size > 1 << 40).then_some(107_000)) {
            return code;
        }
        // SAFETY: a size above 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout(size)) };
        r.make("memory", memory.addr());
        r.sizes.insert(memory.addr(), size);
        answer(device, memory.cast());
        0
    })
}

unsafe extern "C" fn free(device: *mut c_void) -> i32 {
    with(|r| {
        r.say(|r| format!("aclrtFree {}", r.place(device.addr())));
        r.end("memory", device.addr());
        let size = r.sizes.remove(&device.addr()).unwrap();
        // SAFETY: what `malloc` gave, with its size.
        unsafe { std::alloc::dealloc(device.cast(), layout(size)) };
        0
    })
}

unsafe extern "C" fn memcpy(to: *mut c_void, max: usize, from: *const c_void, count: usize, kind: aclrtMemcpyKind) -> i32 {
    assert!(count > 0 && max >= count);
    let code = with(|r| {
        let (device, host) = if kind == ACL_MEMCPY_HOST_TO_DEVICE { (to.addr(), from.addr()) } else { (from.addr(), to.addr()) };
        assert!(r.place(device).starts_with('m') && !r.place(host).starts_with('m'));
        r.say(|r| format!("aclrtMemcpy {count} kind {} {}", kind.0, r.place(device)));
        r.failure("aclrtMemcpy").unwrap_or(0)
    });
    if code == 0 {
        // SAFETY: as many bytes on both sides, as the caller of ACL says.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), count) };
    }
    code
}

/// All of them.
pub fn functions() -> Runtime {
    Runtime {
        aclInit: init,
        aclGetRecentErrMsg: message,
        aclrtSetDevice: set_device,
        aclrtResetDevice: reset_device,
        aclrtCreateStream: create_stream,
        aclrtDestroyStream: destroy_stream,
        aclrtSynchronizeStream: synchronize_stream,
        aclrtMalloc: malloc,
        aclrtFree: free,
        aclrtMemcpy: memcpy,
        aclrtSynchronizeDevice: Some(synchronize_device),
        aclrtGetCurrentContext: Some(get_context),
        aclrtSetCurrentContext: Some(set_context),
        aclrtGetDeviceCount: Some(get_count),
        aclrtGetSocName: Some(soc_name),
        aclrtCreateEvent: Some(create_event),
        aclrtDestroyEvent: Some(destroy_event),
        aclrtRecordEvent: Some(record_event),
        aclrtStreamWaitEvent: Some(wait_event),
        aclrtSynchronizeEvent: Some(synchronize_event),
    }
}
