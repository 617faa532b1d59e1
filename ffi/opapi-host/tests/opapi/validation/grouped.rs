//! GroupedMatmulSwigluQuant.

use super::{Parameters, status, table};
use crate::common::{acl, message};
use crate::device::{Open, View};
use core::ptr::null_mut;
use tilekern_acl::*;

/// Rows, columns, experts.
const GROUPED: [i64; 4] = [6, 32, 64, 3];

fn grouped_parameters([m, k, n, e]: [i64; 4], weight: View) -> Parameters {
    let base = Parameters::new(&[
        ("x", &[m, k], ACL_INT8),
        ("weightScale", &[e, n], ACL_FLOAT),
        ("xScale", &[m], ACL_FLOAT),
        ("groupList", &[e], ACL_INT64),
        ("output", &[m, n / 2], ACL_INT8),
        ("outputScale", &[m], ACL_FLOAT),
    ]);
    base.with("weight", Some(weight))
}

/// A weight of int8 in blocks; its view has five dimensions, or three.
fn blocks([_, k, n, e]: [i64; 4], plain: bool) -> View {
    let (flat, storage) = ([e, k, n], [e, n / 32, k / 16, 16, 32]);
    let view = View::contiguous(if plain { &flat[..] } else { &storage[..] }, ACL_INT8);
    View { format: ACL_FORMAT_FRACTAL_NZ, storage: storage.to_vec(), ..view }
}

fn grouped(p: &Parameters, nz: bool) -> i32 {
    let t = p.describe();
    let [x, w, b, o, ws, xs, l] = ["x", "weight", "bias", "offset", "weightScale", "xScale", "groupList"].map(|name| t.get(name));
    let [out, scale, offset] = ["output", "outputScale", "outputOffset"].map(|name| t.get(name));
    status(|s, e| match nz {
        false => acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(x, w, b, o, ws, xs, l, out, scale, offset, s, e)),
        true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(
            x, w, b, o, ws, xs, l, out, scale, offset, s, e
        )),
    })
}

#[test]
fn grouped_matmul() {
    let _open = Open::new();
    let good = grouped_parameters(GROUPED, blocks(GROUPED, false));
    let sized = |sizes| grouped_parameters(sizes, blocks(sizes, false));
    let weight = |change: &dyn Fn(&mut View)| {
        let mut view = blocks(GROUPED, true);
        change(&mut view);
        good.with("weight", Some(view))
    };
    let mut both = vec![
        ("five dimensions", good.clone(), 0),
        ("three dimensions", weight(&|_| {}), 0),
        ("fewer groups than experts", good.shaped("groupList", &[2]), 0),
        ("no rows", sized([0, 32, 64, 3]), 0),
        ("scales of f16", good.typed("weightScale", ACL_FLOAT16), 0),
        ("scales of bf16", good.typed("weightScale", ACL_BF16), 0),
        ("x of rank 3", good.shaped("x", &[1, 6, 32]), 161002),
        ("a weight of rank 4", good.shaped("weight", &[3, 2, 2, 512]), 161002),
        ("another K", good.shaped("x", &[6, 48]), 161002),
        ("other experts", good.shaped("weightScale", &[2, 64]), 161002),
        ("another N", good.shaped("weightScale", &[3, 96]), 161002),
        ("more groups than experts", good.shaped("groupList", &[4]), 161002),
        ("a group list of rank 2", good.shaped("groupList", &[3, 1]), 161002),
        ("other rows", good.shaped("xScale", &[5]), 161002),
        ("an output of N columns", good.shaped("output", &[6, 64]), 161002),
        ("other scales", good.shaped("outputScale", &[7]), 161002),
        ("N = 10240", sized([1, 16, 10240, 1]), 0),
        ("N > 10240", sized([1, 16, 10304, 1]), 161002),
        ("K = 65520", sized([1, 65520, 32, 1]), 0),
        ("K = 65536", sized([1, 65536, 32, 1]), 161002),
        ("x not int8", good.typed("x", ACL_UINT8), 161002),
        ("a float weight", good.typed("weight", ACL_FLOAT16), 161002),
        ("scales of f64", good.typed("weightScale", ACL_DOUBLE), 161002),
        ("row scales of f16", good.typed("xScale", ACL_FLOAT16), 161002),
        ("a group list of i32", good.typed("groupList", ACL_INT32), 161002),
        ("an output of f32", good.typed("output", ACL_FLOAT), 161002),
        ("N not in blocks", weight(&|view| view.shape = vec![3, 32, 48]), 161002),
        ("K not in blocks", weight(&|view| view.shape = vec![3, 40, 64]), 161002),
        ("a view that is not contiguous", weight(&|view| view.strides = vec![2048, 1, 32]), 161002),
        ("another storage", weight(&|view| view.storage = vec![3, 2, 2, 16, 16]), 161002),
        ("a bias", good.with("bias", Some(View::contiguous(&[3, 64], ACL_INT32))), 161002),
        ("an offset", good.with("offset", Some(View::contiguous(&[3, 64], ACL_FLOAT))), 161002),
        ("an offset to write", good.with("outputOffset", Some(View::contiguous(&[6], ACL_FLOAT))), 161002),
    ];
    // One expert has its dimension too.
    let (mut alone, sizes) = (blocks([6, 32, 64, 1], false), [6, 32, 64, 1]);
    for numbers in [&mut alone.shape, &mut alone.strides, &mut alone.storage] {
        numbers.remove(0);
    }
    both.push(("no dimension of experts", grouped_parameters(sizes, alone).shaped("weightScale", &[64]), 161002));
    for name in ["x", "weight", "weightScale", "xScale", "groupList", "output", "outputScale"] {
        both.push((name, good.without(name), 161001));
    }
    table(|p| grouped(p, false), both.clone());
    table(|p| grouped(p, true), both);
    // Null comes first, also of what is written.
    let t = good.shaped("x", &[1, 6, 32]).describe();
    let [x, w, ws, xs, l] = ["x", "weight", "weightScale", "xScale", "groupList"].map(|name| t.get(name));
    let ([out, scale], none) = (["output", "outputScale"].map(|name| t.get(name)), null_mut());
    let (mut bytes, mut executor) = (0u64, null_mut());
    for (bytes, executor) in [(&mut bytes as *mut u64, null_mut()), (null_mut(), &mut executor as *mut *mut aclOpExecutor)] {
        let code = acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(
            x, w, none, none, ws, xs, l, out, scale, none, bytes, executor
        ));
        assert_eq!(code, 161001, "{}", message());
    }
    // A storage shape of the rank of blocks is theirs.
    for storage in [vec![3, 2, 2, 32, 16], vec![3, 1, 4, 16, 32], vec![3 * 2 * 2 * 512, 1, 1, 1, 1]] {
        let wrong = weight(&|view| view.storage = storage.clone());
        assert_eq!([grouped(&wrong, false), grouped(&wrong, true)], [161002; 2], "{storage:?}");
    }
    // Whose word the format is.
    let nd = weight(&|view| view.format = ACL_FORMAT_ND);
    assert_eq!([grouped(&nd, false), grouped(&nd, true)], [161002, 0]);
    let flat = weight(&|view| view.storage = vec![3, 32, 64]);
    assert_eq!([grouped(&flat, false), grouped(&flat, true)], [0, 161002]);
}

#[test]
fn grouped_matmul_of_four_bits() {
    let _open = Open::new();
    let [m, k, n, e] = GROUPED;
    let plain = View::contiguous(&[e, k, n], ACL_INT4);
    let good = grouped_parameters(GROUPED, plain.clone())
        .with("weightScale", Some(View::contiguous(&[e, n], ACL_UINT64)))
        .with("bias", Some(View::contiguous(&[e, n], ACL_FLOAT)));
    let carrier = |shape: &[i64], format| View { format, ..View::contiguous(shape, ACL_INT32) };
    let nz = View { format: ACL_FORMAT_FRACTAL_NZ, ..View::contiguous(&[e, n / 64, k / 16, 16, 64], ACL_INT4) };
    let long = grouped_parameters([m, 20000, n, e], View::contiguous(&[e, 20000, n], ACL_INT4))
        .with("weightScale", Some(View::contiguous(&[e, n], ACL_UINT64)))
        .with("bias", Some(View::contiguous(&[e, n], ACL_FLOAT)));
    table(
        |p| grouped(p, false),
        vec![
            ("plain", good.clone(), 0),
            ("blocks", good.with("weight", Some(nz)), 0),
            ("eight to an int32", good.with("weight", Some(carrier(&[e, k, n / 8], ACL_FORMAT_ND))), 0),
            ("eight to an int32, in blocks", good.with("weight", Some(carrier(&[e, 1, 2, 16, 8], ACL_FORMAT_FRACTAL_NZ))), 0),
            ("scales of i64", good.typed("weightScale", ACL_INT64), 0),
            ("scales of groups", good.with("weightScale", Some(View::contiguous(&[e, 4, n], ACL_UINT64))), 0),
            ("groups that do not divide K", good.with("weightScale", Some(View::contiguous(&[e, 5, n], ACL_UINT64))), 161002),
            ("no assist matrix", good.without("bias"), 161001),
            (
                "no assist matrix for an int32",
                good.with("weight", Some(carrier(&[e, k, n / 8], ACL_FORMAT_ND))).without("bias"),
                161001,
            ),
            ("an assist matrix of integers", good.typed("bias", ACL_INT32), 161002),
            ("float scales", good.typed("weightScale", ACL_FLOAT), 161002),
            ("an odd stride", good.with("weight", Some(View { strides: vec![2048, 65, 1], ..plain.clone() })), 161002),
            ("K = 20000", long, 161002),
        ],
    );
}

#[derive(Clone, Copy)]
struct Modes {
    dequant: i64,
    dtype: i64,
    quant: i64,
    list: i64,
}

fn list(tensors: &[*mut aclTensor]) -> *mut aclTensorList {
    let list = acl!(meta::aclCreateTensorList(tensors.as_ptr().cast(), tensors.len() as u64));
    assert!(!list.is_null());
    list
}

/// The second version; `weights` says of how many tensors its lists are.
fn grouped_v2(p: &Parameters, nz: bool, weights: usize, modes: Modes) -> i32 {
    let mut t = p.describe();
    let [x, b, xs, smooth, l] = ["x", "bias", "xScale", "smoothScale", "groupList"].map(|name| t.get(name));
    let [out, scale] = ["output", "outputScale"].map(|name| t.get(name));
    let mut lists = Vec::new();
    let assist = p.0.iter().any(|(name, _)| *name == "weightAssistMatrix");
    let names = ["weight", "weightScale", "weightAssistMatrix"];
    for name in &names[..if assist { 3 } else { 2 }] {
        let members: Vec<_> = (0..weights).map(|_| p.view(name).describe(null_mut())).collect();
        lists.push(list(&members.iter().map(|member| member.0).collect::<Vec<_>>()));
        // The list owns them.
        members.into_iter().for_each(core::mem::forget);
    }
    t.0.retain(|(name, _)| !name.starts_with("weight"));
    let Modes { dequant, dtype, quant, list } = modes;
    let (w, ws, tuning) = (lists[0], lists[1], core::ptr::null());
    let none = lists.get(2).map_or(core::ptr::null(), |list| list.cast_const());
    let answer = status(|s, e| match nz {
        false => acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
            x, w, ws, none, b, xs, smooth, l, dequant, dtype, quant, list, tuning, out, scale, s, e
        )),
        true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(
            x, w, ws, none, b, xs, smooth, l, dequant, dtype, quant, list, tuning, out, scale, s, e
        )),
    });
    for list in lists {
        assert_eq!(acl!(meta::aclDestroyTensorList(list)), 0);
    }
    answer
}

#[test]
fn grouped_matmul_v2() {
    let _open = Open::new();
    let good = grouped_parameters(GROUPED, blocks(GROUPED, false));
    let plain = Modes { dequant: 0, dtype: 0, quant: 0, list: 0 };
    let [_, k, n, _] = GROUPED;
    let one = View { format: ACL_FORMAT_FRACTAL_NZ, ..View::contiguous(&[n / 32, k / 16, 16, 32], ACL_INT8) };
    let each = good.with("weight", Some(one)).shaped("weightScale", &[n]);
    let assisted = |scales: &[i64], assist: &[i64], weight: View| {
        good.with("weight", Some(weight))
            .with("weightScale", Some(View::contiguous(scales, ACL_UINT64)))
            .with("weightAssistMatrix", Some(View::contiguous(assist, ACL_FLOAT)))
    };
    let all = |scales: &[i64]| assisted(scales, &[3, n], View::contiguous(&[3, k, n], ACL_INT4));
    let single = |scales: &[i64]| assisted(scales, &[n], View::contiguous(&[k, n], ACL_INT4));
    let groups = Modes { dequant: 1, ..plain };
    for (scales, mode, weights, expected) in [
        (all(&[3, n]), plain, 1, 0),
        (all(&[3, n]), groups, 1, 161002),
        (all(&[3, 2, n]), groups, 1, 0),
        (all(&[3, 2, n]), plain, 1, 161002),
        (single(&[n]), plain, 3, 0),
        (single(&[n]), groups, 3, 161002),
        (single(&[2, n]), groups, 3, 0),
        (single(&[2, n]), plain, 3, 161002),
    ] {
        assert_eq!(grouped_v2(&scales, false, weights, mode), expected, "{}", message());
    }
    let four = good.with("weight", Some(View::contiguous(&[3, k, n], ACL_INT4))).typed("weightScale", ACL_UINT64);
    for nz in [false, true] {
        assert_eq!(grouped_v2(&good, nz, 1, plain), 0, "{}", message());
        assert_eq!(grouped_v2(&each, nz, 3, plain), 0, "{}", message());
        assert_eq!(grouped_v2(&good, nz, 1, Modes { list: 1, ..plain }), 0);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { list: 2, ..plain }), 161002);
        assert_eq!(
            grouped_v2(&good, nz, 1, Modes { dequant: 1, ..plain }),
            161002,
            "groups of K, which int8 weights do not have"
        );
        assert_eq!(grouped_v2(&good, nz, 1, Modes { dequant: 2, ..plain }), 161002);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { dtype: 5, ..plain }), 161002);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { quant: 1, ..plain }), 161002);
        assert_eq!(grouped_v2(&four, nz, 1, Modes { quant: 1, ..plain }), 161001, "no assist matrix");
        assert_eq!(grouped_v2(&each, nz, 2, plain), 161002, "a group list of three");
        assert_eq!(grouped_v2(&good.with("bias", Some(View::contiguous(&[3, 64], ACL_FLOAT))), nz, 1, plain), 161002);
        assert_eq!(grouped_v2(&good.with("smoothScale", Some(View::contiguous(&[3], ACL_FLOAT))), nz, 1, plain), 161002);
        assert_eq!(grouped_v2(&good.without("x"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.without("groupList"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.without("output"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.typed("x", ACL_INT4), nz, 1, plain), 161002);
    }
}
