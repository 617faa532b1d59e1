//! Streams, events and threads.

use crate::common::{acl, message};
use crate::device::{Buffer, Open, Tensor, View, phase_one, phase_two, stream};
use crate::layout::Random;
use core::ptr::{null, null_mut};
use std::sync::{Condvar, Mutex};
use tilekern_acl::*;

/// A small batch, filtered again and again in one stream.
struct Worker {
    stream: aclrtStream,
    logits: Buffer,
    k: Buffer,
    out: Buffer,
    workspace: Option<Buffer>,
    tensors: [Tensor; 3],
}

const COLUMNS: usize = 97;

impl Worker {
    fn new(stream: aclrtStream) -> Worker {
        let (logits, k, out) = (Buffer::of(&[0.0f32; COLUMNS]), Buffer::of(&[5i32]), Buffer::of(&[0.0f32; COLUMNS]));
        let row = [1, COLUMNS as i64];
        let tensors =
            [Tensor::new(&logits, &row, ACL_FLOAT), Tensor::new(&k, &[1], ACL_INT32), Tensor::new(&out, &row, ACL_FLOAT)];
        let mut worker = Worker { stream, logits, k, out, workspace: None, tensors };
        let size = worker.begin().workspace as usize;
        worker.workspace = (size > 0).then(|| Buffer::empty(size));
        worker
    }

    /// Its executor is destroyed by whoever does not run it.
    fn begin(&self) -> crate::device::Call {
        let [logits, k, out] = &self.tensors;
        let begin = |s, e| acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(logits.0, null(), k.0, out.0, s, e));
        let call = phase_one(begin).unwrap();
        if self.workspace.is_none() {
            assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 0);
        }
        call
    }

    /// The five largest of these logits stay.
    fn turn(&self, random: &mut Random) {
        let logits = random.many(COLUMNS, |r| r.float(5.0));
        let (bytes, address) = (4 * COLUMNS, self.logits.address);
        let from = logits.as_ptr().cast();
        assert_eq!(acl!(runtime::aclrtMemcpyAsync(address, bytes, from, bytes, ACL_MEMCPY_HOST_TO_DEVICE, self.stream)), 0);
        let call = self.begin();
        let place = self.workspace.as_ref().map_or(null_mut(), |buffer| buffer.address);
        let run: operators::aclnnRun = crate::common::symbol("aclnnApplyTopKTopP");
        // SAFETY: handles, and memory of the device.
        assert_eq!(unsafe { run(place, call.workspace, call.executor, self.stream) }, 0, "{}", message());
        assert_eq!(acl!(runtime::aclrtSynchronizeStream(self.stream)), 0);
        let mut sorted = logits.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let kept = logits.iter().map(|&x| if x >= sorted[4] { x } else { f32::NEG_INFINITY });
        assert_eq!(self.out.read::<f32>(COLUMNS), kept.collect::<Vec<_>>());
    }
}

#[test]
fn four_threads_with_a_stream_each() {
    let _open = Open::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                assert_eq!(acl!(runtime::aclrtSetDevice(0)), 0);
                let (worker, mut random) = (Worker::new(stream()), Random(thread));
                (0..1000).for_each(|_| worker.turn(&mut random));
                assert_eq!(acl!(runtime::aclrtDestroyStream(worker.stream)), 0);
                assert_eq!(worker.k.read::<i32>(1), [5]);
                drop(worker);
                assert_eq!(acl!(runtime::aclrtResetDevice(0)), 0);
            });
        }
    });
}

/// Two threads take turns with one stream: each fills a cell and copies it to the next place of a line.
#[test]
fn a_stream_of_two_threads_keeps_its_order() {
    const STEPS: usize = 500;
    let open = Open::new();
    let (line, cell) = (Buffer::of(&[0u8; STEPS]), Buffer::of(&[0u8]));
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    let (line_at, cell_at, stream) = (line.address as usize, cell.address as usize, open.stream as usize);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || {
                assert_eq!(acl!(runtime::aclrtSetDevice(0)), 0);
                loop {
                    // Whoever has the turn submits; the stream runs in that order.
                    let is_other = |step: &mut usize| *step < STEPS && *step % 2 != thread;
                    let mut step = changed.wait_while(turn.lock().unwrap(), is_other).unwrap();
                    if *step == STEPS {
                        break;
                    }
                    let (to, stream) = ((line_at + *step) as *mut _, stream as aclrtStream);
                    assert_eq!(acl!(runtime::aclrtMemsetAsync(cell_at as *mut _, 1, *step as i32, 1, stream)), 0);
                    let kind = ACL_MEMCPY_DEVICE_TO_DEVICE;
                    assert_eq!(acl!(runtime::aclrtMemcpyAsync(to, 1, cell_at as *const _, 1, kind, stream)), 0);
                    *step += 1;
                    changed.notify_one();
                }
                assert_eq!(acl!(runtime::aclrtResetDevice(0)), 0);
            });
        }
    });
    assert_eq!(open.synchronise(), 0);
    assert_eq!(line.read::<u8>(STEPS), (0..STEPS).map(|step| step as u8).collect::<Vec<_>>());
}

#[test]
fn events_order_streams() {
    let open = Open::new();
    let (other, mut events) = (stream(), [null_mut(); 2]);
    for event in &mut events {
        assert_eq!(acl!(runtime::aclrtCreateEventWithFlag(event, 8)), 0);
    }
    let status = |event| {
        let mut found = aclrtEventRecordedStatus(-1);
        assert_eq!(acl!(runtime::aclrtQueryEventStatus(event, &mut found)), 0);
        found
    };
    assert_eq!(status(events[0]), ACL_EVENT_RECORDED_STATUS_NOT_READY, "never recorded");
    assert_eq!(acl!(runtime::aclrtSynchronizeEvent(events[0])), 107000);
    assert_eq!(acl!(runtime::aclrtStreamWaitEvent(other, events[0])), 0, "nothing to wait for");
    let mut ms = -1.0;
    assert_eq!(acl!(runtime::aclrtEventElapsedTime(&mut ms, events[0], events[1])), 107000);

    let size = 1 << 20;
    let (first, second) = (Buffer::of(&vec![0u8; size]), Buffer::of(&vec![0u8; size]));
    for value in 1..50u8 {
        // One stream fills, the other copies what the first has filled, and the first waits for that.
        let fill = acl!(runtime::aclrtMemsetAsync(first.address, size, i32::from(value), size, open.stream));
        assert_eq!((fill, acl!(runtime::aclrtRecordEvent(events[0], open.stream))), (0, 0));
        assert_eq!(acl!(runtime::aclrtStreamWaitEvent(other, events[0])), 0);
        let kind = ACL_MEMCPY_DEVICE_TO_DEVICE;
        assert_eq!(acl!(runtime::aclrtMemcpyAsync(second.address, size, first.address, size, kind, other)), 0);
        assert_eq!(acl!(runtime::aclrtRecordEvent(events[1], other)), 0);
        assert_eq!(acl!(runtime::aclrtStreamWaitEvent(open.stream, events[1])), 0);
        if value % 7 == 0 {
            // Waiting for one stream is waiting for what it waited for.
            assert_eq!(acl!(runtime::aclrtSynchronizeStream(other)), 0);
            assert!(second.read::<u8>(size).iter().all(|&found| found == value));
            assert_eq!(first.read::<u8>(1), [value]);
        }
    }
    assert_eq!(acl!(runtime::aclrtSynchronizeEvent(events[1])), 0);
    assert_eq!([status(events[0]), status(events[1])], [ACL_EVENT_RECORDED_STATUS_COMPLETE; 2]);
    assert_eq!(acl!(runtime::aclrtEventElapsedTime(&mut ms, events[0], events[1])), 0);
    assert!((0.0..60_000.0).contains(&ms), "{ms}");
    assert!(second.read::<u8>(size).iter().all(|&found| found == 49));
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 0);
    for event in events {
        assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
        assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 107017);
    }
    assert_eq!(acl!(runtime::aclrtDestroyStream(other)), 0);
}

/// Who waits for a recording waits for that one, wherever the event is recorded later.
#[test]
fn an_event_may_be_recorded_again_while_it_is_waited_for() {
    let open = Open::new();
    let ([idle, waiting], mut event) = ([stream(), stream()], null_mut());
    assert_eq!(acl!(runtime::aclrtCreateEvent(&mut event)), 0);
    let size = 16 << 20;
    let (from, found) = (Buffer::empty(size), Buffer::of(&[0u8; 64]));
    for value in 0..21 {
        assert_eq!(acl!(runtime::aclrtMemsetAsync(from.address, size, value, size, open.stream)), 0);
    }
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, open.stream)), 0);
    assert_eq!(acl!(runtime::aclrtStreamWaitEvent(waiting, event)), 0);
    let kind = ACL_MEMCPY_DEVICE_TO_DEVICE;
    assert_eq!(acl!(runtime::aclrtMemcpyAsync(found.address, 64, from.address, 64, kind, waiting)), 0);
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, idle)), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeEvent(event)), 0);
    assert_eq!(acl!(runtime::aclrtFree(from.address)), 207002, "only the idle stream was waited for");
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(waiting)), 0);
    assert_eq!(found.read::<u8>(64), [20; 64]);
    assert_eq!(open.synchronise(), 0);
    for stream in [idle, waiting] {
        assert_eq!(acl!(runtime::aclrtDestroyStream(stream)), 0);
    }
    assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
}

/// Asynchronous indeed: a stream that waits is not done, and can be asked and timed out.
#[test]
fn streams_do_not_wait_for_the_caller() {
    let open = Open::new();
    let (other, mut event) = (stream(), null_mut());
    assert_eq!(acl!(runtime::aclrtCreateEvent(&mut event)), 0);
    let size = 64 << 20;
    let buffer = Buffer::empty(size);
    // The other stream has nothing to do until all of this is done.
    let delay = || {
        for value in 0..20 {
            assert_eq!(acl!(runtime::aclrtMemsetAsync(buffer.address, size, value, size, open.stream)), 0);
        }
        assert_eq!(acl!(runtime::aclrtRecordEvent(event, open.stream)), 0);
        assert_eq!(acl!(runtime::aclrtStreamWaitEvent(other, event)), 0);
    };
    delay();
    let query = |stream| {
        let mut found = aclrtStreamStatus(-1);
        assert_eq!(acl!(runtime::aclrtStreamQuery(stream, &mut found)), 0);
        found
    };
    assert_eq!(query(other), ACL_STREAM_STATUS_NOT_READY);
    assert_eq!(acl!(runtime::aclrtSynchronizeStreamWithTimeout(other, 0)), 507046);
    assert_eq!(acl!(runtime::aclrtSynchronizeStreamWithTimeout(other, -2)), 107000);
    assert_eq!(acl!(runtime::aclrtSynchronizeStreamWithTimeout(other, -1)), 0);
    // An answer that everything is done counts as having waited.
    while query(open.stream) != ACL_STREAM_STATUS_COMPLETE {
        std::thread::yield_now();
    }
    assert_eq!((query(other), buffer.read::<u8>(1)), (ACL_STREAM_STATUS_COMPLETE, vec![19]));
    // Without waiting: what has not begun does not run, and memory is free again.
    delay();
    assert_eq!(acl!(runtime::aclrtMemsetAsync(buffer.address, size, 77, size, other)), 0);
    assert_eq!(acl!(runtime::aclrtDestroyStreamForce(other)), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(open.stream)), 0);
    assert_eq!(buffer.read::<u8>(1), [19]);
    assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
}

/// The executor that may run again, with other addresses.
#[test]
fn repeatable_executors() {
    let open = Open::new();
    let worker = Worker::new(open.stream);
    let mut random = Random(9);
    worker.turn(&mut random);
    let [logits, k, out] = &worker.tensors;
    let call = worker.begin();
    let place = |buffer: &Buffer| buffer.address;
    assert_eq!(
        acl!(meta::aclSetInputTensorAddr(call.executor, 0, logits.0, place(&worker.logits))),
        161002,
        "not repeatable yet"
    );
    assert_eq!(acl!(meta::aclSetAclOpExecutorRepeatable(call.executor)), 0);
    let other = Buffer::of(&[0.0f32; COLUMNS]);
    let values: Vec<f32> = (0..COLUMNS).map(|i| i as f32).collect();
    assert_eq!(worker.logits.write(&values), 0);
    for (target, buffer) in [(&worker.out, &worker.out), (&other, &other), (&worker.out, &worker.out)] {
        // The addresses are those of the executor, not of the description.
        assert_eq!(acl!(meta::aclSetRawTensorAddr(out.0, null_mut())), 0);
        assert_eq!(acl!(meta::aclSetOutputTensorAddr(call.executor, 0, out.0, place(buffer))), 0);
        let (status, _workspace) = phase_two("aclnnApplyTopKTopP", call, open.stream);
        assert_eq!((status, open.synchronise()), (0, 0), "{}", message());
        assert_eq!(target.read::<f32>(COLUMNS)[COLUMNS - 6..], [f32::NEG_INFINITY, 92.0, 93.0, 94.0, 95.0, 96.0]);
        assert_eq!(target.write(&[0.0f32; COLUMNS]), 0);
    }
    // Inputs by their place in the prototype: p, which was null, has the second.
    assert_eq!(acl!(meta::aclSetInputTensorAddr(call.executor, 2, k.0, place(&worker.k))), 0);
    assert_eq!(acl!(meta::aclSetTensorAddr(call.executor, 3, out.0, place(&worker.out))), 0);
    for (index, tensor) in [(1, k.0), (0, k.0), (3, k.0)] {
        assert_eq!(acl!(meta::aclSetInputTensorAddr(call.executor, index, tensor, place(&worker.k))), 161002);
    }
    // A parameter that is no list has no member of a list, not even of null.
    let no_list = acl!(meta::aclSetDynamicInputTensorAddr(call.executor, 0, 0, null_mut(), place(&other)));
    assert_eq!(no_list, 161002);
    // Descriptors may go once it ran.
    let gone = View::contiguous(&[1, COLUMNS as i64], ACL_FLOAT).describe(place(&worker.out));
    let begun =
        phase_one(|s, e| acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(logits.0, core::ptr::null(), k.0, gone.0, s, e)));
    let second = begun.unwrap();
    assert_eq!(acl!(meta::aclSetAclOpExecutorRepeatable(second.executor)), 0);
    let mut gone = Some(gone);
    for _ in 0..3 {
        let (status, _workspace) = phase_two("aclnnApplyTopKTopP", second, open.stream);
        assert_eq!((status, open.synchronise()), (0, 0), "{}", message());
        assert_eq!(worker.out.read::<f32>(COLUMNS)[COLUMNS - 2..], [95.0, 96.0]);
        assert_eq!(worker.out.write(&[0.0f32; COLUMNS]), 0);
        drop(gone.take());
    }
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(second.executor)), 0);
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 0);
    assert_eq!(phase_two("aclnnApplyTopKTopP", call, open.stream).0, 561000);
    assert_eq!(acl!(meta::aclSetAclOpExecutorRepeatable(call.executor)), 561000);
    assert_eq!(acl!(meta::aclSetAclOpExecutorRepeatable(null_mut())), 161001);
}
