//! The second version, over lists.

use super::*;
use core::ptr::null;

/// A list, and the memory of its members.
struct List {
    handle: *mut aclTensorList,
    _memory: Vec<Buffer>,
}

impl List {
    fn new(members: Vec<(Buffer, Tensor)>) -> List {
        let handles: Vec<_> = members.iter().map(|(_, tensor)| tensor.0).collect();
        let handle = acl!(meta::aclCreateTensorList(handles.as_ptr().cast(), handles.len() as u64));
        assert!(!handle.is_null());
        let (memory, tensors): (Vec<Buffer>, Vec<Tensor>) = members.into_iter().unzip();
        // The list owns them.
        tensors.into_iter().for_each(core::mem::forget);
        List { handle, _memory: memory }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        assert_eq!(acl!(meta::aclDestroyTensorList(self.handle)), 0);
    }
}

#[test]
fn second_version() {
    let (open, mut random) = (Open::new(), Random(6));
    for round in 0..60 {
        let counts = round % 2 == 1;
        let case = Case::new(&mut random, counts);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.next() as i8);
        let blocks = in_blocks(case.sizes, &plain, 32);
        let scales = channel_scales(&mut random, case.sizes, |x| x);
        let nz = round % 3 == 0;
        let format = if nz { ACL_FORMAT_ND } else { ACL_FORMAT_FRACTAL_NZ };
        let lists = match round % 4 < 2 {
            true => {
                let buffer = Buffer::of(&blocks);
                let view = weight_view(case.sizes, random.below(2) == 1, format).describe(buffer.address);
                (List::new(vec![(buffer, view)]), List::new(vec![scales.device()]))
            }
            false => {
                let each = |expert: usize| {
                    let buffer = Buffer::of(&blocks[expert * k * n..][..k * n]);
                    let view = View { format, ..View::contiguous(&sizes([n / 32, k / 16, 16, 32]), ACL_INT8) };
                    let tensor = view.describe(buffer.address);
                    (buffer, tensor)
                };
                let scale = |expert: usize| {
                    let first = scales.offset + expert * scales.strides[0];
                    let row: Vec<f32> = (0..n).map(|i| scales.memory[first + i * scales.strides[1]]).collect();
                    Laid::new(&[n], &row, 0.0, 0).device()
                };
                (List::new((0..e).map(each).collect()), List::new((0..e).map(scale).collect()))
            }
        };
        let name = if nz { "aclnnGroupedMatmulSwigluQuantWeightNzV2" } else { "aclnnGroupedMatmulSwigluQuantV2" };
        let kind = i64::from(counts);
        let hint = acl!(meta::aclCreateIntArray([4i64].as_ptr(), 1));
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (w, ws) = (lists.0.handle, lists.1.handle);
            match nz {
                false => acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
                    x,
                    w,
                    ws,
                    null(),
                    null(),
                    x_scale,
                    null(),
                    list,
                    0,
                    0,
                    0,
                    kind,
                    hint,
                    out,
                    out_scale,
                    s,
                    e
                )),
                true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(
                    x,
                    w,
                    ws,
                    null(),
                    null(),
                    x_scale,
                    null(),
                    list,
                    0,
                    0,
                    0,
                    kind,
                    null(),
                    out,
                    out_scale,
                    s,
                    e
                )),
            }
        };
        let (weight, scale) = (Weight::Eight(&plain), Scale::F32(&scales));
        case.compare(&open, name, begin, Weights { weight, scale, assist: None, arithmetic: 2, list_type: kind as i32 });
        assert_eq!(acl!(meta::aclDestroyIntArray(hint)), 0);
    }
}

#[test]
fn second_version_of_four_bits() {
    let (open, mut random) = (Open::new(), Random(8));
    for round in 0..60 {
        let case = Case::new(&mut random, round % 2 == 1);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.below(16) as i8 - 8);
        let bytes = packed(&plain);
        // Scales of channels, or of two groups of K.
        let groups = round % 4 / 2;
        let shape = if groups == 1 { vec![e, 2, n] } else { vec![e, n] };
        let scales = random.many(shape.iter().product(), |r| u64::from((r.float(0.01).abs() + 1e-4).to_bits()));
        let assists = random.many(e * n, |r| r.float(1.0));
        let (scale, assist) = (Laid::new(&shape, &scales, 0, 0), Laid::new(&[e, n], &assists, 0.0, 0));
        // One tensor for all experts, or one for each, without the dimension of experts.
        let all = round % 3 == 0;
        let parts = if all { 1 } else { e };
        let list = |part: &dyn Fn(usize) -> (Buffer, Tensor)| List::new((0..parts).map(part).collect());
        fn part<T: Plain>(values: &[T], expert: Option<usize>, shape: &[usize], dtype: aclDataType) -> (Buffer, Tensor) {
            let size = values.len() / expert.map_or(1, |_| shape[0]);
            let buffer = Buffer::of(&values[expert.unwrap_or(0) * size..][..size]);
            let shape: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
            let tensor = View::contiguous(&shape[usize::from(expert.is_some())..], dtype).describe(buffer.address);
            (buffer, tensor)
        }
        let expert = |part| (!all).then_some(part);
        let weights = list(&|i| part(&bytes, expert(i), &[e, k, n], ACL_INT4));
        let scale_list = list(&|i| part(&scales, expert(i), &shape, ACL_UINT64));
        let assist_list = list(&|i| part(&assists, expert(i), &[e, n], ACL_FLOAT));
        let kind = i64::from(round % 2 == 1);
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (w, ws, assist) = (weights.handle, scale_list.handle, assist_list.handle);
            acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
                x,
                w,
                ws,
                assist,
                null(),
                x_scale,
                null(),
                list,
                groups,
                0,
                0,
                kind,
                null(),
                out,
                out_scale,
                s,
                e
            ))
        };
        let (weight, scale) = (Weight::Four(&bytes), Scale::Bits(&scale));
        let called = Weights { weight, scale, assist: Some(&assist), arithmetic: 1, list_type: kind as i32 };
        case.compare(&open, "aclnnGroupedMatmulSwigluQuantV2", begin, called);
    }
}
