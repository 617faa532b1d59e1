//! Devices, streams, buffers and events: what waits for what, and what a failure leaves.

use crate::recorder::{self, fail_once, live, log, made, reset};
use crate::{on_stream, open};
use tilekern::acl::{Buffer, Device, Event, Stream};
use tilekern::ops::{Exponential, Multinomial};
use tilekern::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, Host, OrHost, Run, Status};

/// A draw of one index.
fn draw(npu: &Ascend<'_>, probs: &Buffer<'_, f32>, out: &mut Buffer<'_, i64>) -> Result<(), tilekern::Error> {
    let call = Multinomial::new(DeviceTensor::new([4], probs)?, DeviceTensorMut::new([1], out)?);
    npu.run(call, DeviceScratch::NONE)
}

#[test]
fn an_initialised_acl_is_fine() {
    reset(0);
    let table = recorder::table();
    fail_once("aclInit", 1, 100_002);
    let device = Device::open(&table, 0).unwrap();
    assert_eq!(log(), ["aclInit", "aclrtSetDevice", "aclrtGetCurrentContext"]);
    drop(device);
    assert_eq!(log(), ["aclrtResetDevice"]);
}

#[test]
fn devices_are_counted() {
    reset(0);
    let table = recorder::table();
    assert_eq!(Device::count(&table), 3);
    fail_once("aclrtGetDeviceCount", 1, 507_899);
    assert_eq!(Device::count(&table), 0);
    let table = recorder::changed(|functions| functions.runtime.aclrtGetDeviceCount = None);
    assert_eq!(Device::count(&table), 0);
}

#[test]
fn a_device_that_fails_is_given_back() {
    let table = recorder::table();
    for (name, code) in [("aclInit", 100_039), ("aclrtSetDevice", 107_001), ("aclrtGetCurrentContext", 107_002)] {
        reset(0);
        fail_once(name, 1, code);
        let error = Device::open(&table, 0).unwrap_err();
        assert_eq!((error.function(), error.code()), (name, code));
        assert_eq!(live(), Default::default());
    }
}

#[test]
fn an_error_says_what_the_library_said() {
    on_stream(0, |stream| {
        fail_once("aclrtMalloc", 1, 207_001);
        let error = Buffer::<u8>::new(stream, 1).unwrap_err();
        let expected = "aclrtMalloc: 207001 (ACL_ERROR_RT_MEMORY_ALLOCATION): EZ9999: said the library";
        assert_eq!(error.to_string(), expected);
        let short = "aclrtMalloc: expected success, found 207001 ACL_ERROR_RT_MEMORY_ALLOCATION (-3)";
        assert_eq!(tilekern::Error::from(error).to_string(), short);
        recorder::succeed();
        let huge = Buffer::<u64>::new(stream, usize::MAX / 4);
        assert_eq!(huge.unwrap_err().code(), 107_000);
    });
}

#[test]
fn copies_and_drops_wait() {
    on_stream(0, |stream| {
        let mut buffer = Buffer::from_slice(stream, &[1i32, 2, 3]).unwrap();
        buffer.write(&[4]).unwrap();
        let mut values = [0; 3];
        buffer.read(&mut values).unwrap();
        assert_eq!(values, [4, 2, 3]);
        log();
        drop(buffer);
        assert_eq!(log(), ["aclrtSynchronizeStream", "aclrtFree m1+0"]);
    });
}

#[test]
fn what_another_stream_used_waits_for_the_device() {
    on_stream(0, |stream| {
        let other = Stream::new(stream.device()).unwrap();
        let (probs, mut out) = (Buffer::from_slice(stream, &[1.0f32; 4]).unwrap(), Buffer::new(stream, 1).unwrap());
        draw(&Ascend::new(stream), &probs, &mut out).unwrap();
        log();
        probs.read(&mut [0.0]).unwrap();
        assert_eq!(log(), ["aclrtSynchronizeStream", "aclrtMemcpy 4 kind 2 m1+0"]);
        draw(&Ascend::new(&other), &probs, &mut out).unwrap();
        drop(other);
        log();
        drop(out);
        assert_eq!(log(), ["aclrtSynchronizeStream", "aclrtSynchronizeDevice", "aclrtFree m2+0"]);
        // Shared, it may be used by a call that has not enqueued yet: only who has it alone can know that it is at home again.
        let mut probs = probs;
        probs.read(&mut [0.0]).unwrap();
        probs.read(&mut [0.0]).unwrap();
        probs.write(&[0.0]).unwrap();
        probs.read(&mut [0.0]).unwrap();
        let [home, device] = ["aclrtSynchronizeStream", "aclrtSynchronizeDevice"];
        let (read, write) = ("aclrtMemcpy 4 kind 2 m1+0", "aclrtMemcpy 4 kind 1 m1+0");
        assert_eq!(log(), [home, device, read, home, device, read, home, device, write, home, read]);
    });
}

#[test]
fn a_failure_that_a_drop_met_is_told() {
    for (function, abroad) in [("aclrtSynchronizeStream", false), ("aclrtSynchronizeDevice", true)] {
        on_stream(0, |stream| {
            let other = Stream::new(stream.device()).unwrap();
            let (probs, mut out) = (Buffer::from_slice(stream, &[1.0f32; 4]).unwrap(), Buffer::new(stream, 1).unwrap());
            draw(&Ascend::new(if abroad { &other } else { stream }), &probs, &mut out).unwrap();
            fail_once(function, 1, 507_015);
            drop(out);
            let error = stream.synchronize().unwrap_err();
            let expected = format!("{function}: 507015 (ACL_ERROR_RT_AICORE_EXCEPTION): EZ9999: said the library");
            assert_eq!(error.to_string(), expected);
            stream.synchronize().unwrap();
        });
    }
    // So is that of another stream's end, with what drops had left there.
    for later in [true, false] {
        on_stream(0, |stream| {
            let other = Stream::new(stream.device()).unwrap();
            let (probs, mut out) = (Buffer::from_slice(stream, &[1.0f32; 4]).unwrap(), Buffer::new(stream, 1).unwrap());
            draw(&Ascend::new(&other), &probs, &mut out).unwrap();
            let buffer = Buffer::<u8>::new(&other, 1).unwrap();
            fail_once("aclrtSynchronizeStream", if later { 2 } else { 1 }, 507_015);
            drop(buffer);
            drop(other);
            assert_eq!(live()["stream"], 1);
            assert_eq!(out.read(&mut [0]).unwrap_err().code(), 507_015);
            out.read(&mut [0]).unwrap();
        });
    }
    // A read is told as well, and a failure that an event's drop met, by whichever stream comes first.
    on_stream(0, |stream| {
        let buffer = Buffer::from_slice(stream, &[1.0f32; 4]).unwrap();
        let event = Event::new(stream.device()).unwrap();
        event.record(stream).unwrap();
        fail_once("aclrtSynchronizeDevice", 1, 507_015);
        drop(event);
        assert_eq!(buffer.read(&mut [0.0]).unwrap_err().code(), 507_015);
        buffer.read(&mut [0.0]).unwrap();
    });
}

#[test]
fn memory_is_not_freed_where_nothing_waited() {
    for (function, code, is_freed) in [
        ("aclrtSynchronizeStream", 507_015, true),
        ("aclrtSynchronizeStream", 207_003, true),
        ("aclrtSynchronizeStream", 107_003, false),
        ("aclrtSynchronizeStream", 207_005, false),
        ("aclrtSynchronizeStream", 507_046, false),
        ("aclrtSetCurrentContext", 507_000, false),
    ] {
        reset(0);
        let table = recorder::table();
        let device = Device::open(&table, 0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let buffer = Buffer::<u8>::new(&stream, 8).unwrap();
        fail_once(function, 1, code);
        drop(buffer);
        assert_eq!(live().contains_key("memory"), !is_freed, "{function} {code}");
    }
}

#[test]
fn a_late_failure_comes_with_the_synchronise() {
    on_stream(0, |stream| {
        let (probs, mut out) = (Buffer::from_slice(stream, &[1.0f32; 4]).unwrap(), Buffer::new(stream, 1).unwrap());
        draw(&Ascend::new(stream), &probs, &mut out).unwrap();
        fail_once("aclrtSynchronizeStream", 1, 507_015);
        let error = stream.synchronize().unwrap_err();
        assert!(error.to_string().starts_with("aclrtSynchronizeStream: 507015 (ACL_ERROR_RT_AICORE_EXCEPTION)"), "{error}");
    });
}

#[test]
fn a_stream_is_not_destroyed_where_nothing_waited() {
    reset(0);
    let table = recorder::table();
    let device = Device::open(&table, 0).unwrap();
    let (stream, other) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    fail_once("aclrtSynchronizeStream", 1, 507_046);
    drop(other);
    assert_eq!(live()["stream"], 2);
    stream.synchronize().unwrap();
}

#[test]
fn calls_enter_the_device_of_their_stream() {
    reset(0);
    let table = recorder::table();
    let first = Device::open(&table, 0).unwrap();
    let stream = Stream::new(&first).unwrap();
    let (probs, mut out) = (Buffer::from_slice(&stream, &[1.0f32; 4]).unwrap(), Buffer::new(&stream, 1).unwrap());
    let second = Device::open(&table, 1).unwrap();
    draw(&Ascend::new(&stream), &probs, &mut out).unwrap();
    second.enter().unwrap();
    fail_once("aclrtSetCurrentContext", 1, 107_000);
    let error = draw(&Ascend::new(&stream), &probs, &mut out).unwrap_err();
    assert_eq!((error.status(), error.argument()), (Status::Backend, "aclrtSetCurrentContext"));
    // The host in its stead, too.
    let mut numbers = Buffer::<f32>::new(&stream, 1).unwrap();
    second.enter().unwrap();
    let call = Exponential::new(DeviceTensorMut::new([1], &mut numbers).unwrap());
    OrHost::new(Ascend::new(&stream), Host::new()).run(call, DeviceScratch::NONE).unwrap();
}

#[test]
fn memory_of_another_device_is_refused() {
    reset(0);
    let (table, same) = (recorder::table(), recorder::table());
    let (first, second, elsewhere) =
        (Device::open(&table, 0).unwrap(), Device::open(&table, 1).unwrap(), Device::open(&same, 0).unwrap());
    let here = Stream::new(&first).unwrap();
    let mut out = Buffer::new(&here, 1).unwrap();
    for device in [&second, &elsewhere] {
        let there = Stream::new(device).unwrap();
        let (probs, mut foreign) = (Buffer::from_slice(&there, &[1.0f32; 4]).unwrap(), Buffer::<f32>::new(&there, 1).unwrap());
        let call = Exponential::new(DeviceTensorMut::new([1], &mut foreign).unwrap());
        let error = OrHost::new(Ascend::new(&here), Host::new()).run(call, DeviceScratch::NONE).unwrap_err();
        assert_eq!((error.status(), error.argument()), (Status::Invalid, "out"));
        let error = draw(&Ascend::new(&here), &probs, &mut out).unwrap_err();
        assert_eq!((error.status(), error.argument()), (Status::Invalid, "probs"));
        assert_eq!(made("executor"), 0);
    }
}

#[test]
fn an_event_stays_on_its_device() {
    reset(0);
    let (table, same) = (recorder::table(), recorder::table());
    let (first, second, elsewhere) =
        (Device::open(&table, 0).unwrap(), Device::open(&table, 1).unwrap(), Device::open(&same, 0).unwrap());
    let event = Event::new(&first).unwrap();
    log();
    for device in [&second, &elsewhere] {
        let stream = Stream::new(device).unwrap();
        log();
        assert_eq!(event.record(&stream).unwrap_err().code(), 107_003);
        assert_eq!(stream.wait(&event).unwrap_err().code(), 107_003);
        assert_eq!(log(), [""; 0]);
    }
    event.record(&Stream::new(&first).unwrap()).unwrap();
}

#[test]
fn events_order_streams() {
    on_stream(0, |stream| {
        let other = Stream::new(stream.device()).unwrap();
        let event = Event::new(stream.device()).unwrap();
        log();
        event.record(stream).unwrap();
        other.wait(&event).unwrap();
        event.synchronize().unwrap();
        drop(event);
        let calls = log();
        assert_eq!(calls[..3], ["aclrtRecordEvent", "aclrtStreamWaitEvent", "aclrtSynchronizeEvent"]);
        assert_eq!(calls[3..], ["aclrtSynchronizeDevice", "aclrtDestroyEvent"]);
    });
}

#[test]
fn a_runtime_without_events_or_contexts_will_do() {
    let table = recorder::changed(|functions| {
        functions.runtime.aclrtCreateEvent = None;
        functions.runtime.aclrtSetCurrentContext = None;
    });
    reset(0);
    let device = Device::open(&table, 0).unwrap();
    assert_eq!(Event::new(&device).unwrap_err().code(), 207_000);
    device.enter().unwrap();
    assert_eq!(log(), ["aclInit", "aclrtSetDevice", "aclrtSetDevice"]);
    drop(device);
    assert_eq!(live(), Default::default());
}

#[test]
fn buffers_are_shared_between_threads() {
    fn is_sync<T: Send + Sync>(_: &T) {}
    open(&recorder::table(), 0, |stream| {
        is_sync(stream);
        is_sync(&Buffer::<f32>::new(stream, 1).unwrap());
        is_sync(&Ascend::new(stream));
    });
}
