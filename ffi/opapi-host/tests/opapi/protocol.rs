//! What callers may do in which order, and what they get for doing otherwise.

use crate::common::{acl, message, symbol};
use crate::device::{Buffer, Call, Open, Tensor, View, alive, phase_one, phase_two, stream};
use core::cell::Cell;
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use std::sync::mpsc;
use tilekern_acl::*;

/// Gather of one row: a small operator without a workspace.
struct Rows {
    values: Buffer,
    index: Buffer,
    out: Buffer,
    tensors: [Tensor; 3],
}

impl Rows {
    fn new(values: [f32; 4], index: [i64; 3]) -> Rows {
        let (values, index, out) = (Buffer::of(&values), Buffer::of(&index), Buffer::of(&[-1.0f32; 3]));
        let tensors = [
            Tensor::new(&values, &[1, 4], ACL_FLOAT),
            Tensor::new(&index, &[1, 3], ACL_INT64),
            Tensor::new(&out, &[1, 3], ACL_FLOAT),
        ];
        Rows { values, index, out, tensors }
    }

    fn begin(&self) -> Result<Call, i32> {
        let [values, index, out] = &self.tensors;
        phase_one(|size, executor| acl!(operators::aclnnGatherGetWorkspaceSize(values.0, 1, index.0, out.0, size, executor)))
    }

    fn run(&self, call: Call, stream: aclrtStream) -> i32 {
        phase_two("aclnnGather", call, stream).0
    }

    fn answer(&self) -> Vec<f32> {
        self.out.read(3)
    }
}

const VALUES: [f32; 4] = [10.0, 11.0, 12.0, 13.0];

#[test]
fn a_call_runs_and_its_executor_is_gone() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let call = rows.begin().unwrap();
    assert_eq!((call.workspace, alive()[1]), (0, 1));
    assert_eq!(rows.run(call, open.stream), 0);
    assert_eq!(alive()[1], 0);
    assert_eq!(open.synchronise(), 0);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0]);
    // Phase two twice.
    assert_eq!(rows.run(call, open.stream), 561000);
    assert!(message().contains("run or destroyed"));
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 561000);
}

#[test]
fn misuse_of_executors() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let run: operators::aclnnRun = symbol("aclnnGather");
    // SAFETY: handles.
    assert_eq!(unsafe { run(null_mut(), 0, null_mut(), open.stream) }, 161001);
    let call = rows.begin().unwrap();
    // Of another operator; it stays.
    assert_eq!(phase_two("aclnnMultinomial", call, open.stream).0, 561000);
    assert!(message().contains("aclnnGather"));
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 0);
    assert_eq!(rows.run(call, open.stream), 561000);
    // Any pointer is only looked up.
    let strange = Call { workspace: 0, executor: 0x1234 as *mut aclOpExecutor };
    assert_eq!(rows.run(strange, open.stream), 561000);
    // Never run: it is counted until it is destroyed.
    let kept = rows.begin().unwrap();
    assert_eq!(alive()[1], 1);
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(kept.executor)), 0);
    assert_eq!(acl!(meta::aclDestroyAclOpExecutor(null_mut())), 0);
}

#[test]
fn misuse_of_descriptors() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    // Destroyed before phase one.
    let dead = View::contiguous(&[1, 4], ACL_FLOAT).describe(rows.values.address);
    let handle = dead.0;
    drop(dead);
    let [_, index, out] = &rows.tensors;
    let begun = phase_one(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(handle, 1, index.0, out.0, s, e)));
    assert_eq!(begun.unwrap_err(), 161002);
    assert!(message().contains("self: no live descriptor"));
    assert_eq!(acl!(meta::aclDestroyTensor(handle)), 161002);
    assert_eq!(acl!(meta::aclDestroyTensor(core::ptr::null())), 0);
    // Destroyed between the phases.
    let second = View::contiguous(&[1, 4], ACL_FLOAT).describe(rows.values.address);
    let begun = phase_one(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(second.0, 1, index.0, out.0, s, e))).unwrap();
    drop(second);
    assert_eq!(rows.run(begun, open.stream), 161002);
    // After phase two it may be destroyed at once.
    let third = View::contiguous(&[1, 4], ACL_FLOAT).describe(rows.values.address);
    let begun = phase_one(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(third.0, 1, index.0, out.0, s, e))).unwrap();
    assert_eq!(rows.run(begun, open.stream), 0);
    drop(third);
    assert_eq!(open.synchronise(), 0);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0]);
    // Handles of another kind are none of this.
    let array = acl!(meta::aclCreateIntArray([1i64].as_ptr(), 1));
    assert_eq!(acl!(meta::aclDestroyTensor(array.cast())), 161002);
    assert_eq!(acl!(meta::aclDestroyIntArray(array)), 0);
}

#[test]
fn memory_in_use_stays() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let call = rows.begin().unwrap();
    assert_eq!(rows.run(call, open.stream), 0);
    for buffer in [&rows.values, &rows.index, &rows.out] {
        assert_eq!(acl!(runtime::aclrtFree(buffer.address)), 207002);
        assert!(message().contains("synchronise the stream first"));
    }
    // Reading a result before the wait is refused as well, reading an input is not.
    let mut early = [0.0f32; 4];
    let to = early.as_mut_ptr().cast::<c_void>();
    assert_eq!(acl!(runtime::aclrtMemcpy(to, 12, rows.out.address, 12, ACL_MEMCPY_DEVICE_TO_HOST)), 107000);
    assert_eq!(acl!(runtime::aclrtMemcpy(to, 16, rows.values.address, 16, ACL_MEMCPY_DEVICE_TO_HOST)), 0);
    assert_eq!(early, VALUES);
    assert_eq!(rows.values.write(&VALUES), 107000);
    assert_eq!(open.synchronise(), 0);
    assert_eq!(rows.values.write(&VALUES), 0);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0]);
}

#[test]
fn memory_that_is_gone() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let [_, index, out] = &rows.tensors;
    let short = Buffer::empty(16);
    let view = View::contiguous(&[1, 4], ACL_FLOAT);
    let tensor = view.describe(short.address);
    let begin = || phase_one(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(tensor.0, 1, index.0, out.0, s, e))).unwrap();
    let call = begin();
    drop(short);
    assert_eq!(rows.run(call, open.stream), 161002);
    assert!(message().contains("freed, or never allocated"));
    // Beyond the end of a buffer, on the host's stack, and nowhere.
    let small = Buffer::empty(15);
    let mut own = VALUES;
    for (address, status) in [(small.address, 161002), (own.as_mut_ptr().cast(), 161002), (null_mut(), 161001)] {
        assert_eq!(acl!(meta::aclSetRawTensorAddr(tensor.0, address)), 0);
        assert_eq!(rows.run(begin(), open.stream), status, "{}", message());
    }
    assert_eq!(open.synchronise(), 0);
    assert_eq!(rows.answer(), [-1.0; 3]);
}

/// An offset leads out of the buffer of its data, into another that lives.
#[test]
fn views_stay_in_the_buffer_of_their_data() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let [values, index, out] = &rows.tensors;
    let (first, second) = (Buffer::of(&VALUES), Buffer::of(&VALUES));
    let (low, high) = if first.address < second.address { (&first, &second) } else { (&second, &first) };
    let offset = (high.address as i64 - low.address as i64) / 4;
    let begin = |values: &Tensor, out: &Tensor| {
        phase_one(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(values.0, 1, index.0, out.0, s, e)))
    };
    let to = View { offset, ..View::contiguous(&[1, 3], ACL_FLOAT) }.describe(low.address);
    assert_eq!(rows.run(begin(values, &to).unwrap(), open.stream), 161002, "{}", message());
    let from = View { offset, ..View::contiguous(&[1, 4], ACL_FLOAT) }.describe(low.address);
    assert_eq!(rows.run(begin(&from, out).unwrap(), open.stream), 161002, "{}", message());
    assert_eq!(open.synchronise(), 0);
    assert_eq!((high.read::<f32>(4), rows.answer()), (VALUES.to_vec(), vec![-1.0; 3]));
}

#[test]
fn outputs_keep_off_seed_and_offset() {
    let open = Open::new();
    let (weights, numbers) = (Buffer::of(&[1.0f32; 4]), Buffer::of(&[5i64, 6]));
    let number = |offset| View { offset, ..View::contiguous(&[1], ACL_INT64) }.describe(numbers.address);
    let (probs, seed, offset) = (Tensor::new(&weights, &[1, 4], ACL_FLOAT), number(0), number(1));
    for at in [0, 1] {
        let out = View { offset: at, ..View::contiguous(&[1, 1], ACL_INT64) }.describe(numbers.address);
        let draw =
            |s, e| acl!(operators::aclnnMultinomialTensorGetWorkspaceSize(probs.0, 1, true, seed.0, offset.0, 0, out.0, s, e));
        assert_eq!(phase_one(draw).unwrap_err(), 161002, "{}", message());
        let values = View { offset: 2 * at, ..View::contiguous(&[2], ACL_FLOAT) }.describe(numbers.address);
        let fill =
            |s, e| acl!(operators::aclnnStatelessExponentialTensorGetWorkspaceSize(values.0, seed.0, offset.0, 0, 1.0, s, e));
        assert_eq!(phase_one(fill).unwrap_err(), 161002, "{}", message());
    }
    assert_eq!((numbers.read::<i64>(2), open.synchronise()), (vec![5, 6], 0));
}

#[test]
fn threads_without_a_device() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let (call, used) = (rows.begin().unwrap(), open.stream as usize);
    let executor = call.executor as usize;
    std::thread::spawn(move || {
        let (mut place, stream) = (null_mut::<c_void>(), used as aclrtStream);
        let mut number = 0;
        assert_eq!(acl!(runtime::aclrtMalloc(&mut place, 64, ACL_MEM_MALLOC_HUGE_FIRST)), 107002);
        assert!(message().contains("call aclrtSetDevice"));
        assert_eq!(acl!(runtime::aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL)), 107002);
        assert_eq!(acl!(runtime::aclrtGetLastError(ACL_RT_THREAD_LEVEL)), 107002);
        assert_eq!(acl!(runtime::aclrtGetLastError(ACL_RT_THREAD_LEVEL)), 0);
        assert_eq!(message(), "", "read once");
        assert_eq!(acl!(runtime::aclrtGetDevice(&mut number)), 107002);
        assert_eq!(acl!(runtime::aclrtCreateStream(&mut place)), 107002);
        assert_eq!(acl!(runtime::aclrtCreateEvent(&mut place)), 107002);
        assert_eq!(acl!(runtime::aclrtGetCurrentContext(&mut place)), 107002);
        assert_eq!(acl!(runtime::aclrtSynchronizeStream(stream)), 107002);
        assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 107002);
        let call = Call { workspace: 0, executor: executor as *mut aclOpExecutor };
        assert_eq!(phase_two("aclnnGather", call, stream).0, 107002);
        assert_eq!(acl!(runtime::aclrtSetDevice(7)), 107001);
        assert_eq!(acl!(runtime::aclrtSetDevice(0)), 0);
        assert_eq!(acl!(runtime::aclrtSynchronizeStream(stream)), 0);
        assert_eq!(acl!(runtime::aclrtResetDevice(0)), 0);
    })
    .join()
    .unwrap();
}

#[test]
fn contexts_have_their_own_streams() {
    let open = Open::new();
    let rows = Rows::new(VALUES, [3, 0, 2]);
    let (mut first, mut other) = (null_mut(), null_mut());
    assert_eq!(acl!(runtime::aclrtGetCurrentContext(&mut first)), 0);
    assert_eq!(acl!(runtime::aclrtCreateContext(&mut other, 0)), 0);
    let call = rows.begin().unwrap();
    assert_eq!(rows.run(call, open.stream), 107003);
    assert_eq!(open.synchronise(), 107003);
    // Null is the default stream of the context.
    assert_eq!(rows.run(rows.begin().unwrap(), null_mut()), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(null_mut())), 0);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0]);
    assert_eq!(acl!(runtime::aclrtDestroyContext(other)), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 107002);
    assert_eq!(acl!(runtime::aclrtSetCurrentContext(other)), 107017);
    assert_eq!(acl!(runtime::aclrtSetCurrentContext(first)), 0);
    assert_eq!(acl!(runtime::aclrtDestroyContext(first)), 107000, "a default one");
    assert_eq!(open.synchronise(), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(0x40 as aclrtStream)), 107017);
}

/// Puts a gather with an index that is out of range, and then a good one, into the stream.
fn fails_then_runs(rows: &Rows, bad: &Rows, stream: aclrtStream) {
    assert_eq!(bad.run(bad.begin().unwrap(), stream), 0, "phase two cannot know it");
    assert_eq!(rows.run(rows.begin().unwrap(), stream), 0);
}

#[test]
fn failures_come_with_the_next_synchronise() {
    let open = Open::new();
    let (rows, bad) = (Rows::new(VALUES, [3, 0, 2]), Rows::new(VALUES, [0, 4, 1]));
    fails_then_runs(&rows, &bad, open.stream);
    assert_eq!(open.synchronise(), 507015);
    let text = message();
    assert!(text.contains("aclnnGather: index: expected 0 to 3 at [0, 1], found 4"), "{text}");
    assert_eq!(open.synchronise(), 0, "it is said once");
    assert_eq!(bad.answer(), [-1.0; 3]);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0], "later work ran");
    // Through an event, and through the device.
    let mut event = null_mut();
    assert_eq!(acl!(runtime::aclrtCreateEvent(&mut event)), 0);
    fails_then_runs(&rows, &bad, open.stream);
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, open.stream)), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeEvent(event)), 507015);
    fails_then_runs(&rows, &bad, open.stream);
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 507015);
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 0);
    // What fails behind an event is the stream's to tell, also where it had failed before the event was asked.
    fails_then_runs(&rows, &bad, open.stream);
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, open.stream)), 0);
    let again = Rows::new(VALUES, [0, 0, 9]);
    assert_eq!(again.run(again.begin().unwrap(), open.stream), 0);
    let mut done = ACL_STREAM_STATUS_NOT_READY;
    while done != ACL_STREAM_STATUS_COMPLETE {
        assert_eq!(acl!(runtime::aclrtStreamQuery(open.stream, &mut done)), 0);
    }
    assert_eq!(acl!(runtime::aclrtSynchronizeEvent(event)), 507015);
    assert_eq!((open.synchronise(), open.synchronise()), (507015, 0));
    assert!(message().contains("found 9"));
    assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
    // Of two streams each keeps its own.
    let other = stream();
    fails_then_runs(&rows, &bad, open.stream);
    let second = Rows::new(VALUES, [0, 0, 7]);
    assert_eq!(second.run(second.begin().unwrap(), other), 0);
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 507015);
    let first = message();
    let left = [open.synchronise(), acl!(runtime::aclrtSynchronizeStream(other))];
    let told = [first, message()];
    assert!(left == [507015, 0] || left == [0, 507015], "{left:?}");
    assert!(["found 4", "found 7"].into_iter().all(|what| told.iter().any(|text| text.contains(what))), "{told:?}");
    assert_eq!(acl!(runtime::aclrtSynchronizeDevice()), 0);
    assert_eq!(acl!(runtime::aclrtDestroyStream(other)), 0);
}

/// What a thread destroys when it ends may fail, and it may ask why.
#[test]
fn a_thread_that_ends_has_no_messages() {
    struct Last(mpsc::Sender<(i32, Vec<u8>)>);
    impl Drop for Last {
        fn drop(&mut self) {
            let code = acl!(runtime::aclrtDestroyStream(0x40 as aclrtStream));
            let text = acl!(runtime::aclGetRecentErrMsg());
            // SAFETY: a string of the library's.
            let text = unsafe { CStr::from_ptr(text) };
            self.0.send((code, text.to_bytes().to_vec())).unwrap();
        }
    }
    thread_local!(static LAST: Cell<Option<Last>> = const { Cell::new(None) });
    let (told, tells) = mpsc::channel();
    // Made before the library's own, it goes behind them.
    let thread = std::thread::spawn(move || {
        LAST.set(Some(Last(told)));
        assert_eq!(acl!(runtime::aclrtDestroyStream(0x40 as aclrtStream)), 107017);
        assert!(message().contains("no live stream"));
    });
    thread.join().unwrap();
    assert_eq!(tells.recv().unwrap(), (107017, vec![]));
}

#[test]
fn a_stream_that_stops() {
    let open = Open::new();
    let (rows, bad) = (Rows::new(VALUES, [3, 0, 2]), Rows::new(VALUES, [0, 4, 1]));
    let stopping = stream();
    assert_eq!(acl!(runtime::aclrtSetStreamFailureMode(stopping, 2)), 107000);
    assert_eq!(acl!(runtime::aclrtSetStreamFailureMode(stopping, ACL_STOP_ON_FAILURE)), 0);
    fails_then_runs(&rows, &bad, stopping);
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(stopping)), 507015);
    assert_eq!(rows.answer(), [-1.0; 3], "later work did not run");
    // Events behind the failure come to pass all the same, so nobody waits for ever.
    let mut event = null_mut();
    assert_eq!(acl!(runtime::aclrtCreateEvent(&mut event)), 0);
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, stopping)), 0);
    assert_eq!(acl!(runtime::aclrtStreamWaitEvent(open.stream, event)), 0);
    assert_eq!(rows.run(rows.begin().unwrap(), open.stream), 0);
    assert_eq!(open.synchronise(), 0);
    assert_eq!(rows.answer(), [13.0, 10.0, 12.0]);
    assert_eq!(acl!(runtime::aclrtSynchronizeStream(stopping)), 507015, "it stays stopped");
    assert_eq!(acl!(runtime::aclrtDestroyStream(stopping)), 0);
    assert_eq!(acl!(runtime::aclrtDestroyStream(stopping)), 107017);
    assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
    assert_eq!(acl!(runtime::aclrtRecordEvent(event, open.stream)), 107017);
}
