//! Threads and streams.

use super::sampling::{COLUMNS, ROWS, STRIDES, Sampling};
use super::*;
use crate::balance::Random;
use tilekern::Status;

/// A thousand calls on each of four threads, each with a stream and data of its own, and logits that all share.
#[test]
fn threads() {
    let shared = Stream::new(&DEVICE).unwrap();
    let all = Sampling::<f32>::new(&shared, &mut Random(13));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let logits = &all.logits;
            scope.spawn(move || {
                let stream = Stream::new(&DEVICE).unwrap();
                let npu = Ascend::new(&stream);
                let mut s = Sampling::<f32>::new(&stream, &mut Random(14 + thread));
                let mut workspace = Buffer::new(&stream, 1 << 16).unwrap();
                for n in 0..1000 {
                    let n = n % 8;
                    let mut call = s.call(&device(&stream), n);
                    call.logits = device(&stream).read(logits, strided([ROWS, COLUMNS], STRIDES[n % 3]));
                    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
                    if n == 7 {
                        let mut call = s.call(&OnHost, n);
                        call.logits = OnHost.read(logits, strided([ROWS, COLUMNS], STRIDES[n % 3]));
                        on_host(call);
                        s.chosen.agrees(-1);
                    }
                }
                stream.synchronize().unwrap();
            });
        }
    });
}

#[test]
fn a_stream_of_two_threads_in_order() {
    let stream = Stream::new(&DEVICE).unwrap();
    let mut s = Sampling::<f32>::new(&stream, &mut Random(20));
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                DEVICE.enter().unwrap();
                on_device(&stream, s.call(&device(&stream), 1));
            })
            .join()
            .unwrap()
    });
    // The last word is this thread's.
    on_device(&stream, s.call(&device(&stream), 3));
    on_host(s.call(&OnHost, 3));
    s.chosen.agrees(-1);
}

#[test]
fn a_thread_without_a_device() {
    let stream = Stream::new(&DEVICE).unwrap();
    let mut s = Sampling::<f32>::new(&stream, &mut Random(21));
    let mut workspace = Buffer::new(&stream, 1 << 16).unwrap();
    // A call into a stream whose device is known enters it.
    std::thread::scope(|scope| scope.spawn(|| on_device(&stream, s.call(&device(&stream), 1))).join().unwrap());
    on_host(s.call(&OnHost, 1));
    s.chosen.agrees(-1);
    // SAFETY: the stream lives until the end of the test, and is one of that library.
    let npu = unsafe { Ascend::from_raw(DEVICE.table(), stream.raw()) };
    let call = s.call(&device(&stream), 1);
    let error = std::thread::scope(|scope| {
        scope.spawn(|| npu.run(call, DeviceScratch::new(&mut workspace)).unwrap_err()).join().unwrap()
    });
    assert_eq!(error.status(), Status::Backend);
    assert!(error.to_string().contains("107002 ACL_ERROR_RT_CONTEXT_NULL"), "{error}");
}
