//! The first version.

use super::*;
use core::ptr::null;

#[test]
fn first_version() {
    let (open, mut random) = (Open::new(), Random(4));
    for round in 0..60 {
        let case = Case::new(&mut random, false);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.next() as i8);
        let weight = Buffer::of(&in_blocks(case.sizes, &plain, 32));
        let (nz, flat) = (round % 2 == 1, random.below(2) == 1);
        let format = if nz { ACL_FORMAT_ND } else { ACL_FORMAT_FRACTAL_NZ };
        let described = weight_view(case.sizes, flat, format).describe(weight.address);
        let name = if nz { "aclnnGroupedMatmulSwigluQuantWeightNZ" } else { "aclnnGroupedMatmulSwigluQuant" };
        let begin = |scale: *mut aclTensor| {
            let weight = described.0;
            move |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| match nz {
                false => acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
                    x,
                    weight,
                    null(),
                    null(),
                    scale,
                    x_scale,
                    list,
                    out,
                    out_scale,
                    core::ptr::null_mut(),
                    s,
                    e
                )),
                true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(
                    x,
                    weight,
                    null(),
                    null(),
                    scale,
                    x_scale,
                    list,
                    out,
                    out_scale,
                    core::ptr::null_mut(),
                    s,
                    e
                )),
            }
        };
        macro_rules! with_scale {
            ($variant:ident, $of:expr) => {{
                let scale = channel_scales(&mut random, case.sizes, $of);
                let device = scale.device();
                let (weight, scale) = (Weight::Eight(&plain), Scale::$variant(&scale));
                let weights = Weights { weight, scale, assist: None, arithmetic: 1, list_type: 0 };
                case.compare(&open, name, begin(device.1.0), weights);
            }};
        }
        match round % 3 {
            0 => with_scale!(F32, |x| x),
            1 => with_scale!(F16, f16::from_f32),
            _ => with_scale!(BF16, bf16::from_f32),
        }
    }
}

#[test]
fn first_version_of_four_bits() {
    let (open, mut random) = (Open::new(), Random(5));
    for round in 0..40 {
        let case = Case::new(&mut random, false);
        let [_, k, n, e] = case.sizes;
        let plain = random.many(e * k * n, |r| r.below(16) as i8 - 8);
        let bytes = packed(&plain);
        let nz = round % 2 == 1;
        let stored = if nz { packed(&in_blocks(case.sizes, &plain, 64)) } else { bytes.clone() };
        let weight = Buffer::of(&stored);
        let shape = if nz { sizes([e, n / 64, k / 16, 16, 64]).to_vec() } else { sizes([e, k, n]).to_vec() };
        let mut view = View::contiguous(&shape, ACL_INT4);
        if round % 4 >= 2 {
            // Eight of them in an int32.
            *view.shape.last_mut().unwrap() /= 8;
            view = View::contiguous(&view.shape.clone(), ACL_INT32);
        }
        view.format = if nz { ACL_FORMAT_FRACTAL_NZ } else { ACL_FORMAT_ND };
        let described = view.describe(weight.address);
        let groups = [1, 2, 4][random.below(3)];
        let scale_shape = if groups == 1 { vec![e, n] } else { vec![e, groups, n] };
        let values = random.many(e * groups * n, |r| u64::from((r.float(0.01).abs() + 1e-4).to_bits()));
        let scale = Laid::new(&scale_shape, &values, 0, random.below(4));
        let assists = random.many(e * n, |r| r.float(1.0));
        let assist = Laid::new(&[e, n], &assists, 0.0, random.below(4));
        let (scale_device, assist_device) = (scale.device(), assist.device());
        let (weight, scale) = (Weight::Four(&bytes), Scale::Bits(&scale));
        let weights = Weights { weight, scale, assist: Some(&assist), arithmetic: 1, list_type: 0 };
        let begin = |[x, x_scale, list, out, out_scale]: [*mut aclTensor; 5], s: *mut u64, e: *mut *mut aclOpExecutor| {
            let (weight, bias, scale) = (described.0, assist_device.1.0, scale_device.1.0);
            acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
                x,
                weight,
                bias,
                null(),
                scale,
                x_scale,
                list,
                out,
                out_scale,
                core::ptr::null_mut(),
                s,
                e
            ))
        };
        case.compare(&open, "aclnnGroupedMatmulSwigluQuant", begin, weights);
    }
}
