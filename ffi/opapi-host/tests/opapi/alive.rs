//! What is created is counted, and nothing is left: descriptors, lists, executors, buffers, and what a forgetful program is told.

use crate::common::{acl, installation, message};
use crate::device::{Buffer, Call, Open, Tensor, View, alive, phase_one, phase_two};
use crate::layout::Random;
use core::ptr::{null, null_mut};
use tilekern_acl::*;

#[test]
fn beginning_and_end() {
    let open = Open::new();
    assert_eq!(acl!(runtime::aclInit(null())), 100002);
    let mut owners = 9;
    assert_eq!((acl!(runtime::aclFinalizeReference(&mut owners)), owners), (0, 1));
    assert_eq!(acl!(runtime::aclInit(c"/no/such/file.json".as_ptr())), 100003);
    assert!(message().starts_with("aclInit: configPath: no file /no/such/file.json"));
    assert_eq!((acl!(meta::aclnnInit(null())), acl!(meta::aclnnFinalize())), (0, 0));
    let (mut device, mut count, mut mode) = (-1, 0, ACL_DEVICE);
    assert_eq!((acl!(runtime::aclrtGetDevice(&mut device)), device), (0, 0));
    assert_eq!((acl!(runtime::aclrtGetDeviceCount(&mut count)), count), (0, 1));
    assert_eq!((acl!(runtime::aclrtGetRunMode(&mut mode)), mode), (0, ACL_HOST));
    let (mut number, mut text) = (0, [0; 128]);
    assert_eq!(acl!(runtime::aclsysGetVersionNum(null_mut(), &mut number)), 0);
    assert_eq!(acl!(runtime::aclsysGetVersionStr(null_mut(), text.as_mut_ptr())), 0);
    let text: Vec<u8> = text.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    assert_eq!((&text[..], number), (env!("CARGO_PKG_VERSION").as_bytes(), 100_000));
    assert_eq!([ACL_FLOAT, ACL_BF16, ACL_INT64, ACL_INT4].map(|dtype| acl!(runtime::aclDataTypeSize(dtype))), [4, 2, 8, 0]);
    assert_eq!(acl!(runtime::aclrtSetDeviceSatMode(aclrtFloatOverflowMode(3))), 100000);
    assert_eq!(acl!(runtime::aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN)), 0);
    assert_eq!(acl!(runtime::aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1)), 0);
    assert_eq!(acl!(runtime::aclrtCtxSetSysParamOpt(aclSysParamOpt(-1), 1)), 100000);
    assert_eq!(acl!(runtime::aclrtSetOpExecuteTimeOut(1)), 0);
    // Set twice, reset twice; the context lives until the last.
    assert_eq!(acl!(runtime::aclrtSetDevice(0)), 0);
    assert_eq!(acl!(runtime::aclrtResetDevice(0)), 0);
    assert_eq!(open.synchronise(), 0);
    drop(open);
    let open = Open::new();
    assert_eq!(acl!(runtime::aclFinalize()), 0);
    assert_eq!(acl!(runtime::aclFinalize()), 100037);
    assert_eq!(acl!(runtime::aclInit(null())), 0);
    assert_eq!(open.synchronise(), 0);
}

#[test]
fn descriptions() {
    let _open = Open::new();
    let create = |dims: *const i64, rank, strides: *const i64| {
        acl!(meta::aclCreateTensor(dims, rank, ACL_FLOAT, strides, 3, ACL_FORMAT_NCHW, null(), 0, 0x40 as *mut _))
    };
    assert!(create(null(), 2, null()).is_null());
    assert!(message().contains("viewDims is null"));
    let tensor = create([2i64, 3, 4].as_ptr(), 3, null());
    type Get = unsafe extern "C" fn(*const aclTensor, *mut *mut i64, *mut u64) -> aclnnStatus;
    let get = |name: &str, tensor| {
        let (mut numbers, mut count) = (null_mut(), 0);
        let get: Get = crate::common::symbol(name);
        // SAFETY: a handle, and places for the answers.
        if unsafe { get(tensor, &mut numbers, &mut count) } != 0 {
            return None;
        }
        // SAFETY: as many numbers as it says, in memory of malloc's.
        unsafe {
            let copy = core::slice::from_raw_parts(numbers, count as usize).to_vec();
            free(numbers.cast());
            Some(copy)
        }
    };
    unsafe extern "C" {
        fn free(memory: *mut core::ffi::c_void);
    }
    let none = get("aclGetStorageShape", tensor);
    assert_eq!(get("aclGetViewShape", tensor), Some(vec![2, 3, 4]));
    assert_eq!((get("aclGetViewStrides", tensor), none), (Some(vec![12, 4, 1]), Some(vec![])));
    let (mut offset, mut format, mut dtype, mut address) = (0, ACL_FORMAT_ND, ACL_BOOL, null_mut());
    assert_eq!((acl!(meta::aclGetViewOffset(tensor, &mut offset)), offset), (0, 3));
    assert_eq!((acl!(meta::aclGetFormat(tensor, &mut format)), format), (0, ACL_FORMAT_NCHW));
    assert_eq!((acl!(meta::aclGetDataType(tensor, &mut dtype)), dtype), (0, ACL_FLOAT));
    assert_eq!((acl!(meta::aclGetRawTensorAddr(tensor, &mut address)), address as usize), (0, 0x40));
    let (dims, strides) = ([6i64, 7], [1i64, 6]);
    let again = acl!(meta::aclInitTensor(
        tensor,
        dims.as_ptr(),
        2,
        ACL_INT8,
        strides.as_ptr(),
        0,
        ACL_FORMAT_ND,
        dims.as_ptr(),
        2,
        null_mut()
    ));
    assert_eq!(again, 0);
    assert_eq!((get("aclGetViewShape", tensor), get("aclGetViewStrides", tensor)), (Some(vec![6, 7]), Some(vec![1, 6])));
    assert_eq!(acl!(meta::aclDestroyTensor(tensor)), 0);
    assert_eq!(get("aclGetViewShape", tensor), None);
    assert_eq!(acl!(meta::aclGetFormat(tensor, &mut format)), 161002);
    assert_eq!(acl!(meta::aclGetFormat(null(), &mut format)), 161001);
}

#[test]
fn lists_own_their_members() {
    let _open = Open::new();
    let tensor = || acl!(meta::aclCreateTensor([1i64].as_ptr(), 1, ACL_FLOAT, null(), 0, ACL_FORMAT_ND, null(), 0, null_mut()));
    let members = [tensor(), tensor(), tensor()];
    let list = |of: &[*mut aclTensor]| acl!(meta::aclCreateTensorList(of.as_ptr().cast(), of.len() as u64));
    let first = list(&members[..2]);
    assert!(list(&[members[2], members[0]]).is_null(), "a member of another list");
    assert!(list(&[members[2], 0x10 as *mut aclTensor]).is_null());
    assert!(list(&[members[2], members[2]]).is_null());
    let mut size = 0;
    assert_eq!((acl!(meta::aclGetTensorListSize(first, &mut size)), size), (0, 2));
    assert_eq!(acl!(meta::aclDestroyTensor(members[0])), 161002);
    assert!(message().contains("a list owns this descriptor"));
    assert_eq!(acl!(meta::aclDestroyTensor(members[2])), 0, "refused lists own nothing");
    assert_eq!(alive()[0], 3);
    assert_eq!(acl!(meta::aclDestroyTensorList(first)), 0);
    assert_eq!(alive()[0], 0);
    assert_eq!(acl!(meta::aclDestroyTensorList(first)), 161002);
    assert_eq!(acl!(meta::aclDestroyTensor(members[0])), 161002);

    let mut number = 1.5f32;
    let scalar = acl!(meta::aclCreateScalar((&raw mut number).cast(), ACL_FLOAT));
    assert!(acl!(meta::aclCreateScalar(null_mut(), ACL_FLOAT)).is_null());
    for none in [ACL_DT_UNDEFINED, aclDataType(-3), aclDataType(5), aclDataType(59)] {
        assert!(acl!(meta::aclCreateScalar((&raw mut number).cast(), none)).is_null());
    }
    let scalars = acl!(meta::aclCreateScalarList([scalar.cast_const()].as_ptr(), 1));
    assert_eq!((acl!(meta::aclGetScalarListSize(scalars, &mut size)), size), (0, 1));
    assert_eq!(acl!(meta::aclDestroyScalar(scalar)), 161002);
    assert_eq!(acl!(meta::aclDestroyScalarList(scalars)), 0);
    let arrays = (
        acl!(meta::aclCreateIntArray([1i64, 2].as_ptr(), 2)),
        acl!(meta::aclCreateFloatArray([1.0f32].as_ptr(), 1)),
        acl!(meta::aclCreateBoolArray([true; 3].as_ptr(), 3)),
    );
    assert_eq!((acl!(meta::aclGetIntArraySize(arrays.0, &mut size)), size), (0, 2));
    assert_eq!((acl!(meta::aclGetFloatArraySize(arrays.1, &mut size)), size), (0, 1));
    assert_eq!((acl!(meta::aclGetBoolArraySize(arrays.2, &mut size)), size), (0, 3));
    assert!(acl!(meta::aclCreateIntArray(null(), 2)).is_null());
    assert_eq!(acl!(meta::aclGetIntArraySize(arrays.1.cast(), &mut size)), 161002, "of another kind");
    assert_eq!(alive()[0], 3);
    assert_eq!(acl!(meta::aclDestroyIntArray(arrays.0)), 0);
    assert_eq!(acl!(meta::aclDestroyFloatArray(arrays.1)), 0);
    assert_eq!(acl!(meta::aclDestroyBoolArray(arrays.2)), 0);
}

/// What a random program holds.
#[derive(Default)]
struct Held {
    buffers: Vec<Buffer>,
    tensors: Vec<(Tensor, usize)>,
    calls: Vec<(Call, bool)>,
    lists: Vec<*mut aclTensorList>,
    events: Vec<aclrtEvent>,
}

impl Held {
    fn counts(&self) -> [i64; 5] {
        let members = 3 * self.lists.len();
        [self.tensors.len() + members, self.calls.len(), self.buffers.len(), 1, self.events.len()].map(|n| n as i64)
    }

    fn step(&mut self, open: &Open, random: &mut Random) {
        let view = View::contiguous(&[1, 8], ACL_FLOAT);
        match random.below(12) {
            0 | 1 => self.buffers.push(Buffer::of(&[1.0f32; 8])),
            2 | 3 if !self.buffers.is_empty() => {
                let address = self.buffers[random.below(self.buffers.len())].address;
                self.tensors.push((view.describe(address), address as usize));
            }
            4..=6 if self.tensors.len() > 1 => {
                let [from, to] = [(); 2].map(|()| &self.tensors[random.below(self.tensors.len())]);
                let k = Buffer::of(&[3i32]);
                let limit = Tensor::new(&k, &[1], ACL_INT32);
                let begun = phase_one(|s, e| {
                    acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(from.0.0, null(), limit.0, to.0.0, s, e))
                });
                let lives = |address| self.buffers.iter().any(|buffer| buffer.address as usize == address);
                let live = lives(from.1) && lives(to.1);
                // In place is refused; whether memory was freed is asked by the second phase.
                assert_eq!(begun.is_ok(), from.1 != to.1 || !live, "{}", message());
                let Ok(call) = begun else { return };
                match random.below(3) {
                    0 => self.calls.push((call, false)),
                    1 => {
                        assert_eq!(acl!(meta::aclSetAclOpExecutorRepeatable(call.executor)), 0);
                        self.calls.push((call, true));
                    }
                    _ => {
                        let (status, _workspace) = phase_two("aclnnApplyTopKTopP", call, open.stream);
                        assert_eq!((status == 0, open.synchronise()), (live, 0), "{}", message());
                    }
                }
            }
            7 if !self.calls.is_empty() => {
                let (call, repeats) = self.calls.swap_remove(random.below(self.calls.len()));
                // Its k is gone, and perhaps more: refused, and an executor that is no repeatable one is taken all the same.
                assert_ne!(phase_two("aclnnApplyTopKTopP", call, open.stream).0, 0);
                assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), if repeats { 0 } else { 561000 });
            }
            8 if !self.calls.is_empty() => {
                let (call, _) = self.calls.swap_remove(random.below(self.calls.len()));
                assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 0);
            }
            9 if !self.tensors.is_empty() => drop(self.tensors.swap_remove(random.below(self.tensors.len()))),
            10 if self.tensors.len() > 1 => match random.below(2) {
                0 => {
                    let pair = [self.tensors.pop().unwrap().0, self.tensors.pop().unwrap().0];
                    let list = acl!(meta::aclCreateTensorList(pair.each_ref().map(|one| one.0.cast_const()).as_ptr(), 2));
                    assert!(!list.is_null());
                    self.lists.push(list);
                    pair.into_iter().for_each(core::mem::forget);
                }
                _ => {
                    if let Some(list) = self.lists.pop() {
                        assert_eq!(acl!(meta::aclDestroyTensorList(list)), 0);
                    }
                }
            },
            11 if random.below(2) == 1 => {
                if let Some(event) = self.events.pop() {
                    assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
                }
            }
            11 => {
                let mut event = null_mut();
                assert_eq!(acl!(runtime::aclrtCreateEvent(&mut event)), 0);
                self.events.push(event);
            }
            _ if self.buffers.len() > 3 => drop(self.buffers.swap_remove(random.below(self.buffers.len()))),
            _ => {}
        }
    }
}

#[test]
fn counts_balance_under_random_sequences() {
    for seed in 0..20 {
        let open = Open::new();
        let (mut held, mut random) = (Held::default(), Random(seed));
        for _ in 0..300 {
            held.step(&open, &mut random);
            assert_eq!(alive()[..5], held.counts());
        }
        for (call, _) in held.calls.drain(..) {
            assert_eq!(acl!(meta::aclDestroyAclOpExecutor(call.executor)), 0);
        }
        for list in held.lists.drain(..) {
            assert_eq!(acl!(meta::aclDestroyTensorList(list)), 0);
        }
        for event in held.events.drain(..) {
            assert_eq!(acl!(runtime::aclrtDestroyEvent(event)), 0);
        }
        drop(held);
        // The end of ACL asks that nothing is left.
    }
}

/// A program that forgets is told at the end, if it asks.
#[test]
fn leaks_are_reported_on_request() {
    let program = crate::programs::compile_test("leaks.c");
    let run = |value: Option<&str>| {
        let mut command = std::process::Command::new(&program);
        command.env("LD_LIBRARY_PATH", installation().join("lib64")).env_remove("TILEKERN_OPAPI_LEAKS");
        if let Some(value) = value {
            command.env("TILEKERN_OPAPI_LEAKS", value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        run(Some("1")),
        "tilekern: 2 executors of aclnnGather were neither run nor destroyed\n\
        tilekern: 1 buffers were not freed, 64 bytes\n\
        tilekern: 3 descriptors were not destroyed\n"
    );
    assert_eq!([run(None), run(Some("0"))], ["", ""]);
}
